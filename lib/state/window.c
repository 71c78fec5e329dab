/* SPDX-License-Identifier: Apache-2.0 */
/* Calendar windows of the proleptic Gregorian calendar, in UTC, by integer arithmetic. */
#include <admit/backend.h>

#define DAY_NS (UINT64_C(86400) * ADM_SECOND)

/* The calendar repeats every 400 years, and a cycle that begins with 1601 ends with its leap day
 * rule's exception. */
#define DAYS_400          146097u
#define DAYS_100          36524u /* the last of four is a day longer */
#define DAYS_4            1461u
#define DAYS_1            365u /* the last of four is a day longer */
#define DAYS_1601_TO_1970 134774u

static const uint32_t days_before_month[2][13] = {
    { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365 },
    { 0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366 },
};

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

static uint64_t day_to_ns(uint64_t day)
{
    return day > UINT64_MAX / DAY_NS ? UINT64_MAX : day * DAY_NS;
}

/* Months since January 1970; the days (since 1970) with which the month and the next one begin. */
static uint64_t month_of_day(uint64_t day, uint64_t *first, uint64_t *next)
{
    uint64_t rest = day + DAYS_1601_TO_1970;
    uint64_t cycles = rest / DAYS_400;
    uint64_t centuries, fours, ones, year, month = 0;

    rest %= DAYS_400;
    centuries = at_most(rest / DAYS_100, 3);
    rest -= centuries * DAYS_100;
    fours = rest / DAYS_4;
    rest -= fours * DAYS_4;
    ones = at_most(rest / DAYS_1, 3);
    rest -= ones * DAYS_1;
    year = 1601 + 400 * cycles + 100 * centuries + 4 * fours + ones;

    const uint32_t *before =
        days_before_month[(year % 4 == 0 && year % 100 != 0) || year % 400 == 0];

    while (rest >= before[month + 1])
        month++;
    *first = day - rest + before[month];
    *next = day - rest + before[month + 1];
    return (year - 1970) * 12 + month;
}

uint64_t adm_window_index(uint32_t window, uint64_t wall_ns, uint64_t *out_begin_ns,
                          uint64_t *out_end_ns)
{
    uint64_t day = wall_ns / DAY_NS;
    uint64_t index = 0, begin_ns = 0, end_ns = UINT64_MAX;

    if (window == ADM_WINDOW_DAY) {
        index = day;
        begin_ns = day_to_ns(day);
        end_ns = day_to_ns(day + 1);
    } else if (window == ADM_WINDOW_MONTH) {
        uint64_t first, next;

        index = month_of_day(day, &first, &next);
        begin_ns = day_to_ns(first);
        end_ns = day_to_ns(next);
    }
    if (out_begin_ns != NULL)
        *out_begin_ns = begin_ns;
    if (out_end_ns != NULL)
        *out_end_ns = end_ns;
    return index;
}
