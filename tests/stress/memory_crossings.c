/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of the memory backend that have names: no denial for nothing, opposite orders, lines
 * that are evicted under a take, and leases at their deadline. */
#include <pthread.h>
#include <sched.h>

#include "memory_subject.h"

enum { TTL = 10, TAKERS_MAX = 2 };

static adm_status take_once(const struct subject *subject, struct request *request,
                            const struct wish *wishes, uint32_t count, uint64_t sequence)
{
    return subject_take(subject, request, wishes, count, WISH_LEASE, sequence, TTL, 0);
}

static bool is_allowed(const struct subject *subject, struct request *request,
                       const struct wish *wishes, uint32_t count, uint64_t sequence)
{
    if (take_once(subject, request, wishes, count, sequence) != ADM_OK)
        abort();
    return request->take.verdict == ADM_VERDICT_ALLOW;
}

static void give_back(const struct subject *subject, const struct request *request)
{
    if (subject_about(subject, ADM_OP_GIVE, request->take.lease, 0, NULL) != ADM_OUTCOME_RELEASED)
        abort();
}

/* ---- no denial for nothing ---- */

struct probe {
    struct subject subject;
    uint64_t sequence, many;
    _Atomic uint64_t asked, both_allowed, both_denied, wrong;
    _Atomic uint32_t started;
    _Atomic bool stop;
};

static void *ask_for_both(void *self)
{
    static const struct wish both[] = { { COUNT_A, 1, 2, "p" }, { COUNT_B, 1, 1, "p" } };
    struct probe *probe = self;
    struct request request;

    yield_at_points(8, seed + atomic_fetch_add(&probe->started, 1) + 1);
    for (uint32_t n = 0; !atomic_load_explicit(&probe->stop, memory_order_relaxed); n++) {
        wait_at_points(n % 4 == 0 ? &probe->asked : NULL);
        if (!is_allowed(&probe->subject, &request, both, 2, probe->sequence)) {
            atomic_fetch_add_explicit(&probe->both_denied, 1, memory_order_relaxed);
            (void)sched_yield();
            continue;
        }
        atomic_fetch_add_explicit(&probe->both_allowed, 1, memory_order_relaxed);
        (void)sched_yield(); /* somebody else is denied b meanwhile */
        give_back(&probe->subject, &request);
    }
    wait_at_points(NULL);
    return NULL;
}

/* Two ask for {a, b}, where b has room for one: so of a, which has two, one is always free for the
 * third. */
static uint64_t ask_for_one(const struct way *way, uint64_t many)
{
    static const struct wish one = { COUNT_A, 1, 2, "p" };
    struct probe probe = { .many = many };
    struct request request;
    pthread_t threads[2];

    subject_open(&probe.subject, way, 16);
    probe.sequence = subject_put_first(&probe.subject, 1, true);
    for (uint32_t i = 0; i < 2; i++)
        (void)pthread_create(&threads[i], NULL, ask_for_both, &probe);
    while (atomic_load(&probe.started) < 2)
        (void)sched_yield();
    for (uint64_t n = 0; n < many; n++) {
        if (is_allowed(&probe.subject, &request, &one, 1, probe.sequence))
            give_back(&probe.subject, &request);
        else
            probe.wrong++;
        atomic_fetch_add(&probe.asked, 1);
        if (n % 4 == 0)
            (void)sched_yield();
    }
    atomic_store(&probe.stop, true);
    for (uint32_t i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    subject_close(&probe.subject);
    printf("# %s: %" PRIu64 " of %" PRIu64 " denied for nothing; {a, b} was allowed %" PRIu64
           " and denied %" PRIu64 " times\n",
           way->name, atomic_load(&probe.wrong), many, atomic_load(&probe.both_allowed),
           atomic_load(&probe.both_denied));
    if (atomic_load(&probe.both_allowed) == 0 || atomic_load(&probe.both_denied) == 0)
        return UINT64_MAX; /* then it says nothing */
    return atomic_load(&probe.wrong);
}

static void nobody_is_denied_for_nothing(void)
{
    uint64_t many = 10000 * scale, undone = many / 50;
    uint64_t wrong = ask_for_one(&rollback, undone);

    ok(wrong > undone / 20 && wrong != UINT64_MAX,
       "K2 the harness sees rollback deny more than 5 % for nothing");
    ok(ask_for_one(&usual, many) == 0, "K2 nobody is denied for what another did not get");
    ok(ask_for_one(&hard_at_once, many / 4) == 0,
       "K2 nobody is denied for what another did not get, in hard mode");
}

/* ---- opposite orders ---- */

struct opposite {
    struct subject subject;
    uint64_t sequence, rounds;
    _Atomic uint32_t inside;
    _Atomic uint64_t allowed[2], denied[2], wrong;
    _Atomic uint32_t started;
};

static void *hold_both(void *self)
{
    static const struct wish orders[2][2] = { { { COUNT_A, 1, 1, "p" }, { COUNT_B, 1, 1, "p" } },
                                              { { COUNT_B, 1, 1, "p" }, { COUNT_A, 1, 1, "p" } } };
    struct opposite *opposite = self;
    uint32_t me = atomic_fetch_add(&opposite->started, 1);
    struct request request;

    yield_at_points(2, seed + me + 1);
    while (atomic_load(&opposite->started) < 2)
        (void)sched_yield();
    /* Nobody promises turns: one may be denied until the other is done. */
    for (uint64_t n = 0;
         n < opposite->rounds || (opposite->allowed[me] < 100 && n < 1000 * opposite->rounds);
         n++) {
        if (!is_allowed(&opposite->subject, &request, orders[me], 2, opposite->sequence)) {
            opposite->denied[me]++;
            continue;
        }
        opposite->allowed[me]++;
        if (atomic_fetch_add(&opposite->inside, 1) != 0)
            opposite->wrong++;
        atomic_fetch_sub(&opposite->inside, 1);
        give_back(&opposite->subject, &request);
    }
    return NULL;
}

static void opposite_orders(void)
{
    struct opposite opposite = { .rounds = 4000 * scale };
    pthread_t threads[2];
    bool clean;

    subject_open(&opposite.subject, &hard_at_once, 16);
    opposite.sequence = subject_put_first(&opposite.subject, 1, false);
    for (uint32_t i = 0; i < 2; i++)
        (void)pthread_create(&threads[i], NULL, hold_both, &opposite);
    for (uint32_t i = 0; i < 2; i++)
        (void)pthread_join(threads[i], NULL);
    clean = subject_level(&opposite.subject, COUNT_A, "p", opposite.sequence, 0) == 0 &&
            subject_level(&opposite.subject, COUNT_B, "p", opposite.sequence, 0) == 0;
    subject_close(&opposite.subject);
    printf("# {a, b}: %" PRIu64 " allowed, %" PRIu64 " denied; {b, a}: %" PRIu64
           " allowed, %" PRIu64 " denied\n",
           opposite.allowed[0], opposite.denied[0], opposite.allowed[1], opposite.denied[1]);
    ok(opposite.wrong == 0 && clean && opposite.allowed[0] > 0 && opposite.allowed[1] > 0 &&
           opposite.denied[0] + opposite.denied[1] > 0,
       "K1 K2 opposite orders in hard mode");
}

/* ---- lines that come and go ---- */

/* Two lines; one is needed for what is kept, one goes round. */
struct churn {
    struct subject subject;
    uint64_t sequence, capacity;
    _Atomic uint64_t names, taken, allowed, turned_away;
    _Atomic uint32_t started;
    _Atomic bool stop;
};

static void *take_ever_new(void *self)
{
    struct churn *churn = self;
    uint64_t random = seed * 77 + 5;
    struct request request;

    yield_at_points(4, seed + 3);
    while (!atomic_load(&churn->stop)) {
        char name[24];
        const struct wish wish = { COUNT_A, 1, 1, name };

        (void)snprintf(name, sizeof name, "n%" PRIu64, atomic_fetch_add(&churn->names, 1));
        if (is_allowed(&churn->subject, &request, &wish, 1, churn->sequence)) {
            atomic_fetch_add(&churn->taken, 1);
            give_back(&churn->subject, &request);
        } else if (request.terms[0].verdict == ADM_TERM_NO_ROOM) {
            atomic_fetch_add(&churn->turned_away, 1);
        } else {
            abort(); /* nobody else has this partition */
        }
        if (next_random(&random) % 16 == 0)
            subject_sweep(&churn->subject, 4, 0);
    }
    return NULL;
}

static void *take_to_the_last(void *self)
{
    static const struct wish wish = { BUCKET, 1, 0, "kept" };
    struct churn *churn = self;
    struct request request;

    yield_at_points(4, seed + 10 + atomic_fetch_add(&churn->started, 1));
    for (;;) {
        if (subject_take(&churn->subject, &request, &wish, 1, 0, churn->sequence, 0, 0) != ADM_OK)
            abort();
        if (request.take.verdict == ADM_VERDICT_ALLOW)
            atomic_fetch_add(&churn->allowed, 1);
        else if (request.terms[0].verdict == ADM_TERM_NEVER)
            return NULL;
        else if (request.terms[0].verdict != ADM_TERM_NO_ROOM)
            abort();
    }
}

/* Every round the first unit needs a line, and the rest must find it. Two takers may each be at
 * making a line for it: then there is none for others, until one of them drops his. With one taker
 * there is always room. */
static void evict_and_rekey(const struct way *way, uint32_t takers, const char *what)
{
    struct churn churn = { .capacity = 6 };
    uint64_t rounds = 40 * scale, wrong = 0, taken = 0, turned_away = 0;

    for (uint64_t n = 0; n < rounds; n++) {
        pthread_t taker[TAKERS_MAX], other;

        subject_open(&churn.subject, way, 2);
        churn.sequence = subject_put_first(&churn.subject, churn.capacity, false);
        atomic_store(&churn.stop, false);
        atomic_store(&churn.allowed, 0);
        atomic_store(&churn.taken, 0);
        atomic_store(&churn.turned_away, 0);
        (void)pthread_create(&other, NULL, take_ever_new, &churn);
        while (atomic_load(&churn.taken) < 3) /* so that no line was never used */
            (void)sched_yield();
        for (uint32_t i = 0; i < takers; i++)
            (void)pthread_create(&taker[i], NULL, take_to_the_last, &churn);
        for (uint32_t i = 0; i < takers; i++)
            (void)pthread_join(taker[i], NULL);
        atomic_store(&churn.stop, true);
        (void)pthread_join(other, NULL);
        wrong += atomic_load(&churn.allowed) != churn.capacity ||
                 subject_level(&churn.subject, BUCKET, "kept", churn.sequence, 0) != 0;
        taken += atomic_load(&churn.taken);
        turned_away += atomic_load(&churn.turned_away);
        subject_close(&churn.subject);
    }
    printf("# %s, %u takers: %" PRIu64 " rounds, %" PRIu64
           " other partitions came and went, %" PRIu64 " found no room, %" PRIu64 " rounds wrong\n",
           way->name, takers, rounds, taken, turned_away, wrong);
    ok(wrong == 0 && (takers > 1 || turned_away == 0), what);
}

/* A lease that holds nothing keeps its line by a pin; given back, the bucket is as new and its line
 * may go. */
static bool settle_once(const struct churn *churn)
{
    const struct wish wishes[] = { { BUCKET, 10, 0, "kept" }, { COUNT_B, 1, 5, "kept" } };
    const struct subject *subject = &churn->subject;
    uint64_t sequence = churn->sequence;
    struct request request;
    struct adm_id lease;
    bool good;

    if (!is_allowed(subject, &request, wishes, 2, sequence))
        return request.terms[0].verdict == ADM_TERM_NO_ROOM ||
               request.terms[1].verdict == ADM_TERM_NO_ROOM;
    lease = request.take.lease;
    good = request.terms[0].level == 100 && request.terms[1].level == 0;
    good = good && subject_settle(subject, lease, COUNT_B, 0, false, 0) == ADM_OUTCOME_SETTLED;
    good = good && subject_settle(subject, lease, BUCKET, 130, false, 0) == ADM_OUTCOME_SETTLED;
    good = good && subject_level(subject, BUCKET, "kept", sequence, 0) == -30;
    good = good && subject_settle(subject, lease, COUNT_B, 4, false, 0) == ADM_OUTCOME_SETTLED;
    good = good && subject_level(subject, COUNT_B, "kept", sequence, 0) == 4;
    good = good && subject_settle(subject, lease, COUNT_B, 0, true, 0) == ADM_OUTCOME_SETTLED;
    good = good && subject_settle(subject, lease, BUCKET, 0, true, 0) == ADM_OUTCOME_SETTLED;
    good = good && subject_level(subject, BUCKET, "kept", sequence, 0) == 100;
    good = good && subject_level(subject, COUNT_B, "kept", sequence, 0) == 0;
    return good && subject_about(subject, ADM_OP_GIVE, lease, 0, NULL) == ADM_OUTCOME_RELEASED;
}

static void settle_after_eviction_pressure(void)
{
    struct churn churn = { .capacity = 100 };
    uint64_t rounds = 2000 * scale, wrong = 0;
    pthread_t other;

    subject_open(&churn.subject, &usual, 2);
    churn.sequence = subject_put_first(&churn.subject, churn.capacity, true);
    (void)pthread_create(&other, NULL, take_ever_new, &churn);
    yield_at_points(4, seed + 4);
    while (atomic_load(&churn.names) == 0)
        (void)sched_yield();
    for (uint64_t n = 0; n < rounds; n++)
        wrong += !settle_once(&churn);
    yield_at_points(0, 0);
    atomic_store(&churn.stop, true);
    (void)pthread_join(other, NULL);
    printf("# %" PRIu64 " leases settled, %" PRIu64 " other partitions came and went, %" PRIu64
           " found no room, %" PRIu64 " leases wrong\n",
           rounds, atomic_load(&churn.taken), atomic_load(&churn.turned_away), wrong);
    ok(wrong == 0 && atomic_load(&churn.taken) > 0, "K1 K5 settle after eviction pressure");
    subject_close(&churn.subject);
}

/* ---- a lease at its deadline ---- */

struct deadline {
    struct subject subject;
    struct adm_id lease;
    uint32_t outcome;
    _Atomic uint64_t round, finished;
    _Atomic bool stop;
};

static void *pass_the_deadline(void *self)
{
    struct deadline *deadline = self;
    uint64_t round = 0;

    yield_at_points(4, seed + 21);
    for (;;) {
        while (atomic_load(&deadline->round) == round) {
            if (atomic_load(&deadline->stop))
                return NULL;
            (void)sched_yield();
        }
        round++;
        subject_sweep(&deadline->subject, 1, (round - 1) * 4 * TTL + TTL);
        atomic_fetch_add(&deadline->finished, 1);
    }
}

static uint64_t expired_of(const struct subject *subject)
{
    struct adm_backend_info info = { .size = sizeof info };

    if (subject->backend.ops->describe(subject->backend.self, &info) != ADM_OK)
        abort();
    return info.expired;
}

/* From start: the lease is granted, and at start + TTL - 1 renewed while it expires beside that. */
static bool renew_once(struct deadline *deadline, uint64_t sequence, uint64_t start)
{
    static const struct wish one = { COUNT_A, 3, 3, "p" };
    const struct subject *subject = &deadline->subject;
    uint64_t expired = expired_of(subject), finished = atomic_load(&deadline->finished), units;
    struct request request, again;
    bool renewed;
    uint32_t end;

    if (subject_take(subject, &request, &one, 1, WISH_LEASE, sequence, TTL, start) != ADM_OK ||
        request.take.verdict != ADM_VERDICT_ALLOW)
        return false;
    atomic_fetch_add(&deadline->round, 1);
    deadline->outcome =
        subject_about(subject, ADM_OP_RENEW, request.take.lease, start + TTL - 1, NULL);
    while (atomic_load(&deadline->finished) == finished)
        (void)sched_yield();
    renewed = deadline->outcome == ADM_OUTCOME_RENEWED;
    if (!renewed && deadline->outcome != ADM_OUTCOME_LOST)
        return false;
    if (expired_of(subject) - expired != !renewed ||
        subject_level(subject, COUNT_A, "p", sequence, start + TTL) != (renewed ? 3 : 0))
        return false;
    if (subject_take(subject, &again, &one, 1, WISH_LEASE, sequence, TTL, start + TTL) != ADM_OK ||
        (again.take.verdict == ADM_VERDICT_ALLOW) == renewed)
        return false;
    end = subject_about(subject, ADM_OP_GIVE, request.take.lease, start + TTL, &units);
    if (end != (renewed ? ADM_OUTCOME_RELEASED : ADM_OUTCOME_LATE) || units != (renewed ? 3 : 0))
        return false;
    if (!renewed && (subject_level(subject, COUNT_A, "p", sequence, start + TTL) != 3 ||
                     subject_about(subject, ADM_OP_GIVE, again.take.lease, start + TTL, NULL) !=
                         ADM_OUTCOME_RELEASED))
        return false;
    return subject_level(subject, COUNT_A, "p", sequence, start + TTL) == 0;
}

static void renew_against_expiry(void)
{
    struct deadline deadline = { .outcome = 0 };
    uint64_t rounds = 2000 * scale, wrong = 0, renewed = 0, lost = 0, sequence;
    pthread_t other;

    subject_open(&deadline.subject, &usual, 16);
    sequence = subject_put_first(&deadline.subject, 1, false);
    (void)pthread_create(&other, NULL, pass_the_deadline, &deadline);
    for (uint64_t n = 0; n < rounds; n++) {
        yield_at_points(1u << n % 6, seed + n);
        wrong += !renew_once(&deadline, sequence, n * 4 * TTL);
        renewed += deadline.outcome == ADM_OUTCOME_RENEWED;
        lost += deadline.outcome == ADM_OUTCOME_LOST;
    }
    yield_at_points(0, 0);
    atomic_store(&deadline.stop, true);
    (void)pthread_join(other, NULL);
    subject_close(&deadline.subject);
    printf("# %" PRIu64 " renewed, %" PRIu64 " lost, %" PRIu64 " wrong\n", renewed, lost, wrong);
    ok(wrong == 0 && renewed > 0 && lost > 0, "K1 K6 renew against expiry");
}

void test_crossings(void)
{
    nobody_is_denied_for_nothing();
    opposite_orders();
    evict_and_rekey(&usual, 1, "K1 K2 K5 evict and rekey against a take of one term");
    evict_and_rekey(&hard_at_once, 1, "K1 K2 K5 evict and rekey, in hard mode");
    evict_and_rekey(&usual, 2, "K1 K5 evict and rekey against two that take the same");
    settle_after_eviction_pressure();
    renew_against_expiry();
}
