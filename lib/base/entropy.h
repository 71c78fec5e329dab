/* SPDX-License-Identifier: Apache-2.0 */
/* Unpredictable bytes from the system: the default of struct adm_random. */
#ifndef ADMI_ENTROPY_H
#define ADMI_ENTROPY_H

#include <stdint.h>

/* 0 on success; then all of out is written. self is not used. */
int32_t admi_entropy_fill(void *self, void *out, uint64_t bytes);

#endif
