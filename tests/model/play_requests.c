/* SPDX-License-Identifier: Apache-2.0 */
/* Admit, explain and read in both worlds. */
#include "player_state.h"

#include <inttypes.h>
#include <string.h>

static uint32_t http_status(uint32_t reason)
{
    switch (reason) {
    case ADM_REASON_ALLOWED:
        return 200;
    case ADM_REASON_COST_ABOVE_CAP:
        return 400;
    case ADM_REASON_RATE_EXCEEDED:
    case ADM_REASON_QUOTA_EXCEEDED:
    case ADM_REASON_CONCURRENCY_EXCEEDED:
    case ADM_REASON_PRESSURE:
    case ADM_REASON_UNSATISFIABLE:
        return 429;
    default:
        return 503;
    }
}

static void print_model(struct text *text, const struct model_answer *a)
{
    text_add(text, "  model: %s retry %" PRIu64 " lease %d unknown %d rules",
             adm_reason_name(a->reason), a->retry_ms, a->lease, a->unknown_count);
    for (int i = 0; i < a->rule_count; i++)
        text_add(text, " %s", model_text(a->rules[i]));
    text_add(text, " shadow");
    for (int i = 0; i < a->shadow_count; i++)
        text_add(text, " %s", model_text(a->shadow[i]));
    text_add(text, "\n");
}

static void print_gate(struct text *text, const struct adm_decision *d)
{
    text_add(text, "  gate:  %s retry %" PRIu64 " lease %d unknown %u rules",
             adm_reason_name(d->reason), d->retry_after_ms, (d->lease.high | d->lease.low) != 0,
             d->unknown_count);
    for (uint32_t i = 0; i < d->rule_count; i++)
        text_add(text, " %s", adm_decision_rule(d, i));
    text_add(text, " shadow");
    for (uint32_t i = 0; i < d->shadow_count; i++)
        text_add(text, " %s", adm_decision_shadow(d, i));
    text_add(text, "\n");
}

static void count_answer(struct tally *t, const struct model_answer *a)
{
    t->reasons[a->reason]++;
    t->repeated += a->repeated;
    t->shadow_denied += a->shadow_count > 0;
    t->shadow_unknown += a->unknown_count > 0;
}

static bool answers_differ(struct player *p, const struct model_answer *a, adm_status status,
                           const struct adm_decision *d)
{
    bool bad = player_status_differs(p, a->status, status);
    if (a->status != ADM_OK)
        p->tally->invalid++;
    if (a->status != ADM_OK || bad)
        return bad;
    count_answer(p->tally, a);
    bad |= player_differs(p, "verdict", a->verdict, d->verdict);
    bad |= player_differs(p, "reason", a->reason, d->reason);
    bad |= player_differs(p, "http_status", http_status(a->reason), d->http_status);
    bad |= player_differs(p, "retry_after_ms", (int64_t)a->retry_ms, (int64_t)d->retry_after_ms);
    bad |= player_differs(p, "rule_count", a->rule_count, d->rule_count);
    bad |= player_differs(p, "shadow_count", a->shadow_count, d->shadow_count);
    bad |= player_differs(p, "unknown_count", a->unknown_count, d->unknown_count);
    bad |= player_differs(p, "has a lease", a->lease != 0, (d->lease.high | d->lease.low) != 0);
    bad |= player_differs(p, "repeated", a->repeated, (d->flags & ADM_DECISION_REPEATED) != 0);
    bad |= player_differs(p, "has an id", 1, (d->id.high | d->id.low) != 0);
    bad |= player_texts_differ(p, "policy_version", a->version, d->policy_version);
    bad |= player_texts_differ(p, "table_version", a->table_version, d->table_version);
    for (int i = 0; i < a->rule_count && !bad; i++)
        bad =
            player_texts_differ(p, "denying rule", a->rules[i], adm_decision_rule(d, (uint32_t)i));
    for (int i = 0; i < a->shadow_count && !bad; i++)
        bad = player_texts_differ(p, "shadow rule", a->shadow[i],
                                  adm_decision_shadow(d, (uint32_t)i));
    if (bad) {
        print_model(&p->difference, a);
        print_gate(&p->difference, d);
    }
    return bad;
}

/* ---- requests ---- */

struct call {
    struct adm_descriptor descriptors[MODEL_MAX_DESCRIPTORS];
    struct adm_amount amounts[MODEL_MAX_AMOUNTS];
    struct adm_request request;
};

static void prepare(const struct player *p, const struct operation *o, struct call *c)
{
    const struct model_request *r = &o->with.request;
    memset(&c->request, 0, sizeof c->request);
    for (int i = 0; i < r->descriptor_count; i++) {
        struct adm_descriptor *d = &c->descriptors[i];
        *d = (struct adm_descriptor){ .key = player_bytes(r->descriptors[i].key),
                                      .value = player_bytes(r->descriptors[i].value) };
        for (int k = 0; k < GENERATE_KEYS && (o->any >> i & 1) != 0; k++)
            if (generate_key(k) == r->descriptors[i].key)
                *d = (struct adm_descriptor){ .value = d->value, .key_id = p->key_ids[k] };
    }
    for (int i = 0; i < r->amount_count; i++)
        c->amounts[i] = (struct adm_amount){ .unit = p->units[r->amounts[i].unit],
                                             .value = r->amounts[i].value };
    c->request.size = sizeof c->request;
    c->request.descriptors = c->descriptors;
    c->request.descriptor_count = (uint64_t)r->descriptor_count;
    c->request.amounts = c->amounts;
    c->request.amount_count = (uint64_t)r->amount_count;
    c->request.cost = r->cost;
    if (r->attempt != 0)
        c->request.attempt = player_bytes(r->attempt);
}

bool player_play_admit(struct player *p, const struct operation *o, int number)
{
    struct call c;
    prepare(p, o, &c);
    model_admit(p->model, o->now, &o->with.request, &p->answer);
    memset(&p->decision, 0, offsetof(struct adm_decision, names));
    p->decision.size = sizeof p->decision;
    adm_status status = adm_admit(p->gate, &c.request, &p->decision);
    p->answered = p->answer.status == ADM_OK;
    bool bad = answers_differ(p, &p->answer, status, &p->decision);
    if (bad || !p->answered || p->answer.lease == 0)
        return !bad;
    int serial = p->answer.lease;
    p->serials[number] = serial;
    p->leases[number] = p->decision.lease;
    if (!p->answer.repeated)
        p->by_serial[serial] = p->decision.lease;
    else if (p->by_serial[serial].high != p->decision.lease.high ||
             p->by_serial[serial].low != p->decision.lease.low)
        bad = player_differs(p, "same lease as the first time", 1, 0);
    return !bad;
}

static void keep_report(void *self, const struct adm_rule_report *report)
{
    struct player *p = self;
    if (p->report_count < p->reported->rule_count &&
        strcmp(report->rule, model_text(p->reported->rules[p->report_count].id)) != 0)
        p->report_names_wrong = true;
    if (p->report_count < MODEL_MAX_RULES)
        p->reports[p->report_count] = *report;
    p->report_count++;
}

/* A request that brings too little, or matches too much, is denied before anything is judged:
 * then only the rules that it was denied for have more to say than whether they matched. */
static bool judged_early(const struct model_answer *a, const struct model_rule *rule)
{
    bool early = a->reason == ADM_REASON_MISSING_DESCRIPTOR ||
                 a->reason == ADM_REASON_MISSING_AMOUNT || a->reason == ADM_REASON_POLICY_TOO_WIDE;
    for (int i = 0; early && i < a->rule_count; i++)
        if (a->rules[i] == rule->id)
            return false;
    return early && !rule->shadow;
}

static bool report_differs(struct player *p, const struct model_answer *a,
                           const struct model_rule *rule, const struct model_report *m,
                           const struct adm_rule_report *g)
{
    bool bad = player_differs(p, "matched", m->matched, g->matched);
    bad |= player_differs(p, "off", m->off, g->off);
    bad |= player_differs(p, "shadow", rule->shadow, g->shadow);
    if (!bad && judged_early(a, rule))
        return false;
    bad |= player_differs(p, "denies", m->denies, g->denies);
    bad |= player_differs(p, "stateful", m->stateful, g->stateful);
    if (!bad && m->stateful)
        bad = player_differs(p, "replicas", (int64_t)m->replicas, (int64_t)g->replicas);
    if (!bad && m->denies) {
        bad |= player_differs(p, "reason", m->reason, g->reason);
        bad |=
            player_differs(p, "retry_after_ms", (int64_t)m->retry_ms, (int64_t)g->retry_after_ms);
    }
    if (!bad && m->stateful)
        bad = player_differs(p, "level", m->level, g->level);
    if (!bad && m->limit != 0)
        bad = player_differs(p, "limit", (int64_t)m->limit, (int64_t)g->limit);
    if (!bad && m->has_amount && g->has_amount)
        bad = player_differs(p, "amount", (int64_t)m->amount, (int64_t)g->amount);
    if (bad)
        text_add(&p->difference, "  in the report on rule %s of a request answered %s\n",
                 model_text(rule->id), adm_reason_name(a->reason));
    return bad;
}

bool player_play_explain(struct player *p, const struct operation *o)
{
    struct model_report reports[MODEL_MAX_RULES];
    struct model_answer answer;
    struct call c;
    prepare(p, o, &c);
    model_explain(p->model, o->now, &o->with.request, &answer, reports);
    p->reported = model_policy_in_force(p->model);
    p->report_count = 0;
    memset(&p->decision, 0, offsetof(struct adm_decision, names));
    p->decision.size = sizeof p->decision;
    adm_status status = adm_explain(p->gate, &c.request, keep_report, p, &p->decision);
    bool bad = answers_differ(p, &answer, status, &p->decision);
    if (bad || status != ADM_OK)
        return !bad;
    bad |= player_differs(p, "reports", p->reported->rule_count, p->report_count);
    bad |= player_differs(p, "reports in policy order", 0, p->report_names_wrong);
    for (int i = 0; i < p->reported->rule_count && !bad; i++)
        bad = report_differs(p, &answer, &p->reported->rules[i], &reports[i], &p->reports[i]);
    return !bad;
}

bool player_play_read(struct player *p, const struct operation *o)
{
    struct call c;
    int64_t expected = 0;
    int64_t got = 0;
    prepare(p, o, &c);
    adm_status wanted = model_read(p->model, o->now, o->word, o->with.request.descriptors,
                                   o->with.request.descriptor_count, &expected);
    adm_status status = adm_gate_read(p->gate, player_bytes(o->word), c.descriptors,
                                      c.request.descriptor_count, &got);
    bool bad = player_status_differs(p, wanted, status);
    p->tally->levels += wanted == ADM_OK;
    if (!bad && wanted == ADM_OK)
        bad = player_differs(p, "level", expected, got);
    return !bad;
}
