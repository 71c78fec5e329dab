/* SPDX-License-Identifier: Apache-2.0 */
/* Units and descriptor keys as a policy names them. */
#include "base/memory.h"
#include "policy/parts.h"

uint32_t admi_unit_find(const struct adm_policy *policy, struct adm_bytes name)
{
    for (uint32_t i = 0; admi_builtin_unit_words[i] != NULL; i++)
        if (admi_bytes_equal(admi_words_of(admi_builtin_unit_words[i]), name))
            return i;
    for (uint32_t i = 0; i < policy->unit_count; i++)
        if (admi_bytes_equal(policy->units[i], name))
            return ADM_UNIT_FIRST_DECLARED + i;
    return UINT32_MAX;
}

void admi_unit_unknown(struct admi_loader *loader, struct admi_diag_entry *entry,
                       struct adm_bytes name)
{
    const struct adm_policy *policy = &loader->parts->policy;
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected a unit that is built in or declared in units, found \"");
    admi_words_quote(&words, name, ADM_MAX_KEY_BYTES);
    admi_words_add(&words, "\"");
    struct adm_bytes nearest = admi_nearest_word(admi_builtin_unit_words, name);
    uint32_t errors = nearest.length == 0 ? 3 : admi_words_distance(nearest, name);
    for (uint32_t i = 0; i < policy->unit_count; i++) {
        uint32_t distance = admi_words_distance(policy->units[i], name);
        if (distance < errors) {
            errors = distance;
            nearest = policy->units[i];
        }
    }
    if (nearest.length > 0)
        admi_report_nearest(entry, nearest);
}

bool admi_unit_read(struct admi_loader *loader, struct admi_node node, uint32_t *out)
{
    struct adm_bytes name;
    if (!admi_read_text(&loader->document, node, &name))
        return false;
    uint32_t unit = admi_unit_find(&loader->parts->policy, name);
    if (unit == UINT32_MAX) {
        admi_unit_unknown(
            loader, admi_report_value(&loader->document.source, ADMI_DIAG_UNIT, node.token), name);
        return false;
    }
    *out = unit;
    return true;
}

void admi_item_again(const struct admi_document *document, struct admi_node array,
                     struct admi_node item, const char *expected)
{
    struct admi_diag_entry *entry =
        admi_report_expected(&document->source, ADMI_DIAG_DUPLICATE_ITEM, item.token, expected);
    struct admi_node first;
    for (bool more = admi_node_first(array, &first); more && first.token < item.token;
         more = admi_node_next(document, &first))
        if (admi_bytes_equal(admi_node_string(first), admi_node_string(item))) {
            admi_report_note(&document->source, entry, first.token, false, "it is first here");
            return;
        }
}

bool admi_keys_read(struct admi_loader *loader, struct admi_node node, uint32_t most,
                    uint32_t *slots, uint32_t *count)
{
    const struct admi_document *document = &loader->document;
    if (!admi_read_array(document, node, 0, most))
        return false;
    struct admi_node item;
    struct adm_bytes key;
    bool ok = true;
    *count = 0;
    for (bool more = admi_node_first(node, &item); more; more = admi_node_next(document, &item)) {
        uint32_t slot = ADMI_NO_KEY;
        if (admi_read_key(document, item, &key))
            slot = admi_loader_key(loader, item, false, key);
        if (slot == ADMI_NO_KEY) {
            ok = false;
            continue;
        }
        for (uint32_t i = 0; i < *count; i++)
            if (slots[i] == slot) {
                admi_item_again(document, node, item, "each key once");
                ok = false;
                break;
            }
        slots[(*count)++] = slot;
    }
    return ok;
}
