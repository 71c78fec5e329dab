/* SPDX-License-Identifier: Apache-2.0 */
/* The plain backend: time, windows, partitions, room, sweep, and what malformed ops meet. */
#include "state_support.h"

/* ---- D1: time ---- */

START_TEST(d1_the_largest_time_seen_counts)
{
    struct admi_world world;
    uint32_t rate;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, rate, "p", 10, 0), NULL),
                      1);
    admi_world_advance(&world, 5 * ADM_SECOND);
    ASSERT_LEVEL(&world, rate, "p", 5);
    world.now.mono_ns -= 3 * ADM_SECOND;
    ASSERT_LEVEL(&world, rate, "p", 5);
    ck_assert_uint_eq(world.judged.mono_ns, world.now.mono_ns + 3 * ADM_SECOND);
    ck_assert_uint_eq(world.judged.wall_ns, world.now.wall_ns);
    admi_world_close(&world);
}
END_TEST

/* Steps of a wall clock around a month's end: what is used of 100 before each take of 10, and
 * where the window ends. */
static const struct wall_step {
    const char *date; /* UTC */
    int64_t used;
    const char *end;
    const char *because;
} wall_steps[] = {
    { "2028-02-28 23:59:59", 0, "2028-03-01 00:00:00", "a new month" },
    { "2028-02-29 00:00:00", 10, "2028-03-01 00:00:00", "a leap day belongs to it" },
    { "2028-02-29 23:59:59", 20, "2028-03-01 00:00:00", "to its end" },
    { "2028-03-01 00:00:00", 0, "2028-04-01 00:00:00", "the next month" },
    { "2028-02-29 23:59:50", 10, "2028-04-01 00:00:00", "ten seconds back: the month has begun" },
    { "2028-02-29 23:59:49", 20, "2028-04-01 00:00:00",
      "eleven: set back, and the count comes along" },
    { "2028-03-01 00:00:00", 0, "2028-04-01 00:00:00", "from there on as usual" },
    { "2100-02-28 12:00:00", 0, "2100-03-01 00:00:00", "a century without a leap day" },
    { "2027-01-01 00:00:00", 10, "2100-03-01 00:00:00", "decades back" },
    { "2026-12-31 23:59:59", 20, "2027-02-01 00:00:00", "a second back, around a year's end" },
    { "2554-06-30 00:00:00", 0, "2554-07-01 00:00:00", "as far as 64 bits go" },
};

static uint64_t wall_of(const char *date)
{
    struct tm tm = { 0 };

    ck_assert_ptr_nonnull(strptime(date, "%Y-%m-%d %H:%M:%S", &tm));
    return (uint64_t)timegm(&tm) * ADM_SECOND;
}

START_TEST(d1_wall_clock_steps_around_month_ends)
{
    struct admi_world world;
    uint32_t month;

    world_open(&world);
    month = admi_world_counter(&world, "month", ADM_KIND_QUOTA);
    ASSERT_PUT(&world);
    world.max_skew_ns = 10 * ADM_SECOND;
    for (uint32_t i = 0; i < sizeof wall_steps / sizeof wall_steps[0]; i++) {
        const struct wall_step *step = &wall_steps[i];
        struct adm_term term = admi_world_term(&world, month, "p", 101, 100);

        world.now.wall_ns = wall_of(step->date);
        term.window = ADM_WINDOW_MONTH;
        ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
        ck_assert_msg(term.level == step->used, "step %u: used %lld, expected %lld: %s", i,
                      (long long)term.level, (long long)step->used, step->because);
        ck_assert_uint_eq(term.verdict, ADM_TERM_NEVER);
        term.amount = 100;
        if (step->used > 0) {
            ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
            ck_assert_uint_eq(term.verdict, ADM_TERM_EXCEEDED);
            ck_assert_msg(term.passes_at_ns == wall_of(step->end), "step %u: another end: %s", i,
                          step->because);
        }
        term.amount = 10;
        ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 1);
    }
    admi_world_close(&world);
}
END_TEST

/* ---- D2: amount 0 ---- */

START_TEST(d2_amount_0_passes_and_consumes_nothing)
{
    struct admi_world world;
    struct adm_term terms[3];
    uint32_t rules[3];

    world_open_sized(&world, 3, 8, 4, 8);
    rules[0] = admi_world_bucket(&world, "rate", 0, 0, ADM_SECOND);
    rules[1] = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rules[2] = admi_world_counter(&world, "day", ADM_KIND_QUOTA);
    for (uint32_t i = 0; i < 3; i++)
        world.classes[rules[i]].max_partitions = 1;
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 3; i++) {
        terms[i] = admi_world_term(&world, rules[i], "p", 0, 0);
        ck_assert_uint_eq(take_flagged(&world, rules[i], "p", 1, 0, 0, 0, NULL),
                          0); /* capacity and limit 0 */
        ck_assert_int_eq(world.status, ADM_OK);
    }
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(admi_world_take(&world, &terms[i], 1, NULL), 1);
    ck_assert_uint_eq(admi_world_info(&world).partitions,
                      1); /* the pool's, which its lease may settle */
    terms[1].partition = adm_str("q");
    ck_assert_uint_eq(admi_world_take(&world, &terms[1], 1, NULL), 1);
    terms[1].partition = adm_str("r");
    ck_assert_uint_eq(admi_world_take(&world, &terms[1], 1, NULL), 1);
    terms[1].partition = adm_str("s"); /* no record for what the lease might settle */
    ck_assert_uint_eq(admi_world_take(&world, &terms[1], 1, NULL), 0);
    ck_assert_uint_eq(terms[1].verdict, ADM_TERM_NO_ROOM);
    terms[0].partition = adm_str("s");
    ck_assert_uint_eq(admi_world_take(&world, &terms[0], 1, NULL), 1); /* this one needs none */
    admi_world_close(&world);
}
END_TEST

/* ---- partitions ---- */

START_TEST(keys_of_every_length_are_themselves)
{
    static const uint64_t lengths[] = { 0, 1, 61, 62, 63, 64, 255, 300, 2000 };
    static char text[2000];
    struct admi_world world;
    uint32_t rate;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 100, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    memset(text, 'k', sizeof text);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 9; i++) {
            struct adm_term term = admi_world_term(&world, rate, "", i + 1, 0);

            term.partition = (struct adm_bytes){ text, lengths[i] };
            ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 1);
            ck_assert_int_eq(term.level, 100 - (int64_t)(round * (i + 1)));
        }
    }
    ck_assert_uint_eq(admi_world_info(&world).partitions, 9);
    admi_world_close(&world);
}
END_TEST

START_TEST(b093_partitions_of_one_hash_are_told_apart)
{
    struct admi_world world;
    struct ledger *ledger;
    struct admi_key keys[2];
    uint32_t places[2];
    uint32_t rate;

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 100, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    ledger = ledger_of(&world);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t class_place = (uint32_t)world.classes[rate].handle,
                 family = class_at(ledger, class_place)->family;

        admi_key_make(&keys[i], adm_str(i == 0 ? "a" : "b"), ledger->registry.key_secrets);
        ck_assert_uint_eq(admi_ledger_partition_find(ledger, &keys[i], 12345, family, class_place),
                          0);
        places[i] = admi_ledger_partition_make(ledger, &keys[i], 12345, family, class_place);
        ck_assert_uint_ne(places[i], 0);
        ck_assert_uint_eq(admi_ledger_partition_find(ledger, &keys[i], 12345, family, class_place),
                          places[i]);
        ck_assert_uint_eq(
            admi_ledger_partition_find(ledger, &keys[i], 12345, family, class_place + 1), 0);
        ck_assert_uint_eq(admi_ledger_partition_find(ledger, &keys[i], 12346, family, class_place),
                          0);
    }
    ck_assert_uint_ne(places[0], places[1]);
    admi_world_close(&world);
}
END_TEST

START_TEST(counts_belong_to_the_rule_buckets_to_the_class)
{
    struct admi_world world;
    uint32_t rules[4];

    world_open(&world);
    rules[0] = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rules[1] = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rules[2] = admi_world_bucket(&world, "pool", 10, 0, ADM_SECOND);
    rules[3] = admi_world_bucket(&world, "pool", 10, 0, ADM_SECOND);
    world.classes[rules[1]].origin = world.classes[rules[3]].origin = adm_str("override 1");
    ASSERT_PUT(&world);
    ck_assert_uint_eq(
        admi_world_take_one(&world, admi_world_term(&world, rules[0], "p", 3, 10), NULL), 1);
    ck_assert_uint_eq(
        admi_world_take_one(&world, admi_world_term(&world, rules[2], "p", 3, 0), NULL), 1);
    ASSERT_LEVEL(&world, rules[1], "p", 3);
    ASSERT_LEVEL(&world, rules[3], "p", 10);
    ASSERT_LEVEL(&world, rules[2], "p", 7);
    admi_world_close(&world);
}
END_TEST

START_TEST(max_partitions_counts_the_live_ones_of_all_classes)
{
    struct admi_world world;
    uint32_t a, b;
    struct adm_term term;

    world_open(&world);
    a = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    b = admi_world_bucket(&world, "rate", 20, 2, ADM_SECOND);
    world.classes[b].origin = adm_str("override 1");
    world.classes[a].max_partitions = world.classes[b].max_partitions = 2;
    ASSERT_PUT(&world);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, a, "p", 5, 0), NULL), 1);
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, b, "q", 5, 0), NULL), 1);
    term = admi_world_term(&world, a, "q", 1,
                           0); /* the same values, another class: another partition */
    ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
    ck_assert_uint_eq(term.verdict, ADM_TERM_NO_ROOM);
    ck_assert_uint_eq(term.passes_at_ns, world.now.mono_ns + 2500 * ADM_MILLISECOND);
    /* Charging the one that the time was about moves it to the other one's. */
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, b, "q", 10, 0), NULL), 1);
    ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
    ck_assert_uint_eq(term.passes_at_ns, world.now.mono_ns + 5 * ADM_SECOND);
    world.classes[a].max_partitions = world.classes[b].max_partitions =
        1; /* lowered: no single moment makes room */
    ASSERT_PUT(&world);
    term = admi_world_term(&world, a, "q", 1, 0);
    ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
    ck_assert_uint_eq(term.passes_at_ns, UINT64_MAX);
    world.classes[a].max_partitions = world.classes[b].max_partitions = 3;
    ASSERT_PUT(&world);
    term = admi_world_term(&world, a, "q", 1, 0);
    ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 1);
    admi_world_close(&world);
}
END_TEST

START_TEST(a_refund_makes_room_at_once)
{
    struct admi_world world;
    uint32_t rate;
    struct adm_term term;
    struct adm_id lease;

    world_open_sized(&world, 2, 8, 4, 4);
    rate = admi_world_bucket(&world, "rate", 10, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(take_flagged(&world, rate, "p", 5, 0, ADM_TERM_F_SETTLE_EXACT, 0, &lease), 1);
    ck_assert_uint_eq(take_flagged(&world, rate, "q", 5, 0, 0, 0, NULL), 1);
    for (uint32_t i = 0; i < 3; i++) {
        term = admi_world_term(&world, rate, "r", 1, 0);
        ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 0);
        ck_assert_uint_eq(term.verdict, ADM_TERM_NO_ROOM);
        if (i == 0) /* as new, but pinned: no room yet */
            ck_assert_uint_eq(admi_world_settle(&world, lease, 0, 0, true), ADM_OUTCOME_SETTLED);
    }
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    term = admi_world_term(&world, rate, "r", 1, 0);
    ck_assert_uint_eq(admi_world_take(&world, &term, 1, NULL), 1);
    ASSERT_LEVEL(&world, rate, "q", 5);
    admi_world_close(&world);
}
END_TEST

START_TEST(a_denied_take_that_found_its_partition_as_new_hides_nothing)
{
    struct admi_world world;
    uint32_t rate, pool;
    struct adm_term terms[2];

    world_open_sized(&world, 2, 8, 4, 4);
    rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    pool = admi_world_bucket(&world, "other", 10, 0, ADM_SECOND);
    ASSERT_PUT(&world);
    ck_assert_uint_eq(take_flagged(&world, rate, "p", 1, 0, 0, 0, NULL), 1);
    ck_assert_uint_eq(take_flagged(&world, pool, "q", 1, 0, 0, 0, NULL), 1);
    admi_world_advance(&world, ADM_SECOND); /* p is full again */
    terms[0] = admi_world_term(&world, rate, "p", 1, 0);
    terms[1] = admi_world_term(&world, pool, "r", 1, 0);
    ck_assert_uint_eq(admi_world_take(&world, terms, 2, NULL),
                      0); /* p is in use by this very take */
    ck_assert_uint_eq(terms[0].verdict, ADM_TERM_PASS);
    ck_assert_uint_eq(terms[1].verdict, ADM_TERM_NO_ROOM);
    ck_assert_uint_eq(admi_world_take(&world, &terms[1], 1, NULL),
                      1); /* afterwards it makes room */
    admi_world_close(&world);
}
END_TEST

/* ---- sweep ---- */

START_TEST(b100_sweep_forgets_in_bounded_steps)
{
    struct admi_world world;
    struct adm_sweep sweep = { .budget = 7 };
    struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
    uint32_t rate;
    uint64_t freed = 0, steps = 0;
    char name[16];

    world_open(&world);
    rate = admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%u", i);
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, rate, name, i % 2 == 0 ? 1 : 9, 0),
                                NULL),
            1);
    }
    admi_world_advance(&world, ADM_SECOND);
    do {
        ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
        ck_assert_uint_le(sweep.looked, 7);
        freed += sweep.freed;
        ck_assert_uint_lt(++steps, 20);
    } while (!sweep.done);
    ck_assert_uint_eq(freed, 25);
    ck_assert_uint_eq(admi_world_info(&world).partitions, 25);
    sweep.budget = 0;
    ck_assert_int_eq(admi_world_run(&world, &op), ADM_OK);
    ck_assert_uint_eq(sweep.looked + sweep.freed, 0);
    for (uint32_t i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%u", i);
        ASSERT_LEVEL(&world, rate, name, i % 2 == 0 ? 10 : 2);
    }
    admi_world_close(&world);
}
END_TEST

/* ---- what is not a legal op ---- */

START_TEST(k8_malformed_takes_change_nothing)
{
    struct admi_world world;
    uint32_t pool, dark;
    static struct adm_term terms[40];
    static struct adm_meter meters[40];

    world_open(&world);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    dark = admi_world_counter(&world, "dark", ADM_KIND_CONCURRENCY);
    world.classes[dark].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t fault = 0; fault < 13; fault++) {
        struct adm_take take = {
            .flags = ADM_TAKE_F_LEASE, .terms = terms, .term_count = 1, .meters = meters
        };
        adm_status expected = ADM_E_BACKEND_RESULT;

        for (uint32_t i = 0; i < 40; i++)
            terms[i] = admi_world_term(&world, pool, "p", 1, 10);
        take.ttl_ns = 5;
        switch (fault) {
        case 0:
            take.term_count = 33;
            break;
        case 1:
            take.term_count = 17;
            break;
        case 2:
            take.meter_count = 19;
            break;
        case 3:
            take.flags = 0;
            break; /* held for ever */
        case 4:
            take.mode = 2;
            break;
        case 5:
            take.memo.length = ADM_MEMO_BYTES + 1;
            break;
        case 6:
            terms[0].amount = 2 * ADM_MAX_AMOUNT + 1;
            break;
        case 7:
            terms[0].limit = UINT64_MAX;
            break;
        case 8:
            terms[0].class_handle = 0;
            expected = ADM_E_BACKEND_STALE;
            break;
        case 9:
            terms[0].class_handle = UINT64_MAX;
            expected = ADM_E_BACKEND_STALE;
            break;
        case 10:
            terms[0].kind = ADM_KIND_QUOTA;
            expected = ADM_E_BACKEND_STALE;
            break;
        case 11:
            terms[0].flags = ADM_TERM_F_SHADOW;
            expected = ADM_E_BACKEND_STALE;
            break;
        default: /* enforced, but of a shadow class */
            terms[0].class_handle = world.classes[dark].handle;
            expected = ADM_E_BACKEND_STALE;
            break;
        }
        ck_assert_uint_eq(admi_world_take_as(&world, &take), ADM_VERDICT_DENY);
        ck_assert_msg(world.status == expected, "fault %u: status %d", fault, world.status);
        ASSERT_LEVEL(&world, pool, "p", 0);
        ck_assert_uint_eq(admi_world_info(&world).leases, 0);
    }
    struct adm_op op = { .kind = 99 };

    ck_assert_int_eq(admi_world_run(&world, &op), ADM_E_BACKEND_RESULT);

    struct adm_take empty = { .sequence = world.sequence + 1 };

    (void)admi_world_take_as(&world, &empty);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_STALE);
    empty.sequence = world.sequence;
    ck_assert_uint_eq(admi_world_take_as(&world, &empty),
                      ADM_VERDICT_ALLOW); /* nothing asked, nothing to deny */
    admi_world_close(&world);
}
END_TEST

START_TEST(sixteen_terms_of_each_region_fit)
{
    struct admi_world world;
    struct adm_term terms[32];
    struct adm_id lease;
    uint32_t pool, dark;
    char names[16][4];

    world_open(&world);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    dark = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    world.classes[dark].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        terms[i] = admi_world_term(&world, pool, names[i], i, 20);
        terms[16 + i] = admi_world_term(&world, dark, names[i], i, 20);
    }
    ck_assert_uint_eq(admi_world_take(&world, terms, 32, &lease), 1);
    for (uint32_t i = 0; i < 16; i++) {
        ASSERT_LEVEL(&world, pool, names[i], i);
        ASSERT_LEVEL(&world, dark, names[i], i);
    }
    ck_assert_uint_eq(admi_world_give(&world, lease), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(world.units, 15 * 16 / 2);
    for (uint32_t i = 0; i < 16; i++) {
        ASSERT_LEVEL(&world, pool, names[i], 0);
        ASSERT_LEVEL(&world, dark, names[i], 0);
    }
    admi_world_close(&world);
}
END_TEST

START_TEST(options_out_of_range_open_nothing)
{
    struct adm_backend backend = { NULL, NULL };

    ck_assert_int_eq(adm_plain_open(NULL, NULL), ADM_E_INVALID_ARGUMENT);
    for (uint32_t fault = 0; fault < 8; fault++) {
        struct adm_plain_options options = { .size = sizeof options };
        adm_status expected = ADM_E_INVALID_ARGUMENT;

        switch (fault) {
        case 0:
            options.size = 8;
            expected = ADM_E_STRUCT_SIZE;
            break;
        case 1:
            options.flags = 1;
            expected = ADM_E_CALLER_NEWER;
            break;
        case 2:
            options.reserved[3] = 1;
            expected = ADM_E_CALLER_NEWER;
            break;
        case 3:
            options.reserved[0] = 1;
            expected = ADM_E_CALLER_NEWER;
            break;
        case 4:
            options.partitions_max = (UINT64_C(1) << 27) + 1;
            break;
        case 5:
            options.leases_max = (UINT64_C(1) << 23) + 1;
            break;
        case 6:
            options.attempts_max = UINT64_MAX;
            break;
        default:
            options.classes_max = UINT64_MAX;
            break;
        }
        ck_assert_int_eq(adm_plain_open(&options, &backend), expected);
        ck_assert_ptr_null(backend.ops);
    }
    ck_assert_int_eq(adm_plain_open(NULL, &backend),
                     ADM_OK); /* the defaults, lazily backed by memory */
    backend.ops->close(backend.self);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plain");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, d1_the_largest_time_seen_counts);
    tcase_add_test(tests, d1_wall_clock_steps_around_month_ends);
    tcase_add_test(tests, d2_amount_0_passes_and_consumes_nothing);
    tcase_add_test(tests, keys_of_every_length_are_themselves);
    tcase_add_test(tests, b093_partitions_of_one_hash_are_told_apart);
    tcase_add_test(tests, counts_belong_to_the_rule_buckets_to_the_class);
    tcase_add_test(tests, max_partitions_counts_the_live_ones_of_all_classes);
    tcase_add_test(tests, a_refund_makes_room_at_once);
    tcase_add_test(tests, a_denied_take_that_found_its_partition_as_new_hides_nothing);
    tcase_add_test(tests, b100_sweep_forgets_in_bounded_steps);
    tcase_add_test(tests, k8_malformed_takes_change_nothing);
    tcase_add_test(tests, sixteen_terms_of_each_region_fit);
    tcase_add_test(tests, options_out_of_range_open_nothing);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
