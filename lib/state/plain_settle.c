/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a lease of the plain backend after it was granted: give, renew, settle, divert.
 */
#include "state/plain.h"

/* The lease an op is about, if there is anything to do for it; else 0, and the outcome is written.
 */
static uint32_t open_lease(struct plain *plain, struct adm_op *op)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    uint32_t place = admi_plain_lease_find(region, op->lease);

    op->outcome = ADM_OUTCOME_UNKNOWN;
    if (place != 0 && region->leases[place].state == PLAIN_CLOSED) {
        op->outcome = ADM_OUTCOME_ALREADY;
        place = 0;
    }
    return place;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- settling one item ---- */

static const struct plain_family *family_of(const struct plain *plain,
                                            const struct plain_region *region,
                                            const struct plain_item *item)
{
    return &plain->families[region->partitions[item->partition].family];
}

/* Charged at completion, once, never more than the bucket holds. */
static void complete(struct plain *plain, struct plain_region *region, struct plain_item *item)
{
    const struct plain_partition *partition = &region->partitions[item->partition];

    if ((item->flags & PLAIN_ITEM_COMPLETION) == 0 || (item->flags & PLAIN_ITEM_CHARGED) != 0)
        return;
    item->flags |= PLAIN_ITEM_CHARGED;
    admi_plain_bucket_charge(
        plain, region, item->partition,
        least(item->amount, plain->classes[partition->class_place].odometer.capacity));
}

/* Only in the window in which it was charged. */
static void correct_quota(struct plain *plain, struct plain_region *region,
                          const struct plain_item *item, uint64_t total)
{
    struct plain_partition *partition = &region->partitions[item->partition];
    struct plain_quota quota = admi_plain_quota(plain, family_of(plain, region, item), partition);
    uint64_t grown;

    if (quota.window != item->window || (partition->units > 0 && partition->window > item->window))
        return;
    if (total >= item->amount)
        grown = admi_plain_later(quota.used, total - item->amount);
    else
        grown = quota.used - least(quota.used, item->amount - total);
    admi_plain_quota_set(plain, region, item->partition, &quota, grown);
}

/* From what an item has to what it turned out to be. */
static void correct(struct plain *plain, struct plain_region *region,
                    const struct plain_lease *lease, struct plain_item *item, uint64_t total)
{
    switch (family_of(plain, region, item)->kind) {
    case ADM_KIND_CONCURRENCY:
        if (lease->state == PLAIN_LIVE && total > item->amount)
            admi_plain_hold(region, item->partition, total - item->amount);
        else if (lease->state == PLAIN_LIVE)
            admi_plain_unhold(plain, region, item->partition, item->amount - total);
        break;
    case ADM_KIND_QUOTA:
        if ((item->flags & PLAIN_ITEM_EXACT) == 0)
            return;
        correct_quota(plain, region, item, total);
        break;
    default:
        if ((item->flags & PLAIN_ITEM_COMPLETION) != 0)
            break;
        if ((item->flags & PLAIN_ITEM_EXACT) == 0)
            return;
        if (total > item->amount)
            admi_plain_bucket_charge(plain, region, item->partition, total - item->amount);
        else if (total < item->amount)
            admi_plain_bucket_refund(plain, region, item->partition, item->amount - total);
        break;
    }
    item->amount = total;
}

/* ---- meters: totals so far ---- */

#define NO_METER PLAIN_METERS_MAX

static uint32_t meter_of(const struct plain_lease *lease, uint32_t unit)
{
    uint32_t i = 0;

    while (i < lease->meter_count && lease->meters[i].unit != unit)
        i++;
    return i < lease->meter_count ? i : NO_METER;
}

static bool is_final(const struct plain_lease *lease, uint32_t meter)
{
    return lease->final ||
           (meter != NO_METER && (lease->meters[meter].flags & PLAIN_METER_FINAL) != 0);
}

static uint64_t total_of(const struct plain_lease *lease, uint32_t meter)
{
    return meter != NO_METER ? lease->meters[meter].total : 0;
}

/* One reported total. The meter as a set, when it was still open to reports: whether or not it
 * moved. */
static uint32_t report(struct plain_lease *lease, const struct adm_amount *total, bool final_all)
{
    uint32_t meter = meter_of(lease, total->unit);
    bool final = final_all || (total->flags & ADM_AMOUNT_FINAL) != 0;

    if (meter == NO_METER || is_final(lease, meter))
        return 0;
    if (final || total->value >= lease->meters[meter].total)
        lease->meters[meter].total = least(total->value, ADM_MAX_AMOUNT);
    if (final)
        lease->meters[meter].flags |= PLAIN_METER_FINAL;
    lease->meters[meter].flags &=
        ~ADM_METER_F_DERIVED; /* tokens that a report names are not made of parts any more */
    return 1u << meter;
}

/* tokens = input_tokens + output_tokens, once one of these was reported. */
static uint32_t derive(struct plain_lease *lease, uint32_t reported, bool final_all)
{
    uint32_t tokens = meter_of(lease, ADM_UNIT_TOKENS);
    uint32_t input = meter_of(lease, ADM_UNIT_INPUT_TOKENS);
    uint32_t output = meter_of(lease, ADM_UNIT_OUTPUT_TOKENS);

    if (tokens == NO_METER || (lease->meters[tokens].flags & ADM_METER_F_DERIVED) == 0 ||
        is_final(lease, tokens) || (reported & (1u << input | 1u << output)) == 0)
        return 0;
    lease->meters[tokens].total = total_of(lease, input) + total_of(lease, output);
    if (final_all || (is_final(lease, input) && is_final(lease, output)))
        lease->meters[tokens].flags |= PLAIN_METER_FINAL;
    return 1u << tokens;
}

/* ---- the operations ---- */

adm_status admi_plain_settle(struct plain *plain, struct adm_op *op)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    const struct adm_settlement *settle = op->args.settle;
    bool final_all = settle->final_all != 0;
    uint32_t place = open_lease(plain, op);
    uint32_t reported = 0;
    struct plain_lease *lease = &region->leases[place];

    if (place == 0)
        return ADM_OK;
    if (lease->diverted) {
        op->outcome = ADM_OUTCOME_ALREADY;
        return ADM_OK;
    }
    for (uint32_t i = 0; i < settle->total_count; i++)
        reported |= report(lease, &settle->totals[i], final_all);
    reported |= derive(lease, reported, final_all);
    lease->final = lease->final || final_all;
    for (uint32_t i = 0; i < lease->item_count; i++) {
        uint32_t meter = meter_of(lease, lease->items[i].unit);

        if ((reported & 1u << meter) != 0)
            correct(plain, region, lease, &lease->items[i], lease->meters[meter].total);
        if (is_final(lease, meter))
            complete(plain, region, &lease->items[i]);
    }
    op->outcome = lease->state == PLAIN_LIVE ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE;
    return ADM_OK;
}

adm_status admi_plain_give(struct plain *plain, struct adm_op *op)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    uint32_t place = open_lease(plain, op);
    struct plain_lease *lease = &region->leases[place];

    admi_plain_shadow_end(plain, op->lease);
    if (place == 0)
        return ADM_OK;
    op->outcome = ADM_OUTCOME_LATE;
    if (lease->state == PLAIN_LIVE) {
        op->outcome = ADM_OUTCOME_RELEASED;
        op->units = admi_plain_lease_stop_holding(plain, region, lease);
    }
    for (uint32_t i = 0; i < lease->item_count; i++)
        complete(plain, region, &lease->items[i]);
    admi_plain_lease_close(plain, region, place);
    return ADM_OK;
}

adm_status admi_plain_renew(struct plain *plain, struct adm_op *op)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    struct plain_region *shadow = &plain->regions[PLAIN_SHADOW];
    uint32_t place = admi_plain_lease_find(region, op->lease);
    uint32_t hold;

    op->outcome = ADM_OUTCOME_LOST;
    if (place == 0 || region->leases[place].state != PLAIN_LIVE)
        return ADM_OK;
    admi_plain_lease_renew(plain, region, place);
    hold = admi_plain_lease_find(shadow, op->lease);
    if (hold != 0)
        admi_plain_lease_renew(plain, shadow, hold);
    op->outcome = ADM_OUTCOME_RENEWED;
    return ADM_OK;
}

adm_status admi_plain_divert(struct plain *plain, struct adm_op *op)
{
    struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    uint32_t place = open_lease(plain, op);
    struct plain_lease *lease = &region->leases[place];
    uint32_t tokens = meter_of(lease, ADM_UNIT_TOKENS);
    uint64_t output = total_of(lease, meter_of(lease, ADM_UNIT_OUTPUT_TOKENS));

    if (place == 0)
        return ADM_OK;
    if (lease->diverted) {
        op->outcome = ADM_OUTCOME_ALREADY;
        return ADM_OK;
    }
    bool derived = tokens != NO_METER && (lease->meters[tokens].flags & ADM_METER_F_DERIVED) != 0;
    bool live = lease->state == PLAIN_LIVE;

    /* What is held returns as it is, so before amounts are corrected; then nothing is live any more
     * to correct(). */
    if (live)
        op->units = admi_plain_lease_stop_holding(plain, region, lease);
    lease->state = PLAIN_LATE;
    for (uint32_t i = 0; i < lease->item_count && output > 0; i++) {
        struct plain_item *item = &lease->items[i];

        if (item->unit == ADM_UNIT_OUTPUT_TOKENS)
            correct(plain, region, lease, item, 0);
        else if (item->unit == ADM_UNIT_TOKENS && derived)
            correct(plain, region, lease, item, item->amount - least(item->amount, output));
    }
    lease->state = live ? PLAIN_LIVE : PLAIN_LATE;
    lease->diverted = true;
    admi_plain_lease_unpin(plain, region,
                           lease); /* nothing of it will ever be charged or given back again */
    admi_plain_shadow_end(plain, op->lease);
    op->outcome = live ? ADM_OUTCOME_DIVERTED : ADM_OUTCOME_LATE;
    return ADM_OK;
}
