/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread keeps for a gate: its hazard, its scratch for values, its random bytes. */
#include "base/memory.h"
#include "gate/gate.h"

struct admi_gate_thread *admi_gate_thread(struct adm_gate *gate)
{
    return admi_gate_thread_of(gate, admi_this_thread());
}

struct admi_gate_thread *admi_gate_thread_of(struct adm_gate *gate, struct admi_thread *self)
{
    struct admi_gate_thread *thread = admi_threads_local_of(gate->threads, self);

    if (thread != NULL) {
        thread->self = self;
        thread->counters = admi_observe_local_of(gate->observe, self);
    }
    return thread;
}

bool admi_thread_reserve(struct adm_gate *gate, struct admi_gate_thread *thread, uint64_t slots)
{
    struct adm_bytes *values;

    if (slots <= thread->value_count)
        return true;
    values = admi_allocate(&gate->allocator, slots, sizeof *values);
    if (values == NULL)
        return false;
    admi_release(&gate->allocator, thread->values, thread->value_count, sizeof *values);
    thread->values = values;
    thread->value_count = slots;
    return true;
}

adm_status admi_thread_random(struct adm_gate *gate, struct admi_gate_thread *thread,
                              struct adm_id *out)
{
    do {
        /* A forked child has a copy of the stock: if it used it, two processes would hand out one
         * lease id. */
        if (admi_random_draw(&thread->random, &gate->random,
                             admi_fork_guard_is_child(&gate->fork_guard), out) != 0)
            return ADM_E_OS;
    } while ((out->high | out->low) == 0); /* all zero means none */
    return ADM_OK;
}

struct admi_snapshot *admi_snapshot_enter(struct adm_gate *gate, struct admi_gate_thread *thread)
{
    struct admi_snapshot *snapshot = atomic_load(&gate->snapshot);

    /* The hazard must be visible before the second look: a publisher that does not see it has
     * already replaced the pointer, and then the second look differs. Both need sequential
     * consistency. */
    for (;;) {
        atomic_store(&thread->hazard, snapshot);
        struct admi_snapshot *again = atomic_load(&gate->snapshot);

        if (again == snapshot)
            return snapshot;
        snapshot = again;
    }
}

void admi_snapshot_leave(struct admi_gate_thread *thread)
{
    atomic_store_explicit(&thread->hazard, NULL, memory_order_release);
}

void admi_call_borrow_snapshot(struct admi_call *call, struct admi_gate_thread *thread)
{
    call->snapshot = admi_snapshot_enter(call->gate, thread);
    if (call->gate->backend.defers) {
        atomic_fetch_add(&call->snapshot->references, 1);
        admi_snapshot_leave(thread);
    }
}

void admi_call_return_snapshot(struct admi_call *call, struct admi_gate_thread *thread)
{
    if (call->gate->backend.defers)
        admi_snapshot_unref(call->snapshot);
    else
        admi_snapshot_leave(thread);
    call->snapshot = NULL;
}
