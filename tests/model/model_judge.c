/* SPDX-License-Identifier: Apache-2.0 */
/* The model's judgement of one rule for one request, as if the rule stood alone. */
#include "model_state.h"

static model_wide wait_ms(model_wide at, model_wide raw)
{
    model_wide ms = (at - raw + 999999) / 1000000;
    return ms < 1 ? 1 : ms;
}

/* The wait for a moment; beyond what a time can be, it is not known. */
static void set_wait(const struct model *model, struct model_verdict *v, model_wide at,
                     model_wide raw)
{
    v->waits = true;
    v->at_ms = at < 0 || at >= (model_wide)UINT64_MAX ? -1 : wait_ms(at, raw);
    if (v->at_ms >= 0 && planted(model, PLANT_RETRY_LATE))
        v->at_ms++;
}

/* The partitions of a rule that differ from new, other than this one; for buckets the moments at
 * which they are full. */
struct partitions {
    uint64_t others;
    bool present;
    bool known;
    model_wide first; /* when known: the first moment at which one of them is full again */
};

static void bucket_partitions(const struct model *model, int identity, int class, int partition,
                              struct partitions *out)
{
    for (int i = 0; i < model->bucket_count; i++) {
        const struct model_bucket *b = &model->buckets[i];
        const struct model_class *c = &model->classes[b->class];
        if (c->identity != identity || c->dropped || !model_bucket_differs(model, b))
            continue;
        if (b->class == class && b->partition == partition) {
            out->present = true;
            continue;
        }
        out->others++;
        model_wide at = model_reaches(
            &c->odometer, b->empty + ((model_wide)c->odometer.capacity << c->odometer.shift));
        if (at >= 0 && (!out->known || at < out->first))
            out->first = at;
        out->known = out->known || at >= 0;
    }
}

/* Once per partition, however many leases hold there. */
static void held_partitions(struct model *model, int region, int identity, int partition,
                            struct partitions *out)
{
    int found[512];
    int count = 0;
    for (int i = 0; i < model->holding_count; i++) {
        const struct model_lease *l = &model->leases[model->holding[i]];
        const struct model_item *items = region == MODEL_LIVE ? l->items : l->dark;
        for (int j = 0; j < (region == MODEL_LIVE ? l->item_count : l->dark_count); j++) {
            int k = 0;
            if (items[j].identity != identity)
                continue;
            while (k < count && found[k] != items[j].partition)
                k++;
            if (k == count && count < 512)
                found[count++] = items[j].partition;
        }
    }
    for (int k = 0; k < count; k++) {
        if (model_held(model, region, identity, found[k]) == 0)
            continue;
        if (found[k] == partition)
            out->present = true;
        else
            out->others++;
    }
}

static void used_partitions(const struct model *model, int identity, int partition, uint32_t kind,
                            struct partitions *out)
{
    for (int i = 0; i < model->count_count; i++) {
        const struct model_count *word = &model->counts[i];
        if (word->identity != identity ||
            model_used(model, identity, word->partition, kind).used == 0)
            continue;
        if (word->partition == partition)
            out->present = true;
        else
            out->others++;
    }
}

/* Whether a rule with max_partitions has room for this partition. If one partition too many is
 * live, the rule says from when on it would have room; if more are, after a lowered bound or a
 * settle, it does not know. */
static bool has_room(struct model *model, const struct model_rule *rule, int identity, int class,
                     int partition, struct model_verdict *out)
{
    struct partitions p;
    p.others = 0;
    p.present = false;
    p.known = false;
    p.first = -1;
    uint64_t max = rule->max_partitions;
    if (max == 0)
        return true;
    if (planted(model, PLANT_PARTITIONS_PLUS_ONE))
        max++;
    if (rule->type == MODEL_BUCKET)
        bucket_partitions(model, identity, class, partition, &p);
    else if (rule->type == MODEL_CONCURRENCY)
        held_partitions(model, model->identities[identity].region, identity, partition, &p);
    else
        used_partitions(model, identity, partition, rule->window, &p);
    if (p.present || p.others < max)
        return true;
    out->no_room = true;
    out->reason = ADM_REASON_KEY_SPACE_FULL;
    set_wait(model, out, p.known && p.others == max ? p.first : -1, model->raw);
    return false;
}

static void judge_bucket(struct model *model, const struct model_numbers *n, int class,
                         int partition, uint64_t amount, struct model_verdict *out)
{
    (void)n;
    const struct model_odometer *o = &model->classes[class].odometer;
    model_wide empty = model_empty_at(model, class, model_bucket_find(model, class, partition));
    model_wide need = empty + ((model_wide)amount << o->shift);
    model_wide v = model_reading(o, model->seen);
    if (planted(model, PLANT_CAPACITY_EXCLUSIVE) ? need < v : need <= v)
        return;
    if (amount > o->capacity || o->refill == 0) {
        out->reason = ADM_REASON_UNSATISFIABLE;
        return;
    }
    out->reason = ADM_REASON_RATE_EXCEEDED;
    set_wait(model, out, model_reaches(o, need), model->raw);
}

static void judge_count(struct model *model, const struct model_rule *rule,
                        const struct model_numbers *n, const struct model_request *request,
                        int identity, int partition, uint64_t amount, struct model_verdict *out)
{
    int region = model->identities[identity].region;
    if (rule->type == MODEL_CONCURRENCY) {
        uint64_t limit = model_limit(model, rule, n, request);
        if (amount > limit)
            out->reason = ADM_REASON_UNSATISFIABLE;
        else if (model_held(model, region, identity, partition) + amount > limit)
            out->reason = ADM_REASON_CONCURRENCY_EXCEEDED;
        return;
    }
    struct model_usage u = model_used(model, identity, partition, rule->window);
    if (amount > n->limit) {
        out->reason = ADM_REASON_UNSATISFIABLE;
    } else if (u.used + amount > n->limit) {
        out->reason = ADM_REASON_QUOTA_EXCEEDED;
        set_wait(model, out, u.end, model->raw_wall);
    }
}

/* What one matching rule says, as if it stood alone. Everything that it needs is known to be
 * there. */
void model_judge(struct model *model, const struct model_rule *rule,
                 const struct model_request *request, const uint64_t amounts[MODEL_UNITS],
                 struct model_verdict *out)
{
    struct model_numbers n;
    struct model_origin origin;
    *out = (struct model_verdict){ .reason = ADM_REASON_ALLOWED };
    out->off = !model_pick(model, rule, request, &n, &origin);
    if (out->off)
        return;
    if (rule->type == MODEL_PRESSURE) {
        if (model_pressed(model, rule, &n, model_value(request, rule->scope)))
            out->reason = ADM_REASON_PRESSURE;
        return;
    }
    uint64_t amount = rule->completion ? 1 : amounts[rule->unit];
    if (rule->type == MODEL_CAP) {
        if (amount > n.limit)
            out->reason = ADM_REASON_COST_ABOVE_CAP;
        return;
    }
    int class = rule->type == MODEL_BUCKET ? model_class_of(model, rule, &n, &origin, request) : -1;
    if (amount == 0)
        return;
    int identity = model_identity_of(model, rule);
    int partition = model_partition_of(model, rule, request);
    if (!has_room(model, rule, identity, class, partition, out))
        return;
    if (rule->type == MODEL_BUCKET)
        judge_bucket(model, &n, class, partition, amount, out);
    else
        judge_count(model, rule, &n, request, identity, partition, amount, out);
}
