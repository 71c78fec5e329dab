/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of an operation: who it goes home to, and how its owner gets it back.
 *
 *      admi_op_begin -> the backend's start -> adm_op_complete, by any thread -> admi_op_drain, by
 * its owner
 *
 * An op may be freed or used again only after admi_op_drain() has returned it (or, begun with
 * admi_op_begin_direct(), once it is complete). Uses library_use[0] to [3]: the home, the link of
 * the home's stack, the status, the state.
 */
#ifndef ADMI_OPERATION_H
#define ADMI_OPERATION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <admit/backend.h>

struct admi_op_home {
    _Atomic(struct adm_op *)
        completed; /* a stack, newest first; only ever taken whole, so no ABA */
    _Atomic uint64_t
        protocol_errors; /* completions of ops that were not the backend's to complete */
};

enum {
    ADMI_OP_IDLE = 0,
    ADMI_OP_STARTED = 1,
    ADMI_OP_DIRECT = 2,
    ADMI_OP_COMPLETING = 3,
    ADMI_OP_COMPLETE = 4
};

static inline void admi_op_begin_as(struct adm_op *op, struct admi_op_home *home, uintptr_t state)
{
    op->library_use[0] = home;
    op->library_use[1] = NULL;
    op->library_use[2] = NULL;
    op->backend_use[0] = NULL;
    op->backend_use[1] = NULL;
    __atomic_store_n((uintptr_t *)(void *)&op->library_use[3], state, __ATOMIC_RELEASE);
}

/* Before start: when it is completed, op goes home and waits for admi_op_drain(). */
static inline void admi_op_begin(struct adm_op *op, struct admi_op_home *home)
{
    admi_op_begin_as(op, home, ADMI_OP_STARTED);
}

/* The same for a backend that completes inside start: op is only marked, never queued, so that
 * threads share nothing. home (may be NULL) counts protocol errors. */
static inline void admi_op_begin_direct(struct adm_op *op, struct admi_op_home *home)
{
    admi_op_begin_as(op, home, ADMI_OP_DIRECT);
}

/* Has adm_op_complete() been called? Then its results may be read by any thread. */
static inline int admi_op_is_complete(const struct adm_op *op)
{
    return __atomic_load_n((const uintptr_t *)(const void *)&op->library_use[3],
                           __ATOMIC_ACQUIRE) == ADMI_OP_COMPLETE;
}

/* The status of a completed op. What a backend has no business to say is ADM_E_BACKEND_RESULT. */
static inline adm_status admi_op_status(const struct adm_op *op)
{
    intptr_t status = (intptr_t)op->library_use[2];

    if (status == ADM_OK || (status <= -300 && status >= -399))
        return (adm_status)status;
    return ADM_E_BACKEND_RESULT;
}

static inline struct adm_op *admi_op_next(const struct adm_op *op)
{
    return op->library_use[1];
}

/* All ops that came home, oldest first, linked by admi_op_next(); NULL: none. Any thread; each op
 * is returned once. */
static inline struct adm_op *admi_op_drain(struct admi_op_home *home)
{
    struct adm_op *newest = atomic_exchange_explicit(&home->completed, NULL, memory_order_acquire);
    struct adm_op *oldest = NULL;

    while (newest != NULL) {
        struct adm_op *before = newest->library_use[1];

        newest->library_use[1] = oldest;
        oldest = newest;
        newest = before;
    }
    return oldest;
}

#endif
