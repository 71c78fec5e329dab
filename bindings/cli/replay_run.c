/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of a replay: ends of service and arrivals in one order of time. */
#include "replay.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROGRESS_EVERY 2048u /* rows between two looks at the wall clock */
#define PROGRESS_NS UINT64_C(200000000)

struct progress {
    bool shown;
    uint64_t begun_ns, last_ns;
};

static uint64_t wall_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec;
}

static void progress_show(struct progress *progress, size_t done, size_t all)
{
    uint64_t now = wall_now();
    uint64_t spent = now - progress->begun_ns;

    if (done < all && now - progress->last_ns < PROGRESS_NS)
        return;
    progress->last_ns = now;
    double rate = spent > 0 ? (double)done * 1e9 / (double)spent : 0;
    double left = rate > 0 ? (double)(all - done) / rate : 0;
    fprintf(stderr, "\r  %3zu %%  %zu of %zu rows  %.0f/s  %.0f s left \033[K", done * 100 / all,
            done, all, rate, left);
    if (done == all)
        fputs("\r\033[K", stderr);
    fflush(stderr);
}

static bool gate_error(const struct replay *replay, uint64_t line, const char *what,
                       adm_status status)
{
    fprintf(stderr, "%s:%llu: %s: %s (%s)\n", replay->trace.name, (unsigned long long)line, what,
            adm_status_text(status), adm_status_name(status));
    return false;
}

/* ---- units ---------------------------------------------------------------------------------- */

static bool intern_units(struct replay *replay, const struct trace_amount *amounts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t word = amounts[i].unit;
        const struct word *name = &replay->trace.words.items[word];

        if (replay->units[word].name != NULL)
            continue;
        adm_status status = adm_gate_unit(
            replay->lab.gate, (struct adm_bytes){ name->bytes, name->length },
            &replay->unit_ids[word]);
        if (status != ADM_OK)
            return gate_error(replay, 1, name->bytes, status);
        replay->units[word].name = name->bytes;
    }
    return true;
}

static void saturating_add(uint64_t *sum, uint64_t more)
{
    *sum = more > UINT64_MAX - *sum ? UINT64_MAX : *sum + more;
}

static uint64_t amount_of(const struct replay *replay, const struct trace_amount *amounts,
                          uint32_t count, uint32_t unit, uint64_t otherwise)
{
    for (uint32_t i = 0; i < count; i++)
        if (replay->unit_ids[amounts[i].unit] == unit)
            return amounts[i].value;
    return otherwise;
}

/* ---- ends of service ------------------------------------------------------------------------ */

/* What really came: the amounts of the row, where it does not say otherwise. */
static uint32_t final_totals(const struct replay *replay, const struct trace_row *row,
                             struct adm_amount totals[2 * ADM_MAX_AMOUNTS])
{
    const struct trace_amount *amounts = replay->trace.amounts + row->first_amount;
    const struct trace_amount *finals = replay->trace.finals + row->first_final;
    uint32_t n = 0;

    for (uint32_t i = 0; i < row->final_count; i++)
        totals[n++] = (struct adm_amount){ .unit = replay->unit_ids[finals[i].unit],
                                           .value = finals[i].value };
    for (uint32_t i = 0; i < row->amount_count; i++) {
        uint32_t unit = replay->unit_ids[amounts[i].unit];

        if (amount_of(replay, finals, row->final_count, unit, UINT64_MAX) == UINT64_MAX)
            totals[n++] = (struct adm_amount){ .unit = unit, .value = amounts[i].value };
    }
    return n < ADM_MAX_AMOUNTS ? n : ADM_MAX_AMOUNTS;
}

static bool finish(struct replay *replay, const struct service *service)
{
    const struct trace_row *row = &replay->trace.rows[service->row];
    struct adm_amount totals[2 * ADM_MAX_AMOUNTS];
    uint32_t count = final_totals(replay, row, totals), outcome;
    adm_status status = ADM_OK;

    lab_at(&replay->lab, service->end_ns);
    if (service->end_ns > replay->last_ns)
        replay->last_ns = service->end_ns;
    if (count > 0)
        status = adm_settle(replay->lab.gate, service->lease, totals, count, 1, &outcome);
    if (status != ADM_OK)
        return gate_error(replay, row->line, "settle", status);
    status = adm_release(replay->lab.gate, service->lease, ADM_RESULT_OK, &outcome);
    if (status != ADM_OK)
        return gate_error(replay, row->line, "release", status);
    replay->outcomes[outcome]++;
    return true;
}

static bool finish_until(struct replay *replay, uint64_t ns)
{
    struct service service;

    while (heap_pop_until(&replay->heap, ns, &service))
        if (!finish(replay, &service))
            return false;
    return true;
}

static uint64_t hold_of(const struct replay *replay, const struct trace_row *row)
{
    const struct trace *trace = &replay->trace;
    uint64_t ns;

    if (row->hold_ns != TRACE_NO_HOLD)
        return row->hold_ns;
    uint64_t declared = amount_of(replay, trace->amounts + row->first_amount, row->amount_count,
                                  ADM_UNIT_OUTPUT_TOKENS, 0);
    uint64_t tokens = amount_of(replay, trace->finals + row->first_final, row->final_count,
                                ADM_UNIT_OUTPUT_TOKENS, declared);
    if (__builtin_mul_overflow(tokens, replay->options->per_token_ns, &ns) ||
        __builtin_add_overflow(ns, replay->options->base_ns, &ns) || ns > TRACE_TIME_MAX)
        return TRACE_TIME_MAX;
    return ns;
}

/* ---- arrivals ------------------------------------------------------------------------------- */

static void count_units(struct replay *replay, const struct trace_row *row, uint32_t verdict)
{
    const struct trace_amount *amounts = replay->trace.amounts + row->first_amount;
    bool parts = false, tokens = false;
    uint64_t sum = 0;

    saturating_add(&replay->costs[verdict], row->cost);
    for (uint32_t i = 0; i < row->amount_count; i++) {
        struct replay_unit *unit = &replay->units[amounts[i].unit];
        uint32_t id = replay->unit_ids[amounts[i].unit];

        saturating_add(verdict == ADM_VERDICT_ALLOW ? &unit->admitted : &unit->denied,
                       amounts[i].value);
        tokens |= id == ADM_UNIT_TOKENS;
        if (id == ADM_UNIT_INPUT_TOKENS || id == ADM_UNIT_OUTPUT_TOKENS) {
            parts = true;
            sum += amounts[i].value;
        }
    }
    if (parts && !tokens)
        saturating_add(&replay->tokens[verdict], sum);
}

static void count_decision(struct replay *replay, const struct trace_row *row,
                           const struct adm_decision *decision)
{
    uint32_t reason = decision->reason < ADM_REASON_COUNT ? decision->reason
                                                          : ADM_REASON_STATE_UNAVAILABLE;
    struct replay_kind *kind = &replay->kinds[reason];

    replay->verdicts[decision->verdict == ADM_VERDICT_ALLOW]++;
    replay->reasons[reason]++;
    count_units(replay, row, decision->verdict == ADM_VERDICT_ALLOW);
    if (decision->verdict == ADM_VERDICT_DENY && decision->retry_after_ms > 0) {
        replay->delays = cli_grow(replay->delays, &replay->delay_room, replay->delay_count,
                                  sizeof *replay->delays);
        replay->delays[replay->delay_count++] = decision->retry_after_ms;
    }
    if (kind->line == 0) {
        *kind = (struct replay_kind){ row->line, row->at_ns, *decision };
        replay->kind_order[replay->kind_count++] = reason;
    }
}

/* A read that has no answer (another partition key, off) leaves the peak as it is. */
static void look_at_peaks(struct replay *replay, const struct adm_descriptor *descriptors,
                          uint64_t count)
{
    for (size_t i = 0; i < replay->rule_count; i++) {
        struct replay_rule *rule = &replay->rules[i];
        int64_t held;

        if (rule->has_peak &&
            adm_gate_read(replay->lab.gate, adm_str(rule->id), descriptors, count, &held) ==
                ADM_OK &&
            held > 0) {
            if ((uint64_t)held > rule->peak)
                rule->peak = (uint64_t)held;
            if ((uint64_t)held > rule->bin_peak)
                rule->bin_peak = (uint64_t)held;
        }
    }
}

static bool arrive(struct replay *replay, size_t index)
{
    const struct trace *trace = &replay->trace;
    const struct trace_row *row = &trace->rows[index];
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS] = { 0 };
    struct adm_amount amounts[ADM_MAX_AMOUNTS] = { 0 };
    struct adm_decision decision = { .size = sizeof decision };
    struct adm_request request = {
        .size = sizeof request,
        .descriptors = descriptors,
        .descriptor_count = row->pair_count,
        .amounts = amounts,
        .amount_count = row->amount_count,
        .cost = row->cost,
    };

    for (uint32_t i = 0; i < row->pair_count; i++) {
        const struct trace_pair *pair = &trace->pairs[row->first_pair + i];
        const struct word *key = &trace->words.items[pair->key];
        const struct word *value = &trace->words.items[pair->value];

        descriptors[i].key = (struct adm_bytes){ key->bytes, key->length };
        descriptors[i].value = (struct adm_bytes){ value->bytes, value->length };
    }
    for (uint32_t i = 0; i < row->amount_count; i++) {
        const struct trace_amount *amount = &trace->amounts[row->first_amount + i];

        amounts[i].unit = replay->unit_ids[amount->unit];
        amounts[i].value = amount->value;
    }
    lab_at(&replay->lab, row->at_ns);
    adm_status status = adm_admit(replay->lab.gate, &request, &decision);
    if (status != ADM_OK)
        return gate_error(replay, row->line, "admit", status);
    count_decision(replay, row, &decision);
    if (decision.verdict != ADM_VERDICT_ALLOW)
        return true;
    look_at_peaks(replay, descriptors, row->pair_count);
    if (decision.lease.high == 0 && decision.lease.low == 0)
        return true;
    heap_push(&replay->heap, (struct service){ row->at_ns + hold_of(replay, row),
                                               replay->leases++, decision.lease, index });
    if (replay->heap.count > replay->peak_leases)
        replay->peak_leases = replay->heap.count;
    return true;
}

bool replay_run(struct replay *replay)
{
    const struct trace *trace = &replay->trace;
    struct progress progress = { .shown = !replay->options->quiet && isatty(STDERR_FILENO) };
    bool good = true, plots = replay->options->plot_path != NULL;

    replay->units = cli_allocate(trace->words.count * sizeof *replay->units);
    replay->unit_ids = cli_allocate(trace->words.count * sizeof *replay->unit_ids);
    if (!intern_units(replay, trace->amounts, trace->amount_count) ||
        !intern_units(replay, trace->finals, trace->final_count))
        return false;
    replay->first_ns = trace->rows[0].at_ns;
    replay->last_ns = trace->rows[trace->row_count - 1].at_ns;
    if (plots)
        plot_open(&replay->plot, replay);
    progress.begun_ns = wall_now();
    for (size_t i = 0; good && i < trace->row_count; i++) {
        good = finish_until(replay, trace->rows[i].at_ns) &&
               (!plots || plot_until(&replay->plot, replay, trace->rows[i].at_ns)) &&
               arrive(replay, i);
        if (progress.shown && i % PROGRESS_EVERY == 0)
            progress_show(&progress, i, trace->row_count);
    }
    good = good && finish_until(replay, UINT64_MAX);
    if (plots)
        good = good && plot_until(&replay->plot, replay, UINT64_MAX);
    replay->wall_ns = wall_now() - progress.begun_ns;
    if (progress.shown)
        progress_show(&progress, trace->row_count, trace->row_count);
    return good;
}
