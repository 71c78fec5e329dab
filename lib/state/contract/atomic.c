/* SPDX-License-Identifier: Apache-2.0 */
/* K2 all or nothing, K8 clean failure. */
#include "state/contract/suite.h"

#define KINDS 3u

/* One rule of each kind, each of which has room for 10. */
struct rules {
    uint32_t index[KINDS];
};

static struct rules three_rules(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct rules rules = { { admi_world_bucket(world, "bucket", 10, 0, ADM_SECOND),
                             admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY),
                             admi_world_counter(world, "day", ADM_KIND_QUOTA) } };

    if (admi_world_put(world) != ADM_OK)
        admi_check_fail(check, "put_classes: status %d", world->status);
    return rules;
}

/* What is left of the 10. */
static int64_t left(struct admi_world *world, const struct rules *rules, uint32_t kind,
                    const char *partition)
{
    int64_t level = admi_world_level(world, rules->index[kind], partition);

    return kind == 0 ? level : 10 - level;
}

/* Each kind denies once, in each position: B037 … B042. */
static void check_denied(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct rules rules = three_rules(check);

    for (uint32_t round = 0; round < KINDS * KINDS && !check->failed; round++) {
        uint32_t denying = round % KINDS, shift = round / KINDS;
        struct adm_term terms[KINDS];
        struct adm_id lease;

        for (uint32_t i = 0; i < KINDS; i++) {
            uint32_t kind = (i + shift) % KINDS;

            terms[i] = admi_world_term(world, rules.index[kind], "p", kind == denying ? 11 : 4, 10);
        }
        EXPECT(check,
               admi_world_take(world, terms, KINDS, &lease) == ADM_VERDICT_DENY &&
                   world->status == ADM_OK,
               "a take with a term that cannot pass was allowed");
        EXPECT(check, (lease.high | lease.low) == 0, "a denied take has a lease");
        for (uint32_t i = 0; i < KINDS; i++) {
            uint32_t kind = (i + shift) % KINDS;

            EXPECT(check,
                   terms[i].verdict ==
                       (kind == denying ? (uint32_t)ADM_TERM_NEVER : (uint32_t)ADM_TERM_PASS),
                   "term %u: verdict %u", i, terms[i].verdict);
            EXPECT(check, left(world, &rules, kind, "p") == 10,
                   "a denied take left a charge on kind %u", kind + 1);
        }
    }
}

/* Not now, instead of never: the same, with state that is there already. */
static void check_exceeded(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct rules rules = three_rules(check);
    struct adm_term terms[KINDS];

    if (check->failed)
        return;
    for (uint32_t i = 0; i < KINDS; i++)
        terms[i] = admi_world_term(world, rules.index[i], "p", 3, 10);
    EXPECT(check, admi_world_take(world, terms, KINDS, NULL) == ADM_VERDICT_ALLOW,
           "a take that fits was denied");
    for (uint32_t i = 0; i < KINDS; i++)
        EXPECT(check, left(world, &rules, i, "p") == 7, "an allowed take did not charge kind %u",
               i + 1);
    for (uint32_t denying = 0; denying < KINDS; denying++) {
        for (uint32_t i = 0; i < KINDS; i++)
            terms[i] = admi_world_term(world, rules.index[i], "p", i == denying ? 8 : 7, 10);
        EXPECT(check, admi_world_take(world, terms, KINDS, NULL) == ADM_VERDICT_DENY,
               "8 of 7 were taken");
        for (uint32_t i = 0; i < KINDS; i++)
            EXPECT(check, left(world, &rules, i, "p") == 7,
                   "a denied take left a charge on kind %u", i + 1);
    }
    for (uint32_t i = 0; i < KINDS; i++)
        terms[i] = admi_world_term(world, rules.index[i], "p", 7, 10);
    EXPECT(check, admi_world_take(world, terms, KINDS, NULL) == ADM_VERDICT_ALLOW,
           "7 of 7 were denied");
}

static void check_judge(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct rules rules = three_rules(check);
    struct adm_term terms[KINDS];
    struct adm_take take = { .mode = ADM_TAKE_JUDGE, .terms = terms, .term_count = KINDS };

    if (check->failed)
        return;
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < KINDS; i++)
            terms[i] = admi_world_term(world, rules.index[i], "p", 10, 10);
        take.flags = ADM_TAKE_F_LEASE;
        EXPECT(check, admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW, "judged: denied");
        EXPECT(check, (take.lease.high | take.lease.low) == 0, "judged: a lease");
    }
    for (uint32_t i = 0; i < KINDS; i++)
        EXPECT(check, left(world, &rules, i, "p") == 10, "judging charged kind %u", i + 1);
}

/* Shadow terms never decide, and are drawn down only by what the enforced terms admit. */
static void check_shadow(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 0, ADM_SECOND);
    uint32_t dark = admi_world_bucket(world, "rate", 5, 0, ADM_SECOND);
    struct adm_term terms[2];

    world->classes[dark].flags = ADM_CLASS_F_SHADOW;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 3; i++) {
        terms[0] = admi_world_term(world, rate, "p", 4, 0);
        terms[1] = admi_world_term(world, dark, "p", 4, 0);
        EXPECT(check, admi_world_take(world, terms, 2, NULL) == (i < 2 ? 1u : 0u),
               "shadow decided (take %u)", i);
        EXPECT(check,
               terms[1].verdict == (i == 0 ? (uint32_t)ADM_TERM_PASS : (uint32_t)ADM_TERM_NEVER),
               "shadow verdict %u (take %u)", terms[1].verdict, i);
    }
    EXPECT_LEVEL(check, rate, "p", 2, "enforced");
    EXPECT_LEVEL(check, dark, "p", 1, "shadow is charged with what it would have allowed");
    terms[0] = admi_world_term(world, rate, "p", 3, 0);
    terms[1] = admi_world_term(world, dark, "p", 1, 0);
    EXPECT(check, admi_world_take(world, terms, 2, NULL) == ADM_VERDICT_DENY, "3 of 2");
    EXPECT_LEVEL(check, dark, "p", 1, "a denied take drew shadow state down");
}

/* ---- K8 ---- */

/* A take for another set of classes fails, and neither charges nor keeps anything. */
static void check_stale_set(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct rules rules = three_rules(check);
    uint64_t old = world->sequence;
    struct adm_term terms[KINDS];
    struct adm_take take = { .flags = ADM_TAKE_F_LEASE, .terms = terms, .term_count = KINDS };

    if (check->failed)
        return;
    EXPECT(check, admi_world_put(world) == ADM_OK, "the same classes again: status %d",
           world->status);
    EXPECT(check, world->sequence != old, "two sets have one sequence");
    for (uint32_t i = 0; i < KINDS; i++)
        terms[i] = admi_world_term(world, rules.index[i], "p", 4, 10);
    const uint64_t others[] = { old, world->sequence ^ UINT64_C(1) << 50, 0 };

    for (uint32_t other = 0; others[other] != 0; other++) {
        take.sequence = others[other];
        (void)admi_world_take_as(world, &take);
        EXPECT(check, world->status == ADM_E_BACKEND_STALE, "another set's take: status %d",
               world->status);
        for (uint32_t i = 0; i < KINDS; i++)
            EXPECT(check, left(world, &rules, i, "p") == 10,
                   "a failed take left a charge on kind %u", i + 1);
    }
}

/* Whatever fails, for whatever reason of its own, must have changed nothing; and what succeeds,
 * everything. */
static void check_failures(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    struct adm_id leases[8] = { { 0, 0 } };
    int64_t held = 0;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 400; i++) {
        struct adm_id *lease = &leases[admi_world_random(world, 8)];
        int64_t before = held;

        world->resends = 0; /* a failure is what this is about */
        if ((lease->high | lease->low) == 0) {
            if (admi_world_take_one(world, admi_world_term(world, pool, "p", 1, 8), lease) ==
                ADM_VERDICT_ALLOW)
                held++;
            else
                *lease = (struct adm_id){ 0, 0 };
        } else if (admi_world_give(world, *lease) != ADM_OUTCOME_COUNT) {
            held--;
            *lease = (struct adm_id){ 0, 0 };
        }
        adm_status status = world->status;

        world->resends = 8;
        EXPECT(check,
               status == ADM_OK ||
                   (status <= -300 && status >= -399 && status != ADM_E_BACKEND_RESULT),
               "status %d is no answer of a backend", status);
        if (status == ADM_E_BACKEND_UNKNOWN) {
            admi_check_skip(check, "an operation may or may not have happened");
            return;
        }
        EXPECT(check, status == ADM_OK || held == before, "the suite's own count");
        /* Not after each: a fault that comes at every n-th operation must not always find the
         * same one. */
        if (admi_world_random(world, 3) == 0)
            EXPECT_LEVEL(check, pool, "p", held, "held, after failures");
    }
}

const struct admi_contract_check admi_contract_atomic[] = {
    { 2,
      "a term that never passes: nothing is charged (B037, B041)",
      check_denied,
      { 0, 0, 0, 0, NULL } },
    { 2,
      "a term that does not pass now: nothing is charged",
      check_exceeded,
      { 0, 0, 0, 0, NULL } },
    { 2, "judging changes nothing", check_judge, { 0, 0, 0, 0, NULL } },
    { 2, "shadow terms never decide (B048)", check_shadow, { 0, 0, 0, 0, NULL } },
    { 8, "a take for another class set changes nothing", check_stale_set, { 0, 0, 0, 0, NULL } },
    { 8, "what failed changed nothing", check_failures, { 0, 0, 0, 0, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
