/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clocks as a thread of the gate reads them: the wall clock once a millisecond, and
 * law L4 all the same. The clocks are this file's own. */
#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "gate/gate.h"

#define START_NS (1000 * ADM_SECOND)
#define SKEW_NS  (10 * ADM_SECOND)

static uint64_t mono_ns, wall_ns;
static uint32_t wall_readings;

/* In front of the C library's. */
int clock_gettime(clockid_t which, struct timespec *out)
{
    uint64_t now_ns = which == CLOCK_REALTIME ? wall_ns : mono_ns;

    wall_readings += which == CLOCK_REALTIME;
    out->tv_sec = (time_t)(now_ns / ADM_SECOND);
    out->tv_nsec = (long)(now_ns % ADM_SECOND);
    return 0;
}

static struct admi_gate_clock clock_of_gate;
static struct admi_wall wall;

static void set_up(uint64_t max_skew_ns)
{
    const struct adm_clock system = { NULL, NULL };

    ck_assert_int_eq(admi_gate_clock_init(&clock_of_gate, &system), ADM_OK);
    atomic_store(&clock_of_gate.max_skew_ns, max_skew_ns);
    wall = (struct admi_wall){ 0, 0, 0, 0 };
    mono_ns = START_NS;
    wall_ns = 7 * START_NS;
    wall_readings = 0;
}

static struct adm_time now(void)
{
    return admi_gate_clock_now(&clock_of_gate, &wall).now;
}

static uint64_t caller_wall(void)
{
    return admi_gate_clock_now(&clock_of_gate, &wall).caller_wall_ns;
}

static void pass(uint64_t ns)
{
    mono_ns += ns;
    wall_ns += ns;
}

START_TEST(both_clocks_go_on_and_the_wall_clock_is_read_once_a_millisecond)
{
    set_up(SKEW_NS);
    for (uint32_t i = 0; i < 1000; i++, pass(100000)) {
        ck_assert_uint_eq(now().mono_ns, mono_ns);
        ck_assert_uint_eq(now().wall_ns, wall_ns);
    }
    ck_assert_uint_eq(wall_readings, 100);
}
END_TEST

START_TEST(a_step_of_the_wall_clock_is_seen_after_a_millisecond_and_not_before)
{
    set_up(SKEW_NS);
    (void)now();
    wall_ns += 3600 * ADM_SECOND;
    pass(ADM_MILLISECOND - 1);
    ck_assert_uint_eq(now().wall_ns, wall_ns - 3600 * ADM_SECOND);
    pass(1);
    ck_assert_uint_eq(now().wall_ns, wall_ns);
}
END_TEST

START_TEST(L4_a_step_back_within_the_skew_stands_still_even_a_small_one)
{
    for (uint64_t step = 1000; step <= SKEW_NS; step *= 10) {
        uint64_t told;

        set_up(SKEW_NS);
        (void)now();
        pass(ADM_MILLISECOND - 1);
        told = now().wall_ns; /* more than was ever read */
        wall_ns -= step;
        pass(1);
        for (uint32_t i = 0; i < 5; i++) {
            uint64_t then = now().wall_ns;

            ck_assert_uint_ge(then, told);
            ck_assert_uint_eq(then, wall_ns > told ? wall_ns : told);
            ck_assert_uint_eq(caller_wall(), wall_ns);
            told = then;
            pass(10);
        }
        pass(2 * step);
        ck_assert_uint_eq(now().wall_ns, wall_ns);
    }
}
END_TEST

START_TEST(a_step_back_beyond_the_skew_is_believed)
{
    set_up(SKEW_NS);
    pass(2 * SKEW_NS);
    (void)now();
    wall_ns -= SKEW_NS + ADM_SECOND;
    pass(ADM_MILLISECOND);
    ck_assert_uint_eq(now().wall_ns, wall_ns);
    pass(ADM_MILLISECOND);
    ck_assert_uint_eq(now().wall_ns, wall_ns);
}
END_TEST

START_TEST(L4_what_another_thread_has_told_holds_for_this_one)
{
    struct admi_wall other = { 0, 0, 0, 0 };
    uint64_t told;

    set_up(SKEW_NS);
    (void)now();
    pass(ADM_SECOND);
    told = admi_gate_clock_now(&clock_of_gate, &other).now.wall_ns;
    wall_ns -= ADM_SECOND / 2;
    ck_assert_uint_eq(now().wall_ns, told);
}
END_TEST

START_TEST(no_word_of_the_gate_changes_between_two_readings_of_the_wall_clock)
{
    uint64_t seen;

    set_up(SKEW_NS);
    (void)now();
    seen = atomic_load(&clock_of_gate.seen_wall_ns);
    for (uint32_t i = 0; i < 9; i++) {
        pass(ADM_MILLISECOND / 10);
        (void)now();
        ck_assert_uint_eq(atomic_load(&clock_of_gate.seen_wall_ns), seen);
        ck_assert_uint_eq(atomic_load(&clock_of_gate.seen_mono_ns), 0);
    }
}
END_TEST

static void host_clock(void *self, struct adm_time *out)
{
    *out = *(const struct adm_time *)self;
}

START_TEST(a_host_s_own_clock_is_asked_each_time)
{
    struct adm_time host = { 5, 6 };
    const struct adm_clock source = { &host, host_clock };

    set_up(0);
    ck_assert_int_eq(admi_gate_clock_init(&clock_of_gate, &source), ADM_OK);
    ck_assert_uint_eq(now().mono_ns, 5);
    host = (struct adm_time){ 7, 8 };
    ck_assert_uint_eq(now().mono_ns, 7);
    ck_assert_uint_eq(now().wall_ns, 8);
    ck_assert_uint_eq(wall_readings, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        both_clocks_go_on_and_the_wall_clock_is_read_once_a_millisecond,
        a_step_of_the_wall_clock_is_seen_after_a_millisecond_and_not_before,
        L4_a_step_back_within_the_skew_stands_still_even_a_small_one,
        a_step_back_beyond_the_skew_is_believed,
        L4_what_another_thread_has_told_holds_for_this_one,
        no_word_of_the_gate_changes_between_two_readings_of_the_wall_clock,
        a_host_s_own_clock_is_asked_each_time,
    };
    Suite *suite = suite_create("gate clock");
    TCase *cases = tcase_create("gate clock");
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
