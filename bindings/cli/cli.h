/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands share: the command table, flags, input files, talk on stderr, text
 * helpers. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <admit/policy.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

/* Exit codes: documented in admit(1), and tested. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,     /* an expectation does not hold, or something failed while running */
    CLI_USAGE = 2,      /* a wrong command line, or input that cannot be read */
    CLI_INVALID = 3,    /* a policy is not valid */
    CLI_TESTS = 4,      /* a scenario failed, or none was run */
    CLI_WARNINGS = 5,   /* lint --strict: there are warnings */
    CLI_ENVIRONMENT = 6 /* what this machine has not: memory, room for output, another program */
};

/* ---- the table of subcommands: dispatch, --help and usage come from it ---------------------- */

struct flag {
    const char *name;
    int letter;           /* what flags_next() answers; also a short option when it is printable */
    const char *argument; /* NULL: takes none */
    const char *help;
};

struct command {
    const char *name;
    const char *operands;
    const char *summary;
    const char *details;
    const struct flag *flags; /* ends with a NULL name */
    int (*run)(const struct command *command, int argc, char **argv);
};

extern const struct command command_validate, command_explain_code, command_test, command_explain,
    command_replay, command_schema, command_lint;

extern const struct command command_completion, command_fmt;

const struct command *const *cli_commands(size_t *count); /* all of them, for completion */

void command_help(FILE *out, const struct command *command);

/* Letters of flags that have no short form. */
enum {
    FLAG_END = -1,
    FLAG_STOP = -2, /* --help was printed, or the error was: leave with flags->exit_code */
    FLAG_LONG = 256
};

struct flags {
    const struct command *command;
    int argc;
    char **argv;
    int operand; /* after FLAG_END: the first operand's index */
    int exit_code;
    const char *value; /* of the flag just answered */
};

int flags_next(struct flags *flags);

/* A wrong command line: the message, a pointer to --help; the answer is CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int usage_error(const struct command *command,
                                                      const char *format, ...);

/* The index of value in a NULL-ended list; -1 after an error with the nearest word. */
int flag_choice(const struct command *command, const char *flag, const char *value,
                const char *const *choices);

/* A whole number of at most max; false after an error. */
bool flag_number(const struct command *command, const char *flag, const char *value, uint64_t max,
                 uint64_t *out);

/* Appends to a list of at most ADM_MAX_DESCRIPTORS; false after an error that names the culprit. */
bool flag_descriptor(const struct command *command, struct adm_bytes key, struct adm_bytes value,
                     struct adm_descriptor *list, size_t *count);

/* ---- talk ----------------------------------------------------------------------------------- */

/* "admit: …" on stderr. */
__attribute__((format(printf, 1, 2))) void cli_error(const char *format, ...);

enum cli_style { STYLE_BOLD, STYLE_RED, STYLE_YELLOW, STYLE_GREEN, STYLE_CYAN, STYLE_DIM };

/* The escape sequences, or "" when out is no terminal or NO_COLOR is set. */
const char *style_on(FILE *out, enum cli_style style);
const char *style_off(FILE *out);

/* ---- input ---------------------------------------------------------------------------------- */

struct input {
    const char *name; /* for messages: the path, or <stdin> */
    char *text;
    size_t length;
};

/* Above the library's own bounds, so that it can say so. */
#define INPUT_POLICY_MAX   ((size_t)17 << 20)
#define INPUT_SCENARIO_MAX ((size_t)256 << 20)

/* The whole file, "-" is stdin, once; false after an error on stderr. Leaves when there is no
 * memory. */
bool input_read(const char *path, size_t max, struct input *out);
void input_free(struct input *input);

/* ---- output files --------------------------------------------------------------------------- */

/* A new file in the folder of the one that it replaces. */
struct replacement {
    const char *name; /* for messages */
    int file;         /* to write to; -1 when it is not open */
    char *path;       /* no symbolic link: what one names is replaced, not the link */
    char *temporary;
    bool replaces; /* there is an old file, */
    struct stat old;
};

/* false after an error on stderr. A device, a pipe, a folder and a file that must not be written to
 * are never replaced. */
bool replacement_open(struct replacement *out, const char *path);

/* It is on the disk, with owner and mode of the old file, and has its name now; false after an
 * error on stderr: the old file is as it was. Closed in both cases. */
bool replacement_commit(struct replacement *replacement);

/* Closed, and nothing is left of it. Again is harmless. */
void replacement_abandon(struct replacement *replacement);

/* ---- findings of the loader ----------------------------------------------------------------- */

/* What findings are about. line, column: where the document starts in text; 0: it is the text. */
struct source {
    const char *name;
    const char *text;
    size_t length;
    uint32_t line, column;
};

struct source input_source(const struct input *input);

void findings_print(FILE *out, const struct adm_diags *diags, const struct source *source);

/* To standard error, with the summary behind them. */
void findings_print_alone(const struct adm_diags *diags, const struct source *source);

/* Findings of several documents; starts as zero. */
struct tally {
    uint64_t errors, warnings;
    char code[16]; /* of the first error, or else of the first warning */
};

void findings_count(const struct adm_diags *diags, struct tally *inout);

/* "2 errors, 1 warning; admit explain-code ADM-D-201 says more", or nothing when there are none. */
void findings_summary(FILE *out, const struct tally *tally);

void findings_print_json(FILE *out, const struct adm_diags *diags);

/* Text of a stranger: control, format and direction characters come out as "?". */
void source_text_print(FILE *out, const char *text);

/* The line of a text, and a mark under marked bytes of it from column on. */
void source_line_print(FILE *out, const char *text, size_t length, uint32_t line, uint32_t column,
                       uint32_t marked, enum cli_style style);

/* The name of the first error, "policy_invalid" when there is none. */
const char *findings_error_name(const struct adm_diags *diags, char out[72]);

/* "ADM_E_VERSION_CONFLICT" -> "version_conflict". */
const char *status_word(adm_status status, char out[72]);

/* The exit code of a call that did not succeed. */
int status_exit_code(adm_status status);

/* Of two exit codes the one that matters more: of several files one code is told. */
int worse_exit_code(int a, int b);

/* ADM_POLICY_YAML for a name that ends in .yaml or .yml. */
uint32_t policy_flags(const char *name);

/* The same for a limit table: ADM_TABLE_YAML. */
uint32_t table_flags(const char *name);

/*
 * Read and load a policy file. CLI_OK, or another exit code after the findings were printed. *text
 * is then JSON, whatever the file is.
 */
int policy_read(const char *path, bool quiet, struct input *text, struct adm_policy **out);

/* ---- small things --------------------------------------------------------------------------- */

void *cli_allocate(size_t bytes); /* zeroed; leaves the program when there is no memory */
void *cli_grow(void *memory, size_t *room, size_t used, size_t item_bytes);
char *cli_copy(const char *bytes, size_t length);

bool cli_parse_u64(const char *text, size_t length, uint64_t *out);

/* Decimal milliseconds, "1500" or "0.25", to nanoseconds; false: not that, finer than 1 ns, or
 * out of range. */
bool cli_parse_ms(const char *text, size_t length, uint64_t *out_ns);

/* "YYYY-MM-DD HH:MM:SS[.fraction]" in UTC (a T and a Z are allowed) to nanoseconds since 1970. */
bool cli_parse_timestamp(const char *text, size_t length, uint64_t *out_ns);

/* Typing errors (insert, drop, replace, swap neighbours, wrong case) between two words; 0: the same
 * word. EDIT_TOO_FAR: more than words of this length can have and still be alike. */
#define EDIT_TOO_FAR 64u
unsigned edit_distance(const char *a, const char *b);

/* "k=v" into a view of k and of v; false without '='. */
bool split_pair(const char *text, struct adm_bytes *key, struct adm_bytes *value);

#endif
