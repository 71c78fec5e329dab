/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of lock-free code at which a thread can be stopped, or made to yield. Included before the
 * headers that are tested. POINTS_ELSEWHERE: the code is not in the test's own file; there, the
 * test defines stress_at_point() and calls at_point().
 */
#ifndef TESTS_STRESS_POINTS_H
#define TESTS_STRESS_POINTS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#define POINTS_OF_THE_CODE(X)                                                                      \
    X(decide)                                                                                      \
    X(decided)                                                                                     \
    X(reading)                                                                                     \
    X(abort_other)                                                                                 \
    X(before_conditional)                                                                          \
    X(after_conditional)                                                                           \
    X(before_hard_abort)                                                                           \
    X(before_hard_commit)                                                                          \
    X(clean)                                                                                       \
    X(abort_all)                                                                                   \
    X(before_odd)                                                                                  \
    X(before_even)                                                                                 \
    X(take_out)                                                                                    \
    X(before_enter)                                                                                \
    X(before_commit)                                                                               \
    X(before_notes)                                                                                \
    X(before_publish)                                                                              \
    X(marked_bound)                                                                                \
    X(looked_below)                                                                                \
    X(lowering)                                                                                    \
    X(planned_claim)                                                                               \
    X(planned_line)                                                                                \
    X(slot_reserved)                                                                               \
    X(lease_drafted)                                                                               \
    X(attempt_unknown)                                                                             \
    X(attempt_drafted)                                                                             \
    X(values_made)                                                                                 \
    X(take_charged)                                                                                \
    X(lease_planned)                                                                               \
    X(lease_changed)                                                                               \
    X(expiry_planned)                                                                              \
    X(expiry_done)                                                                                 \
    X(publish_claimed)                                                                             \
    X(versions_written)                                                                            \
    X(guard_moved)

void stress_at_point(int point);

#ifdef POINTS_ELSEWHERE

/* With another name, so that the code may have its own. */
#define POINT_ENUM(name) at_##name,
enum point { POINTS_OF_THE_CODE(POINT_ENUM) POINTS };

#define ADMI_TXN_AT(point) stress_at_point(at_##point)

#else

#define POINT_ENUM(name) name,
#define POINT_TEXT(name) #name,
enum point { POINTS_OF_THE_CODE(POINT_ENUM) POINTS };

static const char *const point_names[POINTS] = { POINTS_OF_THE_CODE(POINT_TEXT) };

/* A thread is told to stop, for the n-th time that it gets to a point. */
struct stop {
    enum point point;
    uint32_t countdown;
    _Atomic int stopped, go_on;
};

static _Thread_local struct stop *stop_here;
/* One point in so many lets others run, whatever the machine; 0: none. */
static _Thread_local uint32_t yield_one_in;
static _Thread_local uint64_t yield_random;

/* Where something is reserved, one thread waits until another has done something; not for ever. */
static _Thread_local const _Atomic uint64_t *others_work;

static void let_others_work(void)
{
    uint64_t before = atomic_load(others_work);

    for (uint32_t i = 0; i < 1000 && atomic_load(others_work) < before + 4; i++)
        (void)sched_yield();
}

static void at_point(enum point point)
{
    struct stop *stop = stop_here;

    if (others_work != NULL && (point == before_enter || point == before_commit))
        let_others_work();

    yield_random = yield_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    if (yield_one_in > 0 && (yield_random >> 33) % yield_one_in == 0)
        (void)sched_yield();
    if (stop == NULL || stop->point != point || --stop->countdown != 0)
        return;
    atomic_store(&stop->stopped, 1);
    while (!atomic_load(&stop->go_on))
        (void)sched_yield();
    atomic_store(&stop->go_on, 0); /* it may be told to stop again */
}

#define ADMI_TXN_AT(point) at_point(point)

#endif

/* How long the tests are unless they are told. Under the thread sanitizer all is ten times slower. */
#ifdef __SANITIZE_THREAD__
#define STRESS_SCALE 2
#else
#define STRESS_SCALE 10
#endif
#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#undef STRESS_SCALE
#define STRESS_SCALE 2
#endif
#endif

#endif
