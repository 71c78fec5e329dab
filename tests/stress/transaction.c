/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/state/transaction.h under threads: histories that a sequential model explains, no refusal
 * that nobody can explain, nothing lost or left behind. Rollback, which people write instead, must
 * fail in the same harness, or the harness sees nothing.
 *
 * ADMIT_STRESS_SCALE: how many times as long, 10 unless given (2 under the thread sanitizer). ADMIT_STRESS_SEED.
 */
#ifndef TRANSACTION_HEADER
#define TRANSACTION_HEADER "state/transaction.h"
#endif
#include "linear.h"
#include "transaction_subject.h"

enum { THREADS = 3, WORDS = 3, LIMIT = 2, HISTORY_STEPS = 6 };

static const struct way rollback = { "rollback", 0, 0, 1 };

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

/* No units and no references, and the guard as it was made. */
static int is_clean(void)
{
    uint64_t left = 0;

    for (uint32_t i = 0; i < SPACE_WORDS; i++)
        left |= atomic_load(&words[i]);
    return left == 0;
}

/* The limit is one less after every second change of the guard. */
static uint64_t limit_at(uint64_t guard)
{
    return LIMIT - (guard / 2) % 2;
}

/* One after another, and back again on a refusal. */
static int run_rollback(struct admi_txn *txn, const struct admi_txn_step *steps, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t met = admi_txn_load(&txn->words[steps[i].word]), changed;
        int passes;

        do
            passes = admi_txn_test(&steps[i], ADMI_TXN_VALUE_OF(met), &changed);
        while (passes &&
               !admi_txn_swap(&txn->words[steps[i].word], &met, ADMI_TXN_WORD_OF(changed)));
        if (passes) {
            at_point(before_enter); /* something is reserved: now others look */
            continue;
        }
        while (i-- > 0)
            (void)atomic_fetch_sub(&txn->words[steps[i].word], ADMI_TXN_WORD_OF(steps[i].units));
        return ADMI_TXN_REFUSED;
    }
    return ADMI_TXN_DONE;
}

/* To its end, whatever the guard does meanwhile. */
static int run(struct admi_txn *txn, const struct way *way, struct admi_txn_step *steps,
               uint32_t count, int limited)
{
    int end;

    do {
        txn->guarded = admi_txn_read_guard(txn);
        for (uint32_t i = 0; i < count && limited; i++)
            steps[i].limit = limit_at(txn->guarded);
        end = way->rollback ? run_rollback(txn, steps, count) : once(txn, steps, count, 0);
    } while (end == ADMI_TXN_STALE);
    return end;
}

static void publish(struct admi_txn *txn)
{
    int changed;

    if (!admi_txn_claim(txn))
        abort();
    do
        changed = admi_txn_change(txn, admi_txn_read_guard(txn));
    while (!changed);
    admi_txn_unclaim(txn);
}

/* ---- the sequential model ---- */

enum { OP_HOLD, OP_GIVE, OP_PUBLISH };

struct seen_operation {
    uint8_t kind;
    uint8_t mask; /* of words */
    uint8_t allowed;
};

/* State: units of each word, and how often the guard was changed, modulo 2. */
enum { MODEL_BYTES = WORDS + 1 };

static int count_units(void *state, const void *what)
{
    const struct seen_operation *operation = what;
    uint8_t *held = state;
    uint64_t limit = limit_at(2u * held[WORDS]);
    int give = operation->kind == OP_GIVE, fits = 1;

    if (operation->kind == OP_PUBLISH) {
        held[WORDS] ^= 1;
        return 1;
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        if ((operation->mask >> i & 1) != 0)
            fits = fits && (give ? held[i] > 0 : held[i] < limit);
    }
    if (fits != operation->allowed)
        return 0;
    for (uint32_t i = 0; i < WORDS && fits; i++) {
        if ((operation->mask >> i & 1) != 0)
            held[i] = (uint8_t)(give ? held[i] - 1 : held[i] + 1);
    }
    return 1;
}

static void the_checker_knows_bad_from_good(void)
{
    static const struct seen_operation hold_a = { OP_HOLD, 1, 1 }, hold_ab = { OP_HOLD, 3, 1 },
                                       refused_a = { OP_HOLD, 1, 0 },
                                       refused_ab = { OP_HOLD, 3, 0 }, give_a = { OP_GIVE, 1, 1 },
                                       lower = { OP_PUBLISH, 0, 1 };
    const uint8_t empty[MODEL_BYTES] = { 0 }, one_left[MODEL_BYTES] = { LIMIT - 1, LIMIT - 1 },
                  b_full[MODEL_BYTES] = { 0, LIMIT };
    /* One after another: refused although there was room. */
    const struct linear_operation spurious[] = { { 1, 2, &hold_a }, { 3, 4, &refused_a } };
    /* Two at a time for the last one of each, both allowed. */
    const struct linear_operation twice[] = { { 1, 4, &hold_ab }, { 2, 3, &hold_ab } };
    const struct linear_operation once[] = { { 1, 4, &hold_ab }, { 2, 3, &refused_ab } };
    /* {a, b} is refused for b, and a was refused meanwhile for what it had put there. */
    const struct linear_operation undone[] = { { 1, 6, &refused_ab }, { 2, 3, &refused_a } };
    const struct linear_operation given[] = { { 1, 2, &give_a } };
    /* By the old limit, although the new one had been seen. */
    const struct linear_operation late[] = { { 1, 2, &lower }, { 3, 6, &hold_ab } };
    const struct linear_operation mixed[] = { { 1, 8, &lower },
                                              { 2, 3, &refused_a },
                                              { 4, 5, &hold_a } };
    const struct linear_operation in_time[] = { { 1, 4, &lower }, { 2, 6, &hold_ab } };
    /* The answer needs an operation that had not been called yet. */
    const struct linear_operation early[] = { { 1, 2, &give_a }, { 3, 4, &hold_a } };
    const struct linear_operation overlap[] = { { 1, 3, &give_a }, { 2, 4, &hold_a } };

    ok(linear_check(spurious, 2, count_units, empty, MODEL_BYTES) == LINEAR_NO &&
           linear_check(twice, 2, count_units, one_left, MODEL_BYTES) == LINEAR_NO &&
           linear_check(undone, 2, count_units, b_full, MODEL_BYTES) == LINEAR_NO &&
           linear_check(given, 1, count_units, empty, MODEL_BYTES) == LINEAR_NO &&
           linear_check(early, 2, count_units, empty, MODEL_BYTES) == LINEAR_NO &&
           linear_check(late, 2, count_units, one_left, MODEL_BYTES) == LINEAR_NO &&
           linear_check(mixed, 3, count_units, one_left, MODEL_BYTES) == LINEAR_NO,
       "the checker rejects histories that are known to be bad");
    ok(linear_check(once, 2, count_units, one_left, MODEL_BYTES) == LINEAR_YES &&
           linear_check(overlap, 2, count_units, empty, MODEL_BYTES) == LINEAR_YES &&
           linear_check(in_time, 2, count_units, one_left, MODEL_BYTES) == LINEAR_YES,
       "the checker accepts histories that are known to be good");
}

/* ---- histories ---- */

static struct recorded {
    struct seen_operation what[2 * HISTORY_STEPS];
    uint64_t called[2 * HISTORY_STEPS], returned[2 * HISTORY_STEPS];
    uint32_t count;
} recorded[THREADS];
static _Atomic uint64_t ticks;
static _Atomic uint32_t history, finished;
static _Atomic int quit;
static const struct way *way_now;

static void record(struct admi_txn *txn, struct recorded *mine, uint32_t kind, uint32_t mask,
                   uint32_t *held)
{
    struct admi_txn_step steps[WORDS];
    struct seen_operation *what = &mine->what[mine->count];
    uint32_t count = 0;

    for (uint32_t i = 0; i < WORDS; i++) {
        if ((mask >> i & 1) != 0)
            steps[count++] = step_of(i, kind == OP_GIVE ? SUBJECT_GIVE : SUBJECT_HOLD, 1, LIMIT);
    }
    mine->called[mine->count] = atomic_fetch_add(&ticks, 1);
    what->kind = (uint8_t)kind;
    what->mask = (uint8_t)mask;
    what->allowed = 1;
    if (kind == OP_PUBLISH)
        publish(txn);
    else
        what->allowed = run(txn, way_now, steps, count, 1) == ADMI_TXN_DONE;
    mine->returned[mine->count++] = atomic_fetch_add(&ticks, 1);
    for (uint32_t i = 0; i < WORDS && what->allowed; i++)
        held[i] += (mask >> i & 1) == 0 ? 0 : kind == OP_GIVE ? UINT32_MAX : 1;
}

static void live_a_history(struct admi_txn *txn, struct recorded *mine, uint64_t *random)
{
    uint32_t held[WORDS] = { 0 };

    mine->count = 0;
    for (uint32_t n = 0; n < HISTORY_STEPS; n++) {
        uint32_t mask = 1 + (uint32_t)(next_random(random) % ((1 << WORDS) - 1)), have = 0;

        for (uint32_t i = 0; i < WORDS; i++)
            have |= (uint32_t)(held[i] > 0) << i;
        if (next_random(random) % 4 == 0)
            (void)sched_yield();
        if (!way_now->rollback && next_random(random) % 8 == 0)
            record(txn, mine, OP_PUBLISH, 0, held);
        else if ((have & mask) != 0 && next_random(random) % 2 == 0)
            record(txn, mine, OP_GIVE, have & mask, held);
        else
            record(txn, mine, OP_HOLD, mask, held);
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        while (held[i] > 0)
            record(txn, mine, OP_GIVE, 1u << i, held);
    }
}

static void *live(void *self)
{
    uint32_t me = (uint32_t)(uintptr_t)self, round = 0;
    struct admi_txn txn = txn_of(way_now, me);
    uint64_t random = seed * 2654435761u + me + 1;

    yield_one_in = 4;
    yield_random = random;
    for (;;) {
        while (atomic_load(&history) == round) {
            if (atomic_load(&quit))
                return NULL;
            (void)sched_yield();
        }
        round++;
        live_a_history(&txn, &recorded[me], &random);
        atomic_fetch_add(&finished, 1);
    }
}

struct histories {
    uint64_t checked, wrong, too_large, overlapping;
    int clean;
};

static void judge(struct histories *histories, uint8_t first_parity)
{
    struct linear_operation operations[THREADS * 2 * HISTORY_STEPS];
    const uint8_t begin_state[MODEL_BYTES] = { 0, 0, 0, first_parity };
    uint32_t count = 0;
    enum linear_verdict verdict;

    for (uint32_t t = 0; t < THREADS; t++) {
        for (uint32_t i = 0; i < recorded[t].count; i++)
            operations[count++] =
                (struct linear_operation){ recorded[t].called[i], recorded[t].returned[i],
                                           &recorded[t].what[i] };
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < i; j++)
            histories->overlapping += operations[i].called < operations[j].returned &&
                                      operations[j].called < operations[i].returned;
    }
    verdict = linear_check(operations, count, count_units, begin_state, MODEL_BYTES);
    histories->checked++;
    histories->wrong += verdict == LINEAR_NO;
    histories->too_large += verdict == LINEAR_TOO_LARGE;
}

static struct histories live_histories(const struct way *way, uint64_t many)
{
    struct histories histories = { 0 };
    pthread_t threads[THREADS];

    way_now = way;
    clear_space();
    atomic_store(&history, 0);
    atomic_store(&quit, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, live, (void *)i);
    for (uint64_t n = 0; n < many; n++) {
        uint8_t parity = (uint8_t)(ADMI_TXN_VALUE_OF(atomic_load(&words[GUARD])) / 2 % 2);

        atomic_store(&finished, 0);
        atomic_store(&ticks, 1);
        atomic_fetch_add(&history, 1);
        while (atomic_load(&finished) < THREADS)
            (void)sched_yield();
        judge(&histories, parity);
    }
    atomic_store(&quit, 1);
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    atomic_store(&words[GUARD], 0);
    histories.clean = is_clean();
    printf("# %s: %" PRIu64 " histories, %.1f overlapping pairs each, %" PRIu64
           " without an order, %" PRIu64 " too large\n",
           way->name, histories.checked, (double)histories.overlapping / (double)histories.checked,
           histories.wrong, histories.too_large);
    return histories;
}

static void histories_have_an_order(void)
{
    struct histories bad = live_histories(&rollback, 400 * scale);
    int good = 1;

    ok(bad.wrong > 0, "K2 K7 the harness finds rollback out");
    for (uint32_t i = 0; i < WAYS; i++) {
        struct histories histories = live_histories(&ways[i], 2000 * scale);

        good = good && histories.wrong == 0 && histories.too_large == 0 && histories.clean;
    }
    ok(good, "K2 K7 every history of transactions has an order");
}

/* ---- spurious refusals ---- */

struct probe {
    const struct way *way;
    uint64_t wrong;
    _Atomic uint64_t asked;
    _Atomic int started, stop;
};

static void *ask_for_both(void *self)
{
    struct probe *probe = self;
    struct admi_txn txn = txn_of(probe->way, 1);
    struct admi_txn_step both[] = { step_of(0, SUBJECT_HOLD, 1, 1),
                                    step_of(1, SUBJECT_HOLD, 1, 1) };

    others_work = &probe->asked;
    atomic_store(&probe->started, 1);
    while (!atomic_load_explicit(&probe->stop, memory_order_relaxed)) {
        if (run(&txn, probe->way, both, 2, 0) == ADMI_TXN_DONE)
            abort(); /* the second is held all the time */
    }
    return NULL;
}

/* The second word is full, so whoever asks for both is refused; the first is free, so whoever asks
 * for it alone must get it. */
static uint64_t ask_for_one(const struct way *way, uint64_t many)
{
    struct probe probe = { .way = way };
    struct admi_txn txn = txn_of(way, 0);
    struct admi_txn_step one = step_of(0, SUBJECT_HOLD, 1, 1),
                         back = step_of(0, SUBJECT_GIVE, 1, 1);
    pthread_t thread;

    clear_space();
    atomic_store(&words[1], ADMI_TXN_WORD_OF(1));
    (void)pthread_create(&thread, NULL, ask_for_both, &probe);
    while (!atomic_load(&probe.started))
        (void)sched_yield();
    for (uint64_t n = 0; n < many; n++) {
        if (run(&txn, way, &one, 1, 0) != ADMI_TXN_DONE)
            probe.wrong++;
        else if (once(&txn, &back, 1, 0) != ADMI_TXN_DONE)
            abort();
        atomic_fetch_add(&probe.asked, 1);
    }
    atomic_store(&probe.stop, 1);
    (void)pthread_join(thread, NULL);
    printf("# %s: %" PRIu64 " refused of %" PRIu64 "\n", way->name, probe.wrong, many);
    return probe.wrong;
}

static void nobody_is_refused_for_nothing(void)
{
    uint64_t many = 20000 * scale, undone = many / 10;
    int good = 1;

    ok(ask_for_one(&rollback, undone) > undone / 20,
       "K2 the harness sees rollback refuse for nothing");
    for (uint32_t i = 0; i < WAYS; i++)
        good = good && ask_for_one(&ways[i], many) == 0;
    ok(good, "K2 no transaction is refused for what another one did not get");
}

/* ---- conservation, in opposite orders ---- */

enum { CROWD = 4, CROWD_WORDS = 8, CROWD_LIMIT = 6 };

static _Atomic uint64_t crowd_held[CROWD_WORDS], crowd_wrong, crowd_allowed, crowd_refused;
static uint64_t crowd_rounds;

static void *crowd(void *self)
{
    uint32_t me = (uint32_t)(uintptr_t)self;
    struct admi_txn txn = txn_of(way_now, me);
    uint64_t random = seed * 40503u + me + 1, allowed = 0, refused = 0;

    yield_one_in = me % 2 != 0 ? 16 : 0;
    for (uint64_t n = 0; n < crowd_rounds; n++) {
        uint64_t mask = next_random(&random);
        struct admi_txn_step hold[CROWD_WORDS], give[CROWD_WORDS];
        uint32_t count = 0;

        for (uint32_t i = 0; i < CROWD_WORDS; i++) { /* up or down */
            uint32_t word = (mask >> 20 & 1) != 0 ? i : CROWD_WORDS - 1 - i;

            if ((mask >> word & 1) == 0)
                continue;
            hold[count] = step_of(word, SUBJECT_HOLD, 1 + (mask >> (8 + word)) % 3, CROWD_LIMIT);
            give[count] = hold[count];
            give[count++].kind = SUBJECT_GIVE;
        }
        if (once(&txn, hold, count, 0) != ADMI_TXN_DONE) {
            refused++;
            continue;
        }
        allowed++;
        for (uint32_t i = 0; i < count; i++) {
            if (atomic_fetch_add(&crowd_held[hold[i].word], hold[i].units) + hold[i].units >
                CROWD_LIMIT)
                atomic_fetch_add(&crowd_wrong, 1);
        }
        if (mask % 64 == 0)
            (void)sched_yield();
        for (uint32_t i = 0; i < count; i++)
            atomic_fetch_sub(&crowd_held[hold[i].word], hold[i].units);
        if (once(&txn, give, count, 0) != ADMI_TXN_DONE)
            atomic_fetch_add(&crowd_wrong, 1);
    }
    atomic_fetch_add(&crowd_allowed, allowed);
    atomic_fetch_add(&crowd_refused, refused);
    return NULL;
}

static void nothing_is_lost_in_a_crowd(void)
{
    int good = 1;

    crowd_rounds = 4000 * scale;
    for (uint32_t w = 0; w < WAYS; w++) {
        pthread_t threads[CROWD];

        way_now = &ways[w];
        clear_space();
        atomic_store(&crowd_wrong, 0);
        atomic_store(&crowd_allowed, 0);
        atomic_store(&crowd_refused, 0);
        for (uintptr_t i = 0; i < CROWD; i++)
            (void)pthread_create(&threads[i], NULL, crowd, (void *)i);
        for (uint32_t i = 0; i < CROWD; i++)
            (void)pthread_join(threads[i], NULL);
        printf("# %s: %" PRIu64 " allowed, %" PRIu64 " refused, %" PRIu64 " beyond the limit\n",
               way_now->name, atomic_load(&crowd_allowed), atomic_load(&crowd_refused),
               atomic_load(&crowd_wrong));
        good =
            good && atomic_load(&crowd_wrong) == 0 && atomic_load(&crowd_allowed) > 0 && is_clean();
    }
    ok(good, "K1 in opposite orders no limit is passed and every unit comes back");
}

int main(void)
{
    begin();
    the_checker_knows_bad_from_good();
    histories_have_an_order();
    nobody_is_refused_for_nothing();
    nothing_is_lost_in_a_crowd();
    return end();
}
