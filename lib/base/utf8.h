/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 only: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef ADMI_UTF8_H
#define ADMI_UTF8_H

#include <stdint.h>

/*
 * Bytes (1 to 4) of the well-formed sequence at text, of which left bytes may be read; 0: there is
 * none.
 */
uint32_t admi_utf8_sequence(const uint8_t *text, uint64_t left);

/* Write a scalar value (no surrogate, at most 0x10FFFF); the number of bytes written. */
uint32_t admi_utf8_encode(uint32_t code, uint8_t out[4]);

#endif
