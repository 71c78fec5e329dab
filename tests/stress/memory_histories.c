/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole memory backend under threads: every short history of takes, renewals, settlements,
 * expiry, eviction and changed numbers has an order in which a sequential model gives every answer
 * that was seen. memory_crossings.c has the cases that have names.
 *
 * ADMIT_STRESS_SCALE: how many times as long, 10 unless given (2 under the thread sanitizer); 250
 * is more than 100000 histories and 10^7 takes. ADMIT_STRESS_SEED.
 */
#include <pthread.h>
#include <sched.h>

#include "linear.h"
#include "memory_subject.h"

enum { THREADS = 3, STEPS = 4, LEASES = 8, NO_LEASE = LEASES, TTL = 10, TICK = 4, LAST_TIME = 12 };

/* ---- the sequential model ---- */

enum kind { DO_TAKE, DO_JUDGE, DO_GIVE, DO_RENEW, DO_SETTLE, DO_SWEEP, DO_PUT, EXPIRES };

struct asked {
    uint8_t object, amount, limit, verdict;
    int8_t level;
};

/* One operation and its answer. Only what its kind needs. */
struct seen {
    uint8_t kind;
    uint8_t time; /* by which it was judged */
    uint8_t count, lease, leased;
    uint8_t verdict, stale, verdict_only;
    struct asked asked[TERMS_MAX];
    uint8_t object, total, final; /* of a settlement */
    uint8_t outcome, units;
    uint8_t capacity;
    uint8_t overlapping; /* leases that were granted or renewed while it ran, or later */
    uint16_t sequence;
};

enum { GONE, LIVE, LATE, CLOSED };

struct state {
    uint16_t sequence;
    int8_t level;
    uint8_t capacity;
    uint8_t most; /* the bucket can hold: a raised capacity adds nothing, and nothing refills */
    uint8_t held[OBJECTS]; /* of counts and of the quota */
    uint8_t unused;
    struct {
        uint8_t state, deadline;
        uint8_t has, final;          /* bits of objects */
        uint8_t totals[OBJECTS / 2]; /* four bits each */
    } leases[LEASES];
};

_Static_assert(sizeof(struct state) <= LINEAR_STATE_BYTES, "as much as the checker remembers");

static uint8_t total_of(const struct state *state, uint32_t lease, uint32_t object)
{
    return state->leases[lease].totals[object / 2] >> object % 2 * 4 & 15;
}

static void set_total(struct state *state, uint32_t lease, uint32_t object, uint32_t total)
{
    uint32_t shift = object % 2 * 4, old = state->leases[lease].totals[object / 2];

    state->leases[lease].totals[object / 2] = (uint8_t)((old & ~(15u << shift)) | total << shift);
}

static bool is_count(uint32_t object)
{
    return object == COUNT_A || object == COUNT_B;
}

/* 1: the verdict and level of the term are those of this state. */
static bool judges(const struct state *state, const struct asked *asked)
{
    int level = asked->object == BUCKET ? state->level : state->held[asked->object];
    uint8_t verdict = ADM_TERM_PASS;

    if (asked->object == BUCKET)
        verdict = asked->amount <= level ? ADM_TERM_PASS : ADM_TERM_NEVER; /* without refill */
    else if (asked->amount > asked->limit)
        verdict = ADM_TERM_NEVER;
    else if (asked->amount + level > asked->limit)
        verdict = ADM_TERM_EXCEEDED;
    return asked->level == level && asked->verdict == verdict;
}

static bool passes(const struct state *state, const struct asked *asked)
{
    if (asked->object == BUCKET)
        return asked->amount <= state->level;
    return asked->amount + state->held[asked->object] <= asked->limit;
}

static bool do_take(struct state *state, const struct seen *seen)
{
    bool allowed = true;

    if (seen->stale != (seen->sequence != state->sequence))
        return false;
    if (seen->stale)
        return true;
    for (uint32_t i = 0; i < seen->count; i++) {
        if (!seen->verdict_only && !judges(state, &seen->asked[i]))
            return false;
        allowed = allowed && passes(state, &seen->asked[i]);
    }
    if (allowed != (seen->verdict == ADM_VERDICT_ALLOW))
        return false;
    if (!allowed || seen->kind == DO_JUDGE)
        return true;
    for (uint32_t i = 0; i < seen->count; i++) {
        const struct asked *asked = &seen->asked[i];

        if (asked->object == BUCKET)
            state->level = (int8_t)(state->level - asked->amount);
        else
            state->held[asked->object] = (uint8_t)(state->held[asked->object] + asked->amount);
        if (seen->leased) {
            state->leases[seen->lease].has |= (uint8_t)(1u << asked->object);
            set_total(state, seen->lease, asked->object, asked->amount);
        }
    }
    if (seen->leased) {
        state->leases[seen->lease].state = LIVE;
        state->leases[seen->lease].deadline = (uint8_t)(seen->time + TTL);
    }
    return true;
}

static uint8_t return_units(struct state *state, uint32_t lease)
{
    uint8_t units = 0;

    for (uint32_t i = 0; i < OBJECTS; i++) {
        uint8_t total = total_of(state, lease, i);

        if (!is_count(i) || (state->leases[lease].has >> i & 1) == 0)
            continue;
        state->held[i] = (uint8_t)(state->held[i] - total);
        units = (uint8_t)(units + total);
    }
    return units;
}

static bool do_give(struct state *state, const struct seen *seen)
{
    uint8_t was = state->leases[seen->lease].state;

    state->leases[seen->lease].state = CLOSED;
    if (was == LIVE)
        return seen->outcome == ADM_OUTCOME_RELEASED &&
               seen->units == return_units(state, seen->lease);
    return seen->units == 0 &&
           seen->outcome == (was == LATE ? ADM_OUTCOME_LATE : ADM_OUTCOME_ALREADY);
}

static bool do_renew(struct state *state, const struct seen *seen)
{
    if (state->leases[seen->lease].state != LIVE)
        return seen->outcome == ADM_OUTCOME_LOST;
    if (seen->time + TTL > state->leases[seen->lease].deadline)
        state->leases[seen->lease].deadline = (uint8_t)(seen->time + TTL);
    return seen->outcome == ADM_OUTCOME_RENEWED;
}

static void correct(struct state *state, const struct seen *seen, bool live)
{
    int more = seen->total - total_of(state, seen->lease, seen->object);

    if (seen->object == BUCKET) {
        int level = state->level - more;

        state->level = (int8_t)(level < state->most ? level : state->most);
    } else if (live || seen->object == QUOTA) {
        int held = state->held[seen->object] + more;

        state->held[seen->object] = (uint8_t)(held > 0 ? held : 0);
    }
    set_total(state, seen->lease, seen->object, seen->total);
}

static bool do_settle(struct state *state, const struct seen *seen)
{
    uint8_t was = state->leases[seen->lease].state, bit = (uint8_t)(1u << seen->object);

    if (was == CLOSED)
        return seen->outcome == ADM_OUTCOME_ALREADY;
    if ((state->leases[seen->lease].has & bit) != 0 &&
        (state->leases[seen->lease].final & bit) == 0) {
        if (seen->final || seen->total >= total_of(state, seen->lease, seen->object))
            correct(state, seen, was == LIVE);
        if (seen->final)
            state->leases[seen->lease].final |= bit;
    }
    return seen->outcome == (was == LIVE ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE);
}

static bool do_put(struct state *state, const struct seen *seen)
{
    if (seen->sequence <= state->sequence)
        return false;
    state->sequence = seen->sequence;
    state->capacity = seen->capacity;
    if (state->capacity < state->most)
        state->most = state->capacity;
    if (state->level > (int8_t)state->most)
        state->level = (int8_t)state->most;
    return true;
}

/* At its last deadline; renewals that were answered had come before. */
static bool expires(struct state *state, const struct seen *seen)
{
    if (state->leases[seen->lease].state == CLOSED)
        return true;
    if (state->leases[seen->lease].state != LIVE ||
        state->leases[seen->lease].deadline != seen->time)
        return false;
    (void)return_units(state, seen->lease);
    state->leases[seen->lease].state = LATE;
    return true;
}

/* What an operation sees has expired by its time; but another one, whose time is earlier, may renew
 * or grant while it runs. */
static bool has_expired(const struct state *state, const struct seen *seen)
{
    for (uint32_t i = 0; i < LEASES; i++) {
        if (state->leases[i].state == LIVE && state->leases[i].deadline <= seen->time &&
            (seen->overlapping >> i & 1) == 0)
            return false;
    }
    return true;
}

static int model(void *state, const void *what)
{
    const struct seen *seen = what;

    if (seen->kind != EXPIRES && !has_expired(state, seen))
        return 0;
    if ((seen->kind == DO_GIVE || seen->kind == DO_RENEW || seen->kind == DO_SETTLE) &&
        ((struct state *)state)->leases[seen->lease].state == GONE)
        return 0;
    switch (seen->kind) {
    case DO_TAKE:
    case DO_JUDGE:
        return do_take(state, seen);
    case DO_GIVE:
        return do_give(state, seen);
    case DO_RENEW:
        return do_renew(state, seen);
    case DO_SETTLE:
        return do_settle(state, seen);
    case DO_PUT:
        return do_put(state, seen);
    case EXPIRES:
        return expires(state, seen);
    default:
        return 1;
    }
}

static struct state first_state(uint64_t sequence)
{
    struct state state;

    memset(&state, 0, sizeof state);
    state.sequence = (uint16_t)sequence;
    state.capacity = state.most = (uint8_t)limit_of(BUCKET, 0);
    state.level = (int8_t)state.capacity;
    return state;
}

/* ---- does the checker know? ---- */

/* Of one term: what it asked, what it was told, and its lease. */
#define TAKES(of, units, beyond, told, before, number)                                             \
    {                                                                                              \
        .kind = DO_TAKE, .count = 1, .leased = (told) == ADM_TERM_PASS, .lease = (number),         \
        .verdict = (told) == ADM_TERM_PASS ? ADM_VERDICT_ALLOW : ADM_VERDICT_DENY, .sequence = 1,  \
        .asked = {                                                                                 \
            { of, units, beyond, told, before }                                                    \
        }                                                                                          \
    }

static bool says(enum linear_verdict verdict, const struct linear_operation *operations,
                 uint32_t count)
{
    const struct state state = first_state(1);

    return linear_check(operations, count, model, &state, sizeof state) == verdict;
}

static void the_checker_rejects_bad_histories(void)
{
    static const struct seen last = TAKES(COUNT_A, 1, 1, ADM_TERM_PASS, 0, 0),
                             too = TAKES(COUNT_A, 1, 1, ADM_TERM_PASS, 0, 1),
                             empties = TAKES(BUCKET, 3, 0, ADM_TERM_PASS, 3, 0),
                             one_more = TAKES(BUCKET, 1, 0, ADM_TERM_PASS, 1, 1),
                             full = TAKES(COUNT_A, 1, 1, ADM_TERM_EXCEEDED, 1, NO_LEASE),
                             full_at_0 = TAKES(COUNT_A, 1, 1, ADM_TERM_EXCEEDED, 0, NO_LEASE);
    static const struct seen both = { .kind = DO_TAKE,
                                      .count = 2,
                                      .verdict = ADM_VERDICT_DENY,
                                      .sequence = 1,
                                      .asked = { { COUNT_A, 1, 1, ADM_TERM_PASS, 0 },
                                                 { COUNT_B, 3, 2, ADM_TERM_NEVER, 0 } } };
    static const struct seen release = { .kind = DO_GIVE,
                                         .outcome = ADM_OUTCOME_RELEASED,
                                         .units = 1 };
    static const struct seen renewed = { .kind = DO_RENEW,
                                         .time = TTL,
                                         .outcome = ADM_OUTCOME_RENEWED };
    static const struct seen expiry = { .kind = EXPIRES, .time = TTL };
    static const struct seen put = { .kind = DO_PUT, .sequence = 2, .capacity = 2 };
    static const struct seen lower = TAKES(BUCKET, 1, 0, ADM_TERM_PASS, 3, 0);
    const struct linear_operation twice[] = { { 1, 4, &last }, { 2, 3, &too } },
                                  minted[] = { { 1, 4, &empties }, { 2, 3, &one_more } },
                                  /* {a, b} is denied for b, and a meanwhile for its part of a. */
        undone[] = { { 1, 6, &both }, { 2, 3, &full } }, unexplained[] = { { 1, 2, &full_at_0 } },
                                  released[] = { { 1, 2, &last },
                                                 { 3, 6, &release },
                                                 { 4, 5, &release } },
                                  crossed[] = { { 1, 2, &last },
                                                { 3, 6, &renewed },
                                                { 4, 9, &expiry } },
                                  late[] = { { 1, 2, &put }, { 3, 4, &lower } };

    ok(says(LINEAR_NO, twice, 2) && says(LINEAR_NO, minted, 2),
       "K7 the checker rejects two takes that both got the last unit");
    ok(says(LINEAR_NO, undone, 2) && says(LINEAR_NO, unexplained, 1),
       "K2 the checker rejects a denial by a charge that never was");
    ok(says(LINEAR_NO, released, 3), "K3 the checker rejects a lease that was released twice");
    ok(says(LINEAR_NO, crossed, 3), "K6 the checker rejects a renewal at the deadline");
    ok(says(LINEAR_NO, late, 2), "K7 the checker rejects numbers of the time before");
}

static void the_checker_accepts_good_histories(void)
{
    static const struct seen last = TAKES(COUNT_A, 1, 1, ADM_TERM_PASS, 0, 0),
                             again = TAKES(COUNT_A, 1, 1, ADM_TERM_PASS, 0, 1),
                             full = TAKES(COUNT_A, 1, 1, ADM_TERM_EXCEEDED, 1, NO_LEASE);
    static const struct seen release = { .kind = DO_GIVE,
                                         .outcome = ADM_OUTCOME_RELEASED,
                                         .units = 1 },
                             expiry = { .kind = EXPIRES, .time = TTL };
    static const struct seen put = { .kind = DO_PUT, .sequence = 2, .capacity = 2 };
    const struct linear_operation denied[] = { { 1, 4, &last }, { 2, 3, &full } },
                                  given[] = { { 1, 2, &last },
                                              { 3, 6, &release },
                                              { 4, 5, &again } },
                                  expired[] = { { 1, 2, &last },
                                                { 3, 9, &expiry },
                                                { 4, 5, &again } },
                                  in_time[] = { { 1, 4, &put }, { 2, 5, &last } };

    ok(says(LINEAR_YES, denied, 2) && says(LINEAR_YES, given, 3) && says(LINEAR_YES, expired, 3) &&
           says(LINEAR_YES, in_time, 2),
       "the checker accepts histories that are known to be good");
}

/* ---- one history ---- */

struct recorded {
    struct seen what[STEPS];
    uint64_t called[STEPS], returned[STEPS];
    uint32_t count;
};

static struct shared {
    const struct way *way;
    struct subject subject;
    bool grouped;
    uint32_t yields; /* one point in so many */
    uint32_t threads;
    _Atomic uint64_t ticks, clock, policy; /* sequence * VARIANTS + variant */
    _Atomic uint32_t granting, granted;    /* numbers of leases; a bit each */
    struct adm_id leases[LEASES];
    _Atomic uint32_t history, finished;
    _Atomic bool quit;
    _Atomic uint64_t unavailable, failed;
    struct recorded recorded[THREADS];
} shared;

static uint8_t seconds_of(const struct adm_time *judged)
{
    return (uint8_t)((judged->mono_ns - SUBJECT_START_NS) / ADM_SECOND);
}

static uint32_t choose_wishes(struct wish *wishes, uint32_t variant, uint64_t *random)
{
    uint32_t count = 1 + (uint32_t)(next_random(random) % TERMS_MAX), used = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t object = (uint32_t)(next_random(random) % OBJECTS);

        while ((used >> object & 1) != 0)
            object = (object + 1) % OBJECTS;
        used |= 1u << object;
        wishes[i] = (struct wish){ object, 1 + (next_random(random) % 4 == 0),
                                   limit_of(object, variant), "p" };
    }
    return count;
}

static bool take(struct recorded *mine, struct seen *seen, uint64_t *random)
{
    uint64_t policy = atomic_load(&shared.policy);
    struct wish wishes[TERMS_MAX];
    struct request request;
    uint32_t count = choose_wishes(wishes, policy % VARIANTS, random), flags = 0;
    adm_status status;

    seen->lease = NO_LEASE;
    if (seen->kind == DO_TAKE) {
        seen->lease = (uint8_t)atomic_fetch_add(&shared.granting, 1);
        if (seen->lease >= LEASES)
            return false;
        flags = WISH_LEASE;
    } else {
        flags = WISH_JUDGE | WISH_LEASE; /* as it would have to be asked for */
    }
    status = subject_take(&shared.subject, &request, wishes, count, flags, policy / VARIANTS, TTL,
                          atomic_load(&shared.clock));
    mine->returned[mine->count] = atomic_fetch_add(&shared.ticks, 1);
    if (status != ADM_OK && status != ADM_E_BACKEND_STALE)
        atomic_fetch_add(&shared.failed, 1);
    seen->time = seconds_of(&request.op.judged);
    seen->stale = status == ADM_E_BACKEND_STALE;
    seen->sequence = (uint16_t)(policy / VARIANTS);
    seen->count = (uint8_t)count;
    seen->verdict = (uint8_t)request.take.verdict;
    seen->verdict_only = shared.way->rollback;
    for (uint32_t i = 0; i < count; i++)
        seen->asked[i] =
            (struct asked){ (uint8_t)wishes[i].object, (uint8_t)wishes[i].amount,
                            (uint8_t)wishes[i].limit, (uint8_t)request.terms[i].verdict,
                            (int8_t)request.terms[i].level };
    if (seen->kind == DO_TAKE && status == ADM_OK && seen->verdict == ADM_VERDICT_ALLOW) {
        seen->leased = 1;
        shared.leases[seen->lease] = request.take.lease;
        atomic_fetch_or(&shared.granted, 1u << seen->lease);
    }
    return true;
}

static bool put(struct recorded *mine, struct seen *seen, uint64_t *random)
{
    uint32_t variant = (uint32_t)(next_random(random) % VARIANTS);
    uint64_t known = atomic_load(&shared.policy), now;
    struct put put = { .capacity = limit_of(BUCKET, variant), .grouped = shared.grouped };
    adm_status status = subject_put(&shared.subject, &put, atomic_load(&shared.clock));

    mine->returned[mine->count] = atomic_fetch_add(&shared.ticks, 1);
    seen->time = seconds_of(&put.judged);
    if (status == ADM_E_BACKEND_UNAVAILABLE) {
        atomic_fetch_add(&shared.unavailable, 1);
        seen->kind = DO_SWEEP; /* nothing but that time went on */
        return true;
    }
    if (status != ADM_OK || memcmp(put.handles, shared.subject.handles, sizeof put.handles) != 0)
        atomic_fetch_add(&shared.failed, 1);
    seen->sequence = (uint16_t)put.sequence;
    seen->capacity = (uint8_t)put.capacity;
    now = put.sequence * VARIANTS + variant;
    while (known < now && !atomic_compare_exchange_weak(&shared.policy, &known, now)) {
    }
    return true;
}

static bool about_lease(struct recorded *mine, struct seen *seen, uint64_t *random)
{
    struct adm_amount amount = { 0, 0, 0 };
    const struct adm_settlement settlement = { &amount, 1, 0 };
    uint32_t granted = atomic_load(&shared.granted);
    struct adm_op op = { .kind = seen->kind == DO_GIVE    ? ADM_OP_GIVE
                                 : seen->kind == DO_RENEW ? ADM_OP_RENEW
                                                          : ADM_OP_SETTLE };

    if (granted == 0)
        return false;
    seen->lease = (uint8_t)(next_random(random) % LEASES);
    while ((granted >> seen->lease & 1) == 0)
        seen->lease = (uint8_t)((seen->lease + 1) % LEASES);
    op.lease = shared.leases[seen->lease];
    if (seen->kind == DO_SETTLE) {
        seen->object = (uint8_t)(next_random(random) % OBJECTS);
        seen->total = (uint8_t)(next_random(random) % 5);
        seen->final = next_random(random) % 2 == 0;
        amount = (struct adm_amount){ ADM_UNIT_FIRST_DECLARED + seen->object,
                                      seen->final ? ADM_AMOUNT_FINAL : 0, seen->total };
        op.args.settle = &settlement;
    }
    if (subject_run(&shared.subject, &op, atomic_load(&shared.clock)) != ADM_OK)
        atomic_fetch_add(&shared.failed, 1);
    mine->returned[mine->count] = atomic_fetch_add(&shared.ticks, 1);
    seen->time = seconds_of(&op.judged);
    seen->outcome = (uint8_t)op.outcome;
    seen->units = (uint8_t)op.units;
    return true;
}

static bool sweep(struct recorded *mine, struct seen *seen, uint64_t *random)
{
    struct adm_sweep args = { .budget = 1 + next_random(random) % 8 };
    struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &args };

    if (subject_run(&shared.subject, &op, atomic_load(&shared.clock)) != ADM_OK)
        atomic_fetch_add(&shared.failed, 1);
    mine->returned[mine->count] = atomic_fetch_add(&shared.ticks, 1);
    seen->time = seconds_of(&op.judged);
    return true;
}

static enum kind choose_kind(uint64_t *random)
{
    static const enum kind kinds[16] = { DO_TAKE,   DO_TAKE,   DO_TAKE,  DO_TAKE,
                                         DO_TAKE,   DO_TAKE,   DO_GIVE,  DO_GIVE,
                                         DO_GIVE,   DO_RENEW,  DO_RENEW, DO_SETTLE,
                                         DO_SETTLE, DO_SETTLE, DO_PUT,   DO_JUDGE };
    uint64_t at = next_random(random);

    if (shared.way->rollback)
        return at % 3 == 0 ? DO_GIVE : DO_TAKE; /* no more than it can do at all */
    return at % 20 >= 16 ? DO_SWEEP : kinds[at % 16];
}

static void live_a_history(struct recorded *mine, uint64_t *random)
{
    mine->count = 0;
    for (uint32_t n = 0; n < STEPS; n++) {
        struct seen *seen = &mine->what[mine->count];
        bool done;

        memset(seen, 0, sizeof *seen);
        seen->kind = (uint8_t)choose_kind(random);
        if (!shared.way->rollback && next_random(random) % 6 == 0) {
            uint64_t now = atomic_load(&shared.clock);

            if (now < LAST_TIME)
                (void)atomic_compare_exchange_strong(&shared.clock, &now, now + TICK);
        }
        mine->called[mine->count] = atomic_fetch_add(&shared.ticks, 1);
        switch (seen->kind) {
        case DO_TAKE:
        case DO_JUDGE:
            done = take(mine, seen, random);
            break;
        case DO_SWEEP:
            done = sweep(mine, seen, random);
            break;
        case DO_PUT:
            done = put(mine, seen, random);
            break;
        default:
            done = about_lease(mine, seen, random);
            break;
        }
        mine->count += done;
    }
}

static void *live(void *self)
{
    uint32_t me = (uint32_t)(uintptr_t)self, round = 0;
    uint64_t random = (seed * 2654435761u + me + 1) * 0x9e3779b97f4a7c15u + 1;

    for (;;) {
        while (atomic_load(&shared.history) == round) {
            if (atomic_load(&shared.quit))
                return NULL;
            (void)sched_yield();
        }
        round++;
        shared.recorded[me].count = 0;
        if (me < shared.threads) {
            yield_at_points(shared.yields, next_random(&random));
            live_a_history(&shared.recorded[me], &random);
            yield_at_points(0, 0);
        }
        atomic_fetch_add(&shared.finished, 1);
    }
}

/* ---- judging it ---- */

struct histories {
    uint64_t checked, wrong, too_large, operations, overlapping, expired, stale, denied;
};

struct judged {
    struct linear_operation operations[THREADS * STEPS + LEASES];
    struct seen what[THREADS * STEPS], expiries[LEASES];
    uint32_t count, all;
};

static bool grants(const struct seen *seen, uint32_t lease)
{
    return seen->lease == lease &&
           ((seen->kind == DO_TAKE && seen->leased) ||
            (seen->kind == DO_RENEW && seen->outcome == ADM_OUTCOME_RENEWED));
}

/* When the time of a lease is over: as soon as somebody has come whose time it is. */
static void add_expiry(struct judged *judged, uint32_t lease)
{
    struct seen *expiry = &judged->expiries[lease];
    uint64_t from = UINT64_MAX;
    bool granted = false;

    memset(expiry, 0, sizeof *expiry);
    expiry->kind = EXPIRES;
    expiry->lease = (uint8_t)lease;
    for (uint32_t i = 0; i < judged->count; i++) {
        if (!grants(&judged->what[i], lease))
            continue;
        granted = true;
        if (judged->what[i].time + TTL > expiry->time)
            expiry->time = (uint8_t)(judged->what[i].time + TTL);
    }
    for (uint32_t i = 0; i < judged->count && granted; i++) {
        if (judged->what[i].time >= expiry->time && judged->operations[i].called < from)
            from = judged->operations[i].called;
    }
    if (from != UINT64_MAX)
        judged->operations[judged->all++] = (struct linear_operation){ from, UINT64_MAX, expiry };
}

static void gather(struct judged *judged)
{
    judged->count = 0;
    for (uint32_t t = 0; t < THREADS; t++) {
        const struct recorded *recorded = &shared.recorded[t];

        for (uint32_t i = 0; i < recorded->count; i++) {
            judged->what[judged->count] = recorded->what[i];
            judged->operations[judged->count] =
                (struct linear_operation){ recorded->called[i], recorded->returned[i],
                                           &judged->what[judged->count] };
            judged->count++;
        }
    }
    for (uint32_t i = 0; i < judged->count; i++) {
        for (uint32_t j = 0; j < judged->count; j++) {
            if (judged->what[j].lease < LEASES && grants(&judged->what[j], judged->what[j].lease) &&
                judged->operations[j].returned > judged->operations[i].called)
                judged->what[i].overlapping |= (uint8_t)(1u << judged->what[j].lease);
        }
    }
    judged->all = judged->count;
    for (uint32_t i = 0; i < LEASES; i++)
        add_expiry(judged, i);
}

static void print_history(const struct judged *judged)
{
    static const char *const kinds[] = { "take",   "judge", "give", "renew",
                                         "settle", "sweep", "put",  "expires" };

    for (uint32_t i = 0; i < judged->all; i++) {
        const struct seen *seen = judged->operations[i].what;

        printf("#  %2" PRIu64 "-%2" PRIu64 " at %u %s lease %u sequence %u"
               " outcome %u units %u object %u total %u final %u capacity %u verdict %u%s:",
               judged->operations[i].called, judged->operations[i].returned % 1000, seen->time,
               kinds[seen->kind], seen->lease, seen->sequence, seen->outcome, seen->units,
               seen->object, seen->total, seen->final, seen->capacity, seen->verdict,
               seen->stale ? " stale" : "");
        for (uint32_t n = 0; n < seen->count; n++)
            printf(" {%u: %u of %u, verdict %u, level %d}", seen->asked[n].object,
                   seen->asked[n].amount, seen->asked[n].limit, seen->asked[n].verdict,
                   seen->asked[n].level);
        printf("\n");
    }
}

static void judge(struct histories *histories, const struct state *state)
{
    struct judged judged;
    enum linear_verdict verdict;

    gather(&judged);
    for (uint32_t i = 0; i < judged.count; i++) {
        bool overlaps = false;

        for (uint32_t j = 0; j < judged.count; j++)
            overlaps = overlaps ||
                       (i != j && judged.operations[i].called < judged.operations[j].returned &&
                        judged.operations[j].called < judged.operations[i].returned);
        histories->overlapping += overlaps;
        histories->stale += judged.what[i].stale;
        histories->denied += judged.what[i].kind == DO_TAKE && !judged.what[i].stale &&
                             judged.what[i].verdict == ADM_VERDICT_DENY;
    }
    histories->operations += judged.count;
    histories->expired += judged.all - judged.count;
    verdict = linear_check(judged.operations, judged.all, model, state, sizeof *state);
    histories->checked++;
    histories->too_large += verdict == LINEAR_TOO_LARGE;
    if (verdict == LINEAR_NO && histories->wrong++ == 0 && !shared.way->rollback)
        print_history(&judged);
}

static void one_history(struct histories *histories, uint64_t *random)
{
    uint64_t sequence;
    struct state state;

    subject_open(&shared.subject, shared.way, 16);
    shared.grouped = next_random(random) % 2 == 0;
    shared.yields = 1u << next_random(random) % 6;
    if (shared.way->hard_after == ENDLESS && shared.yields == 1)
        shared.yields = 2; /* two that take turns at every point would abort each other for ever */
    shared.threads = next_random(random) % 3 == 0 ? 2 : THREADS;
    sequence = subject_put_first(&shared.subject, limit_of(BUCKET, 0), shared.grouped);
    state = first_state(sequence);
    atomic_store(&shared.policy, sequence * VARIANTS);
    atomic_store(&shared.ticks, 1);
    atomic_store(&shared.clock, 0);
    atomic_store(&shared.granting, 0);
    atomic_store(&shared.granted, 0);
    atomic_store(&shared.finished, 0);
    atomic_fetch_add(&shared.history, 1);
    while (atomic_load(&shared.finished) < THREADS)
        (void)sched_yield();
    judge(histories, &state);
    subject_close(&shared.subject);
}

static struct histories live_histories(const struct way *way, uint64_t many)
{
    struct histories histories = { 0 };
    uint64_t random = seed * 40503u + 7;
    pthread_t threads[THREADS];

    shared.way = way;
    atomic_store(&shared.history, 0);
    atomic_store(&shared.quit, false);
    for (uintptr_t i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, live, (void *)i);
    for (uint64_t n = 0; n < many; n++)
        one_history(&histories, &random);
    atomic_store(&shared.quit, true);
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    printf("# %s, seed %" PRIu64 ": %" PRIu64 " histories of %.1f operations, %.1f of them "
           "overlapped; %" PRIu64 " denials, %" PRIu64 " stale, %" PRIu64 " expiries; %" PRIu64
           " without an order, %" PRIu64 " too large\n",
           way->name, seed, histories.checked,
           (double)histories.operations / (double)histories.checked,
           (double)histories.overlapping / (double)histories.checked, histories.denied,
           histories.stale, histories.expired, histories.wrong, histories.too_large);
    return histories;
}

void test_histories(void)
{
    struct histories bad;
    bool good = true, all_kinds = true;

    the_checker_rejects_bad_histories();
    the_checker_accepts_good_histories();
    bad = live_histories(&rollback, 400 * scale);
    ok(bad.wrong > 0, "K2 K7 the harness finds rollback out");
    for (uint32_t i = 0; i < way_count; i++) {
        struct histories histories = live_histories(&ways[i], 80 * scale);

        good = good && histories.wrong == 0 && histories.too_large == 0;
        all_kinds = all_kinds && histories.denied > 0 && histories.stale > 0 &&
                    histories.expired > 0 && histories.overlapping > histories.checked;
    }
    printf("# %" PRIu64 " class sets were told to come again\n", atomic_load(&shared.unavailable));
    ok(good, "K7 every history of the memory backend has an order");
    ok(atomic_load(&shared.failed) == 0, "K8 no operation of a history failed");
    ok(all_kinds, "histories overlap, and have denials, stale takes and expiries");
}

int main(void)
{
    begin();
    test_histories();
    test_crossings();
    return end();
}
