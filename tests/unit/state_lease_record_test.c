/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/lease_record: what the contract suite does not reach through a backend. */
#include <check.h>
#include <stdlib.h>

#include <admit/backend.h>

#define TTL_NS (60 * ADM_SECOND)
#define DAY_NS (UINT64_C(86400) * ADM_SECOND)

/* input 100 and output 50, tokens derived; one exact bucket term of tokens and one held unit. */
static void open_record(struct adm_lease_record *lease)
{
    const struct adm_meter meters[] = { { ADM_UNIT_INPUT_TOKENS, 0, 100 },
                                        { ADM_UNIT_OUTPUT_TOKENS, 0, 50 },
                                        { ADM_UNIT_TOKENS, ADM_METER_F_DERIVED, 150 },
                                        { ADM_UNIT_REQUESTS, 0, 1 } };
    const struct adm_take take = { .ttl_ns = TTL_NS, .meters = meters, .meter_count = 4 };
    struct adm_term term = { .kind = ADM_KIND_BUCKET,
                             .flags = ADM_TERM_F_SETTLE_EXACT,
                             .unit = ADM_UNIT_TOKENS,
                             .amount = 150 };

    adm_lease_record_open(lease, (struct adm_id){ 1, 2 }, &take, 0);
    adm_lease_record_add(lease, &term, 7, 0);
    term = (struct adm_term){ .kind = ADM_KIND_CONCURRENCY, .unit = ADM_UNIT_REQUESTS };
    term.amount = 1;
    adm_lease_record_add(lease, &term, 8, 0);
    term.flags = ADM_TERM_F_SHADOW;
    adm_lease_record_add(lease, &term, 9, 0);
    term.kind = ADM_KIND_QUOTA; /* nothing to settle: no item */
    adm_lease_record_add(lease, &term, 10, 0);
    ck_assert_uint_eq(lease->item_count, 3);
}

static uint32_t step(struct adm_lease_record *lease, uint32_t kind, int64_t *changes,
                     uint64_t *units)
{
    struct adm_op op = { .kind = kind };

    adm_lease_record_step(lease, &op, 1, changes);
    *units = op.units;
    return op.outcome;
}

static uint32_t settle(struct adm_lease_record *lease, uint32_t unit, uint64_t value,
                       uint32_t final_all, int64_t *changes)
{
    struct adm_amount total = { unit, 0, value };
    struct adm_settlement settlement = { &total, 1, final_all };
    struct adm_op op = { .kind = ADM_OP_SETTLE, .args.settle = &settlement };

    adm_lease_record_step(lease, &op, 1, changes);
    return op.outcome;
}

START_TEST(tokens_follow_their_parts_until_a_report_names_them)
{
    struct adm_lease_record lease;
    int64_t changes[ADM_LEASE_ITEMS];

    open_record(&lease);
    ck_assert_uint_eq(settle(&lease, ADM_UNIT_OUTPUT_TOKENS, 80, 0, changes), ADM_OUTCOME_SETTLED);
    ck_assert_int_eq(changes[0], 30);
    ck_assert_int_eq(changes[1], 0);
    (void)settle(&lease, ADM_UNIT_OUTPUT_TOKENS, 10, 0, changes); /* smaller, not final */
    ck_assert_int_eq(changes[0], 0);
    (void)settle(&lease, ADM_UNIT_TOKENS, 200, 0, changes);
    ck_assert_int_eq(changes[0], 20);
    (void)settle(&lease, ADM_UNIT_INPUT_TOKENS, 900, 0, changes);
    ck_assert_int_eq(changes[0], 0);
    (void)settle(&lease, ADM_UNIT_TOKENS, 5, 1, changes);
    ck_assert_int_eq(changes[0], -195);
    (void)settle(&lease, ADM_UNIT_TOKENS, 500, 1, changes); /* final before */
    ck_assert_int_eq(changes[0], 0);
    (void)settle(&lease, ADM_UNIT_IMAGES, 5, 0, changes); /* no meter counts it */
    ck_assert_int_eq(changes[0], 0);
}
END_TEST

START_TEST(divert_keeps_all_but_output_still_to_come)
{
    struct adm_lease_record lease;
    int64_t changes[ADM_LEASE_ITEMS];
    uint64_t units;

    open_record(&lease);
    ck_assert_uint_eq(step(&lease, ADM_OP_DIVERT, changes, &units), ADM_OUTCOME_DIVERTED);
    ck_assert_int_eq(changes[0], -50);
    ck_assert_int_eq(changes[1], -1);
    ck_assert_int_eq(changes[2], -1);
    ck_assert_uint_eq(units, 1); /* the shadow hold is not counted */
    ck_assert_uint_eq(step(&lease, ADM_OP_DIVERT, changes, &units), ADM_OUTCOME_ALREADY);
    ck_assert_int_eq(changes[0] | changes[1] | changes[2], 0);
    ck_assert_uint_eq(step(&lease, ADM_OP_GIVE, changes, &units), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(changes[0] | changes[1] | changes[2], 0);
    ck_assert_uint_eq(step(&lease, ADM_OP_GIVE, changes, &units), ADM_OUTCOME_ALREADY);
    ck_assert_uint_eq(step(&lease, ADM_OP_RENEW, changes, &units), ADM_OUTCOME_LOST);
    ck_assert_uint_eq(step(NULL, ADM_OP_GIVE, changes, &units), ADM_OUTCOME_UNKNOWN);
    ck_assert_uint_eq(step(NULL, ADM_OP_RENEW, changes, &units), ADM_OUTCOME_LOST);
}
END_TEST

START_TEST(a_record_ends_twice_and_holds_nothing_in_between)
{
    struct adm_lease_record lease;
    int64_t changes[ADM_LEASE_ITEMS];
    uint64_t units;

    open_record(&lease);
    ck_assert_uint_eq(adm_lease_record_expire(&lease, TTL_NS - 1, changes), 0);
    ck_assert_int_eq(changes[1], 0);
    ck_assert_uint_eq(adm_lease_record_expire(&lease, TTL_NS, changes), 0);
    ck_assert_int_eq(changes[0], 0);
    ck_assert_int_eq(changes[1], -1);
    ck_assert_uint_eq(adm_lease_record_expire(&lease, TTL_NS, changes), 0);
    ck_assert_int_eq(changes[1], 0);
    ck_assert_uint_eq(settle(&lease, ADM_UNIT_REQUESTS, 9, 0, changes), ADM_OUTCOME_LATE);
    ck_assert_int_eq(changes[1], 0);
    ck_assert_uint_eq(step(&lease, ADM_OP_GIVE, changes, &units), ADM_OUTCOME_LATE);
    ck_assert_uint_eq(units, 0);
    ck_assert_uint_eq(adm_lease_record_expire(&lease, 2 * TTL_NS - 1, changes), 0);
    ck_assert_uint_eq(adm_lease_record_expire(&lease, 2 * TTL_NS, changes), 1);
}
END_TEST

START_TEST(a_quota_is_changed_only_in_the_window_it_was_charged_in)
{
    struct adm_quota quota = { 0 };
    uint64_t day = 10 * DAY_NS;

    adm_quota_change(&quota, ADM_WINDOW_DAY, day, 0, 10, 60);
    adm_quota_change(&quota, ADM_WINDOW_DAY, day, 0, 9, -60);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day, 0).used, 60);
    adm_quota_change(&quota, ADM_WINDOW_DAY, day, 0, 10, -100);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day, 0).used, 0);
    adm_quota_change(&quota, ADM_WINDOW_DAY, day, 0, 10, 60);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day + DAY_NS, 0).used, 0);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day - 5, 5).index, 10);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day - 6, 5).index, 9);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day - 6, 5).used, 60);
    ck_assert_uint_eq(adm_quota_at(&quota, ADM_WINDOW_DAY, day - 6, 5).empty_at_ns, day + DAY_NS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lease record");
    TCase *all = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(all, tokens_follow_their_parts_until_a_report_names_them);
    tcase_add_test(all, divert_keeps_all_but_output_still_to_come);
    tcase_add_test(all, a_record_ends_twice_and_holds_nothing_in_between);
    tcase_add_test(all, a_quota_is_changed_only_in_the_window_it_was_charged_in);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
