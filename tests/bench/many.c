/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads on one gate against one thread, against a mutex and against plain, in turns; and a
 * million partitions that are in no cache.
 */
#include "many.h"
#include "rig.h"
#include "windows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, WINDOW_NS = 20000000 };

/* ---- windows of several threads ---- */

struct subject {
    const char *name;
    void (*once)(struct rig *rig);
    struct adm_gate *gate; /* NULL: a mutex */
    double per_second[ROUNDS_MAX];
};

struct worker {
    struct rig rig;
    const struct subject *subject;
    uint64_t done;
};

static _Atomic bool go_on;
static _Atomic int ready;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock_twice(struct rig *rig)
{
    (void)rig;
    for (int i = 0; i < 2; i++) { /* a pair is an admit and a release */
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static void deny(struct rig *rig)
{
    if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
        rig->decision.verdict != ADM_VERDICT_DENY)
        die("a request was not denied");
}

static void *work(void *self)
{
    struct worker *worker = self;
    uint64_t done = 0;

    atomic_fetch_add(&ready, 1);
    while (!atomic_load_explicit(&go_on, memory_order_acquire)) {
    }
    while (atomic_load_explicit(&go_on, memory_order_relaxed)) {
        for (int i = 0; i < 64; i++)
            worker->subject->once(&worker->rig);
        done += 64;
    }
    worker->done = done;
    return NULL;
}

/* Operations a second of all threads together. */
static double window(const struct subject *subject, const struct rig *rig, unsigned threads)
{
    static struct worker workers[THREADS];
    pthread_t ids[THREADS];
    uint64_t begin, done = 0;

    atomic_store(&ready, 0);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){ .rig = *rig, .subject = subject };
        workers[i].rig.gate = subject->gate;
        workers[i].rig.request.descriptors = workers[i].rig.descriptors;
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            die("no thread");
    }
    while (atomic_load(&ready) < (int)threads) {
    }
    begin = now_ns();
    atomic_store(&go_on, true);
    while (now_ns() - begin < WINDOW_NS) {
    }
    atomic_store(&go_on, false);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        done += workers[i].done;
    }
    return (double)done * 1e9 / (double)(now_ns() - begin);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median_ratio(const double *of, const double *to, unsigned rounds)
{
    static double ratios[ROUNDS_MAX];

    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = of[i] / to[i];
    qsort(ratios, rounds, sizeof ratios[0], by_value);
    return ratios[rounds / 2];
}

/* ---- the cases ---- */

static void open_rig(struct rig *rig, const char *policy, bool memory)
{
    struct adm_memory_options options = { .size = sizeof options };
    struct adm_plain_options plain = { .size = sizeof plain };
    struct adm_backend backend;

    if ((memory ? adm_memory_open(&options, &backend) : adm_plain_open(&plain, &backend)) != ADM_OK)
        die("no backend");
    rig_open_on(rig, policy, strlen(policy), backend);
}

static bool print(const char *name, double ratio, double goal, bool at_least)
{
    bool met = at_least ? ratio >= goal : ratio <= goal;

    printf("%-58s %7.2f  goal %s %5.2f%s\n", name, ratio, at_least ? ">=" : "<=", goal,
           met ? "" : "  missed");
    return met;
}

bool bench_threads(unsigned rounds)
{
    static const char pool[] =
        "{\"version\":\"bench\",\"rules\":[{\"id\":\"r\",\"match\":{\"m\":\"llm\"},"
        "\"partition_by\":[\"t\"],\"type\":\"concurrency\",\"limit\":1000000,\"lease_ttl\":\"1m\"}]"
        "}";
    struct text four = { NULL, 0, 0 };
    static struct subject one_deny, two_deny, two_memory, two_plain, two_pool, two_mutex;
    static struct rig four_memory, four_plain, one_pool, denied;
    bool met = true;

    text_policy(&four, 4, 0, OTHER_EXACT);
    open_rig(&four_memory, four.bytes, true);
    open_rig(&four_plain, four.bytes, false);
    open_rig(&one_pool, pool, true);
    denied = four_memory;
    denied.request.cost = 1000000000000u; /* above the concurrency limit */
    one_deny = (struct subject){ .once = deny, .gate = four_memory.gate };
    two_deny = one_deny;
    two_memory = (struct subject){ .once = rig_pair, .gate = four_memory.gate };
    two_plain = (struct subject){ .once = rig_pair, .gate = four_plain.gate };
    two_pool = (struct subject){ .once = rig_pair, .gate = one_pool.gate };
    two_mutex = (struct subject){ .once = lock_twice };
    for (unsigned i = 0; i < rounds; i++) {
        one_deny.per_second[i] = window(&one_deny, &denied, 1);
        two_deny.per_second[i] = window(&two_deny, &denied, 2);
        two_memory.per_second[i] = window(&two_memory, &four_memory, 2);
        two_plain.per_second[i] = window(&two_plain, &four_plain, 2);
        two_pool.per_second[i] = window(&two_pool, &one_pool, 2);
        two_mutex.per_second[i] = window(&two_mutex, &one_pool, 2);
    }
    printf("\ntwo threads, %u rounds of windows of %d ms\n", rounds, WINDOW_NS / 1000000);
    met &= print("4 rules, denied: throughput of 2 threads to 1",
                 median_ratio(two_deny.per_second, one_deny.per_second, rounds), 1.9, true);
    met &= print("4 rules + lease + release: throughput to plain",
                 median_ratio(two_memory.per_second, two_plain.per_second, rounds), 2, true);
    met &= print("hot pool: time of a pair to one of a global mutex",
                 median_ratio(two_mutex.per_second, two_pool.per_second, rounds), 1.2, false);
    rig_close(&four_memory);
    rig_close(&four_plain);
    rig_close(&one_pool);
    text_free(&four);
    return met;
}

/* ---- a million partitions ---- */

enum { PARTITIONS = 1000000, LOOKS = 400000 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void ask(struct rig *rig, char *name, uint64_t number)
{
    size_t length = (size_t)snprintf(name, 24, "tenant-%llu", (unsigned long long)number);

    rig->descriptors[0].value = (struct adm_bytes){ name, length };
    if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
        rig->decision.verdict != ADM_VERDICT_ALLOW)
        die("a request was not allowed: %s", adm_reason_name(rig->decision.reason));
}

bool bench_partitions(void)
{
    static const char policy[] =
        "{\"version\":\"bench\",\"rules\":[{\"id\":\"r\",\"match\":{\"m\":\"llm\"},"
        "\"partition_by\":[\"t\"],\"type\":\"token_bucket\",\"capacity\":1000000,\"refill\":1,"
        "\"per\":\"1d\"}]}";
    struct adm_memory_options options = { .size = sizeof options, .partitions_max = PARTITIONS };
    struct adm_backend backend;
    struct rig rig;
    char name[24];
    uint64_t seed = 88172645463325252u, begin;
    double made, cold, warm;

    if (adm_memory_open(&options, &backend) != ADM_OK)
        die("no backend");
    rig_open_on(&rig, policy, sizeof policy - 1, backend);
    begin = now_ns();
    for (uint64_t i = 0; i < PARTITIONS; i++)
        ask(&rig, name, i);
    made = (double)(now_ns() - begin) / PARTITIONS;
    begin = now_ns();
    for (uint64_t i = 0; i < LOOKS; i++)
        ask(&rig, name, next_random(&seed) % PARTITIONS);
    cold = (double)(now_ns() - begin) / LOOKS;
    begin = now_ns();
    for (uint64_t i = 0; i < LOOKS; i++)
        ask(&rig, name, 7);
    warm = (double)(now_ns() - begin) / LOOKS;
    printf("\n%d partitions, one rate rule, names of up to 14 bytes written for each\n",
           PARTITIONS);
    printf("made %.0f ns, at random %.0f ns, always the same %.0f ns, goal of at random <= 450%s\n",
           made, cold, warm, cold <= 450 ? "" : "  missed");
    printf(
        "bytes: 64 for a line of up to four rules of a partition, 64 for its key, 9 to 18 for its "
        "entry in the index;\n128 for a lease of up to three rules with four units, 8.2 for its "
        "deadline\n");
    rig_close(&rig);
    return cold <= 450;
}
