/* SPDX-License-Identifier: Apache-2.0 */
/* admit: ask, wait if the backend does, decide. */
#include "base/memory.h"
#include "gate/gate.h"
#include "gate/memo.h"

#define STALE_TRIES 16u

enum answer { ANSWERED, AWAY, FAILED };

/* An admit on its way through this file. */
struct asking {
    struct adm_gate *gate;
    struct admi_gate_thread *thread;
    struct admi_call *call;
    struct adm_queue *queue; /* NULL: the caller waits */
    void *user;
    struct adm_decision *decision;
    uint64_t ticket;
    uint64_t deadline_ns; /* of all tries together; 0: none was made */
    uint32_t tries;
    struct admi_moment moment;
    admi_look_fn look; /* NULL, or called with the answered call before it is put back */
    void *look_self;
    adm_status status;
};

/* The namespace, length-prefixed, in front: two gates on one backend never answer for each
 * other. */
static struct adm_bytes own_attempt(struct admi_call *call)
{
    const struct adm_gate *gate = call->gate;
    const struct adm_bytes attempt = call->request.attempt;
    uint64_t prefix = 1 + (uint64_t)gate->name_space_length;

    call->attempt[0] = (uint8_t)gate->name_space_length;
    admi_copy(call->attempt + 1, gate->name_space, gate->name_space_length);
    admi_copy(call->attempt + prefix, attempt.data, attempt.length);
    return (struct adm_bytes){ call->attempt, prefix + attempt.length };
}

static void remember_attempt(struct admi_call *call)
{
    struct adm_take *take = &call->take;
    const struct admi_snapshot *snapshot = call->snapshot;

    if (call->request.attempt.data == NULL)
        return;
    take->attempt = own_attempt(call);
    admi_attempt_digest(call->gate, &call->request, take->attempt_digest);
    take->memo.data = call->memo;
    take->memo.length = admi_memo_write(snapshot->policy->version, snapshot->table_version,
                                        admi_decision_id(call->gate, take->seed), call->memo);
}

/* How long this try may take. The caller may wait less than the gate would, never more. */
static uint64_t timeout_of(const struct asking *a)
{
    uint64_t timeout_ns = a->gate->backend_timeout_ns;
    uint64_t wanted_ns = a->call->request.deadline_ns;

    if (a->deadline_ns > a->moment.now.mono_ns)
        return a->deadline_ns - a->moment.now.mono_ns;
    return wanted_ns > 0 && wanted_ns < timeout_ns ? wanted_ns : timeout_ns;
}

/* Another try would begin after the deadline of the first. */
static bool too_late(const struct asking *a)
{
    return a->gate->backend.defers && a->deadline_ns != 0 &&
           a->moment.now.mono_ns >= a->deadline_ns;
}

static bool start(struct asking *a)
{
    bool complete = admi_call_start(a->call, a->thread, &a->moment, timeout_of(a));

    if (a->deadline_ns == 0)
        a->deadline_ns = a->call->op.deadline_ns;
    return complete;
}

ADMI_APART static void count_invalid(struct adm_gate *gate, adm_status status)
{
    if (adm_status_class(status) == ADM_STATUS_CLASS_CALLER)
        admi_count(admi_observe_local(gate->observe), ADMI_INVALID, 1);
}

/* One try under one snapshot. */
static enum answer ask_once(struct asking *a, enum admi_purpose purpose)
{
    bool needs_state = false;

    admi_call_borrow_snapshot(a->call, a->thread);
    if (admi_gate_is_child(a->gate)) {
        a->status = admi_prepare_denial(a->call, a->thread);
        if (a->status != ADM_OK)
            return FAILED;
        a->status = ADM_E_BACKEND_FORKED;
        return ANSWERED;
    }
    a->status = admi_prepare(a->call, a->thread, purpose, &needs_state);
    a->moment = a->call->question.moment;
    if (a->status != ADM_OK) {
        count_invalid(a->gate, a->status);
        return FAILED;
    }
    if (!needs_state) {
        a->call->take.verdict =
            ADM_VERDICT_ALLOW; /* nothing to charge, nothing that could refuse */
        return ANSWERED;
    }
    if (too_late(a)) {
        a->status = ADM_E_BACKEND_UNAVAILABLE;
        return ANSWERED;
    }
    remember_attempt(a->call);
    if (!start(a) && (a->queue == NULL || !a->gate->backend.defers ||
                      admi_queue_enter(a->queue, a->call, a->user, a->decision, &a->ticket)))
        return AWAY;
    a->status = admi_op_status(&a->call->op);
    return ANSWERED;
}

/* A backend that says it never defers, and does: the op is lost to it, and so is the call. */
ADMI_APART static void lose(struct asking *a)
{
    admi_count(admi_observe_local(a->gate->observe), ADMI_BACKEND_RESULTS, 1);
    atomic_fetch_add(&a->call->snapshot->references, 1);
    admi_snapshot_leave(a->thread);
    admi_call_lose(a->call);
}

static void finish_call(struct asking *a)
{
    admi_call_return_snapshot(a->call, a->thread);
    admi_call_put(a->gate, a->thread, a->call);
    a->call = NULL;
}

/* The classes changed under us. True: there is (or soon was) another snapshot to ask with. A queue
 * never waits for a publish on a backend that defers. */
ADMI_APART static bool refreshed(struct asking *a, const struct admi_snapshot *used)
{
    admi_count(admi_observe_local(a->gate->observe), ADMI_BACKEND_STALE, 1);
    if (a->queue != NULL && a->gate->backend.defers)
        return admi_gate_heal_by_steps(a->gate, used);
    return admi_gate_heal(a->gate, used) == ADM_OK;
}

/* Ask until the answer is for the classes in force. ANSWERED: a->status is the backend's, the
 * snapshot still borrowed. */
static enum answer ask(struct asking *a, enum admi_purpose purpose)
{
    for (;; a->tries++) {
        enum answer answer = ask_once(a, purpose);
        const struct admi_snapshot *used = a->call->snapshot;

        if (answer != ANSWERED || a->status != ADM_E_BACKEND_STALE || a->tries >= STALE_TRIES)
            return answer;
        admi_call_return_snapshot(a->call, a->thread);
        if (!refreshed(a, used)) {
            admi_call_borrow_snapshot(a->call, a->thread);
            return ANSWERED;
        }
    }
}

static adm_status decide(struct asking *a, enum admi_purpose purpose, struct adm_decision *decision)
{
    a->status = admi_decide(a->call, a->thread, a->status, purpose, decision);
    count_invalid(a->gate, a->status);
    if (a->status == ADM_OK && a->look != NULL)
        a->look(a->look_self, a->call, a->thread);
    finish_call(a);
    return a->status;
}

/* The classes changed while the call was away: once more, with those in force now. */
static enum answer ask_again(struct asking *a, enum admi_purpose purpose)
{
    const struct admi_snapshot *used = a->call->snapshot;

    a->tries++;
    admi_call_return_snapshot(a->call, a->thread);
    (void)refreshed(a, used);
    return ask(a, purpose);
}

ADMI_APART static adm_status wait_and_decide(struct asking *a, enum admi_purpose purpose,
                                             struct adm_decision *decision)
{
    enum answer answer = AWAY;
    adm_status status;

    if (!a->gate->backend.defers) {
        status = admi_decide(a->call, a->thread, ADM_E_BACKEND_RESULT, purpose, decision);
        lose(a);
        return status;
    }
    while (answer == AWAY) {
        if (!admi_call_wait(a->call)) {
            status = admi_decide(a->call, a->thread, ADM_E_BACKEND_UNAVAILABLE, purpose, decision);
            admi_call_let_go(a->call);
            return status;
        }
        a->status = admi_op_status(&a->call->op);
        answer = a->status == ADM_E_BACKEND_STALE && a->tries < STALE_TRIES ? ask_again(a, purpose)
                                                                            : ANSWERED;
    }
    if (answer == ANSWERED)
        return decide(a, purpose, decision);
    finish_call(a);
    return a->status;
}

static void time_admit(struct adm_gate *gate, struct admi_counters *counters,
                       const struct admi_moment *started, bool waited)
{
    if ((!waited && !admi_sample(counters)) || admi_gate_is_child(gate))
        return;
    uint64_t now_ns = admi_gate_clock_read(&gate->clock).now.mono_ns;

    admi_count_histogram(counters, ADMI_ADMIT_NS, now_ns - started->now.mono_ns);
}

static adm_status import_request(struct adm_gate *gate, const struct adm_request *from,
                                 struct adm_request *out)
{
    adm_status status = admi_import_same(out, sizeof *out, sizeof *out, from);

    if (status != ADM_OK)
        return status;
    status = admi_request_check(gate, out);
    /* Last, because the copy takes a moment to arrive; first of what speaks. */
    if (out->flags != 0 || !admi_all_zero(out->reserved, sizeof out->reserved))
        return ADM_E_CALLER_NEWER;
    return status;
}

/* Checks that need no policy; a call with the request in it. */
static adm_status begin(struct adm_gate *gate, struct admi_thread *self,
                        const struct adm_request *request, const struct adm_decision *decision,
                        struct asking *out)
{
    adm_status status;

    if (gate == NULL || request == NULL || decision == NULL)
        return ADM_E_INVALID_ARGUMENT;
    if (decision->size < sizeof *decision || decision->size > ADMI_STRUCT_BYTES_MAX)
        return ADM_E_STRUCT_SIZE;
    out->gate = gate;
    out->thread = admi_gate_thread_of(gate, self);
    out->queue = NULL;
    out->user = NULL;
    out->decision = NULL;
    out->ticket = 0;
    out->deadline_ns = 0;
    out->tries = 0;
    out->look = NULL;
    out->look_self = NULL;
    if (out->thread == NULL)
        return ADM_E_NOMEM;
    out->call = admi_call_get(gate, out->thread, &status);
    if (out->call == NULL)
        return status;
    status = import_request(gate, request, &out->call->request);
    if (status != ADM_OK) {
        count_invalid(gate, status);
        admi_call_put(gate, out->thread, out->call);
        return status;
    }
    if (gate->backend.defers)
        admi_call_keep_request(out->call);
    return ADM_OK;
}

static adm_status answer(struct asking *a, enum admi_purpose purpose, struct adm_decision *decision)
{
    switch (ask(a, purpose)) {
    case FAILED:
        finish_call(a);
        return a->status;
    case AWAY:
        return wait_and_decide(a, purpose, decision);
    case ANSWERED:
    default:
        return decide(a, purpose, decision);
    }
}

adm_status admi_ask(struct adm_gate *gate, struct admi_thread *self,
                    const struct adm_request *request, enum admi_purpose purpose, admi_look_fn look,
                    void *look_self, struct adm_decision *decision)
{
    struct asking a;
    adm_status status = begin(gate, self, request, decision, &a);

    if (status != ADM_OK)
        return status;
    a.look = look;
    a.look_self = look_self;
    status = answer(&a, purpose, decision);
    if (purpose == ADMI_FOR_ADMIT && status == ADM_OK)
        time_admit(gate, a.thread->counters, &a.moment, gate->backend.defers);
    return status;
}

adm_status adm_admit(struct adm_gate *gate, const struct adm_request *request,
                     struct adm_decision *decision)
{
    struct admi_thread *self = admi_this_thread();

    if (self->callback_depth > 0)
        return ADM_E_REENTRANT;
    return admi_ask(gate, self, request, ADMI_FOR_ADMIT, NULL, NULL, decision);
}

adm_status adm_admit_start(struct adm_gate *gate, struct adm_queue *queue,
                           const struct adm_request *request, struct adm_decision *decision,
                           void *user, uint64_t *out_ticket)
{
    struct asking a;
    adm_status status;

    ADMI_REFUSE_REENTRY();
    if (queue == NULL || out_ticket == NULL)
        return ADM_E_INVALID_ARGUMENT;
    status = begin(gate, admi_this_thread(), request, decision, &a);
    if (status != ADM_OK)
        return status;
    a.queue = queue;
    a.user = user;
    a.decision = decision;
    *out_ticket = 0;
    switch (ask(&a, ADMI_FOR_ADMIT)) {
    case FAILED:
        finish_call(&a);
        return a.status;
    case AWAY:
        if (!gate->backend.defers)
            return wait_and_decide(&a, ADMI_FOR_ADMIT, decision);
        *out_ticket = a.ticket;
        return ADM_OK;
    case ANSWERED:
    default:
        return decide(&a, ADMI_FOR_ADMIT, decision);
    }
}

static struct asking resumed(struct admi_call *call, struct admi_gate_thread *thread)
{
    return (struct asking){ .gate = call->gate,
                            .thread = thread,
                            .call = call,
                            .queue = call->queue,
                            .user = call->user,
                            .decision = call->decision,
                            .ticket = call->ticket,
                            .deadline_ns = call->op.deadline_ns,
                            .moment = call->question.moment,
                            .status = admi_op_status(&call->op) };
}

static void complete(const struct asking *a, adm_status status, struct adm_completion *out)
{
    out->status = status;
    out->outcome = ADM_OUTCOME_UNKNOWN;
    out->ticket = a->ticket;
    out->user = a->user;
    out->decision = a->decision;
}

bool admi_admit_resume(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out)
{
    struct asking a = resumed(call, thread);
    struct admi_moment now = admi_gate_clock_read(&a.gate->clock);

    if (a.status == ADM_E_BACKEND_STALE && now.now.mono_ns < call->op.deadline_ns) {
        const struct admi_snapshot *used = call->snapshot;

        if (!refreshed(&a, used)) {
            admi_queue_put_back(a.queue, call);
            return false;
        }
        admi_call_return_snapshot(a.call, a.thread);
        call->queue = NULL; /* until it is away again: it may complete at once, on any thread */
        switch (ask(&a, ADMI_FOR_ADMIT)) {
        case AWAY:
            return false;
        case FAILED:
            finish_call(&a);
            complete(&a, a.status, out);
            return true;
        case ANSWERED:
        default:
            break;
        }
    }
    time_admit(a.gate, thread->counters, &a.moment, true);
    complete(&a, decide(&a, ADMI_FOR_ADMIT, a.decision), out);
    return true;
}

void admi_admit_expire(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out)
{
    struct asking a = resumed(call, thread);

    complete(&a, admi_decide(call, thread, ADM_E_BACKEND_UNAVAILABLE, ADMI_FOR_ADMIT, a.decision),
             out);
    admi_call_let_go(call);
}
