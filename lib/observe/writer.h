/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text into a buffer of the caller's that may be too small: the length always counts on, nothing is
 * ever written beyond the buffer. With capacity 0 it only counts.
 */
#ifndef ADMI_OBSERVE_WRITER_H
#define ADMI_OBSERVE_WRITER_H

#include <admit/types.h>

struct admi_writer {
    char *buffer;
    uint64_t capacity;
    uint64_t length; /* of the whole text, written or not */
};

void admi_write_bytes(struct admi_writer *writer, const void *data, uint64_t length);
void admi_write_text(struct admi_writer *writer, const char *text);
void admi_write_number(struct admi_writer *writer, uint64_t number);
/* number / 10^digits, exactly, with at least one digit after the point and no other trailing zeros.
 */
void admi_write_decimal(struct admi_writer *writer, uint64_t number, uint32_t digits);
/* Any bytes as the inside of a quoted label value: backslash, quote and newline are escaped; NUL,
 * and each byte that is not part of well-formed UTF-8, becomes U+FFFD. At most three bytes for one.
 */
void admi_write_label_value(struct admi_writer *writer, struct adm_bytes value);

#endif
