/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a lease after it was granted: give, renew, settle, divert. Each reads the lease,
 * decides what becomes of it, and changes it and all that it holds in one transaction; if somebody
 * was faster, it begins again with what the lease is then.
 */
#include "state/memory.h"

#include "state/memory_take.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static struct memory_leases *enforced(const struct memory_run *run)
{
    return &run->region->spaces[MEMORY_ENFORCED].leases;
}

/* ---- the lease ---- */

enum found {
    FOUND_NOTHING, /* the outcome is written */
    FOUND_OPEN
};

/* The lease an op is about, if there is anything to do for it. */
static enum found open_lease(struct memory_run *run, struct adm_op *op,
                             struct memory_holding *holding)
{
    for (;;) {
        uint64_t state, place;

        op->outcome = ADM_OUTCOME_UNKNOWN;
        op->units = 0; /* of an attempt that somebody was faster than, nothing returned */
        if (admi_memory_lease_find(run, enforced(run), op->lease, &state, &place) == NULL)
            return FOUND_NOTHING;
        if (MEMORY_STATE_OF(state) != MEMORY_LEASE_LIVE &&
            MEMORY_STATE_OF(state) != MEMORY_LEASE_LATE) {
            op->outcome = ADM_OUTCOME_ALREADY;
            return FOUND_NOTHING;
        }
        if (admi_memory_lease_read(run, enforced(run), place, state, holding))
            return FOUND_OPEN;
    }
}

static bool is_live(const struct memory_holding *holding)
{
    return MEMORY_STATE_OF(holding->state) == MEMORY_LEASE_LIVE;
}

static void plan_state(struct memory_plan *plan, const struct memory_holding *holding,
                       enum memory_lease_state to, uint64_t flags)
{
    admi_memory_plan_set(plan, &admi_memory_lease_at(holding->leases, holding->place)->state,
                         holding->state, admi_memory_state_next(holding->state, to) | flags);
}

/* ---- one item ---- */

/* The numbers by which an item's bucket is charged. Its value moves to their grid first: it is
 * pinned, so it is there. */
static bool numbers_of(struct memory_run *run, const struct memory_item *item,
                       struct memory_numbers *out, struct memory_moment *moment)
{
    struct memory_lines *lines = &run->region->spaces[MEMORY_ENFORCED].lines;
    uint64_t of =
        atomic_load_explicit(admi_memory_id_at(run->region, item->id), memory_order_acquire);
    uint64_t tags = admi_txn_read(&run->txn, admi_memory_tags_of(item->word));

    if (!admi_memory_class_read(run, MEMORY_ID_CLASS(of), out))
        return false;
    *moment = admi_memory_moment(run, out);
    if (admi_memory_tag(tags, item->word & 3u) != admi_memory_whole_tag(out)) {
        const struct memory_idle idle = admi_memory_idle(run);
        uint32_t first = admi_memory_word(&run->txn, &admi_memory_line(lines, 0)->values[0]);

        (void)admi_memory_tidy_line(run, lines, (item->word - first) / 8, 0, &idle);
    }
    return true;
}

static void plan_amount(struct memory_plan *plan, const struct memory_holding *holding, uint32_t i,
                        const struct memory_item *to)
{
    uint64_t before = admi_memory_amount_word(&holding->items[i]);
    uint64_t after = admi_memory_amount_word(to);

    if (before != after)
        admi_memory_plan_set(plan, holding->amounts[i], before, after);
}

/* Charged at completion, once, never more than the bucket holds. */
static void complete(struct memory_plan *plan, struct memory_item *item)
{
    struct memory_numbers numbers;
    struct memory_moment moment;

    if (item->kind != MEMORY_ITEM_COMPLETION || item->mark ||
        !numbers_of(plan->run, item, &numbers, &moment))
        return;
    item->mark = true;
    if (item->amount == 0)
        return;
    (void)admi_memory_plan_bucket(plan, MEMORY_STEP_CHARGE, item->word,
                                  least(item->amount, numbers.odometer.capacity), &numbers, &moment,
                                  NULL);
    admi_memory_plan_changed(plan, item->id);
}

/* Only in the window in which it was charged. */
static void correct_quota(struct memory_plan *plan, const struct memory_item *item, uint64_t total)
{
    struct memory_run *run = plan->run;
    uint64_t of =
        atomic_load_explicit(admi_memory_id_at(run->region, item->id), memory_order_acquire);
    const struct memory_family *family = admi_memory_family_at(run->region, MEMORY_ID_FAMILY(of));
    uint32_t window = (uint32_t)atomic_load_explicit(&family->window, memory_order_acquire);
    uint64_t value = admi_txn_read(&run->txn, item->word);
    struct memory_quota quota = admi_memory_quota(run, window, value);
    bool moved_on = quota.used > 0 && value >> MEMORY_QUOTA_USED_BITS > quota.window;
    struct admi_txn_step *step;
    uint64_t used;

    if ((quota.window & 0x7fff) != item->window || moved_on)
        return;
    /* Also when nothing is corrected: what was used in a former window is over then, even if the
     * clock is set back to it. */
    used = total > item->amount ? quota.used + (total - item->amount)
                                : quota.used - least(quota.used, item->amount - total);
    step = admi_memory_plan_step(plan, MEMORY_STEP_SET, item->word, 0, NULL);
    step->expected = value;
    step->to = admi_memory_quota_value(quota.window, used);
    admi_memory_plan_changed(plan, item->id);
}

static void correct_bucket(struct memory_plan *plan, const struct memory_item *item, uint64_t total)
{
    struct memory_numbers numbers;
    struct memory_moment moment;

    if (total == item->amount || !numbers_of(plan->run, item, &numbers, &moment))
        return;
    if (total > item->amount)
        (void)admi_memory_plan_bucket(plan, MEMORY_STEP_CHARGE, item->word, total - item->amount,
                                      &numbers, &moment, NULL);
    else
        (void)admi_memory_plan_bucket(plan, MEMORY_STEP_REFUND, item->word, item->amount - total,
                                      &numbers, &moment, NULL);
    admi_memory_plan_changed(plan, item->id);
}

/* What is held follows the total. When that is nothing, a pin keeps the line. */
static void correct_count(struct memory_plan *plan, struct memory_item *item, uint64_t total)
{
    if (total > item->amount)
        (void)admi_memory_plan_step(plan, MEMORY_STEP_ADD, item->word, total - item->amount, NULL);
    if (total < item->amount)
        (void)admi_memory_plan_step(plan, MEMORY_STEP_SUBTRACT, item->word, item->amount - total,
                                    NULL);
    if (total != item->amount)
        admi_memory_plan_changed(plan, item->id);
    if (item->mark != (total == 0)) {
        item->mark = total == 0;
        admi_memory_plan_pin(plan, item->word, item->mark, NULL);
    }
}

/* From what an item has to what it turned out to be. */
static void correct(struct memory_plan *plan, bool live, struct memory_item *item, uint64_t total)
{
    switch (item->kind) {
    case MEMORY_ITEM_COUNT:
        if (live)
            correct_count(plan, item, total);
        break;
    case MEMORY_ITEM_QUOTA:
        correct_quota(plan, item, total);
        break;
    case MEMORY_ITEM_BUCKET:
        correct_bucket(plan, item, total);
        break;
    case MEMORY_ITEM_COMPLETION:
    default:
        break;
    }
    item->amount = total;
}

/* ---- settle ---- */

static struct admi_meters meters_of(struct adm_meter *meters, const struct memory_holding *holding)
{
    for (uint32_t i = 0; i < holding->meter_count; i++)
        meters[i] = holding->meters[i];
    return (struct admi_meters){ meters, holding->meter_count,
                                 (holding->state & MEMORY_STATE_FINAL) != 0 };
}

static void plan_settle(struct memory_plan *plan, const struct memory_holding *holding,
                        const struct adm_settlement *settle)
{
    struct adm_meter meter[ADMI_METERS_MAX];
    struct admi_meters meters = meters_of(meter, holding);
    uint32_t reported = admi_meter_settle(&meters, settle);

    plan_state(plan, holding, MEMORY_STATE_OF(holding->state),
               meters.final ? MEMORY_STATE_FINAL : 0);
    for (uint32_t i = 0; i < holding->item_count; i++) {
        struct memory_item item = holding->items[i];

        if ((reported & 1u << item.meter) != 0)
            correct(plan, is_live(holding), &item, meter[item.meter].total);
        if (admi_meter_is_final(&meters, item.meter))
            complete(plan, &item);
        plan_amount(plan, holding, i, &item);
    }
    for (uint32_t i = 0; i < holding->meter_count; i++) {
        uint64_t before = admi_memory_meter_word(&holding->meters[i]);
        uint64_t after = admi_memory_meter_word(&meter[i]);

        if (before != after)
            admi_memory_plan_set(plan, holding->totals[i], before, after);
    }
}

adm_status admi_memory_settle(struct memory_run *run, struct adm_op *op)
{
    struct memory_holding holding;
    struct memory_plan plan;

    if (!admi_memory_claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    do {
        admi_memory_begin(run);
        if (open_lease(run, op, &holding) == FOUND_NOTHING)
            return ADM_OK;
        if ((holding.state & MEMORY_STATE_DIVERTED) != 0) {
            op->outcome = ADM_OUTCOME_ALREADY;
            return ADM_OK;
        }
        admi_memory_plan_begin(&plan, run);
        plan_settle(&plan, &holding, op->args.settle);
        ADMI_TXN_AT(lease_planned);
    } while (admi_memory_plan_run(&plan) != ADMI_TXN_DONE);
    ADMI_TXN_AT(lease_changed);
    op->outcome = is_live(&holding) ? ADM_OUTCOME_SETTLED : ADM_OUTCOME_LATE;
    admi_memory_loosened(run, MEMORY_ENFORCED);
    return ADM_OK;
}

/* ---- give ---- */

adm_status admi_memory_give(struct memory_run *run, struct adm_op *op)
{
    struct memory_holding holding;
    struct memory_plan plan;

    if (!admi_memory_claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    do {
        admi_memory_begin(run);
        if (open_lease(run, op, &holding) == FOUND_NOTHING)
            return ADM_OK;
        admi_memory_plan_begin(&plan, run);
        plan_state(&plan, &holding,
                   is_live(&holding) ? MEMORY_LEASE_CLOSED : MEMORY_LEASE_CLOSED_LATE, 0);
        op->units = is_live(&holding) ? admi_memory_plan_unhold(&plan, &holding) : 0;
        for (uint32_t i = 0; i < holding.item_count; i++) {
            struct memory_item item = holding.items[i];

            complete(&plan, &item);
        }
        admi_memory_plan_unpin(&plan, &holding);
        ADMI_TXN_AT(lease_planned);
    } while (admi_memory_plan_run(&plan) != ADMI_TXN_DONE);
    ADMI_TXN_AT(lease_changed);
    op->outcome = is_live(&holding) ? ADM_OUTCOME_RELEASED : ADM_OUTCOME_LATE;
    admi_memory_parts_free(&holding);
    admi_memory_loosened(run, MEMORY_ENFORCED);
    if (holding.shadow.high != 0)
        admi_memory_shadow_end(run, holding.shadow);
    return ADM_OK;
}

/* ---- renew ---- */

adm_status admi_memory_renew(struct memory_run *run, struct adm_op *op)
{
    struct memory_holding holding;
    struct memory_plan plan;

    if (!admi_memory_claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    do {
        admi_memory_begin(run);
        if (open_lease(run, op, &holding) == FOUND_NOTHING || !is_live(&holding)) {
            op->outcome = ADM_OUTCOME_LOST;
            return ADM_OK;
        }
        admi_memory_plan_begin(&plan, run);
        admi_memory_plan_renew(&plan, &holding);
        ADMI_TXN_AT(lease_planned);
    } while (admi_memory_plan_run(&plan) != ADMI_TXN_DONE);
    ADMI_TXN_AT(lease_changed);
    if (holding.shadow.high != 0)
        admi_memory_shadow_renew(run, holding.shadow);
    op->outcome = ADM_OUTCOME_RENEWED;
    return ADM_OK;
}

/* ---- divert ---- */

/* What is held returns as it is; of the charges, output that will never come is not charged. */
static void plan_divert(struct memory_plan *plan, const struct memory_holding *holding)
{
    struct adm_meter meter[ADMI_METERS_MAX];
    const struct admi_meters meters = meters_of(meter, holding);
    uint32_t tokens = admi_meter_of(&meters, ADM_UNIT_TOKENS);
    uint32_t outputs = admi_meter_of(&meters, ADM_UNIT_OUTPUT_TOKENS);
    uint64_t output = admi_meter_total(&meters, outputs);
    bool derived = tokens != ADMI_METER_NONE && (meter[tokens].flags & ADM_METER_F_DERIVED) != 0;

    for (uint32_t i = 0; i < holding->item_count && output > 0; i++) {
        struct memory_item item = holding->items[i];

        if (item.meter == outputs)
            correct(plan, false, &item, 0);
        else if (item.meter == tokens && derived)
            correct(plan, false, &item, item.amount - least(item.amount, output));
    }
}

adm_status admi_memory_divert(struct memory_run *run, struct adm_op *op)
{
    struct memory_holding holding;
    struct memory_plan plan;

    if (!admi_memory_claim(run))
        return ADM_E_BACKEND_UNAVAILABLE;
    do {
        admi_memory_begin(run);
        if (open_lease(run, op, &holding) == FOUND_NOTHING)
            return ADM_OK;
        if ((holding.state & MEMORY_STATE_DIVERTED) != 0) {
            op->outcome = ADM_OUTCOME_ALREADY;
            return ADM_OK;
        }
        admi_memory_plan_begin(&plan, run);
        plan_state(&plan, &holding, MEMORY_STATE_OF(holding.state), MEMORY_STATE_DIVERTED);
        op->units = is_live(&holding) ? admi_memory_plan_unhold(&plan, &holding) : 0;
        plan_divert(&plan, &holding);
        admi_memory_plan_unpin(&plan, &holding);
        ADMI_TXN_AT(lease_planned);
    } while (admi_memory_plan_run(&plan) != ADMI_TXN_DONE);
    ADMI_TXN_AT(lease_changed);
    op->outcome = is_live(&holding) ? ADM_OUTCOME_DIVERTED : ADM_OUTCOME_LATE;
    admi_memory_loosened(run, MEMORY_ENFORCED);
    if (holding.shadow.high != 0)
        admi_memory_shadow_end(run, holding.shadow);
    return ADM_OK;
}
