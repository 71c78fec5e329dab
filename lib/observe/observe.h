/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gate counts: per-thread counters, folded when somebody reads them. The hot path adds to
 * memory that only its own thread writes; nothing here is shared between threads but at a publish
 * and at a read.
 */
#ifndef ADMI_OBSERVE_H
#define ADMI_OBSERVE_H

#include <admit/admit.h>
#include <admit/metrics.h>

struct admi_observe;
struct admi_thread;
struct admi_counters; /* this thread's; from admi_observe_local() */

#define ADMI_MAX_LABELS 4u
#define ADMI_NO_SERIES  0u /* the series without labels */

/* Of the gate as a whole. */
enum admi_counter {
    ADMI_UNMATCHED,        /* no enforced rule matched */
    ADMI_REPEATED,         /* attempt ids answered from memory */
    ADMI_INVALID,          /* calls refused as invalid */
    ADMI_BACKEND_ERRORS,   /* failing statuses of the backend */
    ADMI_BACKEND_RESULTS,  /* answers of the backend that were no answers */
    ADMI_BACKEND_TIMEOUTS, /* operations given up at their deadline */
    ADMI_BACKEND_STALE,    /* takes built again because the classes changed meanwhile */
    ADMI_QUEUED,           /* releases and settles that nobody waited for */
    ADMI_PUBLISHES,
    ADMI_ROLLBACKS,
    ADMI_TABLES,
    ADMI_POLICY_REFUSED,
    ADMI_SIGNALS,
    ADMI_COUNTER_COUNT
};

/* Of one rule. UNITS counters hold amounts of the rule's unit, saturating. */
enum admi_rule_counter {
    ADMI_RULE_ADMITTED,
    ADMI_RULE_ADMITTED_UNITS,
    ADMI_RULE_DENIED,
    ADMI_RULE_DENIED_UNITS,
    ADMI_RULE_SHADOW_DENIED,
    ADMI_RULE_SHADOW_UNKNOWN,
    ADMI_RULE_COUNTER_COUNT
};

enum admi_histogram {
    ADMI_RETRY_DELAY_MS, /* of denials that carry one */
    ADMI_ADMIT_NS,       /* of admits that waited for the backend, and of one in 64 of the others */
    ADMI_BACKEND_NS,     /* from start to completion, of operations that deferred */
    ADMI_HISTOGRAM_COUNT
};

adm_status admi_observe_new(const struct adm_allocator *allocator, struct admi_observe **out);
void admi_observe_free(struct admi_observe *observe);

/* Slots for the rules of a policy: the same id and unit get the same slot for the gate's life
 * (amounts of two units are never added up; requests are, when exposed). Rules that a later policy
 * drops keep their slot and counts. out_slots has room for count. After 65536 different rules a
 * new one gets a number that counts nothing, and the exposition tells how many such rules are in
 * force. Threads that have counted before get their memory for new slots here. Nothing changes on
 * ADM_E_NOMEM. */
adm_status admi_observe_rules(struct admi_observe *observe, const struct adm_bytes *ids,
                              const struct adm_bytes *units, uint64_t count, uint32_t *out_slots);

/* A number for a list of metric label names, at most ADMI_MAX_LABELS descriptor keys; the same
 * list, the same number. Number 0 is the empty list, and every list after the first 16 different
 * ones. Names are made legal and different from each other and from our own labels. Nothing
 * changes on ADM_E_NOMEM or ADM_E_INVALID_ARGUMENT. */
adm_status admi_observe_labels(struct admi_observe *observe, const struct adm_bytes *names,
                               uint32_t count, uint32_t *out_labels_id);

/* The series of one combination of label values, in the order of the names (length 0: absent).
 * Values beyond 64 per label fold into "other"; combinations beyond 1024 per list into the one
 * that is all "other". Takes a lock only when nobody has seen a value or combination before and
 * there is room for it: a bounded number of times, whatever clients send. */
uint32_t admi_observe_series(struct admi_observe *observe, struct admi_counters *counters,
                             uint32_t labels_id, const struct adm_bytes *values);

/* This thread's counters; NULL without memory: then count nothing. */
struct admi_counters *admi_observe_local(struct admi_observe *observe);
/* The same for whoever has asked for the thread already. */
struct admi_counters *admi_observe_local_of(struct admi_observe *observe, struct admi_thread *self);

/* All of these accept counters == NULL, and ignore numbers out of range. Wait-free. None allocates
 * for slots and series that existed at the thread's first call, for slots of a later publish, or
 * for a series that the thread has got from admi_observe_series(); without memory the count is
 * dropped. */
void admi_count(struct admi_counters *counters, enum admi_counter which, uint64_t by);
void admi_count_rule(struct admi_counters *counters, uint32_t slot, enum admi_rule_counter which,
                     uint64_t by);
/* A request and its amount, for several rules: which is ADMI_RULE_ADMITTED or ADMI_RULE_DENIED. */
struct admi_rule_amount {
    uint32_t slot;
    uint64_t amount;
};
void admi_count_rule_requests(struct admi_counters *counters, enum admi_rule_counter which,
                              const struct admi_rule_amount *rules, uint32_t count);
void admi_count_decision(struct admi_counters *counters, uint32_t series, uint32_t reason,
                         uint64_t cost);
/* ADM_OP_*, ADM_OUTCOME_* */
void admi_count_outcome(struct admi_counters *counters, uint32_t operation, uint32_t outcome);
void admi_count_result(struct admi_counters *counters, uint32_t result); /* ADM_RESULT_* */
void admi_count_histogram(struct admi_counters *counters, enum admi_histogram which,
                          uint64_t value);

/* 1 for one call in 64 of this thread: whether to pay for a second clock read. */
int admi_sample(struct admi_counters *counters);

/* Gauges that only the gate knows, given at exposition. Strings may be NULL, and hold any bytes. */
struct admi_gauges {
    const char *policy_version;
    const char *table_version;
    const char *backend;
    struct adm_backend_info info;
    uint64_t pending;
    uint64_t signals;
};

/* OpenMetrics 1.0 text of everything, as adm_gate_metrics(). With buffer NULL and buffer_bytes 0
 * it is ADM_OK and only tells the length; on ADM_E_BUFFER_TOO_SMALL the buffer is as it was.
 * Counters never go back from one call to the next. Errors also ADM_E_NOMEM, and
 * ADM_E_INVALID_ARGUMENT. */
adm_status admi_observe_expose(struct admi_observe *observe, const struct admi_gauges *gauges,
                               char *buffer, uint64_t buffer_bytes, uint64_t *out_length);

#endif
