/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy document as a whole. Fields that rules refer to are read before the rules, wherever
 * they stand.
 */
#include "base/memory.h"
#include "policy/parts.h"

static bool is_lower(uint8_t c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* [a-z][a-z0-9_]{0,63} */
static bool is_unit_name(struct adm_bytes name)
{
    const uint8_t *bytes = name.data;
    if (name.length == 0 || name.length > 64 || !is_lower(bytes[0]))
        return false;
    for (uint64_t i = 1; i < name.length; i++)
        if (!is_lower(bytes[i]) && !is_digit(bytes[i]) && bytes[i] != '_')
            return false;
    return true;
}

/* [a-zA-Z_][a-zA-Z0-9_]{0,63}: what an exposition can carry as the name of a label. */
static bool is_label_name(struct adm_bytes name)
{
    const uint8_t *bytes = name.data;
    for (uint64_t i = 0; i < name.length; i++)
        if (!is_lower(bytes[i] | 0x20) && bytes[i] != '_' && (i == 0 || !is_digit(bytes[i])))
            return false;
    return name.length > 0 && name.length <= ADM_MAX_KEY_BYTES;
}

static void read_units(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct adm_policy *policy = &loader->parts->policy;
    struct admi_node item;
    if (!admi_read_array(document, node, 0, ADMI_UNITS_DECLARED_MAX))
        return;
    struct adm_bytes *units =
        admi_arena_allocate(&loader->parts->arena, ADMI_UNITS_DECLARED_MAX, sizeof *units);
    if (units == NULL)
        return;
    policy->units = units;
    for (bool more = admi_node_first(node, &item); more; more = admi_node_next(document, &item)) {
        struct adm_bytes name;
        if (!admi_read_text(document, item, &name))
            continue;
        uint32_t known = admi_unit_find(policy, name);
        if (!is_unit_name(name))
            admi_report_expected(&document->source, ADMI_DIAG_UNIT, item.token,
                                 "a unit: 1 to 64 of a-z 0-9 _, first a letter");
        else if (known < ADM_UNIT_FIRST_DECLARED)
            admi_report_expected(&document->source, ADMI_DIAG_UNIT, item.token,
                                 "a unit that is not built in");
        else if (known != UINT32_MAX)
            admi_item_again(document, node, item, "each unit once");
        else
            units[policy->unit_count++] = admi_arena_copy(&loader->parts->arena, name);
        if (loader->parts->arena.failed)
            return;
    }
}

static void read_labels(struct admi_loader *loader, struct admi_node node)
{
    const struct admi_document *document = &loader->document;
    struct adm_policy *policy = &loader->parts->policy;
    if (!admi_keys_read(loader, node, ADMI_LABELS_MAX, policy->labels, &policy->label_count))
        return;
    struct admi_node item;
    uint32_t i = 0;
    for (bool more = admi_node_first(node, &item); more; more = admi_node_next(document, &item))
        if (!is_label_name(policy->keys[policy->labels[i++]]))
            admi_report_expected(&document->source, ADMI_DIAG_LABEL, item.token,
                                 "a label: letters, digits and _, first not a digit");
}

static void read_version(struct admi_loader *loader, const struct admi_found *found)
{
    struct adm_bytes version;
    if (found->present && admi_read_version(&loader->document, found->node, &version))
        admi_copy(loader->parts->policy.version, version.data, version.length);
}

void admi_top_read(struct admi_loader *loader)
{
    const struct admi_document *document = &loader->document;
    struct adm_policy *policy = &loader->parts->policy;
    struct admi_found own[ADMI_TOP_COUNT];
    struct adm_bytes text;
    uint32_t word = 0;
    policy->max_clock_skew_ns = ADMI_SKEW_DEFAULT;
    policy->shard_key = ADMI_NO_KEY;
    if (!admi_fields_find(document, admi_document_root(document), &admi_top_object, ADMI_TYPES_ALL,
                          own, NULL))
        return;
    read_version(loader, &own[ADMI_TOP_VERSION]);
    if (own[ADMI_TOP_DESCRIPTION].present)
        admi_read_text(document, own[ADMI_TOP_DESCRIPTION].node, &text);
    if (own[ADMI_TOP_UNMATCHED].present)
        admi_read_word(document, own[ADMI_TOP_UNMATCHED].node,
                       admi_top_object.fields[ADMI_TOP_UNMATCHED].words, ADMI_DIAG_WORD, &word);
    policy->unmatched_allow = word == 1;
    if (own[ADMI_TOP_MAX_CLOCK_SKEW].present)
        admi_read_duration(document, own[ADMI_TOP_MAX_CLOCK_SKEW].node, &policy->max_clock_skew_ns);
    if (own[ADMI_TOP_SHARD_BY].present &&
        admi_read_key(document, own[ADMI_TOP_SHARD_BY].node, &text))
        policy->shard_key = admi_loader_key(loader, own[ADMI_TOP_SHARD_BY].node, false, text);
    if (own[ADMI_TOP_HARD_TIMEOUT].present)
        admi_read_duration(document, own[ADMI_TOP_HARD_TIMEOUT].node, &policy->hard_timeout_ns);
    if (own[ADMI_TOP_METRIC_LABELS].present)
        read_labels(loader, own[ADMI_TOP_METRIC_LABELS].node);
    if (own[ADMI_TOP_UNITS].present)
        read_units(loader, own[ADMI_TOP_UNITS].node);
    if (own[ADMI_TOP_RULES].present)
        admi_rules_check(loader, own[ADMI_TOP_RULES].node);
    if (own[ADMI_TOP_ON_STATE_FAILURE].present)
        admi_allowances_read(loader, own[ADMI_TOP_ON_STATE_FAILURE].node);
    if (own[ADMI_TOP_EXAMPLES].present)
        admi_examples_read(loader, own[ADMI_TOP_EXAMPLES].node);
}
