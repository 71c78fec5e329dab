/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory backend's records and the functions between its files. All state is one region of
 * fixed arrays of 64-bit words, addressed by index and without pointers; whatever several threads
 * change together changes in one transaction (state/transaction.h). Why it is laid out like this:
 * docs/adr/0025-memory-backend.md.
 *
 *      memory.c            open, close, describe; one op: time, what is due, which function
 *      memory_region.c     the region: how long, how laid out
 *      memory_word.h       what is in a word; the steps of transactions
 *      memory_line.c       lines of four words by partition: find, make, claim a word, evict
 *      memory_deadline.c   what is due next
 *      memory_class.c      classes as takes see them: versions under the guard
 *      memory_publish.c    class sets and replica scopes: the registry behind a claim
 *      memory_room.c       max_partitions, and whether there is room for another line
 *      memory_lease.c      lease slots: find, reserve, expire
 *      memory_plan.c       the steps of one transaction
 *      memory_attempt.c    attempts
 *      memory_take.c       take; memory_judge.c judges a term
 *      memory_settle.c     give, renew, settle, divert
 *      memory_sweep.c      sweep
 */
#ifndef ADMI_MEMORY_BACKEND_H
#define ADMI_MEMORY_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <admit/backend.h>

#include "state/memory_deadline.h"
#include "state/memory_line.h"
#include "state/meter.h"
#include "state/odometer.h"
#include "state/registry.h"

enum memory_space_name { MEMORY_ENFORCED = 0, MEMORY_SHADOW = 1, MEMORY_SPACES = 2 };

/* ---- classes, as takes see them ---- */

/* What is in force of a class from one value of the guard on. Two for each class: who publishes
 * writes into the one that is not in force, then moves the guard (state/transaction.h). */
struct memory_version {
    _Atomic uint64_t from;         /* the guard's value */
    _Atomic uint64_t meta;         /* MEMORY_META_* */
    _Atomic uint64_t family_owner; /* place of the family 32 | owner 32 */
    _Atomic uint64_t group;
    _Atomic uint64_t max_partitions;
    _Atomic uint64_t t0_ns, v0, a, b, capacity, floor;
    _Atomic uint64_t replicas;
    _Atomic uint64_t refill;
    _Atomic uint64_t reciprocal;
    _Atomic uint64_t reserved[2];
};

/* meta: id 32 | shift 8 | flags 8 | kind 8 */
#define MEMORY_META_IN_SET      UINT64_C(1)
#define MEMORY_META_SHADOW      UINT64_C(2)
#define MEMORY_META_PER_REPLICA UINT64_C(4)
#define MEMORY_META_NUMBERS     UINT64_C(8)  /* it has an odometer */
#define MEMORY_META_GRID        UINT64_C(16) /* which of two grids its words are on */

struct memory_class {
    struct memory_version versions[2];
    /* Of a replica scope: how it is found. Written while nobody can find it. */
    _Atomic uint64_t name[8]; /* a struct admi_key */
    _Atomic uint64_t base;
    _Atomic uint64_t next; /* of the chain */
    /* Numbers before the grid moved, and when: for words that are still on the other grid. */
    _Atomic uint64_t moved_ns;
    _Atomic uint64_t moved_t0_ns, moved_v0, moved_a, moved_b, moved_capacity, moved_floor;
    _Atomic uint64_t moved_shift;
    /* Of whoever publishes. */
    uint32_t dirty;  /* on the list of what is to be published */
    uint32_t id;     /* in tags; 0: none yet */
    uint32_t grid;   /* 0 or 1 */
    uint32_t needed; /* the last survey that found a bucket of it that is needed */
    uint32_t reserved0[4];
};

/* When there may be room again, found by looking at everything, and for how long that is true.
 * Guarded by seq (odd: being written); who cannot write it lets it be. */
struct memory_no_room {
    _Atomic uint64_t seq;
    _Atomic uint64_t guard, changes; /* true while these are the same */
    _Atomic uint64_t until_mono_ns, until_wall_ns;
    _Atomic uint64_t exact;                   /* a family: at until_mono_ns there is room, */
    _Atomic uint64_t first_word, first_value; /* for the bucket there will be full; while it is as
                                                 it was */
};

/* What all classes of one rule share. */
struct memory_family {
    _Atomic uint64_t changes; /* word of transactions: whenever a partition may have become live or
                                 as new, in a rule with max_partitions */
    _Atomic uint64_t window;  /* quota: ADM_WINDOW_* of the last term */
    _Atomic uint64_t limited; /* it has max_partitions */
    _Atomic uint64_t records; /* values with a tag of it, and of whatever had this place before; now
                                 and then one more, never less */
    struct memory_no_room no_room;
    /* Of whoever publishes. */
    uint32_t id;
    uint32_t needed;
    uint32_t reserved1[6];
};

/* ---- leases ---- */

/* A slot of two cache lines. What a lease holds or may still charge is in its body: items of two
 * words, then meters of one. What does not fit goes on in other slots (MEMORY_LEASE_PART). Only the
 * state, amounts and meters are words of transactions; the rest is written while the slot is
 * reserved, and stays as it is until it is used again. */
#define MEMORY_LEASE_BODY     10u
#define MEMORY_PART_BODY      14u
#define MEMORY_ITEM_WORDS     2u
#define MEMORY_LEASES_MAX     (UINT64_C(1) << 21)
#define MEMORY_LEASE_BODY_MAX (ADM_MAX_TERMS * MEMORY_ITEM_WORDS + ADMI_METERS_MAX)
#define MEMORY_LEASE_PARTS_MAX                                                                     \
    ((MEMORY_LEASE_BODY_MAX - MEMORY_LEASE_BODY + MEMORY_PART_BODY - 1) / MEMORY_PART_BODY)

struct memory_lease {
    _Atomic uint64_t state;  /* MEMORY_STATE_* */
    _Atomic uint64_t secret; /* the half of the id that nobody can guess */
    _Atomic uint64_t ttl_ns;
    _Atomic uint64_t counts;                /* first part + 1, 32 | meters 8 | items 8 */
    _Atomic uint64_t shadow, shadow_secret; /* id of its hold in the other space; 0: none */
    _Atomic uint64_t body[MEMORY_LEASE_BODY];
};

/* The same slot as a part of another's body: state, next part + 1, body. */
#define MEMORY_PART_AT 2u

/* state: generation 32 | changes 25 | final 1 | diverted 1 | state 3. The generation changes with
 * every lease, and is in its id; every transaction on a lease changes the count of changes, so that
 * what was read of it is what it is when the transaction goes in. */
enum memory_lease_state {
    MEMORY_LEASE_FREE = 0,
    MEMORY_LEASE_RESERVED = 1, /* by a thread that is about to make a lease of it */
    MEMORY_LEASE_LIVE = 2,
    MEMORY_LEASE_LATE = 3,   /* it has expired; its usage may still come */
    MEMORY_LEASE_CLOSED = 4, /* released: all that is left is the answer; the deadline is that of
                                the lease */
    MEMORY_LEASE_CLOSED_LATE = 5, /* the same; the deadline is the end of the answer */
    MEMORY_LEASE_PART = 6
};

#define MEMORY_STATE_DIVERTED          UINT64_C(8)
#define MEMORY_STATE_FINAL             UINT64_C(16)
#define MEMORY_STATE_CHANGE            UINT64_C(32)
#define MEMORY_STATE_CHANGES           (((UINT64_C(1) << 25) - 1) * MEMORY_STATE_CHANGE)
#define MEMORY_STATE_OF(value)         ((enum memory_lease_state)((value)&7u))
#define MEMORY_STATE_GENERATION(value) ((uint32_t)((value) >> 30))

/* The same with another state, and changed. */
static inline uint64_t admi_memory_state_next(uint64_t value, enum memory_lease_state state)
{
    uint64_t changes = (value + MEMORY_STATE_CHANGE) & MEMORY_STATE_CHANGES;

    return ((value & ~(MEMORY_STATE_CHANGES | 7u)) | changes) | (uint64_t)state;
}

/* item, word 0: kind 3 | id of its tag 29 | word of the value 32. Word 1, of transactions: mark 1 |
 * meter 5 | window 15 | amount 41. */
enum memory_item_kind {
    MEMORY_ITEM_COUNT = 1,
    MEMORY_ITEM_QUOTA = 2,      /* a settled total corrects it */
    MEMORY_ITEM_COMPLETION = 3, /* a bucket that is charged in the end. mark: it was */
    MEMORY_ITEM_BUCKET = 4      /* a bucket; a settled total corrects it */
};

struct memory_item {
    enum memory_item_kind kind;
    uint32_t word; /* of the value */
    uint32_t id;
    uint32_t meter;  /* ADMI_METERS_MAX: none */
    uint32_t window; /* quota: in which it was charged, modulo 2^15 */
    bool mark;       /* completion: charged. count: it holds nothing, and pins the line */
    uint64_t amount;
};

/* A word for each meter: unit 16 | final 1 | derived 1 | total 44. */

/* What a lease holds, read from its slots. */
struct memory_holding {
    uint64_t state; /* as it was read; MEMORY_STATE_* */
    struct memory_leases *leases;
    uint64_t place;      /* of the slot */
    uint64_t first_part; /* + 1 */
    uint64_t deadline;
    uint64_t ttl_ns;
    struct adm_id shadow; /* its hold in the other space */
    uint32_t item_count, meter_count;
    struct memory_item items[ADM_MAX_TERMS];
    struct adm_meter meters[ADMI_METERS_MAX];
    _Atomic uint64_t *amounts[ADM_MAX_TERMS]; /* where the words are */
    _Atomic uint64_t *totals[ADMI_METERS_MAX];
};

struct memory_leases {
    uint64_t count;
    uint64_t slots_at;     /* distance from this struct */
    _Atomic uint64_t full; /* somebody has looked: all slots are open */
    uint32_t space;
    uint32_t reserved0;
    struct memory_deadlines deadlines;
    _Alignas(64) _Atomic uint64_t hand; /* the next stretch to hand out */
};

/* ---- attempts ---- */

/* Beside the line with the same number, whose key is the attempt's name. Written while nobody can
 * find it. */
struct memory_attempt {
    _Atomic uint64_t digest[2];
    _Atomic uint64_t until_ns;
    _Atomic uint64_t lease[2]; /* id */
    _Atomic uint64_t memo_length;
    _Atomic uint64_t reserved[2];
    _Atomic uint64_t memo[ADM_MEMO_BYTES / 8];
};

/* ---- the region ---- */

struct memory_space {
    struct memory_lines lines;
    struct memory_leases leases;
    _Alignas(64) struct memory_no_room no_room;
    _Atomic uint64_t watched; /* somebody was told that there is no room: whatever makes room sets
                                 it to 0. Else a number of its own */
    _Atomic uint64_t watches;
};

/* What belongs to whoever has a context: not shared, so not a cost. */
struct memory_context_state {
    _Atomic uint64_t latest_ns; /* largest time seen */
    _Atomic uint64_t expired;
    _Atomic uint64_t slot[MEMORY_SPACES]; /* next lease slot to look at; 0: none */
    _Atomic uint64_t slots_left[MEMORY_SPACES];
    _Atomic uint64_t reserved[2];
};

struct memory_region {
    uint64_t layout; /* MEMORY_LAYOUT */
    uint64_t bytes;
    uint64_t context_count, contexts_at, context_states_at;
    uint64_t classes_at, families_at, ids_at, scopes_at, dirty_at;
    uint64_t dead_at;
    uint64_t scope_mask, id_count, class_places;
    uint64_t attempts_at; /* struct memory_attempt, one for each line of attempt_lines */
    uint8_t id_secret[ADMI_SECRET_BYTES];
    uint8_t key_secrets[2 * ADMI_SECRET_BYTES];
    _Alignas(64) _Atomic uint64_t guard; /* the set of numbers in force; state/transaction.h */
    _Alignas(64) _Atomic uint64_t sequences[2][ADMI_OWNERS_MAX]; /* of the owners' sets */
    _Atomic uint64_t sequences_from[2];
    _Alignas(64) _Atomic uint64_t claim; /* of whoever publishes; 0: nobody */
    /* Of whoever publishes. */
    uint64_t dirty_count; /* classes, at dirty_at */
    uint64_t dead_count;  /* ids, at dead_at */
    uint64_t id_next;
    uint32_t survey;
    bool surveyed; /* in this operation */
    bool moved;    /* some class has words on another grid */
    struct admi_registry registry;
    _Atomic uint64_t class_count; /* for describe */
    _Atomic uint64_t sweep_at;
    _Alignas(64) struct memory_lines attempt_lines;
    _Alignas(64) struct memory_space spaces[MEMORY_SPACES];
};

#define MEMORY_IDS_MAX (UINT64_C(1) << 29)

#define MEMORY_LAYOUT UINT64_C(0x3130796d656d6461)

struct memory_sizes {
    uint64_t partitions_max; /* lines in each space */
    uint64_t leases_max;     /* in each space */
    uint64_t attempts_max;
    uint64_t classes_max;
    uint64_t contexts; /* a power of two */
};

/* One operation under way. */
struct memory_run {
    struct memory_region *region;
    struct admi_txn txn;
    uint64_t now_ns, wall_ns, max_skew_ns;
    bool claimed; /* it has a context, and may write */
};

/* ---- memory.c ---- */

/* A context, if the operation has none yet: whoever only reads needs none. false: all are in
 * use. */
bool admi_memory_claim(struct memory_run *run);
/* For tests: how often attempts are made fast, and how long others' are let alone. Before any
 * thread uses the backend. */
void admi_memory_tune(void *self, uint32_t hard_after, uint32_t back_off);

/* ---- memory_region.c ---- */

/* Bytes of a region of these sizes, or 0: beyond 32 GiB, which is what word indices can name. */
uint64_t admi_memory_region_bytes(const struct memory_sizes *sizes);
/* On zeroed memory that is aligned to 64 bytes. secrets: MEMORY_SECRETS_BYTES random ones. */
#define MEMORY_SECRETS_BYTES (4u * ADMI_SECRET_BYTES)
void admi_memory_region_init(struct memory_region *region, const struct memory_sizes *sizes,
                             const uint8_t *secrets);

static inline struct memory_class *admi_memory_class_at(const struct memory_region *region,
                                                        uint64_t place)
{
    return (struct memory_class *)admi_array(region, region->classes_at) + place;
}

static inline struct memory_family *admi_memory_family_at(const struct memory_region *region,
                                                          uint64_t place)
{
    return (struct memory_family *)admi_array(region, region->families_at) + place;
}

static inline struct memory_lease *admi_memory_lease_at(const struct memory_leases *leases,
                                                        uint64_t place)
{
    return (struct memory_lease *)admi_array(leases, leases->slots_at) + place;
}

static inline struct memory_attempt *admi_memory_attempt_at(const struct memory_region *region,
                                                            uint64_t line)
{
    return (struct memory_attempt *)admi_array(region, region->attempts_at) + line;
}

/* What an id in tags stands for: family 30 | class 30 (0: the family itself) | dead 1: the class
 * (family) is gone, words that still have the tag are nobody's. 0: the id is free. */
#define MEMORY_ID_OF(family, class_) ((uint64_t)(family) | (uint64_t)(class_) << 30)
#define MEMORY_ID_FAMILY(of)         ((of)&0x3fffffffu)
#define MEMORY_ID_CLASS(of)          ((of) >> 30 & 0x3fffffffu)
#define MEMORY_ID_DEAD               (UINT64_C(1) << 60)

static inline _Atomic uint64_t *admi_memory_id_at(const struct memory_region *region, uint64_t id)
{
    return (_Atomic uint64_t *)admi_array(region, region->ids_at) + id;
}

static inline struct memory_context_state *admi_memory_context_state(const struct memory_run *run)
{
    return (struct memory_context_state *)admi_array(run->region, run->region->context_states_at) +
           run->txn.self;
}

/* ---- memory_class.c ---- */

/* A class under run->txn.guarded. */
struct memory_numbers {
    uint32_t kind, owner, family, id, grid;
    uint64_t flags; /* MEMORY_META_* */
    uint64_t group, max_partitions, replicas;
    struct adm_odometer odometer;
    uint64_t reciprocal; /* floor(2^64 * a / b); 0: a is b, or nothing */
};

/* A bucket's odometer at the operation's time. */
struct memory_moment {
    int64_t reading;
    int64_t full; /* where a full bucket is empty */
    int64_t
        least; /* no bucket is empty earlier: neither fuller than full nor than a raise allows */
};

struct memory_moment admi_memory_moment(const struct memory_run *run,
                                        const struct memory_numbers *numbers);

/* Read what is in force. false: there is no such class. Whether it was all of one version is sure
 * only when the guard is still the same afterwards. */
bool admi_memory_class_read(const struct memory_run *run, uint64_t place,
                            struct memory_numbers *out);
uint64_t admi_memory_owner_sequence(const struct memory_run *run, uint32_t owner);
bool admi_memory_sequence_is_current(const struct memory_run *run, uint64_t sequence);
bool admi_memory_class_is_named(const struct memory_class *class_, const struct admi_key *name);
bool admi_memory_class_is_scope(const struct memory_run *run, uint64_t place);
/* The class of a replica scope; 0: there is none that is in force. */
uint32_t admi_memory_scope_find(const struct memory_run *run, uint32_t base,
                                struct adm_bytes scope);
/* The guard as the operation will go by it. */
static inline void admi_memory_begin(struct memory_run *run)
{
    run->txn.guarded = admi_txn_read_guard(&run->txn);
}

static inline bool admi_memory_is_current(const struct memory_run *run)
{
    return atomic_load_explicit(&run->region->guard, memory_order_acquire) ==
               ADMI_TXN_WORD_OF(run->txn.guarded) ||
           admi_txn_read_guard(&run->txn) == run->txn.guarded;
}

/* The numbers before the grid moved, and when it did. */
uint64_t admi_memory_class_before(const struct memory_run *run, uint64_t place,
                                  struct adm_odometer *out);

/* A quota as it stands at the operation's wall time. */
struct memory_quota {
    uint64_t window, used;
    uint64_t empty_at_ns; /* when what is used now is forgotten, if nothing more is charged */
};

struct memory_quota admi_memory_quota(const struct memory_run *run, uint32_t window,
                                      uint64_t value);
uint64_t admi_memory_quota_value(uint64_t window, uint64_t used);

/* As new, so that nobody can tell it from none? For admi_memory_value_make(): self is the run. */
bool admi_memory_is_idle(void *self, uint32_t tag, uint64_t value);
/* A quota is as new by a wall clock, which may be set back. */
bool admi_memory_is_lasting(void *self, uint32_t tag);
_Atomic uint64_t *admi_memory_records_of(void *self, uint32_t tag);
static inline struct memory_idle admi_memory_idle(struct memory_run *run)
{
    return (struct memory_idle){ .is_idle = admi_memory_is_idle,
                                 .is_lasting = admi_memory_is_lasting,
                                 .counter_of = admi_memory_records_of,
                                 .self = run };
}

/* ---- memory_publish.c ---- */

adm_status admi_memory_put_classes(struct memory_run *run, struct adm_class_set *set);
/* The class of a scope, made or given these replicas if it must be; scope.length 0: the base gets
 * numbers of its own. Begin again afterwards: the guard has changed.
 * Errors ADM_E_BACKEND_FULL; ADM_E_BACKEND_UNAVAILABLE somebody else publishes, and does not
 * end. */
adm_status admi_memory_scope(struct memory_run *run, uint32_t base, struct adm_bytes scope,
                             uint64_t replicas);
/* Of sweep: forget the classes and families that make no difference; how many. */
uint64_t admi_memory_reclaim_classes(struct memory_run *run);

/* ---- memory_tidy.c ---- */

/* Values of a line whose class is gone go, those on another grid move; and those of a family (0:
 * none) that are as new go. Returns ADMI_TXN_DONE or STALE. */
int admi_memory_tidy_line(struct memory_run *run, struct memory_lines *lines, uint64_t line,
                          uint32_t family, const struct memory_idle *idle);

/* ---- memory_lease.c ---- */

/* The slot that an id names, whatever its state; *state as it was read. NULL: nobody's. */
struct memory_lease *admi_memory_lease_find(struct memory_run *run, struct memory_leases *leases,
                                            struct adm_id id, uint64_t *state, uint64_t *place);
/* A slot to make a lease of, which nobody else has now: + 1; 0: all are open. */
uint64_t admi_memory_lease_reserve(struct memory_run *run, struct memory_leases *leases);
/* What a lease holds. false: it has changed meanwhile. */
bool admi_memory_lease_read(struct memory_run *run, struct memory_leases *leases, uint64_t place,
                            uint64_t state, struct memory_holding *out);
uint64_t admi_memory_amount_word(const struct memory_item *item);
uint64_t admi_memory_meter_word(const struct adm_meter *meter);
/* Everything that was due by run->now_ns. true: something was. */
bool admi_memory_expire(struct memory_run *run);
/* Records, live or kept for an answer. */
uint64_t admi_memory_leases_used(struct memory_run *run, struct memory_leases *leases);

struct memory_plan;

/* Write a lease into slots that are reserved (and take more for what does not fit), up to its
 * state: 0, or the number of its slot + 1 as an id says it. */
struct memory_draft {
    struct memory_leases *leases;
    uint64_t slot;                          /* + 1; 0: none */
    uint64_t parts[MEMORY_LEASE_PARTS_MAX]; /* + 1 */
    uint32_t part_count;
    struct adm_id id;
    uint64_t reserved; /* state word */
};

bool admi_memory_draft(struct memory_run *run, struct memory_leases *leases,
                       const struct memory_holding *holding, const struct adm_id *seed,
                       struct memory_draft *out);
/* It is live when the plan's transaction is done. */
void admi_memory_draft_plan(const struct memory_draft *draft, struct memory_plan *plan);
void admi_memory_draft_drop(struct memory_draft *draft);
/* Of a lease that has ended. */
void admi_memory_parts_free(struct memory_holding *holding);

/* ---- memory_plan.c ---- */

struct memory_plan {
    struct memory_run *run;
    uint32_t count; /* of steps that change something */
    uint32_t more;  /* and of those for hard attempts alone, behind them */
    uint32_t hold_count;
    bool is_lost; /* it could only fail: two of its steps have found one line at two times */
    struct admi_txn_step steps[ADMI_TXN_WORDS_MAX];
    struct {
        uint32_t hold;   /* word */
        uint32_t step;   /* + 1, of the step that pins or unpins it; 0: none */
        bool needs_same; /* this generation */
        uint64_t generation;
    } holds[2 * ADM_MAX_TERMS];
};

void admi_memory_plan_begin(struct memory_plan *plan, struct memory_run *run);
/* Nothing happens if the transaction fails: what was read may be out of date. */
void admi_memory_plan_set(struct memory_plan *plan, const _Atomic uint64_t *word, uint64_t expected,
                          uint64_t to);
/* A step on a value; place: whose generation must be the same, NULL: it is held or pinned. */
struct admi_txn_step *admi_memory_plan_step(struct memory_plan *plan, enum memory_step_kind kind,
                                            uint32_t word, uint64_t units,
                                            const struct memory_place *place);
/* The same on a bucket with these numbers at this moment. tokens, not units of the grid. */
struct admi_txn_step *admi_memory_plan_bucket(struct memory_plan *plan, enum memory_step_kind kind,
                                              uint32_t word, uint64_t tokens,
                                              const struct memory_numbers *numbers,
                                              const struct memory_moment *moment,
                                              const struct memory_place *place);
/* One pin more or less of the line that has this value. Not both in one plan. place: where it was
 * found; NULL: it is held or pinned already. */
void admi_memory_plan_pin(struct memory_plan *plan, uint32_t word, bool more,
                          const struct memory_place *place);
/* A partition of this family, which is limited, becomes live (expected: what its changes must be)
 * or may become as new (NULL). */
void admi_memory_plan_family(struct memory_plan *plan, uint32_t family, const uint64_t *expected);
/* The same of whatever has this id, if it is limited: a value of it may become live, or as new. */
void admi_memory_plan_changed(struct memory_plan *plan, uint32_t id);
/* All that a live lease holds goes back; how many units. */
uint64_t admi_memory_plan_unhold(struct memory_plan *plan, const struct memory_holding *holding);
/* A live lease lives for a whole time to live from now on. */
void admi_memory_plan_renew(struct memory_plan *plan, const struct memory_holding *holding);
/* It needs none of its lines any more. */
void admi_memory_plan_unpin(struct memory_plan *plan, const struct memory_holding *holding);
/* ADMI_TXN_*; on failure plan->run->txn.failed is the step. */
int admi_memory_plan_run(struct memory_plan *plan);
/* What the word of a step was before, after DONE. */
uint64_t admi_memory_plan_before(const struct memory_plan *plan, const struct admi_txn_step *step);

/* ---- memory_room.c ---- */

/* Is there room for one more live partition of this family, besides one that exists and is as new?
 * *changes: what the family's changes must be for that to be true. passes_at_ns: when there will
 * be, if that is known. */
bool admi_memory_family_has_room(struct memory_run *run, const struct memory_numbers *numbers,
                                 bool exists, const struct memory_idle *idle, uint64_t *changes,
                                 uint64_t *passes_at_ns);
/* May `lines` more be made in a space? Looks for some to evict if it must be; not for the kept. */
bool admi_memory_space_has_room(struct memory_run *run, uint32_t space, uint64_t lines,
                                const struct memory_idle *idle);
/* After a transaction that may have made something as new. */
static inline void admi_memory_loosened(struct memory_run *run, uint32_t space)
{
    _Atomic uint64_t *watched = &run->region->spaces[space].watched;

    if (atomic_load_explicit(watched, memory_order_acquire) != 0)
        atomic_store_explicit(watched, 0, memory_order_release);
}

/* ---- memory_attempt.c, memory_take.c, memory_settle.c, memory_sweep.c ---- */

/* Those that are still remembered. */
uint64_t admi_memory_attempts_used(struct memory_run *run);
adm_status admi_memory_take(struct memory_run *run, struct adm_op *op);
adm_status admi_memory_give(struct memory_run *run, struct adm_op *op);
adm_status admi_memory_renew(struct memory_run *run, struct adm_op *op);
adm_status admi_memory_settle(struct memory_run *run, struct adm_op *op);
adm_status admi_memory_divert(struct memory_run *run, struct adm_op *op);
adm_status admi_memory_sweep(struct memory_run *run, struct adm_op *op);

#endif
