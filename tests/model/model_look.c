/* SPDX-License-Identifier: Apache-2.0 */
/* The model's looks at its state: levels, units held or used, what explain says of each rule. */
#include "model_state.h"

static int64_t whole_tokens(const struct model *model, int class, int partition)
{
    const struct model_odometer *o = &model->classes[class].odometer;
    struct model *m = (struct model *)(uintptr_t)model;
    model_wide level = model_reading(o, model->seen) -
                       model_empty_at(model, class, model_bucket_find(m, class, partition));
    model_wide unit = (model_wide)1 << o->shift;
    model_wide whole = level / unit;
    return (int64_t)(whole * unit > level ? whole - 1 : whole);
}

/* Level and limit of a rule with state whose partition is complete. */
static void look(struct model *model, const struct model_rule *rule,
                 const struct model_request *request, const struct model_numbers *n,
                 const struct model_origin *origin, int64_t *level, uint64_t *limit)
{
    int identity = model_identity_of(model, rule);
    int partition = model_partition_of(model, rule, request);
    if (rule->type == MODEL_BUCKET) {
        int class = model_class_of(model, rule, n, origin, request);
        *level = whole_tokens(model, class, partition);
        *limit = model->classes[class].odometer.capacity;
    } else if (rule->type == MODEL_CONCURRENCY) {
        *level =
            (int64_t)model_held(model, model->identities[identity].region, identity, partition);
        *limit = model_limit(model, rule, n, request);
    } else {
        *level = (int64_t)model_used(model, identity, partition, rule->window).used;
        *limit = n->limit;
    }
}

adm_status model_read(struct model *model, struct adm_time now, int rule_id,
                      const struct model_descriptor *descriptors, int count, int64_t *out)
{
    const struct model_rule *rule = NULL;
    struct model_request request = { .descriptor_count = count };
    struct model_numbers n;
    struct model_origin origin;
    uint64_t limit;
    for (int i = 0; i < count; i++)
        request.descriptors[i] = descriptors[i];
    for (int i = 0; i < model->policy->rule_count; i++)
        if (model->policy->rules[i].id == rule_id)
            rule = &model->policy->rules[i];
    if (rule == NULL)
        return ADM_E_UNKNOWN_RULE;
    model_clock(model, now);
    if (!model_consumes(rule) || !model_pick(model, rule, &request, &n, &origin))
        return ADM_E_INVALID_ARGUMENT;
    if (model_rule_lacks(model, rule, &request))
        return ADM_E_INVALID_DESCRIPTORS;
    look(model, rule, &request, &n, &origin, out, &limit);
    return ADM_OK;
}

void model_report_rule(struct model *model, const struct model_rule *rule,
                       const struct model_request *request, int *terms, struct model_report *out)
{
    struct model_numbers n;
    struct model_origin origin;
    struct model_verdict v = { .reason = ADM_REASON_ALLOWED };
    uint64_t amounts[MODEL_UNITS];
    unsigned given;
    bool derived;
    *out = (struct model_report){ .matched = model_holds(&rule->match, request), .replicas = 1 };
    model_amounts(request, amounts, &given, &derived);
    if (!out->matched)
        return;
    out->off = !model_pick(model, rule, request, &n, &origin);
    if (out->off)
        return;
    if (rule->per_replica)
        out->replicas = model_replicas(model, model_value(request, rule->scope));
    if (rule->shadow &&
        (model_rule_lacks(model, rule, request) || model_rule_no_amount(rule, given)))
        return; /* a shadow rule without what it needs says nothing */
    if (model_rule_lacks(model, rule, request)) {
        v.reason = ADM_REASON_MISSING_DESCRIPTOR;
    } else if (model_rule_no_amount(rule, given)) {
        v.reason = ADM_REASON_MISSING_AMOUNT;
    } else if (!rule->shadow && model_consumes(rule) && (*terms)++ >= MODEL_TOO_WIDE) {
        return; /* too wide: not even the class of this one is looked at */
    } else {
        out->has_amount = rule->type != MODEL_PRESSURE;
        out->amount = amounts[rule->unit];
        model_judge(model, rule, request, amounts, &v);
        out->stateful = model_consumes(rule);
        if (out->stateful)
            look(model, rule, request, &n, &origin, &out->level, &out->limit);
        else if (rule->type == MODEL_CAP)
            out->limit = n.limit;
    }
    if (rule->shadow && v.no_room) { /* no verdict: there is no state to judge by */
        v.reason = ADM_REASON_STATE_UNAVAILABLE;
        v.waits = false;
    }
    out->reason = v.reason;
    out->denies = v.reason != ADM_REASON_ALLOWED;
    out->retry_ms = v.waits && v.at_ms > 0 ? (uint64_t)v.at_ms : 0;
}
