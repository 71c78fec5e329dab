/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of classes and replica scopes: what is in force from now on, and with which numbers. */
#include "state/registry_record.h"

#include "state/odometer.h"

/* ---- numbers ---- */

static uint64_t scaled(uint64_t number, uint64_t replicas, uint64_t most)
{
    return number != 0 && replicas > most / number ? most : number * replicas;
}

/* A class gets (or keeps) the numbers of its base for so many replicas, from now on. */
static void set_numbers(const struct admi_registry_use *use, uint32_t place, uint64_t replicas)
{
    struct admi_registry_class *class_ = admi_registry_class_at(use->registry, place);
    const struct admi_registry_class *base =
        class_->base != 0 ? admi_registry_class_at(use->registry, class_->base) : class_;
    uint64_t capacity = scaled(base->capacity, replicas, ADM_MAX_AMOUNT);
    uint64_t refill = scaled(base->refill, replicas, base->per_ns);
    uint32_t shift = admi_odometer_shift(base->capacity, base->refill, base->per_ns,
                                         base->per_replica ? ADMI_REPLICAS_MAX : 1);
    uint32_t finest = admi_odometer_shift(capacity, refill, base->per_ns, 1);

    if (shift > finest) /* more replicas than the grid was chosen for */
        shift = finest;
    class_->replicas = replicas;
    admi_registry_changed(use, place);
    if (!class_->has_odometer) {
        admi_odometer_init_on(&class_->odometer, use->now_ns, capacity, refill, base->per_ns,
                              shift);
        class_->has_odometer = true;
        return;
    }
    const struct adm_odometer before = class_->odometer;

    if (admi_odometer_change_on(&class_->odometer, use->now_ns, capacity, refill, base->per_ns,
                                shift))
        use->hooks->class_rescale(use->hooks->self, place, &before);
    if (before.t0_ns != class_->odometer.t0_ns || before.a != class_->odometer.a ||
        before.b != class_->odometer.b || before.capacity != class_->odometer.capacity ||
        before.shift != class_->odometer.shift)
        use->hooks->family_changed(use->hooks->self, class_->family);
}

/* ---- a set of classes ---- */

static bool class_is_legal(const struct adm_class *class_)
{
    if (class_->kind != ADM_KIND_BUCKET)
        return class_->kind == ADM_KIND_CONCURRENCY || class_->kind == ADM_KIND_QUOTA;
    return class_->capacity <= ADM_MAX_AMOUNT && class_->per_ns > 0 &&
           class_->refill <= class_->per_ns;
}

/* Find or make the families (there is always room for them, see admi_registry_families_max()), and
 * mark the classes that are there. How many are not. */
static uint64_t survey(const struct admi_registry_use *use, const struct adm_class_set *set,
                       uint32_t owner, uint64_t mark)
{
    uint64_t missing = 0;

    for (uint64_t i = 0; i < set->class_count; i++) {
        uint32_t family = admi_registry_family(use, &set->classes[i], owner);
        struct admi_key origin;
        uint32_t at;

        admi_key_make(&origin, set->classes[i].origin, use->registry->key_secrets);
        at = admi_registry_class_find(use->registry, &origin, family, 0);
        if (at == 0)
            missing++;
        else
            admi_registry_class_at(use->registry, at)->mark = mark;
    }
    return missing;
}

/* Will this class be gone when the owner's set is replaced and everything is reclaimed? */
static bool will_go(const struct admi_registry_use *use, uint32_t place, uint32_t owner,
                    uint64_t mark)
{
    const struct admi_registry *registry = use->registry;
    const struct admi_registry_class *class_ = admi_registry_class_at(registry, place);
    const struct admi_registry_class *base =
        class_->base != 0 ? admi_registry_class_at(registry, class_->base) : class_;

    if (class_->family == 0 || base->mark == mark ||
        (base->in_set && admi_registry_family_at(registry, base->family)->owner != owner) ||
        !admi_registry_makes_no_difference(use, place))
        return false;
    for (uint32_t scope = class_->first_scope; scope != 0;
         scope = admi_registry_class_at(registry, scope)->next_scope) {
        if (!admi_registry_makes_no_difference(use, scope))
            return false;
    }
    return true;
}

/* What the owner's new set does not name is not in force any more. */
static void retire(const struct admi_registry_use *use, uint32_t owner, uint64_t mark)
{
    struct admi_registry *registry = use->registry;

    for (uint32_t at = 1; at <= registry->class_table.high; at++) {
        struct admi_registry_class *class_ = admi_registry_class_at(registry, at);

        if (class_->family == 0 || class_->base != 0 || class_->mark == mark || !class_->in_set ||
            admi_registry_family_at(registry, class_->family)->owner != owner)
            continue;
        class_->in_set = false;
        admi_registry_changed(use, at);
    }
}

/* Room for the set, also where classes that it replaces are now. Until it is sure that there will
 * be enough, nothing that anybody could see has changed; then the old set is retired, and the put
 * cannot fail any more. With spare places there may be more classes than the bound: those that were
 * charged when their set had just been replaced. They count until they go. */
static bool make_room(const struct admi_registry_use *use, const struct adm_class_set *set,
                      uint32_t owner, uint64_t mark)
{
    struct admi_registry *registry = use->registry;
    const struct admi_table *table = &registry->class_table;
    bool has_spare = table->max > registry->classes_max;
    uint64_t missing = survey(use, set, owner, mark);
    uint64_t needed;
    bool fits;

    if (has_spare && table->used + missing > table->max)
        admi_registry_reclaim_all(use, mark); /* no set names these: nobody can tell */
    needed = table->used + missing;
    if (missing == 0 || needed <= registry->classes_max) {
        retire(use, owner, mark);
        return true;
    }
    fits = !has_spare || needed <= table->max; /* nothing of the old set goes before the owner says
                                                  so */
    for (uint32_t at = 1; at <= table->high && needed > registry->classes_max; at++)
        needed -= will_go(use, at, owner, mark);
    fits = fits && needed <= registry->classes_max;
    if (fits)
        retire(use, owner, mark);
    if (!fits || !has_spare)
        admi_registry_reclaim_all(use, mark); /* on failure: the families that were made for it */
    return fits;
}

static uint64_t listed_replicas(const struct admi_registry *registry,
                                const struct adm_class_set *set, const struct admi_key *scope)
{
    for (uint64_t i = 0; i < set->scope_count; i++) {
        struct admi_key key;

        admi_key_make(&key, set->scopes[i].scope, registry->key_secrets);
        if (admi_key_equal(&key, scope))
            return set->scopes[i].replicas > 0 ? set->scopes[i].replicas : 1;
    }
    return 1;
}

/* A class that was gone is as if it had never been, once all its buckets are full again: whether
 * its record was reclaimed meanwhile must not be seen. */
static void begin_anew(const struct admi_registry_use *use, uint32_t place)
{
    struct admi_registry_class *base = admi_registry_class_at(use->registry, place);

    for (uint32_t at = base->first_scope, next; at != 0; at = next) {
        next = admi_registry_class_at(use->registry, at)->next_scope;
        if (admi_registry_makes_no_difference(use, at))
            admi_registry_class_free(use, at);
    }
    if (base->has_odometer && admi_registry_makes_no_difference(use, place)) {
        use->hooks->class_forget(use->hooks->self, place);
        base->has_odometer = false;
    }
}

/* Cannot fail: there is room. */
static void put_class(const struct admi_registry_use *use, const struct adm_class_set *set,
                      struct adm_class *class_, uint32_t owner, uint64_t mark)
{
    struct admi_registry *registry = use->registry;
    uint32_t family_place = admi_registry_family(use, class_, owner);
    struct admi_registry_family *family = admi_registry_family_at(registry, family_place);
    struct admi_registry_class *base;
    struct admi_key origin;
    uint32_t at;

    admi_key_make(&origin, class_->origin, registry->key_secrets);
    at = admi_registry_class_find(registry, &origin, family_place, 0);
    if (at == 0)
        at = admi_registry_class_make(use, &origin, family_place, 0);
    if (family->max_partitions != class_->max_partitions) {
        family->max_partitions = class_->max_partitions;
        use->hooks->family_changed(use->hooks->self, family_place);
    }
    base = admi_registry_class_at(registry, at);
    if (!base->in_set && class_->kind == ADM_KIND_BUCKET)
        begin_anew(use, at);
    base->mark = mark;
    base->in_set = true;
    base->per_replica = (class_->flags & ADM_CLASS_F_PER_REPLICA) != 0;
    base->capacity = class_->capacity;
    base->refill = class_->refill;
    base->per_ns = class_->per_ns;
    class_->handle = at;
    admi_registry_changed(use, at);
    if (class_->kind != ADM_KIND_BUCKET)
        return;
    if (!base->per_replica || base->has_odometer)
        set_numbers(use, at, 1);
    for (uint32_t scope = base->first_scope; scope != 0;
         scope = admi_registry_class_at(registry, scope)->next_scope)
        set_numbers(
            use, scope,
            base->per_replica
                ? listed_replicas(registry, set, &admi_registry_class_at(registry, scope)->name)
                : 1);
}

adm_status admi_registry_put(struct admi_registry *registry,
                             const struct admi_registry_hooks *hooks, struct adm_class_set *set,
                             uint64_t now_ns)
{
    const struct admi_registry_use use = { registry, hooks, now_ns };
    uint64_t mark =
        registry->last_sequence + 1; /* never used again, also when this put is refused */
    uint32_t owner;
    bool room;

    for (uint64_t i = 0; i < set->class_count; i++) {
        if (!class_is_legal(&set->classes[i]))
            return ADM_E_BACKEND_RESULT;
    }
    if (set->class_count > registry->classes_max)
        return ADM_E_BACKEND_FULL;
    registry->last_sequence = mark;
    registry->reclaimed_ns = UINT64_MAX;
    owner = admi_registry_owner(registry, set->owner);
    if (owner == ADMI_OWNERS_MAX)
        return ADM_E_BACKEND_FULL;
    registry->owners[owner].records++; /* it is not free while this goes on */
    room = make_room(&use, set, owner, mark);
    registry->owners[owner].records--;
    if (!room)
        return ADM_E_BACKEND_FULL;
    for (uint64_t i = 0; i < set->class_count; i++)
        put_class(&use, set, &set->classes[i], owner, mark);
    registry->owners[owner].sequence = mark;
    set->sequence = mark;
    return ADM_OK;
}

/* ---- replica scopes ---- */

static uint32_t scope_make(const struct admi_registry_use *use, const struct admi_key *name,
                           uint32_t base)
{
    const struct admi_registry *registry = use->registry;

    return registry->class_table.used < registry->classes_max
               ? admi_registry_class_make(use, name, admi_registry_class_at(registry, base)->family,
                                          base)
               : 0;
}

adm_status admi_registry_scope(struct admi_registry *registry,
                               const struct admi_registry_hooks *hooks, uint32_t base,
                               struct adm_bytes scope, uint64_t replicas, uint64_t now_ns,
                               uint32_t *out_class)
{
    const struct admi_registry_use use = { registry, hooks, now_ns };
    struct admi_key name;
    uint32_t at;

    admi_key_make(&name, scope, registry->key_secrets);
    at = admi_registry_class_find(registry, &name, admi_registry_class_at(registry, base)->family,
                                  base);
    if (at == 0)
        at = scope_make(&use, &name, base);
    if (at == 0 && registry->reclaimed_ns != now_ns) {
        registry->reclaimed_ns = now_ns; /* at most once per moment: refusals must be cheap */
        admi_registry_reclaim_all(&use, registry->last_sequence);
        at = scope_make(&use, &name, base);
    }
    if (at == 0)
        return ADM_E_BACKEND_FULL;
    if (!admi_registry_class_at(registry, at)->has_odometer ||
        admi_registry_class_at(registry, at)->replicas != replicas)
        set_numbers(&use, at, replicas);
    *out_class = at;
    return ADM_OK;
}

void admi_registry_unscoped(struct admi_registry *registry, const struct admi_registry_hooks *hooks,
                            uint32_t base, uint64_t now_ns)
{
    const struct admi_registry_use use = { registry, hooks, now_ns };

    if (!admi_registry_class_at(registry, base)->has_odometer)
        set_numbers(&use, base, 1);
}
