/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between Go and libadmit. A C struct may not hold pointers to Go memory, so a request crosses as
 * one flat block without pointers (struct admit_go_call); the views that the library wants are made
 * on the C side, for the time of the call.
 */
#ifndef ADMIT_GO_SHIM_H
#define ADMIT_GO_SHIM_H

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/policy.h>

#define ADMIT_GO_BYTES                                                                             \
    (ADM_MAX_DESCRIPTORS * (ADM_MAX_KEY_BYTES + ADM_MAX_VALUE_BYTES) + ADM_MAX_ATTEMPT_BYTES)

struct admit_go_descriptor {
    uint32_t key_id; /* 0: the key's bytes come before those of the value */
    uint32_t key_length;
    uint32_t value_length;
};

/* bytes: key, value, key, value ..., attempt. Go has checked that all of it fits. */
struct admit_go_call {
    uint64_t cost;
    uint64_t deadline_ns;
    uint32_t descriptor_count;
    uint32_t amount_count;
    uint32_t attempt_length;
    uint32_t reserved0;
    struct admit_go_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    struct adm_amount amounts[ADM_MAX_AMOUNTS]; /* of a request, or the totals of a settlement */
    struct adm_decision decision;
    uint8_t bytes[ADMIT_GO_BYTES];
};

struct admit_go_options {
    struct adm_policy *policy;
    struct adm_backend backend; /* ops NULL: the plain backend, of the sizes below */
    uint64_t partitions_max, leases_max, attempts_max, classes_max;
    struct admit_go_clock *clock; /* NULL: the system's */
    uint64_t events;              /* handle of the Go callback; 0: none */
    uint64_t backend_timeout_ns, signals_max, pending_max;
};

/* A clock that is moved by hand, from any thread. */
struct admit_go_clock;
struct admit_go_clock *admit_go_clock_new(uint64_t mono_ns, uint64_t wall_ns);
void admit_go_clock_free(struct admit_go_clock *clock);
void admit_go_clock_set(struct admit_go_clock *clock, uint64_t mono_ns, uint64_t wall_ns);

adm_status admit_go_policy_load(const uint8_t *text, uint64_t length, const char *file,
                                uint32_t flags, struct adm_policy **out,
                                struct adm_diags **out_diags);

adm_status admit_go_new(const struct admit_go_options *options, const uint8_t *name_space,
                        uint64_t length, struct adm_gate **out);

adm_status admit_go_key(struct adm_gate *gate, const uint8_t *key, uint64_t length, uint32_t *out);
adm_status admit_go_unit(struct adm_gate *gate, const uint8_t *name, uint64_t length,
                         uint32_t *out);

/* The answer is in call->decision. */
adm_status admit_go_admit(struct adm_gate *gate, struct admit_go_call *call);
adm_status admit_go_settle(struct adm_gate *gate, uint64_t high, uint64_t low,
                           const struct admit_go_call *call, uint32_t final_all,
                           uint32_t *out_outcome);
/* Status in the upper half, outcome in the lower: a pointer would make Go allocate. */
uint64_t admit_go_release(struct adm_gate *gate, uint64_t high, uint64_t low, uint32_t result);
adm_status admit_go_renew(struct adm_gate *gate, uint64_t high, uint64_t low,
                          uint32_t *out_outcome);
adm_status admit_go_divert(struct adm_gate *gate, uint64_t high, uint64_t low,
                           uint32_t *out_outcome);

/* One rule of an explanation. The strings follow each other in the text of the list. */
struct admit_go_report {
    uint32_t matched, off, shadow, denies, reason, stateful, has_amount;
    uint32_t lengths[6]; /* rule, type, unit, origin, mismatch, entry */
    int64_t level;
    uint64_t limit, amount, replicas, retry_after_ms;
};

struct admit_go_reports {
    struct admit_go_report *list;
    uint64_t count, room;
    char *text;
    uint64_t length, text_room;
    uint32_t failed; /* no memory */
};

adm_status admit_go_explain(struct adm_gate *gate, struct admit_go_call *call,
                            struct admit_go_reports *out);
void admit_go_reports_free(struct admit_go_reports *reports);

adm_status admit_go_signal(struct adm_gate *gate, const uint8_t *scope, uint64_t scope_length,
                           const uint8_t *replica, uint64_t replica_length, const uint8_t *name,
                           uint64_t name_length, double value);
adm_status admit_go_rollback(struct adm_gate *gate, const uint8_t *version, uint64_t length);
adm_status admit_go_put_table(struct adm_gate *gate, const uint8_t *text, uint64_t length,
                              uint32_t mode, struct adm_diags **out_diags);
adm_status admit_go_read(struct adm_gate *gate, const uint8_t *rule, uint64_t length,
                         const struct admit_go_call *call, int64_t *out);

/* For the benchmark: pairs of admit and release in a C loop; how many were denied or failed. */
uint64_t admit_go_pairs(struct adm_gate *gate, struct admit_go_call *call, uint64_t pairs);

#endif
