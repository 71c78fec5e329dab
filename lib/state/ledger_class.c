/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owners, families and classes of a ledger. A class that no set names any more keeps its
 * record until it makes no difference: all its buckets are as new, and no raise holds them down.
 */
#include "state/ledger.h"

/* ---- look-up ---- */

static uint32_t owner_find(const struct ledger *ledger, const struct admi_key *name)
{
    for (uint32_t i = 0; i < LEDGER_OWNERS_MAX; i++) {
        if (ledger->owners[i].sequence != 0 && admi_key_equal(&ledger->owners[i].name, name))
            return i;
    }
    return LEDGER_OWNERS_MAX;
}

static uint32_t owner_find_or_make(struct ledger *ledger, struct adm_bytes name)
{
    struct admi_key key;
    uint32_t at;

    admi_key_make(&key, name, ledger->key_secrets);
    at = owner_find(ledger, &key);
    if (at < LEDGER_OWNERS_MAX)
        return at;
    for (at = 0; at < LEDGER_OWNERS_MAX; at++) {
        if (ledger->owners[at].records == 0)
            break;
    }
    if (at < LEDGER_OWNERS_MAX)
        ledger->owners[at] = (struct ledger_owner){ .name = key };
    return at;
}

static uint64_t family_hash(const struct ledger *ledger, const struct admi_key *rule,
                            uint32_t owner, uint32_t region, uint32_t kind)
{
    return admi_key_hash(rule, ((uint64_t)owner * LEDGER_REGIONS + region) * 4 + kind,
                         ledger->hash_secret);
}

static uint32_t family_find_or_make(struct ledger *ledger, const struct adm_class *class_,
                                    uint32_t owner)
{
    uint32_t region = class_->flags & ADM_CLASS_F_SHADOW ? LEDGER_SHADOW : LEDGER_ENFORCED;
    struct admi_key rule;
    uint64_t hash;
    uint32_t at;

    admi_key_make(&rule, class_->rule, ledger->key_secrets);
    hash = family_hash(ledger, &rule, owner, region, class_->kind);
    for (at = admi_table_first(&ledger->family_table, hash); at != 0;
         at = admi_table_next(&ledger->family_table, at)) {
        const struct ledger_family *family = family_at(ledger, at);

        if (family->hash == hash && family->owner == owner && family->region == region &&
            family->kind == class_->kind && admi_key_equal(&family->rule, &rule))
            return at;
    }
    at = admi_table_add(&ledger->family_table, hash);
    if (at == 0)
        return 0;
    *family_at(ledger, at) = (struct ledger_family){
        .rule = rule, .hash = hash, .owner = owner, .region = region, .kind = class_->kind
    };
    ledger->owners[owner].records++;
    return at;
}

static uint64_t class_hash(const struct ledger *ledger, const struct admi_key *name,
                           uint32_t family, uint32_t base)
{
    return admi_key_hash(name, (uint64_t)family << 32 | base, ledger->hash_secret);
}

/* A base by its origin, or (base != 0) the class of a scope by the scope's name. */
static uint32_t class_find(const struct ledger *ledger, const struct admi_key *name,
                           uint32_t family, uint32_t base)
{
    uint64_t hash = class_hash(ledger, name, family, base);
    uint32_t at = admi_table_first(&ledger->class_table, hash);

    for (; at != 0; at = admi_table_next(&ledger->class_table, at)) {
        const struct ledger_class *class_ = class_at(ledger, at);

        if (class_->hash == hash && class_->family == family && class_->base == base &&
            admi_key_equal(&class_->name, name))
            return at;
    }
    return 0;
}

static uint32_t class_make(struct ledger *ledger, const struct admi_key *name, uint32_t family,
                           uint32_t base)
{
    uint64_t hash = class_hash(ledger, name, family, base);
    uint32_t at = admi_table_add(&ledger->class_table, hash);

    if (at == 0)
        return 0;
    *class_at(ledger, at) =
        (struct ledger_class){ .name = *name, .hash = hash, .family = family, .base = base };
    family_at(ledger, family)->classes++;
    ledger->owners[family_at(ledger, family)->owner].records++;
    if (base != 0) {
        class_at(ledger, at)->next_scope = class_at(ledger, base)->first_scope;
        class_at(ledger, base)->first_scope = at;
    }
    return at;
}

/* ---- forgetting ---- */

static void class_free(struct ledger *ledger, uint32_t place)
{
    struct ledger_class *class_ = class_at(ledger, place);
    struct ledger_family *family = family_at(ledger, class_->family);

    if (class_->base != 0) {
        uint32_t *link = &class_at(ledger, class_->base)->first_scope;

        while (*link != place)
            link = &class_at(ledger, *link)->next_scope;
        *link = class_->next_scope;
    }
    family->classes--;
    ledger->owners[family->owner].records--;
    admi_table_remove(&ledger->class_table, class_->hash, place);
    class_->family = 0; /* how a scan knows a free place */
}

/* Are all its buckets as new, and free to go, and does no raise hold them down? */
static bool makes_no_difference(struct ledger *ledger, const struct ledger_class *class_)
{
    struct ledger_region *region = admi_ledger_region_of(ledger, family_at(ledger, class_->family));

    for (uint32_t at = class_->first_partition; at != 0;
         at = partition_at(region, at)->class_next) {
        if (partition_at(region, at)->pins > 0 ||
            !admi_ledger_partition_is_as_new(ledger, partition_at(region, at)))
            return false;
    }
    return !class_->has_odometer || admi_odometer_floor_is_spent(&class_->odometer, ledger->now_ns);
}

static void forget_partitions(struct ledger *ledger, const struct ledger_class *class_)
{
    struct ledger_region *region = admi_ledger_region_of(ledger, family_at(ledger, class_->family));

    for (uint32_t at = class_->first_partition, next; at != 0; at = next) {
        next = partition_at(region, at)->class_next;
        (void)admi_ledger_partition_reclaim(ledger, region, at);
    }
}

bool admi_ledger_class_reclaim(struct ledger *ledger, uint32_t place)
{
    const struct ledger_class *class_ = class_at(ledger, place);

    if (class_->family == 0)
        return false;
    if (class_->base != 0 ? class_at(ledger, class_->base)->in_set : class_->in_set)
        return false; /* a scope of a class in force is not new any more, even when all its buckets
                         are full */
    if (class_->first_scope != 0 || !makes_no_difference(ledger, class_))
        return false;
    forget_partitions(ledger, class_);
    class_free(ledger, place);
    return true;
}

bool admi_ledger_family_reclaim(struct ledger *ledger, uint32_t place)
{
    struct ledger_family *family = family_at(ledger, place);
    struct ledger_region *region = admi_ledger_region_of(ledger, family);

    if (family->kind == 0 || family->classes > 0)
        return false;
    for (uint32_t at = family->first_partition, next; at != 0; at = next) {
        next = partition_at(region, at)->family_next;
        if (!admi_ledger_partition_reclaim(ledger, region, at))
            return false;
    }
    admi_table_remove(&ledger->family_table, family->hash, place);
    ledger->owners[family->owner].records--;
    family->kind = 0; /* how a scan knows a free place */
    return true;
}

/* Everything that no set names and that makes no difference. Scopes before their bases: two rounds.
 * Not what a put that is under way is about to name again (mark). */
static void reclaim_all(struct ledger *ledger, uint64_t mark)
{
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t at = 1; at <= ledger->class_table.high; at++) {
            const struct ledger_class *class_ = class_at(ledger, at);
            uint32_t base = class_->base != 0 ? class_->base : at;

            if (class_->family != 0 && class_at(ledger, base)->mark != mark)
                (void)admi_ledger_class_reclaim(ledger, at);
        }
    }
    for (uint32_t at = 1; at <= ledger->family_table.high; at++)
        (void)admi_ledger_family_reclaim(ledger, at);
}

/* ---- numbers ---- */

static uint64_t scaled(uint64_t number, uint64_t replicas, uint64_t most)
{
    return number != 0 && replicas > most / number ? most : number * replicas;
}

/* The words of a class move to its new grid. */
static void rescale(struct ledger *ledger, const struct ledger_class *class_,
                    const struct adm_odometer *before)
{
    struct ledger_region *region = admi_ledger_region_of(ledger, family_at(ledger, class_->family));

    for (uint32_t at = class_->first_partition; at != 0;
         at = partition_at(region, at)->class_next) {
        struct ledger_partition *partition = partition_at(region, at);

        partition->empty =
            adm_bucket_rescale(before, &class_->odometer, ledger->now_ns, partition->empty);
    }
}

/* A class gets (or keeps) the numbers of its base for so many replicas, from now on. */
static void set_numbers(struct ledger *ledger, uint32_t place, uint64_t replicas)
{
    struct ledger_class *class_ = class_at(ledger, place);
    const struct ledger_class *base = class_->base != 0 ? class_at(ledger, class_->base) : class_;
    uint64_t capacity = scaled(base->capacity, replicas, ADM_MAX_AMOUNT);
    uint64_t refill = scaled(base->refill, replicas, base->per_ns);
    uint32_t shift = admi_odometer_shift(base->capacity, base->refill, base->per_ns,
                                         base->per_replica ? ADMI_REPLICAS_MAX : 1);
    uint32_t finest = admi_odometer_shift(capacity, refill, base->per_ns, 1);

    if (shift > finest) /* more replicas than the grid was chosen for */
        shift = finest;
    class_->replicas = replicas;
    if (!class_->has_odometer) {
        admi_odometer_init_on(&class_->odometer, ledger->now_ns, capacity, refill, base->per_ns,
                              shift);
        class_->has_odometer = true;
        return;
    }
    const struct adm_odometer before = class_->odometer;

    if (admi_odometer_change_on(&class_->odometer, ledger->now_ns, capacity, refill, base->per_ns,
                                shift))
        rescale(ledger, class_, &before);
    if (before.t0_ns != class_->odometer.t0_ns || before.a != class_->odometer.a ||
        before.b != class_->odometer.b || before.capacity != class_->odometer.capacity ||
        before.shift != class_->odometer.shift)
        admi_ledger_family_changed(ledger, family_at(ledger, class_->family));
}

/* ---- a set of classes ---- */

static bool class_is_legal(const struct adm_class *class_)
{
    if (class_->kind != ADM_KIND_BUCKET)
        return class_->kind == ADM_KIND_CONCURRENCY || class_->kind == ADM_KIND_QUOTA;
    return class_->capacity <= ADM_MAX_AMOUNT && class_->per_ns > 0 &&
           class_->refill <= class_->per_ns;
}

/* Find or make the families (there is always room for them, see admi_ledger_families_max()), and
 * mark the classes that are there. How many are not. */
static uint64_t survey(struct ledger *ledger, const struct adm_class_set *set, uint32_t owner,
                       uint64_t mark)
{
    uint64_t missing = 0;

    for (uint64_t i = 0; i < set->class_count; i++) {
        uint32_t family = family_find_or_make(ledger, &set->classes[i], owner);
        struct admi_key origin;
        uint32_t at;

        admi_key_make(&origin, set->classes[i].origin, ledger->key_secrets);
        at = class_find(ledger, &origin, family, 0);
        if (at == 0)
            missing++;
        else
            class_at(ledger, at)->mark = mark;
    }
    return missing;
}

/* Will this class be gone when the owner's set is replaced and everything is reclaimed? */
static bool will_go(struct ledger *ledger, uint32_t place, uint32_t owner, uint64_t mark)
{
    const struct ledger_class *class_ = class_at(ledger, place);
    const struct ledger_class *base = class_->base != 0 ? class_at(ledger, class_->base) : class_;

    if (class_->family == 0 || base->mark == mark ||
        (base->in_set && family_at(ledger, base->family)->owner != owner) ||
        !makes_no_difference(ledger, class_))
        return false;
    for (uint32_t scope = class_->first_scope; scope != 0;
         scope = class_at(ledger, scope)->next_scope) {
        if (!makes_no_difference(ledger, class_at(ledger, scope)))
            return false;
    }
    return true;
}

/* What the owner's new set does not name is not in force any more. */
static void retire(struct ledger *ledger, uint32_t owner, uint64_t mark)
{
    for (uint32_t at = 1; at <= ledger->class_table.high; at++) {
        struct ledger_class *class_ = class_at(ledger, at);

        if (class_->family != 0 && class_->base == 0 && class_->mark != mark &&
            family_at(ledger, class_->family)->owner == owner)
            class_->in_set = false;
    }
}

/* Room for the set, also where classes that it replaces are now. Until it is sure that there will
 * be enough, nothing that anybody could see has changed; then the old set is retired, and the put
 * cannot fail any more. */
static bool make_room(struct ledger *ledger, const struct adm_class_set *set, uint32_t owner,
                      uint64_t mark)
{
    const struct admi_table *table = &ledger->class_table;
    uint64_t missing = survey(ledger, set, owner, mark);
    uint64_t room = table->max - table->used;

    if (missing <= room) {
        retire(ledger, owner, mark);
        return true;
    }
    for (uint32_t at = 1; at <= table->high && room < missing; at++)
        room += will_go(ledger, at, owner, mark);
    if (missing <= room)
        retire(ledger, owner, mark);
    reclaim_all(ledger, mark); /* on failure: the families that were made for it */
    return missing <= room;
}

static uint64_t listed_replicas(const struct ledger *ledger, const struct adm_class_set *set,
                                const struct admi_key *scope)
{
    for (uint64_t i = 0; i < set->scope_count; i++) {
        struct admi_key key;

        admi_key_make(&key, set->scopes[i].scope, ledger->key_secrets);
        if (admi_key_equal(&key, scope))
            return set->scopes[i].replicas > 0 ? set->scopes[i].replicas : 1;
    }
    return 1;
}

/* A class that was gone is as if it had never been, once all its buckets are full again: whether
 * its record was reclaimed meanwhile must not be seen. */
static void begin_anew(struct ledger *ledger, uint32_t place)
{
    struct ledger_class *base = class_at(ledger, place);

    for (uint32_t at = base->first_scope, next; at != 0; at = next) {
        next = class_at(ledger, at)->next_scope;
        if (!makes_no_difference(ledger, class_at(ledger, at)))
            continue;
        forget_partitions(ledger, class_at(ledger, at));
        class_free(ledger, at);
    }
    if (makes_no_difference(ledger, base)) {
        forget_partitions(ledger, base);
        base->has_odometer = false;
    }
}

/* Cannot fail: there is room. */
static void put_class(struct ledger *ledger, const struct adm_class_set *set,
                      struct adm_class *class_, uint32_t owner, uint64_t mark)
{
    uint32_t family_place = family_find_or_make(ledger, class_, owner);
    struct ledger_family *family = family_at(ledger, family_place);
    struct admi_key origin;
    struct ledger_class *base;
    uint32_t at;

    admi_key_make(&origin, class_->origin, ledger->key_secrets);
    at = class_find(ledger, &origin, family_place, 0);
    if (at == 0)
        at = class_make(ledger, &origin, family_place, 0);
    if (family->max_partitions != class_->max_partitions) {
        family->max_partitions = class_->max_partitions;
        admi_ledger_family_changed(ledger, family);
    }
    base = class_at(ledger, at);
    if (!base->in_set && class_->kind == ADM_KIND_BUCKET)
        begin_anew(ledger, at);
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
        set_numbers(ledger, at, 1);
    for (uint32_t scope = base->first_scope; scope != 0;
         scope = class_at(ledger, scope)->next_scope)
        set_numbers(ledger, scope,
                    base->per_replica ? listed_replicas(ledger, set, &class_at(ledger, scope)->name)
                                      : 1);
}

/* A family has a class record, or one that is about to be made, or a partition that differs from
 * new. */
uint64_t admi_ledger_families_max(uint64_t classes_max, uint64_t partitions_max)
{
    return 2 * classes_max + LEDGER_REGIONS * partitions_max;
}

adm_status admi_ledger_put_classes(struct ledger *ledger, struct adm_class_set *set)
{
    uint64_t mark = ledger->last_sequence + 1; /* never used again, also when this put is refused */
    uint32_t owner;

    for (uint64_t i = 0; i < set->class_count; i++) {
        if (!class_is_legal(&set->classes[i]))
            return ADM_E_BACKEND_RESULT;
    }
    if (set->class_count > ledger->class_table.max)
        return ADM_E_BACKEND_FULL;
    ledger->last_sequence = mark;
    ledger->reclaimed_ns = UINT64_MAX;
    owner = owner_find_or_make(ledger, set->owner);
    if (owner == LEDGER_OWNERS_MAX)
        return ADM_E_BACKEND_FULL;
    ledger->owners[owner].records++; /* it is not free while this goes on */
    bool room = make_room(ledger, set, owner, mark);

    ledger->owners[owner].records--;
    if (!room)
        return ADM_E_BACKEND_FULL;
    for (uint64_t i = 0; i < set->class_count; i++)
        put_class(ledger, set, &set->classes[i], owner, mark);
    ledger->owners[owner].sequence = mark;
    set->sequence = mark;
    return ADM_OK;
}

/* ---- the class of a term ---- */

bool admi_ledger_sequence_is_current(const struct ledger *ledger, uint64_t sequence)
{
    for (uint32_t i = 0; i < LEDGER_OWNERS_MAX; i++) {
        if (ledger->owners[i].sequence == sequence && sequence != 0)
            return true;
    }
    return false;
}

static adm_status scope_class(struct ledger *ledger, uint32_t base, const struct adm_term *term,
                              uint32_t *out_class)
{
    uint64_t replicas = term->replicas > 0 ? term->replicas : 1;
    struct admi_key scope;
    uint32_t at;

    admi_key_make(&scope, term->scope, ledger->key_secrets);
    at = class_find(ledger, &scope, class_at(ledger, base)->family, base);
    if (at == 0)
        at = class_make(ledger, &scope, class_at(ledger, base)->family, base);
    if (at == 0 && ledger->reclaimed_ns != ledger->now_ns) {
        ledger->reclaimed_ns = ledger->now_ns; /* at most once per moment: refusals must be cheap */
        reclaim_all(ledger, ledger->last_sequence);
        at = class_make(ledger, &scope, class_at(ledger, base)->family, base);
    }
    if (at == 0)
        return ADM_E_BACKEND_FULL;
    if (!class_at(ledger, at)->has_odometer || class_at(ledger, at)->replicas != replicas)
        set_numbers(ledger, at, replicas);
    *out_class = at;
    return ADM_OK;
}

adm_status admi_ledger_term_class(struct ledger *ledger, const struct adm_term *term,
                                  uint64_t sequence, uint32_t *out_class)
{
    const struct ledger_class *class_;
    const struct ledger_family *family;
    bool shadow = (term->flags & ADM_TERM_F_SHADOW) != 0;

    if (term->class_handle == 0 || term->class_handle > ledger->class_table.high)
        return ADM_E_BACKEND_STALE;
    class_ = class_at(ledger, term->class_handle);
    if (class_->family == 0 || class_->base != 0 || !class_->in_set)
        return ADM_E_BACKEND_STALE;
    family = family_at(ledger, class_->family);
    if (ledger->owners[family->owner].sequence != sequence || family->kind != term->kind ||
        (family->region == LEDGER_SHADOW) != shadow)
        return ADM_E_BACKEND_STALE;
    *out_class = (uint32_t)term->class_handle;
    if (family->kind == ADM_KIND_BUCKET && class_->per_replica && term->scope.length > 0)
        return scope_class(ledger, *out_class, term, out_class);
    /* Without a scope: the class itself, the same as when it did not scale. */
    if (family->kind == ADM_KIND_BUCKET && !class_->has_odometer)
        set_numbers(ledger, *out_class, 1);
    return ADM_OK;
}
