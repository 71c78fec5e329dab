/* SPDX-License-Identifier: Apache-2.0 */
/* admit replay: what would this policy have done with that traffic? */
#include "replay.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum {
    FLAG_INPUT = FLAG_LONG,
    FLAG_MAP,
    FLAG_SKIP_BAD,
    FLAG_MS_BASE,
    FLAG_MS_PER_TOKEN,
    FLAG_DECLARE,
    FLAG_TENANTS,
    FLAG_SEED,
    FLAG_SHOW_KINDS,
    FLAG_TIMING,
    FLAG_PARTITIONS,
    FLAG_LEASES,
    FLAG_PLOT
};

static bool add_descriptor(const struct command *command, struct trace_options *options,
                           const char *text)
{
    struct adm_bytes key, value;

    if (split_pair(text, &key, &value))
        return flag_descriptor(command, key, value, options->descriptors,
                               &options->descriptor_count);
    usage_error(command, "--descriptor takes KEY=VALUE, not '%s'", text);
    return false;
}

static bool add_map(const struct command *command, struct trace_options *options, const char *text)
{
    struct trace_map map = { .used = false };

    if (options->map_count == TRACE_OPTION_MAX || !split_pair(text, &map.column, &map.name) ||
        map.name.length == 0) {
        usage_error(command, "--map takes COLUMN=NAME, not '%s'", text);
        return false;
    }
    options->maps[options->map_count++] = map;
    return true;
}

static bool set_ms(const struct command *command, const char *flag, const char *text, uint64_t *out)
{
    if (cli_parse_ms(text, strlen(text), out) && *out <= TRACE_TIME_MAX)
        return true;
    usage_error(command, "--%s takes milliseconds, not '%s'", flag, text);
    return false;
}

static bool set_choice(const struct command *command, const char *flag, const char *value,
                       const char *const *choices, int *out)
{
    *out = flag_choice(command, flag, value, choices);
    return *out >= 0;
}

static bool set_flag(const struct command *command, struct replay_options *options, int letter,
                     const char *value)
{
    static const char *const formats[] = { "text", "json", NULL };
    struct trace_options *trace = &options->trace;
    int choice = 0;
    bool good = true;

    switch (letter) {
    case 'b':
        good = set_choice(command, "backend", value, lab_backend_names, &choice);
        options->backend = (enum lab_backend)choice;
        return good;
    case 'f':
        good = set_choice(command, "format", value, formats, &choice);
        options->json = choice == 1;
        return good;
    case 'd':
        return add_descriptor(command, trace, value);
    case 'q':
        options->quiet = true;
        return true;
    case FLAG_INPUT:
        good = set_choice(command, "input", value, trace_input_names, &choice);
        trace->input = (enum trace_input)choice;
        return good;
    case FLAG_MAP:
        return add_map(command, trace, value);
    case FLAG_SKIP_BAD:
        trace->skip_bad = true;
        return true;
    case FLAG_MS_BASE:
        return set_ms(command, "ms-base", value, &options->base_ns);
    case FLAG_MS_PER_TOKEN:
        return set_ms(command, "ms-per-output-token", value, &options->per_token_ns);
    case FLAG_DECLARE:
        trace->declare_set = true;
        return flag_number(command, "declare", value, ADM_MAX_AMOUNT, &trace->declare);
    case FLAG_TENANTS:
        return flag_number(command, "tenants", value, 1000000000, &trace->tenants);
    case FLAG_SEED:
        return flag_number(command, "seed", value, UINT64_MAX, &options->seed);
    case FLAG_SHOW_KINDS:
        options->show_kinds = true;
        return true;
    case FLAG_TIMING:
        options->timing = true;
        return true;
    case FLAG_PLOT:
        options->plot_path = value;
        if (value[0] != 0 && strcmp(value, "-") != 0)
            return true;
        usage_error(command, "--plot takes the name of a file; the report is on standard output");
        return false;
    case FLAG_PARTITIONS:
        return flag_number(command, "partitions", value, UINT32_MAX, &options->partitions);
    default:
        return flag_number(command, "leases", value, UINT32_MAX, &options->leases);
    }
}

/* Units that the policy declares are columns with amounts, too. */
static void declared_units(struct trace_options *options, const struct json *policy)
{
    const struct json *units = json_member(policy, "units");

    if (units == NULL)
        return;
    for (const struct json *unit = units->first;
         unit != NULL && options->unit_count < TRACE_OPTION_MAX; unit = unit->next)
        options->units[options->unit_count++] = (struct adm_bytes){ unit->text, unit->length };
}

static int go(struct replay *replay, struct adm_policy *policy)
{
    const struct replay_options *options = replay->options;
    struct lab_options lab = {
        .backend = options->backend,
        .seed = options->seed,
        .start_ns = replay->trace.rows[0].at_ns,
        .partitions_max = options->partitions,
        .leases_max = options->leases,
    };
    adm_status status = lab_open(&replay->lab, &lab, policy);

    if (status != ADM_OK) {
        cli_error("cannot open a gate: %s", adm_status_text(status));
        return CLI_ENVIRONMENT;
    }
    bool good = replay_run(replay) && replay_count_rules(replay);
    if (good && options->json)
        replay_report_json(replay);
    else if (good)
        replay_report_text(replay);
    int code = good ? CLI_OK : CLI_FAILED;
    if (good && options->plot_path != NULL)
        code = plot_draw(&replay->plot, replay, options->plot_path);
    lab_close(&replay->lab);
    return code;
}

static void replay_free(struct replay *replay)
{
    for (size_t i = 0; i < replay->rule_count; i++)
        free(replay->rules[i].id);
    for (size_t i = 0; i < replay->rule_words.count; i++)
        free(replay->rule_words.items[i].bytes);
    free(replay->rule_words.items);
    free(replay->rule_words.slots);
    free(replay->rules);
    free(replay->units);
    free(replay->unit_ids);
    free(replay->delays);
    plot_free(&replay->plot);
    heap_free(&replay->heap);
    trace_free(&replay->trace);
}

static int run_replay(struct replay_options *options)
{
    struct replay *replay = cli_allocate(sizeof *replay);
    struct json_document document;
    struct json_error error;
    struct adm_policy *policy = NULL;
    struct input text;
    int code = policy_read(options->policy_path, options->quiet, &text, &policy);

    replay->options = options;
    if (code == CLI_OK && !json_parse(&document, text.text, text.length, &error)) {
        cli_error("%s:%u:%u: %s", text.name, error.line, error.column, error.message);
        code = CLI_FAILED;
    } else if (code == CLI_OK) {
        replay->policy.name = text.name;
        snprintf(replay->policy.version, sizeof replay->policy.version, "%s",
                 adm_policy_version(policy));
        replay->policy.rules = adm_policy_rule_count(policy);
        declared_units(&options->trace, document.root);
        replay_read_rules(replay, document.root);
        code =
            trace_read(&replay->trace, options->trace_path, &options->trace) ? CLI_OK : CLI_USAGE;
        if (code == CLI_OK)
            code = go(replay, policy);
        json_free(&document);
    }
    if (policy != NULL)
        input_free(&text);
    adm_policy_unref(policy);
    replay_free(replay);
    free(replay);
    return code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct replay_options options = {
        .seed = 1,
        .base_ns = 200 * ADM_MILLISECOND,
        .per_token_ns = 20 * ADM_MILLISECOND,
    };
    int letter;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        if (letter == FLAG_STOP)
            return flags.exit_code;
        if (!set_flag(command, &options, letter, flags.value))
            return CLI_USAGE;
    }
    if (argc - flags.operand != 2)
        return usage_error(command, "expected a policy and a trace");
    options.policy_path = argv[flags.operand];
    options.trace_path = argv[flags.operand + 1];
    if (strcmp(options.policy_path, "-") == 0 && strcmp(options.trace_path, "-") == 0)
        return usage_error(command, "only one of the two can be standard input");
    options.trace.seed = options.seed;
    return run_replay(&options);
}

static const struct flag flag_table[] = {
    { "format", 'f', "text|json", "how the result is printed" },
    { "input", FLAG_INPUT, "auto|csv|azure|jsonl", "what the trace looks like" },
    { "descriptor", 'd', "KEY=VALUE", "of rows that do not have this key; may be repeated" },
    { "map", FLAG_MAP, "COLUMN=NAME", "read a CSV column as if it were called NAME; - ignores it" },
    { "tenants", FLAG_TENANTS, "N", "rows without a consumer get one of N, few with most traffic" },
    { "declare", FLAG_DECLARE, "N", "declare N output_tokens; what the row says is what came" },
    { "ms-base", FLAG_MS_BASE, "MS", "service time of rows without hold_ms [200] …" },
    { "ms-per-output-token", FLAG_MS_PER_TOKEN, "MS", "… and its growth per output token [20]" },
    { "plot", FLAG_PLOT, "FILE.svg", "draw what came of it over time (needs gnuplot)" },
    { "skip-bad", FLAG_SKIP_BAD, NULL, "count malformed rows instead of stopping" },
    { "show-kinds", FLAG_SHOW_KINDS, NULL, "print the HTTP answer of the first of each kind" },
    { "seed", FLAG_SEED, "N", "of decision ids, tenants and the deferring backend [1]" },
    { "backend", 'b', "memory|plain|deferring", "where the state is kept [memory]" },
    { "partitions", FLAG_PARTITIONS, "N", "room of the backend for partitions" },
    { "leases", FLAG_LEASES, "N", "room of the backend for leases" },
    { "timing", FLAG_TIMING, NULL, "wall time and decisions per second with the data" },
    { "quiet", 'q', NULL, "no progress, no timing, no warnings on standard error" },
    { NULL, 0, NULL, NULL },
};

const struct command command_replay = {
    .name = "replay",
    .operands = "POLICY TRACE",
    .summary = "Run a trace through a policy on a virtual clock",
    .details =
        "TRACE is CSV with a header (t_ms or timestamp, cost, hold_ms, unit names, final.UNIT;\n"
        "every other column is a descriptor), JSON lines ({\"t_ms\", \"d\", \"cost\",\n"
        "\"amounts\", \"hold_ms\", \"final\"}), or the Azure LLM trace of 2023 (TIMESTAMP,\n"
        "ContextTokens,GeneratedTokens). Rows are admitted in order of time; an admitted row with\n"
        "a lease is settled and released at the end of its service, before arrivals of the same\n"
        "moment. A malformed row ends the run with exit code 2, unless --skip-bad.\n",
    .flags = flag_table,
    .run = run,
};
