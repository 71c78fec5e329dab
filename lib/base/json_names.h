/* SPDX-License-Identifier: Apache-2.0 */
/* The names of members after unescaping: comparing them, and finding duplicates. */
#ifndef ADMI_JSON_NAMES_H
#define ADMI_JSON_NAMES_H

#include "base/json_lexer.h"

/* Marks and reports, in the order of the text, each member whose name its object has had before. */
adm_status admi_json_find_duplicates(struct admi_json *json,
                                     const struct admi_json_reporter *reporter);

/* The first member of that name in the object of a member that is a duplicate. */
uint32_t admi_json_first_of_name(const struct admi_json *json, uint32_t token);

/* A member of an object by its name, and an item of an array; ADMI_JSON_NONE: there is none. */
uint32_t admi_json_member(const struct admi_json *json, uint32_t object, struct adm_bytes name);
uint32_t admi_json_item(const struct admi_json *json, uint32_t array, uint32_t index);

#endif
