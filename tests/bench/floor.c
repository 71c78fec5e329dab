/* SPDX-License-Identifier: Apache-2.0 */
#include "floor.h"

#include "windows.h"

#include <stdatomic.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

struct line {
    _Alignas(64) _Atomic uint64_t word;
};

static struct line words[16], lease;
static const char *const values[] = { "acme", "pool-a", "llm" };
static const uint32_t lengths[] = { 4, 6, 3 };
static const unsigned char secret[192] = { 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144 };
static volatile uint64_t sink;

static void swap(struct line *line, uint64_t by)
{
    uint64_t word = atomic_load_explicit(&line->word, memory_order_relaxed);

    while (!atomic_compare_exchange_weak(&line->word, &word, word + by))
        continue;
}

void floor_pair(void *self)
{
    const struct floor_work *work = self;
    uint64_t now = now_ns(), hash = 0;

    for (unsigned i = 0; i < work->values; i++) {
        const volatile uint32_t *length = &lengths[i]; /* not a constant to the compiler */
        XXH128_hash_t h = XXH3_128bits_withSecret(values[i], *length, secret, sizeof secret);

        hash ^= h.low64 ^ h.high64;
    }
    sink = now + hash;
    for (unsigned i = 0; i < work->rules; i++) {
        if (work->deny)
            sink = atomic_load_explicit(&words[i].word, memory_order_acquire);
        else
            swap(&words[i], 1);
    }
    if (work->deny || work->released == 0)
        return;
    atomic_store_explicit(&lease.word, now, memory_order_release);
    swap(&lease, 1);
    for (unsigned i = 0; i < work->released; i++)
        swap(&words[i], UINT64_MAX);
}
