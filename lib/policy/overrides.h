/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides of a rule. */
#ifndef ADMI_OVERRIDES_H
#define ADMI_OVERRIDES_H

#include "policy/parts.h"

/* complete: the rule's own numbers are known and right, so that the overlay can be checked. */
void admi_overrides_read(struct admi_loader *loader, struct admi_node node, struct admi_rule *rule,
                         bool complete);

/* Warns of a lease that may end before the work must have. */
void admi_lease_check(struct admi_loader *loader, struct admi_node node, uint64_t lease_ttl_ns);

#endif
