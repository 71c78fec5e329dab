/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/bind and operation: V1 bind once, ops that go home, and the deferring backend. */
#include "state/bind.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <admit/backends.h>
#include <admit/testing.h>

#include "base/threads.h"
#include "state/operation.h"

/* ---- a backend that notes what happens to it ---- */

static struct {
    uint32_t starts, closes, describes, inside;
    uint32_t threads, capabilities;
    adm_status describe_status;
    _Atomic uint32_t running, most_running;
} seen;

static void note_start(void *self, struct adm_op *op)
{
    uint32_t running = atomic_fetch_add(&seen.running, 1) + 1;

    (void)self;
    seen.starts++;
    seen.inside += (uint32_t)admi_inside_callback();
    if (running > seen.most_running)
        seen.most_running = running;
    atomic_fetch_sub(&seen.running, 1);
    adm_op_complete(op, ADM_OK);
}

static void note_close(void *self)
{
    (void)self;
    seen.closes++;
}

static adm_status note_describe(void *self, struct adm_backend_info *inout)
{
    (void)self;
    seen.describes++;
    inout->threads = seen.threads;
    inout->capabilities = seen.capabilities;
    return seen.describe_status;
}

static struct adm_backend_ops ops_of(uint32_t size)
{
    memset(&seen, 0, sizeof seen);
    return (struct adm_backend_ops){ .size = size,
                                     .abi = ADM_BACKEND_ABI,
                                     .name = "a-backend-1",
                                     .start = note_start,
                                     .close = note_close };
}

START_TEST(v1_a_minimal_table_is_completed)
{
    struct adm_backend_ops ops = ops_of(offsetof(struct adm_backend_ops, poll));
    struct adm_backend backend = { &ops, &seen };
    struct adm_backend_info info = { .size = sizeof info };
    struct adm_time now = { 1, 1 };
    struct admi_bound bound;
    struct adm_watch watch;
    struct adm_op op = { .kind = ADM_OP_TAKE };

    ops.poll = (adm_status(*)(void *, const struct adm_time *))(
        uintptr_t)1; /* beyond its size: must not be called */
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_OK);
    ck_assert_uint_eq(bound.serial, 1);
    ck_assert_uint_eq(bound.defers, 0);
    ck_assert_int_eq(admi_bound_poll(&bound, &now), ADM_OK);
    admi_bound_cancel(&bound, &op);
    ck_assert_int_eq(admi_bound_watch(&bound, &watch), ADM_OK);
    ck_assert_int_eq(watch.fd, -1);
    ck_assert_uint_eq(watch.deadline_ns, UINT64_MAX);
    ck_assert_int_eq(admi_bound_describe(&bound, &info), ADM_OK);
    ck_assert_uint_eq(info.leases_max, UINT64_MAX);
    ck_assert_uint_eq(info.size, sizeof info);
    admi_op_begin_direct(&op, NULL);
    admi_bound_start(&bound, &op);
    ck_assert_int_eq(admi_op_is_complete(&op), 1);
    ck_assert_uint_eq(seen.inside, 1); /* K9: a gate would know */
    ck_assert_int_eq(admi_inside_callback(), 0);
    ck_assert_uint_eq(seen.closes, 0);
    admi_bound_close(&bound);
    ck_assert_uint_eq(seen.closes, 1);
}
END_TEST

/* A table of a later library: more slots than ours. */
struct larger_ops {
    struct adm_backend_ops known;
    void (*unknown[4])(void);
};

static void later_slot(void)
{
}

START_TEST(v1_a_larger_table_must_leave_its_new_slots_empty)
{
    struct larger_ops larger = { .known = ops_of(sizeof larger) };
    struct adm_backend backend = { &larger.known, &seen };
    struct admi_bound bound;

    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_OK);
    admi_bound_close(&bound);
    larger.unknown[3] = later_slot;
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_BACKEND_ABI);
    ck_assert_uint_eq(seen.closes, 2); /* refused, and closed all the same */
}
END_TEST

START_TEST(v1_tables_that_cannot_be_used_are_refused)
{
    struct admi_bound bound;
    struct adm_backend backend = { NULL, NULL };

    ck_assert_int_eq(admi_backend_bind(NULL, &bound), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_INVALID_ARGUMENT);
    for (uint32_t fault = 0; fault < 12; fault++) {
        struct adm_backend_ops ops = ops_of(sizeof ops);
        static char long_name[70];

        memset(long_name, 'a', 65);
        ops.describe = note_describe;
        backend = (struct adm_backend){ &ops, &seen };
        switch (fault) {
        case 0:
            ops.size = 0;
            break;
        case 1:
            ops.size = offsetof(struct adm_backend_ops, close);
            break;
        case 2:
            ops.size = 4097;
            break;
        case 3:
            ops.abi = 0;
            break;
        case 4:
            ops.abi = ADM_BACKEND_ABI + 1;
            break;
        case 5:
            ops.start = NULL;
            break;
        case 6:
            ops.close = NULL;
            break;
        case 7:
            ops.name = NULL;
            break;
        case 8:
            ops.name = "";
            break;
        case 9:
            ops.name = "With Capitals";
            break;
        case 10:
            ops.name = long_name;
            break;
        default:
            ops.name = "line\nbreak";
            break;
        }
        ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_BACKEND_ABI);
        ck_assert_uint_eq(seen.starts + seen.describes, 0);
        ck_assert_uint_eq(seen.closes, fault == 5 || fault >= 7); /* where the table says how */
    }
}
END_TEST

START_TEST(v1_what_describe_says_is_checked)
{
    struct adm_backend_ops ops = ops_of(sizeof ops);
    struct adm_backend backend = { &ops, &seen };
    struct admi_bound bound;

    ops.describe = note_describe;
    seen.threads = ADM_THREADS_ANY + 1;
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_BACKEND_RESULT);
    seen.threads = ADM_THREADS_ANY;
    seen.capabilities = 1u << 31;
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_BACKEND_RESULT);
    seen.capabilities = ADM_CAN_DEFER;
    seen.describe_status = ADM_E_BACKEND_UNAVAILABLE;
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_E_BACKEND_UNAVAILABLE);
    seen.describe_status = ADM_OK;
    ck_assert_uint_eq(seen.closes, 3);
    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_OK);
    ck_assert_uint_eq(bound.serial, 0);
    ck_assert_uint_eq(bound.defers, 1);
    ck_assert_uint_eq(seen.describes, 4); /* once for each bind */
    admi_bound_close(&bound);
}
END_TEST

static void *start_often(void *self)
{
    struct admi_bound *bound = self;

    for (uint32_t i = 0; i < 3000; i++) {
        struct adm_op op = { .kind = ADM_OP_TAKE };

        admi_op_begin_direct(&op, NULL);
        admi_bound_start(bound, &op);
        ck_assert_int_eq(admi_op_is_complete(&op), 1);
    }
    return NULL;
}

START_TEST(v5_a_serial_backend_is_called_by_one_thread_at_a_time)
{
    struct adm_backend_ops ops = ops_of(sizeof ops);
    struct adm_backend backend = { &ops, &seen };
    struct admi_bound bound;
    pthread_t threads[4];

    ck_assert_int_eq(admi_backend_bind(&backend, &bound), ADM_OK);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, start_often, &bound), 0);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(seen.starts, 4 * 3000); /* not atomic: only the mutex makes it so */
    ck_assert_uint_eq(seen.most_running, 1);
    admi_bound_close(&bound);
}
END_TEST

/* ---- operations ---- */

START_TEST(ops_come_home_oldest_first_once)
{
    struct admi_op_home home = { NULL, 0 };
    struct adm_op ops[5] = { { 0 } };
    uint32_t i = 0;

    ck_assert_ptr_null(admi_op_drain(&home));
    for (i = 0; i < 5; i++) {
        admi_op_begin(&ops[i], &home);
        ck_assert_int_eq(admi_op_is_complete(&ops[i]), 0);
    }
    for (i = 0; i < 5; i++)
        adm_op_complete(&ops[i], ADM_OK);
    i = 0;
    for (struct adm_op *op = admi_op_drain(&home); op != NULL; op = admi_op_next(op))
        ck_assert_ptr_eq(op, &ops[i++]);
    ck_assert_uint_eq(i, 5);
    ck_assert_ptr_null(admi_op_drain(&home));
}
END_TEST

START_TEST(a_second_completion_is_counted_and_changes_nothing)
{
    struct admi_op_home home = { NULL, 0 };
    struct adm_op op = { 0 };

    adm_op_complete(&op, ADM_OK); /* never begun */
    admi_op_begin(&op, &home);
    adm_op_complete(&op, ADM_E_BACKEND_FULL);
    adm_op_complete(&op, ADM_OK);
    ck_assert_uint_eq(home.protocol_errors, 1);
    ck_assert_int_eq(admi_op_status(&op), ADM_E_BACKEND_FULL);
    ck_assert_ptr_eq(admi_op_drain(&home), &op);
    ck_assert_ptr_null(admi_op_next(&op));
    ck_assert_ptr_null(admi_op_drain(&home));
    adm_op_complete(&op, ADM_OK); /* it is the gate's again */
    ck_assert_uint_eq(home.protocol_errors, 2);
    ck_assert_ptr_null(admi_op_drain(&home));
    admi_op_begin_direct(&op, &home);
    adm_op_complete(&op, ADM_OK);
    adm_op_complete(&op, ADM_OK);
    ck_assert_uint_eq(home.protocol_errors, 3);
    ck_assert_ptr_null(admi_op_drain(&home)); /* a direct one is never queued */
}
END_TEST

START_TEST(only_a_backends_own_statuses_pass)
{
    static const adm_status passes[] = { ADM_OK, -300, -301, -306, -399 };
    static const adm_status strange[] = { 1, INT32_MAX, -1, -100, -299, -400, -900, INT32_MIN };

    for (uint32_t i = 0; i < 5 + 8; i++) {
        adm_status status = i < 5 ? passes[i] : strange[i - 5];
        struct adm_op op = { 0 };

        admi_op_begin_direct(&op, NULL);
        adm_op_complete(&op, status);
        ck_assert_int_eq(admi_op_status(&op), i < 5 ? status : ADM_E_BACKEND_RESULT);
    }
}
END_TEST

#define CROWD 4u
#define EACH  2000u

static struct admi_op_home crowded;
static struct adm_op crowd[CROWD][EACH];

static void *complete_many(void *self)
{
    struct adm_op *ops = self;

    for (uint32_t i = 0; i < EACH; i++) {
        ops[i].units = i + 1;
        adm_op_complete(&ops[i], ADM_OK);
    }
    return NULL;
}

START_TEST(threads_complete_while_another_drains)
{
    pthread_t threads[CROWD];
    uint64_t home = 0, sum = 0;

    for (uint32_t t = 0; t < CROWD; t++) {
        for (uint32_t i = 0; i < EACH; i++)
            admi_op_begin(&crowd[t][i], &crowded);
    }
    for (uint32_t t = 0; t < CROWD; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, complete_many, crowd[t]), 0);
    while (home < CROWD * EACH) {
        for (struct adm_op *op = admi_op_drain(&crowded), *next; op != NULL; op = next) {
            next = admi_op_next(op);
            ck_assert_int_eq(admi_op_status(op), ADM_OK);
            sum += op->units; /* written by the completing thread */
            home++;
            op->units = 0;
        }
    }
    for (uint32_t t = 0; t < CROWD; t++)
        ck_assert_int_eq(pthread_join(threads[t], NULL), 0);
    ck_assert_uint_eq(sum, (uint64_t)CROWD * EACH * (EACH + 1) / 2);
    ck_assert_uint_eq(crowded.protocol_errors, 0);
}
END_TEST

/* ---- the deferring backend ---- */

static void open_deferring(struct admi_bound *bound, uint32_t flags, uint64_t polls_min,
                           uint64_t polls_max, uint64_t never_permille)
{
    struct adm_deferring_options options = { .size = sizeof options,
                                             .flags = flags,
                                             .polls_min = polls_min,
                                             .polls_max = polls_max,
                                             .seed = 3,
                                             .never_permille = never_permille };
    static struct adm_backend_ops ops;
    struct adm_backend backend;

    ops = ops_of(sizeof ops);
    ck_assert_int_eq(adm_deferring_open(&options, (struct adm_backend){ &ops, &seen }, &backend),
                     ADM_OK);
    ck_assert_int_eq(admi_backend_bind(&backend, bound), ADM_OK);
    ck_assert_uint_eq(bound->defers, 1);
    ck_assert_uint_eq(bound->serial, 1);
}

START_TEST(deferred_ops_wait_for_their_polls)
{
    struct admi_bound bound;
    struct admi_op_home home = { NULL, 0 };
    struct adm_time now = { 0, 0 };
    struct adm_watch watch;
    struct adm_op op = { .kind = ADM_OP_TAKE };

    open_deferring(&bound, 0, 3, 3, 0);
    admi_op_begin(&op, &home);
    admi_bound_start(&bound, &op);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(admi_op_is_complete(&op), 0);
        ck_assert_int_eq(admi_bound_watch(&bound, &watch), ADM_OK);
        ck_assert_uint_eq(watch.deadline_ns, 0);
        ck_assert_int_eq(admi_bound_poll(&bound, &now), ADM_OK);
    }
    ck_assert_int_eq(admi_op_is_complete(&op), 1);
    ck_assert_int_eq(admi_bound_watch(&bound, &watch), ADM_OK);
    ck_assert_uint_eq(watch.deadline_ns, UINT64_MAX);
    admi_bound_close(&bound);
    ck_assert_uint_eq(seen.closes, 1); /* the inner one too */
}
END_TEST

/* How often a later op came home before an earlier one. */
static uint32_t overtakings(uint32_t flags)
{
    struct admi_bound bound;
    struct admi_op_home home = { NULL, 0 };
    struct adm_time now = { 0, 0 };
    static struct adm_op ops[50];
    struct adm_op *last = NULL;
    uint32_t count = 0, back = 0;

    open_deferring(&bound, flags, 1, 20, 0);
    for (uint32_t i = 0; i < 50; i++) {
        ops[i] = (struct adm_op){ .kind = ADM_OP_TAKE };
        admi_op_begin(&ops[i], &home);
        admi_bound_start(&bound, &ops[i]);
    }
    for (uint32_t polls = 0; polls < 20; polls++) {
        ck_assert_int_eq(admi_bound_poll(&bound, &now), ADM_OK);
        for (struct adm_op *op = admi_op_drain(&home); op != NULL; op = admi_op_next(op)) {
            back += last != NULL && op < last;
            last = op;
            count++;
        }
    }
    ck_assert_uint_eq(count, 50);
    admi_bound_close(&bound);
    return back;
}

START_TEST(deferred_ops_keep_their_order_unless_told)
{
    ck_assert_uint_eq(overtakings(0), 0);
    ck_assert_uint_gt(overtakings(ADM_DEFER_OUT_OF_ORDER), 5);
}
END_TEST

START_TEST(deferred_ops_can_be_cancelled_or_never_come)
{
    struct admi_bound bound;
    struct admi_op_home home = { NULL, 0 };
    struct adm_time now = { 0, 0 };
    struct adm_op ops[3] = { { .kind = ADM_OP_TAKE },
                             { .kind = ADM_OP_TAKE },
                             { .kind = ADM_OP_TAKE } };

    open_deferring(&bound, 0, 1, 1, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        admi_op_begin(&ops[i], &home);
        admi_bound_start(&bound, &ops[i]);
    }
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_int_eq(admi_bound_poll(&bound, &now), ADM_OK);
    ck_assert_ptr_null(admi_op_drain(&home));
    admi_bound_cancel(&bound, &ops[1]); /* from the middle */
    ck_assert_int_eq(admi_op_is_complete(&ops[1]), 1);
    ck_assert_int_eq(admi_op_status(&ops[1]), ADM_E_BACKEND_CANCELLED);
    admi_bound_cancel(&bound,
                      &ops[2]); /* the last one, so that the list must know a new last one */
    admi_op_begin(&ops[1], &home);
    admi_bound_start(&bound, &ops[1]);
    ck_assert_uint_eq(seen.starts, 0); /* nothing ever reached the inner backend */
    admi_bound_close(&bound);
    ck_assert_int_eq(admi_op_status(&ops[0]), ADM_E_BACKEND_CANCELLED);
    ck_assert_int_eq(admi_op_status(&ops[1]), ADM_E_BACKEND_CANCELLED);
    ck_assert_uint_eq(home.protocol_errors, 0);
}
END_TEST

START_TEST(a_cancellation_may_come_too_late)
{
    struct admi_bound bound;
    struct admi_op_home home = { NULL, 0 };
    struct adm_time now = { 0, 0 };
    struct adm_op op = { .kind = ADM_OP_TAKE };

    open_deferring(&bound, ADM_DEFER_KEEP_CANCELLED, 1, 1, 1000);
    admi_op_begin(&op, &home);
    admi_bound_start(&bound, &op);
    admi_bound_cancel(&bound, &op);
    ck_assert_int_eq(admi_op_is_complete(&op), 0);
    ck_assert_int_eq(admi_bound_poll(&bound, &now), ADM_OK);
    ck_assert_int_eq(admi_op_is_complete(&op), 1);
    ck_assert_int_eq(admi_op_status(&op), ADM_OK);
    ck_assert_uint_eq(seen.starts, 1);
    admi_bound_close(&bound);
}
END_TEST

START_TEST(deferring_refuses_what_it_cannot_do)
{
    struct adm_deferring_options options = { .size = sizeof options,
                                             .polls_min = 1,
                                             .polls_max = 2 };
    struct adm_backend_ops ops = ops_of(sizeof ops);
    struct adm_backend inner = { &ops, &seen }, backend;

    ck_assert_int_eq(adm_deferring_open(NULL, inner, &backend), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_deferring_open(&options, inner, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_deferring_open(&options, (struct adm_backend){ NULL, NULL }, &backend),
                     ADM_E_INVALID_ARGUMENT);
    options.polls_max = 0;
    ck_assert_int_eq(adm_deferring_open(&options, inner, &backend), ADM_E_INVALID_ARGUMENT);
    options.polls_max = 2;
    options.never_permille = 1001;
    ck_assert_int_eq(adm_deferring_open(&options, inner, &backend), ADM_E_INVALID_ARGUMENT);
    options.never_permille = 0;
    options.size--;
    ck_assert_int_eq(adm_deferring_open(&options, inner, &backend), ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(seen.closes, 0); /* still the caller's */
}
END_TEST

START_TEST(the_fakes_are_what_they_say)
{
    struct adm_fake_clock fake = { { 10, 20 }, 0 };
    struct adm_fake_random random = { 1 };
    struct adm_clock clock = adm_fake_clock_as_clock(&fake);
    struct adm_random bytes = adm_fake_random_as_random(&random);
    uint8_t a[100], b[100];
    struct adm_time now;

    clock.now(clock.self, &now);
    clock.now(clock.self, &now);
    ck_assert(now.mono_ns == 10 && now.wall_ns == 20);
    adm_fake_clock_advance(&fake, 5);
    clock.now(clock.self, &now);
    ck_assert(now.mono_ns == 15 && now.wall_ns == 25);
    fake.tick_ns = 3;
    clock.now(clock.self, &now);
    clock.now(clock.self, &now);
    ck_assert(now.mono_ns == 18 && now.wall_ns == 28);
    ck_assert_int_eq(bytes.fill(bytes.self, a, sizeof a), 0);
    ck_assert_int_eq(bytes.fill(bytes.self, b, sizeof b), 0);
    ck_assert_int_ne(memcmp(a, b, sizeof a), 0);
    random.state = 1;
    ck_assert_int_eq(bytes.fill(bytes.self, b, sizeof b), 0);
    ck_assert_int_eq(memcmp(a, b, sizeof a), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bind");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, v1_a_minimal_table_is_completed);
    tcase_add_test(tests, v1_a_larger_table_must_leave_its_new_slots_empty);
    tcase_add_test(tests, v1_tables_that_cannot_be_used_are_refused);
    tcase_add_test(tests, v1_what_describe_says_is_checked);
    tcase_add_test(tests, v5_a_serial_backend_is_called_by_one_thread_at_a_time);
    tcase_add_test(tests, ops_come_home_oldest_first_once);
    tcase_add_test(tests, a_second_completion_is_counted_and_changes_nothing);
    tcase_add_test(tests, only_a_backends_own_statuses_pass);
    tcase_add_test(tests, threads_complete_while_another_drains);
    tcase_add_test(tests, deferred_ops_wait_for_their_polls);
    tcase_add_test(tests, deferred_ops_keep_their_order_unless_told);
    tcase_add_test(tests, deferred_ops_can_be_cancelled_or_never_come);
    tcase_add_test(tests, a_cancellation_may_come_too_late);
    tcase_add_test(tests, deferring_refuses_what_it_cannot_do);
    tcase_add_test(tests, the_fakes_are_what_they_say);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);

    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
