/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates that take turns in short windows of one thread, and what the windows say: a ratio
 * within a round survives a change of clock speed. A window in which the kernel took the processor
 * away is dropped. */
#ifndef ADMIT_TESTS_WINDOWS_H
#define ADMIT_TESTS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#define ROUNDS_MIN 31u
#define ROUNDS_MAX 1001u

struct candidate {
    const char *name;
    void (*pair)(void *self); /* one admit and its release */
    void *self;
    uint64_t pairs; /* per window */
    double ns[ROUNDS_MAX];
    bool clean[ROUNDS_MAX];
};

uint64_t now_ns(void);

/* Warm up, and find how many pairs fill a window. */
void calibrate(struct candidate *candidate);

/* The first round that was one too many: at least rounds, and then until everybody has enough
 * clean ones. At most 16 candidates. */
unsigned measure(struct candidate *all, int count, unsigned rounds);

struct quartiles {
    double q1, median, q3;
    unsigned windows;
};

/* Of candidate's windows, or of their ratio to base's windows of the same rounds. */
struct quartiles quartiles(const struct candidate *candidate, const struct candidate *base,
                           unsigned rounds);

#endif
