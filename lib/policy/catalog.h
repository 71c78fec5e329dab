/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of findings: stable code, stable word, severity. They come from docs/diagnostics.json,
 * as do the texts of "admit explain-code", admit-diagnostics(7) and docs/diagnostics.md.
 */
#ifndef ADMI_CATALOG_H
#define ADMI_CATALOG_H

#include <stdint.h>

#include "policy/diagnostic_rows.h"

#define ADMI_DIAG_ENUMERATOR(name, number, word, severity) ADMI_DIAG_##name,
enum admi_diag { ADMI_DIAG_KINDS(ADMI_DIAG_ENUMERATOR) ADMI_DIAG_KIND_COUNT };
#undef ADMI_DIAG_ENUMERATOR

struct admi_diag_kind {
    const char *code; /* "ADM-D-101" */
    const char *name;
    uint32_t severity; /* ADM_SEVERITY_* */
};

extern const struct admi_diag_kind admi_diag_kinds[ADMI_DIAG_KIND_COUNT];

#endif
