/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the members of an object by its table. */
#include "policy/fields.h"

#include "base/memory.h"

bool admi_node_is(const struct admi_document *document, struct admi_node node,
                  enum admi_json_kind kind)
{
    return admi_node_token(document, node)->kind == kind;
}

bool admi_node_flawed(const struct admi_document *document, struct admi_node node)
{
    return (admi_node_token(document, node)->flaws & ADMI_JSON_FLAWED_VALUE) != 0;
}

static uint32_t field_count(const struct admi_object *object)
{
    return object->count + (object->numbers ? (uint32_t)ADMI_NUMBER_COUNT : 0);
}

/* Own fields first, then the numbers. */
static const struct admi_field *field_at(const struct admi_object *object, uint32_t i)
{
    return i < object->count ? &object->fields[i] : &admi_number_fields[i - object->count];
}

static struct admi_found *found_at(const struct admi_object *object, uint32_t i,
                                   struct admi_found *own, struct admi_found *numbers)
{
    return i < object->count ? &own[i] : &numbers[i - object->count];
}

static uint32_t find_field(const struct admi_object *object, struct adm_bytes name)
{
    uint32_t count = field_count(object);
    for (uint32_t i = 0; i < count; i++)
        if (admi_bytes_equal(admi_words_of(field_at(object, i)->name), name))
            return i;
    return count;
}

/* The legal field nearest to a name, or the number of fields. */
static uint32_t nearest_field(const struct admi_object *object, uint32_t types,
                              struct adm_bytes name)
{
    uint32_t count = field_count(object), best = count, errors = 3;
    for (uint32_t i = 0; i < count; i++) {
        if ((field_at(object, i)->types & types) == 0)
            continue;
        uint32_t distance = admi_words_distance(admi_words_of(field_at(object, i)->name), name);
        if (distance < errors) {
            errors = distance;
            best = i;
        }
    }
    return best;
}

/* Reports; the field that was probably meant is then not called missing as well. */
static void unknown_key(const struct admi_document *document, struct admi_node member,
                        const struct admi_object *object, uint32_t types, struct admi_found *own,
                        struct admi_found *numbers)
{
    struct adm_bytes name = admi_node_name(member);
    struct admi_diag_entry *entry =
        admi_report_name(&document->source, ADMI_DIAG_UNKNOWN_KEY, member.token);
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected a key of ");
    admi_words_add(&words, object->name);
    admi_words_add(&words, ", found \"");
    admi_words_quote(&words, name, ADM_MAX_KEY_BYTES);
    admi_words_add(&words, "\"");
    uint32_t nearest = nearest_field(object, types, name);
    if (nearest == field_count(object))
        return;
    admi_report_nearest(entry, admi_words_of(field_at(object, nearest)->name));
    found_at(object, nearest, own, numbers)->excused = true;
}

static void foreign_field(const struct admi_document *document, struct admi_node member,
                          const struct admi_field *field, uint32_t types)
{
    struct admi_diag_entry *entry =
        admi_report_name(&document->source, ADMI_DIAG_FOREIGN_FIELD, member.token);
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected a field of ");
    for (uint32_t type = 0; admi_rule_type_words[type] != NULL; type++)
        if (types == ADMI_TYPE_BIT(type))
            admi_words_add(&words, admi_rule_type_words[type]);
    admi_words_add(&words, " rules, found ");
    admi_words_add(&words, field->name);
    const char *separator = ", which belongs to ";
    for (uint32_t type = 0; admi_rule_type_words[type] != NULL; type++)
        if ((field->types & ADMI_TYPE_BIT(type)) != 0) {
            admi_words_add(&words, separator);
            admi_words_add(&words, admi_rule_type_words[type]);
            separator = " and ";
        }
    admi_report_note_of_rule(&document->source, entry, member.token, "type",
                             "the type of the rule is given here");
}

static void missing_key(const struct admi_document *document, struct admi_node node,
                        const struct admi_object *object, const struct admi_field *field)
{
    struct admi_diag_entry *entry =
        admi_report_value(&document->source, ADMI_DIAG_MISSING_KEY, node.token);
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected the key ");
    admi_words_add(&words, field->name);
    admi_words_add(&words, " in ");
    admi_words_add(&words, object->name);
}

static void find_member(const struct admi_document *document, struct admi_node member,
                        const struct admi_object *object, uint32_t types, struct admi_found *own,
                        struct admi_found *numbers)
{
    uint16_t flaws = admi_node_token(document, member)->flaws;
    if ((flaws & (ADMI_JSON_FLAWED_NAME | ADMI_JSON_FLAWED_DUPLICATE)) != 0)
        return; /* reported by the lexer */
    uint32_t i = find_field(object, admi_node_name(member));
    if (i == field_count(object)) {
        unknown_key(document, member, object, types, own, numbers);
        return;
    }
    struct admi_found *found = found_at(object, i, own, numbers);
    if ((field_at(object, i)->types & types) == 0) {
        foreign_field(document, member, field_at(object, i), types);
        return;
    }
    found->present = true;
    found->node = member;
}

bool admi_fields_find(const struct admi_document *document, struct admi_node node,
                      const struct admi_object *object, uint32_t types, struct admi_found *own,
                      struct admi_found *numbers)
{
    admi_clear(own, object->count * sizeof *own);
    if (numbers != NULL)
        admi_clear(numbers, ADMI_NUMBER_COUNT * sizeof *numbers);
    if (!admi_node_is(document, node, ADMI_JSON_OBJECT)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token, "an object");
        return false;
    }
    struct admi_node member;
    for (bool ok = admi_node_first(node, &member); ok && !admi_diags_full(document->source.diags);
         ok = admi_node_next(document, &member))
        find_member(document, member, object, types, own, numbers);
    for (uint32_t i = 0; i < field_count(object); i++) {
        const struct admi_field *field = field_at(object, i);
        const struct admi_found *found = found_at(object, i, own, numbers);
        bool required = types == ADMI_TYPES_ALL ? field->required == ADMI_TYPES_ALL
                                                : (field->required & types) != 0;
        if (i >= object->count && !object->numbers_required)
            required = false;
        if (required && !found->present && !found->excused)
            missing_key(document, node, object, field);
    }
    return true;
}
