/* SPDX-License-Identifier: Apache-2.0 */
/* What a YAML scalar without quotes is. */
#ifndef ADMI_YAML_SCALAR_H
#define ADMI_YAML_SCALAR_H

#include <admit/types.h>

enum admi_yaml_scalar {
    ADMI_YAML_STRING = 0, /* every reader takes it for a string */
    ADMI_YAML_LITERAL,    /* JSON: a number, true, false, null */
    ADMI_YAML_BOOLEAN,    /* some reader takes it for … */
    ADMI_YAML_NUMBER,
    ADMI_YAML_DATE,
    ADMI_YAML_NULL,
    ADMI_YAML_SPECIAL /* = and << */
};

/*
 * By the rules of JSON first; then by those of YAML 1.1 and of the core schema of YAML 1.2
 * together, since nobody knows which of them the next reader of the file follows.
 */
enum admi_yaml_scalar admi_yaml_scalar(struct adm_bytes plain);

#endif
