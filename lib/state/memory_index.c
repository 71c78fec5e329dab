/* SPDX-License-Identifier: Apache-2.0 */
/* The index of lines: memory_index.h. */
#include "state/memory_index.h"

/* ---- keys ---- */

/* Written out, so that compilers make one load of it: a look-up compares all eight parts. */
static uint64_t part_of(const struct admi_key *key, uint32_t i)
{
    const uint8_t *at = key->bytes + (size_t)8 * i;

    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
           (uint64_t)at[7] << 56;
}

void admi_memory_read_key(const struct memory_lines *lines, uint64_t line, struct admi_key *out)
{
    for (uint32_t i = 0; i < 64; i++)
        out->bytes[i] = (uint8_t)(atomic_load_explicit(&admi_memory_key(lines, line)->parts[i / 8],
                                                       memory_order_acquire) >>
                                  i % 8 * 8);
}

void admi_memory_write_key(const struct memory_lines *lines, uint64_t line,
                           const struct admi_key *key)
{
    for (uint32_t i = 0; i < 8; i++)
        atomic_store_explicit(&admi_memory_key(lines, line)->parts[i], part_of(key, i),
                              memory_order_release);
}

static bool is_key(const struct memory_key *at, const struct admi_key *key)
{
    uint64_t other = 0;

    for (uint32_t i = 0; i < 8; i++)
        other |= part_of(key, i) ^ atomic_load_explicit(&at->parts[i], memory_order_acquire);
    return other == 0;
}

/* ---- buckets ---- */

/* Of the bytes that are used, not of the whole key: most are short, and then this is a large part
 * of a look-up. What else belongs to the hash is nothing that callers choose. */
static uint64_t hash_of(const struct memory_lines *lines, const struct admi_key *key,
                        uint64_t group)
{
    uint64_t bytes = key->bytes[0] < sizeof key->bytes ? 1u + key->bytes[0] : sizeof key->bytes;
    uint64_t hash = admi_hash64(key->bytes, bytes, lines->secret) ^ group;

    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

struct memory_candidates admi_memory_candidates_of(const struct memory_lines *lines,
                                                   const struct admi_key *key, uint64_t group,
                                                   uint32_t ordinal)
{
    struct memory_bucket *buckets = (struct memory_bucket *)admi_array(lines, lines->buckets_at);
    struct memory_candidates where = { .group = group + ordinal * MEMORY_ORDINAL_STEP };
    uint64_t hash = hash_of(lines, key, where.group);
    uint64_t first = hash & lines->bucket_mask;
    uint64_t second = (hash * MEMORY_ORDINAL_STEP) >> 32 & lines->bucket_mask;

    if (second == first)
        second = first ^ 1;
    where.buckets[0] = &buckets[first];
    where.buckets[1] = &buckets[second];
    where.fingerprint = hash >> 40 << MEMORY_ENTRY_LINE_BITS;
    __builtin_prefetch(where.buckets[0]);
    __builtin_prefetch(where.buckets[1]);
    return where;
}

/* The line of an entry, if it is the key's. What is read of it belongs together, and it was in the
 * index at that moment, for the entry and the generation are the same before and after: a line that
 * somebody is just writing has a key as well, but is in no index. */
static bool is_line(const struct memory_lines *lines, const struct admi_txn *txn,
                    const struct memory_candidates *where, const struct admi_key *key,
                    const _Atomic uint64_t *entry, uint64_t value, struct memory_place *out)
{
    uint64_t i = MEMORY_ENTRY_LINE(value) - UINT64_C(1);

    if (i >= lines->count)
        return false;
    __builtin_prefetch(admi_memory_key(lines, i));
    for (;;) {
        struct memory_line *line = admi_memory_line(lines, i);
        uint64_t generation = MEMORY_HOLD_GENERATION(admi_memory_read(txn, &line->hold));

        /* Another key now: then the entry was changed first, and there was no line of this one. */
        if (atomic_load_explicit(&line->group, memory_order_acquire) != where->group ||
            !is_key(admi_memory_key(lines, i), key) || admi_memory_read(txn, entry) != value)
            return false;
        if (MEMORY_HOLD_GENERATION(admi_memory_read(txn, &line->hold)) != generation)
            continue; /* a word of it was taken away */
        *out = (struct memory_place){ .line = (uint32_t)i + 1,
                                      .hold = admi_memory_word(txn, &line->hold),
                                      .generation = generation };
        return true;
    }
}

bool admi_memory_line_find(const struct memory_lines *lines, const struct admi_txn *txn,
                           const struct memory_candidates *where, const struct admi_key *key,
                           struct memory_place *out)
{
    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t e = 0; e < MEMORY_BUCKET_ENTRIES; e++) {
            const _Atomic uint64_t *entry = &where->buckets[b]->entries[e];
            uint64_t value = admi_memory_read(txn, entry);

            if (value != 0 && (value ^ where->fingerprint) >> MEMORY_ENTRY_LINE_BITS == 0 &&
                is_line(lines, txn, where, key, entry, value, out))
                return true;
        }
    }
    return false;
}

_Atomic uint64_t *admi_memory_entry_of(const struct admi_txn *txn,
                                       const struct memory_candidates *where, uint64_t line)
{
    for (uint32_t i = 0; i < 2 * MEMORY_BUCKET_ENTRIES; i++) {
        _Atomic uint64_t *entry =
            &where->buckets[i / MEMORY_BUCKET_ENTRIES]->entries[i % MEMORY_BUCKET_ENTRIES];

        if (MEMORY_ENTRY_LINE(admi_memory_read(txn, entry)) == line + 1)
            return entry;
    }
    return NULL;
}

_Atomic uint64_t *admi_memory_empty_entry(const struct admi_txn *txn,
                                          const struct memory_candidates *where)
{
    _Atomic uint64_t *found[2] = { NULL, NULL };
    uint32_t room[2] = { 0, 0 };

    for (uint32_t i = 0; i < 2 * MEMORY_BUCKET_ENTRIES; i++) {
        uint32_t b = i / MEMORY_BUCKET_ENTRIES;
        _Atomic uint64_t *entry = &where->buckets[b]->entries[i % MEMORY_BUCKET_ENTRIES];

        if (admi_memory_read(txn, entry) != 0)
            continue;
        found[b] = entry;
        room[b]++;
    }
    return room[1] > room[0] ? found[1] : found[0];
}
