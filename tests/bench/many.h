/* SPDX-License-Identifier: Apache-2.0 */
/* What more than one thread, and more than the cache, makes of the memory backend. */
#ifndef ADMIT_TESTS_MANY_H
#define ADMIT_TESTS_MANY_H

#include <stdbool.h>

/* Print the measured values with their goals; false: one was missed. */
bool bench_threads(unsigned rounds);
bool bench_partitions(void);

#endif
