/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's token buckets: an odometer per class, read in units of 2^-shift token, at most one
 * unit per nanosecond; a bucket is the reading at which it was, or will be, empty. A bucket without
 * a record is full.
 */
#include "model_state.h"

#include <limits.h>

static int bits(uint64_t value)
{
    int n = 0;
    for (; value != 0; value >>= 1)
        n++;
    return n;
}

static model_wide smaller(model_wide a, model_wide b)
{
    return a < b ? a : b;
}

static model_wide larger(model_wide a, model_wide b)
{
    return a > b ? a : b;
}

/* Division that rounds down, also below zero. b > 0. */
static model_wide divide_down(model_wide a, model_wide b)
{
    model_wide q = a / b;
    return q * b > a ? q - 1 : q;
}

static uint64_t scaled_capacity(uint64_t capacity, uint64_t replicas)
{
    return (uint64_t)smaller((model_wide)capacity * replicas, ADM_MAX_AMOUNT);
}

/* At most one token per nanosecond. */
static uint64_t scaled_refill(uint64_t refill, uint64_t per_ns, uint64_t replicas)
{
    return (uint64_t)smaller((model_wide)refill * replicas, per_ns);
}

/* The finest grid on which the odometer runs at most one unit per nanosecond and a full bucket
 * stays below 2^59. */
int model_best_shift(uint64_t capacity, uint64_t refill, uint64_t per_ns, uint64_t scale)
{
    int by_capacity = 59 - bits(scaled_capacity(capacity, scale));
    uint64_t rate = scaled_refill(refill, per_ns, scale);
    if (rate == 0)
        return by_capacity;
    int by_rate = 0;
    while (((model_wide)rate << (by_rate + 1)) <= (model_wide)per_ns)
        by_rate++;
    return by_rate < by_capacity ? by_rate : by_capacity;
}

static model_wide saturated(model_wide reading)
{
    return smaller(reading, MODEL_WORD_MAX);
}

model_wide model_reading(const struct model_odometer *o, model_wide now)
{
    model_wide a = (model_wide)o->refill << o->shift;
    return saturated(o->v0 + divide_down((now - o->t0) * a, (model_wide)o->per_ns));
}

static model_wide full(const struct model_odometer *o)
{
    return (model_wide)o->capacity << o->shift;
}

void model_odometer_start(struct model_odometer *o, model_wide now, const struct model_numbers *n,
                          bool per_replica, uint64_t replicas)
{
    *o = (struct model_odometer){ 0 };
    o->t0 = now;
    o->capacity = scaled_capacity(n->capacity, replicas);
    o->refill = scaled_refill(n->refill, n->per_ns, replicas);
    o->per_ns = n->per_ns;
    o->shift = model_best_shift(n->capacity, n->refill, n->per_ns, per_replica ? 1024 : 1);
}

/* A level in units of one grid, floored to units of another. */
static model_wide regrid(model_wide level, int from, int to)
{
    if (to >= from)
        return level * ((model_wide)1 << (to - from));
    return divide_down(level, (model_wide)1 << (from - to));
}

/* Moves every word of the class to another grid at this moment: levels stay, floored. After a
 * lowered capacity, words that are full under it are dropped: no record is full. */
static void rescale(struct model *model, int class, int shift)
{
    struct model_odometer *o = &model->classes[class].odometer;
    model_wide v = model_reading(o, model->seen);
    for (int i = 0; i < model->bucket_count;) {
        struct model_bucket *b = &model->buckets[i];
        if (b->class == class && b->empty <= v - full(o)) {
            *b = model->buckets[--model->bucket_count];
            continue;
        }
        if (b->class == class)
            b->empty = saturated(-regrid(v - b->empty, o->shift, shift));
        i++;
    }
    if (o->has_floor && o->floor <= v - full(o))
        o->has_floor = false;
    else if (o->has_floor)
        o->floor = saturated(-regrid(v - o->floor, o->shift, shift));
    o->v0 = 0;
    o->shift = shift;
}

/* Other numbers from now on: time before counts at the old rate, a raise adds no tokens. */
void model_class_change(struct model *model, int class, const struct model_numbers *n,
                        bool per_replica, uint64_t replicas)
{
    struct model_class *c = &model->classes[class];
    struct model_odometer *o = &c->odometer;
    uint64_t capacity = scaled_capacity(n->capacity, replicas);
    uint64_t refill = scaled_refill(n->refill, n->per_ns, replicas);
    c->numbers = *n;
    int best = model_best_shift(n->capacity, n->refill, n->per_ns, per_replica ? 1024 : 1);
    bool other_grid = o->shift > best || o->shift < best - 6;
    if (capacity == o->capacity && refill == o->refill && n->per_ns == o->per_ns && !other_grid)
        return;
    model_wide now = model->seen;
    model_wide v = model_reading(o, now);
    if (capacity > o->capacity && !planted(model, PLANT_RAISE_ADDS)) {
        model_wide low = v - full(o);
        o->floor = o->has_floor ? larger(o->floor, low) : low;
        o->has_floor = true;
    }
    if (planted(model, PLANT_LOST_FRACTION))
        v = divide_down(v, (model_wide)1 << o->shift) << o->shift;
    o->capacity =
        capacity; /* before the grid changes, so that full means full under the new numbers */
    o->v0 = v;
    o->t0 = now;
    if (other_grid)
        rescale(model, class, best);
    o->refill = refill;
    o->per_ns = n->per_ns;
}

/* The reading at which this bucket is empty: never fuller than capacity, nor than the floor left
 * by a raise. */
model_wide model_empty_at(const struct model *model, int class, const struct model_bucket *bucket)
{
    const struct model_odometer *o = &model->classes[class].odometer;
    model_wide empty = model_reading(o, model->seen) - full(o);
    if (planted(model, PLANT_OVERFULL))
        empty -= (model_wide)1 << o->shift;
    if (o->has_floor)
        empty = larger(empty, o->floor);
    if (bucket != NULL)
        empty = larger(empty, bucket->empty);
    return empty;
}

struct model_bucket *model_bucket_find(struct model *model, int class, int partition)
{
    for (int i = 0; i < model->bucket_count; i++)
        if (model->buckets[i].class == class && model->buckets[i].partition == partition)
            return &model->buckets[i];
    return NULL;
}

/* Whether the bucket is anything but one that was never seen. */
bool model_bucket_differs(const struct model *model, const struct model_bucket *bucket)
{
    return bucket->empty > model_empty_at(model, bucket->class, NULL);
}

static void put(struct model *model, int class, int partition, model_wide empty)
{
    struct model_bucket *b = model_bucket_find(model, class, partition);
    if (b == NULL) {
        b = MODEL_APPEND(model->buckets, model->bucket_count, model->bucket_room);
        b->class = class;
        b->partition = partition;
    }
    b->empty = saturated(empty);
}

/* May leave a debt. */
void model_bucket_charge(struct model *model, int class, int partition, uint64_t tokens)
{
    model_wide empty = model_empty_at(model, class, model_bucket_find(model, class, partition));
    put(model, class, partition,
        empty + ((model_wide)tokens << model->classes[class].odometer.shift));
}

/* Never above capacity. */
void model_bucket_refund(struct model *model, int class, int partition, uint64_t tokens)
{
    const struct model_odometer *o = &model->classes[class].odometer;
    model_wide empty = model_empty_at(model, class, model_bucket_find(model, class, partition));
    empty -= (model_wide)tokens << o->shift;
    put(model, class, partition, larger(empty, model_reading(o, model->seen) - full(o)));
}

model_wide model_reaches(const struct model_odometer *o, model_wide reading)
{
    if (o->refill == 0 || reading > MODEL_WORD_MAX)
        return -1;
    model_wide a = (model_wide)o->refill << o->shift;
    return o->t0 - divide_down(-(reading - o->v0) * (model_wide)o->per_ns, a);
}
