/* SPDX-License-Identifier: Apache-2.0 */
/* Work that is being served, ordered by its end: a binary heap. */
#ifndef CLI_HEAP_H
#define CLI_HEAP_H

#include <admit/types.h>

#include <stdbool.h>

struct service {
    uint64_t end_ns;
    uint64_t order; /* of admission: equal ends leave in this order */
    struct adm_id lease;
    size_t row;
};

struct heap {
    struct service *items;
    size_t count, room;
};

void heap_push(struct heap *heap, struct service service);

/* The earliest one, if it ends at ns or before. */
bool heap_pop_until(struct heap *heap, uint64_t ns, struct service *out);
void heap_free(struct heap *heap);

#endif
