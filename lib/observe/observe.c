/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a gate's counters: creation, slots for rules, the block of each thread. */
#include "observe/internal.h"

#include "base/memory.h"

adm_status admi_observe_new(const struct adm_allocator *allocator, struct admi_observe **out)
{
    allocator = admi_allocator_or_malloc(allocator);
    struct admi_observe *observe = admi_allocate(allocator, 1, sizeof *observe);
    if (observe == NULL)
        return ADM_E_NOMEM;
    observe->allocator = *allocator;
    allocator = &observe->allocator;
    struct adm_bytes none = { NULL, 0 };
    struct admi_interned *unlabelled = NULL;
    adm_status status =
        admi_threads_new(allocator, sizeof(struct admi_counters), &observe->threads);
    if (status == ADM_OK)
        status = admi_intern_init(&observe->rules, allocator, ADMI_RULES_MAX);
    if (status == ADM_OK)
        status = admi_intern_init(&observe->series, allocator, ADMI_SERIES_MAX);
    if (status == ADM_OK)
        status = admi_intern_init(&observe->sets, allocator, ADMI_LABEL_SETS_MAX);
    if (status == ADM_OK)
        status = admi_intern_reserve(&observe->series, 1);
    if (status == ADM_OK && (unlabelled = admi_interned_new(allocator, none, none)) == NULL)
        status = ADM_E_NOMEM;
    if (status != ADM_OK) {
        admi_observe_free(observe);
        return status;
    }
    (void)admi_intern_add(&observe->series, unlabelled); /* ADMI_NO_SERIES */
    *out = observe;
    return ADM_OK;
}

static void release_counters(void *self, void *block)
{
    const struct admi_observe *observe = self;
    admi_counters_release(block, &observe->allocator);
}

void admi_observe_free(struct admi_observe *observe)
{
    if (observe == NULL)
        return;
    struct adm_allocator allocator = observe->allocator;
    admi_threads_free(observe->threads, release_counters, observe);
    for (uint32_t i = 0; i < ADMI_LABEL_SETS_MAX; i++)
        admi_label_set_free(&allocator,
                            atomic_load_explicit(&observe->label_sets[i], memory_order_relaxed));
    admi_intern_fini(&observe->sets);
    admi_intern_fini(&observe->series);
    admi_intern_fini(&observe->rules);
    admi_release(&allocator, observe, 1, sizeof *observe);
}

struct admi_counters *admi_observe_local(struct admi_observe *observe)
{
    return admi_observe_local_of(observe, admi_this_thread());
}

struct admi_counters *admi_observe_local_of(struct admi_observe *observe, struct admi_thread *self)
{
    struct admi_counters *counters = admi_threads_local_of(observe->threads, self);
    if (counters != NULL && counters->allocator == NULL) {
        counters->allocator = &observe->allocator;
        admi_counters_prepare(counters, admi_intern_count(&observe->rules),
                              admi_intern_count(&observe->series));
    }
    return counters;
}

/* ---- slots for rules ---- */

/* Chunks that were allocated before the registry is visited, because a visit must not allocate. */
struct pool {
    struct admi_rule_chunk **chunks;
    uint64_t count; /* needed, then left */
    uint64_t size;
    uint32_t rule_chunks;
};

static void count_missing(void *self, void *block)
{
    struct pool *pool = self;
    const struct admi_counters *counters = block;
    for (uint32_t i = 0; i < pool->rule_chunks; i++)
        pool->count += atomic_load_explicit(&counters->rules[i], memory_order_acquire) == NULL;
}

static void hang_in(void *self, void *block)
{
    struct pool *pool = self;
    struct admi_counters *counters = block;
    for (uint32_t i = 0; i < pool->rule_chunks && pool->count > 0; i++) {
        struct admi_rule_chunk *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&counters->rules[i], &none,
                                                    pool->chunks[pool->count - 1],
                                                    memory_order_acq_rel, memory_order_relaxed))
            pool->count--;
    }
}

static void empty_pool(const struct admi_observe *observe, struct pool *pool)
{
    while (pool->count > 0)
        admi_release(&observe->allocator, pool->chunks[--pool->count], 1,
                     sizeof(struct admi_rule_chunk));
    admi_release(&observe->allocator, pool->chunks, pool->size, sizeof *pool->chunks);
}

/* For all threads that are known now. One that comes meanwhile makes what it lacks itself. */
static adm_status fill_pool(const struct admi_observe *observe, uint32_t rules, struct pool *pool)
{
    pool->rule_chunks = (rules + ADMI_RULES_PER_CHUNK - 1) / ADMI_RULES_PER_CHUNK;
    admi_threads_each(observe->threads, count_missing, pool);
    pool->size = pool->count;
    pool->count = 0;
    if (pool->size == 0)
        return ADM_OK;
    pool->chunks = admi_allocate(&observe->allocator, pool->size, sizeof *pool->chunks);
    if (pool->chunks == NULL)
        return ADM_E_NOMEM;
    for (; pool->count < pool->size; pool->count++) {
        pool->chunks[pool->count] =
            admi_allocate(&observe->allocator, 1, sizeof(struct admi_rule_chunk));
        if (pool->chunks[pool->count] == NULL)
            return ADM_E_NOMEM;
    }
    return ADM_OK;
}

/* The words that are not known yet, all allocated before the first is added. */
static adm_status make_words(struct admi_observe *observe, const struct adm_bytes *ids,
                             const struct adm_bytes *units, uint64_t count,
                             struct admi_interned **words, uint32_t *out_new)
{
    uint32_t room = ADMI_RULES_MAX - admi_intern_count(&observe->rules);
    uint32_t made = 0;
    for (uint64_t i = 0; i < count && made < room; i++) {
        if (admi_intern_find(&observe->rules, ids[i], units[i]) != ADMI_INTERN_NONE)
            continue;
        words[i] = admi_interned_new(&observe->allocator, ids[i], units[i]);
        if (words[i] == NULL)
            return ADM_E_NOMEM;
        made++;
    }
    *out_new = made;
    return admi_intern_reserve(&observe->rules, made);
}

/* Nothing can fail any more. */
static void add_words(struct admi_observe *observe, const struct adm_bytes *ids,
                      const struct adm_bytes *units, uint64_t count, struct admi_interned **words,
                      uint32_t *out_slots)
{
    uint32_t unmetered = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t slot = admi_intern_find(&observe->rules, ids[i], units[i]);
        if (slot == ADMI_INTERN_NONE && words[i] != NULL) {
            slot = admi_intern_add(&observe->rules, words[i]);
            words[i] = NULL;
        }
        unmetered += slot == ADMI_INTERN_NONE;
        out_slots[i] = slot;
    }
    atomic_store_explicit(&observe->unmetered, unmetered, memory_order_relaxed);
}

adm_status admi_observe_rules(struct admi_observe *observe, const struct adm_bytes *ids,
                              const struct adm_bytes *units, uint64_t count, uint32_t *out_slots)
{
    struct admi_interned **words = admi_allocate(&observe->allocator, count, sizeof *words);
    if (words == NULL)
        return ADM_E_NOMEM;
    struct pool pool = { NULL, 0, 0, 0 };
    uint32_t fresh = 0;
    admi_threads_lock(observe->threads);
    adm_status status = make_words(observe, ids, units, count, words, &fresh);
    if (status == ADM_OK)
        status = fill_pool(observe, admi_intern_count(&observe->rules) + fresh, &pool);
    if (status == ADM_OK) {
        add_words(observe, ids, units, count, words, out_slots);
        admi_threads_each(observe->threads, hang_in, &pool);
    }
    admi_threads_unlock(observe->threads);
    empty_pool(observe, &pool);
    for (uint64_t i = 0; i < count; i++)
        admi_interned_free(&observe->allocator, words[i]);
    admi_release(&observe->allocator, words, count, sizeof *words);
    return status;
}
