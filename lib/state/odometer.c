/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token bucket as an odometer per class and a word per bucket: V(t) = v0 + floor((t - t0) * a /
 * b) counts what the class has dripped, in units of 2^-shift token; a bucket's word E is the
 * reading at which it is empty. Rounding happens once, in V, never per admit, so nothing
 * accumulates.
 *
 * Ranges: a / b <= 1, so a reading of 100 years stays below 2^62 - 2^59; capacity << shift is
 * below 2^59, so levels and sums of a level and a word stay inside 63 bits; products of time and
 * rate are 128 bits wide.
 */
#include "state/odometer.h"

#include "base/wide.h"

/* Readings and words saturate here: what is left of 62 bits for a backend that keeps a word in
 * them, with full buckets of reading 0 below. */
#define WORD_MAX   ((INT64_C(1) << 62) - (INT64_C(1) << 59) - 1)
#define LEVEL_BITS 59u /* a full bucket, in units, is below 2^59 */
#define GRID_SLACK                                                                                 \
    6u /* a grid this many bits too coarse is kept: a rescale visits every bucket   \
                       */

/* ---- small arithmetic ---- */

static uint32_t bit_length(uint64_t value)
{
    return value == 0 ? 0 : 64u - (uint32_t)__builtin_clzll(value);
}

static uint64_t product_up_to(uint64_t value, uint64_t factor, uint64_t most)
{
    admi_u128 product = (admi_u128)value * factor;

    return product < most ? (uint64_t)product : most;
}

static admi_i128 floor_shift_right(admi_i128 value, uint32_t bits)
{
    admi_i128 unit = (admi_i128)1 << bits;
    admi_i128 quotient = value / unit;

    return value % unit < 0 ? quotient - 1 : quotient;
}

static int64_t word_of(admi_i128 value)
{
    if (value > WORD_MAX)
        return WORD_MAX;
    return value < -WORD_MAX ? -WORD_MAX : (int64_t)value;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- the odometer ---- */

int64_t admi_odometer_reading(const struct adm_odometer *odometer, uint64_t now_ns)
{
    if (now_ns <= odometer->t0_ns)
        return odometer->v0; /* an earlier time mints nothing (K4) */
    admi_u128 dripped = (admi_u128)(now_ns - odometer->t0_ns) * odometer->a / odometer->b;

    if (dripped >= (admi_u128)(WORD_MAX - odometer->v0))
        return WORD_MAX;
    return odometer->v0 + (int64_t)dripped;
}

static int64_t capacity_units(const struct adm_odometer *odometer)
{
    return (int64_t)(odometer->capacity << odometer->shift);
}

/* The reading at which the bucket is empty: never fuller than capacity, nor than a raise allows. */
static int64_t empty_at(const struct adm_odometer *odometer, int64_t reading, int64_t empty)
{
    return larger(larger(empty, odometer->floor), reading - capacity_units(odometer));
}

/* The first moment at which V(t) >= target; target > v0. */
static uint64_t reaches_at(const struct adm_odometer *odometer, admi_i128 target)
{
    if (odometer->a == 0 || target > WORD_MAX)
        return UINT64_MAX;
    admi_u128 units = (admi_u128)(target - odometer->v0);
    admi_u128 wait = (units * odometer->b + odometer->a - 1) / odometer->a;

    return wait > UINT64_MAX - odometer->t0_ns ? UINT64_MAX : odometer->t0_ns + (uint64_t)wait;
}

uint32_t admi_odometer_shift(uint64_t capacity, uint64_t refill, uint64_t per_ns, uint64_t scale)
{
    uint32_t for_capacity = LEVEL_BITS - bit_length(product_up_to(capacity, scale, ADM_MAX_AMOUNT));
    uint64_t most = product_up_to(refill, scale, per_ns);

    if (most == 0)
        return for_capacity;
    uint32_t for_rate = bit_length(per_ns / most) - 1; /* the largest s with most * 2^s <= per_ns */

    return for_rate < for_capacity ? for_rate : for_capacity;
}

/* Numbers out of range are the caller's bug; they are cut so that no product leaves its range all
 * the same. */
static void set_numbers(struct adm_odometer *odometer, uint64_t capacity, uint64_t refill,
                        uint64_t per_ns)
{
    odometer->per_ns = per_ns > 0 ? per_ns : 1;
    odometer->capacity = capacity < ADM_MAX_AMOUNT ? capacity : ADM_MAX_AMOUNT;
    odometer->refill = refill < odometer->per_ns ? refill : odometer->per_ns;
    odometer->a = odometer->refill << odometer->shift;
    odometer->b = odometer->per_ns;
}

void admi_odometer_init_on(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                           uint64_t refill, uint64_t per_ns, uint32_t shift)
{
    *odometer = (struct adm_odometer){ .t0_ns = now_ns, .floor = ADM_BUCKET_FRESH, .shift = shift };
    set_numbers(odometer, capacity, refill, per_ns);
}

void adm_odometer_init(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                       uint64_t refill, uint64_t per_ns, uint64_t grid_scale)
{
    admi_odometer_init_on(
        odometer, now_ns, capacity, refill, per_ns,
        admi_odometer_shift(capacity, refill, per_ns > 0 ? per_ns : 1, grid_scale));
}

/* A reading or word on another grid, seen from the new zero: what lies `level` below the reading
 * stays below by as much, rounded down, so that no bucket gains. */
static int64_t on_grid(int64_t reading, int64_t word, uint32_t from_shift, uint32_t to_shift)
{
    admi_i128 level = (admi_i128)reading - word;

    if (to_shift >= from_shift)
        return word_of(-(level * ((admi_i128)1 << (to_shift - from_shift))));
    return word_of(-floor_shift_right(level, from_shift - to_shift));
}

uint32_t admi_odometer_change_on(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                                 uint64_t refill, uint64_t per_ns, uint32_t finest)
{
    const struct adm_odometer before = *odometer;
    int64_t reading = admi_odometer_reading(odometer, now_ns);
    uint32_t regrid = before.shift > finest || before.shift + GRID_SLACK < finest;

    if (!regrid && capacity == before.capacity && refill == before.refill &&
        per_ns == before.per_ns)
        return 0; /* no new segment: each one rounds once */
    if (capacity > before.capacity)
        odometer->floor = larger(before.floor, reading - capacity_units(&before));
    if (now_ns > before.t0_ns)
        odometer->t0_ns = now_ns;
    odometer->v0 = reading;
    if (regrid) {
        odometer->shift = finest;
        odometer->v0 = 0;
        if (odometer->floor != ADM_BUCKET_FRESH)
            odometer->floor = on_grid(reading, odometer->floor, before.shift, finest);
    }
    set_numbers(odometer, capacity, refill, per_ns);
    if (odometer->floor <= odometer->v0 - capacity_units(odometer))
        odometer->floor =
            ADM_BUCKET_FRESH; /* spent; and it must not come back when the grid moves */
    return regrid;
}

uint32_t adm_odometer_change(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                             uint64_t refill, uint64_t per_ns, uint64_t grid_scale)
{
    return admi_odometer_change_on(
        odometer, now_ns, capacity, refill, per_ns,
        admi_odometer_shift(capacity, refill, per_ns > 0 ? per_ns : 1, grid_scale));
}

int admi_odometer_floor_is_spent(const struct adm_odometer *odometer, uint64_t now_ns)
{
    return odometer->floor <= admi_odometer_reading(odometer, now_ns) - capacity_units(odometer);
}

int64_t adm_bucket_rescale(const struct adm_odometer *before, const struct adm_odometer *after,
                           uint64_t now_ns, int64_t empty)
{
    int64_t reading = admi_odometer_reading(before, now_ns);

    if (empty <= reading - capacity_units(before))
        return ADM_BUCKET_FRESH; /* it was full: from here on the floor speaks for it */
    return on_grid(reading, empty, before->shift, after->shift);
}

/* ---- a bucket ---- */

int64_t adm_bucket_level(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty)
{
    int64_t reading = admi_odometer_reading(odometer, now_ns);

    return (int64_t)floor_shift_right((admi_i128)reading - empty_at(odometer, reading, empty),
                                      odometer->shift);
}

uint32_t adm_bucket_is_full(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty)
{
    int64_t reading = admi_odometer_reading(odometer, now_ns);

    return empty_at(odometer, reading, empty) == reading - capacity_units(odometer);
}

int admi_bucket_is_as_new(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty)
{
    return empty <= larger(odometer->floor,
                           admi_odometer_reading(odometer, now_ns) - capacity_units(odometer));
}

uint64_t admi_bucket_as_new_at(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty)
{
    if (admi_bucket_is_as_new(odometer, now_ns, empty))
        return now_ns;
    return reaches_at(odometer, (admi_i128)empty + capacity_units(odometer));
}

uint64_t adm_bucket_passes_at(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty,
                              uint64_t amount)
{
    int64_t reading = admi_odometer_reading(odometer, now_ns);
    int64_t from = empty_at(odometer, reading, empty);

    if (amount == 0)
        return now_ns;
    if (amount > odometer->capacity)
        return UINT64_MAX;
    admi_i128 target = (admi_i128)from + (int64_t)(amount << odometer->shift);

    return target <= reading ? now_ns : reaches_at(odometer, target);
}

uint32_t adm_bucket_take(const struct adm_odometer *odometer, uint64_t now_ns, int64_t *empty,
                         uint64_t amount)
{
    if (amount == 0)
        return 1;
    if (amount > odometer->capacity)
        return 0;
    int64_t reading = admi_odometer_reading(odometer, now_ns);
    int64_t from = empty_at(odometer, reading, *empty);
    int64_t units = (int64_t)(amount << odometer->shift);

    if (units > reading - from)
        return 0;
    *empty = from + units;
    return 1;
}

void adm_bucket_charge(const struct adm_odometer *odometer, uint64_t now_ns, int64_t *empty,
                       uint64_t amount)
{
    if (amount == 0)
        return;
    admi_i128 from = empty_at(odometer, admi_odometer_reading(odometer, now_ns), *empty);

    *empty = word_of(from + (admi_i128)((admi_u128)amount << odometer->shift));
}

void adm_bucket_refund(const struct adm_odometer *odometer, uint64_t now_ns, int64_t *empty,
                       uint64_t amount)
{
    if (amount == 0)
        return;
    int64_t reading = admi_odometer_reading(odometer, now_ns);
    admi_i128 from = empty_at(odometer, reading, *empty);
    admi_i128 back = from - (admi_i128)((admi_u128)amount << odometer->shift);
    int64_t full = reading - capacity_units(odometer);

    *empty = back > full ? (int64_t)back : full;
}
