/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the host's allocator: always zeroed, always returned with its size. */
#ifndef ADMI_MEMORY_H
#define ADMI_MEMORY_H

#include <string.h>

#include <admit/admit.h>

/* For what is rare inside of what is frequent: a function of its own, so that the frequent way does
 * not pay for its registers. */
#define ADMI_APART __attribute__((noinline))

/* malloc and free, for a NULL or empty allocator. */
extern const struct adm_allocator admi_malloc_allocator;

/* The allocator to use: the given one, or malloc's when it is NULL or has no functions. */
const struct adm_allocator *admi_allocator_or_malloc(const struct adm_allocator *allocator);

/* Zeroed memory for count objects, or NULL (also when count * bytes overflows). */
void *admi_allocate(const struct adm_allocator *allocator, uint64_t count, uint64_t bytes);

/* NULL is a no-op. count and bytes as given to admi_allocate(). */
void admi_release(const struct adm_allocator *allocator, void *memory, uint64_t count,
                  uint64_t bytes);

/* The only places that copy or fill bytes; length 0 with NULL is legal. Inline: a constant length
 * leaves only a few moves. */
static inline void admi_copy(void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0)
        memcpy(to, from, (size_t)bytes);
}

/* The same for what mostly has a few bytes: two moves that may overlap. */
static inline void admi_copy_short(void *to, const void *from, uint64_t bytes)
{
    char *end = (char *)to + bytes;
    const char *from_end = (const char *)from + bytes;
    uint64_t first, last;

    if (bytes < 4 || bytes > 16) {
        admi_copy(to, from, bytes);
    } else if (bytes >= 8) {
        admi_copy(&first, from, 8);
        admi_copy(&last, from_end - 8, 8);
        admi_copy(to, &first, 8);
        admi_copy(end - 8, &last, 8);
    } else {
        admi_copy(&first, from, 4);
        admi_copy(&last, from_end - 4, 4);
        admi_copy(to, &first, 4);
        admi_copy(end - 4, &last, 4);
    }
}

static inline void admi_clear(void *memory, uint64_t bytes)
{
    if (bytes > 0)
        memset(memory, 0, (size_t)bytes);
}

static inline int admi_bytes_equal(struct adm_bytes a, struct adm_bytes b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, (size_t)a.length) == 0);
}

#endif
