/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a question, for people: a branch for each rule, and the decision. */
#include "answer.h"
#include "explain.h"

#include <inttypes.h>
#include <string.h>

/* As it is when it is a plain word; quoted and escaped otherwise, so that nothing reaches the
 * terminal that was not meant to. */
static void print_word(const char *bytes, size_t length)
{
    bool plain = length > 0;

    for (size_t i = 0; i < length; i++)
        plain = plain && bytes[i] > ' ' && bytes[i] < 0x7f && bytes[i] != '"';
    if (plain)
        fwrite(bytes, 1, length, stdout);
    else
        json_print_string(stdout, bytes, length);
}

static void print_bytes(struct adm_bytes bytes)
{
    print_word(bytes.length > 0 ? bytes.data : "", (size_t)bytes.length);
}

/* One pattern, or all of a list: a|b|c. */
static void print_patterns(const struct json *entry)
{
    if (entry->kind != JSON_ARRAY) {
        print_word(entry->text, entry->length);
        return;
    }
    for (const struct json *item = entry->first; item != NULL; item = item->next) {
        fputs(item != entry->first ? "|" : "", stdout);
        print_word(item->text, item->length);
    }
}

static void print_match(const struct json *match)
{
    for (const struct json *entry = match->first; entry != NULL; entry = entry->next) {
        fputs(entry != match->first ? ", " : "", stdout);
        if (entry->kind == JSON_OBJECT) {
            fputs("not (", stdout);
            print_match(entry);
            fputs(")", stdout);
            continue;
        }
        print_word(entry->key, entry->key_length);
        fputs(" is ", stdout);
        print_patterns(entry);
    }
}

/* ---- the question --------------------------------------------------------------------------- */

void explain_tree_head(const struct explain_view *view, const char *version)
{
    const struct question *question = view->question;

    printf("%spolicy %s%s, request:", style_on(stdout, STYLE_BOLD), version, style_off(stdout));
    for (size_t i = 0; i < question->descriptor_count; i++) {
        fputc(' ', stdout);
        print_bytes(question->descriptors[i].key);
        fputc('=', stdout);
        print_bytes(question->descriptors[i].value);
        fputs(",", stdout);
    }
    printf(" cost %" PRIu64, question->cost);
    for (size_t i = 0; i < question->amount_count; i++) {
        fputs(", ", stdout);
        print_bytes(question->units[i]);
        printf(" %" PRIu64, question->amounts[i].value);
    }
    fputc('\n', stdout);
}

/* ---- one rule ------------------------------------------------------------------------------- */

static void branch(const struct explain_view *view)
{
    bool last = view->printed + 1 == view->shown;

    if (view->lines)
        fputs(last ? "└─ " : "├─ ", stdout);
    else
        fputs("+- ", stdout);
}

static void beside(const struct explain_view *view)
{
    bool last = view->printed + 1 == view->shown;

    fputs(last ? "     " : view->lines ? "│    " : "|    ", stdout);
}

static void print_mismatch(const struct explain_view *view, const struct json *rule,
                           const struct adm_rule_report *report)
{
    struct mismatch why = explain_mismatch(view->question, rule, report->mismatch);

    fputs("no match", stdout);
    if (report->mismatch.length == 0) {
        fputs(": an empty \"not\" excludes every request", stdout);
        return;
    }
    fputs(": ", stdout);
    print_bytes(report->mismatch);
    if (why.has != NULL) {
        fputs(" is ", stdout);
        print_bytes(*why.has);
    } else {
        fputs(" is absent", stdout);
    }
    if (why.wants == NULL)
        return;
    fputs(why.negated ? ", must not be " : ", wants ", stdout);
    if (json_is(why.wants, "*"))
        fputs(why.negated ? "there" : "any value", stdout);
    else
        print_patterns(why.wants);
}

static void print_verdict(const struct adm_rule_report *report)
{
    if (report->off)
        fputs("switched off for this request", stdout);
    else if (!explain_was_checked(report))
        fputs("not checked", stdout);
    else if (!report->denies)
        fputs("passes", stdout);
    else
        printf("%s, %s", report->shadow ? "would deny" : "denies",
               adm_reason_name(report->reason));
    if (report->denies && report->retry_after_ms > 0)
        printf(", again after %" PRIu64 " ms", report->retry_after_ms);
}

static void print_numbers(const struct adm_rule_report *report)
{
    bool bucket = strcmp(report->type, "token_bucket") == 0;
    const char *level = bucket                               ? "level"
                        : strcmp(report->type, "quota") == 0 ? "used"
                                                             : "held";

    if (report->stateful)
        printf("%s %" PRId64 ", ", level, report->level);
    printf("%s %" PRIu64, bucket ? "capacity" : "limit", report->limit);
    if (report->replicas > 1)
        printf(" for %" PRIu64 " replicas", report->replicas);
    if (report->has_amount)
        printf(", asks for %" PRIu64, report->amount);
}

static void print_signal(const struct json *rule)
{
    static const char *const operators[] = { "gt", "gte", "lt", "lte" };
    const struct json *signal = json_member(rule, "signal");

    fputs("signal ", stdout);
    if (signal != NULL)
        print_word(signal->text, signal->length);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const struct json *threshold = json_member(rule, operators[i]);

        if (threshold != NULL)
            printf(" %s %.*s", operators[i], (int)threshold->length, threshold->text);
    }
    fputs(", no replica has sent one", stdout);
}

static void print_origin(const struct json *rule, const struct adm_rule_report *report)
{
    const struct json *when = explain_when(rule, report->origin);

    printf("%s", report->origin);
    if (report->entry.length > 0) {
        fputc(' ', stdout);
        print_bytes(report->entry);
    }
    if (when != NULL) {
        fputs(" (when ", stdout);
        print_match(when);
        fputs(")", stdout);
    }
}

/* Keys that the rule or the policy splits the state by, and the request does not bring. */
static bool print_absent(const struct explain_view *view, const struct json *rule)
{
    bool any = false;
    const struct json *keys = json_member(rule, "partition_by");
    const struct json *shard = json_member(view->policy, "shard_by");

    if (shard != NULL && question_value(view->question, shard->text, shard->length) == NULL) {
        fputs("; absent: shard key ", stdout);
        print_word(shard->text, shard->length);
        any = true;
    }
    for (const struct json *key = keys != NULL ? keys->first : NULL; key != NULL; key = key->next)
        if (question_value(view->question, key->text, key->length) == NULL) {
            fputs("; absent: partition key ", stdout);
            print_word(key->text, key->length);
            any = true;
        }
    return any;
}

static void print_details(const struct explain_view *view, const struct json *rule,
                          const struct adm_rule_report *report)
{
    beside(view);
    if (!report->off && strcmp(report->type, "pressure") == 0)
        print_signal(rule);
    else if (!report->off)
        print_numbers(report);
    fputs(report->off ? "by " : "; numbers of ", stdout);
    print_origin(rule, report);
    if (report->denies && report->reason == ADM_REASON_MISSING_DESCRIPTOR)
        print_absent(view, rule);
    if (!report->off && !explain_was_checked(report) && !print_absent(view, rule))
        fputs("; the request was denied before", stdout);
    if (report->denies && report->reason == ADM_REASON_MISSING_AMOUNT)
        printf("; the request brings no amount of %s", report->unit);
    fputc('\n', stdout);
}

void explain_tree_rule(struct explain_view *view, const struct adm_rule_report *report)
{
    const struct json *rule = explain_rule(view->policy, report->rule);
    enum cli_style style = !report->matched || report->off ? STYLE_DIM
                           : report->denies && report->shadow ? STYLE_YELLOW
                           : report->denies ? STYLE_RED
                                            : STYLE_GREEN;

    branch(view);
    printf("%s%s%s (%s of %s%s): %s", style_on(stdout, STYLE_BOLD), report->rule,
           style_off(stdout), report->type, report->unit, report->shadow ? ", shadow" : "",
           style_on(stdout, style));
    if (report->matched)
        print_verdict(report);
    else
        print_mismatch(view, rule, report);
    printf("%s\n", style_off(stdout));
    if (report->matched)
        print_details(view, rule, report);
}

/* ---- the decision --------------------------------------------------------------------------- */

void explain_tree_decision(const struct explain_view *view, const struct adm_decision *decision)
{
    bool allow = decision->verdict == ADM_VERDICT_ALLOW;

    if (view->shown < view->rules)
        printf("(%" PRIu64 " of %" PRIu64 " rules not shown)\n", view->rules - view->shown,
               view->rules);
    printf("\n%s%s%s: %s", style_on(stdout, allow ? STYLE_GREEN : STYLE_RED),
           allow ? "allow" : "deny", style_off(stdout), adm_reason_name(decision->reason));
    for (uint32_t i = 0; adm_decision_rule(decision, i) != NULL; i++)
        printf("%s%s", i == 0 ? ", by " : ", ", adm_decision_rule(decision, i));
    if (decision->reason == ADM_REASON_NO_POLICY)
        fputs(", no enforced rule matches", stdout);
    printf("\nHTTP %u %s", decision->http_status, answer_phrase(decision->http_status));
    if (decision->retry_after_ms > 0)
        printf(", Retry-After: %" PRIu64 " (%" PRIu64 " ms)", adm_decision_retry_after_s(decision),
               decision->retry_after_ms);
    printf("\npolicy %s", decision->policy_version);
    if (decision->table_version[0] != 0)
        printf(", limit table %s", decision->table_version);
    for (uint32_t i = 0; adm_decision_shadow(decision, i) != NULL; i++)
        printf("%s%s", i == 0 ? "\nshadow rules that would deny: " : ", ",
               adm_decision_shadow(decision, i));
    fputc('\n', stdout);
}
