/* SPDX-License-Identifier: Apache-2.0 */
/* The model's leases: release, renew, settle, divert. A lease is the number that admit gave,
 * from 1. */
#include "model_state.h"

static struct model_lease *find(struct model *model, int lease, uint32_t *outcome)
{
    model_wide now = planted(model, PLANT_EXPIRY_LATE) ? model->seen - 1 : model->seen;
    struct model_lease *l =
        lease >= 1 && lease <= model->lease_count ? &model->leases[lease - 1] : NULL;
    *outcome = ADM_OUTCOME_UNKNOWN;
    if (l == NULL || !l->kept || now >= l->expires + l->ttl)
        return NULL;
    *outcome = ADM_OUTCOME_LATE;
    if (l->closed)
        *outcome = ADM_OUTCOME_ALREADY;
    else if (now < l->expires)
        *outcome = ADM_OUTCOME_RENEWED; /* stands for: live */
    return l;
}

/* The charge on completion, once: what has been reported, at most one bucket. */
static void complete(struct model *model, struct model_item *item)
{
    if (!item->completion || item->done)
        return;
    uint64_t capacity = model->classes[item->class].odometer.capacity;
    uint64_t tokens = item->now < capacity ? item->now : capacity;
    if (planted(model, PLANT_COMPLETION_ABOVE_CAPACITY))
        tokens = item->now;
    item->done = true;
    if (tokens > 0)
        model_bucket_charge(model, item->class, item->partition, tokens);
}

uint32_t model_release(struct model *model, struct adm_time now, int lease)
{
    uint32_t outcome;
    model_clock(model, now);
    struct model_lease *l = find(model, lease, &outcome);
    if (l == NULL || outcome == ADM_OUTCOME_ALREADY)
        return outcome;
    l->closed = !planted(model, PLANT_RELEASE_KEEPS) || l->item_count < 2;
    l->dark_live = false;
    for (int i = 0; i < l->item_count && !l->diverted; i++)
        complete(model, &l->items[i]);
    return outcome == ADM_OUTCOME_LATE ? ADM_OUTCOME_LATE : ADM_OUTCOME_RELEASED;
}

uint32_t model_renew(struct model *model, struct adm_time now, int lease)
{
    uint32_t outcome;
    model_clock(model, now);
    struct model_lease *l = find(model, lease, &outcome);
    if (l == NULL || outcome != ADM_OUTCOME_RENEWED)
        return ADM_OUTCOME_LOST;
    l->expires = (planted(model, PLANT_RENEW_FROM_END) ? l->expires : model->seen) + l->ttl;
    l->dark_expires = l->expires;
    return ADM_OUTCOME_RENEWED;
}

static void correct_quota(struct model *model, const struct model_item *item, uint64_t total)
{
    struct model_usage u = model_used(model, item->identity, item->partition, item->window_kind);
    if (u.window != item->window || u.ahead) /* only in the window in which it was charged */
        return;
    uint64_t used = u.used + total;
    model_use(model, item->identity, item->partition, u.window,
              used > item->now ? used - item->now : 0);
}

/* The item's total is now this much. */
static void correct(struct model *model, struct model_item *item, uint64_t total, bool live)
{
    if (item->type == MODEL_CONCURRENCY) {
        if (live)
            item->held = item->held + total - item->now;
    } else if (item->completion) {
        /* charged later */
    } else if (!item->exact) {
        return;
    } else if (item->type == MODEL_QUOTA) {
        correct_quota(model, item, total);
    } else if (total > item->now) {
        model_bucket_charge(model, item->class, item->partition,
                            planted(model, PLANT_SETTLE_TWICE) ? total : total - item->now);
    } else if (total < item->now) {
        model_bucket_refund(model, item->class, item->partition, item->now - total);
    }
    item->now = total;
}

static bool final_unit(const struct model_lease *l, int unit)
{
    return l->final_all || (l->final & 1u << unit) != 0;
}

/* Tokens that the caller did not give are the sum of their parts, until a report names them. */
static void derive(struct model_lease *l, bool final_all, unsigned *changed)
{
    if (!l->derived || (*changed & (1u << MODEL_INPUT | 1u << MODEL_OUTPUT)) == 0)
        return;
    l->amounts[MODEL_TOKENS] = l->amounts[MODEL_INPUT] + l->amounts[MODEL_OUTPUT];
    *changed |= 1u << MODEL_TOKENS;
    if (final_all || ((l->final & 1u << MODEL_INPUT) && (l->final & 1u << MODEL_OUTPUT)))
        l->final |= 1u << MODEL_TOKENS;
}

static bool totals_legal(const struct model_amount *totals, int count)
{
    if (count > ADM_MAX_AMOUNTS)
        return false;
    for (int i = 0; i < count; i++) {
        if (totals[i].value > ADM_MAX_AMOUNT)
            return false;
        for (int j = 0; j < i; j++)
            if (totals[j].unit == totals[i].unit)
                return false;
    }
    return true;
}

adm_status model_settle(struct model *model, struct adm_time now, int lease,
                        const struct model_amount *totals, int count, bool final_all,
                        uint32_t *out_outcome)
{
    uint32_t outcome;
    unsigned changed = 0;
    if (!totals_legal(totals, count))
        return ADM_E_INVALID_COST;
    model_clock(model, now);
    struct model_lease *l = find(model, lease, &outcome);
    bool live = outcome == ADM_OUTCOME_RENEWED;
    *out_outcome = outcome;
    if (l == NULL || outcome == ADM_OUTCOME_ALREADY)
        return ADM_OK;
    *out_outcome = live ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE;
    if (l->diverted)
        *out_outcome = ADM_OUTCOME_ALREADY;
    if (l->diverted || (!live && planted(model, PLANT_LATE_SETTLE_LOST)))
        return ADM_OK;
    for (int i = 0; i < count; i++) {
        int unit = totals[i].unit;
        bool last = totals[i].final || final_all;
        if (final_unit(l, unit))
            continue;
        if (unit == MODEL_TOKENS)
            l->derived = false;
        if (last || totals[i].value > l->amounts[unit])
            l->amounts[unit] = totals[i].value;
        if (last)
            l->final |= 1u << unit;
        changed |= 1u << unit;
    }
    derive(l, final_all, &changed);
    l->final_all = l->final_all || final_all;
    for (int i = 0; i < l->item_count; i++)
        if (changed & 1u << l->items[i].unit)
            correct(model, &l->items[i], l->amounts[l->items[i].unit], live);
    for (int i = 0; i < l->item_count; i++)
        if (final_unit(l, l->items[i].unit))
            complete(model, &l->items[i]);
    return ADM_OK;
}

uint32_t model_divert(struct model *model, struct adm_time now, int lease)
{
    uint32_t outcome;
    model_clock(model, now);
    struct model_lease *l = find(model, lease, &outcome);
    bool live = outcome == ADM_OUTCOME_RENEWED;
    if (l == NULL || outcome == ADM_OUTCOME_ALREADY)
        return outcome;
    if (l->diverted)
        return ADM_OUTCOME_ALREADY;
    uint64_t output = planted(model, PLANT_DIVERT_CHARGES) ? 0 : l->amounts[MODEL_OUTPUT];
    for (int i = 0; i < l->item_count && output > 0; i++) {
        struct model_item *item = &l->items[i];
        if (item->unit == MODEL_OUTPUT)
            correct(model, item, 0, live);
        else if (item->unit == MODEL_TOKENS && l->derived)
            correct(model, item, item->now > output ? item->now - output : 0, live);
    }
    l->diverted = true;
    l->dark_live = false;
    for (int i = 0; i < l->item_count; i++)
        l->items[i].held = 0;
    return live ? ADM_OUTCOME_DIVERTED : ADM_OUTCOME_LATE;
}
