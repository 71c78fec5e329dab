/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of memory_deadline.h. */
#include "state/memory_deadline.h"

static uint64_t round_up(uint64_t value)
{
    return (value + 63) / 64 * 64;
}

void admi_memory_deadlines_init(struct memory_deadlines *deadlines, uint64_t count, uint64_t *end)
{
    uint64_t below = count;

    *deadlines = (struct memory_deadlines){ .count = count };
    deadlines->deadlines_at = round_up(*end);
    *end = deadlines->deadlines_at + count * sizeof(uint64_t);
    do {
        uint64_t level = deadlines->levels++;

        below = (below + MEMORY_DEADLINE_FANOUT - 1) / MEMORY_DEADLINE_FANOUT;
        deadlines->bound_count[level] = below;
        deadlines->bounds_at[level] = round_up(*end);
        *end = deadlines->bounds_at[level] + below * sizeof(uint64_t);
    } while (below > 1);
}

void admi_memory_deadlines_clear(struct memory_deadlines *deadlines)
{
    for (uint64_t i = 0; i < deadlines->count; i++)
        atomic_init(admi_memory_deadline(deadlines, i), ADMI_TXN_WORD_OF(MEMORY_DEADLINE_NEVER));
    for (uint64_t level = 0; level < deadlines->levels; level++) {
        for (uint64_t i = 0; i < deadlines->bound_count[level]; i++)
            atomic_init(admi_memory_bound(deadlines, level, i),
                        MEMORY_BOUND_OF(MEMORY_DEADLINE_NEVER));
    }
}

/* ---- lower ---- */

/* No later than this, and no mark: who is raising it has not seen it. */
static void lower(_Atomic uint64_t *bound, uint64_t time)
{
    uint64_t met = atomic_load_explicit(bound, memory_order_seq_cst);

    for (;;) {
        uint64_t wanted = MEMORY_BOUND_TIME(met) < time ? MEMORY_BOUND_TIME(met) : time;

        if (met == wanted)
            return;
        ADMI_TXN_AT(lowering);
        if (atomic_compare_exchange_weak_explicit(bound, &met, wanted, memory_order_seq_cst,
                                                  memory_order_seq_cst))
            return;
    }
}

void admi_memory_deadline_set(struct memory_deadlines *deadlines, uint64_t place, uint64_t deadline)
{
    uint64_t time;

    if (deadline > MEMORY_DEADLINE_NEVER)
        deadline = MEMORY_DEADLINE_NEVER;
    time = MEMORY_BOUND_OF(deadline);
    atomic_store_explicit(admi_memory_deadline(deadlines, place), ADMI_TXN_WORD_OF(deadline),
                          memory_order_seq_cst);
    /* All levels, also above one that is low enough: who lowered it may not have come further. */
    for (uint64_t level = 0; level < deadlines->levels; level++) {
        place /= MEMORY_DEADLINE_FANOUT;
        lower(admi_memory_bound(deadlines, level, place), time);
    }
}

/* ---- raise ---- */

static uint64_t read_deadline(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                              uint64_t place)
{
    const _Atomic uint64_t *deadline = admi_memory_deadline(deadlines, place);
    uint64_t met = atomic_load_explicit(deadline, memory_order_seq_cst);

    if (ADMI_TXN_TAG(met) == ADMI_TXN_VALUE)
        return ADMI_TXN_VALUE_OF(met);
    return admi_txn_read(txn, (uint32_t)(deadline - txn->words));
}

/* The least of what is below a bound, as a bound. */
static uint64_t least_below(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                            uint64_t level, uint64_t i)
{
    uint64_t least = MEMORY_BOUND_OF(MEMORY_DEADLINE_NEVER);
    uint64_t below = level == 0 ? deadlines->count : deadlines->bound_count[level - 1];
    uint64_t first = i * MEMORY_DEADLINE_FANOUT;

    for (uint64_t at = first; at < below && at < first + MEMORY_DEADLINE_FANOUT; at++) {
        uint64_t time;

        if (level == 0)
            time = MEMORY_BOUND_OF(read_deadline(deadlines, txn, at));
        else
            time = MEMORY_BOUND_TIME(atomic_load_explicit(
                admi_memory_bound(deadlines, level - 1, at), memory_order_seq_cst));
        if (time < least)
            least = time;
    }
    return least;
}

static void raise_bound(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                        uint64_t level, uint64_t i)
{
    _Atomic uint64_t *bound = admi_memory_bound(deadlines, level, i);
    uint64_t met = atomic_load_explicit(bound, memory_order_seq_cst);
    uint64_t marked = MEMORY_BOUND_TIME(met) | (txn->self + 1);
    uint64_t least;

    if (!atomic_compare_exchange_strong_explicit(bound, &met, marked, memory_order_seq_cst,
                                                 memory_order_seq_cst))
        return; /* somebody lowered it, or raises it */
    ADMI_TXN_AT(marked_bound);
    least = least_below(deadlines, txn, level, i);
    ADMI_TXN_AT(looked_below);
    (void)atomic_compare_exchange_strong_explicit(bound, &marked, least, memory_order_seq_cst,
                                                  memory_order_seq_cst);
}

/* ---- visit ---- */

static void visit_places(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                         uint64_t segment, uint64_t now, void (*visit)(void *self, uint64_t place),
                         void *self)
{
    uint64_t first = segment * MEMORY_DEADLINE_FANOUT;

    for (uint64_t place = first; place < deadlines->count && place < first + MEMORY_DEADLINE_FANOUT;
         place++) {
        if (read_deadline(deadlines, txn, place) <= now)
            visit(self, place);
    }
}

/* Down to what is due, and up again, raising bounds on the way. at[level] is the next child to look
 * at; no recursion, so that the stack is known. */
void admi_memory_deadlines_visit(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                                 uint64_t now, void (*visit)(void *self, uint64_t place),
                                 void *self)
{
    uint64_t root = deadlines->levels - 1, level = root;
    uint64_t node[MEMORY_DEADLINE_LEVELS] = { 0 }, at[MEMORY_DEADLINE_LEVELS] = { 0 };

    for (;;) {
        if (level == 0)
            visit_places(deadlines, txn, node[0], now, visit, self);
        while (level > 0 && at[level] < MEMORY_DEADLINE_FANOUT) {
            uint64_t child = node[level] * MEMORY_DEADLINE_FANOUT + at[level]++;

            if (child >= deadlines->bound_count[level - 1])
                break;
            if (MEMORY_BOUND_TIME(atomic_load_explicit(
                    admi_memory_bound(deadlines, level - 1, child), memory_order_seq_cst)) >
                MEMORY_BOUND_OF(now))
                continue;
            level--;
            node[level] = child;
            at[level] = 0;
            if (level == 0)
                visit_places(deadlines, txn, child, now, visit, self);
        }
        raise_bound(deadlines, txn, level, node[level]);
        if (level == root)
            return;
        level++;
    }
}
