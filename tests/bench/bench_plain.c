/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an admit and its release cost on the plain backend, beside a bare mutex around a counter in
 * the same run.
 *
 * A measurement, never a test: nothing here fails because a machine is slow. Candidates take turns
 * in short windows of one thread; a window in which the kernel took the processor away is dropped.
 * Reported are medians, and quartiles of the ratio to the window of another candidate in the same
 * round, because a ratio survives a change of clock speed.
 *
 *      bench_plain [ROUNDS]        rounds of windows, at least 31 [61]
 */
#include "rig.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define ROUNDS_MIN 31u
#define ROUNDS_MAX 1001u
#define WINDOW_NS 2000000u /* long enough for the clock, short enough to be left alone */

struct counter {
    pthread_mutex_t mutex;
    uint64_t held;
};

struct candidate {
    const char *name;
    void (*pair)(void *self); /* one admit and its release */
    void *self;
    uint64_t pairs; /* per window */
    double ns[ROUNDS_MAX];
    bool clean[ROUNDS_MAX];
};

static void counter_pair(void *self)
{
    struct counter *counter = self;

    pthread_mutex_lock(&counter->mutex);
    bool allowed = counter->held < 1000000;
    if (allowed)
        counter->held++;
    pthread_mutex_unlock(&counter->mutex);
    if (!allowed)
        die("the counter is full");
    pthread_mutex_lock(&counter->mutex);
    counter->held--;
    pthread_mutex_unlock(&counter->mutex);
}

static void gate_pair(void *self)
{
    rig_pair(self);
}

/* A host that read the clock already, for its own purposes. */
static void clock_of_the_host(void *self, struct adm_time *out)
{
    *out = *(const struct adm_time *)self;
}

/* ---- windows -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long taken_away(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        die("no getrusage");
    return usage.ru_nivcsw;
}

static void window(struct candidate *candidate, unsigned round)
{
    long switches = taken_away();
    uint64_t from = now_ns();

    for (uint64_t i = 0; i < candidate->pairs; i++)
        candidate->pair(candidate->self);
    candidate->ns[round] = (double)(now_ns() - from) / (double)candidate->pairs;
    candidate->clean[round] = taken_away() == switches;
}

/* Warm up, and find how many pairs fill a window. */
static void calibrate(struct candidate *candidate)
{
    for (candidate->pairs = 64; candidate->pairs < (uint64_t)1 << 40; candidate->pairs *= 2) {
        uint64_t from = now_ns();

        for (uint64_t i = 0; i < candidate->pairs; i++)
            candidate->pair(candidate->self);
        if (now_ns() - from >= WINDOW_NS)
            return;
    }
}

/* The first round that was one too many: at least rounds, and then until everybody has enough
 * clean ones. */
static unsigned measure(struct candidate *all, int count, unsigned rounds)
{
    unsigned clean[16] = { 0 }, round = 0;
    bool enough = false;

    while (round < rounds || (!enough && round < ROUNDS_MAX)) {
        enough = true;
        for (int i = 0; i < count; i++) {
            window(&all[i], round);
            clean[i] += all[i].clean[round];
            enough = enough && clean[i] >= ROUNDS_MIN;
        }
        round++;
    }
    if (!enough)
        printf("too few clean windows: this machine was too busy for these numbers to mean much\n");
    return round;
}

/* ---- what the windows say ------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

struct quartiles {
    double q1, median, q3;
    unsigned windows;
};

/* Of candidate's windows, or of their ratio to base's windows of the same rounds. */
static struct quartiles quartiles(const struct candidate *candidate, const struct candidate *base,
                                  unsigned rounds)
{
    double values[ROUNDS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < rounds; i++)
        if (candidate->clean[i] && (base == NULL || base->clean[i]))
            values[n++] = candidate->ns[i] / (base != NULL ? base->ns[i] : 1);
    if (n == 0)
        return (struct quartiles){ 0, 0, 0, 0 };
    qsort(values, n, sizeof values[0], by_size);
    return (struct quartiles){ values[n / 4], values[n / 2], values[3 * n / 4], n };
}

static void row(const struct candidate *candidate, const struct candidate *base, unsigned rounds)
{
    struct quartiles ns = quartiles(candidate, NULL, rounds);
    struct quartiles ratio = quartiles(candidate, base, rounds);

    printf("%-44s %8.1f %9.2f %7.2f %7.2f %8u\n", candidate->name, ns.median, ratio.median,
           ratio.q1, ratio.q3, ratio.windows);
}

static void head(const char *title, const char *base)
{
    printf("\n%s\n%-44s %8s %9s %7s %7s %8s\n", title, "", "ns", base, "q1", "q3", "windows");
}

/* ---- candidates ----------------------------------------------------------------------------- */

enum { BARE, ONE, TWO, FOUR, EIGHT, GIVEN, EXACT_10000, MIXED_10000, CANDIDATES };

static void open_rig(struct rig *rig, unsigned matching, unsigned others, enum other_rules kind,
                     struct adm_clock clock)
{
    struct text policy = { NULL, 0, 0 };
    struct adm_allocator none = { NULL, NULL, NULL };

    text_policy(&policy, matching, others, kind);
    rig_open(rig, policy.bytes, policy.length, clock, none);
    text_free(&policy);
}

static void set(struct candidate *candidate, const char *name, void (*pair)(void *), void *self)
{
    candidate->name = name;
    candidate->pair = pair;
    candidate->self = self;
}

static void report(const struct candidate *all, unsigned rounds)
{
    head("admit + release, one thread, every rule matches", "x mutex");
    for (int i = BARE; i <= GIVEN; i++)
        row(&all[i], &all[BARE], rounds);
    head("4 matching rules among others that do not match", "x 4");
    row(&all[FOUR], &all[FOUR], rounds);
    row(&all[EXACT_10000], &all[FOUR], rounds);
    row(&all[MIXED_10000], &all[FOUR], rounds);
}

int main(int argc, char **argv)
{
    static struct candidate all[CANDIDATES];
    static struct rig rigs[CANDIDATES];
    struct counter counter = { PTHREAD_MUTEX_INITIALIZER, 0 };
    struct adm_time given = { now_ns(), UINT64_C(1767600000) * ADM_SECOND };
    struct adm_clock system = { NULL, NULL }, host = { &given, clock_of_the_host };
    unsigned rounds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 61;

    if (rounds < ROUNDS_MIN || rounds > ROUNDS_MAX)
        die("rounds: %u to %u", ROUNDS_MIN, ROUNDS_MAX);
    open_rig(&rigs[ONE], 1, 0, OTHER_EXACT, system);
    open_rig(&rigs[TWO], 2, 0, OTHER_EXACT, system);
    open_rig(&rigs[FOUR], 4, 0, OTHER_EXACT, system);
    open_rig(&rigs[EIGHT], 8, 0, OTHER_EXACT, system);
    open_rig(&rigs[GIVEN], 4, 0, OTHER_EXACT, host);
    open_rig(&rigs[EXACT_10000], 4, 9996, OTHER_EXACT, system);
    open_rig(&rigs[MIXED_10000], 4, 9996, OTHER_MIXED, system);
    set(&all[BARE], "bare pthread mutex around a counter", counter_pair, &counter);
    set(&all[ONE], "1 rule (token bucket: no lease)", gate_pair, &rigs[ONE]);
    set(&all[TWO], "2 rules (1 token bucket, 1 concurrency)", gate_pair, &rigs[TWO]);
    set(&all[FOUR], "4 rules (2 + 2)", gate_pair, &rigs[FOUR]);
    set(&all[EIGHT], "8 rules (4 + 4)", gate_pair, &rigs[EIGHT]);
    set(&all[GIVEN], "4 rules, the host passes the time", gate_pair, &rigs[GIVEN]);
    set(&all[EXACT_10000], "10 000 rules, exact values", gate_pair, &rigs[EXACT_10000]);
    set(&all[MIXED_10000], "10 000 rules, prefixes and negations too", gate_pair,
        &rigs[MIXED_10000]);
    for (int i = 0; i < CANDIDATES; i++)
        calibrate(&all[i]);
    report(all, measure(all, CANDIDATES, rounds));
    for (int i = ONE; i < CANDIDATES; i++)
        rig_close(&rigs[i]);
    return 0;
}
