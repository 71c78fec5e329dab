/* SPDX-License-Identifier: Apache-2.0 */
/* K4 given time, K6 exact expiry. */
#include "state/contract/suite.h"

/* ---- K4 ---- */

/* A bucket that refills a token per nanosecond would show any clock but the op's. */
static void check_no_clock(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 1000000, 1000000, ADM_MILLISECOND);

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 1000; i++) {
        EXPECT(check,
               admi_world_take_one(world, admi_world_term(world, rate, "p", 1000, 0), NULL) ==
                   ADM_VERDICT_ALLOW,
               "take %u of 1000", i);
        EXPECT_LEVEL(check, rate, "p", 1000000 - 1000 * (i + 1), "time stands still");
    }
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 1, 0), NULL) ==
               ADM_VERDICT_DENY,
           "time stands still, and yet something dripped");
    admi_world_advance(world, 1);
    EXPECT_LEVEL(check, rate, "p", 1, "one nanosecond later");
}

/* B003: times that alternate before and after the last one create nothing. */
static void check_alternating(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 1000, 1000, ADM_SECOND);
    uint64_t base = world->now.mono_ns, allowed = 0;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 1000; i++)
        (void)admi_world_take_one(world, admi_world_term(world, rate, "p", 1, 0), NULL);
    for (uint32_t i = 0; i < 3000; i++) {
        world->now.mono_ns = base + (i % 2) * ADM_SECOND;
        allowed += admi_world_take_one(world, admi_world_term(world, rate, "p", 1, 0), NULL);
        EXPECT(check, world->status == ADM_OK, "take at an earlier time: status %d", world->status);
    }
    EXPECT(check, allowed <= 1000, "%llu admitted of the 1000 of one second",
           (unsigned long long)allowed);
    EXPECT(check, allowed == 1000, "%llu admitted, an earlier time took something away",
           (unsigned long long)allowed);
    world->now.mono_ns = 0;
    EXPECT_LEVEL(check, rate, "p", 0, "at the beginning of time");
}

/* The moment told is the first at which it passes: B012 … B021. */
static void check_passes_at(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    static const uint64_t numbers[][3] = {
        { 10, 3, 7 * ADM_SECOND },
        { 1, 1, 366 * 86400 * ADM_SECOND },
        { 1000000000000, 1000000000, ADM_SECOND },
        { 5, 1000000, ADM_SECOND },
        { 100, 999999999, ADM_SECOND },
    };

    for (uint32_t n = 0; n < 5; n++)
        (void)admi_world_bucket(world, (const char *[]){ "a", "b", "c", "d", "e" }[n],
                                numbers[n][0], numbers[n][1], numbers[n][2]);
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 100; i++) {
        uint32_t index = (uint32_t)admi_world_random(world, 5);
        struct adm_term term =
            admi_world_term(world, index, "p", 1 + admi_world_random(world, numbers[index][0]), 0);
        uint64_t passes_at_ns;

        while (admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW)
            continue;
        EXPECT(check, world->status == ADM_OK && term.verdict == ADM_TERM_EXCEEDED, "verdict %u",
               term.verdict);
        passes_at_ns = term.passes_at_ns;
        EXPECT(check, passes_at_ns > world->now.mono_ns && passes_at_ns != UINT64_MAX,
               "passes at %llu, now %llu", (unsigned long long)passes_at_ns,
               (unsigned long long)world->now.mono_ns);
        admi_world_advance(world, passes_at_ns - world->now.mono_ns - 1);
        EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_DENY,
               "passes before the time told");
        EXPECT(check, term.passes_at_ns == passes_at_ns, "the time told moves");
        admi_world_advance(world, 1);
        EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
               "does not pass at the time told");
    }
}

/* B001, B002: a very long pause fills, and no more; and the hundred years after it count. */
static void check_long_idle(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 1000000000000, 1000000000, ADM_SECOND);

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 1000000000000, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "all of it");
    world->now.mono_ns += UINT64_C(100) * 365 * 86400 * ADM_SECOND;
    EXPECT_LEVEL(check, rate, "p", 1000000000000, "after a hundred years");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 1000000000000, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "all of it, again");
    EXPECT_LEVEL(check, rate, "p", 0, "all taken");
    admi_world_advance(world, 5);
    EXPECT_LEVEL(check, rate, "p", 5, "five nanoseconds later");
}

/* A rate change counts time before it at the old rate, and a raise fills nothing (B089). */
static void check_rate_change(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 100, 10, ADM_SECOND);

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 100, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "100 of 100");
    admi_world_advance(world, 3 * ADM_SECOND);
    world->classes[rate].capacity = 1000;
    world->classes[rate].refill = 100;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_LEVEL(check, rate, "p", 30, "three seconds at the old rate");
    EXPECT_LEVEL(check, rate, "never seen", 100,
                 "a raise fills no bucket, not even one that was never seen");
    admi_world_advance(world, 2 * ADM_SECOND);
    EXPECT_LEVEL(check, rate, "p", 230, "two seconds at the new rate");
    EXPECT_LEVEL(check, rate, "never seen", 300, "two seconds at the new rate");
    world->classes[rate].capacity = 50;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_LEVEL(check, rate, "p", 50, "lowered: clamped");
    world->class_count = 0;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check, admi_world_bucket(world, "rate", 1000, 100, ADM_SECOND) == rate,
           "the suite's own index");
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_level(world, rate, "p") <= 50 || admi_world_level(world, rate, "p") == 1000,
           "removed and added again: neither carried over nor new");
}

/* A wall clock that lags a little stays in the window that has begun; one set back by more takes
 * its count along. */
static void check_wall(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t quota = admi_world_counter(world, "day", ADM_KIND_QUOTA);
    uint64_t begin_ns, end_ns;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    world->max_skew_ns = 10 * ADM_SECOND;
    (void)adm_window_index(ADM_WINDOW_DAY, world->now.wall_ns, &begin_ns, &end_ns);
    world->now.wall_ns = end_ns - 1;
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, quota, "p", 60, 100), NULL) ==
               ADM_VERDICT_ALLOW,
           "60 of 100");
    world->now.wall_ns = end_ns;
    EXPECT_LEVEL(check, quota, "p", 0, "a new day");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, quota, "p", 50, 100), NULL) ==
               ADM_VERDICT_ALLOW,
           "50 of 100");
    world->now.wall_ns = end_ns - 10 * ADM_SECOND;
    EXPECT_LEVEL(check, quota, "p", 50, "ten seconds back: still the new day");
    world->now.wall_ns = end_ns - 40000 * ADM_SECOND;
    EXPECT_LEVEL(check, quota, "p", 50, "hours back: the count comes along");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, quota, "p", 51, 100), NULL) ==
               ADM_VERDICT_DENY,
           "the wall clock set back mints quota");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, quota, "p", 50, 100), NULL) ==
               ADM_VERDICT_ALLOW,
           "50 of 50");
}

/* ---- K6 ---- */

enum what { TAKE, GIVE, RENEW, SETTLE };

static const struct step {
    uint64_t at_ns;
    enum what what;
    uint32_t lease;  /* which of the test's leases */
    uint32_t expect; /* verdict or outcome */
    const char *because;
} steps[] = {
    { 0, TAKE, 0, ADM_VERDICT_ALLOW, "first of one" },
    { WORLD_TTL_NS - 1, TAKE, 1, ADM_VERDICT_DENY, "still held one tick before" },
    { WORLD_TTL_NS, TAKE, 1, ADM_VERDICT_ALLOW, "expires exactly at the end" },
    { WORLD_TTL_NS, GIVE, 0, ADM_OUTCOME_LATE, "expired" },
    { WORLD_TTL_NS, GIVE, 0, ADM_OUTCOME_ALREADY, "late once" },
    { WORLD_TTL_NS + 5, TAKE, 2, ADM_VERDICT_DENY, "a late give took nobody's units" },
    { 2 * WORLD_TTL_NS - 1, RENEW, 1, ADM_OUTCOME_RENEWED, "live one tick before" },
    { 2 * WORLD_TTL_NS, TAKE, 2, ADM_VERDICT_DENY, "renewed" },
    { 3 * WORLD_TTL_NS - 2, TAKE, 2, ADM_VERDICT_DENY, "renewed for a whole time to live" },
    { 3 * WORLD_TTL_NS - 1, RENEW, 1, ADM_OUTCOME_LOST, "expired, cannot be revived" },
    { 3 * WORLD_TTL_NS - 1, TAKE, 2, ADM_VERDICT_ALLOW, "an expired lease never causes a denial" },
    { 4 * WORLD_TTL_NS - 2, SETTLE, 1, ADM_OUTCOME_LATE, "one more time to live for late reports" },
    { 4 * WORLD_TTL_NS - 1, SETTLE, 1, ADM_OUTCOME_UNKNOWN, "the record is gone" },
    { 4 * WORLD_TTL_NS - 1, TAKE, 3, ADM_VERDICT_ALLOW, "and the third has expired by now" },
    { 9 * WORLD_TTL_NS, GIVE, 3, ADM_OUTCOME_UNKNOWN, "long gone" },
    { 9 * WORLD_TTL_NS, TAKE, 4, ADM_VERDICT_ALLOW, "nothing is left behind" },
};

static void check_steps(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    uint64_t base = world->now.mono_ns;
    struct adm_id leases[5] = { { 0, 0 } };

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const struct step *step = &steps[i];
        struct adm_id lease;
        uint32_t got = ADM_OUTCOME_COUNT;

        world->now.mono_ns = base + step->at_ns;
        switch (step->what) {
        case TAKE:
            got = admi_world_take_one(world, admi_world_term(world, pool, "p", 1, 1), &lease);
            if (got == ADM_VERDICT_ALLOW)
                leases[step->lease] = lease;
            break;
        case GIVE:
            got = admi_world_give(world, leases[step->lease]);
            break;
        case RENEW:
            got = admi_world_renew(world, leases[step->lease]);
            break;
        case SETTLE:
            got = admi_world_settle(world, leases[step->lease], ADM_UNIT_COST, 1, false);
            break;
        default:
            break;
        }
        EXPECT(check, got == step->expect, "step %u: got %u, expected %u: %s", i, got, step->expect,
               step->because);
    }
}

/* B058, B101: traffic on a key moves nobody's expiry; each lease has its own. */
static void check_own_expiry(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 30; i++) {
        EXPECT(check,
               admi_world_take_one(world, admi_world_term(world, pool, "p", 1, 100), NULL) ==
                   ADM_VERDICT_ALLOW,
               "take %u", i);
        admi_world_advance(world, ADM_SECOND);
    }
    EXPECT_LEVEL(check, pool, "p", 30, "all live");
    admi_world_advance(world, WORLD_TTL_NS - 30 * ADM_SECOND);
    for (uint32_t i = 1; i <= 30; i++) {
        EXPECT_LEVEL(check, pool, "p", 30 - i, "one more has expired");
        admi_world_advance(world, ADM_SECOND);
    }
}

/* A late report still charges what it tells; expiry alone charges nothing and refunds nothing. */
static void check_late_charges(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t exact = admi_world_bucket(world, "exact", 100, 0, ADM_SECOND);
    uint32_t after = admi_world_bucket(world, "after", 100, 0, ADM_SECOND);
    struct adm_term terms[2];
    struct adm_id lease;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    terms[0] = admi_world_term(world, exact, "p", 10, 0);
    terms[1] = admi_world_term(world, after, "p", 10, 0);
    terms[0].flags |= ADM_TERM_F_SETTLE_EXACT;
    terms[1].flags |= ADM_TERM_F_COMPLETION;
    EXPECT(check, admi_world_take(world, terms, 2, &lease) == ADM_VERDICT_ALLOW, "take");
    admi_world_advance(world, WORLD_TTL_NS);
    EXPECT_LEVEL(check, exact, "p", 90, "expired without a report: the estimate stays");
    EXPECT_LEVEL(check, after, "p", 100, "expired without a report: nothing completed");
    EXPECT(check, admi_world_settle(world, lease, ADM_UNIT_COST, 30, false) == ADM_OUTCOME_LATE,
           "late settle");
    EXPECT_LEVEL(check, exact, "p", 70, "a late report is charged");
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_LATE, "late give");
    EXPECT_LEVEL(check, after, "p", 70, "a late give completes");
}

const struct admi_contract_check admi_contract_time[] = {
    { 4, "no clock but the op's", check_no_clock, { 0, 0, 0, 0, NULL } },
    { 4, "earlier times mint nothing (B003)", check_alternating, { 0, 0, 0, 0, NULL } },
    { 4, "passes exactly at the time told (B012, B017)", check_passes_at, { 0, 0, 0, 0, NULL } },
    { 4, "a hundred years idle (B001)", check_long_idle, { 0, 0, 0, 0, NULL } },
    { 4, "numbers change without minting (B089)", check_rate_change, { 0, 0, 0, 0, NULL } },
    { 4, "the wall clock set back mints no quota", check_wall, { 0, 0, 0, 0, NULL } },
    { 6, "leases end exactly, and only renewal moves the end", check_steps, { 0, 0, 0, 0, NULL } },
    { 6, "each lease has its own end (B058)", check_own_expiry, { 0, 0, 0, 0, NULL } },
    { 6, "late reports are charged", check_late_charges, { 0, 0, 0, 0, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
