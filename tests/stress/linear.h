/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there an order of these operations, each at some moment between its call and its return, in
 * which a sequential model gives every answer that was seen? Wing and Gong's search with Lowe's
 * memory of what was tried: every operation that could be next is tried, and a state that was
 * reached before with the same operations done is not tried again.
 */
#ifndef TESTS_STRESS_LINEAR_H
#define TESTS_STRESS_LINEAR_H

#include <stdint.h>

#define LINEAR_OPERATIONS_MAX 60u
#define LINEAR_STATE_BYTES    64u

struct linear_operation {
    uint64_t called, returned; /* one clock for all threads; called < returned */
    const void *what;          /* the model's: arguments and the answer that was seen */
};

/* Carry what out on the state. 1: it may give the answer that was seen; 0: not here. A state is
 * LINEAR_STATE_BYTES at most, equal states are equal bytes. */
typedef int (*linear_model_fn)(void *state, const void *what);

enum linear_verdict { LINEAR_YES, LINEAR_NO, LINEAR_TOO_LARGE };

/* state: at the beginning. TOO_LARGE: more operations than the limit, or more states than memory. */
enum linear_verdict linear_check(const struct linear_operation *operations, uint32_t count,
                                 linear_model_fn model, const void *state, uint32_t state_bytes);

#endif
