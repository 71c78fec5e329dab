/* SPDX-License-Identifier: Apache-2.0 */
/* A file that takes the place of another at once, or not at all. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkstemp() makes files for the owner alone; what is new is like any other output. */
static mode_t mode_of_new_files(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

/* rename() would put a file where a device or a pipe was, and would not ask whether the file that
 * was there may be written to. */
static const char *unfit(const struct replacement *replacement)
{
    if (!S_ISREG(replacement->old.st_mode))
        return "it is not a regular file";
    return access(replacement->path, W_OK) != 0 ? strerror(errno) : NULL;
}

static bool refuse(struct replacement *replacement, const char *why)
{
    cli_error("cannot write %s: %s", replacement->name, why);
    replacement_abandon(replacement);
    return false;
}

bool replacement_open(struct replacement *out, const char *path)
{
    static const char suffix[] = ".XXXXXX"; /* as mkstemp wants it */

    *out = (struct replacement){ .name = path, .file = -1 };
    out->path = realpath(path, NULL);
    out->replaces = out->path != NULL && stat(out->path, &out->old) == 0;
    if (!out->replaces && errno != ENOENT)
        return refuse(out, strerror(errno));
    const char *why = out->replaces ? unfit(out) : NULL;
    if (why != NULL)
        return refuse(out, why);
    if (out->path == NULL)
        out->path = cli_copy(path, strlen(path));
    out->temporary = cli_allocate(strlen(out->path) + sizeof suffix);
    stpcpy(stpcpy(out->temporary, out->path), suffix);
    out->file = mkstemp(out->temporary);
    return out->file >= 0 || refuse(out, strerror(errno));
}

/* Before the mode is set: a change of the owner takes bits of the mode away. */
static bool keep_owner(const struct replacement *replacement)
{
    struct stat made;

    if (fstat(replacement->file, &made) != 0)
        return false;
    return (made.st_uid == replacement->old.st_uid && made.st_gid == replacement->old.st_gid) ||
           fchown(replacement->file, replacement->old.st_uid, replacement->old.st_gid) == 0;
}

bool replacement_commit(struct replacement *replacement)
{
    mode_t mode = replacement->replaces ? replacement->old.st_mode & 07777 : mode_of_new_files();

    if (replacement->replaces && !keep_owner(replacement))
        return refuse(replacement, "its owner and group cannot be kept");
    if (fchmod(replacement->file, mode) != 0 || fsync(replacement->file) != 0 ||
        rename(replacement->temporary, replacement->path) != 0)
        return refuse(replacement, strerror(errno));
    free(replacement->temporary);
    replacement->temporary = NULL; /* nothing is left to be removed */
    replacement_abandon(replacement);
    return true;
}

void replacement_abandon(struct replacement *replacement)
{
    if (replacement->file >= 0)
        close(replacement->file);
    if (replacement->file >= 0 && replacement->temporary != NULL)
        unlink(replacement->temporary);
    free(replacement->temporary);
    free(replacement->path);
    *replacement = (struct replacement){ .name = replacement->name, .file = -1 };
}
