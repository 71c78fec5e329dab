/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of a histogram over whole numbers: four for each power of two. */
#include "observe/histogram.h"

uint32_t admi_histogram_bucket(uint64_t value)
{
    /* Upper bounds are inclusive, so it is the number below the value whose leading bits name the
     * bucket. */
    uint64_t below = value == 0 ? 0 : value - 1;
    if (below < 4)
        return (uint32_t)below;
    uint32_t exponent = 63 - (uint32_t)__builtin_clzll(below);
    return (exponent - 1) * 4 + (uint32_t)(below >> (exponent - 2) & 3);
}

uint64_t admi_histogram_bound(uint32_t bucket)
{
    if (bucket < 4)
        return bucket + 1;
    uint32_t exponent = bucket / 4 + 1;
    return ((uint64_t)4 + bucket % 4 + 1) << (exponent - 2);
}
