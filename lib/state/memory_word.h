/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in the words of the memory backend, 62 bits each, and the steps of its transactions: a
 * step is judged again at the moment at which it goes in, so that a word that others change all the
 * time does not make a whole transaction begin again.
 */
#ifndef ADMI_MEMORY_WORD_H
#define ADMI_MEMORY_WORD_H

#include <stdint.h>

#include <admit/backend.h>

/* ---- a step ---- */

enum memory_step_kind {
    MEMORY_STEP_SET,      /* it must be `expected` (or it is refused), and becomes `to` */
    MEMORY_STEP_TAKE,     /* bucket: passes if it holds `units` at `reading`, and loses them */
    MEMORY_STEP_LEVEL,    /* bucket: passes if it holds `units` at `reading`, and keeps them */
    MEMORY_STEP_CHARGE,   /* bucket: loses `units`, perhaps into debt */
    MEMORY_STEP_REFUND,   /* bucket: gains `units`, never above capacity */
    MEMORY_STEP_HOLD,     /* count: passes if `units` more are within `limit` */
    MEMORY_STEP_ADD,      /* count: `units` more */
    MEMORY_STEP_SUBTRACT, /* count: `units` less; refused when it has not so many */
    MEMORY_STEP_PIN,      /* hold word: `units` pins more; refused when the generation is another */
    MEMORY_STEP_UNPIN     /* hold word: `units` pins less; refused likewise */
};

struct admi_txn_step {
    uint32_t word; /* index */
    uint32_t kind; /* enum memory_step_kind */
    /* The line's hold word: with another generation the word has changed hands. 0: none. */
    uint32_t hold;
    uint32_t reserved0;
    uint64_t generation;
    uint64_t expected, to; /* SET */
    uint64_t units;        /* in units of the grid for a bucket */
    uint64_t limit;        /* HOLD */
    /* bucket: the odometer at the operation's time */
    int64_t reading;
    int64_t least; /* no bucket is empty earlier: neither fuller than full nor than a raise allows,
                      max(reading - capacity, floor) */
    int64_t full;  /* reading - capacity */
};

#include "state/transaction.h"

/* ---- bucket: the reading at which it is empty ---- */

/* 0: as new, ADM_BUCKET_FRESH. Else the reading plus 2^59: a full bucket is at most so far below
 * reading 0. So the largest reading is 2^62 - 2^59 - 1: 128 years of the fastest clock. */
#define MEMORY_BUCKET_BIAS (INT64_C(1) << 59)
#define MEMORY_READING_MAX ((INT64_C(1) << 62) - MEMORY_BUCKET_BIAS - 1)

static inline int64_t admi_memory_bucket(uint64_t value)
{
    return value == 0 ? ADM_BUCKET_FRESH : (int64_t)value - MEMORY_BUCKET_BIAS;
}

static inline uint64_t admi_memory_bucket_value(int64_t empty)
{
    if (empty <= -MEMORY_BUCKET_BIAS)
        return 0;
    if (empty > MEMORY_READING_MAX)
        empty = MEMORY_READING_MAX;
    return (uint64_t)(empty + MEMORY_BUCKET_BIAS);
}

/* ---- quota: window 18 | used 44 ---- */

#define MEMORY_QUOTA_USED_BITS 44u

/* ---- tags: whose word it is, two in one word ---- */

/* 31 bits: 0 nobody's; else the id of a class (bucket) or of a family (count, quota); and, of a
 * bucket, on which of two grids its value is. */
#define MEMORY_TAG_BITS    31u
#define MEMORY_TAG_GRID    (1u << 30)
#define MEMORY_TAG_NONE    0u
#define MEMORY_TAG_MASK    ((UINT64_C(1) << MEMORY_TAG_BITS) - 1)
#define MEMORY_TAG_ID(tag) ((tag) & ~MEMORY_TAG_GRID)

#define MEMORY_LINE_VALUES 4u

/* ---- hold: generation 32 | ordinal 6 | pins 24 ---- */

/* The generation changes when the line gets another key. Ordinal: which line of its partition, when
 * one is not enough. Pins: leases that may still charge it, and the line with the next ordinal. */
#define MEMORY_HOLD_PIN_BITS          24u
#define MEMORY_ORDINALS_MAX           64u
#define MEMORY_HOLD_PINS(value)       ((uint32_t)((value) & ((1u << MEMORY_HOLD_PIN_BITS) - 1)))
#define MEMORY_HOLD_ORDINAL(value)    ((uint32_t)((value) >> MEMORY_HOLD_PIN_BITS) & 63u)
#define MEMORY_HOLD_GENERATION(value) ((value) >> 30)
#define MEMORY_HOLD_OF(generation, ordinal)                                                        \
    ((((uint64_t)(generation)&UINT32_MAX) << 30) | (uint64_t)(ordinal) << MEMORY_HOLD_PIN_BITS)

/* ---- entry of an index: fingerprint 24 | line + 1, 32 ---- */

#define MEMORY_ENTRY_LINE_BITS   32u
#define MEMORY_ENTRY_LINE(value) ((uint32_t)(value))

/* ---- by index ---- */

static inline uint32_t admi_memory_word(const struct admi_txn *txn, const _Atomic uint64_t *word)
{
    return (uint32_t)(word - txn->words);
}

/* Where the others of a line are, from the word of one of its values: lines begin at multiples of
 * eight words. */
static inline uint32_t admi_memory_hold_of(uint32_t value)
{
    return (value & ~7u) + 6;
}

static inline uint32_t admi_memory_tags_of(uint32_t value)
{
    return (value & ~7u) + 4 + (value & 3u) / 2;
}

static inline uint64_t admi_memory_read(const struct admi_txn *txn, const _Atomic uint64_t *word)
{
    return admi_txn_read(txn, admi_memory_word(txn, word));
}

static inline uint32_t admi_memory_tag(uint64_t tags, uint32_t value)
{
    return (uint32_t)(tags >> (value % 2 * MEMORY_TAG_BITS) & MEMORY_TAG_MASK);
}

static inline uint64_t admi_memory_with_tag(uint64_t tags, uint32_t value, uint32_t tag)
{
    uint32_t shift = value % 2 * MEMORY_TAG_BITS;

    return (tags & ~(MEMORY_TAG_MASK << shift)) | (uint64_t)tag << shift;
}

/* ---- what the steps do ---- */

static inline int64_t admi_memory_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int admi_txn_test(const struct admi_txn_step *step, uint64_t value, uint64_t *changed)
{
    int64_t from;

    switch ((enum memory_step_kind)step->kind) {
    case MEMORY_STEP_SET:
        *changed = step->to;
        return value == step->expected;
    case MEMORY_STEP_TAKE:
        from = admi_memory_larger(admi_memory_bucket(value), step->least);
        *changed = admi_memory_bucket_value(from + (int64_t)step->units);
        return (int64_t)step->units <= step->reading - from;
    case MEMORY_STEP_LEVEL:
        from = admi_memory_larger(admi_memory_bucket(value), step->least);
        *changed = value;
        return (int64_t)step->units <= step->reading - from;
    case MEMORY_STEP_CHARGE:
        from = admi_memory_larger(admi_memory_bucket(value), step->least);
        *changed = admi_memory_bucket_value(from + (int64_t)step->units);
        return 1;
    case MEMORY_STEP_REFUND:
        from = admi_memory_larger(admi_memory_bucket(value), step->least);
        *changed =
            admi_memory_bucket_value(admi_memory_larger(from - (int64_t)step->units, step->full));
        return 1;
    case MEMORY_STEP_HOLD:
        *changed = value + step->units;
        return value + step->units <= step->limit;
    case MEMORY_STEP_ADD:
        *changed = value + step->units;
        return 1;
    case MEMORY_STEP_SUBTRACT:
        *changed = value - step->units;
        return value >= step->units;
    case MEMORY_STEP_PIN:
        *changed = value + step->units;
        return MEMORY_HOLD_GENERATION(value) == step->generation;
    case MEMORY_STEP_UNPIN:
        *changed = value - step->units;
        return MEMORY_HOLD_GENERATION(value) == step->generation &&
               MEMORY_HOLD_PINS(value) >= step->units;
    }
    return 0;
}

static inline int admi_txn_still(const struct admi_txn *txn, const struct admi_txn_step *step)
{
    return step->hold == 0 ||
           MEMORY_HOLD_GENERATION(admi_txn_read(txn, step->hold)) == step->generation;
}

#endif
