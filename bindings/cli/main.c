/* SPDX-License-Identifier: Apache-2.0 */
/* The command `admit`: one table of subcommands drives dispatch, help and "did you mean". */
#include "cli.h"

#include <admit/types.h>

#include <errno.h>
#include <getopt.h>
#include <string.h>

static int run_version(const struct command *command, int argc, char **argv);
static int run_help(const struct command *command, int argc, char **argv);

static const struct flag no_flags[] = { { NULL, 0, NULL, NULL } };

static const struct command command_version = {
    .name = "version",
    .operands = "",
    .summary = "Print the version of the command",
    .flags = no_flags,
    .run = run_version,
};

static const struct command command_of_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .summary = "Print help, of all or of one command",
    .flags = no_flags,
    .run = run_help,
};

static const struct command *const commands[] = {
    &command_validate,   &command_lint,    &command_explain_code, &command_test,
    &command_explain,    &command_replay,  &command_fmt,          &command_schema,
    &command_completion, &command_version, &command_of_help,
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

const struct command *const *cli_commands(size_t *count)
{
    *count = COMMAND_COUNT;
    return commands;
}

static void usage(FILE *out)
{
    fputs("usage: admit COMMAND [options] ...\n\n"
          "Admission control: check policies, test them, ask why, replay traffic.\n\nCommands:\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-13s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\n'admit help COMMAND' tells more about one of them.\n"
          "Exit codes: 0 fine, 1 expectation not met or failure, 2 usage or unreadable input,\n"
          "            3 policy not valid, 4 a scenario failed or none was run, 5 warnings\n"
          "            with --strict, 6 this machine lacks something.\n",
          out);
}

/* The command of a name; NULL after an error with the nearest one. */
static const struct command *find(const char *name)
{
    const struct command *nearest = NULL;
    unsigned best = 3;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        unsigned distance = edit_distance(name, commands[i]->name);

        if (distance == 0)
            return commands[i];
        if (distance < best) {
            best = distance;
            nearest = commands[i];
        }
    }
    cli_error("there is no command '%s'", name);
    if (nearest != NULL)
        fprintf(stderr, "  did you mean '%s'?\n", nearest->name);
    else
        fputs("  'admit help' lists them.\n", stderr);
    return NULL;
}

static int run_version(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };

    if (flags_next(&flags) != FLAG_END)
        return flags.exit_code;
    if (flags.operand < argc)
        return usage_error(command, "there is nothing to say about '%s'", argv[flags.operand]);
    printf("admit %s\n", ADMIT_CLI_VERSION);
    return CLI_OK;
}

static int run_help(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };

    if (flags_next(&flags) != FLAG_END)
        return flags.exit_code;
    if (flags.operand == argc) {
        usage(stdout);
        return CLI_OK;
    }
    if (argc - flags.operand > 1)
        return usage_error(command, "one command at a time");
    const struct command *wanted = find(argv[flags.operand]);
    if (wanted == NULL)
        return CLI_USAGE;
    command_help(stdout, wanted);
    return CLI_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return run_version(&command_version, 1, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        usage(stdout);
        return CLI_OK;
    }
    const struct command *command = find(argv[1]);
    if (command == NULL)
        return CLI_USAGE;
    optind = 1;
    return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = dispatch(argc, argv);

    /* Output that did not arrive is a failure, whatever was found out. */
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_error("cannot write the output: %s", errno != 0 ? strerror(errno) : "write error");
        return code == CLI_OK ? CLI_ENVIRONMENT : code;
    }
    return code;
}
