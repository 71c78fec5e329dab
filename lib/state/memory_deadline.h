/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When is the next one due? A deadline for each place, and above them a tree of lower bounds, each
 * of 64 below. So an operation that is earlier than the root knows with one load that nothing is
 * due. Lock-free; whoever is stopped anywhere leaves bounds that are too low, never too high.
 *
 * A bound is lowered with one swap. To raise one takes two: mark it, look at all below, and swap it
 * if the mark is still there. Whoever adds a deadline writes it first and then looks at the bounds
 * above: a mark that he meets he takes away, and the raise fails; where he meets none, whoever
 * marks later sees his deadline. (Both are sequentially consistent: weaker, and each could miss the
 * other.)
 */
#ifndef ADMI_MEMORY_DEADLINE_H
#define ADMI_MEMORY_DEADLINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "state/memory_word.h"

#define MEMORY_DEADLINE_FANOUT 64u
#define MEMORY_DEADLINE_LEVELS 4u /* 64^4 places at most */
#define MEMORY_DEADLINE_NEVER  ADMI_TXN_VALUE_MAX

/* Deadlines are words of transactions; bounds are not. Distances are in bytes, from this struct. */
struct memory_deadlines {
    uint64_t count;
    uint64_t deadlines_at;
    uint64_t levels; /* of bounds: the last one has one, the root */
    uint64_t bounds_at[MEMORY_DEADLINE_LEVELS];
    uint64_t bound_count[MEMORY_DEADLINE_LEVELS];
};

/* For so many places, from 1 to 2^24, with arrays at *end and behind (a distance from the struct).
 * Touches only the struct. */
void admi_memory_deadlines_init(struct memory_deadlines *deadlines, uint64_t count, uint64_t *end);
/* All deadlines never: writes the arrays. */
void admi_memory_deadlines_clear(struct memory_deadlines *deadlines);

static inline _Atomic uint64_t *admi_memory_deadline(struct memory_deadlines *deadlines,
                                                     uint64_t place)
{
    return (_Atomic uint64_t *)((uintptr_t)deadlines + (uintptr_t)deadlines->deadlines_at) + place;
}

static inline _Atomic uint64_t *admi_memory_bound(struct memory_deadlines *deadlines,
                                                  uint64_t level, uint64_t i)
{
    return (_Atomic uint64_t *)((uintptr_t)deadlines + (uintptr_t)deadlines->bounds_at[level]) + i;
}

/* bound: time in steps of 1024 ns, rounded down, 53 | mark 11. The mark is the context of who is
 * raising it, plus one: nobody else can put that mark there, so it cannot go and come back
 * unseen. */
#define MEMORY_BOUND_MARK_BITS    11u
#define MEMORY_BOUND_OF(deadline) (((deadline) >> 10) << MEMORY_BOUND_MARK_BITS)
#define MEMORY_BOUND_MARK(bound)  ((bound) & ((1u << MEMORY_BOUND_MARK_BITS) - 1))
#define MEMORY_BOUND_TIME(bound)  ((bound) & ~(uint64_t)((1u << MEMORY_BOUND_MARK_BITS) - 1))

static inline bool admi_memory_deadline_is_due(struct memory_deadlines *deadlines, uint64_t now)
{
    return MEMORY_BOUND_TIME(atomic_load_explicit(
               admi_memory_bound(deadlines, deadlines->levels - 1, 0), memory_order_acquire)) <=
           MEMORY_BOUND_OF(now);
}

/* The deadline of a place that is nobody else's now: written, and no bound above it is later. */
void admi_memory_deadline_set(struct memory_deadlines *deadlines, uint64_t place,
                              uint64_t deadline);

/* Visit every place that is due at a time, and then raise the bounds. visit has to see to it that
 * the place is not due any more, or it will be visited again by the next who comes. A deadline that
 * visit moves may only move away.
 * context   a claimed one. */
void admi_memory_deadlines_visit(struct memory_deadlines *deadlines, const struct admi_txn *txn,
                                 uint64_t now, void (*visit)(void *self, uint64_t place),
                                 void *self);

#endif
