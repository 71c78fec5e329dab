/* SPDX-License-Identifier: Apache-2.0 */
/* A document as a tree: the one file that knows the parser. */
#include "policy/document.h"

#include <cjson/cJSON.h>

#include "base/memory.h"

/*
 * The parser, up to release 1.7.18, copies a number into a buffer of 64 bytes and stops in the
 * middle of a longer one.
 */
#define NUMBER_MAX 60u

/*
 * A copy of the text in which long numbers are 0 and blanks: their value is read from the text
 * itself.
 */
static uint8_t *without_long_numbers(const struct admi_json *json)
{
    uint8_t *copy = admi_allocate(json->allocator, json->text.length, 1);
    if (copy == NULL)
        return NULL;
    admi_copy(copy, json->text.data, json->text.length);
    for (uint32_t i = 0; i < json->count; i++) {
        const struct admi_json_token *token = &json->tokens[i];
        if (token->kind != ADMI_JSON_NUMBER || token->length <= NUMBER_MAX)
            continue;
        copy[token->offset] = '0';
        for (uint32_t j = 1; j < token->length; j++)
            copy[token->offset + j] = ' ';
    }
    return copy;
}

static adm_status parse(struct admi_document *document)
{
    struct adm_bytes text = document->json.text;
    uint8_t *copy = NULL;
    if (document->json.longest_number > NUMBER_MAX) {
        copy = without_long_numbers(&document->json);
        if (copy == NULL)
            return ADM_E_NOMEM;
    }
    const void *input = copy != NULL ? copy : text.data;
    /* It also sets a global, the place of its last error, which nobody here reads. */
    document->root = cJSON_ParseWithLengthOpts(input, (size_t)text.length, NULL, 0);
    admi_release(document->json.allocator, copy, text.length, 1);
    /*
     * The syntax has been checked, more strictly than the parser does: only memory can have been
     * missing.
     */
    return document->root == NULL ? ADM_E_NOMEM : ADM_OK;
}

/* What the reader of YAML has reported is not looked at again. */
static void mark_flaws(struct admi_document *document)
{
    const struct admi_yaml *yaml = &document->yaml;
    for (uint32_t i = 0, t = 0; i < yaml->flawed_count; i++) {
        uint32_t at = yaml->flawed[i];
        while (t < document->json.count && document->json.tokens[t].offset < at &&
               document->json.tokens[t].name_offset < at)
            t++;
        if (t == document->json.count)
            break;
        struct admi_json_token *token = &document->json.tokens[t];
        if (token->name_length > 0 && token->name_offset == at)
            token->flaws |= ADMI_JSON_FLAWED_NAME;
        if (token->offset == at)
            token->flaws |= ADMI_JSON_FLAWED_VALUE;
    }
}

adm_status admi_document_check(struct admi_document *document, struct adm_bytes text,
                               enum admi_format format, const struct admi_json_limits *limits,
                               const struct adm_allocator *allocator, struct adm_diags *diags)
{
    struct admi_json_limits own = *limits;
    document->source.json = &document->json;
    document->source.diags = diags;
    if (format == ADMI_FORMAT_YAML) {
        adm_status status = admi_yaml_read(&document->yaml, text, limits, allocator, diags);
        if (status != ADM_OK)
            return status;
        text = (struct adm_bytes){ document->yaml.json, document->yaml.length };
        own.bytes = UINT32_MAX; /* of JSON text that we wrote ourselves */
    }
    struct admi_json_reporter reporter = { &document->source, admi_report_lexer };
    adm_status status = admi_json_lex(&document->json, text, &own, allocator, &reporter);
    if (status == ADM_OK)
        mark_flaws(document);
    return status;
}

adm_status admi_document_read(struct admi_document *document, struct adm_bytes text,
                              enum admi_format format, const struct admi_json_limits *limits,
                              const struct adm_allocator *allocator, struct adm_diags *diags)
{
    adm_status status = admi_document_check(document, text, format, limits, allocator, diags);
    return status == ADM_OK ? parse(document) : status;
}

static void place(const struct admi_yaml *yaml, struct admi_diag_place *place)
{
    const struct admi_yaml_place *found =
        place->offset == ADMI_DIAG_NO_PLACE ? NULL : admi_yaml_find(yaml, place->offset);
    if (found == NULL)
        return;
    place->offset = found->start;
    place->length = found->end - found->start;
}

void admi_document_place_findings(struct admi_document *document)
{
    struct adm_diags *diags = document->source.diags;
    if (document->yaml.place_count == 0)
        return;
    for (uint32_t i = 0; i < diags->count; i++) {
        struct admi_diag_entry *entry = &diags->entries[i];
        if (!entry->in_source)
            place(&document->yaml, &entry->place);
        if (entry->has_note)
            place(&document->yaml, &entry->note_place);
        entry->in_source = true;
    }
}

void admi_document_fini(struct admi_document *document)
{
    cJSON_Delete(document->root);
    document->root = NULL;
    admi_json_fini(&document->json);
    if (document->yaml.allocator != NULL)
        admi_yaml_fini(&document->yaml);
}

struct admi_node admi_document_root(const struct admi_document *document)
{
    return (struct admi_node){ document->root, 0 };
}

const struct admi_json_token *admi_node_token(const struct admi_document *document,
                                              struct admi_node node)
{
    return &document->json.tokens[node.token];
}

struct adm_bytes admi_node_text(const struct admi_document *document, struct admi_node node)
{
    const struct admi_json_token *token = &document->json.tokens[node.token];
    return (struct adm_bytes){ (const char *)document->json.text.data + token->offset,
                               token->length };
}

struct adm_bytes admi_node_string(struct admi_node node)
{
    return admi_words_of(node.item->valuestring == NULL ? "" : node.item->valuestring);
}

struct adm_bytes admi_node_name(struct admi_node node)
{
    return admi_words_of(node.item->string == NULL ? "" : node.item->string);
}

bool admi_node_first(struct admi_node node, struct admi_node *out)
{
    if (node.item->child == NULL)
        return false;
    *out = (struct admi_node){ node.item->child, node.token + 1 };
    return true;
}

bool admi_node_next(const struct admi_document *document, struct admi_node *inout)
{
    if (inout->item->next == NULL)
        return false;
    *inout = (struct admi_node){ inout->item->next, document->json.tokens[inout->token].after };
    return true;
}

uint32_t admi_node_count(struct admi_node node)
{
    uint32_t count = 0;
    for (const struct cJSON *item = node.item->child; item != NULL; item = item->next)
        count++;
    return count;
}
