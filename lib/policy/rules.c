/* SPDX-License-Identifier: Apache-2.0 */
/* Rules: from the document to their compiled form. */
#include "base/json_names.h"
#include "base/memory.h"
#include "policy/numbers.h"
#include "policy/overrides.h"

/* Members of a rule as they were found. */
struct rule_members {
    struct admi_found own[ADMI_RULE_COUNT];
    struct admi_found numbers[ADMI_NUMBER_COUNT];
};

/* The type decides which other fields are legal, so it is looked for first. */
static bool read_type(struct admi_loader *loader, struct admi_node node, enum admi_rule_type *out)
{
    const struct admi_document *document = &loader->document;
    struct admi_node member;
    if (!admi_node_is(document, node, ADMI_JSON_OBJECT))
        return false;
    for (bool ok = admi_node_first(node, &member); ok; ok = admi_node_next(document, &member)) {
        uint32_t type;
        if (!admi_bytes_equal(admi_node_name(member), admi_words_of("type")))
            continue;
        if (!admi_read_word(document, member, admi_rule_type_words, ADMI_DIAG_RULE_TYPE, &type))
            return false;
        *out = (enum admi_rule_type)type;
        return true;
    }
    return false; /* reported as a missing key */
}

static bool read_choice(struct admi_loader *loader, const struct rule_members *members,
                        uint32_t field)
{
    uint32_t word = 0;
    if (!members->own[field].present)
        return false;
    admi_read_word(&loader->document, members->own[field].node,
                   admi_rule_object.fields[field].words, ADMI_DIAG_WORD, &word);
    return word == 1; /* the first word is the default */
}

/* Behind a finding about an id: where the rule is that had it first. */
static void note_first_rule(struct admi_loader *loader, struct admi_diag_entry *entry,
                            uint32_t id_token, struct adm_bytes id)
{
    const struct admi_json *json = &loader->document.json;
    uint32_t rule = json->tokens[id_token].parent;
    uint32_t first = admi_json_item(json, json->tokens[rule].parent,
                                    admi_policy_rule(&loader->parts->policy, id));
    if (first != ADMI_JSON_NONE)
        admi_report_note(&loader->document.source, entry,
                         admi_json_member(json, first, admi_words_of("id")), false,
                         "it is first here");
}

static void read_id(struct admi_loader *loader, const struct admi_found *found,
                    struct admi_rule *rule)
{
    struct adm_bytes id;
    if (!found->present || !admi_read_id(&loader->document, found->node, &id))
        return;
    rule->id = admi_loader_copy(loader, id);
    loader->parts->ids[rule->index] = rule->id;
    if (!loader->building && !admi_parts_add_rule(loader->parts, rule->index))
        note_first_rule(loader,
                        admi_report_expected(&loader->document.source, ADMI_DIAG_DUPLICATE_RULE_ID,
                                             found->node.token, "an id that no rule before has"),
                        found->node.token, id);
}

static void read_scope(struct admi_loader *loader, const struct rule_members *members,
                       struct admi_rule *rule)
{
    const struct admi_found *per_replica = &members->own[ADMI_RULE_PER_REPLICA],
                            *by = &members->own[ADMI_RULE_SCOPE_BY];
    struct adm_bytes key = admi_words_of("model");
    if (per_replica->present)
        admi_read_boolean(&loader->document, per_replica->node, &rule->per_replica);
    if (by->present && !admi_read_key(&loader->document, by->node, &key))
        return;
    rule->scope_key = ADMI_NO_KEY;
    if (rule->type == ADMI_PRESSURE || rule->per_replica)
        rule->scope_key = by->present ? admi_loader_key(loader, by->node, false, key)
                                      : admi_parts_intern(loader->parts, key);
}

/* Everything but numbers and overrides. */
static void read_own(struct admi_loader *loader, const struct rule_members *members,
                     struct admi_rule *rule)
{
    const struct admi_document *document = &loader->document;
    const struct admi_found *own = members->own;
    struct adm_bytes text;
    uint32_t window;
    read_id(loader, &own[ADMI_RULE_ID], rule);
    if (own[ADMI_RULE_DESCRIPTION].present)
        admi_read_text(document, own[ADMI_RULE_DESCRIPTION].node, &text);
    if (own[ADMI_RULE_MATCH].present)
        admi_match_read(loader, own[ADMI_RULE_MATCH].node, &rule->match);
    if (own[ADMI_RULE_PARTITION_BY].present)
        admi_keys_read(loader, own[ADMI_RULE_PARTITION_BY].node, ADMI_MAX_PARTITION_KEYS,
                       rule->partition_keys, &rule->partition_count);
    if (own[ADMI_RULE_UNIT].present)
        admi_unit_read(loader, own[ADMI_RULE_UNIT].node, &rule->unit);
    rule->shadow = read_choice(loader, members, ADMI_RULE_MODE);
    rule->completion = read_choice(loader, members, ADMI_RULE_CHARGE);
    rule->settle_exact = read_choice(loader, members, ADMI_RULE_SETTLE);
    read_scope(loader, members, rule);
    if (own[ADMI_RULE_MAX_PARTITIONS].present)
        admi_read_whole(document, own[ADMI_RULE_MAX_PARTITIONS].node, 1, ADM_MAX_AMOUNT,
                        &rule->max_partitions);
    if (own[ADMI_RULE_SIGNAL].present &&
        admi_read_value(document, own[ADMI_RULE_SIGNAL].node, &text))
        rule->signal = admi_loader_copy(loader, text);
    if (own[ADMI_RULE_WINDOW].present &&
        admi_read_word(document, own[ADMI_RULE_WINDOW].node, admi_window_words, ADMI_DIAG_WINDOW,
                       &window))
        rule->window = window + ADM_WINDOW_DAY;
}

/* false: not all numbers are known, so that nothing can be said about overrides. */
static bool read_numbers(struct admi_loader *loader, struct admi_node node,
                         const struct rule_members *members, struct admi_rule *rule)
{
    rule->numbers = admi_numbers_none();
    bool ok = admi_numbers_read(&loader->document, members->numbers, &rule->numbers);
    if (rule->type == ADMI_PRESSURE && (rule->numbers.given & ADMI_GIVEN_THRESHOLD) == 0) {
        admi_report_message(&loader->document.source, ADMI_DIAG_OPERATOR, node.token,
                            "expected exactly one of gt, gte, lt and lte in a pressure rule");
        ok = false;
    }
    const uint32_t rate = ADMI_GIVEN_REFILL | ADMI_GIVEN_PER;
    bool complete = rule->type != ADMI_TOKEN_BUCKET || (rule->numbers.given & rate) == rate;
    if (ok && complete && rule->type == ADMI_TOKEN_BUCKET &&
        !admi_numbers_rate_ok(&rule->numbers)) {
        admi_numbers_report(&loader->document, node, members->numbers, ADMI_FIT_RATE);
        ok = false;
    }
    return ok && complete;
}

/* ---- identity ---- */

static char *put_field(char *out, struct adm_bytes field)
{
    for (uint32_t i = 0; i < 4; i++)
        *out++ = (char)(field.length >> 8 * i & 0xFF);
    admi_copy(out, field.data, field.length);
    return out + field.length;
}

/*
 * Each field goes behind its length, so that no two rules share an identity by where their names
 * end.
 */
static struct adm_bytes make_identity(struct admi_loader *loader, const struct admi_rule *rule)
{
    const struct adm_policy *policy = &loader->parts->policy;
    struct adm_bytes fields[4 + ADMI_MAX_PARTITION_KEYS];
    uint32_t count = 0;
    uint64_t bytes = 0;
    fields[count++] = rule->id;
    fields[count++] = admi_words_of(admi_rule_type_name(rule->type));
    fields[count++] = admi_policy_unit_name(policy, rule->unit);
    fields[count++] = admi_words_of(
        rule->window == ADM_WINDOW_NONE ? "" : admi_window_words[rule->window - ADM_WINDOW_DAY]);
    for (uint32_t i = 0; i < rule->partition_count; i++)
        fields[count++] = policy->keys[rule->partition_keys[i]];
    for (uint32_t i = 0; i < count; i++)
        bytes += 4 + fields[i].length;
    char *text = admi_arena_allocate(&loader->parts->arena, bytes, 1), *end = text;
    if (text == NULL)
        return (struct adm_bytes){ NULL, 0 };
    for (uint32_t i = 0; i < count; i++)
        end = put_field(end, fields[i]);
    return (struct adm_bytes){ text, bytes };
}

static void read_rule(struct admi_loader *loader, struct admi_node node, struct admi_rule *rule)
{
    struct rule_members members;
    enum admi_rule_type type = ADMI_TOKEN_BUCKET;
    bool known = read_type(loader, node, &type);
    rule->type = type;
    if (!admi_fields_find(&loader->document, node, &admi_rule_object,
                          known ? ADMI_TYPE_BIT(type) : ADMI_TYPES_ALL, members.own,
                          members.numbers))
        return;
    read_own(loader, &members, rule);
    if (!known)
        return;
    bool complete = read_numbers(loader, node, &members, rule);
    if (members.numbers[ADMI_NUMBER_PARK].present)
        admi_report_message(&loader->document.source, ADMI_DIAG_NOT_IN_FORCE,
                            members.numbers[ADMI_NUMBER_PARK].node.token,
                            "park is read and checked, but no request is parked yet");
    if (members.numbers[ADMI_NUMBER_LEASE_TTL].present)
        admi_lease_check(loader, members.numbers[ADMI_NUMBER_LEASE_TTL].node,
                         rule->numbers.lease_ttl_ns);
    if (members.own[ADMI_RULE_OVERRIDES].present)
        admi_overrides_read(loader, members.own[ADMI_RULE_OVERRIDES].node, rule, complete);
    if (loader->building)
        rule->identity = make_identity(loader, rule);
}

/* At most 16 consuming rules may match a request; those without a match all do. */
static void check_width(struct admi_loader *loader, struct admi_node node)
{
    const struct adm_policy *policy = &loader->parts->policy;
    struct admi_node item;
    uint32_t consuming = 0, i = 0;
    for (bool ok = admi_node_first(node, &item); ok;
         ok = admi_node_next(&loader->document, &item)) {
        const struct admi_rule *rule = &policy->rules[i++];
        bool consumes = rule->type != ADMI_REQUEST_CAP && rule->type != ADMI_PRESSURE;
        if (rule->shadow || !consumes || rule->match.entry_count > 0 || rule->match.has_not)
            continue;
        if (++consuming == ADM_MAX_TERMS + 1) {
            admi_report_message(
                &loader->document.source, ADMI_DIAG_POLICY_TOO_WIDE, item.token,
                "more than 16 token_bucket, concurrency and quota rules match every request: "
                "such requests are denied policy_too_wide");
            return;
        }
    }
}

static void read_item(struct admi_loader *loader, struct admi_node item, uint32_t index,
                      struct admi_rule *rule)
{
    rule->index = index;
    rule->scope_key = ADMI_NO_KEY;
    read_rule(loader, item, rule);
}

void admi_rules_check(struct admi_loader *loader, struct admi_node node)
{
    struct admi_policy_parts *parts = loader->parts;
    if (!admi_read_array(&loader->document, node, 1, ADMI_MAX_RULES))
        return;
    uint32_t count = admi_node_count(node), i = 0;
    loader->rules = node;
    admi_parts_reserve_rules(parts, count);
    struct admi_node item;
    for (bool ok = admi_node_first(node, &item); ok;
         ok = admi_node_next(&loader->document, &item)) {
        struct admi_rule unused = { .unit = 0 };
        if (admi_loader_failed(loader) || admi_diags_full(loader->document.source.diags))
            return;
        read_item(loader, item, i++, &unused);
    }
    parts->policy.rule_count = count;
}

void admi_rules_build(struct admi_loader *loader)
{
    struct admi_policy_parts *parts = loader->parts;
    struct adm_diags *diags = loader->document.source.diags;
    uint32_t i = 0;
    parts->rules =
        admi_arena_allocate(&parts->arena, parts->policy.rule_count, sizeof *parts->rules);
    parts->policy.rules = parts->rules;
    loader->building = true;
    diags->quiet = true;
    struct admi_node item;
    for (bool ok = admi_node_first(loader->rules, &item); ok && !admi_loader_failed(loader);
         ok = admi_node_next(&loader->document, &item), i++)
        read_item(loader, item, i, &parts->rules[i]);
    diags->quiet = false;
    if (!admi_loader_failed(loader))
        check_width(loader, loader->rules);
}
