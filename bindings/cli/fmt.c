/* SPDX-License-Identifier: Apache-2.0 */
/* admit fmt: the canonical layout of policies and limit tables, in JSON and in YAML. Numbers keep
 * their digits, members that are not known keep their place behind the known ones; nothing is
 * dropped, but for comments on request. */
#include "cli.h"
#include "json.h"
#include "yaml_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAG_CHECK = FLAG_LONG, FLAG_TO, FLAG_DROP_COMMENTS };

enum { TO_JSON, TO_YAML, TO_THE_SAME };

#define COLUMNS 100

struct fmt {
    bool write, check, drop_comments;
    int to;
    int code;
};

/* ---- order ---------------------------------------------------------------------------------- */

/* The order in which the reference of the format names them, over all objects. */
static const char *const order[] = {
    "version", "id", "description", "type", "mode", "rule", "by", "unmatched", "max_clock_skew",
    "shard_by", "hard_timeout", "metric_labels", "when", "match", "partition_by", "scope_by",
    "unit", "off", "capacity", "refill", "limit", "fraction", "per", "window", "lease_ttl",
    "park", "signal", "gt", "gte", "lt", "lte", "max_age", "charge", "settle", "per_replica",
    "max_partitions", "overrides", "units", "rules", "on_state_failure", "entries", "examples",
    "not",
};

static size_t rank_of(const struct json *member)
{
    size_t count = sizeof order / sizeof order[0];

    for (size_t i = 0; i < count; i++)
        if (strlen(order[i]) == member->key_length &&
            memcmp(order[i], member->key, member->key_length) == 0)
            return i;
    return count;
}

/* Where names are data, not fields, the author's order stays. */
static bool names_are_fields(const struct json *object)
{
    static const char *const data[] = {
        "match", "when", "not", "d", "amounts", "entries", "expect"
    };

    for (size_t i = 0; object->key != NULL && i < sizeof data / sizeof data[0]; i++)
        if (strcmp(object->key, data[i]) == 0)
            return false;
    return true;
}

/* The tree is ours: its lists may be linked anew. A stable insertion sort; objects are small, but
 * for entries, which keep their order. */
static void sort_members(struct json *value)
{
    struct json *sorted = NULL;

    if (value->kind == JSON_OBJECT && names_are_fields(value)) {
        for (struct json *member = value->first; member != NULL;) {
            struct json *next = member->next, **at = &sorted;

            while (*at != NULL && rank_of(*at) <= rank_of(member))
                at = &(*at)->next;
            member->next = *at;
            *at = member;
            member = next;
        }
        value->first = sorted;
    }
    if (value->kind == JSON_OBJECT || value->kind == JSON_ARRAY)
        for (struct json *child = value->first; child != NULL; child = child->next)
            sort_members(child);
}

/* ---- layout --------------------------------------------------------------------------------- */

/* One line, with a blank behind colons and commas. */
static void print_inline(FILE *out, const struct json *value)
{
    bool object = value->kind == JSON_OBJECT;

    if (!object && value->kind != JSON_ARRAY) {
        json_print(out, value);
        return;
    }
    fputc(object ? '{' : '[', out);
    for (const struct json *child = value->first; child != NULL; child = child->next) {
        fputs(child != value->first ? ", " : "", out);
        if (object) {
            json_print_string(out, child->key, child->key_length);
            fputs(": ", out);
        }
        print_inline(out, child);
    }
    fputc(object ? '}' : ']', out);
}

static FILE *memory_stream(char **text, size_t *length)
{
    FILE *stream = open_memstream(text, length);

    if (stream == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    return stream;
}

static char *inline_text(const struct json *value)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = memory_stream(&text, &length);

    print_inline(stream, value);
    if (fclose(stream) != 0 || text == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    return text;
}

/* column: where the value begins; one more for the comma that may follow. The document and the
 * list of rules are always open. */
static void print_value(FILE *out, const struct json *value, unsigned depth, size_t column)
{
    bool object = value->kind == JSON_OBJECT;

    if ((!object && value->kind != JSON_ARRAY) || value->first == NULL) {
        print_inline(out, value);
        return;
    }
    if (depth > 0 && (value->key == NULL || strcmp(value->key, "rules") != 0)) {
        char *line = inline_text(value);
        bool fits = column + strlen(line) + 1 <= COLUMNS;

        if (fits)
            fputs(line, out);
        free(line);
        if (fits)
            return;
    }
    fputs(object ? "{\n" : "[\n", out);
    for (const struct json *child = value->first; child != NULL; child = child->next) {
        size_t start = 2 * ((size_t)depth + 1);

        fprintf(out, "%*s", (int)start, "");
        if (object) {
            char *key = NULL;
            size_t length = 0;
            FILE *stream = memory_stream(&key, &length);

            json_print_string(stream, child->key, child->key_length);
            fclose(stream);
            fprintf(out, "%s: ", key);
            start += length + 2;
            free(key);
        }
        print_value(out, child, depth + 1, start);
        fputs(child->next != NULL ? ",\n" : "\n", out);
    }
    fprintf(out, "%*s%c", (int)(2 * depth), "", object ? '}' : ']');
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool write_all(int file, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t written = write(file, text, length);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}

static bool replace(const char *path, const char *text, size_t length)
{
    struct replacement replacement;

    if (!replacement_open(&replacement, path))
        return false;
    if (write_all(replacement.file, text, length))
        return replacement_commit(&replacement);
    cli_error("cannot write %s: %s", path, strerror(errno));
    replacement_abandon(&replacement);
    return false;
}

static void worse(struct fmt *fmt, int code)
{
    fmt->code = worse_exit_code(fmt->code, code);
}

static void deliver(struct fmt *fmt, const struct input *input, const char *text, size_t length)
{
    bool same = length == input->length && memcmp(text, input->text, length) == 0;

    if (fmt->check && !same) {
        printf("%s\n", input->name);
        worse(fmt, CLI_FAILED);
    } else if (fmt->write && !same && !replace(input->name, text, length)) {
        worse(fmt, CLI_ENVIRONMENT);
    } else if (!fmt->check && !fmt->write) {
        fwrite(text, 1, length, stdout);
    }
}

/* The text as JSON, which json then owns. */
static int read_json(const struct input *input, const struct adm_policy_options *options,
                     char **json, uint64_t *length)
{
    struct adm_bytes bytes = { input->text, input->length };
    struct source source = input_source(input);
    struct adm_diags *diags = NULL;
    adm_status status = adm_policy_json(bytes, options, NULL, 0, length, &diags);

    if (status == ADM_OK || status == ADM_E_BUFFER_TOO_SMALL) {
        adm_diags_free(diags);
        diags = NULL;
        *json = cli_allocate((size_t)*length + 1);
        status = adm_policy_json(bytes, options, *json, *length, length, &diags);
    }
    if (status != ADM_OK)
        findings_print_alone(diags, &source);
    if (status != ADM_OK && adm_diags_count(diags) == 0)
        cli_error("%s: %s", input->name, adm_status_text(status));
    adm_diags_free(diags);
    return status == ADM_OK ? CLI_OK : status_exit_code(status);
}

static int check_policy(const struct input *input, const struct adm_policy_options *options)
{
    struct adm_bytes bytes = { input->text, input->length };
    struct source source = input_source(input);
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    adm_status status = adm_policy_load(bytes, options, &policy, &diags);

    if (status != ADM_OK)
        findings_print_alone(diags, &source);
    if (status != ADM_OK && adm_diags_count(diags) == 0)
        cli_error("%s: %s", input->name, adm_status_text(status));
    adm_diags_free(diags);
    adm_policy_unref(policy);
    return status == ADM_OK ? CLI_OK : status_exit_code(status);
}

/* What would be lost is refused where it would be lost for good, and named where it is not. */
static bool comments_may_go(const struct fmt *fmt, const struct input *input)
{
    struct yaml_place place;

    if (fmt->drop_comments || !yaml_first_comment(input->text, input->length, &place))
        return true;
    bool lost = fmt->write || fmt->check;
    fprintf(stderr, "%s:%u:%u: %s: %s\n", input->name, place.line, place.column,
            lost ? "error" : "warning",
            lost ? "this comment would be lost; --drop-comments allows that"
                 : "comments are not in the output");
    source_line_print(stderr, input->text, input->length, place.line, place.column, 1,
                      lost ? STYLE_RED : STYLE_YELLOW);
    return !lost;
}

static int print_document(FILE *stream, const struct json *root, bool yaml)
{
    if (!yaml) {
        print_value(stream, root, 0, 0);
        fputc('\n', stream);
        return CLI_OK;
    }
    if (yaml_print(stream, root, COLUMNS))
        return CLI_OK;
    cli_error("out of memory");
    return CLI_ENVIRONMENT;
}

static int lay_out(struct fmt *fmt, const struct input *input, struct json *root, bool yaml)
{
    char *text = NULL;
    size_t length = 0;
    FILE *stream = memory_stream(&text, &length);

    sort_members(root);
    int code = print_document(stream, root, yaml);
    if (fclose(stream) != 0)
        code = CLI_ENVIRONMENT;
    if (code == CLI_OK)
        deliver(fmt, input, text, length);
    free(text);
    return code;
}

/* A document is a policy, or a limit table when it has entries; a table is not judged without the
 * policy that it belongs to, only its syntax is. */
static int format_json(struct fmt *fmt, const struct input *input,
                       const struct adm_policy_options *options, const char *json, size_t length)
{
    struct json_document document = { .root = NULL };
    struct json_error error;
    bool from_yaml = options->flags != 0;
    bool to_yaml = fmt->to == TO_THE_SAME ? from_yaml : fmt->to == TO_YAML;

    if (!json_parse(&document, json, length, &error)) {
        /* The library and this reader disagree: touch nothing. */
        cli_error("%s: line %u, column %u of its JSON form: %s", input->name, error.line,
                  error.column, error.message);
        return CLI_INVALID;
    }
    bool table = json_member(document.root, "entries") != NULL &&
                 json_member(document.root, "rules") == NULL;
    int code = table ? CLI_OK : check_policy(input, options);
    if (code == CLI_OK && from_yaml && !comments_may_go(fmt, input))
        code = CLI_USAGE;
    if (code == CLI_OK)
        code = lay_out(fmt, input, document.root, to_yaml);
    json_free(&document);
    return code;
}

static void format_file(struct fmt *fmt, const char *path)
{
    struct adm_policy_options options = { .size = sizeof options };
    struct input input;
    char *json = NULL;
    uint64_t length = 0;

    if (!input_read(path, INPUT_POLICY_MAX, &input)) {
        worse(fmt, CLI_USAGE);
        return;
    }
    options.file = input.name;
    options.flags = policy_flags(input.name);
    int code = read_json(&input, &options, &json, &length);
    if (code == CLI_OK)
        code = format_json(fmt, &input, &options, json, (size_t)length);
    worse(fmt, code);
    free(json);
    input_free(&input);
}

/* In place a file stays what its name says. */
static int check_operands(const struct command *command, const struct fmt *fmt, char **paths)
{
    if (*paths == NULL)
        return usage_error(command, "no file given");
    if (fmt->write && fmt->check)
        return usage_error(command, "--write and --check exclude each other");
    for (; *paths != NULL; paths++) {
        bool yaml = policy_flags(*paths) != 0;

        if (fmt->write && strcmp(*paths, "-") == 0)
            return usage_error(command, "standard input cannot be written in place");
        if ((fmt->write || fmt->check) && fmt->to != TO_THE_SAME && yaml != (fmt->to == TO_YAML))
            return usage_error(command,
                               "%s is %s by its name: --to %s goes to standard output only", *paths,
                               yaml ? "YAML" : "JSON", yaml ? "json" : "yaml");
    }
    if (fmt->to != TO_YAML || yaml_is_built())
        return CLI_OK;
    cli_error("YAML cannot be printed: this command is built without libyaml");
    return CLI_ENVIRONMENT;
}

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const forms[] = { "json", "yaml", NULL };
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct fmt fmt = { .code = CLI_OK, .to = TO_THE_SAME };
    int letter;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        switch (letter) {
        case 'w':
            fmt.write = true;
            break;
        case FLAG_CHECK:
            fmt.check = true;
            break;
        case FLAG_DROP_COMMENTS:
            fmt.drop_comments = true;
            break;
        case FLAG_TO:
            fmt.to = flag_choice(command, "to", flags.value, forms);
            if (fmt.to < 0)
                return CLI_USAGE;
            break;
        default:
            return flags.exit_code;
        }
    }
    int code = check_operands(command, &fmt, argv + flags.operand);
    if (code != CLI_OK)
        return code;
    for (int i = flags.operand; i < argc; i++)
        format_file(&fmt, argv[i]);
    return fmt.code;
}

static const struct flag flag_table[] = {
    { "write", 'w', NULL, "write files in place" },
    { "check", FLAG_CHECK, NULL, "name files that would change; exit with 1 when there are any" },
    { "to", FLAG_TO, "json|yaml", "print the document in this form" },
    { "drop-comments", FLAG_DROP_COMMENTS, NULL, "let --write take out comments of YAML" },
    { NULL, 0, NULL, NULL },
};

const struct command command_fmt = {
    .name = "fmt",
    .operands = "FILE...",
    .summary = "Lay out policies in the canonical form",
    .details =
        "The result goes to standard output, in the form that the file has. Rules keep their\n"
        "order, numbers their digits. A document that is not valid is left as it is: exit\n"
        "code 3. A YAML file with comments is not changed without --drop-comments: exit\n"
        "code 2.\n",
    .flags = flag_table,
    .run = run,
};
