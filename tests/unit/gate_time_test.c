/* SPDX-License-Identifier: Apache-2.0 */
/* Law L4: the gate's time never runs back, whatever the host's clocks do, and mints nothing. */
#include "gate_fixture.h"

#include <pthread.h>

#include "gate/gate.h"

#define BUCKET                                                                                     \
    "{\"version\":\"v1\",\"max_clock_skew\":\"10s\",\"rules\":[{\"id\":\"b\",\"type\":"            \
    "\"token_bucket\",\"capacity\":100,\"refill\":1,\"per\":\"1s\"}]}"
#define QUOTA                                                                                      \
    "{\"version\":\"v1\",\"max_clock_skew\":\"10s\",\"rules\":[{\"id\":\"q\",\"type\":\"quota\","  \
    "\"limit\":10,\"window\":\"day\"}]}"
#define HELD "[{\"id\":\"h\",\"type\":\"concurrency\",\"limit\":1,\"lease_ttl\":\"60s\"}]"
#define DAY  (86400 * SEC)

static struct fixture f;

static void empty_bucket(void)
{
    fixture_open(&f, BUCKET);
    (void)allow(&f, "", 100);
}

static void mono_to(int64_t from_start_ns)
{
    f.clock.time.mono_ns = f.started_ns + (uint64_t)from_start_ns;
}

START_TEST(L4_equal_times_are_legal)
{
    empty_bucket();
    for (uint32_t i = 0; i < 10; i++)
        deny(&f, "", 1, ADM_REASON_RATE_EXCEEDED);
    ck_assert_int_eq(level(&f, "b", ""), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_a_step_back_within_the_skew_stands_still)
{
    empty_bucket();
    mono_to((int64_t)(5 * SEC));
    ck_assert_int_eq(level(&f, "b", ""), 5);
    mono_to(-(int64_t)(5 * SEC)); /* ten seconds back: exactly the skew */
    ck_assert_int_eq(level(&f, "b", ""), 5);
    mono_to(0);
    ck_assert_int_eq(level(&f, "b", ""), 5);
    mono_to((int64_t)(6 * SEC)); /* the same clock goes on */
    ck_assert_int_eq(level(&f, "b", ""), 6);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_a_larger_step_back_goes_on_from_the_largest_time_without_credit)
{
    empty_bucket();
    mono_to((int64_t)(5 * SEC));
    ck_assert_int_eq(level(&f, "b", ""), 5);
    mono_to(-(int64_t)(5 * SEC) - 1);
    ck_assert_int_eq(level(&f, "b", ""), 5);
    mono_to(-(int64_t)(3 * SEC) - 1); /* two seconds of the new clock */
    ck_assert_int_eq(level(&f, "b", ""), 7);
    mono_to(-(int64_t)(900 * SEC)); /* and another one */
    ck_assert_int_eq(level(&f, "b", ""), 7);
    mono_to(-(int64_t)(899 * SEC));
    ck_assert_int_eq(level(&f, "b", ""), 8);
    fixture_close(&f);
}
END_TEST

START_TEST(B003_times_that_alternate_mint_nothing)
{
    empty_bucket();
    for (uint32_t i = 0; i < 1000; i++) {
        mono_to(i % 2 == 0 ? (int64_t)SEC : -(int64_t)SEC);
        ck_assert_int_le(level(&f, "b", ""), 1);
    }
    ck_assert_int_eq(level(&f, "b", ""), 1); /* one second has passed, whichever clock is right */
    fixture_close(&f);
}
END_TEST

START_TEST(B007_the_delay_counts_from_the_callers_own_time)
{
    struct adm_decision d;

    empty_bucket();
    d = decide(&f, "", 10);
    ck_assert_uint_eq(d.retry_after_ms, 10000);
    mono_to(-(int64_t)(4 * SEC)); /* this caller's clock lags: it must wait so much longer */
    d = decide(&f, "", 10);
    ck_assert_uint_eq(d.retry_after_ms, 14000);
    advance(&f, 14000 * MS - MS);
    ck_assert_uint_eq(decide(&f, "", 10).verdict, ADM_VERDICT_DENY);
    advance(&f, MS);
    ck_assert_uint_eq(decide(&f, "", 10).verdict, ADM_VERDICT_ALLOW);
    fixture_close(&f);
}
END_TEST

START_TEST(B007_after_a_large_step_back_the_delay_is_still_bounded)
{
    struct adm_decision d;

    empty_bucket();
    mono_to(-(int64_t)(500 * SEC));
    d = decide(&f, "", 10);
    ck_assert_uint_eq(d.retry_after_ms, 10000);
    advance(&f, 10000 * MS);
    (void)allow(&f, "", 10);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_a_step_forward_is_time)
{
    empty_bucket();
    mono_to((int64_t)(40 * SEC));
    ck_assert_int_eq(level(&f, "b", ""), 40);
    f.clock.time.mono_ns = UINT64_C(1) << 62;
    ck_assert_int_eq(level(&f, "b", ""), 100);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_the_wall_clock_moves_windows_and_nothing_else)
{
    struct adm_id lease;

    empty_bucket();
    f.clock.time.wall_ns += 400 * DAY;
    ck_assert_int_eq(level(&f, "b", ""), 0);
    f.clock.time.wall_ns -= 800 * DAY;
    ck_assert_int_eq(level(&f, "b", ""), 0);
    fixture_close(&f);
    fixture_open(&f, HELD);
    lease = allow(&f, "", 1);
    f.clock.time.wall_ns += 400 * DAY;
    deny(&f, "", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_the_monotonic_clock_moves_no_window)
{
    fixture_open(&f, QUOTA);
    (void)allow(&f, "", 10);
    f.clock.time.mono_ns += 400 * DAY;
    deny(&f, "", 1, ADM_REASON_QUOTA_EXCEEDED);
    f.clock.time.wall_ns += DAY;
    (void)allow(&f, "", 10);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_a_wall_clock_that_steps_back_over_midnight_within_the_skew_gives_no_second_day)
{
    struct adm_decision d;

    fixture_init(&f);
    f.clock.time.wall_ns = UINT64_C(20000) * DAY + 3 * SEC;
    fixture_start(&f, QUOTA);
    (void)allow(&f, "", 10);
    f.clock.time.wall_ns -= 5 * SEC; /* yesterday, says the host */
    d = decide(&f, "", 1);
    ck_assert_uint_eq(d.reason, ADM_REASON_QUOTA_EXCEEDED);
    ck_assert_uint_eq(d.retry_after_ms, 86400000 + 2000); /* from the caller's own time */
    f.clock.time.wall_ns += 5 * SEC;
    deny(&f, "", 1, ADM_REASON_QUOTA_EXCEEDED);
    fixture_close(&f);
}
END_TEST

START_TEST(L6_a_lease_ends_exactly_at_its_end)
{
    struct adm_id lease;

    fixture_open(&f, HELD);
    lease = allow(&f, "", 1);
    advance(&f, 60 * SEC - 1);
    deny(&f, "", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    advance(&f, 1);
    (void)allow(&f, "", 1);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_LATE);
    ck_assert_int_eq(level(&f, "h", ""), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_the_systems_clocks_serve_when_none_is_given)
{
    fixture_init(&f);
    f.options.clock.now = NULL;
    fixture_start(&f, BUCKET);
    (void)allow(&f, "", 100);
    ck_assert_int_le(level(&f, "b", ""), 60);
    fixture_close(&f);
}
END_TEST

/* ---- threads that overtake each other ---- */

#define THREADS 4u
#define READS   20000u

/* A clock that gives every reader another time, now and then behind, within the skew. */
struct jumping {
    _Atomic uint64_t reads;
};

static void read_jumping(void *self, struct adm_time *out)
{
    struct jumping *jumping = self;
    uint64_t i = atomic_fetch_add(&jumping->reads, 1);
    uint64_t behind = i % 7 == 0 ? 3 * SEC : 0;

    out->mono_ns = 1000 * SEC + i * 1000 - behind;
    out->wall_ns = UINT64_C(20000) * DAY + i * 1000;
}

static struct jumping jumping;
static _Atomic uint64_t admitted;

static void *take_one_by_one(void *self)
{
    struct asked asked;

    (void)self;
    ask_for(&asked, "", 1);
    for (uint32_t i = 0; i < READS; i++) {
        struct adm_decision d = { .size = sizeof d };

        if (adm_admit(f.gate, &asked.request, &d) == ADM_OK && d.verdict == ADM_VERDICT_ALLOW)
            atomic_fetch_add(&admitted, 1);
    }
    return NULL;
}

START_TEST(L4_threads_that_overtake_each_other_mint_nothing)
{
    pthread_t threads[THREADS];
    uint64_t dripped;

    fixture_init(&f);
    f.options.clock = (struct adm_clock){ &jumping, read_jumping };
    fixture_start(&f,
                  "{\"version\":\"v1\",\"max_clock_skew\":\"10s\",\"rules\":[{\"id\":\"b\","
                  "\"type\":\"token_bucket\",\"capacity\":10,\"refill\":100000,\"per\":\"1s\"}]}");
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_one_by_one, NULL), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    dripped = atomic_load(&jumping.reads) / 10; /* a microsecond per read, a token per ten */
    ck_assert_uint_gt(atomic_load(&admitted), dripped / 2);
    ck_assert_uint_le(atomic_load(&admitted), 10 + dripped);
    fixture_close(&f);
}
END_TEST

/* ---- a step back that many threads see at once ---- */

#define STEPS 500u

static struct admi_gate_clock shared_clock;
static _Atomic uint64_t source_ns;
static pthread_barrier_t barrier;

static void read_source(void *self, struct adm_time *out)
{
    (void)self;
    out->mono_ns = atomic_load(&source_ns);
    out->wall_ns = 0;
}

static void *see_steps(void *self)
{
    uint64_t *wrong = self;

    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t before = atomic_load(&shared_clock.seen_mono_ns);

        (void)pthread_barrier_wait(&barrier);
        (void)pthread_barrier_wait(&barrier); /* the source has stepped back in between */
        *wrong += admi_gate_clock_read(&shared_clock).now.mono_ns != before;
        (void)pthread_barrier_wait(&barrier);
    }
    return NULL;
}

START_TEST(L4_a_step_back_that_threads_see_at_once_is_taken_into_account_once)
{
    const struct adm_clock source = { NULL, read_source };
    uint64_t wrong[THREADS] = { 0 };
    pthread_t threads[THREADS];

    atomic_store(&source_ns, UINT64_C(1) << 50);
    ck_assert_int_eq(admi_gate_clock_init(&shared_clock, &source), ADM_OK);
    atomic_store(&shared_clock.max_skew_ns, 10 * SEC);
    (void)admi_gate_clock_read(&shared_clock);
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, see_steps, &wrong[i]), 0);
    for (uint32_t i = 0; i < STEPS; i++) {
        (void)pthread_barrier_wait(&barrier);
        atomic_fetch_sub(&source_ns, 50 * SEC);
        (void)pthread_barrier_wait(&barrier);
        (void)pthread_barrier_wait(&barrier);
        ck_assert_uint_eq(atomic_load(&shared_clock.offset_ns), (i + 1) * 50 * SEC);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(wrong[i], 0);
    }
    ck_assert_uint_eq(atomic_load(&shared_clock.seen_mono_ns), UINT64_C(1) << 50);
    (void)pthread_barrier_destroy(&barrier);
    admi_gate_clock_fini(&shared_clock);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L4_equal_times_are_legal,
        L4_a_step_back_within_the_skew_stands_still,
        L4_a_larger_step_back_goes_on_from_the_largest_time_without_credit,
        B003_times_that_alternate_mint_nothing,
        B007_the_delay_counts_from_the_callers_own_time,
        B007_after_a_large_step_back_the_delay_is_still_bounded,
        L4_a_step_forward_is_time,
        L4_the_wall_clock_moves_windows_and_nothing_else,
        L4_the_monotonic_clock_moves_no_window,
        L4_a_wall_clock_that_steps_back_over_midnight_within_the_skew_gives_no_second_day,
        L6_a_lease_ends_exactly_at_its_end,
        L4_the_systems_clocks_serve_when_none_is_given,
        L4_threads_that_overtake_each_other_mint_nothing,
        L4_a_step_back_that_threads_see_at_once_is_taken_into_account_once,
    };

    return RUN_TESTS("gate time", tests);
}
