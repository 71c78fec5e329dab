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
#include "windows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct counter {
    pthread_mutex_t mutex;
    uint64_t held;
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

/* ---- what the windows say ------------------------------------------------------------------- */

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
