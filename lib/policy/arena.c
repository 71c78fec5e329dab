/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once. */
#include "policy/arena.h"

#include "base/memory.h"

#define CHUNK_BYTES UINT64_C(32768)
#define ALIGNMENT   UINT64_C(16)

struct admi_arena_chunk {
    struct admi_arena_chunk *next;
    uint64_t bytes, used; /* with this head */
};

static const uint64_t head_bytes =
    (sizeof(struct admi_arena_chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

static struct admi_arena_chunk *add_chunk(struct admi_arena *arena, uint64_t bytes)
{
    uint64_t least = head_bytes + bytes;
    uint64_t size = least > CHUNK_BYTES ? least : CHUNK_BYTES;
    struct admi_arena_chunk *chunk = admi_allocate(arena->allocator, 1, size);
    if (chunk == NULL)
        return NULL;
    chunk->bytes = size;
    chunk->used = head_bytes;
    if (arena->chunks != NULL &&
        size > CHUNK_BYTES) { /* one large object: go on filling the chunk before it */
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        chunk->next = arena->chunks;
        arena->chunks = chunk;
    }
    return chunk;
}

void *admi_arena_allocate(struct admi_arena *arena, uint64_t count, uint64_t bytes)
{
    if (bytes > 0 && count > (UINT64_MAX - CHUNK_BYTES) / bytes) {
        arena->failed = true;
        return NULL;
    }
    uint64_t needed = (count * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct admi_arena_chunk *chunk = arena->chunks;
    if (needed == 0)
        needed = ALIGNMENT;
    if (chunk == NULL || chunk->bytes - chunk->used < needed)
        chunk = add_chunk(arena, needed);
    if (chunk == NULL) {
        arena->failed = true;
        return NULL;
    }
    void *memory = (char *)chunk + chunk->used;
    chunk->used += needed;
    return memory;
}

struct adm_bytes admi_arena_copy(struct admi_arena *arena, struct adm_bytes bytes)
{
    char *text = admi_arena_allocate(arena, bytes.length + 1, 1);
    if (text == NULL)
        return (struct adm_bytes){ NULL, 0 };
    admi_copy(text, bytes.data, bytes.length);
    return (struct adm_bytes){ text, bytes.length };
}

void admi_arena_fini(struct admi_arena *arena)
{
    while (arena->chunks != NULL) {
        struct admi_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        admi_release(arena->allocator, chunk, 1, chunk->bytes);
    }
}
