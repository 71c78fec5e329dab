/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the JSON text and the map of places; *yaml: see policy/yaml_json.h. */
#ifndef ADMI_YAML_TEXT_H
#define ADMI_YAML_TEXT_H

#include "policy/yaml_json.h"

/* Without memory they do nothing, and yaml->failed is set. */
void admi_yaml_put(struct admi_yaml *yaml, const void *bytes, uint64_t length);
void admi_yaml_put_string(struct admi_yaml *yaml, const uint8_t *bytes, uint64_t length);
/* What is written next stands there in the YAML text. */
void admi_yaml_mark(struct admi_yaml *yaml, uint32_t start, uint32_t end);
/* Give back what was too much room: those who read the JSON text need memory as well. */
adm_status admi_yaml_fit(struct admi_yaml *yaml);

#endif
