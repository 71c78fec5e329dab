/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases and attempts of a ledger, as records. A lease is live until its end, then late
 * for one more time to live; then, or once it is released, nothing but its answer is left, and that
 * only while nobody needs the room.
 */
#include "state/ledger.h"

/* ---- attempts ---- */

uint32_t admi_ledger_attempt_find(const struct ledger *ledger, const struct admi_key *name,
                                  uint64_t hash)
{
    uint32_t at = admi_table_first(&ledger->attempt_table, hash);

    for (; at != 0; at = admi_table_next(&ledger->attempt_table, at)) {
        if (attempt_at(ledger, at)->hash == hash &&
            admi_key_equal(&attempt_at(ledger, at)->name, name))
            return at;
    }
    return 0;
}

uint32_t admi_ledger_attempt_make(struct ledger *ledger, const struct admi_key *name, uint64_t hash)
{
    uint32_t place = admi_table_add(&ledger->attempt_table, hash);

    if (place != 0)
        *attempt_at(ledger, place) = (struct ledger_attempt){ .name = *name, .hash = hash };
    return place;
}

/* Remembered until its time, and for as long as its lease lives. */
void admi_ledger_attempt_due(struct ledger *ledger, uint32_t place)
{
    const struct ledger_attempt *attempt = attempt_at(ledger, place);
    uint64_t due = attempt->until_ns;

    if (attempt->lease != 0) {
        const struct ledger_lease *lease =
            lease_at(&ledger->regions[LEDGER_ENFORCED], attempt->lease);

        if (lease->state != LEDGER_CLOSED && lease->expires_ns > due)
            due = lease->expires_ns;
    }
    admi_heap_set(&ledger->attempt_heap, place, due);
}

static void attempt_free(struct ledger *ledger, uint32_t place)
{
    struct ledger_attempt *attempt = attempt_at(ledger, place);

    if (attempt->lease != 0)
        lease_at(&ledger->regions[LEDGER_ENFORCED], attempt->lease)->attempt = 0;
    admi_heap_remove(&ledger->attempt_heap, place);
    admi_table_remove(&ledger->attempt_table, attempt->hash, place);
}

/* ---- the closed ones, oldest first ---- */

static void closed_append(struct ledger_region *region, uint32_t place)
{
    lease_at(region, place)->closed_previous = region->closed_last;
    lease_at(region, place)->closed_next = 0;
    if (region->closed_last != 0)
        lease_at(region, region->closed_last)->closed_next = place;
    else
        region->closed_first = place;
    region->closed_last = place;
}

static void closed_remove(struct ledger_region *region, uint32_t place)
{
    const struct ledger_lease *lease = lease_at(region, place);

    if (lease->closed_previous != 0)
        lease_at(region, lease->closed_previous)->closed_next = lease->closed_next;
    else
        region->closed_first = lease->closed_next;
    if (lease->closed_next != 0)
        lease_at(region, lease->closed_next)->closed_previous = lease->closed_previous;
    else
        region->closed_last = lease->closed_previous;
}

/* ---- records ---- */

/* Ids are made by a keyed hash here, so a part of one is as good a hash as any. */
static uint64_t id_hash(struct adm_id id)
{
    return id.low;
}

uint32_t admi_ledger_lease_find(const struct ledger_region *region, struct adm_id id)
{
    uint32_t at = admi_table_first(&region->lease_table, id_hash(id));

    for (; at != 0; at = admi_table_next(&region->lease_table, at)) {
        if (lease_at(region, at)->id.high == id.high && lease_at(region, at)->id.low == id.low)
            return at;
    }
    return 0;
}

bool admi_ledger_lease_has_room(const struct ledger_region *region)
{
    return region->lease_table.used < region->lease_table.max || region->closed_first != 0;
}

uint32_t admi_ledger_lease_make(struct ledger *ledger, struct ledger_region *region,
                                struct adm_id id, uint64_t ttl_ns)
{
    uint32_t place = admi_table_add(&region->lease_table, id_hash(id));
    struct ledger_lease *lease = NULL;

    if (place == 0 && region->closed_first != 0) {
        admi_ledger_lease_free(ledger, region, region->closed_first);
        place = admi_table_add(&region->lease_table, id_hash(id));
    }
    if (place == 0)
        return 0;
    lease = lease_at(region, place);
    lease->id = id;
    lease->ttl_ns = ttl_ns;
    lease->expires_ns = admi_ledger_later(ledger->now_ns, ttl_ns);
    lease->state = LEDGER_LIVE;
    lease->diverted = false;
    lease->final = false;
    lease->attempt = 0;
    lease->item_count = 0;
    lease->meter_count = 0;
    admi_heap_set(&region->lease_heap, place, lease->expires_ns);
    return place;
}

void admi_ledger_lease_add(struct ledger_region *region, struct ledger_lease *lease,
                           const struct ledger_item *item)
{
    partition_at(region, item->partition)->pins++;
    lease->items[lease->item_count++] = *item;
}

void admi_ledger_lease_unpin(struct ledger *ledger, struct ledger_region *region,
                             struct ledger_lease *lease)
{
    for (uint32_t i = 0; i < lease->item_count; i++)
        admi_ledger_partition_unpin(ledger, region, lease->items[i].partition);
    lease->item_count = 0;
}

uint64_t admi_ledger_lease_stop_holding(struct ledger *ledger, struct ledger_region *region,
                                        struct ledger_lease *lease)
{
    uint64_t units = 0;

    for (uint32_t i = 0; i < lease->item_count; i++) {
        const struct ledger_item *item = &lease->items[i];
        const struct ledger_partition *partition = partition_at(region, item->partition);

        if (family_at(ledger, partition->family)->kind == ADM_KIND_CONCURRENCY) {
            admi_ledger_unhold(ledger, region, item->partition, item->amount);
            units += item->amount;
        }
    }
    return units;
}

void admi_ledger_lease_close(struct ledger *ledger, struct ledger_region *region, uint32_t place)
{
    struct ledger_lease *lease = lease_at(region, place);

    admi_ledger_lease_unpin(ledger, region, lease);
    lease->state = LEDGER_CLOSED;
    admi_heap_set(&region->lease_heap, place, admi_ledger_later(lease->expires_ns, lease->ttl_ns));
    closed_append(region, place);
    if (lease->attempt != 0)
        admi_ledger_attempt_due(ledger, lease->attempt);
}

void admi_ledger_lease_free(struct ledger *ledger, struct ledger_region *region, uint32_t place)
{
    struct ledger_lease *lease = lease_at(region, place);

    admi_ledger_lease_unpin(ledger, region, lease);
    if (lease->state == LEDGER_CLOSED)
        closed_remove(region, place);
    if (lease->attempt != 0)
        attempt_at(ledger, lease->attempt)->lease =
            0; /* when it is due does not change: this lease lives no more */
    admi_heap_remove(&region->lease_heap, place);
    admi_table_remove(&region->lease_table, id_hash(lease->id), place);
    lease->id = (struct adm_id){ 0, 0 };
    lease->state = 0;
}

void admi_ledger_lease_renew(struct ledger *ledger, struct ledger_region *region, uint32_t place)
{
    struct ledger_lease *lease = lease_at(region, place);

    lease->expires_ns = admi_ledger_later(ledger->now_ns, lease->ttl_ns);
    admi_heap_set(&region->lease_heap, place, lease->expires_ns);
    if (lease->attempt != 0)
        admi_ledger_attempt_due(ledger, lease->attempt);
}

void admi_ledger_shadow_end(struct ledger *ledger, struct adm_id id)
{
    struct ledger_region *region = &ledger->regions[LEDGER_SHADOW];
    uint32_t place = admi_ledger_lease_find(region, id);

    if (place == 0)
        return;
    (void)admi_ledger_lease_stop_holding(ledger, region, lease_at(region, place));
    admi_ledger_lease_free(ledger, region,
                           place); /* nobody asks about a shadow hold, so nothing has to answer */
}

/* ---- expiry ---- */

static void expire_enforced(struct ledger *ledger)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    uint64_t due;

    for (uint32_t at = admi_heap_first(&region->lease_heap, &due); at != 0 && due <= ledger->now_ns;
         at = admi_heap_first(&region->lease_heap, &due)) {
        struct ledger_lease *lease = lease_at(region, at);

        if (lease->state != LEDGER_LIVE) {
            admi_ledger_lease_free(ledger, region, at);
            continue;
        }
        (void)admi_ledger_lease_stop_holding(ledger, region, lease);
        lease->state = LEDGER_LATE;
        ledger->expired++;
        if (due == UINT64_MAX) /* the end of time comes only once */
            admi_ledger_lease_free(ledger, region, at);
        else
            admi_heap_set(&region->lease_heap, at,
                          admi_ledger_later(lease->expires_ns, lease->ttl_ns));
    }
}

void admi_ledger_expire(struct ledger *ledger)
{
    struct ledger_region *shadow = &ledger->regions[LEDGER_SHADOW];
    uint64_t due;
    uint32_t at;

    expire_enforced(ledger);
    while ((at = admi_heap_first(&shadow->lease_heap, &due)) != 0 && due <= ledger->now_ns) {
        (void)admi_ledger_lease_stop_holding(ledger, shadow, lease_at(shadow, at));
        admi_ledger_lease_free(ledger, shadow, at);
    }
    while ((at = admi_heap_first(&ledger->attempt_heap, &due)) != 0 && due <= ledger->now_ns)
        attempt_free(ledger, at);
}
