/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a lease after admit: release, renew, settle, divert. One op each, waited for or
 * queued. */
#include "base/memory.h"
#include "gate/gate.h"

/* One of the four, as its public function was called. */
struct errand {
    struct adm_gate *gate;
    struct adm_queue *queue; /* NULL: wait */
    void *user;
    struct adm_id lease;
    uint32_t kind; /* ADM_OP_* */
    uint32_t result;
    const struct adm_amount *totals;
    uint64_t total_count;
    uint32_t final_all;
};

ADMI_APART static void tell(const struct admi_call *call, uint32_t outcome)
{
    const struct adm_gate *gate = call->gate;

    if (call->op.kind == ADM_OP_RENEW)
        return;
    struct adm_event event = { .size = sizeof event, .kind = ADM_EVENT_RELEASE };

    event.now = call->op.now;
    event.lease = call->op.lease;
    event.decision_id = admi_decision_id(gate, call->op.lease);
    event.outcome = outcome;
    event.result = call->op.kind == ADM_OP_DIVERT ? ADM_RESULT_DIVERTED : call->op.result;
    if (call->op.kind == ADM_OP_SETTLE) {
        event.kind = ADM_EVENT_USAGE;
        event.amounts = call->totals;
        event.amount_count = call->settle.total_count;
        event.final_all = call->settle.final_all;
    }
    admi_enter_callback();
    gate->on_event(gate->on_event_self, &event);
    admi_leave_callback();
}

static bool legal_outcome(uint32_t kind, uint32_t outcome)
{
    switch (outcome) {
    case ADM_OUTCOME_UNKNOWN:
    case ADM_OUTCOME_ALREADY:
    case ADM_OUTCOME_LATE:
        return kind != ADM_OP_RENEW;
    case ADM_OUTCOME_RELEASED:
        return kind == ADM_OP_GIVE;
    case ADM_OUTCOME_RENEWED:
    case ADM_OUTCOME_LOST:
        return kind == ADM_OP_RENEW;
    case ADM_OUTCOME_SETTLED:
        return kind == ADM_OP_SETTLE;
    case ADM_OUTCOME_DIVERTED:
        return kind == ADM_OP_DIVERT;
    default:
        return false;
    }
}

static adm_status lease_finish(struct admi_call *call, struct admi_counters *counters,
                               adm_status backend_status, uint32_t *out_outcome)
{
    uint32_t outcome = call->op.outcome;

    if (backend_status == ADM_OK && !legal_outcome(call->op.kind, outcome)) {
        admi_count(counters, ADMI_BACKEND_RESULTS, 1);
        backend_status = ADM_E_BACKEND_RESULT;
    } else if (backend_status != ADM_OK) {
        admi_count(counters, ADMI_BACKEND_ERRORS, 1);
    }
    if (backend_status != ADM_OK)
        return backend_status;
    admi_count_outcome(counters, call->op.kind, outcome);
    if (call->op.kind == ADM_OP_GIVE)
        admi_count_result(counters, call->op.result);
    if (call->gate->on_event != NULL)
        tell(call, outcome);
    *out_outcome = outcome;
    return ADM_OK;
}

ADMI_APART static void lease_queued(struct admi_call *call, uint32_t *out_outcome)
{
    struct admi_counters *counters = admi_observe_local(call->gate->observe);

    admi_count(counters, ADMI_QUEUED, 1);
    admi_count_outcome(counters, call->op.kind, ADM_OUTCOME_QUEUED);
    if (call->gate->on_event != NULL)
        tell(call, ADM_OUTCOME_QUEUED);
    *out_outcome = ADM_OUTCOME_QUEUED;
}

static adm_status check_totals(const struct errand *e)
{
    uint64_t seen[2] = { 0, 0 };

    if (e->total_count > ADM_MAX_AMOUNTS || e->final_all > 1 ||
        (e->total_count > 0 && e->totals == NULL))
        return ADM_E_INVALID_COST;
    for (uint64_t i = 0; i < e->total_count; i++) {
        const struct adm_amount *a = &e->totals[i];

        if (!admi_unit_exists(e->gate, a->unit) || (a->flags & ~ADM_AMOUNT_FINAL) != 0 ||
            a->value > ADM_MAX_AMOUNT || (seen[a->unit / 64] >> (a->unit % 64) & 1) != 0)
            return ADM_E_INVALID_COST;
        seen[a->unit / 64] |= UINT64_C(1) << (a->unit % 64);
    }
    return ADM_OK;
}

static void fill(const struct errand *e, struct admi_call *call)
{
    call->op.kind = e->kind;
    call->op.lease = e->lease;
    call->op.result = e->result;
    call->op.outcome = ADM_OUTCOME_UNKNOWN;
    if (e->kind != ADM_OP_SETTLE)
        return;
    for (uint64_t i = 0; i < e->total_count; i++)
        call->totals[i] = e->totals[i];
    call->settle = (struct adm_settlement){ call->totals, (uint32_t)e->total_count, e->final_all };
    call->op.args.settle = &call->settle;
}

/* A completed errand: its answer, or another try later if the backend could not take it. */
static adm_status finish(struct admi_gate_thread *thread, struct admi_call *call,
                         uint32_t *out_outcome)
{
    adm_status status = admi_op_status(&call->op);

    if (call->gate->backend.defers && admi_call_worth_resending(call) &&
        admi_call_reserve_resend(call->gate)) {
        lease_queued(call, out_outcome);
        admi_call_resend(call);
        return ADM_OK;
    }
    status = lease_finish(call, thread->counters, status, out_outcome);
    admi_call_put(call->gate, thread, call);
    return status;
}

ADMI_APART static adm_status give_up(struct admi_call *call, uint32_t *out_outcome)
{
    bool alone = call->op.kind != ADM_OP_RENEW;

    if (alone)
        lease_queued(call, out_outcome);
    admi_call_let_go(call);
    return alone ? ADM_OK : ADM_E_BACKEND_UNKNOWN;
}

static adm_status run(const struct errand *e, struct admi_thread *self, uint32_t *out_outcome,
                      uint64_t *out_ticket)
{
    struct adm_gate *gate = e->gate;
    struct admi_gate_thread *thread = admi_gate_thread_of(gate, self);
    struct admi_moment moment;
    struct admi_call *call;
    adm_status status = ADM_E_NOMEM;

    if (thread == NULL || (call = admi_call_get(gate, thread, &status)) == NULL)
        return status;
    fill(e, call);
    moment = admi_gate_clock_now(&gate->clock, &thread->wall);
    if (admi_call_start(call, thread, &moment, gate->backend_timeout_ns))
        return finish(thread, call, out_outcome);
    if (!gate->backend.defers) {
        admi_count(admi_observe_local(gate->observe), ADMI_BACKEND_RESULTS, 1);
        admi_call_lose(call);
        return ADM_E_BACKEND_RESULT;
    }
    if (e->queue != NULL)
        return admi_queue_enter(e->queue, call, e->user, NULL, out_ticket)
                   ? ADM_OK
                   : finish(thread, call, out_outcome);
    return admi_call_wait(call) ? finish(thread, call, out_outcome) : give_up(call, out_outcome);
}

static struct adm_completion completion_of(const struct admi_call *call)
{
    struct adm_completion c = { sizeof c,     ADM_OUTCOME_UNKNOWN, ADM_OK, 0,
                                call->ticket, call->user,          NULL,   { 0 } };

    return c;
}

void admi_lease_resume(struct admi_call *call, struct admi_gate_thread *thread,
                       struct adm_completion *out)
{
    *out = completion_of(call);
    out->status = finish(thread, call, &out->outcome);
}

void admi_lease_expire(struct admi_call *call, struct adm_completion *out)
{
    *out = completion_of(call);
    out->status = give_up(call, &out->outcome);
}

static adm_status check_and_run(const struct errand *e, uint32_t *out_outcome, uint64_t *out_ticket)
{
    struct admi_thread *self = admi_this_thread();
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    uint64_t ticket = 0;
    adm_status status = ADM_OK;

    if (self->callback_depth > 0)
        return ADM_E_REENTRANT;
    if (e->gate == NULL || e->result >= ADM_RESULT_COUNT)
        return ADM_E_INVALID_ARGUMENT;
    if (e->kind == ADM_OP_SETTLE)
        status = check_totals(e);
    if (status == ADM_OK && admi_gate_is_child(e->gate))
        status = ADM_E_BACKEND_FORKED;
    if (status == ADM_OK)
        status = run(e, self, &outcome, &ticket);
    if (status != ADM_OK)
        return status;
    if (out_outcome != NULL)
        *out_outcome = outcome;
    if (out_ticket != NULL)
        *out_ticket = ticket;
    return ADM_OK;
}

adm_status adm_release(struct adm_gate *gate, struct adm_id lease, uint32_t result,
                       uint32_t *out_outcome)
{
    const struct errand e = { gate, NULL, NULL, lease, ADM_OP_GIVE, result, NULL, 0, 0 };

    return check_and_run(&e, out_outcome, NULL);
}

adm_status adm_renew(struct adm_gate *gate, struct adm_id lease, uint32_t *out_outcome)
{
    const struct errand e = { gate, NULL, NULL, lease, ADM_OP_RENEW, 0, NULL, 0, 0 };

    return check_and_run(&e, out_outcome, NULL);
}

adm_status adm_settle(struct adm_gate *gate, struct adm_id lease, const struct adm_amount *totals,
                      uint64_t total_count, uint32_t final_all, uint32_t *out_outcome)
{
    const struct errand e = { gate, NULL,   NULL,        lease,    ADM_OP_SETTLE,
                              0,    totals, total_count, final_all };

    return check_and_run(&e, out_outcome, NULL);
}

adm_status adm_divert(struct adm_gate *gate, struct adm_id lease, uint32_t *out_outcome)
{
    const struct errand e = { gate, NULL, NULL, lease, ADM_OP_DIVERT, 0, NULL, 0, 0 };

    return check_and_run(&e, out_outcome, NULL);
}

static adm_status start(const struct errand *e, uint32_t *out_outcome, uint64_t *out_ticket)
{
    if (e->queue == NULL || out_outcome == NULL || out_ticket == NULL)
        return ADM_E_INVALID_ARGUMENT;
    return check_and_run(e, out_outcome, out_ticket);
}

adm_status adm_release_start(struct adm_gate *gate, struct adm_queue *queue, struct adm_id lease,
                             uint32_t result, void *user, uint32_t *out_outcome,
                             uint64_t *out_ticket)
{
    const struct errand e = { gate, queue, user, lease, ADM_OP_GIVE, result, NULL, 0, 0 };

    ADMI_REFUSE_REENTRY();
    return start(&e, out_outcome, out_ticket);
}

adm_status adm_renew_start(struct adm_gate *gate, struct adm_queue *queue, struct adm_id lease,
                           void *user, uint32_t *out_outcome, uint64_t *out_ticket)
{
    const struct errand e = { gate, queue, user, lease, ADM_OP_RENEW, 0, NULL, 0, 0 };

    ADMI_REFUSE_REENTRY();
    return start(&e, out_outcome, out_ticket);
}

adm_status adm_settle_start(struct adm_gate *gate, struct adm_queue *queue, struct adm_id lease,
                            const struct adm_amount *totals, uint64_t total_count,
                            uint32_t final_all, void *user, uint32_t *out_outcome,
                            uint64_t *out_ticket)
{
    const struct errand e = { gate, queue,  user,        lease,    ADM_OP_SETTLE,
                              0,    totals, total_count, final_all };

    ADMI_REFUSE_REENTRY();
    return start(&e, out_outcome, out_ticket);
}

adm_status adm_divert_start(struct adm_gate *gate, struct adm_queue *queue, struct adm_id lease,
                            void *user, uint32_t *out_outcome, uint64_t *out_ticket)
{
    const struct errand e = { gate, queue, user, lease, ADM_OP_DIVERT, 0, NULL, 0, 0 };

    ADMI_REFUSE_REENTRY();
    return start(&e, out_outcome, out_ticket);
}
