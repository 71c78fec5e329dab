/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's counters. Written by their own thread only, with plain loads and stores that are
 * atomic but not ordered; read by whoever folds. Rules and series come in chunks: the small ones
 * that every thread needs first are part of the block, the others are hung in when they are needed,
 * and stay.
 */
#ifndef ADMI_OBSERVE_COUNTERS_H
#define ADMI_OBSERVE_COUNTERS_H

#include <stdatomic.h>

#include "observe/histogram.h"
#include "observe/observe.h"

#define ADMI_RULES_PER_CHUNK 64u
#define ADMI_RULES_MAX                                                                             \
    65536u /* slots in a gate's life: four times the rules of the largest policy */
#define ADMI_RULE_CHUNKS      (ADMI_RULES_MAX / ADMI_RULES_PER_CHUNK)
#define ADMI_SERIES_PER_CHUNK 16u
#define ADMI_LABEL_SETS_MAX                                                                        \
    16u /* different lists of label names in a gate's life; later ones count unlabelled */
#define ADMI_COMBINATIONS_MAX                                                                      \
    1024u /* series of one list of label names, beside the one that is all "other" */
#define ADMI_SERIES_MAX    (ADMI_LABEL_SETS_MAX * (ADMI_COMBINATIONS_MAX + ADMI_SERIES_PER_CHUNK))
#define ADMI_SERIES_CHUNKS (ADMI_SERIES_MAX / ADMI_SERIES_PER_CHUNK)
#define ADMI_OPERATIONS    (ADM_OP_SWEEP + 1u)
#define ADMI_LINE          64u /* what two processors must not share */

/* The pads keep neighbours in the allocator's memory off the lines that the counters are on. */
struct admi_rule_chunk {
    char pad_before[ADMI_LINE];
    _Atomic uint64_t counts[ADMI_RULES_PER_CHUNK][ADMI_RULE_COUNTER_COUNT];
    char pad_after[ADMI_LINE];
};

enum { ADMI_SERIES_REQUESTS, ADMI_SERIES_COST, ADMI_SERIES_COUNTER_COUNT };

struct admi_series_chunk {
    char pad_before[ADMI_LINE];
    _Atomic uint64_t counts[ADMI_SERIES_PER_CHUNK][ADM_REASON_COUNT][ADMI_SERIES_COUNTER_COUNT];
    char pad_after[ADMI_LINE];
};

/* A block of the thread registry, which hands it out zeroed. */
struct admi_counters {
    const struct adm_allocator
        *allocator;   /* NULL until the first thread that has the block is ready to count */
    uint64_t samples; /* of the owner alone, never folded */
    _Atomic uint64_t gate[ADMI_COUNTER_COUNT];
    _Atomic uint64_t outcomes[ADMI_OPERATIONS][ADM_OUTCOME_COUNT];
    _Atomic uint64_t results[ADM_RESULT_COUNT];
    struct {
        _Atomic uint64_t sum;
        _Atomic uint64_t buckets[ADMI_HISTOGRAM_BUCKETS];
    } histograms[ADMI_HISTOGRAM_COUNT];
    /* Hung in by the owner, or for it by a publish; whoever comes second frees his. */
    _Atomic(struct admi_rule_chunk *) rules[ADMI_RULE_CHUNKS];
    _Atomic(struct admi_series_chunk *) series[ADMI_SERIES_CHUNKS];
};

/* Chunks for the slots and series that exist; what there is no memory for is tried again when it is
 * needed. */
void admi_counters_prepare(struct admi_counters *counters, uint32_t rules, uint32_t series);
/* Only what a block owns; the block itself is the registry's. */
void admi_counters_release(struct admi_counters *counters, const struct adm_allocator *allocator);

/* NULL: no memory, or number out of range. */
struct admi_rule_chunk *admi_counters_rule_chunk(struct admi_counters *counters, uint32_t slot);
struct admi_series_chunk *admi_counters_series_chunk(struct admi_counters *counters,
                                                     uint32_t series);

#endif
