/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorting in place, n log n for every input, without memory of its own. Not stable: break ties in
 * the comparison.
 */
#ifndef ADMI_SORT_H
#define ADMI_SORT_H

#include <stdint.h>

#define ADMI_SORT_MAX_BYTES 64

/* bytes: of one item, at most ADMI_SORT_MAX_BYTES. compare: below 0, 0, above 0. */
void admi_sort(void *items, uint64_t count, uint64_t bytes,
               int (*compare)(const void *a, const void *b, const void *context),
               const void *context);

#endif
