/* SPDX-License-Identifier: Apache-2.0 */
/* admit explain: every rule of a policy, whether it concerns a request, and what the answer
 * would be. */
#include "explain.h"

#include "lab.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FLAG_COST = FLAG_LONG,
    FLAG_AMOUNT,
    FLAG_TABLES,
    FLAG_EXPECT,
    FLAG_REQUEST,
    FLAG_ONLY,
    FLAG_ASCII
};

/* Whether this process may print box drawing characters: what the locale of the environment
 * says. */
static bool locale_is_utf8(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);

    if (locale == (locale_t)0)
        return false;
    bool utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return utf8;
}

/* ---- the question --------------------------------------------------------------------------- */

static void on_count(void *self, const struct adm_rule_report *report)
{
    struct explain_view *view = self;

    view->rules++;
    view->shown += explain_shows(view, report);
}

static void on_report(void *self, const struct adm_rule_report *report)
{
    struct explain_view *view = self;

    if (!explain_shows(view, report))
        return;
    if (view->question->json)
        explain_json_rule(view, report);
    else
        explain_tree_rule(view, report);
    view->printed++;
}

static int explain(struct adm_gate *gate, struct explain_view *view, struct adm_decision *decision)
{
    const struct question *question = view->question;
    struct adm_request request = {
        .size = sizeof request,
        .descriptors = question->descriptors,
        .descriptor_count = question->descriptor_count,
        .amounts = question->amounts,
        .amount_count = question->amount_count,
        .cost = question->cost,
    };
    /* Twice: the last branch of a tree looks different, and it must be known which that is. */
    adm_status status = adm_explain(gate, &request, on_count, view, decision);

    if (status != ADM_OK) {
        cli_error("cannot explain: %s", adm_status_text(status));
        return status_exit_code(status);
    }
    if (question->json)
        explain_json_head();
    else
        explain_tree_head(view, decision->policy_version);
    status = adm_explain(gate, &request, on_report, view, decision);
    if (status != ADM_OK) {
        cli_error("cannot explain: %s", adm_status_text(status));
        return status_exit_code(status);
    }
    if (question->json)
        explain_json_decision(decision);
    else
        explain_tree_decision(view, decision);
    return CLI_OK;
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
        findings_print_alone(diags, &source);
        if (status != ADM_OK && status != ADM_E_POLICY_INVALID)
            cli_error("%s: %s", input.name, adm_status_text(status));
        adm_diags_free(diags);
        input_free(&input);
        if (status != ADM_OK)
            return status_exit_code(status);
    }
    return CLI_OK;
}

static int ask(struct explain_view *view, struct adm_gate *gate)
{
    struct adm_decision decision = { .size = sizeof decision };
    struct question question = *view->question; /* unit ids belong to this gate */
    int code = put_tables(gate, &question);

    if (code != CLI_OK)
        return code;
    for (size_t i = 0; i < question.amount_count; i++)
        if (adm_gate_unit(gate, question.units[i], &question.amounts[i].unit) != ADM_OK) {
            cli_error("'%.*s' cannot be a unit", (int)question.units[i].length,
                      (const char *)question.units[i].data);
            return CLI_USAGE;
        }
    view->question = &question;
    code = explain(gate, view, &decision);
    if (code != CLI_OK)
        return code;
    const char *verdict = decision.verdict == ADM_VERDICT_ALLOW ? "allow" : "deny";
    if (question.expect == NULL || strcmp(question.expect, verdict) == 0 ||
        strcmp(question.expect, adm_reason_name(decision.reason)) == 0)
        return CLI_OK;
    cli_error("expected %s, got %s (%s)", question.expect, verdict,
              adm_reason_name(decision.reason));
    return CLI_FAILED;
}

static int ask_policy(struct explain_view *view, struct adm_policy *policy)
{
    struct lab lab = { .gate = NULL };
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now); /* quota windows are those of today */
    struct lab_options options = { .seed = 1,
                                   .start_ns =
                                       (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec };
    adm_status status = lab_open(&lab, &options, policy);
    if (status != ADM_OK) {
        cli_error("cannot open a gate: %s", adm_status_text(status));
        return CLI_ENVIRONMENT;
    }
    int code = ask(view, lab.gate);
    lab_close(&lab);
    return code;
}

static int run_question(struct question *question, const char *path)
{
    struct json_document document = { .root = NULL };
    struct json_error error;
    struct adm_policy *policy = NULL;
    struct input text;
    int code = policy_read(path, false, &text, &policy);

    if (code != CLI_OK)
        return code;
    /* What this reader does not read is explained with less to say about its sides. */
    struct explain_view view = { .question = question,
                                 .lines = !question->ascii && locale_is_utf8() };
    if (json_parse(&document, text.text, text.length, &error))
        view.policy = document.root;
    code = question_check_units(question, view.policy) ? ask_policy(&view, policy) : CLI_USAGE;
    json_free(&document);
    adm_policy_unref(policy);
    input_free(&text);
    return code;
}

/* ---- flags ---------------------------------------------------------------------------------- */

static bool set_expect(struct question *question, const char *value)
{
    const char *words[ADM_REASON_COUNT + 3] = { "allow", "deny" };

    for (uint32_t reason = 0; reason < ADM_REASON_COUNT; reason++)
        words[reason + 2] = adm_reason_name(reason);
    question->expect = value;
    return flag_choice(question->command, "expect", value, words) >= 0;
}

static bool set_cost(struct question *question, const char *value)
{
    question->cost_given = true;
    if (!flag_number(question->command, "cost", value, ADM_MAX_AMOUNT, &question->cost))
        return false;
    if (question->cost > 0)
        return true;
    usage_error(question->command, "--cost takes a whole number from 1 to 10^12, not 0");
    return false;
}

static bool set_flag(struct question *question, int letter, const char *value)
{
    static const char *const formats[] = { "text", "json", NULL };
    static const char *const only[] = { "all", "matched", "denying", NULL };
    int choice;

    switch (letter) {
    case 'f':
        choice = flag_choice(question->command, "format", value, formats);
        question->json = choice == 1;
        return choice >= 0;
    case 'd':
        return question_descriptor(question, value);
    case FLAG_COST:
        return set_cost(question, value);
    case FLAG_AMOUNT:
        return question_amount(question, value);
    case FLAG_REQUEST:
        question->request_path = value;
        return true;
    case FLAG_ONLY:
        choice = flag_choice(question->command, "only", value, only);
        question->only = (enum explain_only)choice;
        return choice >= 0;
    case FLAG_ASCII:
        question->ascii = true;
        return true;
    case FLAG_TABLES:
        if (question->table_count < EXPLAIN_LIST_MAX) {
            question->tables[question->table_count++] = value;
            return true;
        }
        usage_error(question->command, "too many --tables");
        return false;
    default:
        return set_expect(question, value);
    }
}

static int run_flags(struct question *question, int argc, char **argv)
{
    struct flags flags = { .command = question->command, .argc = argc, .argv = argv };
    int letter;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        if (letter == FLAG_STOP)
            return flags.exit_code;
        if (!set_flag(question, letter, flags.value))
            return CLI_USAGE;
    }
    if (argc - flags.operand != 1)
        return usage_error(question->command, "expected one policy");
    if (!question_read_file(question))
        return CLI_USAGE;
    return run_question(question, argv[flags.operand]);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct question *question = cli_allocate(sizeof *question);

    question->command = command;
    question->cost = 1;
    int code = run_flags(question, argc, argv);
    question_free(question);
    free(question);
    return code;
}

static const struct flag flag_table[] = {
    { "descriptor", 'd', "KEY=VALUE", "a descriptor of the request; may be repeated" },
    { "cost", FLAG_COST, "N", "its cost [1]" },
    { "amount", FLAG_AMOUNT, "UNIT=N", "an amount of another unit; may be repeated" },
    { "request", FLAG_REQUEST, "FILE", "JSON: d, cost, amounts, as a step of a scenario has them" },
    { "tables", FLAG_TABLES, "FILE", "a limit table in force; may be repeated" },
    { "expect", FLAG_EXPECT, "allow|deny|REASON", "exit with 1 when the decision is another one" },
    { "only", FLAG_ONLY, "all|matched|denying", "which rules are shown [all]" },
    { "ascii", FLAG_ASCII, NULL, "no box drawing characters, also where the locale has them" },
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
