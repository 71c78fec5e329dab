/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads on one gate, while another one publishes, rolls back, replaces tables and reads
 * metrics: nothing is held at the end (law L1), and at no moment is more held than a limit allows
 * (laws L2, L9). On the plain backend with blocking calls, and on a deferring one with a queue in
 * each thread.
 *
 * ADMIT_STRESS_OPERATIONS: admits of each thread, 2000 unless given.
 */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/testing.h>

#include "counting_allocator.h"

#define THREADS    4u
#define PARTITIONS 8u
#define LIMIT      6u
#define IN_FLIGHT  8u
#define VERSIONS   10u

/* Numbers that change from version to version, but never the limit that is watched. */
#define POLICY                                                                                     \
    "{\"version\":\"v%u\",\"units\":[\"gpu_ms\"],\"metric_labels\":[\"k\"],\"rules\":["            \
    "{\"id\":\"held\",\"type\":\"concurrency\",\"partition_by\":[\"k\"],\"limit\":6,"              \
    "\"lease_ttl\":\"1h\"},"                                                                       \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],\"capacity\":%u,"         \
    "\"refill\":1000000,\"per\":\"1s\",\"per_replica\":true,\"scope_by\":\"m\","                   \
    "\"overrides\":[{\"when\":{\"k\":\"k%u\"},\"capacity\":7000000}]},"                            \
    "{\"id\":\"exact\",\"type\":\"token_bucket\",\"unit\":\"gpu_ms\",\"capacity\":1000000000,"     \
    "\"refill\":1000000,\"per\":\"1s\",\"settle\":\"exact\"},"                                     \
    "{\"id\":\"load\",\"type\":\"pressure\",\"match\":{\"m\":\"*\"},\"signal\":\"load\","          \
    "\"gt\":0.9,\"scope_by\":\"m\"},"                                                              \
    "{\"id\":\"shadow\",\"type\":\"concurrency\",\"mode\":\"shadow\",\"limit\":%u,"                \
    "\"lease_ttl\":\"1m\"}]}"
#define TABLE                                                                                      \
    "{\"version\":\"t%u\",\"rule\":\"rate\",\"by\":\"k\","                                         \
    "\"entries\":{\"k%u\":{\"capacity\":%u},\"k%u\":\"off\"}}"

struct world {
    struct adm_gate *gate;
    struct counting_allocator counting;
    struct adm_allocator allocator;
    uint64_t operations;
    uint32_t unit;
    _Atomic uint32_t held[PARTITIONS]; /* less than or equal to what the backend holds */
    _Atomic uint64_t allowed, denied, unavailable, cancelled, renewed, settled, diverted;
    _Atomic uint64_t publishes, faults;
    _Atomic int stop;
};

struct worker {
    struct world *world;
    pthread_t thread;
    uint32_t number;
    uint64_t random;
};

static void fault(struct world *world, const char *what, int64_t value)
{
    if (atomic_fetch_add(&world->faults, 1) < 10)
        printf("# %s: %" PRId64 "\n", what, value);
}

static void expect(struct world *world, int holds, const char *what, int64_t value)
{
    if (!holds)
        fault(world, what, value);
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % below;
}

/* ---- a request ---- */

struct job {
    struct adm_request request;
    struct adm_descriptor descriptors[2];
    struct adm_amount amount;
    struct adm_decision decision;
    char key[8];
    uint32_t partition;
    uint64_t ticket;
    int admitted;
};

static void make_job(struct worker *worker, struct job *job)
{
    memset(job, 0, sizeof *job);
    job->partition = (uint32_t)draw(&worker->random, PARTITIONS);
    (void)snprintf(job->key, sizeof job->key, "k%u", job->partition);
    job->descriptors[0].key = adm_str("k");
    job->descriptors[0].value = adm_str(job->key);
    job->descriptors[1].key = adm_str("m");
    job->descriptors[1].value = adm_str(job->partition % 2 == 0 ? "even" : "odd");
    job->amount = (struct adm_amount){ worker->world->unit, 0, 5 };
    job->request.size = sizeof job->request;
    job->request.descriptors = job->descriptors;
    job->request.descriptor_count = 2;
    job->request.amounts = &job->amount;
    job->request.amount_count = 1;
    job->request.cost = 1 + draw(&worker->random, 3);
    job->decision.size = sizeof job->decision;
}

/* Right after the grant, and right before it is given back: what is counted here is held there. */
static void note_decision(struct world *world, struct job *job)
{
    const struct adm_decision *d = &job->decision;

    if (d->verdict == ADM_VERDICT_ALLOW) {
        uint32_t cost = (uint32_t)job->request.cost;
        uint32_t now = atomic_fetch_add(&world->held[job->partition], cost) + cost;

        expect(world, now <= LIMIT, "more is held than the limit allows", now);
        expect(world, d->lease.high != 0 || d->lease.low != 0, "allowed without a lease", 0);
        atomic_fetch_add(&world->allowed, 1);
        job->admitted = 1;
    } else if (d->reason == ADM_REASON_STATE_UNAVAILABLE) {
        atomic_fetch_add(&world->unavailable, 1);
    } else {
        expect(world,
               d->reason == ADM_REASON_CONCURRENCY_EXCEEDED || d->reason == ADM_REASON_PRESSURE,
               "reason", d->reason);
        atomic_fetch_add(&world->denied, 1);
    }
}

static void use_lease(struct worker *worker, struct job *job, int may_be_late)
{
    struct world *world = worker->world;
    const struct adm_amount total = { world->unit, 0, draw(&worker->random, 10) };
    uint32_t outcome = 0;
    adm_status status = adm_renew(world->gate, job->decision.lease, &outcome);

    expect(world, status == ADM_OK || (may_be_late && adm_status_class(status) == 4), "renew",
           status);
    expect(world, status != ADM_OK || outcome == ADM_OUTCOME_RENEWED, "renewed", outcome);
    atomic_fetch_add(&world->renewed, 1);
    status = adm_settle(world->gate, job->decision.lease, &total, 1,
                        (uint32_t)draw(&worker->random, 2), &outcome);
    expect(world, status == ADM_OK, "settle", status);
    expect(world, outcome == ADM_OUTCOME_SETTLED || (may_be_late && outcome == ADM_OUTCOME_QUEUED),
           "settled", outcome);
    atomic_fetch_add(&world->settled, 1);
}

static void end_lease(struct worker *worker, struct job *job, int may_be_late)
{
    struct world *world = worker->world;
    int divert = draw(&worker->random, 4) == 0;
    uint32_t outcome = 0;
    adm_status status;

    atomic_fetch_sub(&world->held[job->partition], (uint32_t)job->request.cost);
    if (divert) {
        status = adm_divert(world->gate, job->decision.lease, &outcome);
        expect(world, status == ADM_OK, "divert", status);
        expect(world,
               outcome == ADM_OUTCOME_DIVERTED || (may_be_late && outcome == ADM_OUTCOME_QUEUED),
               "diverted", outcome);
        atomic_fetch_add(&world->diverted, 1);
    }
    status = adm_release(world->gate, job->decision.lease,
                         (uint32_t)draw(&worker->random, ADM_RESULT_COUNT), &outcome);
    expect(world, status == ADM_OK, "release", status);
    expect(world, outcome == ADM_OUTCOME_RELEASED || (may_be_late && outcome == ADM_OUTCOME_QUEUED),
           "released", outcome);
    job->admitted = 0;
}

static void send_signal(struct worker *worker)
{
    static const char *const scopes[] = { "even", "odd" };
    struct world *world = worker->world;
    const char *scope = scopes[draw(&worker->random, 2)];
    char replica[8];
    adm_status status;

    (void)snprintf(replica, sizeof replica, "r%u", (uint32_t)draw(&worker->random, 5));
    status = adm_gate_signal(world->gate, adm_str(scope), adm_str(replica), adm_str("healthy"), 1);
    expect(world, status == ADM_OK, "signal", status);
    status = adm_gate_signal(world->gate, adm_str(scope), adm_str(replica), adm_str("load"),
                             (double)draw(&worker->random, 100) / 100);
    expect(world, status == ADM_OK, "signal", status);
}

/* ---- blocking workers ---- */

static void *work_blocking(void *self)
{
    struct worker *worker = self;
    struct world *world = worker->world;
    struct job *jobs = calloc(IN_FLIGHT, sizeof *jobs);

    for (uint64_t i = 0; jobs != NULL && i < world->operations; i++) {
        struct job *job = &jobs[i % IN_FLIGHT];
        adm_status status;

        if (job->admitted) {
            use_lease(worker, job, 0);
            end_lease(worker, job, 0);
        }
        make_job(worker, job);
        status = adm_admit(world->gate, &job->request, &job->decision);
        expect(world, status == ADM_OK, "admit", status);
        if (status == ADM_OK)
            note_decision(world, job);
        if (i % 16 == 0)
            send_signal(worker);
    }
    for (uint32_t i = 0; jobs != NULL && i < IN_FLIGHT; i++)
        if (jobs[i].admitted)
            end_lease(worker, &jobs[i], 0);
    expect(world, jobs != NULL, "no memory", 0);
    free(jobs);
    return NULL;
}

/* ---- workers with a queue ---- */

static void take_completions(struct worker *worker, struct adm_queue *queue)
{
    struct adm_completion c = { .size = sizeof c };

    while (adm_queue_next(queue, &c) == 1) {
        struct job *job = c.user;

        expect(worker->world, c.status == ADM_OK, "completion", c.status);
        expect(worker->world, job != NULL && c.ticket == job->ticket, "ticket", (int64_t)c.ticket);
        expect(worker->world, job != NULL && c.decision == &job->decision, "decision", 0);
        if (job == NULL || c.status != ADM_OK)
            continue;
        job->ticket = 0;
        note_decision(worker->world, job);
    }
}

static void wait_for(struct adm_queue *queue)
{
    struct pollfd fd = { adm_queue_fd(queue), POLLIN, 0 };

    (void)poll(&fd, 1, adm_queue_deadline(queue) == 0 ? 0 : 1);
}

static void start_job(struct worker *worker, struct adm_queue *queue, struct job *job)
{
    struct world *world = worker->world;
    adm_status status;

    make_job(worker, job);
    status = adm_admit_start(world->gate, queue, &job->request, &job->decision, job, &job->ticket);
    expect(world, status == ADM_OK, "admit_start", status);
    if (status == ADM_OK && job->ticket == 0)
        note_decision(world, job);
    if (job->ticket != 0 && draw(&worker->random, 10) == 0 &&
        adm_ticket_cancel(queue, job->ticket) == 1) {
        job->ticket = 0;
        atomic_fetch_add(&world->cancelled, 1);
    }
}

static void work_through(struct worker *worker, struct adm_queue *queue, struct job *jobs)
{
    struct world *world = worker->world;

    for (uint64_t i = 0; i < world->operations; i++) {
        struct job *job = &jobs[i % IN_FLIGHT];

        while (job->ticket != 0) {
            take_completions(worker, queue);
            if (job->ticket != 0)
                wait_for(queue);
        }
        if (job->admitted) {
            if (i % 4 == 0)
                use_lease(worker, job, 1);
            end_lease(worker, job, 1);
        }
        start_job(worker, queue, job);
        if (i % 16 == 0)
            send_signal(worker);
    }
}

static void *work_queued(void *self)
{
    struct worker *worker = self;
    struct job *jobs = calloc(IN_FLIGHT, sizeof *jobs);
    struct adm_queue *queue = NULL;
    adm_status status = adm_queue_open(worker->world->gate, &queue);

    expect(worker->world, status == ADM_OK && jobs != NULL, "queue_open", status);
    if (status == ADM_OK && jobs != NULL) {
        work_through(worker, queue, jobs);
        adm_queue_close(queue); /* what is open is taken back, or given back */
        for (uint32_t i = 0; i < IN_FLIGHT; i++)
            if (jobs[i].admitted)
                end_lease(worker, &jobs[i], 1);
    }
    free(jobs);
    return NULL;
}

/* ---- the one who changes policies ---- */

static struct adm_policy *make_policy(struct world *world, uint32_t version)
{
    const struct adm_policy_options options = { .size = sizeof options,
                                                .allocator = &world->allocator };
    struct adm_policy *policy = NULL;
    char text[2048];
    adm_status status;

    (void)snprintf(text, sizeof text, POLICY, version, 5000000 + version * 1000,
                   version % PARTITIONS, 3 + version);
    status = adm_policy_load(adm_str(text), &options, &policy, NULL);
    expect(world, status == ADM_OK, "policy", status);
    return policy;
}

static void change(struct worker *worker, uint32_t round, int may_fail)
{
    struct world *world = worker->world;
    uint32_t version = round % VERSIONS;
    struct adm_policy *policy;
    char text[512];
    adm_status status;

    (void)snprintf(text, sizeof text, "v%u", version);
    if (round % 3 == 1 && round > 2 * VERSIONS) {
        status = adm_gate_rollback(world->gate, adm_str(text));
        if (status == ADM_E_UNKNOWN_VERSION)
            status = ADM_OK; /* one of those that are no longer kept */
    } else if (round % 3 == 2) {
        (void)snprintf(text, sizeof text, TABLE, round, version % PARTITIONS, 4000000 + round,
                       (version + 1) % PARTITIONS);
        status = adm_gate_put_table(world->gate, adm_str(text), round % 2, NULL);
    } else {
        policy = make_policy(world, version);
        status = adm_gate_publish(world->gate, policy);
        adm_policy_unref(policy);
    }
    expect(world, status == ADM_OK || (may_fail && adm_status_class(status) == 4), "change",
           status);
    atomic_fetch_add(&world->publishes, 1);
}

static void read_everything(struct world *world, struct worker *worker)
{
    static char text[1u << 18];
    struct adm_backend_info info = { .size = sizeof info };
    struct job job;
    uint64_t length = 0;
    char version[65];
    adm_status status = adm_gate_metrics(world->gate, text, sizeof text, &length);

    expect(world, status == ADM_OK, "metrics", status);
    status = adm_gate_describe(world->gate, &info);
    expect(world, status == ADM_OK, "describe", status);
    status = adm_gate_version(world->gate, version, sizeof version);
    expect(world, status == ADM_OK, "version", status);
    make_job(worker, &job);
    status = adm_explain(world->gate, &job.request, NULL, NULL, &job.decision);
    expect(world, status == ADM_OK, "explain", status);
    status = adm_gate_sweep(world->gate, 16, NULL);
    expect(world, status == ADM_OK || adm_status_class(status) == 4, "sweep", status);
}

struct changer {
    struct worker worker;
    int may_fail;
};

static void *keep_changing(void *self)
{
    struct changer *changer = self;
    struct world *world = changer->worker.world;

    for (uint32_t round = 0; !atomic_load(&world->stop); round++) {
        change(&changer->worker, round, changer->may_fail);
        if (round % 8 == 0)
            read_everything(world, &changer->worker);
    }
    return NULL;
}

/* ---- a whole run ---- */

static int64_t held_at_the_end(struct world *world, uint32_t partition)
{
    struct adm_descriptor d = { .key = adm_str("k") };
    char key[8];
    int64_t held = -1;
    adm_status status = ADM_E_BACKEND_UNAVAILABLE;

    (void)snprintf(key, sizeof key, "k%u", partition);
    d.value = adm_str(key);
    for (uint32_t i = 0; i < 100 && status != ADM_OK; i++)
        status = adm_gate_read(world->gate, adm_str("held"), &d, 1, &held);
    expect(world, status == ADM_OK, "read", status);
    return held;
}

/* What nobody waits for is carried out while somebody calls. */
static void come_to_rest(struct world *world)
{
    static char text[1u << 18];
    const char *pending = NULL;
    uint64_t length = 0;

    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t outcome = 0;

        (void)adm_release(world->gate, (struct adm_id){ 0, 0 }, ADM_RESULT_OK, &outcome);
        if (adm_gate_metrics(world->gate, text, sizeof text - 1, &length) != ADM_OK)
            continue;
        text[length] = '\0';
        pending = strstr(text, "\nadmit_pending_operations ");
        if (pending != NULL &&
            strtoul(pending + strlen("\nadmit_pending_operations "), NULL, 10) == 0)
            return;
        (void)poll(NULL, 0, 1);
    }
    fault(world, "operations are still pending", 0);
}

static uint64_t run(const char *name, const struct adm_deferring_options *deferring,
                    uint64_t operations)
{
    struct world *world = calloc(1, sizeof *world);
    struct worker workers[THREADS];
    struct changer changer = { { world, 0, THREADS, 99 }, deferring != NULL };
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_plain_options plain = { .size = sizeof plain,
                                       .partitions_max = 1024,
                                       .leases_max = 4096,
                                       .attempts_max = 16,
                                       .classes_max = 4096 };
    uint64_t faults;

    if (world == NULL)
        return 1;
    world->allocator = counting_allocator_of(&world->counting);
    world->operations = operations;
    plain.allocator = &world->allocator;
    options.allocator = world->allocator;
    options.backend_timeout_ns = 2 * ADM_MILLISECOND;
    options.policy = make_policy(world, 0);
    if (adm_plain_open(&plain, &options.backend) != ADM_OK ||
        (deferring != NULL &&
         adm_deferring_open(deferring, options.backend, &options.backend) != ADM_OK) ||
        adm_gate_new(&options, &world->gate) != ADM_OK ||
        adm_gate_unit(world->gate, adm_str("gpu_ms"), &world->unit) != ADM_OK)
        return 1;
    adm_policy_unref(options.policy);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ world, 0, i, i + 1 };
        if (pthread_create(&workers[i].thread, NULL, deferring ? work_queued : work_blocking,
                           &workers[i]) != 0)
            return 1;
    }
    if (pthread_create(&changer.worker.thread, NULL, keep_changing, &changer) != 0)
        return 1;
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(workers[i].thread, NULL);
    atomic_store(&world->stop, 1);
    (void)pthread_join(changer.worker.thread, NULL);
    come_to_rest(world);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        int64_t held = held_at_the_end(world, p);

        expect(world, held == 0, "held at the end", held);
        expect(world, atomic_load(&world->held[p]) == 0, "the test's own count", 0);
    }
    adm_gate_free(world->gate);
    expect(world, atomic_load(&world->counting.bytes) == 0, "bytes leaked",
           atomic_load(&world->counting.bytes));
    expect(world, atomic_load(&world->counting.wrong_size) == 0, "released with a wrong size", 0);
    expect(world, atomic_load(&world->allowed) > 0 && atomic_load(&world->publishes) > 0,
           "nothing happened", 0);
    printf("# %s: allowed %" PRIu64 ", denied %" PRIu64 ", unavailable %" PRIu64
           ", cancelled %" PRIu64 ", renewed %" PRIu64 ", settled %" PRIu64 ", diverted %" PRIu64
           ", changes of policy %" PRIu64 ", faults %" PRIu64 "\n",
           name, atomic_load(&world->allowed), atomic_load(&world->denied),
           atomic_load(&world->unavailable), atomic_load(&world->cancelled),
           atomic_load(&world->renewed), atomic_load(&world->settled),
           atomic_load(&world->diverted), atomic_load(&world->publishes),
           atomic_load(&world->faults));
    faults = atomic_load(&world->faults);
    free(world);
    return faults;
}

int main(void)
{
    static const struct {
        const char *name;
        struct adm_deferring_options deferring;
    } runs[] = {
        { "L1 L2 L9 threads on the plain backend", { .size = 0 } },
        { "L1 L2 L9 queues on a backend that answers late",
          { .size = sizeof(struct adm_deferring_options), .polls_max = 3, .seed = 1 } },
        { "L1 L2 L9 queues on a backend that answers out of order, and often too late",
          { .size = sizeof(struct adm_deferring_options),
            .flags = ADM_DEFER_OUT_OF_ORDER | ADM_DEFER_KEEP_CANCELLED,
            .polls_max = 300,
            .seed = 2 } },
    };
    const char *wanted = getenv("ADMIT_STRESS_OPERATIONS");
    uint64_t operations = wanted == NULL ? 2000 : strtoull(wanted, NULL, 10);
    uint64_t failed = 0;

    printf("1..%zu\n", sizeof runs / sizeof runs[0]);
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        uint64_t faults =
            run(runs[i].name, runs[i].deferring.size == 0 ? NULL : &runs[i].deferring, operations);

        printf("%s %zu - %s\n", faults == 0 ? "ok" : "not ok", i + 1, runs[i].name);
        (void)fflush(stdout);
        failed += faults != 0;
    }
    return failed == 0 ? 0 : 1;
}
