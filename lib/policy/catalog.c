/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of findings: stable code, stable word, severity. */
#include "policy/catalog.h"

#include <admit/policy.h>

#define ADMI_DIAG_ROW(name, number, word, severity)                                                \
    [ADMI_DIAG_##name] = { "ADM-D-" #number, word, ADM_SEVERITY_##severity },
const struct admi_diag_kind admi_diag_kinds[ADMI_DIAG_KIND_COUNT] = { ADMI_DIAG_KINDS(
    ADMI_DIAG_ROW) };
