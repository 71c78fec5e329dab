/* SPDX-License-Identifier: Apache-2.0 */
/* admit fmt: the canonical layout of policies and limit tables. Numbers keep their digits, members
 * that are not known keep their place behind the known ones; nothing is dropped. */
#include "cli.h"
#include "json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLAG_CHECK = FLAG_LONG };

#define COLUMNS 100

struct fmt {
    bool write, check;
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

/* The file that a symbolic link names is replaced, not the link; its permissions stay. */
static bool replace(const char *path, const char *text, size_t length)
{
    char *real = realpath(path, NULL);
    struct stat old;

    if (real == NULL || stat(real, &old) != 0) {
        cli_error("cannot write %s: %s", path, strerror(errno));
        free(real);
        return false;
    }
    char *temporary = cli_allocate(strlen(real) + sizeof ".XXXXXX");
    stpcpy(stpcpy(temporary, real), ".XXXXXX");
    int file = mkstemp(temporary);
    bool good = file >= 0 && write_all(file, text, length) &&
                fchmod(file, old.st_mode & 07777) == 0 && fsync(file) == 0 &&
                rename(temporary, real) == 0;
    if (!good) {
        cli_error("cannot write %s: %s", path, strerror(errno));
        if (file >= 0)
            unlink(temporary);
    }
    if (file >= 0)
        close(file);
    free(temporary);
    free(real);
    return good;
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

/* A document is a policy, or a limit table when it has entries; a table is not judged without the
 * policy that it belongs to, only its syntax is. */
static int check(const struct input *input, const struct json *root)
{
    struct adm_policy_options options = { .size = sizeof options, .file = input->name };
    struct adm_bytes bytes = { input->text, input->length };
    struct source source = input_source(input);
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    uint64_t length = 0;
    bool table = json_member(root, "entries") != NULL && json_member(root, "rules") == NULL;
    adm_status status = table ? adm_policy_json(bytes, &options, NULL, 0, &length, &diags)
                              : adm_policy_load(bytes, &options, &policy, &diags);

    if (table && status == ADM_E_BUFFER_TOO_SMALL)
        status = ADM_OK;
    if (status != ADM_OK)
        findings_print(stderr, diags, &source);
    if (status != ADM_OK && adm_diags_count(diags) == 0)
        cli_error("%s: %s", input->name, adm_status_text(status));
    adm_diags_free(diags);
    adm_policy_unref(policy);
    return status == ADM_OK ? CLI_OK : status_exit_code(status);
}

static void format_text(struct fmt *fmt, const struct input *input)
{
    struct json_document document = { .root = NULL };
    struct json_error error;
    char *text = NULL;
    size_t length = 0;
    bool read = json_parse(&document, input->text, input->length, &error);

    int code = check(input, document.root);

    if (code != CLI_OK) {
        worse(fmt, code);
    } else if (!read) { /* the library and this reader disagree: touch nothing */
        cli_error("%s:%u:%u: %s", input->name, error.line, error.column, error.message);
        worse(fmt, CLI_INVALID);
    } else {
        FILE *stream = memory_stream(&text, &length);

        sort_members(document.root);
        print_value(stream, document.root, 0, 0);
        fputc('\n', stream);
        if (fclose(stream) == 0)
            deliver(fmt, input, text, length);
        else
            worse(fmt, CLI_ENVIRONMENT);
        free(text);
    }
    json_free(&document);
}

static void format_file(struct fmt *fmt, const char *path)
{
    struct input input;

    if (policy_flags(path) != 0) {
        cli_error("%s: YAML is not laid out; its comments would be lost", path);
        worse(fmt, CLI_USAGE);
        return;
    }
    if (!input_read(path, INPUT_POLICY_MAX, &input)) {
        worse(fmt, CLI_USAGE);
        return;
    }
    format_text(fmt, &input);
    input_free(&input);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    struct fmt fmt = { .code = CLI_OK };
    int letter;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        if (letter == FLAG_STOP)
            return flags.exit_code;
        fmt.write |= letter == 'w';
        fmt.check |= letter == FLAG_CHECK;
    }
    if (flags.operand == argc)
        return usage_error(command, "no file given");
    if (fmt.write && fmt.check)
        return usage_error(command, "--write and --check exclude each other");
    for (int i = flags.operand; fmt.write && i < argc; i++)
        if (strcmp(argv[i], "-") == 0)
            return usage_error(command, "standard input cannot be written in place");
    for (int i = flags.operand; i < argc; i++)
        format_file(&fmt, argv[i]);
    return fmt.code;
}

static const struct flag flag_table[] = {
    { "write", 'w', NULL, "write files in place" },
    { "check", FLAG_CHECK, NULL, "name files that would change; exit with 1 when there are any" },
    { NULL, 0, NULL, NULL },
};

const struct command command_fmt = {
    .name = "fmt",
    .operands = "FILE...",
    .summary = "Lay out policies in the canonical form",
    .details = "JSON only. The result goes to standard output. Rules keep their order, numbers\n"
               "their digits. A document that is not valid is left as it is: exit code 3.\n",
    .flags = flag_table,
    .run = run,
};
