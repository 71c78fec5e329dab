/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep: a bounded look at what could be forgotten. Lines first, in both spaces, so that classes
 * and families find theirs gone; these are all looked at in one step, the last of a round. */
#include "state/memory.h"

static uint64_t lines_of(const struct memory_run *run, uint64_t space)
{
    return atomic_load_explicit(&run->region->spaces[space].lines.fresh, memory_order_acquire);
}

/* One line, by its number in the order of a round; or what comes after them. */
static uint64_t look_at(struct memory_run *run, uint64_t number)
{
    const struct memory_idle idle = admi_memory_idle(run);

    for (uint32_t i = 0; i < MEMORY_SPACES; i++) {
        struct memory_lines *lines = &run->region->spaces[i].lines;
        int end;

        if (number >= lines_of(run, i)) {
            number -= lines_of(run, i);
            continue;
        }
        do {
            end = admi_memory_line_evict(lines, &run->txn, number, &idle);
            if (end == ADMI_TXN_STALE)
                admi_memory_begin(run);
        } while (end == ADMI_TXN_STALE);
        return end == ADMI_TXN_DONE;
    }
    return admi_memory_reclaim_classes(run);
}

adm_status admi_memory_sweep(struct memory_run *run, struct adm_op *op)
{
    struct adm_sweep *sweep = op->args.sweep;
    _Atomic uint64_t *at = &run->region->sweep_at;
    uint64_t round = lines_of(run, MEMORY_ENFORCED) + lines_of(run, MEMORY_SHADOW) + 1;

    sweep->looked = sweep->freed = 0;
    sweep->done = 0;
    if (!admi_memory_claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    admi_memory_begin(run);
    while (sweep->looked < sweep->budget && sweep->done == 0) {
        uint64_t number = atomic_fetch_add_explicit(at, 1, memory_order_relaxed);

        sweep->looked++;
        if (number < round)
            sweep->freed += look_at(run, number);
        if (number + 1 >= round) {
            atomic_store_explicit(at, 0, memory_order_relaxed);
            sweep->done = 1;
        }
    }
    return ADM_OK;
}
