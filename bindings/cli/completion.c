/* SPDX-License-Identifier: Apache-2.0 */
/* admit completion: what a shell offers behind the word admit, from the tables of commands and
 * flags; what the tables say is never written down twice. */
#include "cli.h"
#include "diagnostic_texts.h"

#include <admit/types.h>

#include <string.h>

enum shell { SHELL_BASH, SHELL_ZSH, SHELL_FISH };

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

/* ---- what a word of the tables means -------------------------------------------------------- */

static bool printable(int letter)
{
    return letter > ' ' && letter < 127;
}

/* Suffixes of the files that a placeholder stands for, NULL when it stands for no file. */
static const char *suffixes_of(const char *placeholder)
{
    if (placeholder == NULL)
        return NULL;
    if (strstr(placeholder, "TRACE") != NULL)
        return "json yaml yml csv jsonl"; /* the policy comes before it */
    if (strstr(placeholder, ".svg") != NULL)
        return "svg";
    if (strstr(placeholder, "POLICY") != NULL || strstr(placeholder, "FILE") != NULL ||
        strstr(placeholder, "TABLE") != NULL)
        return "json yaml yml";
    return NULL;
}

static void print_codes(void)
{
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++)
        printf("%s ", entry->id);
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++)
        printf("%s ", entry->name);
}

static void print_reasons(void)
{
    for (uint32_t reason = 0; reason < ADM_REASON_COUNT; reason++)
        printf("%s ", adm_reason_name(reason));
}

static void print_commands(void)
{
    size_t count;
    const struct command *const *commands = cli_commands(&count);

    for (size_t i = 0; i < count; i++)
        printf("%s ", commands[i]->name);
}

/* The words that a placeholder has: the choices of "text|json", codes, commands. Without print,
 * only whether it has any. */
static bool words_of(const char *placeholder, bool print)
{
    bool any = false;

    if (placeholder == NULL)
        return false;
    if (strstr(placeholder, "CODE") != NULL || strstr(placeholder, "COMMAND") != NULL) {
        if (print && strstr(placeholder, "CODE") != NULL)
            print_codes();
        else if (print)
            print_commands();
        return true;
    }
    if (strchr(placeholder, '|') == NULL)
        return false;
    for (const char *at = placeholder; *at != 0;) {
        size_t length = strcspn(at, "|");

        any = true;
        if (print && length == strlen("REASON") && memcmp(at, "REASON", length) == 0)
            print_reasons();
        else if (print && *at >= 'a' && *at <= 'z')
            printf("%.*s ", (int)length, at);
        at += length + (at[length] == '|');
    }
    return any;
}

/* In single quotes. Both kinds of shells read '\'' as a quote between two strings. */
static void print_quoted(const char *prefix, const char *text)
{
    printf("'%s", prefix);
    for (; *text != 0; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            fputc(*text, stdout);
    fputc('\'', stdout);
}

/* ---- bash and zsh: one "case" each for arguments, flags and operands ------------------------ */

static void print_value(enum shell shell, const char *placeholder)
{
    const char *suffixes = suffixes_of(placeholder);

    if (words_of(placeholder, false)) {
        fputs(shell == SHELL_BASH ? "words='" : "compadd -- ", stdout);
        words_of(placeholder, true);
        fputs(shell == SHELL_BASH ? "'" : "", stdout);
    } else if (suffixes != NULL && shell == SHELL_BASH) {
        printf("files='%s'", suffixes);
    } else if (suffixes != NULL) {
        fputs("_files -g '*.(", stdout);
        for (; *suffixes != 0; suffixes++)
            fputc(*suffixes == ' ' ? '|' : *suffixes, stdout);
        fputs(")'", stdout);
    } else {
        fputs(":", stdout); /* anything: nothing can be offered */
    }
}

static void print_arguments(enum shell shell, const struct command *command)
{
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        if (flag->argument == NULL)
            continue;
        printf("    %s:--%s", command->name, flag->name);
        if (printable(flag->letter))
            printf(" | %s:-%c", command->name, flag->letter);
        fputs(") ", stdout);
        print_value(shell, flag->argument);
        fputs("; return_now=yes ;;\n", stdout);
    }
}

static void print_flags(enum shell shell, const struct command *command)
{
    printf("    %s) ", command->name);
    fputs(shell == SHELL_BASH ? "words='" : "flags=(", stdout);
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        char prefix[80];

        if (shell == SHELL_BASH) {
            printf("--%s ", flag->name);
            continue;
        }
        snprintf(prefix, sizeof prefix, "--%s:", flag->name);
        print_quoted(prefix, flag->help);
        fputc(' ', stdout);
    }
    fputs(shell == SHELL_BASH ? "--help'" : "'--help:print help')", stdout);
    fputs(" ;;\n", stdout);
}

static void each_command(enum shell shell, void (*print)(enum shell, const struct command *))
{
    size_t count;
    const struct command *const *commands = cli_commands(&count);

    for (size_t i = 0; i < count; i++)
        print(shell, commands[i]);
}

static void print_operands(enum shell shell, const struct command *command)
{
    printf("    %s) ", command->name);
    print_value(shell, command->operands);
    fputs(" ;;\n", stdout);
}

static void bash(void)
{
    fputs("# bash completion of admit(1), made by 'admit completion bash'\n"
          "_admit()\n{\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local words= files= return_now= suffix name\n"
          "    COMPREPLY=()\n"
          "    # --flag=value comes as three words\n"
          "    if [ \"$cur\" = = ]; then\n        cur=\n"
          "    elif [ \"$prev\" = = ]; then\n        prev=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        words='",
          stdout);
    print_commands();
    fputs("--help --version'\n        return_now=yes\n    fi\n"
          "    [ -n \"$return_now\" ] || case ${COMP_WORDS[1]}:$prev in\n",
          stdout);
    each_command(SHELL_BASH, print_arguments);
    fputs("    esac\n    if [ -n \"$return_now\" ]; then\n        :\n"
          "    elif [[ $cur == -* ]]; then\n    case ${COMP_WORDS[1]} in\n",
          stdout);
    each_command(SHELL_BASH, print_flags);
    fputs("    esac\n    else\n    case ${COMP_WORDS[1]} in\n", stdout);
    each_command(SHELL_BASH, print_operands);
    fputs("    esac\n    fi\n"
          "    if [ -n \"$files\" ]; then\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        while IFS= read -r name; do\n"
          "            for suffix in $files; do\n"
          "                if [ -d \"$name\" ] || [[ $name == *.\"$suffix\" ]]; then\n"
          "                    COMPREPLY+=(\"$name\")\n"
          "                    break\n"
          "                fi\n            done\n"
          "        done < <(compgen -f -- \"$cur\")\n"
          "    else\n"
          "        while IFS= read -r name; do\n"
          "            COMPREPLY+=(\"$name\")\n"
          "        done < <(compgen -W \"$words\" -- \"$cur\")\n"
          "    fi\n}\ncomplete -F _admit admit\n",
          stdout);
}

static void print_zsh_command(enum shell shell, const struct command *command)
{
    char prefix[80];

    (void)shell;
    snprintf(prefix, sizeof prefix, "%s:", command->name);
    print_quoted(prefix, command->summary);
    fputc(' ', stdout);
}

static void zsh(void)
{
    fputs("#compdef admit\n# zsh completion of admit(1), made by 'admit completion zsh'\n"
          "_admit()\n{\n"
          "    local return_now= prev=${words[CURRENT-1]}\n    local -a commands flags\n"
          "    if (( CURRENT == 2 )); then\n        commands=(",
          stdout);
    each_command(SHELL_ZSH, print_zsh_command);
    fputs(")\n        _describe -t commands command commands\n        return\n    fi\n"
          "    if [[ $PREFIX == --*=* ]]; then\n"
          "        prev=${PREFIX%%=*}\n        compset -P '*='\n    fi\n"
          "    case ${words[2]}:$prev in\n",
          stdout);
    each_command(SHELL_ZSH, print_arguments);
    fputs("    esac\n    [[ -z $return_now ]] || return 0\n"
          "    if [[ $PREFIX == -* ]]; then\n    case ${words[2]} in\n",
          stdout);
    each_command(SHELL_ZSH, print_flags);
    fputs("    esac\n        _describe -o -t options option flags\n        return\n    fi\n"
          "    case ${words[2]} in\n",
          stdout);
    each_command(SHELL_ZSH, print_operands);
    fputs("    esac\n}\n_admit \"$@\"\n", stdout);
}

/* ---- fish: a line for each thing ------------------------------------------------------------ */

static void print_fish_value(const char *placeholder)
{
    const char *suffixes = suffixes_of(placeholder);

    if (words_of(placeholder, false)) {
        fputs(" -a '", stdout);
        words_of(placeholder, true);
        fputs("'", stdout);
    } else if (suffixes != NULL) {
        fputs(" -k -a '(", stdout); /* one suffix at a time: older ones take no more */
        for (const char *at = suffixes; *at != 0;) {
            size_t length = strcspn(at, " ");

            printf("%s__fish_complete_suffix .%.*s", at == suffixes ? "" : "; ", (int)length, at);
            at += length + (at[length] == ' ');
        }
        fputs(")'", stdout);
    }
}

static void print_fish(enum shell shell, const struct command *command)
{
    (void)shell;
    printf("complete -c admit -n __fish_use_subcommand -a %s -d ", command->name);
    print_quoted("", command->summary);
    fputc('\n', stdout);
    if (suffixes_of(command->operands) != NULL || words_of(command->operands, false)) {
        printf("complete -c admit -n '__fish_seen_subcommand_from %s'", command->name);
        print_fish_value(command->operands);
        fputc('\n', stdout);
    }
    for (const struct flag *flag = command->flags; flag->name != NULL; flag++) {
        printf("complete -c admit -n '__fish_seen_subcommand_from %s' -l %s", command->name,
               flag->name);
        if (printable(flag->letter))
            printf(" -s %c", flag->letter);
        if (flag->argument != NULL) {
            fputs(" -x", stdout);
            print_fish_value(flag->argument);
        }
        fputs(" -d ", stdout);
        print_quoted("", flag->help);
        fputc('\n', stdout);
    }
}

static void fish(void)
{
    fputs("# fish completion of admit(1), made by 'admit completion fish'\n"
          "complete -c admit -f\n"
          "complete -c admit -l help -s h -d 'print help'\n",
          stdout);
    each_command(SHELL_FISH, print_fish);
}

static int run(const struct command *command, int argc, char **argv)
{
    struct flags flags = { .command = command, .argc = argc, .argv = argv };

    if (flags_next(&flags) != FLAG_END)
        return flags.exit_code;
    if (argc - flags.operand != 1)
        return usage_error(command, "expected one shell: bash, zsh or fish");
    int shell = flag_choice(command, "the shell", argv[flags.operand], shells);
    switch (shell) {
    case SHELL_BASH:
        bash();
        return CLI_OK;
    case SHELL_ZSH:
        zsh();
        return CLI_OK;
    case SHELL_FISH:
        fish();
        return CLI_OK;
    default:
        return CLI_USAGE;
    }
}

static const struct flag no_flags[] = { { NULL, 0, NULL, NULL } };

const struct command command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "Print what a shell needs to complete command lines",
    .details = "For the running shell: source <(admit completion bash). Packages install it where\n"
               "the shells look.\n",
    .flags = no_flags,
    .run = run,
};
