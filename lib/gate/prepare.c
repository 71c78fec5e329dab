/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to a question for the backend: match, pick the numbers, judge what needs no state,
 * write the terms. */
#include "base/memory.h"
#include "gate/gate.h"

#define PARTS 8u

/* The request by unit: what it asks for. */
struct amounts {
    uint64_t value[ADM_UNIT_FIRST_DECLARED + ADMI_MAX_UNITS];
    uint64_t given[2]; /* bits */
    bool derived;      /* tokens is the sum of its parts */
};

static bool given(const struct amounts *amounts, uint32_t unit)
{
    return amounts->given[unit / 64] >> (unit % 64) & 1;
}

static void give(struct amounts *amounts, uint32_t unit, uint64_t value)
{
    amounts->given[unit / 64] |= UINT64_C(1) << (unit % 64);
    amounts->value[unit] = value;
}

static void import_amounts(const struct adm_request *request, struct amounts *out)
{
    out->given[0] = out->given[1] = 0;
    out->derived = false;
    give(out, ADM_UNIT_COST, request->cost);
    give(out, ADM_UNIT_REQUESTS, 1);
    if (request->amount_count == 0)
        return;
    for (uint64_t i = 0; i < request->amount_count; i++)
        give(out, request->amounts[i].unit, request->amounts[i].value);
    out->derived = !given(out, ADM_UNIT_TOKENS) &&
                   (given(out, ADM_UNIT_INPUT_TOKENS) || given(out, ADM_UNIT_OUTPUT_TOKENS));
    if (out->derived) {
        uint64_t input = given(out, ADM_UNIT_INPUT_TOKENS) ? out->value[ADM_UNIT_INPUT_TOKENS] : 0;
        uint64_t output =
            given(out, ADM_UNIT_OUTPUT_TOKENS) ? out->value[ADM_UNIT_OUTPUT_TOKENS] : 0;

        give(out, ADM_UNIT_TOKENS, input + output);
    }
}

/* ---- judging and collecting ---- */

/* The partition that rules with the same keys share: written once, and their terms point to the
 * same bytes, so that a backend can tell without looking at them. */
struct part {
    uint32_t split;               /* admi_bound_rule.split of those rules */
    const struct admi_rule *rule; /* one of them */
    bool lacks;                   /* the request gives no value for one of them */
    bool written;
    uint64_t at, length; /* in call->keys */
};

/* What prepare carries from rule to rule. */
struct preparation {
    struct admi_call *call;
    const struct admi_snapshot *snapshot;
    const struct adm_bytes *values;
    struct amounts amounts;
    enum admi_purpose purpose;
    uint32_t enforced_terms,
        shadow_terms; /* shadow terms are written from terms[ADM_MAX_TERMS] on */
    uint32_t consuming;
    uint32_t missing_descriptors, missing_amounts;
    uint64_t ttl_ns, shadow_ttl_ns;
    bool keeps_lease;
    bool no_memory;
    uint32_t part_count;
    struct part parts[PARTS]; /* if there are more, the last place is for whoever comes */
};

static bool lacks_descriptor(const struct preparation *p, const struct admi_rule *rule)
{
    uint32_t shard = p->snapshot->policy->shard_key;

    if (shard != ADMI_NO_KEY && admi_rule_has_state(rule) && p->values[shard].length == 0)
        return true;
    for (uint32_t i = 0; i < rule->partition_count; i++)
        if (p->values[rule->partition_keys[i]].length == 0)
            return true;
    return false;
}

/* Of a rule with state. */
static struct part *part_of(struct preparation *p, const struct admi_bound_rule *bound)
{
    for (uint32_t i = 0; i < p->part_count; i++)
        if (p->parts[i].split == bound->split)
            return &p->parts[i];
    if (p->part_count < PARTS)
        p->part_count++;
    struct part *part = &p->parts[p->part_count - 1];

    part->split = bound->split;
    part->rule = &p->snapshot->policy->rules[bound - p->snapshot->rules];
    part->lacks = lacks_descriptor(p, part->rule);
    part->written = false;
    return part;
}

/* False: no memory. */
ADMI_APART static bool write_part(struct preparation *p, struct part *part)
{
    struct admi_call *call = p->call;
    uint64_t most = (1 + (uint64_t)part->rule->partition_count) * (2 + ADM_MAX_VALUE_BYTES);

    /* Mostly there is room for the longest values, and nobody has to know how long these are. */
    if (call->key_bytes - call->keys_used < most &&
        !admi_call_reserve_keys(call, admi_partition_bytes(p->snapshot, part->rule, p->values))) {
        p->no_memory = true;
        return false;
    }
    part->at = call->keys_used;
    part->length =
        admi_partition_write(p->snapshot, part->rule, p->values, call->keys + part->at).length;
    part->written = true;
    call->keys_used += part->length;
    return true;
}

static bool lacks_amount(const struct preparation *p, const struct admi_rule *rule)
{
    return rule->type != ADMI_PRESSURE && !rule->completion &&
           !given(&p->amounts, p->snapshot->unit_of_policy[rule->unit]);
}

static bool breaches(admi_i128 sum, uint64_t count, const struct admi_numbers *numbers)
{
    /* mean ? threshold, with both sides times count, in units of 10^-18. */
    admi_i128 mean = sum * (admi_i128)(ADMI_DECIMAL_ONE / (uint64_t)ADMI_SIGNAL_ONE);
    admi_i128 threshold = ((admi_i128)numbers->threshold.whole * (admi_i128)ADMI_DECIMAL_ONE +
                           (admi_i128)numbers->threshold.fraction_e18) *
                          (admi_i128)count;

    switch (numbers->comparison) {
    case ADMI_GT:
        return mean > threshold;
    case ADMI_GTE:
        return mean >= threshold;
    case ADMI_LT:
        return mean < threshold;
    default:
        return mean <= threshold;
    }
}

static uint32_t judge_pressure(const struct preparation *p, const struct admi_rule *rule,
                               const struct admi_numbers *numbers)
{
    struct adm_bytes scope = p->values[rule->scope_key];
    admi_i128 sum = 0;
    uint64_t count = 0;

    if (scope.length == 0)
        return ADM_REASON_ALLOWED;
    admi_signals_sum(p->call->gate->signals, scope, rule->signal, numbers->max_age_ns,
                     p->call->question.moment.now.mono_ns, &sum, &count);
    return count > 0 && breaches(sum, count, numbers) ? ADM_REASON_PRESSURE : ADM_REASON_ALLOWED;
}

static uint64_t replicas_of(const struct preparation *p, const struct admi_rule *rule)
{
    uint64_t healthy = 0;

    if (rule->per_replica && p->values[rule->scope_key].length != 0)
        healthy = admi_signals_healthy(p->call->gate->signals, p->values[rule->scope_key],
                                       p->call->question.moment.now.mono_ns);
    return healthy == 0 ? 1 : healthy;
}

/* Remember what a rule came to. Rules without state must leave room for every term. */
static void remember(struct preparation *p, const struct admi_rule *rule, uint32_t reason,
                     uint32_t term)
{
    struct admi_question *q = &p->call->question;
    uint32_t room = ADMI_MAX_JUDGED - (term == ADMI_NO_TERM ? 2 * ADM_MAX_TERMS : 0);
    uint32_t unit = p->snapshot->unit_of_policy[rule->unit];

    q->any_stateless_reason = q->any_stateless_reason || reason != ADM_REASON_ALLOWED;
    q->any_shadow = q->any_shadow || rule->shadow;
    if (q->judged_count < room) {
        struct admi_judged *judged = &q->judged[q->judged_count++];

        judged->rule = rule->index;
        judged->reason = reason;
        judged->term = term;
        judged->metrics_slot = p->snapshot->rules[rule->index].metrics_slot;
        judged->shadow = rule->shadow;
        judged->has_amount = rule->type != ADMI_PRESSURE && given(&p->amounts, unit);
        judged->amount = judged->has_amount ? p->amounts.value[unit] : 0;
    } else if (reason != ADM_REASON_ALLOWED && !rule->shadow) {
        q->denied_beyond++;
    }
}

static void judge_stateless(struct preparation *p, const struct admi_rule *rule,
                            const struct admi_numbers *numbers)
{
    struct admi_question *q = &p->call->question;
    uint32_t reason = ADM_REASON_ALLOWED;

    if (rule->type == ADMI_PRESSURE)
        reason = judge_pressure(p, rule, numbers);
    else if (p->amounts.value[p->snapshot->unit_of_policy[rule->unit]] > numbers->limit)
        reason = ADM_REASON_COST_ABOVE_CAP;
    if (!rule->shadow && reason != ADM_REASON_ALLOWED)
        q->denied_stateless = true;
    if (!rule->shadow && reason == ADM_REASON_COST_ABOVE_CAP)
        q->cap_denied = true;
    remember(p, rule, reason, ADMI_NO_TERM);
}

/* True: the term was written. */
static bool add_term(struct preparation *p, const struct admi_rule *rule,
                     const struct admi_numbers *numbers, uint64_t handle, struct part *part)
{
    struct admi_call *call = p->call;
    uint32_t *used = rule->shadow ? &p->shadow_terms : &p->enforced_terms;
    uint32_t index = (rule->shadow ? ADM_MAX_TERMS : 0) + *used;
    uint32_t unit = p->snapshot->unit_of_policy[rule->unit];
    uint64_t amount = given(&p->amounts, unit) ? p->amounts.value[unit] : 0;

    if (*used == ADM_MAX_TERMS) {
        remember(p, rule, ADM_REASON_POLICY_TOO_WIDE, ADMI_NO_TERM); /* shadow: no verdict */
        return false;
    }
    if (!part->written && !write_part(p, part))
        return false;
    if (numbers == &rule->numbers && !rule->per_replica) {
        call->terms[index] = p->snapshot->rules[rule->index].term;
        call->terms[index].amount = amount;
    } else {
        admi_term_fill(p->snapshot, rule, numbers, handle, p->values, replicas_of(p, rule), amount,
                       &call->terms[index]);
    }
    call->terms[index].partition = (struct adm_bytes){ call->keys + part->at, part->length };
    *used += 1;
    remember(p, rule, ADM_REASON_ALLOWED, index);
    return true;
}

static void add_consuming(struct preparation *p, const struct admi_rule *rule,
                          const struct admi_numbers *numbers, uint64_t handle, struct part *part)
{
    uint64_t *ttl_ns = rule->shadow ? &p->shadow_ttl_ns : &p->ttl_ns;

    if (!rule->shadow && p->consuming++ >= ADM_MAX_TERMS)
        return;
    if (!add_term(p, rule, numbers, handle, part))
        return;
    if (rule->type == ADMI_CONCURRENCY && numbers->lease_ttl_ns > *ttl_ns)
        *ttl_ns = numbers->lease_ttl_ns;
    if (!rule->shadow && (rule->type == ADMI_CONCURRENCY || rule->settle_exact || rule->completion))
        p->keeps_lease = true;
}

static void note_missing(struct preparation *p, const struct admi_rule *rule, bool descriptor)
{
    struct admi_question *q = &p->call->question;

    /* Descriptors are checked first: once one is missing, amounts do not matter. */
    if (descriptor && p->missing_descriptors++ == 0)
        q->missing_count = 0;
    if (!descriptor && p->missing_descriptors > 0)
        return;
    if (!descriptor)
        p->missing_amounts++;
    if (q->missing_count < ADMI_MAX_JUDGED)
        q->missing[q->missing_count] = rule->index;
    q->missing_count++;
}

/* A rule that always asks for the same, and that this request can answer. False: look closer. */
static bool consider_plain(struct preparation *p, uint32_t r)
{
    const struct admi_bound_rule *bound = &p->snapshot->rules[r];
    struct admi_question *q = &p->call->question;
    const uint32_t index = p->enforced_terms, unit = bound->term.unit;
    struct adm_term *term = &p->call->terms[index];
    struct part *part;

    /* There is always room to judge a term: see remember(). */
    if (!bound->plain || index == ADM_MAX_TERMS || !given(&p->amounts, unit))
        return false;
    part = part_of(p, bound);
    if (part->lacks || (!part->written && !write_part(p, part)))
        return false;
    *term = bound->term;
    term->partition.data = p->call->keys + part->at;
    term->partition.length = part->length;
    term->amount = p->amounts.value[unit];
    struct admi_judged *judged = &q->judged[q->judged_count];

    judged->rule = r;
    judged->reason = ADM_REASON_ALLOWED;
    judged->term = index;
    judged->metrics_slot = bound->metrics_slot;
    judged->shadow = false;
    judged->has_amount = true;
    judged->amount = p->amounts.value[unit];
    q->judged_count++;
    q->any_enforced = true;
    p->enforced_terms++;
    p->consuming++;
    p->ttl_ns = bound->lease_ttl_ns > p->ttl_ns ? bound->lease_ttl_ns : p->ttl_ns;
    p->keeps_lease = p->keeps_lease || bound->keeps_lease;
    return true;
}

ADMI_APART static void consider(struct preparation *p, const struct admi_rule *rule)
{
    const struct admi_numbers *numbers = &rule->numbers;
    uint64_t handle = 0, entry = 0;
    uint32_t origin = 0;
    struct part *part = NULL;
    bool no_descriptor, no_amount;

    if (!rule->shadow)
        p->call->question.any_enforced = true;
    if (rule->override_count > 0 || rule->per_replica ||
        p->snapshot->rules[rule->index].table != NULL)
        numbers = admi_pick(p->snapshot, rule->index, p->values, &handle, &origin, &entry);
    if (numbers == NULL)
        return; /* off: matched, and asks for nothing */
    if (admi_rule_has_state(rule))
        part = part_of(p, &p->snapshot->rules[rule->index]);
    no_descriptor = part != NULL ? part->lacks : lacks_descriptor(p, rule);
    no_amount = lacks_amount(p, rule);
    if (no_descriptor || no_amount) {
        if (!rule->shadow)
            note_missing(p, rule, no_descriptor);
        return;
    }
    if (part != NULL)
        add_consuming(p, rule, numbers, handle, part);
    else
        judge_stateless(p, rule, numbers);
}

/* ---- the take ---- */

static void add_meter(struct admi_call *call, uint32_t unit, uint32_t flags, uint64_t total)
{
    struct adm_take *take = &call->take;

    for (uint32_t i = 0; i < take->meter_count; i++)
        if (call->meters[i].unit == unit) {
            call->meters[i].flags |= flags;
            return;
        }
    call->meters[take->meter_count++] = (struct adm_meter){ unit, flags, total };
}

static void add_meters(struct preparation *p)
{
    struct admi_call *call = p->call;
    const struct amounts *a = &p->amounts;

    for (uint32_t i = 0; i < p->enforced_terms; i++) {
        uint32_t unit = call->terms[i].unit;
        bool derived = unit == ADM_UNIT_TOKENS && a->derived;

        add_meter(call, unit, derived ? ADM_METER_F_DERIVED : 0,
                  given(a, unit) ? a->value[unit] : 0);
        if (!derived)
            continue;
        add_meter(call, ADM_UNIT_INPUT_TOKENS, 0,
                  given(a, ADM_UNIT_INPUT_TOKENS) ? a->value[ADM_UNIT_INPUT_TOKENS] : 0);
        add_meter(call, ADM_UNIT_OUTPUT_TOKENS, 0,
                  given(a, ADM_UNIT_OUTPUT_TOKENS) ? a->value[ADM_UNIT_OUTPUT_TOKENS] : 0);
    }
}

static uint32_t early_reason(const struct preparation *p)
{
    const struct admi_question *q = &p->call->question;

    if (!q->any_enforced)
        return p->snapshot->policy->unmatched_allow ? ADM_REASON_ALLOWED : ADM_REASON_NO_POLICY;
    if (p->missing_descriptors > 0)
        return ADM_REASON_MISSING_DESCRIPTOR;
    if (p->missing_amounts > 0)
        return ADM_REASON_MISSING_AMOUNT;
    if (p->consuming > ADM_MAX_TERMS)
        return ADM_REASON_POLICY_TOO_WIDE;
    return ADM_REASON_COUNT;
}

/* An early decision needs no verdict of the enforced terms; explain shows them all the same. */
ADMI_APART static void drop_enforced_terms(struct preparation *p)
{
    struct admi_question *q = &p->call->question;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < q->judged_count; i++)
        if (q->judged[i].shadow)
            q->judged[kept++] = q->judged[i];
    q->judged_count = kept;
    q->denied_beyond = 0;
    p->enforced_terms = 0;
}

ADMI_APART static void pack_terms(struct preparation *p)
{
    struct admi_question *q = &p->call->question;

    if (p->shadow_terms == 0)
        return;
    for (uint32_t i = 0; i < p->shadow_terms; i++)
        p->call->terms[p->enforced_terms + i] = p->call->terms[ADM_MAX_TERMS + i];
    for (uint32_t i = 0; i < q->judged_count; i++)
        if (q->judged[i].shadow && q->judged[i].term != ADMI_NO_TERM)
            q->judged[i].term += p->enforced_terms - ADM_MAX_TERMS;
}

static adm_status fill_take(struct preparation *p, struct admi_gate_thread *thread)
{
    struct admi_call *call = p->call;
    struct adm_take *take = &call->take;
    const struct admi_question *q = &call->question;
    bool charge =
        p->purpose == ADMI_FOR_ADMIT && q->early == ADM_REASON_COUNT && !q->denied_stateless;

    take->mode = charge ? ADM_TAKE_CHARGE : ADM_TAKE_JUDGE;
    take->flags = p->keeps_lease ? ADM_TAKE_F_LEASE : 0;
    take->sequence = p->snapshot->sequence;
    take->terms = call->terms;
    take->term_count = p->enforced_terms + p->shadow_terms;
    take->meter_count = 0;
    take->meters = call->meters;
    take->ttl_ns = p->ttl_ns > 0 ? p->ttl_ns : ADMI_DEFAULT_TTL_NS;
    take->shadow_ttl_ns = p->shadow_ttl_ns;
    take->attempt = (struct adm_bytes){ NULL, 0 };
    admi_clear(take->attempt_digest, sizeof take->attempt_digest);
    take->attempt_life_ns = ADMI_ATTEMPT_LIFE_NS;
    take->memo = (struct adm_bytes){ NULL, 0 };
    take->verdict = ADM_VERDICT_DENY;
    take->repeated = ADM_REPEAT_NONE;
    take->lease = (struct adm_id){ 0, 0 };
    take->memo_out = call->memo_out;
    take->memo_out_length = 0;
    if (charge && p->keeps_lease)
        add_meters(p);
    call->op.kind = ADM_OP_TAKE;
    call->op.args.take = take;
    return admi_thread_random(call->gate, thread, &take->seed);
}

static void label_series(struct preparation *p, const struct admi_gate_thread *thread)
{
    const struct adm_policy *policy = p->snapshot->policy;
    struct adm_bytes labels[ADMI_MAX_LABELS];
    struct admi_observe *observe = p->call->gate->observe;

    p->call->question.series = ADMI_NO_SERIES;
    if (policy->label_count == 0)
        return;
    for (uint32_t l = 0; l < policy->label_count; l++)
        labels[l] = p->values[policy->labels[l]];
    p->call->question.series =
        admi_observe_series(observe, thread->counters, p->snapshot->labels_id, labels);
}

static void consider_all(struct preparation *p)
{
    const struct adm_policy *policy = p->snapshot->policy;
    struct admi_matched matched;

    admi_policy_match(policy, p->values, &matched);
    for (uint32_t r = admi_matched_next(&matched, 0); r != UINT32_MAX;
         r = admi_matched_next(&matched, r + 1))
        if (!consider_plain(p, r))
            consider(p, &policy->rules[r]);
}

static void reset_question(struct admi_question *q)
{
    q->early = ADM_REASON_COUNT;
    q->any_enforced = q->denied_stateless = q->cap_denied = q->any_stateless_reason = false;
    q->any_shadow = false;
    q->judged_count = q->denied_beyond = q->missing_count = 0;
}

adm_status admi_prepare_denial(struct admi_call *call, struct admi_gate_thread *thread)
{
    struct adm_gate *gate = call->gate;

    reset_question(&call->question);
    call->question.any_enforced = true; /* not known; it does not count as unmatched */
    call->question.series = ADMI_NO_SERIES;
    gate->clock.source.now(gate->clock.source.self, &call->question.moment.now);
    admi_clear(&call->take, sizeof call->take);
    call->take.terms = call->terms;
    return admi_thread_random(gate, thread, &call->take.seed);
}

adm_status admi_prepare(struct admi_call *call, struct admi_gate_thread *thread,
                        enum admi_purpose purpose, bool *out_needs_state)
{
    struct preparation p;
    uint32_t slots[ADM_MAX_DESCRIPTORS], slot_count = 0;
    adm_status status;

    call->keys_used = 0;
    reset_question(&call->question);
    p.call = call;
    p.snapshot = call->snapshot;
    p.purpose = purpose;
    p.enforced_terms = p.shadow_terms = p.consuming = p.missing_descriptors = p.missing_amounts = 0;
    p.ttl_ns = p.shadow_ttl_ns = 0;
    p.keeps_lease = p.no_memory = false;
    p.part_count = 0;
    status = admi_values_set(call->gate, thread, p.snapshot, call->request.descriptors,
                             call->request.descriptor_count, slots, &slot_count);
    if (status != ADM_OK)
        return status;
    call->question.moment = admi_gate_clock_now(&call->gate->clock, &thread->wall);
    p.values = thread->values;
    import_amounts(&call->request, &p.amounts);
    consider_all(&p);
    label_series(&p, thread);
    admi_values_clear(thread, slots, slot_count);
    if (p.no_memory)
        return ADM_E_NOMEM;
    call->question.early = early_reason(&p);
    if (call->question.early != ADM_REASON_COUNT && purpose == ADMI_FOR_ADMIT)
        drop_enforced_terms(&p);
    pack_terms(&p);
    *out_needs_state = p.enforced_terms + p.shadow_terms > 0 || call->request.attempt.data != NULL;
    return fill_take(&p, thread);
}
