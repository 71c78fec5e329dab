/* SPDX-License-Identifier: Apache-2.0 */
/* numbered words that only grow. */
#include "observe/intern.h"

#include <assert.h>

#include "base/memory.h"

/* Compilers make one load of this; it is the same number on every machine. */
static uint64_t eight_bytes(const unsigned char *at)
{
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 |
           (uint64_t)at[4] << 32 | (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 |
           (uint64_t)at[7] << 56;
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 32;
}

/* Quick, not secret: whoever adds words is bounded by the list's max, so that the worst run is
 * short enough. */
uint64_t admi_interned_hash(struct adm_bytes bytes)
{
    const unsigned char *at = bytes.data;
    uint64_t hash = bytes.length * UINT64_C(0x9E3779B97F4A7C15);
    uint64_t left = bytes.length;
    for (; left >= 8; left -= 8, at += 8)
        hash = mix(hash, eight_bytes(at));
    uint64_t last = 0;
    for (uint64_t i = 0; i < left; i++)
        last = last << 8 | at[i];
    return left > 0 ? mix(hash, last) : hash;
}

static uint64_t word_bytes(uint64_t first, uint64_t second)
{
    return sizeof(struct admi_interned) + first + second;
}

struct admi_interned *admi_interned_new(const struct adm_allocator *allocator,
                                        struct adm_bytes first, struct adm_bytes second)
{
    struct admi_interned *word =
        admi_allocate(allocator, 1, word_bytes(first.length, second.length));
    if (word == NULL)
        return NULL;
    word->hash = admi_interned_hash(first);
    word->first_length = (uint32_t)first.length;
    word->second_length = (uint32_t)second.length;
    admi_copy(word->text, first.data, first.length);
    admi_copy(word->text + first.length, second.data, second.length);
    return word;
}

void admi_interned_free(const struct adm_allocator *allocator, struct admi_interned *word)
{
    if (word != NULL)
        admi_release(allocator, word, 1, word_bytes(word->first_length, word->second_length));
}

struct adm_bytes admi_interned_first(const struct admi_interned *word)
{
    struct adm_bytes bytes = { word->text, word->first_length };
    return bytes;
}

struct adm_bytes admi_interned_second(const struct admi_interned *word)
{
    struct adm_bytes bytes = { word->text + word->first_length, word->second_length };
    return bytes;
}

static uint32_t chunk_count(const struct admi_intern *words)
{
    return (words->max + ADMI_INTERN_PER_CHUNK - 1) / ADMI_INTERN_PER_CHUNK;
}

adm_status admi_intern_init(struct admi_intern *words, const struct adm_allocator *allocator,
                            uint32_t max)
{
    words->allocator = allocator;
    words->max = max;
    words->chunks = admi_allocate(allocator, chunk_count(words), sizeof *words->chunks);
    return words->chunks != NULL ? ADM_OK : ADM_E_NOMEM;
}

void admi_intern_fini(struct admi_intern *words)
{
    if (words->chunks == NULL)
        return;
    for (uint32_t c = 0; c < chunk_count(words); c++) {
        struct admi_interned **chunk =
            atomic_load_explicit(&words->chunks[c], memory_order_relaxed);
        for (uint32_t i = 0; chunk != NULL && i < ADMI_INTERN_PER_CHUNK; i++)
            admi_interned_free(words->allocator, chunk[i]);
        admi_release(words->allocator, chunk, ADMI_INTERN_PER_CHUNK, sizeof *chunk);
    }
    admi_release(words->allocator, words->chunks, chunk_count(words), sizeof *words->chunks);
    admi_release(words->allocator, words->index, words->index_size, sizeof *words->index);
}

uint32_t admi_intern_count(const struct admi_intern *words)
{
    return atomic_load_explicit(&words->count, memory_order_acquire);
}

const struct admi_interned *admi_intern_at(const struct admi_intern *words, uint32_t number)
{
    assert(number < admi_intern_count(words));
    struct admi_interned **chunk =
        atomic_load_explicit(&words->chunks[number / ADMI_INTERN_PER_CHUNK], memory_order_acquire);
    return chunk[number % ADMI_INTERN_PER_CHUNK];
}

/* The place in the index where a word of this hash and first part is, or the empty one where it
 * would go. second NULL: the first word in the list with this first part. */
static uint32_t probe(const struct admi_intern *words, uint64_t hash, struct adm_bytes first,
                      const struct adm_bytes *second)
{
    uint32_t at = (uint32_t)hash & (words->index_size - 1);
    for (;; at = (at + 1) & (words->index_size - 1)) {
        if (words->index[at] == 0)
            return at;
        const struct admi_interned *word = admi_intern_at(words, words->index[at] - 1);
        if (word->hash == hash && admi_bytes_equal(admi_interned_first(word), first) &&
            (second == NULL || admi_bytes_equal(admi_interned_second(word), *second)))
            return at;
    }
}

uint32_t admi_intern_find(const struct admi_intern *words, struct adm_bytes first,
                          struct adm_bytes second)
{
    if (words->index_size == 0)
        return ADMI_INTERN_NONE;
    uint32_t at = probe(words, admi_interned_hash(first), first, &second);
    return words->index[at] == 0 ? ADMI_INTERN_NONE : words->index[at] - 1;
}

/* Numbers go in in rising order, so that of equal first parts the first one comes first in its run.
 */
static void enter(struct admi_intern *words, const struct admi_interned *word)
{
    uint32_t at = (uint32_t)word->hash & (words->index_size - 1);
    while (words->index[at] != 0)
        at = (at + 1) & (words->index_size - 1);
    words->index[at] = word->number + 1;
}

static adm_status reserve_index(struct admi_intern *words, uint32_t count)
{
    uint32_t size = words->index_size == 0 ? 16 : words->index_size;
    while (size / 2 < count)
        size *= 2;
    if (size == words->index_size)
        return ADM_OK;
    uint32_t *index = admi_allocate(words->allocator, size, sizeof *index);
    if (index == NULL)
        return ADM_E_NOMEM;
    admi_release(words->allocator, words->index, words->index_size, sizeof *words->index);
    words->index = index;
    words->index_size = size;
    uint32_t present = admi_intern_count(words);
    for (uint32_t i = 0; i < present; i++)
        enter(words, admi_intern_at(words, i));
    return ADM_OK;
}

adm_status admi_intern_reserve(struct admi_intern *words, uint32_t more)
{
    uint32_t count = admi_intern_count(words);
    if (more > words->max - count)
        return ADM_E_LIMIT;
    for (uint32_t c = 0; c * ADMI_INTERN_PER_CHUNK < count + more; c++) {
        if (atomic_load_explicit(&words->chunks[c], memory_order_relaxed) != NULL)
            continue;
        struct admi_interned **chunk =
            admi_allocate(words->allocator, ADMI_INTERN_PER_CHUNK, sizeof *chunk);
        if (chunk == NULL)
            return ADM_E_NOMEM;
        atomic_store_explicit(&words->chunks[c], chunk, memory_order_release);
    }
    return reserve_index(words, count + more);
}

uint32_t admi_intern_add(struct admi_intern *words, struct admi_interned *word)
{
    uint32_t number = admi_intern_count(words);
    uint32_t at = probe(words, word->hash, admi_interned_first(word), NULL);
    word->number = number;
    word->first_use = words->index[at] == 0 ? number : words->index[at] - 1;
    struct admi_interned **chunk =
        atomic_load_explicit(&words->chunks[number / ADMI_INTERN_PER_CHUNK], memory_order_relaxed);
    chunk[number % ADMI_INTERN_PER_CHUNK] = word;
    enter(words, word);
    atomic_store_explicit(&words->count, number + 1, memory_order_release);
    return number;
}
