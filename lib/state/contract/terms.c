/* SPDX-License-Identifier: Apache-2.0 */
/* What takes may carry beside plain amounts: derived tokens (K1), replica scopes (K4), shadow holds
 * (K5, K6), and numbers that nobody may ask for (K8). */
#include "state/contract/suite.h"

#define FILL_MAX 100000u /* beyond this a bound is not tried out */

/* ---- derived tokens ---- */

struct tokens {
    uint32_t all, output; /* classes: what tokens and output_tokens are charged to */
    struct adm_id lease;
};

/* 100 input and 200 output tokens, and so 300 of both. */
static bool take_tokens(struct admi_check *check, struct tokens *tokens, const char *partition)
{
    struct admi_world *world = &check->world;
    const struct adm_meter meters[] = { { ADM_UNIT_INPUT_TOKENS, 0, 100 },
                                        { ADM_UNIT_OUTPUT_TOKENS, 0, 200 },
                                        { ADM_UNIT_TOKENS, ADM_METER_F_DERIVED, 300 } };
    struct adm_term terms[] = { admi_world_term(world, tokens->all, partition, 300, 0),
                                admi_world_term(world, tokens->output, partition, 200, 0) };
    struct adm_take take = { .flags = ADM_TAKE_F_LEASE,
                             .terms = terms,
                             .term_count = 2,
                             .meters = meters,
                             .meter_count = 3 };

    terms[0].unit = ADM_UNIT_TOKENS;
    terms[1].unit = ADM_UNIT_OUTPUT_TOKENS;
    terms[0].flags = terms[1].flags = ADM_TERM_F_SETTLE_EXACT;
    if (admi_world_take_as(world, &take) != ADM_VERDICT_ALLOW)
        admi_check_fail(check, "take of tokens: status %d", world->status);
    tokens->lease = take.lease;
    return !check->failed;
}

static bool open_tokens(struct admi_check *check, struct tokens *tokens)
{
    struct admi_world *world = &check->world;

    tokens->all = admi_world_bucket(world, "all", 10000, 0, ADM_SECOND);
    tokens->output = admi_world_bucket(world, "output", 10000, 0, ADM_SECOND);
    if (admi_world_put(world) != ADM_OK)
        admi_check_fail(check, "put_classes: status %d", world->status);
    return !check->failed;
}

static void check_derived(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct tokens tokens;

    if (!open_tokens(check, &tokens) || !take_tokens(check, &tokens, "p"))
        return;
    EXPECT_LEVEL(check, tokens.all, "p", 9700, "charged at admission");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_OUTPUT_TOKENS, 250, false);
    EXPECT_LEVEL(check, tokens.all, "p", 9650, "100 and 250 are 350");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_INPUT_TOKENS, 80, false);
    EXPECT_LEVEL(check, tokens.all, "p", 9650, "a smaller part that is not final never refunds");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_OUTPUT_TOKENS, 250, true);
    EXPECT_LEVEL(check, tokens.all, "p", 9650, "the sum is not final before both parts are");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_INPUT_TOKENS, 80, true);
    EXPECT_LEVEL(check, tokens.all, "p", 9670, "both parts are final, and so is 330");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_TOKENS, 999, true);
    EXPECT_LEVEL(check, tokens.all, "p", 9670, "a final sum is not touched again");
    EXPECT_LEVEL(check, tokens.output, "p", 9750, "output tokens alone");
}

static void check_named(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct tokens tokens;

    if (!open_tokens(check, &tokens) || !take_tokens(check, &tokens, "p"))
        return;
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_TOKENS, 500, false);
    EXPECT_LEVEL(check, tokens.all, "p", 9500, "a report names tokens");
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_OUTPUT_TOKENS, 5000, false);
    EXPECT_LEVEL(check, tokens.all, "p", 9500, "named tokens are no sum any more");
    EXPECT_LEVEL(check, tokens.output, "p", 5000, "output tokens alone");
}

static void check_divert_derived(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct tokens tokens;

    if (!open_tokens(check, &tokens) || !take_tokens(check, &tokens, "p"))
        return;
    EXPECT(check, admi_world_divert(world, tokens.lease) == ADM_OUTCOME_DIVERTED, "divert");
    EXPECT_LEVEL(check, tokens.output, "p", 10000, "output that is not to come was charged");
    EXPECT_LEVEL(check, tokens.all, "p", 9900, "its part of the sum was charged, or all refunded");
    if (!take_tokens(check, &tokens, "q"))
        return;
    (void)admi_world_settle(world, tokens.lease, ADM_UNIT_TOKENS, 500, false);
    EXPECT(check, admi_world_divert(world, tokens.lease) == ADM_OUTCOME_DIVERTED, "divert");
    EXPECT_LEVEL(check, tokens.all, "q", 9500, "named tokens have no part that is output");
}

/* ---- replica scopes ---- */

/* Takes from the class in a scope that has so many replicas now; the level before. */
static int64_t take_scaled(struct admi_world *world, uint32_t rule, const char *scope,
                           uint64_t replicas, uint64_t amount)
{
    struct adm_term term = admi_world_term(world, rule, "p", amount, 0);

    term.scope = adm_str(scope);
    term.replicas = replicas;
    if (admi_world_take(world, &term, 1, NULL) != ADM_VERDICT_ALLOW)
        return INT64_MIN;
    return term.level;
}

#define EXPECT_SCALED(check, rule, scope, replicas, amount, expected, because)                     \
    do {                                                                                           \
        int64_t level_ = take_scaled(&(check)->world, rule, scope, replicas, amount);              \
                                                                                                   \
        EXPECT(check, level_ == (expected), "%s: level %lld, expected %lld", because,              \
               (long long)level_, (long long)(expected));                                          \
    } while (0)

static void check_replicas(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 10, ADM_SECOND);

    world->classes[rate].flags = ADM_CLASS_F_PER_REPLICA;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_SCALED(check, rate, "s", 2, 12, 20, "two replicas hold twice as much");
    EXPECT_SCALED(check, rate, "s", 2, 0, 8, "12 of 20 taken");
    EXPECT_SCALED(check, rate, "s", 4, 0, 8, "more replicas add no tokens");
    admi_world_advance(world, ADM_SECOND / 2);
    EXPECT_SCALED(check, rate, "s", 4, 0, 28, "four replicas refill four times as fast");
    EXPECT_SCALED(check, rate, "s", 1, 0, 10, "fewer clamp");
    EXPECT_SCALED(check, rate, "s", 4, 0, 10, "and what was clamped is gone");
    EXPECT_SCALED(check, rate, "t", 1, 10, 10, "another scope is another class");
    EXPECT_SCALED(check, rate, "t", 1, 0, 0, "all taken");
    EXPECT_SCALED(check, rate, "s", 4, 0, 10, "of its own scope only");
}

/* The set in force tells the counts: who is not in it has one replica from then on. */
static void check_scope_gone(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 10, ADM_SECOND);
    const struct adm_replica_scope scopes[] = { { adm_str("s"), 4 } };

    world->classes[rate].flags = ADM_CLASS_F_PER_REPLICA;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_SCALED(check, rate, "s", 4, 0, 40, "new");
    EXPECT_SCALED(check, rate, "s", 4, 5, 40, "four replicas");
    world->scopes = scopes;
    world->scope_count = 1;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_SCALED(check, rate, "s", 4, 0, 35, "a scope that stays keeps its level");
    world->scope_count = 0;
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT_SCALED(check, rate, "s", 4, 0, 10, "a scope that is gone has one replica");
}

/* ---- shadow holds ---- */

struct shade {
    uint32_t pool, dark; /* classes: enforced with room for 100; shadow with room for 1 */
};

static bool open_shade(struct admi_check *check, struct shade *shade)
{
    struct admi_world *world = &check->world;

    shade->pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    shade->dark = admi_world_counter(world, "dark", ADM_KIND_CONCURRENCY);
    world->classes[shade->dark].flags = ADM_CLASS_F_SHADOW;
    if (admi_world_put(world) != ADM_OK)
        admi_check_fail(check, "put_classes: status %d", world->status);
    return !check->failed;
}

/* One of both, with a lease. The verdict of the shadow term, or ADM_TERM_NO_ROOM when the take was
 * denied. */
static uint32_t take_shade(struct admi_world *world, const struct shade *shade,
                           struct adm_id *lease)
{
    struct adm_term terms[] = { admi_world_term(world, shade->pool, "p", 1, 100),
                                admi_world_term(world, shade->dark, "p", 1, 1) };

    if (admi_world_take(world, terms, 2, lease) != ADM_VERDICT_ALLOW)
        return ADM_TERM_NO_ROOM;
    return terms[1].verdict;
}

static void check_shadow_lease(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct adm_id first, second;
    struct shade shade;

    if (!open_shade(check, &shade))
        return;
    EXPECT(check, take_shade(world, &shade, &first) == ADM_TERM_PASS, "the first of one");
    EXPECT_LEVEL(check, shade.dark, "p", 1, "held beside the lease");
    EXPECT(check, take_shade(world, &shade, &second) == ADM_TERM_EXCEEDED, "the second of one");
    EXPECT(check, admi_world_give(world, second) == ADM_OUTCOME_RELEASED, "give");
    EXPECT_LEVEL(check, shade.dark, "p", 1, "another lease's end ended the hold");
    EXPECT(check, admi_world_give(world, first) == ADM_OUTCOME_RELEASED, "give");
    EXPECT(check, world->units == 1, "shadow units returned: %llu of 1",
           (unsigned long long)world->units);
    EXPECT_LEVEL(check, shade.dark, "p", 0, "the lease ended, its shadow hold did not");
    EXPECT(check, take_shade(world, &shade, &first) == ADM_TERM_PASS, "the first of one, again");
    EXPECT(check, admi_world_divert(world, first) == ADM_OUTCOME_DIVERTED, "divert");
    EXPECT_LEVEL(check, shade.dark, "p", 0, "the lease was diverted, its shadow hold stayed");
    EXPECT(check, take_shade(world, &shade, &first) == ADM_TERM_PASS, "the first of one, again");
    admi_world_advance(world, WORLD_TTL_NS / 2);
    EXPECT(check, admi_world_renew(world, first) == ADM_OUTCOME_RENEWED, "renew");
    admi_world_advance(world, WORLD_TTL_NS - 1);
    EXPECT_LEVEL(check, shade.dark, "p", 1, "renewed with the lease");
    admi_world_advance(world, 1);
    EXPECT_LEVEL(check, shade.dark, "p", 0, "expired with the lease");
}

static void check_shadow_alone(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct shade shade;

    if (!open_shade(check, &shade))
        return;
    struct adm_term term = admi_world_term(world, shade.dark, "p", 1, 1);
    struct adm_take take = { .terms = &term, .term_count = 1 };

    EXPECT(check, admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW, "take");
    EXPECT_LEVEL(check, shade.dark, "p", 0, "held for no time at all");
    take = (struct adm_take){ .terms = &term, .term_count = 1, .shadow_ttl_ns = 5 * ADM_SECOND };
    EXPECT(check, admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW, "take");
    EXPECT(check, (take.lease.high | take.lease.low) == 0, "a shadow hold has a lease");
    admi_world_advance(world, 5 * ADM_SECOND - 1);
    EXPECT_LEVEL(check, shade.dark, "p", 1, "held by itself");
    admi_world_advance(world, 1);
    EXPECT_LEVEL(check, shade.dark, "p", 0, "held longer than its own time to live");
}

/* Shadow tables are full: nobody that is asked in earnest may notice. */
static void check_shadow_full(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint64_t max = world->info.leases_max;
    uint32_t unknown = 0;
    struct shade shade;
    struct adm_id lease;

    if (!open_shade(check, &shade))
        return;
    if (max > FILL_MAX) {
        admi_check_skip(check, "the bound is %llu", (unsigned long long)max);
        return;
    }
    for (uint64_t i = 0; i < max + 8; i++) {
        struct adm_term term = admi_world_term(world, shade.dark, "p", 1, ADM_MAX_AMOUNT);
        struct adm_take take = { .terms = &term, .term_count = 1, .shadow_ttl_ns = WORLD_TTL_NS };

        EXPECT(check, admi_world_take_as(world, &take) == ADM_VERDICT_ALLOW,
               "shadow hold %llu: denied, status %d", (unsigned long long)i, world->status);
        unknown += term.verdict == ADM_TERM_UNKNOWN;
    }
    EXPECT(check, unknown > 0, "more shadow holds than told");
    for (uint64_t i = 0; i < check->sizes.leases; i++)
        EXPECT(check, take_shade(world, &shade, &lease) != ADM_TERM_NO_ROOM,
               "lease %llu beside a full shadow table: denied, status %d", (unsigned long long)i,
               world->status);
    EXPECT_LEVEL(check, shade.pool, "p", check->sizes.leases, "enforced units");
}

/* ---- K8: what nobody may ask for ---- */

static void check_numbers(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", 10, 0, ADM_SECOND);
    uint32_t other = admi_world_bucket(world, "other", 10, 0, ADM_SECOND);
    const struct adm_class good = world->classes[other];
    const struct {
        uint64_t capacity, refill, per_ns;
        const char *what;
    } bad[] = { { ADM_MAX_AMOUNT + 1, 1, ADM_SECOND, "capacity beyond 10^12" },
                { UINT64_MAX, 1, ADM_SECOND, "the largest capacity" },
                { 10, 1, 0, "per nothing" },
                { 10, 0, 0, "nothing per nothing" },
                { 10, ADM_SECOND + 1, ADM_SECOND, "more than one token per nanosecond" } };

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, rate, "p", 4, 0), NULL) ==
               ADM_VERDICT_ALLOW,
           "take");
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t sequence = world->sequence;

        world->classes[rate].capacity = 5;
        world->classes[other].capacity = bad[i].capacity;
        world->classes[other].refill = bad[i].refill;
        world->classes[other].per_ns = bad[i].per_ns;
        EXPECT(check, admi_world_put(world) == ADM_E_BACKEND_RESULT, "%s: status %d", bad[i].what,
               world->status);
        world->sequence = sequence;
        world->classes[rate].capacity = 10;
        world->classes[other].capacity = good.capacity;
        world->classes[other].refill = good.refill;
        world->classes[other].per_ns = good.per_ns;
        EXPECT_LEVEL(check, rate, "p", 6, bad[i].what);
        EXPECT_LEVEL(check, rate, "q", 10, bad[i].what);
        EXPECT_LEVEL(check, other, "p", 10, bad[i].what);
    }
}

enum illegal { AMOUNT, LIMIT, NO_LEASE, MODE, MEMO, ILLEGAL_COUNT };

static void check_illegal_takes(struct admi_check *check)
{
    static const uint8_t memo[ADM_MEMO_BYTES + 1];
    struct admi_world *world = &check->world;
    uint32_t rate = admi_world_bucket(world, "rate", ADM_MAX_AMOUNT, 0, ADM_SECOND);
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    for (uint32_t illegal = 0; illegal < ILLEGAL_COUNT; illegal++) {
        struct adm_term terms[] = { admi_world_term(world, rate, "p", 1, 0),
                                    admi_world_term(world, pool, "p", 1, 5) };
        struct adm_take take = { .flags = ADM_TAKE_F_LEASE, .terms = terms, .term_count = 2 };

        if (illegal == AMOUNT)
            terms[0].amount = 2 * ADM_MAX_AMOUNT + 1;
        if (illegal == LIMIT)
            terms[1].limit = ADM_MAX_AMOUNT + 1;
        if (illegal == NO_LEASE)
            take.flags = 0;
        if (illegal == MODE)
            take.mode = ADM_TAKE_JUDGE + 1;
        if (illegal == MEMO)
            take.memo = (struct adm_bytes){ memo, sizeof memo };
        (void)admi_world_take_as(world, &take);
        EXPECT(check, world->status == ADM_E_BACKEND_RESULT, "illegal take %u: status %d",
               illegal + 1, world->status);
        EXPECT_LEVEL(check, rate, "p", ADM_MAX_AMOUNT, "an illegal take charged a bucket");
        EXPECT_LEVEL(check, pool, "p", 0, "an illegal take holds something");
    }
}

const struct admi_contract_check admi_contract_terms[] = {
    { 1, "derived tokens are the sum of their parts", check_derived, { 0, 0, 0, 0, NULL } },
    { 1, "tokens that a report names are no sum", check_named, { 0, 0, 0, 0, NULL } },
    { 1, "a divert takes output off derived tokens", check_divert_derived, { 0, 0, 0, 0, NULL } },
    { 4, "replicas scale, and mint nothing", check_replicas, { 0, 0, 0, 0, NULL } },
    { 4, "a replica scope that is gone has one", check_scope_gone, { 0, 0, 0, 0, NULL } },
    { 5, "full shadow tables deny nobody", check_shadow_full, { 0, 0, 0, 0, NULL } },
    { 6, "a shadow hold ends with its lease", check_shadow_lease, { 0, 0, 0, 0, NULL } },
    { 6, "a shadow hold without a lease ends by itself", check_shadow_alone, { 0, 0, 0, 0, NULL } },
    { 8, "illegal numbers change nothing", check_numbers, { 0, 0, 0, 0, NULL } },
    { 8, "illegal takes change nothing", check_illegal_takes, { 0, 0, 0, 0, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
