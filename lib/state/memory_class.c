/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes as takes see them. A class has two versions of its numbers, each in force from one value
 * of the guard on. Who publishes writes into the version that is not in force, and only after the
 * guard has left the value under which anybody could still read it: so a reader who finds the guard
 * unchanged afterwards has read one version, whole.
 */
#include "state/memory.h"

#include "base/wide.h"

#define DAY_NS (UINT64_C(86400) * 1000000000u)

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

/* The version in force under a guard; NULL: none. */
static const struct memory_version *version_under(const struct memory_class *class_, uint64_t guard)
{
    uint64_t first = load(&class_->versions[0].from), second = load(&class_->versions[1].from);
    bool is_first = first <= guard && (second > guard || first > second);

    if (is_first)
        return &class_->versions[0];
    return second <= guard ? &class_->versions[1] : NULL;
}

bool admi_memory_class_read(const struct memory_run *run, uint64_t place,
                            struct memory_numbers *out)
{
    const struct memory_version *version;
    uint64_t meta, family_owner;

    if (place == 0 || place > run->region->class_places)
        return false;
    version = version_under(admi_memory_class_at(run->region, place), run->txn.guarded);
    if (version == NULL)
        return false;
    meta = load(&version->meta);
    family_owner = load(&version->family_owner);
    out->kind = (uint32_t)(meta & 0xff);
    out->flags = meta >> 8 & 0xff;
    out->grid = (out->flags & MEMORY_META_GRID) != 0;
    out->id = (uint32_t)(meta >> 32);
    out->owner = (uint32_t)family_owner;
    out->family = (uint32_t)(family_owner >> 32);
    out->group = load(&version->group);
    out->max_partitions = load(&version->max_partitions);
    out->replicas = load(&version->replicas);
    if (out->kind != ADM_KIND_BUCKET)
        return out->family != 0;
    out->odometer.shift = (uint32_t)(meta >> 16 & 0xff);
    out->odometer.t0_ns = load(&version->t0_ns);
    out->odometer.v0 = (int64_t)load(&version->v0);
    out->odometer.a = load(&version->a);
    out->odometer.b = load(&version->b);
    out->odometer.capacity = load(&version->capacity);
    out->odometer.floor = (int64_t)load(&version->floor);
    out->odometer.refill = load(&version->refill);
    out->reciprocal = load(&version->reciprocal);
    out->odometer.per_ns = out->odometer.b;
    out->odometer.reserved0 = 0;
    return out->family != 0;
}

uint64_t admi_memory_class_before(const struct memory_run *run, uint64_t place,
                                  struct adm_odometer *out)
{
    const struct memory_class *class_ = admi_memory_class_at(run->region, place);

    *out = (struct adm_odometer){ .t0_ns = load(&class_->moved_t0_ns),
                                  .v0 = (int64_t)load(&class_->moved_v0),
                                  .a = load(&class_->moved_a),
                                  .b = load(&class_->moved_b),
                                  .capacity = load(&class_->moved_capacity),
                                  .floor = (int64_t)load(&class_->moved_floor),
                                  .shift = (uint32_t)load(&class_->moved_shift) };
    return load(&class_->moved_ns);
}

uint64_t admi_memory_owner_sequence(const struct memory_run *run, uint32_t owner)
{
    const struct memory_region *region = run->region;
    uint64_t first = load(&region->sequences_from[0]), second = load(&region->sequences_from[1]);
    uint32_t at =
        first <= run->txn.guarded && (second > run->txn.guarded || first > second) ? 0 : 1;

    return owner < ADMI_OWNERS_MAX ? load(&region->sequences[at][owner]) : 0;
}

bool admi_memory_sequence_is_current(const struct memory_run *run, uint64_t sequence)
{
    for (uint32_t i = 0; i < ADMI_OWNERS_MAX && sequence != 0; i++) {
        if (admi_memory_owner_sequence(run, i) == sequence)
            return true;
    }
    return false;
}

/* The product of two words of 64 bits. */
static admi_u128 product(uint64_t a, uint64_t b)
{
    return (admi_u128)a * b;
}

/* floor(waited * a / b), without a division: the estimate is right or one too small, because
 * reciprocal / 2^64 is less than a / b by less than 2^-64. */
static uint64_t dripped(const struct memory_numbers *numbers, uint64_t waited)
{
    const struct adm_odometer *odometer = &numbers->odometer;
    uint64_t estimate;

    if (numbers->reciprocal == 0)
        return odometer->a == 0 ? 0 : waited;
    estimate = (uint64_t)(product(waited, numbers->reciprocal) >> 64);
    return estimate + (product(estimate + 1, odometer->b) <= product(waited, odometer->a));
}

struct memory_moment admi_memory_moment(const struct memory_run *run,
                                        const struct memory_numbers *numbers)
{
    const struct adm_odometer *odometer = &numbers->odometer;
    uint64_t more = run->now_ns > odometer->t0_ns ? dripped(numbers, run->now_ns - odometer->t0_ns)
                                                  : 0; /* an earlier time mints nothing (K4) */
    struct memory_moment moment;

    moment.reading = more >= (uint64_t)(MEMORY_READING_MAX - odometer->v0)
                         ? MEMORY_READING_MAX
                         : odometer->v0 + (int64_t)more;
    moment.full = moment.reading - (int64_t)(odometer->capacity << odometer->shift);
    moment.least = admi_memory_larger(moment.full, odometer->floor);
    return moment;
}

/* ---- replica scopes ---- */

bool admi_memory_class_is_named(const struct memory_class *class_, const struct admi_key *name)
{
    for (uint32_t i = 0; i < 64; i++) {
        if ((uint8_t)(load(&class_->name[i / 8]) >> i % 8 * 8) != name->bytes[i])
            return false;
    }
    return true;
}

bool admi_memory_class_is_scope(const struct memory_run *run, uint64_t place)
{
    return load(&admi_memory_class_at(run->region, place)->base) != 0;
}

uint32_t admi_memory_scope_find(const struct memory_run *run, uint32_t base, struct adm_bytes scope)
{
    const struct memory_region *region = run->region;
    const _Atomic uint64_t *heads = admi_array(region, region->scopes_at);
    struct admi_key name;
    uint64_t at;

    admi_key_make(&name, scope, region->key_secrets);
    at =
        load(&heads[admi_key_hash(&name, base, region->registry.hash_secret) & region->scope_mask]);
    /* A chain that changes under us may lead in circles; then the guard has changed, too. */
    for (uint64_t n = 0; at != 0 && at <= region->class_places && n <= region->class_places; n++) {
        const struct memory_class *class_ = admi_memory_class_at(region, at);

        if (load(&class_->base) == base && admi_memory_class_is_named(class_, &name))
            return (uint32_t)at;
        at = load(&class_->next);
    }
    return 0;
}

/* ---- quotas ---- */

uint64_t admi_memory_quota_value(uint64_t window, uint64_t used)
{
    if (used > ADMI_QUOTA_MAX)
        used = ADMI_QUOTA_MAX;
    return (window << MEMORY_QUOTA_USED_BITS | used) & ADMI_TXN_VALUE_MAX;
}

/* When the window of this number begins and ends. Windows are at least 28 days apart from their
 * number times the mean month, or exact: so one guess is near enough to look from. */
static void window_bounds(uint32_t window, uint64_t index, uint64_t *begin_ns, uint64_t *end_ns)
{
    uint64_t wall_ns =
        window == ADM_WINDOW_DAY ? index * DAY_NS : index * 30 * DAY_NS + index / 12 * 5 * DAY_NS;

    while (adm_window_index(window, wall_ns, begin_ns, end_ns) < index && *end_ns > wall_ns)
        wall_ns = *end_ns;
    while (adm_window_index(window, wall_ns, begin_ns, end_ns) > index && *begin_ns > 0)
        wall_ns = *begin_ns - 1;
}

struct memory_quota admi_memory_quota(const struct memory_run *run, uint32_t window, uint64_t value)
{
    uint64_t at = value >> MEMORY_QUOTA_USED_BITS, used = value & ADMI_QUOTA_MAX;
    struct memory_quota quota = { 0 };
    uint64_t begin_ns, end_ns;

    quota.window = adm_window_index(window, run->wall_ns, &begin_ns, &end_ns);
    quota.empty_at_ns = end_ns;
    if (used == 0 || at < quota.window)
        return quota;
    quota.used = used;
    if (at == quota.window)
        return quota;
    /* The clock lags behind a window that has begun: by a little, or it was set back. Then what is
     * used counts on in the window that it shows now, and from the next charge on only there. */
    window_bounds(window, at, &begin_ns, &end_ns);
    quota.empty_at_ns = end_ns;
    if (begin_ns - run->wall_ns <= run->max_skew_ns)
        quota.window = at;
    return quota;
}

/* ---- as new ---- */

/* The level on the grid on which the value is. */
static bool bucket_is_idle(const struct memory_run *run, uint64_t place, uint32_t tag,
                           uint64_t value)
{
    struct memory_numbers numbers;
    int64_t empty = admi_memory_bucket(value);

    if (!admi_memory_class_read(run, place, &numbers) || (numbers.flags & MEMORY_META_NUMBERS) == 0)
        return value == 0;
    if (((tag & MEMORY_TAG_GRID) != 0) != (numbers.grid != 0) && value != 0) {
        struct adm_odometer before;
        uint64_t moved_ns = admi_memory_class_before(run, place, &before);

        empty = adm_bucket_rescale(&before, &numbers.odometer, moved_ns, empty);
    }
    return empty <= admi_memory_moment(run, &numbers).least;
}

bool admi_memory_is_idle(void *self, uint32_t tag, uint64_t value)
{
    const struct memory_run *run = self;
    uint64_t of = load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag)));
    uint64_t window;

    if (of == 0 || (of & MEMORY_ID_DEAD) != 0)
        return true;
    if (MEMORY_ID_CLASS(of) != 0)
        return bucket_is_idle(run, MEMORY_ID_CLASS(of), tag, value);
    if (value == 0)
        return true;
    window = load(&admi_memory_family_at(run->region, MEMORY_ID_FAMILY(of))->window);
    return window != 0 && admi_memory_quota(run, (uint32_t)window, value).used == 0;
}

bool admi_memory_is_lasting(void *self, uint32_t tag)
{
    const struct memory_run *run = self;
    uint64_t of = load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag)));

    return of != 0 && (of & MEMORY_ID_DEAD) == 0 && MEMORY_ID_CLASS(of) == 0 &&
           load(&admi_memory_family_at(run->region, MEMORY_ID_FAMILY(of))->window) != 0;
}

_Atomic uint64_t *admi_memory_records_of(void *self, uint32_t tag)
{
    const struct memory_run *run = self;
    uint64_t of = load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag)));

    return of != 0 ? &admi_memory_family_at(run->region, MEMORY_ID_FAMILY(of))->records : NULL;
}
