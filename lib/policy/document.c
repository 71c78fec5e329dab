/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON document as a tree: the one file that knows the parser. */
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

adm_status admi_document_read(struct admi_document *document, struct adm_bytes text,
                              const struct admi_json_limits *limits,
                              const struct adm_allocator *allocator, struct adm_diags *diags)
{
    document->source.json = &document->json;
    document->source.diags = diags;
    struct admi_json_reporter reporter = { &document->source, admi_report_lexer };
    adm_status status = admi_json_lex(&document->json, text, limits, allocator, &reporter);
    if (status != ADM_OK)
        return status;
    return parse(document);
}

void admi_document_fini(struct admi_document *document)
{
    cJSON_Delete(document->root);
    document->root = NULL;
    admi_json_fini(&document->json);
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
