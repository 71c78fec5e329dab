/* SPDX-License-Identifier: Apache-2.0 */
/*
 * May this work start? A gate answers that on the request path: adm_admit() checks every rule of
 * the policy that matches the request, all or nothing, and hands out one lease; adm_release() gives
 * it back, once. This header is for applications; policies are in policy.h, the backends for the
 * state in backends.h.
 *
 *      load a policy   adm_policy_load
 *      open a backend  adm_plain_open
 *      make a gate     adm_gate_new
 *      per request     adm_admit, the work, adm_release
 *      at the end      adm_gate_free
 *
 * It makes no authorization or billing decisions, and it never sees a request body.
 *
 * Caveats
 *  threads    a gate may be used by any number of threads; a queue by one thread at a time.
 *  fork       in a forked child, a gate on private state denies everything with state_unavailable,
 *             and its other calls return ADM_E_BACKEND_FORKED; free it only in the parent.
 *  time       the gate's time never runs back: a step back of at most max_clock_skew stands still,
 *             a larger one goes on from the largest time seen, without credit.
 *  ownership  structs are the caller's, objects belong to the library; views are read during the
 *             call only.
 *  signals    not async-signal-safe; threads must not be cancelled asynchronously inside a call.
 */
#ifndef ADMIT_ADMIT_H
#define ADMIT_ADMIT_H

#include <admit/backend.h>
#include <admit/policy.h>
#include <admit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adm_gate;
struct adm_queue;
struct adm_event; /* metrics.h */

/* ---- what a host may supply ---- */

/* Both clocks in one read. now must be callable from any thread and never fail. */
struct adm_clock {
    void *self;
    void (*now)(void *self, struct adm_time *out);
};

/* allocate returns zeroed memory aligned for any type, or NULL. Called at creation, publish and for
 * new threads; never by an admit or release that has run before on the same thread. */
struct adm_allocator {
    void *self;
    void *(*allocate)(void *self, uint64_t bytes);
    void (*release)(void *self, void *memory, uint64_t bytes);
};

/* Unpredictable bytes; 0 on success. */
struct adm_random {
    void *self;
    int32_t (*fill)(void *self, void *out, uint64_t bytes);
};

/* ---- a gate ---- */

struct adm_gate_options {
    uint32_t size;
    uint32_t flags;
    struct adm_policy *policy; /* the first policy; the gate takes its own reference */
    /* Part of every state identity, 0 … 64 bytes; gates that share a backend differ in it. */
    struct adm_bytes name_space;
    /* Bound, and from then on owned by the gate, also when adm_gate_new() fails. */
    struct adm_backend backend;
    struct adm_clock clock;         /* now NULL: CLOCK_MONOTONIC and CLOCK_REALTIME */
    struct adm_allocator allocator; /* allocate NULL: malloc */
    void *allocator_reserved;
    struct adm_random random; /* fill NULL: getrandom(2) */
    /* NULL: none. On the deciding thread; must be quick and must not call the gate. */
    void (*on_event)(void *self, const struct adm_event *event);
    void *on_event_self;
    uint64_t backend_timeout_ns; /* longest wait for a backend that defers; 0: 20 ms */
    uint64_t signals_max;        /* signal values kept; 0: 65536 */
    uint64_t pending_max;        /* operations waiting for a backend that defers; 0: 4096 */
    uint64_t reserved[4];
};

/**
 * Create a gate: bind the backend, publish the first policy.
 * Ownership the gate belongs to the caller, adm_gate_free(); the backend to the gate in every case.
 * Threads   any.
 * Blocking  up to backend_timeout_ns.
 * Errors    ADM_E_INVALID_ARGUMENT no policy, or no backend; ADM_E_BACKEND_ABI the table of
 *           operations cannot be used; ADM_E_POLICY_NO_ROOM; ADM_E_NOMEM; ADM_E_OS.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_new(const struct adm_gate_options *options,
                                             struct adm_gate **out);

/**
 * Close the backend and free the gate. No other call on it may be running or follow; queues are
 * closed first.
 * Threads   any.
 * Blocking  the backend's close.
 * Errors    none; NULL is a no-op.
 * Since     1.0
 */
ADM_API void adm_gate_free(struct adm_gate *gate);

/**
 * Intern a descriptor key, so that requests carry an id instead of bytes: once, at start. The same
 * key, the same id.
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_DESCRIPTORS length; ADM_E_LIMIT more than 1024 keys; ADM_E_NOMEM.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_key(struct adm_gate *gate, struct adm_bytes key,
                                             uint32_t *out);

/**
 * The id of a unit by name; built-in names give ADM_UNIT_*, others are interned.
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT not [a-z][a-z0-9_]{0,63}; ADM_E_LIMIT more than 64 units.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_unit(struct adm_gate *gate, struct adm_bytes name,
                                              uint32_t *out);

/* ---- the two verbs, and what else happens to a lease ---- */

/**
 * Ask for permission to start one unit of work.
 * request   in, read only during the call.
 * decision  inout, caller's memory, size set; written only when the result is ADM_OK.
 * Ownership an allowed decision may hold a lease; give it to adm_release() (again is harmless).
 * Threads   any.
 * Blocking  never with a backend that completes at once; else at most request->deadline_ns.
 * Errors    ADM_E_INVALID_COST, ADM_E_INVALID_DESCRIPTORS, ADM_E_INVALID_ATTEMPT fix the call;
 *           ADM_E_NOMEM nothing was taken. A backend failure is a decision (deny,
 *           state_unavailable), never a status.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_admit(struct adm_gate *gate, const struct adm_request *request,
                                          struct adm_decision *decision);

/**
 * Give a lease back: held units return now, completion is charged if it was not yet.
 * lease       decision.lease; none is legal and answers unknown.
 * result      ADM_RESULT_*, telemetry only.
 * out_outcome NULL, or receives released, already, late, unknown or queued.
 * Threads     any.
 * Blocking    as adm_admit.
 * Errors      ADM_E_INVALID_ARGUMENT; a status of the backend band: it may not have arrived, and
 *             then the lease ends by its time to live.
 * Since       1.0
 */
ADM_API adm_status adm_release(struct adm_gate *gate, struct adm_id lease, uint32_t result,
                               uint32_t *out_outcome);

/**
 * Keep a lease alive for another time to live, counted from now: renewed, or lost.
 * Threads   any.
 * Blocking  as adm_admit.
 * Errors    a status of the backend band: not known whether it lives on.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_renew(struct adm_gate *gate, struct adm_id lease,
                                          uint32_t *out_outcome);

/**
 * Report usage as totals so far, never as deltas: the same report twice changes nothing; a smaller
 * total that is not final never refunds.
 * totals      in, at most ADM_MAX_AMOUNTS, each unit once; ADM_AMOUNT_FINAL marks a unit as final.
 * final_all   1: this is the last report; units that it leaves out keep what they have.
 * out_outcome NULL, or receives settled, late, already, unknown or queued.
 * Threads     any.
 * Blocking    as adm_admit.
 * Errors      ADM_E_INVALID_COST a total out of range or a unit twice; a status of the backend
 *             band: it may not have arrived; report it again.
 * Since       1.0
 */
ADM_API adm_status adm_settle(struct adm_gate *gate, struct adm_id lease,
                              const struct adm_amount *totals, uint64_t total_count,
                              uint32_t final_all, uint32_t *out_outcome);

/**
 * The work left the local pool (a provider took it): held units return now, rate and quota charges
 * stay, output still to come is not charged. diverted, late, already or unknown.
 * Threads   any.
 * Blocking  as adm_admit.
 * Errors    as adm_renew.
 * Since     1.0
 */
ADM_API adm_status adm_divert(struct adm_gate *gate, struct adm_id lease, uint32_t *out_outcome);

/* ---- signals ---- */

/**
 * A measurement of one replica, for pressure rules and per-replica scaling. The name "healthy" with
 * value 1 makes a replica count for 15 s.
 * scope, replica, name 1 … 256 bytes each; at most 1024 replicas per scope.
 * value                taken to the nearest 10^-9, ties away from zero; NaN or infinite: missing
 *                      from now on.
 * Threads              any.
 * Blocking             never.
 * Errors               ADM_E_INVALID_ARGUMENT; ADM_E_LIMIT the bound of replicas or signals_max is
 *                      reached and nothing stale could be dropped; ADM_E_NOMEM.
 * Since                1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_signal(struct adm_gate *gate, struct adm_bytes scope,
                                                struct adm_bytes replica, struct adm_bytes name,
                                                double value);

/* ---- policies and limit tables in force ---- */

/**
 * Put a policy in force, atomically. State carries over: nothing refills, no lease is lost. The
 * last 8 are kept.
 * Ownership the gate takes its own reference.
 * Threads   any.
 * Blocking  up to backend_timeout_ns.
 * Errors    ADM_E_VERSION_CONFLICT; ADM_E_POLICY_NO_ROOM; ADM_E_POLICY_INVALID a limit table in
 *           force does not fit its rule any more; ADM_E_NOMEM; a status of the backend band. In
 *           every case the policy in force was not touched; after ADM_E_BACKEND_UNKNOWN (only
 *           from a backend that defers) publish again: until then requests may be denied
 *           state_unavailable.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_publish(struct adm_gate *gate, struct adm_policy *policy);

/**
 * Put a kept policy in force again.
 * Errors    ADM_E_UNKNOWN_VERSION, and those of adm_gate_publish().
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_rollback(struct adm_gate *gate, struct adm_bytes version);

enum {
    ADM_TABLE_REPLACE = 0,
    ADM_TABLE_PATCH = 1 /* entries given are set, null ones removed, others stay */
};

#define ADM_TABLE_YAML 256u /* added to one of these: the text is YAML; without it, JSON */

/**
 * Read a limit table document and put it in force for its rule, without a publish.
 * text      in, at most 16 MiB. out_diags as adm_policy_load().
 * mode      ADM_TABLE_REPLACE or ADM_TABLE_PATCH, and ADM_TABLE_YAML.
 * Threads   any.
 * Blocking  up to backend_timeout_ns.
 * Errors    ADM_E_POLICY_INVALID see the diagnostics; ADM_E_UNKNOWN_RULE; ADM_E_POLICY_NO_ROOM;
 *           ADM_E_NOMEM. The table in force was not touched.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_put_table(struct adm_gate *gate, struct adm_bytes text,
                                                   uint32_t mode, struct adm_diags **out_diags);

/**
 * The version of the policy in force. out: caller's memory, at least 65 bytes.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_version(struct adm_gate *gate, char *out,
                                                 uint64_t out_bytes);

/* ---- looking, without touching ---- */

/* What explain says of one rule. Strings and views are valid during the callback. */
struct adm_rule_report {
    uint32_t size;
    uint32_t matched; /* 1: the match holds */
    uint32_t off;     /* 1: matched, and an override or table entry switches it off */
    uint32_t shadow;  /* 1: mode is shadow */
    uint32_t denies;  /* 1: it would deny */
    uint32_t reason;  /* ADM_REASON_* when it denies */
    const char *rule;
    const char *type; /* "token_bucket" … */
    const char *unit;
    const char *origin;        /* whose numbers: "rule", "override 2", "table entry" */
    struct adm_bytes mismatch; /* not matched: the key of the first entry that does not hold */
    struct adm_bytes entry;    /* table entry: its key */
    uint32_t stateful;         /* 1: level is meaningful */
    uint32_t has_amount;       /* 1: amount is meaningful */
    int64_t level;             /* bucket: whole tokens, floored; else units held or used */
    uint64_t limit;            /* capacity or limit in force for this request, scaled */
    uint64_t amount;           /* asked for */
    uint64_t replicas;         /* per_replica: count now; else 1 */
    uint64_t retry_after_ms;
    uint64_t reserved[4];
};

typedef void (*adm_report_fn)(void *self, const struct adm_rule_report *report);

/**
 * What admit would answer, and why: report is called once per rule, in policy order. Charges
 * nothing.
 * decision  inout, as adm_admit; carries no lease.
 * Threads   any.
 * Blocking  as adm_admit.
 * Errors    as adm_admit. report must not call the gate.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_explain(struct adm_gate *gate,
                                            const struct adm_request *request, adm_report_fn report,
                                            void *report_self, struct adm_decision *decision);

/**
 * The level of a bucket (whole tokens, floored), or the units held or used, of one rule in the
 * partition that the descriptors name, whether or not the rule's match holds for them.
 * Errors    ADM_E_UNKNOWN_RULE; ADM_E_INVALID_DESCRIPTORS a partition key is missing;
 *           ADM_E_INVALID_ARGUMENT a rule without state, or off here; a status of the backend band.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_read(struct adm_gate *gate, struct adm_bytes rule,
                                              const struct adm_descriptor *descriptors,
                                              uint64_t descriptor_count, int64_t *out);

/**
 * What the backend says of itself. inout: size set.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_gate_describe(struct adm_gate *gate,
                                                  struct adm_backend_info *inout);

/**
 * Clean up in bounded steps, on a quiet gate; traffic does the same by itself. budget: records to
 * look at. out_done: NULL, or 1 when a whole round is finished.
 * Since     1.0
 */
ADM_API adm_status adm_gate_sweep(struct adm_gate *gate, uint64_t budget, uint32_t *out_done);

/* ---- event loops: the same path without waiting ---- */

/* With a backend that completes at once, adm_admit_start() answers at once and the queue stays
 * empty. With one that defers, add adm_queue_fd() to the loop; when it is readable, or when
 * adm_queue_deadline() has passed, call adm_queue_next() until it has nothing more. */

/* A finished ticket. */
struct adm_completion {
    uint32_t size;
    uint32_t outcome;  /* ADM_OUTCOME_* of release, renew, settle, divert */
    adm_status status; /* of the operation, as the blocking form would return it */
    uint32_t reserved0;
    uint64_t ticket;
    void *user;
    /* The one given to adm_admit_start(), now written if status is ADM_OK; else NULL. */
    struct adm_decision *decision;
    uint64_t reserved[3];
};

/**
 * One queue per event loop. Close it before the gate; tickets that are still open are cancelled as
 * by adm_ticket_cancel().
 * Errors    ADM_E_OS no descriptor; ADM_E_NOMEM.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_queue_open(struct adm_gate *gate, struct adm_queue **out);
ADM_API void adm_queue_close(struct adm_queue *queue);

/**
 * A descriptor that is readable when adm_queue_next() has something to do (never read or close it),
 * and the latest monotonic time at which to call it anyway (UINT64_MAX: no need).
 * Since     1.0
 */
ADM_API int32_t adm_queue_fd(const struct adm_queue *queue);
ADM_API uint64_t adm_queue_deadline(const struct adm_queue *queue);

/**
 * Ask without waiting. *out_ticket 0: decided, decision is written. Else: decision must stay valid
 * until the ticket completes.
 * Errors    as adm_admit. pending_max operations waiting already: deny, state_unavailable.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_admit_start(struct adm_gate *gate, struct adm_queue *queue,
                                                const struct adm_request *request,
                                                struct adm_decision *decision, void *user,
                                                uint64_t *out_ticket);

/**
 * The other operations without waiting. *out_ticket 0: done, *out_outcome is written.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_release_start(struct adm_gate *gate, struct adm_queue *queue,
                                                  struct adm_id lease, uint32_t result, void *user,
                                                  uint32_t *out_outcome, uint64_t *out_ticket);
ADM_API ADM_MUST_USE adm_status adm_renew_start(struct adm_gate *gate, struct adm_queue *queue,
                                                struct adm_id lease, void *user,
                                                uint32_t *out_outcome, uint64_t *out_ticket);
ADM_API ADM_MUST_USE adm_status adm_settle_start(struct adm_gate *gate, struct adm_queue *queue,
                                                 struct adm_id lease,
                                                 const struct adm_amount *totals,
                                                 uint64_t total_count, uint32_t final_all,
                                                 void *user, uint32_t *out_outcome,
                                                 uint64_t *out_ticket);
ADM_API ADM_MUST_USE adm_status adm_divert_start(struct adm_gate *gate, struct adm_queue *queue,
                                                 struct adm_id lease, void *user,
                                                 uint32_t *out_outcome, uint64_t *out_ticket);

/**
 * Take the next finished ticket: 1 and *inout filled, or 0. Polls the backend. Never blocks.
 * Since     1.0
 */
ADM_API uint32_t adm_queue_next(struct adm_queue *queue, struct adm_completion *inout);

/**
 * Give up a ticket. An admit that is granted all the same is given back: its lease is settled to
 * zero and released; with an attempt id it is kept, for whoever repeats the attempt, until the
 * lease ends. A release, settle or divert is carried out all the same.
 * Returns   1: cancelled. 0: no such ticket, or it has completed and waits in adm_queue_next().
 * Since     1.0
 */
ADM_API uint32_t adm_ticket_cancel(struct adm_queue *queue, uint64_t ticket);

#ifdef __cplusplus
}
#endif
#endif
