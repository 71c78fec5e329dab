/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of places by deadline, so that the next one is known at once and any one can be
 * moved. */
#include "base/memory.h"
#include "state/table.h"

adm_status admi_heap_init(struct admi_heap *heap, const struct adm_allocator *allocator,
                          uint64_t places)
{
    *heap = (struct admi_heap){ 0 };
    if (places > ADMI_PLACES_MAX)
        return ADM_E_NOMEM;
    heap->max = (uint32_t)places;
    heap->order = admi_allocate(allocator, places + 1, sizeof *heap->order);
    heap->position = admi_allocate(allocator, places + 1, sizeof *heap->position);
    heap->due = admi_allocate(allocator, places + 1, sizeof *heap->due);
    if (heap->order != NULL && heap->position != NULL && heap->due != NULL)
        return ADM_OK;
    admi_heap_fini(heap, allocator);
    return ADM_E_NOMEM;
}

void admi_heap_fini(struct admi_heap *heap, const struct adm_allocator *allocator)
{
    admi_release(allocator, heap->due, (uint64_t)heap->max + 1, sizeof *heap->due);
    admi_release(allocator, heap->position, (uint64_t)heap->max + 1, sizeof *heap->position);
    admi_release(allocator, heap->order, (uint64_t)heap->max + 1, sizeof *heap->order);
    *heap = (struct admi_heap){ 0 };
}

uint32_t admi_heap_first(const struct admi_heap *heap, uint64_t *out_due)
{
    if (heap->count == 0)
        return 0;
    *out_due = heap->due[heap->order[1]];
    return heap->order[1];
}

static void put(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    heap->order[position] = place;
    heap->position[place] = position;
}

static void rise(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    while (position > 1 && heap->due[heap->order[position / 2]] > heap->due[place]) {
        put(heap, position, heap->order[position / 2]);
        position /= 2;
    }
    put(heap, position, place);
}

static void sink(struct admi_heap *heap, uint32_t position, uint32_t place)
{
    while (position * 2 <= heap->count) {
        uint32_t child = position * 2;

        if (child < heap->count &&
            heap->due[heap->order[child + 1]] < heap->due[heap->order[child]])
            child++;
        if (heap->due[heap->order[child]] >= heap->due[place])
            break;
        put(heap, position, heap->order[child]);
        position = child;
    }
    put(heap, position, place);
}

void admi_heap_set(struct admi_heap *heap, uint32_t place, uint64_t due)
{
    uint32_t position = heap->position[place];
    uint64_t before = heap->due[place];

    heap->due[place] = due;
    if (position == 0)
        rise(heap, ++heap->count, place);
    else if (due < before)
        rise(heap, position, place);
    else
        sink(heap, position, place);
}

void admi_heap_remove(struct admi_heap *heap, uint32_t place)
{
    uint32_t position = heap->position[place];
    uint32_t last;

    if (position == 0)
        return;
    heap->position[place] = 0;
    last = heap->order[heap->count--];
    if (last == place)
        return;
    if (position > 1 && heap->due[heap->order[position / 2]] > heap->due[last])
        rise(heap, position, last);
    else
        sink(heap, position, last);
}
