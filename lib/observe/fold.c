/* SPDX-License-Identifier: Apache-2.0 */
/* The sums over all threads. */
#include "observe/internal.h"

#include "base/memory.h"

/* Sums of counters that only rise, each read later than by the fold before: they never go back. */
static void sum(uint64_t *total, const _Atomic uint64_t *counters, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = atomic_load_explicit(&counters[i], memory_order_relaxed);
        total[i] = total[i] + value < value ? UINT64_MAX : total[i] + value;
    }
}

static void visit(void *self, void *block)
{
    struct admi_totals *totals = self;
    const struct admi_counters *counters = block;
    sum(totals->gate, counters->gate, ADMI_COUNTER_COUNT);
    sum(totals->outcomes[0], counters->outcomes[0], ADMI_OPERATIONS * ADM_OUTCOME_COUNT);
    sum(totals->results, counters->results, ADM_RESULT_COUNT);
    for (uint32_t h = 0; h < ADMI_HISTOGRAM_COUNT; h++) {
        sum(&totals->histograms[h].sum, &counters->histograms[h].sum, 1);
        sum(totals->histograms[h].buckets, counters->histograms[h].buckets, ADMI_HISTOGRAM_BUCKETS);
    }
    for (uint32_t from = 0; from < totals->rule_count; from += ADMI_RULES_PER_CHUNK) {
        const struct admi_rule_chunk *chunk = atomic_load_explicit(
            &counters->rules[from / ADMI_RULES_PER_CHUNK], memory_order_acquire);
        uint32_t left = totals->rule_count - from;
        uint32_t count = left < ADMI_RULES_PER_CHUNK ? left : ADMI_RULES_PER_CHUNK;
        if (chunk != NULL)
            sum(totals->rules[from], chunk->counts[0], count * ADMI_RULE_COUNTER_COUNT);
    }
    for (uint32_t from = 0; from < totals->series_count; from += ADMI_SERIES_PER_CHUNK) {
        const struct admi_series_chunk *chunk = atomic_load_explicit(
            &counters->series[from / ADMI_SERIES_PER_CHUNK], memory_order_acquire);
        uint32_t left = totals->series_count - from;
        uint32_t count = left < ADMI_SERIES_PER_CHUNK ? left : ADMI_SERIES_PER_CHUNK;
        if (chunk != NULL)
            sum(totals->series[from][0], chunk->counts[0][0],
                count * ADM_REASON_COUNT * ADMI_SERIES_COUNTER_COUNT);
    }
}

/* A rule whose unit was changed has a slot for each unit, and one count of requests. */
static void join_units(const struct admi_observe *observe, struct admi_totals *totals)
{
    static const enum admi_rule_counter shared[] = { ADMI_RULE_ADMITTED, ADMI_RULE_DENIED,
                                                     ADMI_RULE_SHADOW_DENIED,
                                                     ADMI_RULE_SHADOW_UNKNOWN };
    for (uint32_t slot = 0; slot < totals->rule_count; slot++) {
        uint32_t first = admi_intern_at(&observe->rules, slot)->first_use;
        for (uint32_t i = 0; i < sizeof shared / sizeof shared[0] && first != slot; i++)
            totals->rules[first][shared[i]] += totals->rules[slot][shared[i]];
    }
}

adm_status admi_totals_fold(const struct admi_observe *observe, struct admi_totals *out)
{
    admi_clear(out, sizeof *out);
    out->rule_count = admi_intern_count(&observe->rules);
    out->series_count = admi_intern_count(&observe->series);
    out->labelled = admi_intern_count(&observe->sets) > 0;
    out->unmetered = atomic_load_explicit(&observe->unmetered, memory_order_relaxed);
    out->rules = admi_allocate(&observe->allocator, out->rule_count, sizeof *out->rules);
    out->series = admi_allocate(&observe->allocator, out->series_count, sizeof *out->series);
    if (out->rules == NULL || out->series == NULL)
        return ADM_E_NOMEM;
    admi_threads_each(observe->threads, visit, out);
    join_units(observe, out);
    return ADM_OK;
}

void admi_totals_fini(const struct admi_observe *observe, struct admi_totals *totals)
{
    admi_release(&observe->allocator, totals->series, totals->series_count, sizeof *totals->series);
    admi_release(&observe->allocator, totals->rules, totals->rule_count, sizeof *totals->rules);
}
