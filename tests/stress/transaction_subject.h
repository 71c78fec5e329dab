/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of lib/state/transaction.h work on: a few words of counted units under limits, and
 * a guard.
 */
#ifndef TESTS_STRESS_TRANSACTION_SUBJECT_H
#define TESTS_STRESS_TRANSACTION_SUBJECT_H

#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"

/* ---- steps ---- */

enum subject_kind { SUBJECT_HOLD, SUBJECT_GIVE };

struct admi_txn_step {
    uint32_t word;
    enum subject_kind kind;
    uint64_t units;
    uint64_t limit;
    uint32_t owner; /* a word that says whose the word is; 0: nobody asks */
    uint64_t mine;  /* what it must say */
};

#include TRANSACTION_HEADER /* state/transaction.h, or a copy of it with a fault */

static inline struct admi_txn_step step_of(uint32_t word, enum subject_kind kind, uint64_t units,
                                           uint64_t limit)
{
    return (struct admi_txn_step){ .word = word, .kind = kind, .units = units, .limit = limit };
}

static inline int admi_txn_still(const struct admi_txn *txn, const struct admi_txn_step *step)
{
    return step->owner == 0 || admi_txn_read(txn, step->owner) == step->mine;
}

static inline int admi_txn_test(const struct admi_txn_step *step, uint64_t value, uint64_t *changed)
{
    if (step->kind == SUBJECT_GIVE) {
        *changed = value - step->units;
        return value >= step->units;
    }
    *changed = value + step->units;
    return value + step->units <= step->limit;
}

/* ---- the space, and the ways to go about it ---- */

enum { SPACE_WORDS = 16, GUARD = 15, CONTEXTS = 8, ENDLESS = 1 << 30 };

static _Atomic uint64_t words[SPACE_WORDS];
static struct admi_txn_context contexts[CONTEXTS];

struct way {
    const char *name;
    uint32_t hard_after, back_off;
    int rollback;
};

static const struct way ways[] = { { "hard after 4 attempts", 4, 64, 0 },
                                   { "hard after 4, no back-off", 4, 0, 0 },
                                   { "hard at once", 0, 0, 0 },
                                   { "hard after 1", 1, 0, 0 },
                                   { "never hard", ENDLESS, 0, 0 } };
enum { WAYS = sizeof ways / sizeof ways[0], AT_ONCE = 2, AFTER_ONE = 3, NEVER_HARD = 4 };

static struct admi_txn txn_of(const struct way *way, uint32_t self)
{
    return (struct admi_txn){ .words = words,
                              .contexts = contexts,
                              .context_count = CONTEXTS,
                              .guard = GUARD,
                              .self = self,
                              .hard_after = way->hard_after,
                              .back_off = way->back_off };
}

/* One operation: a context is borrowed for it. */
static int once(struct admi_txn *txn, const struct admi_txn_step *steps, uint32_t count,
                uint32_t more)
{
    int end;

    if (!admi_txn_claim(txn))
        abort(); /* there are more contexts than threads */
    end = admi_txn_run(txn, steps, count, more);
    admi_txn_unclaim(txn);
    return end;
}

static void clear_space(void)
{
    memset(words, 0, sizeof words);
}

/* ---- this test's output and its dice ---- */

static unsigned tests, failures;
static uint64_t scale = STRESS_SCALE, seed = 1;

static void ok(int passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    failures += !passed;
}

static void begin(void)
{
    const char *given = getenv("ADMIT_STRESS_SCALE"), *given_seed = getenv("ADMIT_STRESS_SEED");

    if (given != NULL && strtoull(given, NULL, 10) > 0)
        scale = strtoull(given, NULL, 10);
    if (given_seed != NULL && strtoull(given_seed, NULL, 10) > 0)
        seed = strtoull(given_seed, NULL, 10);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %" PRIu64 ", scale %" PRIu64 "\n", seed, scale);
}

static int end(void)
{
    printf("1..%u\n", tests);
    return failures != 0;
}

#endif
