/* SPDX-License-Identifier: Apache-2.0 */
/* Is this a forked child of the process that made the guard? One load; the kernel wipes the page in
 * the child. */
#ifndef ADMI_FORK_GUARD_H
#define ADMI_FORK_GUARD_H

#include <stddef.h>
#include <stdint.h>

struct admi_fork_guard {
    volatile uint32_t *page; /* NULL: this kernel cannot wipe pages, compare process ids */
    uint64_t page_bytes;
    int32_t process;
    uint32_t reserved0;
};

/* Never fails: without the page it falls back to getpid(), which is slower and right as well. */
void admi_fork_guard_init(struct admi_fork_guard *guard);
void admi_fork_guard_fini(struct admi_fork_guard *guard);

/* What the page says in the process that made it. */
#define ADMI_FORK_GUARD_INTACT 0x5eed5afeu

int admi_fork_guard_is_other_process(const struct admi_fork_guard *guard);

static inline int admi_fork_guard_is_child(const struct admi_fork_guard *guard)
{
    return guard->page != NULL ? *guard->page != ADMI_FORK_GUARD_INTACT
                               : admi_fork_guard_is_other_process(guard);
}

#endif
