/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of deadlines under threads: nobody ever finds that nothing is due while a deadline that
 * was set is, whoever is raising bounds at that moment, and whoever was stopped in the middle of it.
 *
 * ADMIT_STRESS_SCALE: how many times as long, 10 unless given (2 under the thread sanitizer). ADMIT_STRESS_SEED.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "state/memory_deadline.c"

enum { PLACES = 64 * 5 + 3, ADDERS = 3, VISITORS = 2, STEP = 1024, BYTES = 1 << 16 };

static unsigned tests, failures;
static uint64_t scale = STRESS_SCALE, seed = 1;

static void ok(int passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    failures += !passed;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static _Alignas(64) uint8_t memory[BYTES];
static struct admi_txn_context contexts[8];

static struct memory_deadlines *fresh(uint64_t places)
{
    struct memory_deadlines *deadlines = (struct memory_deadlines *)(void *)memory;
    uint64_t end = sizeof *deadlines;

    memset(memory, 0, sizeof memory);
    admi_memory_deadlines_init(deadlines, places, &end);
    if (end > sizeof memory)
        abort();
    admi_memory_deadlines_clear(deadlines);
    return deadlines;
}

static struct admi_txn txn_of(uint32_t self)
{
    return (struct admi_txn){ .words = (_Atomic uint64_t *)(void *)memory,
                              .contexts = contexts,
                              .context_count = 8,
                              .self = self };
}

struct visits {
    struct memory_deadlines *deadlines;
    uint64_t now, count, early;
    uint8_t seen[PLACES];
};

/* It ends: its deadline is never, from now on. */
static void end_it(void *self, uint64_t place)
{
    struct visits *visits = self;
    _Atomic uint64_t *deadline = admi_memory_deadline(visits->deadlines, place);
    uint64_t met = atomic_load(deadline);

    if (ADMI_TXN_VALUE_OF(met) > visits->now)
        visits->early++;
    else if (atomic_compare_exchange_strong(deadline, &met,
                                            ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER)))
        visits->count++;
    visits->seen[place] = 1;
}

/* ---- one thread ---- */

static void finds_exactly_what_is_due(uint64_t places)
{
    struct memory_deadlines *deadlines = fresh(places);
    struct admi_txn txn = txn_of(0);
    uint64_t when[PLACES], random = seed + places;
    int good = !admi_memory_deadline_is_due(deadlines, MEMORY_DEADLINE_NEVER - STEP);
    char what[96];

    for (uint64_t i = 0; i < places; i++) {
        when[i] = (1 + next_random(&random) % 50) * STEP + next_random(&random) % STEP;
        admi_memory_deadline_set(deadlines, i, when[i]);
    }
    for (uint64_t now = 0; now <= 52 * STEP; now += STEP / 2) {
        struct visits visits = { .deadlines = deadlines, .now = now };
        uint64_t expected = 0;

        for (uint64_t i = 0; i < places; i++)
            expected += when[i] <= now;
        good = good && (expected == 0 || admi_memory_deadline_is_due(deadlines, now));
        if (admi_memory_deadline_is_due(deadlines, now))
            admi_memory_deadlines_visit(deadlines, &txn, now, end_it, &visits);
        for (uint64_t i = 0; i < places; i++) {
            good = good && visits.seen[i] == (when[i] <= now);
            if (when[i] <= now)
                when[i] = UINT64_MAX;
        }
        good = good && visits.count == expected && visits.early == 0;
    }
    good = good && !admi_memory_deadline_is_due(deadlines, MEMORY_DEADLINE_NEVER - STEP);
    (void)snprintf(what, sizeof what, "K6 of %" PRIu64 " places, exactly the due ones are visited",
                   places);
    ok(good, what);
}

/* ---- many ---- */

static _Atomic uint64_t now_shared, missed, added;
static _Atomic int done;
static uint64_t rounds;

/* What is set and due is never hidden: unless it has been visited already. */
static int hidden(struct memory_deadlines *deadlines, uint64_t place, uint64_t deadline)
{
    return !admi_memory_deadline_is_due(deadlines, deadline) &&
           atomic_load(admi_memory_deadline(deadlines, place)) == ADMI_TXN_WORD_OF(deadline);
}

static void *add(void *self)
{
    struct memory_deadlines *deadlines = (struct memory_deadlines *)(void *)memory;
    uint32_t me = (uint32_t)(uintptr_t)self;
    uint64_t random = seed * 31 + me;

    yield_random = random;
    yield_one_in = 4;
    for (uint64_t n = 0; n < rounds; n++) {
        uint64_t place = next_random(&random) % (PLACES / ADDERS) * ADDERS + me;
        uint64_t deadline = atomic_load(&now_shared) - next_random(&random) % 2 * STEP;

        if (atomic_load(admi_memory_deadline(deadlines, place)) !=
            ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER)) {
            n--; /* nobody has visited it yet */
            (void)sched_yield();
            continue;
        }
        admi_memory_deadline_set(deadlines, place, deadline);
        if (hidden(deadlines, place, deadline))
            atomic_fetch_add(&missed, 1);
        atomic_fetch_add(&added, 1);
        if (next_random(&random) % 8 == 0)
            atomic_fetch_add(&now_shared, STEP);
    }
    return NULL;
}

static void *visit_all_the_time(void *self)
{
    struct memory_deadlines *deadlines = (struct memory_deadlines *)(void *)memory;
    uint32_t me = (uint32_t)(uintptr_t)self;
    struct admi_txn txn = txn_of(me);
    struct visits *visits = calloc(1, sizeof *visits);
    uint64_t *count = malloc(sizeof *count);

    if (visits == NULL || count == NULL)
        abort();
    yield_random = me;
    yield_one_in = 4;
    while (!atomic_load(&done)) {
        *visits = (struct visits){ .deadlines = deadlines,
                                   .now = atomic_load(&now_shared),
                                   .count = visits->count };
        admi_memory_deadlines_visit(deadlines, &txn, visits->now, end_it, visits);
    }
    *count = visits->count;
    free(visits);
    return count;
}

/* Raises all bounds, with nothing to visit, and is stopped on the way. */
struct raiser {
    uint32_t context;
    struct stop stop;
    pthread_t thread;
};

static void *raise_all(void *self)
{
    struct memory_deadlines *deadlines = (struct memory_deadlines *)(void *)memory;
    struct raiser *raiser = self;
    struct admi_txn txn = txn_of(raiser->context);
    struct visits visits = { .deadlines = deadlines };

    stop_here = &raiser->stop;
    admi_memory_deadlines_visit(deadlines, &txn, 0, end_it, &visits);
    return NULL;
}

static void start_and_stop(struct raiser *raiser, uint32_t context, enum point point)
{
    raiser->context = context;
    raiser->stop.point = point;
    raiser->stop.countdown = 1;
    atomic_init(&raiser->stop.stopped, 0);
    atomic_init(&raiser->stop.go_on, 0);
    (void)pthread_create(&raiser->thread, NULL, raise_all, raiser);
    while (!atomic_load(&raiser->stop.stopped))
        (void)sched_yield();
}

static void let_go_on(struct raiser *raiser)
{
    atomic_store(&raiser->stop.go_on, 1);
    (void)pthread_join(raiser->thread, NULL);
}

static void a_late_raise_changes_nothing(void)
{
    struct memory_deadlines *deadlines = fresh(64); /* one bound: the root */
    struct raiser first, second;
    int good;

    admi_memory_deadline_set(deadlines, 0, 90 * STEP);
    start_and_stop(&first, 1, looked_below); /* it has seen place 0 alone */
    admi_memory_deadline_set(deadlines, 1, 90 * STEP);
    atomic_store(admi_memory_deadline(deadlines, 0), ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER));
    start_and_stop(&second, 2, marked_bound);
    let_go_on(&first);
    good = admi_memory_deadline_is_due(deadlines, 90 * STEP);
    let_go_on(&second);
    good = good && admi_memory_deadline_is_due(deadlines, 90 * STEP);

    deadlines = fresh(64);
    admi_memory_deadline_set(deadlines, 0, 80 * STEP);
    atomic_store(admi_memory_deadline(deadlines, 0), ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER));
    start_and_stop(&first, 1, looked_below);           /* it has seen nothing */
    admi_memory_deadline_set(deadlines, 1, 90 * STEP); /* 80 is low enough, but not for long */
    let_go_on(&first);
    good = good && admi_memory_deadline_is_due(deadlines, 90 * STEP);

    deadlines = fresh(64);
    admi_memory_deadline_set(deadlines, 0, 80 * STEP);
    atomic_store(admi_memory_deadline(deadlines, 0), ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER));
    start_and_stop(&first, 1, looked_below);           /* it would raise to never */
    admi_memory_deadline_set(deadlines, 1, 90 * STEP); /* no need to lower 80 */
    start_and_stop(&second, 2, marked_bound);          /* the mark is back, but another's */
    let_go_on(&first);
    good = good && admi_memory_deadline_is_due(deadlines, 90 * STEP);
    let_go_on(&second);
    ok(good && admi_memory_deadline_is_due(deadlines, 90 * STEP),
       "K6 a raise that comes late changes nothing");
}

static void nothing_due_is_ever_hidden(int stopped_one)
{
    struct memory_deadlines *deadlines = fresh(PLACES);
    struct visits last = { .deadlines = deadlines };
    struct admi_txn txn = txn_of(0);
    pthread_t adders[ADDERS], visitors[VISITORS];
    struct raiser stopper;
    uint64_t visited = 0;
    void *count;

    atomic_store(&now_shared, 100 * STEP);
    atomic_store(&missed, 0);
    atomic_store(&added, 0);
    atomic_store(&done, 0);
    rounds = 2000 * scale;
    if (stopped_one)
        start_and_stop(&stopper, 7, marked_bound);
    for (uintptr_t i = 0; i < VISITORS; i++)
        (void)pthread_create(&visitors[i], NULL, visit_all_the_time, (void *)(i + 1));
    for (uintptr_t i = 0; i < ADDERS; i++)
        (void)pthread_create(&adders[i], NULL, add, (void *)i);
    for (uint32_t i = 0; i < ADDERS; i++)
        (void)pthread_join(adders[i], NULL);
    atomic_store(&done, 1);
    for (uint32_t i = 0; i < VISITORS; i++) {
        (void)pthread_join(visitors[i], &count);
        visited += *(uint64_t *)count;
        free(count);
    }
    if (stopped_one)
        let_go_on(&stopper);
    last.now = atomic_load(&now_shared);
    admi_memory_deadlines_visit(deadlines, &txn, last.now, end_it, &last);
    printf("# %" PRIu64 " set, %" PRIu64 " visited, %" PRIu64 " hidden\n", atomic_load(&added),
           visited + last.count, atomic_load(&missed));
    ok(atomic_load(&missed) == 0 && visited + last.count == atomic_load(&added),
       stopped_one ? "K6 nor while somebody is stopped in the middle of raising a bound"
                   : "K6 nothing that is due is ever hidden by a bound that is being raised");
}

int main(void)
{
    const char *given = getenv("ADMIT_STRESS_SCALE"), *given_seed = getenv("ADMIT_STRESS_SEED");

    if (given != NULL && strtoull(given, NULL, 10) > 0)
        scale = strtoull(given, NULL, 10);
    if (given_seed != NULL && strtoull(given_seed, NULL, 10) > 0)
        seed = strtoull(given_seed, NULL, 10);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %" PRIu64 ", scale %" PRIu64 "\n", seed, scale);
    finds_exactly_what_is_due(1);
    finds_exactly_what_is_due(64);
    finds_exactly_what_is_due(65);
    finds_exactly_what_is_due(PLACES);
    a_late_raise_changes_nothing();
    nothing_due_is_ever_hidden(0);
    nothing_due_is_ever_hidden(1);
    printf("1..%u\n", tests);
    return failures != 0;
}
