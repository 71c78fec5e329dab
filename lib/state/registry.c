/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a registry: find, make, forget. */
#include "state/registry_record.h"

#include "state/odometer.h"

#define REGIONS 2u

void admi_registry_init(struct admi_registry *registry, uint64_t classes_max, uint64_t spare,
                        uint64_t families_max, uint64_t *end)
{
    const uint64_t own = (uint64_t)((uintptr_t)&registry->family_table - (uintptr_t)registry);
    const uint64_t own_classes =
        (uint64_t)((uintptr_t)&registry->class_table - (uintptr_t)registry);
    uint64_t at;

    *registry = (struct admi_registry){ .classes_max = classes_max, .reclaimed_ns = UINT64_MAX };
    /* A table counts its arrays from itself. Place 0 is nobody's, and reading it is harmless. */
    at = *end - own;
    admi_table_init(&registry->family_table, families_max, &at);
    *end = own + at;
    registry->families_at =
        admi_array_reserve(end, families_max + 1, sizeof(struct admi_registry_family));
    at = *end - own_classes;
    admi_table_init(&registry->class_table, classes_max + spare, &at);
    *end = own_classes + at;
    registry->classes_at =
        admi_array_reserve(end, classes_max + spare + 1, sizeof(struct admi_registry_class));
}

uint64_t admi_registry_families_max(uint64_t classes_max, uint64_t partitions_max)
{
    return 2 * classes_max + REGIONS * partitions_max;
}

/* ---- owners ---- */

static uint32_t owner_find(const struct admi_registry *registry, const struct admi_key *name)
{
    for (uint32_t i = 0; i < ADMI_OWNERS_MAX; i++) {
        if (registry->owners[i].sequence != 0 && admi_key_equal(&registry->owners[i].name, name))
            return i;
    }
    return ADMI_OWNERS_MAX;
}

uint32_t admi_registry_owner(struct admi_registry *registry, struct adm_bytes name)
{
    struct admi_key key;
    uint32_t at;

    admi_key_make(&key, name, registry->key_secrets);
    at = owner_find(registry, &key);
    if (at < ADMI_OWNERS_MAX)
        return at;
    for (at = 0; at < ADMI_OWNERS_MAX; at++) {
        if (registry->owners[at].records == 0)
            break;
    }
    if (at < ADMI_OWNERS_MAX)
        registry->owners[at] = (struct admi_registry_owner){ .name = key };
    return at;
}

bool admi_registry_sequence_is_current(const struct admi_registry *registry, uint64_t sequence)
{
    for (uint32_t i = 0; i < ADMI_OWNERS_MAX; i++) {
        if (registry->owners[i].sequence == sequence && sequence != 0)
            return true;
    }
    return false;
}

/* ---- families ---- */

static uint64_t family_hash(const struct admi_registry *registry, const struct admi_key *rule,
                            uint32_t owner, uint32_t region, uint32_t kind)
{
    return admi_key_hash(rule, ((uint64_t)owner * REGIONS + region) * 4 + kind,
                         registry->hash_secret);
}

uint32_t admi_registry_family(const struct admi_registry_use *use, const struct adm_class *class_,
                              uint32_t owner)
{
    struct admi_registry *registry = use->registry;
    uint32_t region = class_->flags & ADM_CLASS_F_SHADOW ? ADMI_REGISTRY_SHADOW : 0;
    struct admi_key rule;
    uint64_t hash;
    uint32_t at;

    admi_key_make(&rule, class_->rule, registry->key_secrets);
    hash = family_hash(registry, &rule, owner, region, class_->kind);
    for (at = admi_table_first(&registry->family_table, hash); at != 0;
         at = admi_table_next(&registry->family_table, at)) {
        const struct admi_registry_family *family = admi_registry_family_at(registry, at);

        if (family->hash == hash && family->owner == owner && family->region == region &&
            family->kind == class_->kind && admi_key_equal(&family->rule, &rule))
            return at;
    }
    at = admi_table_add(&registry->family_table, hash);
    if (at == 0)
        return 0;
    *admi_registry_family_at(registry, at) = (struct admi_registry_family){ .rule = rule,
                                                                            .hash = hash,
                                                                            .group = class_->group,
                                                                            .owner = owner,
                                                                            .region = region,
                                                                            .kind = class_->kind };
    registry->owners[owner].records++;
    if (use->hooks->family_made != NULL)
        use->hooks->family_made(use->hooks->self, at);
    return at;
}

/* ---- classes ---- */

static uint64_t class_hash(const struct admi_registry *registry, const struct admi_key *name,
                           uint32_t family, uint32_t base)
{
    return admi_key_hash(name, (uint64_t)family << 32 | base, registry->hash_secret);
}

uint32_t admi_registry_class_find(const struct admi_registry *registry, const struct admi_key *name,
                                  uint32_t family, uint32_t base)
{
    uint64_t hash = class_hash(registry, name, family, base);
    uint32_t at = admi_table_first(&registry->class_table, hash);

    for (; at != 0; at = admi_table_next(&registry->class_table, at)) {
        const struct admi_registry_class *class_ = admi_registry_class_at(registry, at);

        if (class_->hash == hash && class_->family == family && class_->base == base &&
            admi_key_equal(&class_->name, name))
            return at;
    }
    return 0;
}

uint32_t admi_registry_class_make(const struct admi_registry_use *use, const struct admi_key *name,
                                  uint32_t family, uint32_t base)
{
    struct admi_registry *registry = use->registry;
    uint64_t hash = class_hash(registry, name, family, base);
    uint32_t at = admi_table_add(&registry->class_table, hash);
    struct admi_registry_class *class_ = admi_registry_class_at(registry, at);

    if (at == 0)
        return 0;
    *class_ =
        (struct admi_registry_class){ .name = *name, .hash = hash, .family = family, .base = base };
    admi_registry_family_at(registry, family)->classes++;
    registry->owners[admi_registry_family_at(registry, family)->owner].records++;
    if (base != 0) {
        class_->next_scope = admi_registry_class_at(registry, base)->first_scope;
        admi_registry_class_at(registry, base)->first_scope = at;
    }
    if (use->hooks->class_made != NULL)
        use->hooks->class_made(use->hooks->self, at);
    admi_registry_changed(use, at);
    return at;
}

/* ---- forgetting ---- */

void admi_registry_class_free(const struct admi_registry_use *use, uint32_t place)
{
    struct admi_registry *registry = use->registry;
    struct admi_registry_class *class_ = admi_registry_class_at(registry, place);
    struct admi_registry_family *family = admi_registry_family_at(registry, class_->family);

    use->hooks->class_forget(use->hooks->self, place);
    if (class_->base != 0) {
        uint32_t *link = &admi_registry_class_at(registry, class_->base)->first_scope;

        while (*link != place)
            link = &admi_registry_class_at(registry, *link)->next_scope;
        *link = class_->next_scope;
    }
    family->classes--;
    registry->owners[family->owner].records--;
    admi_table_remove(&registry->class_table, class_->hash, place);
    class_->family = 0; /* how a scan knows a free place */
    admi_registry_changed(use, place);
}

bool admi_registry_makes_no_difference(const struct admi_registry_use *use, uint32_t place)
{
    const struct admi_registry_class *class_ = admi_registry_class_at(use->registry, place);

    return use->hooks->class_is_as_new(use->hooks->self, place) &&
           (!class_->has_odometer ||
            admi_odometer_floor_is_spent(&class_->odometer, use->now_ns) != 0);
}

static bool class_reclaim(const struct admi_registry_use *use, uint32_t place)
{
    const struct admi_registry_class *class_ = admi_registry_class_at(use->registry, place);

    if (class_->family == 0)
        return false;
    if (class_->base != 0 ? admi_registry_class_at(use->registry, class_->base)->in_set
                          : class_->in_set)
        return false; /* a scope of a class in force is not new any more, even when all its buckets
                         are full */
    if (class_->first_scope != 0 || !admi_registry_makes_no_difference(use, place))
        return false;
    admi_registry_class_free(use, place);
    return true;
}

static bool family_reclaim(const struct admi_registry_use *use, uint32_t place)
{
    struct admi_registry *registry = use->registry;
    struct admi_registry_family *family = admi_registry_family_at(registry, place);

    if (family->kind == 0 || family->classes > 0 ||
        !use->hooks->family_forget(use->hooks->self, place))
        return false;
    admi_table_remove(&registry->family_table, family->hash, place);
    registry->owners[family->owner].records--;
    family->kind = 0; /* how a scan knows a free place */
    return true;
}

/* Scopes before their bases: two rounds. */
void admi_registry_reclaim_all(const struct admi_registry_use *use, uint64_t mark)
{
    struct admi_registry *registry = use->registry;

    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t at = 1; at <= registry->class_table.high; at++) {
            const struct admi_registry_class *class_ = admi_registry_class_at(registry, at);
            uint32_t base = class_->base != 0 ? class_->base : at;

            if (class_->family != 0 && admi_registry_class_at(registry, base)->mark != mark)
                (void)class_reclaim(use, at);
        }
    }
    for (uint32_t at = 1; at <= registry->family_table.high; at++)
        (void)family_reclaim(use, at);
}

bool admi_registry_class_reclaim(struct admi_registry *registry,
                                 const struct admi_registry_hooks *hooks, uint32_t place,
                                 uint64_t now_ns)
{
    return class_reclaim(&(struct admi_registry_use){ registry, hooks, now_ns }, place);
}

bool admi_registry_family_reclaim(struct admi_registry *registry,
                                  const struct admi_registry_hooks *hooks, uint32_t place)
{
    return family_reclaim(&(struct admi_registry_use){ registry, hooks, 0 }, place);
}

void admi_registry_reclaim(struct admi_registry *registry, const struct admi_registry_hooks *hooks,
                           uint64_t now_ns)
{
    admi_registry_reclaim_all(&(struct admi_registry_use){ registry, hooks, now_ns },
                              registry->last_sequence);
}
