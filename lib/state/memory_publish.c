/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Class sets and replica scopes. The registry keeps them, one thread at a time: who has the claim.
 * What takes see of it are versions, which come into force together when the guard moves. So
 * nobody who takes ever waits for who publishes; only those wait who want to publish themselves.
 */
#include <sched.h>

#include "base/wide.h"
#include "state/memory.h"

#define CLAIM_TRIES 20000u

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

/* ---- the claim ---- */

static bool claim(struct memory_run *run)
{
    if (!admi_memory_claim(run))
        return false;
    for (uint32_t tries = 0; tries < CLAIM_TRIES; tries++) {
        uint64_t nobody = 0;

        if (atomic_compare_exchange_strong_explicit(&run->region->claim, &nobody, 1,
                                                    memory_order_acq_rel, memory_order_acquire)) {
            admi_memory_begin(run);
            run->region->surveyed = false;
            ADMI_TXN_AT(publish_claimed);
            return true;
        }
        (void)sched_yield();
    }
    return false;
}

static void unclaim(struct memory_run *run)
{
    store(&run->region->claim, 0);
}

/* ---- ids ---- */

/* There are twice as many as there are classes and families, and the dead are buried at the end of
 * every operation: so one is free. */
static uint32_t id_make(struct memory_region *region, uint64_t of)
{
    do
        region->id_next = region->id_next + 1 < region->id_count ? region->id_next + 1 : 1;
    while (load(admi_memory_id_at(region, region->id_next)) != 0);
    store(admi_memory_id_at(region, region->id_next), of);
    return (uint32_t)region->id_next;
}

static void id_kill(struct memory_region *region, uint32_t *id)
{
    _Atomic uint64_t *of = admi_memory_id_at(region, *id);

    if (*id == 0)
        return;
    store(of, load(of) | MEMORY_ID_DEAD);
    ((uint32_t *)admi_array(region, region->dead_at))[region->dead_count++] = *id;
    *id = 0;
}

/* ---- which classes and families are needed ---- */

static void mark_needed(struct memory_region *region, uint32_t id)
{
    uint64_t of = load(admi_memory_id_at(region, id));

    if (of == 0 || (of & MEMORY_ID_DEAD) != 0)
        return;
    if (MEMORY_ID_CLASS(of) != 0)
        admi_memory_class_at(region, MEMORY_ID_CLASS(of))->needed = region->survey;
    else
        admi_memory_family_at(region, MEMORY_ID_FAMILY(of))->needed = region->survey;
}

static void survey_lines(struct memory_run *run, struct memory_lines *lines)
{
    uint64_t high = load(&lines->fresh);

    for (uint64_t i = 0; i < high; i++) {
        struct memory_line *line = admi_memory_line(lines, i);

        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++) {
            uint32_t tag = admi_memory_tag(admi_memory_read(&run->txn, &line->tags[v / 2]), v);

            if (tag != MEMORY_TAG_NONE &&
                !admi_memory_is_idle(run, tag, admi_memory_read(&run->txn, &line->values[v])))
                mark_needed(run->region, MEMORY_TAG_ID(tag));
        }
    }
}

static void survey_leases(struct memory_run *run, struct memory_leases *leases)
{
    for (uint64_t i = 0; i < leases->count; i++) {
        struct memory_holding holding;
        uint64_t state;

        do {
            state = admi_memory_read(&run->txn, &admi_memory_lease_at(leases, i)->state);
            holding.item_count = 0;
        } while ((MEMORY_STATE_OF(state) == MEMORY_LEASE_LIVE ||
                  MEMORY_STATE_OF(state) == MEMORY_LEASE_LATE) &&
                 !admi_memory_lease_read(run, leases, i, state, &holding));
        for (uint32_t n = 0; n < holding.item_count; n++)
            mark_needed(run->region, holding.items[n].id);
    }
}

/* Once for an operation. What is in force may be charged while we look, but only what is not in
 * force is ever forgotten: that can only become more like new, for all that may still charge it are
 * leases, and these are looked at, too. */
static void survey(struct memory_run *run)
{
    struct memory_region *region = run->region;

    if (region->surveyed)
        return;
    region->surveyed = true;
    region->survey++;
    for (uint32_t i = 0; i < MEMORY_SPACES; i++) {
        survey_lines(run, &region->spaces[i].lines);
        survey_leases(run, &region->spaces[i].leases);
    }
}

/* ---- what the registry asks and tells ---- */

static bool class_is_as_new(void *self, uint32_t place)
{
    struct memory_run *run = self;

    survey(run);
    return admi_memory_class_at(run->region, place)->needed != run->region->survey;
}

static void class_forget(void *self, uint32_t place)
{
    struct memory_run *run = self;

    id_kill(run->region, &admi_memory_class_at(run->region, place)->id);
}

static bool family_forget(void *self, uint32_t place)
{
    struct memory_run *run = self;
    struct memory_family *family = admi_memory_family_at(run->region, place);

    survey(run);
    if (family->needed == run->region->survey)
        return false;
    id_kill(run->region, &family->id);
    return true;
}

static void family_made(void *self, uint32_t place)
{
    struct memory_run *run = self;
    struct memory_family *family = admi_memory_family_at(run->region, place);

    store(&family->window, 0);
    family->needed = 0;
    family->id = id_make(run->region, MEMORY_ID_OF(place, 0));
}

static void class_rescale(void *self, uint32_t place, const struct adm_odometer *before)
{
    struct memory_run *run = self;
    struct memory_class *class_ = admi_memory_class_at(run->region, place);

    store(&class_->moved_ns, run->now_ns);
    store(&class_->moved_t0_ns, before->t0_ns);
    store(&class_->moved_v0, (uint64_t)before->v0);
    store(&class_->moved_a, before->a);
    store(&class_->moved_b, before->b);
    store(&class_->moved_capacity, before->capacity);
    store(&class_->moved_floor, (uint64_t)before->floor);
    store(&class_->moved_shift, before->shift);
    class_->grid ^= 1;
    run->region->moved = true;
}

static void class_changed(void *self, uint32_t place)
{
    struct memory_run *run = self;
    struct memory_region *region = run->region;
    struct memory_class *class_ = admi_memory_class_at(region, place);

    if (class_->dirty != 0)
        return;
    class_->dirty = 1;
    ((uint32_t *)admi_array(region, region->dirty_at))[region->dirty_count++] = place;
}

static void family_changed(void *self, uint32_t place)
{
    (void)self; /* what is known of its room is known under one value of the guard */
    (void)place;
}

static struct admi_registry_hooks hooks_of(struct memory_run *run)
{
    return (struct admi_registry_hooks){ .self = run,
                                         .class_is_as_new = class_is_as_new,
                                         .class_forget = class_forget,
                                         .family_forget = family_forget,
                                         .class_rescale = class_rescale,
                                         .class_changed = class_changed,
                                         .family_changed = family_changed,
                                         .family_made = family_made };
}

/* ---- replica scopes, where takes find them ---- */

static _Atomic uint64_t *scope_head(struct memory_region *region, const struct admi_key *name,
                                    uint64_t base)
{
    _Atomic uint64_t *heads = admi_array(region, region->scopes_at);

    return &heads[admi_key_hash(name, base, region->registry.hash_secret) & region->scope_mask];
}

static void unlink_scope(struct memory_region *region, uint64_t place)
{
    struct memory_class *class_ = admi_memory_class_at(region, place);
    _Atomic uint64_t *link;
    struct admi_key name;

    for (uint32_t i = 0; i < 64; i++)
        name.bytes[i] = (uint8_t)(load(&class_->name[i / 8]) >> i % 8 * 8);
    link = scope_head(region, &name, load(&class_->base));
    while (load(link) != place)
        link = &admi_memory_class_at(region, load(link))->next;
    store(link, load(&class_->next));
    store(&class_->base, 0);
}

static void link_scope(struct memory_region *region, uint64_t place, const struct admi_key *name,
                       uint64_t base)
{
    struct memory_class *class_ = admi_memory_class_at(region, place);
    _Atomic uint64_t *head = scope_head(region, name, base);

    for (uint32_t i = 0; i < 8; i++) {
        uint64_t part = 0;

        for (uint32_t b = 0; b < 8; b++)
            part |= (uint64_t)name->bytes[8 * i + b] << 8 * b;
        store(&class_->name[i], part);
    }
    store(&class_->base, base);
    store(&class_->next, load(head));
    store(head, place);
}

/* ---- publishing ---- */

static void write_version(struct memory_run *run, uint64_t place, struct memory_version *version)
{
    struct memory_region *region = run->region;
    struct memory_class *hot = admi_memory_class_at(region, place);
    const struct admi_registry_class *class_ = admi_registry_class_at(&region->registry, place);
    const struct admi_registry_class *base = class_;
    const struct admi_registry_family *family;
    const struct adm_odometer *odometer = &class_->odometer;
    uint64_t flags = 0;

    if (class_->family == 0) {
        store(&version->family_owner, 0);
        return;
    }
    if (class_->base != 0)
        base = admi_registry_class_at(&region->registry, class_->base);
    family = admi_registry_family_at(&region->registry, class_->family);
    if (hot->id == 0 && family->kind == ADM_KIND_BUCKET)
        hot->id = id_make(region, MEMORY_ID_OF(class_->family, place));
    flags |= base->in_set ? MEMORY_META_IN_SET : 0;
    flags |= family->region == MEMORY_SHADOW ? MEMORY_META_SHADOW : 0;
    flags |= class_->base == 0 && class_->per_replica ? MEMORY_META_PER_REPLICA : 0;
    flags |= class_->has_odometer ? MEMORY_META_NUMBERS : 0;
    flags |= hot->grid != 0 ? MEMORY_META_GRID : 0;
    store(&version->meta, (uint64_t)(family->kind == ADM_KIND_BUCKET
                                         ? hot->id
                                         : admi_memory_family_at(region, class_->family)->id)
                                  << 32 |
                              (uint64_t)odometer->shift << 16 | flags << 8 | family->kind);
    store(&version->family_owner, (uint64_t)class_->family << 32 | family->owner);
    /* The group was a hint; a family without one is a group of its own. */
    store(&version->group, family->group != 0 ? family->group : class_->family);
    store(&version->max_partitions, family->max_partitions);
    store(&version->replicas, class_->replicas);
    store(&version->t0_ns, odometer->t0_ns);
    store(&version->v0, (uint64_t)odometer->v0);
    store(&version->a, odometer->a);
    store(&version->b, odometer->b);
    store(&version->capacity, odometer->capacity);
    store(&version->floor, (uint64_t)odometer->floor);
    store(&version->refill, odometer->refill);
    store(&version->reciprocal,
          odometer->a < odometer->b ? (uint64_t)(((admi_u128)odometer->a << 64) / odometer->b) : 0);
    store(&admi_memory_family_at(region, class_->family)->limited, family->max_partitions != 0);
}

static void write_class(struct memory_run *run, uint64_t place, uint64_t from)
{
    struct memory_region *region = run->region;
    struct memory_class *hot = admi_memory_class_at(region, place);
    const struct admi_registry_class *class_ = admi_registry_class_at(&region->registry, place);
    uint64_t base = class_->family != 0 ? class_->base : 0;
    /* The older one: nobody can read that any more, for the guard is past it. */
    uint32_t older = load(&hot->versions[0].from) <= load(&hot->versions[1].from) ? 0 : 1;
    bool linked = load(&hot->base) != 0;

    if (linked && (base != load(&hot->base) || !admi_memory_class_is_named(hot, &class_->name))) {
        unlink_scope(region, place);
        linked = false;
    }
    if (!linked && base != 0)
        link_scope(region, place, &class_->name, base);
    write_version(run, place, &hot->versions[older]);
    store(&hot->versions[older].from, from);
    hot->dirty = 0;
}

/* All that has changed is in force from here on, at one moment. */
static void publish(struct memory_run *run)
{
    struct memory_region *region = run->region;
    const uint32_t *dirty = admi_array(region, region->dirty_at);
    uint32_t older = load(&region->sequences_from[0]) <= load(&region->sequences_from[1]) ? 0 : 1;
    uint64_t from = run->txn.guarded + 2;

    for (uint64_t i = 0; i < region->dirty_count; i++)
        write_class(run, dirty[i], from);
    region->dirty_count = 0;
    for (uint32_t i = 0; i < ADMI_OWNERS_MAX; i++)
        store(&region->sequences[older][i], region->registry.owners[i].sequence);
    store(&region->sequences_from[older], from);
    store(&region->class_count, region->registry.class_table.used);
    ADMI_TXN_AT(versions_written);
    (void)admi_txn_change(&run->txn, run->txn.guarded);
    ADMI_TXN_AT(guard_moved);
    admi_memory_begin(run);
}

/* ---- tidying up ---- */

static void tidy(struct memory_run *run)
{
    struct memory_region *region = run->region;
    const uint32_t *dead = admi_array(region, region->dead_at);
    const struct memory_idle idle = admi_memory_idle(run);

    if (region->dead_count == 0 && !region->moved)
        return;
    for (uint32_t i = 0; i < MEMORY_SPACES; i++) {
        struct memory_lines *lines = &region->spaces[i].lines;
        uint64_t high = load(&lines->fresh);

        for (uint64_t at = 0; at < high; at++)
            (void)admi_memory_tidy_line(run, lines, at, 0, &idle);
    }
    /* Nobody makes a value with a dead tag: the guard is past every set that had it. */
    for (uint64_t i = 0; i < region->dead_count; i++)
        store(admi_memory_id_at(region, dead[i]), 0);
    region->dead_count = 0;
    region->moved = false;
}

/* ---- the operations ---- */

adm_status admi_memory_put_classes(struct memory_run *run, struct adm_class_set *set)
{
    struct admi_registry *registry = &run->region->registry;
    const struct admi_registry_hooks hooks = hooks_of(run);
    adm_status status;

    if (!claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    status = admi_registry_put(registry, &hooks, set, run->now_ns);
    publish(run);
    if (registry->class_table.used > registry->classes_max) {
        run->region->surveyed = false; /* what was in force until now may have been charged since */
        admi_registry_reclaim(registry, &hooks, run->now_ns);
        publish(run);
    }
    tidy(run);
    unclaim(run);
    return status;
}

adm_status admi_memory_scope(struct memory_run *run, uint32_t base, struct adm_bytes scope,
                             uint64_t replicas)
{
    struct admi_registry *registry = &run->region->registry;
    const struct admi_registry_hooks hooks = hooks_of(run);
    const struct admi_registry_class *class_;
    adm_status status = ADM_OK;
    uint32_t place;

    if (!claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    class_ = admi_registry_class_at(registry, base);
    if (class_->family != 0 && class_->base == 0 && class_->in_set) {
        if (scope.length > 0)
            status =
                admi_registry_scope(registry, &hooks, base, scope, replicas, run->now_ns, &place);
        else
            admi_registry_unscoped(registry, &hooks, base, run->now_ns);
        if (run->region->dirty_count > 0)
            publish(run);
        tidy(run);
    }
    unclaim(run);
    return status;
}

uint64_t admi_memory_reclaim_classes(struct memory_run *run)
{
    struct admi_registry *registry = &run->region->registry;
    const struct admi_registry_hooks hooks = hooks_of(run);
    uint64_t before, after;

    if (!claim(run))
        return 0;
    before = (uint64_t)registry->class_table.used + registry->family_table.used;
    admi_registry_reclaim(registry, &hooks, run->now_ns);
    after = (uint64_t)registry->class_table.used + registry->family_table.used;
    if (run->region->dirty_count > 0)
        publish(run);
    tidy(run);
    unclaim(run);
    return before - after;
}
