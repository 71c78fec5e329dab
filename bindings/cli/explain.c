/* SPDX-License-Identifier: Apache-2.0 */
/* admit explain: every rule of a policy, whether it concerns a request, and what the answer
 * would be. */
#include "answer.h"
#include "cli.h"
#include "json.h"
#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FLAG_COST = FLAG_LONG, FLAG_AMOUNT, FLAG_TABLES, FLAG_EXPECT };

#define LIST_MAX 64

struct question {
    bool json;
    const char *expect;
    struct adm_descriptor descriptors[LIST_MAX];
    struct adm_bytes units[LIST_MAX];
    struct adm_amount amounts[LIST_MAX];
    const char *tables[LIST_MAX];
    size_t descriptor_count, amount_count, table_count;
    uint64_t cost;
};

struct printer {
    bool json;
    unsigned rows;
    int width; /* of the widest rule id */
};

/* ---- one rule ------------------------------------------------------------------------------- */

/* A rule that matched, but was not come to: the request was denied for bringing too little, or for
 * matching too much. */
static bool was_checked(const struct adm_rule_report *report)
{
    if (report->denies || strcmp(report->type, "pressure") == 0)
        return true;
    return strcmp(report->type, "request_cap") == 0 ? report->has_amount : report->stateful;
}

/* "off", "passes", or the reason; for a rule that is not concerned, the key that does not fit. */
static void verdict_text(const struct adm_rule_report *report, char *out, size_t room)
{
    if (!report->matched)
        snprintf(out, room, "no match: %.*s", (int)report->mismatch.length,
                 report->mismatch.length > 0 ? (const char *)report->mismatch.data : "");
    else if (report->off)
        snprintf(out, room, "off");
    else if (!was_checked(report))
        snprintf(out, room, "not checked");
    else if (!report->denies)
        snprintf(out, room, "passes");
    else if (report->retry_after_ms > 0)
        snprintf(out, room, "%s, retry after %" PRIu64 " ms", adm_reason_name(report->reason),
                 report->retry_after_ms);
    else
        snprintf(out, room, "%s", adm_reason_name(report->reason));
}

static void optional_number(char out[24], bool is, int64_t value)
{
    if (is)
        snprintf(out, 24, "%" PRId64, value);
    else
        snprintf(out, 24, "-");
}

static void print_text(const struct printer *printer, const struct adm_rule_report *report)
{
    char verdict[400], level[24], limit[24], amount[24];
    bool live = report->matched && !report->off;
    enum cli_style style = !report->matched ? STYLE_DIM : report->denies ? STYLE_RED : STYLE_GREEN;
    bool counts = live && strcmp(report->type, "pressure") != 0;

    verdict_text(report, verdict, sizeof verdict);
    optional_number(level, live && report->stateful, report->level);
    optional_number(limit, counts, (int64_t)report->limit);
    optional_number(amount, live && report->has_amount, (int64_t)report->amount);
    printf("%-*s  %-12s  %-13s  %-14s  %14s  %14s  %14s  %s%s%s%s\n", printer->width, report->rule,
           report->type, report->unit, live ? report->origin : "-", level, limit, amount,
           style_on(stdout, style), verdict, report->shadow ? " (shadow)" : "", style_off(stdout));
}

static void print_json(const struct printer *printer, const struct adm_rule_report *report)
{
    bool live = report->matched && !report->off;

    printf("%s\n  {\"rule\":", printer->rows > 0 ? "," : "");
    json_print_text(stdout, report->rule);
    printf(",\"type\":\"%s\",\"unit\":\"%s\",\"mode\":\"%s\",\"matched\":%s", report->type,
           report->unit, report->shadow ? "shadow" : "enforce", report->matched ? "true" : "false");
    if (!report->matched) {
        fputs(",\"mismatch\":", stdout);
        json_print_string(stdout, report->mismatch.length > 0 ? report->mismatch.data : "",
                          (size_t)report->mismatch.length);
    } else {
        printf(",\"off\":%s,\"origin\":", report->off ? "true" : "false");
        json_print_text(stdout, report->origin);
    }
    if (live && report->entry.length > 0) {
        fputs(",\"entry\":", stdout);
        json_print_string(stdout, report->entry.data, (size_t)report->entry.length);
    }
    if (live && report->stateful)
        printf(",\"level\":%" PRId64, report->level);
    if (live && strcmp(report->type, "pressure") != 0)
        printf(",\"limit\":%" PRIu64, report->limit);
    if (live && report->has_amount)
        printf(",\"amount\":%" PRIu64, report->amount);
    if (live && report->replicas > 1)
        printf(",\"replicas\":%" PRIu64, report->replicas);
    printf(",\"denies\":%s", report->denies ? "true" : "false");
    if (report->denies)
        printf(",\"reason\":\"%s\"", adm_reason_name(report->reason));
    if (report->denies && report->retry_after_ms > 0)
        printf(",\"retry_after_ms\":%" PRIu64, report->retry_after_ms);
    fputc('}', stdout);
}

static void on_report(void *self, const struct adm_rule_report *report)
{
    struct printer *printer = self;

    if (printer->json)
        print_json(printer, report);
    else
        print_text(printer, report);
    printer->rows++;
}

static void on_width(void *self, const struct adm_rule_report *report)
{
    struct printer *printer = self;
    int length = (int)strlen(report->rule);

    if (length > printer->width)
        printer->width = length;
}

/* ---- the decision --------------------------------------------------------------------------- */

static void print_decision(const struct adm_decision *decision)
{
    bool allow = decision->verdict == ADM_VERDICT_ALLOW;

    printf("\n%s%s%s: %s", style_on(stdout, allow ? STYLE_GREEN : STYLE_RED),
           allow ? "allow" : "deny", style_off(stdout), adm_reason_name(decision->reason));
    for (uint32_t i = 0; adm_decision_rule(decision, i) != NULL; i++)
        printf("%s%s", i == 0 ? ", by " : ", ", adm_decision_rule(decision, i));
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

static void print_names(const struct adm_decision *decision,
                        const char *(*name_of)(const struct adm_decision *, uint32_t))
{
    for (uint32_t i = 0; name_of(decision, i) != NULL; i++) {
        fputs(i > 0 ? "," : "", stdout);
        json_print_text(stdout, name_of(decision, i));
    }
}

static void print_decision_json(const struct adm_decision *decision)
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

/* ---- the question --------------------------------------------------------------------------- */

static bool explain(struct adm_gate *gate, const struct question *question,
                    struct adm_decision *decision)
{
    struct adm_request request = {
        .size = sizeof request,
        .descriptors = question->descriptors,
        .descriptor_count = question->descriptor_count,
        .amounts = question->amounts,
        .amount_count = question->amount_count,
        .cost = question->cost,
    };
    struct printer printer = { .json = question->json, .width = 4 };
    adm_status status = adm_explain(gate, &request, on_width, &printer, decision);

    if (status != ADM_OK) {
        cli_error("cannot explain: %s", adm_status_text(status));
        return false;
    }
    if (question->json)
        fputs("{\"format\":1,\n \"rules\":[", stdout);
    else
        printf("%s%-*s  %-12s  %-13s  %-14s  %14s  %14s  %14s  %s%s\n",
               style_on(stdout, STYLE_BOLD), printer.width, "rule", "type", "unit", "numbers of",
               "level", "limit", "amount", "verdict", style_off(stdout));
    status = adm_explain(gate, &request, on_report, &printer, decision);
    if (status != ADM_OK) {
        cli_error("cannot explain: %s", adm_status_text(status));
        return false;
    }
    if (question->json)
        print_decision_json(decision);
    else
        print_decision(decision);
    return true;
}

/* Exit code of a table that is refused, CLI_OK otherwise. */
static int put_tables(struct adm_gate *gate, const struct question *question)
{
    for (size_t i = 0; i < question->table_count; i++) {
        struct adm_diags *diags = NULL;
        struct input input;

        if (!input_read(question->tables[i], INPUT_POLICY_MAX, &input))
            return CLI_USAGE;
        struct source source = input_source(&input);
        adm_status status = adm_gate_put_table(gate, (struct adm_bytes){ input.text, input.length },
                                               ADM_TABLE_REPLACE | table_flags(input.name), &diags);
        findings_print(stderr, diags, &source);
        if (status != ADM_OK && status != ADM_E_POLICY_INVALID)
            cli_error("%s: %s", input.name, adm_status_text(status));
        adm_diags_free(diags);
        input_free(&input);
        if (status != ADM_OK)
            return adm_status_class(status) == ADM_STATUS_CLASS_ENVIRONMENT ? CLI_FAILED
                                                                            : CLI_INVALID;
    }
    return CLI_OK;
}

static int ask(struct question *question, struct adm_gate *gate)
{
    struct adm_decision decision = { .size = sizeof decision };
    int code = put_tables(gate, question);

    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < question->amount_count; i++)
        if (adm_gate_unit(gate, question->units[i], &question->amounts[i].unit) != ADM_OK) {
            cli_error("'%.*s' cannot be a unit", (int)question->units[i].length,
                      (const char *)question->units[i].data);
            return CLI_USAGE;
        }
    if (!explain(gate, question, &decision))
        return CLI_FAILED;
    const char *verdict = decision.verdict == ADM_VERDICT_ALLOW ? "allow" : "deny";
    if (question->expect == NULL || strcmp(question->expect, verdict) == 0 ||
        strcmp(question->expect, adm_reason_name(decision.reason)) == 0)
        return CLI_OK;
    cli_error("expected %s, got %s (%s)", question->expect, verdict,
              adm_reason_name(decision.reason));
    return CLI_FAILED;
}

static int run_question(struct question *question, const char *path)
{
    struct lab lab = { .gate = NULL };
    struct adm_policy *policy = NULL;
    struct input text;
    struct timespec now;
    int code = policy_read(path, false, &text, &policy);

    if (code != CLI_OK)
        return code;
    clock_gettime(CLOCK_REALTIME, &now); /* quota windows are those of today */
    struct lab_options options = { .seed = 1,
                                   .start_ns =
                                       (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec };
    adm_status status = lab_open(&lab, &options, policy);
    if (status == ADM_OK) {
        code = ask(question, lab.gate);
        lab_close(&lab);
    } else {
        cli_error("cannot open a gate: %s", adm_status_text(status));
        code = CLI_FAILED;
    }
    adm_policy_unref(policy);
    input_free(&text);
    return code;
}

static bool set_flag(const struct command *command, struct question *question, int letter,
                     const char *value)
{
    static const char *const formats[] = { "text", "json", NULL };
    struct adm_bytes key, text;
    int choice;

    switch (letter) {
    case 'f':
        choice = flag_choice(command, "format", value, formats);
        question->json = choice == 1;
        return choice >= 0;
    case 'd':
        if (question->descriptor_count < LIST_MAX && split_pair(value, &key, &text)) {
            question->descriptors[question->descriptor_count++] =
                (struct adm_descriptor){ .key = key, .value = text };
            return true;
        }
        usage_error(command, "--descriptor takes KEY=VALUE, not '%s'", value);
        return false;
    case FLAG_COST:
        if (!flag_number(command, "cost", value, ADM_MAX_AMOUNT, &question->cost))
            return false;
        if (question->cost > 0)
            return true;
        usage_error(command, "--cost takes a whole number from 1 to 10^12, not 0");
        return false;
    case FLAG_AMOUNT:
        if (question->amount_count < LIST_MAX && split_pair(value, &key, &text) &&
            cli_parse_u64(text.data, (size_t)text.length,
                          &question->amounts[question->amount_count].value)) {
            question->units[question->amount_count++] = key;
            return true;
        }
        usage_error(command, "--amount takes UNIT=NUMBER, not '%s'", value);
        return false;
    case FLAG_TABLES:
        if (question->table_count < LIST_MAX) {
            question->tables[question->table_count++] = value;
            return true;
        }
        usage_error(command, "too many --tables");
        return false;
    default:
        question->expect = value;
        return true;
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct question *question = cli_allocate(sizeof *question);
    int letter, code = CLI_OK;

    question->cost = 1;
    while (code == CLI_OK && (letter = flags_next(&flags)) != FLAG_END) {
        if (letter == FLAG_STOP) {
            free(question);
            return flags.exit_code;
        }
        if (!set_flag(command, question, letter, flags.value))
            code = CLI_USAGE;
    }
    if (code == CLI_OK && argc - flags.operand != 1)
        code = usage_error(command, "expected one policy");
    if (code == CLI_OK)
        code = run_question(question, argv[flags.operand]);
    free(question);
    return code;
}

static const struct flag flag_table[] = {
    { "descriptor", 'd', "KEY=VALUE", "a descriptor of the request; may be repeated" },
    { "cost", FLAG_COST, "N", "its cost [1]" },
    { "amount", FLAG_AMOUNT, "UNIT=N", "an amount of another unit; may be repeated" },
    { "tables", FLAG_TABLES, "FILE", "a limit table in force; may be repeated" },
    { "expect", FLAG_EXPECT, "allow|deny|REASON", "exit with 1 when the decision is another one" },
    { "format", 'f', "text|json", "how the answer is printed" },
    { NULL, 0, NULL, NULL },
};

const struct command command_explain = {
    .name = "explain",
    .operands = "POLICY",
    .summary = "Say what a policy answers to a request, rule by rule",
    .details = "The request meets a new gate: nothing is held or used yet, there is no signal.\n",
    .flags = flag_table,
    .run = run,
};
