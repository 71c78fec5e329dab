/* SPDX-License-Identifier: Apache-2.0 */
/* admit explain-code: what a finding means and what to do about it. */
#include "cli.h"
#include "diagnostic_texts.h"
#include "json.h"

#include <string.h>
#include <strings.h>

enum { FORMAT_TEXT, FORMAT_JSON };

#define PREFIX "ADM-D-"

/* "ADM-D-214", "adm-d-214", "214" and "exponent" all name the same entry. */
static bool names(const struct diagnostic_text *entry, const char *word)
{
    return strcasecmp(entry->id, word) == 0 ||
           strcasecmp(entry->id + sizeof PREFIX - 1, word) == 0 ||
           strcasecmp(entry->name, word) == 0;
}

static const struct diagnostic_text *find(const struct command *command, const char *word)
{
    const struct diagnostic_text *nearest = NULL;
    unsigned best = 3;

    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++) {
        if (names(entry, word))
            return entry;
        unsigned by_name = edit_distance(word, entry->name);
        if (by_name < best) {
            best = by_name;
            nearest = entry;
        }
    }
    if (nearest != NULL)
        usage_error(command, "there is no code '%s'; did you mean %s (%s)?", word, nearest->id,
                    nearest->name);
    else
        usage_error(command, "there is no code '%s'; without one all are listed", word);
    return NULL;
}

static void print_block(const char *title, const struct diagnostic_text *entry, const char *text)
{
    bool table = strcmp(entry->of, "policy") != 0;

    printf("\n%s%s:\n", title, table ? ", in a limit table" : "");
    for (const char *line = text; *line != 0;) {
        size_t length = strcspn(line, "\n");

        printf("    %.*s\n", (int)length, line);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
}

static void print_text(const struct diagnostic_text *entry)
{
    printf("%s%s%s %s (%s, since %s)\n\n%s\n%s\n", style_on(stdout, STYLE_BOLD), entry->id,
           style_off(stdout), entry->name, entry->severity, entry->since, entry->text,
           entry->what_now);
    if (entry->bad != NULL)
        print_block("For instance", entry, entry->bad);
    if (entry->good != NULL)
        print_block("What was meant", entry, entry->good);
}

static void print_member(const char *name, const char *value)
{
    printf(",\"%s\":", name);
    if (value != NULL)
        json_print_text(stdout, value);
    else
        fputs("null", stdout);
}

static void print_json(const struct diagnostic_text *entry, bool first)
{
    fputs(first ? "\n {\"code\":" : ",\n {\"code\":", stdout);
    json_print_text(stdout, entry->id);
    print_member("name", entry->name);
    print_member("severity", entry->severity);
    print_member("since", entry->since);
    print_member("text", entry->text);
    print_member("what_now", entry->what_now);
    print_member("bad", entry->bad);
    print_member("good", entry->good);
    print_member("example_of", entry->bad != NULL ? entry->of : NULL);
    print_member("example_format", entry->bad != NULL ? entry->format : NULL);
    fputc('}', stdout);
}

static void print_list(int format)
{
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++)
        if (format == FORMAT_JSON)
            print_json(entry, entry == diagnostic_texts);
        else
            printf("%s  %-8s %s\n", entry->id, entry->severity, entry->name);
}

static void print_named(const struct command *command, int format, int count, char **words)
{
    for (int i = 0; i < count; i++) {
        const struct diagnostic_text *entry = find(command, words[i]);

        if (format == FORMAT_JSON) {
            print_json(entry, i == 0);
            continue;
        }
        if (i > 0)
            fputc('\n', stdout);
        print_text(entry);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const formats[] = { "text", "json", NULL };
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    int letter, format = FORMAT_TEXT;

    while ((letter = flags_next(&flags)) != FLAG_END) {
        if (letter != 'f')
            return flags.exit_code;
        format = flag_choice(command, "format", flags.value, formats);
        if (format < 0)
            return CLI_USAGE;
    }
    /* All of them before anything is printed. */
    for (int i = flags.operand; i < argc; i++)
        if (find(command, argv[i]) == NULL)
            return CLI_USAGE;
    if (format == FORMAT_JSON)
        fputs("{\"format\":1,\"codes\":[", stdout);
    if (flags.operand == argc)
        print_list(format);
    else
        print_named(command, format, argc - flags.operand, argv + flags.operand);
    if (format == FORMAT_JSON)
        fputs("\n]}\n", stdout);
    return CLI_OK;
}

static const struct flag flag_table[] = {
    { "format", 'f', "text|json", "how the answer is printed" },
    { NULL, 0, NULL, NULL },
};

const struct command command_explain_code = {
    .name = "explain-code",
    .operands = "[CODE...]",
    .summary = "Say what a finding means and what to do",
    .details = "CODE is ADM-D-214, 214, or the word of the finding: exponent. Without one, all are "
               "listed.\n",
    .flags = flag_table,
    .run = run,
};
