/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The differential simulator: random policies and operations on a real gate and on the model, every
 * answer compared.
 *
 *   simulate [--seed N] [--runs N] [--operations N] [--seconds N] [--total N] [--replays N]
 *            [--backend plain|deferring|memory] [--plant NAME|all]
 *
 * --operations: of one run, each with a new gate. It ends after --runs, --total operations or
 * --seconds (20 when nothing else is given), whichever comes first, or at the first difference,
 * which is shrunk in at most --replays replays and printed. ADMIT_SIMULATE_OPERATIONS in the
 * environment sets --total and lifts --seconds.
 * --plant: a deliberately wrong model must be found out within a bounded number of operations.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model_state.h"
#include "player.h"
#include "shrink.h"

#define PLANT_OPERATIONS 3000000 /* within which a planted fault must be found */
#define COVERAGE_FROM    400000  /* operations after which everything must have been reached */

struct arguments {
    uint64_t seed, runs, operations, total;
    double seconds;
    enum run_backend backend;
    int replays; /* for shrinking */
    const char *plant;
};

/* For the time budget only; the gate and the model live on the injected clock. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Whether the same operations agree without the planted fault: then it was the fault that was
 * found. */
static bool agrees(const struct run *run, struct model *model)
{
    struct tally tally = { 0 };
    struct player *p = player_new(run, model, PLANT_NONE, NULL, &tally);
    bool same = p != NULL;
    for (int i = 0; i < run->operation_count && same; i++)
        same = player_play(p, i);
    player_free(p);
    return same;
}

/* Plays one run; true when a difference was found, which is shrunk and printed unless it was
 * planted. */
static bool play_run(const struct arguments *a, uint64_t seed, struct model *model,
                     enum model_plant plant, struct tally *tally, uint64_t *played)
{
    struct run *run = run_new(seed, a->backend);
    struct player *p = player_new(run, model, plant, NULL, tally);
    struct generator *g = generator_new(run, model);
    bool different = p == NULL || player_difference(p)[0] != '\0';
    for (uint64_t i = 0; i < a->operations && !different; i++) {
        generator_next(g);
        different = !player_play(p, (int)i);
        ++*played;
        if (!different && player_answer(p) != NULL)
            generator_saw(g, (int)i, player_answer(p));
    }
    if (different && plant == PLANT_NONE) {
        printf("difference in the run of seed %" PRIu64 ", operation %d\n%s", seed,
               run->operation_count - 1, p != NULL ? player_difference(p) : "");
        fflush(stdout);
        shrink(run, model, plant, a->replays);
    }
    if (different && plant != PLANT_NONE)
        different = agrees(run, model);
    generator_free(g);
    player_free(p);
    run_free(run);
    return different;
}

/* ---- what was exercised ---- */

static int report(const struct tally *t, uint64_t played)
{
    int missing = 0;
    for (int i = 0; i < OPERATION_KINDS; i++)
        printf("%s=%" PRIu64 " ", operation_names[i], t->operations[i]);
    printf("\n");
    for (uint32_t i = 0; i < ADM_REASON_COUNT; i++) {
        if (i == ADM_REASON_EMERGENCY_ALLOWED || i == ADM_REASON_STATE_UNAVAILABLE)
            continue; /* no emergency allowances yet; the backend never fails here */
        printf("%s=%" PRIu64 " ", adm_reason_name(i), t->reasons[i]);
        missing += t->reasons[i] == 0;
    }
    printf("\n");
    for (uint32_t i = 0; i < ADM_OUTCOME_COUNT; i++) {
        if (i == ADM_OUTCOME_QUEUED)
            continue;
        printf("%s=%" PRIu64 " ", adm_outcome_name(i), t->outcomes[i]);
        missing += t->outcomes[i] == 0;
    }
    printf("\ninvalid=%" PRIu64 " repeated=%" PRIu64 " shadow_denied=%" PRIu64
           " shadow_unknown=%" PRIu64 " published=%" PRIu64 " refused=%" PRIu64 " levels=%" PRIu64
           "\n",
           t->invalid, t->repeated, t->shadow_denied, t->shadow_unknown, t->published, t->refused,
           t->levels);
    missing += (t->invalid == 0) + (t->repeated == 0) + (t->shadow_denied == 0) +
               (t->shadow_unknown == 0) + (t->refused == 0);
    if (missing > 0 && played >= COVERAGE_FROM)
        printf("%d things were never reached\n", missing);
    return played >= COVERAGE_FROM ? missing : 0;
}

static int simulate(const struct arguments *a)
{
    struct model *model = model_new();
    struct tally tally = { 0 };
    uint64_t played = 0;
    uint64_t differences = 0;
    double begun = seconds_now();
    for (uint64_t i = 0; i < a->runs && played < a->total && differences == 0; i++) {
        if (a->seconds > 0 && seconds_now() - begun > a->seconds)
            break;
        differences += play_run(a, a->seed + i, model, PLANT_NONE, &tally, &played);
    }
    int missing = differences == 0 ? report(&tally, played) : 0;
    printf("%" PRIu64 " operations, %" PRIu64 " differences, seed %" PRIu64 ", %.1f s\n", played,
           differences, a->seed, seconds_now() - begun);
    model_free(model);
    return differences > 0 || missing > 0 ? 1 : 0;
}

/* ---- planted faults ---- */

static bool find_plant(const struct arguments *a, enum model_plant plant)
{
    struct model *model = model_new();
    struct tally tally = { 0 };
    uint64_t played = 0;
    bool found = false;
    for (uint64_t i = 0; !found && played < PLANT_OPERATIONS; i++)
        found = play_run(a, a->seed + i, model, plant, &tally, &played);
    printf("%s - planted fault %s: %s %" PRIu64 " operations\n", found ? "ok" : "not ok",
           model_plant_names[plant], found ? "found after" : "not found in", played);
    fflush(stdout);
    model_free(model);
    return found;
}

static int find_plants(const struct arguments *a)
{
    bool every = strcmp(a->plant, "all") == 0;
    int known = 0;
    int missed = 0;
    if (every)
        printf("1..%d\n", PLANT_COUNT - 1);
    for (int i = PLANT_NONE + 1; i < PLANT_COUNT; i++) {
        if (!every && strcmp(a->plant, model_plant_names[i]) != 0)
            continue;
        known++;
        missed += !find_plant(a, (enum model_plant)i);
    }
    if (known == 0)
        printf("no such plant: %s\n", a->plant);
    return known == 0 || missed > 0 ? 1 : 0;
}

/* ---- arguments ---- */

static bool read_arguments(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (value == NULL)
            return false;
        if (strcmp(name, "--seed") == 0)
            a->seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--runs") == 0)
            a->runs = strtoull(value, NULL, 10);
        else if (strcmp(name, "--operations") == 0)
            a->operations = strtoull(value, NULL, 10);
        else if (strcmp(name, "--total") == 0)
            a->total = strtoull(value, NULL, 10);
        else if (strcmp(name, "--replays") == 0)
            a->replays = atoi(value);
        else if (strcmp(name, "--seconds") == 0)
            a->seconds = strtod(value, NULL);
        else if (strcmp(name, "--plant") == 0)
            a->plant = value;
        else if (strcmp(name, "--backend") == 0 && strcmp(value, "plain") == 0)
            a->backend = RUN_PLAIN;
        else if (strcmp(name, "--backend") == 0 && strcmp(value, "deferring") == 0)
            a->backend = RUN_DEFERRING;
        else if (strcmp(name, "--backend") == 0 && strcmp(value, "memory") == 0)
            a->backend = RUN_MEMORY;
        else
            return false;
    }
    return a->operations >= 1 && a->operations <= 8000;
}

int main(int argc, char **argv)
{
    struct arguments a = {
        .seed = 1, .runs = UINT64_MAX, .operations = 3000, .total = UINT64_MAX, .replays = 4000
    };
    const char *total = getenv("ADMIT_SIMULATE_OPERATIONS");
    if (!read_arguments(argc, argv, &a)) {
        fprintf(stderr, "usage: simulate [--seed N] [--runs N] [--operations 1…8000] [--total N] "
                        "[--seconds N] [--replays N]\n"
                        "                [--backend plain|deferring|memory] [--plant NAME|all]\n");
        return 2;
    }
    if (a.plant != NULL)
        return find_plants(&a);
    if (total != NULL) {
        a.total = strtoull(total, NULL, 10);
        a.seconds = 0;
    } else if (a.runs == UINT64_MAX && a.total == UINT64_MAX && a.seconds <= 0) {
        a.seconds = 20;
    }
    return simulate(&a);
}
