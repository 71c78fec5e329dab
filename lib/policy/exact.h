/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations, exactly from their text and never through a float. */
#ifndef ADMI_EXACT_H
#define ADMI_EXACT_H

#include "policy/ruleset.h"

#define ADMI_DURATION_MAX   (UINT64_C(366) * 86400 * ADM_SECOND)
#define ADMI_DECIMAL_DIGITS 18u

enum admi_exact {
    ADMI_EXACT_OK = 0,
    ADMI_EXACT_NEGATIVE,
    ADMI_EXACT_POINT,
    ADMI_EXACT_EXPONENT,
    ADMI_EXACT_RANGE,
    ADMI_EXACT_DIGITS, /* more than 18 behind the point */
    ADMI_EXACT_MALFORMED
};

/* text is a JSON number. *out is written on success only. */
enum admi_exact admi_exact_whole(struct adm_bytes text, uint64_t least, uint64_t most,
                                 uint64_t *out);
enum admi_exact admi_exact_decimal(struct adm_bytes text, struct admi_decimal *out);

/* (0|[1-9][0-9]*)(ms|s|m|h|d), 1 ms to 366 days. */
enum admi_exact admi_exact_duration(struct adm_bytes text, uint64_t *out_ns);

#endif
