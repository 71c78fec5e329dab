/* SPDX-License-Identifier: Apache-2.0 */
/* getrandom(2), until all bytes are there. */
#include "base/entropy.h"

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

int32_t admi_entropy_fill(void *self, void *out, uint64_t bytes)
{
    uint8_t *to = out;
    int host_errno = errno;

    (void)self;
    while (bytes > 0) {
        /* At most 256: the kernel promises to hand those out whole. */
        ssize_t got = getrandom(to, bytes < 256 ? (size_t)bytes : 256, 0);

        if (got < 0) {
            if (errno == EINTR)
                continue;
            errno = host_errno;
            return -1;
        }
        to += got;
        bytes -= (uint64_t)got;
    }
    errno = host_errno;
    return 0;
}
