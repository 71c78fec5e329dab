/* SPDX-License-Identifier: Apache-2.0 */
/* admit schema: the JSON Schema of the documents that the reader takes. */
#include "cli.h"

#include <stdlib.h>

static int run(const struct command *command, int argc, char **argv)
{
    static const char *const documents[] = { "policy", "table", NULL };
    struct flags flags = { .command = command, .argc = argc, .argv = argv };
    uint64_t length = 0;
    int which = 0;

    if (flags_next(&flags) != FLAG_END)
        return flags.exit_code;
    if (argc - flags.operand > 1)
        return usage_error(command, "one document at a time");
    if (flags.operand < argc)
        which = flag_choice(command, "the document", argv[flags.operand], documents);
    if (which < 0)
        return CLI_USAGE;
    adm_status status = adm_policy_schema((uint32_t)which, NULL, 0, &length);
    char *text = cli_allocate((size_t)length + 1);
    if (status == ADM_OK || status == ADM_E_BUFFER_TOO_SMALL)
        status = adm_policy_schema((uint32_t)which, text, length, &length);
    if (status == ADM_OK)
        fwrite(text, 1, (size_t)length, stdout);
    else
        cli_error("cannot print the schema: %s", adm_status_text(status));
    free(text);
    return status == ADM_OK ? CLI_OK : status_exit_code(status);
}

static const struct flag flag_table[] = { { NULL, 0, NULL, NULL } };

const struct command command_schema = {
    .name = "schema",
    .operands = "[policy|table]",
    .summary = "Print the JSON Schema of a policy or a limit table",
    .details = "Draft-07, for editors: it shows fields, bounds and help while you type.\n"
               "A document that fits the schema can still be refused: see 'admit validate'.\n",
    .flags = flag_table,
    .run = run,
};
