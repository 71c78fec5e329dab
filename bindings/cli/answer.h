/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP answer that belongs to a decision: status, headers, body. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H

#include <admit/types.h>

#include <stdio.h>

const char *answer_phrase(uint32_t http_status); /* "Too Many Requests" */

/* As it goes over the wire, with plain line ends. */
void answer_print(FILE *out, const struct adm_decision *decision);
void answer_print_json(FILE *out, const struct adm_decision *decision);

#endif
