/* SPDX-License-Identifier: Apache-2.0 */
/*
 * admit validate: is each policy one that a gate would take, and if not, where not; and admit lint:
 * what in it is legal but suspicious.
 */
#include "cli.h"
#include "json.h"

#include <inttypes.h>

enum { FORMAT_TEXT, FORMAT_JSON };

struct summary {
    int code; /* the worst so far */
    int format;
    bool lint, quiet, strict;
    unsigned files;
    struct tally tally;
};

static void worse(struct summary *summary, int code)
{
    summary->code = worse_exit_code(summary->code, code);
}

static void print_text(const struct summary *summary, const struct input *input, adm_status status,
                       const struct adm_policy *policy, const struct adm_diags *diags)
{
    struct source source = input_source(input);

    findings_print(stderr, diags, &source);
    if (status == ADM_OK && summary->lint && diags == NULL && !summary->quiet)
        printf("%s: nothing to say\n", input->name);
    else if (status == ADM_OK && !summary->lint && !summary->quiet)
        printf("%s: valid, version %s, %" PRIu64 " rule%s\n", input->name,
               adm_policy_version(policy), adm_policy_rule_count(policy),
               adm_policy_rule_count(policy) == 1 ? "" : "s");
    else if (status != ADM_OK && status != ADM_E_POLICY_INVALID)
        cli_error("cannot load %s: %s", input->name, adm_status_text(status));
}

static void print_json(const struct summary *summary, const struct input *input, adm_status status,
                       const struct adm_policy *policy, const struct adm_diags *diags)
{
    printf("%s\n {\"file\":", summary->files > 0 ? "," : "");
    json_print_text(stdout, input->name);
    printf(",\"valid\":%s", status == ADM_OK ? "true" : "false");
    if (status == ADM_OK) {
        fputs(",\"version\":", stdout);
        json_print_text(stdout, adm_policy_version(policy));
        printf(",\"rules\":%" PRIu64, adm_policy_rule_count(policy));
    }
    if (status != ADM_OK && status != ADM_E_POLICY_INVALID) {
        fputs(",\"error\":", stdout);
        json_print_text(stdout, adm_status_text(status));
    }
    fputs(",\"findings\":", stdout);
    findings_print_json(stdout, diags);
    fputc('}', stdout);
}

/* A file that was asked for is in the list, whatever became of it. */
static void print_unread(struct summary *summary, const char *path)
{
    printf("%s\n {\"file\":", summary->files > 0 ? "," : "");
    json_print_text(stdout, path);
    fputs(",\"valid\":false,\"error\":\"it cannot be read\",\"findings\":[]}", stdout);
    summary->files++;
}

static void check(struct summary *summary, const char *path)
{
    struct adm_policy_options options = { .size = sizeof options };
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    struct input input;

    if (!input_read(path, INPUT_POLICY_MAX, &input)) {
        if (summary->format == FORMAT_JSON)
            print_unread(summary, path);
        worse(summary, CLI_USAGE);
        return;
    }
    options.file = input.name;
    options.flags = policy_flags(input.name) | (summary->lint ? ADM_POLICY_LINT : 0);
    adm_status status =
        adm_policy_load((struct adm_bytes){ input.text, input.length }, &options, &policy, &diags);
    if (summary->format == FORMAT_JSON)
        print_json(summary, &input, status, policy, diags);
    else
        print_text(summary, &input, status, policy, diags);
    findings_count(diags, &summary->tally);
    summary->files++;
    if (status != ADM_OK)
        worse(summary, status_exit_code(status));
    else if (summary->strict && diags != NULL)
        worse(summary, CLI_WARNINGS);
    adm_diags_free(diags);
    adm_policy_unref(policy);
    input_free(&input);
}

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const formats[] = { "text", "json", NULL };
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct summary summary = { .code = CLI_OK, .lint = command == &command_lint };
    int letter;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        switch (letter) {
        case 'f':
            summary.format = flag_choice(command, "format", flags.value, formats);
            if (summary.format < 0)
                return CLI_USAGE;
            break;
        case 's':
            summary.strict = true;
            break;
        case 'q':
            summary.quiet = true;
            break;
        default:
            return flags.exit_code;
        }
    }
    if (flags.operand == argc)
        return usage_error(command, "no file given");
    if (summary.format == FORMAT_JSON)
        fputs("{\"format\":1,\"files\":[", stdout);
    for (int i = flags.operand; i < argc; i++)
        check(&summary, argv[i]);
    if (summary.format == FORMAT_JSON)
        fputs("\n]}\n", stdout);
    else
        findings_summary(stderr, &summary.tally);
    return summary.code;
}

static const struct flag validate_flags[] = {
    { "format", 'f', "text|json", "how findings are printed (json: on standard output)" },
    { "quiet", 'q', NULL, "say nothing of valid files" },
    { NULL, 0, NULL, NULL },
};

static const struct flag lint_flags[] = {
    { "format", 'f', "text|json", "how findings are printed (json: on standard output)" },
    { "quiet", 'q', NULL, "say nothing of files without findings" },
    { "strict", 's', NULL, "exit with 5 when there is a finding" },
    { NULL, 0, NULL, NULL },
};

const struct command command_validate = {
    .name = "validate",
    .operands = "FILE...",
    .summary = "Check policy documents",
    .details = "Findings go to standard error as file:line:col: error[CODE]: /pointer: message.\n"
               "\"-\" is standard input. Exit code 3 when a document is not valid.\n",
    .flags = validate_flags,
    .run = run,
};

const struct command command_lint = {
    .name = "lint",
    .operands = "FILE...",
    .summary = "Say what is legal but suspicious",
    .details =
        "Findings are warnings, which 'admit explain-code' explains. Exit code 3 when a policy\n"
        "is not valid; with --strict 5 when there are warnings only.\n",
    .flags = lint_flags,
    .run = run,
};
