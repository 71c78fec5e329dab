/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anybody may do with anybody's transaction: read through it, abort it, help it, clear it
 * away.
 * The whole story is in state/transaction.h.
 */
#ifndef ADMI_TRANSACTION_HELP_H
#define ADMI_TRANSACTION_HELP_H

#include <stdatomic.h>
#include <stdint.h>

#ifndef ADMI_TXN_WORDS_MAX
#define ADMI_TXN_WORDS_MAX 128u
#endif
#ifndef ADMI_TXN_AT
#define ADMI_TXN_AT(point) ((void)0)
#endif
#ifndef ADMI_TXN_PAUSE
#define ADMI_TXN_PAUSE() ((void)0)
#endif

/* ---- words ---- */

enum { ADMI_TXN_VALUE = 0, ADMI_TXN_REFERENCE = 1, ADMI_TXN_CONDITIONAL = 2 };

#define ADMI_TXN_TAG(word)      ((word)&3u)
#define ADMI_TXN_WORD_OF(value) ((uint64_t)(value) << 2)
#define ADMI_TXN_VALUE_OF(word) ((word) >> 2)
#define ADMI_TXN_VALUE_MAX      (UINT64_MAX >> 2)

/* reference: attempt 45 | context 10 | entry 7 | tag 2. An attempt number comes again after 2^45
 * attempts of one context: harmful only to a thread that sleeps inside one call for exactly so
 * long, which is three weeks at 20 million a second. */
#define ADMI_TXN_CONTEXTS_MAX     1024u
#define ADMI_TXN_CONTEXT_OF(word) ((uint32_t)((word) >> 9) & (ADMI_TXN_CONTEXTS_MAX - 1))
#define ADMI_TXN_ENTRY_OF(word)   ((uint32_t)((word) >> 2) & 127u)
#define ADMI_TXN_ATTEMPT_OF(word) ((word) >> 19)

/* status: attempt 46 | hard 1 | state 2. Zeroed memory is a context that nobody has. */
enum { ADMI_TXN_FREE = 0, ADMI_TXN_ACTIVE = 1, ADMI_TXN_COMMITTED = 2, ADMI_TXN_ABORTED = 3 };

#define ADMI_TXN_HARD                   UINT64_C(4)
#define ADMI_TXN_STATUS(attempt, state) ((uint64_t)(attempt) << 3 | (uint64_t)(state))
#define ADMI_TXN_STATUS_ATTEMPT(s)      ((s) >> 3)
#define ADMI_TXN_STATUS_STATE(s)        ((uint32_t)((s)&3u))
#define ADMI_TXN_STATUS_TO(s, state)    (((s) & ~UINT64_C(3)) | (uint64_t)(state))

struct admi_txn_entry {
    _Atomic uint64_t word; /* index */
    _Atomic uint64_t from;
    _Atomic uint64_t to;
};

/* What others may look at. */
struct admi_txn_context {
    _Atomic uint64_t status;
    _Atomic uint64_t count; /* hard: entries in use */
    struct admi_txn_entry entries[ADMI_TXN_WORDS_MAX];
    /* the conditional swap under way */
    _Atomic uint64_t swap; /* its number */
    _Atomic uint64_t swap_word;
    _Atomic uint64_t swap_context; /* whose status */
    _Atomic uint64_t swap_status;  /* must be this */
    _Atomic uint64_t swap_from;
    _Atomic uint64_t swap_to;
};

struct admi_txn_counts {
    uint64_t retries, aborted, hard, helped;
};

/* What an operation has in its hands while it uses a context. */
struct admi_txn {
    _Atomic uint64_t *words;
    struct admi_txn_context *contexts;
    uint32_t context_count; /* a power of two, at most ADMI_TXN_CONTEXTS_MAX */
    uint32_t self;          /* the context; before admi_txn_claim(): where to begin to look */
    uint32_t hard_after;    /* fast attempts before a hard one */
    uint32_t back_off;      /* pauses before somebody's attempt is aborted, at most */
    uint32_t guard;         /* index of the guard word */
    uint32_t failed;        /* out: the step that was refused, or whose word is not its own */
    uint64_t guarded;       /* what the guard must be: even */
    struct admi_txn_counts counts;
};

enum {
    ADMI_TXN_DONE = 0,
    ADMI_TXN_REFUSED = 1, /* a step did not pass */
    ADMI_TXN_LOST = 2,    /* a word is not what its step was made for */
    ADMI_TXN_STALE = 3,   /* the guard is not what it was */
    ADMI_TXN_AGAIN = 4    /* inside: somebody was in the way */
};

static inline int admi_txn_test(const struct admi_txn_step *step, uint64_t value,
                                uint64_t *changed);
static inline int admi_txn_still(const struct admi_txn *txn, const struct admi_txn_step *step);

static inline uint64_t admi_txn_load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static inline void admi_txn_store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

#ifndef ADMI_TXN_SWAP_ORDER
#define ADMI_TXN_SWAP_ORDER memory_order_acq_rel
#endif

static inline int admi_txn_swap(_Atomic uint64_t *word, uint64_t *expected, uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit(word, expected, desired, ADMI_TXN_SWAP_ORDER,
                                                   memory_order_acquire);
}

/* These have one order, which all threads agree on. Where two threads write one word each and then
 * look at the other's, acquire and release let both miss it. */
static inline uint64_t admi_txn_load_ordered(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_seq_cst);
}

static inline int admi_txn_swap_ordered(_Atomic uint64_t *word, uint64_t *expected,
                                        uint64_t desired)
{
    return atomic_compare_exchange_strong_explicit(word, expected, desired, memory_order_seq_cst,
                                                   memory_order_acquire);
}

static inline uint64_t admi_txn_reference(uint64_t attempt, uint32_t context, uint32_t entry)
{
    return attempt << 19 | (uint64_t)context << 9 | (uint64_t)entry << 2 | ADMI_TXN_REFERENCE;
}

static inline int admi_txn_is_open(uint64_t status, uint64_t attempt)
{
    return ADMI_TXN_STATUS_ATTEMPT(status) == attempt &&
           ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_ACTIVE;
}

/* ---- conditional swaps: a helper's way to put a reference in ---- */

/* A conditional word names the context that makes the swap, and the number of the swap. */
static inline uint64_t admi_txn_conditional(uint64_t swap, uint32_t context)
{
    return swap << 19 | (uint64_t)context << 9 | ADMI_TXN_CONDITIONAL;
}

/* Decide a conditional word that was met: the reference goes in if the attempt is still active,
 * else the old value comes back. Any thread, any number of times. */
static inline void admi_txn_decide(const struct admi_txn *txn, uint64_t met)
{
    const struct admi_txn_context *by = &txn->contexts[ADMI_TXN_CONTEXT_OF(met)];
    uint64_t word = admi_txn_load(&by->swap_word);
    uint64_t context = admi_txn_load(&by->swap_context);
    uint64_t status = admi_txn_load(&by->swap_status);
    uint64_t from = admi_txn_load(&by->swap_from);
    uint64_t to = admi_txn_load(&by->swap_to);
    int active;

    /* All that was read belongs to this swap, or the number has moved on and it is decided. */
    if (admi_txn_load(&by->swap) != ADMI_TXN_ATTEMPT_OF(met))
        return;
    ADMI_TXN_AT(decide);
    /* Who met it did so by any load; the argument of admi_txn_clean() needs an ordered one. */
    if (admi_txn_load_ordered(&txn->words[word]) != met)
        return;
    active = admi_txn_load_ordered(&txn->contexts[context].status) == status;
    ADMI_TXN_AT(decided);
    (void)admi_txn_swap(&txn->words[word], &met, active ? to : from);
}

/* ---- reading ---- */

/* The value now, without writing anything. */
static inline uint64_t admi_txn_read(const struct admi_txn *txn, uint32_t word)
{
    for (;;) {
        uint64_t met = admi_txn_load(&txn->words[word]);
        const struct admi_txn_context *owner = &txn->contexts[ADMI_TXN_CONTEXT_OF(met)];
        uint64_t from, to, status;

        if (ADMI_TXN_TAG(met) == ADMI_TXN_VALUE)
            return ADMI_TXN_VALUE_OF(met);
        ADMI_TXN_AT(reading);
        if (ADMI_TXN_TAG(met) == ADMI_TXN_CONDITIONAL) {
            from = admi_txn_load(&owner->swap_from);
            if (admi_txn_load(&owner->swap) == ADMI_TXN_ATTEMPT_OF(met))
                return ADMI_TXN_VALUE_OF(from);
            continue;
        }
        from = admi_txn_load(&owner->entries[ADMI_TXN_ENTRY_OF(met)].from);
        to = admi_txn_load(&owner->entries[ADMI_TXN_ENTRY_OF(met)].to);
        status = admi_txn_load(&owner->status);
        /* What was read is this attempt's if the status still is. A free context has none: its
         * last attempt's references are gone, and nobody knows any more how it ended. */
        if (ADMI_TXN_STATUS_ATTEMPT(status) == ADMI_TXN_ATTEMPT_OF(met) &&
            ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_FREE)
            return ADMI_TXN_VALUE_OF(ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_COMMITTED ? to
                                                                                         : from);
    }
}

/* ---- meeting others ---- */

/* What a decided attempt leaves in a word. */
static inline void admi_txn_clear(const struct admi_txn *txn, uint32_t word, uint64_t met,
                                  uint64_t status)
{
    const struct admi_txn_context *owner = &txn->contexts[ADMI_TXN_CONTEXT_OF(met)];
    const struct admi_txn_entry *entry = &owner->entries[ADMI_TXN_ENTRY_OF(met)];
    uint64_t left = ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_COMMITTED
                        ? admi_txn_load(&entry->to)
                        : admi_txn_load(&entry->from);

    /* If the entry was another attempt's by now, the reference is gone as well, and this fails. */
    (void)admi_txn_swap(&txn->words[word], &met, left);
}

/* Somebody's reference or conditional word is in the way. 1: it is not any more, or not that one.
 * 0: it belongs to a hard attempt that is active, whose status is written: help it. */
static inline int admi_txn_meet(struct admi_txn *txn, uint32_t word, uint64_t met,
                                uint64_t *out_status)
{
    struct admi_txn_context *owner = &txn->contexts[ADMI_TXN_CONTEXT_OF(met)];
    uint64_t attempt = ADMI_TXN_ATTEMPT_OF(met);
    uint64_t status;

    if (ADMI_TXN_TAG(met) == ADMI_TXN_CONDITIONAL) {
        admi_txn_decide(txn, met);
        return 1;
    }
    status = admi_txn_load(&owner->status);
    /* Wait without touching the owner's lines any more than this, or it is slowed down itself. */
    for (uint32_t pauses = 1;
         pauses <= txn->back_off && status == ADMI_TXN_STATUS(attempt, ADMI_TXN_ACTIVE);
         pauses *= 2) {
        for (uint32_t i = 0; i < pauses; i++)
            ADMI_TXN_PAUSE();
        status = admi_txn_load(&owner->status);
    }
    if (admi_txn_is_open(status, attempt)) {
        if ((status & ADMI_TXN_HARD) != 0) {
            *out_status = status;
            return 0;
        }
        ADMI_TXN_AT(abort_other);
        if (admi_txn_swap(&owner->status, &status, ADMI_TXN_STATUS_TO(status, ADMI_TXN_ABORTED))) {
            status = ADMI_TXN_STATUS_TO(status, ADMI_TXN_ABORTED);
            txn->counts.aborted++;
        }
    }
    if (ADMI_TXN_STATUS_ATTEMPT(status) == attempt &&
        ADMI_TXN_STATUS_STATE(status) != ADMI_TXN_FREE)
        admi_txn_clear(txn, word, met, status);
    return 1;
}

/* ---- hard attempts, by anybody ---- */

/* Put in what is missing. Returns the reference of a hard attempt that must be helped first, or 0:
 * the attempt is decided. */
static inline uint64_t admi_txn_install(struct admi_txn *txn, uint32_t context, uint64_t status,
                                        uint64_t *out_status)
{
    struct admi_txn_context *owner = &txn->contexts[context];
    struct admi_txn_context *self = &txn->contexts[txn->self];
    uint64_t attempt = ADMI_TXN_STATUS_ATTEMPT(status);
    uint64_t count = admi_txn_load(&owner->count);

    /* Another attempt's count does no harm: its status is not ours any more. */
    for (uint32_t i = 0; i < count && i < ADMI_TXN_WORDS_MAX; i++) {
        uint64_t word = admi_txn_load(&owner->entries[i].word);
        uint64_t from = admi_txn_load(&owner->entries[i].from);
        uint64_t reference = admi_txn_reference(attempt, context, i);

        for (;;) {
            uint64_t met, expected = from, swap;

            if (admi_txn_load(&owner->status) != status)
                return 0;
            met = admi_txn_load(&txn->words[word]);
            if (met == reference)
                break;
            if (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE) {
                if (!admi_txn_meet(txn, (uint32_t)word, met, out_status))
                    return met;
                continue;
            }
            if (met != from) {
                ADMI_TXN_AT(before_hard_abort);
                (void)admi_txn_swap_ordered(&owner->status, &status,
                                            ADMI_TXN_STATUS_TO(status, ADMI_TXN_ABORTED));
                return 0;
            }
            swap = admi_txn_load(&self->swap) + 1;
            admi_txn_store(&self->swap, swap); /* first: whoever reads on finds another number */
            admi_txn_store(&self->swap_word, word);
            admi_txn_store(&self->swap_context, context);
            admi_txn_store(&self->swap_status, status);
            admi_txn_store(&self->swap_from, from);
            admi_txn_store(&self->swap_to, reference);
            ADMI_TXN_AT(before_conditional);
            swap = admi_txn_conditional(swap, txn->self);
            if (admi_txn_swap_ordered(&txn->words[word], &expected, swap)) {
                ADMI_TXN_AT(after_conditional);
                admi_txn_decide(txn, swap);
            }
        }
    }
    ADMI_TXN_AT(before_hard_commit);
    (void)admi_txn_swap_ordered(&owner->status, &status,
                                ADMI_TXN_STATUS_TO(status, ADMI_TXN_COMMITTED));
    return 0;
}

/* Take the references of a decided hard attempt out. A conditional word that is met must be decided
 * before the context is used again: whoever is putting it in read the status while it was active,
 * and would leave a reference to an attempt that is over. One that goes in after the word was
 * looked at here finds the status decided: deciding, looking at the word, putting the conditional
 * word in and looking at the status have one order. */
static inline void admi_txn_clean(const struct admi_txn *txn, uint32_t context, uint64_t attempt)
{
    struct admi_txn_context *owner = &txn->contexts[context];
    uint64_t count = admi_txn_load(&owner->count);

    for (uint32_t i = 0; i < count && i < ADMI_TXN_WORDS_MAX; i++) {
        uint64_t word = admi_txn_load(&owner->entries[i].word);
        uint64_t reference = admi_txn_reference(attempt, context, i);

        for (;;) {
            uint64_t status = admi_txn_load_ordered(&owner->status);
            uint64_t met;

            if (ADMI_TXN_STATUS_ATTEMPT(status) != attempt ||
                ADMI_TXN_STATUS_STATE(status) == ADMI_TXN_FREE)
                return;
            met = admi_txn_load_ordered(&txn->words[word]);
            if (ADMI_TXN_TAG(met) == ADMI_TXN_CONDITIONAL) {
                admi_txn_decide(txn, met);
                continue;
            }
            ADMI_TXN_AT(clean);
            if (met == reference)
                admi_txn_clear(txn, (uint32_t)word, met, status);
            break;
        }
    }
}

/* Bring a hard attempt to its end. Another one in its way is brought to its end first: it has the
 * guard, as all have before they have anything else, so it waits for nobody. By iteration: stacks
 * of threads may be small. */
static inline void admi_txn_help(struct admi_txn *txn, uint32_t context, uint64_t status)
{
    uint32_t at = context;
    uint64_t at_status = status;

    for (;;) {
        uint64_t next_status = 0;
        uint64_t blocked = admi_txn_install(txn, at, at_status, &next_status);

        if (blocked != 0) {
            txn->counts.helped++;
            at = ADMI_TXN_CONTEXT_OF(blocked);
            at_status = next_status;
            continue;
        }
        admi_txn_clean(txn, at, ADMI_TXN_STATUS_ATTEMPT(at_status));
        if (at == context && at_status == status)
            return;
        at = context; /* back to where it began */
        at_status = status;
    }
}

/* Whatever is in a word that is no value goes away. */
static inline void admi_txn_settle(struct admi_txn *txn, uint32_t word, uint64_t met)
{
    uint64_t status;

    if (!admi_txn_meet(txn, word, met, &status))
        admi_txn_help(txn, ADMI_TXN_CONTEXT_OF(met), status);
}

#endif
