/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a decision costs, as a ratio to what it cannot do without (floor.h), measured in turns in
 * one process.
 *
 *      admit-bench --floor [--backend memory|plain|null] [--rounds N]
 *
 * Prints each case with its goal, and ends with 1 when a goal is missed. On the backend null the
 * work on state is missing: then it tells what the gate's own part costs. A measurement of this
 * machine at this moment, not a test: a busy machine misses goals.
 */
#include "floor.h"
#include "many.h"
#include "null_backend.h"
#include "rig.h"
#include "windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE, HELD, FOUR, DENY, EIGHT, CASES };

#define FURTHER_GOAL_NS 25.0

struct bench_case {
    const char *name;
    double goal; /* ratio to the floor; 0: none */
    unsigned matching;
    struct floor_work floor;
};

static struct bench_case cases[CASES] = {
    [RATE] = { "1 rate rule", 1.8, 1, { 2, 1, 0, false } },
    [HELD] = { "1 concurrency rule + lease + release", 2.3, 1, { 2, 1, 1, false } },
    [FOUR] = { "4 rules (2 + 2) + lease + release", 2.6, 4, { 3, 4, 2, false } },
    [DENY] = { "4 rules, denied", 1.8, 4, { 3, 4, 0, true } },
    [EIGHT] = { "8 rules (4 + 4) + lease + release", 0, 8, { 3, 8, 4, false } },
};

static void admit_only(void *self)
{
    struct rig *rig = self;

    if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
        rig->decision.verdict != ADM_VERDICT_ALLOW)
        die("a request was not allowed: %s", adm_reason_name(rig->decision.reason));
}

static void denied(void *self)
{
    struct rig *rig = self;

    if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
        rig->decision.verdict != ADM_VERDICT_DENY)
        die("a request was not denied");
}

static void admit_and_release(void *self)
{
    rig_pair(self);
}

static struct adm_backend backend_of(const char *name, bool deny)
{
    struct adm_plain_options plain = { .size = sizeof plain };
    struct adm_memory_options memory = { .size = sizeof memory };
    struct adm_backend backend;
    adm_status status;

    if (strcmp(name, "null") == 0)
        return null_backend(deny);
    if (strcmp(name, "memory") == 0)
        status = adm_memory_open(&memory, &backend);
    else if (strcmp(name, "plain") == 0)
        status = adm_plain_open(&plain, &backend);
    else
        die("no backend %s: memory, plain or null", name);
    if (status != ADM_OK)
        die("no backend: %s", adm_status_name(status));
    return backend;
}

/* Limits that the real backends deny by: the request costs more than there is. */
static void open_case(struct rig *rig, int number, const char *backend)
{
    struct text policy = { NULL, 0, 0 };

    if (number == HELD)
        text_add(&policy,
                 "{\"version\":\"bench\",\"rules\":[{\"id\":\"r\",\"match\":{\"m\":\"llm\"},"
                 "\"partition_by\":[\"t\"],\"type\":\"concurrency\",\"limit\":1000000,"
                 "\"lease_ttl\":\"1m\"}]}");
    else
        text_policy(&policy, cases[number].matching, 0, OTHER_EXACT);
    rig_open_on(rig, policy.bytes, policy.length, backend_of(backend, number == DENY));
    if (number == DENY)
        rig->request.cost = 1000000000000u; /* above the concurrency limit */
    text_free(&policy);
}

static bool report(const struct candidate *floors, const struct candidate *gates, unsigned rounds)
{
    bool met = true;
    double further = (quartiles(&gates[EIGHT], NULL, rounds).median -
                      quartiles(&gates[FOUR], NULL, rounds).median) /
                     4;

    printf("%-40s %8s %8s %7s %7s %7s %6s %8s\n", "", "floor ns", "ns", "ratio", "q1", "q3", "goal",
           "windows");
    for (int i = 0; i < CASES; i++) {
        struct quartiles r = quartiles(&gates[i], &floors[i], rounds);
        bool missed = cases[i].goal > 0 && !(r.windows > 0 && r.median <= cases[i].goal);

        printf("%-40s %8.1f %8.1f %7.2f %7.2f %7.2f ", cases[i].name,
               quartiles(&floors[i], NULL, rounds).median,
               quartiles(&gates[i], NULL, rounds).median, r.median, r.q1, r.q3);
        if (cases[i].goal > 0)
            printf("%6.2f", cases[i].goal);
        else
            printf("%6s", "-");
        printf(" %8u%s\n", r.windows, missed ? "  missed" : "");
        met = met && !missed;
    }
    printf("%-40s %8s %8.1f %31.1f%s\n", "each further rule", "", further, FURTHER_GOAL_NS,
           further <= FURTHER_GOAL_NS ? "" : "           missed");
    return met && further <= FURTHER_GOAL_NS;
}

static bool against_floor(const char *backend, unsigned rounds)
{
    static struct candidate all[2 * CASES];
    static struct rig rigs[CASES];
    bool met;

    for (int i = 0; i < CASES; i++) {
        open_case(&rigs[i], i, backend);
        all[i] = (struct candidate){ .name = "floor", .pair = floor_pair, .self = &cases[i].floor };
        all[CASES + i] = (struct candidate){ .name = cases[i].name,
                                             .pair = i == RATE   ? admit_only
                                                     : i == DENY ? denied
                                                                 : admit_and_release,
                                             .self = &rigs[i] };
    }
    for (int i = 0; i < 2 * CASES; i++)
        calibrate(&all[i]);
    rounds = measure(all, 2 * CASES, rounds);
    printf("backend %s\n", backend);
    met = report(all, all + CASES, rounds);
    for (int i = 0; i < CASES; i++)
        rig_close(&rigs[i]);
    return met;
}

int main(int argc, char **argv)
{
    const char *backend = "memory";
    unsigned rounds = 61;
    bool floor = false, met;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--floor") == 0)
            floor = true;
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            backend = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = (unsigned)strtoul(argv[++i], NULL, 10);
        else
            die("usage: admit-bench --floor [--backend memory|plain|null] [--rounds N]");
    }
    if (!floor)
        die("usage: admit-bench --floor [--backend memory|plain|null] [--rounds N]");
    if (rounds < ROUNDS_MIN || rounds > ROUNDS_MAX)
        die("rounds: %u to %u", ROUNDS_MIN, ROUNDS_MAX);
    met = against_floor(backend, rounds);
    if (strcmp(backend, "memory") == 0) {
        met = bench_threads(rounds) && met;
        met = bench_partitions() && met;
    }
    return met ? 0 : 1;
}
