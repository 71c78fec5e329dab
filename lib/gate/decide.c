/* SPDX-License-Identifier: Apache-2.0 */
/* From the backend's answer to a decision: which reason speaks, who denied, how long to wait;
 * counters and the event. */
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "gate/gate.h"
#include "gate/memo.h"

/* What is being written, and for whom it is counted. */
struct verdict {
    struct admi_call *call;
    struct adm_decision *decision;
    struct admi_counters *counters;
    bool truncated;
    bool all_pass; /* terms and rules without state alike, shadow rules included */
};

static uint32_t http_status(uint32_t reason)
{
    switch (reason) {
    case ADM_REASON_ALLOWED:
    case ADM_REASON_EMERGENCY_ALLOWED:
        return 200;
    case ADM_REASON_RATE_EXCEEDED:
    case ADM_REASON_QUOTA_EXCEEDED:
    case ADM_REASON_CONCURRENCY_EXCEEDED:
    case ADM_REASON_PRESSURE:
    case ADM_REASON_UNSATISFIABLE:
        return 429;
    case ADM_REASON_COST_ABOVE_CAP:
        return 400;
    default:
        return 503;
    }
}

uint32_t admi_reason_of_term(const struct adm_term *term)
{
    switch (term->verdict) {
    case ADM_TERM_PASS:
        return ADM_REASON_ALLOWED;
    case ADM_TERM_NEVER:
        return ADM_REASON_UNSATISFIABLE;
    case ADM_TERM_NO_ROOM:
        return ADM_REASON_KEY_SPACE_FULL;
    case ADM_TERM_EXCEEDED:
        return term->kind == ADM_KIND_BUCKET  ? ADM_REASON_RATE_EXCEEDED
               : term->kind == ADM_KIND_QUOTA ? ADM_REASON_QUOTA_EXCEEDED
                                              : ADM_REASON_CONCURRENCY_EXCEEDED;
    default:
        return ADM_REASON_STATE_UNAVAILABLE;
    }
}

/* The least whole number of milliseconds from the caller's own time; 0: not known, or never. */
uint64_t admi_retry_after_ms(const struct admi_call *call, const struct adm_term *term)
{
    const struct admi_moment *moment = &call->question.moment;
    bool own_clock = (call->gate->backend.info.capabilities & ADM_CAN_OWN_CLOCK) != 0;
    uint64_t from_ns;

    if (term->passes_at_ns == UINT64_MAX)
        return 0;
    if (term->kind == ADM_KIND_QUOTA)
        from_ns = own_clock ? call->op.judged.wall_ns : moment->caller_wall_ns;
    else
        from_ns = own_clock ? call->op.judged.mono_ns : moment->caller_mono_ns;
    if (term->passes_at_ns <= from_ns)
        return 1;
    return (term->passes_at_ns - from_ns - 1) / ADM_MILLISECOND + 1;
}

struct adm_id admi_decision_id(const struct adm_gate *gate, struct adm_id of)
{
    /* Not the lease id itself: decision ids are sent to clients, lease ids give units back. */
    return admi_hash_id(of, gate->secret);
}

/* ---- writing ---- */

static void add_name(struct verdict *v, struct adm_bytes id)
{
    struct adm_decision *d = v->decision;

    /* Nothing after the first that does not fit: names are found by their number. */
    if (v->truncated || sizeof d->names - d->names_used < id.length + 1) {
        v->truncated = true;
        return;
    }
    admi_copy(d->names + d->names_used, id.data, id.length);
    d->names[d->names_used + id.length] = '\0';
    d->names_used += (uint32_t)id.length + 1;
}

static void add_rule(struct verdict *v, uint32_t rule)
{
    add_name(v, v->call->snapshot->policy->rules[rule].id);
    v->decision->rule_count++;
}

static void begin(struct verdict *v)
{
    struct adm_decision *d = v->decision;
    const struct admi_snapshot *snapshot = v->call->snapshot;

    d->flags = 0;
    d->verdict = ADM_VERDICT_DENY;
    d->reason = ADM_REASON_STATE_UNAVAILABLE;
    d->rule_count = d->shadow_count = d->unknown_count = 0;
    d->retry_after_ms = 0;
    d->lease = (struct adm_id){ 0, 0 };
    d->names_used = d->reserved0 = 0;
    d->names[0] = '\0';
    admi_clear(d->reserved, sizeof d->reserved);
    admi_copy(d->policy_version, snapshot->policy->version, sizeof d->policy_version);
    admi_copy(d->table_version, snapshot->table_version, sizeof d->table_version);
}

/* By the lease, which its settlement knows; else by the seed. */
static void identify(struct verdict *v)
{
    const struct adm_id lease = v->decision->lease;

    v->decision->id =
        admi_decision_id(v->call->gate, (lease.high | lease.low) != 0 ? lease : v->call->take.seed);
}

static const struct adm_term *term_of(const struct admi_call *call, const struct admi_judged *j)
{
    return j->term == ADMI_NO_TERM ? NULL : &call->terms[j->term];
}

/* What the terms came to, once for all that follows. */
ADMI_APART static void note_reasons(struct admi_call *call)
{
    struct admi_question *q = &call->question;

    for (uint32_t i = 0; i < q->judged_count; i++)
        if (q->judged[i].term != ADMI_NO_TERM)
            q->judged[i].reason = admi_reason_of_term(&call->terms[q->judged[i].term]);
}

/* ---- the reason ---- */

/* Rules whose key space is full speak before all others; the wait is known if each knows its own.
 */
ADMI_APART static bool decide_room(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    uint64_t wait_ms = 0;
    bool known = true, any = false;

    for (uint32_t i = 0; i < q->judged_count; i++) {
        if (q->judged[i].shadow || q->judged[i].reason != ADM_REASON_KEY_SPACE_FULL)
            continue;
        uint64_t ms = admi_retry_after_ms(v->call, term_of(v->call, &q->judged[i]));

        any = true;
        known = known && ms > 0;
        wait_ms = ms > wait_ms ? ms : wait_ms;
        add_rule(v, q->judged[i].rule);
    }
    if (any) {
        v->decision->reason = ADM_REASON_KEY_SPACE_FULL;
        v->decision->retry_after_ms = known ? wait_ms : 0;
    }
    return any;
}

ADMI_APART static void decide_by_rules(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    struct adm_decision *d = v->decision;
    uint32_t first = ADM_REASON_ALLOWED;
    uint64_t wait_ms = 0;
    bool unsatisfiable = false, never = false;

    for (uint32_t i = 0; i < q->judged_count; i++) {
        const struct adm_term *term = term_of(v->call, &q->judged[i]);
        uint32_t reason = q->judged[i].reason;

        if (q->judged[i].shadow || reason == ADM_REASON_ALLOWED)
            continue;
        if (first == ADM_REASON_ALLOWED)
            first = reason;
        add_rule(v, q->judged[i].rule);
        unsatisfiable = unsatisfiable || reason == ADM_REASON_UNSATISFIABLE;
        if (reason == ADM_REASON_RATE_EXCEEDED || reason == ADM_REASON_QUOTA_EXCEEDED) {
            uint64_t ms = admi_retry_after_ms(v->call, term);

            never = never || ms == 0;
            wait_ms = ms > wait_ms ? ms : wait_ms;
        }
    }
    d->rule_count += q->denied_beyond;
    v->truncated = v->truncated || q->denied_beyond > 0;
    d->reason = q->cap_denied   ? ADM_REASON_COST_ABOVE_CAP
                : unsatisfiable ? ADM_REASON_UNSATISFIABLE
                                : first;
    d->retry_after_ms = q->cap_denied || unsatisfiable || never ? 0 : wait_ms;
    d->verdict = d->reason == ADM_REASON_ALLOWED ? ADM_VERDICT_ALLOW : ADM_VERDICT_DENY;
}

ADMI_APART static void decide_early(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    struct adm_decision *d = v->decision;

    d->reason = q->early;
    d->verdict = q->early == ADM_REASON_ALLOWED ? ADM_VERDICT_ALLOW : ADM_VERDICT_DENY;
    for (uint32_t i = 0; i < q->missing_count && i < ADMI_MAX_JUDGED; i++)
        if (q->early == ADM_REASON_MISSING_DESCRIPTOR || q->early == ADM_REASON_MISSING_AMOUNT)
            add_rule(v, q->missing[i]);
    if (q->missing_count > ADMI_MAX_JUDGED) {
        d->rule_count += q->missing_count - ADMI_MAX_JUDGED;
        v->truncated = true;
    }
}

ADMI_APART static void add_shadow(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    struct adm_decision *d = v->decision;

    for (uint32_t i = 0; i < q->judged_count; i++) {
        uint32_t reason = q->judged[i].reason;

        if (!q->judged[i].shadow || reason == ADM_REASON_ALLOWED)
            continue;
        if (reason == ADM_REASON_KEY_SPACE_FULL || reason == ADM_REASON_STATE_UNAVAILABLE ||
            reason == ADM_REASON_POLICY_TOO_WIDE) {
            d->unknown_count++;
        } else {
            add_name(v, v->call->snapshot->policy->rules[q->judged[i].rule].id);
            d->shadow_count++;
        }
    }
}

/* The usual answer: no rule of any kind has an objection. */
static bool all_pass(const struct admi_call *call)
{
    uint32_t verdicts = 0;

    if (call->question.early != ADM_REASON_COUNT || call->question.any_stateless_reason)
        return false;
    for (uint32_t i = 0; i < call->take.term_count; i++)
        verdicts |= call->terms[i].verdict ^ ADM_TERM_PASS;
    return verdicts == 0;
}

static void decide_allowed(struct verdict *v)
{
    v->decision->verdict = ADM_VERDICT_ALLOW;
    v->decision->reason = ADM_REASON_ALLOWED;
}

/* The answer of a charge and its terms must say the same; a backend that contradicts itself is not
 * believed. */
static bool contradicts(const struct admi_call *call, const struct adm_decision *d)
{
    const struct adm_take *take = &call->take;
    bool lease = (take->lease.high | take->lease.low) != 0;

    if (take->mode != ADM_TAKE_CHARGE)
        return false;
    return (take->verdict == ADM_VERDICT_ALLOW) != (d->verdict == ADM_VERDICT_ALLOW) ||
           (d->verdict == ADM_VERDICT_ALLOW && lease != ((take->flags & ADM_TAKE_F_LEASE) != 0));
}

ADMI_APART static void fail_closed(struct verdict *v, uint32_t reason)
{
    struct adm_decision *d = v->decision;

    d->verdict = ADM_VERDICT_DENY;
    d->reason = reason;
    d->rule_count = d->shadow_count = d->unknown_count = 0;
    d->retry_after_ms = 0;
    d->names_used = 0;
    d->names[0] = '\0';
    v->truncated = false;
}

static void decide_with_state(struct verdict *v)
{
    const struct admi_call *call = v->call;
    struct adm_decision *d = v->decision;

    if (v->all_pass)
        decide_allowed(v);
    else if (call->question.early != ADM_REASON_COUNT)
        decide_early(v);
    else if (!decide_room(v))
        decide_by_rules(v);
    if (contradicts(call, d)) {
        admi_count(v->counters, ADMI_BACKEND_RESULTS, 1);
        fail_closed(v, ADM_REASON_STATE_UNAVAILABLE);
        return;
    }
    if (call->take.mode == ADM_TAKE_CHARGE && d->verdict == ADM_VERDICT_ALLOW)
        d->lease = call->take.lease;
    if (!v->all_pass && call->question.any_shadow)
        add_shadow(v);
}

ADMI_APART static void decide_repeated(struct verdict *v, enum admi_purpose purpose)
{
    struct adm_decision *d = v->decision;

    if (!admi_memo_read(v->call->memo_out, v->call->take.memo_out_length, d)) {
        admi_count(v->counters, ADMI_BACKEND_RESULTS, 1);
        begin(v); /* what was read of it so far is not to be believed either */
        fail_closed(v, ADM_REASON_STATE_UNAVAILABLE);
        return;
    }
    d->verdict = ADM_VERDICT_ALLOW;
    d->reason = ADM_REASON_ALLOWED;
    d->flags |= ADM_DECISION_REPEATED;
    if ((v->call->take.lease.high | v->call->take.lease.low) != 0)
        d->id = admi_decision_id(v->call->gate, v->call->take.lease);
    if (purpose == ADMI_FOR_EXPLAIN)
        return; /* a look at a decision gives nobody its lease */
    d->lease = v->call->take.lease;
    admi_count(v->counters, ADMI_REPEATED, 1);
}

/* ---- counting ---- */

ADMI_APART static void count_shadow(struct verdict *v, const struct admi_judged *j)
{
    const uint32_t slot = j->metrics_slot, reason = j->reason;

    if (reason == ADM_REASON_ALLOWED)
        return;
    if (reason == ADM_REASON_KEY_SPACE_FULL || reason == ADM_REASON_STATE_UNAVAILABLE ||
        reason == ADM_REASON_POLICY_TOO_WIDE)
        admi_count_rule(v->counters, slot, ADMI_RULE_SHADOW_UNKNOWN, 1);
    else
        admi_count_rule(v->counters, slot, ADMI_RULE_SHADOW_DENIED, 1);
}

/* A rule that would have let a denied request pass is not counted: another one did not. */
static void count_rules(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    bool allowed = v->decision->verdict == ADM_VERDICT_ALLOW;
    struct admi_rule_amount counted[ADMI_MAX_JUDGED];
    uint32_t count = 0;

    for (uint32_t i = 0; i < q->judged_count; i++) {
        const struct admi_judged *j = &q->judged[i];

        if (j->shadow) {
            count_shadow(v, j);
        } else if (allowed || j->reason != ADM_REASON_ALLOWED) {
            counted[count].slot = j->metrics_slot;
            counted[count++].amount = j->amount;
        }
    }
    admi_count_rule_requests(v->counters, allowed ? ADMI_RULE_ADMITTED : ADMI_RULE_DENIED, counted,
                             count);
    for (uint32_t i = 0; i < q->missing_count && i < ADMI_MAX_JUDGED; i++)
        admi_count_rule(v->counters, v->call->snapshot->rules[q->missing[i]].metrics_slot,
                        ADMI_RULE_DENIED, 1);
}

static void count_decision(struct verdict *v)
{
    const struct admi_question *q = &v->call->question;
    const struct adm_decision *d = v->decision;

    if (v->counters == NULL)
        return;
    admi_count_decision(v->counters, q->series, d->reason, v->call->request.cost);
    if (!q->any_enforced)
        admi_count(v->counters, ADMI_UNMATCHED, 1);
    if (d->retry_after_ms > 0)
        admi_count_histogram(v->counters, ADMI_RETRY_DELAY_MS, d->retry_after_ms);
    if ((d->flags & ADM_DECISION_REPEATED) == 0 && d->reason != ADM_REASON_STATE_UNAVAILABLE)
        count_rules(v);
}

ADMI_APART static void tell(const struct admi_call *call, const struct adm_decision *decision)
{
    const struct adm_gate *gate = call->gate;
    struct adm_event event = { .size = sizeof event, .kind = ADM_EVENT_DECISION };

    event.now = call->question.moment.now;
    event.decision_id = decision->id;
    event.lease = decision->lease;
    event.decision = decision;
    event.descriptors = call->request.descriptors;
    event.descriptor_count = call->request.descriptor_count;
    event.amounts = call->request.amounts;
    event.amount_count = call->request.amount_count;
    event.cost = call->request.cost;
    admi_enter_callback();
    gate->on_event(gate->on_event_self, &event);
    admi_leave_callback();
}

adm_status admi_decide(struct admi_call *call, struct admi_gate_thread *thread,
                       adm_status backend_status, enum admi_purpose purpose,
                       struct adm_decision *decision)
{
    struct verdict v = { call, decision, thread->counters, false, false };

    if (backend_status == ADM_OK && call->take.repeated == ADM_REPEAT_OTHER)
        return ADM_E_INVALID_ATTEMPT;
    begin(&v);
    v.all_pass =
        backend_status == ADM_OK && call->take.repeated == ADM_REPEAT_NONE && all_pass(call);
    /* Without an answer the terms may still be the backend's: a call that was given up. */
    if (!v.all_pass && (backend_status == ADM_OK || backend_status == ADM_E_BACKEND_FULL))
        note_reasons(call);
    if (backend_status == ADM_E_BACKEND_FULL) {
        fail_closed(&v, ADM_REASON_KEY_SPACE_FULL);
    } else if (backend_status != ADM_OK) {
        admi_count(v.counters, ADMI_BACKEND_ERRORS, 1);
        fail_closed(&v, ADM_REASON_STATE_UNAVAILABLE);
    } else if (call->take.repeated == ADM_REPEAT_SAME) {
        decide_repeated(&v, purpose);
    } else {
        decide_with_state(&v);
    }
    if ((decision->flags & ADM_DECISION_REPEATED) == 0)
        identify(&v);
    decision->http_status = http_status(decision->reason);
    decision->flags |= v.truncated ? ADM_DECISION_TRUNCATED : 0;
    if (purpose == ADMI_FOR_ADMIT) {
        count_decision(&v);
        if (call->gate->on_event != NULL)
            tell(call, decision);
    }
    return ADM_OK;
}
