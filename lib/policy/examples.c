/* SPDX-License-Identifier: Apache-2.0 */
/* Examples and emergency allowances: checked in full, though nothing acts on them yet. */
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "policy/numbers.h"
#include "policy/parts.h"

#define NEAREST_RULES 256u /* of a rule id, the nearest is sought among the first so many */

uint32_t admi_rule_named(const struct admi_document *document, const struct adm_policy *policy,
                         struct admi_node node, struct adm_bytes id)
{
    uint32_t rule = admi_policy_rule(policy, id), errors = 3;
    if (rule != UINT32_MAX)
        return rule;
    struct admi_diag_entry *entry =
        admi_report_value(&document->source, ADMI_DIAG_UNKNOWN_RULE, node.token);
    if (entry == NULL)
        return UINT32_MAX;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected the id of a rule of the policy");
    admi_report_found(&document->source, &words, node.token);
    for (uint32_t i = 0; i < policy->rule_count && i < NEAREST_RULES; i++) {
        struct adm_bytes other = admi_parts_rule_id(policy, i);
        uint32_t distance = admi_words_distance(other, id);
        if (distance < errors && other.length > 0) {
            errors = distance;
            admi_report_nearest(entry, other);
        }
    }
    return UINT32_MAX;
}

/* ---- examples ---- */

static bool is_object(const struct admi_document *document, struct admi_node node, uint64_t most)
{
    if (!admi_node_is(document, node, ADMI_JSON_OBJECT)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token, "an object");
        return false;
    }
    if (admi_node_count(node) <= most)
        return true;
    admi_report_at_most(&document->source, ADMI_DIAG_COUNT, node.token, most, "members");
    return false;
}

static void check_descriptors(const struct admi_document *document, struct admi_node node)
{
    struct admi_node member;
    struct adm_bytes value;
    if (!is_object(document, node, ADM_MAX_DESCRIPTORS))
        return;
    for (bool more = admi_node_first(node, &member); more;
         more = admi_node_next(document, &member)) {
        admi_check_name(document, member, ADM_MAX_KEY_BYTES, ADMI_DIAG_KEY);
        admi_read_value(document, member, &value);
    }
}

static void check_amounts(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_node member;
    uint64_t amount;
    if (!is_object(document, node, ADM_MAX_AMOUNTS))
        return;
    for (bool more = admi_node_first(node, &member); more;
         more = admi_node_next(document, &member)) {
        uint32_t unit = admi_unit_find(&loader->parts->policy, admi_node_name(member));
        if (unit == UINT32_MAX) {
            admi_unit_unknown(loader,
                              admi_report_name(&document->source, ADMI_DIAG_UNIT, member.token),
                              admi_node_name(member));
        } else if (unit == ADM_UNIT_COST || unit == ADM_UNIT_REQUESTS) {
            struct admi_diag_entry *entry =
                admi_report_name(&document->source, ADMI_DIAG_UNIT, member.token);
            if (entry != NULL) {
                struct admi_words words = admi_report_words(entry);
                admi_words_add(&words,
                               "expected a unit that is given beside cost: requests is always 1");
            }
        }
        admi_read_whole(document, member, 0, ADM_MAX_AMOUNT, &amount);
    }
}

static void check_rule_ids(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_node item;
    struct adm_bytes id;
    if (!admi_read_array(document, node, 0, ADMI_MAX_RULES))
        return;
    for (bool more = admi_node_first(node, &item); more && !admi_diags_full(document->source.diags);
         more = admi_node_next(document, &item))
        if (admi_read_id(document, item, &id))
            admi_rule_named(document, &loader->parts->policy, item, id);
}

static void check_expectation(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_found own[ADMI_EXPECT_COUNT];
    uint64_t delay;
    uint32_t word;
    bool allow;
    if (!admi_fields_find(document, node, &admi_expect_object, ADMI_TYPES_ALL, own, NULL))
        return;
    if (own[ADMI_EXPECT_ALLOW].present)
        admi_read_boolean(document, own[ADMI_EXPECT_ALLOW].node, &allow);
    if (own[ADMI_EXPECT_REASON].present)
        admi_read_word(document, own[ADMI_EXPECT_REASON].node,
                       admi_expect_object.fields[ADMI_EXPECT_REASON].words, ADMI_DIAG_WORD, &word);
    if (own[ADMI_EXPECT_RULES].present)
        check_rule_ids(loader, own[ADMI_EXPECT_RULES].node);
    if (own[ADMI_EXPECT_SHADOW].present)
        check_rule_ids(loader, own[ADMI_EXPECT_SHADOW].node);
    const struct admi_found *retry = &own[ADMI_EXPECT_RETRY_AFTER_MS];
    if (retry->present && !admi_node_is(document, retry->node, ADMI_JSON_NULL))
        admi_read_whole(document, retry->node, 0,
                        admi_expect_object.fields[ADMI_EXPECT_RETRY_AFTER_MS].most, &delay);
}

static void check_example(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_found own[ADMI_EXAMPLE_COUNT];
    struct adm_bytes text;
    uint64_t cost;
    if (!admi_fields_find(document, node, &admi_example_object, ADMI_TYPES_ALL, own, NULL))
        return;
    if (own[ADMI_EXAMPLE_DESCRIPTION].present)
        admi_read_text(document, own[ADMI_EXAMPLE_DESCRIPTION].node, &text);
    if (own[ADMI_EXAMPLE_D].present)
        check_descriptors(document, own[ADMI_EXAMPLE_D].node);
    if (own[ADMI_EXAMPLE_COST].present)
        admi_read_whole(document, own[ADMI_EXAMPLE_COST].node, 1, ADM_MAX_AMOUNT, &cost);
    if (own[ADMI_EXAMPLE_AMOUNTS].present)
        check_amounts(loader, own[ADMI_EXAMPLE_AMOUNTS].node);
    if (own[ADMI_EXAMPLE_EXPECT].present)
        check_expectation(loader, own[ADMI_EXAMPLE_EXPECT].node);
}

void admi_examples_read(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_node item;
    if (!admi_read_array(document, node, 0, ADMI_MAX_RULES))
        return;
    for (bool more = admi_node_first(node, &item); more && !admi_diags_full(document->source.diags);
         more = admi_node_next(document, &item))
        check_example(loader, item);
    if (admi_node_count(node) > 0)
        admi_report_message(&document->source, ADMI_DIAG_NOT_IN_FORCE, node.token,
                            "examples are read and checked for their form, but not tried yet");
}

/* ---- emergency allowances ---- */

struct allowance {
    struct adm_bytes id;
    uint32_t token;
};

static int compare(const void *a, const void *b, const void *context)
{
    const struct allowance *one = a, *two = b;
    (void)context;
    if (one->id.length != two->id.length)
        return one->id.length < two->id.length ? -1 : 1;
    int order =
        one->id.length == 0 ? 0 : memcmp(one->id.data, two->id.data, (size_t)one->id.length);
    if (order != 0)
        return order;
    return one->token < two->token ? -1 : one->token > two->token;
}

static void check_allowance(struct admi_loader *loader, struct admi_node node,
                            struct allowance *out)
{
    const struct admi_document *document = &loader->document;
    struct admi_found own[ADMI_ALLOWANCE_COUNT], numbers[ADMI_NUMBER_COUNT];
    struct admi_match match = { .has_not = 0 };
    struct adm_bytes text;
    if (!admi_fields_find(document, node, &admi_allowance_object, ADMI_TYPES_BUCKET, own, numbers))
        return;
    if (own[ADMI_ALLOWANCE_ID].present &&
        admi_read_id(document, own[ADMI_ALLOWANCE_ID].node, &out->id))
        out->token = own[ADMI_ALLOWANCE_ID].node.token;
    if (own[ADMI_ALLOWANCE_DESCRIPTION].present)
        admi_read_text(document, own[ADMI_ALLOWANCE_DESCRIPTION].node, &text);
    if (own[ADMI_ALLOWANCE_MATCH].present)
        admi_match_read(loader, own[ADMI_ALLOWANCE_MATCH].node, &match);
    struct admi_numbers given = admi_numbers_none();
    const uint32_t rate = ADMI_GIVEN_REFILL | ADMI_GIVEN_PER;
    if (admi_numbers_read(document, numbers, &given) && (given.given & rate) == rate &&
        !admi_numbers_rate_ok(&given))
        admi_numbers_report(document, node, numbers, ADMI_FIT_RATE);
}

void admi_allowances_read(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct admi_node item;
    if (!admi_read_array(document, node, 0, ADMI_MAX_RULES))
        return;
    uint32_t count = admi_node_count(node), i = 0;
    struct allowance *allowances = admi_arena_allocate(&loader->scratch, count, sizeof *allowances);
    if (allowances == NULL)
        return;
    for (bool more = admi_node_first(node, &item); more && !admi_diags_full(document->source.diags);
         more = admi_node_next(document, &item))
        check_allowance(loader, item, &allowances[i++]);
    admi_sort(allowances, i, sizeof *allowances, compare, NULL);
    for (uint32_t j = 1, first = 0; j < i; j++) {
        if (!admi_bytes_equal(allowances[first].id, allowances[j].id))
            first = j;
        else if (allowances[j].id.length > 0)
            admi_report_note(&document->source,
                             admi_report_expected(&document->source, ADMI_DIAG_DUPLICATE_RULE_ID,
                                                  allowances[j].token,
                                                  "an id that no allowance before has"),
                             allowances[first].token, false, "it is first here");
    }
    if (count > 0)
        admi_report_message(
            &document->source, ADMI_DIAG_NOT_IN_FORCE, node.token,
            "on_state_failure is read and checked, but no emergency allowance acts yet");
}
