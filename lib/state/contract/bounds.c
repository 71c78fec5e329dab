/* SPDX-License-Identifier: Apache-2.0 */
/* K5 bounded memory: full tables refuse, and forget nothing that anybody could miss. */
#include "state/contract/suite.h"

#include <stdio.h>

#define FILL_MAX 100000u /* beyond this a bound is not tried out */

static const char *name_of(char name[32], uint64_t i)
{
    (void)snprintf(name, 32, "key-%llu", (unsigned long long)i);
    return name;
}

/* Take one from each of ever new partitions; how many were allowed before the first refusal. */
static uint64_t fill(struct admi_check *check, uint32_t rule, uint64_t limit, uint32_t *out_verdict)
{
    struct admi_world *world = &check->world;
    uint64_t count = 0;
    char name[32];

    *out_verdict = ADM_TERM_PASS;
    for (; count <= FILL_MAX && !check->failed; count++) {
        struct adm_term term = admi_world_term(world, rule, name_of(name, count), 1, limit);

        if (admi_world_take(world, &term, 1, NULL) != ADM_VERDICT_ALLOW) {
            *out_verdict = world->status == ADM_OK ? term.verdict : ADM_TERM_NO_ROOM;
            break;
        }
    }
    return count;
}

static bool untried(struct admi_check *check, uint64_t max)
{
    if (max > FILL_MAX)
        admi_check_skip(check, "the bound is %llu", (unsigned long long)max);
    return max > FILL_MAX;
}

/* B096, B097, B100: newcomers are refused, nobody loses anything, and what is full again makes
 * room. */
static void check_partitions(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 5, 5, ADM_SECOND);
    uint32_t verdict;
    uint64_t count;
    char name[32];

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.partitions_max))
        return;
    count = fill(check, rate, 0, &verdict);
    EXPECT(check, count >= check->sizes.partitions && count <= world->info.partitions_max,
           "room for %llu partitions, asked for %llu, told %llu", (unsigned long long)count,
           (unsigned long long)check->sizes.partitions,
           (unsigned long long)world->info.partitions_max);
    EXPECT(check, verdict == ADM_TERM_NO_ROOM, "refused with verdict %u", verdict);
    for (uint64_t i = 0; i < 300; i++) {
        struct adm_term term = admi_world_term(world, rate, name_of(name, count + i), 1, 0);

        EXPECT(check,
               admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_DENY &&
                   term.verdict == ADM_TERM_NO_ROOM,
               "a newcomer to a full table: verdict %u", term.verdict);
    }
    for (uint64_t i = 0; i < count; i++)
        EXPECT_LEVEL(check, rate, name_of(name, i), 4,
                     "a bucket that is not full again was forgotten (B097)");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, name_of(name, 0), 4, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "a known key at a full table (B099)");
    EXPECT(check, admi_world_info(world).partitions <= world->info.partitions_max,
           "more than the bound");
    admi_world_advance(world, ADM_SECOND / 5);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "newcomer", 1, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "full buckets make room (B100)");
    EXPECT_LEVEL(check, rate, name_of(name, 0), 1, "the one that is not full again stays");
}

static void check_debt(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t debt = admi_world_bucket(world, "debt", 5, 1, ADM_SECOND);
    uint32_t day = admi_world_counter(world, "day", ADM_KIND_QUOTA);
    uint32_t rate = admi_world_bucket(world, "rate", 5, 5, ADM_SECOND);
    struct adm_term terms[2];
    struct adm_id lease;
    uint32_t verdict;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.partitions_max))
        return;
    terms[0] = admi_world_term(world, debt, "d", 1, 0);
    terms[1] = admi_world_term(world, day, "d", 1, 100);
    terms[0].flags |= ADM_TERM_F_SETTLE_EXACT;
    EXPECT(check, admi_world_take(world, terms, 2, &lease) == ADM_VERDICT_ALLOW, "take");
    EXPECT(check, admi_world_settle(world, lease, ADM_UNIT_COST, 50, true) == ADM_OUTCOME_SETTLED,
           "settle");
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_RELEASED, "give");
    (void)fill(check, rate, 0, &verdict);
    EXPECT(check, verdict == ADM_TERM_NO_ROOM, "refused with verdict %u", verdict);
    EXPECT_LEVEL(check, debt, "d", -45, "a debt was forgotten");
    EXPECT_LEVEL(check, day, "d", 1, "a quota of this window was forgotten");
}

/* Held units, and what an open lease may settle, stay: also when the lease is late. */
static void check_pinned(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t after = admi_world_bucket(world, "after", 100, 0, ADM_SECOND);
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    uint32_t rate = admi_world_bucket(world, "rate", 5, 5, ADM_SECOND);
    struct adm_term terms[2];
    struct adm_id lease;
    uint32_t verdict;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.partitions_max))
        return;
    terms[0] = admi_world_term(world, after, "x", 30, 0);
    terms[1] = admi_world_term(world, pool, "x", 1, 1);
    terms[0].flags |= ADM_TERM_F_COMPLETION;
    EXPECT(check, admi_world_take(world, terms, 2, &lease) == ADM_VERDICT_ALLOW, "take");
    for (uint32_t round = 0; round < 2; round++) {
        (void)fill(check, rate, 0, &verdict);
        EXPECT(check, verdict == ADM_TERM_NO_ROOM, "refused with verdict %u", verdict);
        EXPECT_LEVEL(check, pool, "x", 1 - round, "held");
        admi_world_advance(world, WORLD_TTL_NS);
    }
    admi_world_advance(world,
                       UINT64_MAX / 4 - world->now.mono_ns); /* far beyond the record's life */
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_UNKNOWN, "a record without end");
}

static void check_late_pin(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t after = admi_world_bucket(world, "after", 100, 0, ADM_SECOND);
    uint32_t rate = admi_world_bucket(world, "rate", 5, 5, ADM_SECOND);
    struct adm_term term;
    struct adm_id lease;
    uint32_t verdict;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.partitions_max))
        return;
    term = admi_world_term(world, after, "x", 30, 0);
    term.flags |= ADM_TERM_F_COMPLETION;
    EXPECT(check, admi_world_take(world, &term, 1, &lease) == ADM_VERDICT_ALLOW, "take");
    admi_world_advance(world, WORLD_TTL_NS + 1);
    (void)fill(check, rate, 0, &verdict);
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_LATE, "late give");
    EXPECT_LEVEL(check, after, "x", 70, "a partition that a late lease may settle was forgotten");
}

static void check_leases(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    struct adm_id first = { 0, 0 }, lease;
    uint64_t count = 0;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.leases_max))
        return;
    while (count <= FILL_MAX &&
           admi_world_take_one(world, admi_world_term(world, pool, "p", 1, ADM_MAX_AMOUNT),
                               &lease) == ADM_VERDICT_ALLOW)
        first = count++ == 0 ? lease : first;
    EXPECT(check, count >= check->sizes.leases && count <= world->info.leases_max,
           "room for %llu leases, asked for %llu, told %llu", (unsigned long long)count,
           (unsigned long long)check->sizes.leases, (unsigned long long)world->info.leases_max);
    EXPECT(check, world->status == ADM_E_BACKEND_FULL || world->status == ADM_OK, "full: status %d",
           world->status);
    EXPECT_LEVEL(check, pool, "p", count, "a lease was evicted, or a refused take held something");
    EXPECT(check, admi_world_give(world, first) == ADM_OUTCOME_RELEASED, "give");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, pool, "p", 1, ADM_MAX_AMOUNT),
                               &lease) == ADM_VERDICT_ALLOW,
           "a released lease makes room: status %d", world->status);
    EXPECT_LEVEL(check, pool, "p", count, "one out, one in");
    admi_world_advance(world, 2 * WORLD_TTL_NS);
    EXPECT_LEVEL(check, pool, "p", 0, "all expired");
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, pool, "p", 1, ADM_MAX_AMOUNT),
                               &lease) == ADM_VERDICT_ALLOW,
           "records that are gone make room");
}

static void check_attempts(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 1000000, 0, ADM_SECOND);
    uint64_t count = 0;
    char name[32];

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (untried(check, world->info.attempts_max))
        return;
    for (; count <= FILL_MAX; count++) {
        struct adm_term term = admi_world_term(world, rate, "p", 1, 0);
        struct adm_take take = { .terms = &term, .term_count = 1, .attempt_life_ns = WORLD_TTL_NS };

        take.attempt = adm_str(name_of(name, count));
        if (admi_world_take_as(world, &take) != ADM_VERDICT_ALLOW)
            break;
    }
    EXPECT(check, count >= check->sizes.attempts && count <= world->info.attempts_max,
           "room for %llu attempts of %llu", (unsigned long long)count,
           (unsigned long long)world->info.attempts_max);
    EXPECT_LEVEL(check, rate, "p", 1000000 - count, "a refused attempt was charged");
    for (uint64_t i = 0; i < count; i++) {
        struct adm_term term = admi_world_term(world, rate, "p", 1, 0);
        struct adm_take take = { .terms = &term, .term_count = 1, .attempt_life_ns = WORLD_TTL_NS };

        take.attempt = adm_str(name_of(name, i));
        EXPECT(check,
               admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
                   take.repeated == ADM_REPEAT_SAME,
               "a remembered attempt was forgotten");
    }
}

/* max_partitions is exact, and so is the time told. */
static void check_max_partitions(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 1, ADM_SECOND);
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    struct adm_term term;
    struct adm_id lease;
    char name[32];

    world->classes[rate].max_partitions = world->classes[pool].max_partitions = 4;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint64_t i = 0; i < 4; i++) {
        term = admi_world_term(world, rate, name_of(name, i), 2 + i, 0);
        EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
               "partition %u of 4", (unsigned)i);
        EXPECT(check,
               admi_world_take_one(world, admi_world_term(world, pool, name_of(name, i), 1, 5),
                                   &lease) == ADM_VERDICT_ALLOW,
               "partition %u of 4", (unsigned)i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        term = admi_world_term(world, rate, "fifth", 1, 0);
        EXPECT(check,
               admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_DENY &&
                   term.verdict == ADM_TERM_NO_ROOM,
               "a fifth partition of 4: verdict %u", term.verdict);
        EXPECT(check, term.passes_at_ns == world->now.mono_ns + 2 * ADM_SECOND,
               "room in %lld ns, told %lld", (long long)(2 * ADM_SECOND),
               (long long)(term.passes_at_ns - world->now.mono_ns));
        EXPECT(check, term.level == 10, "level of a new bucket: %lld", (long long)term.level);
    }
    admi_world_advance(world, 2 * ADM_SECOND - 1);
    term = admi_world_term(world, rate, "fifth", 1, 0);
    EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_DENY,
           "room before the time told");
    term = admi_world_term(world, rate, name_of(name, 3), 1, 0);
    EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
           "a known partition needs no room");
    admi_world_advance(world, 1);
    term = admi_world_term(world, rate, "fifth", 1, 0);
    EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
           "no room at the time told");
    term = admi_world_term(world, pool, "fifth", 1, 5);
    EXPECT(check,
           admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_DENY &&
               term.verdict == ADM_TERM_NO_ROOM,
           "a fifth concurrency partition: verdict %u", term.verdict);
    term = admi_world_term(world, pool, "fifth", 0, 5);
    EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
           "amount 0 needs no room among 4");
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_RELEASED, "give");
    term = admi_world_term(world, pool, "sixth", 1, 5);
    EXPECT(check, admi_world_take(world, &term, 1, NULL) == ADM_VERDICT_ALLOW,
           "given back, and no room");
}

/* Too many classes are refused as a whole, and the old ones stay in force. */
static void check_classes(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 0, ADM_SECOND);
    uint64_t max = world->info.classes_max;
    static struct adm_class many[4096];
    static char names[4096][32];
    struct adm_class_set set = { .owner = adm_str(world->owner), .classes = many };
    struct adm_op op = { .kind = ADM_OP_PUT_CLASSES, .args.classes = &set };

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 4, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "take");
    if (max > 4000) {
        admi_check_skip(check, "the bound is %llu", (unsigned long long)max);
        return;
    }
    for (set.class_count = 0; set.class_count <= max; set.class_count++) {
        many[set.class_count] = world->classes[rate];
        many[set.class_count].rule = adm_str(name_of(names[set.class_count], set.class_count));
    }
    EXPECT(check, admi_world_run(world, &op) == ADM_E_BACKEND_FULL,
           "%llu classes of %llu: status %d", (unsigned long long)set.class_count,
           (unsigned long long)max, world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 3, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "the refused set replaced the old one: status %d", world->status);
    EXPECT_LEVEL(check, rate, "p", 3, "the refused set changed something");
    EXPECT(check, admi_world_info(world).classes <= max, "more than the bound");
    many[0] = world->classes[rate];
    set.class_count = check->sizes.classes;
    EXPECT(check, admi_world_run(world, &op) == ADM_OK,
           "as many classes as were asked for: status %d", world->status);
    world->sequence = set.sequence;
    world->classes[rate].handle = many[0].handle;
    EXPECT_LEVEL(check, rate, "p", 3, "a class that stays keeps its state");
}

const struct admi_contract_check admi_contract_bounds[] = {
    { 5,
      "a full table refuses newcomers (B096, B097, B099, B100)",
      check_partitions,
      { 100, 300, 16, 16, NULL } },
    { 5, "debts and quotas stay", check_debt, { 100, 300, 16, 16, NULL } },
    { 5, "held units stay", check_pinned, { 100, 300, 16, 16, NULL } },
    { 5, "what a late lease may settle stays", check_late_pin, { 100, 300, 16, 16, NULL } },
    { 5, "open leases stay", check_leases, { 64, 50, 16, 16, NULL } },
    { 5, "remembered attempts stay", check_attempts, { 64, 64, 50, 16, NULL } },
    { 5, "max_partitions is exact", check_max_partitions, { 64, 64, 16, 16, NULL } },
    { 5, "too many classes change nothing", check_classes, { 64, 64, 16, 20, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
