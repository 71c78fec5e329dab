/* SPDX-License-Identifier: Apache-2.0 */
/* The model's admit: checks of the request, the answer, charges, attempts. */
#include "model_state.h"

#include <string.h>

static adm_status check(const struct model_request *r)
{
    if (r->cost < 1 || r->cost > ADM_MAX_AMOUNT || r->amount_count > ADM_MAX_AMOUNTS)
        return ADM_E_INVALID_COST;
    for (int i = 0; i < r->amount_count; i++) {
        if (r->amounts[i].value > ADM_MAX_AMOUNT || r->amounts[i].unit == MODEL_COST ||
            r->amounts[i].unit == MODEL_REQUESTS)
            return ADM_E_INVALID_COST;
        for (int j = 0; j < i; j++)
            if (r->amounts[j].unit == r->amounts[i].unit)
                return ADM_E_INVALID_COST;
    }
    if (r->descriptor_count > ADM_MAX_DESCRIPTORS)
        return ADM_E_INVALID_DESCRIPTORS;
    for (int i = 0; i < r->descriptor_count; i++) {
        size_t key = model_length(r->descriptors[i].key);
        size_t value = model_length(r->descriptors[i].value);
        if (key < 1 || key > ADM_MAX_KEY_BYTES || value < 1 || value > ADM_MAX_VALUE_BYTES)
            return ADM_E_INVALID_DESCRIPTORS;
        for (int j = 0; j < i; j++)
            if (r->descriptors[j].key == r->descriptors[i].key)
                return ADM_E_INVALID_DESCRIPTORS;
    }
    if (r->attempt != 0 &&
        (model_length(r->attempt) < 1 || model_length(r->attempt) > ADM_MAX_ATTEMPT_BYTES))
        return ADM_E_INVALID_ATTEMPT;
    return ADM_OK;
}

void model_amounts(const struct model_request *request, uint64_t amounts[MODEL_UNITS],
                   unsigned *given, bool *derived)
{
    memset(amounts, 0, MODEL_UNITS * sizeof *amounts);
    *given = 1u << MODEL_COST | 1u << MODEL_REQUESTS;
    amounts[MODEL_COST] = request->cost;
    amounts[MODEL_REQUESTS] = 1;
    for (int i = 0; i < request->amount_count; i++) {
        amounts[request->amounts[i].unit] = request->amounts[i].value;
        *given |= 1u << request->amounts[i].unit;
    }
    *derived = (*given & 1u << MODEL_TOKENS) == 0 &&
               (*given & (1u << MODEL_INPUT | 1u << MODEL_OUTPUT)) != 0;
    if (*derived) {
        amounts[MODEL_TOKENS] = amounts[MODEL_INPUT] + amounts[MODEL_OUTPUT];
        *given |= 1u << MODEL_TOKENS;
    }
}

static bool same_content(const struct model_request *a, const struct model_request *b)
{
    if (a->cost != b->cost || a->descriptor_count != b->descriptor_count ||
        a->amount_count != b->amount_count)
        return false;
    for (int i = 0; i < a->descriptor_count; i++)
        if (model_value(b, a->descriptors[i].key) != a->descriptors[i].value)
            return false;
    for (int i = 0; i < a->amount_count; i++) {
        bool found = false;
        for (int j = 0; j < b->amount_count; j++)
            found = found || (b->amounts[j].unit == a->amounts[i].unit &&
                              b->amounts[j].value == a->amounts[i].value);
        if (!found)
            return false;
    }
    return true;
}

/* The attempt that is still remembered under this word, or NULL. */
static struct model_attempt *find_attempt(struct model *model, int word)
{
    for (int i = 0; i < model->attempt_count; i++) {
        struct model_attempt *a = &model->attempts[i];
        if (a->word != word)
            continue;
        const struct model_lease *l =
            a->answer.lease != 0 ? &model->leases[a->answer.lease - 1] : NULL;
        model_wide until = a->until;
        if (l != NULL && !l->closed && l->expires > until && !planted(model, PLANT_ATTEMPT_SHORT))
            until = l->expires;
        return model->seen < until ? a : NULL;
    }
    return NULL;
}

static void remember(struct model *model, const struct model_request *request,
                     const struct model_answer *answer)
{
    struct model_attempt *a = NULL;
    for (int i = 0; i < model->attempt_count; i++)
        if (model->attempts[i].word == request->attempt)
            a = &model->attempts[i];
    if (a == NULL)
        a = MODEL_APPEND(model->attempts, model->attempt_count, model->attempt_room);
    *a = (struct model_attempt){ request->attempt, model->seen + MODEL_ATTEMPT_LIFE, *request,
                                 *answer };
}

/* ---- charges ---- */

static void take_rule(struct model *model, const struct model_rule *rule,
                      const struct model_request *request, const uint64_t amounts[MODEL_UNITS],
                      struct model_item *item)
{
    struct model_numbers n;
    struct model_origin origin;
    model_pick(model, rule, request, &n, &origin);
    *item = (struct model_item){ .type = rule->type,
                                 .unit = rule->unit,
                                 .completion = rule->completion,
                                 .exact = rule->exact,
                                 .window_kind = rule->window,
                                 .now = amounts[rule->unit] };
    item->identity = model_identity_of(model, rule);
    item->partition = model_partition_of(model, rule, request);
    if (rule->type == MODEL_CONCURRENCY) {
        item->held = item->now;
    } else if (rule->type == MODEL_QUOTA) {
        struct model_usage u = model_used(model, item->identity, item->partition, rule->window);
        item->window = u.window;
        if (item->now > 0)
            model_use(model, item->identity, item->partition, u.window, u.used + item->now);
    } else {
        item->class = model_class_of(model, rule, &n, &origin, request);
        if (!rule->completion && item->now > 0)
            model_bucket_charge(model, item->class, item->partition, item->now);
    }
}

struct admission {
    const struct model_rule *hard[MODEL_MAX_RULES]; /* enforced, matching, not off */
    const struct model_rule *dark[MODEL_MAX_RULES]; /* shadow, matching, nothing missing */
    bool dark_charges[MODEL_MAX_RULES];
    int hard_count, dark_count;
    bool matched; /* any enforced rule, off or not */
    uint64_t amounts[MODEL_UNITS];
    unsigned given;
    bool derived;
};

static int64_t longest_ttl(const struct model *model, const struct model_rule *const *rules,
                           int count, const struct model_request *request)
{
    int64_t ttl = 0;
    for (int i = 0; i < count; i++) {
        struct model_numbers n;
        struct model_origin origin;
        if (rules[i]->type == MODEL_CONCURRENCY &&
            model_pick(model, rules[i], request, &n, &origin) && (int64_t)n.ttl_ns > ttl)
            ttl = (int64_t)n.ttl_ns;
    }
    return ttl;
}

/* Charges every rule and opens the lease, or only a shadow hold, if there is anything to keep. */
static void take(struct model *model, const struct model_request *request,
                 const struct admission *a, struct model_answer *out)
{
    struct model_lease *l = MODEL_APPEND(model->leases, model->lease_count, model->lease_room);
    *l = (struct model_lease){ .derived = a->derived };
    memcpy(l->amounts, a->amounts, sizeof l->amounts);
    for (int i = 0; i < a->hard_count; i++) {
        const struct model_rule *rule = a->hard[i];
        if (model_consumes(rule))
            take_rule(model, rule, request, a->amounts, &l->items[l->item_count++]);
        l->kept = l->kept || rule->type == MODEL_CONCURRENCY || rule->exact || rule->completion;
    }
    l->ttl = longest_ttl(model, a->hard, a->hard_count, request);
    if (l->ttl == 0)
        l->ttl = MODEL_DEFAULT_TTL;
    l->expires = model->seen + l->ttl;
    for (int i = 0; i < a->dark_count; i++) {
        struct model_item item;
        if (!a->dark_charges[i] || !model_consumes(a->dark[i]))
            continue;
        take_rule(model, a->dark[i], request, a->amounts, &item);
        if (item.held > 0)
            l->dark[l->dark_count++] = item;
    }
    l->dark_live = l->dark_count > 0;
    l->dark_expires =
        l->kept ? l->expires : model->seen + longest_ttl(model, a->dark, a->dark_count, request);
    if (l->kept)
        out->lease = model->lease_count;
    *MODEL_APPEND(model->holding, model->holding_count, model->holding_room) =
        model->lease_count - 1;
}

/* ---- the answer ---- */

bool model_rule_lacks(const struct model *model, const struct model_rule *rule,
                      const struct model_request *request)
{
    for (int i = 0; i < rule->part_count; i++)
        if (model_value(request, rule->parts[i]) == 0)
            return true;
    return model->policy->shard != 0 && model_consumes(rule) &&
           model_value(request, model->policy->shard) == 0;
}

bool model_rule_no_amount(const struct model_rule *rule, unsigned given)
{
    return rule->type != MODEL_PRESSURE && !rule->completion && (given & 1u << rule->unit) == 0;
}

static void judge_dark(struct model *model, const struct model_request *request,
                       struct admission *a, struct model_answer *out)
{
    for (int i = 0; i < a->dark_count; i++) {
        struct model_verdict v;
        model_judge(model, a->dark[i], request, a->amounts, &v);
        a->dark_charges[i] = !v.off && v.reason == ADM_REASON_ALLOWED;
        if (v.no_room)
            out->unknown_count++;
        else if (v.reason != ADM_REASON_ALLOWED)
            out->shadow[out->shadow_count++] = a->dark[i]->id;
    }
}

static void sort_rules(struct model *model, const struct model_request *request,
                       struct admission *a)
{
    model_amounts(request, a->amounts, &a->given, &a->derived);
    for (int i = 0; i < model->policy->rule_count; i++) {
        const struct model_rule *rule = &model->policy->rules[i];
        struct model_numbers n;
        struct model_origin origin;
        if (!model_holds(&rule->match, request))
            continue;
        if (rule->shadow) {
            if (!model_rule_lacks(model, rule, request) && !model_rule_no_amount(rule, a->given))
                a->dark[a->dark_count++] = rule;
            continue;
        }
        a->matched = true;
        if (model_pick(model, rule, request, &n, &origin))
            a->hard[a->hard_count++] = rule;
    }
}

/* Something that the request must bring is missing, or too much matches. */
static bool deny_early(struct model *model, const struct model_request *request,
                       const struct admission *a, struct model_answer *out)
{
    int wide = 0;
    for (int i = 0; i < a->hard_count; i++) {
        if (model_rule_lacks(model, a->hard[i], request))
            out->rules[out->rule_count++] = a->hard[i]->id;
        if (model_consumes(a->hard[i]))
            wide++;
    }
    out->reason = ADM_REASON_MISSING_DESCRIPTOR;
    if (out->rule_count > 0)
        return true;
    for (int i = 0; i < a->hard_count; i++)
        if (model_rule_no_amount(a->hard[i], a->given))
            out->rules[out->rule_count++] = a->hard[i]->id;
    out->reason = ADM_REASON_MISSING_AMOUNT;
    if (out->rule_count > 0)
        return true;
    out->reason = ADM_REASON_POLICY_TOO_WIDE;
    return wide > MODEL_TOO_WIDE;
}

/* The worst of all verdicts, every denying rule, and the longest exact wait. */
static bool deny(struct model *model, const struct admission *a,
                 const struct model_verdict *verdicts, struct model_answer *out)
{
    static const uint32_t first[] = { ADM_REASON_KEY_SPACE_FULL, ADM_REASON_COST_ABOVE_CAP,
                                      ADM_REASON_UNSATISFIABLE };
    uint32_t reason = ADM_REASON_ALLOWED;
    for (int i = 0; i < a->hard_count && reason == ADM_REASON_ALLOWED; i++)
        reason = verdicts[i].reason;
    if (reason == ADM_REASON_ALLOWED)
        return false;
    for (int p = 2; p >= 0; p--)
        for (int i = 0; i < a->hard_count; i++)
            if (verdicts[i].reason == first[p] && !(planted(model, PLANT_PRECEDENCE) && p > 0))
                reason = first[p];
    out->reason = reason;
    bool exact = reason != ADM_REASON_COST_ABOVE_CAP && reason != ADM_REASON_UNSATISFIABLE;
    model_wide longest = 0;
    for (int i = 0; i < a->hard_count; i++) {
        const struct model_verdict *v = &verdicts[i];
        if (v->reason == ADM_REASON_ALLOWED || (reason == ADM_REASON_KEY_SPACE_FULL && !v->no_room))
            continue;
        out->rules[out->rule_count++] = a->hard[i]->id;
        if (v->waits && v->at_ms < 0)
            exact = false;
        if (v->waits && v->at_ms > longest)
            longest = v->at_ms;
    }
    out->retry_ms = exact ? (uint64_t)longest : 0;
    return true;
}

static void decide(struct model *model, const struct model_request *request, bool charge,
                   struct model_answer *out)
{
    struct admission a = { 0 };
    struct model_verdict verdicts[MODEL_MAX_RULES];
    out->version = model->policy->version;
    out->table_version = model->table_version;
    sort_rules(model, request, &a);
    judge_dark(model, request, &a, out);
    out->verdict = ADM_VERDICT_DENY;
    if (!a.matched) {
        out->verdict = model->policy->unmatched_allow ? ADM_VERDICT_ALLOW : ADM_VERDICT_DENY;
        out->reason = model->policy->unmatched_allow ? ADM_REASON_ALLOWED : ADM_REASON_NO_POLICY;
        return;
    }
    if (deny_early(model, request, &a, out))
        return;
    for (int i = 0; i < a.hard_count; i++)
        model_judge(model, a.hard[i], request, a.amounts, &verdicts[i]);
    if (deny(model, &a, verdicts, out)) {
        for (int i = 0; planted(model, PLANT_DENIED_CHARGES) && charge && i < a.hard_count; i++)
            if (model_consumes(a.hard[i]) && verdicts[i].reason == ADM_REASON_ALLOWED) {
                struct model_item item;
                take_rule(model, a.hard[i], request, a.amounts, &item);
                break;
            }
        return;
    }
    out->verdict = ADM_VERDICT_ALLOW;
    out->reason = ADM_REASON_ALLOWED;
    if (!charge)
        return;
    take(model, request, &a, out);
    if (request->attempt != 0)
        remember(model, request, out);
}

void model_admit(struct model *model, struct adm_time now, const struct model_request *request,
                 struct model_answer *out)
{
    *out = (struct model_answer){ .status = check(request) };
    if (out->status != ADM_OK)
        return;
    model_clock(model, now);
    struct model_attempt *known =
        request->attempt != 0 ? find_attempt(model, request->attempt) : NULL;
    if (known != NULL && !same_content(&known->content, request)) {
        out->status = ADM_E_INVALID_ATTEMPT;
    } else if (known != NULL) {
        *out = known->answer;
        out->repeated = true;
        out->shadow_count = out->unknown_count = 0; /* what shadow rules say is reported once */
    } else {
        decide(model, request, true, out);
    }
}

void model_explain(struct model *model, struct adm_time now, const struct model_request *request,
                   struct model_answer *out, struct model_report *reports)
{
    *out = (struct model_answer){ .status = check(request) };
    if (out->status != ADM_OK)
        return;
    model_clock(model, now);
    decide(model, request, false, out);
    int terms = 0;
    for (int i = 0; i < model->policy->rule_count; i++)
        model_report_rule(model, &model->policy->rules[i], request, &terms, &reports[i]);
}
