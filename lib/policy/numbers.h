/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of rules, overrides, table entries and allowances: reading, overlaying, checking. */
#ifndef ADMI_NUMBERS_H
#define ADMI_NUMBERS_H

#include "policy/fields.h"

/* What holds where nothing is given. */
struct admi_numbers admi_numbers_none(void);

/* Reads what is present; false: something was reported. */
bool admi_numbers_read(const struct admi_document *document,
                       const struct admi_found numbers[ADMI_NUMBER_COUNT],
                       struct admi_numbers *out);

/* Whether given (of an override or entry) may be laid over the numbers of a rule of this type. */
enum admi_fit { ADMI_FIT_OK = 0, ADMI_FIT_FIELD, ADMI_FIT_RATE, ADMI_FIT_OPERATOR };
enum admi_fit admi_numbers_fit(enum admi_rule_type type, const struct admi_numbers *base,
                               const struct admi_numbers *given);

/* refill / per is at most 10^9 per second. */
bool admi_numbers_rate_ok(const struct admi_numbers *numbers);

/* Report a misfit at the number that causes it, else at the object. */
void admi_numbers_report(const struct admi_document *document, struct admi_node object,
                         const struct admi_found numbers[ADMI_NUMBER_COUNT], enum admi_fit fit);

#endif
