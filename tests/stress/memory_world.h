/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory backend with a few rules, and threads that take, give, settle and so on, each of which
 * knows what its own leases have charged. So every answer can be judged, and in the end the state
 * must be the sum of what was answered.
 */
#ifndef TESTS_STRESS_MEMORY_WORLD_H
#define TESTS_STRESS_MEMORY_WORLD_H

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/testing.h>

#include "state/memory.h"
#include "state/operation.h"

/* Of partition HOT all threads take; each has another one besides. */
enum { HOT = 0, WORKERS = 2, PARTITIONS = 1 + WORKERS, LEASES = 4, ATTEMPTS = 4 };
enum { RATE, POOL, QUOTA, DONE, OTHER, SHADOW, SCOPED, CLASSES };
/* What workers hold at most in the pool of a partition; there may be LATER more of others. */
enum { POOL_LIMIT = 10, LATER = 16, MANY = 1000 };

#define CAPACITY  1000000000
#define HOUR_NS   (3600 * ADM_SECOND)
#define START_NS  (1000 * ADM_SECOND)
#define WALL_NS   (UINT64_C(1780000000) * ADM_SECOND)
#define LATE_BY   (10 * ADM_SECOND)
#define MAYFLY_NS (8 * ADM_SECOND)

static const char *const partition_names[PARTITIONS] = { "hot", "one", "two" };

struct world {
    struct adm_backend backend;
    struct adm_class classes[CLASSES];
    struct adm_class front; /* of another owner */
    _Atomic uint64_t sequence, front_sequence;
    _Atomic uint64_t mono_ns;
    _Atomic uint64_t names; /* of partitions that are new */
    /* What was answered. */
    _Atomic int64_t missing[PARTITIONS], used[PARTITIONS], completed[PARTITIONS];
    _Atomic int64_t held[PARTITIONS]; /* under POOL_LIMIT; never more than is really held */
    _Atomic uint64_t broken;
};

/* One thing that a thread asks for. */
struct act {
    struct adm_term terms[CLASSES];
    struct adm_meter meters[2];
    struct adm_take take;
    struct adm_sweep sweep;
    struct adm_amount total;
    struct adm_settlement settlement;
    struct adm_op op;
    adm_status status;
    uint8_t memo[ADM_MEMO_BYTES];
    char name[32]; /* of a partition that is new */
};

static inline void expect_at(struct world *world, bool is_so, const char *what, int line)
{
    if (is_so)
        return;
    if (atomic_fetch_add(&world->broken, 1) == 0)
        printf("# line %d: not so: %s\n", line, what);
}

#define EXPECT(world, condition) expect_at(world, condition, #condition, __LINE__)

static inline bool same_id(struct adm_id a, struct adm_id b)
{
    return a.high == b.high && a.low == b.low;
}

/* ---- asking ---- */

static inline adm_status ask_at(struct world *world, struct act *act, uint64_t mono_ns)
{
    act->op.size = sizeof act->op;
    act->op.now = (struct adm_time){ mono_ns, WALL_NS + mono_ns };
    act->op.deadline_ns = UINT64_MAX;
    admi_op_begin_direct(&act->op, NULL);
    world->backend.ops->start(world->backend.self, &act->op);
    EXPECT(world, admi_op_is_complete(&act->op));
    act->status = admi_op_status(&act->op);
    return act->status;
}

static inline adm_status ask(struct world *world, struct act *act)
{
    return ask_at(world, act, atomic_load(&world->mono_ns));
}

static inline void begin_take(struct world *world, struct act *act)
{
    static _Atomic uint64_t seeds;

    act->take = (struct adm_take){ .terms = act->terms,
                                   .meters = act->meters,
                                   .sequence = atomic_load(&world->sequence),
                                   .ttl_ns = HOUR_NS,
                                   .memo_out = act->memo,
                                   .seed = { atomic_fetch_add(&seeds, 1) + 1, 1 } };
    act->op = (struct adm_op){ .kind = ADM_OP_TAKE, .args.take = &act->take };
}

static inline struct adm_term *add_term(const struct world *world, struct act *act, uint32_t index,
                                        const char *partition, uint64_t amount, uint64_t limit)
{
    const struct adm_class *class_ = &world->classes[index];
    struct adm_term *term = &act->terms[act->take.term_count++];

    *term = (struct adm_term){ .kind = class_->kind,
                               .class_handle = class_->handle,
                               .replicas = 1,
                               .partition = adm_str(partition),
                               .amount = amount,
                               .limit = limit,
                               .unit = ADM_UNIT_INPUT_TOKENS };
    if (class_->kind == ADM_KIND_CONCURRENCY)
        term->unit = ADM_UNIT_IMAGES;
    if (class_->kind == ADM_KIND_QUOTA)
        term->window = ADM_WINDOW_DAY;
    if (index == RATE || index == QUOTA)
        term->flags = ADM_TERM_F_SETTLE_EXACT;
    if (index == DONE)
        term->flags = ADM_TERM_F_COMPLETION;
    if (index == SHADOW)
        term->flags = ADM_TERM_F_SHADOW;
    return term;
}

static inline void want_lease(struct act *act, uint64_t tokens)
{
    act->take.flags = ADM_TAKE_F_LEASE;
    act->take.meter_count = 2;
    act->meters[0] = (struct adm_meter){ .unit = ADM_UNIT_INPUT_TOKENS, .total = tokens };
    act->meters[1] = (struct adm_meter){ .unit = ADM_UNIT_IMAGES, .total = 1 };
}

/* Three rules and a lease. */
static inline void prepare_take(struct world *world, struct act *act, const char *partition,
                                uint64_t tokens, uint64_t limit)
{
    begin_take(world, act);
    (void)add_term(world, act, RATE, partition, tokens, 0);
    (void)add_term(world, act, POOL, partition, 1, limit);
    (void)add_term(world, act, QUOTA, partition, tokens, CAPACITY);
    want_lease(act, tokens);
}

/* The pool is never empty there. */
static inline void prepare_denied(struct world *world, struct act *act)
{
    prepare_take(world, act, partition_names[HOT], 5, 1);
}

static inline void prepare_attempt(struct act *act, const char *attempt, uint8_t digest)
{
    act->take.attempt = adm_str(attempt);
    memset(act->take.attempt_digest, digest, sizeof act->take.attempt_digest);
    act->take.attempt_life_ns = HOUR_NS;
    act->take.memo = adm_str(attempt);
}

/* In a partition that nobody has seen: two lines. */
static inline void prepare_new_lines(struct world *world, struct act *act)
{
    (void)snprintf(act->name, sizeof act->name, "new %" PRIu64, atomic_fetch_add(&world->names, 1));
    begin_take(world, act);
    (void)add_term(world, act, POOL, act->name, 1, 5);
    (void)add_term(world, act, OTHER, act->name, 1, 5);
    want_lease(act, 0);
}

static inline void prepare_lease(struct act *act, uint32_t kind, struct adm_id lease)
{
    act->op = (struct adm_op){ .kind = kind, .lease = lease, .result = ADM_RESULT_OK };
}

static inline void prepare_settle(struct act *act, struct adm_id lease, uint64_t total,
                                  uint32_t flags)
{
    prepare_lease(act, ADM_OP_SETTLE, lease);
    act->total = (struct adm_amount){ ADM_UNIT_INPUT_TOKENS, flags, total };
    act->settlement = (struct adm_settlement){ &act->total, 1, 0 };
    act->op.args.settle = &act->settlement;
}

static inline void prepare_sweep(struct act *act, uint64_t budget)
{
    act->sweep = (struct adm_sweep){ .budget = budget };
    act->op = (struct adm_op){ .kind = ADM_OP_SWEEP, .args.sweep = &act->sweep };
}

static inline void charged(struct world *world, uint32_t partition, uint64_t tokens)
{
    atomic_fetch_add(&world->missing[partition], (int64_t)tokens);
    atomic_fetch_add(&world->used[partition], (int64_t)tokens);
}

/* ---- the world ---- */

static inline adm_status put(struct world *world, const char *owner, struct adm_class *classes,
                             uint64_t count, _Atomic uint64_t *sequence)
{
    struct adm_class_set set = { .owner = adm_str(owner),
                                 .classes = classes,
                                 .class_count = count };
    struct act act = { .op = { .kind = ADM_OP_PUT_CLASSES, .args.classes = &set } };

    if (ask(world, &act) == ADM_OK)
        atomic_store(sequence, set.sequence);
    return act.status;
}

static inline void world_open(struct world *world, uint32_t hard_after)
{
    static const struct adm_class rules[CLASSES] = {
        [RATE] = { .kind = ADM_KIND_BUCKET, .capacity = CAPACITY, .group = 1 },
        [POOL] = { .kind = ADM_KIND_CONCURRENCY, .group = 1 },
        [QUOTA] = { .kind = ADM_KIND_QUOTA, .group = 1 },
        [DONE] = { .kind = ADM_KIND_BUCKET, .capacity = CAPACITY, .group = 1 },
        [OTHER] = { .kind = ADM_KIND_CONCURRENCY },
        [SHADOW] = { .kind = ADM_KIND_CONCURRENCY, .flags = ADM_CLASS_F_SHADOW },
        [SCOPED] = { .kind = ADM_KIND_BUCKET,
                     .capacity = CAPACITY,
                     .flags = ADM_CLASS_F_PER_REPLICA },
    };
    static const char *const names[CLASSES] = { "rate",  "pool",   "quota", "done",
                                                "other", "shadow", "scoped" };
    struct adm_fake_random fake = { 1 };
    const struct adm_random random = adm_fake_random_as_random(&fake);
    struct adm_memory_options options = { .size = sizeof options };

    memset(world, 0, sizeof *world);
    options.partitions_max = 64;
    options.leases_max = 256;
    options.attempts_max = 64;
    options.classes_max = 32;
    options.threads_max = 16;
    options.random = &random;
    if (adm_memory_open(&options, &world->backend) != ADM_OK)
        abort();
    admi_memory_tune(world->backend.self, hard_after, 0);
    atomic_store(&world->mono_ns, START_NS);
    for (uint32_t i = 0; i < CLASSES; i++) {
        world->classes[i] = rules[i];
        world->classes[i].rule = adm_str(names[i]);
        world->classes[i].per_ns = ADM_SECOND;
    }
    world->front = (struct adm_class){ .kind = ADM_KIND_CONCURRENCY, .rule = adm_str("front") };
    EXPECT(world, put(world, "work", world->classes, CLASSES, &world->sequence) == ADM_OK);
    EXPECT(world, put(world, "front", &world->front, 1, &world->front_sequence) == ADM_OK);
}

static inline void world_close(struct world *world)
{
    world->backend.ops->close(world->backend.self);
}

static inline int64_t level_of(struct world *world, uint32_t index, const char *partition)
{
    struct act act;

    begin_take(world, &act);
    act.take.mode = ADM_TAKE_JUDGE;
    (void)add_term(world, &act, index, partition, 0, 0);
    EXPECT(world, ask(world, &act) == ADM_OK);
    return act.terms[0].level;
}

static inline struct adm_backend_info describe(struct world *world)
{
    struct adm_backend_info info = { .size = sizeof info };

    EXPECT(world, world->backend.ops->describe(world->backend.self, &info) == ADM_OK);
    return info;
}

/* Everything has been given back (K1): what is held, what is missing, and that no line, lease or
 * attempt is left over for anybody who is gone. */
static inline void check_sum(struct world *world)
{
    uint64_t lines = 0;
    struct act act;

    for (uint32_t p = 0; p < PARTITIONS; p++) {
        const char *name = partition_names[p];

        EXPECT(world, level_of(world, RATE, name) == CAPACITY - world->missing[p]);
        EXPECT(world, level_of(world, QUOTA, name) == world->used[p]);
        EXPECT(world, level_of(world, DONE, name) == CAPACITY - world->completed[p]);
        EXPECT(world, level_of(world, POOL, name) == 0);
        EXPECT(world, level_of(world, OTHER, name) == 0);
        EXPECT(world, level_of(world, SHADOW, name) == 0);
        lines += world->missing[p] > 0;
    }
    for (uint32_t round = 0; round < 3; round++) {
        prepare_sweep(&act, UINT32_MAX);
        EXPECT(world, ask(world, &act) == ADM_OK && act.sweep.done == 1);
    }
    EXPECT(world, describe(world).partitions == lines);
    atomic_fetch_add(&world->mono_ns, 24 * HOUR_NS);
    (void)level_of(world, RATE, "nobody");
    EXPECT(world, describe(world).leases == 0);
    EXPECT(world, describe(world).attempts == 0);
}

/* ---- threads that work ---- */

struct holding {
    struct adm_id lease; /* none: high 0 */
    uint32_t partition;  /* PARTITIONS: one that was new */
    uint64_t tokens, units;
    bool diverted;
};

struct worker {
    struct world *world;
    uint32_t index;
    uint64_t random, operations;
    uint64_t later_ns; /* half of them so much later */
    bool sweeps_not;   /* a sweep that ends a round waits a while for who publishes */
    struct holding holdings[LEASES];
    struct holding attempts[ATTEMPTS];
    pthread_t thread;
};

static inline void work_take(struct worker *worker, struct holding *holding, uint32_t partition)
{
    struct world *world = worker->world;
    struct act act;

    prepare_take(world, &act, partition_names[partition], 1, POOL_LIMIT);
    EXPECT(world, ask(world, &act) == ADM_OK);
    EXPECT(world, act.terms[0].verdict == ADM_TERM_PASS && act.terms[2].verdict == ADM_TERM_PASS);
    EXPECT(world, act.terms[1].level >= 0 && act.terms[1].level <= POOL_LIMIT + LATER);
    if (act.take.verdict == ADM_VERDICT_ALLOW) {
        EXPECT(world, act.terms[1].verdict == ADM_TERM_PASS && act.terms[1].level < POOL_LIMIT);
        EXPECT(world, act.take.lease.high != 0);
        EXPECT(world, atomic_fetch_add(&world->held[partition], 1) < POOL_LIMIT);
        charged(world, partition, 1);
        *holding = (struct holding){ act.take.lease, partition, 1, 1, false };
    } else {
        EXPECT(world,
               act.terms[1].verdict == ADM_TERM_EXCEEDED && act.terms[1].level >= POOL_LIMIT);
    }
}

static inline void work_new_lines(struct worker *worker, struct holding *holding)
{
    struct world *world = worker->world;
    struct act act;

    prepare_new_lines(world, &act);
    EXPECT(world, ask(world, &act) == ADM_OK && act.take.verdict == ADM_VERDICT_ALLOW);
    EXPECT(world, act.terms[0].level == 0 && act.terms[1].level == 0);
    if (act.take.verdict == ADM_VERDICT_ALLOW)
        *holding = (struct holding){ act.take.lease, PARTITIONS, 0, 2, false };
}

static inline void work_denied(struct worker *worker)
{
    struct world *world = worker->world;
    struct act act;

    prepare_denied(world, &act);
    EXPECT(world, ask(world, &act) == ADM_OK && act.take.verdict == ADM_VERDICT_DENY);
    EXPECT(world, act.terms[1].verdict == ADM_TERM_EXCEEDED && act.terms[1].level >= 1);
    EXPECT(world, act.take.lease.high == 0);
}

/* The first time it is charged, then it is known; and with something else in it, refused. */
static inline void work_attempt(struct worker *worker, uint32_t i, bool other)
{
    struct world *world = worker->world;
    struct holding *known = &worker->attempts[i];
    uint32_t partition = 1 + worker->index;
    char name[16];
    struct act act;

    (void)snprintf(name, sizeof name, "%u attempt %u", worker->index, i);
    prepare_take(world, &act, partition_names[partition], 1, MANY);
    prepare_attempt(&act, name, other ? 2 : 1);
    EXPECT(world, ask(world, &act) == ADM_OK);
    if (known->lease.high == 0 && !other) {
        EXPECT(world, act.take.verdict == ADM_VERDICT_ALLOW);
        EXPECT(world, act.take.repeated == ADM_REPEAT_NONE);
        charged(world, partition, 1);
        *known = (struct holding){ act.take.lease, partition, 1, 1, false };
    } else if (known->lease.high != 0 && !other) {
        EXPECT(world, act.take.repeated == ADM_REPEAT_SAME);
        EXPECT(world, same_id(act.take.lease, known->lease));
        EXPECT(world, act.take.memo_out_length == strlen(name));
        EXPECT(world, memcmp(act.memo, name, strlen(name)) == 0);
    } else {
        EXPECT(world, act.take.repeated == ADM_REPEAT_OTHER);
    }
}

static inline void give_back(struct world *world, struct holding *holding, bool twice)
{
    struct act act;

    if (holding->lease.high == 0)
        return;
    if (holding->partition < PARTITIONS && !holding->diverted)
        atomic_fetch_sub(&world->held[holding->partition], 1);
    prepare_lease(&act, ADM_OP_GIVE, holding->lease);
    EXPECT(world, ask(world, &act) == ADM_OK && act.op.outcome == ADM_OUTCOME_RELEASED);
    EXPECT(world, act.op.units == (holding->diverted ? 0 : holding->units));
    if (twice) {
        EXPECT(world, ask(world, &act) == ADM_OK && act.op.units == 0);
        EXPECT(world,
               act.op.outcome == ADM_OUTCOME_ALREADY || act.op.outcome == ADM_OUTCOME_UNKNOWN);
    }
    holding->lease = (struct adm_id){ 0, 0 };
}

static inline void work_on(struct worker *worker, struct holding *holding, uint64_t random)
{
    struct world *world = worker->world;
    struct act act;

    switch (random % 8) {
    case 0:
        prepare_lease(&act, ADM_OP_RENEW, holding->lease);
        EXPECT(world, ask(world, &act) == ADM_OK && act.op.outcome == ADM_OUTCOME_RENEWED);
        break;
    case 1:
    case 2:
        prepare_settle(&act, holding->lease, holding->tokens + random / 8 % 3, 0);
        EXPECT(world, ask(world, &act) == ADM_OK);
        EXPECT(world,
               act.op.outcome == (holding->diverted ? ADM_OUTCOME_ALREADY : ADM_OUTCOME_SETTLED));
        if (holding->diverted || holding->partition == PARTITIONS)
            break;
        charged(world, holding->partition, act.total.value - holding->tokens);
        holding->tokens = act.total.value;
        break;
    case 3:
        if (holding->partition < PARTITIONS && !holding->diverted)
            atomic_fetch_sub(&world->held[holding->partition], 1);
        prepare_lease(&act, ADM_OP_DIVERT, holding->lease);
        EXPECT(world, ask(world, &act) == ADM_OK);
        EXPECT(world,
               act.op.outcome == (holding->diverted ? ADM_OUTCOME_ALREADY : ADM_OUTCOME_DIVERTED));
        EXPECT(world, act.op.units == (holding->diverted ? 0 : holding->units));
        holding->diverted = true;
        break;
    default:
        give_back(world, holding, random / 8 % 4 == 0);
        break;
    }
}

static inline void *work(void *self)
{
    struct worker *worker = self;
    struct world *world = worker->world;

    for (uint64_t i = 0; i < worker->operations; i++) {
        uint64_t random = worker->random =
            worker->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct holding *holding = &worker->holdings[random >> 33 & (LEASES - 1)];
        struct act act;

        random >>= 36;
        if (worker->later_ns > 0 && i == worker->operations / 2)
            atomic_store(&world->mono_ns, worker->later_ns);
        if (random % 16 == 0) {
            work_denied(worker);
        } else if (random % 16 == 1) {
            work_attempt(worker, random >> 4 & (ATTEMPTS - 1),
                         worker->attempts[random >> 4 & (ATTEMPTS - 1)].lease.high != 0 &&
                             (random >> 6 & 3) == 0);
        } else if (random % 16 == 2 && !worker->sweeps_not) {
            prepare_sweep(&act, 5);
            EXPECT(world, ask(world, &act) == ADM_OK);
        } else if (random % 16 == 3) {
            EXPECT(world, level_of(world, POOL, partition_names[HOT]) <= POOL_LIMIT + LATER);
        } else if (holding->lease.high != 0) {
            work_on(worker, holding, random >> 4);
        } else if (random % 16 == 4 || random % 16 == 5) {
            work_new_lines(worker, holding);
        } else {
            work_take(worker, holding, random >> 4 & 1 ? HOT : 1 + worker->index);
        }
    }
    return NULL;
}

static inline void workers_open(struct worker *workers, struct world *world)
{
    memset(workers, 0, WORKERS * sizeof *workers);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].world = world;
        workers[i].index = i;
        workers[i].random = 77 + i;
    }
}

/* At least so many operations, and all of them come to their end. */
static inline void workers_run(struct worker *workers, uint64_t operations, uint64_t later_ns)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i].operations = (operations + WORKERS - 1) / WORKERS;
        workers[i].later_ns = later_ns;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (uint32_t i = 0; i < WORKERS; i++)
        (void)pthread_join(workers[i].thread, NULL);
}

static inline void workers_close(struct worker *workers)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        for (uint32_t n = 0; n < LEASES; n++)
            give_back(workers[i].world, &workers[i].holdings[n], false);
        for (uint32_t n = 0; n < ATTEMPTS; n++)
            give_back(workers[i].world, &workers[i].attempts[n], false);
    }
}

#endif
