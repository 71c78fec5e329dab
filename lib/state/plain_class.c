/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners, families and classes of the plain backend. A class that no set names any more keeps its
 * record until it makes no difference: all its buckets are as new, and no raise holds them down.
 */
#include "state/plain.h"

/* ---- look-up ---- */

static uint32_t owner_find(const struct plain *plain, const struct admi_key *name)
{
    for (uint32_t i = 0; i < PLAIN_OWNERS_MAX; i++) {
        if (plain->owners[i].sequence != 0 && admi_key_equal(&plain->owners[i].name, name))
            return i;
    }
    return PLAIN_OWNERS_MAX;
}

static uint32_t owner_find_or_make(struct plain *plain, struct adm_bytes name)
{
    struct admi_key key;
    uint32_t at;

    admi_key_make(&key, name, plain->key_secrets);
    at = owner_find(plain, &key);
    if (at < PLAIN_OWNERS_MAX)
        return at;
    for (at = 0; at < PLAIN_OWNERS_MAX; at++) {
        if (plain->owners[at].records == 0)
            break;
    }
    if (at < PLAIN_OWNERS_MAX)
        plain->owners[at] = (struct plain_owner){ .name = key };
    return at;
}

static uint64_t family_hash(const struct plain *plain, const struct admi_key *rule, uint32_t owner,
                            uint32_t region, uint32_t kind)
{
    return admi_key_hash(rule, ((uint64_t)owner * PLAIN_REGIONS + region) * 4 + kind,
                         plain->hash_secret);
}

static uint32_t family_find_or_make(struct plain *plain, const struct adm_class *class_,
                                    uint32_t owner)
{
    uint32_t region = class_->flags & ADM_CLASS_F_SHADOW ? PLAIN_SHADOW : PLAIN_ENFORCED;
    struct admi_key rule;
    uint64_t hash;
    uint32_t at;

    admi_key_make(&rule, class_->rule, plain->key_secrets);
    hash = family_hash(plain, &rule, owner, region, class_->kind);
    for (at = admi_table_first(&plain->family_table, hash); at != 0;
         at = plain->family_table.next[at]) {
        const struct plain_family *family = &plain->families[at];

        if (family->hash == hash && family->owner == owner && family->region == region &&
            family->kind == class_->kind && admi_key_equal(&family->rule, &rule))
            return at;
    }
    at = admi_table_add(&plain->family_table, hash);
    if (at == 0)
        return 0;
    plain->families[at] = (struct plain_family){
        .rule = rule, .hash = hash, .owner = owner, .region = region, .kind = class_->kind
    };
    plain->owners[owner].records++;
    return at;
}

static uint64_t class_hash(const struct plain *plain, const struct admi_key *name, uint32_t family,
                           uint32_t base)
{
    return admi_key_hash(name, (uint64_t)family << 32 | base, plain->hash_secret);
}

/* A base by its origin, or (base != 0) the class of a scope by the scope's name. */
static uint32_t class_find(const struct plain *plain, const struct admi_key *name, uint32_t family,
                           uint32_t base)
{
    uint64_t hash = class_hash(plain, name, family, base);
    uint32_t at = admi_table_first(&plain->class_table, hash);

    for (; at != 0; at = plain->class_table.next[at]) {
        const struct plain_class *class_ = &plain->classes[at];

        if (class_->hash == hash && class_->family == family && class_->base == base &&
            admi_key_equal(&class_->name, name))
            return at;
    }
    return 0;
}

static uint32_t class_make(struct plain *plain, const struct admi_key *name, uint32_t family,
                           uint32_t base)
{
    uint64_t hash = class_hash(plain, name, family, base);
    uint32_t at = admi_table_add(&plain->class_table, hash);

    if (at == 0)
        return 0;
    plain->classes[at] =
        (struct plain_class){ .name = *name, .hash = hash, .family = family, .base = base };
    plain->families[family].classes++;
    plain->owners[plain->families[family].owner].records++;
    if (base != 0) {
        plain->classes[at].next_scope = plain->classes[base].first_scope;
        plain->classes[base].first_scope = at;
    }
    return at;
}

/* ---- forgetting ---- */

static void class_free(struct plain *plain, uint32_t place)
{
    struct plain_class *class_ = &plain->classes[place];
    struct plain_family *family = admi_plain_family(plain, class_->family);

    if (class_->base != 0) {
        uint32_t *link = &plain->classes[class_->base].first_scope;

        while (*link != place)
            link = &plain->classes[*link].next_scope;
        *link = class_->next_scope;
    }
    family->classes--;
    plain->owners[family->owner].records--;
    admi_table_remove(&plain->class_table, class_->hash, place);
    class_->family = 0; /* how a scan knows a free place */
}

/* Are all its buckets as new, and free to go, and does no raise hold them down? */
static bool makes_no_difference(struct plain *plain, const struct plain_class *class_)
{
    struct plain_region *region =
        admi_plain_region_of(plain, admi_plain_family(plain, class_->family));

    for (uint32_t at = class_->first_partition; at != 0; at = region->partitions[at].class_next) {
        if (region->partitions[at].pins > 0 ||
            !admi_plain_partition_is_as_new(plain, &region->partitions[at]))
            return false;
    }
    return !class_->has_odometer || admi_odometer_floor_is_spent(&class_->odometer, plain->now_ns);
}

static void forget_partitions(struct plain *plain, const struct plain_class *class_)
{
    struct plain_region *region =
        admi_plain_region_of(plain, admi_plain_family(plain, class_->family));

    for (uint32_t at = class_->first_partition, next; at != 0; at = next) {
        next = region->partitions[at].class_next;
        (void)admi_plain_partition_reclaim(plain, region, at);
    }
}

bool admi_plain_class_reclaim(struct plain *plain, uint32_t place)
{
    const struct plain_class *class_ = &plain->classes[place];

    if (class_->family == 0)
        return false;
    if (class_->base != 0 ? plain->classes[class_->base].in_set : class_->in_set)
        return false; /* a scope of a class in force is not new any more, even when all its buckets
                         are full */
    if (class_->first_scope != 0 || !makes_no_difference(plain, class_))
        return false;
    forget_partitions(plain, class_);
    class_free(plain, place);
    return true;
}

bool admi_plain_family_reclaim(struct plain *plain, uint32_t place)
{
    struct plain_family *family = admi_plain_family(plain, place);
    struct plain_region *region = admi_plain_region_of(plain, family);

    if (family->kind == 0 || family->classes > 0)
        return false;
    for (uint32_t at = family->first_partition, next; at != 0; at = next) {
        next = region->partitions[at].family_next;
        if (!admi_plain_partition_reclaim(plain, region, at))
            return false;
    }
    admi_table_remove(&plain->family_table, family->hash, place);
    plain->owners[family->owner].records--;
    family->kind = 0; /* how a scan knows a free place */
    return true;
}

/* Everything that no set names and that makes no difference. Scopes before their bases: two rounds.
 * Not what a put that is under way is about to name again (mark). */
static void reclaim_all(struct plain *plain, uint64_t mark)
{
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t at = 1; at <= plain->class_table.high; at++) {
            const struct plain_class *class_ = &plain->classes[at];
            uint32_t base = class_->base != 0 ? class_->base : at;

            if (class_->family != 0 && plain->classes[base].mark != mark)
                (void)admi_plain_class_reclaim(plain, at);
        }
    }
    for (uint32_t at = 1; at <= plain->family_table.high; at++)
        (void)admi_plain_family_reclaim(plain, at);
}

/* ---- numbers ---- */

static uint64_t scaled(uint64_t number, uint64_t replicas, uint64_t most)
{
    return number != 0 && replicas > most / number ? most : number * replicas;
}

/* The words of a class move to its new grid. */
static void rescale(struct plain *plain, const struct plain_class *class_,
                    const struct adm_odometer *before)
{
    struct plain_region *region =
        admi_plain_region_of(plain, admi_plain_family(plain, class_->family));

    for (uint32_t at = class_->first_partition; at != 0; at = region->partitions[at].class_next) {
        struct plain_partition *partition = &region->partitions[at];

        partition->empty =
            adm_bucket_rescale(before, &class_->odometer, plain->now_ns, partition->empty);
    }
}

/* A class gets (or keeps) the numbers of its base for so many replicas, from now on. */
static void set_numbers(struct plain *plain, uint32_t place, uint64_t replicas)
{
    struct plain_class *class_ = &plain->classes[place];
    const struct plain_class *base = class_->base != 0 ? &plain->classes[class_->base] : class_;
    uint64_t capacity = scaled(base->capacity, replicas, ADM_MAX_AMOUNT);
    uint64_t refill = scaled(base->refill, replicas, base->per_ns);
    uint32_t shift = admi_odometer_shift(base->capacity, base->refill, base->per_ns,
                                         base->per_replica ? ADMI_REPLICAS_MAX : 1);
    uint32_t finest = admi_odometer_shift(capacity, refill, base->per_ns, 1);

    if (shift > finest) /* more replicas than the grid was chosen for */
        shift = finest;
    class_->replicas = replicas;
    if (!class_->has_odometer) {
        admi_odometer_init_on(&class_->odometer, plain->now_ns, capacity, refill, base->per_ns,
                              shift);
        class_->has_odometer = true;
        return;
    }
    const struct adm_odometer before = class_->odometer;

    if (admi_odometer_change_on(&class_->odometer, plain->now_ns, capacity, refill, base->per_ns,
                                shift))
        rescale(plain, class_, &before);
    if (before.t0_ns != class_->odometer.t0_ns || before.a != class_->odometer.a ||
        before.b != class_->odometer.b || before.capacity != class_->odometer.capacity ||
        before.shift != class_->odometer.shift)
        admi_plain_family_changed(plain, admi_plain_family(plain, class_->family));
}

/* ---- a set of classes ---- */

static bool class_is_legal(const struct adm_class *class_)
{
    if (class_->kind != ADM_KIND_BUCKET)
        return class_->kind == ADM_KIND_CONCURRENCY || class_->kind == ADM_KIND_QUOTA;
    return class_->capacity <= ADM_MAX_AMOUNT && class_->per_ns > 0 &&
           class_->refill <= class_->per_ns;
}

/* Find or make the families (there is always room for them, see admi_plain_families_max()), and
 * mark the classes that are there. How many are not. */
static uint64_t survey(struct plain *plain, const struct adm_class_set *set, uint32_t owner,
                       uint64_t mark)
{
    uint64_t missing = 0;

    for (uint64_t i = 0; i < set->class_count; i++) {
        uint32_t family = family_find_or_make(plain, &set->classes[i], owner);
        struct admi_key origin;
        uint32_t at;

        admi_key_make(&origin, set->classes[i].origin, plain->key_secrets);
        at = class_find(plain, &origin, family, 0);
        if (at == 0)
            missing++;
        else
            plain->classes[at].mark = mark;
    }
    return missing;
}

/* Will this class be gone when the owner's set is replaced and everything is reclaimed? */
static bool will_go(struct plain *plain, uint32_t place, uint32_t owner, uint64_t mark)
{
    const struct plain_class *class_ = &plain->classes[place];
    const struct plain_class *base = class_->base != 0 ? &plain->classes[class_->base] : class_;

    if (class_->family == 0 || base->mark == mark ||
        (base->in_set && admi_plain_family(plain, base->family)->owner != owner) ||
        !makes_no_difference(plain, class_))
        return false;
    for (uint32_t scope = class_->first_scope; scope != 0;
         scope = plain->classes[scope].next_scope) {
        if (!makes_no_difference(plain, &plain->classes[scope]))
            return false;
    }
    return true;
}

/* What the owner's new set does not name is not in force any more. */
static void retire(struct plain *plain, uint32_t owner, uint64_t mark)
{
    for (uint32_t at = 1; at <= plain->class_table.high; at++) {
        struct plain_class *class_ = &plain->classes[at];

        if (class_->family != 0 && class_->base == 0 && class_->mark != mark &&
            admi_plain_family(plain, class_->family)->owner == owner)
            class_->in_set = false;
    }
}

/* Room for the set, also where classes that it replaces are now. Until it is sure that there will
 * be enough, nothing that anybody could see has changed; then the old set is retired, and the put
 * cannot fail any more. */
static bool make_room(struct plain *plain, const struct adm_class_set *set, uint32_t owner,
                      uint64_t mark)
{
    const struct admi_table *table = &plain->class_table;
    uint64_t missing = survey(plain, set, owner, mark);
    uint64_t room = table->max - table->used;

    if (missing <= room) {
        retire(plain, owner, mark);
        return true;
    }
    for (uint32_t at = 1; at <= table->high && room < missing; at++)
        room += will_go(plain, at, owner, mark);
    if (missing <= room)
        retire(plain, owner, mark);
    reclaim_all(plain, mark); /* on failure: the families that were made for it */
    return missing <= room;
}

static uint64_t listed_replicas(const struct plain *plain, const struct adm_class_set *set,
                                const struct admi_key *scope)
{
    for (uint64_t i = 0; i < set->scope_count; i++) {
        struct admi_key key;

        admi_key_make(&key, set->scopes[i].scope, plain->key_secrets);
        if (admi_key_equal(&key, scope))
            return set->scopes[i].replicas > 0 ? set->scopes[i].replicas : 1;
    }
    return 1;
}

/* A class that was gone is as if it had never been, once all its buckets are full again: whether
 * its record was reclaimed meanwhile must not be seen. */
static void begin_anew(struct plain *plain, uint32_t place)
{
    struct plain_class *base = &plain->classes[place];

    for (uint32_t at = base->first_scope, next; at != 0; at = next) {
        next = plain->classes[at].next_scope;
        if (!makes_no_difference(plain, &plain->classes[at]))
            continue;
        forget_partitions(plain, &plain->classes[at]);
        class_free(plain, at);
    }
    if (makes_no_difference(plain, base)) {
        forget_partitions(plain, base);
        base->has_odometer = false;
    }
}

/* Cannot fail: there is room. */
static void put_class(struct plain *plain, const struct adm_class_set *set,
                      struct adm_class *class_, uint32_t owner, uint64_t mark)
{
    uint32_t family_place = family_find_or_make(plain, class_, owner);
    struct plain_family *family = admi_plain_family(plain, family_place);
    struct admi_key origin;
    struct plain_class *base;
    uint32_t at;

    admi_key_make(&origin, class_->origin, plain->key_secrets);
    at = class_find(plain, &origin, family_place, 0);
    if (at == 0)
        at = class_make(plain, &origin, family_place, 0);
    if (family->max_partitions != class_->max_partitions) {
        family->max_partitions = class_->max_partitions;
        admi_plain_family_changed(plain, family);
    }
    base = &plain->classes[at];
    if (!base->in_set && class_->kind == ADM_KIND_BUCKET)
        begin_anew(plain, at);
    base->mark = mark;
    base->in_set = true;
    base->per_replica = (class_->flags & ADM_CLASS_F_PER_REPLICA) != 0;
    base->capacity = class_->capacity;
    base->refill = class_->refill;
    base->per_ns = class_->per_ns;
    class_->handle = at;
    if (class_->kind != ADM_KIND_BUCKET)
        return;
    if (!base->per_replica || base->has_odometer)
        set_numbers(plain, at, 1);
    for (uint32_t scope = base->first_scope; scope != 0; scope = plain->classes[scope].next_scope)
        set_numbers(plain, scope,
                    base->per_replica ? listed_replicas(plain, set, &plain->classes[scope].name)
                                      : 1);
}

/* A family has a class record, or one that is about to be made, or a partition that differs from
 * new. */
uint64_t admi_plain_families_max(uint64_t classes_max, uint64_t partitions_max)
{
    return 2 * classes_max + PLAIN_REGIONS * partitions_max;
}

adm_status admi_plain_put_classes(struct plain *plain, struct adm_class_set *set)
{
    uint64_t mark = plain->last_sequence + 1; /* never used again, also when this put is refused */
    uint32_t owner;

    for (uint64_t i = 0; i < set->class_count; i++) {
        if (!class_is_legal(&set->classes[i]))
            return ADM_E_BACKEND_RESULT;
    }
    if (set->class_count > plain->class_table.max)
        return ADM_E_BACKEND_FULL;
    plain->last_sequence = mark;
    plain->reclaimed_ns = UINT64_MAX;
    owner = owner_find_or_make(plain, set->owner);
    if (owner == PLAIN_OWNERS_MAX)
        return ADM_E_BACKEND_FULL;
    plain->owners[owner].records++; /* it is not free while this goes on */
    bool room = make_room(plain, set, owner, mark);

    plain->owners[owner].records--;
    if (!room)
        return ADM_E_BACKEND_FULL;
    for (uint64_t i = 0; i < set->class_count; i++)
        put_class(plain, set, &set->classes[i], owner, mark);
    plain->owners[owner].sequence = mark;
    set->sequence = mark;
    return ADM_OK;
}

/* ---- the class of a term ---- */

bool admi_plain_sequence_is_current(const struct plain *plain, uint64_t sequence)
{
    for (uint32_t i = 0; i < PLAIN_OWNERS_MAX; i++) {
        if (plain->owners[i].sequence == sequence && sequence != 0)
            return true;
    }
    return false;
}

static adm_status scope_class(struct plain *plain, uint32_t base, const struct adm_term *term,
                              uint32_t *out_class)
{
    uint64_t replicas = term->replicas > 0 ? term->replicas : 1;
    struct admi_key scope;
    uint32_t at;

    admi_key_make(&scope, term->scope, plain->key_secrets);
    at = class_find(plain, &scope, plain->classes[base].family, base);
    if (at == 0)
        at = class_make(plain, &scope, plain->classes[base].family, base);
    if (at == 0 && plain->reclaimed_ns != plain->now_ns) {
        plain->reclaimed_ns = plain->now_ns; /* at most once per moment: refusals must be cheap */
        reclaim_all(plain, plain->last_sequence);
        at = class_make(plain, &scope, plain->classes[base].family, base);
    }
    if (at == 0)
        return ADM_E_BACKEND_FULL;
    if (!plain->classes[at].has_odometer || plain->classes[at].replicas != replicas)
        set_numbers(plain, at, replicas);
    *out_class = at;
    return ADM_OK;
}

adm_status admi_plain_term_class(struct plain *plain, const struct adm_term *term,
                                 uint64_t sequence, uint32_t *out_class)
{
    const struct plain_class *class_;
    const struct plain_family *family;
    bool shadow = (term->flags & ADM_TERM_F_SHADOW) != 0;

    if (term->class_handle == 0 || term->class_handle > plain->class_table.high)
        return ADM_E_BACKEND_STALE;
    class_ = &plain->classes[term->class_handle];
    if (class_->family == 0 || class_->base != 0 || !class_->in_set)
        return ADM_E_BACKEND_STALE;
    family = admi_plain_family(plain, class_->family);
    if (plain->owners[family->owner].sequence != sequence || family->kind != term->kind ||
        (family->region == PLAIN_SHADOW) != shadow)
        return ADM_E_BACKEND_STALE;
    *out_class = (uint32_t)term->class_handle;
    if (family->kind == ADM_KIND_BUCKET && class_->per_replica && term->scope.length > 0)
        return scope_class(plain, *out_class, term, out_class);
    /* Without a scope: the class itself, the same as when it did not scale. */
    if (family->kind == ADM_KIND_BUCKET && !class_->has_odometer)
        set_numbers(plain, *out_class, 1);
    return ADM_OK;
}
