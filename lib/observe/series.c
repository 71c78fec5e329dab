/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Series: one for each combination of metric label values, bounded. Values and combinations that
 * are known are found without a lock, and so is that there is no room for more: whoever sends ever
 * new values costs nobody a lock.
 */
#include "observe/internal.h"

#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "observe/writer.h"

/* Never more than half full, so that probing ends. */
#define VALUE_SLOTS       (2 * ADMI_VALUES_MAX)
#define COMBINATION_SLOTS (2 * ADMI_COMBINATIONS_MAX)
#define NAME_BYTES        (ADM_MAX_KEY_BYTES + sizeof "label_" + sizeof "_4")

/* What stands for a value: 0 absent, 1 … ADMI_VALUES_MAX its number, else "other". */
#define VALUE_ABSENT 0u
#define VALUE_OTHER  (ADMI_VALUES_MAX + 1)
#define VALUE_BITS   7u

/* Worst case of the text of one combination: every byte of every value becomes three. */
#define TEXT_BYTES (ADMI_MAX_LABELS * (NAME_BYTES + sizeof "=\"\"," + 3 * ADM_MAX_VALUE_BYTES))

struct value_table {
    _Atomic uint32_t count; /* stored after the slot: when it is full, every value can be seen */
    _Atomic(struct admi_interned *) slots[VALUE_SLOTS];
};

struct admi_label_set {
    uint32_t count;
    uint32_t other_series;
    uint32_t order[ADMI_MAX_LABELS]; /* by exposed name: lists of the same names in another order
                                        share their series */
    char names[ADMI_MAX_LABELS][NAME_BYTES];
    struct value_table values[ADMI_MAX_LABELS];
    _Atomic uint32_t combination_count;               /* as the count of values */
    _Atomic uint64_t combinations[COMBINATION_SLOTS]; /* (code + 1) << 32 | series; 0: empty */
};

/* ---- label names ---- */

static bool is_letter(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_taken(const struct admi_label_set *set, uint32_t before, const char *name)
{
    for (uint32_t i = 0; i < before; i++) {
        if (strcmp(set->names[i], name) == 0)
            return true;
    }
    return false;
}

/* A descriptor key is any bytes; a label name is not, must not start with two underscores, and must
 * not be one of ours. */
static void expose_name(struct admi_label_set *set, uint32_t i, struct adm_bytes key)
{
    const unsigned char *at = key.data;
    char plain[ADM_MAX_KEY_BYTES + 1];
    for (uint64_t k = 0; k < key.length; k++)
        plain[k] = is_letter(at[k]) || (at[k] >= '0' && at[k] <= '9') ? (char)at[k] : '_';
    plain[key.length] = 0;
    struct admi_writer writer = { set->names[i], NAME_BYTES - 1, 0 };
    if (!is_letter((unsigned char)plain[0]) || strncmp(plain, "__", 2) == 0 ||
        strcmp(plain, "verdict") == 0 || strcmp(plain, "reason") == 0)
        admi_write_text(&writer, "label_");
    admi_write_text(&writer, plain);
    uint64_t length = writer.length;
    for (uint64_t n = 2; is_taken(set, i, set->names[i]); n++) {
        writer.length = length;
        admi_write_text(&writer, "_");
        admi_write_number(&writer, n);
        set->names[i][writer.length] = 0;
    }
}

static void sort_names(struct admi_label_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t at = i;
        for (; at > 0 && strcmp(set->names[set->order[at - 1]], set->names[i]) > 0; at--)
            set->order[at] = set->order[at - 1];
        set->order[at] = i;
    }
}

/* ---- series ---- */

/* values NULL: all "other". Names are in order and an absent value is left out, so that equal
 * labels are equal text. */
static struct adm_bytes expose_labels(const struct admi_label_set *set, uint32_t code,
                                      const struct adm_bytes *values, char *text)
{
    struct admi_writer writer = { text, TEXT_BYTES, 0 };
    for (uint32_t n = 0; n < set->count; n++) {
        uint32_t i = set->order[n];
        uint32_t value = code >> (VALUE_BITS * i) & ((1u << VALUE_BITS) - 1);
        if (values != NULL && value == VALUE_ABSENT)
            continue;
        if (writer.length > 0)
            admi_write_text(&writer, ",");
        admi_write_text(&writer, set->names[i]);
        admi_write_text(&writer, "=\"");
        admi_write_label_value(&writer, values == NULL || value == VALUE_OTHER ? adm_str("other")
                                                                               : values[i]);
        admi_write_text(&writer, "\"");
    }
    struct adm_bytes bytes = { text, writer.length };
    return bytes;
}

/* Under the lock. */
static adm_status intern_series(struct admi_observe *observe, struct adm_bytes text, uint32_t *out)
{
    const struct adm_bytes none = { NULL, 0 };
    *out = admi_intern_find(&observe->series, text, none);
    if (*out != ADMI_INTERN_NONE)
        return ADM_OK;
    adm_status status = admi_intern_reserve(&observe->series, 1);
    if (status != ADM_OK)
        return status;
    struct admi_interned *word = admi_interned_new(&observe->allocator, text, none);
    if (word == NULL)
        return ADM_E_NOMEM;
    *out = admi_intern_add(&observe->series, word);
    return ADM_OK;
}

/* ---- label sets ---- */

void admi_label_set_free(const struct adm_allocator *allocator, struct admi_label_set *set)
{
    if (set == NULL)
        return;
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t s = 0; s < VALUE_SLOTS; s++)
            admi_interned_free(
                allocator, atomic_load_explicit(&set->values[i].slots[s], memory_order_relaxed));
    }
    admi_release(allocator, set, 1, sizeof *set);
}

static adm_status add_label_set(struct admi_observe *observe, const struct adm_bytes *names,
                                uint32_t count, struct adm_bytes identity, uint32_t *out_number)
{
    const struct adm_bytes none = { NULL, 0 };
    const struct adm_allocator *allocator = &observe->allocator;
    char text[TEXT_BYTES];
    struct admi_label_set *set = admi_allocate(allocator, 1, sizeof *set);
    struct admi_interned *word = admi_interned_new(allocator, identity, none);
    adm_status status =
        set == NULL || word == NULL ? ADM_E_NOMEM : admi_intern_reserve(&observe->sets, 1);
    if (status == ADM_OK) {
        set->count = count;
        for (uint32_t i = 0; i < count; i++)
            expose_name(set, i, names[i]);
        sort_names(set);
        status = intern_series(observe, expose_labels(set, 0, NULL, text), &set->other_series);
    }
    if (status != ADM_OK) {
        admi_interned_free(allocator, word);
        admi_label_set_free(allocator, set);
        return status;
    }
    *out_number = admi_intern_add(&observe->sets, word);
    atomic_store_explicit(&observe->label_sets[*out_number], set, memory_order_release);
    return ADM_OK;
}

adm_status admi_observe_labels(struct admi_observe *observe, const struct adm_bytes *names,
                               uint32_t count, uint32_t *out_labels_id)
{
    const struct adm_bytes none = { NULL, 0 };
    char text[ADMI_MAX_LABELS * (ADM_MAX_KEY_BYTES + 1)];
    struct adm_bytes identity = { text, 0 };
    if (count > ADMI_MAX_LABELS)
        return ADM_E_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < count; i++) {
        if (names[i].length == 0 || names[i].length > ADM_MAX_KEY_BYTES)
            return ADM_E_INVALID_ARGUMENT;
        text[identity.length] = (char)names[i].length;
        admi_copy(text + identity.length + 1, names[i].data, names[i].length);
        identity.length += names[i].length + 1;
    }
    uint32_t number = ADMI_INTERN_NONE;
    adm_status status = ADM_OK;
    if (count > 0) {
        admi_threads_lock(observe->threads);
        number = admi_intern_find(&observe->sets, identity, none);
        if (number == ADMI_INTERN_NONE && admi_intern_count(&observe->sets) < ADMI_LABEL_SETS_MAX)
            status = add_label_set(observe, names, count, identity, &number);
        admi_threads_unlock(observe->threads);
    }
    if (status == ADM_OK)
        *out_labels_id = number == ADMI_INTERN_NONE ? 0 : number + 1;
    return status;
}

/* ---- from values to a series ---- */

/* The slot of a value, or the empty one where it would go. */
static uint32_t probe_value(const struct value_table *table, uint64_t hash, struct adm_bytes value)
{
    uint32_t at = (uint32_t)hash % VALUE_SLOTS;
    for (;; at = (at + 1) % VALUE_SLOTS) {
        const struct admi_interned *word =
            atomic_load_explicit(&table->slots[at], memory_order_acquire);
        if (word == NULL ||
            (word->hash == hash && admi_bytes_equal(admi_interned_first(word), value)))
            return at;
    }
}

static uint32_t add_value(struct admi_observe *observe, struct value_table *table, uint64_t hash,
                          struct adm_bytes value)
{
    const struct adm_bytes none = { NULL, 0 };
    uint32_t number = VALUE_OTHER;
    admi_threads_lock(observe->threads);
    uint32_t at = probe_value(table, hash, value);
    const struct admi_interned *known =
        atomic_load_explicit(&table->slots[at], memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    struct admi_interned *word = NULL;
    if (known != NULL)
        number = known->number;
    else if (count < ADMI_VALUES_MAX)
        word = admi_interned_new(&observe->allocator, value, none);
    if (word != NULL) {
        number = word->number = count + 1;
        atomic_store_explicit(&table->slots[at], word, memory_order_release);
        atomic_store_explicit(&table->count, count + 1, memory_order_release);
    }
    admi_threads_unlock(observe->threads);
    return number;
}

static uint32_t number_of_value(struct admi_observe *observe, struct value_table *table,
                                struct adm_bytes value)
{
    if (value.length == 0)
        return VALUE_ABSENT;
    if (value.length > ADM_MAX_VALUE_BYTES)
        return VALUE_OTHER;
    /* Before probing: if the table is full now, then what is not found now never was there. */
    bool full = atomic_load_explicit(&table->count, memory_order_acquire) == ADMI_VALUES_MAX;
    uint64_t hash = admi_interned_hash(value);
    const struct admi_interned *word =
        atomic_load_explicit(&table->slots[probe_value(table, hash, value)], memory_order_acquire);
    if (word != NULL)
        return word->number;
    return full ? VALUE_OTHER : add_value(observe, table, hash, value);
}

static uint32_t probe_combination(const struct admi_label_set *set, uint32_t code)
{
    uint32_t at = (uint32_t)(code * UINT64_C(0x9E3779B97F4A7C15) >> 40) % COMBINATION_SLOTS;
    for (;; at = (at + 1) % COMBINATION_SLOTS) {
        uint64_t entry = atomic_load_explicit(&set->combinations[at], memory_order_acquire);
        if (entry == 0 || entry >> 32 == (uint64_t)code + 1)
            return at;
    }
}

static uint32_t add_combination(struct admi_observe *observe, struct admi_label_set *set,
                                uint32_t code, const struct adm_bytes *values)
{
    char text[TEXT_BYTES];
    uint32_t series = set->other_series;
    admi_threads_lock(observe->threads);
    uint32_t at = probe_combination(set, code);
    uint64_t entry = atomic_load_explicit(&set->combinations[at], memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&set->combination_count, memory_order_relaxed);
    if (entry != 0) {
        series = (uint32_t)entry;
    } else if (count < ADMI_COMBINATIONS_MAX &&
               intern_series(observe, expose_labels(set, code, values, text), &series) == ADM_OK) {
        atomic_store_explicit(&set->combinations[at], ((uint64_t)code + 1) << 32 | series,
                              memory_order_release);
        atomic_store_explicit(&set->combination_count, count + 1, memory_order_release);
    } else {
        series = set->other_series;
    }
    admi_threads_unlock(observe->threads);
    return series;
}

static uint32_t series_of(struct admi_observe *observe, struct admi_label_set *set,
                          const struct adm_bytes *values)
{
    uint32_t code = 0;
    bool all_other = true;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t number = number_of_value(observe, &set->values[i], values[i]);
        all_other = all_other && number == VALUE_OTHER;
        code |= number << (VALUE_BITS * i);
    }
    if (all_other)
        return set->other_series;
    bool full = atomic_load_explicit(&set->combination_count, memory_order_acquire) ==
                ADMI_COMBINATIONS_MAX;
    uint64_t entry = atomic_load_explicit(&set->combinations[probe_combination(set, code)],
                                          memory_order_acquire);
    if (entry != 0)
        return (uint32_t)entry;
    return full ? set->other_series : add_combination(observe, set, code, values);
}

uint32_t admi_observe_series(struct admi_observe *observe, struct admi_counters *counters,
                             uint32_t labels_id, const struct adm_bytes *values)
{
    if (labels_id == 0 || labels_id > ADMI_LABEL_SETS_MAX)
        return ADMI_NO_SERIES;
    struct admi_label_set *set =
        atomic_load_explicit(&observe->label_sets[labels_id - 1], memory_order_acquire);
    if (set == NULL)
        return ADMI_NO_SERIES;
    uint32_t series = series_of(observe, set, values);
    if (counters != NULL)
        (void)admi_counters_series_chunk(counters,
                                         series); /* here rather than when it is counted */
    return series;
}
