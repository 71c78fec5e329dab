/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema (draft-07) of policy documents and limit tables, from the tables that the reader
 * itself uses. What a schema cannot say is listed in docs/editors.md.
 */
#include <admit/policy.h>

#include "base/memory.h"
#include "policy/exact.h"
#include "policy/schema.h"
#include "policy/words.h"

/* The length counts on beyond the buffer, where nothing is written. */
struct text {
    char *buffer;
    uint64_t room, length;
};

static void put(struct text *text, const char *words)
{
    for (; *words != '\0'; words++, text->length++)
        if (text->length < text->room)
            text->buffer[text->length] = *words;
}

static void put_number(struct text *text, uint64_t number)
{
    char digits[24];
    struct admi_words words = admi_words_start(digits, sizeof digits);
    admi_words_add_number(&words, number);
    put(text, digits);
}

/* Only for texts of our own, which need no escape. */
static void put_quoted(struct text *text, const char *words)
{
    put(text, "\"");
    put(text, words);
    put(text, "\"");
}

static void put_words(struct text *text, const char *const *words)
{
    put(text, "\"enum\":[");
    for (uint32_t i = 0; words[i] != NULL; i++) {
        put(text, i == 0 ? "" : ",");
        put_quoted(text, words[i]);
    }
    put(text, "]");
}

static void put_bounds(struct text *text, const char *type, uint64_t least, uint64_t most)
{
    put(text, "\"type\":");
    put(text, type);
    put(text, ",\"minimum\":");
    put_number(text, least);
    put(text, ",\"maximum\":");
    put_number(text, most);
}

static void put_string(struct text *text, const char *pattern)
{
    put(text, "\"type\":\"string\",\"pattern\":");
    put_quoted(text, pattern);
}

static void put_digit_range(struct text *text, char least, char most)
{
    char range[] = { '[', least, '-', most, ']', '\0' };
    char digit[] = { least, '\0' };
    put(text, least == most ? digit : range);
}

/* So many of any digits. */
static void put_digits(struct text *text, uint32_t least, uint32_t most)
{
    if (most == 0)
        return;
    put(text, "[0-9]");
    if (least == 1 && most == 1)
        return;
    put(text, "{");
    if (least < most) {
        put_number(text, least);
        put(text, ",");
    }
    put_number(text, most);
    put(text, "}");
}

/* A pattern of the whole numbers from 1 to most, without leading zeros. */
static void put_up_to(struct text *text, uint64_t most)
{
    char digits[24];
    struct admi_words words = admi_words_start(digits, sizeof digits);
    admi_words_add_number(&words, most);
    put(text, digits);
    for (uint32_t i = 0; i < words.length; i++) { /* equal before digit i, smaller there */
        char least = i == 0 ? '1' : '0';
        if (digits[i] <= least)
            continue;
        char before[24];
        admi_copy(before, digits, i);
        before[i] = '\0';
        put(text, "|");
        put(text, before);
        put_digit_range(text, least, (char)(digits[i] - 1));
        put_digits(text, (uint32_t)words.length - i - 1, (uint32_t)words.length - i - 1);
    }
    if (words.length > 1) {
        put(text, "|[1-9]");
        put_digits(text, 0, (uint32_t)words.length - 2);
    }
}

static void put_duration(struct text *text)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ms", ADM_MILLISECOND },
                  { "s", ADM_SECOND },
                  { "m", 60 * ADM_SECOND },
                  { "h", 3600 * ADM_SECOND },
                  { "d", 86400 * ADM_SECOND } };
    put(text, "\"type\":\"string\",\"pattern\":\"^(");
    for (uint32_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        put(text, i == 0 ? "(" : "|(");
        put_up_to(text, ADMI_DURATION_MAX / units[i].ns);
        put(text, ")");
        put(text, units[i].name);
    }
    put(text, ")$\"");
}

/* Bytes bound characters: a text of too many characters has too many bytes as well. */
static void put_length(struct text *text, uint64_t most)
{
    put(text, "\"minLength\":1,\"maxLength\":");
    put_number(text, most);
}

static void put_unit(struct text *text)
{
    put(text, "\"anyOf\":[{");
    put_words(text, admi_builtin_unit_words);
    put(text, "},{\"$ref\":\"#/definitions/unit\"}]");
}

static void put_array(struct text *text, uint64_t least, uint64_t most)
{
    put(text, "\"type\":\"array\"");
    if (least > 0) {
        put(text, ",\"minItems\":");
        put_number(text, least);
    }
    if (most < UINT32_MAX) {
        put(text, ",\"maxItems\":");
        put_number(text, most);
    }
    put(text, ",\"items\":");
}

static void put_ref(struct text *text, const char *definition, const char *type)
{
    put(text, "{\"$ref\":\"#/definitions/");
    put(text, definition);
    put(text, type);
    put(text, "\"}");
}

static void put_kind(struct text *text, const struct admi_field *field, const char *type)
{
    switch (field->kind) {
    case ADMI_FIELD_TEXT:
        put(text, "\"type\":\"string\"");
        break;
    case ADMI_FIELD_WHOLE:
        put_bounds(text, "\"integer\"", field->least, field->most);
        break;
    case ADMI_FIELD_WHOLE_OR_NULL:
        put_bounds(text, "[\"integer\",\"null\"]", field->least, field->most);
        break;
    case ADMI_FIELD_DECIMAL:
        put_bounds(text, "\"number\"", 0, ADM_MAX_AMOUNT);
        break;
    case ADMI_FIELD_FRACTION:
        put(text, "\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":1");
        break;
    case ADMI_FIELD_DURATION:
        put(text, "\"allOf\":[{\"$ref\":\"#/definitions/duration\"}]");
        break;
    case ADMI_FIELD_WORD:
        put_words(text, field->words);
        break;
    case ADMI_FIELD_BOOLEAN:
        put(text, "\"type\":\"boolean\"");
        break;
    case ADMI_FIELD_TRUE:
        put(text, "\"const\":true");
        break;
    case ADMI_FIELD_ID:
        put(text, "\"allOf\":[{\"$ref\":\"#/definitions/id\"}]");
        break;
    case ADMI_FIELD_VERSION:
        put_string(text, "^[A-Za-z0-9._-]{1,64}$");
        break;
    case ADMI_FIELD_UNIT:
        put_unit(text);
        break;
    case ADMI_FIELD_KEY:
        put(text, "\"allOf\":[{\"$ref\":\"#/definitions/key\"}]");
        break;
    case ADMI_FIELD_VALUE:
        put(text, "\"allOf\":[{\"$ref\":\"#/definitions/value\"}]");
        break;
    case ADMI_FIELD_KEYS:
        put_array(text, field->least, field->most);
        put(text, "{\"$ref\":\"#/definitions/key\"},\"uniqueItems\":true");
        break;
    case ADMI_FIELD_UNITS:
        put_array(text, field->least, field->most);
        put(text, "{\"$ref\":\"#/definitions/unit\"},\"uniqueItems\":true");
        break;
    case ADMI_FIELD_LABELS:
        put_array(text, field->least, field->most);
        put(text, "{");
        put_string(text, "^[A-Za-z_][A-Za-z0-9_]{0,63}$");
        put(text, "},\"uniqueItems\":true");
        break;
    case ADMI_FIELD_MATCH:
        put(text, "\"allOf\":[{\"$ref\":\"#/definitions/match\"}]");
        break;
    case ADMI_FIELD_OBJECTS:
        put_array(text, field->least, field->most);
        put_ref(text, field->of, type);
        break;
    case ADMI_FIELD_OBJECT:
        put(text, "\"allOf\":[");
        put_ref(text, field->of, "");
        put(text, "]");
        break;
    case ADMI_FIELD_RULE_IDS:
        put_array(text, 0, ADMI_MAX_RULES);
        put(text, "{\"$ref\":\"#/definitions/id\"}");
        break;
    }
}

/* Own fields first, then the numbers, as everywhere. */
static const struct admi_field *field_at(const struct admi_object *object, uint32_t i)
{
    return i < object->count ? &object->fields[i] : &admi_number_fields[i - object->count];
}

static uint32_t field_count(const struct admi_object *object)
{
    return object->count + (object->numbers ? (uint32_t)ADMI_NUMBER_COUNT : 0);
}

static bool is_required(const struct admi_object *object, uint32_t i, uint32_t types)
{
    const struct admi_field *field = field_at(object, i);
    if (i >= object->count && !object->numbers_required)
        return false;
    return types == ADMI_TYPES_ALL ? field->required == ADMI_TYPES_ALL
                                   : (field->required & types) != 0;
}

/* A rule has exactly one comparison; what overlays a rule has at most one. */
static void put_comparisons(struct text *text, bool needed)
{
    const char *separator = "";
    put(text, ",\"oneOf\":[");
    for (uint32_t i = ADMI_NUMBER_GT; i <= ADMI_NUMBER_LTE; i++, separator = ",") {
        put(text, separator);
        put(text, "{\"required\":[");
        put_quoted(text, admi_number_fields[i].name);
        put(text, "]}");
    }
    if (!needed) {
        put(text, ",{\"properties\":{");
        for (uint32_t i = ADMI_NUMBER_GT; i <= ADMI_NUMBER_LTE; i++) {
            put(text, i == ADMI_NUMBER_GT ? "" : ",");
            put_quoted(text, admi_number_fields[i].name);
            put(text, ":false");
        }
        put(text, "}}");
    }
    put(text, "]");
}

/* The members of an object without its braces. type: "_" and the type of rule, or "". */
static void put_object(struct text *text, const struct admi_object *object, uint32_t types,
                       const char *type)
{
    const char *separator = "";
    put(text, "\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    for (uint32_t i = 0; i < field_count(object); i++) {
        const struct admi_field *field = field_at(object, i);
        if ((field->types & types) == 0)
            continue;
        put(text, separator);
        put(text, "\n  ");
        put_quoted(text, field->name);
        put(text, ":{\"description\":");
        put_quoted(text, field->help);
        put(text, ",");
        put_kind(text, field, type);
        put(text, "}");
        separator = ",";
    }
    put(text, "}");
    separator = ",\"required\":[";
    for (uint32_t i = 0; i < field_count(object); i++) {
        if (!is_required(object, i, types))
            continue;
        put(text, separator);
        put_quoted(text, field_at(object, i)->name);
        separator = ",";
    }
    put(text, separator[1] == '\0' ? "]" : "");
    if (object->numbers && (types & ADMI_TYPES_PRESSURE) != 0)
        put_comparisons(text, object->numbers_required);
}

static void define(struct text *text, const char *name, const char *type)
{
    put(text, ",\n ");
    put(text, "\"");
    put(text, name);
    put(text, type);
    put(text, "\":{");
}

static void define_object(struct text *text, const char *name, const struct admi_object *object,
                          uint32_t types, const char *type)
{
    define(text, name, type);
    put_object(text, object, types, type);
    put(text, "}");
}

static void define_scalars(struct text *text)
{
    put(text, "\n \"id\":{");
    put_string(text, "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$");
    put(text, "}");
    define(text, "key", "");
    put(text, "\"type\":\"string\",");
    put_length(text, ADM_MAX_KEY_BYTES);
    put(text, "}");
    define(text, "value", "");
    put(text, "\"type\":\"string\",");
    put_length(text, ADM_MAX_VALUE_BYTES);
    put(text, "}");
    define(text, "duration", "");
    put_duration(text);
    put(text, "}");
}

static void put_block(struct text *text, const char *negated)
{
    put(text, "\"type\":\"object\",\"maxProperties\":");
    put_number(text, ADMI_MATCH_ENTRIES_MAX);
    put(text, ",\"propertyNames\":{\"$ref\":\"#/definitions/key\"},\"properties\":{\"not\":");
    put(text, negated);
    put(text, "},\"additionalProperties\":{\"$ref\":\"#/definitions/values\"}");
}

static void define_match(struct text *text)
{
    define(text, "values", "");
    put(text,
        "\"description\":\"A value, a prefix and a star, or a star for any value; or several.\","
        "\"anyOf\":[{\"$ref\":\"#/definitions/value\"},"
        "{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#/definitions/value\"}}]}");
    define(text, "match", "");
    put_block(text, "{\"description\":\"Requests for which all of this holds are left out.\","
                    "\"allOf\":[{\"$ref\":\"#/definitions/negated\"}]}");
    put(text, "}");
    define(text, "negated", "");
    put_block(text, "false");
    put(text, "}");
}

/* The type decides which fields there are: an editor then shows only the faults of that type. */
static void define_rules(struct text *text)
{
    define(text, "rule", "");
    put(text, "\"type\":\"object\",\"required\":[\"type\"],\"properties\":{\"type\":{");
    put_words(text, admi_rule_type_words);
    put(text, "}},\"allOf\":[");
    for (uint32_t i = 0; admi_rule_type_words[i] != NULL; i++) {
        put(text, i == 0 ? "\n  " : ",\n  ");
        put(text, "{\"if\":{\"required\":[\"type\"],\"properties\":{\"type\":{\"const\":");
        put_quoted(text, admi_rule_type_words[i]);
        put(text, "}}},\"then\":");
        put_ref(text, "rule_", admi_rule_type_words[i]);
        put(text, "}");
    }
    put(text, "]}");
    for (uint32_t i = 0; admi_rule_type_words[i] != NULL; i++) {
        char suffix[32];
        struct admi_words words = admi_words_start(suffix, sizeof suffix);
        admi_words_add(&words, "_");
        admi_words_add(&words, admi_rule_type_words[i]);
        define_object(text, "rule", &admi_rule_object, ADMI_TYPE_BIT(i), suffix);
        define(text, "override", suffix);
        put_object(text, &admi_override_object, ADMI_TYPE_BIT(i), suffix);
        put(text, ",\"if\":{\"required\":[\"off\"]},\"then\":{\"maxProperties\":2}}");
    }
}

static void define_unit(struct text *text, const char *name, const char *const *others)
{
    define(text, name, "");
    put_string(text, "^[a-z][a-z0-9_]{0,63}$");
    put(text, ",\"not\":{");
    put_words(text, others);
    put(text, "}}");
}

static void define_examples(struct text *text)
{
    static const char *const given_beside[] = { "cost", "requests", NULL };
    define_unit(text, "unit", admi_builtin_unit_words);
    define_unit(text, "amount_unit", given_beside);
    define(text, "descriptors", "");
    put(text, "\"type\":\"object\",\"maxProperties\":");
    put_number(text, ADM_MAX_DESCRIPTORS);
    put(text, ",\"propertyNames\":{\"$ref\":\"#/definitions/key\"},"
              "\"additionalProperties\":{\"$ref\":\"#/definitions/value\"}}");
    define(text, "amounts", "");
    put(text, "\"type\":\"object\",\"maxProperties\":");
    put_number(text, ADM_MAX_AMOUNTS);
    put(text, ",\"propertyNames\":{\"$ref\":\"#/definitions/amount_unit\"},"
              "\"additionalProperties\":{");
    put_bounds(text, "\"integer\"", 0, ADM_MAX_AMOUNT);
    put(text, "}}");
    define_object(text, "example", &admi_example_object, ADMI_TYPES_ALL, "");
    define_object(text, "expectation", &admi_expect_object, ADMI_TYPES_ALL, "");
    define_object(text, "allowance", &admi_allowance_object, ADMI_TYPES_BUCKET, "");
}

/* The rule, and so the type, is in another document: any number of any type is legal here. */
static void define_entries(struct text *text)
{
    define(text, "entries", "");
    put(text, "\"type\":\"object\",\"propertyNames\":{\"$ref\":\"#/definitions/value\"},"
              "\"additionalProperties\":{\"anyOf\":[{\"const\":\"off\"},"
              "{\"$ref\":\"#/definitions/entry\"}]}}");
    define_object(text, "entry", &admi_entry_object, ADMI_TYPES_ALL, "");
}

static void put_schema(struct text *text, const char *title, const struct admi_object *object)
{
    put(text, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\n\"title\":");
    put_quoted(text, title);
    put(text, ",\n");
    put_object(text, object, ADMI_TYPES_ALL, "");
    put(text, ",\n\"definitions\":{");
    define_scalars(text);
    if (object == &admi_table_object) {
        define_entries(text);
    } else {
        define_match(text);
        define_rules(text);
        define_examples(text);
    }
    put(text, "}}\n");
}

adm_status adm_policy_schema(uint32_t which, char *buffer, uint64_t buffer_bytes,
                             uint64_t *out_length)
{
    struct text text = { buffer, buffer_bytes, 0 };
    if (which > ADM_SCHEMA_TABLE || out_length == NULL || (buffer == NULL && buffer_bytes > 0))
        return ADM_E_INVALID_ARGUMENT;
    if (which == ADM_SCHEMA_TABLE)
        put_schema(&text, "libadmit limit table", &admi_table_object);
    else
        put_schema(&text, "libadmit policy", &admi_top_object);
    *out_length = text.length;
    return text.length <= buffer_bytes || buffer == NULL ? ADM_OK : ADM_E_BUFFER_TOO_SMALL;
}
