/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads: one block per thread and registry, whoever ends first. */
#include "base/threads.h"

#include <check.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "counting_allocator.h"

#define BLOCK_BYTES 200u /* not a multiple of the alignment */
#define THREADS     16u
#define REGISTRIES  5u
#define MANY        150u /* more than a thread reaches without a lock */

static struct counting_allocator counting;
static struct adm_allocator allocator;

static void set_up(void)
{
    memset(&counting, 0, sizeof counting);
    allocator = counting_allocator_of(&counting);
}

static void tear_down(void)
{
    ck_assert_int_eq(atomic_load(&counting.bytes), 0);
    ck_assert_uint_eq(atomic_load(&counting.wrong_size), 0);
}

static struct admi_threads *open_registry(void)
{
    struct admi_threads *threads = NULL;
    ck_assert_int_eq(admi_threads_new(&allocator, BLOCK_BYTES, &threads), ADM_OK);
    return threads;
}

static void count_block(void *self, void *block)
{
    (void)block;
    ++*(uint64_t *)self;
}

static uint64_t block_count(struct admi_threads *threads)
{
    uint64_t count = 0;
    admi_threads_each(threads, count_block, &count);
    return count;
}

static void add_first_number(void *self, void *block)
{
    *(uint64_t *)self += atomic_load_explicit((_Atomic uint64_t *)block, memory_order_relaxed);
}

static void run_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, body, argument), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(block_is_aligned_zeroed_and_stays)
{
    struct admi_threads *threads = open_registry();
    unsigned char *block = admi_threads_local(threads);
    ck_assert_ptr_nonnull(block);
    ck_assert_uint_eq((uintptr_t)block % 128, 0);
    for (uint32_t i = 0; i < BLOCK_BYTES; i++)
        ck_assert_uint_eq(block[i], 0);
    memset(block, 0xFF, BLOCK_BYTES);
    for (int i = 0; i < 1000; i++)
        ck_assert_ptr_eq(admi_threads_local(threads), block);
    ck_assert_uint_eq(block_count(threads), 1);
    admi_threads_free(threads, NULL, NULL);
}
END_TEST

START_TEST(registries_do_not_share_blocks)
{
    struct admi_threads *threads[REGISTRIES];
    void *blocks[REGISTRIES];
    for (uint32_t i = 0; i < REGISTRIES; i++) {
        threads[i] = open_registry();
        blocks[i] = admi_threads_local(threads[i]);
        for (uint32_t k = 0; k < i; k++)
            ck_assert_ptr_ne(blocks[i], blocks[k]);
    }
    for (uint32_t i = 0; i < REGISTRIES; i++) {
        ck_assert_ptr_eq(admi_threads_local(threads[i]), blocks[i]);
        admi_threads_free(threads[i], NULL, NULL);
    }
}
END_TEST

/* ---- a new registry at an old one's address ---- */

struct one_place {
    struct counting_allocator *counting;
    uint64_t registry_bytes; /* allocations of this size all get the same memory */
    void *place;
    void *kept[8]; /* blocks are not freed, so that the new block is somewhere else */
    uint32_t kept_count;
    uint64_t kept_bytes[8];
};

static void *allocate_in_one_place(void *self, uint64_t bytes)
{
    struct one_place *place = self;
    if (place->registry_bytes == 0)
        place->registry_bytes = bytes; /* the registry is the first thing that is allocated */
    if (bytes != place->registry_bytes)
        return counting_allocate(place->counting, bytes);
    if (place->place == NULL)
        place->place = counting_allocate(place->counting, bytes);
    else
        memset(place->place, 0, (size_t)bytes);
    return place->place;
}

static void release_in_one_place(void *self, void *memory, uint64_t bytes)
{
    struct one_place *place = self;
    if (memory == place->place)
        return;
    place->kept_bytes[place->kept_count] = bytes;
    place->kept[place->kept_count++] = memory;
}

START_TEST(registry_at_an_old_address_is_another_one)
{
    struct one_place place = { .counting = &counting };
    const struct adm_allocator in_one_place = { &place, allocate_in_one_place,
                                                release_in_one_place };
    struct admi_threads *old = NULL, *fresh = NULL;
    ck_assert_int_eq(admi_threads_new(&in_one_place, BLOCK_BYTES, &old), ADM_OK);
    void *old_block = admi_threads_local(old);
    admi_threads_free(old, NULL, NULL);
    ck_assert_int_eq(admi_threads_new(&in_one_place, BLOCK_BYTES, &fresh), ADM_OK);
    ck_assert_ptr_eq(fresh, old);
    ck_assert_uint_eq(block_count(fresh), 0);
    ck_assert_ptr_ne(admi_threads_local(fresh), old_block);
    ck_assert_uint_eq(block_count(fresh), 1);
    admi_threads_free(fresh, NULL, NULL);
    counting_release(&counting, place.place, place.registry_bytes);
    for (uint32_t i = 0; i < place.kept_count; i++)
        counting_release(&counting, place.kept[i], place.kept_bytes[i]);
}
END_TEST

/* ---- threads come and go ---- */

struct visit {
    struct admi_threads *threads;
    void *block;
};

static void *take_and_mark(void *argument)
{
    struct visit *visit = argument;
    visit->block = admi_threads_local(visit->threads);
    atomic_fetch_add_explicit((_Atomic uint64_t *)visit->block, 1, memory_order_relaxed);
    return NULL;
}

START_TEST(block_outlives_its_thread_and_goes_to_the_next)
{
    struct visit visit = { open_registry(), NULL };
    run_thread(take_and_mark, &visit);
    void *first = visit.block;
    for (uint64_t i = 2; i < 20; i++) {
        run_thread(take_and_mark, &visit);
        ck_assert_ptr_eq(visit.block, first);
        ck_assert_uint_eq(*(uint64_t *)visit.block, i);
    }
    ck_assert_ptr_ne(admi_threads_local(visit.threads), NULL);
    ck_assert_uint_eq(block_count(visit.threads), 1); /* this thread got it, too */
    admi_threads_free(visit.threads, NULL, NULL);
}
END_TEST

struct crowd {
    struct admi_threads *threads[REGISTRIES];
    _Atomic uint32_t members;
    void *blocks[THREADS][REGISTRIES];
    pthread_barrier_t all_have_blocks;
    uint64_t rounds;
};

static void *count_in_each_registry(void *argument)
{
    struct crowd *crowd = argument;
    void **blocks = crowd->blocks[atomic_fetch_add(&crowd->members, 1) % THREADS];
    for (uint32_t r = 0; r < REGISTRIES; r++)
        blocks[r] = admi_threads_local(crowd->threads[r]);
    pthread_barrier_wait(&crowd->all_have_blocks);
    for (uint64_t i = 0; i < crowd->rounds; i++) {
        for (uint32_t r = 0; r < REGISTRIES; r++) {
            _Atomic uint64_t *counter = admi_threads_local(crowd->threads[r]);
            if (admi_threads_local(crowd->threads[r]) != blocks[r])
                return argument;
            uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
            atomic_store_explicit(counter, value + 1,
                                  memory_order_relaxed); /* exact only if nobody shares it */
        }
    }
    return NULL;
}

START_TEST(threads_at_the_same_time_never_share)
{
    struct crowd crowd = { .rounds = 2000 };
    uint32_t shared = 0;
    for (uint32_t r = 0; r < REGISTRIES; r++)
        crowd.threads[r] = open_registry();
    pthread_barrier_init(&crowd.all_have_blocks, NULL, THREADS);
    for (uint64_t generation = 1; generation <= 3; generation++) {
        pthread_t threads[THREADS];
        for (uint32_t i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, count_in_each_registry, &crowd), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            void *failed = NULL;
            pthread_join(threads[i], &failed);
            ck_assert_ptr_null(failed);
        }
        for (uint32_t i = 0; i < THREADS * REGISTRIES; i++) {
            for (uint32_t k = 0; k < i; k++)
                shared += crowd.blocks[i / REGISTRIES][i % REGISTRIES] ==
                          crowd.blocks[k / REGISTRIES][k % REGISTRIES];
        }
        ck_assert_uint_eq(shared, 0);
        for (uint32_t r = 0; r < REGISTRIES; r++) {
            uint64_t sum = 0;
            admi_threads_each(crowd.threads[r], add_first_number, &sum);
            ck_assert_uint_eq(sum, generation * THREADS * crowd.rounds);
            ck_assert_uint_eq(block_count(crowd.threads[r]), THREADS);
        }
    }
    for (uint32_t r = 0; r < REGISTRIES; r++)
        admi_threads_free(crowd.threads[r], NULL, NULL);
    pthread_barrier_destroy(&crowd.all_have_blocks);
}
END_TEST

struct meeting {
    struct admi_threads *threads;
    pthread_barrier_t has_block, may_end;
};

static void *take_and_wait(void *argument)
{
    struct meeting *meeting = argument;
    *(uint64_t *)admi_threads_local(meeting->threads) = 7;
    pthread_barrier_wait(&meeting->has_block);
    pthread_barrier_wait(&meeting->may_end);
    return NULL;
}

START_TEST(registry_may_end_before_its_threads)
{
    struct meeting meeting = { .threads = open_registry() };
    struct admi_threads *other = open_registry();
    pthread_t threads[THREADS];
    pthread_barrier_init(&meeting.has_block, NULL, THREADS + 1);
    pthread_barrier_init(&meeting.may_end, NULL, THREADS + 1);
    for (uint32_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_and_wait, &meeting), 0);
    pthread_barrier_wait(&meeting.has_block);
    uint64_t released = 0;
    admi_threads_free(meeting.threads, count_block, &released);
    ck_assert_uint_eq(released, THREADS);
    pthread_barrier_wait(&meeting.may_end);
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(block_count(other), 0); /* nobody's block ended up in a stranger's list */
    admi_threads_free(other, NULL, NULL);
    pthread_barrier_destroy(&meeting.has_block);
    pthread_barrier_destroy(&meeting.may_end);
}
END_TEST

/* ---- more registries than a thread remembers ---- */

struct many {
    struct admi_threads *threads[MANY];
    void *blocks[MANY];
    uint32_t wrong;
};

static void *use_many(void *argument)
{
    struct many *many = argument;
    void *blocks[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        blocks[i] = admi_threads_local(many->threads[i]);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i++)
            many->wrong += admi_threads_local(many->threads[i]) != blocks[i];
    }
    for (uint32_t i = 0; i < MANY; i++) {
        many->wrong += many->blocks[i] != NULL && many->blocks[i] != blocks[i];
        many->blocks[i] = blocks[i];
    }
    return NULL;
}

START_TEST(more_registries_than_the_cache_holds)
{
    static struct many many;
    memset(&many, 0, sizeof many);
    for (uint32_t i = 0; i < MANY; i++)
        many.threads[i] = open_registry();
    for (int generation = 0; generation < 3; generation++)
        run_thread(
            use_many,
            &many); /* the blocks come back from every one, also from those not in the cache */
    ck_assert_uint_eq(many.wrong, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(block_count(many.threads[i]), 1);
        admi_threads_free(many.threads[i], NULL, NULL);
    }
}
END_TEST

/* A visit is made under the registry's lock: who needs that to find his block never comes back. */
static void find_under_lock(void *self, void *block)
{
    ck_assert_ptr_eq(admi_threads_local(self), block);
}

START_TEST(dead_registries_make_room)
{
    struct admi_threads *stays = open_registry();
    void *block = admi_threads_local(stays);
    for (int i = 0; i < 1000; i++) {
        struct admi_threads *threads = open_registry();
        void *mine = admi_threads_local(threads);
        ck_assert_ptr_nonnull(mine);
        ck_assert_ptr_eq(admi_threads_local(threads), mine);
        ck_assert_ptr_eq(admi_threads_local(stays), block);
        admi_threads_free(threads, NULL, NULL);
    }
    ck_assert_uint_eq(block_count(stays), 1);
    admi_threads_each(stays, find_under_lock, stays);
    admi_threads_free(stays, NULL, NULL);

    struct admi_threads *fresh = open_registry();
    (void)admi_threads_local(fresh);
    admi_threads_each(fresh, find_under_lock, fresh);
    admi_threads_free(fresh, NULL, NULL);
}
END_TEST

/* ---- memory ---- */

START_TEST(no_memory_is_told_and_passes)
{
    struct admi_threads *untouched = (struct admi_threads *)&counting;
    struct admi_threads *threads = untouched;
    atomic_store(&counting.fail_from, 1);
    ck_assert_int_eq(admi_threads_new(&allocator, BLOCK_BYTES, &threads), ADM_E_NOMEM);
    ck_assert_ptr_eq(threads, untouched);
    ck_assert_int_eq(admi_threads_new(&allocator, UINT64_MAX - 64, &threads), ADM_E_NOMEM);
    atomic_store(&counting.fail_from, 0);
    threads = open_registry();
    atomic_store(&counting.fail_from, 1);
    ck_assert_ptr_null(admi_threads_local(threads));
    ck_assert_uint_eq(block_count(threads), 0);
    atomic_store(&counting.fail_from, 0);
    ck_assert_ptr_nonnull(admi_threads_local(threads));
    admi_threads_free(threads, NULL, NULL);
    admi_threads_free(NULL, NULL, NULL);
}
END_TEST

/* ---- the end of a thread ---- */

/* The thread sanitizer itself is gone in the last round of destructors. */
#if defined(__SANITIZE_THREAD__)
#define LATE_ROUNDS 2u
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LATE_ROUNDS 2u
#endif
#endif
#ifndef LATE_ROUNDS
#define LATE_ROUNDS UINT32_MAX /* until the system gives up */
#endif

static pthread_key_t late_key;
static struct admi_threads *late_threads;
static _Thread_local uint32_t late_rounds;

/* Runs in the rounds of destructors, before or after the registry's own. */
static void call_in_late(void *value)
{
    void *block = admi_threads_local(late_threads);
    if (block != NULL)
        atomic_fetch_add_explicit((_Atomic uint64_t *)block, 1, memory_order_relaxed);
    if (++late_rounds < LATE_ROUNDS)
        pthread_setspecific(late_key, value);
}

static void *end_with_late_calls(void *argument)
{
    (void)admi_threads_local(late_threads);
    pthread_setspecific(late_key, argument);
    return NULL;
}

START_TEST(destructors_of_others_may_still_call)
{
    late_threads = open_registry();
    ck_assert_int_eq(pthread_key_create(&late_key, call_in_late), 0);
    for (int i = 0; i < 10; i++)
        run_thread(end_with_late_calls, &counting);
    uint64_t calls = 0;
    admi_threads_each(late_threads, add_first_number, &calls);
    ck_assert_uint_ge(calls,
                      10); /* at least once per thread, whatever the system's number of rounds is */
    admi_threads_free(late_threads, NULL, NULL);
    pthread_key_delete(late_key);
}
END_TEST

struct churn {
    struct admi_threads *shared;
    _Atomic uint32_t wrong;
};

static void *churn(void *argument)
{
    struct churn *state = argument;
    for (int i = 0; i < 100; i++) {
        struct admi_threads *own = NULL;
        if (admi_threads_new(&allocator, BLOCK_BYTES, &own) != ADM_OK)
            return NULL;
        struct visit visit = { own, NULL };
        pthread_t helper;
        if (pthread_create(&helper, NULL, take_and_mark, &visit) == 0)
            pthread_join(helper, NULL);
        if (admi_threads_local(own) != visit.block) /* the helper has ended, so its block is free */
            atomic_fetch_add(&state->wrong, 1);
        take_and_mark(&(struct visit){ state->shared, NULL });
        admi_threads_free(own, NULL, NULL);
    }
    return NULL;
}

START_TEST(registries_and_threads_come_and_go_at_once)
{
    struct churn state = { .shared = open_registry() };
    pthread_t threads[8];
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, &state), 0);
    uint64_t before = 0;
    for (int i = 0; i < 200; i++) {
        uint64_t sum = 0;
        admi_threads_each(state.shared, add_first_number, &sum);
        ck_assert_uint_ge(sum, before);
        before = sum;
    }
    for (uint32_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    uint64_t sum = 0;
    admi_threads_each(state.shared, add_first_number, &sum);
    ck_assert_uint_eq(sum, 800);
    ck_assert_uint_eq(atomic_load(&state.wrong), 0);
    admi_threads_free(state.shared, NULL, NULL);
}
END_TEST

/* ---- fork ---- */

struct busy {
    struct admi_threads *threads;
    _Atomic int stop;
};

static void *hold_locks(void *argument)
{
    struct busy *busy = argument;
    while (!atomic_load(&busy->stop)) {
        admi_threads_lock(busy->threads);
        uint64_t count = 0;
        admi_threads_each(busy->threads, count_block, &count);
        admi_threads_unlock(busy->threads);
        struct admi_threads *own = NULL;
        if (admi_threads_new(NULL, BLOCK_BYTES, &own) == ADM_OK)
            admi_threads_free(own, NULL, NULL);
    }
    return NULL;
}

START_TEST(no_lock_is_held_in_a_forked_child)
{
    struct busy busy = { .threads = open_registry() };
    pthread_t threads[3];
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hold_locks, &busy), 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            alarm(60); /* a lock that nobody will ever release ends here */
            admi_threads_lock(busy.threads);
            uint64_t count = 0;
            admi_threads_each(busy.threads, count_block, &count);
            admi_threads_unlock(busy.threads);
            void *block = admi_threads_local(busy.threads);
            admi_threads_free(busy.threads, NULL, NULL);
            _exit(block != NULL ? 0 : 1);
        }
        int result = -1;
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    }
    atomic_store(&busy.stop, 1);
    for (uint32_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    admi_threads_free(busy.threads, NULL, NULL);
}
END_TEST

/* ---- K9 ---- */

static void *inside_callback(void *argument)
{
    *(int *)argument = admi_inside_callback();
    return NULL;
}

START_TEST(K9_callback_flag_is_nested_and_per_thread)
{
    int other = -1;
    ck_assert_int_eq(admi_inside_callback(), 0);
    admi_enter_callback();
    admi_enter_callback();
    ck_assert_int_eq(admi_inside_callback(), 1);
    admi_leave_callback();
    ck_assert_int_eq(admi_inside_callback(), 1);
    run_thread(inside_callback, &other);
    ck_assert_int_eq(other, 0);
    admi_leave_callback();
    ck_assert_int_eq(admi_inside_callback(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *cases = tcase_create("threads");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, block_is_aligned_zeroed_and_stays);
    tcase_add_test(cases, registries_do_not_share_blocks);
    tcase_add_test(cases, registry_at_an_old_address_is_another_one);
    tcase_add_test(cases, block_outlives_its_thread_and_goes_to_the_next);
    tcase_add_test(cases, threads_at_the_same_time_never_share);
    tcase_add_test(cases, registry_may_end_before_its_threads);
    tcase_add_test(cases, more_registries_than_the_cache_holds);
    tcase_add_test(cases, dead_registries_make_room);
    tcase_add_test(cases, no_memory_is_told_and_passes);
    tcase_add_test(cases, destructors_of_others_may_still_call);
    tcase_add_test(cases, registries_and_threads_come_and_go_at_once);
    tcase_add_test(cases, no_lock_is_held_in_a_forked_child);
    tcase_add_test(cases, K9_callback_flag_is_nested_and_per_thread);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
