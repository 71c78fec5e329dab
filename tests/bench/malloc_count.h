/* SPDX-License-Identifier: Apache-2.0 */
/* What the whole process asks malloc for: the program that links malloc_count.c has its own
 * malloc. */
#ifndef ADMIT_TESTS_MALLOC_COUNT_H
#define ADMIT_TESTS_MALLOC_COUNT_H

#include <stdint.h>

struct malloc_count {
    uint64_t calls; /* malloc, calloc, realloc and the aligned ones */
    uint64_t frees;
    int64_t bytes; /* out now, as malloc_usable_size() sees them */
    int64_t peak;
};

struct malloc_count malloc_count_now(void);
void malloc_count_reset_peak(void); /* from now on: the peak is what is out now */

#endif
