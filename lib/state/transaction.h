/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A transaction over several 64-bit words: every word passes its test and all change at one moment,
 * or nothing changes. Lock-free, no allocation, no reclamation: descriptors (contexts) are borrowed
 * for an operation and used again. Stand-alone, without intrinsics, so that a model checker can
 * include it.
 *
 * The includer defines
 *      struct admi_txn_step { uint32_t word; ... };        the word, and what is asked of it
 *      static inline int admi_txn_test(const struct admi_txn_step *step, uint64_t value,
 *                                      uint64_t *changed);
 *                                      1: passes, and the value to put there. A pure function
 *      static inline int admi_txn_still(const struct admi_txn *txn,
 *                                       const struct admi_txn_step *step);
 *                                      1: the word still is what the step was made for
 * and may define ADMI_TXN_WORDS_MAX, ADMI_TXN_AT(point) (for tests: a thread may be stopped there)
 * and ADMI_TXN_PAUSE().
 *
 * How it goes, for the owner of a context:
 *      fast    active; for each word: test it, note old and new, swap a reference in; then one swap
 *              of the status commits, and the references are swapped for the new values. Only the
 *              owner puts its references in. Others read through them, abort the attempt, or
 *              remove them when it is decided: each by a swap that expects that very reference,
 *              which is never used twice. So nothing of an attempt can come late.
 *      hard    after hard_after attempts: old and new of all words are noted first, then the
 *              attempt is published and takes the guard (below) and then its words; whoever meets
 *              a reference helps to the end. Helpers can come late, so each of their references
 *              goes in by a conditional swap that looks at the status once more after it is in.
 *
 * Every word is in one of three states, told by its two low bits.
 *      00 value       62 bits
 *      01 reference   to an entry of a context's attempt: its old value until the status says
 *                     committed, then its new one
 *      10 conditional a reference that a helper is putting in: still the old value
 *
 * A refused transaction is refused at the moment at which the word that failed was read; an allowed
 * one happens at the moment at which the status changed.
 *
 * One word may be a guard: all transactions need it to be what they were made for, and it changes
 * seldom. They read it and write nothing, so it costs no line transfer; who changes it pays: see
 * admi_txn_change(). All orders are acquire, release or both, but for two places at which two
 * threads write one word each and look at the other's: the guard, and a helper that is late. Those
 * are sequentially consistent. There are no fences of their own, which the thread sanitizer would
 * not understand.
 */
#ifndef ADMI_TRANSACTION_H
#define ADMI_TRANSACTION_H

#include "transaction_help.h"

/* ---- the guard ---- */

/* Why transactions need not write the guard. An attempt becomes active, then (all its references
 * being in) it looks at the guard, then it commits. Whoever changes the guard makes it odd first,
 * then aborts every fast attempt that it finds active, and then makes it even again. An attempt
 * that was not found active begins later, and will see the odd value or the next even one, because
 * beginning, making odd, looking for attempts and looking at the guard have one order
 * (sequentially consistent): weaker, and both could miss each other. Hard attempts have the guard
 * among their words. */

static inline void admi_txn_finish_change(const struct admi_txn *txn, uint64_t odd)
{
    uint64_t met = ADMI_TXN_WORD_OF(odd);

    /* Who finishes another's change saw it by a load that is not in that order. */
    if (admi_txn_load_ordered(&txn->words[txn->guard]) != met)
        return;
    for (uint32_t i = 0; i < txn->context_count; i++) {
        _Atomic uint64_t *status = &txn->contexts[i].status;
        uint64_t seen = atomic_load_explicit(status, memory_order_seq_cst);

        ADMI_TXN_AT(abort_all);
        if (ADMI_TXN_STATUS_STATE(seen) == ADMI_TXN_ACTIVE && (seen & ADMI_TXN_HARD) == 0)
            (void)admi_txn_swap(status, &seen, ADMI_TXN_STATUS_TO(seen, ADMI_TXN_ABORTED));
    }
    ADMI_TXN_AT(before_even);
    (void)admi_txn_swap(&txn->words[txn->guard], &met, ADMI_TXN_WORD_OF(odd + 1));
}

/* The guard, even. A change that is under way is finished first. */
static inline uint64_t admi_txn_read_guard(const struct admi_txn *txn)
{
    for (;;) {
        uint64_t value = admi_txn_read(txn, txn->guard);

        if ((value & 1) == 0)
            return value;
        admi_txn_finish_change(txn, value);
    }
}

/* Change the guard from an even value to the next one. 1: done, at the moment it became odd or
 * somewhat later, before it is even: nobody who needs the old value commits afterwards, nobody who
 * needs the new one before. 0: it had been changed already. The context must be claimed. */
static inline int admi_txn_change(struct admi_txn *txn, uint64_t from)
{
    for (;;) {
        uint64_t met = admi_txn_load(&txn->words[txn->guard]);

        if (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE) {
            admi_txn_settle(txn, txn->guard, met);
            continue;
        }
        if (ADMI_TXN_VALUE_OF(met) != from) {
            if (ADMI_TXN_VALUE_OF(met) == (from | 1))
                admi_txn_finish_change(txn, from | 1);
            return 0;
        }
        ADMI_TXN_AT(before_odd);
        if (!atomic_compare_exchange_strong_explicit(&txn->words[txn->guard], &met,
                                                     ADMI_TXN_WORD_OF(from | 1),
                                                     memory_order_seq_cst, memory_order_acquire))
            continue;
        admi_txn_finish_change(txn, from | 1);
        return 1;
    }
}

/* ---- the owner's attempts ---- */

/* Borrow a context; its first attempt begins. 0: all are in use. */
static inline int admi_txn_claim(struct admi_txn *txn)
{
    for (uint32_t n = 0; n < txn->context_count; n++) {
        uint32_t at = (txn->self + n) & (txn->context_count - 1);
        uint64_t status = admi_txn_load(&txn->contexts[at].status);

        if (ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_FREE &&
            atomic_compare_exchange_strong_explicit(
                &txn->contexts[at].status, &status,
                ADMI_TXN_STATUS(ADMI_TXN_STATUS_ATTEMPT(status) + 1, ADMI_TXN_ACTIVE),
                memory_order_seq_cst, memory_order_acquire)) {
            txn->self = at;
            return 1;
        }
    }
    return 0;
}

static inline uint64_t admi_txn_attempt(const struct admi_txn *txn)
{
    return ADMI_TXN_STATUS_ATTEMPT(
        atomic_load_explicit(&txn->contexts[txn->self].status, memory_order_relaxed));
}

/* Give it back. None of its references is anywhere. */
static inline void admi_txn_unclaim(const struct admi_txn *txn)
{
    admi_txn_store(&txn->contexts[txn->self].status,
                   ADMI_TXN_STATUS(admi_txn_attempt(txn), ADMI_TXN_FREE));
}

static inline void admi_txn_take_out(const struct admi_txn *txn, uint64_t attempt, uint32_t count,
                                     int committed)
{
    struct admi_txn_context *self = &txn->contexts[txn->self];

    while (count-- > 0) { /* the last in are the ones others wait for */
        struct admi_txn_entry *entry = &self->entries[count];
        uint64_t word = atomic_load_explicit(&entry->word, memory_order_relaxed);
        uint64_t reference = admi_txn_reference(attempt, txn->self, count);

        ADMI_TXN_AT(take_out);
        (void)admi_txn_swap(
            &txn->words[word], &reference,
            atomic_load_explicit(committed ? &entry->to : &entry->from, memory_order_relaxed));
    }
}

/* Put a reference in for one step. */
static inline int admi_txn_enter(struct admi_txn *txn, const struct admi_txn_step *step,
                                 uint64_t attempt, uint32_t entry)
{
    struct admi_txn_context *self = &txn->contexts[txn->self];
    _Atomic uint64_t *word = &txn->words[step->word];

    for (;;) {
        uint64_t met = admi_txn_load(word), changed = 0;

        if (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE) {
            admi_txn_settle(txn, step->word, met);
            if (!admi_txn_is_open(admi_txn_load(&self->status), attempt))
                return ADMI_TXN_AGAIN;
            continue;
        }
        if (!admi_txn_test(step, ADMI_TXN_VALUE_OF(met), &changed))
            return ADMI_TXN_REFUSED;
        admi_txn_store(&self->entries[entry].word, step->word);
        admi_txn_store(&self->entries[entry].from, met);
        admi_txn_store(&self->entries[entry].to, ADMI_TXN_WORD_OF(changed));
        ADMI_TXN_AT(before_enter);
        if (admi_txn_swap(word, &met, admi_txn_reference(attempt, txn->self, entry)))
            return ADMI_TXN_DONE;
        txn->counts.retries++;
    }
}

/* Is the guard what it was when the steps were made? */
static inline int admi_txn_is_guarded(const struct admi_txn *txn)
{
    /* Not by one load alone: what a hard attempt has put into the guard is the same value. */
    return atomic_load_explicit(&txn->words[txn->guard], memory_order_seq_cst) ==
               ADMI_TXN_WORD_OF(txn->guarded) ||
           admi_txn_read_guard(txn) == txn->guarded;
}

static inline int admi_txn_enter_all(struct admi_txn *txn, const struct admi_txn_step *steps,
                                     uint32_t count, uint64_t attempt, uint32_t *entered)
{
    for (uint32_t i = 0; i < count; i++) {
        int end = admi_txn_enter(txn, &steps[i], attempt, i);

        txn->failed = i;
        if (end == ADMI_TXN_DONE)
            *entered = i + 1;
        /* The word may have changed hands between the look-up and now: then it was another's that
         * passed or refused. While the reference is in, it cannot. */
        if (end != ADMI_TXN_AGAIN && !admi_txn_still(txn, &steps[i]))
            return ADMI_TXN_LOST;
        if (end != ADMI_TXN_DONE)
            return end;
    }
    return ADMI_TXN_DONE;
}

static inline int admi_txn_fast(struct admi_txn *txn, const struct admi_txn_step *steps,
                                uint32_t count)
{
    struct admi_txn_context *self = &txn->contexts[txn->self];
    uint64_t attempt = admi_txn_attempt(txn);
    uint64_t status = ADMI_TXN_STATUS(attempt, ADMI_TXN_ACTIVE);
    uint32_t entered = 0;
    int end = admi_txn_enter_all(txn, steps, count, attempt, &entered);

    /* A refusal has to be one under this guard, too. */
    if (end != ADMI_TXN_AGAIN && !admi_txn_is_guarded(txn))
        end = ADMI_TXN_STALE;
    ADMI_TXN_AT(before_commit);
    if (!admi_txn_swap(&self->status, &status,
                       ADMI_TXN_STATUS_TO(status, end == ADMI_TXN_DONE ? ADMI_TXN_COMMITTED
                                                                       : ADMI_TXN_ABORTED)) &&
        end == ADMI_TXN_DONE)
        end = ADMI_TXN_AGAIN; /* somebody aborted it */
    admi_txn_take_out(txn, attempt, entered, end == ADMI_TXN_DONE);
    return end;
}

/* Note one step of a hard attempt. Nothing is in its word yet, so nothing keeps it as it is. */
static inline int admi_txn_note(struct admi_txn *txn, const struct admi_txn_step *step,
                                struct admi_txn_entry *entry)
{
    for (;;) {
        uint64_t met = admi_txn_load(&txn->words[step->word]), changed = 0;

        if (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE) {
            admi_txn_settle(txn, step->word, met);
            continue;
        }
        if (!admi_txn_still(txn, step)) /* afterwards it is one of the words that must stay */
            return ADMI_TXN_LOST;
        if (!admi_txn_test(step, ADMI_TXN_VALUE_OF(met), &changed))
            return ADMI_TXN_REFUSED;
        admi_txn_store(&entry->word, step->word);
        admi_txn_store(&entry->from, met);
        admi_txn_store(&entry->to, ADMI_TXN_WORD_OF(changed));
        return ADMI_TXN_DONE;
    }
}

/* The guard comes first, so a hard attempt that has any word has the guard: no two wait for each
 * other's words, in whatever order they have them, and helping one never needs another to be helped
 * for long. */
static inline void admi_txn_note_guard(const struct admi_txn *txn, struct admi_txn_entry *entry)
{
    admi_txn_store(&entry->word, txn->guard);
    admi_txn_store(&entry->from, ADMI_TXN_WORD_OF(txn->guarded));
    admi_txn_store(&entry->to, ADMI_TXN_WORD_OF(txn->guarded));
}

static inline int admi_txn_hard(struct admi_txn *txn, const struct admi_txn_step *steps,
                                uint32_t count)
{
    struct admi_txn_context *self = &txn->contexts[txn->self];
    uint64_t attempt = admi_txn_attempt(txn);
    uint64_t status;

    txn->counts.hard++;
    /* A number of its own for the notes: whoever still reads the last attempt's entries will see
     * that they are not that any more, and nobody takes the notes for an attempt. */
    admi_txn_store(&self->status, ADMI_TXN_STATUS(attempt + 1, ADMI_TXN_ABORTED));
    ADMI_TXN_AT(before_notes);
    admi_txn_note_guard(txn, &self->entries[0]);
    for (uint32_t i = 0; i < count; i++) {
        int end = admi_txn_note(txn, &steps[i], &self->entries[i + 1]);

        txn->failed = i;
        if (end != ADMI_TXN_DONE)
            return admi_txn_is_guarded(txn) ? end : ADMI_TXN_STALE;
    }
    if (!admi_txn_is_guarded(txn))
        return ADMI_TXN_STALE; /* or it would be tried for ever */
    admi_txn_store(&self->count, count + 1);
    status = ADMI_TXN_STATUS(attempt + 2, ADMI_TXN_ACTIVE) | ADMI_TXN_HARD;
    ADMI_TXN_AT(before_publish);
    admi_txn_store(&self->status, status);
    admi_txn_help(txn, txn->self, status);
    return ADMI_TXN_STATUS_STATE(admi_txn_load(&self->status)) == ADMI_TXN_COMMITTED
               ? ADMI_TXN_DONE
               : ADMI_TXN_AGAIN;
}

/**
 * Run a transaction to its end, on a claimed context. No two steps name one word, none the guard.
 * steps[count] … are for hard attempts alone: words that must stay as they are (their test passes
 * and changes nothing), or what the steps were made for may change hands unseen. At most
 * ADMI_TXN_WORDS_MAX - 1 altogether.
 * Returns ADMI_TXN_DONE, all words changed; ADMI_TXN_REFUSED, steps[txn->failed] did not pass;
 * ADMI_TXN_LOST, its word is not what it was made for: look it up again; ADMI_TXN_STALE, the guard
 * has changed: begin again.
 */
static inline int admi_txn_run(struct admi_txn *txn, const struct admi_txn_step *steps,
                               uint32_t count, uint32_t more)
{
    for (uint32_t attempts = 0;; attempts++) {
        struct admi_txn_context *self = &txn->contexts[txn->self];
        uint64_t attempt = admi_txn_attempt(txn) + 1;
        int end;

        if (attempts >= txn->hard_after) {
            end = admi_txn_hard(txn, steps, count + more);
        } else {
            /* The first one began when the context was claimed, unless it has run before. */
            if (ADMI_TXN_STATUS_STATE(atomic_load_explicit(&self->status, memory_order_relaxed)) !=
                ADMI_TXN_ACTIVE)
                atomic_store_explicit(&self->status, ADMI_TXN_STATUS(attempt, ADMI_TXN_ACTIVE),
                                      memory_order_seq_cst);
            end = admi_txn_fast(txn, steps, count);
        }
        if (end != ADMI_TXN_AGAIN)
            return end;
        txn->counts.retries++;
    }
}

#endif
