/* SPDX-License-Identifier: Apache-2.0 */
/* The model's time: effective clocks and calendar windows. */
#include "model_state.h"

#define DAY_NS (86400 * (model_wide)MODEL_SECOND)

/* A time a little below the largest seen counts as the largest seen; a larger step back shifts
 * the offset. */
void model_clock(struct model *model, struct adm_time now)
{
    model_wide skew = (model_wide)model->policy->skew_ns;
    model_wide mono = (model_wide)now.mono_ns + model->offset;
    if (!model->started || mono >= model->seen) {
        model->seen = mono;
    } else if (model->seen - mono > skew) {
        if (!planted(model, PLANT_CLOCK_MINTS))
            model->offset += model->seen - mono;
    } else if (planted(model, PLANT_CLOCK_MINTS)) {
        model->offset += model->seen - mono;
    }
    model->raw = (model_wide)now.mono_ns + model->offset;
    model->started = true;

    model_wide wall = (model_wide)now.wall_ns;
    model->raw_wall = wall;
    if (!model->has_wall || wall >= model->wall || model->wall - wall > skew)
        model->wall = wall;
    model->has_wall = true;
}

static bool leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(const struct model *model, int64_t year, int month)
{
    static const int days[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (planted(model, PLANT_MONTH_OF_30))
        return 30;
    return days[month] + (month == 1 && leap(year) ? 1 : 0);
}

/* Months since January 1970, and the days on which that month begins and ends; counted off year
 * by year. */
static uint64_t month_of(const struct model *model, int64_t day, int64_t *begin, int64_t *end)
{
    int64_t year = 1970;
    int64_t first = 0;
    while (!planted(model, PLANT_MONTH_OF_30) && first + (leap(year) ? 366 : 365) <= day)
        first += leap(year++) ? 366 : 365;
    uint64_t index = (uint64_t)(year - 1970) * 12;
    for (int month = 0;; month = (month + 1) % 12, index++) {
        int64_t next = first + days_in(model, year, month);
        if (day < next) {
            *begin = first;
            *end = next;
            return index;
        }
        first = next;
    }
}

uint64_t model_window(const struct model *model, uint32_t kind, model_wide wall, model_wide *begin,
                      model_wide *end)
{
    if (planted(model, PLANT_WINDOW_OFF))
        wall += 1;
    int64_t day = (int64_t)(wall / DAY_NS);
    int64_t first = day;
    int64_t last = day + 1;
    uint64_t index = kind == ADM_WINDOW_DAY ? (uint64_t)day : month_of(model, day, &first, &last);
    *begin = first * DAY_NS;
    *end = last * DAY_NS;
    return index;
}

/* The bounds of a window by its index. */
void model_window_of(const struct model *model, uint32_t kind, uint64_t index, model_wide *begin,
                     model_wide *end)
{
    if (kind == ADM_WINDOW_DAY) {
        *begin = (model_wide)index * DAY_NS;
        *end = *begin + DAY_NS;
        return;
    }
    int64_t first = 0;
    for (uint64_t month = 0; month < index; month++)
        first += days_in(model, 1970 + (int64_t)(month / 12), (int)(month % 12));
    *begin = first * DAY_NS;
    *end = *begin + days_in(model, 1970 + (int64_t)(index / 12), (int)(index % 12)) * DAY_NS;
}
