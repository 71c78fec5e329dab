/* SPDX-License-Identifier: Apache-2.0 */
/* Between registry.c (records) and registry_put.c (sets and numbers). */
#ifndef ADMI_REGISTRY_RECORD_H
#define ADMI_REGISTRY_RECORD_H

#include "state/registry.h"

/* One operation on a registry. */
struct admi_registry_use {
    struct admi_registry *registry;
    const struct admi_registry_hooks *hooks;
    uint64_t now_ns;
};

#define ADMI_REGISTRY_SHADOW 1u

/* The owner's index; ADMI_OWNERS_MAX: there is no room. */
uint32_t admi_registry_owner(struct admi_registry *registry, struct adm_bytes name);
/* 0: the table is full. */
uint32_t admi_registry_family(const struct admi_registry_use *use, const struct adm_class *class_,
                              uint32_t owner);
/* A base by its origin, or (base != 0) the class of a scope by the scope's name. */
uint32_t admi_registry_class_find(const struct admi_registry *registry, const struct admi_key *name,
                                  uint32_t family, uint32_t base);
uint32_t admi_registry_class_make(const struct admi_registry_use *use, const struct admi_key *name,
                                  uint32_t family, uint32_t base);
void admi_registry_class_free(const struct admi_registry_use *use, uint32_t place);
/* Are all its buckets as new, and free to go, and does no raise hold them down? */
bool admi_registry_makes_no_difference(const struct admi_registry_use *use, uint32_t place);
/* Everything that no set names and that makes no difference; not what a put that is under way is
 * about to name again (mark). */
void admi_registry_reclaim_all(const struct admi_registry_use *use, uint64_t mark);

static inline void admi_registry_changed(const struct admi_registry_use *use, uint32_t place)
{
    if (use->hooks->class_changed != NULL)
        use->hooks->class_changed(use->hooks->self, place);
}

#endif
