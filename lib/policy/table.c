/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limit tables: numbers per value of one descriptor key, as immutable snapshots with their own
 * version.
 */
#include <stdatomic.h>

#include "base/memory.h"
#include "policy/hashing.h"
#include "policy/numbers.h"
#include "policy/parts.h"

static const struct admi_json_limits table_limits = { 16u << 20, 1048576, 32 };

/* table->arena points to this; it owns the table. */
struct table_parts {
    struct admi_table table;
    struct admi_arena arena;
    struct admi_table_entry *entries;
    uint32_t *slots; /* entry + 1 by hash of its key, open addressing; 0: empty */
    uint64_t slot_mask;
};

/* One load of a table document. */
struct table_loader {
    struct admi_document document;
    const struct adm_policy *policy;
    const struct admi_rule *rule;
    const struct admi_table *previous; /* only of a patch */
    bool patch;
    struct table_parts *parts;
};

static struct table_parts *parts_new(const struct adm_allocator *allocator)
{
    struct table_parts *parts = admi_allocate(allocator, 1, sizeof *parts);
    if (parts == NULL)
        return NULL;
    parts->table.allocator = *allocator;
    parts->table.references = 1;
    parts->table.arena = parts;
    parts->table.index = parts;
    parts->arena.allocator = &parts->table.allocator;
    return parts;
}

static void parts_free(struct table_parts *parts)
{
    struct adm_allocator allocator = parts->table.allocator;
    admi_arena_fini(&parts->arena);
    admi_release(&allocator, parts, 1, sizeof *parts);
}

static uint64_t find_slot(const struct table_parts *parts, struct adm_bytes key)
{
    uint64_t at = admi_policy_hash(key) & parts->slot_mask;
    while (parts->slots[at] != 0 &&
           !admi_bytes_equal(parts->entries[parts->slots[at] - 1].key, key))
        at = (at + 1) & parts->slot_mask;
    return at;
}

/* ---- entries ---- */

/* Copy a key and its numbers; the key is not in the table yet. */
static void add_entry(struct table_parts *parts, const struct admi_table_entry *entry)
{
    struct adm_bytes key = admi_arena_copy(&parts->arena, entry->key);
    if (key.data == NULL)
        return;
    uint64_t at = find_slot(parts, key);
    parts->entries[parts->table.entry_count] = *entry;
    parts->entries[parts->table.entry_count].key = key;
    parts->slots[at] = (uint32_t)++parts->table.entry_count;
}

static void read_entry_numbers(struct table_loader *loader, struct admi_node member,
                               struct admi_numbers *out)
{
    const struct admi_document *document = &loader->document;
    struct admi_found numbers[ADMI_NUMBER_COUNT];
    *out = admi_numbers_none();
    if (!admi_fields_find(document, member, &admi_entry_object, ADMI_TYPE_BIT(loader->rule->type),
                          NULL, numbers) ||
        !admi_numbers_read(document, numbers, out))
        return;
    enum admi_fit fit = admi_numbers_fit(loader->rule->type, &loader->rule->numbers, out);
    if (fit != ADMI_FIT_OK)
        admi_numbers_report(document, member, numbers, fit);
}

/*
 * What stands behind the name: off, numbers, or (in a patch) null, which says that there is no
 * entry any more.
 */
static void read_entry(struct table_loader *loader, struct admi_node member)
{
    const struct admi_document *document = &loader->document;
    struct admi_table_entry entry = { .key = admi_node_name(member) };
    if (!admi_check_name(document, member, ADM_MAX_VALUE_BYTES, ADMI_DIAG_VALUE))
        return;
    if (admi_node_is(document, member, ADMI_JSON_NULL)) {
        if (!loader->patch)
            admi_report_expected(&document->source, ADMI_DIAG_ENTRY, member.token,
                                 "numbers or \"off\" (only a patch takes null)");
        return;
    }
    if (admi_node_is(document, member, ADMI_JSON_OBJECT)) {
        read_entry_numbers(loader, member, &entry.numbers);
    } else if (admi_node_is(document, member, ADMI_JSON_STRING) &&
               admi_bytes_equal(admi_node_string(member), admi_words_of("off"))) {
        entry.off = true;
        entry.numbers = admi_numbers_none();
    } else {
        admi_report_expected(&document->source, ADMI_DIAG_ENTRY, member.token,
                             "numbers or \"off\"");
        return;
    }
    if (document->source.diags->errors == 0)
        add_entry(loader->parts, &entry);
}

static bool reserve(struct table_parts *parts, uint64_t entries)
{
    uint64_t slots = 4;
    while (slots < 2 * entries)
        slots *= 2;
    parts->entries = admi_arena_allocate(&parts->arena, entries, sizeof *parts->entries);
    parts->slots = admi_arena_allocate(&parts->arena, slots, sizeof *parts->slots);
    parts->slot_mask = slots - 1;
    parts->table.entries = parts->entries;
    return !parts->arena.failed;
}

/* The names of a patch, so that what it does not mention can be carried over. */
struct mentioned {
    struct adm_bytes *names;
    uint64_t count, mask; /* slots: a power of two */
};

static uint64_t mentioned_slot(const struct mentioned *mentioned, struct adm_bytes name)
{
    uint64_t at = admi_policy_hash(name) & mentioned->mask;
    while (mentioned->names[at].data != NULL && !admi_bytes_equal(mentioned->names[at], name))
        at = (at + 1) & mentioned->mask;
    return at;
}

static bool carry_over(struct table_loader *loader, struct admi_node entries, uint64_t count)
{
    const struct admi_document *document = &loader->document;
    struct mentioned mentioned = { NULL, 0, 3 };
    struct admi_node member;
    while (mentioned.mask < 2 * count)
        mentioned.mask = mentioned.mask * 2 + 1;
    mentioned.names =
        admi_allocate(document->json.allocator, mentioned.mask + 1, sizeof *mentioned.names);
    if (mentioned.names == NULL)
        return false;
    for (bool more = admi_node_first(entries, &member); more;
         more = admi_node_next(document, &member)) {
        struct adm_bytes name = admi_node_name(member);
        mentioned.names[mentioned_slot(&mentioned, name)] = name;
    }
    for (uint64_t i = 0; i < loader->previous->entry_count && !loader->parts->arena.failed; i++)
        if (mentioned.names[mentioned_slot(&mentioned, loader->previous->entries[i].key)].data ==
            NULL)
            add_entry(loader->parts, &loader->previous->entries[i]);
    admi_release(document->json.allocator, mentioned.names, mentioned.mask + 1,
                 sizeof *mentioned.names);
    return true;
}

static adm_status read_entries(struct table_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_node member;
    if (!admi_node_is(document, node, ADMI_JSON_OBJECT)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token, "an object");
        return ADM_OK;
    }
    uint64_t count = admi_node_count(node);
    uint64_t before = loader->previous == NULL ? 0 : loader->previous->entry_count;
    if (count + before > UINT32_MAX / 2)
        return ADM_E_NOMEM;
    if (!reserve(loader->parts, count + before))
        return ADM_E_NOMEM;
    if (before > 0 && !carry_over(loader, node, count))
        return ADM_E_NOMEM;
    for (bool more = admi_node_first(node, &member);
         more && !admi_diags_full(document->source.diags);
         more = admi_node_next(document, &member)) {
        read_entry(loader, member);
        if (loader->parts->arena.failed)
            return ADM_E_NOMEM;
    }
    return ADM_OK;
}

/* ---- the document ---- */

static void read_head(struct table_loader *loader, const struct admi_found own[ADMI_TABLE_COUNT])
{
    const struct admi_document *document = &loader->document;
    struct admi_table *table = &loader->parts->table;
    struct adm_bytes text;
    if (own[ADMI_TABLE_VERSION].present &&
        admi_read_version(document, own[ADMI_TABLE_VERSION].node, &text))
        admi_copy(table->version, text.data, text.length);
    if (!own[ADMI_TABLE_BY].present || !admi_read_key(document, own[ADMI_TABLE_BY].node, &text))
        return;
    table->by = admi_arena_copy(&loader->parts->arena, text);
    if (loader->previous != NULL && !admi_bytes_equal(loader->previous->by, text))
        admi_report_expected(&document->source, ADMI_DIAG_TABLE_KEY, own[ADMI_TABLE_BY].node.token,
                             "the by of the table that the patch starts from");
}

static adm_status read_table(struct table_loader *loader)
{
    const struct admi_document *document = &loader->document;
    struct adm_diags *diags = document->source.diags;
    struct admi_found own[ADMI_TABLE_COUNT];
    struct adm_bytes id;
    if (!admi_fields_find(document, admi_document_root(document), &admi_table_object,
                          ADMI_TYPES_ALL, own, NULL))
        return ADM_E_POLICY_INVALID;
    read_head(loader, own);
    if (!own[ADMI_TABLE_RULE].present || !admi_read_id(document, own[ADMI_TABLE_RULE].node, &id))
        return ADM_E_POLICY_INVALID; /* what the entries may hold depends on the rule */
    uint32_t errors = diags->errors,
             rule = admi_rule_named(document, loader->policy, own[ADMI_TABLE_RULE].node, id);
    if (rule == UINT32_MAX)
        return errors == 0 ? ADM_E_UNKNOWN_RULE : ADM_E_POLICY_INVALID;
    loader->rule = &loader->policy->rules[rule];
    loader->parts->table.rule = admi_arena_copy(&loader->parts->arena, id);
    if (own[ADMI_TABLE_ENTRIES].present) {
        adm_status status = read_entries(loader, own[ADMI_TABLE_ENTRIES].node);
        if (status != ADM_OK)
            return status;
    }
    if (loader->parts->arena.failed)
        return ADM_E_NOMEM;
    return diags->errors > 0 ? ADM_E_POLICY_INVALID : ADM_OK;
}

static enum admi_format format_of(uint32_t mode)
{
    return (mode & ADM_TABLE_YAML) != 0 ? ADMI_FORMAT_YAML : ADMI_FORMAT_JSON;
}

adm_status admi_table_load(struct adm_bytes text, const struct adm_policy *policy,
                           const struct admi_table *previous, uint32_t mode,
                           const struct adm_allocator *allocator, struct admi_table **out,
                           struct adm_diags **out_diags)
{
    enum admi_format format = format_of(mode);
    struct table_loader loader = { .policy = policy,
                                   .patch = (mode & ~ADM_TABLE_YAML) == ADM_TABLE_PATCH };
    if ((mode & ~ADM_TABLE_YAML) > ADM_TABLE_PATCH || (text.data == NULL && text.length > 0))
        return ADM_E_INVALID_ARGUMENT;
    if (loader.patch)
        loader.previous = previous;
    allocator = admi_allocator_or_malloc(allocator);
    struct adm_diags *diags = admi_diags_new(allocator, NULL);
    if (diags == NULL)
        return ADM_E_NOMEM;
    adm_status status = ADM_E_NOMEM;
    loader.parts = parts_new(allocator);
    if (loader.parts != NULL) {
        status =
            admi_document_read(&loader.document, text, format, &table_limits, allocator, diags);
        if (status == ADM_OK)
            status = read_table(&loader);
        admi_document_place_findings(&loader.document);
        admi_document_fini(&loader.document);
        if (status != ADM_OK)
            parts_free(loader.parts);
    }
    admi_diags_hand_out(diags, status, text, out_diags);
    if (status == ADM_OK)
        *out = &loader.parts->table;
    return status;
}

adm_status admi_table_rule(struct adm_bytes text, const struct adm_policy *policy, uint32_t mode,
                           const struct adm_allocator *allocator, uint32_t *out)
{
    struct admi_document document = { .decoded = NULL };
    const struct admi_json *json = &document.json;
    uint8_t id[ADM_MAX_RULE_ID + 1];
    uint32_t rule = UINT32_MAX;
    if (text.data == NULL && text.length > 0)
        return ADM_E_INVALID_ARGUMENT;
    allocator = admi_allocator_or_malloc(allocator);
    struct adm_diags *unread = admi_diags_new(allocator, NULL);
    if (unread == NULL)
        return ADM_E_NOMEM;
    adm_status status =
        admi_document_check(&document, text, format_of(mode), &table_limits, allocator, unread);
    for (uint32_t t = 1; status == ADM_OK && t < json->count; t = json->tokens[t].after) {
        const struct admi_json_token *token = &json->tokens[t];
        if (token->name_length == 0 || token->kind != ADMI_JSON_STRING ||
            !admi_json_spells(json, token->name_offset, token->name_length, admi_words_of("rule")))
            continue;
        uint64_t length = admi_json_decode(json, token->offset, token->length, id, sizeof id);
        rule = admi_policy_rule(policy, (struct adm_bytes){ id, length });
        break;
    }
    admi_document_fini(&document);
    adm_diags_free(unread);
    if (status == ADM_E_NOMEM)
        return status;
    *out = rule;
    return ADM_OK;
}

struct admi_table *admi_table_ref(struct admi_table *table)
{
    if (table != NULL)
        atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

void admi_table_unref(struct admi_table *table)
{
    if (table != NULL &&
        atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) == 1)
        parts_free(table->arena);
}

uint64_t admi_table_find(const struct admi_table *table, struct adm_bytes value)
{
    const struct table_parts *parts = table->index;
    if (parts->slots == NULL)
        return UINT64_MAX;
    uint32_t index = parts->slots[find_slot(parts, value)];
    return index == 0 ? UINT64_MAX : index - 1u;
}

bool admi_table_fits(const struct admi_table *table, const struct admi_rule *rule)
{
    for (uint64_t i = 0; i < table->entry_count; i++) {
        const struct admi_table_entry *entry = &table->entries[i];
        if (!entry->off &&
            admi_numbers_fit(rule->type, &rule->numbers, &entry->numbers) != ADMI_FIT_OK)
            return false;
    }
    return true;
}
