/* SPDX-License-Identifier: Apache-2.0 */
/* admit test: scenario files, each scenario on a new gate with a fake clock. */
#include "cli.h"
#include "scenario.h"
#include "test_report.h"

#include <stdlib.h>
#include <string.h>

struct run {
    struct test_report report;
    enum lab_backend backend;
    int code;
};

struct block {
    FILE *stream;
    char *text;
    size_t length;
};

static void block_open(struct block *block)
{
    *block = (struct block){ .stream = NULL };
    block->stream = open_memstream(&block->text, &block->length);
    if (block->stream == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
}

/* ---- kind loader ---------------------------------------------------------------------------- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The document's bytes, allocated; NULL when it has none. */
static char *document_bytes(const struct json *document, size_t *length)
{
    const struct json *text = json_member(document, "text"), *hex = json_member(document, "hex");

    if (text != NULL && text->kind == JSON_STRING) {
        *length = text->length;
        return cli_copy(text->text, text->length);
    }
    if (hex == NULL || hex->kind != JSON_STRING || hex->length % 2 != 0)
        return NULL;
    char *bytes = cli_allocate(hex->length / 2);
    for (size_t i = 0; i < hex->length; i += 2) {
        int high = hex_value(hex->text[i]), low = hex_value(hex->text[i + 1]);

        if (high < 0 || low < 0) {
            free(bytes);
            return NULL;
        }
        bytes[i / 2] = (char)(high * 16 + low);
    }
    *length = hex->length / 2;
    return bytes;
}

static void judge_document(const struct json *document, FILE *why)
{
    const struct json *expect = json_member(document, "expect");
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    size_t length = 0;
    char *bytes = document_bytes(document, &length);

    if (bytes == NULL || !(json_is(expect, "accept") || json_is(expect, "reject"))) {
        fputs("the document needs \"text\" or \"hex\", and \"expect\" accept or reject\n", why);
        free(bytes);
        return;
    }
    struct adm_policy_options options = { .size = sizeof options };
    if (json_is(json_member(document, "format"), "yaml"))
        options.flags = ADM_POLICY_YAML;
    adm_status status =
        adm_policy_load((struct adm_bytes){ bytes, length }, &options, &policy, &diags);
    if (status != ADM_OK && status != ADM_E_POLICY_INVALID) {
        fprintf(why, "cannot be read: %s\n", adm_status_text(status));
    } else if (json_is(expect, "accept") != (status == ADM_OK)) {
        fprintf(why, "expected %s, got %s\n", expect->text, status == ADM_OK ? "accept" : "reject");
        findings_print(why, diags,
                       &(struct source){ .name = "document", .text = bytes, .length = length });
    } else if (status == ADM_E_POLICY_INVALID && adm_diags_count(diags) == 0) {
        fputs("rejected without a finding\n", why);
    }
    adm_diags_free(diags);
    adm_policy_unref(policy);
    free(bytes);
}

static void run_document(struct run *run, struct result *result, const struct json *document)
{
    const struct json *name = json_member(document, "name");
    struct block why;

    result->name = name != NULL && name->kind == JSON_STRING ? name->text : "?";
    const struct json *format = json_member(document, "format");
    if (!json_is(format, "json") && !json_is(format, "yaml")) {
        result->kind = RESULT_FAILED;
        result->why = "the \"format\" of a document is json or yaml\n";
        report_result(&run->report, result);
        return;
    }
    block_open(&why);
    judge_document(document, why.stream);
    fclose(why.stream);
    result->kind = why.length > 0 ? RESULT_FAILED : RESULT_PASSED;
    result->why = why.length > 0 ? why.text : NULL;
    report_result(&run->report, result);
    free(why.text);
}

static void run_loader(struct run *run, struct result *result, const struct json *scenario)
{
    const struct json *documents = json_member(scenario, "documents");

    if (documents == NULL || documents->kind != JSON_ARRAY || documents->count == 0) {
        result->kind = RESULT_FAILED;
        result->why = "a loader scenario needs a list of documents\n";
        report_result(&run->report, result);
        return;
    }
    for (const struct json *document = documents->first; document != NULL;
         document = document->next)
        run_document(run, result, document);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void run_admission(struct run *run, struct result *result, struct adm_bytes text,
                          const struct json *scenario)
{
    struct block why;

    block_open(&why);
    unsigned failures = scenario_run(result->file, text, scenario, run->backend, why.stream);
    fclose(why.stream);
    result->kind = failures > 0 ? RESULT_FAILED : RESULT_PASSED;
    result->why = failures > 0 ? why.text : NULL;
    report_result(&run->report, result);
    free(why.text);
}

static void run_scenario(struct run *run, const char *file, struct adm_bytes text, uint64_t number,
                         const struct json *scenario)
{
    const struct json *kind = json_member(scenario, "kind");
    struct result result = { .file = file, .scenario = number };

    if (json_is(kind, "admission")) {
        run_admission(run, &result, text, scenario);
    } else if (json_is(kind, "loader")) {
        run_loader(run, &result, scenario);
    } else if (kind != NULL && kind->kind == JSON_STRING) {
        char why[120];

        snprintf(why, sizeof why, "no runner for kind \"%.60s\" yet", kind->text);
        result.kind = RESULT_SKIPPED;
        result.why = why;
        report_result(&run->report, &result);
    } else {
        result.kind = RESULT_FAILED;
        result.why = "the scenario has no \"kind\"\n";
        report_result(&run->report, &result);
    }
}

static void run_file(struct run *run, const char *path)
{
    struct json_document document;
    struct json_error error;
    struct input input;

    if (!input_read(path, INPUT_SCENARIO_MAX, &input)) {
        run->code = CLI_USAGE;
        return;
    }
    if (!json_parse(&document, input.text, input.length, &error)) {
        fprintf(stderr, "%s:%u:%u: error: %s\n", input.name, error.line, error.column,
                error.message);
        run->code = CLI_USAGE;
        input_free(&input);
        return;
    }
    const struct json *scenarios = json_member(document.root, "scenarios");
    uint64_t number = 0;
    if (scenarios == NULL || scenarios->kind != JSON_ARRAY) {
        fprintf(stderr, "%s:1:1: error: a scenario file has a list \"scenarios\"\n", input.name);
        run->code = CLI_USAGE;
    } else if (scenarios->count == 0) {
        fprintf(stderr, "%s:%u:%u: error: no scenario\n", input.name, scenarios->line,
                scenarios->column);
        run->code = CLI_USAGE;
    } else {
        for (const struct json *scenario = scenarios->first; scenario != NULL;
             scenario = scenario->next)
            run_scenario(run, input.name, (struct adm_bytes){ input.text, input.length }, ++number,
                         scenario);
    }
    json_free(&document);
    input_free(&input);
}

static int run_test(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct run run = { .code = CLI_OK };
    int letter, choice;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        switch (letter) {
        case 'b':
            if ((choice = flag_choice(command, "backend", flags.value, lab_backend_names)) < 0)
                return CLI_USAGE;
            run.backend = (enum lab_backend)choice;
            break;
        case 'f':
            if ((choice = flag_choice(command, "format", flags.value, report_format_names)) < 0)
                return CLI_USAGE;
            run.report.format = (enum report_format)choice;
            break;
        case 'q':
            run.report.quiet = true;
            break;
        default:
            return flags.exit_code;
        }
    }
    if (flags.operand == argc)
        return usage_error(command, "no file given");
    report_begin(&run.report);
    for (int i = flags.operand; i < argc; i++)
        run_file(&run, argv[i]);
    report_end(&run.report);
    if (run.code != CLI_OK)
        return run.code;
    if (run.report.passed + run.report.failed > 0)
        return run.report.failed > 0 ? CLI_TESTS : CLI_OK;
    /* A green result would say that something holds. */
    cli_error("nothing was run: all scenarios were skipped");
    return CLI_TESTS;
}

static const struct flag flag_table[] = {
    { "backend", 'b', "memory|plain|deferring", "where the state is kept [memory]" },
    { "format", 'f', "text|json|tap", "how results are printed" },
    { "quiet", 'q', NULL, "text: say nothing of what was skipped" },
    { NULL, 0, NULL, NULL },
};

const struct command command_test = {
    .name = "test",
    .operands = "FILE...",
    .summary = "Run scenario files against the engine",
    .details = "Scenarios of kind \"admission\" run on a new gate with a fake clock; of kind\n"
               "\"loader\", each JSON document counts as one test. Other kinds are skipped, with\n"
               "the reason, and counted.\n"
               "The last line is \"N passed, M failed\". Exit code 4 when any failed, or when all\n"
               "were skipped.\n",
    .flags = flag_table,
    .run = run_test,
};
