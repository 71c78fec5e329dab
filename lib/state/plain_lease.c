/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases and attempts of the plain backend, as records. A lease is live until its end, then late
 * for one more time to live; then, or once it is released, nothing but its answer is left, and that
 * only while nobody needs the room.
 */
#include "state/plain.h"

/* ---- attempts ---- */

uint32_t admi_plain_attempt_find(const struct plain *plain, const struct admi_key *name,
                                 uint64_t hash)
{
    uint32_t at = admi_table_first(&plain->attempt_table, hash);

    for (; at != 0; at = plain->attempt_table.next[at]) {
        if (plain->attempts[at].hash == hash && admi_key_equal(&plain->attempts[at].name, name))
            return at;
    }
    return 0;
}

uint32_t admi_plain_attempt_make(struct plain *plain, const struct admi_key *name, uint64_t hash)
{
    uint32_t place = admi_table_add(&plain->attempt_table, hash);

    if (place != 0)
        plain->attempts[place] = (struct plain_attempt){ .name = *name, .hash = hash };
    return place;
}

/* Remembered until its time, and for as long as its lease lives. */
void admi_plain_attempt_due(struct plain *plain, uint32_t place)
{
    const struct plain_attempt *attempt = &plain->attempts[place];
    uint64_t due = attempt->until_ns;

    if (attempt->lease != 0) {
        const struct plain_lease *lease = &plain->regions[PLAIN_ENFORCED].leases[attempt->lease];

        if (lease->state != PLAIN_CLOSED && lease->expires_ns > due)
            due = lease->expires_ns;
    }
    admi_heap_set(&plain->attempt_heap, place, due);
}

static void attempt_free(struct plain *plain, uint32_t place)
{
    struct plain_attempt *attempt = &plain->attempts[place];

    if (attempt->lease != 0)
        plain->regions[PLAIN_ENFORCED].leases[attempt->lease].attempt = 0;
    admi_heap_remove(&plain->attempt_heap, place);
    admi_table_remove(&plain->attempt_table, attempt->hash, place);
}

/* ---- the closed ones, oldest first ---- */

static void closed_append(struct plain_region *region, uint32_t place)
{
    region->leases[place].closed_previous = region->closed_last;
    region->leases[place].closed_next = 0;
    if (region->closed_last != 0)
        region->leases[region->closed_last].closed_next = place;
    else
        region->closed_first = place;
    region->closed_last = place;
}

static void closed_remove(struct plain_region *region, uint32_t place)
{
    const struct plain_lease *lease = &region->leases[place];

    if (lease->closed_previous != 0)
        region->leases[lease->closed_previous].closed_next = lease->closed_next;
    else
        region->closed_first = lease->closed_next;
    if (lease->closed_next != 0)
        region->leases[lease->closed_next].closed_previous = lease->closed_previous;
    else
        region->closed_last = lease->closed_previous;
}

/* ---- records ---- */

/* Ids are made by a keyed hash here, so a part of one is as good a hash as any. */
static uint64_t id_hash(struct adm_id id)
{
    return id.low;
}

uint32_t admi_plain_lease_find(const struct plain_region *region, struct adm_id id)
{
    uint32_t at = admi_table_first(&region->lease_table, id_hash(id));

    for (; at != 0; at = region->lease_table.next[at]) {
        if (region->leases[at].id.high == id.high && region->leases[at].id.low == id.low)
            return at;
    }
    return 0;
}

bool admi_plain_lease_has_room(const struct plain_region *region)
{
    return region->lease_table.used < region->lease_table.max || region->closed_first != 0;
}

uint32_t admi_plain_lease_make(struct plain *plain, struct plain_region *region, struct adm_id id,
                               uint64_t ttl_ns)
{
    uint32_t place = admi_table_add(&region->lease_table, id_hash(id));
    struct plain_lease *lease = NULL;

    if (place == 0 && region->closed_first != 0) {
        admi_plain_lease_free(plain, region, region->closed_first);
        place = admi_table_add(&region->lease_table, id_hash(id));
    }
    if (place == 0)
        return 0;
    lease = &region->leases[place];
    lease->id = id;
    lease->ttl_ns = ttl_ns;
    lease->expires_ns = admi_plain_later(plain->now_ns, ttl_ns);
    lease->state = PLAIN_LIVE;
    lease->diverted = false;
    lease->final = false;
    lease->attempt = 0;
    lease->item_count = 0;
    lease->meter_count = 0;
    admi_heap_set(&region->lease_heap, place, lease->expires_ns);
    return place;
}

void admi_plain_lease_add(struct plain_region *region, struct plain_lease *lease,
                          const struct plain_item *item)
{
    region->partitions[item->partition].pins++;
    lease->items[lease->item_count++] = *item;
}

void admi_plain_lease_unpin(struct plain *plain, struct plain_region *region,
                            struct plain_lease *lease)
{
    for (uint32_t i = 0; i < lease->item_count; i++)
        admi_plain_partition_unpin(plain, region, lease->items[i].partition);
    lease->item_count = 0;
}

uint64_t admi_plain_lease_stop_holding(struct plain *plain, struct plain_region *region,
                                       struct plain_lease *lease)
{
    uint64_t units = 0;

    for (uint32_t i = 0; i < lease->item_count; i++) {
        const struct plain_item *item = &lease->items[i];
        const struct plain_partition *partition = &region->partitions[item->partition];

        if (admi_plain_family(plain, partition->family)->kind == ADM_KIND_CONCURRENCY) {
            admi_plain_unhold(plain, region, item->partition, item->amount);
            units += item->amount;
        }
    }
    return units;
}

void admi_plain_lease_close(struct plain *plain, struct plain_region *region, uint32_t place)
{
    struct plain_lease *lease = &region->leases[place];

    admi_plain_lease_unpin(plain, region, lease);
    lease->state = PLAIN_CLOSED;
    admi_heap_set(&region->lease_heap, place, admi_plain_later(lease->expires_ns, lease->ttl_ns));
    closed_append(region, place);
    if (lease->attempt != 0)
        admi_plain_attempt_due(plain, lease->attempt);
}

void admi_plain_lease_free(struct plain *plain, struct plain_region *region, uint32_t place)
{
    struct plain_lease *lease = &region->leases[place];

    admi_plain_lease_unpin(plain, region, lease);
    if (lease->state == PLAIN_CLOSED)
        closed_remove(region, place);
    if (lease->attempt != 0)
        plain->attempts[lease->attempt].lease =
            0; /* when it is due does not change: this lease lives no more */
    admi_heap_remove(&region->lease_heap, place);
    admi_table_remove(&region->lease_table, id_hash(lease->id), place);
    lease->id = (struct adm_id){ 0, 0 };
    lease->state = 0;
}

void admi_plain_lease_renew(struct plain *plain, struct plain_region *region, uint32_t place)
{
    struct plain_lease *lease = &region->leases[place];

    lease->expires_ns = admi_plain_later(plain->now_ns, lease->ttl_ns);
    admi_heap_set(&region->lease_heap, place, lease->expires_ns);
    if (lease->attempt != 0)
        admi_plain_attempt_due(plain, lease->attempt);
}

void admi_plain_shadow_end(struct plain *plain, struct adm_id id)
{
    struct plain_region *region = &plain->regions[PLAIN_SHADOW];
    uint32_t place = admi_plain_lease_find(region, id);

    if (place == 0)
        return;
    (void)admi_plain_lease_stop_holding(plain, region, &region->leases[place]);
    admi_plain_lease_free(plain, region,
                          place); /* nobody asks about a shadow hold, so nothing has to answer */
}

/* ---- expiry ---- */

static void expire_enforced(struct plain *plain)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    uint64_t due;

    for (uint32_t at = admi_heap_first(&region->lease_heap, &due); at != 0 && due <= plain->now_ns;
         at = admi_heap_first(&region->lease_heap, &due)) {
        struct plain_lease *lease = &region->leases[at];

        if (lease->state != PLAIN_LIVE) {
            admi_plain_lease_free(plain, region, at);
            continue;
        }
        (void)admi_plain_lease_stop_holding(plain, region, lease);
        lease->state = PLAIN_LATE;
        plain->expired++;
        if (due == UINT64_MAX) /* the end of time comes only once */
            admi_plain_lease_free(plain, region, at);
        else
            admi_heap_set(&region->lease_heap, at,
                          admi_plain_later(lease->expires_ns, lease->ttl_ns));
    }
}

void admi_plain_expire(struct plain *plain)
{
    struct plain_region *shadow = &plain->regions[PLAIN_SHADOW];
    uint64_t due;
    uint32_t at;

    expire_enforced(plain);
    while ((at = admi_heap_first(&shadow->lease_heap, &due)) != 0 && due <= plain->now_ns) {
        (void)admi_plain_lease_stop_holding(plain, shadow, &shadow->leases[at]);
        admi_plain_lease_free(plain, shadow, at);
    }
    while ((at = admi_heap_first(&plain->attempt_heap, &due)) != 0 && due <= plain->now_ns)
        attempt_free(plain, at);
}
