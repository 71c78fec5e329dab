/* SPDX-License-Identifier: Apache-2.0 */
/* The search of linear.h. */
#include "linear.h"

#include <string.h>

#define SEEN_MAX 65536u /* a power of two */

struct seen {
    uint64_t done;
    uint8_t state[LINEAR_STATE_BYTES];
};

struct search {
    const struct linear_operation *operations;
    uint32_t count, state_bytes, seen_count;
    linear_model_fn model;
    uint32_t round; /* stamps[i] == round: seen[i] is of this search */
};

static _Thread_local struct seen seen[SEEN_MAX];
static _Thread_local uint32_t stamps[SEEN_MAX];
static _Thread_local uint32_t rounds;

/* 1: was there before. 0: noted now. -1: no memory left. */
static int note(struct search *search, uint64_t done, const uint8_t *state)
{
    uint64_t hash = done * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at;

    for (uint32_t i = 0; i < search->state_bytes; i++)
        hash = (hash ^ state[i]) * UINT64_C(0x100000001b3);
    at = (uint32_t)(hash ^ hash >> 32) % SEEN_MAX;
    for (; stamps[at] == search->round; at = (at + 1) % SEEN_MAX) {
        if (seen[at].done == done && memcmp(seen[at].state, state, search->state_bytes) == 0)
            return 1;
    }
    if (search->seen_count++ == SEEN_MAX / 2)
        return -1;
    stamps[at] = search->round;
    seen[at].done = done;
    memcpy(seen[at].state, state, search->state_bytes);
    return 0;
}

static enum linear_verdict go_on(struct search *search, uint64_t done, const uint8_t *state)
{
    uint64_t first_return = UINT64_MAX;
    int noted;

    if (done == (UINT64_C(1) << search->count) - 1)
        return LINEAR_YES;
    noted = note(search, done, state);
    if (noted != 0)
        return noted > 0 ? LINEAR_NO : LINEAR_TOO_LARGE;
    for (uint32_t i = 0; i < search->count; i++) {
        if ((done >> i & 1) == 0 && search->operations[i].returned < first_return)
            first_return = search->operations[i].returned;
    }
    for (uint32_t i = 0; i < search->count; i++) {
        uint8_t next[LINEAR_STATE_BYTES];
        enum linear_verdict verdict;

        /* One that was called after another had returned cannot come before it. */
        if ((done >> i & 1) != 0 || search->operations[i].called > first_return)
            continue;
        memcpy(next, state, search->state_bytes);
        if (!search->model(next, search->operations[i].what))
            continue;
        verdict = go_on(search, done | UINT64_C(1) << i, next);
        if (verdict != LINEAR_NO)
            return verdict;
    }
    return LINEAR_NO;
}

enum linear_verdict linear_check(const struct linear_operation *operations, uint32_t count,
                                 linear_model_fn model, const void *state, uint32_t state_bytes)
{
    struct search search = { operations, count, state_bytes, 0, model, ++rounds };
    uint8_t begin[LINEAR_STATE_BYTES] = { 0 };

    if (count > LINEAR_OPERATIONS_MAX || state_bytes > LINEAR_STATE_BYTES)
        return LINEAR_TOO_LARGE;
    memcpy(begin, state, state_bytes);
    return go_on(&search, 0, begin);
}
