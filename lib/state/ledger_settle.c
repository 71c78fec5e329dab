/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a lease of a ledger after it was granted: give, renew, settle, divert.
 */
#include "state/ledger.h"

/* The lease an op is about, if there is anything to do for it; else 0, and the outcome is written.
 */
static uint32_t open_lease(struct ledger *ledger, struct adm_op *op)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    uint32_t place = admi_ledger_lease_find(region, op->lease);

    op->outcome = ADM_OUTCOME_UNKNOWN;
    if (place != 0 && lease_at(region, place)->state == LEDGER_CLOSED) {
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

static uint32_t kind_of(const struct ledger *ledger, const struct ledger_region *region,
                        const struct ledger_item *item)
{
    return family_at(ledger, partition_at(region, item->partition)->family)->kind;
}

/* Charged at completion, once, never more than the bucket holds. */
static void complete(struct ledger *ledger, struct ledger_region *region, struct ledger_item *item)
{
    const struct ledger_partition *partition = partition_at(region, item->partition);

    if ((item->flags & LEDGER_ITEM_COMPLETION) == 0 || (item->flags & LEDGER_ITEM_CHARGED) != 0)
        return;
    item->flags |= LEDGER_ITEM_CHARGED;
    admi_ledger_bucket_charge(
        ledger, region, item->partition,
        least(item->amount, class_at(ledger, partition->class_place)->odometer.capacity));
}

/* Only in the window in which it was charged. */
static void correct_quota(struct ledger *ledger, struct ledger_region *region,
                          const struct ledger_item *item, uint64_t total)
{
    struct ledger_partition *partition = partition_at(region, item->partition);
    struct ledger_quota quota = admi_ledger_quota(ledger, partition->family, partition);
    uint64_t grown;

    if (quota.window != item->window || (partition->units > 0 && partition->window > item->window))
        return;
    if (total >= item->amount)
        grown = admi_ledger_later(quota.used, total - item->amount);
    else
        grown = quota.used - least(quota.used, item->amount - total);
    admi_ledger_quota_set(ledger, region, item->partition, &quota, grown);
}

/* From what an item has to what it turned out to be. */
static void correct(struct ledger *ledger, struct ledger_region *region,
                    const struct ledger_lease *lease, struct ledger_item *item, uint64_t total)
{
    switch (kind_of(ledger, region, item)) {
    case ADM_KIND_CONCURRENCY:
        if (lease->state == LEDGER_LIVE && total > item->amount)
            admi_ledger_hold(region, item->partition, total - item->amount);
        else if (lease->state == LEDGER_LIVE)
            admi_ledger_unhold(ledger, region, item->partition, item->amount - total);
        break;
    case ADM_KIND_QUOTA:
        if ((item->flags & LEDGER_ITEM_EXACT) == 0)
            return;
        correct_quota(ledger, region, item, total);
        break;
    default:
        if ((item->flags & LEDGER_ITEM_COMPLETION) != 0)
            break;
        if ((item->flags & LEDGER_ITEM_EXACT) == 0)
            return;
        if (total > item->amount)
            admi_ledger_bucket_charge(ledger, region, item->partition, total - item->amount);
        else if (total < item->amount)
            admi_ledger_bucket_refund(ledger, region, item->partition, item->amount - total);
        break;
    }
    item->amount = total;
}

static struct admi_meters meters_of(struct ledger_lease *lease)
{
    return (struct admi_meters){ lease->meters, lease->meter_count, lease->final };
}

/* ---- the operations ---- */

adm_status admi_ledger_settle(struct ledger *ledger, struct adm_op *op)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    const struct adm_settlement *settle = op->args.settle;
    uint32_t place = open_lease(ledger, op);
    struct ledger_lease *lease = lease_at(region, place);
    struct admi_meters meters = meters_of(lease);
    uint32_t reported;

    if (place == 0)
        return ADM_OK;
    if (lease->diverted) {
        op->outcome = ADM_OUTCOME_ALREADY;
        return ADM_OK;
    }
    reported = admi_meter_settle(&meters, settle);
    lease->final = meters.final;
    for (uint32_t i = 0; i < lease->item_count; i++) {
        uint32_t meter = admi_meter_of(&meters, lease->items[i].unit);

        if ((reported & 1u << meter) != 0)
            correct(ledger, region, lease, &lease->items[i], lease->meters[meter].total);
        if (admi_meter_is_final(&meters, meter))
            complete(ledger, region, &lease->items[i]);
    }
    op->outcome = lease->state == LEDGER_LIVE ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE;
    return ADM_OK;
}

adm_status admi_ledger_give(struct ledger *ledger, struct adm_op *op)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    uint32_t place = open_lease(ledger, op);
    struct ledger_lease *lease = lease_at(region, place);

    admi_ledger_shadow_end(ledger, op->lease);
    if (place == 0)
        return ADM_OK;
    op->outcome = ADM_OUTCOME_LATE;
    if (lease->state == LEDGER_LIVE) {
        op->outcome = ADM_OUTCOME_RELEASED;
        op->units = admi_ledger_lease_stop_holding(ledger, region, lease);
    }
    for (uint32_t i = 0; i < lease->item_count; i++)
        complete(ledger, region, &lease->items[i]);
    admi_ledger_lease_close(ledger, region, place);
    return ADM_OK;
}

adm_status admi_ledger_renew(struct ledger *ledger, struct adm_op *op)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    struct ledger_region *shadow = &ledger->regions[LEDGER_SHADOW];
    uint32_t place = admi_ledger_lease_find(region, op->lease);
    uint32_t hold;

    op->outcome = ADM_OUTCOME_LOST;
    if (place == 0 || lease_at(region, place)->state != LEDGER_LIVE)
        return ADM_OK;
    admi_ledger_lease_renew(ledger, region, place);
    hold = admi_ledger_lease_find(shadow, op->lease);
    if (hold != 0)
        admi_ledger_lease_renew(ledger, shadow, hold);
    op->outcome = ADM_OUTCOME_RENEWED;
    return ADM_OK;
}

adm_status admi_ledger_divert(struct ledger *ledger, struct adm_op *op)
{
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    uint32_t place = open_lease(ledger, op);
    struct ledger_lease *lease = lease_at(region, place);
    const struct admi_meters meters = meters_of(lease);
    uint32_t tokens = admi_meter_of(&meters, ADM_UNIT_TOKENS);
    uint64_t output = admi_meter_total(&meters, admi_meter_of(&meters, ADM_UNIT_OUTPUT_TOKENS));

    if (place == 0)
        return ADM_OK;
    if (lease->diverted) {
        op->outcome = ADM_OUTCOME_ALREADY;
        return ADM_OK;
    }
    bool derived =
        tokens != ADMI_METER_NONE && (lease->meters[tokens].flags & ADM_METER_F_DERIVED) != 0;
    bool live = lease->state == LEDGER_LIVE;

    /* What is held returns as it is, so before amounts are corrected; then nothing is live any more
     * to correct(). */
    if (live)
        op->units = admi_ledger_lease_stop_holding(ledger, region, lease);
    lease->state = LEDGER_LATE;
    for (uint32_t i = 0; i < lease->item_count && output > 0; i++) {
        struct ledger_item *item = &lease->items[i];

        if (item->unit == ADM_UNIT_OUTPUT_TOKENS)
            correct(ledger, region, lease, item, 0);
        else if (item->unit == ADM_UNIT_TOKENS && derived)
            correct(ledger, region, lease, item, item->amount - least(item->amount, output));
    }
    lease->state = live ? LEDGER_LIVE : LEDGER_LATE;
    lease->diverted = true;
    admi_ledger_lease_unpin(ledger, region,
                            lease); /* nothing of it will ever be charged or given back again */
    admi_ledger_shadow_end(ledger, op->lease);
    op->outcome = live ? ADM_OUTCOME_DIVERTED : ADM_OUTCOME_LATE;
    return ADM_OK;
}
