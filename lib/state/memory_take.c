/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take: is the attempt known? Judge all terms, and if they pass charge them in one transaction,
 * with the lease and the attempt. It says which word is not what it was, if one is, and everything
 * begins again.
 */
#include "state/memory_take.h"

#include "base/memory.h"
#include "state/take.h"

#define RESTARTS_MAX 65536u

/* ---- what is charged ---- */

struct charge {
    struct memory_plan plan;
    struct memory_holding holding;
    struct memory_draft draft;
    struct memory_new_line attempt;
    bool has_draft, has_attempt;
};

/* The values that are not there yet, as new. */
static enum memory_answer make_values(struct memory_question *question)
{
    struct memory_run *run = question->run;
    struct memory_idle idle = admi_memory_idle(run);

    for (uint32_t i = 0; i < question->take->term_count; i++) {
        struct memory_judged *judged = &question->terms[i];
        int end;

        if (admi_memory_is_shadow(judged) || !admi_memory_needs_record(judged))
            continue;
        idle.keep = question->keep;
        idle.keep_count = question->keep_count;
        end =
            admi_memory_value_make(&run->region->spaces[judged->space].lines, &run->txn,
                                   admi_memory_partition_of(question, judged),
                                   admi_memory_whole_tag(&judged->numbers), &idle, &judged->place);
        judged->refused = end == ADMI_TXN_REFUSED;
        if (end != ADMI_TXN_DONE)
            return MEMORY_AGAIN;
        question->keep[question->keep_count++] = judged->place.word;
        judged->value = 0;
    }
    return MEMORY_ANSWERED;
}

static void charge_value(struct charge *charge, struct memory_judged *judged)
{
    struct memory_plan *plan = &charge->plan;
    const struct adm_term *term = judged->term;
    bool completion = (term->flags & ADM_TERM_F_COMPLETION) != 0;

    judged->step = NULL;
    if (judged->limited)
        admi_memory_plan_family(plan, judged->numbers.family, &judged->changes);
    if (judged->place.line == 0 || (term->amount == 0 && !completion))
        return;
    switch (term->kind) {
    case ADM_KIND_CONCURRENCY:
        judged->step = admi_memory_plan_step(plan, MEMORY_STEP_HOLD, judged->place.word,
                                             term->amount, &judged->place);
        judged->step->limit = term->limit;
        break;
    case ADM_KIND_QUOTA:
        judged->step =
            admi_memory_plan_step(plan, MEMORY_STEP_SET, judged->place.word, 0, &judged->place);
        judged->step->expected = judged->value;
        judged->step->to =
            admi_memory_quota_value(judged->quota.window, judged->quota.used + term->amount);
        break;
    default:
        judged->step = admi_memory_plan_bucket(
            plan, completion ? MEMORY_STEP_LEVEL : MEMORY_STEP_TAKE, judged->place.word,
            completion ? 1 : term->amount, &judged->numbers, &judged->moment, &judged->place);
        break;
    }
}

static uint32_t meter_of(const struct adm_take *take, uint32_t unit)
{
    uint32_t i = 0;

    while (i < take->meter_count && take->meters[i].unit != unit)
        i++;
    return i < take->meter_count ? i : ADMI_METERS_MAX;
}

/* A count that holds something keeps its line by itself; whatever else may still be charged needs a
 * pin. */
static void add_item(struct charge *charge, const struct adm_take *take,
                     const struct memory_judged *judged)
{
    struct memory_item *item = &charge->holding.items[charge->holding.item_count];
    const struct adm_term *term = judged->term;

    item->word = judged->place.word;
    item->id = judged->numbers.id;
    item->meter = meter_of(take, term->unit);
    item->amount = term->amount;
    item->window = 0;
    item->mark = false;
    if (term->kind == ADM_KIND_CONCURRENCY) {
        item->kind = MEMORY_ITEM_COUNT;
        item->mark = term->amount == 0;
    } else if (term->kind == ADM_KIND_QUOTA) {
        item->kind = MEMORY_ITEM_QUOTA;
        item->window = (uint32_t)judged->quota.window & 0x7fff;
    } else {
        item->kind = (term->flags & ADM_TERM_F_COMPLETION) != 0 ? MEMORY_ITEM_COMPLETION
                                                                : MEMORY_ITEM_BUCKET;
    }
    if (item->kind != MEMORY_ITEM_COUNT || item->mark)
        admi_memory_plan_pin(&charge->plan, item->word, true, &judged->place);
    charge->holding.item_count++;
}

static void add_meters(struct memory_holding *holding, const struct adm_take *take)
{
    holding->meter_count = take->meter_count;
    for (uint32_t i = 0; i < take->meter_count; i++) {
        holding->meters[i] = take->meters[i];
        holding->meters[i].flags &= ADM_METER_F_DERIVED;
    }
}

static void drop(struct memory_run *run, struct charge *charge)
{
    if (charge->has_draft)
        admi_memory_draft_drop(&charge->draft);
    if (charge->has_attempt)
        admi_memory_attempt_drop(run, &charge->attempt);
}

/* Everything that goes in together; *status is FULL when there is no lease or attempt to be had. */
static enum memory_answer plan_all(struct memory_question *question, struct charge *charge,
                                   const struct admi_key *attempt, adm_status *status)
{
    struct memory_run *run = question->run;
    struct adm_take *take = question->take;

    charge->has_draft = charge->has_attempt = false;
    charge->holding.item_count = charge->holding.meter_count = 0;
    charge->draft.id = (struct adm_id){ 0, 0 };
    admi_memory_plan_begin(&charge->plan, run);
    for (uint32_t i = 0; i < take->term_count; i++) {
        struct memory_judged *judged = &question->terms[i];

        if (admi_memory_is_shadow(judged))
            continue;
        charge_value(charge, judged);
        if (judged->item)
            add_item(charge, take, judged);
    }
    if ((take->flags & ADM_TAKE_F_LEASE) != 0) {
        charge->holding.ttl_ns = take->ttl_ns;
        add_meters(&charge->holding, take);
        charge->has_draft = admi_memory_draft(run, &run->region->spaces[MEMORY_ENFORCED].leases,
                                              &charge->holding, &take->seed, &charge->draft);
        if (!charge->has_draft) {
            *status = ADM_E_BACKEND_FULL;
            return MEMORY_ANSWERED;
        }
        ADMI_TXN_AT(lease_drafted);
        admi_memory_draft_plan(&charge->draft, &charge->plan);
    }
    if (take->attempt.length > 0) {
        int end = admi_memory_attempt_draft(&charge->plan, take, attempt, charge->draft.id,
                                            &charge->attempt);

        charge->has_attempt = end == ADMI_TXN_DONE;
        ADMI_TXN_AT(attempt_drafted);
        if (end == ADMI_TXN_REFUSED)
            *status = ADM_E_BACKEND_FULL;
        else if (end != ADMI_TXN_DONE)
            return MEMORY_AGAIN;
    }
    return MEMORY_ANSWERED;
}

/* What the values were at the moment at which they were charged. */
static void write_levels(const struct memory_question *question, const struct charge *charge)
{
    for (uint32_t i = 0; i < question->take->term_count; i++) {
        const struct memory_judged *judged = &question->terms[i];
        uint64_t before;

        if (admi_memory_is_shadow(judged) || judged->step == NULL)
            continue;
        before = admi_memory_plan_before(&charge->plan, judged->step);
        if (judged->term->kind == ADM_KIND_CONCURRENCY)
            judged->term->level = (int64_t)before;
        else if (judged->term->kind == ADM_KIND_BUCKET)
            judged->term->level =
                (judged->step->reading -
                 admi_memory_larger(admi_memory_bucket(before), judged->step->least)) >>
                judged->numbers.odometer.shift;
    }
}

static enum memory_answer charge_all(struct memory_question *question,
                                     const struct admi_key *attempt, adm_status *status)
{
    struct memory_run *run = question->run;
    struct charge charge;
    struct memory_lease *lease = NULL;
    enum memory_answer answer;

    if (!admi_memory_claim(run)) {
        *status = ADM_E_BACKEND_UNAVAILABLE;
        return MEMORY_ANSWERED;
    }
    if (make_values(question) != MEMORY_ANSWERED)
        return MEMORY_AGAIN;
    ADMI_TXN_AT(values_made);
    answer = plan_all(question, &charge, attempt, status);
    if (answer == MEMORY_ANSWERED && *status == ADM_OK &&
        admi_memory_plan_run(&charge.plan) != ADMI_TXN_DONE)
        answer = MEMORY_AGAIN;
    if (answer != MEMORY_ANSWERED || *status != ADM_OK) {
        drop(run, &charge);
        return answer;
    }
    ADMI_TXN_AT(take_charged);
    write_levels(question, &charge);
    question->take->lease = charge.draft.id;
    if (charge.has_draft)
        lease = admi_memory_lease_at(charge.draft.leases, charge.draft.slot - 1);
    if (question->has_shadow)
        admi_memory_charge_shadow(question, lease);
    return MEMORY_ANSWERED;
}

/* ---- take ---- */

static enum memory_answer try_take(struct memory_question *question, adm_status *status)
{
    struct memory_run *run = question->run;
    struct adm_take *take = question->take;
    struct admi_key attempt;

    admi_memory_begin(run);
    admi_take_clear_results(take);
    *status = ADM_OK;
    if (take->attempt.length > 0) {
        if (admi_memory_attempt_answer(run, take, &attempt))
            return MEMORY_ANSWERED;
        ADMI_TXN_AT(attempt_unknown);
    }
    if (admi_memory_judge(question, status) != MEMORY_ANSWERED)
        return MEMORY_AGAIN;
    if (*status == ADM_OK && take->verdict == ADM_VERDICT_ALLOW && take->mode == ADM_TAKE_CHARGE) {
        enum memory_answer answer = charge_all(question, &attempt, status);

        if (answer != MEMORY_ANSWERED || *status == ADM_OK)
            return answer;
    }
    /* What is in its way may be what it has charged itself, when it was sent before. */
    if (take->attempt.length > 0 && admi_memory_attempt_answer(run, take, &attempt))
        return MEMORY_AGAIN;
    if (*status != ADM_OK)
        return MEMORY_ANSWERED;
    /* A lease that a thread with an earlier time has just made may be over for us: then it was no
     * reason to deny (K6). */
    if (take->verdict == ADM_VERDICT_DENY && admi_memory_expire(run))
        return MEMORY_AGAIN;
    return admi_memory_judged_at_once(question) ? MEMORY_ANSWERED : MEMORY_AGAIN;
}

adm_status admi_memory_take(struct memory_run *run, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    struct memory_question question;
    adm_status status = ADM_E_BACKEND_UNAVAILABLE;

    if (take->term_count > 2 * ADM_MAX_TERMS || !admi_take_is_legal(take))
        return ADM_E_BACKEND_RESULT;
    question.run = run;
    question.take = take;
    question.patience = 8;
    for (uint32_t i = 0; i < take->term_count; i++) {
        question.terms[i].term = &take->terms[i];
        question.terms[i].refused = false;
    }
    for (uint32_t restarts = 0; restarts < RESTARTS_MAX; restarts++) {
        if (try_take(&question, &status) == MEMORY_ANSWERED) {
            if (status != ADM_OK)
                admi_take_clear_results(take);
            return status;
        }
    }
    admi_take_clear_results(take);
    return ADM_E_BACKEND_UNAVAILABLE; /* it cannot go on for ever, however busy others are */
}
