/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of a ledger. A partition that is as new (a full bucket, nothing held, nothing
 * used in the current window) is the same as none, so it may be forgotten at any time, and nobody
 * can tell: unless it is pinned.
 */
#include "state/ledger.h"

#include "base/memory.h"

/* ---- quotas: which window, and what of it ---- */

struct ledger_quota admi_ledger_quota(const struct ledger *ledger, uint32_t family,
                                      const struct ledger_partition *partition)
{
    struct ledger_quota quota = { 0 };

    quota.window = adm_window_index(family_state_at(ledger, family)->window, ledger->wall_ns,
                                    &quota.begin_ns, &quota.end_ns);
    quota.empty_at_ns = quota.end_ns;
    if (partition == NULL || partition->units == 0 || partition->window < quota.window)
        return quota;
    quota.used = partition->units;
    quota.empty_at_ns = partition->window_end_ns;
    if (partition->window > quota.window &&
        partition->window_begin_ns - ledger->wall_ns <= ledger->max_skew_ns) {
        quota.window =
            partition->window; /* the clock lags a little behind a window that has begun */
        quota.begin_ns = partition->window_begin_ns;
        quota.end_ns = partition->window_end_ns;
    }
    /* Set back by more than that: what is used counts on in the window that it shows now, and from
     * the next charge on only there. Looking moves nothing. */
    return quota;
}

/* ---- the table ---- */

uint64_t admi_ledger_partition_hash(const struct ledger *ledger, const struct admi_key *key,
                                    uint32_t family, uint32_t class_place)
{
    return admi_key_hash(key, (uint64_t)family << 32 | class_place, ledger->hash_secret);
}

uint32_t admi_ledger_partition_find(struct ledger *ledger, const struct admi_key *key,
                                    uint64_t hash, uint32_t family, uint32_t class_place)
{
    struct ledger_region *region = admi_ledger_region_of(ledger, family);
    uint32_t at = admi_table_first(&region->partition_table, hash);

    for (; at != 0; at = admi_table_next(&region->partition_table, at)) {
        const struct ledger_partition *partition = partition_at(region, at);

        if (partition->hash == hash && partition->family == family &&
            partition->class_place == class_place && admi_key_equal(&partition->key, key))
            return at;
    }
    return 0;
}

uint32_t admi_ledger_partition_make(struct ledger *ledger, const struct admi_key *key,
                                    uint64_t hash, uint32_t family, uint32_t class_place)
{
    struct ledger_family *of = family_state_at(ledger, family);
    struct ledger_region *region = admi_ledger_region_of(ledger, family);
    uint32_t place = admi_table_add(&region->partition_table, hash);
    struct ledger_partition *partition = partition_at(region, place);

    if (place == 0)
        return 0;
    *partition = (struct ledger_partition){
        .key = *key, .hash = hash, .family = family, .class_place = class_place
    };
    partition->empty = ADM_BUCKET_FRESH;
    partition->family_next = of->first_partition;
    if (of->first_partition != 0)
        partition_at(region, of->first_partition)->family_previous = place;
    of->first_partition = place;
    of->partitions++;
    if (class_place != 0) {
        struct ledger_class *class_ = class_state_at(ledger, class_place);

        partition->class_next = class_->first_partition;
        if (class_->first_partition != 0)
            partition_at(region, class_->first_partition)->class_previous = place;
        class_->first_partition = place;
    }
    return place;
}

static void forget(struct ledger *ledger, struct ledger_region *region, uint32_t place)
{
    struct ledger_partition *partition = partition_at(region, place);
    struct ledger_family *family = family_state_at(ledger, partition->family);

    if (partition->family_previous != 0)
        partition_at(region, partition->family_previous)->family_next = partition->family_next;
    else
        family->first_partition = partition->family_next;
    if (partition->family_next != 0)
        partition_at(region, partition->family_next)->family_previous = partition->family_previous;
    family->partitions--;
    if (partition->class_place != 0) {
        struct ledger_class *class_ = class_state_at(ledger, partition->class_place);

        if (partition->class_previous != 0)
            partition_at(region, partition->class_previous)->class_next = partition->class_next;
        else
            class_->first_partition = partition->class_next;
        if (partition->class_next != 0)
            partition_at(region, partition->class_next)->class_previous = partition->class_previous;
    }
    admi_table_remove(&region->partition_table, partition->hash, place);
    partition->family = 0; /* how a scan of the region knows a free place */
}

bool admi_ledger_partition_is_as_new(const struct ledger *ledger,
                                     const struct ledger_partition *partition)
{
    switch (family_at(ledger, partition->family)->kind) {
    case ADM_KIND_BUCKET:
        return admi_bucket_is_as_new(&class_at(ledger, partition->class_place)->odometer,
                                     ledger->now_ns, partition->empty);
    case ADM_KIND_QUOTA:
        return admi_ledger_quota(ledger, partition->family, partition).used == 0;
    default:
        return partition->units == 0;
    }
}

bool admi_ledger_partition_reclaim(struct ledger *ledger, struct ledger_region *region,
                                   uint32_t place)
{
    const struct ledger_partition *partition = partition_at(region, place);

    if (partition->pins > 0 || !admi_ledger_partition_is_as_new(ledger, partition))
        return false;
    forget(ledger, region, place);
    return true;
}

/* ---- room ---- */

static bool still_no_room(const struct ledger *ledger, const struct ledger_no_room *no_room)
{
    return no_room->known && ledger->now_ns < no_room->until_mono_ns &&
           ledger->wall_ns < no_room->until_wall_ns;
}

/* A live partition becomes as new by time alone: note when. True: it is now the first bucket to do
 * so. */
static bool note_due(const struct ledger *ledger, const struct ledger_partition *partition,
                     struct ledger_no_room *no_room)
{
    uint32_t kind = family_at(ledger, partition->family)->kind;

    if (kind == ADM_KIND_QUOTA) {
        uint64_t due = admi_ledger_quota(ledger, partition->family, partition).empty_at_ns;

        if (due < no_room->until_wall_ns)
            no_room->until_wall_ns = due;
    } else if (kind == ADM_KIND_BUCKET) {
        uint64_t due = admi_bucket_as_new_at(&class_at(ledger, partition->class_place)->odometer,
                                             ledger->now_ns, partition->empty);

        if (due < no_room->until_mono_ns) {
            no_room->until_mono_ns = due;
            return true;
        }
    }
    return false;
}

/* Scan the family: forget what can be forgotten, count what is live, find the first bucket to
 * become as new. */
static uint64_t count_live(struct ledger *ledger, uint32_t place)
{
    struct ledger_family *family = family_state_at(ledger, place);
    struct ledger_region *region = admi_ledger_region_of(ledger, place);
    uint64_t live = 0;

    family->no_room = (struct ledger_no_room){ true, false, UINT64_MAX, UINT64_MAX };
    family->first_room = 0;
    for (uint32_t at = family->first_partition, next; at != 0; at = next) {
        const struct ledger_partition *partition = partition_at(region, at);

        next = partition->family_next;
        if (admi_ledger_partition_reclaim(ledger, region, at) ||
            admi_ledger_partition_is_as_new(ledger, partition))
            continue;
        live++;
        if (note_due(ledger, partition, &family->no_room))
            family->first_room = at;
    }
    return live;
}

bool admi_ledger_family_has_room(struct ledger *ledger, uint32_t place, uint32_t except,
                                 uint64_t *passes_at_ns)
{
    const struct admi_registry_family *record = family_at(ledger, place);
    struct ledger_family *family = family_state_at(ledger, place);

    *passes_at_ns = UINT64_MAX;
    if (record->max_partitions == 0 || family->partitions - (except != 0) < record->max_partitions)
        return true;
    if (!still_no_room(ledger, &family->no_room)) {
        uint64_t live = count_live(ledger, place);

        if (live < record->max_partitions) {
            family->no_room.known = false;
            return true;
        }
        family->no_room.exact = record->kind == ADM_KIND_BUCKET && live == record->max_partitions;
    }
    if (family->no_room.exact)
        *passes_at_ns = family->no_room.until_mono_ns;
    return false;
}

bool admi_ledger_region_has_room(struct ledger *ledger, struct ledger_region *region, uint64_t more)
{
    const struct admi_table *table = &region->partition_table;

    if (table->max - table->used >= more)
        return true;
    if (still_no_room(ledger, &region->no_room))
        return false;
    region->no_room = (struct ledger_no_room){ true, false, UINT64_MAX, UINT64_MAX };
    for (uint32_t at = 1; at <= table->high; at++) {
        const struct ledger_partition *partition = partition_at(region, at);

        if (partition->family != 0 && !admi_ledger_partition_reclaim(ledger, region, at) &&
            partition->pins == 0)
            (void)note_due(ledger, partition, &region->no_room);
    }
    return table->max - table->used >= more;
}

void admi_ledger_family_changed(struct ledger *ledger, uint32_t family)
{
    family_state_at(ledger, family)->no_room.known = false;
    admi_ledger_region_of(ledger, family)->no_room.known = false;
}

/* ---- changes ---- */

/* The partition may be as new earlier than it was known to be, or became unpinned. */
static void loosened(struct ledger *ledger, struct ledger_region *region, uint32_t place)
{
    const struct ledger_partition *partition = partition_at(region, place);
    struct ledger_family *family = family_state_at(ledger, partition->family);

    if (!family->no_room.known && !region->no_room.known)
        return;
    if (admi_ledger_partition_is_as_new(ledger, partition)) {
        family->no_room.known = false;
        region->no_room.known = region->no_room.known && partition->pins > 0;
        return;
    }
    if (note_due(ledger, partition, &family->no_room))
        family->first_room = place;
    if (partition->pins == 0)
        (void)note_due(ledger, partition, &region->no_room);
}

void admi_ledger_partition_unpin(struct ledger *ledger, struct ledger_region *region,
                                 uint32_t place)
{
    if (--partition_at(region, place)->pins == 0)
        loosened(ledger, region, place);
}

void admi_ledger_bucket_charge(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                               uint64_t amount)
{
    struct ledger_partition *partition = partition_at(region, place);
    struct ledger_family *family = family_state_at(ledger, partition->family);
    const struct adm_odometer *odometer = &class_at(ledger, partition->class_place)->odometer;

    /* What was told to those who found no room stays exact: unless it was about this bucket, or
     * there is one more. */
    if (family->no_room.known &&
        (family->first_room == place || admi_ledger_partition_is_as_new(ledger, partition)))
        family->no_room.known = false;
    adm_bucket_charge(odometer, ledger->now_ns, &partition->empty, amount);
}

void admi_ledger_bucket_refund(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                               uint64_t amount)
{
    struct ledger_partition *partition = partition_at(region, place);

    adm_bucket_refund(&class_at(ledger, partition->class_place)->odometer, ledger->now_ns,
                      &partition->empty, amount);
    loosened(ledger, region, place);
}

/* No overflow: each lease holds at most 2 * 10^12 per partition, and there are at most 2^23 of
 * them. */
void admi_ledger_hold(struct ledger_region *region, uint32_t place, uint64_t amount)
{
    partition_at(region, place)->units += amount;
}

void admi_ledger_unhold(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                        uint64_t amount)
{
    partition_at(region, place)->units -= amount;
    loosened(ledger, region, place);
}

void admi_ledger_quota_set(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                           const struct ledger_quota *quota, uint64_t used)
{
    struct ledger_partition *partition = partition_at(region, place);

    partition->units = used < ADMI_QUOTA_MAX ? used : ADMI_QUOTA_MAX;
    partition->window = quota->window;
    partition->window_begin_ns = quota->begin_ns;
    partition->window_end_ns = quota->end_ns;
    loosened(ledger, region, place);
}
