/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on their way to the backend: made, started, waited for, given up. One path for the blocking
 * form and queues. */
#include <poll.h>

#include "base/memory.h"
#include "gate/gate.h"

#define FIRST_KEY_BYTES 2048u
#define WAIT_SLICE_MS   1
#define RESEND_AFTER_NS (50u * ADM_MILLISECOND)

static uint64_t later(uint64_t from_ns, uint64_t by_ns)
{
    return from_ns > UINT64_MAX - by_ns ? UINT64_MAX : from_ns + by_ns;
}

/* ---- the pool ---- */

/* Only what a call reads before it writes it: most of a call is room for the worst case. */
static void clear_for_use(struct admi_call *call)
{
    call->op.size = sizeof call->op;
    call->op.lease = (struct adm_id){ 0, 0 };
    call->op.result = 0;
    call->op.outcome = 0;
    call->op.units = 0;
    call->op.args.take = NULL;
    call->op.judged = (struct adm_time){ 0, 0 };
    call->queue = NULL;
    call->next = call->previous = NULL;
    call->snapshot = NULL;
    atomic_store_explicit(&call->state, ADMI_CALL_IDLE, memory_order_relaxed);
    call->pinned = call->came_back = call->timed = false;
    call->decision = NULL;
    call->user = NULL;
    call->ticket = 0;
    call->keys_used = 0;
}

static struct admi_call *call_new(struct adm_gate *gate)
{
    struct admi_call *call = admi_allocate(&gate->allocator, 1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->keys = admi_allocate(&gate->allocator, FIRST_KEY_BYTES, 1);
    if (call->keys == NULL) {
        admi_release(&gate->allocator, call, 1, sizeof *call);
        return NULL;
    }
    call->key_bytes = FIRST_KEY_BYTES;
    call->gate = gate;
    return call;
}

ADMI_APART static struct admi_call *call_from_pool(struct adm_gate *gate)
{
    struct admi_call *call = NULL;

    if (!admi_gate_is_child(gate)) {
        (void)pthread_mutex_lock(&gate->calls);
        call = gate->pool;
        if (call != NULL)
            gate->pool = call->next;
        (void)pthread_mutex_unlock(&gate->calls);
    }
    return call != NULL ? call : call_new(gate);
}

struct admi_call *admi_call_get(struct adm_gate *gate, struct admi_gate_thread *thread,
                                adm_status *out_status)
{
    struct admi_call *call = thread->spare;

    thread->spare = NULL;
    if (call == NULL)
        call = call_from_pool(gate);
    if (call == NULL) {
        *out_status = ADM_E_NOMEM;
        return NULL;
    }
    clear_for_use(call);
    return call;
}

ADMI_APART static void call_to_pool(struct adm_gate *gate, struct admi_call *call)
{
    admi_snapshot_unref(call->snapshot);
    call->snapshot = NULL;
    (void)pthread_mutex_lock(&gate->calls);
    call->next = gate->pool;
    gate->pool = call;
    (void)pthread_mutex_unlock(&gate->calls);
}

void admi_call_put(struct adm_gate *gate, struct admi_gate_thread *thread, struct admi_call *call)
{
    if (thread == NULL || thread->spare != NULL) {
        call_to_pool(gate, call);
        return;
    }
    admi_snapshot_unref(call->snapshot);
    call->snapshot = NULL;
    thread->spare = call;
}

static void call_free(struct adm_gate *gate, struct admi_call *call)
{
    admi_snapshot_unref(call->snapshot);
    admi_release(&gate->allocator, call->keys, call->key_bytes, 1);
    admi_release(&gate->allocator, call, 1, sizeof *call);
}

static void free_spare(void *self, void *block)
{
    struct adm_gate *gate = self;
    struct admi_gate_thread *thread = block;

    if (thread->spare != NULL)
        call_free(gate, thread->spare);
    thread->spare = NULL;
    admi_release(&gate->allocator, thread->values, thread->value_count, sizeof *thread->values);
    thread->values = NULL;
    thread->value_count = 0;
}

static void free_list(struct adm_gate *gate, struct admi_call *call)
{
    while (call != NULL) {
        struct admi_call *next = call->next;

        call_free(gate, call);
        call = next;
    }
}

/* After the backend is closed: what was still away belongs to us again. */
void admi_call_pool_free(struct adm_gate *gate)
{
    free_list(gate, gate->pool);
    free_list(gate, gate->resend);
    free_list(gate, gate->away);
    gate->pool = gate->resend = gate->away = NULL;
    admi_threads_each(gate->threads, free_spare, gate);
}

/* ---- keeping the request ---- */

static struct adm_bytes keep_bytes(struct admi_call *call, struct adm_bytes from, uint64_t *used)
{
    struct adm_bytes kept = { call->copied + *used, from.length };

    admi_copy(call->copied + *used, from.data, from.length);
    *used += from.length;
    return kept;
}

void admi_call_keep_request(struct admi_call *call)
{
    struct adm_request *request = &call->request;
    uint64_t used = 0;

    for (uint64_t i = 0; i < request->descriptor_count; i++) {
        struct adm_descriptor d = request->descriptors[i];

        if (d.key_id == 0)
            d.key = keep_bytes(call, d.key, &used);
        d.value = keep_bytes(call, d.value, &used);
        call->descriptors[i] = d;
    }
    for (uint64_t i = 0; i < request->amount_count; i++)
        call->amounts[i] = request->amounts[i];
    if (request->attempt.data != NULL)
        request->attempt = keep_bytes(call, request->attempt, &used);
    request->descriptors = call->descriptors;
    request->amounts = call->amounts;
}

/* ---- away and back ---- */

/* With gate->calls held. */
static void link_away(struct adm_gate *gate, struct admi_call *call)
{
    call->previous = NULL;
    call->next = gate->away;
    if (gate->away != NULL)
        gate->away->previous = call;
    gate->away = call;
    gate->calls_away++;
}

static void unlink_away(struct adm_gate *gate, struct admi_call *call)
{
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        gate->away = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->next = call->previous = NULL;
    gate->calls_away--;
}

static struct admi_call *call_of(struct adm_op *op)
{
    return (struct admi_call *)(void *)((char *)op - offsetof(struct admi_call, op));
}

/* False: pending_max calls are away. */
static bool go_away(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;

    (void)pthread_mutex_lock(&gate->calls);
    bool room = gate->calls_away < gate->pending_max;
    if (room)
        link_away(gate, call);
    atomic_store(&call->state, ADMI_CALL_STARTED);
    (void)pthread_mutex_unlock(&gate->calls);
    return room;
}

/* Every op completes inside start: no lists, no lock. */
static bool start_direct(struct admi_call *call, struct admi_gate_thread *thread)
{
    struct admi_bound *backend = &call->gate->backend;

    admi_op_begin_direct(&call->op, &call->gate->home);
    if (backend->serial) {
        admi_bound_start(backend, &call->op);
    } else {
        thread->self->callback_depth++;
        backend->ops.start(backend->self, &call->op);
        thread->self->callback_depth--;
    }
    return admi_op_is_complete(&call->op);
}

ADMI_APART static bool start_away(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    bool room = go_away(call);
    if (!room) {
        /* What has come back without anybody looking takes no room. */
        admi_gate_progress(gate);
        room = go_away(call);
    }
    if (!room) {
        admi_op_begin_direct(&call->op, &gate->home);
        adm_op_complete(&call->op, ADM_E_BACKEND_UNAVAILABLE);
        return true;
    }
    admi_op_begin(&call->op, &gate->home);
    admi_bound_start(&gate->backend, &call->op);
    admi_gate_progress(gate);
    return atomic_load(&call->state) == ADMI_CALL_DONE;
}

bool admi_call_start(struct admi_call *call, struct admi_gate_thread *thread,
                     const struct admi_moment *moment, uint64_t timeout_ns)
{
    struct adm_gate *gate = call->gate;

    call->op.now = moment->now;
    call->op.max_skew_ns = atomic_load_explicit(&gate->clock.max_skew_ns, memory_order_relaxed);
    call->op.deadline_ns = later(moment->now.mono_ns, timeout_ns);
    call->started_ns = moment->now.mono_ns;
    call->timed = false;
    return gate->backend.defers ? start_away(call) : start_direct(call, thread);
}

/* An orphan came back. A grant that nobody waits for is given back: what settlement can return
 * first, then what is held. A grant to an attempt is kept until its lease ends, because a repeat
 * would be told that it holds. True: the call goes out again. With gate->calls held. */
static bool orphan_goes_on(struct admi_call *call)
{
    bool granted = call->op.kind == ADM_OP_TAKE && admi_op_status(&call->op) == ADM_OK &&
                   call->take.mode == ADM_TAKE_CHARGE && call->take.verdict == ADM_VERDICT_ALLOW &&
                   call->take.repeated == ADM_REPEAT_NONE && call->take.attempt.length == 0 &&
                   (call->take.lease.high | call->take.lease.low) != 0;

    if (granted) {
        call->op.lease = call->take.lease;
        for (uint32_t i = 0; i < call->take.meter_count; i++)
            call->totals[i] = (struct adm_amount){ call->meters[i].unit, ADM_AMOUNT_FINAL, 0 };
        call->settle = (struct adm_settlement){ call->totals, call->take.meter_count, 1 };
        call->op.kind = ADM_OP_SETTLE;
        call->op.args.settle = &call->settle;
        atomic_store(&call->state, ADMI_CALL_ORPHAN_SETTLING);
        return true;
    }
    if (atomic_load(&call->state) == ADMI_CALL_ORPHAN_SETTLING) {
        call->op.kind = ADM_OP_GIVE;
        call->op.result = ADM_RESULT_CANCELLED;
        atomic_store(&call->state, ADMI_CALL_ORPHAN_GIVING);
        return true;
    }
    return false;
}

bool admi_call_worth_resending(const struct admi_call *call)
{
    adm_status status = admi_op_status(&call->op);

    return (call->op.kind == ADM_OP_GIVE || call->op.kind == ADM_OP_SETTLE ||
            call->op.kind == ADM_OP_DIVERT) &&
           (status == ADM_E_BACKEND_UNAVAILABLE || status == ADM_E_BACKEND_UNKNOWN);
}

/* Room for it is reserved. With gate->calls held. */
static void resend_locked(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;

    atomic_store(&call->state, ADMI_CALL_RESEND);
    call->queue = NULL;
    call->resend_at_ns = call->op.now.mono_ns + RESEND_AFTER_NS;
    call->next = gate->resend;
    gate->resend = call;
}

bool admi_call_reserve_resend(struct adm_gate *gate)
{
    uint64_t count = atomic_load(&gate->resend_count);

    while (count < gate->pending_max)
        if (atomic_compare_exchange_weak(&gate->resend_count, &count, count + 1))
            return true;
    return false;
}

void admi_call_resend(struct admi_call *call)
{
    (void)pthread_mutex_lock(&call->gate->calls);
    resend_locked(call);
    (void)pthread_mutex_unlock(&call->gate->calls);
}

/* With gate->calls held. Calls to start again go to *again. */
static void pass_on(struct adm_gate *gate, struct adm_op *op, struct admi_call **again)
{
    struct admi_call *call = call_of(op);

    if (call->pinned) {
        call->came_back = true; /* whoever is giving it up still reads it, and passes it on */
        return;
    }
    unlink_away(gate, call);
    if (atomic_load(&call->state) == ADMI_CALL_STARTED) {
        struct adm_queue *queue = call->queue;

        /* From here on the call of a thread that waits is that thread's: it holds no lock. */
        atomic_store(&call->state, ADMI_CALL_DONE);
        if (queue != NULL)
            admi_queue_take(queue, call);
        return;
    }
    if (orphan_goes_on(call)) {
        call->next = *again;
        *again = call;
        return;
    }
    if (admi_call_worth_resending(call) && admi_call_reserve_resend(gate)) {
        resend_locked(call);
        return;
    }
    admi_snapshot_unref(call->snapshot);
    call->snapshot = NULL;
    call->next = gate->pool;
    gate->pool = call;
}

/* Send an orphan's next op, or a release again. Its time is the gate's time now. */
static void send_again(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    struct admi_moment moment = admi_gate_clock_read(&gate->clock);

    call->op.now = moment.now;
    call->op.deadline_ns = later(moment.now.mono_ns, gate->backend_timeout_ns);
    admi_op_begin(&call->op, &gate->home);
    (void)pthread_mutex_lock(&gate->calls);
    link_away(gate, call);
    (void)pthread_mutex_unlock(&gate->calls);
    admi_bound_start(&gate->backend, &call->op);
}

static struct admi_call *due_for_resend(struct adm_gate *gate)
{
    struct admi_call *due = NULL;

    if (atomic_load(&gate->resend_count) == 0)
        return NULL;
    uint64_t now_ns = admi_gate_clock_read(&gate->clock).now.mono_ns;

    (void)pthread_mutex_lock(&gate->calls);
    for (struct admi_call **link = &gate->resend; *link != NULL;) {
        struct admi_call *call = *link;

        if (call->resend_at_ns > now_ns) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        atomic_fetch_sub(&gate->resend_count, 1);
        call->next = due;
        due = call;
    }
    (void)pthread_mutex_unlock(&gate->calls);
    return due;
}

static void drain(struct adm_gate *gate, struct admi_call **again)
{
    struct adm_op *op = admi_op_drain(&gate->home);

    (void)pthread_mutex_lock(&gate->calls);
    while (op != NULL) {
        struct adm_op *next = admi_op_next(op); /* passing it on may start it again */

        pass_on(gate, op, again);
        op = next;
    }
    (void)pthread_mutex_unlock(&gate->calls);
}

void admi_gate_progress(struct adm_gate *gate)
{
    struct admi_call *again = NULL;
    struct adm_time now;

    if (!gate->backend.defers)
        return;
    gate->clock.source.now(gate->clock.source.self, &now);
    (void)admi_bound_poll(&gate->backend, &now);
    again = due_for_resend(gate);
    drain(gate, &again);
    while (again != NULL) {
        struct admi_call *call = again;

        again = call->next;
        send_again(call);
    }
}

/* Releases are carried out although nobody waits; anything else is taken back if the backend still
 * can. */
static bool goes_on_alone(const struct admi_call *call)
{
    return call->op.kind == ADM_OP_GIVE || call->op.kind == ADM_OP_SETTLE ||
           call->op.kind == ADM_OP_DIVERT;
}

bool admi_call_give_up(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    uint32_t expected = ADMI_CALL_STARTED;

    (void)pthread_mutex_lock(&gate->calls);
    bool away = atomic_compare_exchange_strong(&call->state, &expected, ADMI_CALL_ORPHAN);
    if (away) {
        call->queue = NULL;
        call->pinned = true;
    }
    (void)pthread_mutex_unlock(&gate->calls);
    return away;
}

void admi_call_let_go(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    struct admi_call *again = NULL;

    /* Pinned: it may complete meanwhile, but nobody takes it from us. */
    if (!goes_on_alone(call))
        admi_bound_cancel(&gate->backend, &call->op);
    (void)pthread_mutex_lock(&gate->calls);
    call->pinned = false;
    if (call->came_back) {
        call->came_back = false;
        pass_on(gate, &call->op, &again);
    }
    (void)pthread_mutex_unlock(&gate->calls);
    if (again != NULL)
        send_again(again);
    admi_gate_progress(gate);
}

void admi_call_give_back(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    struct admi_call *again = NULL;

    (void)pthread_mutex_lock(&gate->calls);
    atomic_store(&call->state, ADMI_CALL_ORPHAN);
    call->queue = NULL;
    link_away(gate, call);
    pass_on(gate, &call->op, &again);
    (void)pthread_mutex_unlock(&gate->calls);
    if (again != NULL)
        send_again(again);
}

void admi_call_lose(struct admi_call *call)
{
    (void)pthread_mutex_lock(&call->gate->calls);
    atomic_store(&call->state, ADMI_CALL_ORPHAN);
    link_away(call->gate, call);
    (void)pthread_mutex_unlock(&call->gate->calls);
}

static void wait_a_little(struct adm_gate *gate)
{
    struct adm_watch watch = { -1, 0, UINT64_MAX };
    struct pollfd fd;

    (void)admi_bound_watch(&gate->backend, &watch);
    fd = (struct pollfd){ watch.fd, POLLIN, 0 };
    /* Short slices: another thread's poll may complete our op, and nothing wakes us then. */
    if (watch.fd >= 0)
        (void)poll(&fd, 1, WAIT_SLICE_MS);
    else if (watch.deadline_ns == UINT64_MAX)
        (void)poll(NULL, 0, WAIT_SLICE_MS);
}

void admi_call_time(const struct admi_call *call)
{
    struct adm_gate *gate = call->gate;

    admi_count_histogram(admi_observe_local(gate->observe), ADMI_BACKEND_NS,
                         admi_gate_clock_read(&gate->clock).now.mono_ns - call->started_ns);
}

bool admi_call_wait(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;

    while (atomic_load(&call->state) != ADMI_CALL_DONE) {
        if (admi_gate_clock_read(&gate->clock).now.mono_ns >= call->op.deadline_ns &&
            admi_call_give_up(call)) {
            admi_count(admi_observe_local(gate->observe), ADMI_BACKEND_TIMEOUTS, 1);
            return false;
        }
        wait_a_little(gate);
        admi_gate_progress(gate);
    }
    admi_call_time(call);
    return true;
}
