/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that a scenario's step may name. */
#include "scenario_request.h"

#include "cli.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_MS (UINT64_MAX / ADM_MILLISECOND)
#define DRAIN_MAX   UINT64_C(10000000)

struct op {
    const char *name;
    const char *fields;
    void (*run)(struct scenario *scenario, const struct json *step, struct answer *answer);
};

static struct adm_bytes span(const struct scenario *scenario, const struct json *value)
{
    return (struct adm_bytes){ scenario->text + value->start, value->end - value->start };
}

/* ---- operations ----------------------------------------------------------------------------- */

static void op_admit(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    const struct json *as = json_member(step, "as");
    struct adm_id lease = { 0, 0 };
    struct request_parts parts;

    read_request(scenario, step, &parts, answer);
    if (as != NULL && as->kind != JSON_STRING)
        answer_broken(answer, "\"as\" must be a string");
    if (answer->broken[0] == 0 && answer->error[0] == 0) {
        adm_status status = adm_admit(scenario->lab.gate, &parts.request, answer->decision);

        answer_failed(answer, status);
        if (status == ADM_OK)
            lease = answer->decision->lease;
    }
    if (answer->broken[0] != 0 || answer->error[0] != 0)
        answer->decision = NULL;
    if (answer->broken[0] == 0 && as != NULL)
        lease_remember(scenario, as, lease);
    request_parts_free(&parts);
}

static void op_release(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    const struct json *result = json_member(step, "result");
    struct adm_id lease = lease_of(scenario, step, answer);
    uint32_t code = 0, outcome;

    while (result != NULL && code < ADM_RESULT_COUNT && !json_is(result, adm_result_name(code)))
        code++;
    if (code == ADM_RESULT_COUNT)
        answer_broken(answer, "\"result\" is one of ok, error, timeout, cancelled, diverted");
    if (answer->broken[0] != 0)
        return;
    adm_status status = adm_release(scenario->lab.gate, lease, code, &outcome);
    answer_failed(answer, status);
    if (status == ADM_OK)
        answer->outcome = adm_outcome_name(outcome);
}

static void op_renew(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    struct adm_id lease = lease_of(scenario, step, answer);
    uint32_t outcome;

    adm_status status = adm_renew(scenario->lab.gate, lease, &outcome);
    answer_failed(answer, status);
    if (status == ADM_OK)
        answer->outcome = adm_outcome_name(outcome);
}

static void op_divert(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    struct adm_id lease = lease_of(scenario, step, answer);
    uint32_t outcome;

    adm_status status = adm_divert(scenario->lab.gate, lease, &outcome);
    answer_failed(answer, status);
    if (status == ADM_OK)
        answer->outcome = adm_outcome_name(outcome);
}

/* A list of units in "final" concerns the totals of this report; true is the last report of all. */
static void mark_final(const struct json *totals, const struct json *final,
                       struct adm_amount *amounts, struct answer *answer)
{
    if (final->kind != JSON_ARRAY) {
        answer_broken(answer, "\"final\" must be a boolean or a list of units");
        return;
    }
    for (const struct json *unit = final->first; unit != NULL; unit = unit->next) {
        size_t n = 0;

        if (unit->kind != JSON_STRING)
            answer_broken(answer, "\"final\" must be a boolean or a list of units");
        for (const struct json *total = totals->first; total != NULL; total = total->next, n++)
            if (unit->kind == JSON_STRING && json_is(unit, total->key))
                amounts[n].flags = ADM_AMOUNT_FINAL;
    }
}

static void op_settle(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    const struct json *totals = json_member(step, "totals"), *final = json_member(step, "final");
    struct adm_id lease = lease_of(scenario, step, answer);
    struct adm_amount *amounts = NULL;
    uint32_t outcome, all = final != NULL && final->kind == JSON_TRUE;

    if (totals == NULL || totals->kind != JSON_OBJECT)
        answer_broken(answer, "\"totals\" must be an object of numbers");
    size_t count = answer->broken[0] == 0 ? read_amounts(scenario, totals, &amounts, answer) : 0;
    bool listed = final != NULL && final->kind != JSON_TRUE && final->kind != JSON_FALSE &&
                  final->kind != JSON_NULL;
    if (listed && answer->broken[0] == 0 && answer->error[0] == 0)
        mark_final(totals, final, amounts, answer);
    if (answer->broken[0] == 0 && answer->error[0] == 0) {
        adm_status status = adm_settle(scenario->lab.gate, lease, amounts, count, all, &outcome);

        answer_failed(answer, status);
        if (status == ADM_OK)
            answer->outcome = adm_outcome_name(outcome);
    }
    free(amounts);
}

static void current_version(struct scenario *scenario, struct answer *answer)
{
    adm_status status =
        adm_gate_version(scenario->lab.gate, answer->version, sizeof answer->version);

    if (status != ADM_OK)
        answer_failed(answer, status);
}

static void op_reload(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    const struct json *document = json_member(step, "policy");
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;

    if (document == NULL) {
        answer_broken(answer, "a reload needs a \"policy\"");
        return;
    }
    adm_status status = adm_policy_load(span(scenario, document), NULL, &policy, &diags);
    if (status == ADM_E_POLICY_INVALID)
        findings_error_name(diags, answer->error);
    else if (status == ADM_OK)
        answer_failed(answer, adm_gate_publish(scenario->lab.gate, policy));
    else
        answer_failed(answer, status);
    adm_diags_free(diags);
    adm_policy_unref(policy);
    current_version(scenario, answer);
}

static void op_rollback(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    struct adm_bytes version = string_member(step, "version", answer);

    if (answer->broken[0] != 0)
        return;
    answer_failed(answer, adm_gate_rollback(scenario->lab.gate, version));
    current_version(scenario, answer);
}

static void op_table(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    const struct json *table = json_member(step, "table"), *mode = json_member(step, "mode");
    struct adm_diags *diags = NULL;
    bool patch = json_is(mode, "patch");

    if (table == NULL)
        answer_broken(answer, "a table step needs a \"table\"");
    else if (mode != NULL && !patch && !json_is(mode, "replace"))
        answer_broken(answer, "\"mode\" is replace or patch");
    if (answer->broken[0] != 0)
        return;
    adm_status status = adm_gate_put_table(scenario->lab.gate, span(scenario, table),
                                           patch ? ADM_TABLE_PATCH : ADM_TABLE_REPLACE, &diags);
    if (status == ADM_E_POLICY_INVALID)
        findings_error_name(diags, answer->error);
    else
        answer_failed(answer, status);
    adm_diags_free(diags);
}

/* Numbers and numbers in strings are measurements; everything else ("NaN", rubbish) is a missing
 * one. A point is a point whatever the locale says. */
static double measurement(const struct json *value)
{
    char *end;
    double missing = strtod("nan", NULL);

    if (value->kind != JSON_NUMBER && value->kind != JSON_STRING)
        return missing;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return missing;
    double number = strtod_l(value->text, &end, c);
    freelocale(c);
    return end != value->text && *end == 0 ? number : missing;
}

static void op_signal(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    struct adm_bytes scope = string_member(step, "scope", answer);
    struct adm_bytes replica = string_member(step, "replica", answer);
    struct adm_bytes name = string_member(step, "name", answer);
    const struct json *value = json_member(step, "value");

    if (value == NULL)
        answer_broken(answer, "a signal needs a \"value\"");
    if (answer->broken[0] == 0)
        answer_failed(answer, adm_gate_signal(scenario->lab.gate, scope, replica, name,
                                       measurement(value)));
}

static void read_rule(struct scenario *scenario, const struct json *step, const char *as,
                      struct answer *answer)
{
    struct adm_bytes rule = string_member(step, "rule", answer);
    struct request_parts parts = { .descriptors = NULL };

    read_descriptors(step, &parts, answer);
    if (answer->broken[0] == 0) {
        adm_status status = adm_gate_read(scenario->lab.gate, rule, parts.descriptors,
                                          parts.request.descriptor_count, &answer->number);

        answer_failed(answer, status);
        if (status == ADM_OK)
            answer->number_name = as;
    }
    request_parts_free(&parts);
}

static void op_level(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    read_rule(scenario, step, "floor", answer);
}

static void op_used(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    read_rule(scenario, step, "units", answer);
}

static void op_drain(struct scenario *scenario, const struct json *step,
                     struct answer *answer)
{
    struct request_parts parts;
    uint64_t until, every, tries;
    struct adm_decision *decision = answer->decision;

    read_request(scenario, step, &parts, answer);
    if (!json_u64(json_member(step, "until"), &until) || until > TIME_MAX_MS ||
        !json_u64(json_member(step, "every_ms"), &every) || every == 0 ||
        !json_u64(json_member(step, "tries"), &tries) || tries == 0)
        answer_broken(answer, "a drain needs \"until\", and \"every_ms\" and \"tries\" above 0");
    else if (until > scenario->now_ms &&
             (until - scenario->now_ms) / every + 1 > DRAIN_MAX / tries)
        answer_broken(answer, "a drain may try 10^7 times at most");
    answer->decision = NULL; /* a drain only counts */
    answer->number_name = "allowed";
    for (uint64_t at = scenario->now_ms; answer->broken[0] == 0 && at <= until; at += every) {
        lab_at(&scenario->lab, at * ADM_MILLISECOND);
        for (uint64_t i = 0; i < tries && answer->error[0] == 0; i++) {
            adm_status status = adm_admit(scenario->lab.gate, &parts.request, decision);

            answer_failed(answer, status);
            if (status == ADM_OK && decision->verdict == ADM_VERDICT_ALLOW)
                answer->number++;
        }
        if (every > TIME_MAX_MS - at)
            break;
    }
    request_parts_free(&parts);
}

static const struct op ops[] = {
    { "admit", " d cost amounts attempt as ", op_admit },
    { "release", " of result ", op_release },
    { "renew", " of ", op_renew },
    { "settle", " of totals final ", op_settle },
    { "divert", " of ", op_divert },
    { "reload", " policy ", op_reload },
    { "rollback", " version ", op_rollback },
    { "table", " table mode ", op_table },
    { "signal", " scope replica name value ", op_signal },
    { "level", " rule d ", op_level },
    { "used", " rule d ", op_used },
    { "drain", " d cost until tries ", op_drain },
};

static const struct op *find(const struct json *name)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (json_is(name, ops[i].name))
            return &ops[i];
    return NULL;
}

const char *scenario_fields(const struct json *op)
{
    const struct op *found = find(op);

    return found != NULL ? found->fields : NULL;
}

void scenario_step(struct scenario *scenario, const struct json *step, uint64_t t_ms,
                   struct answer *answer)
{
    const struct op *op = find(json_member(step, "op"));

    if (op == NULL || t_ms > TIME_MAX_MS) {
        answer_broken(answer, op == NULL ? "unknown op" : "t is too large");
        return;
    }
    lab_at(&scenario->lab, t_ms * ADM_MILLISECOND);
    scenario->now_ms = t_ms;
    op->run(scenario, step, answer);
}
