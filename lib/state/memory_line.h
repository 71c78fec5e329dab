/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines: where the memory backend keeps buckets, counts and quotas. A line is one cache line of
 * four words for one partition of one group of rules, which are asked for together and so fetched
 * together. An index finds it by its key. Fixed arrays, addressed by distance; every change is a
 * transaction (state/transaction.h), and a look-up writes nothing.
 *
 * What is found is a guess until a transaction has a reference in it: a value that is as new may be
 * taken away at any moment, alone or with its line, and be another's. The generation of the line
 * says so, and the steps of who found it name it. Who holds something there, or pins the line, need
 * not: the value stays, though the generation may change because of the one beside it.
 */
#ifndef ADMI_MEMORY_LINE_H
#define ADMI_MEMORY_LINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "state/memory_word.h"
#include "state/table.h"

/* Which word is whose is in the tags. The key of line i is keys[i], only looked at to make sure. */
struct memory_line {
    _Atomic uint64_t values[MEMORY_LINE_VALUES];
    _Atomic uint64_t tags[MEMORY_LINE_VALUES / 2]; /* two in each: MEMORY_TAG_* */
    _Atomic uint64_t hold;                         /* MEMORY_HOLD_* */
    /* No word of transactions: written while nobody can find the line. The group of its partition,
     * changed by which line of the partition it is; in the list of free lines, the next one + 1. */
    _Atomic uint64_t group;
};

struct memory_key {
    _Atomic uint64_t parts[8]; /* a struct admi_key */
};

/* Two buckets are possible for each key, by its hash. A line that goes in changes the versions of
 * both, in the same transaction: so no two threads make a line for the same key. */
#define MEMORY_BUCKET_ENTRIES 7u

struct memory_bucket {
    _Atomic uint64_t version;
    _Atomic uint64_t entries[MEMORY_BUCKET_ENTRIES]; /* MEMORY_ENTRY_*; 0: none */
};

struct memory_lines {
    uint64_t count;
    uint64_t bucket_mask;
    uint64_t lines_at, keys_at, buckets_at; /* distances from this struct, in bytes */
    _Atomic uint64_t used;                  /* word of transactions: lines in the index */
    _Atomic uint64_t fresh;                 /* lines that were ever handed out */
    _Atomic uint64_t free;                  /* those that came back: changes 32 | line + 1, 32 */
    _Atomic uint64_t hand;                  /* where to look for one to evict */
    uint8_t secret[ADMI_SECRET_BYTES];
};

/* A partition of a group of rules. */
struct memory_partition {
    uint64_t group;
    struct admi_key key;
};

/* Where a value was, when somebody looked. */
struct memory_place {
    uint32_t line;  /* + 1; 0: there is none */
    uint32_t value; /* 0 … 3 */
    uint32_t word;  /* of the value */
    uint32_t hold;  /* word of the line's hold */
    uint32_t tag;   /* whole, with its grid */
    uint32_t reserved0;
    uint64_t generation;
};

/* Is what a tag means by a value as new, so that it may be forgotten? And where are the values with
 * this tag counted (optional; NULL: nowhere)? One is added before there is one more, and taken off
 * after there is one less: the count is never too low. */
struct memory_idle {
    bool (*is_idle)(void *self, uint32_t tag, uint64_t value);
    /* Optional. Is it better to keep what is idle, as long as there is room elsewhere? */
    bool (*is_lasting)(void *self, uint32_t tag);
    _Atomic uint64_t *(*counter_of)(void *self, uint32_t tag);
    void *self;
    const uint32_t *keep; /* values (words) that are not to go, though they are as new */
    uint32_t keep_count;
};

static inline bool admi_memory_is_kept(const struct memory_idle *idle, uint32_t word)
{
    for (uint32_t i = 0; i < idle->keep_count; i++) {
        if (idle->keep[i] == word)
            return true;
    }
    return false;
}

/* A line that somebody is about to put into the index, in a transaction of his own. */
#define MEMORY_NEW_LINE_STEPS 4u

struct memory_new_line {
    uint64_t line; /* + 1 */
    uint64_t hold;
    struct admi_txn_step steps[MEMORY_NEW_LINE_STEPS];
};

/* For so many lines, up to 2^27, with arrays at *end and behind (a distance from the struct), in
 * memory that is zero. Touches only the struct, which lies at a multiple of 64 bytes. */
void admi_memory_lines_init(struct memory_lines *lines, uint64_t count,
                            const uint8_t secret[ADMI_SECRET_BYTES], uint64_t *end);

/* The value with the id of this tag. False: there was none, at a moment since the call began; with
 * out->line 0, the partition had no line at all. Writes nothing. */
bool admi_memory_value_find(struct memory_lines *lines, const struct admi_txn *txn,
                            const struct memory_partition *partition, uint32_t tag,
                            struct memory_place *out);

/* The value with this tag in a line that was found for another. False: it is not in this line, or
 * the line is another's by now. */
bool admi_memory_value_in(const struct memory_lines *lines, const struct admi_txn *txn,
                          uint32_t tag, struct memory_place *inout);

/* Find it or make it, as new. The context is claimed, txn->guarded is set.
 * Returns ADMI_TXN_DONE; ADMI_TXN_REFUSED there is no room: no line is idle, or the partition has
 * MEMORY_ORDINALS_MAX lines of other values already; ADMI_TXN_STALE. */
int admi_memory_value_make(struct memory_lines *lines, struct admi_txn *txn,
                           const struct memory_partition *partition, uint32_t tag,
                           const struct memory_idle *idle, struct memory_place *out);

/* A line for a partition that has none, up to the steps that put it into the index. The owner may
 * write what is beside the line meanwhile.
 * Returns ADMI_TXN_DONE; ADMI_TXN_LOST there is one, or something was in the way: look again;
 * ADMI_TXN_REFUSED there is no room; ADMI_TXN_STALE. */
int admi_memory_new_line(struct memory_lines *lines, struct admi_txn *txn,
                         const struct memory_partition *partition, uint32_t ordinal, uint32_t tag,
                         const struct memory_idle *idle, struct memory_new_line *out);
/* It did not go in. */
void admi_memory_new_line_drop(struct memory_lines *lines, const struct memory_new_line *drop);

/* Forget a line (0 … count - 1) if all its values are idle and nobody pins it.
 * Returns ADMI_TXN_DONE; ADMI_TXN_REFUSED it is needed, or free already; ADMI_TXN_STALE. */
int admi_memory_line_evict(struct memory_lines *lines, struct admi_txn *txn, uint64_t line,
                           const struct memory_idle *idle);

static inline struct memory_key *admi_memory_key(const struct memory_lines *lines, uint64_t i)
{
    return (struct memory_key *)admi_array(lines, lines->keys_at) + i;
}

static inline struct memory_line *admi_memory_line(const struct memory_lines *lines, uint64_t i)
{
    return (struct memory_line *)admi_array(lines, lines->lines_at) + i;
}

#endif
