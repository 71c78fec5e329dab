/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lib/state/transaction.h with threads that are stopped: others go on, wherever it is; and the
 * schedules that the algorithm is made for, one by one, so that a fault in it is found every time
 * and not by chance.
 */
#ifndef TRANSACTION_HEADER
#define TRANSACTION_HEADER "state/transaction.h"
#endif
#include "transaction_subject.h"

/* ---- actors ---- */

enum deed { RUN, READ, CHANGE };

/* A thread that does one thing, and may be stopped on the way. */
struct actor {
    struct stop stop;
    const struct way *way;
    uint32_t context;
    enum deed deed;
    struct admi_txn_step steps[3];
    uint32_t count, more;
    int end;        /* of RUN, CHANGE */
    uint64_t value; /* of READ */
    pthread_t thread;
    _Atomic int ended;
};

static void *act(void *self)
{
    struct actor *actor = self;
    struct admi_txn txn = txn_of(actor->way, actor->context);

    stop_here = &actor->stop;
    if (actor->deed == READ) {
        actor->value = admi_txn_read(&txn, actor->steps[0].word);
    } else if (actor->deed == RUN) {
        txn.guarded = admi_txn_read_guard(&txn);
        actor->end = once(&txn, actor->steps, actor->count, actor->more);
    } else if (admi_txn_claim(&txn)) {
        actor->end = admi_txn_change(&txn, admi_txn_read_guard(&txn));
        admi_txn_unclaim(&txn);
    }
    atomic_store(&actor->ended, 1);
    return NULL;
}

static struct admi_txn_step hold(uint32_t word)
{
    return step_of(word, SUBJECT_HOLD, 1, 1 << 20);
}

static struct admi_txn_step give(uint32_t word)
{
    return step_of(word, SUBJECT_GIVE, 1, 0);
}

/* Start, and come back when it is stopped there (1) or has ended (0). */
static int start(struct actor *actor, enum point point, uint32_t occurrence)
{
    actor->stop.point = point;
    actor->stop.countdown = occurrence;
    atomic_store(&actor->stop.stopped, 0);
    atomic_store(&actor->stop.go_on, 0);
    atomic_store(&actor->ended, 0);
    if (pthread_create(&actor->thread, NULL, act, actor) != 0)
        abort();
    while (!atomic_load(&actor->stop.stopped) && !atomic_load(&actor->ended))
        (void)sched_yield();
    return atomic_load(&actor->stop.stopped);
}

/* On to the next stop, or to the end (0). */
static int go_on_to(struct actor *actor, enum point point, uint32_t occurrence)
{
    actor->stop.point = point;
    actor->stop.countdown = occurrence;
    atomic_store(&actor->stop.stopped, 0);
    atomic_store(&actor->stop.go_on, 1);
    while (!atomic_load(&actor->stop.stopped) && !atomic_load(&actor->ended))
        (void)sched_yield();
    return atomic_load(&actor->stop.stopped);
}

static void finish(struct actor *actor)
{
    actor->stop.point = POINTS;
    atomic_store(&actor->stop.go_on, 1);
    (void)pthread_join(actor->thread, NULL);
}

static struct actor runner(uint32_t context, uint32_t way, struct admi_txn_step first,
                           struct admi_txn_step second)
{
    return (struct actor){ .way = &ways[way],
                           .context = context,
                           .deed = RUN,
                           .steps = { first, second },
                           .count = 2,
                           .end = -1 };
}

static int run_now(uint32_t context, uint32_t way, struct admi_txn_step step)
{
    struct admi_txn txn = txn_of(&ways[way], context);

    txn.guarded = admi_txn_read_guard(&txn);
    return once(&txn, &step, 1, 0);
}

static int values_are(uint64_t first, uint64_t second)
{
    return atomic_load(&words[0]) == ADMI_TXN_WORD_OF(first) &&
           atomic_load(&words[1]) == ADMI_TXN_WORD_OF(second);
}

/* ---- schedules ---- */

/* A helper is about to put a reference in when the attempt it helps commits, and everything comes
 * back to what it was: its reference must not stay. */
static void a_late_helper_puts_nothing_in(void)
{
    struct actor owner = runner(0, AT_ONCE, hold(0), hold(1));
    struct actor helper = runner(1, AT_ONCE, hold(0), hold(1));
    int good;

    clear_space();
    good = start(&owner, before_conditional, 2) && start(&helper, before_conditional, 1);
    finish(&owner);
    good = good && run_now(2, NEVER_HARD, give(0)) == ADMI_TXN_DONE &&
           run_now(2, NEVER_HARD, give(1)) == ADMI_TXN_DONE;
    finish(&helper);
    ok(good && owner.end == ADMI_TXN_DONE && helper.end == ADMI_TXN_DONE && values_are(1, 1),
       "a helper that comes late puts nothing in");
}

/* Two helpers: one has seen that the attempt cannot succeed, and is stopped before it says so; the
 * other finds that it can (the word is back), puts its conditional word in, sees the attempt active,
 * and is stopped. Then the attempt is aborted. Before its context is used again the conditional word
 * must be gone, or a reference to nothing follows. */
static void what_a_helper_left_is_decided_before_reuse(void)
{
    struct actor owner = runner(0, AT_ONCE, hold(0), hold(1));
    struct actor pessimist = runner(1, AT_ONCE, hold(2), hold(3));
    struct actor optimist = runner(2, AT_ONCE, hold(4), hold(5));
    int good;

    clear_space();
    good = start(&owner, after_conditional, 1) && /* of the guard */
           run_now(3, NEVER_HARD, hold(0)) == ADMI_TXN_DONE &&
           start(&pessimist, before_hard_abort, 1) &&
           run_now(3, NEVER_HARD, give(0)) == ADMI_TXN_DONE && start(&optimist, decided, 1);
    finish(&pessimist);
    good = good && go_on_to(&owner, before_notes, 1); /* its context has another number now */
    finish(&optimist);
    finish(&owner);
    ok(good && owner.end == ADMI_TXN_DONE && pessimist.end == ADMI_TXN_DONE &&
           optimist.end == ADMI_TXN_DONE && values_are(1, 1),
       "what a helper left is decided before the context is used again");
}

/* A reader has met a reference. Until it looks into the entry, the attempt has been aborted, and the
 * entries are being used for notes. */
static void notes_are_not_taken_for_an_attempt(void)
{
    struct actor owner = runner(0, AFTER_ONE, hold(0), hold(1));
    struct actor reader = runner(1, NEVER_HARD, hold(0), hold(0));
    int good;

    clear_space();
    atomic_store(&words[0], ADMI_TXN_WORD_OF(5));
    reader.deed = READ;
    good = start(&owner, before_commit, 1) && start(&reader, reading, 1) &&
           run_now(2, NEVER_HARD, hold(0)) == ADMI_TXN_DONE && /* it aborts the owner */
           go_on_to(&owner, before_publish, 1);
    finish(&reader);
    finish(&owner);
    ok(good && (reader.value == 5 || reader.value == 6) && owner.end == ADMI_TXN_DONE &&
           values_are(7, 1),
       "notes of a hard attempt are not taken for the attempt before it");
}

/* A reader has met a reference of an attempt that has committed. When it looks at the status, nobody
 * has the context any more. */
static void a_free_context_says_nothing(void)
{
    struct actor owner = runner(0, NEVER_HARD, hold(1), hold(0));
    struct actor reader = runner(1, NEVER_HARD, hold(0), hold(0));
    int good;

    clear_space();
    reader.deed = READ;
    good = start(&owner, take_out, 1) && start(&reader, reading, 1);
    finish(&owner);
    finish(&reader);
    ok(good && reader.value == 1 && values_are(1, 1),
       "what was committed is read, although the context is free again");
}

/* A reader of an attempt that is not decided reads the old value, and of one that is, the new one. */
static void the_status_decides(void)
{
    struct actor owner = runner(0, NEVER_HARD, hold(0), hold(1));
    struct admi_txn txn = txn_of(&ways[NEVER_HARD], 1);
    int good;

    clear_space();
    good = start(&owner, before_commit, 1) && admi_txn_read(&txn, 0) == 0 &&
           admi_txn_read(&txn, 1) == 0 && go_on_to(&owner, take_out, 1) &&
           admi_txn_read(&txn, 0) == 1 && admi_txn_read(&txn, 1) == 1;
    finish(&owner);
    ok(good && values_are(1, 1), "K2 all words change at the moment at which the status does");
}

/* A word is looked up, and changes hands before the reference is in: what is charged then, or
 * refused, would be another's. */
static void a_word_that_changed_hands_is_lost(void)
{
    int good = 1;

    for (uint32_t w = 0; w < WAYS; w++) {
        for (uint64_t there = 0; there <= 1; there++) {
            struct actor owner = runner(0, w, hold(0), hold(1));
            enum point point = ways[w].hard_after == 0 ? before_notes : before_enter;
            struct admi_txn_step *first = &owner.steps[0];

            clear_space();
            first->limit = 1;
            first->owner = 2;
            owner.steps[2] = hold(2); /* for hard attempts: it must not change any more */
            owner.steps[2].units = 0;
            owner.more = 1;
            good =
                good && start(&owner, point, 1) && run_now(1, NEVER_HARD, hold(2)) == ADMI_TXN_DONE;
            atomic_store(&words[0],
                         ADMI_TXN_WORD_OF(there)); /* the new owner's: full, or as it was */
            finish(&owner);
            good = good && owner.end == ADMI_TXN_LOST && values_are(there, 0);
        }
    }
    ok(good, "a word that changed hands is neither charged nor does it refuse");
}

/* Plain memory, written before a transaction and read after it was seen: the thread sanitizer knows
 * whether one comes after the other. */
static uint64_t plain_memory;

static void *write_and_hold(void *self)
{
    struct admi_txn txn = txn_of(&ways[NEVER_HARD], 0);
    struct admi_txn_step both[2] = { hold(0), hold(1) };

    (void)self;
    plain_memory = 7;
    return once(&txn, both, 2, 0) == ADMI_TXN_DONE ? &plain_memory : NULL;
}

static void what_came_before_is_seen(void)
{
    struct admi_txn txn = txn_of(&ways[NEVER_HARD], 1);
    pthread_t thread;
    void *written;
    int good;

    clear_space();
    if (pthread_create(&thread, NULL, write_and_hold, NULL) != 0)
        abort();
    while (admi_txn_read(&txn, 1) == 0)
        (void)sched_yield();
    good = plain_memory == 7;
    (void)pthread_join(thread, &written);
    ok(good && written != NULL, "who sees a transaction sees what came before it");
}

/* ---- the guard ---- */

/* All references are in and the guard was looked at: who changes it finds the attempt and aborts
 * it, so that nothing of the time before commits after the change. */
static void a_change_of_the_guard_ends_what_is_open(void)
{
    struct actor owner = runner(0, NEVER_HARD, hold(0), hold(1));
    struct admi_txn txn = txn_of(&ways[NEVER_HARD], 1);
    int good;

    clear_space();
    good = start(&owner, before_commit, 1) && admi_txn_claim(&txn) && admi_txn_change(&txn, 0);
    admi_txn_unclaim(&txn);
    good = good && admi_txn_read_guard(&txn) == 2 && !admi_txn_change(&txn, 0);
    finish(&owner);
    good = good && owner.end == ADMI_TXN_STALE && values_are(0, 0);
    txn.guarded = 0;
    good = good && once(&txn, owner.steps, 2, 0) == ADMI_TXN_STALE && values_are(0, 0);
    txn = txn_of(&ways[AT_ONCE], 1);
    good = good && once(&txn, owner.steps, 2, 0) == ADMI_TXN_STALE && values_are(0, 0);
    txn.guarded = 2;
    ok(good && once(&txn, owner.steps, 2, 0) == ADMI_TXN_DONE && values_are(1, 1),
       "what was made for one guard does not commit under the next");
}

/* A hard attempt that is active keeps the guard as it is; whoever wants to change it helps first. */
static void a_change_of_the_guard_waits_for_nobody(void)
{
    int good = 1;

    for (uint32_t occurrence = 1; occurrence <= 3; occurrence++) {
        struct actor owner = runner(0, AT_ONCE, hold(0), hold(1));
        struct admi_txn txn = txn_of(&ways[NEVER_HARD], 1);

        clear_space();
        good = good && start(&owner, after_conditional, occurrence) && admi_txn_claim(&txn) &&
               admi_txn_change(&txn, 0);
        admi_txn_unclaim(&txn);
        good = good && admi_txn_read_guard(&txn) == 2;
        finish(&owner);
        /* It was helped to its end before the guard changed. */
        good = good && owner.end == ADMI_TXN_DONE && values_are(1, 1);
    }
    ok(good, "a hard attempt is helped to its end before the guard changes");
}

static void a_change_that_is_stopped_is_finished(void)
{
    static const enum point points[] = { before_odd, abort_all, before_even };
    int good = 1;

    for (uint32_t i = 0; i < 3; i++) {
        struct actor changer = runner(0, NEVER_HARD, hold(0), hold(1));
        struct admi_txn txn = txn_of(&ways[NEVER_HARD], 1);
        struct admi_txn_step both[2] = { hold(0), hold(1) };

        clear_space();
        changer.deed = CHANGE;
        good = good && start(&changer, points[i], 1);
        txn.guarded = admi_txn_read_guard(&txn);
        good = good && txn.guarded == (points[i] == before_odd ? 0u : 2u) &&
               once(&txn, both, 2, 0) == ADMI_TXN_DONE;
        finish(&changer);
        good = good && changer.end == 1 && admi_txn_read_guard(&txn) == 2 && values_are(1, 1);
    }
    ok(good, "a change of the guard that is stopped is finished by who comes next");
}

/* ---- a thread that is stopped anywhere ---- */

static int others_go_on(const struct way *way, uint64_t pairs)
{
    const struct admi_txn_step hold_pair[2] = { hold(0), hold(1) },
                               give_pair[2] = { give(1), give(0) };
    struct admi_txn txn = txn_of(way, 1);
    int good = 1;

    for (uint64_t n = 0; n < pairs; n++) {
        txn.guarded = admi_txn_read_guard(&txn);
        good = good && once(&txn, hold_pair, 2, 0) == ADMI_TXN_DONE &&
               once(&txn, give_pair, 2, 0) == ADMI_TXN_DONE;
    }
    return good;
}

static void a_stopped_thread_stops_nobody(void)
{
    uint64_t pairs = 5000 * scale, met = 0;
    int good = 1;
    char reached[512] = "";

    for (uint32_t w = 0; w < WAYS; w++) {
        for (uint32_t p = 0; p < POINTS; p++) {
            for (uint32_t occurrence = 1; occurrence <= 4; occurrence++) {
                struct actor actor = runner(0, w, hold(0), hold(1));
                int change = p == abort_all || p == before_odd || p == before_even;

                clear_space();
                actor.deed = change ? CHANGE : RUN;
                if (start(&actor, (enum point)p, occurrence)) {
                    met++;
                    if (strstr(reached, point_names[p]) == NULL)
                        (void)snprintf(reached + strlen(reached), sizeof reached - strlen(reached),
                                       " %s", point_names[p]);
                    good = good && others_go_on(&ways[w], pairs);
                }
                finish(&actor);
                /* Only the guard may have ended it otherwise, and nobody changed that here. */
                good = good && actor.end == (change ? 1 : ADMI_TXN_DONE) &&
                       (change ? values_are(0, 0) : values_are(1, 1));
            }
        }
    }
    printf("# stopped %" PRIu64 " times, at:%s; each time another thread did %" PRIu64 " pairs\n",
           met, reached, pairs);
    ok(good && met >= 40, "whoever is stopped at any step, others go on, and then it ends right");
}

int main(void)
{
    begin();
    the_status_decides();
    a_late_helper_puts_nothing_in();
    what_a_helper_left_is_decided_before_reuse();
    notes_are_not_taken_for_an_attempt();
    a_free_context_says_nothing();
    a_word_that_changed_hands_is_lost();
    what_came_before_is_seen();
    a_change_of_the_guard_ends_what_is_open();
    a_change_of_the_guard_waits_for_nobody();
    a_change_that_is_stopped_is_finished();
    a_stopped_thread_stops_nobody();
    return end();
}
