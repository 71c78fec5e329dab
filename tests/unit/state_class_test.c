/* SPDX-License-Identifier: Apache-2.0 */
/* The plain backend's classes: replica scopes, sets that come and go, numbers that change. */
#include "state_support.h"

/* ---- D4: replicas ---- */

static int64_t level_in_scope(struct admi_world *world, uint32_t rule, const char *scope,
                              uint64_t replicas, const char *partition)
{
    struct adm_term term = admi_world_term(world, rule, partition, 0, 0);
    struct adm_take take = { .mode = ADM_TAKE_JUDGE, .terms = &term, .term_count = 1 };

    term.scope = adm_str(scope);
    term.replicas = replicas;
    (void)admi_world_take_as(world, &take);
    ck_assert_int_eq(world->status, ADM_OK);
    return term.level;
}

static uint32_t take_in_scope(struct admi_world *world, uint32_t rule, const char *scope,
                              uint64_t replicas, const char *partition, uint64_t amount)
{
    struct adm_term term = admi_world_term(world, rule, partition, amount, 0);

    term.scope = adm_str(scope);
    term.replicas = replicas;
    return admi_world_take(world, &term, 1, NULL);
}

static uint32_t open_replicated(struct admi_world *world, uint64_t capacity, uint64_t refill)
{
    uint32_t rate;

    world_open(world);
    rate = admi_world_bucket(world, "rate", capacity, refill, ADM_SECOND);
    world->classes[rate].flags = ADM_CLASS_F_PER_REPLICA;
    ASSERT_PUT(world);
    return rate;
}

START_TEST(d4_numbers_scale_and_a_change_is_a_rate_change)
{
    struct admi_world world;
    uint32_t rate = open_replicated(&world, 100, 10);

    ck_assert_int_eq(level_in_scope(&world, rate, "m", 3, "p"), 300); /* full at its first use */
    ck_assert_int_eq(level_in_scope(&world, rate, "n", 1, "p"), 100); /* each scope its own */
    ck_assert_uint_eq(take_in_scope(&world, rate, "m", 3, "p", 300), 1);
    admi_world_advance(&world, 2 * ADM_SECOND);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 5, "p"),
                     60); /* until now at the rate of three */
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 5, "q"), 300); /* a raise adds nothing */
    admi_world_advance(&world, ADM_SECOND);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 5, "p"), 110);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 5, "q"), 350);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1, "q"), 100); /* a cut clamps */
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 5, "q"), 100);
    ck_assert_int_eq(level_in_scope(&world, rate, "n", 1, "p"), 100);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 0, "p"), 100); /* never less than one */
    admi_world_close(&world);
}
END_TEST

START_TEST(d4_counts_up_to_1024_never_move_the_grid)
{
    struct admi_world world;
    uint32_t rate = open_replicated(&world, 100, 10);
    uint32_t scope, shift;

    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1, "p"), 100);
    scope = class_at(ledger_of(&world), world.classes[rate].handle)->first_scope;
    shift = class_at(ledger_of(&world), scope)->odometer.shift;
    for (uint64_t replicas = 1; replicas <= ADMI_REPLICAS_MAX; replicas++) {
        (void)level_in_scope(&world, rate, "m", replicas, "p");
        ck_assert_uint_eq(class_at(ledger_of(&world), scope)->odometer.shift, shift);
    }
    (void)level_in_scope(&world, rate, "m", 1000 * ADMI_REPLICAS_MAX, "p");
    ck_assert_uint_lt(class_at(ledger_of(&world), scope)->odometer.shift,
                      shift); /* beyond, it must */
    admi_world_close(&world);
}
END_TEST

START_TEST(d4_scaled_numbers_saturate)
{
    struct admi_world world;
    uint32_t rate = open_replicated(&world, ADM_MAX_AMOUNT / 2, 500000000);

    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1000, "p"), (int64_t)ADM_MAX_AMOUNT);
    ck_assert_uint_eq(take_in_scope(&world, rate, "m", 1000, "p", ADM_MAX_AMOUNT), 1);
    admi_world_advance(&world, 1000);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1000, "p"),
                     1000); /* a token per nanosecond, no more */
    ck_assert_int_eq(level_in_scope(&world, rate, "m", UINT64_MAX, "p"), 1000);
    admi_world_advance(&world, 1000);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1, "p"), 2000);
    admi_world_advance(&world, 1000);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1, "p"), 2500);
    admi_world_close(&world);
}
END_TEST

START_TEST(d4_a_put_lists_the_counts_of_all_scopes)
{
    struct admi_world world;
    uint32_t rate = open_replicated(&world, 100, 10);
    const struct adm_replica_scope scopes[] = { { { "x", 1 }, 9 }, { { "m", 1 }, 4 } };

    ck_assert_uint_eq(take_in_scope(&world, rate, "m", 2, "p", 200), 1);
    ck_assert_uint_eq(take_in_scope(&world, rate, "n", 2, "p", 200), 1);
    admi_world_advance(&world, ADM_SECOND);
    world.scopes = scopes;
    world.scope_count = 2;
    world.classes[rate].refill = 20;
    ASSERT_PUT(&world);
    admi_world_advance(&world, ADM_SECOND);
    /* one second at 10 x 2, one at 20 x 4; a scope that is not listed has one replica from the
     * put on */
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 4, "p"), 100);
    ck_assert_int_eq(level_in_scope(&world, rate, "n", 1, "p"), 40);
    admi_world_close(&world);
}
END_TEST

START_TEST(d4_scaling_on_and_off_keeps_both_states)
{
    struct admi_world world;
    uint32_t rate = open_replicated(&world, 100, 0);

    ck_assert_uint_eq(take_in_scope(&world, rate, "m", 1, "p", 70), 1);
    world.classes[rate].flags = 0;
    ASSERT_PUT(&world);
    ASSERT_LEVEL(&world, rate, "p", 100); /* without a scope it is a class of its own, and new */
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, rate, "p", 20, 0), NULL),
                      1);
    world.classes[rate].flags = ADM_CLASS_F_PER_REPLICA;
    ASSERT_PUT(&world);
    ck_assert_int_eq(level_in_scope(&world, rate, "m", 1, "p"), 30);
    world.classes[rate].flags = 0;
    ASSERT_PUT(&world);
    ASSERT_LEVEL(&world, rate, "p", 80);
    admi_world_close(&world);
}
END_TEST

START_TEST(d4_no_room_for_another_scope)
{
    struct admi_world world;
    uint32_t rate;
    struct adm_term term;

    world_open_sized(&world, 16, 4, 4, 3);
    rate = admi_world_bucket(&world, "rate", 100, 10, ADM_SECOND);
    world.classes[rate].flags = ADM_CLASS_F_PER_REPLICA;
    ASSERT_PUT(&world);
    ck_assert_uint_eq(take_in_scope(&world, rate, "a", 1, "p", 1), 1);
    ck_assert_uint_eq(take_in_scope(&world, rate, "b", 1, "p", 1), 1);
    for (uint32_t i = 0; i < 2; i++) {
        term = admi_world_term(&world, rate, "p", 1, 0);
        term.scope = adm_str("c");
        ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
        ck_assert_int_eq(world.status, ADM_OK);
        ck_assert_uint_eq(term.verdict, ADM_TERM_NO_ROOM);
        admi_world_advance(&world,
                           DAY_NS); /* full again, but a scope in force is not new any more */
    }
    ck_assert_uint_eq(take_in_scope(&world, rate, "a", 1, "p", 100), 1);
    world.class_count = 0;
    ASSERT_PUT(&world);
    (void)admi_world_bucket(&world, "other", 100, 10, ADM_SECOND);
    world.classes[0].flags = ADM_CLASS_F_PER_REPLICA;
    ASSERT_PUT(
        &world); /* where scope b was, which is full; scope a is not, so its base stays too */
    ck_assert_uint_eq(take_in_scope(&world, 0, "d", 1, "p", 1), 0);
    ck_assert_int_eq(world.status, ADM_OK);
    admi_world_advance(&world, DAY_NS);
    ck_assert_uint_eq(take_in_scope(&world, 0, "d", 1, "p", 1), 1);
    admi_world_close(&world);
}
END_TEST

/* ---- classes ---- */

START_TEST(l9_removed_classes_keep_what_they_owe)
{
    struct admi_world world;
    uint32_t rate, keep;
    uint64_t handle;

    world_open(&world);
    keep = admi_world_bucket(&world, "keep", 1, 1, ADM_SECOND);
    rate = admi_world_bucket(&world, "rate", 100, 10, ADM_SECOND);
    ASSERT_PUT(&world);
    handle = world.classes[rate].handle;
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, rate, "p", 100, 0), NULL),
                      1);
    world.class_count = 1;
    ASSERT_PUT(&world);
    admi_world_advance(&world, 4 * ADM_SECOND);
    world.classes[1].handle = handle; /* an old name is not in force any more */
    ck_assert_int_eq(admi_world_level(&world, rate, "p"), INT64_MIN);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_STALE);
    ck_assert_uint_eq(admi_world_info(&world).classes, 2);
    world.class_count = 2;
    world.classes[rate].refill = 20;
    ASSERT_PUT(&world);
    ASSERT_LEVEL(&world, rate, "p",
                 40); /* nothing refilled by coming back, and the time away at the old rate */
    ASSERT_LEVEL(&world, keep, "p", 1);
    admi_world_close(&world);
}
END_TEST

START_TEST(removed_classes_are_reclaimed_when_they_make_no_difference)
{
    struct admi_world world;
    struct adm_sweep sweep = { .budget = 1000 };
    struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
    uint32_t rate;
    struct adm_id lease;

    world_open(&world);
    (void)admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rate = admi_world_bucket(&world, "rate", 100, 10, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(take_flagged(&world, rate, "p", 100, 0, ADM_TERM_F_SETTLE_EXACT, 0, &lease),
                      1);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, 0, "p", 1, 5), NULL), 1);
    world.class_count = 0;
    ASSERT_PUT(&world);
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(sweep.done, 1);
    ck_assert_uint_eq(admi_world_info(&world).classes,
                      1); /* the bucket's; a count is its family's */
    ck_assert_uint_eq(admi_world_info(&world).partitions, 2);
    admi_world_advance(&world, 10 * ADM_SECOND); /* full, but an open lease may settle it */
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(admi_world_info(&world).classes, 1);
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(admi_world_info(&world).classes, 0);
    ck_assert_uint_eq(admi_world_info(&world).partitions, 1); /* still held */
    admi_world_advance(&world, 2 * WORLD_TTL_NS);
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(admi_world_info(&world).partitions, 0);
    ck_assert_uint_eq(ledger_of(&world)->registry.family_table.used, 0);
    admi_world_close(&world);
}
END_TEST

START_TEST(a_raise_that_still_holds_buckets_down_keeps_the_record)
{
    struct admi_world world;
    struct adm_sweep sweep = { .budget = 1000 };
    struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
    uint32_t rate;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world);
    world.classes[rate].capacity = 100;
    ASSERT_PUT(&world);
    world.class_count = 0;
    ASSERT_PUT(&world);
    admi_world_advance(&world, 89 * ADM_SECOND);
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(admi_world_info(&world).classes, 1);
    admi_world_advance(&world, ADM_SECOND);
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(admi_world_info(&world).classes, 0);
    admi_world_close(&world);
}
END_TEST

START_TEST(whether_a_spent_record_was_reclaimed_cannot_be_seen)
{
    for (uint32_t swept = 0; swept < 2; swept++) {
        struct admi_world world;
        struct adm_sweep sweep = { .budget = 1000 };
        struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
        uint32_t rate;

        world_open(&world);
        rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
        ASSERT_PUT(&world);
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, rate, "p", 10, 0), NULL), 1);
        world.class_count = 0;
        ASSERT_PUT(&world);
        admi_world_advance(&world, 10 * ADM_SECOND);
        if (swept)
            ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
        ck_assert_uint_eq(admi_world_info(&world).classes, 1 - swept);
        ck_assert_uint_eq(admi_world_bucket(&world, "rate", 50, 1, ADM_SECOND), rate);
        ASSERT_PUT(&world);
        ASSERT_LEVEL(&world, rate, "p", 50); /* it was gone and full: it is new */
        ASSERT_LEVEL(&world, rate, "q", 50);
        admi_world_close(&world);
    }
}
END_TEST

START_TEST(a_put_makes_room_by_reclaiming)
{
    struct admi_world world;
    uint32_t rate;

    world_open_sized(&world, 16, 4, 4, 2);
    (void)admi_world_bucket(&world, "a", 10, 1, ADM_SECOND);
    rate = admi_world_bucket(&world, "b", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, rate, "p", 10, 0), NULL),
                      1);
    world.class_count = 0;
    (void)admi_world_bucket(&world, "c", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world); /* in a's place */
    (void)admi_world_bucket(&world, "d", 10, 1, ADM_SECOND);
    ck_assert_int_eq(admi_world_put(&world), ADM_E_BACKEND_FULL); /* b is not full again */
    ASSERT_LEVEL(&world, 0, "p", 10);                             /* and c is in force as before */
    ck_assert_uint_eq(ledger_of(&world)->registry.family_table.used, 2);   /* nothing of d is left */
    admi_world_advance(&world, 10 * ADM_SECOND);
    ASSERT_PUT(&world);
    world.class_count = 0;
    (void)admi_world_bucket(&world, "e", 10, 1, ADM_SECOND);
    (void)admi_world_bucket(&world, "f", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world); /* a full table replaced as a whole */
    ck_assert_uint_eq(ledger_of(&world)->registry.family_table.used, 2);
    admi_world_close(&world);
}
END_TEST

START_TEST(owners_do_not_see_each_other)
{
    struct admi_world world, other;
    uint32_t rate;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 10, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, rate, "p", 7, 0), NULL),
                      1);
    other = world;
    other.owner = "another";
    ASSERT_PUT(&other);
    ASSERT_LEVEL(&other, rate, "p", 10); /* the same rule bytes */
    other.class_count = 0;
    ASSERT_PUT(&other);
    ASSERT_LEVEL(&world, rate, "p", 3); /* the other's set removed nothing of ours */
    other = world;
    for (uint32_t i = 0; i < 200;
         i++) { /* a table of owners is bounded as well, and owners without records go */
        char name[16];

        snprintf(name, sizeof name, "%u", i);
        other.owner = name;
        if (admi_world_put(&other) != ADM_OK)
            break;
        ck_assert_uint_lt(i, ADMI_OWNERS_MAX);
    }
    ck_assert_int_eq(other.status, ADM_E_BACKEND_FULL);
    ASSERT_LEVEL(&world, rate, "p", 3);
    admi_world_close(&world);
}
END_TEST

START_TEST(d3_a_new_grid_moves_every_bucket_of_the_class_alone)
{
    struct admi_world world;
    uint32_t rate, other;
    char name[16];

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 100, 1, ADM_SECOND);
    other = admi_world_bucket(&world, "rate", 100, 1, ADM_SECOND);
    world.classes[other].origin = adm_str("override 1");
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%u", i);
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, rate, name, i + 1, 0), NULL), 1);
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, other, name, 2 * (i + 1), 0), NULL),
            1);
    }
    for (uint32_t round = 0; round < 6; round++) {
        world.classes[rate].per_ns = round % 2 == 0 ? 366 * DAY_NS : ADM_SECOND;
        ASSERT_PUT(&world);
        for (uint32_t i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "%u", i);
            ASSERT_LEVEL(&world, rate, name, 100 - (i + 1));
            ASSERT_LEVEL(&world, other, name, 100 - 2 * (i + 1));
        }
    }
    admi_world_close(&world);
}
END_TEST

START_TEST(classes_of_illegal_numbers_are_refused_as_a_whole)
{
    struct admi_world world;

    for (uint32_t fault = 0; fault < 5; fault++) {
        uint32_t rate;

        world_open(&world);
        rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
        ASSERT_PUT(&world);
        switch (fault) {
        case 0:
            world.classes[rate].kind = 0;
            break;
        case 1:
            world.classes[rate].kind = 9;
            break;
        case 2:
            world.classes[rate].capacity = ADM_MAX_AMOUNT + 1;
            break;
        case 3:
            world.classes[rate].per_ns = 0;
            break;
        default:
            world.classes[rate].refill = ADM_SECOND + 1;
            break;
        }
        ck_assert_int_eq(admi_world_put(&world), ADM_E_BACKEND_RESULT);
        world.classes[rate].kind = ADM_KIND_BUCKET;
        ASSERT_LEVEL(&world, rate, "p", 10);
        admi_world_close(&world);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("class");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, d4_numbers_scale_and_a_change_is_a_rate_change);
    tcase_add_test(tests, d4_counts_up_to_1024_never_move_the_grid);
    tcase_add_test(tests, d4_scaled_numbers_saturate);
    tcase_add_test(tests, d4_a_put_lists_the_counts_of_all_scopes);
    tcase_add_test(tests, d4_scaling_on_and_off_keeps_both_states);
    tcase_add_test(tests, d4_no_room_for_another_scope);
    tcase_add_test(tests, l9_removed_classes_keep_what_they_owe);
    tcase_add_test(tests, removed_classes_are_reclaimed_when_they_make_no_difference);
    tcase_add_test(tests, a_raise_that_still_holds_buckets_down_keeps_the_record);
    tcase_add_test(tests, whether_a_spent_record_was_reclaimed_cannot_be_seen);
    tcase_add_test(tests, a_put_makes_room_by_reclaiming);
    tcase_add_test(tests, owners_do_not_see_each_other);
    tcase_add_test(tests, d3_a_new_grid_moves_every_bucket_of_the_class_alone);
    tcase_add_test(tests, classes_of_illegal_numbers_are_refused_as_a_whole);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
