/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixed-size bookkeeping by index: a chained hash table that hands out places in its owner's array
 * of records, and a heap of places by deadline. Places count from 1; 0 is none, so that zeroed
 * memory is empty. Nothing grows.
 *
 * There are no pointers: an array is found by its distance from the struct that owns it, in the
 * same block of memory. So a block may be mapped at another address in each process.
 */
#ifndef ADMI_TABLE_H
#define ADMI_TABLE_H

#include <stdint.h>

#include <admit/admit.h>

#include "base/hash.h"

#define ADMI_PLACES_MAX UINT64_C(0x40000000)

/* The array at a distance from its owner. */
static inline void *admi_array(const void *owner, uint64_t distance)
{
    return (void *)((uintptr_t)owner + (uintptr_t)distance);
}

/* Reserve count records at *end, a distance from the struct that will own them. Moves *end. */
static inline uint64_t admi_array_reserve(uint64_t *end, uint64_t count, uint64_t bytes)
{
    uint64_t at = (*end + 7) / 8 * 8; /* no record and no owner needs more */

    *end = at + count * bytes;
    return at;
}

struct admi_table {
    uint64_t heads_at; /* uint32_t: the first place of each chain */
    uint64_t next_at;  /* uint32_t: of the chain; of the free places as well */
    uint64_t mask;
    uint32_t max;
    uint32_t high; /* places ever handed out: memory beyond was never touched */
    uint32_t free;
    uint32_t used;
};

/* An empty table of at most ADMI_PLACES_MAX places whose arrays lie at *end and behind, in memory
 * that is zero or will be. Touches nothing but the struct. */
void admi_table_init(struct admi_table *table, uint64_t places, uint64_t *end);

/* The places whose hash may be this one: for (at = first; at != 0; at = next of at). */
uint32_t admi_table_first(const struct admi_table *table, uint64_t hash);
static inline uint32_t admi_table_next(const struct admi_table *table, uint32_t place)
{
    return ((const uint32_t *)admi_array(table, table->next_at))[place];
}

/* A place for a new record, or 0: full. */
uint32_t admi_table_add(struct admi_table *table, uint64_t hash);
void admi_table_remove(struct admi_table *table, uint64_t hash, uint32_t place);

struct admi_heap {
    uint64_t order_at;    /* uint32_t: places; [1] is due first */
    uint64_t position_at; /* uint32_t: of each place in order; 0: absent */
    uint64_t due_at;      /* uint64_t: of each place */
    uint32_t count;
    uint32_t max;
};

/* As admi_table_init(). */
void admi_heap_init(struct admi_heap *heap, uint64_t places, uint64_t *end);

/* The place that is due first and its time; 0: none. */
uint32_t admi_heap_first(const struct admi_heap *heap, uint64_t *out_due);
/* Insert a place, or move it. */
void admi_heap_set(struct admi_heap *heap, uint32_t place, uint64_t due);
void admi_heap_remove(struct admi_heap *heap, uint32_t place);

/* A byte string of any length in 64 bytes: up to 62 bytes exactly, a longer one as a keyed 256-bit
 * digest and its first 28 bytes. Two are equal when all 64 bytes are. */
struct admi_key {
    uint8_t bytes[64];
};

void admi_key_make(struct admi_key *key, struct adm_bytes text,
                   const uint8_t secrets[2 * ADMI_SECRET_BYTES]);
int admi_key_equal(const struct admi_key *a, const struct admi_key *b);
/* of: what the key belongs to; two keys are looked up apart when it differs. */
uint64_t admi_key_hash(const struct admi_key *key, uint64_t of,
                       const uint8_t secret[ADMI_SECRET_BYTES]);

#endif
