/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of the plain backend. A partition that is as new (a full bucket, nothing held, nothing
 * used in the current window) is the same as none, so it may be forgotten at any time, and nobody
 * can tell: unless it is pinned.
 */
#include "state/plain.h"

#include "base/memory.h"

/* ---- quotas: which window, and what of it ---- */

struct plain_quota admi_plain_quota(const struct plain *plain, const struct plain_family *family,
                                    const struct plain_partition *partition)
{
    struct plain_quota quota = { 0 };

    quota.window = adm_window_index(family->window, plain->wall_ns, &quota.begin_ns, &quota.end_ns);
    quota.empty_at_ns = quota.end_ns;
    if (partition == NULL || partition->units == 0 || partition->window < quota.window)
        return quota;
    quota.used = partition->units;
    quota.empty_at_ns = partition->window_end_ns;
    if (partition->window > quota.window &&
        partition->window_begin_ns - plain->wall_ns <= plain->max_skew_ns) {
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

uint64_t admi_plain_partition_hash(const struct plain *plain, const struct admi_key *key,
                                   uint32_t family, uint32_t class_place)
{
    return admi_key_hash(key, (uint64_t)family << 32 | class_place, plain->hash_secret);
}

uint32_t admi_plain_partition_find(struct plain *plain, const struct admi_key *key, uint64_t hash,
                                   uint32_t family, uint32_t class_place)
{
    struct plain_region *region = admi_plain_region_of(plain, admi_plain_family(plain, family));
    uint32_t at = admi_table_first(&region->partition_table, hash);

    for (; at != 0; at = region->partition_table.next[at]) {
        const struct plain_partition *partition = &region->partitions[at];

        if (partition->hash == hash && partition->family == family &&
            partition->class_place == class_place && admi_key_equal(&partition->key, key))
            return at;
    }
    return 0;
}

uint32_t admi_plain_partition_make(struct plain *plain, const struct admi_key *key, uint64_t hash,
                                   uint32_t family, uint32_t class_place)
{
    struct plain_family *of = admi_plain_family(plain, family);
    struct plain_region *region = admi_plain_region_of(plain, of);
    uint32_t place = admi_table_add(&region->partition_table, hash);
    struct plain_partition *partition = &region->partitions[place];

    if (place == 0)
        return 0;
    *partition = (struct plain_partition){
        .key = *key, .hash = hash, .family = family, .class_place = class_place
    };
    partition->empty = ADM_BUCKET_FRESH;
    partition->family_next = of->first_partition;
    if (of->first_partition != 0)
        region->partitions[of->first_partition].family_previous = place;
    of->first_partition = place;
    of->partitions++;
    if (class_place != 0) {
        struct plain_class *class_ = &plain->classes[class_place];

        partition->class_next = class_->first_partition;
        if (class_->first_partition != 0)
            region->partitions[class_->first_partition].class_previous = place;
        class_->first_partition = place;
        class_->partitions++;
    }
    return place;
}

static void forget(struct plain *plain, struct plain_region *region, uint32_t place)
{
    struct plain_partition *partition = &region->partitions[place];
    struct plain_family *family = admi_plain_family(plain, partition->family);

    if (partition->family_previous != 0)
        region->partitions[partition->family_previous].family_next = partition->family_next;
    else
        family->first_partition = partition->family_next;
    if (partition->family_next != 0)
        region->partitions[partition->family_next].family_previous = partition->family_previous;
    family->partitions--;
    if (partition->class_place != 0) {
        struct plain_class *class_ = &plain->classes[partition->class_place];

        if (partition->class_previous != 0)
            region->partitions[partition->class_previous].class_next = partition->class_next;
        else
            class_->first_partition = partition->class_next;
        if (partition->class_next != 0)
            region->partitions[partition->class_next].class_previous = partition->class_previous;
        class_->partitions--;
    }
    admi_table_remove(&region->partition_table, partition->hash, place);
    partition->family = 0; /* how a scan of the region knows a free place */
}

bool admi_plain_partition_is_as_new(const struct plain *plain,
                                    const struct plain_partition *partition)
{
    const struct plain_family *family = &plain->families[partition->family];

    switch (family->kind) {
    case ADM_KIND_BUCKET:
        return admi_bucket_is_as_new(&plain->classes[partition->class_place].odometer,
                                     plain->now_ns, partition->empty);
    case ADM_KIND_QUOTA:
        return admi_plain_quota(plain, family, partition).used == 0;
    default:
        return partition->units == 0;
    }
}

bool admi_plain_partition_reclaim(struct plain *plain, struct plain_region *region, uint32_t place)
{
    const struct plain_partition *partition = &region->partitions[place];

    if (partition->pins > 0 || !admi_plain_partition_is_as_new(plain, partition))
        return false;
    forget(plain, region, place);
    return true;
}

/* ---- room ---- */

static bool still_no_room(const struct plain *plain, const struct plain_no_room *no_room)
{
    return no_room->known && plain->now_ns < no_room->until_mono_ns &&
           plain->wall_ns < no_room->until_wall_ns;
}

/* A live partition becomes as new by time alone: note when. True: it is now the first bucket to do
 * so. */
static bool note_due(const struct plain *plain, const struct plain_partition *partition,
                     struct plain_no_room *no_room)
{
    const struct plain_family *family = &plain->families[partition->family];

    if (family->kind == ADM_KIND_QUOTA) {
        uint64_t due = admi_plain_quota(plain, family, partition).empty_at_ns;

        if (due < no_room->until_wall_ns)
            no_room->until_wall_ns = due;
    } else if (family->kind == ADM_KIND_BUCKET) {
        uint64_t due = admi_bucket_as_new_at(&plain->classes[partition->class_place].odometer,
                                             plain->now_ns, partition->empty);

        if (due < no_room->until_mono_ns) {
            no_room->until_mono_ns = due;
            return true;
        }
    }
    return false;
}

/* Scan the family: forget what can be forgotten, count what is live, find the first bucket to
 * become as new. */
static uint64_t count_live(struct plain *plain, struct plain_family *family)
{
    struct plain_region *region = admi_plain_region_of(plain, family);
    uint64_t live = 0;

    family->no_room = (struct plain_no_room){ true, false, UINT64_MAX, UINT64_MAX };
    family->first_room = 0;
    for (uint32_t at = family->first_partition, next; at != 0; at = next) {
        const struct plain_partition *partition = &region->partitions[at];

        next = partition->family_next;
        if (admi_plain_partition_reclaim(plain, region, at) ||
            admi_plain_partition_is_as_new(plain, partition))
            continue;
        live++;
        if (note_due(plain, partition, &family->no_room))
            family->first_room = at;
    }
    return live;
}

bool admi_plain_family_has_room(struct plain *plain, uint32_t place, uint32_t except,
                                uint64_t *passes_at_ns)
{
    struct plain_family *family = admi_plain_family(plain, place);

    *passes_at_ns = UINT64_MAX;
    if (family->max_partitions == 0 || family->partitions - (except != 0) < family->max_partitions)
        return true;
    if (!still_no_room(plain, &family->no_room)) {
        uint64_t live = count_live(plain, family);

        if (live < family->max_partitions) {
            family->no_room.known = false;
            return true;
        }
        family->no_room.exact = family->kind == ADM_KIND_BUCKET && live == family->max_partitions;
    }
    if (family->no_room.exact)
        *passes_at_ns = family->no_room.until_mono_ns;
    return false;
}

bool admi_plain_region_has_room(struct plain *plain, struct plain_region *region, uint64_t more)
{
    const struct admi_table *table = &region->partition_table;

    if (table->max - table->used >= more)
        return true;
    if (still_no_room(plain, &region->no_room))
        return false;
    region->no_room = (struct plain_no_room){ true, false, UINT64_MAX, UINT64_MAX };
    for (uint32_t at = 1; at <= table->high; at++) {
        const struct plain_partition *partition = &region->partitions[at];

        if (partition->family != 0 && !admi_plain_partition_reclaim(plain, region, at) &&
            partition->pins == 0)
            (void)note_due(plain, partition, &region->no_room);
    }
    return table->max - table->used >= more;
}

void admi_plain_family_changed(struct plain *plain, struct plain_family *family)
{
    family->no_room.known = false;
    admi_plain_region_of(plain, family)->no_room.known = false;
}

/* ---- changes ---- */

/* The partition may be as new earlier than it was known to be, or became unpinned. */
static void loosened(struct plain *plain, struct plain_region *region, uint32_t place)
{
    const struct plain_partition *partition = &region->partitions[place];
    struct plain_family *family = admi_plain_family(plain, partition->family);

    if (!family->no_room.known && !region->no_room.known)
        return;
    if (admi_plain_partition_is_as_new(plain, partition)) {
        family->no_room.known = false;
        region->no_room.known = region->no_room.known && partition->pins > 0;
        return;
    }
    if (note_due(plain, partition, &family->no_room))
        family->first_room = place;
    if (partition->pins == 0)
        (void)note_due(plain, partition, &region->no_room);
}

void admi_plain_partition_unpin(struct plain *plain, struct plain_region *region, uint32_t place)
{
    if (--region->partitions[place].pins == 0)
        loosened(plain, region, place);
}

void admi_plain_bucket_charge(struct plain *plain, struct plain_region *region, uint32_t place,
                              uint64_t amount)
{
    struct plain_partition *partition = &region->partitions[place];
    struct plain_family *family = admi_plain_family(plain, partition->family);
    const struct adm_odometer *odometer = &plain->classes[partition->class_place].odometer;

    /* What was told to those who found no room stays exact: unless it was about this bucket, or
     * there is one more. */
    if (family->no_room.known &&
        (family->first_room == place || admi_plain_partition_is_as_new(plain, partition)))
        family->no_room.known = false;
    adm_bucket_charge(odometer, plain->now_ns, &partition->empty, amount);
}

void admi_plain_bucket_refund(struct plain *plain, struct plain_region *region, uint32_t place,
                              uint64_t amount)
{
    struct plain_partition *partition = &region->partitions[place];

    adm_bucket_refund(&plain->classes[partition->class_place].odometer, plain->now_ns,
                      &partition->empty, amount);
    loosened(plain, region, place);
}

/* No overflow: each lease holds at most 2 * 10^12 per partition, and there are at most 2^23 of
 * them. */
void admi_plain_hold(struct plain_region *region, uint32_t place, uint64_t amount)
{
    region->partitions[place].units += amount;
}

void admi_plain_unhold(struct plain *plain, struct plain_region *region, uint32_t place,
                       uint64_t amount)
{
    region->partitions[place].units -= amount;
    loosened(plain, region, place);
}

void admi_plain_quota_set(struct plain *plain, struct plain_region *region, uint32_t place,
                          const struct plain_quota *quota, uint64_t used)
{
    struct plain_partition *partition = &region->partitions[place];

    partition->units = used < ADMI_QUOTA_MAX ? used : ADMI_QUOTA_MAX;
    partition->window = quota->window;
    partition->window_begin_ns = quota->begin_ns;
    partition->window_end_ns = quota->end_ns;
    loosened(plain, region, place);
}
