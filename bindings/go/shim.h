/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between Go and libadmit. A struct of C may not hold pointers to Go memory, so a request is
 * written into a block of C memory that is used again and again; its pointers lead to places inside
 * it and never change. Blocks and gates cross as numbers: Go would examine a pointer at each call.
 */
#ifndef ADMIT_GO_SHIM_H
#define ADMIT_GO_SHIM_H

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/policy.h>

struct admit_go_text {
    uint8_t key[ADM_MAX_KEY_BYTES];
    uint8_t value[ADM_MAX_VALUE_BYTES];
};

/* Go writes lengths, numbers and bytes; it has checked that all of it fits. */
struct admit_go_call {
    struct adm_gate *gate;
    struct adm_request request;
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    struct adm_amount amounts[ADM_MAX_AMOUNTS]; /* of a request, or the totals of a settlement */
    adm_status status;                          /* answers of admit_go_admit() */
    uint32_t reserved0;
    struct adm_decision decision;
    uint8_t attempt[ADM_MAX_ATTEMPT_BYTES];
    struct admit_go_text texts[ADM_MAX_DESCRIPTORS];
};

struct admit_go_call *admit_go_call_new(void);
void admit_go_call_free(struct admit_go_call *call);

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

/* call: a struct admit_go_call. The answer is in its status and decision: returning costs more. */
void admit_go_admit(uintptr_t call);
adm_status admit_go_settle(struct adm_gate *gate, uint64_t high, uint64_t low,
                           const struct admit_go_call *call, uint32_t final_all,
                           uint32_t *out_outcome);
/* gate: a struct adm_gate. Status in the upper half, outcome in the lower: a pointer would make Go
 * allocate. */
uint64_t admit_go_release(uintptr_t gate, uint64_t high, uint64_t low, uint32_t result);
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

adm_status admit_go_explain(struct admit_go_call *call, struct admit_go_reports *out);
void admit_go_reports_free(struct admit_go_reports *reports);

adm_status admit_go_signal(struct adm_gate *gate, const uint8_t *scope, uint64_t scope_length,
                           const uint8_t *replica, uint64_t replica_length, const uint8_t *name,
                           uint64_t name_length, double value);
adm_status admit_go_rollback(struct adm_gate *gate, const uint8_t *version, uint64_t length);
adm_status admit_go_put_table(struct adm_gate *gate, const uint8_t *text, uint64_t length,
                              uint32_t mode, struct adm_diags **out_diags);
adm_status admit_go_read(const uint8_t *rule, uint64_t length, const struct admit_go_call *call,
                         int64_t *out);

/* ---- for the benchmark ---- */

/* What a caller in C pays: the request is ready, the library is called in a loop. pairs: an allowed
 * decision is released, too. Returns how many failed; out_ns: what the loop took, without the way
 * here from Go. */
uint64_t admit_go_loop(struct admit_go_call *call, uint64_t count, uint32_t pairs,
                       uint64_t *out_ns);
/* Does nothing, out of line: a call of it is what every call of C costs. */
void admit_go_nothing(uintptr_t call);

#endif
