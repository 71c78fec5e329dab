/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets of a histogram over whole numbers: four for each power of two, so that a quantile is at
 * most a quarter off, for any value, with bounds that never depend on the data. One per power of
 * two would cost the same to record, and could not tell a latency from its double. Bucket i holds
 * the values above admi_histogram_bound(i - 1), up to and with admi_histogram_bound(i), as the le
 * label of the exposition wants it.
 */
#ifndef ADMI_OBSERVE_HISTOGRAM_H
#define ADMI_OBSERVE_HISTOGRAM_H

#include <stdint.h>

#define ADMI_HISTOGRAM_BUCKETS 252u /* the last one ends at 2^64 */

uint32_t admi_histogram_bucket(uint64_t value);
uint64_t admi_histogram_bound(uint32_t bucket); /* bucket < ADMI_HISTOGRAM_BUCKETS - 1 */

#endif
