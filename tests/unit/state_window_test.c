/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/window: every day that 64 bits of nanoseconds reach, against the system's calendar. */
#include <check.h>
#include <stdlib.h>
#include <time.h>

#include <admit/backend.h>

#define DAY_NS   (UINT64_C(86400) * ADM_SECOND)
#define LAST_DAY (UINT64_MAX / DAY_NS) /* in 2554 */

static struct tm utc(uint64_t day)
{
    time_t seconds = (time_t)(day * 86400);
    struct tm tm;

    ck_assert_ptr_nonnull(gmtime_r(&seconds, &tm));
    return tm;
}

START_TEST(days_are_days)
{
    for (uint64_t day = 0; day < LAST_DAY; day++) {
        uint64_t begin_ns = 1, end_ns = 1;

        ck_assert_uint_eq(adm_window_index(ADM_WINDOW_DAY, day * DAY_NS, &begin_ns, &end_ns), day);
        ck_assert_uint_eq(begin_ns, day * DAY_NS);
        ck_assert_uint_eq(end_ns, (day + 1) * DAY_NS);
        ck_assert_uint_eq(adm_window_index(ADM_WINDOW_DAY, end_ns - 1, NULL, NULL), day);
    }
}
END_TEST

START_TEST(months_are_the_calendars)
{
    for (uint64_t day = 0; day < LAST_DAY - 31; day++) {
        struct tm tm = utc(day);
        uint64_t index = (uint64_t)(tm.tm_year - 70) * 12 + (uint64_t)tm.tm_mon, begin_ns, end_ns;

        ck_assert_uint_eq(adm_window_index(ADM_WINDOW_MONTH, day * DAY_NS, &begin_ns, &end_ns),
                          index);
        ck_assert_uint_eq(begin_ns, (day - (uint64_t)tm.tm_mday + 1) * DAY_NS);
        ck_assert_uint_eq(adm_window_index(ADM_WINDOW_MONTH, (day + 1) * DAY_NS - 1, NULL, NULL),
                          index);

        struct tm next = utc(end_ns / DAY_NS);

        ck_assert_uint_eq(end_ns % DAY_NS, 0);
        ck_assert_int_eq(next.tm_mday, 1);
        ck_assert_int_eq(next.tm_mon, (tm.tm_mon + 1) % 12);
        ck_assert_uint_le(end_ns - begin_ns, 31 * DAY_NS);
    }
}
END_TEST

START_TEST(leap_years_by_name)
{
    static const struct {
        uint64_t day; /* the 28th of February */
        int year;
        uint64_t length;
    } februaries[] = {
        { 788, 1972, 29 },   { 1154, 1973, 28 },  { 11015, 2000, 29 },
        { 20512, 2026, 28 }, { 47540, 2100, 28 }, { 157112, 2400, 29 },
    };

    for (uint32_t i = 0; i < 6; i++) {
        uint64_t begin_ns, end_ns;
        struct tm tm = utc(februaries[i].day);

        ck_assert_int_eq(tm.tm_year + 1900, februaries[i].year);
        ck_assert(tm.tm_mon == 1 && tm.tm_mday == 28);
        (void)adm_window_index(ADM_WINDOW_MONTH, februaries[i].day * DAY_NS, &begin_ns, &end_ns);
        ck_assert_uint_eq((end_ns - begin_ns) / DAY_NS, februaries[i].length);
    }
}
END_TEST

START_TEST(the_edges_of_64_bits)
{
    uint64_t begin_ns, end_ns;

    ck_assert_uint_eq(adm_window_index(ADM_WINDOW_DAY, UINT64_MAX, &begin_ns, &end_ns), LAST_DAY);
    ck_assert_uint_eq(begin_ns, LAST_DAY * DAY_NS);
    ck_assert_uint_eq(end_ns, UINT64_MAX);
    (void)adm_window_index(ADM_WINDOW_MONTH, UINT64_MAX, &begin_ns, &end_ns);
    ck_assert_uint_lt(begin_ns, UINT64_MAX);
    ck_assert_uint_eq(end_ns, UINT64_MAX);
    ck_assert_uint_lt(adm_window_index(ADM_WINDOW_DAY, UINT64_MAX, NULL, NULL),
                      1u << 18); /* fits a quota word */
    ck_assert_uint_eq(adm_window_index(ADM_WINDOW_NONE, 12345, &begin_ns, &end_ns), 0);
    ck_assert_uint_eq(begin_ns, 0);
    ck_assert_uint_eq(end_ns, UINT64_MAX);
    ck_assert_uint_eq(adm_window_index(ADM_WINDOW_MONTH, 0, &begin_ns, &end_ns), 0);
    ck_assert_uint_eq(end_ns, 31 * DAY_NS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("window");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, days_are_days);
    tcase_add_test(tests, months_are_the_calendars);
    tcase_add_test(tests, leap_years_by_name);
    tcase_add_test(tests, the_edges_of_64_bits);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);

    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
