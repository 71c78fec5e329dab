/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through the host's allocator: always zeroed, always returned with its size. */
#ifndef ADMI_MEMORY_H
#define ADMI_MEMORY_H

#include <admit/admit.h>

/* malloc and free, for a NULL or empty allocator. */
extern const struct adm_allocator admi_malloc_allocator;

/* The allocator to use: the given one, or malloc's when it is NULL or has no functions. */
const struct adm_allocator *admi_allocator_or_malloc(const struct adm_allocator *allocator);

/* Zeroed memory for count objects, or NULL (also when count * bytes overflows). */
void *admi_allocate(const struct adm_allocator *allocator, uint64_t count, uint64_t bytes);

/* NULL is a no-op. count and bytes as given to admi_allocate(). */
void admi_release(const struct adm_allocator *allocator, void *memory, uint64_t count,
                  uint64_t bytes);

/* The only places that copy or fill bytes; length 0 with NULL is legal. */
void admi_copy(void *to, const void *from, uint64_t bytes);
void admi_clear(void *memory, uint64_t bytes);
int admi_bytes_equal(struct adm_bytes a, struct adm_bytes b);

#endif
