/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of lines: two buckets for each key, entries with a fingerprint. Reading it writes
 * nothing; entries change in transactions only (memory_line.c).
 */
#ifndef ADMI_MEMORY_INDEX_H
#define ADMI_MEMORY_INDEX_H

#include "state/memory_line.h"

/* From one line of a partition to the next its group changes by this. */
#define MEMORY_ORDINAL_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Where a key can be. */
struct memory_candidates {
    struct memory_bucket *buckets[2];
    uint64_t fingerprint; /* in its place in an entry */
    uint64_t group;       /* of this line of the partition */
};

/* Where a line of a partition can be. */
struct memory_candidates admi_memory_candidates_of(const struct memory_lines *lines,
                                                   const struct admi_key *key, uint64_t group,
                                                   uint32_t ordinal);

/* The line with this key (out: not yet which value). False: there was none, at a moment since the
 * call began. */
bool admi_memory_line_find(const struct memory_lines *lines, const struct admi_txn *txn,
                           const struct memory_candidates *where, const struct admi_key *key,
                           struct memory_place *out);

/* The entry that names a line; NULL: it is not in these buckets. */
_Atomic uint64_t *admi_memory_entry_of(const struct admi_txn *txn,
                                       const struct memory_candidates *where, uint64_t line);

/* An entry that is empty, in the bucket that has more of them; NULL: both are full. */
_Atomic uint64_t *admi_memory_empty_entry(const struct admi_txn *txn,
                                          const struct memory_candidates *where);

void admi_memory_read_key(const struct memory_lines *lines, uint64_t line, struct admi_key *out);
/* Of a line that nobody can find. */
void admi_memory_write_key(const struct memory_lines *lines, uint64_t line,
                           const struct admi_key *key);

#endif
