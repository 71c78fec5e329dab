/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running gnuplot. No shell and no file name ever reaches it: it reads an unnamed file and writes
 * to its standard output, which is a temporary file beside the picture.
 */
#include "gnuplot.h"

#include "cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

FILE *gnuplot_script(void)
{
    FILE *script = tmpfile();

    if (script == NULL)
        cli_error("cannot make a temporary file: %s", strerror(errno));
    return script;
}

/* Inside single quotes only the quote itself means something to gnuplot. The other characters that
 * do elsewhere are taken out as well: a name is never worth a command. */
void gnuplot_string(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c == 0x7f || strchr("'\"`\\@$", c) != NULL)
            c = '?';
        fputc(c, script);
    }
    fputc('\'', script);
}

static int spawn(FILE *script, int picture)
{
    static char name[] = "gnuplot", defaults[] = "-d", standard[] = "-";
    char *const arguments[] = { name, defaults, standard, NULL };
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;

    if (posix_spawn_file_actions_init(&actions) != 0)
        return ENOMEM;
    int error = posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, picture, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawnp(&child, name, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return error;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int failed(int error)
{
    if (error == ENOENT)
        cli_error("gnuplot is not here: install gnuplot-nox");
    else if (error > 0)
        cli_error("cannot run gnuplot: %s", strerror(error));
    else
        cli_error("gnuplot failed, no picture was written");
    return CLI_ENVIRONMENT;
}

static bool publish(struct replacement *replacement)
{
    struct stat made;

    if (fstat(replacement->file, &made) == 0 && made.st_size > 0)
        return replacement_commit(replacement);
    cli_error("cannot write %s: no picture came", replacement->name);
    replacement_abandon(replacement);
    return false;
}

int gnuplot_run(FILE *script, const char *path)
{
    struct replacement replacement;

    if (!replacement_open(&replacement, path)) {
        fclose(script);
        return CLI_ENVIRONMENT;
    }
    rewind(script); /* also writes what is buffered */
    int error = ferror(script) ? EIO : spawn(script, replacement.file);
    fclose(script);
    if (error == 0)
        return publish(&replacement) ? CLI_OK : CLI_ENVIRONMENT;
    replacement_abandon(&replacement);
    return failed(error);
}
