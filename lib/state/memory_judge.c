/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judging a take without writing: has every enforced term room for its state, and does every term
 * pass? What passes is judged once more by the transaction that charges it; a denial is true at the
 * moment between two readings that agree.
 */
#include "base/memory.h"
#include "state/memory_take.h"

/* ---- look-up ---- */

static bool needs_item(const struct adm_take *take, const struct adm_term *term)
{
    if ((take->flags & ADM_TAKE_F_LEASE) == 0 || (term->flags & ADM_TERM_F_SHADOW) != 0)
        return false;
    return term->kind == ADM_KIND_CONCURRENCY ||
           (term->flags & (ADM_TERM_F_COMPLETION | ADM_TERM_F_SETTLE_EXACT)) != 0;
}

/* A scope's class (or a base's own numbers, without a scope) is not as the term needs it: publish
 * it. */
static enum memory_answer need_numbers(struct memory_question *question,
                                       struct memory_judged *judged, bool usable,
                                       adm_status *status)
{
    const struct adm_term *term = judged->term;
    uint64_t replicas = term->replicas > 0 ? term->replicas : 1;

    if (usable && question->patience == 0)
        return MEMORY_ANSWERED; /* others change it as fast as we do: theirs is as good */
    if (question->patience > 0)
        question->patience--;
    *status = admi_memory_scope(question->run, (uint32_t)term->class_handle, term->scope, replicas);
    if (*status == ADM_E_BACKEND_UNAVAILABLE) {
        if (usable)
            *status = ADM_OK;   /* it takes effect with whoever comes next */
        return MEMORY_ANSWERED; /* else: it was waited for long enough, once */
    }
    if (*status == ADM_E_BACKEND_FULL) {
        *status = ADM_OK;
        judged->no_room = judged->no_class = true;
        return MEMORY_ANSWERED;
    }
    return MEMORY_AGAIN;
}

static enum memory_answer find_class(struct memory_question *question, struct memory_judged *judged,
                                     adm_status *status)
{
    const struct memory_run *run = question->run;
    const struct adm_term *term = judged->term;
    struct memory_numbers *numbers = &judged->numbers;
    uint64_t replicas = term->replicas > 0 ? term->replicas : 1;
    uint32_t scope;

    if (!admi_memory_class_read(run, term->class_handle, numbers) ||
        (numbers->flags & MEMORY_META_IN_SET) == 0 || numbers->kind != term->kind ||
        ((numbers->flags & MEMORY_META_SHADOW) != 0) != admi_memory_is_shadow(judged) ||
        admi_memory_class_is_scope(run, term->class_handle) ||
        admi_memory_owner_sequence(run, numbers->owner) != question->take->sequence) {
        *status = ADM_E_BACKEND_STALE;
        return MEMORY_ANSWERED;
    }
    if (term->kind != ADM_KIND_BUCKET)
        return MEMORY_ANSWERED;
    if ((numbers->flags & MEMORY_META_PER_REPLICA) == 0 || term->scope.length == 0)
        return (numbers->flags & MEMORY_META_NUMBERS) != 0
                   ? MEMORY_ANSWERED
                   : need_numbers(question, judged, false, status);
    scope = admi_memory_scope_find(run, (uint32_t)term->class_handle, term->scope);
    if (scope == 0 || !admi_memory_class_read(run, scope, numbers) ||
        (numbers->flags & MEMORY_META_NUMBERS) == 0)
        return need_numbers(question, judged, false, status);
    if (numbers->replicas != replicas)
        return need_numbers(question, judged, true, status);
    return MEMORY_ANSWERED;
}

static uint32_t name_of(struct memory_question *question, struct adm_bytes name)
{
    uint32_t i = 0;

    while (i < question->named_count && (question->named[i].name.data != name.data ||
                                         question->named[i].name.length != name.length))
        i++;
    if (i == question->named_count) {
        question->named[i].name = name;
        question->named[i].is_known = false;
        admi_key_make(&question->named[i].partition.key, name, question->run->region->key_secrets);
        question->named_count++;
    }
    return i;
}

/* Terms of one group and partition mostly have their values in one line: it is found once. */
static bool find_value(struct memory_question *question, struct memory_judged *judged)
{
    struct memory_run *run = question->run;
    struct memory_lines *lines = &run->region->spaces[judged->space].lines;
    struct memory_named *named = &question->named[judged->partition];
    bool found;

    if (named->is_known && named->group == judged->numbers.group && named->space == judged->space) {
        judged->place = named->place;
        if (named->place.line == 0)
            return false; /* no line, no value */
        if (admi_memory_value_in(lines, &run->txn, judged->numbers.id, &judged->place))
            return true;
    }
    found = admi_memory_value_find(lines, &run->txn, admi_memory_partition_of(question, judged),
                                   judged->numbers.id, &judged->place);
    if (!found && judged->place.line != 0)
        return false; /* a line, without this value */
    if (!named->is_known) {
        named->is_known = true;
        named->place = judged->place;
        named->group = judged->numbers.group;
        named->space = judged->space;
    }
    return found;
}

static enum memory_answer look_up(struct memory_question *question, struct memory_judged *judged,
                                  adm_status *status)
{
    struct memory_run *run = question->run;
    const struct adm_term *term = judged->term;
    enum memory_answer answer = find_class(question, judged, status);

    judged->place.line = 0;
    judged->value = 0;
    if (answer != MEMORY_ANSWERED || *status != ADM_OK)
        return answer;
    judged->space = admi_memory_is_shadow(judged) ? MEMORY_SHADOW : MEMORY_ENFORCED;
    judged->item = needs_item(question->take, term);
    if (term->kind == ADM_KIND_QUOTA) {
        _Atomic uint64_t *window =
            &admi_memory_family_at(run->region, judged->numbers.family)->window;

        if (atomic_load_explicit(window, memory_order_relaxed) != term->window)
            atomic_store_explicit(window, term->window, memory_order_release);
    }
    judged->partition = name_of(question, term->partition);
    if (judged->no_class)
        return MEMORY_ANSWERED;
    if (!find_value(question, judged)) {
        judged->place.line = 0;
        return MEMORY_ANSWERED;
    }
    if (term->kind == ADM_KIND_BUCKET &&
        judged->place.tag != admi_memory_whole_tag(&judged->numbers)) {
        const struct memory_idle idle = admi_memory_idle(run);

        if (!admi_memory_claim(run)) {
            *status = ADM_E_BACKEND_UNAVAILABLE;
            return MEMORY_ANSWERED;
        }
        (void)admi_memory_tidy_line(run, &run->region->spaces[judged->space].lines,
                                    judged->place.line - 1, 0, &idle);
        return MEMORY_AGAIN;
    }
    question->keep[question->keep_count++] = judged->place.word;
    judged->value = admi_txn_read(&run->txn, judged->place.word);
    return MEMORY_ANSWERED;
}

/* ---- room ---- */

static bool is_as_new(struct memory_run *run, const struct memory_judged *judged)
{
    return judged->place.line == 0 || admi_memory_is_idle(run, judged->place.tag, judged->value);
}

/* Writes nothing that anybody could see, and nothing at all as long as there is plenty of room. */
static void find_room(struct memory_question *question, struct memory_judged *judged,
                      uint64_t *needed)
{
    struct memory_run *run = question->run;
    struct adm_term *term = judged->term;
    struct memory_idle idle = admi_memory_idle(run);
    bool consumes = term->amount > 0 || (term->flags & ADM_TERM_F_COMPLETION) != 0;
    uint64_t passes_at_ns = UINT64_MAX;

    idle.keep = question->keep;
    idle.keep_count = question->keep_count;
    judged->limited = false;
    if (judged->no_class)
        judged->no_room = consumes || judged->item;
    else if (consumes && judged->numbers.max_partitions != 0 && is_as_new(run, judged)) {
        judged->limited = true;
        judged->no_room = !admi_memory_family_has_room(
            run, &judged->numbers, judged->place.line != 0, &idle, &judged->changes, &passes_at_ns);
    }
    if (!judged->no_room && admi_memory_needs_record(judged))
        judged->no_room =
            judged->refused || !admi_memory_space_has_room(run, judged->space, ++*needed, &idle);
    if (judged->no_room)
        term->passes_at_ns = passes_at_ns;
}

/* ---- verdicts ---- */

static void judge_bucket(const struct memory_run *run, struct memory_judged *judged)
{
    struct adm_term *term = judged->term;
    uint64_t amount = (term->flags & ADM_TERM_F_COMPLETION) != 0 ? 1 : term->amount;
    const struct adm_odometer *odometer = &judged->numbers.odometer;
    int64_t empty = admi_memory_bucket(judged->value), level;

    judged->moment = admi_memory_moment(run, &judged->numbers);
    level = judged->moment.reading - admi_memory_larger(empty, judged->moment.least);

    term->level = level >> odometer->shift; /* rounds down, below zero as well */
    if (amount <= odometer->capacity && (int64_t)(amount << odometer->shift) <= level)
        return;
    if (amount == 0)
        return;
    term->verdict =
        amount > odometer->capacity || odometer->refill == 0 ? ADM_TERM_NEVER : ADM_TERM_EXCEEDED;
    if (term->verdict == ADM_TERM_EXCEEDED)
        term->passes_at_ns = adm_bucket_passes_at(odometer, run->now_ns, empty, amount);
}

static void judge_units(struct memory_judged *judged, uint64_t used, uint64_t passes_at_ns)
{
    struct adm_term *term = judged->term;

    term->level = (int64_t)used;
    if (term->amount == 0 || (term->amount <= term->limit && used <= term->limit - term->amount))
        return;
    term->verdict = term->amount > term->limit ? ADM_TERM_NEVER : ADM_TERM_EXCEEDED;
    if (term->verdict == ADM_TERM_EXCEEDED)
        term->passes_at_ns = passes_at_ns;
}

static void judge(struct memory_run *run, struct memory_judged *judged)
{
    struct adm_term *term = judged->term;
    uint64_t room_at_ns = term->passes_at_ns;

    term->verdict = ADM_TERM_PASS;
    term->passes_at_ns = UINT64_MAX;
    if (term->kind == ADM_KIND_CONCURRENCY) {
        judge_units(judged, judged->value, UINT64_MAX);
    } else if (term->kind == ADM_KIND_QUOTA) {
        judged->quota = admi_memory_quota(run, term->window, judged->value);
        judge_units(judged, judged->quota.used, judged->quota.empty_at_ns);
    } else if (!judged->no_class) {
        judge_bucket(run, judged);
    }
    if (judged->no_room) {
        bool shadow = admi_memory_is_shadow(judged);

        term->verdict = shadow ? ADM_TERM_UNKNOWN : ADM_TERM_NO_ROOM;
        term->passes_at_ns = shadow ? UINT64_MAX : room_at_ns;
    }
}

enum memory_answer admi_memory_judge(struct memory_question *question, adm_status *status)
{
    struct adm_take *take = question->take;
    uint64_t needed[MEMORY_SPACES] = { 0, 0 };

    *status = ADM_OK;
    question->named_count = question->keep_count = 0;
    question->has_shadow = false;
    if (take->term_count == 0 && !admi_memory_sequence_is_current(question->run, take->sequence))
        *status = ADM_E_BACKEND_STALE;
    for (uint32_t i = 0; i < take->term_count && *status == ADM_OK; i++) {
        struct memory_judged *judged = &question->terms[i];

        question->has_shadow = question->has_shadow || admi_memory_is_shadow(judged);
        judged->no_room = judged->no_class = false;
        if (look_up(question, judged, status) != MEMORY_ANSWERED)
            return MEMORY_AGAIN;
    }
    if (*status != ADM_OK)
        return admi_memory_is_current(question->run) ? MEMORY_ANSWERED : MEMORY_AGAIN;
    for (uint32_t i = 0; i < take->term_count; i++)
        find_room(question, &question->terms[i], &needed[question->terms[i].space]);
    take->verdict = ADM_VERDICT_ALLOW;
    for (uint32_t i = 0; i < take->term_count; i++) {
        judge(question->run, &question->terms[i]);
        if (!admi_memory_is_shadow(&question->terms[i]) && take->terms[i].verdict != ADM_TERM_PASS)
            take->verdict = ADM_VERDICT_DENY;
    }
    return MEMORY_ANSWERED;
}

/* What was not there may have been made and charged meanwhile. */
static bool is_still_absent(struct memory_question *question, const struct memory_judged *judged)
{
    struct memory_run *run = question->run;
    struct memory_place place;

    return judged->no_class ||
           !admi_memory_value_find(&run->region->spaces[judged->space].lines, &run->txn,
                                   admi_memory_partition_of(question, judged), judged->numbers.id,
                                   &place);
}

bool admi_memory_judged_at_once(struct memory_question *question)
{
    const struct memory_run *run = question->run;

    for (uint32_t i = 0; i < question->take->term_count; i++) {
        const struct memory_judged *judged = &question->terms[i];

        if (judged->place.line == 0 && !is_still_absent(question, judged))
            return false;
        if (judged->place.line != 0 &&
            (admi_txn_read(&run->txn, judged->place.word) != judged->value ||
             MEMORY_HOLD_GENERATION(admi_txn_read(&run->txn, judged->place.hold)) !=
                 judged->place.generation))
            return false;
    }
    return admi_memory_is_current(run);
}
