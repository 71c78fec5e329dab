/* SPDX-License-Identifier: Apache-2.0 */
/* The model's matching: which rules apply, whose numbers, when two documents say the same. */
#include "model_state.h"

#include <string.h>

/* ---- matching ---- */

int model_value(const struct model_request *request, int key)
{
    for (int i = 0; i < request->descriptor_count; i++)
        if (request->descriptors[i].key == key)
            return request->descriptors[i].value;
    return 0;
}

static bool value_fits(int pattern, int value)
{
    size_t length = model_length(pattern);
    const char *text = model_text(pattern);
    if (length > 0 && text[length - 1] == '*')
        return model_length(value) >= length - 1 &&
               memcmp(model_text(value), text, length - 1) == 0;
    return pattern == value;
}

static bool entries_hold(const struct model_entry *entries, int count,
                         const struct model_request *request)
{
    for (int i = 0; i < count; i++) {
        int value = model_value(request, entries[i].key);
        bool any = false;
        for (int j = 0; j < entries[i].count; j++)
            any = any || (value != 0 && value_fits(entries[i].values[j], value));
        if (!any)
            return false;
    }
    return true;
}

bool model_holds(const struct model_match *match, const struct model_request *request)
{
    if (!entries_hold(match->entries, match->count, request))
        return false;
    return !match->has_not || !entries_hold(match->negated, match->not_count, request);
}

static bool has_value(const struct model_entry *entry, int value)
{
    for (int i = 0; i < entry->count; i++)
        if (entry->values[i] == value)
            return true;
    return false;
}

/* The same values in any order; beside "*" all others mean nothing. */
static bool entry_equal(const struct model_entry *a, const struct model_entry *b)
{
    int any = model_word_of("*");
    bool same = a->key == b->key;
    if (has_value(a, any) || has_value(b, any))
        return same && has_value(a, any) && has_value(b, any);
    for (int i = 0; i < a->count; i++)
        same = same && has_value(b, a->values[i]);
    for (int i = 0; i < b->count; i++)
        same = same && has_value(a, b->values[i]);
    return same;
}

/* Entries have distinct keys; their order means nothing. */
static bool entries_equal(const struct model_entry *a, int a_count, const struct model_entry *b,
                          int b_count)
{
    if (a_count != b_count)
        return false;
    for (int i = 0; i < a_count; i++) {
        bool found = false;
        for (int j = 0; j < b_count; j++)
            found = found || entry_equal(&a[i], &b[j]);
        if (!found)
            return false;
    }
    return true;
}

bool model_match_equal(const struct model_match *a, const struct model_match *b)
{
    return a->has_not == b->has_not && entries_equal(a->entries, a->count, b->entries, b->count) &&
           (!a->has_not || entries_equal(a->negated, a->not_count, b->negated, b->not_count));
}

static bool numbers_equal(const struct model_numbers *a, const struct model_numbers *b)
{
    return a->given == b->given && a->comparison == b->comparison && a->capacity == b->capacity &&
           a->refill == b->refill && a->per_ns == b->per_ns && a->limit == b->limit &&
           a->ttl_ns == b->ttl_ns && a->age_ns == b->age_ns && a->fraction_e18 == b->fraction_e18 &&
           a->threshold_whole == b->threshold_whole && a->threshold_e18 == b->threshold_e18;
}

static bool rules_equal(const struct model_rule *a, const struct model_rule *b)
{
    bool same = a->id == b->id && a->type == b->type && a->unit == b->unit &&
                a->shadow == b->shadow && a->per_replica == b->per_replica &&
                a->completion == b->completion && a->exact == b->exact && a->window == b->window &&
                a->scope == b->scope && a->signal == b->signal &&
                a->max_partitions == b->max_partitions && a->part_count == b->part_count &&
                a->override_count == b->override_count && model_match_equal(&a->match, &b->match) &&
                numbers_equal(&a->numbers, &b->numbers);
    for (int i = 0; same && i < a->part_count; i++)
        same = a->parts[i] == b->parts[i];
    for (int i = 0; same && i < a->override_count; i++)
        same = a->overrides[i].off == b->overrides[i].off &&
               model_match_equal(&a->overrides[i].when, &b->overrides[i].when) &&
               numbers_equal(&a->overrides[i].numbers, &b->overrides[i].numbers);
    return same;
}

bool model_policy_equal(const struct model_policy *a, const struct model_policy *b)
{
    bool same = a->version == b->version && a->unmatched_allow == b->unmatched_allow &&
                a->skew_ns == b->skew_ns && a->skew_given == b->skew_given &&
                a->shard == b->shard && a->rule_count == b->rule_count;
    for (int i = 0; same && i < a->rule_count; i++)
        same = rules_equal(&a->rules[i], &b->rules[i]);
    return same;
}

/* ---- whose numbers ---- */

struct model_numbers model_overlay(const struct model_numbers *base,
                                   const struct model_numbers *given)
{
    struct model_numbers n = *base;
    n.given |= given->given;
    if (given->given & MODEL_GIVEN_CAPACITY)
        n.capacity = given->capacity;
    if (given->given & MODEL_GIVEN_REFILL)
        n.refill = given->refill;
    if (given->given & MODEL_GIVEN_PER)
        n.per_ns = given->per_ns;
    if (given->given & MODEL_GIVEN_LIMIT)
        n.limit = given->limit;
    if (given->given & MODEL_GIVEN_TTL)
        n.ttl_ns = given->ttl_ns;
    if (given->given & MODEL_GIVEN_FRACTION)
        n.fraction_e18 = given->fraction_e18;
    if (given->given & MODEL_GIVEN_AGE)
        n.age_ns = given->age_ns;
    if (given->given & MODEL_GIVEN_THRESHOLD) {
        n.comparison = given->comparison;
        n.threshold_whole = given->threshold_whole;
        n.threshold_e18 = given->threshold_e18;
    }
    return n;
}

const struct model_table *model_table_of(const struct model *model, int rule)
{
    for (int i = 0; i < model->table_count; i++)
        if (model->tables[i].rule == rule)
            return &model->tables[i];
    return NULL;
}

const struct model_table_entry *model_entry_of(const struct model_table *table, int value)
{
    for (int i = 0; table != NULL && i < table->count; i++)
        if (table->entries[i].value == value)
            return &table->entries[i];
    return NULL;
}

/* A limit table's entry goes before overrides; the first override that matches before the rule's
 * own numbers. */
bool model_pick(const struct model *model, const struct model_rule *rule,
                const struct model_request *request, struct model_numbers *out,
                struct model_origin *out_origin)
{
    const struct model_table *table = model_table_of(model, rule->id);
    const struct model_table_entry *entry = NULL;
    if (table != NULL && model_value(request, table->by) != 0)
        entry = model_entry_of(table, model_value(request, table->by));
    const struct model_override *override = NULL;
    for (int i = 0; override == NULL && i < rule->override_count; i++)
        if (model_holds(&rule->overrides[i].when, request))
            override = &rule->overrides[i];
    if (planted(model, PLANT_TABLE_AFTER_OVERRIDE) && override != NULL)
        entry = NULL;
    if (entry != NULL) {
        *out = entry->off ? rule->numbers : model_overlay(&rule->numbers, &entry->numbers);
        *out_origin = (struct model_origin){ 2, entry->value, NULL };
        return !entry->off;
    }
    if (override != NULL) {
        *out = override->off ? rule->numbers : model_overlay(&rule->numbers, &override->numbers);
        *out_origin = (struct model_origin){ 1, 0, &override->when };
        return !override->off;
    }
    *out = rule->numbers;
    *out_origin = (struct model_origin){ 0, 0, NULL };
    return true;
}
