/* SPDX-License-Identifier: Apache-2.0 */
/* In a build without libyaml: every YAML text is refused, and says why. */
#include "policy/yaml_json.h"

#include <stddef.h>

#include "policy/words.h"

adm_status admi_yaml_read(struct admi_yaml *yaml, struct adm_bytes text,
                          const struct admi_json_limits *limits,
                          const struct adm_allocator *allocator, struct adm_diags *diags)
{
    (void)text;
    (void)limits;
    yaml->allocator = allocator;
    struct admi_diag_entry *entry =
        admi_diags_add(diags, ADMI_DIAG_YAML_NOT_BUILT, ADMI_DIAG_NO_PLACE);
    if (entry != NULL) {
        struct admi_words words = admi_words_start(entry->message, sizeof entry->message);
        admi_words_add(&words, "expected JSON: this library was built without YAML");
    }
    return ADM_E_POLICY_INVALID;
}

void admi_yaml_fini(struct admi_yaml *yaml)
{
    (void)yaml;
}

const struct admi_yaml_place *admi_yaml_find(const struct admi_yaml *yaml, uint32_t json)
{
    (void)yaml;
    (void)json;
    return NULL;
}
