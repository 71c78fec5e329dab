/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's own parts, private to lib/gate: what a gate holds, what a thread holds, what a call
 * holds. */
#ifndef ADMI_GATE_H
#define ADMI_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <admit/admit.h>
#include <admit/metrics.h>

#include "base/abi.h"
#include "base/fork_guard.h"
#include "base/random.h"
#include "base/threads.h"
#include "gate/names.h"
#include "gate/signals.h"
#include "observe/observe.h"
#include "policy/ruleset.h"
#include "state/bind.h"
#include "state/operation.h"

#define ADMI_KEPT_VERSIONS      8u
#define ADMI_DEFAULT_TTL_NS     (600u * ADM_SECOND)
#define ADMI_ATTEMPT_LIFE_NS    (60u * ADM_SECOND)
#define ADMI_HEALTH_AGE_NS      (15u * ADM_SECOND)
#define ADMI_DEFAULT_TIMEOUT_NS (20u * ADM_MILLISECOND)
#define ADMI_DEFAULT_PENDING    4096u
#define ADMI_DEFAULT_SIGNALS    65536u
#define ADMI_MAX_JUDGED         128u
#define ADMI_MAX_METERS         18u

/* ---- time (clock.c) ---- */

/* One reading of the host's clocks, and what it means to this gate. */
struct admi_moment {
    struct adm_time now; /* effective: never runs back */
    uint64_t
        caller_mono_ns; /* the caller's own time on the effective scale: delays count from it */
    uint64_t caller_wall_ns;
};

struct admi_gate_clock {
    struct adm_clock source;
    bool is_system; /* it keeps its own promises: see admi_gate_clock_now() */
    _Atomic uint64_t seen_mono_ns;
    _Atomic uint64_t seen_wall_ns;
    _Atomic uint64_t offset_ns;   /* added to the source: what was lost in large steps back */
    _Atomic uint64_t max_skew_ns; /* of the policy in force */
    pthread_mutex_t step;         /* held while the offset moves */
};

adm_status admi_gate_clock_init(struct admi_gate_clock *clock, const struct adm_clock *source);
void admi_gate_clock_fini(struct admi_gate_clock *clock);
struct admi_moment admi_gate_clock_read(struct admi_gate_clock *clock);

/* What a thread knows of the system's wall clock: how far it is ahead of the monotonic one. */
struct admi_wall {
    uint64_t ahead_ns, caller_ahead_ns; /* modulo 2^64: effective, and as it was read */
    uint64_t until_ns;                  /* on the monotonic clock: then it is read again */
    uint64_t last_ns;                   /* effective, as it was last told */
};

/* The same for a thread that reads often. Of the system's clocks only the monotonic one is read
 * each time, and the wall clock once a millisecond: it names days and months, and dates events. No
 * word is shared but at that reading, because the kernel's monotonic clock runs back for nobody. */
struct admi_moment admi_gate_clock_now(struct admi_gate_clock *clock, struct admi_wall *wall);

/* ---- the policy in force (snapshot.c) ---- */

/* A rule as this gate runs it: its names in the backend and its limit table. */
struct admi_bound_rule {
    struct adm_term term; /* with the rule's own numbers; amount and partition are the request's */
    /* Plain: enforced, with state and an amount, and nothing of the request but that changes the
     * term. Then also: how long a lease lives for it (0: as others wish), whether it keeps one. */
    uint64_t lease_ttl_ns;
    bool plain, keeps_lease;
    uint32_t split; /* the same for (nearly all) rules with state and the same partition keys */
    uint32_t metrics_slot;
    uint32_t table_slot;                /* value slot of the table's key */
    uint64_t *class_handles;            /* the rule's own, then one per override */
    const struct admi_table *table;     /* NULL: none in force */
    struct admi_numbers *entry_numbers; /* per table entry: the rule's, overlaid */
    uint64_t *entry_handles;
};

/* One policy version with one set of limit tables: immutable, so that one decision sees one of
 * each. */
struct admi_snapshot {
    _Atomic uint32_t references;
    uint32_t slot_count; /* value slots: the policy's keys, then the tables' own */
    const struct adm_allocator *allocator;
    struct adm_policy *policy;
    struct admi_bound_rule *rules;
    uint64_t *handles; /* one array for all the handles above */
    uint64_t handle_count;
    struct admi_numbers *entry_numbers;
    uint64_t entry_count;
    uint64_t sequence;             /* of the class set in the backend */
    _Atomic uint32_t *slot_of_key; /* by id of adm_gate_key(): 2 more than the slot; 0: not looked
                                      up yet, for keys may be interned later than this is built */
    uint32_t labels_id;
    struct adm_bytes *table_keys; /* slots from policy->key_count on */
    struct admi_table **tables;   /* all tables, those of rules that this policy lacks included */
    uint64_t table_count;
    char table_version[72];
    /* Unit index of the policy -> unit of the gate. */
    uint32_t unit_of_policy[ADM_UNIT_FIRST_DECLARED + ADMI_MAX_UNITS];
    struct admi_snapshot *next_retired;

    /* What put_classes was given, for as long as the backend may read it. */
    struct adm_class_set set;
    struct adm_class *classes;
    uint8_t *class_bytes;
    uint64_t class_byte_count;
    uint64_t *places; /* of each class's handle among handles */
    struct adm_replica_scope *scopes;
    uint64_t scope_room;
    uint8_t *scope_bytes;
    uint64_t scope_byte_room;
};

/* ---- a thread's own (thread.c) ---- */

struct admi_call;

struct admi_gate_thread {
    struct admi_thread *self;               /* these two are looked up for each call, never kept: */
    struct admi_counters *counters;         /* blocks of an ended thread are handed on one by one */
    _Atomic(struct admi_snapshot *) hazard; /* what this thread is reading */
    struct adm_bytes *values;               /* by value slot; all empty between calls */
    uint64_t value_count;
    struct admi_call *spare; /* saves the pool's lock */
    struct admi_wall wall;
    struct admi_random_stock random;
};

/* The calling thread's; NULL: no memory. */
struct admi_gate_thread *admi_gate_thread(struct adm_gate *gate);
struct admi_gate_thread *admi_gate_thread_of(struct adm_gate *gate, struct admi_thread *self);
/* Room for the values of a snapshot. False: no memory. */
bool admi_thread_reserve(struct adm_gate *gate, struct admi_gate_thread *thread, uint64_t slots);
adm_status admi_thread_random(struct adm_gate *gate, struct admi_gate_thread *thread,
                              struct adm_id *out);

/* Between these two the snapshot cannot be freed. Nothing in between may wait. */
struct admi_snapshot *admi_snapshot_enter(struct adm_gate *gate, struct admi_gate_thread *thread);
void admi_snapshot_leave(struct admi_gate_thread *thread);
void admi_snapshot_unref(struct admi_snapshot *snapshot);

/* The snapshot in force for a call. Borrowed while the hazard protects it; when the backend defers,
 * the call may leave this thread, and takes a reference. */
void admi_call_borrow_snapshot(struct admi_call *call, struct admi_gate_thread *thread);
void admi_call_return_snapshot(struct admi_call *call, struct admi_gate_thread *thread);

/* ---- a call (call.c) ---- */

/* What one matching rule came to, in policy order. */
struct admi_judged {
    uint32_t rule;
    uint32_t reason; /* ADM_REASON_ALLOWED or why not; of a term: once it is answered */
    uint32_t term;   /* index of its term, or ADMI_NO_TERM */
    uint32_t metrics_slot;
    bool shadow;
    bool has_amount;
    uint64_t amount; /* asked of it */
};

#define ADMI_NO_TERM UINT32_MAX

/* What prepare (prepare.c) found out, and what decide (decide.c) makes a decision of. */
struct admi_question {
    struct admi_moment moment;
    uint32_t early;            /* ADM_REASON_* decided without state, or ADM_REASON_COUNT */
    bool any_enforced;         /* an enforced rule matched */
    bool denied_stateless;     /* a cap or pressure rule denies */
    bool any_stateless_reason; /* … or a shadow rule would, or had no room for its term */
    bool cap_denied;
    bool any_shadow; /* a shadow rule was judged */
    uint32_t judged_count;
    uint32_t denied_beyond; /* denials of rules that judged has no room for */
    struct admi_judged judged[ADMI_MAX_JUDGED];
    uint32_t missing_count; /* rules that miss a descriptor or amount, in policy order */
    uint32_t missing[ADMI_MAX_JUDGED];
    uint32_t series;
};

enum admi_call_state {
    ADMI_CALL_IDLE,
    ADMI_CALL_STARTED,         /* the backend has the op */
    ADMI_CALL_DONE,            /* completed, its owner has not looked yet */
    ADMI_CALL_ORPHAN,          /* nobody waits any more; what it is granted is given back */
    ADMI_CALL_ORPHAN_SETTLING, /* giving back: first the charges … */
    ADMI_CALL_ORPHAN_GIVING,   /* … then what is held */
    ADMI_CALL_RESEND           /* a release that the backend could not take; tried again */
};

struct admi_call {
    struct adm_op op;
    struct adm_gate *gate;
    struct adm_queue *queue; /* NULL: a thread waits, or nobody */
    struct admi_call *next;  /* in the pool, the queue's list, the resend list, or away */
    struct admi_call *previous;
    struct admi_snapshot *snapshot; /* borrowed or referenced: admi_call_borrow_snapshot() */
    _Atomic uint32_t state;
    bool pinned;    /* given up, but still being read */
    bool came_back; /* … and it completed meanwhile */
    bool timed;     /* its time with the backend has been counted */
    uint64_t ticket;
    void *user;
    struct adm_decision *decision;
    uint64_t started_ns;
    uint64_t resend_at_ns;

    struct admi_question question;
    struct adm_take take;
    struct adm_term terms[2 * ADM_MAX_TERMS];
    struct adm_meter meters[ADMI_MAX_METERS];
    uint8_t attempt[1 + ADM_MAX_KEY_BYTES + ADM_MAX_ATTEMPT_BYTES]; /* with the namespace */
    uint8_t memo[ADM_MEMO_BYTES];
    uint8_t memo_out[ADM_MEMO_BYTES];
    struct adm_settlement settle;
    struct adm_sweep sweep;
    struct adm_amount totals[ADMI_MAX_METERS];
    uint8_t *keys; /* partition keys of the terms */
    uint64_t key_bytes;
    uint64_t keys_used;

    /* The request: the caller's while it waits, a copy of ours if the backend may keep the op. */
    struct adm_request request;
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    struct adm_amount amounts[ADM_MAX_AMOUNTS];
    uint8_t copied[ADM_MAX_DESCRIPTORS * (ADM_MAX_KEY_BYTES + ADM_MAX_VALUE_BYTES) +
                   ADM_MAX_ATTEMPT_BYTES];
};

/* A call with its op cleared, or NULL: pending_max calls are away, or no memory. */
struct admi_call *admi_call_get(struct adm_gate *gate, struct admi_gate_thread *thread,
                                adm_status *out_status);
void admi_call_put(struct adm_gate *gate, struct admi_gate_thread *thread, struct admi_call *call);
/* Own what the request points to. */
void admi_call_keep_request(struct admi_call *call);

/* Hand the op to the backend. True: it is complete already. */
bool admi_call_start(struct admi_call *call, struct admi_gate_thread *thread,
                     const struct admi_moment *moment, uint64_t timeout_ns);
/* Wait for a started call, up to its deadline. False: given up, as by admi_call_give_up(). */
bool admi_call_wait(struct admi_call *call);
/* Count how long a call was away that has just come back. */
void admi_call_time(const struct admi_call *call);
/* Nobody waits for a started call any more. True: it may still be read until admi_call_let_go(),
 * which takes it back if the backend still can; else what it is granted is given back. False: it
 * has just come back. */
bool admi_call_give_up(struct admi_call *call);
void admi_call_let_go(struct admi_call *call);
/* A call that came back and that nobody wants: give back what it was granted. It is not the
 * caller's any more. */
void admi_call_give_back(struct admi_call *call);
/* A release that the backend could not take: reserve room (false: there is none), then keep it and
 * try again; it is not the caller's any more. */
bool admi_call_reserve_resend(struct adm_gate *gate);
void admi_call_resend(struct admi_call *call);
/* A call whose op a backend that never defers has not completed: out of use until the gate's end,
 * for the backend may still write to it. Its snapshot is its own. */
void admi_call_lose(struct admi_call *call);
bool admi_call_worth_resending(const struct admi_call *call);
/* Poll the backend and pass completed ops to their owners. */
void admi_gate_progress(struct adm_gate *gate);
void admi_call_pool_free(struct adm_gate *gate);

/* ---- the gate ---- */

struct adm_gate {
    struct adm_allocator allocator;
    struct adm_random random;
    struct admi_gate_clock clock;
    struct admi_bound backend;
    struct admi_fork_guard fork_guard;
    struct admi_names keys;
    struct admi_names units;
    struct admi_signals *signals;
    struct admi_observe *observe;
    struct admi_threads *threads;
    void (*on_event)(void *self, const struct adm_event *event);
    void *on_event_self;
    uint64_t backend_timeout_ns;
    uint64_t pending_max;
    uint8_t name_space[ADM_MAX_KEY_BYTES];
    uint32_t name_space_length;
    uint8_t secret[192]; /* of decision ids */

    _Atomic(struct admi_snapshot *) snapshot;
    pthread_mutex_t publish; /* held through a publish; guards what follows */
    struct adm_policy *kept[ADMI_KEPT_VERSIONS];
    uint32_t kept_count;
    struct admi_snapshot *retired; /* replaced, but a thread may still be reading them */
    struct admi_call *healing;     /* puts the classes in force again, and nobody waits for it */

    struct admi_op_home home;
    pthread_mutex_t calls; /* guards what follows, and every queue's list */
    struct admi_call *pool;
    struct admi_call *resend;
    struct admi_call *away; /* the backend has their ops */
    uint64_t calls_away;
    _Atomic uint64_t resend_count;
};

/* prepare.c: what to ask the backend, from the request and the policy in force. */
enum admi_purpose { ADMI_FOR_ADMIT, ADMI_FOR_EXPLAIN };
adm_status admi_request_check(struct adm_gate *gate, const struct adm_request *request);
adm_status admi_prepare(struct admi_call *call, struct admi_gate_thread *thread,
                        enum admi_purpose purpose, bool *out_needs_state);
/* In a forked child: nothing is looked at, only what a denial needs. */
adm_status admi_prepare_denial(struct admi_call *call, struct admi_gate_thread *thread);
/* The numbers in force for a rule and these values; NULL: off. Writes the class handle and the
 * origin (0: the rule's own, i: override i, UINT32_MAX: a table entry, then *out_entry). */
const struct admi_numbers *admi_pick(const struct admi_snapshot *snapshot, uint32_t rule,
                                     const struct adm_bytes *values, uint64_t *out_handle,
                                     uint32_t *out_origin, uint64_t *out_entry);
/* Bind the descriptors to value slots; admi_values_clear afterwards, always. */
adm_status admi_values_set(struct adm_gate *gate, struct admi_gate_thread *thread,
                           const struct admi_snapshot *snapshot,
                           const struct adm_descriptor *descriptors, uint64_t count,
                           uint32_t slots[ADM_MAX_DESCRIPTORS], uint32_t *out_slot_count);
void admi_values_clear(struct admi_gate_thread *thread, const uint32_t *slots, uint32_t count);
uint64_t admi_limit_in_force(const struct admi_rule *rule, const struct admi_numbers *numbers,
                             uint64_t replicas);
uint64_t admi_partition_bytes(const struct admi_snapshot *snapshot, const struct admi_rule *rule,
                              const struct adm_bytes *values);
struct adm_bytes admi_partition_write(const struct admi_snapshot *snapshot,
                                      const struct admi_rule *rule, const struct adm_bytes *values,
                                      uint8_t *to);
/* Fill bound_rule.term of all rules, once the handles are known. */
void admi_terms_prepare(struct admi_snapshot *snapshot);
void admi_term_fill(const struct admi_snapshot *snapshot, const struct admi_rule *rule,
                    const struct admi_numbers *numbers, uint64_t handle,
                    const struct adm_bytes *values, uint64_t replicas, uint64_t amount,
                    struct adm_term *out);

/* admit.c: the whole of a blocking admit or explain. */
typedef void (*admi_look_fn)(void *self, const struct admi_call *call,
                             struct admi_gate_thread *thread);
adm_status admi_ask(struct adm_gate *gate, struct admi_thread *self,
                    const struct adm_request *request, enum admi_purpose purpose, admi_look_fn look,
                    void *look_self, struct adm_decision *decision);

/* decide.c: from the answer of the backend to a decision, counters and the event. */
adm_status admi_decide(struct admi_call *call, struct admi_gate_thread *thread,
                       adm_status backend_status, enum admi_purpose purpose,
                       struct adm_decision *decision);
uint64_t admi_retry_after_ms(const struct admi_call *call, const struct adm_term *term);
uint32_t admi_reason_of_term(const struct adm_term *term);
struct adm_id admi_decision_id(const struct adm_gate *gate, struct adm_id of);

/* publish.c */
adm_status admi_gate_publish_first(struct adm_gate *gate, struct adm_policy *policy);
/* The backend has other classes than the snapshot that was read: wait for a running publish, or put
 * them again. */
adm_status admi_gate_heal(struct adm_gate *gate, const struct admi_snapshot *stale);
/* The same a step at a time, without waiting, for queues. True: another snapshot is in force. */
bool admi_gate_heal_by_steps(struct adm_gate *gate, const struct admi_snapshot *stale);
/* With gate->publish held, or nobody else there; before the backend is closed. */
void admi_gate_stop_healing(struct adm_gate *gate);
void admi_gate_publish_fini(struct adm_gate *gate);

/* snapshot.c */
bool admi_rule_has_state(const struct admi_rule *rule);
void admi_snapshot_free_classes(struct admi_snapshot *snapshot);
uint32_t admi_snapshot_slot(const struct admi_snapshot *snapshot, struct adm_bytes key);
adm_status admi_snapshot_build(struct adm_gate *gate, struct adm_policy *policy,
                               struct admi_table *const *tables, uint64_t table_count,
                               const char *table_version, struct admi_snapshot **out);
/* classes.c: put the snapshot's classes in force in the backend, at the gate's time; fills the
 * handles. */
adm_status admi_snapshot_put_classes(struct adm_gate *gate, struct admi_snapshot *snapshot);
/* In two steps, under the skew in force: *out_call is the started call (complete, or away), and has
 * a reference to the snapshot; the end puts the call back, unless it failed to complete. */
adm_status admi_snapshot_begin_put(struct adm_gate *gate, struct admi_snapshot *snapshot,
                                   const struct admi_moment *moment, struct admi_call **out_call,
                                   bool *out_complete);
adm_status admi_snapshot_end_put(struct admi_call *call);
void admi_snapshot_retire(struct adm_gate *gate, struct admi_snapshot *old);

/* admit.c and lease.c: an op of a queue's ticket is complete. True: *inout says how it ended, and
 * the call is gone. False: it is on its way again, or must wait for a publish to end. */
bool admi_admit_resume(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out);
void admi_lease_resume(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out);
/* The deadline of a ticket has passed (the call is given up, see admi_call_give_up): how that ends.
 * The call is gone. */
void admi_admit_expire(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out);
void admi_lease_expire(struct admi_call *call, struct adm_completion *out);

/* queue.c. enter: the started call's completion goes to the queue; false: it has come back already.
 */
bool admi_queue_enter(struct adm_queue *queue, struct admi_call *call, void *user,
                      struct adm_decision *decision, uint64_t *out_ticket);
/* Called with gate->calls held. */
void admi_queue_take(struct adm_queue *queue, struct admi_call *call);
/* A completed call that cannot be finished yet: looked at again at the next adm_queue_next(). */
void admi_queue_put_back(struct adm_queue *queue, struct admi_call *call);

bool admi_call_reserve_keys(struct admi_call *call, uint64_t bytes);
adm_status admi_descriptors_check(const struct adm_gate *gate,
                                  const struct adm_descriptor *descriptors, uint64_t count);
bool admi_unit_exists(const struct adm_gate *gate, uint32_t unit);

/* Every entry begins here: a thread inside a backend call or an event callback may not come in (law
 * K9). */
#define ADMI_REFUSE_REENTRY()                                                                      \
    do {                                                                                           \
        if (admi_inside_callback())                                                                \
            return ADM_E_REENTRANT;                                                                \
    } while (0)

/* In a forked child of a gate on private state, its locks may be held by threads that the child
 * does not have: no call may come as far as one (law K10). */
static inline bool admi_gate_is_child(const struct adm_gate *gate)
{
    return admi_fork_guard_is_child(&gate->fork_guard) &&
           (gate->backend.info.capabilities & ADM_CAN_FORK) == 0;
}

#define ADMI_REFUSE_CHILD(gate)                                                                    \
    do {                                                                                           \
        if (admi_gate_is_child(gate))                                                              \
            return ADM_E_BACKEND_FORKED;                                                           \
    } while (0)

#endif
