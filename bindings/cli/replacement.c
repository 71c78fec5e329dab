/* SPDX-License-Identifier: Apache-2.0 */
/* A file that takes the place of another at once, or not at all. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int replacement_open(const char *path, char **out_temporary)
{
    static const char suffix[] = ".XXXXXX"; /* as mkstemp wants it */
    char *temporary = cli_allocate(strlen(path) + sizeof suffix);

    stpcpy(stpcpy(temporary, path), suffix);
    *out_temporary = temporary;
    return mkstemp(temporary);
}

bool replacement_commit(int file, const char *temporary, const char *path, mode_t mode)
{
    return fchmod(file, mode) == 0 && fsync(file) == 0 && rename(temporary, path) == 0;
}
