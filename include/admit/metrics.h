/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gate counts, and one record per decision. For applications that expose metrics or keep an
 * audit log.
 *
 * Caveats: metrics carry rule ids and the policy's bounded metric_labels, never a consumer.
 * Consumer detail goes to events, through a callback on the deciding thread that must be quick and
 * must not call the gate.
 */
#ifndef ADMIT_METRICS_H
#define ADMIT_METRICS_H

#include <admit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adm_gate;

/**
 * All counters as OpenMetrics text (ends in "# EOF\n"), into the caller's buffer.
 * buffer     NULL with buffer_bytes 0 asks for the length only.
 * out_length bytes that the text has, written also on ADM_E_BUFFER_TOO_SMALL; the text may grow
 *            between two calls.
 * Threads    any.
 * Blocking   never longer than the folding of the counters.
 * Errors     ADM_E_BUFFER_TOO_SMALL; ADM_E_NOMEM.
 * Since      1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_metrics(struct adm_gate *gate, char *buffer,
                                                 uint64_t buffer_bytes, uint64_t *out_length);

enum {
    ADM_EVENT_DECISION = 1, /* every decision */
    ADM_EVENT_USAGE = 2,    /* every settle */
    ADM_EVENT_RELEASE = 3   /* every release and divert */
};

/* One structured record. Everything is valid during the callback only. Join by decision_id. */
struct adm_event {
    uint32_t size;
    uint32_t kind;
    struct adm_time now; /* effective time */
    struct adm_id decision_id;
    struct adm_id lease;
    const struct adm_decision *decision;      /* DECISION */
    const struct adm_descriptor *descriptors; /* DECISION: as given */
    uint64_t descriptor_count;
    const struct adm_amount *amounts; /* DECISION: as given; USAGE: totals */
    uint64_t amount_count;
    uint64_t cost;      /* DECISION */
    uint32_t outcome;   /* USAGE, RELEASE: ADM_OUTCOME_* */
    uint32_t result;    /* RELEASE: ADM_RESULT_* */
    uint32_t final_all; /* USAGE */
    uint32_t reserved0;
    uint64_t reserved[4];
};

#ifdef __cplusplus
}
#endif
#endif
