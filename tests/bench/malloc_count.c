/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A malloc in front of glibc's, found by every shared object of the process as well (libyaml has
 * no other hook). Counts; does not allocate.
 */
#include "malloc_count.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

/* glibc's own, under the names that it keeps for this use. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *memory);

/* The project hides symbols by default, but these must be found by the shared libraries. */
#define SEEN_BY_ALL __attribute__((visibility("default")))
SEEN_BY_ALL void *malloc(size_t bytes);
SEEN_BY_ALL void *calloc(size_t count, size_t bytes);
SEEN_BY_ALL void *realloc(void *memory, size_t bytes);
SEEN_BY_ALL void *aligned_alloc(size_t alignment, size_t bytes);
SEEN_BY_ALL void *memalign(size_t alignment, size_t bytes);
SEEN_BY_ALL int posix_memalign(void **out, size_t alignment, size_t bytes);
SEEN_BY_ALL void free(void *memory);

static _Atomic uint64_t calls, frees;
static _Atomic int64_t out_now, peak;

static void *count(void *memory)
{
    atomic_fetch_add(&calls, 1);
    if (memory != NULL) {
        int64_t bytes = (int64_t)malloc_usable_size(memory);
        int64_t now = atomic_fetch_add(&out_now, bytes) + bytes;
        int64_t seen = atomic_load(&peak);

        while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now)) {
        }
    }
    return memory;
}

static void uncount(void *memory)
{
    if (memory != NULL)
        atomic_fetch_sub(&out_now, (int64_t)malloc_usable_size(memory));
}

void *malloc(size_t bytes)
{
    return count(__libc_malloc(bytes));
}

void *calloc(size_t number, size_t bytes)
{
    return count(__libc_calloc(number, bytes));
}

void *realloc(void *memory, size_t bytes)
{
    int64_t before = memory != NULL ? (int64_t)malloc_usable_size(memory) : 0;
    void *moved = __libc_realloc(memory, bytes);

    if (moved != NULL || bytes == 0)
        atomic_fetch_sub(&out_now, before);
    return count(moved);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return count(__libc_memalign(alignment, bytes));
}

void *memalign(size_t alignment, size_t bytes)
{
    return count(__libc_memalign(alignment, bytes));
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    void *memory = __libc_memalign(alignment, bytes);

    if (memory == NULL)
        return ENOMEM;
    *out = count(memory);
    return 0;
}

void free(void *memory)
{
    if (memory != NULL)
        atomic_fetch_add(&frees, 1);
    uncount(memory);
    __libc_free(memory);
}

struct malloc_count malloc_count_now(void)
{
    return (struct malloc_count){ atomic_load(&calls), atomic_load(&frees), atomic_load(&out_now),
                                  atomic_load(&peak) };
}

void malloc_count_reset_peak(void)
{
    atomic_store(&peak, atomic_load(&out_now));
}
