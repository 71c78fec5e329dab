/* SPDX-License-Identifier: Apache-2.0 */
/* Of a take, what is the same wherever the state is kept. */
#ifndef ADMI_TAKE_H
#define ADMI_TAKE_H

#include <stdbool.h>

#include <admit/backend.h>

/* Can a policy make this take? term_count is at most 2 * ADM_MAX_TERMS. */
bool admi_take_is_legal(const struct adm_take *take);
/* Results as of a take that was not judged. */
void admi_take_clear_results(struct adm_take *take);

#endif
