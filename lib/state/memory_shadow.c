/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadow terms. They are judged with the enforced ones, and charged after these in transactions of
 * their own, in a space of their own: nothing of them can refuse, delay or undo an enforced one.
 */
#include "state/memory_take.h"

#define TRIES 64u

static enum memory_answer make_value(struct memory_question *question, struct memory_judged *judged)
{
    struct memory_run *run = question->run;
    const struct memory_idle idle = admi_memory_idle(run);

    return admi_memory_value_make(&run->region->spaces[MEMORY_SHADOW].lines, &run->txn,
                                  admi_memory_partition_of(question, judged),
                                  admi_memory_whole_tag(&judged->numbers), &idle,
                                  &judged->place) == ADMI_TXN_DONE
               ? MEMORY_ANSWERED
               : MEMORY_AGAIN;
}

/* What it was judged by may have changed: then it is charged as long as it still passes, and not
 * any more when it does not. */
static bool plan_charge(struct memory_plan *plan, struct memory_judged *judged)
{
    struct memory_run *run = plan->run;
    const struct adm_term *term = judged->term;
    struct admi_txn_step *step;

    if (judged->limited)
        admi_memory_plan_family(plan, judged->numbers.family, NULL);
    switch (term->kind) {
    case ADM_KIND_CONCURRENCY:
        step = admi_memory_plan_step(plan, MEMORY_STEP_HOLD, judged->place.word, term->amount,
                                     &judged->place);
        step->limit = term->limit;
        return true;
    case ADM_KIND_QUOTA:
        judged->value = admi_txn_read(&run->txn, judged->place.word);
        judged->quota = admi_memory_quota(run, term->window, judged->value);
        step = admi_memory_plan_step(plan, MEMORY_STEP_SET, judged->place.word, 0, &judged->place);
        step->expected = judged->value;
        step->to = admi_memory_quota_value(judged->quota.window, judged->quota.used + term->amount);
        return judged->quota.used + term->amount <= term->limit;
    default:
        (void)admi_memory_plan_bucket(plan, MEMORY_STEP_TAKE, judged->place.word, term->amount,
                                      &judged->numbers, &judged->moment, &judged->place);
        return true;
    }
}

static void charge_one(struct memory_question *question, struct memory_judged *judged)
{
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        struct memory_plan plan;
        int end;

        if (judged->place.line == 0 && make_value(question, judged) != MEMORY_ANSWERED)
            return;
        admi_memory_plan_begin(&plan, question->run);
        if (!plan_charge(&plan, judged))
            return;
        end = admi_memory_plan_run(&plan);
        if (end == ADMI_TXN_DONE || end == ADMI_TXN_STALE)
            return; /* the numbers have changed: what was judged is not true any more */
        if (end == ADMI_TXN_REFUSED && judged->term->kind != ADM_KIND_QUOTA)
            return;
        if (end == ADMI_TXN_LOST)
            judged->place.line = 0;
    }
}

/* ---- the hold ---- */

static bool is_hold(const struct memory_judged *judged)
{
    return admi_memory_is_shadow(judged) && judged->term->kind == ADM_KIND_CONCURRENCY &&
           judged->term->verdict == ADM_TERM_PASS && judged->term->amount > 0;
}

static enum memory_answer try_hold(struct memory_question *question, uint64_t ttl_ns,
                                   struct memory_draft *draft)
{
    struct memory_run *run = question->run;
    struct memory_holding holding = { .ttl_ns = ttl_ns };
    struct memory_plan plan;

    admi_memory_plan_begin(&plan, run);
    for (uint32_t i = 0; i < question->take->term_count; i++) {
        struct memory_judged *judged = &question->terms[i];

        if (!is_hold(judged))
            continue;
        if (judged->place.line == 0 && make_value(question, judged) != MEMORY_ANSWERED)
            continue;
        (void)plan_charge(&plan, judged);
        holding.items[holding.item_count++] =
            (struct memory_item){ .kind = MEMORY_ITEM_COUNT,
                                  .word = judged->place.word,
                                  .id = judged->numbers.id,
                                  .meter = ADMI_METERS_MAX,
                                  .amount = judged->term->amount };
    }
    if (!admi_memory_draft(run, &run->region->spaces[MEMORY_SHADOW].leases, &holding,
                           &question->take->seed, draft)) {
        for (uint32_t i = 0; i < question->take->term_count; i++) {
            if (is_hold(&question->terms[i]))
                question->terms[i].term->verdict = ADM_TERM_UNKNOWN;
        }
        return MEMORY_ANSWERED;
    }
    admi_memory_draft_plan(draft, &plan);
    if (admi_memory_plan_run(&plan) == ADMI_TXN_DONE)
        return MEMORY_ANSWERED;
    if (run->txn.failed < question->take->term_count)
        for (uint32_t i = 0; i < question->take->term_count; i++)
            question->terms[i].place.line =
                is_hold(&question->terms[i]) ? 0 : question->terms[i].place.line;
    admi_memory_draft_drop(draft);
    draft->id = (struct adm_id){ 0, 0 };
    return MEMORY_AGAIN;
}

void admi_memory_charge_shadow(struct memory_question *question, struct memory_lease *lease)
{
    struct adm_take *take = question->take;
    uint64_t ttl_ns = lease != NULL ? take->ttl_ns : take->shadow_ttl_ns;
    struct memory_draft draft = { .slot = 0 };
    bool holds = false;

    for (uint32_t i = 0; i < take->term_count; i++) {
        struct memory_judged *judged = &question->terms[i];

        if (!admi_memory_is_shadow(judged) || judged->term->verdict != ADM_TERM_PASS)
            continue;
        holds = holds || is_hold(judged);
        if (judged->term->kind != ADM_KIND_CONCURRENCY && judged->term->amount > 0 &&
            (judged->term->flags & ADM_TERM_F_COMPLETION) == 0)
            charge_one(question, judged);
    }
    if (!holds || ttl_ns == 0)
        return; /* nobody wants it held */
    for (uint32_t tries = 0; tries < TRIES; tries++) {
        if (try_hold(question, ttl_ns, &draft) == MEMORY_ANSWERED)
            break;
    }
    if (lease != NULL && draft.id.high != 0) {
        atomic_store_explicit(&lease->shadow_secret, draft.id.low, memory_order_release);
        atomic_store_explicit(&lease->shadow, draft.id.high, memory_order_release);
    }
}

/* ---- its end ---- */

/* Live, and read; false: it is gone. */
static bool read_hold(struct memory_run *run, struct adm_id id, struct memory_holding *out)
{
    struct memory_leases *leases = &run->region->spaces[MEMORY_SHADOW].leases;
    uint64_t state, place;

    do {
        if (id.high == 0 || admi_memory_lease_find(run, leases, id, &state, &place) == NULL ||
            MEMORY_STATE_OF(state) != MEMORY_LEASE_LIVE)
            return false;
    } while (!admi_memory_lease_read(run, leases, place, state, out));
    return true;
}

void admi_memory_shadow_end(struct memory_run *run, struct adm_id id)
{
    struct memory_holding holding;

    while (read_hold(run, id, &holding)) {
        _Atomic uint64_t *state = &admi_memory_lease_at(holding.leases, holding.place)->state;
        struct memory_plan plan;
        int end;

        admi_memory_plan_begin(&plan, run);
        admi_memory_plan_set(&plan, state, holding.state,
                             admi_memory_state_next(holding.state, MEMORY_LEASE_FREE));
        (void)admi_memory_plan_unhold(&plan, &holding);
        end = admi_memory_plan_run(&plan);
        if (end == ADMI_TXN_STALE)
            admi_memory_begin(run);
        if (end != ADMI_TXN_DONE)
            continue;
        admi_memory_parts_free(&holding);
        admi_memory_loosened(run, MEMORY_SHADOW);
        return; /* nobody asks about a shadow hold, so nothing has to answer */
    }
}

void admi_memory_shadow_renew(struct memory_run *run, struct adm_id id)
{
    struct memory_holding holding;

    while (read_hold(run, id, &holding)) {
        struct memory_plan plan;
        int end;

        admi_memory_plan_begin(&plan, run);
        admi_memory_plan_renew(&plan, &holding);
        end = admi_memory_plan_run(&plan);
        if (end == ADMI_TXN_DONE)
            return;
        if (end == ADMI_TXN_STALE)
            admi_memory_begin(run);
    }
}
