/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once. */
#ifndef ADMI_ARENA_H
#define ADMI_ARENA_H

#include <stdbool.h>

#include <admit/admit.h>

struct admi_arena_chunk;

/*
 * Zeroed but for the allocator, which must stay valid. failed stays set: whoever fills it may look
 * once, at the end.
 */
struct admi_arena {
    const struct adm_allocator *allocator;
    struct admi_arena_chunk *chunks;
    bool failed;
};

/* Zeroed memory, aligned to 16 bytes, or NULL. */
void *admi_arena_allocate(struct admi_arena *arena, uint64_t count, uint64_t bytes);
/* A copy, NUL-terminated as well; length 0 with a NULL when there is no memory. */
struct adm_bytes admi_arena_copy(struct admi_arena *arena, struct adm_bytes bytes);
void admi_arena_fini(struct admi_arena *arena);

#endif
