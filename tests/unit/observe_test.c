/* SPDX-License-Identifier: Apache-2.0 */
/* lib/observe: counting, by many threads, within bounds, with and without memory. */
#include "observe/observe.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>

#include "counting_allocator.h"
#include "exposition.h"
#include "observe/counters.h"

#define NONE UINT64_MAX

static struct counting_allocator counting;
static struct adm_allocator allocator;
static struct admi_observe *observe;

static void set_up(void)
{
    memset(&counting, 0, sizeof counting);
    allocator = counting_allocator_of(&counting);
    observe = NULL;
    ck_assert_int_eq(admi_observe_new(&allocator, &observe), ADM_OK);
}

static void tear_down(void)
{
    atomic_store(&counting.fail_from, 0);
    admi_observe_free(observe);
    ck_assert_int_eq(atomic_load(&counting.bytes), 0);
    ck_assert_uint_eq(atomic_load(&counting.wrong_size), 0);
}

/* Rules "<prefix>0" … with the same unit. Slots to be freed. */
static uint32_t *add_rules(const char *prefix, uint32_t count, const char *unit)
{
    char(*texts)[32] = calloc(count, sizeof *texts);
    struct adm_bytes *ids = calloc(count, sizeof *ids);
    struct adm_bytes *units = calloc(count, sizeof *units);
    uint32_t *slots = calloc(count, sizeof *slots);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%u", prefix, i);
        ids[i] = adm_str(texts[i]);
        units[i] = adm_str(unit);
    }
    ck_assert_int_eq(admi_observe_rules(observe, ids, units, count, slots), ADM_OK);
    free(texts);
    free(ids);
    free(units);
    return slots;
}

static uint32_t add_labels(uint32_t count, const char *const *names)
{
    struct adm_bytes bytes[ADMI_MAX_LABELS];
    uint32_t id = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = adm_str(names[i]);
    ck_assert_int_eq(admi_observe_labels(observe, bytes, count, &id), ADM_OK);
    return id;
}

/* One decision, allowed, of cost 1, with these label values. */
static void decide(uint32_t labels_id, uint32_t count, const char *const *values)
{
    struct adm_bytes bytes[ADMI_MAX_LABELS];
    struct admi_counters *counters = admi_observe_local(observe);
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = adm_str(values[i]);
    admi_count_decision(counters, admi_observe_series(observe, counters, labels_id, bytes),
                        ADM_REASON_ALLOWED, 1);
}

#define LABELS(...)                                                                                \
    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), (const char *const[])           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ALLOWED "admit_decisions_total{verdict=\"allow\",reason=\"allowed\""

/* ---- rules ---- */

START_TEST(slot_of_a_rule_never_changes)
{
    uint32_t *first = add_rules("r", 100, "cost");
    struct admi_counters *counters = admi_observe_local(observe);
    admi_count_rule(counters, first[42], ADMI_RULE_DENIED, 5);
    free(add_rules("s", 70, "cost")); /* a policy without the rules of the first */
    uint32_t *again = add_rules("r", 100, "cost");
    for (uint32_t i = 0; i < 100; i++) {
        ck_assert_uint_eq(first[i], again[i]);
        if (i > 0)
            ck_assert_uint_gt(first[i], first[i - 1]);
    }
    admi_count_rule(counters, again[42], ADMI_RULE_DENIED, 6);
    ck_assert_uint_eq(value_of(observe, "admit_rule_requests_total{rule=\"r42\",verdict=\"deny\"}"),
                      11);
    free(first);
    free(again);
}
END_TEST

START_TEST(same_id_twice_in_one_call_is_one_slot)
{
    const struct adm_bytes ids[3] = { adm_str("a"), adm_str("b"), adm_str("a") };
    const struct adm_bytes units[3] = { adm_str("cost"), adm_str("cost"), adm_str("cost") };
    uint32_t slots[3];
    ck_assert_int_eq(admi_observe_rules(observe, ids, units, 3, slots), ADM_OK);
    ck_assert_uint_eq(slots[0], slots[2]);
    ck_assert_uint_ne(slots[0], slots[1]);
    ck_assert_int_eq(admi_observe_rules(observe, NULL, NULL, 0, NULL), ADM_OK);
}
END_TEST

START_TEST(amounts_of_two_units_are_never_added_up)
{
    uint32_t *cost = add_rules("r", 1, "cost");
    uint32_t *tokens = add_rules("r", 1, "tokens");
    struct admi_counters *counters = admi_observe_local(observe);
    ck_assert_uint_ne(cost[0], tokens[0]);
    admi_count_rule(counters, cost[0], ADMI_RULE_ADMITTED, 1);
    admi_count_rule(counters, cost[0], ADMI_RULE_ADMITTED_UNITS, 7);
    admi_count_rule(counters, tokens[0], ADMI_RULE_ADMITTED, 2);
    admi_count_rule(counters, tokens[0], ADMI_RULE_ADMITTED_UNITS, 1000);
    admi_count_rule(counters, tokens[0], ADMI_RULE_SHADOW_DENIED, 3);
    ck_assert_uint_eq(value_of(observe, "admit_rule_requests_total{rule=\"r0\",verdict=\"allow\"}"),
                      3);
    ck_assert_uint_eq(
        value_of(observe, "admit_rule_units_total{rule=\"r0\",unit=\"cost\",verdict=\"allow\"}"),
        7);
    ck_assert_uint_eq(
        value_of(observe, "admit_rule_units_total{rule=\"r0\",unit=\"tokens\",verdict=\"allow\"}"),
        1000);
    ck_assert_uint_eq(
        value_of(observe, "admit_rule_shadow_total{rule=\"r0\",verdict=\"would_deny\"}"), 3);
    free(cost);
    free(tokens);
}
END_TEST

static void *count_as_much_again(void *argument)
{
    const uint32_t *slots = argument;
    struct admi_counters *counters = admi_observe_local(observe);
    admi_count_rule(counters, slots[0], ADMI_RULE_DENIED_UNITS, UINT64_MAX - 5);
    return NULL;
}

START_TEST(units_saturate)
{
    uint32_t *slots = add_rules("r", 1, "cost");
    struct admi_counters *counters = admi_observe_local(observe);
    for (int i = 0; i < 3; i++) {
        admi_count_rule(counters, slots[0], ADMI_RULE_ADMITTED_UNITS, UINT64_MAX - 5);
        admi_count_decision(counters, ADMI_NO_SERIES, ADM_REASON_PRESSURE, UINT64_MAX / 2 + 1);
        admi_count(counters, ADMI_SIGNALS, UINT64_MAX - 1);
        admi_count_histogram(counters, ADMI_ADMIT_NS, UINT64_MAX);
    }
    pthread_t thread;
    count_as_much_again(slots); /* and in the sum over threads */
    ck_assert_int_eq(pthread_create(&thread, NULL, count_as_much_again, slots), 0);
    pthread_join(thread, NULL);
    char *text = expose(observe);
    ck_assert_ptr_nonnull(strstr(text, "unit=\"cost\",verdict=\"allow\"} 18446744073709551615\n"));
    ck_assert_ptr_nonnull(strstr(text, "unit=\"cost\",verdict=\"deny\"} 18446744073709551615\n"));
    ck_assert_ptr_nonnull(strstr(
        text,
        "admit_decision_cost_total{verdict=\"deny\",reason=\"pressure\"} 18446744073709551615\n"));
    ck_assert_ptr_nonnull(strstr(text, "admit_signals_total 18446744073709551615\n"));
    ck_assert_ptr_nonnull(strstr(text, "admit_admission_seconds_sum 18446744073.709551615\n"));
    ck_assert_uint_eq(value_in(text, "admit_admission_seconds_count"), 3);
    free(text);
    free(slots);
}
END_TEST

START_TEST(ten_thousand_rules)
{
    uint32_t *slots = add_rules("rule-", 10000, "cost");
    struct admi_counters *counters = admi_observe_local(observe);
    for (uint32_t i = 0; i < 10000; i++)
        admi_count_rule(counters, slots[i], ADMI_RULE_ADMITTED, i + 1);
    char *text = expose(observe);
    uint32_t found = 0; /* in order of the slots */
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        char expected[96];
        snprintf(expected, sizeof expected,
                 "\nadmit_rule_requests_total{rule=\"rule-%u\",verdict=\"allow\"} %u\n", found,
                 found + 1);
        found += strncmp(line, expected, strlen(expected)) == 0;
        line += *line == '\n';
    }
    ck_assert_uint_eq(found, 10000);
    free(text);
    free(slots);
}
END_TEST

START_TEST(rules_beyond_the_bound_are_not_metered_but_told)
{
    uint32_t *slots = add_rules("r", ADMI_RULES_MAX, "cost");
    ck_assert_uint_eq(slots[ADMI_RULES_MAX - 1], ADMI_RULES_MAX - 1);
    uint32_t *more = add_rules("s", 3, "cost");
    struct admi_counters *counters = admi_observe_local(observe);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(more[i], UINT32_MAX);
        admi_count_rule(counters, more[i], ADMI_RULE_DENIED, 1);
    }
    ck_assert_uint_eq(value_of(observe, "admit_rules_unmetered"), 3);
    uint32_t *known = add_rules("r", 5, "cost");
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_uint_eq(known[i], slots[i]);
    ck_assert_uint_eq(value_of(observe, "admit_rules_unmetered"), 0);
    free(known);
    free(more);
    free(slots);
}
END_TEST

/* ---- label values ---- */

START_TEST(series_by_label_values)
{
    uint32_t id = add_labels(LABELS("service", "model"));
    for (int i = 0; i < 3; i++)
        decide(id, LABELS("chat", "m1"));
    decide(id, LABELS("chat", "m2"));
    decide(id, LABELS("chat", "")); /* absent */
    decide(id, LABELS("", ""));
    decide(0, LABELS("ignored", "ignored"));
    decide(99, LABELS("ignored", "ignored"));
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m1\",service=\"chat\"}"), 3);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m2\",service=\"chat\"}"), 1);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",service=\"chat\"}"), 1);
    ck_assert_uint_eq(value_of(observe, ALLOWED "}"), 3);
}
END_TEST

START_TEST(equal_labels_of_two_policies_are_one_series)
{
    uint32_t one = add_labels(LABELS("service", "model"));
    uint32_t other_order = add_labels(LABELS("model", "service"));
    uint32_t fewer = add_labels(LABELS("service"));
    ck_assert_uint_ne(one, other_order);
    ck_assert_uint_eq(add_labels(LABELS("service", "model")), one);
    decide(one, LABELS("chat", "m1"));
    decide(other_order, LABELS("m1", "chat"));
    decide(fewer, LABELS("chat"));
    decide(one, LABELS("chat", ""));
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m1\",service=\"chat\"}"), 2);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",service=\"chat\"}"), 2);
}
END_TEST

START_TEST(values_beyond_64_are_other)
{
    uint32_t id = add_labels(LABELS("model"));
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            char value[16];
            snprintf(value, sizeof value, "m%u", i);
            decide(id, LABELS(value));
        }
    }
    decide(
        id,
        LABELS(
            "other")); /* a value of that very name comes too late as well, and is the same series */
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m0\"}"), 2);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m63\"}"), 2);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m64\"}"), NONE);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"other\"}"), 2 * 36 + 1);
}
END_TEST

START_TEST(combinations_beyond_1024_are_all_other)
{
    uint32_t id = add_labels(LABELS("a", "b"));
    for (uint32_t i = 0; i < 33 * 33; i++) { /* 1089 */
        char a[16], b[16];
        snprintf(a, sizeof a, "a%u", i / 33);
        snprintf(b, sizeof b, "b%u", i % 33);
        decide(id, LABELS(a, b));
    }
    ck_assert_uint_eq(value_of(observe, ALLOWED ",a=\"a0\",b=\"b0\"}"), 1);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",a=\"a31\",b=\"b0\"}"), 1);    /* 1024th */
    ck_assert_uint_eq(value_of(observe, ALLOWED ",a=\"a31\",b=\"b1\"}"), NONE); /* 1025th */
    ck_assert_uint_eq(value_of(observe, ALLOWED ",a=\"other\",b=\"other\"}"), 33 * 33 - 1024);
    decide(id, LABELS("a0", "b0"));
    ck_assert_uint_eq(value_of(observe, ALLOWED ",a=\"a0\",b=\"b0\"}"), 2);
}
END_TEST

START_TEST(value_too_long_is_other)
{
    char value[ADM_MAX_VALUE_BYTES + 2];
    memset(value, 'x', sizeof value);
    value[ADM_MAX_VALUE_BYTES + 1] = 0;
    uint32_t id = add_labels(LABELS("model"));
    decide(id, LABELS(value));
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"other\"}"), 1);
    value[ADM_MAX_VALUE_BYTES] = 0;
    decide(id, LABELS(value));
    char sample[ADM_MAX_VALUE_BYTES + 128];
    snprintf(sample, sizeof sample, "%s,model=\"%s\"}", ALLOWED, value);
    ck_assert_uint_eq(value_of(observe, sample), 1);
}
END_TEST

START_TEST(label_names_are_made_legal_and_different)
{
    static const struct {
        const char *keys[4];
        const char *labels;
    } rows[] = {
        { { "reason", "verdict", "a", "b" },
          ",a=\"3\",b=\"4\",label_reason=\"1\",label_verdict=\"2\"}" },
        { { "a-b", "a.b", "a_b", "a b" }, ",a_b=\"1\",a_b_2=\"2\",a_b_3=\"3\",a_b_4=\"4\"}" },
        { { "9lives", "__name__", "\xFF", "_x" },
          ",_=\"3\",_x=\"4\",label_9lives=\"1\",label___name__=\"2\"}" },
        { { "a", "a_2", "a\"", "a\n" }, ",a=\"1\",a_=\"3\",a_2=\"2\",a__2=\"4\"}" },
        { { "Z", "z", "ZZ", "le" }, ",Z=\"1\",ZZ=\"3\",le=\"4\",z=\"2\"}" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sample[256];
        uint32_t id = add_labels(4, rows[i].keys);
        decide(id, LABELS("1", "2", "3", "4"));
        snprintf(sample, sizeof sample, "%s%s", ALLOWED, rows[i].labels);
        ck_assert_msg(value_of(observe, sample) == 1, "%s", sample);
    }
}
END_TEST

START_TEST(longest_label_names_and_worst_values_fit)
{
    char keys[4][ADM_MAX_KEY_BYTES + 1], value[ADM_MAX_VALUE_BYTES + 1];
    const char *names[4], *values[4];
    memset(value, 0xFE, sizeof value); /* never in UTF-8: three bytes for one */
    value[ADM_MAX_VALUE_BYTES] = 0;
    for (uint32_t i = 0; i < 4; i++) {
        memset(keys[i], '_', sizeof keys[i]); /* prefixed, and made different */
        keys[i][ADM_MAX_KEY_BYTES - 1] = (char)('-' + i % 2);
        keys[i][ADM_MAX_KEY_BYTES] = 0;
        names[i] = keys[i];
        values[i] = value;
    }
    decide(add_labels(4, names), 4, values);
    char *text = expose(observe);
    uint32_t replaced = 0;
    for (const char *at = text; (at = strstr(at, "\xEF\xBF\xBD")) != NULL; at += 3)
        replaced++;
    ck_assert_uint_eq(replaced, 2 * 4 * ADM_MAX_VALUE_BYTES); /* in two families */
    free(text);
}
END_TEST

START_TEST(bad_label_lists_are_refused)
{
    char key[ADM_MAX_KEY_BYTES + 2];
    memset(key, 'k', sizeof key);
    key[sizeof key - 1] = 0;
    const struct adm_bytes five[5] = { adm_str("a"), adm_str("b"), adm_str("c"), adm_str("d"),
                                       adm_str("e") };
    const struct adm_bytes bad[2] = { adm_str("a"), adm_str(key) };
    const struct adm_bytes empty[1] = { adm_str("") };
    uint32_t id = 77;
    ck_assert_int_eq(admi_observe_labels(observe, five, 5, &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(admi_observe_labels(observe, bad, 2, &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(admi_observe_labels(observe, empty, 1, &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(id, 77);
    ck_assert_int_eq(admi_observe_labels(observe, five, 0, &id), ADM_OK);
    ck_assert_uint_eq(id, 0);
}
END_TEST

START_TEST(label_lists_beyond_16_count_unlabelled)
{
    for (uint32_t i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "label%u", i);
        uint32_t id = add_labels(LABELS(name));
        ck_assert_uint_eq(id, i < ADMI_LABEL_SETS_MAX ? i + 1 : 0);
        decide(id, LABELS("v"));
    }
    ck_assert_uint_eq(value_of(observe, ALLOWED "}"), 4);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",label15=\"v\"}"), 1);
}
END_TEST

/* ---- what is not there, and what is out of range ---- */

START_TEST(no_counters_count_nothing)
{
    admi_count(NULL, ADMI_SIGNALS, 1);
    admi_count_rule(NULL, 0, ADMI_RULE_DENIED, 1);
    admi_count_decision(NULL, 0, 0, 1);
    admi_count_outcome(NULL, ADM_OP_GIVE, ADM_OUTCOME_RELEASED);
    admi_count_result(NULL, ADM_RESULT_OK);
    admi_count_histogram(NULL, ADMI_ADMIT_NS, 1);
    ck_assert_int_eq(admi_sample(NULL), 0);
    uint32_t id = add_labels(LABELS("model"));
    const struct adm_bytes value = adm_str("m");
    uint32_t series = admi_observe_series(observe, NULL, id, &value);
    ck_assert_uint_ne(series, ADMI_NO_SERIES);
    ck_assert_uint_eq(admi_observe_series(observe, admi_observe_local(observe), id, &value),
                      series);
    admi_observe_free(NULL);
}
END_TEST

START_TEST(numbers_out_of_range_change_nothing)
{
    struct admi_counters *counters = admi_observe_local(observe);
    char *before = expose(observe);
    admi_count(counters, ADMI_COUNTER_COUNT, 1);
    admi_count_rule(counters, 0, ADMI_RULE_COUNTER_COUNT, 1);
    admi_count_rule(counters, ADMI_RULES_MAX, ADMI_RULE_DENIED, 1);
    admi_count_rule(counters, UINT32_MAX, ADMI_RULE_DENIED, 1);
    admi_count_decision(counters, ADMI_NO_SERIES, ADM_REASON_COUNT, 1);
    admi_count_decision(counters, ADMI_SERIES_MAX, ADM_REASON_ALLOWED, 1);
    admi_count_decision(counters, UINT32_MAX, ADM_REASON_ALLOWED, 1);
    admi_count_outcome(counters, ADM_OP_GIVE, ADM_OUTCOME_COUNT);
    admi_count_outcome(counters, ADM_OP_SWEEP + 1, 0);
    admi_count_outcome(counters, UINT32_MAX, 0);
    admi_count_result(counters, ADM_RESULT_COUNT);
    admi_count_histogram(counters, ADMI_HISTOGRAM_COUNT, 1);
    char *after = expose(observe);
    ck_assert_str_eq(before, after);
    free(before);
    free(after);
}
END_TEST

START_TEST(one_in_64_is_sampled)
{
    struct admi_counters *counters = admi_observe_local(observe);
    int sampled = 0;
    for (int i = 0; i < 640; i++)
        sampled += admi_sample(counters);
    ck_assert_int_eq(sampled, 10);
}
END_TEST

/* ---- memory ---- */

START_TEST(new_without_memory_leaves_nothing_behind)
{
    int failures = 0;
    for (uint64_t nth = 1;; nth++) {
        struct admi_observe *fresh = observe;
        atomic_store(&counting.fail_from, atomic_load(&counting.calls) + nth);
        int64_t bytes = atomic_load(&counting.bytes);
        adm_status status = admi_observe_new(&allocator, &fresh);
        if (status == ADM_OK) {
            admi_observe_free(fresh);
            break;
        }
        failures++;
        ck_assert_int_eq(status, ADM_E_NOMEM);
        ck_assert_ptr_eq(fresh, observe);
        ck_assert_int_eq(atomic_load(&counting.bytes), bytes);
    }
    ck_assert_int_ge(failures, 5);
}
END_TEST

START_TEST(publish_without_memory_changes_nothing)
{
    enum { RULES = 200 };
    char texts[RULES][16];
    struct adm_bytes ids[RULES], units[RULES];
    uint32_t slots[RULES];
    free(add_rules("old", 3, "cost"));
    (void)admi_observe_local(observe);
    for (uint32_t i = 0; i < RULES; i++) {
        snprintf(texts[i], sizeof texts[i], "new%u", i);
        ids[i] = adm_str(texts[i]);
        units[i] = adm_str("cost");
        slots[i] = 4711;
    }
    char *before = expose(observe);
    int failures = 0;
    for (uint64_t nth = 1;; nth++) {
        atomic_store(&counting.fail_from, atomic_load(&counting.calls) + nth);
        adm_status status = admi_observe_rules(observe, ids, units, RULES, slots);
        atomic_store(&counting.fail_from, 0);
        if (status == ADM_OK)
            break;
        failures++;
        ck_assert_int_eq(status, ADM_E_NOMEM);
        uint32_t changed = 0;
        for (uint32_t i = 0; i < RULES; i++)
            changed += slots[i] != 4711;
        ck_assert_uint_eq(changed, 0);
        char *after = expose(observe);
        ck_assert_str_eq(before, after);
        free(after);
    }
    ck_assert_int_gt(failures, RULES);
    ck_assert_uint_eq(slots[0], 3);
    free(before);
}
END_TEST

START_TEST(labels_without_memory_change_nothing)
{
    const struct adm_bytes names[2] = { adm_str("service"), adm_str("model") };
    char *before = expose(observe);
    int failures = 0;
    uint32_t id = 77;
    for (uint64_t nth = 1;; nth++) {
        atomic_store(&counting.fail_from, atomic_load(&counting.calls) + nth);
        adm_status status = admi_observe_labels(observe, names, 2, &id);
        atomic_store(&counting.fail_from, 0);
        if (status == ADM_OK)
            break;
        failures++;
        ck_assert_int_eq(status, ADM_E_NOMEM);
        ck_assert_uint_eq(id, 77);
        char *after = expose(observe);
        ck_assert_str_eq(before, after);
        free(after);
    }
    ck_assert_int_ge(failures, 3);
    ck_assert_uint_eq(id, 1);
    free(before);
}
END_TEST

START_TEST(series_without_memory_are_all_other_for_the_time_being)
{
    uint32_t id = add_labels(LABELS("model"));
    (void)admi_observe_local(observe); /* has the chunk of the series that exist */
    atomic_store(&counting.fail_from, 1);
    decide(id, LABELS("m1"));
    atomic_store(&counting.fail_from, 0);
    decide(id, LABELS("m1"));
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"other\"}"), 1);
    ck_assert_uint_eq(value_of(observe, ALLOWED ",model=\"m1\"}"), 1);
}
END_TEST

START_TEST(counts_without_memory_are_dropped)
{
    uint32_t *slots = add_rules("r", 130, "cost");
    atomic_store(&counting.fail_from, 1);
    ck_assert_ptr_null(admi_observe_local(observe));
    atomic_store(&counting.fail_from,
                 atomic_load(&counting.calls) + 3); /* the block, one chunk, no more */
    struct admi_counters *counters = admi_observe_local(observe);
    ck_assert_ptr_nonnull(counters);
    for (uint32_t i = 0; i < 130; i++)
        admi_count_rule(counters, slots[i], ADMI_RULE_ADMITTED, 1);
    admi_count_decision(counters, ADMI_NO_SERIES, ADM_REASON_ALLOWED, 1);
    uint64_t length = 0;
    ck_assert_int_eq(admi_observe_expose(observe, &no_gauges, NULL, 0, &length), ADM_E_NOMEM);
    atomic_store(&counting.fail_from, 0);
    admi_count_rule(counters, slots[129], ADMI_RULE_ADMITTED,
                    5); /* and go on when there is memory again */
    ck_assert_uint_eq(value_of(observe, "admit_rule_requests_total{rule=\"r0\",verdict=\"allow\"}"),
                      1);
    ck_assert_uint_eq(
        value_of(observe, "admit_rule_requests_total{rule=\"r129\",verdict=\"allow\"}"), 5);
    ck_assert_uint_eq(value_of(observe, ALLOWED "}"), 0);
    free(slots);
}
END_TEST

START_TEST(after_the_first_call_nothing_allocates)
{
    uint32_t *before = add_rules("before", 500, "cost");
    uint32_t id = add_labels(LABELS("model"));
    decide(id, LABELS("m1"));
    struct admi_counters *counters = admi_observe_local(observe);
    uint32_t *after = add_rules(
        "after", 500, "cost"); /* this thread is known, so its chunks come with the publish */
    uint64_t calls = atomic_load(&counting.calls);
    for (uint32_t i = 0; i < 500; i++) {
        admi_count_rule(counters, before[i], ADMI_RULE_ADMITTED, 1);
        admi_count_rule(counters, after[i], ADMI_RULE_DENIED, 1);
        decide(id, LABELS("m1"));
        admi_count_histogram(counters, ADMI_BACKEND_NS, i);
    }
    ck_assert_uint_eq(atomic_load(&counting.calls), calls);
    ck_assert_uint_eq(
        value_of(observe, "admit_rule_requests_total{rule=\"after499\",verdict=\"deny\"}"), 1);
    free(before);
    free(after);
}
END_TEST

/* ---- histograms ---- */

START_TEST(bucket_holds_values_up_to_its_bound)
{
    for (uint32_t b = 0; b < ADMI_HISTOGRAM_BUCKETS - 1; b++) {
        uint64_t bound = admi_histogram_bound(b);
        ck_assert_uint_eq(admi_histogram_bucket(bound), b);
        ck_assert_uint_eq(admi_histogram_bucket(bound + 1), b + 1);
        if (b > 0)
            ck_assert_uint_gt(bound, admi_histogram_bound(b - 1));
        if (b > 4) /* a bucket is at most a quarter of its lower bound wide */
            ck_assert_uint_le(4 * (bound - admi_histogram_bound(b - 1)),
                              admi_histogram_bound(b - 1));
    }
    ck_assert_uint_eq(admi_histogram_bucket(0), 0);
    ck_assert_uint_eq(admi_histogram_bucket(UINT64_MAX), ADMI_HISTOGRAM_BUCKETS - 1);
}
END_TEST

START_TEST(histogram_counts_each_value_once)
{
    struct admi_counters *counters = admi_observe_local(observe);
    static const uint64_t delays[] = {
        0, 1, 2, 3, 4, 5, 1000, 1024, 1025, UINT64_C(1) << 32, (UINT64_C(1) << 32) + 1
    };
    for (size_t i = 0; i < sizeof delays / sizeof delays[0]; i++)
        admi_count_histogram(counters, ADMI_RETRY_DELAY_MS, delays[i]);
    char *text = expose(observe);
    static const struct {
        const char *le;
        uint64_t count;
    } rows[] = { { "0.001", 2 }, { "0.002", 3 },   { "0.004", 5 }, { "0.008", 6 },
                 { "0.512", 6 }, { "1.024", 8 },   { "2.048", 9 }, { "4294967.296", 10 },
                 { "+Inf", 11 }, { "0.003", NONE } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char sample[96];
        snprintf(sample, sizeof sample, "admit_retry_delay_seconds_bucket{le=\"%s\"}", rows[i].le);
        ck_assert_msg(value_in(text, sample) == rows[i].count, "%s", sample);
    }
    ck_assert_uint_eq(value_in(text, "admit_retry_delay_seconds_count"), 11);
    ck_assert_ptr_nonnull(strstr(text, "admit_retry_delay_seconds_sum 8589937.657\n"));
    free(text);
}
END_TEST

/* ---- threads ---- */

#define THREADS 12u
#define ROUNDS  3000u

struct crowd {
    uint32_t *slots;
    uint32_t slot_count;
    uint32_t labels_id;
    _Atomic uint32_t running;
};

static void *count_everything(void *argument)
{
    struct crowd *crowd = argument;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        char value[16];
        struct admi_counters *counters = admi_observe_local(observe);
        snprintf(value, sizeof value, "m%u", i % 70);
        const struct adm_bytes bytes = adm_str(value);
        admi_count_rule(counters, crowd->slots[i % crowd->slot_count], ADMI_RULE_ADMITTED, 1);
        admi_count_rule(counters, crowd->slots[i % crowd->slot_count], ADMI_RULE_ADMITTED_UNITS, i);
        admi_count_decision(counters,
                            admi_observe_series(observe, counters, crowd->labels_id, &bytes),
                            ADM_REASON_RATE_EXCEEDED, 3);
        admi_count_outcome(counters, ADM_OP_GIVE, ADM_OUTCOME_LATE);
        admi_count_result(counters, i % ADM_RESULT_COUNT);
        admi_count_histogram(counters, ADMI_ADMIT_NS, i);
        admi_count(counters, ADMI_REPEATED, 2);
    }
    atomic_fetch_sub(&crowd->running, 1);
    return NULL;
}

/* The sum of all samples whose line starts like this. */
static uint64_t sum_of(const char *text, const char *start)
{
    uint64_t sum = 0;
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, start, strlen(start)) == 0)
            sum += strtoull(strstr(line, "} ") + 2, NULL, 10);
    }
    return sum;
}

#define WATCHED 5

static void read_sums(uint64_t sums[WATCHED])
{
    char *text = expose(observe);
    sums[0] = sum_of(text, "admit_rule_requests_total{");
    sums[1] = sum_of(text, "admit_rule_units_total{");
    sums[2] = sum_of(text, "admit_decisions_total{");
    sums[3] = value_in(text, "admit_admission_seconds_count");
    sums[4] = value_in(text, "admit_repeated_attempts_total");
    free(text);
}

static void start_crowd(struct crowd *crowd, pthread_t threads[THREADS])
{
    atomic_store(&crowd->running, THREADS);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_everything, crowd), 0);
}

START_TEST(sums_are_exact_after_the_threads_end)
{
    struct crowd crowd = { add_rules("r", 300, "cost"), 300, add_labels(LABELS("model")), 0 };
    pthread_t threads[THREADS];
    for (uint64_t generation = 1; generation <= 2; generation++) {
        start_crowd(&crowd, threads);
        for (uint32_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        const uint64_t calls = generation * THREADS * ROUNDS;
        char *text = expose(observe);
        ck_assert_uint_eq(sum_of(text, "admit_rule_requests_total{"), calls);
        ck_assert_uint_eq(sum_of(text, "admit_rule_units_total{"), calls * (ROUNDS - 1) / 2);
        ck_assert_uint_eq(
            value_in(text, "admit_rule_requests_total{rule=\"r7\",verdict=\"allow\"}"),
            calls / 300);
        ck_assert_uint_eq(
            sum_of(text, "admit_decisions_total{verdict=\"deny\",reason=\"rate_exceeded\",model="),
            calls);
        ck_assert_uint_eq(sum_of(text, "admit_decision_cost_total{"), 3 * calls);
        ck_assert_uint_eq(
            value_in(text, "admit_lease_operations_total{operation=\"release\",outcome=\"late\"}"),
            calls);
        ck_assert_uint_eq(value_in(text, "admit_results_total{result=\"timeout\"}"),
                          calls / ADM_RESULT_COUNT);
        ck_assert_uint_eq(value_in(text, "admit_admission_seconds_count"), calls);
        ck_assert_uint_eq(value_in(text, "admit_repeated_attempts_total"), 2 * calls);
        free(text);
    }
    free(crowd.slots);
}
END_TEST

START_TEST(reading_while_counting_never_goes_back)
{
    struct crowd crowd = { add_rules("r", 100, "cost"), 100, add_labels(LABELS("model")), 0 };
    pthread_t threads[THREADS];
    uint64_t last[WATCHED] = { 0 };
    uint32_t published = 0;
    start_crowd(&crowd, threads);
    while (atomic_load(&crowd.running) > 0) {
        uint64_t now[WATCHED];
        read_sums(now);
        for (uint32_t i = 0; i < WATCHED; i++) {
            ck_assert_uint_ge(now[i], last[i]);
            last[i] = now[i];
        }
        char prefix[16]; /* a publish meanwhile, with slots and chunks of its own */
        snprintf(prefix, sizeof prefix, "p%u-", published++ % 20);
        free(add_rules(prefix, 70, "cost"));
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    read_sums(last);
    ck_assert_uint_eq(last[0], THREADS * ROUNDS);
    ck_assert_uint_eq(last[2], THREADS * ROUNDS);
    ck_assert_uint_eq(last[3], THREADS * ROUNDS);
    free(crowd.slots);
}
END_TEST

static void *meter_new_rules(void *argument)
{
    (void)argument;
    for (uint32_t i = 0; i < 100; i++) {
        char id[16];
        uint32_t slot = 0;
        snprintf(id, sizeof id, "r%u", i * 7 % 100);
        const struct adm_bytes ids = adm_str(id), units = adm_str("cost");
        if (admi_observe_rules(observe, &ids, &units, 1, &slot) == ADM_OK)
            admi_count_rule(admi_observe_local(observe), slot, ADMI_RULE_ADMITTED, 1);
    }
    return NULL;
}

START_TEST(publishes_at_the_same_time_agree_on_slots)
{
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, meter_new_rules, NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    char *text = expose(observe);
    for (uint32_t i = 0; i < 100; i++) {
        char sample[96];
        snprintf(sample, sizeof sample, "admit_rule_requests_total{rule=\"r%u\",verdict=\"allow\"}",
                 i);
        ck_assert_uint_eq(value_in(text, sample), THREADS);
    }
    free(text);
}
END_TEST

static void add_rule_tests(TCase *cases)
{
    tcase_add_test(cases, slot_of_a_rule_never_changes);
    tcase_add_test(cases, same_id_twice_in_one_call_is_one_slot);
    tcase_add_test(cases, amounts_of_two_units_are_never_added_up);
    tcase_add_test(cases, units_saturate);
    tcase_add_test(cases, ten_thousand_rules);
    tcase_add_test(cases, rules_beyond_the_bound_are_not_metered_but_told);
}

static void add_label_tests(TCase *cases)
{
    tcase_add_test(cases, series_by_label_values);
    tcase_add_test(cases, equal_labels_of_two_policies_are_one_series);
    tcase_add_test(cases, values_beyond_64_are_other);
    tcase_add_test(cases, combinations_beyond_1024_are_all_other);
    tcase_add_test(cases, value_too_long_is_other);
    tcase_add_test(cases, label_names_are_made_legal_and_different);
    tcase_add_test(cases, longest_label_names_and_worst_values_fit);
    tcase_add_test(cases, bad_label_lists_are_refused);
    tcase_add_test(cases, label_lists_beyond_16_count_unlabelled);
}

static void add_other_tests(TCase *cases)
{
    tcase_add_test(cases, no_counters_count_nothing);
    tcase_add_test(cases, numbers_out_of_range_change_nothing);
    tcase_add_test(cases, one_in_64_is_sampled);
    tcase_add_test(cases, new_without_memory_leaves_nothing_behind);
    tcase_add_test(cases, publish_without_memory_changes_nothing);
    tcase_add_test(cases, labels_without_memory_change_nothing);
    tcase_add_test(cases, series_without_memory_are_all_other_for_the_time_being);
    tcase_add_test(cases, counts_without_memory_are_dropped);
    tcase_add_test(cases, after_the_first_call_nothing_allocates);
    tcase_add_test(cases, bucket_holds_values_up_to_its_bound);
    tcase_add_test(cases, histogram_counts_each_value_once);
    tcase_add_test(cases, sums_are_exact_after_the_threads_end);
    tcase_add_test(cases, reading_while_counting_never_goes_back);
    tcase_add_test(cases, publishes_at_the_same_time_agree_on_slots);
}

int main(void)
{
    Suite *suite = suite_create("observe");
    TCase *cases = tcase_create("observe");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 120);
    add_rule_tests(cases);
    add_label_tests(cases);
    add_other_tests(cases);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
