/* SPDX-License-Identifier: Apache-2.0 */
/* The gate refuses what is out of bounds before it touches anything; it takes what is just inside.
 */
#include "gate_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET                                                                                     \
    "[{\"id\":\"b\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],\"capacity\":1000,"         \
    "\"refill\":1,\"per\":\"1h\"}]"
#define WIDE                                                                                       \
    "[{\"id\":\"b\",\"type\":\"token_bucket\",\"capacity\":1000000000000,\"refill\":1,"            \
    "\"per\":\"1h\"}]"
#define INVALID_CALLS "admit_invalid_calls_total"

static struct fixture f;

/* What must not move when a call is refused. */
struct before {
    char *metrics;
    struct adm_time time;
    uint64_t started;
};

static struct before look(void)
{
    struct before before = { metrics_but(&f, INVALID_CALLS), f.clock.time, 0 };

    before.started = atomic_load(&f.relay.started[ADM_OP_TAKE]);
    return before;
}

/* Admit refuses with this status: no clock was read, nothing asked, nothing but `invalid` counted.
 */
static void refused(const struct asked *asked, adm_status expect)
{
    uint64_t invalid = metric(&f, INVALID_CALLS);
    struct before before = look();
    struct adm_decision decision, untouched;
    adm_status status;
    char *after;

    memset(&decision, 0x5a, sizeof decision);
    decision.size = sizeof decision;
    untouched = decision;
    f.clock.tick_ns = 1;
    status = adm_admit(f.gate, &asked->request, &decision);
    f.clock.tick_ns = 0;
    ck_assert_msg(status == expect, "%s, expected %s", adm_status_name(status),
                  adm_status_name(expect));
    ck_assert_mem_eq(&decision, &untouched, sizeof decision);
    ck_assert_uint_eq(f.clock.time.mono_ns, before.time.mono_ns);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_TAKE]), before.started);
    ck_assert_uint_eq(metric(&f, INVALID_CALLS), invalid + 1);
    after = metrics_but(&f, INVALID_CALLS);
    ck_assert(strcmp(after, before.metrics) == 0);
    ck_assert_int_eq(adm_explain(f.gate, &asked->request, NULL, NULL, &decision), expect);
    ck_assert_mem_eq(&decision, &untouched, sizeof decision);
    free(after);
    free(before.metrics);
}

static void passes(const struct asked *asked)
{
    struct adm_decision decision = decide_for(&f, asked);

    ck_assert_msg(decision.verdict == ADM_VERDICT_ALLOW, "%s", adm_reason_name(decision.reason));
}

START_TEST(B006_costs_outside_1_to_10_12_are_refused)
{
    static const uint64_t bad[] = { 0, ADM_MAX_AMOUNT + 1, UINT64_MAX, UINT64_C(1) << 63 };
    struct asked asked;

    fixture_open(&f, WIDE);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask_for(&asked, "k=a", bad[i]);
        refused(&asked, ADM_E_INVALID_COST);
    }
    ck_assert_int_eq(level(&f, "b", ""), (int64_t)ADM_MAX_AMOUNT);
    ask_for(&asked, "k=a", ADM_MAX_AMOUNT);
    passes(&asked);
    ck_assert_int_eq(level(&f, "b", ""), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(B006_amounts_out_of_range_twice_or_of_no_unit_are_refused)
{
    const struct adm_amount bad[] = {
        { ADM_UNIT_INPUT_TOKENS, 0, ADM_MAX_AMOUNT + 1 },
        { ADM_UNIT_INPUT_TOKENS, ADM_AMOUNT_FINAL, 1 },
        { ADM_UNIT_COST, 0, 1 },           /* is the cost */
        { ADM_UNIT_REQUESTS, 0, 1 },       /* always 1, never given */
        { 6, 0, 1 },                       /* between the built-in and the declared ones */
        { 15, 0, 1 },                      /* the last of those */
        { ADM_UNIT_FIRST_DECLARED, 0, 1 }, /* nobody declared one */
        { ADM_UNIT_FIRST_DECLARED + 63, 0, 1 },
        { ADM_UNIT_FIRST_DECLARED + 64, 0, 1 },
        { UINT32_MAX, 0, 1 },
    };
    struct asked asked;

    fixture_open(&f, BUCKET);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask_for(&asked, "k=a", 1);
        asked.amounts[asked.request.amount_count++] = bad[i];
        refused(&asked, ADM_E_INVALID_COST);
    }
    ask_for(&asked, "k=a", 1);
    ask_amount(&asked, ADM_UNIT_IMAGES, 1);
    ask_amount(&asked, ADM_UNIT_TOKENS, 1);
    ask_amount(&asked, ADM_UNIT_IMAGES, 1);
    refused(&asked, ADM_E_INVALID_COST);
    ask_for(&asked, "k=a", 1);
    asked.request.amount_count = 1;
    asked.request.amounts = NULL;
    refused(&asked, ADM_E_INVALID_COST);
    ask_for(&asked, "k=a", 1);
    ask_amount(&asked, ADM_UNIT_IMAGES, 0);
    ask_amount(&asked, ADM_UNIT_INPUT_TOKENS, ADM_MAX_AMOUNT);
    ask_amount(&asked, ADM_UNIT_OUTPUT_TOKENS, ADM_MAX_AMOUNT);
    passes(&asked);
    fixture_close(&f);
}
END_TEST

START_TEST(B006_seventeen_amounts_are_refused_and_sixteen_pass)
{
    struct asked asked;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 1);
    for (uint32_t i = 0; i < ADM_MAX_AMOUNTS + 1; i++) {
        char name[8] = { 'u', (char)('a' + i), '\0' };
        uint32_t unit = 0;

        ck_assert_int_eq(adm_gate_unit(f.gate, adm_str(name), &unit), ADM_OK);
        ck_assert_uint_eq(unit, ADM_UNIT_FIRST_DECLARED + i);
        ask_amount(&asked, unit, i);
    }
    refused(&asked, ADM_E_INVALID_COST);
    asked.request.amount_count = ADM_MAX_AMOUNTS;
    passes(&asked);
    fixture_close(&f);
}
END_TEST

START_TEST(B091_seventeen_descriptors_are_refused_and_sixteen_pass)
{
    static const char keys[] = "abcdefghijklmnopq";
    struct asked asked;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "", 1);
    for (uint32_t i = 0; i < ADM_MAX_DESCRIPTORS + 1; i++) {
        asked.descriptors[i].key = bytes_of(keys + i, 1);
        asked.descriptors[i].value = bytes_of(keys + i, 1);
    }
    asked.request.descriptor_count = ADM_MAX_DESCRIPTORS + 1;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.request.descriptor_count = UINT64_MAX;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.request.descriptor_count = ADM_MAX_DESCRIPTORS;
    passes(&asked);
    asked.request.descriptors = NULL;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    fixture_close(&f);
}
END_TEST

START_TEST(B092_lengths_of_keys_and_values)
{
    static const struct {
        uint64_t key, value;
        bool legal;
    } rows[] = {
        { 0, 1, false },   { 1, 0, false },    { 1, 1, true },           { 64, 1, true },
        { 65, 1, false },  { 256, 1, false },  { 1, 256, true },         { 1, 257, false },
        { 64, 256, true }, { 65, 257, false }, { UINT64_MAX, 1, false }, { 1, UINT64_MAX, false },
    };
    char long_key[64], long_value[257];
    struct asked asked;

    fixture_open(&f, BUCKET);
    memset(long_key, 'x', sizeof long_key);
    memset(long_value, 'y', sizeof long_value);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ask_for(&asked, "k=a", 1);
        asked.descriptors[1].key = bytes_of(rows[i].key > 64 ? long_value : long_key, rows[i].key);
        asked.descriptors[1].value = bytes_of(long_value, rows[i].value);
        asked.request.descriptor_count = 2;
        if (rows[i].legal)
            passes(&asked);
        else
            refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    }
    ask_for(&asked, "k=a", 1);
    asked.descriptors[0].key.data = NULL;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    ask_for(&asked, "k=a", 1);
    asked.descriptors[0].value.data = NULL;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    fixture_close(&f);
}
END_TEST

START_TEST(B092_a_value_counts_whole_to_its_256th_byte)
{
    char one[256], other[256];
    struct asked asked;

    fixture_open(&f, BUCKET);
    memset(one, 'v', sizeof one);
    memcpy(other, one, sizeof one);
    other[255] = 'w';
    ask_for(&asked, "k=a", 1000);
    asked.descriptors[0].value = bytes_of(one, sizeof one);
    passes(&asked);
    ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_RATE_EXCEEDED);
    asked.descriptors[0].value = bytes_of(other, sizeof other);
    passes(&asked);
    fixture_close(&f);
}
END_TEST

START_TEST(B094_zero_bytes_and_case_are_bytes_like_others)
{
    static const char *const values[] = { "a\0b", "a\0c", "a\0", "a", "A" };
    static const uint64_t lengths[] = { 3, 3, 2, 1, 1 };
    struct asked asked;

    fixture_open(&f, BUCKET);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        ask_for(&asked, "k=a", 1000);
        asked.descriptors[0].value = bytes_of(values[i], lengths[i]);
        passes(&asked);
        ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_RATE_EXCEEDED);
    }
    ask_for(&asked, "k=z", 1);
    asked.descriptors[0].key = bytes_of("k\0", 2); /* another key than k */
    ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_MISSING_DESCRIPTOR);
    fixture_close(&f);
}
END_TEST

START_TEST(B091_a_key_twice_is_refused_by_bytes_by_id_and_mixed)
{
    struct asked asked;
    uint32_t k = 0, unknown = 0;

    fixture_open(&f, BUCKET);
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("k"), &k), ADM_OK);
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("unknown"), &unknown), ADM_OK);
    ask_for(&asked, "k=a k=a", 1);
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    ask_for(&asked, "k=a x=1 k=b", 1);
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.descriptors[2].key_id = k;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.descriptors[0].key_id = k;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    ask_for(&asked, "k=a unknown=1 unknown=2", 1);
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.descriptors[1].key_id = unknown;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.descriptors[2].key_id = unknown;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    ask_for(&asked, "k=a", 1);
    passes(&asked); /* nothing of the refused ones is left in the thread's slots */
    ask_for(&asked, "x=1", 1);
    ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_MISSING_DESCRIPTOR);
    fixture_close(&f);
}
END_TEST

START_TEST(B091_a_key_id_that_was_never_given_is_refused)
{
    struct asked asked;
    uint32_t k = 0;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 1);
    asked.descriptors[0].key_id = 1;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("k"), &k), ADM_OK);
    asked.descriptors[0].key_id = k;
    asked.descriptors[0].key = bytes_of(NULL, 0); /* not looked at */
    passes(&asked);
    asked.descriptors[0].key_id = k + 1;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    asked.descriptors[0].key_id = UINT32_MAX;
    refused(&asked, ADM_E_INVALID_DESCRIPTORS);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_lengths_of_attempt_ids)
{
    char text[ADM_MAX_ATTEMPT_BYTES + 1];
    static const uint64_t bad[] = { 0, ADM_MAX_ATTEMPT_BYTES + 1, UINT64_MAX };
    struct asked asked;

    fixture_open(&f, BUCKET);
    memset(text, 't', sizeof text);
    ask_for(&asked, "k=a", 1);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        asked.request.attempt = bytes_of(text, bad[i]);
        refused(&asked, ADM_E_INVALID_ATTEMPT);
    }
    asked.request.attempt = bytes_of(text, 1);
    passes(&asked);
    asked.request.attempt = bytes_of(text, ADM_MAX_ATTEMPT_BYTES);
    passes(&asked);
    ck_assert_int_eq(level(&f, "b", "k=a"), 998);
    passes(&asked); /* the same again */
    ck_assert_int_eq(level(&f, "b", "k=a"), 998);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_the_same_attempt_with_other_contents_is_invalid_and_changes_nothing)
{
    struct adm_decision decision, untouched;
    struct asked asked;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 7);
    ask_attempt(&asked, "t1");
    passes(&asked);
    for (uint32_t change = 0; change < 4; change++) {
        uint64_t invalid = metric(&f, INVALID_CALLS);

        ask_for(&asked, change == 0 ? "k=b" : change == 1 ? "k=a x=1" : "k=a", change == 2 ? 8 : 7);
        if (change == 3)
            ask_amount(&asked, ADM_UNIT_IMAGES, 0);
        ask_attempt(&asked, "t1");
        memset(&decision, 0x5a, sizeof decision);
        decision.size = sizeof decision;
        untouched = decision;
        ck_assert_int_eq(adm_admit(f.gate, &asked.request, &decision), ADM_E_INVALID_ATTEMPT);
        ck_assert_mem_eq(&decision, &untouched, sizeof decision);
        ck_assert_uint_eq(metric(&f, INVALID_CALLS), invalid + 1);
        ck_assert_int_eq(level(&f, "b", "k=a"), 993);
        ck_assert_int_eq(level(&f, "b", "k=b"), 1000);
    }
    fixture_close(&f);
}
END_TEST

static adm_status admit_with_sizes(struct asked *asked, uint32_t request_size,
                                   uint32_t decision_size)
{
    struct {
        struct adm_decision decision;
        unsigned char tail[4096];
    } out;
    adm_status status;

    memset(&out, 0x5a, sizeof out);
    out.decision.size = decision_size;
    asked->request.size = request_size;
    status = adm_admit(f.gate, &asked->request, &out.decision);
    for (size_t i = 0; i < sizeof out.tail; i++)
        ck_assert_uint_eq(out.tail[i], 0x5a);
    ck_assert_uint_eq(out.decision.size, decision_size);
    ck_assert(status == ADM_OK || out.decision.verdict == 0x5a5a5a5a);
    return status;
}

START_TEST(L7_sizes_of_structs_older_newer_and_absurd)
{
    struct asked asked;
    const uint32_t ours = sizeof asked.request, answer = sizeof(struct adm_decision);

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 1);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, answer), ADM_OK);
    ck_assert_int_eq(admit_with_sizes(&asked, 0, answer), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(admit_with_sizes(&asked, ours - 1, answer), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(admit_with_sizes(&asked, 4097, answer), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, 0), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, answer - 1), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, answer + 8), ADM_OK);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, 4096), ADM_OK);
    ck_assert_int_eq(admit_with_sizes(&asked, ours, 4097), ADM_E_STRUCT_SIZE);
    ck_assert_int_eq(level(&f, "b", "k=a"), 997);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_fields_and_flags_of_a_newer_caller_are_refused_unless_zero)
{
    struct {
        struct adm_request request;
        uint64_t newer[4];
    } in;
    struct adm_decision decision = { .size = sizeof decision };
    struct asked asked;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 1);
    in.request = asked.request;
    in.request.size = sizeof in;
    memset(in.newer, 0, sizeof in.newer);
    ck_assert_int_eq(adm_admit(f.gate, &in.request, &decision), ADM_OK);
    in.newer[3] = 1;
    ck_assert_int_eq(adm_admit(f.gate, &in.request, &decision), ADM_E_CALLER_NEWER);
    ask_for(&asked, "k=a", 1);
    asked.request.flags = 1;
    refused(&asked, ADM_E_CALLER_NEWER);
    for (uint32_t i = 0; i < 4; i++) {
        ask_for(&asked, "k=a", 1);
        asked.request.reserved[i] = 1;
        refused(&asked, ADM_E_CALLER_NEWER);
    }
    ck_assert_int_eq(level(&f, "b", "k=a"), 999);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_nothing_where_something_must_be)
{
    struct adm_decision decision = { .size = sizeof decision };
    struct asked asked;
    uint32_t id = 77;
    int64_t found = 77;

    fixture_open(&f, BUCKET);
    ask_for(&asked, "k=a", 1);
    ck_assert_int_eq(adm_admit(NULL, &asked.request, &decision), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_admit(f.gate, NULL, &decision), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_admit(f.gate, &asked.request, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_release(NULL, NO_LEASE, 0, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_release(f.gate, NO_LEASE, ADM_RESULT_COUNT, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_key(f.gate, bytes_of(NULL, 0), &id), ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(adm_gate_key(f.gate, bytes_of("", 0), &id), ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(adm_gate_unit(f.gate, adm_str("Upper"), &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_unit(f.gate, adm_str("1st"), &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_unit(f.gate, adm_str(""), &id), ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(id, 77);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("none"), asked.descriptors, 1, &found),
                     ADM_E_UNKNOWN_RULE);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("b"), NULL, 0, &found),
                     ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(found, 77);
    ck_assert_uint_eq(release(&f, NO_LEASE), ADM_OUTCOME_UNKNOWN);
    ck_assert_int_eq(adm_admit(f.gate, &asked.request, &decision), ADM_OK);
    fixture_close(&f);
}
END_TEST

START_TEST(B006_totals_of_a_settle_have_bounds_too)
{
    const struct adm_amount twice[] = { { ADM_UNIT_COST, 0, 1 }, { ADM_UNIT_COST, 0, 1 } };
    const struct adm_amount large = { ADM_UNIT_COST, 0, ADM_MAX_AMOUNT + 1 };
    const struct adm_amount flag = { ADM_UNIT_COST, 2, 1 };
    const struct adm_amount no_unit = { ADM_UNIT_FIRST_DECLARED, 0, 1 };
    struct adm_amount many[ADM_MAX_AMOUNTS + 1] = { { ADM_UNIT_COST, 0, 1 } };
    uint32_t outcome = 77;

    fixture_open(&f, BUCKET);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, twice, 2, 0, &outcome), ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, &large, 1, 0, &outcome), ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, &flag, 1, 0, &outcome), ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, &no_unit, 1, 0, &outcome), ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, NULL, 1, 0, &outcome), ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, many, ADM_MAX_AMOUNTS + 1, 0, &outcome),
                     ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, NULL, 0, 2, &outcome), ADM_E_INVALID_COST);
    ck_assert_uint_eq(outcome, 77);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_SETTLE]), 0);
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, NULL, 0, 1, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_UNKNOWN);
    fixture_close(&f);
}
END_TEST

START_TEST(L5_keys_and_units_are_bounded_and_the_same_name_gets_the_same_id)
{
    uint32_t id = 0, again = 0;
    char name[16];

    fixture_open(&f, BUCKET);
    for (uint32_t i = 0; i < 1024; i++) {
        (void)snprintf(name, sizeof name, "key%u", i);
        ck_assert_int_eq(adm_gate_key(f.gate, adm_str(name), &id), ADM_OK);
        ck_assert_uint_eq(id, i + 1);
    }
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("one-more"), &again), ADM_E_LIMIT);
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("key1023"), &again), ADM_OK);
    ck_assert_uint_eq(again, id);
    for (uint32_t i = 0; i < 64; i++) {
        (void)snprintf(name, sizeof name, "unit%u", i);
        ck_assert_int_eq(adm_gate_unit(f.gate, adm_str(name), &id), ADM_OK);
    }
    ck_assert_int_eq(adm_gate_unit(f.gate, adm_str("one_more"), &again), ADM_E_LIMIT);
    ck_assert_int_eq(adm_gate_unit(f.gate, adm_str("images"), &again), ADM_OK);
    ck_assert_uint_eq(again, ADM_UNIT_IMAGES);
    (void)allow(&f, "k=a", 1);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        B006_costs_outside_1_to_10_12_are_refused,
        B006_amounts_out_of_range_twice_or_of_no_unit_are_refused,
        B006_seventeen_amounts_are_refused_and_sixteen_pass,
        B091_seventeen_descriptors_are_refused_and_sixteen_pass,
        B092_lengths_of_keys_and_values,
        B092_a_value_counts_whole_to_its_256th_byte,
        B094_zero_bytes_and_case_are_bytes_like_others,
        B091_a_key_twice_is_refused_by_bytes_by_id_and_mixed,
        B091_a_key_id_that_was_never_given_is_refused,
        L10_lengths_of_attempt_ids,
        L10_the_same_attempt_with_other_contents_is_invalid_and_changes_nothing,
        L7_sizes_of_structs_older_newer_and_absurd,
        L7_fields_and_flags_of_a_newer_caller_are_refused_unless_zero,
        L7_nothing_where_something_must_be,
        B006_totals_of_a_settle_have_bounds_too,
        L5_keys_and_units_are_bounded_and_the_same_name_gets_the_same_id,
    };

    return RUN_TESTS("gate bounds", tests);
}
