/* SPDX-License-Identifier: Apache-2.0 */
/* The plain backend after the grant: settlement, completion, divert, and how long records and
 * attempts live. */
#include "state_support.h"

/* A lease over a bucket per unit: exact on input, output, tokens; completion on images. */
struct settled {
    struct admi_world world;
    uint32_t rules[4];
    struct adm_id lease;
};

static const uint32_t units[4] = { ADM_UNIT_INPUT_TOKENS, ADM_UNIT_OUTPUT_TOKENS, ADM_UNIT_TOKENS,
                                   ADM_UNIT_IMAGES };

/* 100 input, 50 output and so 150 tokens, derived; 3 images at completion. */
static void open_settled(struct settled *settled, bool derived)
{
    struct admi_world *world = &settled->world;
    const uint64_t amounts[4] = { 100, 50, 150, 3 };
    struct adm_term terms[4];
    struct adm_meter meters[4];
    struct adm_take take = {
        .flags = ADM_TAKE_F_LEASE, .terms = terms, .term_count = 4, .meters = meters
    };

    world_open(world);
    for (uint32_t i = 0; i < 4; i++)
        settled->rules[i] = admi_world_bucket(
            world, (const char *[]){ "in", "out", "all", "img" }[i], 1000, 0, ADM_SECOND);
    ASSERT_PUT(world);
    for (uint32_t i = 0; i < 4; i++) {
        terms[i] = admi_world_term(world, settled->rules[i], "p", amounts[i], 0);
        terms[i].flags = i < 3 ? ADM_TERM_F_SETTLE_EXACT : ADM_TERM_F_COMPLETION;
        terms[i].unit = units[i];
        meters[i] =
            (struct adm_meter){ units[i], i == 2 && derived ? ADM_METER_F_DERIVED : 0, amounts[i] };
    }
    take.meter_count = 4;
    ck_assert_uint_eq(admi_world_take_as(world, &take), ADM_VERDICT_ALLOW);
    settled->lease = take.lease;
}

/* What each bucket misses of its 1000. */
static void assert_charged(struct settled *settled, int64_t in, int64_t out, int64_t all,
                           int64_t images)
{
    ASSERT_LEVEL(&settled->world, settled->rules[0], "p", 1000 - in);
    ASSERT_LEVEL(&settled->world, settled->rules[1], "p", 1000 - out);
    ASSERT_LEVEL(&settled->world, settled->rules[2], "p", 1000 - all);
    ASSERT_LEVEL(&settled->world, settled->rules[3], "p", 1000 - images);
}

static uint32_t settle(struct settled *settled, uint32_t unit, uint64_t total, bool final)
{
    return admi_world_settle(&settled->world, settled->lease, unit, total, final);
}

START_TEST(totals_not_deltas_and_tokens_follow_their_parts)
{
    struct settled settled;

    open_settled(&settled, true);
    assert_charged(&settled, 100, 50, 150, 0);
    for (uint32_t again = 0; again < 3; again++) {
        ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 80, false), ADM_OUTCOME_SETTLED);
        assert_charged(&settled, 100, 80, 180, 0);
    }
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 10, false), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 80, 180, 0); /* smaller and not final */
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_INPUT_TOKENS, 40, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 40, 80, 120, 0);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_INPUT_TOKENS, 500, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 40, 80, 120, 0); /* final, not touched again */
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 90, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 40, 90, 130, 0);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_TOKENS, 999, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 40, 90, 130, 0); /* both parts were final, so the sum is */
    ck_assert_uint_eq(settle(&settled, 40, 5, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 40, 90, 130, 0); /* a unit that nobody counts */
    ck_assert_uint_eq(admi_world_give(&settled.world, settled.lease), ADM_OUTCOME_RELEASED);
    assert_charged(&settled, 40, 90, 130, 3); /* without a report the amount asked for completes */
    admi_world_close(&settled.world);
}
END_TEST

START_TEST(d5_a_report_that_names_tokens_ends_the_derivation)
{
    struct settled settled;
    const struct adm_amount both[] = { { ADM_UNIT_TOKENS, 0, 400 },
                                       { ADM_UNIT_INPUT_TOKENS, 0, 110 } };

    open_settled(&settled, true);
    ck_assert_uint_eq(admi_world_settle_all(&settled.world, settled.lease, both, 2, false),
                      ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 110, 50, 400, 0);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_INPUT_TOKENS, 700, false), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 700, 50, 400, 0); /* explicit tokens are not recomputed */
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_TOKENS, 300, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 700, 50, 300, 0);
    admi_world_close(&settled.world);

    open_settled(&settled, true); /* naming a smaller total ends it as well */
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_TOKENS, 5, false), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 50, 150, 0);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 70, false), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 70, 150, 0);
    admi_world_close(&settled.world);

    open_settled(&settled, false); /* and what was given at admission was never derived */
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 70, false), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 70, 150, 0);
    admi_world_close(&settled.world);
}
END_TEST

START_TEST(a_final_report_of_all_units_ends_settlement)
{
    struct settled settled;
    const struct adm_amount totals[] = { { ADM_UNIT_OUTPUT_TOKENS, 0, 20 },
                                         { ADM_UNIT_IMAGES, 0, 7 } };

    open_settled(&settled, true);
    ck_assert_uint_eq(admi_world_settle_all(&settled.world, settled.lease, totals, 2, true),
                      ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 20, 120, 7);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_INPUT_TOKENS, 900, true), ADM_OUTCOME_SETTLED);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_TOKENS, 900, true), ADM_OUTCOME_SETTLED);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_IMAGES, 900, true), ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 20, 120, 7);
    ck_assert_uint_eq(admi_world_give(&settled.world, settled.lease), ADM_OUTCOME_RELEASED);
    assert_charged(&settled, 100, 20, 120, 7);
    admi_world_close(&settled.world);

    open_settled(
        &settled,
        true); /* with no totals at all: everything keeps what it has, completion is charged */
    ck_assert_uint_eq(admi_world_settle_all(&settled.world, settled.lease, NULL, 0, true),
                      ADM_OUTCOME_SETTLED);
    assert_charged(&settled, 100, 50, 150, 3);
    admi_world_close(&settled.world);
}
END_TEST

START_TEST(divert_keeps_charges_but_for_output_still_to_come)
{
    struct settled settled;

    open_settled(&settled, true);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 60, false), ADM_OUTCOME_SETTLED);
    ck_assert_uint_eq(admi_world_divert(&settled.world, settled.lease), ADM_OUTCOME_DIVERTED);
    assert_charged(&settled, 100, 0, 100, 0);
    ck_assert_uint_eq(settle(&settled, ADM_UNIT_OUTPUT_TOKENS, 500, true), ADM_OUTCOME_ALREADY);
    ck_assert_uint_eq(admi_world_divert(&settled.world, settled.lease), ADM_OUTCOME_ALREADY);
    ck_assert_uint_eq(admi_world_renew(&settled.world, settled.lease), ADM_OUTCOME_RENEWED);
    ck_assert_uint_eq(admi_world_give(&settled.world, settled.lease), ADM_OUTCOME_RELEASED);
    assert_charged(&settled, 100, 0, 100, 0); /* diverted work completes nothing */
    admi_world_close(&settled.world);

    open_settled(&settled, false); /* tokens given as such stay */
    ck_assert_uint_eq(admi_world_divert(&settled.world, settled.lease), ADM_OUTCOME_DIVERTED);
    assert_charged(&settled, 100, 0, 150, 0);
    admi_world_close(&settled.world);

    open_settled(&settled, true); /* late: the same, and it says so */
    admi_world_advance(&settled.world, WORLD_TTL_NS);
    ck_assert_uint_eq(admi_world_divert(&settled.world, settled.lease), ADM_OUTCOME_LATE);
    assert_charged(&settled, 100, 0, 100, 0);
    ck_assert_uint_eq(admi_world_divert(&settled.world, settled.lease), ADM_OUTCOME_ALREADY);
    ck_assert_uint_eq(admi_world_give(&settled.world, settled.lease), ADM_OUTCOME_LATE);
    assert_charged(&settled, 100, 0, 100, 0);
    admi_world_close(&settled.world);
}
END_TEST

START_TEST(completion_never_charges_more_than_the_bucket_holds)
{
    struct admi_world world;
    uint32_t rule;
    struct adm_id leases[3];

    world_open(&world);
    rule = admi_world_bucket(&world, "out", 100, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 3;
         i++) /* checked as level >= 1, whatever the amount (B053 is why others reserve) */
        ck_assert_uint_eq(
            take_flagged(&world, rule, "p", 1000, 0, ADM_TERM_F_COMPLETION, 0, &leases[i]), 1);
    ck_assert_uint_eq(admi_world_give(&world, leases[0]), ADM_OUTCOME_RELEASED);
    ASSERT_LEVEL(&world, rule, "p", 0);
    ck_assert_uint_eq(take_flagged(&world, rule, "p", 0, 0, ADM_TERM_F_COMPLETION, 0, NULL),
                      0); /* D2: also amount 0 */
    ck_assert_uint_eq(admi_world_settle(&world, leases[1], 0, ADM_MAX_AMOUNT, true),
                      ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, rule, "p", -100);
    world.classes[rule].capacity = 40;
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_give(&world, leases[2]), ADM_OUTCOME_RELEASED);
    ASSERT_LEVEL(&world, rule, "p", -140); /* the capacity in force when it completes */
    admi_world_close(&world);
}
END_TEST

START_TEST(charges_without_exact_settlement_stay)
{
    struct admi_world world;
    uint32_t rate, day;
    struct adm_term terms[3];
    struct adm_id lease;
    uint32_t pool;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 100, 0, ADM_SECOND);
    day = admi_world_counter(&world, "day", ADM_KIND_QUOTA);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    terms[0] = admi_world_term(&world, rate, "p", 10, 0);
    terms[1] = admi_world_term(&world, day, "p", 10, 100);
    terms[2] = admi_world_term(&world, pool, "p", 10, 12);
    ck_assert_uint_eq(admi_world_take(&world, terms, 3, &lease), 1);
    ck_assert_uint_eq(admi_world_settle(&world, lease, 0, 90, true), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, rate, "p", 90);
    ASSERT_LEVEL(&world, day, "p", 10);
    ASSERT_LEVEL(&world, pool, "p", 90); /* concurrency always follows, also past its limit */
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 12), NULL),
                      0);
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(world.units, 90);
    ASSERT_LEVEL(&world, rate, "p", 90);
    ASSERT_LEVEL(&world, day, "p", 10);
    ASSERT_LEVEL(&world, pool, "p", 0);
    admi_world_close(&world);
}
END_TEST

START_TEST(a_quota_is_corrected_only_in_the_window_it_was_charged_in)
{
    struct admi_world world;
    uint32_t day;
    struct adm_id old, new;
    uint64_t end_ns;

    world_open(&world);
    day = admi_world_counter(&world, "day", ADM_KIND_QUOTA);
    ASSERT_PUT(&world);
    (void)adm_window_index(ADM_WINDOW_DAY, world.now.wall_ns, NULL, &end_ns);
    world.now.wall_ns = end_ns - 2;
    ck_assert_uint_eq(take_flagged(&world, day, "p", 10, 100, ADM_TERM_F_SETTLE_EXACT, 0, &old), 1);
    ck_assert_uint_eq(admi_world_settle(&world, old, 0, 30, false), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, day, "p", 30);
    world.now.wall_ns = end_ns;
    ASSERT_LEVEL(&world, day, "p", 0);
    ck_assert_uint_eq(admi_world_settle(&world, old, 0, 70, false), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, day, "p", 0);
    ck_assert_uint_eq(take_flagged(&world, day, "p", 5, 100, ADM_TERM_F_SETTLE_EXACT, 0, &new), 1);
    ck_assert_uint_eq(admi_world_settle(&world, old, 0, 0, true), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, day, "p", 5); /* yesterday's refund is not today's */
    ck_assert_uint_eq(admi_world_settle(&world, new, 0, 0, true), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, day, "p", 0);
    /* Amount 0 now, usage later: it is this window's. */
    ck_assert_uint_eq(take_flagged(&world, day, "q", 0, 100, ADM_TERM_F_SETTLE_EXACT, 0, &new), 1);
    ck_assert_uint_eq(admi_world_settle(&world, new, 0, 60, true), ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, day, "q", 60);
    admi_world_close(&world);
}
END_TEST

START_TEST(a_quota_saturates_and_never_goes_below_nothing)
{
    struct admi_world world;
    uint32_t day;
    struct adm_id lease;

    world_open(&world);
    day = admi_world_counter(&world, "day", ADM_KIND_QUOTA);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 30; i++) {
        ck_assert_uint_eq(take_flagged(&world, day, "p", 0, 1, ADM_TERM_F_SETTLE_EXACT, 0, &lease),
                          1);
        ck_assert_uint_eq(admi_world_settle(&world, lease, 0, ADM_MAX_AMOUNT, false),
                          ADM_OUTCOME_SETTLED);
    }
    ASSERT_LEVEL(&world, day, "p", ADMI_QUOTA_MAX);
    ck_assert_uint_eq(take_flagged(&world, day, "p", 1, ADM_MAX_AMOUNT, 0, 0, NULL), 0);
    admi_world_advance(&world, DAY_NS);
    ASSERT_LEVEL(&world, day, "p", 0);
    admi_world_close(&world);
}
END_TEST

/* ---- records ---- */

START_TEST(d6_closed_records_make_room_oldest_first_open_ones_never)
{
    struct admi_world world;
    uint32_t pool;
    struct adm_id leases[6];

    world_open_sized(&world, 16, 4, 4, 4);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), &leases[i]), 1);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), NULL),
                      0);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_FULL);
    ck_assert_uint_eq(admi_world_give(&world, leases[2]), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(admi_world_give(&world, leases[1]), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(admi_world_give(&world, leases[2]),
                      ADM_OUTCOME_ALREADY); /* kept while nobody needs the room */
    ck_assert_uint_eq(
        admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), &leases[4]), 1);
    ck_assert_uint_eq(admi_world_give(&world, leases[2]),
                      ADM_OUTCOME_UNKNOWN); /* closed first, gone first */
    ck_assert_uint_eq(admi_world_give(&world, leases[1]), ADM_OUTCOME_ALREADY);
    ck_assert_uint_eq(
        admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), &leases[5]), 1);
    ck_assert_uint_eq(admi_world_give(&world, leases[1]), ADM_OUTCOME_UNKNOWN);
    ASSERT_LEVEL(&world, pool, "p", 4);
    admi_world_advance(&world,
                       WORLD_TTL_NS); /* late and open: they may still be settled, so they stay */
    ASSERT_LEVEL(&world, pool, "p", 0);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), NULL),
                      0);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_FULL);
    ck_assert_uint_eq(admi_world_give(&world, leases[0]), ADM_OUTCOME_LATE);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 100), NULL),
                      1);
    admi_world_advance(&world, WORLD_TTL_NS);
    ck_assert_uint_eq(admi_world_give(&world, leases[3]), ADM_OUTCOME_UNKNOWN);
    ck_assert_uint_eq(admi_world_info(&world).expired, 5);
    admi_world_close(&world);
}
END_TEST

START_TEST(d6_already_until_the_records_end_then_unknown)
{
    struct admi_world world;
    uint32_t pool;
    struct adm_id lease;

    world_open(&world);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 9), &lease),
                      1);
    admi_world_advance(&world, WORLD_TTL_NS / 2);
    ck_assert_uint_eq(admi_world_renew(&world, lease),
                      ADM_OUTCOME_RENEWED); /* ends at 1.5, its record at 2.5 */
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    admi_world_advance(&world, 2 * WORLD_TTL_NS - 1);
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_ALREADY);
    admi_world_advance(&world, 1);
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_UNKNOWN);
    ck_assert_uint_eq(admi_world_info(&world).leases, 0);
    admi_world_close(&world);
}
END_TEST

/* Take with an attempt id: 0 denied, else 1 + how it repeated. */
static uint32_t attempt(struct admi_world *world, uint32_t rule, const char *name, uint64_t life_ns,
                        bool leased, struct adm_id *out_lease)
{
    struct adm_term term = admi_world_term(world, rule, "p", 1, 9);
    struct adm_take take = { .flags = leased ? ADM_TAKE_F_LEASE : 0,
                             .terms = &term,
                             .term_count = 1 };

    take.attempt = adm_str(name);
    take.attempt_life_ns = life_ns;
    if (admi_world_take_as(world, &take) != ADM_VERDICT_ALLOW)
        return 0;
    if (out_lease != NULL)
        *out_lease = take.lease;
    return 1 + take.repeated;
}

START_TEST(attempts_live_as_long_as_their_lease)
{
    struct admi_world world;
    uint32_t pool, rate;
    struct adm_id lease, again;
    const char *long_name =
        "an attempt id of more than sixty-two bytes is kept as a digest, like any other key";

    world_open_sized(&world, 16, 16, 3, 4);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rate = admi_world_bucket(&world, "rate", 100, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, &lease), 1 + ADM_REPEAT_NONE);
    admi_world_advance(&world, WORLD_TTL_NS - 1);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, &again), 1 + ADM_REPEAT_SAME);
    ck_assert(again.high == lease.high && again.low == lease.low);
    ck_assert_uint_eq(admi_world_renew(&world, lease), ADM_OUTCOME_RENEWED);
    admi_world_advance(&world, WORLD_TTL_NS - 1);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, NULL),
                      1 + ADM_REPEAT_SAME); /* renewed with it */
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, NULL),
                      1 + ADM_REPEAT_NONE); /* its own life was over */
    ck_assert_uint_eq(attempt(&world, rate, "b", 50, false, NULL),
                      1 + ADM_REPEAT_NONE); /* without a lease */
    ck_assert_uint_eq(attempt(&world, rate, "b", 50, false, &again), 1 + ADM_REPEAT_SAME);
    ck_assert_uint_eq(again.high | again.low, 0);
    admi_world_advance(&world, 49);
    ck_assert_uint_eq(attempt(&world, rate, "b", 50, false, NULL), 1 + ADM_REPEAT_SAME);
    admi_world_advance(&world, 1);
    ck_assert_uint_eq(attempt(&world, rate, "b", 50, false, NULL), 1 + ADM_REPEAT_NONE);
    ck_assert_uint_eq(attempt(&world, rate, long_name, 50, false, NULL), 1 + ADM_REPEAT_NONE);
    ck_assert_uint_eq(attempt(&world, rate, long_name, 50, false, NULL), 1 + ADM_REPEAT_SAME);
    ck_assert_uint_eq(attempt(&world, rate, "d", 50, false, NULL),
                      0); /* three are remembered already */
    ck_assert_int_eq(world.status, ADM_E_BACKEND_FULL);
    ASSERT_LEVEL(&world, rate, "p", 97);
    admi_world_close(&world);
}
END_TEST

START_TEST(an_attempt_outlives_the_record_of_its_lease)
{
    struct admi_world world;
    uint32_t pool;
    struct adm_id first, again, lease;

    world_open_sized(&world, 16, 2, 8, 4);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(attempt(&world, pool, "a", 10 * WORLD_TTL_NS, true, &first),
                      1 + ADM_REPEAT_NONE);
    ck_assert_uint_eq(admi_world_give(&world, first), ADM_OUTCOME_RELEASED);
    for (uint32_t i = 0; i < 4; i++) { /* its record is recycled */
        ck_assert_uint_eq(
            attempt(&world, pool, (const char *[]){ "b", "c", "d", "e" }[i], 1, true, &lease), 1);
        ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    }
    ck_assert_uint_eq(admi_world_give(&world, first), ADM_OUTCOME_UNKNOWN);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, &again), 1 + ADM_REPEAT_SAME);
    ck_assert(again.high == first.high && again.low == first.low);
    admi_world_advance(&world, 10 * WORLD_TTL_NS);
    ck_assert_uint_eq(attempt(&world, pool, "a", 1, true, &again), 1 + ADM_REPEAT_NONE);
    admi_world_close(&world);
}
END_TEST

/* ---- D7: shadow holds ---- */

START_TEST(d7_a_shadow_hold_ends_with_the_lease_and_is_not_settled)
{
    struct admi_world world;
    uint32_t pool, dark;

    world_open(&world);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    dark = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    world.classes[dark].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t end = 0; end < 3; end++) {
        struct adm_term terms[2] = { admi_world_term(&world, pool, "p", 2, 100),
                                     admi_world_term(&world, dark, "p", 2, 100) };
        struct adm_id lease;

        ck_assert_uint_eq(admi_world_take(&world, terms, 2, &lease), 1);
        ASSERT_LEVEL(&world, dark, "p", 2);
        ck_assert_uint_eq(admi_world_settle(&world, lease, 0, 7, false), ADM_OUTCOME_SETTLED);
        ASSERT_LEVEL(&world, pool, "p", 7);
        ASSERT_LEVEL(&world, dark, "p", 2);
        admi_world_advance(&world, WORLD_TTL_NS - 1);
        ck_assert_uint_eq(admi_world_renew(&world, lease), ADM_OUTCOME_RENEWED);
        admi_world_advance(&world, WORLD_TTL_NS - 1);
        ASSERT_LEVEL(&world, dark, "p", 2); /* renewed with the lease */
        if (end == 0)
            ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
        else if (end == 1)
            ck_assert_uint_eq(admi_world_divert(&world, lease), ADM_OUTCOME_DIVERTED);
        else
            admi_world_advance(&world, 1);
        ASSERT_LEVEL(&world, dark, "p", 0);
        ASSERT_LEVEL(&world, pool, "p", 0);
    }
    admi_world_close(&world);
}
END_TEST

START_TEST(d7_without_a_lease_a_shadow_hold_has_its_own_end)
{
    struct admi_world world;
    uint32_t rate, dark;
    uint64_t ttls[] = { 0, 5 };

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 100, 0, ADM_SECOND);
    dark = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    world.classes[dark].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 2; i++) {
        struct adm_term terms[2] = { admi_world_term(&world, rate, "p", 1, 0),
                                     admi_world_term(&world, dark, "p", 2, 100) };
        struct adm_take take = { .terms = terms, .term_count = 2, .shadow_ttl_ns = ttls[i] };

        ck_assert_uint_eq(admi_world_take_as(&world, &take), 1);
        ck_assert_uint_eq(take.lease.high | take.lease.low, 0);
        ck_assert_uint_eq(terms[1].verdict, ADM_TERM_PASS);
        ASSERT_LEVEL(&world, dark, "p", i * 2);
    }
    admi_world_advance(&world, 4);
    ASSERT_LEVEL(&world, dark, "p", 2);
    admi_world_advance(&world, 1);
    ASSERT_LEVEL(&world, dark, "p", 0);
    admi_world_close(&world);
}
END_TEST

START_TEST(l8_full_shadow_state_says_unknown_and_decides_nothing)
{
    struct admi_world world;
    uint32_t pool, dark, rate;
    char name[16];

    world_open_sized(&world, 8, 8, 8, 8);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    dark = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rate = admi_world_bucket(&world, "rate", 9, 0, ADM_SECOND);
    world.classes[dark].flags = ADM_CLASS_F_SHADOW;
    world.classes[rate].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 40; i++) {
        struct adm_term terms[3] = { admi_world_term(&world, pool, "p", 1, 100),
                                     admi_world_term(&world, dark, "p", 1, 100),
                                     { 0 } };
        struct adm_id lease;

        snprintf(name, sizeof name, "%u", i);
        terms[2] = admi_world_term(&world, rate, name, 1, 0);
        ck_assert_uint_eq(admi_world_take(&world, terms, 3, &lease), 1);
        ck_assert_uint_eq(terms[1].verdict, ADM_TERM_PASS);
        ck_assert_uint_eq(terms[2].verdict, i < 7 ? ADM_TERM_PASS : ADM_TERM_UNKNOWN);
        ck_assert_uint_eq(terms[2].passes_at_ns, UINT64_MAX);
        ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    }
    ASSERT_LEVEL(&world, pool, "p", 0);
    ASSERT_LEVEL(&world, dark, "p", 0);
    admi_world_close(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("settle");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, totals_not_deltas_and_tokens_follow_their_parts);
    tcase_add_test(tests, d5_a_report_that_names_tokens_ends_the_derivation);
    tcase_add_test(tests, a_final_report_of_all_units_ends_settlement);
    tcase_add_test(tests, divert_keeps_charges_but_for_output_still_to_come);
    tcase_add_test(tests, completion_never_charges_more_than_the_bucket_holds);
    tcase_add_test(tests, charges_without_exact_settlement_stay);
    tcase_add_test(tests, a_quota_is_corrected_only_in_the_window_it_was_charged_in);
    tcase_add_test(tests, a_quota_saturates_and_never_goes_below_nothing);
    tcase_add_test(tests, d6_closed_records_make_room_oldest_first_open_ones_never);
    tcase_add_test(tests, d6_already_until_the_records_end_then_unknown);
    tcase_add_test(tests, attempts_live_as_long_as_their_lease);
    tcase_add_test(tests, an_attempt_outlives_the_record_of_its_lease);
    tcase_add_test(tests, d7_a_shadow_hold_ends_with_the_lease_and_is_not_settled);
    tcase_add_test(tests, d7_without_a_lease_a_shadow_hold_has_its_own_end);
    tcase_add_test(tests, l8_full_shadow_state_says_unknown_and_decides_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
