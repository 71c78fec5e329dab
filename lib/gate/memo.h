/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend keeps with an attempt id: enough to give the first allow again, after a publish
 * too. */
#ifndef ADMI_MEMO_H
#define ADMI_MEMO_H

#include <stdbool.h>

#include <admit/admit.h>

struct adm_gate;
struct admi_snapshot;

/* Returns the bytes written; out has room for ADM_MEMO_BYTES. */
uint64_t admi_memo_write(const char *policy_version, const char *table_version,
                         struct adm_id decision_id, uint8_t *out);
/* Fills versions and id of the decision. False: not a memo of ours. */
bool admi_memo_read(const uint8_t *memo, uint64_t length, struct adm_decision *decision);

/* Digest of descriptors (in the order of their keys), cost and amounts: what makes two attempts the
 * same. The same in every process, so it is not keyed with a secret of ours. */
void admi_attempt_digest(const struct adm_gate *gate, const struct adm_request *request,
                         uint8_t out[16]);

#endif
