/* SPDX-License-Identifier: Apache-2.0 */
/* What is legal but suspicious in a policy without errors; ADM_POLICY_LINT asks for it. */
#ifndef ADMI_LINT_H
#define ADMI_LINT_H

#include "policy/parts.h"

/* While the document is still there: findings have places. */
void admi_lint(struct admi_loader *loader);

/* Whether every request for which the second holds is one for which the first holds. May say false
 * where it is true, never the other way. */
bool admi_match_covers(const struct admi_match *wide, const struct admi_match *narrow);
/* Whether the "not" leaves out all that the rest lets in; with the same caution. */
bool admi_match_contradicts(const struct admi_match *match);
/* Whether no request can hold for both; with the same caution. */
bool admi_match_excludes(const struct admi_match *match, const struct admi_match *when);

#endif
