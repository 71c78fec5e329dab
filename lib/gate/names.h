/* SPDX-License-Identifier: Apache-2.0 */
/* Interned names of a gate: descriptor keys and declared units. Append-only; ids are dense and
 * never change. */
#ifndef ADMI_NAMES_H
#define ADMI_NAMES_H

#include <pthread.h>
#include <stdatomic.h>

#include <admit/admit.h>

#define ADMI_MAX_KEYS  1024u
#define ADMI_MAX_UNITS 64u

struct admi_names {
    const struct adm_allocator *allocator;
    pthread_mutex_t grow;
    _Atomic uint32_t count; /* names below are complete and immutable */
    uint32_t limit;
    struct adm_bytes *names;
};

adm_status admi_names_init(struct admi_names *names, const struct adm_allocator *allocator,
                           uint32_t limit);
void admi_names_fini(struct admi_names *names);
/* Index of the name, new or known. ADM_E_LIMIT, ADM_E_NOMEM. */
adm_status admi_names_intern(struct admi_names *names, struct adm_bytes name, uint32_t *out);
/* UINT32_MAX: not known. */
uint32_t admi_names_find(const struct admi_names *names, struct adm_bytes name);
/* Any thread, without a lock; i must be below a count that was read before. */
struct adm_bytes admi_names_get(const struct admi_names *names, uint32_t i);
uint32_t admi_names_count(const struct admi_names *names);

#endif
