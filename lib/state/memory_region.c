/* SPDX-License-Identifier: Apache-2.0 */
/* The region of the memory backend: how long it must be, and where its arrays lie. */
#include "state/memory.h"

#include "base/memory.h"

#define LINE_BYTES   64u
#define REGION_BYTES (UINT64_C(1) << 35) /* what an index of words can name: 2^32 of them */

static uint64_t reserve(uint64_t *end, uint64_t count, uint64_t bytes)
{
    uint64_t at = (*end + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;

    *end = at + count * bytes;
    return at;
}

/* `end` counts from the region; a part of it counts its own arrays from itself. */
static uint64_t distance(const struct memory_region *region, const void *part)
{
    return (uint64_t)((uintptr_t)part - (uintptr_t)region);
}

static void lay_lines(struct memory_region *region, struct memory_lines *lines, uint64_t count,
                      const uint8_t *secret, uint64_t *end)
{
    uint64_t own = distance(region, lines), own_end = *end - own;

    admi_memory_lines_init(lines, count, secret, &own_end);
    *end = own + own_end;
}

static void lay_leases(struct memory_region *region, struct memory_leases *leases, uint64_t count,
                       uint32_t space, uint64_t *end)
{
    uint64_t own = distance(region, leases), deadlines = distance(region, &leases->deadlines);
    uint64_t own_end;

    *leases = (struct memory_leases){ .count = count, .space = space };
    leases->slots_at = reserve(end, count, sizeof(struct memory_lease)) - own;
    own_end = *end - deadlines;
    admi_memory_deadlines_init(&leases->deadlines, count, &own_end);
    *end = deadlines + own_end;
}

static void lay_registry(struct memory_region *region, const struct memory_sizes *sizes,
                         uint64_t *end)
{
    struct admi_registry *registry = &region->registry;
    uint64_t families = admi_registry_families_max(sizes->classes_max, sizes->partitions_max);
    uint64_t own = distance(region, registry), own_end = *end - own, heads = 16;

    admi_registry_init(registry, sizes->classes_max, sizes->classes_max, families, &own_end);
    *end = own + own_end;
    region->class_places = 2 * sizes->classes_max;
    while (heads < region->class_places)
        heads *= 2;
    region->scope_mask = heads - 1;
    region->id_count = 2 * (region->class_places + families) + 1;
    region->classes_at = reserve(end, region->class_places + 1, sizeof(struct memory_class));
    region->families_at = reserve(end, families + 1, sizeof(struct memory_family));
    region->ids_at = reserve(end, region->id_count, sizeof(uint64_t));
    region->scopes_at = reserve(end, heads, sizeof(uint64_t));
    region->dirty_at = reserve(end, region->class_places + 1, sizeof(uint32_t));
    region->dead_at = reserve(end, region->id_count, sizeof(uint32_t));
}

/* Touches the struct alone, so it may as well be one to measure with. */
static void lay_out(struct memory_region *region, const struct memory_sizes *sizes,
                    const uint8_t *secret)
{
    uint64_t end = sizeof *region;

    region->layout = MEMORY_LAYOUT;
    region->context_count = sizes->contexts;
    region->contexts_at = reserve(&end, sizes->contexts, sizeof(struct admi_txn_context));
    region->context_states_at = reserve(&end, sizes->contexts, sizeof(struct memory_context_state));
    lay_registry(region, sizes, &end);
    for (uint32_t i = 0; i < MEMORY_SPACES; i++) {
        struct memory_space *space = &region->spaces[i];

        lay_lines(region, &space->lines, sizes->partitions_max, secret, &end);
        lay_leases(region, &space->leases, sizes->leases_max, i, &end);
    }
    lay_lines(region, &region->attempt_lines, sizes->attempts_max, secret, &end);
    region->attempts_at = reserve(&end, sizes->attempts_max, sizeof(struct memory_attempt));
    region->bytes = end;
}

uint64_t admi_memory_region_bytes(const struct memory_sizes *sizes)
{
    static const uint8_t no_secret[ADMI_SECRET_BYTES];
    struct memory_region measure;

    admi_clear(&measure, sizeof measure);
    lay_out(&measure, sizes, no_secret);
    return measure.bytes <= REGION_BYTES && measure.id_count <= MEMORY_IDS_MAX ? measure.bytes : 0;
}

void admi_memory_region_init(struct memory_region *region, const struct memory_sizes *sizes,
                             const uint8_t *secrets)
{
    lay_out(region, sizes, secrets);
    admi_copy(region->registry.hash_secret, secrets, ADMI_SECRET_BYTES);
    admi_copy(region->id_secret, secrets + ADMI_SECRET_BYTES, ADMI_SECRET_BYTES);
    admi_copy(region->key_secrets, secrets + (size_t)2 * ADMI_SECRET_BYTES,
              (uint64_t)2 * ADMI_SECRET_BYTES);
    admi_copy(region->registry.key_secrets, region->key_secrets, sizeof region->key_secrets);
    for (uint32_t i = 0; i < MEMORY_SPACES; i++)
        admi_memory_deadlines_clear(&region->spaces[i].leases.deadlines);
}
