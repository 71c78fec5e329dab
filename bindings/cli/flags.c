/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of a subcommand: one table gives the parser, the help text and the "did you mean". */
#include "cli.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FLAGS_MAX   32
#define LETTER_HELP 'h'

static bool printable(int letter)
{
    return letter > ' ' && letter < 127;
}

void command_help(FILE *out, const struct command *command)
{
    fprintf(out, "usage: admit %s [options] %s\n\n%s.\n", command->name, command->operands,
            command->summary);
    if (command->details != NULL)
        fprintf(out, "\n%s", command->details);
    fputs("\nOptions:\n", out);
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        char name[80];

        snprintf(name, sizeof name, "--%s%s%s", flag->name, flag->argument != NULL ? " " : "",
                 flag->argument != NULL ? flag->argument : "");
        if (printable(flag->letter))
            fprintf(out, "  -%c, %-28s %s\n", flag->letter, name, flag->help);
        else
            fprintf(out, "      %-28s %s\n", name, flag->help);
    }
    fprintf(out, "  -h, %-28s %s\n", "--help", "print this text");
}

int usage_error(const struct command *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "admit %s: ", command->name);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry 'admit %s --help'.\n", command->name);
    return CLI_USAGE;
}

/* getopt's two tables from ours. */
static void tables(const struct command *command, struct option *longs, char *shorts)
{
    size_t n = 0, s = 0;

    shorts[s++] = ':'; /* a missing argument is told apart from an unknown flag */
    for (const struct flag *flag = command->flags; flag->name != NULL && n < FLAGS_MAX; flag++) {
        int takes = flag->argument != NULL ? required_argument : no_argument;

        longs[n++] = (struct option){ flag->name, takes, NULL, flag->letter };
        if (printable(flag->letter)) {
            shorts[s++] = (char)flag->letter;
            if (takes == required_argument)
                shorts[s++] = ':';
        }
    }
    longs[n++] = (struct option){ "help", no_argument, NULL, LETTER_HELP };
    shorts[s++] = LETTER_HELP;
    longs[n] = (struct option){ NULL, 0, NULL, 0 };
    shorts[s] = 0;
}

/* optopt is the character of an unknown short flag, 0 for a long one, a known letter for "--
 * flag=value" where the flag takes none. */
static int unknown_flag(const struct flags *flags)
{
    const char *nearest = NULL;
    unsigned best = 3;

    for (const struct flag *flag = flags->command->flags; flag->name != NULL; flag++)
        if (optopt != 0 && flag->letter == optopt)
            return usage_error(flags->command, "option --%s takes no argument", flag->name);
    if (optopt != 0)
        return usage_error(flags->command, "unknown option -%c", optopt);
    const char *word = flags->argv[optind - 1] + 2;
    char *name = cli_copy(word, strcspn(word, "="));
    for (const struct flag *flag = flags->command->flags; flag->name != NULL; flag++) {
        unsigned distance = edit_distance(name, flag->name);

        if (distance < best) {
            best = distance;
            nearest = flag->name;
        }
    }
    if (nearest != NULL)
        usage_error(flags->command, "unknown option --%s; did you mean --%s?", name, nearest);
    else
        usage_error(flags->command, "unknown option --%s", name);
    free(name);
    return CLI_USAGE;
}

int flags_next(struct flags *flags)
{
    struct option longs[FLAGS_MAX + 2];
    char shorts[2 * FLAGS_MAX + 4];

    tables(flags->command, longs, shorts);
    opterr = 0;
    int letter = getopt_long(flags->argc, flags->argv, shorts, longs, NULL);
    flags->value = optarg;
    switch (letter) {
    case -1:
        flags->operand = optind;
        return FLAG_END;
    case LETTER_HELP:
        command_help(stdout, flags->command);
        flags->exit_code = CLI_OK;
        return FLAG_STOP;
    case ':':
        flags->exit_code =
            usage_error(flags->command, "option %s needs an argument", flags->argv[optind - 1]);
        return FLAG_STOP;
    case '?':
        flags->exit_code = unknown_flag(flags);
        return FLAG_STOP;
    default:
        return letter;
    }
}

/* What is chosen may be an operand as well. */
static bool is_flag(const struct command *command, const char *name)
{
    const struct flag *flag = command->flags;

    while (flag->name != NULL && strcmp(flag->name, name) != 0)
        flag++;
    return flag->name != NULL;
}

int flag_choice(const struct command *command, const char *flag, const char *value,
                const char *const *choices)
{
    const char *nearest = choices[0];
    char list[512] = "";
    size_t used = 0;

    for (int i = 0; choices[i] != NULL; i++) {
        if (strcmp(value, choices[i]) == 0)
            return i;
        if (edit_distance(value, choices[i]) < edit_distance(value, nearest))
            nearest = choices[i];
        if (used + strlen(choices[i]) + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                     choices[i]);
    }
    const char *dashes = is_flag(command, flag) ? "--" : "";
    if (edit_distance(value, nearest) < EDIT_TOO_FAR)
        usage_error(command, "%s%s is one of %s, not '%s'; did you mean %s?", dashes, flag, list,
                    value, nearest);
    else
        usage_error(command, "%s%s is one of %s, not '%s'", dashes, flag, list, value);
    return -1;
}

bool flag_number(const struct command *command, const char *flag, const char *value, uint64_t max,
                 uint64_t *out)
{
    uint64_t number;

    if (cli_parse_u64(value, strlen(value), &number) && number <= max) {
        *out = number;
        return true;
    }
    usage_error(command, "--%s takes a whole number from 0 to %llu, not '%s'", flag,
                (unsigned long long)max, value);
    return false;
}

static bool is_in(struct adm_bytes key, const struct adm_descriptor *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].key.length == key.length &&
            memcmp(list[i].key.data, key.data, (size_t)key.length) == 0)
            return true;
    return false;
}

bool flag_descriptor(const struct command *command, struct adm_bytes key, struct adm_bytes value,
                     struct adm_descriptor *list, size_t *count)
{
    int shown = key.length < 80 ? (int)key.length : 80;
    const char *name = key.data;

    if (key.length < 1 || key.length > ADM_MAX_KEY_BYTES)
        usage_error(command, "descriptor '%.*s': a key has 1 to %d bytes, this one has %llu", shown,
                    name, ADM_MAX_KEY_BYTES, (unsigned long long)key.length);
    else if (value.length == 0)
        usage_error(command, "descriptor '%.*s' has an empty value; leave it out when it is absent",
                    shown, name);
    else if (value.length > ADM_MAX_VALUE_BYTES)
        usage_error(command, "descriptor '%.*s': a value has at most %d bytes, this one has %llu",
                    shown, name, ADM_MAX_VALUE_BYTES, (unsigned long long)value.length);
    else if (is_in(key, list, *count))
        usage_error(command, "descriptor '%.*s' is given twice", shown, name);
    else if (*count == ADM_MAX_DESCRIPTORS)
        usage_error(command, "descriptor '%.*s' is one too many: a request has at most %d", shown,
                    name, ADM_MAX_DESCRIPTORS);
    else {
        list[(*count)++] = (struct adm_descriptor){ .key = key, .value = value };
        return true;
    }
    return false;
}
