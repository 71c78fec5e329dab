/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one transaction of the memory backend: no word twice, and what must stay as it is
 * behind what changes. */
#include "state/memory.h"

void admi_memory_plan_begin(struct memory_plan *plan, struct memory_run *run)
{
    plan->run = run;
    plan->count = plan->more = plan->hold_count = 0;
    plan->is_lost = false;
}

/* Field by field: a cleared step costs more than the swap it stands for. */
static struct admi_txn_step *add(struct memory_plan *plan, enum memory_step_kind kind,
                                 uint32_t word)
{
    struct admi_txn_step *step = &plan->steps[plan->count++];

    step->word = word;
    step->kind = (uint32_t)kind;
    step->hold = 0;
    return step;
}

void admi_memory_plan_set(struct memory_plan *plan, const _Atomic uint64_t *word, uint64_t expected,
                          uint64_t to)
{
    struct admi_txn_step *step =
        add(plan, MEMORY_STEP_SET, admi_memory_word(&plan->run->txn, word));

    step->expected = expected;
    step->to = to;
}

static uint32_t hold_of(struct memory_plan *plan, uint32_t word)
{
    uint32_t hold = admi_memory_hold_of(word), i = 0;

    while (i < plan->hold_count && plan->holds[i].hold != hold)
        i++;
    if (i == plan->hold_count) {
        plan->holds[i].hold = hold;
        plan->holds[i].step = 0;
        plan->holds[i].needs_same = false;
        plan->hold_count++;
    }
    return i;
}

/* The line of the value must be what it was when it was found. */
static void same_line(struct memory_plan *plan, struct admi_txn_step *step,
                      const struct memory_place *place)
{
    uint32_t i = hold_of(plan, step->word);

    step->hold = place->hold;
    step->generation = place->generation;
    /* One line as it was at two times: a value of another partition may be where one was. Then a
     * word can be named twice, and a transaction would wait for itself. */
    if (plan->holds[i].needs_same && plan->holds[i].generation != place->generation)
        plan->is_lost = true;
    plan->holds[i].generation = place->generation;
    plan->holds[i].needs_same = true;
}

struct admi_txn_step *admi_memory_plan_step(struct memory_plan *plan, enum memory_step_kind kind,
                                            uint32_t word, uint64_t units,
                                            const struct memory_place *place)
{
    struct admi_txn_step *step = add(plan, kind, word);

    step->units = units;
    if (place != NULL)
        same_line(plan, step, place);
    return step;
}

/* More than any bucket holds is as much as any: a level that ends the scale either way. */
static uint64_t grid_units(uint64_t tokens, uint32_t shift)
{
    const uint64_t most = UINT64_C(1) << 62;

    return tokens > most >> shift ? most : tokens << shift;
}

struct admi_txn_step *admi_memory_plan_bucket(struct memory_plan *plan, enum memory_step_kind kind,
                                              uint32_t word, uint64_t tokens,
                                              const struct memory_numbers *numbers,
                                              const struct memory_moment *moment,
                                              const struct memory_place *place)
{
    struct admi_txn_step *step = add(plan, kind, word);

    step->units = grid_units(tokens, numbers->odometer.shift);
    step->reading = moment->reading;
    step->full = moment->full;
    step->least = moment->least;
    if (place != NULL)
        same_line(plan, step, place);
    return step;
}

void admi_memory_plan_pin(struct memory_plan *plan, uint32_t word, bool more,
                          const struct memory_place *place)
{
    uint32_t i = hold_of(plan, word);
    struct admi_txn_step *step;

    uint64_t units = more ? 1 : UINT64_MAX; /* one less, modulo 2^64 */

    if (plan->holds[i].step != 0) {
        plan->steps[plan->holds[i].step - 1].units += units;
        return;
    }
    step = add(plan, place != NULL ? MEMORY_STEP_PIN : MEMORY_STEP_ADD, plan->holds[i].hold);
    step->units = units;
    step->generation = place != NULL ? place->generation : 0;
    plan->holds[i].step = plan->count;
}

static struct admi_txn_step *step_of(struct memory_plan *plan, uint32_t word)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].word == word)
            return &plan->steps[i];
    }
    return NULL;
}

void admi_memory_plan_family(struct memory_plan *plan, uint32_t family, const uint64_t *expected)
{
    const _Atomic uint64_t *changes = &admi_memory_family_at(plan->run->region, family)->changes;
    uint32_t word = admi_memory_word(&plan->run->txn, changes);
    struct admi_txn_step *step = step_of(plan, word);

    if (step == NULL)
        step = add(plan, MEMORY_STEP_ADD, word);
    step->units = 1;
    if (expected != NULL) {
        step->kind = MEMORY_STEP_SET;
        step->expected = *expected;
        step->to = (*expected + 1) & ADMI_TXN_VALUE_MAX;
    }
}

void admi_memory_plan_changed(struct memory_plan *plan, uint32_t id)
{
    const struct memory_region *region = plan->run->region;
    uint64_t of = atomic_load_explicit(admi_memory_id_at(region, id), memory_order_acquire);
    uint32_t family = (uint32_t)MEMORY_ID_FAMILY(of);

    if (family != 0 && atomic_load_explicit(&admi_memory_family_at(region, family)->limited,
                                            memory_order_acquire) != 0)
        admi_memory_plan_family(plan, family, NULL);
}

uint64_t admi_memory_plan_unhold(struct memory_plan *plan, const struct memory_holding *holding)
{
    uint64_t units = 0;

    for (uint32_t i = 0; i < holding->item_count; i++) {
        const struct memory_item *item = &holding->items[i];

        if (item->kind != MEMORY_ITEM_COUNT || item->amount == 0)
            continue;
        (void)admi_memory_plan_step(plan, MEMORY_STEP_SUBTRACT, item->word, item->amount, NULL);
        admi_memory_plan_changed(plan, item->id);
        units += item->amount;
    }
    return units;
}

void admi_memory_plan_unpin(struct memory_plan *plan, const struct memory_holding *holding)
{
    for (uint32_t i = 0; i < holding->item_count; i++) {
        const struct memory_item *item = &holding->items[i];

        if (item->kind != MEMORY_ITEM_COUNT || item->mark)
            admi_memory_plan_pin(plan, item->word, false, NULL);
    }
}

int admi_memory_plan_run(struct memory_plan *plan)
{
    uint32_t count = plan->count;
    int end;

    if (plan->is_lost)
        return ADMI_TXN_LOST;
    for (uint32_t i = 0; i < plan->hold_count; i++) {
        struct admi_txn_step *step;

        if (plan->holds[i].step != 0 || !plan->holds[i].needs_same)
            continue;
        step = add(plan, MEMORY_STEP_PIN, plan->holds[i].hold);
        step->units = 0;
        step->generation = plan->holds[i].generation;
    }
    plan->more = plan->count - count;
    plan->count = count;
    end = admi_txn_run(&plan->run->txn, plan->steps, count, plan->more);
    return end;
}

uint64_t admi_memory_plan_before(const struct memory_plan *plan, const struct admi_txn_step *step)
{
    const struct admi_txn *txn = &plan->run->txn;
    const struct admi_txn_context *self = &txn->contexts[txn->self];
    uint64_t status = atomic_load_explicit(&self->status, memory_order_relaxed);
    /* A hard attempt has the guard before all others. */
    uint64_t entry = (uint64_t)(step - plan->steps) + ((status & ADMI_TXN_HARD) != 0);

    return ADMI_TXN_VALUE_OF(
        atomic_load_explicit(&self->entries[entry].from, memory_order_relaxed));
}
