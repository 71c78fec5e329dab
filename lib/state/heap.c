/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of places by deadline, so that the next one is known at once and any one can be
 * moved. */
#include "state/table.h"

static uint32_t *order_of(const struct admi_heap *heap)
{
    return admi_array(heap, heap->order_at);
}

static uint32_t *position_of(const struct admi_heap *heap)
{
    return admi_array(heap, heap->position_at);
}

static uint64_t *due_of(const struct admi_heap *heap)
{
    return admi_array(heap, heap->due_at);
}

void admi_heap_init(struct admi_heap *heap, uint64_t places, uint64_t *end)
{
    *heap = (struct admi_heap){ .max = (uint32_t)places };
    heap->order_at = admi_array_reserve(end, places + 1, sizeof(uint32_t));
    heap->position_at = admi_array_reserve(end, places + 1, sizeof(uint32_t));
    heap->due_at = admi_array_reserve(end, places + 1, sizeof(uint64_t));
}

uint32_t admi_heap_first(const struct admi_heap *heap, uint64_t *out_due)
{
    if (heap->count == 0)
        return 0;
    *out_due = due_of(heap)[order_of(heap)[1]];
    return order_of(heap)[1];
}

static void put(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    order_of(heap)[position] = place;
    position_of(heap)[place] = position;
}

static void rise(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    while (position > 1 && due_of(heap)[order_of(heap)[position / 2]] > due_of(heap)[place]) {
        put(heap, position, order_of(heap)[position / 2]);
        position /= 2;
    }
    put(heap, position, place);
}

static void sink(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    while (position * 2 <= heap->count) {
        uint32_t child = position * 2;

        if (child < heap->count &&
            due_of(heap)[order_of(heap)[child + 1]] < due_of(heap)[order_of(heap)[child]])
            child++;
        if (due_of(heap)[order_of(heap)[child]] >= due_of(heap)[place])
            break;
        put(heap, position, order_of(heap)[child]);
        position = child;
    }
    put(heap, position, place);
}

void admi_heap_set(struct admi_heap *heap, uint32_t place, uint64_t due)
{
    uint32_t position = position_of(heap)[place];
    uint64_t before = due_of(heap)[place];

    due_of(heap)[place] = due;
    if (position == 0)
        rise(heap, ++heap->count, place);
    else if (due < before)
        rise(heap, position, place);
    else
        sink(heap, position, place);
}

void admi_heap_remove(struct admi_heap *heap, uint32_t place)
{
    uint32_t position = position_of(heap)[place];
    uint32_t last;

    if (position == 0)
        return;
    position_of(heap)[place] = 0;
    last = order_of(heap)[heap->count--];
    if (last == place)
        return;
    if (position > 1 && due_of(heap)[order_of(heap)[position / 2]] > due_of(heap)[last])
        rise(heap, position, last);
    else
        sink(heap, position, last);
}
