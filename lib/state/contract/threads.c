/* SPDX-License-Identifier: Apache-2.0 */
/* K7 linearisable: whatever runs at once, it is as if one operation had followed another. */
#include "state/contract/suite.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define THREADS 4u
#define ROUNDS  1500u
#define LIMIT   2u

struct shared {
    uint32_t pool, other, rate;
    _Atomic uint64_t inside; /* units that are certainly held */
    _Atomic uint64_t worst;
    _Atomic uint64_t admitted;
    _Atomic uint64_t wrong;   /* denials that no order of operations explains; failures */
    _Atomic uint32_t waiting; /* to begin together */
};

struct worker {
    struct admi_world world; /* a copy: the backend is shared, the rest is its own */
    struct shared *shared;
    uint32_t number;
};

static void *take_and_give(void *self)
{
    struct worker *worker = self;
    struct shared *shared = worker->shared;

    atomic_fetch_sub(&shared->waiting, 1);
    while (atomic_load(&shared->waiting) > 0)
        (void)sched_yield();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct adm_term terms[2] = { admi_world_term(&worker->world, shared->pool, "p", 1, LIMIT),
                                     admi_world_term(&worker->world, shared->rate, "p", 1, 0) };
        struct adm_id lease;

        if (admi_world_take(&worker->world, terms, 2, &lease) != ADM_VERDICT_ALLOW) {
            if (worker->world.status != ADM_OK)
                atomic_fetch_add(&shared->wrong, 1);
            continue;
        }
        uint64_t inside = atomic_fetch_add(&shared->inside, 1) + 1;
        uint64_t worst = atomic_load(&shared->worst);

        while (inside > worst && !atomic_compare_exchange_weak(&shared->worst, &worst, inside))
            continue;
        atomic_fetch_add(&shared->admitted, 1);
        if (i % 4 == 0)
            (void)sched_yield();
        atomic_fetch_sub(&shared->inside, 1);
        if (admi_world_give(&worker->world, lease) != ADM_OUTCOME_RELEASED)
            atomic_fetch_add(&shared->wrong, 1);
    }
    return NULL;
}

/* Thread 0 asks for A and B together, again and again. The others hold B's only unit among them, so
 * A is free whenever one of them asks for it while it holds B: any denial then is a charge of a
 * take that was denied. */
static void *probe(void *self)
{
    struct worker *worker = self;
    struct shared *shared = worker->shared;
    struct adm_id b, a;

    atomic_fetch_sub(&shared->waiting, 1);
    while (atomic_load(&shared->waiting) > 0)
        (void)sched_yield();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct adm_term terms[2] = { admi_world_term(&worker->world, shared->pool, "A", 1, 1),
                                     admi_world_term(&worker->world, shared->other, "B", 1, 1) };

        if (worker->number == 0) {
            if (admi_world_take(&worker->world, terms, 2, &a) == ADM_VERDICT_ALLOW)
                (void)admi_world_give(&worker->world, a);
            continue;
        }
        if (admi_world_take(&worker->world, &terms[1], 1, &b) != ADM_VERDICT_ALLOW)
            continue;
        if (admi_world_take(&worker->world, &terms[0], 1, &a) == ADM_VERDICT_ALLOW)
            (void)admi_world_give(&worker->world, a);
        else
            atomic_fetch_add(&shared->wrong, 1);
        (void)admi_world_give(&worker->world, b);
    }
    return NULL;
}

static bool is_serial(struct admi_check *check)
{
    if (check->world.info.threads != ADM_THREADS_ANY)
        admi_check_skip(check, "the backend is called by one thread at a time");
    return check->world.info.threads != ADM_THREADS_ANY;
}

static void run_threads(struct admi_check *check, struct shared *shared, void *(*body)(void *))
{
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint32_t started = 0;

    atomic_store(&shared->waiting, THREADS);
    for (; started < THREADS; started++) {
        struct worker *worker = &workers[started];

        memset(worker, 0, sizeof *worker);
        worker->world.ops = check->world.ops;
        worker->world.self = check->world.self;
        worker->world.now = check->world.now;
        worker->world.polls_max = check->world.polls_max;
        worker->world.resends = check->world.resends;
        worker->world.sequence = check->world.sequence;
        memcpy(worker->world.classes, check->world.classes, sizeof worker->world.classes);
        worker->world.random = started + 1;
        worker->shared = shared;
        worker->number = started;
        if (pthread_create(&threads[started], NULL, body, worker) != 0)
            break;
    }
    atomic_fetch_sub(&shared->waiting, THREADS - started);
    if (started < THREADS)
        admi_check_skip(check, "no threads");
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(threads[i], NULL);
}

/* B022, B053: the limit is never exceeded, nothing is lost, and of a bucket all is admitted that
 * it holds. */
static void check_limit(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct shared shared = { .pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY),
                             .rate = admi_world_bucket(world, "rate", 1000000, 0, ADM_SECOND) };

    if (is_serial(check))
        return;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    run_threads(check, &shared, take_and_give);
    EXPECT(check, shared.worst <= LIMIT, "%llu held at once of %u",
           (unsigned long long)shared.worst, LIMIT);
    EXPECT(check, shared.wrong == 0, "%llu operations failed", (unsigned long long)shared.wrong);
    EXPECT_LEVEL(check, shared.pool, "p", 0, "everything was given back");
    EXPECT_LEVEL(check, shared.rate, "p", 1000000 - (int64_t)shared.admitted,
                 "every admission was charged once");
}

static void check_spurious(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct shared shared = { .pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY),
                             .other = admi_world_counter(world, "other", ADM_KIND_CONCURRENCY) };

    if (is_serial(check))
        return;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    run_threads(check, &shared, probe);
    /* Of several probes at once one may rightly find A taken by another one: but they share B's
     * only unit. */
    EXPECT(check, shared.wrong == 0, "%llu denials by takes that were denied themselves",
           (unsigned long long)shared.wrong);
    EXPECT_LEVEL(check, shared.pool, "A", 0, "everything was given back");
    EXPECT_LEVEL(check, shared.other, "B", 0, "everything was given back");
}

/* Operations that are away at the same time, in whatever order they come back. */
#define AWAY 16u

static void check_away(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    static struct adm_op ops[AWAY];
    static struct adm_take takes[AWAY];
    static struct adm_term terms[AWAY];
    uint64_t allowed = 0, failed = 0, home = 0;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < AWAY; i++) {
        terms[i] = admi_world_term(world, pool, "p", 1, 5);
        takes[i] = (struct adm_take){ .flags = ADM_TAKE_F_LEASE,
                                      .terms = &terms[i],
                                      .term_count = 1,
                                      .sequence = world->sequence,
                                      .ttl_ns = WORLD_TTL_NS,
                                      .seed = { i + 1, i + 1 } };
        ops[i] = (struct adm_op){ .size = sizeof ops[i],
                                  .kind = ADM_OP_TAKE,
                                  .now = world->now,
                                  .deadline_ns = UINT64_MAX,
                                  .args.take = &takes[i] };
        admi_op_begin(&ops[i], &world->home);
        world->ops.start(world->self, &ops[i]);
    }
    for (uint64_t polls = 0; home < AWAY && polls < world->polls_max; polls++) {
        for (struct adm_op *op = admi_op_drain(&world->home); op != NULL; op = admi_op_next(op)) {
            home++;
            failed += admi_op_status(op) != ADM_OK;
            allowed += admi_op_status(op) == ADM_OK && op->args.take->verdict == ADM_VERDICT_ALLOW;
        }
        if (home < AWAY && world->ops.poll != NULL)
            (void)world->ops.poll(world->self, &world->now);
    }
    world->stuck = home < AWAY;
    EXPECT(check, home == AWAY, "%llu of %u operations came back", (unsigned long long)home, AWAY);
    EXPECT(check, allowed <= 5 && (failed > 0 || allowed == 5), "%llu admitted of 5",
           (unsigned long long)allowed);
    EXPECT_LEVEL(check, pool, "p", allowed, "held");
    for (uint32_t i = 0; i < AWAY; i++) {
        if ((takes[i].lease.high | takes[i].lease.low) != 0 &&
            takes[i].verdict == ADM_VERDICT_ALLOW)
            EXPECT(check, admi_world_give(world, takes[i].lease) == ADM_OUTCOME_RELEASED, "give");
    }
    EXPECT_LEVEL(check, pool, "p", 0, "everything was given back");
}

const struct admi_contract_check admi_contract_threads[] = {
    { 7, "threads never exceed a limit (B022)", check_limit, { 64, 64, 16, 16, NULL } },
    { 7, "no denial by a charge that never was", check_spurious, { 64, 64, 16, 16, NULL } },
    { 7, "operations that are away at once", check_away, { 64, 64, 16, 16, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
