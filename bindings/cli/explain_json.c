/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a question, for programs. */
#include "answer.h"
#include "explain.h"

#include <inttypes.h>
#include <string.h>

static void print_bytes(const char *name, struct adm_bytes bytes)
{
    printf(",\"%s\":", name);
    json_print_string(stdout, bytes.length > 0 ? bytes.data : "", (size_t)bytes.length);
}

static void print_mismatch(const struct explain_view *view, const struct json *rule,
                           const struct adm_rule_report *report)
{
    struct mismatch why = explain_mismatch(view->question, rule, report->mismatch);

    print_bytes("mismatch", report->mismatch);
    if (why.wants == NULL)
        return;
    fputs(why.negated ? ",\"wants_not\":" : ",\"wants\":", stdout);
    json_print(stdout, why.wants);
    if (why.has != NULL)
        print_bytes("has", *why.has);
    else
        fputs(",\"has\":null", stdout);
}

static void print_matched(const struct json *rule, const struct adm_rule_report *report)
{
    const struct json *when = explain_when(rule, report->origin);

    printf(",\"off\":%s,\"origin\":", report->off ? "true" : "false");
    json_print_text(stdout, report->origin);
    if (when != NULL) {
        fputs(",\"when\":", stdout);
        json_print(stdout, when);
    }
    if (report->entry.length > 0)
        print_bytes("entry", report->entry);
    if (report->off)
        return;
    printf(",\"checked\":%s", explain_was_checked(report) ? "true" : "false");
    if (report->stateful)
        printf(",\"level\":%" PRId64, report->level);
    if (strcmp(report->type, "pressure") != 0)
        printf(",\"limit\":%" PRIu64, report->limit);
    if (report->has_amount)
        printf(",\"amount\":%" PRIu64, report->amount);
    if (report->replicas > 1)
        printf(",\"replicas\":%" PRIu64, report->replicas);
}

void explain_json_head(void)
{
    fputs("{\"format\":1,\n \"rules\":[", stdout);
}

void explain_json_rule(struct explain_view *view, const struct adm_rule_report *report)
{
    const struct json *rule = explain_rule(view->policy, report->rule);

    printf("%s\n  {\"rule\":", view->printed > 0 ? "," : "");
    json_print_text(stdout, report->rule);
    printf(",\"type\":\"%s\",\"unit\":\"%s\",\"mode\":\"%s\",\"matched\":%s", report->type,
           report->unit, report->shadow ? "shadow" : "enforce", report->matched ? "true" : "false");
    if (report->matched)
        print_matched(rule, report);
    else
        print_mismatch(view, rule, report);
    printf(",\"denies\":%s", report->denies ? "true" : "false");
    if (report->denies)
        printf(",\"reason\":\"%s\"", adm_reason_name(report->reason));
    if (report->denies && report->retry_after_ms > 0)
        printf(",\"retry_after_ms\":%" PRIu64, report->retry_after_ms);
    fputc('}', stdout);
}

static void print_names(const struct adm_decision *decision,
                        const char *(*name_of)(const struct adm_decision *, uint32_t))
{
    for (uint32_t i = 0; name_of(decision, i) != NULL; i++) {
        fputs(i > 0 ? "," : "", stdout);
        json_print_text(stdout, name_of(decision, i));
    }
}

void explain_json_decision(const struct adm_decision *decision)
{
    printf("],\n \"decision\":{\"allow\":%s,\"reason\":\"%s\",\"rules\":[",
           decision->verdict == ADM_VERDICT_ALLOW ? "true" : "false",
           adm_reason_name(decision->reason));
    print_names(decision, adm_decision_rule);
    fputs("],\"shadow\":[", stdout);
    print_names(decision, adm_decision_shadow);
    printf("],\"retry_after_ms\":");
    if (decision->retry_after_ms > 0)
        printf("%" PRIu64, decision->retry_after_ms);
    else
        fputs("null", stdout);
    fputs(",\"policy_version\":", stdout);
    json_print_text(stdout, decision->policy_version);
    fputs(",\"table_version\":", stdout);
    json_print_text(stdout, decision->table_version);
    fputs(",\"http\":", stdout);
    answer_print_json(stdout, decision);
    fputs("}}\n", stdout);
}
