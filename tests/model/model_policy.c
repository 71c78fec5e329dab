/* SPDX-License-Identifier: Apache-2.0 */
/* The model's policies: state identities, publish, rollback, limit tables, classes that stay or
 * go. */
#include "model_state.h"

#include <string.h>

/* ---- state identities ---- */

int model_identity_of(struct model *model, const struct model_rule *rule)
{
    int region = rule->shadow && !planted(model, PLANT_SHADOW_TOUCHES) ? MODEL_DARK : MODEL_LIVE;
    for (int i = 0; i < model->identity_count; i++) {
        const struct model_identity *x = &model->identities[i];
        bool same = x->region == region && x->rule == rule->id && x->type == rule->type &&
                    x->unit == rule->unit && x->window == rule->window &&
                    x->part_count == rule->part_count;
        for (int j = 0; same && j < rule->part_count; j++)
            same = x->parts[j] == rule->parts[j];
        if (same)
            return i;
    }
    struct model_identity *x =
        MODEL_APPEND(model->identities, model->identity_count, model->identity_room);
    *x = (struct model_identity){ .region = region,
                                  .rule = rule->id,
                                  .unit = rule->unit,
                                  .type = rule->type,
                                  .window = rule->window,
                                  .part_count = rule->part_count };
    for (int j = 0; j < rule->part_count; j++)
        x->parts[j] = rule->parts[j];
    return model->identity_count - 1;
}

int model_partition_of(struct model *model, const struct model_rule *rule,
                       const struct model_request *request)
{
    struct model_partition key = { 0 };
    if (model->policy->shard != 0)
        key.values[key.count++] = model_value(request, model->policy->shard);
    for (int i = 0; i < rule->part_count; i++)
        key.values[key.count++] = model_value(request, rule->parts[i]);
    for (int i = 0; i < model->partition_count; i++) {
        bool same = model->partitions[i].count == key.count;
        for (int j = 0; same && j < key.count; j++)
            same = model->partitions[i].values[j] == key.values[j];
        if (same)
            return i;
    }
    *MODEL_APPEND(model->partitions, model->partition_count, model->partition_room) = key;
    return model->partition_count - 1;
}

/* ---- classes ---- */

static bool origin_equal(const struct model_origin *a, const struct model_origin *b)
{
    return a->kind == b->kind && a->value == b->value &&
           (a->kind != 1 || model_match_equal(a->when, b->when));
}

static int find_class(const struct model *model, int identity, const struct model_origin *origin,
                      int scope)
{
    for (int i = 0; i < model->class_count; i++) {
        const struct model_class *c = &model->classes[i];
        if (!c->dropped && c->identity == identity && c->scope == scope &&
            origin_equal(&c->origin, origin))
            return i;
    }
    return -1;
}

static int new_class(struct model *model, int identity, const struct model_origin *origin,
                     int scope, const struct model_numbers *numbers, bool per_replica)
{
    struct model_class *c = MODEL_APPEND(model->classes, model->class_count, model->class_room);
    *c = (struct model_class){ .identity = identity,
                               .origin = *origin,
                               .scope = scope,
                               .in_force = true,
                               .numbers = *numbers };
    model_odometer_start(&c->odometer, model->seen, numbers, per_replica,
                         per_replica ? model_replicas(model, scope) : 1);
    return model->class_count - 1;
}

int model_class_of(struct model *model, const struct model_rule *rule,
                   const struct model_numbers *numbers, const struct model_origin *origin,
                   const struct model_request *request)
{
    int identity = model_identity_of(model, rule);
    int scope = rule->per_replica ? model_value(request, rule->scope) : 0;
    int class = find_class(model, identity, origin, scope);
    if (class < 0)
        return new_class(model, identity, origin, scope, numbers, rule->per_replica);
    model_class_change(model, class, numbers, rule->per_replica,
                       rule->per_replica ? model_replicas(model, scope) : 1);
    return class;
}

/* Whether a lease may still settle on the class. */
static bool pinned(const struct model *model, int class)
{
    for (int i = 0; i < model->lease_count; i++) {
        const struct model_lease *l = &model->leases[i];
        if (!l->kept || l->closed || l->diverted || model->seen >= l->expires + l->ttl)
            continue;
        for (int j = 0; j < l->item_count; j++)
            if (l->items[j].type == MODEL_BUCKET && l->items[j].class == class &&
                (l->items[j].completion || l->items[j].exact))
                return true;
    }
    return false;
}

/* A class that is gone is as if it had never been, once all its buckets are full. */
static void drop_idle(struct model *model, int class)
{
    struct model_class *c = &model->classes[class];
    model_wide low = model_reading(&c->odometer, model->seen) -
                     ((model_wide)c->odometer.capacity << c->odometer.shift);
    if (c->odometer.has_floor && c->odometer.floor > low)
        return;
    for (int i = 0; i < model->bucket_count; i++)
        if (model->buckets[i].class == class && model->buckets[i].empty > low)
            return;
    if (pinned(model, class))
        return;
    c->dropped = true;
    for (int i = 0; i < model->bucket_count;)
        if (model->buckets[i].class == class)
            model->buckets[i] = model->buckets[--model->bucket_count];
        else
            i++;
}

/* One class of the new set: it begins, or goes on under these numbers, in every replica scope
 * that it has. */
static void enforce(struct model *model, const struct model_rule *rule,
                    const struct model_origin *origin, const struct model_numbers *numbers)
{
    int identity = model_identity_of(model, rule);
    if (!rule->per_replica && find_class(model, identity, origin, 0) < 0)
        new_class(model, identity, origin, 0, numbers, false);
    for (int i = 0; i < model->class_count; i++) {
        struct model_class *c = &model->classes[i];
        if (c->dropped || c->identity != identity || !origin_equal(&c->origin, origin))
            continue;
        c->in_force = true;
        model_class_change(model, i, numbers, rule->per_replica,
                           rule->per_replica ? model_replicas(model, c->scope) : 1);
    }
}

/* A publish or a limit table has changed the classes in force. */
void model_refresh(struct model *model)
{
    for (int i = 0; i < model->class_count; i++) {
        if (!model->classes[i].dropped && !model->classes[i].in_force)
            drop_idle(model, i);
        model->classes[i].in_force = false;
    }
    for (int r = 0; r < model->policy->rule_count; r++) {
        const struct model_rule *rule = &model->policy->rules[r];
        if (rule->type != MODEL_BUCKET)
            continue;
        enforce(model, rule, &(struct model_origin){ 0, 0, NULL }, &rule->numbers);
        for (int i = 0; i < rule->override_count; i++) {
            struct model_numbers n = model_overlay(&rule->numbers, &rule->overrides[i].numbers);
            if (!rule->overrides[i].off)
                enforce(model, rule, &(struct model_origin){ 1, 0, &rule->overrides[i].when }, &n);
        }
        const struct model_table *table = model_table_of(model, rule->id);
        for (int i = 0; table != NULL && i < table->count; i++) {
            struct model_numbers n = model_overlay(&rule->numbers, &table->entries[i].numbers);
            if (!table->entries[i].off)
                enforce(model, rule, &(struct model_origin){ 2, table->entries[i].value, NULL },
                        &n);
        }
    }
}

void model_sweep(struct model *model, struct adm_time now)
{
    model_clock(model, now);
    for (int i = 0; i < model->class_count; i++)
        if (!model->classes[i].dropped && !model->classes[i].in_force)
            drop_idle(model, i);
    for (int i = 0; i < model->bucket_count;)
        if (model_bucket_differs(model, &model->buckets[i]))
            i++;
        else
            model->buckets[i] = model->buckets[--model->bucket_count];
}

/* ---- publish, rollback, tables ---- */

static bool fits(const struct model_rule *rule, const struct model_numbers *given)
{
    static const unsigned allowed[] = {
        [MODEL_BUCKET] = MODEL_GIVEN_CAPACITY | MODEL_GIVEN_REFILL | MODEL_GIVEN_PER,
        [MODEL_CONCURRENCY] = MODEL_GIVEN_LIMIT | MODEL_GIVEN_TTL | MODEL_GIVEN_FRACTION,
        [MODEL_CAP] = MODEL_GIVEN_LIMIT,
        [MODEL_PRESSURE] = MODEL_GIVEN_THRESHOLD | MODEL_GIVEN_AGE,
        [MODEL_QUOTA] = MODEL_GIVEN_LIMIT,
    };
    struct model_numbers n = model_overlay(&rule->numbers, given);
    if ((given->given & MODEL_GIVEN_THRESHOLD) && given->comparison != rule->numbers.comparison)
        return false; /* another threshold, never another comparison */
    return (given->given & ~allowed[rule->type]) == 0 &&
           (rule->type != MODEL_BUCKET || n.refill <= n.per_ns);
}

static const struct model_rule *rule_of(const struct model_policy *policy, int id)
{
    for (int i = 0; i < policy->rule_count; i++)
        if (policy->rules[i].id == id)
            return &policy->rules[i];
    return NULL;
}

static bool table_fits(const struct model_table *table, const struct model_policy *policy)
{
    const struct model_rule *rule = rule_of(policy, table->rule);
    for (int i = 0; rule != NULL && i < table->count; i++)
        if (!table->entries[i].off && !fits(rule, &table->entries[i].numbers))
            return false;
    return true;
}

adm_status model_publish(struct model *model, struct adm_time now,
                         const struct model_policy *policy)
{
    int known = -1;
    for (int i = 0; i < model->history_count; i++)
        if (model->history[i]->version == policy->version)
            known = i;
    if (known >= 0 && !model_policy_equal(model->history[known], policy))
        return ADM_E_VERSION_CONFLICT;
    for (int i = 0; i < model->table_count; i++)
        if (!table_fits(&model->tables[i], policy))
            return ADM_E_POLICY_INVALID;
    model->policy = policy;
    model_clock(model, now); /* under the skew of the new policy */
    if (known >= 0) {        /* it becomes the youngest */
        memmove(&model->history[known], &model->history[known + 1],
                (size_t)(model->history_count - known - 1) * sizeof *model->history);
        model->history_count--;
    }
    if (model->history_count == MODEL_HISTORY) {
        memmove(&model->history[0], &model->history[1],
                (MODEL_HISTORY - 1) * sizeof *model->history);
        model->history_count--;
    }
    model->history[model->history_count++] = policy;
    model_refresh(model);
    return ADM_OK;
}

adm_status model_rollback(struct model *model, struct adm_time now, int version)
{
    for (int i = 0; i < model->history_count; i++) {
        const struct model_policy *policy = model->history[i];
        if (policy->version != version)
            continue;
        if (planted(model, PLANT_ROLLBACK_REORDERS))
            return model_publish(model, now, policy);
        for (int j = 0; j < model->table_count; j++)
            if (!table_fits(&model->tables[j], policy))
                return ADM_E_POLICY_INVALID;
        model->policy = policy;
        model_clock(model, now);
        model_refresh(model);
        return ADM_OK;
    }
    return ADM_E_UNKNOWN_VERSION;
}

/* The table that a patch gives, or the new one itself. */
static void merge(const struct model_table *old, const struct model_table *given, bool patch,
                  struct model_table *out)
{
    *out = *given;
    out->count = 0;
    for (int i = 0; patch && old != NULL && i < old->count; i++)
        if (model_entry_of(given, old->entries[i].value) == NULL)
            out->entries[out->count++] = old->entries[i];
    for (int i = 0; i < given->count; i++)
        if (!given->entries[i].removed)
            out->entries[out->count++] = given->entries[i];
}

adm_status model_put_table(struct model *model, struct adm_time now,
                           const struct model_table *table, bool patch)
{
    const struct model_rule *rule = rule_of(model->policy, table->rule);
    if (rule == NULL)
        return ADM_E_UNKNOWN_RULE;
    int at = 0;
    while (at < model->table_count && model->tables[at].rule != table->rule)
        at++;
    if (patch && at < model->table_count && model->tables[at].by != table->by)
        return ADM_E_POLICY_INVALID; /* values of another key: not entries of the same table */
    struct model_table merged;
    merge(at < model->table_count ? &model->tables[at] : NULL, table, patch, &merged);
    if (!table_fits(&merged, model->policy))
        return ADM_E_POLICY_INVALID;
    model_clock(model, now);
    model->tables[at] = merged;
    if (at == model->table_count)
        model->table_count++;
    model->table_version = table->version;
    model_refresh(model);
    return ADM_OK;
}

const struct model_policy *model_policy_in_force(const struct model *model)
{
    return model->policy;
}
