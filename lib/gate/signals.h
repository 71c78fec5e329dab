/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of replicas: who is healthy, and the mean of a signal. Exact fixed point, bounded
 * memory. */
#ifndef ADMI_SIGNALS_H
#define ADMI_SIGNALS_H

#include <stdbool.h>

#include <admit/admit.h>

#include "base/wide.h"

#define ADMI_MAX_REPLICAS 1024u
#define ADMI_SIGNAL_ONE   INT64_C(1000000000) /* 10^-9 is the unit of a value */

struct admi_signals;

adm_status admi_signals_new(const struct adm_allocator *allocator, uint64_t values_max,
                            uint64_t health_age_ns, struct admi_signals **out);
void admi_signals_free(struct admi_signals *signals);

/* keep_ns: values younger than this may still be asked for and are never dropped. missing: not a
 * number. */
adm_status admi_signals_put(struct admi_signals *signals, struct adm_bytes scope,
                            struct adm_bytes replica, struct adm_bytes name, admi_i128 value,
                            bool missing, uint64_t now_ns, uint64_t keep_ns);

/* Healthy replicas of a scope with a fresh health signal; 0 when there is none or no such scope. */
uint64_t admi_signals_healthy(struct admi_signals *signals, struct adm_bytes scope,
                              uint64_t now_ns);

/* Sum and number of the fresh values of a signal over the replicas that count: once any replica of
 * the scope has ever reported health, only healthy ones. count 0: nothing to go by. */
void admi_signals_sum(struct admi_signals *signals, struct adm_bytes scope, struct adm_bytes name,
                      uint64_t max_age_ns, uint64_t now_ns, admi_i128 *out_sum,
                      uint64_t *out_count);

/* Visit each scope with its healthy count. Under the lock: visit must not call back. */
void admi_signals_scopes(struct admi_signals *signals, uint64_t now_ns,
                         void (*visit)(void *self, struct adm_bytes scope, uint64_t healthy),
                         void *self);
/* Bytes and number of all scope names, for sizing what visit fills. */
void admi_signals_size(struct admi_signals *signals, uint64_t *out_scopes, uint64_t *out_bytes,
                       uint64_t *out_values);

#endif
