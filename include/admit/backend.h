/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between a gate and the place that keeps its state. For authors of backends; an
 * application only passes a struct adm_backend on. A backend knows classes, terms, leases and time,
 * and nothing of matching, policies, JSON or HTTP.
 *
 *      open by its author -> adm_gate_new binds -> (start | poll | cancel)* -> close, once, last
 *
 * An operation (struct adm_op) is an object, because a remote backend cannot answer at once: start
 * takes it; the backend completes it with adm_op_complete(), inside start or inside a later poll.
 * The operation and all that it points to stay valid and unchanged until then.
 *
 * Laws, each with a test of this name in the contract suite (admit/testing.h):
 *  K1 conservation    per partition: taken - given back - expired = held, at every quiet point.
 *  K2 all or nothing  a take charges every term or none; a denied take changes nothing.
 *  K3 idempotent give a second, stale or foreign give changes nothing; the outcome says which.
 *  K4 given time      no clock but the op's. Equal times are legal; a smaller one mints nothing.
 *  K5 bounded memory  a full table refuses; held units, debts, buckets that are not full again, a
 *                     quota of the current window and whatever an open lease may settle stay.
 *  K6 exact expiry    live while now < taken + ttl; an expired lease never causes a denial.
 *  K7 linearisable    operations take effect one after another, in the declared thread model.
 *  K8 clean failure   a failing status left the state as it was, or is ADM_E_BACKEND_UNKNOWN.
 *  K9 no call back    start, poll and cancel never call into a gate.
 *  K10 fork           a child's handle works, if describe says so, or fails; it never corrupts.
 *
 * Caveats: start, poll and cancel never block. A SERIAL backend is called by one thread at a time,
 * otherwise any thread may call at any time. No asynchronous cancellation of threads.
 */
#ifndef ADMIT_BACKEND_H
#define ADMIT_BACKEND_H

#include <admit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ADM_BACKEND_ABI 1u

/* ---- classes: what a policy asks the backend to keep ---- */

enum { ADM_KIND_BUCKET = 1, ADM_KIND_CONCURRENCY = 2, ADM_KIND_QUOTA = 3 };
enum { ADM_WINDOW_NONE = 0, ADM_WINDOW_DAY = 1, ADM_WINDOW_MONTH = 2 };

/* One rule with one set of numbers. Token buckets have their own state for each class (and for each
 * replica scope of it); concurrency and quota counts belong to the rule, whatever the class. */
struct adm_class {
    uint32_t kind;
    uint32_t flags;          /* ADM_CLASS_F_* */
    struct adm_bytes rule;   /* identity of the rule's state: same owner, same bytes, same state */
    struct adm_bytes origin; /* whose numbers of the rule: identity of the class in it */
    uint64_t capacity;       /* bucket: tokens, for one replica */
    uint64_t refill;         /* bucket: tokens per per_ns, for one replica */
    uint64_t per_ns;
    uint64_t max_partitions; /* of the rule; 0: only the backend's own bound */
    uint64_t handle;         /* out: the backend's name of the class, non-zero */
    uint64_t group;          /* rules of one group are asked for together, with the same partition:
                                a backend may keep their state side by side. A hint, 0: none; it
                                does not belong to the identity of the state */
};

#define ADM_CLASS_F_SHADOW      1u /* state in a region of its own, never touching the other */
#define ADM_CLASS_F_PER_REPLICA 2u /* numbers scale with the replica count of each term */

struct adm_replica_scope {
    struct adm_bytes scope;
    uint64_t replicas;
};

/* The complete set of classes in force for one owner, from this operation's time on. A class that
 * stays keeps its state: time before counts at the old rate, a raised capacity adds no tokens, a
 * lowered one clamps. A class that is new starts full. A class that is gone keeps its record until
 * all its buckets are full again. All of it or nothing (ADM_E_BACKEND_FULL). A class with numbers
 * out of range (capacity above 10^12, per_ns 0, more than one token per nanosecond) is refused:
 * ADM_E_BACKEND_RESULT, and the set in force stays. */
struct adm_class_set {
    struct adm_bytes owner; /* namespace of the gate */
    struct adm_class *classes;
    uint64_t class_count;
    const struct adm_replica_scope *scopes; /* counts now; a scope that is not listed has 1 */
    uint64_t scope_count;
    uint64_t sequence; /* out: of this set; a take built for another set is ADM_E_BACKEND_STALE */
};

/* ---- take and read ---- */

enum {
    ADM_TERM_PASS = 0,
    ADM_TERM_EXCEEDED = 1, /* not now */
    ADM_TERM_NEVER = 2,    /* more than the numbers can ever hold */
    ADM_TERM_NO_ROOM = 3,  /* a new partition, and max_partitions or the table is full */
    ADM_TERM_UNKNOWN = 4   /* shadow only: no state to judge by */
};

/* One class, one partition, one amount. Judged in the order given; all passing terms are charged
 * together. No two terms of a take name the same partition of one rule.
 *   bucket       passes when level >= amount; consumes amount. COMPLETION: passes when level >= 1,
 *                consumes at settlement min(total, capacity). NEVER: amount > capacity, or no
 *                refill and too low.
 *   concurrency  passes when held + amount <= limit; holds amount until give or expiry.
 *                NEVER: amount > limit.
 *   quota        passes when used + amount <= limit in the window of the op's wall clock.
 *                NEVER: amount > limit.
 * Amount 0 passes (except COMPLETION) and consumes nothing. It needs no room, unless the lease may
 * settle it later: then it needs a record, whatever max_partitions says. */
struct adm_term {
    uint32_t kind;
    uint32_t flags; /* ADM_TERM_F_* */
    uint64_t class_handle;
    struct adm_bytes scope;     /* PER_REPLICA: the scope; a class of its own, from its first use */
    uint64_t replicas;          /* PER_REPLICA: healthy replicas now, at least 1 */
    struct adm_bytes partition; /* shard and partition values, length-prefixed; may be empty */
    uint64_t amount; /* 0 … 2 * 10^12: derived tokens are the sum of two amounts */
    uint64_t limit;  /* concurrency, quota: in force for this request */
    uint32_t unit;
    uint32_t window; /* quota: ADM_WINDOW_* */
    /* results, written for every term whatever the verdict */
    uint32_t verdict; /* ADM_TERM_* */
    uint32_t reserved0;
    int64_t level;         /* before the charge. bucket: whole tokens, floored, negative in debt;
                              else units held or used */
    uint64_t passes_at_ns; /* EXCEEDED bucket: mono; EXCEEDED quota: wall; NO_ROOM bucket: mono when
                              the first partition of the rule is full again. UINT64_MAX: never or
                              not known */
};

#define ADM_TERM_F_SHADOW       1u /* charged only if the enforced terms all pass */
#define ADM_TERM_F_COMPLETION   2u
#define ADM_TERM_F_SETTLE_EXACT 4u /* a settled total corrects the charge */

/* What a lease counts: the running total of one unit, first the amount asked for. */
struct adm_meter {
    uint32_t unit;
    uint32_t flags; /* ADM_METER_F_* */
    uint64_t total;
};

#define ADM_METER_F_DERIVED 1u /* tokens = input_tokens + output_tokens, until a report names it */

enum { ADM_TAKE_CHARGE = 0, ADM_TAKE_JUDGE = 1 /* judge every term, change nothing */ };

/* A take that no policy can make (an amount above 2 * 10^12, a limit above 10^12, held units
 * without ADM_TAKE_F_LEASE, an unknown mode, a memo above ADM_MEMO_BYTES) is ADM_E_BACKEND_RESULT
 * and changes nothing. */
struct adm_take {
    uint32_t mode;
    uint32_t flags;         /* ADM_TAKE_F_* */
    uint64_t sequence;      /* of the class set that the terms were built for */
    struct adm_term *terms; /* enforced terms first, then shadow terms; at most 16 of each */
    uint32_t term_count;
    uint32_t meter_count;
    const struct adm_meter *meters; /* units that the lease's items need; at most 18 */
    uint64_t ttl_ns;                /* of the lease */
    uint64_t shadow_ttl_ns;     /* of the shadow hold when there is no lease; 0: no shadow hold */
    struct adm_id seed;         /* random, the same on a resend; the lease id is formed from it */
    struct adm_bytes attempt;   /* length 0: none */
    uint8_t attempt_digest[16]; /* of descriptors, cost and amounts */
    uint64_t attempt_life_ns;   /* remembered for the lease's life, at least this long */
    struct adm_bytes memo;      /* stored with the attempt; opaque; at most ADM_MEMO_BYTES */
    /* results */
    uint32_t verdict;    /* ADM_VERDICT_*; DENY when an enforced term did not pass; JUDGE: what it
                            would have been */
    uint32_t repeated;   /* ADM_REPEAT_* */
    struct adm_id lease; /* none unless ADM_TAKE_F_LEASE and allowed */
    uint8_t *memo_out;   /* SAME: the memo of the first allow; room for ADM_MEMO_BYTES */
    uint64_t memo_out_length;
};

#define ADM_MEMO_BYTES   256u
#define ADM_TAKE_F_LEASE 1u /* keep a lease when allowed; a must for a concurrency term */

enum {
    ADM_REPEAT_NONE = 0,
    ADM_REPEAT_SAME = 1, /* attempt known: nothing charged; lease and memo of the first allow */
    ADM_REPEAT_OTHER = 2 /* attempt known with another digest: nothing changed */
};

/* ---- settle, sweep ---- */

/* Totals so far. A smaller total that is not final changes nothing; a final unit is not touched
 * again. */
struct adm_settlement {
    const struct adm_amount *totals;
    uint32_t total_count;
    uint32_t final_all; /* 1: every unit of the lease is final now */
};

struct adm_sweep {
    uint64_t budget; /* records to look at, at most */
    uint64_t looked; /* out */
    uint64_t freed;  /* out */
    uint32_t done;   /* out: 1 when a whole round is finished */
    uint32_t reserved0;
};

/* ---- the operation ---- */

enum {
    ADM_OP_PUT_CLASSES = 1, /* args.classes */
    ADM_OP_TAKE = 2,        /* args.take */
    ADM_OP_GIVE = 3,        /* lease -> released, already, late, unknown. Charges completion if
                               that is still open */
    ADM_OP_RENEW = 4,       /* lease -> renewed (live until now + ttl), lost */
    ADM_OP_SETTLE = 5,      /* lease, args.settle -> settled, late, already (also: diverted),
                               unknown */
    ADM_OP_DIVERT = 6,      /* lease -> diverted, late, already, unknown. Held units return; charges
                               stay, but output_tokens still to come (and their part of derived
                               tokens) are not charged */
    ADM_OP_SWEEP = 7        /* args.sweep */
};

struct adm_op {
    uint32_t size;
    uint32_t kind;
    struct adm_time now;  /* effective: never runs back by more than threads overtake each other */
    uint64_t max_skew_ns; /* the wall clock may lag behind the largest seen by this much */
    uint64_t deadline_ns; /* mono; after it nobody waits for the answer */
    struct adm_id lease;  /* GIVE RENEW SETTLE DIVERT */
    uint32_t result;      /* GIVE: ADM_RESULT_*; telemetry only */
    uint32_t outcome;     /* out: ADM_OUTCOME_* of GIVE RENEW SETTLE DIVERT */
    uint64_t units;       /* out: GIVE, DIVERT: units that returned */
    union {
        struct adm_class_set *classes;
        struct adm_take *take;
        const struct adm_settlement *settle;
        struct adm_sweep *sweep;
    } args;
    struct adm_time judged; /* out: the time the backend went by; passes_at_ns is on this clock */
    void *backend_use[2];   /* the backend's own, from start to completion; NULL at start */
    void *library_use[4];   /* the gate's own */
    uint64_t reserved[2];
};

/**
 * Complete an operation: its results are written and it belongs to the gate again. Exactly once.
 * status    ADM_OK, or why nothing was done, or ADM_E_BACKEND_UNKNOWN; other values count as
 *           ADM_E_BACKEND_RESULT, which a backend may say itself of arguments that no policy can
 *           make.
 * Threads   the one that is inside start, poll or cancel of this backend.
 * Blocking  never: it calls nothing.
 * Since     1.0
 */
ADM_API void adm_op_complete(struct adm_op *op, adm_status status);

/* ---- the table of operations ---- */

struct adm_watch {
    int32_t fd; /* readable when poll has something to do; -1: none */
    uint32_t reserved0;
    uint64_t deadline_ns; /* mono; poll by then; UINT64_MAX: no need */
};

enum { ADM_THREADS_SERIAL = 0, ADM_THREADS_ANY = 1 };

#define ADM_CAN_OWN_CLOCK 1u /* judges by its own clock outside the contract suite */
#define ADM_CAN_FORK      2u /* a forked child may use the same handle */
#define ADM_CAN_DEFER     4u /* operations may complete later than start */

/* Filled by describe. UINT64_MAX: unbounded. Counts and bounds of the enforced state; that of
 * shadow
 * classes has as much room again. */
struct adm_backend_info {
    uint32_t size;
    uint32_t threads;      /* ADM_THREADS_* */
    uint32_t capabilities; /* ADM_CAN_* */
    uint32_t reserved0;
    uint64_t classes, classes_max;
    uint64_t partitions, partitions_max;
    uint64_t leases, leases_max; /* records, live or kept for late settlement */
    uint64_t attempts, attempts_max;
    uint64_t expired; /* leases that ended by expiry, so far */
    uint64_t reserved[4];
};

struct adm_backend_ops {
    uint32_t size;    /* sizeof(struct adm_backend_ops) at the author's compile time */
    uint32_t abi;     /* ADM_BACKEND_ABI of the author's header */
    const char *name; /* static, [a-z0-9-]{1,64}, for diagnostics */
    /* ABI 1, required. start never fails: it completes the op with a status, now or later. */
    void (*start)(void *self, struct adm_op *op);
    void (*close)(void *self);
    /* ABI 1, optional; NULL means what the brackets say. */
    /* [every op completes in start] */
    adm_status (*poll)(void *self, const struct adm_time *now);
    /* [nothing: the op completes in its own time] */
    void (*cancel)(void *self, struct adm_op *op);
    /* [no descriptor, no deadline] */
    adm_status (*watch)(void *self, struct adm_watch *out);
    /* [SERIAL, no capability, unbounded] */
    adm_status (*describe)(void *self, struct adm_backend_info *inout);
};

/* A backend, ready to be bound: a static table and the author's own pointer. */
struct adm_backend {
    const struct adm_backend_ops *ops;
    void *self;
};

/* ---- arithmetic that authors may use (the contract suite expects exactly these numbers) ---- */

/* A bucket class's odometer: what it has dripped so far, read in units of 2^-shift token, at most
 * one unit per nanosecond: V(t) = v0 + floor((t - t0) * a / b). A bucket is one number E, the
 * reading at which it is empty; a bucket that was never seen is ADM_BUCKET_FRESH, which is full.
 * Readings and E saturate at 2^62 - 2^59 - 1. */
struct adm_odometer {
    uint64_t t0_ns;
    int64_t v0;
    uint64_t a, b;     /* units per nanosecond, a / b <= 1 */
    uint64_t capacity; /* tokens */
    uint64_t refill;   /* tokens per per_ns */
    uint64_t per_ns;
    int64_t floor; /* no bucket is fuller than if it had been empty at this reading */
    uint32_t shift;
    uint32_t reserved0;
};

#define ADM_BUCKET_FRESH INT64_MIN

/**
 * A new odometer from now on. Numbers: capacity and refill 0 … 10^12, per_ns 1 ms … 366 d,
 * refill/per_ns <= 1 per ns.
 * grid_scale the factor by which these numbers may still grow without a change of grid: 1; or, of a
 *            class that scales, 1024 / replicas, at least 1.
 * Threads    any, on the caller's memory.
 * Blocking   never.
 * Since      1.0
 */
ADM_API void adm_odometer_init(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                               uint64_t refill, uint64_t per_ns, uint64_t grid_scale);

/**
 * Other numbers from now on. Time before counts at the old rate; a raised capacity adds no tokens.
 * Returns   1 when the grid changed: then every bucket word of the class must go through
 *           adm_bucket_rescale() with the odometer as it was before. 0 otherwise.
 * Threads   any, on the caller's memory.
 * Blocking  never.
 * Since     1.0
 */
ADM_API uint32_t adm_odometer_change(struct adm_odometer *odometer, uint64_t now_ns,
                                     uint64_t capacity, uint64_t refill, uint64_t per_ns,
                                     uint64_t grid_scale);
ADM_API int64_t adm_bucket_rescale(const struct adm_odometer *before,
                                   const struct adm_odometer *after, uint64_t now_ns,
                                   int64_t empty);

/**
 * The level of a bucket in whole tokens, floored (negative in debt); whether it is full; the moment
 * at which it holds amount (UINT64_MAX: never).
 * Threads   any.
 * Blocking  never.
 * Since     1.0
 */
ADM_API int64_t adm_bucket_level(const struct adm_odometer *odometer, uint64_t now_ns,
                                 int64_t empty);
ADM_API uint32_t adm_bucket_is_full(const struct adm_odometer *odometer, uint64_t now_ns,
                                    int64_t empty);
ADM_API uint64_t adm_bucket_passes_at(const struct adm_odometer *odometer, uint64_t now_ns,
                                      int64_t empty, uint64_t amount);

/**
 * Take amount tokens if the bucket holds them (1: taken, *empty changed; 0: not); charge them
 * whatever the level, perhaps into debt; give them back, never above capacity.
 * Threads   any, on the caller's memory.
 * Blocking  never.
 * Since     1.0
 */
ADM_API uint32_t adm_bucket_take(const struct adm_odometer *odometer, uint64_t now_ns,
                                 int64_t *empty, uint64_t amount);
ADM_API void adm_bucket_charge(const struct adm_odometer *odometer, uint64_t now_ns, int64_t *empty,
                               uint64_t amount);
ADM_API void adm_bucket_refund(const struct adm_odometer *odometer, uint64_t now_ns, int64_t *empty,
                               uint64_t amount);

/**
 * The calendar window (ADM_WINDOW_*, UTC) that a wall time lies in: a number that grows by one per
 * window, and the times at which it begins and ends (each may be NULL; an end beyond the range of
 * 64 bits is UINT64_MAX).
 * Threads   any.
 * Blocking  never.
 * Since     1.0
 */
ADM_API uint64_t adm_window_index(uint32_t window, uint64_t wall_ns, uint64_t *out_begin_ns,
                                  uint64_t *out_end_ns);

#ifdef __cplusplus
}
#endif
#endif
