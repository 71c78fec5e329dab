/* SPDX-License-Identifier: Apache-2.0 */
/* One thread's counters: adding to them, and making room for more. */
#include "observe/counters.h"

#include "base/memory.h"

/* Only the owner writes, so no read-modify-write is needed; a reader sees the old or the new value.
 */
static inline void add(_Atomic uint64_t *counter, uint64_t by)
{
    uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    uint64_t sum = value + by < value ? UINT64_MAX : value + by;
    atomic_store_explicit(counter, sum, memory_order_relaxed);
}

ADMI_APART static struct admi_rule_chunk *make_rule_chunk(struct admi_counters *counters,
                                                          uint32_t i)
{
    struct admi_rule_chunk *fresh = admi_allocate(counters->allocator, 1, sizeof *fresh);
    struct admi_rule_chunk *present = NULL;
    if (fresh == NULL ||
        atomic_compare_exchange_strong_explicit(&counters->rules[i], &present, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    admi_release(counters->allocator, fresh, 1, sizeof *fresh); /* a publish was quicker */
    return present;
}

struct admi_rule_chunk *admi_counters_rule_chunk(struct admi_counters *counters, uint32_t slot)
{
    uint32_t i = slot / ADMI_RULES_PER_CHUNK;
    if (i >= ADMI_RULE_CHUNKS)
        return NULL;
    struct admi_rule_chunk *chunk = atomic_load_explicit(&counters->rules[i], memory_order_acquire);
    return chunk != NULL ? chunk : make_rule_chunk(counters, i);
}

struct admi_series_chunk *admi_counters_series_chunk(struct admi_counters *counters,
                                                     uint32_t series)
{
    uint32_t i = series / ADMI_SERIES_PER_CHUNK;
    if (i >= ADMI_SERIES_CHUNKS)
        return NULL;
    struct admi_series_chunk *chunk =
        atomic_load_explicit(&counters->series[i], memory_order_acquire);
    if (chunk == NULL) {
        chunk = admi_allocate(counters->allocator, 1, sizeof *chunk);
        atomic_store_explicit(&counters->series[i], chunk,
                              memory_order_release); /* the owner alone makes these */
    }
    return chunk;
}

void admi_counters_prepare(struct admi_counters *counters, uint32_t rules, uint32_t series)
{
    for (uint32_t i = 0; i * ADMI_RULES_PER_CHUNK < rules; i++)
        (void)admi_counters_rule_chunk(counters, i * ADMI_RULES_PER_CHUNK);
    for (uint32_t i = 0; i * ADMI_SERIES_PER_CHUNK < series; i++)
        (void)admi_counters_series_chunk(counters, i * ADMI_SERIES_PER_CHUNK);
}

void admi_counters_release(struct admi_counters *counters, const struct adm_allocator *allocator)
{
    for (uint32_t i = 0; i < ADMI_RULE_CHUNKS; i++)
        admi_release(allocator, atomic_load_explicit(&counters->rules[i], memory_order_relaxed), 1,
                     sizeof(struct admi_rule_chunk));
    for (uint32_t i = 0; i < ADMI_SERIES_CHUNKS; i++)
        admi_release(allocator, atomic_load_explicit(&counters->series[i], memory_order_relaxed), 1,
                     sizeof(struct admi_series_chunk));
}

void admi_count(struct admi_counters *counters, enum admi_counter which, uint64_t by)
{
    if (counters != NULL && (uint32_t)which < ADMI_COUNTER_COUNT)
        add(&counters->gate[which], by);
}

void admi_count_rule(struct admi_counters *counters, uint32_t slot, enum admi_rule_counter which,
                     uint64_t by)
{
    if (counters == NULL || (uint32_t)which >= ADMI_RULE_COUNTER_COUNT)
        return;
    struct admi_rule_chunk *chunk = admi_counters_rule_chunk(counters, slot);
    if (chunk != NULL)
        add(&chunk->counts[slot % ADMI_RULES_PER_CHUNK][which], by);
}

void admi_count_rule_requests(struct admi_counters *counters, enum admi_rule_counter which,
                              const struct admi_rule_amount *rules, uint32_t count)
{
    _Static_assert(ADMI_RULE_ADMITTED_UNITS == ADMI_RULE_ADMITTED + 1 &&
                       ADMI_RULE_DENIED_UNITS == ADMI_RULE_DENIED + 1,
                   "the amounts are behind the requests");
    if (counters == NULL || (which != ADMI_RULE_ADMITTED && which != ADMI_RULE_DENIED))
        return;
    struct admi_rule_chunk *chunk = NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = rules[i].slot;
        if (chunk == NULL ||
            slot / ADMI_RULES_PER_CHUNK != rules[i - 1].slot / ADMI_RULES_PER_CHUNK)
            chunk = admi_counters_rule_chunk(counters, slot);
        if (chunk == NULL)
            continue;
        _Atomic uint64_t *counts = &chunk->counts[slot % ADMI_RULES_PER_CHUNK][which];
        add(&counts[0], 1);
        add(&counts[1], rules[i].amount);
    }
}

void admi_count_decision(struct admi_counters *counters, uint32_t series, uint32_t reason,
                         uint64_t cost)
{
    if (counters == NULL || reason >= ADM_REASON_COUNT)
        return;
    struct admi_series_chunk *chunk = admi_counters_series_chunk(counters, series);
    if (chunk == NULL)
        return;
    _Atomic uint64_t *counts = chunk->counts[series % ADMI_SERIES_PER_CHUNK][reason];
    add(&counts[ADMI_SERIES_REQUESTS], 1);
    add(&counts[ADMI_SERIES_COST], cost);
}

void admi_count_outcome(struct admi_counters *counters, uint32_t operation, uint32_t outcome)
{
    if (counters != NULL && operation < ADMI_OPERATIONS && outcome < ADM_OUTCOME_COUNT)
        add(&counters->outcomes[operation][outcome], 1);
}

void admi_count_result(struct admi_counters *counters, uint32_t result)
{
    if (counters != NULL && result < ADM_RESULT_COUNT)
        add(&counters->results[result], 1);
}

void admi_count_histogram(struct admi_counters *counters, enum admi_histogram which, uint64_t value)
{
    if (counters == NULL || (uint32_t)which >= ADMI_HISTOGRAM_COUNT)
        return;
    add(&counters->histograms[which].sum, value);
    add(&counters->histograms[which].buckets[admi_histogram_bucket(value)], 1);
}

int admi_sample(struct admi_counters *counters)
{
    return counters != NULL && counters->samples++ % 64 == 0;
}
