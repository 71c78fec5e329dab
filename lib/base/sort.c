/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting in place, n log n for every input, without memory of its own (a heap sort). */
#include "base/sort.h"

#include <assert.h>

#include "base/memory.h"

struct heap {
    unsigned char *items;
    uint64_t bytes;
    int (*compare)(const void *a, const void *b, const void *context);
    const void *context;
};

static unsigned char *item(const struct heap *heap, uint64_t i)
{
    return heap->items + i * heap->bytes;
}

/* Let value sink from position at until both children are no larger. */
static void sink(const struct heap *heap, uint64_t at, uint64_t count, const void *value)
{
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count &&
            heap->compare(item(heap, child), item(heap, child + 1), heap->context) < 0)
            child++;
        if (heap->compare(value, item(heap, child), heap->context) >= 0)
            break;
        admi_copy(item(heap, at), item(heap, child), heap->bytes);
        at = child;
    }
    admi_copy(item(heap, at), value, heap->bytes);
}

void admi_sort(void *items, uint64_t count, uint64_t bytes,
               int (*compare)(const void *a, const void *b, const void *context),
               const void *context)
{
    struct heap heap = { items, bytes, compare, context };
    _Alignas(16) unsigned char held[ADMI_SORT_MAX_BYTES];
    assert(bytes <= sizeof held);
    for (uint64_t i = count / 2; i-- > 0;) {
        admi_copy(held, item(&heap, i), bytes);
        sink(&heap, i, count, held);
    }
    for (uint64_t end = count; end-- > 1;) {
        admi_copy(held, item(&heap, end), bytes);
        admi_copy(item(&heap, end), items, bytes);
        sink(&heap, 0, end, held);
    }
}
