/* SPDX-License-Identifier: Apache-2.0 */
/* The fork guard: a page that the kernel wipes in a forked child, or the process id. */
#include "base/fork_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* Linux 4.14; older kernels refuse it */
#endif

void admi_fork_guard_init(struct admi_fork_guard *guard)
{
    long page_bytes = sysconf(_SC_PAGESIZE);
    void *page = MAP_FAILED;

    *guard = (struct admi_fork_guard){ .process = (int32_t)getpid() };
    if (page_bytes <= 0)
        return;
    page =
        mmap(NULL, (size_t)page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, (size_t)page_bytes, MADV_WIPEONFORK) != 0) {
        (void)munmap(page, (size_t)page_bytes);
        return;
    }
    guard->page = page;
    guard->page_bytes = (uint64_t)page_bytes;
    *guard->page = ADMI_FORK_GUARD_INTACT;
}

void admi_fork_guard_fini(struct admi_fork_guard *guard)
{
    if (guard->page != NULL)
        (void)munmap((void *)(uintptr_t)guard->page, (size_t)guard->page_bytes);
    guard->page = NULL;
}

int admi_fork_guard_is_other_process(const struct admi_fork_guard *guard)
{
    return guard->process != (int32_t)getpid();
}
