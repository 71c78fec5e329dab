/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/meter: the totals of a lease, without a backend around them. */
#include "state/meter.h"

#include <check.h>
#include <stdlib.h>

enum { INPUT, OUTPUT, TOKENS, IMAGES, COUNT };

/* 100 input and 50 output, so 150 tokens, derived; 3 images. */
struct counted {
    struct adm_meter meters[COUNT];
    struct admi_meters of;
};

static void begin(struct counted *counted)
{
    *counted = (struct counted){
        .meters = { { ADM_UNIT_INPUT_TOKENS, 0, 100 },
                    { ADM_UNIT_OUTPUT_TOKENS, 0, 50 },
                    { ADM_UNIT_TOKENS, ADM_METER_F_DERIVED, 150 },
                    { ADM_UNIT_IMAGES, 0, 3 } },
    };
    counted->of = (struct admi_meters){ counted->meters, COUNT, false };
}

static uint32_t settle(struct counted *counted, const struct adm_amount *totals, uint32_t count,
                       bool final_all)
{
    const struct adm_settlement settlement = { .totals = totals,
                                               .total_count = count,
                                               .final_all = final_all };

    return admi_meter_settle(&counted->of, &settlement);
}

static uint32_t settle_one(struct counted *counted, uint32_t unit, uint64_t value, bool final)
{
    const struct adm_amount total = { unit, final ? ADM_AMOUNT_FINAL : 0, value };

    return settle(counted, &total, 1, false);
}

static void assert_totals(const struct counted *counted, uint64_t input, uint64_t output,
                          uint64_t tokens, uint64_t images)
{
    ck_assert_uint_eq(counted->meters[INPUT].total, input);
    ck_assert_uint_eq(counted->meters[OUTPUT].total, output);
    ck_assert_uint_eq(counted->meters[TOKENS].total, tokens);
    ck_assert_uint_eq(counted->meters[IMAGES].total, images);
}

static void assert_final(const struct counted *counted, bool input, bool output, bool tokens,
                         bool images)
{
    ck_assert_int_eq(admi_meter_is_final(&counted->of, INPUT), input);
    ck_assert_int_eq(admi_meter_is_final(&counted->of, OUTPUT), output);
    ck_assert_int_eq(admi_meter_is_final(&counted->of, TOKENS), tokens);
    ck_assert_int_eq(admi_meter_is_final(&counted->of, IMAGES), images);
}

START_TEST(a_meter_is_found_by_its_unit)
{
    struct counted counted;
    struct admi_meters none = { NULL, 0, false };

    begin(&counted);
    ck_assert_uint_eq(admi_meter_of(&counted.of, ADM_UNIT_INPUT_TOKENS), INPUT);
    ck_assert_uint_eq(admi_meter_of(&counted.of, ADM_UNIT_IMAGES), IMAGES);
    ck_assert_uint_eq(admi_meter_of(&counted.of, ADM_UNIT_COST), ADMI_METER_NONE);
    counted.of.count = IMAGES; /* what lies behind the count is not there */
    ck_assert_uint_eq(admi_meter_of(&counted.of, ADM_UNIT_IMAGES), ADMI_METER_NONE);
    ck_assert_uint_eq(admi_meter_of(&none, ADM_UNIT_TOKENS), ADMI_METER_NONE);
    ck_assert_uint_eq(admi_meter_total(&counted.of, OUTPUT), 50);
    ck_assert_uint_eq(admi_meter_total(&counted.of, ADMI_METER_NONE), 0);
    ck_assert(!admi_meter_is_final(&counted.of, ADMI_METER_NONE));
    counted.of.final = true;
    ck_assert(admi_meter_is_final(&counted.of, ADMI_METER_NONE));
}
END_TEST

START_TEST(a_first_report_replaces_what_was_estimated)
{
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 7, false), 1u << IMAGES);
    assert_totals(&counted, 100, 50, 150, 7);
    assert_final(&counted, false, false, false, false);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 7, false), 1u << IMAGES); /* as is */
    assert_totals(&counted, 100, 50, 150, 7);
}
END_TEST

START_TEST(a_smaller_total_counts_only_when_it_is_final)
{
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 2, false), 1u << IMAGES);
    assert_totals(&counted, 100, 50, 150, 3);
    assert_final(&counted, false, false, false, false);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 0, true), 1u << IMAGES);
    assert_totals(&counted, 100, 50, 150, 0);
    assert_final(&counted, false, false, false, true);
}
END_TEST

START_TEST(a_final_unit_is_not_touched_again)
{
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 5, true), 1u << IMAGES);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 9, false), 0);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 9, true), 0);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_IMAGES, 0, true), 0);
    assert_totals(&counted, 100, 50, 150, 5);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_INPUT_TOKENS, 120, false),
                      1u << INPUT | 1u << TOKENS); /* the others are open */
    assert_totals(&counted, 120, 50, 170, 5);
}
END_TEST

START_TEST(a_unit_that_is_not_counted_is_ignored)
{
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_COST, 9, true), 0);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_FIRST_DECLARED, 9, false), 0);
    ck_assert_uint_eq(settle(&counted, NULL, 0, false), 0);
    assert_totals(&counted, 100, 50, 150, 3);
    assert_final(&counted, false, false, false, false);
}
END_TEST

START_TEST(totals_end_at_the_largest_amount)
{
    struct counted counted;

    begin(&counted);
    (void)settle_one(&counted, ADM_UNIT_IMAGES, UINT64_MAX, false);
    assert_totals(&counted, 100, 50, 150, ADM_MAX_AMOUNT);
    (void)settle_one(&counted, ADM_UNIT_INPUT_TOKENS, ADM_MAX_AMOUNT + 1, false);
    (void)settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, ADM_MAX_AMOUNT, false);
    assert_totals(&counted, ADM_MAX_AMOUNT, ADM_MAX_AMOUNT, 2 * ADM_MAX_AMOUNT, ADM_MAX_AMOUNT);
}
END_TEST

START_TEST(tokens_follow_their_parts_until_a_report_names_them)
{
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 80, false),
                      1u << OUTPUT | 1u << TOKENS);
    assert_totals(&counted, 100, 80, 180, 3);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_TOKENS, 170, false), 1u << TOKENS);
    assert_totals(&counted, 100, 80, 180, 3); /* smaller: but it was named */
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 90, false), 1u << OUTPUT);
    assert_totals(&counted, 100, 90, 180, 3);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_TOKENS, 200, false), 1u << TOKENS);
    assert_totals(&counted, 100, 90, 200, 3);
}
END_TEST

START_TEST(a_report_that_names_tokens_beside_their_parts_wins)
{
    const struct adm_amount totals[2] = { { ADM_UNIT_TOKENS, 0, 400 },
                                          { ADM_UNIT_INPUT_TOKENS, 0, 110 } };
    const struct adm_amount reversed[2] = { totals[1], totals[0] };
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle(&counted, totals, 2, false), 1u << TOKENS | 1u << INPUT);
    assert_totals(&counted, 110, 50, 400, 3);
    begin(&counted);
    ck_assert_uint_eq(settle(&counted, reversed, 2, false), 1u << TOKENS | 1u << INPUT);
    assert_totals(&counted, 110, 50, 400, 3);
}
END_TEST

START_TEST(derived_tokens_are_final_when_both_parts_are)
{
    struct counted counted;

    begin(&counted);
    (void)settle_one(&counted, ADM_UNIT_INPUT_TOKENS, 10, true);
    assert_totals(&counted, 10, 50, 60, 3); /* a final part may shrink them */
    assert_final(&counted, true, false, false, false);
    (void)settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 60, false);
    assert_final(&counted, true, false, false, false);
    (void)settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 20, true);
    assert_totals(&counted, 10, 20, 30, 3);
    assert_final(&counted, true, true, true, false);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_TOKENS, 99, true), 0);
    assert_totals(&counted, 10, 20, 30, 3);
}
END_TEST

START_TEST(tokens_are_derived_without_a_meter_for_a_part)
{
    struct adm_meter meters[2] = { { ADM_UNIT_TOKENS, ADM_METER_F_DERIVED, 50 },
                                   { ADM_UNIT_OUTPUT_TOKENS, 0, 50 } };
    struct admi_meters of = { meters, 2, false };
    const struct adm_amount total = { ADM_UNIT_OUTPUT_TOKENS, ADM_AMOUNT_FINAL, 70 };
    const struct adm_settlement settlement = { .totals = &total, .total_count = 1 };

    ck_assert_uint_eq(admi_meter_settle(&of, &settlement), 3);
    ck_assert_uint_eq(meters[0].total, 70);
    ck_assert(!admi_meter_is_final(&of, 0)); /* nobody said that there is no input to come */
}
END_TEST

START_TEST(tokens_that_are_not_derived_never_follow)
{
    struct counted counted;

    begin(&counted);
    counted.meters[TOKENS].flags = 0;
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_INPUT_TOKENS, 500, true), 1u << INPUT);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 500, true), 1u << OUTPUT);
    assert_totals(&counted, 500, 500, 150, 3);
    assert_final(&counted, true, true, false, false);
}
END_TEST

START_TEST(a_final_report_of_all_makes_all_final)
{
    const struct adm_amount total = { ADM_UNIT_INPUT_TOKENS, 0, 40 };
    struct counted counted;

    begin(&counted);
    ck_assert_uint_eq(settle(&counted, &total, 1, true), 1u << INPUT | 1u << TOKENS);
    assert_totals(&counted, 40, 50, 90, 3); /* a smaller one counts; what is not named stays */
    assert_final(&counted, true, true, true, true);
    ck_assert(counted.of.final);
    ck_assert_uint_eq(settle_one(&counted, ADM_UNIT_OUTPUT_TOKENS, 60, true), 0);
    ck_assert_uint_eq(settle(&counted, &total, 1, false), 0);
    ck_assert(counted.of.final); /* a later report does not open it again */
    assert_totals(&counted, 40, 50, 90, 3);
    begin(&counted);
    ck_assert_uint_eq(settle(&counted, NULL, 0, true), 0); /* nothing named, and the end all the
                                                               same */
    assert_totals(&counted, 100, 50, 150, 3);
    assert_final(&counted, true, true, true, true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("meter");
    TCase *tests = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, a_meter_is_found_by_its_unit);
    tcase_add_test(tests, a_first_report_replaces_what_was_estimated);
    tcase_add_test(tests, a_smaller_total_counts_only_when_it_is_final);
    tcase_add_test(tests, a_final_unit_is_not_touched_again);
    tcase_add_test(tests, a_unit_that_is_not_counted_is_ignored);
    tcase_add_test(tests, totals_end_at_the_largest_amount);
    tcase_add_test(tests, tokens_follow_their_parts_until_a_report_names_them);
    tcase_add_test(tests, a_report_that_names_tokens_beside_their_parts_wins);
    tcase_add_test(tests, derived_tokens_are_final_when_both_parts_are);
    tcase_add_test(tests, tokens_are_derived_without_a_meter_for_a_part);
    tcase_add_test(tests, tokens_that_are_not_derived_never_follow);
    tcase_add_test(tests, a_final_report_of_all_makes_all_final);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
