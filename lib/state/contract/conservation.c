/* SPDX-License-Identifier: Apache-2.0 */
/* K1 conservation, K3 idempotent give. */
#include "state/contract/suite.h"

#define LIMIT 20u

/* ---- K1: the sum of what open leases hold is what is held, after every operation ---- */

#define LEASES 24u

static const char *const partitions[] = { "p", "q", "" };

struct held_lease {
    struct adm_id id;
    uint64_t until_ns; /* live before */
    uint64_t units[2]; /* in pool, in tenant */
    uint32_t partition;
    bool open;
};

struct ledger {
    uint32_t pool, tenant;
    struct held_lease leases[LEASES];
};

static int64_t expected(const struct ledger *ledger, uint64_t now_ns, uint32_t which,
                        uint32_t partition)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LEASES; i++) {
        const struct held_lease *lease = &ledger->leases[i];

        if (lease->open && now_ns < lease->until_ns &&
            (which == 0 || lease->partition == partition))
            sum += lease->units[which];
    }
    return (int64_t)sum;
}

static void step(struct admi_check *check, struct ledger *ledger)
{
    struct admi_world *world = &check->world;
    struct held_lease *lease = &ledger->leases[admi_world_random(world, LEASES)];
    bool live = lease->open && world->now.mono_ns < lease->until_ns;
    uint32_t outcome;

    if (!lease->open) {
        uint64_t amount = admi_world_random(world, 5), more = admi_world_random(world, 4);
        uint32_t partition = (uint32_t)admi_world_random(world, 3);
        struct adm_term terms[2] = { admi_world_term(world, ledger->pool, "", amount, LIMIT),
                                     admi_world_term(world, ledger->tenant, partitions[partition],
                                                     more, LIMIT / 2) };
        bool fits =
            (amount == 0 ||
             expected(ledger, world->now.mono_ns, 0, 0) + (int64_t)amount <= (int64_t)LIMIT) &&
            (more == 0 || expected(ledger, world->now.mono_ns, 1, partition) + (int64_t)more <=
                              (int64_t)LIMIT / 2);
        uint32_t verdict = admi_world_take(world, terms, 2, &lease->id);

        EXPECT(check, world->status == ADM_OK, "take: status %d", world->status);
        EXPECT(check, verdict == (uint32_t)fits,
               "take of %u and %u: verdict %u, but what leases hold says %u", (unsigned)amount,
               (unsigned)more, verdict, fits);
        *lease = (struct held_lease){
            lease->id, world->now.mono_ns + WORLD_TTL_NS, { amount, more }, partition, fits
        };
        return;
    }
    switch (admi_world_random(world, 4)) {
    case 0: /* settle: what is held follows, as long as the lease lives */
        outcome = admi_world_settle(world, lease->id, ADM_UNIT_COST, lease->units[0] + 1, false);
        EXPECT(check,
               outcome == (live ? (uint32_t)ADM_OUTCOME_SETTLED : (uint32_t)ADM_OUTCOME_LATE) ||
                   (!live && outcome == ADM_OUTCOME_UNKNOWN),
               "settle: outcome %u", outcome);
        lease->units[0]++;
        lease->units[1] = lease->units[0];
        break;
    case 1:
        outcome = admi_world_renew(world, lease->id);
        EXPECT(check,
               outcome == (live ? (uint32_t)ADM_OUTCOME_RENEWED : (uint32_t)ADM_OUTCOME_LOST),
               "renew: outcome %u", outcome);
        if (live)
            lease->until_ns = world->now.mono_ns + WORLD_TTL_NS;
        break;
    case 2: /* divert, then nothing is held */
        outcome = admi_world_divert(world, lease->id);
        EXPECT(check, outcome != ADM_OUTCOME_COUNT, "divert: status %d", world->status);
        lease->open = false;
        break;
    default:
        outcome = admi_world_give(world, lease->id);
        EXPECT(check, !live || outcome == ADM_OUTCOME_RELEASED, "give of a live lease: outcome %u",
               outcome);
        EXPECT(check, !live || world->units == lease->units[0] + lease->units[1],
               "give returned %llu units of %llu", (unsigned long long)world->units,
               (unsigned long long)(lease->units[0] + lease->units[1]));
        lease->open = false;
        break;
    }
}

static void check_held(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct ledger ledger = { .pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY) };

    ledger.tenant = admi_world_counter(world, "tenant", ADM_KIND_CONCURRENCY);
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 600 && !check->failed; i++) {
        step(check, &ledger);
        if (check->failed)
            return;
        EXPECT_LEVEL(check, ledger.pool, "", expected(&ledger, world->now.mono_ns, 0, 0),
                     "held in the pool");
        for (uint32_t p = 0; p < 3; p++)
            EXPECT_LEVEL(check, ledger.tenant, partitions[p],
                         expected(&ledger, world->now.mono_ns, 1, p), "held by a tenant");
        admi_world_advance(world, admi_world_random(world, 8 * ADM_SECOND));
    }
}

/* What is taken from a bucket, less what has dripped, is what is missing: the public arithmetic
 * is the judge. */
static void check_bucket(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 1000, 7, 3 * ADM_MILLISECOND);
    struct adm_odometer odometer;
    int64_t empty = ADM_BUCKET_FRESH;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    adm_odometer_init(&odometer, world->now.mono_ns, 1000, 7, 3 * ADM_MILLISECOND, 1);
    for (uint32_t i = 0; i < 400; i++) {
        uint64_t amount = admi_world_random(world, 300);
        struct adm_term term = admi_world_term(world, rate, "p", amount, 0);
        int64_t level = adm_bucket_level(&odometer, world->now.mono_ns, empty);
        uint32_t fits = adm_bucket_take(&odometer, world->now.mono_ns, &empty, amount);
        uint32_t verdict = admi_world_take(world, &term, 1, NULL);

        EXPECT(check, verdict == fits, "take of %llu at level %lld: verdict %u",
               (unsigned long long)amount, (long long)level, verdict);
        EXPECT(check, term.level == level, "level before the charge %lld, expected %lld",
               (long long)term.level, (long long)level);
        admi_world_advance(world, admi_world_random(world, 200 * ADM_MILLISECOND));
    }
}

static void check_quota(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t quota = admi_world_counter(world, "day", ADM_KIND_QUOTA);
    uint64_t used = 0, day = 0;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    day = adm_window_index(ADM_WINDOW_DAY, world->now.wall_ns, NULL, NULL);
    for (uint32_t i = 0; i < 300; i++) {
        uint64_t amount = admi_world_random(world, 40);
        uint32_t fits = amount == 0 || used + amount <= 500;
        struct adm_term term = admi_world_term(world, quota, "p", amount, 500);
        uint32_t verdict = admi_world_take(world, &term, 1, NULL);

        EXPECT(check, verdict == fits && term.level == (int64_t)used,
               "take of %llu with %llu of 500 used: %u, level %lld", (unsigned long long)amount,
               (unsigned long long)used, verdict, (long long)term.level);
        used += fits ? amount : 0;
        admi_world_advance(world, admi_world_random(world, 3600 * ADM_SECOND));
        if (adm_window_index(ADM_WINDOW_DAY, world->now.wall_ns, NULL, NULL) != day) {
            day = adm_window_index(ADM_WINDOW_DAY, world->now.wall_ns, NULL, NULL);
            used = 0;
        }
    }
}

/* Exact settlement moves the difference, once; completion charges once, when it is final or given
 * back. */
static void check_settlement(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t exact = admi_world_bucket(world, "exact", 1000, 0, ADM_SECOND);
    uint32_t after = admi_world_bucket(world, "after", 1000, 0, ADM_SECOND);
    uint32_t quota = admi_world_counter(world, "day", ADM_KIND_QUOTA);
    struct adm_term terms[3];
    struct adm_id lease;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    terms[0] = admi_world_term(world, exact, "p", 100, 0);
    terms[1] = admi_world_term(world, after, "p", 100, 0);
    terms[2] = admi_world_term(world, quota, "p", 100, 1000);
    terms[0].flags |= ADM_TERM_F_SETTLE_EXACT;
    terms[1].flags |= ADM_TERM_F_COMPLETION;
    terms[2].flags |= ADM_TERM_F_SETTLE_EXACT;
    EXPECT(check, admi_world_take(world, terms, 3, &lease) == ADM_VERDICT_ALLOW, "take: denied");
    EXPECT_LEVEL(check, exact, "p", 900, "charged at admission");
    EXPECT_LEVEL(check, after, "p", 1000, "not charged before completion");
    for (uint32_t again = 0; again < 2; again++) { /* a total, not a delta */
        EXPECT(check,
               admi_world_settle(world, lease, ADM_UNIT_COST, 250, false) == ADM_OUTCOME_SETTLED,
               "settle");
        EXPECT_LEVEL(check, exact, "p", 750, "settled to 250");
        EXPECT_LEVEL(check, quota, "p", 250, "settled to 250");
    }
    EXPECT(check, admi_world_settle(world, lease, ADM_UNIT_COST, 20, false) == ADM_OUTCOME_SETTLED,
           "settle");
    EXPECT_LEVEL(check, exact, "p", 750, "a smaller total that is not final never refunds");
    EXPECT(check, admi_world_settle(world, lease, ADM_UNIT_COST, 20, true) == ADM_OUTCOME_SETTLED,
           "settle");
    EXPECT_LEVEL(check, exact, "p", 980, "a final total refunds");
    EXPECT_LEVEL(check, after, "p", 980, "completion was charged by the final report");
    EXPECT_LEVEL(check, quota, "p", 20, "a final total refunds");
    EXPECT(check, admi_world_settle(world, lease, ADM_UNIT_COST, 900, true) == ADM_OUTCOME_SETTLED,
           "settle");
    EXPECT_LEVEL(check, exact, "p", 980, "a final unit is not touched again");
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_RELEASED, "give");
    EXPECT_LEVEL(check, after, "p", 980, "completion is charged once");
    EXPECT_LEVEL(check, exact, "p", 980, "a give keeps what was settled");
}

/* ---- K3 ---- */

static uint32_t pool_with_two(struct admi_check *check, struct adm_id leases[2])
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);

    if (admi_world_put(world) != ADM_OK ||
        admi_world_take_one(world, admi_world_term(world, pool, "p", 3, LIMIT), &leases[0]) !=
            ADM_VERDICT_ALLOW ||
        admi_world_take_one(world, admi_world_term(world, pool, "p", 4, LIMIT), &leases[1]) !=
            ADM_VERDICT_ALLOW)
        admi_check_fail(check, "two takes that fit: status %d", world->status);
    return pool;
}

static void check_twice(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct adm_id leases[2];
    uint32_t pool = pool_with_two(check, leases);
    uint32_t outcome;

    if (check->failed)
        return;
    EXPECT(check, (leases[0].high | leases[0].low) != 0, "an allowed take with a lease has no id");
    EXPECT(check, leases[0].high != leases[1].high || leases[0].low != leases[1].low,
           "two leases have one id");
    EXPECT(check, admi_world_give(world, leases[0]) == ADM_OUTCOME_RELEASED, "first give");
    for (uint32_t i = 0; i < 3; i++) {
        outcome = admi_world_give(world, leases[0]);
        EXPECT(check, outcome == ADM_OUTCOME_ALREADY, "give again: outcome %u", outcome);
        EXPECT(check, world->units == 0, "give again returned units");
        EXPECT_LEVEL(check, pool, "p", 4, "the other lease's units");
    }
    EXPECT(check,
           admi_world_settle(world, leases[0], ADM_UNIT_COST, 9, false) == ADM_OUTCOME_ALREADY,
           "settle after");
    EXPECT(check, admi_world_divert(world, leases[0]) == ADM_OUTCOME_ALREADY, "divert after give");
    EXPECT(check, admi_world_renew(world, leases[0]) == ADM_OUTCOME_LOST, "renew after give");
    EXPECT_LEVEL(check, pool, "p", 4, "the other lease's units");
    EXPECT(check, admi_world_divert(world, leases[1]) == ADM_OUTCOME_DIVERTED, "divert");
    EXPECT(check, world->units == 4, "divert returned %llu units of 4",
           (unsigned long long)world->units);
    EXPECT_LEVEL(check, pool, "p", 0, "diverted");
    EXPECT(check, admi_world_divert(world, leases[1]) == ADM_OUTCOME_ALREADY, "divert again");
    EXPECT(check,
           admi_world_settle(world, leases[1], ADM_UNIT_COST, 9, false) == ADM_OUTCOME_ALREADY,
           "settle after divert");
    EXPECT(check, admi_world_give(world, leases[1]) == ADM_OUTCOME_RELEASED && world->units == 0,
           "give after divert");
    EXPECT_LEVEL(check, pool, "p", 0, "all is given back");
}

/* Ids that were never handed out: each bit of a live one flipped, none, all ones. */
static void check_foreign(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct adm_id leases[2];
    uint32_t pool = pool_with_two(check, leases);

    for (uint32_t bit = 0; bit < 130 && !check->failed; bit++) {
        struct adm_id id = leases[0];

        if (bit < 64)
            id.high ^= UINT64_C(1) << bit;
        else if (bit < 128)
            id.low ^= UINT64_C(1) << (bit - 64);
        else
            id = bit == 128 ? (struct adm_id){ 0, 0 } : (struct adm_id){ UINT64_MAX, UINT64_MAX };
        EXPECT(check, admi_world_give(world, id) == ADM_OUTCOME_UNKNOWN,
               "give of a foreign id (bit %u)", bit);
        EXPECT(check, admi_world_settle(world, id, ADM_UNIT_COST, 9, true) == ADM_OUTCOME_UNKNOWN,
               "settle, bit %u", bit);
        EXPECT(check, admi_world_divert(world, id) == ADM_OUTCOME_UNKNOWN, "divert, bit %u", bit);
        EXPECT(check, admi_world_renew(world, id) == ADM_OUTCOME_LOST, "renew, bit %u", bit);
    }
    if (!check->failed)
        EXPECT_LEVEL(check, pool, "p", 7, "foreign ids changed something");
}

/* B085: an old id must not hit whoever has its place now. */
static void check_stale(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    struct adm_id old[40];

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t i = 0; i < 40; i++) {
        struct adm_term term = admi_world_term(world, pool, "p", 2, LIMIT);

        EXPECT(check, admi_world_take(world, &term, 1, &old[i]) == ADM_VERDICT_ALLOW, "take %u", i);
        for (uint32_t j = 0; j < i; j++) {
            uint32_t outcome = admi_world_give(world, old[j]);

            EXPECT(check, outcome == ADM_OUTCOME_ALREADY || outcome == ADM_OUTCOME_UNKNOWN,
                   "stale give: outcome %u", outcome);
        }
        EXPECT_LEVEL(check, pool, "p", 2, "a stale give reached a live lease (B085)");
        EXPECT(check, admi_world_give(world, old[i]) == ADM_OUTCOME_RELEASED, "give %u", i);
        admi_world_advance(world, admi_world_random(world, 2 * WORLD_TTL_NS));
    }
}

static struct adm_take attempt(struct adm_term *term, const char *name, uint8_t digest)
{
    struct adm_take take = { .flags = ADM_TAKE_F_LEASE, .terms = term, .term_count = 1 };

    take.attempt = (struct adm_bytes){ name, 3 };
    take.attempt_digest[0] = digest;
    take.attempt_life_ns = 2 * WORLD_TTL_NS;
    take.memo = (struct adm_bytes){ "memo", 4 };
    return take;
}

/* A repeated attempt is the first allow again, and is charged once. */
static void check_attempts(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    uint8_t memo[ADM_MEMO_BYTES];
    struct adm_term term;
    struct adm_take take;
    struct adm_id first;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    if (world->info.attempts_max == 0) {
        admi_check_skip(check, "the backend remembers no attempts");
        return;
    }
    term = admi_world_term(world, pool, "p", 15, LIMIT);
    take = attempt(&term, "one", 1);
    EXPECT(check,
           admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
               take.repeated == ADM_REPEAT_NONE,
           "first");
    first = take.lease;
    for (uint32_t i = 0; i < 3; i++) {
        take = attempt(&term, "one", 1);
        take.memo = (struct adm_bytes){ "other", 5 };
        take.memo_out = memo;
        EXPECT(check,
               admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
                   take.repeated == ADM_REPEAT_SAME,
               "repeated: verdict %u, repeated %u", take.verdict, take.repeated);
        EXPECT(check, take.lease.high == first.high && take.lease.low == first.low,
               "repeated: another lease");
        EXPECT(check, take.memo_out_length == 4 && memo[0] == 'm' && memo[3] == 'o',
               "repeated: another memo");
        EXPECT_LEVEL(check, pool, "p", 15, "a repeated attempt was charged again");
    }
    take = attempt(&term, "one", 2);
    (void)admi_world_take_as(world, &take);
    EXPECT(check, take.repeated == ADM_REPEAT_OTHER, "other contents: repeated %u", take.repeated);
    EXPECT_LEVEL(check, pool, "p", 15, "an attempt with other contents was charged");
    take = attempt(&term, "two", 1);
    EXPECT(check, admi_world_take_as(world, &take) == ADM_VERDICT_DENY,
           "a second attempt beyond the limit");
    EXPECT(check, admi_world_give(world, first) == ADM_OUTCOME_RELEASED, "give");
    take = attempt(&term, "two", 1);
    EXPECT(check,
           admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
               take.repeated == ADM_REPEAT_NONE,
           "a denied attempt is not remembered");
    admi_world_advance(world, 2 * WORLD_TTL_NS - 1);
    take = attempt(&term, "one", 1);
    EXPECT(check,
           admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
               take.repeated == ADM_REPEAT_SAME,
           "remembered for its life, although the lease is given back");
    admi_world_advance(world, 1);
    take = attempt(&term, "one", 1);
    EXPECT(check,
           admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW &&
               take.repeated == ADM_REPEAT_NONE,
           "forgotten after its life");
}

const struct admi_contract_check admi_contract_conservation[] = {
    { 1, "what leases hold is what is held", check_held, { 0, 0, 0, 0, NULL } },
    { 1, "what a bucket misses was taken", check_bucket, { 0, 0, 0, 0, NULL } },
    { 1, "what a quota counts was taken in its window", check_quota, { 0, 0, 0, 0, NULL } },
    { 1, "settlement moves the difference, once", check_settlement, { 0, 0, 0, 0, NULL } },
    { 3, "a second give changes nothing", check_twice, { 0, 0, 0, 0, NULL } },
    { 3, "a foreign id changes nothing", check_foreign, { 0, 0, 0, 0, NULL } },
    { 3, "a stale id changes nothing (B085)", check_stale, { 0, 0, 0, 0, NULL } },
    { 3, "a repeated attempt is charged once", check_attempts, { 0, 0, 0, 0, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
