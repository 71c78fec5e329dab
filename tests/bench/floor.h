/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no library that does the same can avoid: one clock read, one XXH3-128 of each descriptor
 * value used, one compare-and-swap per rule, publication of the lease; on release a claim of the
 * lease and one compare-and-swap per concurrency rule. A denial writes nothing.
 */
#ifndef ADMIT_TESTS_FLOOR_H
#define ADMIT_TESTS_FLOOR_H

#include <stdbool.h>
#include <stdint.h>

struct floor_work {
    unsigned values; /* hashed */
    unsigned rules;
    unsigned released; /* concurrency rules; 0: no lease */
    bool deny;
};

/* self: a struct floor_work. */
void floor_pair(void *self);

#endif
