/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML text as JSON text of the same content: whatever reads the one then reads the other, so
 * that both forms of a policy get the same verdict. Every value and name of the JSON text knows
 * where it stands in the YAML text.
 */
#ifndef ADMI_YAML_JSON_H
#define ADMI_YAML_JSON_H

#include "base/json_lexer.h"
#include "policy/diags.h"

/* A value or name: its first byte in the JSON text, its bytes in the YAML text. */
struct admi_yaml_place {
    uint32_t json, start, end;
};

struct admi_yaml {
    const struct adm_allocator *allocator;
    char *json;
    uint64_t length, capacity;
    struct admi_yaml_place *places; /* rising */
    uint64_t place_count, place_capacity;
    /* Values and names that were reported already: the first byte of each in the JSON text. */
    uint32_t flawed[ADMI_DIAGS_MAX];
    uint32_t flawed_count;
    bool failed; /* memory was missing while it was written */
};

/*
 * Read text into a zeroed *yaml. Linear in the text; never more than limits say is looked at.
 * ADM_OK: json is there (findings may have been reported); ADM_E_POLICY_INVALID: not the YAML that
 * we read, reported; ADM_E_NOMEM. Give it back with admi_yaml_fini() in every case.
 */
adm_status admi_yaml_read(struct admi_yaml *yaml, struct adm_bytes text,
                          const struct admi_json_limits *limits,
                          const struct adm_allocator *allocator, struct adm_diags *diags);
void admi_yaml_fini(struct admi_yaml *yaml);

/* The value or name that holds an offset of the JSON text; NULL: before all of them. */
const struct admi_yaml_place *admi_yaml_find(const struct admi_yaml *yaml, uint32_t json);

#endif
