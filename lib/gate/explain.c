/* SPDX-License-Identifier: Apache-2.0 */
/* Looking without touching: why a request would be decided as it would be, and what a rule's level
 * is. */
#include "base/memory.h"
#include "gate/gate.h"

#define STALE_TRIES 16u

struct explaining {
    adm_report_fn report;
    void *report_self;
};

static const struct admi_judged *judged_of(const struct admi_call *call, uint32_t rule)
{
    for (uint32_t i = 0; i < call->question.judged_count; i++)
        if (call->question.judged[i].rule == rule)
            return &call->question.judged[i];
    return NULL;
}

static bool is_missing(const struct admi_call *call, uint32_t rule)
{
    const struct admi_question *q = &call->question;

    for (uint32_t i = 0; i < q->missing_count && i < ADMI_MAX_JUDGED; i++)
        if (q->missing[i] == rule)
            return q->early == ADM_REASON_MISSING_DESCRIPTOR ||
                   q->early == ADM_REASON_MISSING_AMOUNT;
    return false;
}

static uint64_t saturated(uint64_t value, uint64_t factor)
{
    admi_u128 product = (admi_u128)value * factor;

    return product > ADM_MAX_AMOUNT ? ADM_MAX_AMOUNT : (uint64_t)product;
}

static void report_term(const struct admi_call *call, const struct admi_numbers *numbers,
                        const struct adm_term *term, struct adm_rule_report *out)
{
    bool answered = call->op.kind == ADM_OP_TAKE && admi_op_is_complete(&call->op) &&
                    admi_op_status(&call->op) == ADM_OK;

    out->limit =
        term->kind == ADM_KIND_BUCKET ? saturated(numbers->capacity, term->replicas) : term->limit;
    out->replicas = term->replicas;
    if (!answered)
        return;
    out->stateful = 1;
    out->level = term->level;
    out->reason = admi_reason_of_term(term);
    out->denies = out->reason != ADM_REASON_ALLOWED;
    if (out->denies)
        out->retry_after_ms = admi_retry_after_ms(call, term);
}

static const char *origin_name(uint32_t origin, char text[32])
{
    static const char prefix[] = "override ";
    char digits[12];
    uint32_t used = 0, at = 0;

    if (origin == 0)
        return "rule";
    if (origin == UINT32_MAX)
        return "table entry";
    admi_copy(text, prefix, sizeof prefix - 1);
    at = sizeof prefix - 1;
    for (; origin > 0; origin /= 10)
        digits[used++] = (char)('0' + origin % 10);
    while (used > 0)
        text[at++] = digits[--used];
    text[at] = '\0';
    return text;
}

static void report_matched(const struct admi_call *call, const struct admi_rule *rule,
                           const struct adm_bytes *values, struct adm_rule_report *out,
                           char origin_text[32])
{
    const struct admi_judged *judged = judged_of(call, rule->index);
    const struct admi_numbers *numbers;
    uint64_t handle = 0, entry = 0;
    uint32_t origin = 0;

    out->matched = 1;
    numbers = admi_pick(call->snapshot, rule->index, values, &handle, &origin, &entry);
    out->origin = origin_name(origin, origin_text);
    if (origin == UINT32_MAX)
        out->entry = call->snapshot->rules[rule->index].table->entries[entry].key;
    if (numbers == NULL) {
        out->off = 1;
        return;
    }
    /* What the numbers say by themselves; a judged term knows it scaled. */
    if (rule->type != ADMI_PRESSURE)
        out->limit = rule->type == ADMI_TOKEN_BUCKET ? numbers->capacity
                                                     : admi_limit_in_force(rule, numbers, 1);
    if (judged != NULL) {
        out->has_amount = judged->has_amount;
        out->amount = judged->amount;
    }
    if (is_missing(call, rule->index)) {
        out->denies = 1;
        out->reason = call->question.early;
    } else if (judged != NULL && judged->term != ADMI_NO_TERM) {
        report_term(call, numbers, &call->terms[judged->term], out);
    } else if (judged != NULL) {
        out->reason = judged->reason;
        out->denies = judged->reason != ADM_REASON_ALLOWED;
    }
}

static void report_rule(const struct explaining *e, const struct admi_call *call,
                        const struct admi_rule *rule, const struct adm_bytes *values, bool matched)
{
    const struct adm_policy *policy = call->snapshot->policy;
    struct adm_rule_report report = { .size = sizeof report };
    char origin_text[32];

    report.rule = rule->id.data;
    report.type = admi_rule_type_name(rule->type);
    report.unit = admi_policy_unit_name(policy, rule->unit).data;
    report.shadow = rule->shadow;
    report.origin = "rule";
    report.replicas = 1;
    if (matched) {
        report_matched(call, rule, values, &report, origin_text);
    } else {
        const struct admi_match_entry *failed = admi_match_failure(&rule->match, values);

        if (failed != NULL && failed->key != ADMI_NO_KEY) /* an empty "not" has no key to name */
            report.mismatch = policy->keys[failed->key];
    }
    admi_enter_callback();
    e->report(e->report_self, &report);
    admi_leave_callback();
}

static void report_all(void *self, const struct admi_call *call, struct admi_gate_thread *thread)
{
    const struct explaining *e = self;
    const struct adm_policy *policy = call->snapshot->policy;
    uint32_t slots[ADM_MAX_DESCRIPTORS], slot_count = 0;

    /* It went well a moment ago, for the same request and snapshot. */
    if (admi_values_set(call->gate, thread, call->snapshot, call->request.descriptors,
                        call->request.descriptor_count, slots, &slot_count) != ADM_OK)
        return;
    for (uint32_t r = 0; r < policy->rule_count; r++)
        report_rule(e, call, &policy->rules[r], thread->values,
                    admi_match_holds(&policy->rules[r].match, thread->values));
    admi_values_clear(thread, slots, slot_count);
}

adm_status adm_explain(struct adm_gate *gate, const struct adm_request *request,
                       adm_report_fn report, void *report_self, struct adm_decision *decision)
{
    struct explaining e = { report, report_self };

    ADMI_REFUSE_REENTRY();
    return admi_ask(gate, admi_this_thread(), request, ADMI_FOR_EXPLAIN,
                    report == NULL ? NULL : report_all, &e, decision);
}

/* ---- one level ---- */

struct reading {
    struct admi_call *call;
    struct admi_gate_thread *thread;
    struct adm_bytes rule;
};

static bool lacks_partition(const struct adm_policy *policy, const struct admi_rule *rule,
                            const struct adm_bytes *values)
{
    if (policy->shard_key != ADMI_NO_KEY && values[policy->shard_key].length == 0)
        return true;
    for (uint32_t i = 0; i < rule->partition_count; i++)
        if (values[rule->partition_keys[i]].length == 0)
            return true;
    return false;
}

static adm_status write_reading(struct reading *r, const struct admi_rule *rule,
                                const struct adm_bytes *values)
{
    struct admi_call *call = r->call;
    const struct admi_snapshot *snapshot = call->snapshot;
    const struct admi_numbers *numbers;
    uint64_t handle = 0, entry = 0, replicas = 1, bytes;
    uint32_t origin = 0;

    if (rule->type == ADMI_REQUEST_CAP || rule->type == ADMI_PRESSURE)
        return ADM_E_INVALID_ARGUMENT;
    numbers = admi_pick(snapshot, rule->index, values, &handle, &origin, &entry);
    if (numbers == NULL)
        return ADM_E_INVALID_ARGUMENT;
    if (lacks_partition(snapshot->policy, rule, values))
        return ADM_E_INVALID_DESCRIPTORS;
    if (rule->per_replica && values[rule->scope_key].length != 0)
        replicas = admi_signals_healthy(call->gate->signals, values[rule->scope_key],
                                        call->question.moment.now.mono_ns);
    bytes = admi_partition_bytes(snapshot, rule, values);
    if (!admi_call_reserve_keys(call, bytes))
        return ADM_E_NOMEM;
    admi_term_fill(snapshot, rule, numbers, handle, values, replicas == 0 ? 1 : replicas, 0,
                   &call->terms[0]);
    call->terms[0].partition = admi_partition_write(snapshot, rule, values, call->keys);
    admi_clear(&call->take, sizeof call->take);
    call->take.mode = ADM_TAKE_JUDGE;
    call->take.sequence = snapshot->sequence;
    call->take.terms = call->terms;
    call->take.term_count = 1;
    call->take.memo_out = call->memo_out;
    call->op.kind = ADM_OP_TAKE;
    call->op.args.take = &call->take;
    return ADM_OK;
}

static adm_status prepare_reading(struct reading *r)
{
    struct admi_call *call = r->call;
    const struct adm_policy *policy = call->snapshot->policy;
    uint32_t index = admi_policy_rule(policy, r->rule);
    uint32_t slots[ADM_MAX_DESCRIPTORS], slot_count = 0;
    adm_status status;

    if (index == UINT32_MAX)
        return ADM_E_UNKNOWN_RULE;
    status = admi_values_set(call->gate, r->thread, call->snapshot, call->request.descriptors,
                             call->request.descriptor_count, slots, &slot_count);
    if (status != ADM_OK)
        return status;
    call->question.moment = admi_gate_clock_read(&call->gate->clock);
    status = write_reading(r, &policy->rules[index], r->thread->values);
    admi_values_clear(r->thread, slots, slot_count);
    return status;
}

/* True: the call is still ours. */
static bool read_once(struct reading *r, adm_status *out_status)
{
    struct adm_gate *gate = r->call->gate;

    *out_status = prepare_reading(r);
    if (*out_status != ADM_OK)
        return true;
    if (!admi_call_start(r->call, r->thread, &r->call->question.moment, gate->backend_timeout_ns)) {
        *out_status = gate->backend.defers ? ADM_E_BACKEND_UNAVAILABLE : ADM_E_BACKEND_RESULT;
        if (!gate->backend.defers) {
            atomic_fetch_add(&r->call->snapshot->references, 1);
            admi_snapshot_leave(r->thread);
            admi_call_lose(r->call);
            return false;
        }
        if (!admi_call_wait(r->call)) {
            admi_call_let_go(r->call);
            return false;
        }
    }
    *out_status = admi_op_status(&r->call->op);
    return true;
}

static adm_status read_level(struct reading *r, int64_t *out)
{
    adm_status status = ADM_OK;

    for (uint32_t tries = 0; tries <= STALE_TRIES; tries++) {
        const struct admi_snapshot *used;

        admi_call_borrow_snapshot(r->call, r->thread);
        used = r->call->snapshot;
        if (!read_once(r, &status))
            return status;
        admi_call_return_snapshot(r->call, r->thread);
        if (status != ADM_E_BACKEND_STALE)
            break;
        (void)admi_gate_heal(r->call->gate, used);
    }
    if (status == ADM_OK)
        *out = r->call->terms[0].level;
    admi_call_put(r->call->gate, r->thread, r->call);
    return status;
}

adm_status adm_gate_read(struct adm_gate *gate, struct adm_bytes rule,
                         const struct adm_descriptor *descriptors, uint64_t descriptor_count,
                         int64_t *out)
{
    struct reading r = { NULL, NULL, rule };
    adm_status status = ADM_E_NOMEM;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out == NULL || rule.data == NULL)
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    status = admi_descriptors_check(gate, descriptors, descriptor_count);
    if (status != ADM_OK)
        return status;
    r.thread = admi_gate_thread(gate);
    if (r.thread == NULL)
        return ADM_E_NOMEM;
    r.call = admi_call_get(gate, r.thread, &status);
    if (r.call == NULL)
        return status;
    r.call->request = (struct adm_request){ .size = sizeof r.call->request,
                                            .descriptors = descriptors,
                                            .descriptor_count = descriptor_count };
    admi_call_keep_request(r.call);
    return read_level(&r, out);
}
