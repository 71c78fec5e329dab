/* SPDX-License-Identifier: Apache-2.0 */
/* What each finding of the loader means: the registry, docs/diagnostics.json, as data. */
#ifndef CLI_DIAGNOSTIC_TEXTS_H
#define CLI_DIAGNOSTIC_TEXTS_H

#include <stddef.h>

struct diagnostic_text {
    const char *id;       /* "ADM-D-214" */
    const char *name;     /* "exponent" */
    const char *severity; /* "error", "warning" */
    const char *since;
    const char *text;
    const char *what_now;
    const char *bad, *good; /* an example and its repair, or NULL */
    const char *of;         /* of the example: "policy", "table", "patch" */
    const char *format;     /* of the example: "json", "yaml" */
};

extern const struct diagnostic_text diagnostic_texts[]; /* ends with id NULL */

#endif
