/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lease records and quotas as arithmetic for authors of backends: what an op on a lease changes,
 * without the place where it is kept. The laws that strangers break first (K1, K3, K6) are decided
 * here.
 */
#include <admit/backend.h>

#include "state/odometer.h"

#define NO_METER ADM_LEASE_METERS

static uint64_t later(uint64_t from_ns, uint64_t by_ns)
{
    return from_ns > UINT64_MAX - by_ns ? UINT64_MAX : from_ns + by_ns;
}

/* ---- meters: totals so far ---- */

static uint32_t meter_of(const struct adm_lease_record *lease, uint32_t unit)
{
    uint32_t i = 0;

    while (i < lease->meter_count && lease->meters[i].unit != unit)
        i++;
    return i < lease->meter_count ? i : NO_METER;
}

static int is_final(const struct adm_lease_record *lease, uint32_t meter)
{
    return (lease->flags & ADM_LEASE_F_FINAL) != 0 ||
           (meter != NO_METER && (lease->meters[meter].flags & ADM_METER_F_FINAL) != 0);
}

static uint64_t total_of(const struct adm_lease_record *lease, uint32_t meter)
{
    return meter != NO_METER ? lease->meters[meter].total : 0;
}

/* The meter as a set, when it was still open to reports: whether or not it moved. */
static uint32_t report(struct adm_lease_record *lease, const struct adm_amount *total, int all)
{
    uint32_t meter = meter_of(lease, total->unit);
    int final = all || (total->flags & ADM_AMOUNT_FINAL) != 0;

    if (meter == NO_METER || is_final(lease, meter))
        return 0;
    if (final || total->value >= lease->meters[meter].total)
        lease->meters[meter].total = total->value < ADM_MAX_AMOUNT ? total->value : ADM_MAX_AMOUNT;
    if (final)
        lease->meters[meter].flags |= ADM_METER_F_FINAL;
    lease->meters[meter].flags &= ~ADM_METER_F_DERIVED;
    return 1u << meter;
}

static uint32_t derive(struct adm_lease_record *lease, uint32_t reported, int all)
{
    uint32_t tokens = meter_of(lease, ADM_UNIT_TOKENS);
    uint32_t input = meter_of(lease, ADM_UNIT_INPUT_TOKENS);
    uint32_t output = meter_of(lease, ADM_UNIT_OUTPUT_TOKENS);

    if (tokens == NO_METER || (lease->meters[tokens].flags & ADM_METER_F_DERIVED) == 0 ||
        is_final(lease, tokens) || (reported & (1u << input | 1u << output)) == 0)
        return 0;
    lease->meters[tokens].total = total_of(lease, input) + total_of(lease, output);
    if (all || (is_final(lease, input) && is_final(lease, output)))
        lease->meters[tokens].flags |= ADM_METER_F_FINAL;
    return 1u << tokens;
}

/* ---- items ---- */

static int64_t difference(uint64_t to, uint64_t from)
{
    return (int64_t)to - (int64_t)from; /* both are at most 2 * 10^12 */
}

/* What moves when an item turns out to be total. */
static int64_t correct(struct adm_lease_item *item, uint32_t live, uint64_t total)
{
    int64_t change = difference(total, item->amount);

    if (item->kind == ADM_KIND_CONCURRENCY)
        change = live ? change : 0;
    else if ((item->flags & ADM_TERM_F_COMPLETION) != 0)
        change = 0;
    else if ((item->flags & ADM_TERM_F_SETTLE_EXACT) == 0)
        return 0;
    item->amount = total;
    return change;
}

static int64_t complete(struct adm_lease_item *item)
{
    if ((item->flags & ADM_TERM_F_COMPLETION) == 0 || item->completed)
        return 0;
    item->completed = 1;
    return difference(item->amount, 0);
}

/* The units that return, shadow holds not counted: nobody asked for them. */
static uint64_t stop_holding(const struct adm_lease_record *lease, int64_t *changes)
{
    uint64_t units = 0;

    for (uint32_t i = 0; i < lease->item_count; i++) {
        if (lease->items[i].kind != ADM_KIND_CONCURRENCY)
            continue;
        changes[i] = -difference(lease->items[i].amount, 0);
        if ((lease->items[i].flags & ADM_TERM_F_SHADOW) == 0)
            units += lease->items[i].amount;
    }
    return units;
}

static uint32_t settle(struct adm_lease_record *lease, const struct adm_settlement *settlement,
                       int64_t *changes)
{
    int all = settlement->final_all != 0;
    uint32_t reported = 0;

    for (uint32_t i = 0; i < settlement->total_count; i++)
        reported |= report(lease, &settlement->totals[i], all);
    reported |= derive(lease, reported, all);
    if (all)
        lease->flags |= ADM_LEASE_F_FINAL;
    for (uint32_t i = 0; i < lease->item_count; i++) {
        struct adm_lease_item *item = &lease->items[i];
        uint32_t meter = meter_of(lease, item->unit);

        if ((item->flags & ADM_TERM_F_SHADOW) != 0)
            continue;
        if ((reported & 1u << meter) != 0)
            changes[i] = correct(item, lease->state == ADM_LEASE_LIVE, lease->meters[meter].total);
        if (is_final(lease, meter))
            changes[i] += complete(item);
    }
    return lease->state == ADM_LEASE_LIVE ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE;
}

static uint32_t give(struct adm_lease_record *lease, uint64_t *units, int64_t *changes)
{
    uint32_t live = lease->state == ADM_LEASE_LIVE;

    if (live)
        *units = stop_holding(lease, changes);
    for (uint32_t i = 0; i < lease->item_count; i++)
        changes[i] += complete(&lease->items[i]);
    lease->item_count = 0;
    lease->state = ADM_LEASE_CLOSED;
    return live ? ADM_OUTCOME_RELEASED : ADM_OUTCOME_LATE;
}

static uint32_t divert(struct adm_lease_record *lease, uint64_t *units, int64_t *changes)
{
    uint32_t tokens = meter_of(lease, ADM_UNIT_TOKENS);
    uint64_t output = total_of(lease, meter_of(lease, ADM_UNIT_OUTPUT_TOKENS));
    int derived = tokens != NO_METER && (lease->meters[tokens].flags & ADM_METER_F_DERIVED) != 0;
    uint32_t live = lease->state == ADM_LEASE_LIVE;

    if (live)
        *units = stop_holding(lease, changes);
    for (uint32_t i = 0; i < lease->item_count && output > 0; i++) {
        struct adm_lease_item *item = &lease->items[i];

        if ((item->flags & ADM_TERM_F_SHADOW) != 0 || item->kind == ADM_KIND_CONCURRENCY)
            continue;
        if (item->unit == ADM_UNIT_OUTPUT_TOKENS)
            changes[i] = correct(item, 0, 0);
        else if (item->unit == ADM_UNIT_TOKENS && derived)
            changes[i] = correct(item, 0, item->amount > output ? item->amount - output : 0);
    }
    lease->item_count = 0;
    lease->flags |= ADM_LEASE_F_DIVERTED;
    return live ? ADM_OUTCOME_DIVERTED : ADM_OUTCOME_LATE;
}

/* ---- records ---- */

void adm_lease_record_open(struct adm_lease_record *lease, struct adm_id id,
                           const struct adm_take *take, uint64_t now_ns)
{
    *lease = (struct adm_lease_record){ .id = id, .state = ADM_LEASE_LIVE, .ttl_ns = take->ttl_ns };
    lease->expires_ns = later(now_ns, take->ttl_ns);
    for (uint32_t i = 0; i < take->meter_count && i < ADM_LEASE_METERS; i++) {
        lease->meters[lease->meter_count] = take->meters[i];
        lease->meters[lease->meter_count++].flags &= ADM_METER_F_DERIVED;
    }
}

void adm_lease_record_add(struct adm_lease_record *lease, const struct adm_term *term,
                          uint64_t place, uint64_t window)
{
    uint32_t shadow = (term->flags & ADM_TERM_F_SHADOW) != 0;
    uint32_t settles =
        (term->flags & (ADM_TERM_F_COMPLETION | ADM_TERM_F_SETTLE_EXACT)) != 0 && !shadow;

    if (lease->item_count < ADM_LEASE_ITEMS && (settles || term->kind == ADM_KIND_CONCURRENCY))
        lease->items[lease->item_count++] = (struct adm_lease_item){ .kind = term->kind,
                                                                     .flags = term->flags,
                                                                     .unit = term->unit,
                                                                     .place = place,
                                                                     .amount = term->amount,
                                                                     .window = window };
}

void adm_lease_record_step(struct adm_lease_record *lease, struct adm_op *op, uint64_t now_ns,
                           int64_t changes[ADM_LEASE_ITEMS])
{
    for (uint32_t i = 0; i < ADM_LEASE_ITEMS; i++)
        changes[i] = 0;
    op->units = 0;
    op->outcome = op->kind == ADM_OP_RENEW ? ADM_OUTCOME_LOST : ADM_OUTCOME_UNKNOWN;
    if (lease == NULL)
        return;
    if (op->kind == ADM_OP_RENEW) {
        if (lease->state != ADM_LEASE_LIVE)
            return;
        lease->expires_ns = later(now_ns, lease->ttl_ns);
        op->outcome = ADM_OUTCOME_RENEWED;
    } else if (lease->state == ADM_LEASE_CLOSED ||
               (op->kind != ADM_OP_GIVE && (lease->flags & ADM_LEASE_F_DIVERTED) != 0)) {
        op->outcome = ADM_OUTCOME_ALREADY;
    } else if (op->kind == ADM_OP_GIVE) {
        op->outcome = give(lease, &op->units, changes);
    } else if (op->kind == ADM_OP_SETTLE) {
        op->outcome = settle(lease, op->args.settle, changes);
    } else {
        op->outcome = divert(lease, &op->units, changes);
    }
}

uint32_t adm_lease_record_expire(struct adm_lease_record *lease, uint64_t now_ns,
                                 int64_t changes[ADM_LEASE_ITEMS])
{
    for (uint32_t i = 0; i < ADM_LEASE_ITEMS; i++)
        changes[i] = 0;
    if (lease->state == ADM_LEASE_LIVE && now_ns >= lease->expires_ns) {
        (void)stop_holding(lease, changes);
        lease->state = ADM_LEASE_LATE;
    }
    return now_ns >= later(lease->expires_ns, lease->ttl_ns);
}

/* ---- quotas ---- */

struct adm_quota adm_quota_at(const struct adm_quota *kept, uint32_t window, uint64_t wall_ns,
                              uint64_t max_skew_ns)
{
    struct adm_quota now = { 0 };

    now.index = adm_window_index(window, wall_ns, &now.begin_ns, &now.end_ns);
    now.empty_at_ns = now.end_ns;
    if (kept->used == 0 || kept->index < now.index)
        return now;
    if (kept->index > now.index && kept->begin_ns - wall_ns <= max_skew_ns)
        now = *kept; /* the clock lags a little behind a window that has begun */
    now.empty_at_ns = kept->end_ns;
    now.used = kept->used; /* set back by more: the count comes along (K4) */
    return now;
}

void adm_quota_change(struct adm_quota *kept, uint32_t window, uint64_t wall_ns,
                      uint64_t max_skew_ns, uint64_t charged_index, int64_t units)
{
    struct adm_quota now = adm_quota_at(kept, window, wall_ns, max_skew_ns);
    uint64_t back = units < 0 ? (uint64_t)-units : 0;

    if (now.index != charged_index || (kept->used > 0 && kept->index > charged_index))
        return;
    if (units > 0)
        now.used = later(now.used, (uint64_t)units);
    else
        now.used -= back < now.used ? back : now.used;
    if (now.used > ADMI_QUOTA_MAX)
        now.used = ADMI_QUOTA_MAX;
    *kept = now;
}
