/* SPDX-License-Identifier: Apache-2.0 */
/* Queues for event loops: one pollable descriptor, the next deadline, finished tickets. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"
#include "gate/gate.h"

struct adm_queue {
    struct adm_gate *gate;
    uint64_t last_ticket;
    int wake;  /* written when a ticket completes on another thread */
    int epoll; /* wake and the backend's own descriptor */
    /* Guarded by gate->calls. */
    struct admi_call *first_done, *last_done;
};

static adm_status watch_backend(struct adm_queue *queue)
{
    struct adm_watch watch = { -1, 0, UINT64_MAX };
    struct epoll_event event = { .events = EPOLLIN };

    if (epoll_ctl(queue->epoll, EPOLL_CTL_ADD, queue->wake, &event) != 0)
        return ADM_E_OS;
    (void)admi_bound_watch(&queue->gate->backend, &watch);
    if (watch.fd >= 0 && epoll_ctl(queue->epoll, EPOLL_CTL_ADD, watch.fd, &event) != 0)
        return ADM_E_OS;
    return ADM_OK;
}

static void queue_free(struct adm_queue *queue)
{
    if (queue->wake >= 0)
        (void)close(queue->wake);
    if (queue->epoll >= 0)
        (void)close(queue->epoll);
    admi_release(&queue->gate->allocator, queue, 1, sizeof *queue);
}

adm_status adm_queue_open(struct adm_gate *gate, struct adm_queue **out)
{
    struct adm_queue *queue;
    adm_status status = ADM_E_OS;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    queue = admi_allocate(&gate->allocator, 1, sizeof *queue);
    if (queue == NULL)
        return ADM_E_NOMEM;
    queue->gate = gate;
    queue->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    queue->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (queue->wake >= 0 && queue->epoll >= 0)
        status = watch_backend(queue);
    if (status != ADM_OK) {
        queue_free(queue);
        return status;
    }
    *out = queue;
    return ADM_OK;
}

int32_t adm_queue_fd(const struct adm_queue *queue)
{
    return queue == NULL ? -1 : queue->epoll;
}

uint64_t adm_queue_deadline(const struct adm_queue *queue)
{
    struct adm_watch watch = { -1, 0, UINT64_MAX };
    uint64_t deadline_ns = UINT64_MAX;
    bool open = false;

    if (queue == NULL || admi_inside_callback() || admi_gate_is_child(queue->gate))
        return UINT64_MAX;
    (void)pthread_mutex_lock(&queue->gate->calls);
    for (const struct admi_call *call = queue->gate->away; call != NULL; call = call->next)
        if (call->queue == queue) {
            open = true;
            if (call->op.deadline_ns < deadline_ns)
                deadline_ns = call->op.deadline_ns;
        }
    bool done = queue->first_done != NULL;
    (void)pthread_mutex_unlock(&queue->gate->calls);
    if (done)
        return 0;
    if (open)
        (void)admi_bound_watch(&queue->gate->backend, &watch);
    return watch.deadline_ns < deadline_ns ? watch.deadline_ns : deadline_ns;
}

bool admi_queue_enter(struct adm_queue *queue, struct admi_call *call, void *user,
                      struct adm_decision *decision, uint64_t *out_ticket)
{
    (void)pthread_mutex_lock(&queue->gate->calls);
    bool away = atomic_load(&call->state) == ADMI_CALL_STARTED;
    if (away) {
        if (call->ticket == 0)
            call->ticket = ++queue->last_ticket;
        call->queue = queue;
        call->user = user;
        call->decision = decision;
        *out_ticket = call->ticket;
    }
    (void)pthread_mutex_unlock(&queue->gate->calls);
    return away;
}

static void append(struct adm_queue *queue, struct admi_call *call)
{
    call->next = NULL;
    if (queue->last_done != NULL)
        queue->last_done->next = call;
    else
        queue->first_done = call;
    queue->last_done = call;
}

void admi_queue_take(struct adm_queue *queue, struct admi_call *call)
{
    const uint64_t one = 1;

    append(queue, call);
    /* Full would mean that the loop has been woken 2^64 - 2 times already. */
    if (write(queue->wake, &one, sizeof one) < 0)
        return;
}

void admi_queue_put_back(struct adm_queue *queue, struct admi_call *call)
{
    (void)pthread_mutex_lock(&queue->gate->calls);
    append(queue, call);
    (void)pthread_mutex_unlock(&queue->gate->calls);
}

static struct admi_call *take_done(struct adm_queue *queue)
{
    uint64_t woken;

    (void)pthread_mutex_lock(&queue->gate->calls);
    struct admi_call *call = queue->first_done;
    if (call != NULL) {
        queue->first_done = call->next;
        if (queue->first_done == NULL)
            queue->last_done = NULL;
        call->next = NULL;
    }
    if (queue->first_done == NULL && read(queue->wake, &woken, sizeof woken) < 0)
        woken = 0; /* nothing to clear */
    (void)pthread_mutex_unlock(&queue->gate->calls);
    return call;
}

/* A ticket of ours whose deadline has passed, given up; or NULL. */
static struct admi_call *expired(struct adm_queue *queue, uint64_t now_ns)
{
    struct admi_call *found = NULL;

    (void)pthread_mutex_lock(&queue->gate->calls);
    for (struct admi_call *call = queue->gate->away; call != NULL && found == NULL;
         call = call->next)
        if (call->queue == queue && call->op.deadline_ns <= now_ns)
            found = call;
    (void)pthread_mutex_unlock(&queue->gate->calls);
    /* Only this thread ends tickets of this queue, so the call cannot be reused meanwhile; it may
     * come back, though. */
    return found != NULL && admi_call_give_up(found) ? found : NULL;
}

static uint64_t count_done(struct adm_queue *queue)
{
    uint64_t count = 0;

    (void)pthread_mutex_lock(&queue->gate->calls);
    for (const struct admi_call *call = queue->first_done; call != NULL; call = call->next)
        count++;
    (void)pthread_mutex_unlock(&queue->gate->calls);
    return count;
}

static bool resume(struct admi_call *call, struct admi_gate_thread *thread,
                   struct adm_completion *out)
{
    if (call->op.kind == ADM_OP_TAKE)
        return admi_admit_resume(call, thread, out);
    admi_lease_resume(call, thread, out);
    return true;
}

static void expire(struct admi_call *call, struct admi_gate_thread *thread,
                   struct adm_completion *out)
{
    if (call->op.kind == ADM_OP_TAKE)
        admi_admit_expire(call, thread, out);
    else
        admi_lease_expire(call, out);
}

uint32_t adm_queue_next(struct adm_queue *queue, struct adm_completion *inout)
{
    struct adm_completion c = { sizeof c, 0, ADM_OK, 0, 0, NULL, NULL, { 0 } };
    struct admi_gate_thread *thread;
    bool found = false;

    if (queue == NULL || admi_inside_callback() || admi_gate_is_child(queue->gate) ||
        admi_check_size(inout, sizeof *inout) != ADM_OK)
        return 0;
    thread = admi_gate_thread(queue->gate);
    if (thread == NULL)
        return 0;
    admi_gate_progress(queue->gate);
    /* Each finished ticket once: one that goes back to the end has to wait for something outside.
     */
    for (uint64_t left = count_done(queue); left > 0 && !found; left--) {
        struct admi_call *call = take_done(queue);

        if (call == NULL)
            continue;
        if (!call->timed)
            admi_call_time(call);
        call->timed = true; /* it may be put back, and come here again */
        found = resume(call, thread, &c);
    }
    if (!found) {
        struct admi_call *late =
            expired(queue, admi_gate_clock_read(&queue->gate->clock).now.mono_ns);

        if (late != NULL) {
            expire(late, thread, &c);
            found = true;
        }
    }
    if (found)
        admi_export(inout, &c, sizeof c);
    return found;
}

uint32_t adm_ticket_cancel(struct adm_queue *queue, uint64_t ticket)
{
    struct admi_call *found = NULL;

    if (queue == NULL || ticket == 0 || admi_inside_callback() || admi_gate_is_child(queue->gate))
        return 0;
    (void)pthread_mutex_lock(&queue->gate->calls);
    for (struct admi_call *call = queue->gate->away; call != NULL && found == NULL;
         call = call->next)
        if (call->queue == queue && call->ticket == ticket)
            found = call;
    (void)pthread_mutex_unlock(&queue->gate->calls);
    if (found == NULL || !admi_call_give_up(found))
        return 0;
    admi_call_let_go(found);
    return 1;
}

void adm_queue_close(struct adm_queue *queue)
{
    struct admi_call *call;

    if (queue == NULL || admi_inside_callback() || admi_gate_is_child(queue->gate))
        return; /* a child's copy of a queue ends with the child, as its gate does */
    do {
        (void)pthread_mutex_lock(&queue->gate->calls);
        for (call = queue->gate->away; call != NULL && call->queue != queue; call = call->next)
            continue;
        (void)pthread_mutex_unlock(&queue->gate->calls);
        if (call != NULL && admi_call_give_up(call))
            admi_call_let_go(call);
    } while (call != NULL);
    while ((call = take_done(queue)) != NULL)
        admi_call_give_back(call);
    queue_free(queue);
}
