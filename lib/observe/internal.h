/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of lib/observe share: the object, label sets, folded totals. */
#ifndef ADMI_OBSERVE_INTERNAL_H
#define ADMI_OBSERVE_INTERNAL_H

#include "base/threads.h"
#include "observe/counters.h"
#include "observe/intern.h"

#define ADMI_VALUES_MAX 64u /* different values of one label; the others are "other" */

struct admi_label_set; /* series.c */

/* Everything that grows is added to under admi_threads_lock(threads), and read without. */
struct admi_observe {
    struct adm_allocator allocator;
    struct admi_threads *threads; /* one struct admi_counters per thread */
    struct admi_intern rules;     /* id, unit; the number is the slot */
    struct admi_intern series;    /* label text as it is exposed; number 0 is the empty one */
    struct admi_intern
        sets; /* label names, each behind its length; the number is that of the label set */
    _Atomic(struct admi_label_set *) label_sets[ADMI_LABEL_SETS_MAX];
    _Atomic uint32_t
        unmetered; /* rules of the last call of admi_observe_rules() for which there was no slot */
};

void admi_label_set_free(const struct adm_allocator *allocator, struct admi_label_set *set);

/* The sums over all threads. */
struct admi_totals {
    uint64_t gate[ADMI_COUNTER_COUNT];
    uint64_t outcomes[ADMI_OPERATIONS][ADM_OUTCOME_COUNT];
    uint64_t results[ADM_RESULT_COUNT];
    struct {
        uint64_t sum;
        uint64_t buckets[ADMI_HISTOGRAM_BUCKETS];
    } histograms[ADMI_HISTOGRAM_COUNT];
    uint32_t rule_count;
    uint32_t series_count;
    uint32_t labelled; /* 1: there is a list of label names */
    uint32_t unmetered;
    /* Requests and shadow verdicts are summed up in the first slot of a rule id, units in the slot
     * of id and unit. */
    uint64_t (*rules)[ADMI_RULE_COUNTER_COUNT];
    uint64_t (*series)[ADM_REASON_COUNT][ADMI_SERIES_COUNTER_COUNT];
};

/* *out is written in any case; give it to admi_totals_fini() in any case. */
adm_status admi_totals_fold(const struct admi_observe *observe, struct admi_totals *out);
void admi_totals_fini(const struct admi_observe *observe, struct admi_totals *totals);

#endif
