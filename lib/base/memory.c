/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the host's allocator: always zeroed, always returned with its size. */
#include "base/memory.h"

#include <stdlib.h>

static void *allocate_with_malloc(void *self, uint64_t bytes)
{
    (void)self;
    return bytes <= SIZE_MAX ? calloc(1, (size_t)bytes) : NULL;
}

static void release_with_free(void *self, void *memory, uint64_t bytes)
{
    (void)self;
    (void)bytes;
    free(memory);
}

const struct adm_allocator admi_malloc_allocator = { NULL, allocate_with_malloc,
                                                     release_with_free };

const struct adm_allocator *admi_allocator_or_malloc(const struct adm_allocator *allocator)
{
    if (allocator == NULL || allocator->allocate == NULL || allocator->release == NULL)
        return &admi_malloc_allocator;
    return allocator;
}

void *admi_allocate(const struct adm_allocator *allocator, uint64_t count, uint64_t bytes)
{
    if (count == 0 || bytes == 0)
        count = bytes = 1; /* a pointer that is not NULL, so that NULL always means no memory */
    if (count > SIZE_MAX / bytes)
        return NULL;
    return allocator->allocate(allocator->self, count * bytes);
}

void admi_release(const struct adm_allocator *allocator, void *memory, uint64_t count,
                  uint64_t bytes)
{
    if (memory == NULL)
        return;
    if (count == 0 || bytes == 0)
        count = bytes = 1;
    allocator->release(allocator->self, memory, count * bytes);
}
