/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the binding has in C, because a call from Python costs more than what it would do there: a
 * request from one packed string, and a gate with its backend in one go.
 */
#ifndef ADMIT_PYTHON_SHIM_H
#define ADMIT_PYTHON_SHIM_H

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/testing.h>

/*
 * A gate that may be closed while other threads are inside a call on it: the last one that leaves
 * frees it. An open queue counts as somebody inside.
 */
struct shim_gate;
#define SHIM_CLOSED 10000 /* negated: a status outside the bands of the library */

struct adm_gate *shim_enter(struct shim_gate *handle); /* NULL: closed */
void shim_leave(struct shim_gate *handle);
void shim_gate_close(struct shim_gate *handle); /* again is harmless */
/* When no call can be running any more. The gate is freed unless this is a forked child. */
void shim_gate_free(struct shim_gate *handle);

/*
 * Descriptors as bytes: for each the length of the key (one byte), of the value (two bytes, low
 * first), key, value. Built by the binding, so that a wrong length is a bug of it and not of its
 * user; checked all the same. The answer of each way to ask: so many bytes of *decision say all of
 * it (more than 0), or a status (less than 0).
 */
int32_t shim_admit(struct shim_gate *handle, const char *packed, uint64_t packed_bytes,
                   const struct adm_amount *amounts, uint64_t amount_count, uint64_t cost,
                   const char *attempt, uint64_t attempt_bytes, uint64_t deadline_ns,
                   struct adm_decision *decision);

/* A request that owns its bytes, with interned keys: for calls that repeat. */
struct shim_request {
    struct adm_request request;
    struct adm_descriptor descriptors[16];
    struct adm_amount amounts[16];
    char bytes[5168];         /* 16 times 3, a key of 64 and a value of 256 */
    struct shim_gate *handle; /* that it was prepared for; the caller keeps it */
};

/* The descriptors and amounts of out become those given; keys are interned in the gate. */
adm_status shim_prepare(struct shim_gate *handle, const char *packed, uint64_t packed_bytes,
                        const struct adm_amount *amounts, uint64_t amount_count, uint64_t cost,
                        struct shim_request *out);
/* As few arguments as there can be: each costs as much as what is done with it. */
int32_t shim_ask(const struct shim_request *request, struct adm_decision *decision);
int32_t shim_admit_prepared(const struct shim_request *request, const char *attempt,
                            uint64_t attempt_bytes, uint64_t deadline_ns,
                            struct adm_decision *decision);

/* An outcome (0 and more) or a status (less than 0). */
int32_t shim_release(struct shim_gate *handle, uint64_t high, uint64_t low, uint32_t result);
int32_t shim_renew(struct shim_gate *handle, uint64_t high, uint64_t low);
int32_t shim_divert(struct shim_gate *handle, uint64_t high, uint64_t low);
int32_t shim_settle(struct shim_gate *handle, uint64_t high, uint64_t low,
                    const struct adm_amount *totals, uint64_t total_count, uint32_t final_all);

/* One way for all operations without waiting; the ticket, or 0: done, *out_outcome is written. */
enum { SHIM_RELEASE, SHIM_RENEW, SHIM_DIVERT, SHIM_SETTLE };
adm_status shim_start(struct adm_gate *gate, struct adm_queue *queue, int32_t operation,
                      uint64_t high, uint64_t low, uint32_t result, const struct adm_amount *totals,
                      uint64_t total_count, uint32_t final_all, uint32_t *out_outcome,
                      uint64_t *out_ticket);
adm_status shim_admit_start(struct adm_gate *gate, struct adm_queue *queue, const char *packed,
                            uint64_t packed_bytes, const struct adm_amount *amounts,
                            uint64_t amount_count, uint64_t cost, const char *attempt,
                            uint64_t attempt_bytes, uint64_t deadline_ns,
                            struct adm_decision *decision, uint64_t *out_ticket);
adm_status shim_admit_prepared_start(struct adm_gate *gate, struct adm_queue *queue,
                                     const struct shim_request *request, const char *attempt,
                                     uint64_t attempt_bytes, uint64_t deadline_ns,
                                     struct adm_decision *decision, uint64_t *out_ticket);

struct shim_gate_options {
    struct adm_policy *policy;
    const char *name_space;
    uint64_t name_space_bytes;
    uint64_t partitions_max, leases_max, attempts_max, classes_max;
    uint64_t backend_timeout_ns, signals_max, pending_max;
    int32_t events; /* 1: admit_python_on_event is called, with self */
    void *self;
    struct adm_fake_clock *clock; /* NULL: the clocks of the system */
    uint64_t seed;                /* not 0: ids repeat; for tests */
    int32_t deferring;            /* 1: the backend answers late; for tests */
    uint64_t polls_min, polls_max, never_permille;
};

adm_status shim_gate_new(const struct shim_gate_options *options,
                         void (*on_event)(void *self, const struct adm_event *event),
                         struct shim_gate **out);

/*
 * For measurements: nanoseconds of processor time for all rounds, 0: it failed. A loop of admit and
 * release; or of admit alone, whose leases are kept and released afterwards.
 */
uint64_t shim_measure_pairs(const struct shim_request *request, uint64_t rounds);
uint64_t shim_measure_decisions(const struct shim_request *request, uint64_t rounds);

#endif
