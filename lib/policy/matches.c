/* SPDX-License-Identifier: Apache-2.0 */
/* Match blocks: from the document to their compiled form, and whether they hold. */
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "policy/parts.h"

#define LINEAR_VALUES 8u

uint32_t admi_loader_key(struct admi_loader *loader, struct admi_node node, bool of_name,
                         struct adm_bytes key)
{
    uint32_t slot = admi_parts_intern(loader->parts, key);
    if (slot != ADMI_NO_KEY || loader->parts->arena.failed)
        return slot;
    struct admi_diag_entry *entry =
        of_name ? admi_report_name(&loader->document.source, ADMI_DIAG_TOO_MANY_KEYS, node.token)
                : admi_report_value(&loader->document.source, ADMI_DIAG_TOO_MANY_KEYS, node.token);
    if (entry != NULL) {
        struct admi_words words = admi_report_words(entry);
        admi_words_add(&words, "expected at most ");
        admi_words_add_number(&words, ADMI_POLICY_KEYS_MAX);
        admi_words_add(&words, " different descriptor keys in a policy");
    }
    return ADMI_NO_KEY;
}

/*
 * Prefixes before exact values, then by length, then by bytes: exact values can be found by
 * bisection.
 */
static int compare_values(const void *a, const void *b, const void *context)
{
    const struct admi_match_value *one = a, *two = b;
    (void)context;
    if (one->kind != two->kind)
        return one->kind > two->kind ? -1 : 1;
    if (one->text.length != two->text.length)
        return one->text.length < two->text.length ? -1 : 1;
    return one->text.length == 0 ? 0
                                 : memcmp(one->text.data, two->text.data, (size_t)one->text.length);
}

static bool read_value(struct admi_loader *loader, struct admi_node node,
                       struct admi_match_value *out)
{
    struct adm_bytes text;
    if (!admi_read_value(&loader->document, node, &text))
        return false;
    const char *bytes = text.data;
    out->kind = ADMI_VALUE_EXACT;
    if (bytes[text.length - 1] == '*') {
        text.length--;
        out->kind = text.length == 0 ? ADMI_VALUE_PRESENT : ADMI_VALUE_PREFIX;
    }
    out->text = admi_loader_copy(loader, text);
    return true;
}

/* Sorted, each once; where any value will do, nothing else is kept. */
static uint32_t tidy_values(struct admi_match_value *values, uint32_t count)
{
    admi_sort(values, count, sizeof *values, compare_values, NULL);
    if (values[0].kind == ADMI_VALUE_PRESENT)
        return 1;
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++)
        if (compare_values(&values[kept - 1], &values[i], NULL) != 0)
            values[kept++] = values[i];
    return kept;
}

static bool read_values(struct admi_loader *loader, struct admi_node node,
                        struct admi_match_entry *out)
{
    const struct admi_document *document = &loader->document;
    bool array = admi_node_is(document, node, ADMI_JSON_ARRAY), ok = true;
    if (!array && !admi_node_is(document, node, ADMI_JSON_STRING)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token,
                             "a string or an array of strings");
        return false;
    }
    uint32_t count = array ? admi_node_count(node) : 1, used = 0;
    if (count == 0) {
        admi_report_message(&document->source, ADMI_DIAG_MATCH, node.token,
                            "expected at least one value");
        return false;
    }
    struct admi_match_value *values = NULL, unused;
    if (loader->building) {
        values = admi_arena_allocate(&loader->parts->arena, count, sizeof *values);
        if (values == NULL)
            return false;
    }
    if (array) {
        struct admi_node item;
        for (bool more = admi_node_first(node, &item);
             more && !admi_diags_full(document->source.diags);
             more = admi_node_next(document, &item), used++)
            if (!read_value(loader, item, values == NULL ? &unused : &values[used]))
                ok = false;
    } else {
        ok = read_value(loader, node, values == NULL ? &unused : &values[used++]);
    }
    if (!ok || values == NULL || loader->parts->arena.failed)
        return ok && !loader->parts->arena.failed;
    out->values = values;
    out->value_count = tidy_values(values, used);
    return true;
}

static bool read_entry(struct admi_loader *loader, struct admi_node member,
                       struct admi_match_entry *out)
{
    if (!admi_check_name(&loader->document, member, ADM_MAX_KEY_BYTES, ADMI_DIAG_KEY))
        return false;
    out->key = admi_loader_key(loader, member, true, admi_node_name(member));
    bool ok = read_values(loader, member, out);
    return ok && out->key != ADMI_NO_KEY;
}

static bool is_not(struct admi_node member)
{
    return admi_bytes_equal(admi_node_name(member), admi_words_of("not"));
}

/* The entries of a block. not_at: where to put its "not", or NULL inside one. */
static bool read_block(struct admi_loader *loader, struct admi_node node,
                       const struct admi_match_entry **out_entries, uint32_t *out_count,
                       struct admi_node *not_at, bool *has_not)
{
    const struct admi_document *document = &loader->document;
    if (!admi_node_is(document, node, ADMI_JSON_OBJECT)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token,
                             "an object of descriptor keys and values");
        return false;
    }
    uint32_t count = admi_node_count(node), used = 0;
    if (count > ADMI_MATCH_ENTRIES_MAX) {
        admi_report_at_most(&document->source, ADMI_DIAG_MATCH, node.token, ADMI_MATCH_ENTRIES_MAX,
                            "entries");
        return false;
    }
    struct admi_match_entry *entries = NULL, unused = { .value_count = 0 };
    if (loader->building)
        entries = admi_arena_allocate(&loader->parts->arena, count, sizeof *entries);
    struct admi_node member;
    bool ok = entries != NULL || !loader->building;
    for (bool more = ok && admi_node_first(node, &member); more;
         more = admi_node_next(document, &member)) {
        if (!is_not(member)) {
            if (!read_entry(loader, member, entries == NULL ? &unused : &entries[used]))
                ok = false;
            used++;
        } else if (not_at != NULL) {
            *not_at = member;
            *has_not = true;
        } else {
            struct admi_diag_entry *entry =
                admi_report_name(&document->source, ADMI_DIAG_MATCH, member.token);
            if (entry != NULL) {
                struct admi_words words = admi_report_words(entry);
                admi_words_add(&words, "expected no \"not\" inside a \"not\"");
            }
            ok = false;
        }
    }
    *out_entries = entries;
    *out_count = used;
    return ok;
}

bool admi_match_read(struct admi_loader *loader, struct admi_node node, struct admi_match *out)
{
    struct admi_node negated = { NULL, 0 };
    bool has_not = false;
    bool ok = read_block(loader, node, &out->entries, &out->entry_count, &negated, &has_not);
    if (!has_not)
        return ok;
    out->has_not = 1;
    if (!read_block(loader, negated, &out->negated, &out->negated_count, NULL, NULL))
        return false;
    if (out->negated_count == 0)
        admi_report_message(&loader->document.source, ADMI_DIAG_NEVER_MATCHES, negated.token,
                            "an empty \"not\" holds for no request: this match never does");
    return ok;
}

/* ---- whether they hold ---- */

static bool starts_with(struct adm_bytes value, struct adm_bytes prefix)
{
    return value.length >= prefix.length &&
           memcmp(value.data, prefix.data, (size_t)prefix.length) == 0;
}

static bool bisect(const struct admi_match_value *values, uint32_t from, uint32_t count,
                   struct adm_bytes value)
{
    struct admi_match_value wanted = { ADMI_VALUE_EXACT, 0, value };
    while (from < count) {
        uint32_t middle = from + (count - from) / 2;
        int order = compare_values(&values[middle], &wanted, NULL);
        if (order == 0)
            return true;
        if (order < 0)
            from = middle + 1;
        else
            count = middle;
    }
    return false;
}

static bool entry_holds(const struct admi_match_entry *entry, const struct adm_bytes *values)
{
    struct adm_bytes value = values[entry->key];
    if (value.length == 0)
        return false;
    for (uint32_t i = 0; i < entry->value_count; i++) {
        const struct admi_match_value *wanted = &entry->values[i];
        switch (wanted->kind) {
        case ADMI_VALUE_PRESENT:
            return true;
        case ADMI_VALUE_PREFIX:
            if (starts_with(value, wanted->text))
                return true;
            break;
        default:
            if (entry->value_count - i > LINEAR_VALUES) /* only exact values from here on */
                return bisect(entry->values, i, entry->value_count, value);
            if (admi_bytes_equal(value, wanted->text))
                return true;
            break;
        }
    }
    return false;
}

static const struct admi_match_entry *first_failure(const struct admi_match_entry *entries,
                                                    uint32_t count, const struct adm_bytes *values)
{
    for (uint32_t i = 0; i < count; i++)
        if (!entry_holds(&entries[i], values))
            return &entries[i];
    return NULL;
}

const struct admi_match_entry *admi_match_failure(const struct admi_match *match,
                                                  const struct adm_bytes *values)
{
    static const struct admi_match_entry nothing = { .key = ADMI_NO_KEY };
    const struct admi_match_entry *failure =
        first_failure(match->entries, match->entry_count, values);
    if (failure != NULL || !match->has_not)
        return failure;
    if (first_failure(match->negated, match->negated_count, values) != NULL)
        return NULL;
    return match->negated_count > 0 ? &match->negated[0] : &nothing;
}

bool admi_match_holds(const struct admi_match *match, const struct adm_bytes *values)
{
    return admi_match_failure(match, values) == NULL;
}
