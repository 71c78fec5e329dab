/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/odometer: the corners of the public arithmetic. What lies between them is
 * state_odometer_check.py's. */
#include "state/odometer.h"

#include <check.h>
#include <stdlib.h>

#define DAY_NS  (UINT64_C(86400) * ADM_SECOND)
#define YEAR_NS (365 * DAY_NS)
#define T0      (UINT64_C(5) * ADM_SECOND)
#define MOST    ADM_MAX_AMOUNT

static struct adm_odometer odometer_of(uint64_t capacity, uint64_t refill, uint64_t per_ns)
{
    struct adm_odometer odometer;

    adm_odometer_init(&odometer, T0, capacity, refill, per_ns, 1);
    return odometer;
}

START_TEST(the_grid_is_in_range_for_all_numbers)
{
    static const uint64_t amounts[] = { 0, 1, 2, 3, 1000, 999999999999, MOST };
    static const uint64_t periods[] = { ADM_MILLISECOND, ADM_SECOND, 366 * DAY_NS };
    static const uint64_t scales[] = { 1, 1024 };

    for (uint32_t c = 0; c < 7; c++) {
        for (uint32_t r = 0; r < 7; r++) {
            for (uint32_t p = 0; p < 3; p++) {
                for (uint32_t k = 0; k < 2; k++) {
                    struct adm_odometer odometer;

                    if (amounts[r] > periods[p])
                        continue;
                    adm_odometer_init(&odometer, 0, amounts[c], amounts[r], periods[p], scales[k]);
                    ck_assert_uint_le(odometer.a, odometer.b); /* at most one unit per nanosecond */
                    ck_assert_uint_le(odometer.shift, 59);
                    ck_assert(odometer.capacity <= ((UINT64_C(1) << 59) - 1) >> odometer.shift);
                    ck_assert_uint_eq(odometer.a >> odometer.shift, amounts[r]);
                    if (amounts[r] > 0 && scales[k] == 1 &&
                        odometer.shift < 59) /* the finest that fits */
                        ck_assert(odometer.a > odometer.b / 2 ||
                                  (amounts[c] << odometer.shift) >= UINT64_C(1) << 58);
                }
            }
        }
    }
}
END_TEST

START_TEST(b001_b002_a_long_pause_fills_and_no_more)
{
    struct adm_odometer odometer = odometer_of(MOST, 1000000000, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, MOST), 1);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), 0);
    for (uint64_t years = 1; years <= 100; years++) {
        ck_assert_int_eq(adm_bucket_level(&odometer, T0 + years * YEAR_NS, empty), (int64_t)MOST);
        ck_assert_uint_eq(adm_bucket_is_full(&odometer, T0 + years * YEAR_NS, empty), 1);
    }
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + 100 * YEAR_NS, &empty, MOST), 1);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 100 * YEAR_NS + 7, empty), 7);
}
END_TEST

START_TEST(the_end_of_time_denies_and_never_wraps)
{
    struct adm_odometer odometer;
    int64_t empty = ADM_BUCKET_FRESH;

    adm_odometer_init(&odometer, 0, 10, 1000000000, ADM_SECOND, 1);
    ck_assert_uint_eq(adm_bucket_take(&odometer, UINT64_MAX, &empty, 10), 1);
    ck_assert_uint_eq(adm_bucket_take(&odometer, UINT64_MAX, &empty, 1),
                      0); /* the reading is saturated */
    ck_assert_int_eq(adm_bucket_level(&odometer, UINT64_MAX, empty), 0);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, UINT64_MAX, empty, 1), UINT64_MAX);
    adm_bucket_charge(&odometer, UINT64_MAX, &empty, UINT64_MAX);
    ck_assert_int_le(adm_bucket_level(&odometer, UINT64_MAX, empty), 0);
    adm_bucket_refund(&odometer, UINT64_MAX, &empty, UINT64_MAX);
    ck_assert_int_eq(adm_bucket_level(&odometer, UINT64_MAX, empty), 10);
}
END_TEST

START_TEST(b003_b007_earlier_times_mint_nothing)
{
    struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 10), 1);
    for (uint64_t back = 0; back <= T0; back += T0 / 5) {
        int64_t word = empty;

        ck_assert_int_eq(adm_bucket_level(&odometer, T0 - back, empty), 0);
        ck_assert_uint_eq(adm_bucket_take(&odometer, T0 - back, &word, 1), 0);
        ck_assert_int_eq(word, empty);
        ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0 - back, empty, 1), T0 + ADM_SECOND);
    }
    ck_assert_uint_eq(adm_odometer_change(&odometer, 0, 10, 1, 2 * ADM_SECOND, 1), 0);
    ck_assert_uint_eq(odometer.t0_ns, T0); /* a segment never begins before the one before it */
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 2 * ADM_SECOND, empty), 1);

    odometer = odometer_of(100, MOST, 1000 * ADM_SECOND); /* a unit is a token, so none can hide */
    empty = ADM_BUCKET_FRESH;
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 60), 1);
    for (uint64_t back = 0; back <= T0; back += T0 / 5)
        ck_assert_int_eq(adm_bucket_level(&odometer, T0 - back, empty), 40);
}
END_TEST

START_TEST(b004_b011_b055_zero_capacity_admits_nothing)
{
    struct adm_odometer odometer = odometer_of(0, 5, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + YEAR_NS, &empty, 1), 0);
    ck_assert_int_eq(empty, ADM_BUCKET_FRESH);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + YEAR_NS, empty), 0);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 1), UINT64_MAX);
    ck_assert_uint_eq(adm_bucket_is_full(&odometer, T0, empty), 1);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 0), 1); /* nothing passes everywhere */
    ck_assert_int_eq(empty, ADM_BUCKET_FRESH);
}
END_TEST

START_TEST(b004_b086_zero_rate_is_the_first_fill_and_no_more)
{
    struct adm_odometer odometer = odometer_of(3, 0, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 2), 1);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + 100 * YEAR_NS, &empty, 2), 0);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 2), UINT64_MAX);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 1), T0);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + 100 * YEAR_NS, &empty, 1), 1);
    ck_assert_int_eq(adm_bucket_level(&odometer, UINT64_MAX, empty), 0);
}
END_TEST

START_TEST(b005_b017_b027_a_whole_period_is_a_whole_period)
{
    static const uint64_t refills[] = { 1, 3, 7, 997, 3000, 999999937 };

    for (uint32_t i = 0; i < 6; i++) {
        struct adm_odometer odometer = odometer_of(MOST, refills[i], ADM_SECOND);
        int64_t empty = ADM_BUCKET_FRESH;

        ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, MOST), 1);
        for (uint64_t periods = 1; periods <= 1000; periods++)
            ck_assert_int_eq(adm_bucket_level(&odometer, T0 + periods * ADM_SECOND, empty),
                             (int64_t)(periods * refills[i]));
        for (uint64_t periods = 1; periods <= 1000;
             periods++) { /* taken as it comes, nothing is dropped (B023) */
            ck_assert_uint_eq(
                adm_bucket_take(&odometer, T0 + periods * ADM_SECOND, &empty, refills[i]), 1);
            ck_assert_int_eq(adm_bucket_level(&odometer, T0 + periods * ADM_SECOND, empty), 0);
        }
    }
}
END_TEST

START_TEST(b009_b010_b030_a_token_per_nanosecond)
{
    struct adm_odometer odometer = odometer_of(100, MOST, 1000 * ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(odometer.shift, 0);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 100), 1);
    for (uint64_t i = 1; i <= 100; i++)
        ck_assert_int_eq(adm_bucket_level(&odometer, T0 + i, empty), (int64_t)i);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 101, empty), 100);
}
END_TEST

START_TEST(one_token_in_366_days)
{
    struct adm_odometer odometer = odometer_of(1, 1, 366 * DAY_NS);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 1), 1);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 1), T0 + 366 * DAY_NS);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + 366 * DAY_NS - 1, &empty, 1), 0);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + 366 * DAY_NS, &empty, 1), 1);
}
END_TEST

START_TEST(b018_b020_b035_more_than_capacity_never_passes)
{
    struct adm_odometer odometer = odometer_of(10, 10, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 11), 0);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, UINT64_MAX), 0);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 11), UINT64_MAX);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, UINT64_MAX), UINT64_MAX);
    ck_assert_uint_eq(adm_bucket_passes_at(&odometer, T0, empty, 10), T0);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 10), 1);
}
END_TEST

START_TEST(b025_refunds_count_at_every_level_and_never_overfill)
{
    struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 10), 1);
    adm_bucket_refund(&odometer, T0, &empty, 3); /* at exactly 0 */
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), 3);
    adm_bucket_charge(&odometer, T0, &empty, 20);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), -17);
    adm_bucket_refund(&odometer, T0, &empty, 18); /* out of debt */
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), 1);
    adm_bucket_refund(&odometer, T0, &empty, 1000);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), 10);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + YEAR_NS, &empty, 10), 1);
    ck_assert_uint_eq(adm_bucket_take(&odometer, T0 + YEAR_NS, &empty, 1), 0);
}
END_TEST

START_TEST(b028_b029_idle_credit_is_given_once)
{
    struct adm_odometer odometer = odometer_of(10, 10, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;
    uint64_t taken = 0;

    for (uint32_t i = 0; i < 1000; i++)
        taken += adm_bucket_take(&odometer, T0 + DAY_NS, &empty, 1);
    ck_assert_uint_eq(taken, 10);
}
END_TEST

START_TEST(levels_are_floored_also_in_debt)
{
    struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    adm_bucket_charge(&odometer, T0, &empty, 12);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0, empty), -2);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 1, empty), -2); /* a little more than -2 */
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADM_SECOND - 1, empty), -2);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADM_SECOND, empty), -1);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 2 * ADM_SECOND, empty), 0);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 3 * ADM_SECOND - 1, empty), 0);
}
END_TEST

START_TEST(b088_b089_a_raise_adds_nothing_a_cut_clamps)
{
    struct adm_odometer odometer = odometer_of(100, 10, ADM_SECOND);
    int64_t used = ADM_BUCKET_FRESH, untouched = ADM_BUCKET_FRESH;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &used, 100), 1);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0 + ADM_SECOND, 200, 10, ADM_SECOND, 1), 0);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADM_SECOND, used), 10);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADM_SECOND, untouched), 100);
    ck_assert_uint_eq(adm_bucket_is_full(&odometer, T0 + ADM_SECOND, untouched), 0);
    ck_assert_int_eq(admi_bucket_is_as_new(&odometer, T0 + ADM_SECOND, untouched), 1);
    ck_assert_int_eq(admi_bucket_is_as_new(&odometer, T0 + ADM_SECOND, used), 0);
    ck_assert_int_eq(admi_odometer_floor_is_spent(&odometer, T0 + ADM_SECOND), 0);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 11 * ADM_SECOND, untouched), 200);
    ck_assert_int_eq(admi_odometer_floor_is_spent(&odometer, T0 + 11 * ADM_SECOND), 1);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0 + 11 * ADM_SECOND, 50, 10, ADM_SECOND, 1),
                      0);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 11 * ADM_SECOND, used), 50);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 11 * ADM_SECOND, untouched), 50);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0 + 11 * ADM_SECOND, 200, 10, ADM_SECOND, 1),
                      0);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 11 * ADM_SECOND, untouched),
                     50); /* down and up mints nothing */
}
END_TEST

START_TEST(the_same_numbers_are_no_change)
{
    struct adm_odometer odometer = odometer_of(100, 7, 3 * ADM_SECOND), before = odometer;

    for (uint32_t i = 1; i < 50; i++)
        ck_assert_uint_eq(
            adm_odometer_change(&odometer, T0 + i * 12345677, 100, 7, 3 * ADM_SECOND, 1), 0);
    ck_assert_int_eq(odometer.v0, before.v0); /* or every reload would round once more */
    ck_assert_uint_eq(odometer.t0_ns, before.t0_ns);
}
END_TEST

START_TEST(d3_the_grid_moves_only_when_it_must)
{
    struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND);
    uint32_t shift = odometer.shift; /* 29: 2^29 of 10^9 */

    ck_assert_uint_eq(shift, 29);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0, 10, 1, 64 * ADM_SECOND, 1),
                      0); /* coarser than best by 6 */
    ck_assert_uint_eq(odometer.shift, shift);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0, 10, 1, 128 * ADM_SECOND, 1), 1); /* by 7 */
    ck_assert_uint_eq(odometer.shift, 36);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0, 10, 1, 64 * ADM_SECOND, 1),
                      1); /* too fine by 1 */
    ck_assert_uint_eq(odometer.shift, 35);
    ck_assert_uint_eq(adm_odometer_change(&odometer, T0, MOST, 1, 64 * ADM_SECOND, 1),
                      1); /* too fine for capacity */
    ck_assert_uint_eq(odometer.shift, 19);
}
END_TEST

START_TEST(d3_rescaling_keeps_levels_debts_and_floors)
{
    static const int64_t levels[] = { 10, 9, 1, 0, -1, -500 };

    for (uint32_t i = 0; i < 6; i++) {
        struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND), before;
        int64_t empty = ADM_BUCKET_FRESH;
        uint64_t now_ns = T0 + YEAR_NS;

        adm_bucket_charge(&odometer, now_ns, &empty, (uint64_t)(10 - levels[i]));
        for (uint32_t j = 0; j < 6; j++) { /* to and fro, coarser and finer */
            before = odometer;
            ck_assert_uint_eq(adm_odometer_change(&odometer, now_ns, 10, 1,
                                                  j % 2 == 0 ? 3600 * ADM_SECOND : ADM_SECOND, 1),
                              1);
            empty = adm_bucket_rescale(&before, &odometer, now_ns, empty);
            ck_assert_int_eq(adm_bucket_level(&odometer, now_ns, empty), levels[i]);
        }
        if (levels[i] == 10)
            ck_assert_int_eq(empty, ADM_BUCKET_FRESH);
    }

    struct adm_odometer odometer = odometer_of(10, 1, ADM_SECOND);

    ck_assert_uint_eq(
        adm_odometer_change(&odometer, T0 + ADM_SECOND, 1000, 1, 3600 * ADM_SECOND, 1), 1);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADM_SECOND, ADM_BUCKET_FRESH),
                     10); /* raise and new grid at once */
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + 7201 * ADM_SECOND, ADM_BUCKET_FRESH), 12);
}
END_TEST

START_TEST(d3_words_saturate)
{
    struct adm_odometer odometer = odometer_of(1, 0, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;

    for (uint32_t i = 0; i < 100; i++)
        adm_bucket_charge(&odometer, T0, &empty, MOST);
    ck_assert_int_eq(empty, (INT64_C(1) << 62) - (INT64_C(1) << 59) - 1);
    ck_assert_int_lt(adm_bucket_level(&odometer, T0, empty), 0);

    struct adm_odometer before = odometer;

    ck_assert_uint_eq(adm_odometer_change(&odometer, T0, MOST, 1, ADM_SECOND, 1), 1);
    empty = adm_bucket_rescale(&before, &odometer, T0, empty);
    ck_assert_int_lt(adm_bucket_level(&odometer, T0, empty), 0); /* still a debt */
}
END_TEST

START_TEST(d4_numbers_for_1024_replicas_need_no_new_grid)
{
    struct adm_odometer odometer;
    uint32_t shift = admi_odometer_shift(200, 100, ADM_SECOND, ADMI_REPLICAS_MAX);

    admi_odometer_init_on(&odometer, T0, 200, 100, ADM_SECOND, shift);
    for (uint64_t k = 1; k <= ADMI_REPLICAS_MAX; k++)
        ck_assert_uint_eq(
            admi_odometer_change_on(&odometer, T0 + k, 200 * k, 100 * k, ADM_SECOND, shift), 0);
    ck_assert_uint_le(odometer.a, odometer.b);
    ck_assert_int_eq(adm_bucket_level(&odometer, T0 + ADMI_REPLICAS_MAX, ADM_BUCKET_FRESH), 200);
}
END_TEST

START_TEST(forgetting_a_bucket_that_is_as_new_is_invisible)
{
    struct adm_odometer odometer = odometer_of(100, 10, ADM_SECOND);
    int64_t empty = ADM_BUCKET_FRESH;
    uint64_t as_new_at_ns;

    ck_assert_uint_eq(adm_bucket_take(&odometer, T0, &empty, 33), 1);
    as_new_at_ns = admi_bucket_as_new_at(&odometer, T0, empty);
    ck_assert_uint_eq(as_new_at_ns, T0 + 3300 * ADM_MILLISECOND);
    ck_assert_int_eq(admi_bucket_is_as_new(&odometer, as_new_at_ns - 1, empty), 0);
    ck_assert_int_eq(admi_bucket_is_as_new(&odometer, as_new_at_ns, empty), 1);
    ck_assert_uint_eq(adm_bucket_is_full(&odometer, as_new_at_ns - 1, empty), 0);
    ck_assert_uint_eq(adm_bucket_is_full(&odometer, as_new_at_ns, empty), 1);
    for (uint64_t later = 0; later < 20; later++) { /* also across a raise and a cut */
        uint64_t now_ns = as_new_at_ns + later * ADM_SECOND;

        (void)adm_odometer_change(&odometer, now_ns, later % 3 == 0 ? 500 : 80, 10, ADM_SECOND, 1);
        for (uint64_t ms = 0; ms < 1000; ms += 250)
            ck_assert_int_eq(
                adm_bucket_level(&odometer, now_ns + ms * ADM_MILLISECOND, empty),
                adm_bucket_level(&odometer, now_ns + ms * ADM_MILLISECOND, ADM_BUCKET_FRESH));
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("odometer");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, the_grid_is_in_range_for_all_numbers);
    tcase_add_test(tests, b001_b002_a_long_pause_fills_and_no_more);
    tcase_add_test(tests, the_end_of_time_denies_and_never_wraps);
    tcase_add_test(tests, b003_b007_earlier_times_mint_nothing);
    tcase_add_test(tests, b004_b011_b055_zero_capacity_admits_nothing);
    tcase_add_test(tests, b004_b086_zero_rate_is_the_first_fill_and_no_more);
    tcase_add_test(tests, b005_b017_b027_a_whole_period_is_a_whole_period);
    tcase_add_test(tests, b009_b010_b030_a_token_per_nanosecond);
    tcase_add_test(tests, one_token_in_366_days);
    tcase_add_test(tests, b018_b020_b035_more_than_capacity_never_passes);
    tcase_add_test(tests, b025_refunds_count_at_every_level_and_never_overfill);
    tcase_add_test(tests, b028_b029_idle_credit_is_given_once);
    tcase_add_test(tests, levels_are_floored_also_in_debt);
    tcase_add_test(tests, b088_b089_a_raise_adds_nothing_a_cut_clamps);
    tcase_add_test(tests, the_same_numbers_are_no_change);
    tcase_add_test(tests, d3_the_grid_moves_only_when_it_must);
    tcase_add_test(tests, d3_rescaling_keeps_levels_debts_and_floors);
    tcase_add_test(tests, d3_words_saturate);
    tcase_add_test(tests, d4_numbers_for_1024_replicas_need_no_new_grid);
    tcase_add_test(tests, forgetting_a_bucket_that_is_as_new_is_invisible);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);

    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
