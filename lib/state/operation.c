/* SPDX-License-Identifier: Apache-2.0 */
/* Completion: an op gets its status and goes home. */
#include "state/operation.h"

/* The only way out of STARTED, so that of two completions one wins and the other is counted.
 * Begin's store is visible here: whoever handed op to this thread synchronised with it. */
static uintptr_t claim(struct adm_op *op)
{
    uintptr_t *state = (uintptr_t *)(void *)&op->library_use[3];
    uintptr_t seen = __atomic_load_n(state, __ATOMIC_ACQUIRE);

    while (seen == ADMI_OP_STARTED || seen == ADMI_OP_DIRECT) {
        if (__atomic_compare_exchange_n(state, &seen, (uintptr_t)ADMI_OP_COMPLETING, 0,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return seen;
    }
    return ADMI_OP_IDLE;
}

void adm_op_complete(struct adm_op *op, adm_status status)
{
    struct admi_op_home *home = op->library_use[0];
    uintptr_t begun = claim(op);

    if (begun == ADMI_OP_IDLE) {
        if (home != NULL)
            atomic_fetch_add_explicit(&home->protocol_errors, 1, memory_order_relaxed);
        return;
    }
    op->library_use[2] = (void *)(intptr_t)status;
    __atomic_store_n((uintptr_t *)(void *)&op->library_use[3], (uintptr_t)ADMI_OP_COMPLETE,
                     __ATOMIC_RELEASE);
    if (begun == ADMI_OP_DIRECT)
        return; /* the owner may already have freed it */

    struct adm_op *newest = atomic_load_explicit(&home->completed, memory_order_relaxed);

    do {
        op->library_use[1] = newest;
    } while (!atomic_compare_exchange_weak_explicit(&home->completed, &newest, op,
                                                    memory_order_release, memory_order_relaxed));
}
