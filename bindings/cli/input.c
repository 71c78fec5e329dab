/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files in, bounded; talk and colours out. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cli_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("admit: ", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

static bool colourful(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");

    return (no == NULL || no[0] == 0) && isatty(fileno(out)) &&
           (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *style_on(FILE *out, enum cli_style style)
{
    static const char *const codes[] = {
        [STYLE_BOLD] = "\033[1m",   [STYLE_RED] = "\033[31m",  [STYLE_YELLOW] = "\033[33m",
        [STYLE_GREEN] = "\033[32m", [STYLE_CYAN] = "\033[36m", [STYLE_DIM] = "\033[2m"
    };

    return colourful(out) ? codes[style] : "";
}

const char *style_off(FILE *out)
{
    return colourful(out) ? "\033[0m" : "";
}

static bool read_all(FILE *file, size_t max, struct input *out)
{
    size_t room = 0;

    for (;;) {
        if (out->length == room) {
            room = room == 0 ? 65536 : room * 2;
            char *fresh = realloc(out->text, room);
            if (fresh == NULL) {
                errno = ENOMEM;
                return false;
            }
            out->text = fresh;
        }
        size_t got = fread(out->text + out->length, 1, room - out->length, file);
        out->length += got;
        if (out->length > max) {
            errno = EFBIG;
            return false;
        }
        if (got == 0)
            return !ferror(file);
    }
}

bool input_read(const char *path, size_t max, struct input *out)
{
    static bool standard_was_read;
    bool standard = strcmp(path, "-") == 0;

    *out = (struct input){ .name = standard ? "<stdin>" : path };
    if (standard && standard_was_read) {
        cli_error("standard input can only be read once");
        return false;
    }
    standard_was_read = standard_was_read || standard;
    errno = 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    bool good = file != NULL && read_all(file, max, out);
    if (!good && errno == ENOMEM) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    if (!good) {
        cli_error("cannot read %s: %s", out->name,
                  errno != 0 ? strerror(errno) : "input/output error");
        input_free(out);
    }
    if (file != NULL && !standard)
        fclose(file);
    return good;
}

void input_free(struct input *input)
{
    free(input->text);
    input->text = NULL;
    input->length = 0;
}
