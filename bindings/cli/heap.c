/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of services by their end. */
#include "heap.h"

#include "cli.h"

#include <stdlib.h>

static bool before(const struct service *a, const struct service *b)
{
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->order < b->order;
}

void heap_push(struct heap *heap, struct service service)
{
    heap->items = cli_grow(heap->items, &heap->room, heap->count, sizeof service);
    size_t at = heap->count++;
    while (at > 0 && before(&service, &heap->items[(at - 1) / 2])) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = service;
}

bool heap_pop_until(struct heap *heap, uint64_t ns, struct service *out)
{
    if (heap->count == 0 || heap->items[0].end_ns > ns)
        return false;
    *out = heap->items[0];
    struct service last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && before(&heap->items[child + 1], &heap->items[child]))
            child++;
        if (!before(&heap->items[child], &last))
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    if (heap->count > 0)
        heap->items[at] = last;
    return true;
}

void heap_free(struct heap *heap)
{
    free(heap->items);
    heap->items = NULL;
}
