/* SPDX-License-Identifier: Apache-2.0 */
/* A document as a tree: the tokens of the lexer, and the strings that need decoding. */
#include "policy/document.h"

#include <string.h>

#include "base/memory.h"

static struct adm_bytes between_quotes(struct adm_bytes text, uint32_t offset, uint32_t length)
{
    return (struct adm_bytes){ (const char *)text.data + offset + 1, length - 2 };
}

static bool has_escape(struct adm_bytes text)
{
    return text.length > 0 && memchr(text.data, '\\', (size_t)text.length) != NULL;
}

/* In place, a decoded string is never longer than what is written; the rest is NUL. */
static void decode(struct admi_document *document, uint32_t offset, uint32_t length)
{
    if (has_escape(between_quotes(document->json.text, offset, length)))
        admi_json_decode(&document->json, offset, length, document->decoded + offset + 1,
                         length - 2);
}

/* Only a text with escapes pays for them. */
static adm_status decode_strings(struct admi_document *document)
{
    const struct admi_json *json = &document->json;
    if (!has_escape(json->text))
        return ADM_OK;
    document->decoded = admi_allocate(json->allocator, json->text.length, 1);
    if (document->decoded == NULL)
        return ADM_E_NOMEM;
    for (uint32_t i = 0; i < json->count; i++) {
        const struct admi_json_token *token = &json->tokens[i];
        if (token->name_length > 0)
            decode(document, token->name_offset, token->name_length);
        if (token->kind == ADMI_JSON_STRING)
            decode(document, token->offset, token->length);
    }
    return ADM_OK;
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
    return status == ADM_OK ? decode_strings(document) : status;
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
    admi_release(document->json.allocator, document->decoded, document->json.text.length, 1);
    document->decoded = NULL;
    admi_json_fini(&document->json);
    if (document->yaml.allocator != NULL)
        admi_yaml_fini(&document->yaml);
}

struct admi_node admi_document_root(const struct admi_document *document)
{
    return (struct admi_node){ document, 0 };
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

/* A NUL cannot be in a string that was accepted, so that one ends what was decoded. */
static struct adm_bytes string_at(const struct admi_document *document, uint32_t offset,
                                  uint32_t length)
{
    struct adm_bytes text = between_quotes(document->json.text, offset, length);
    if (!has_escape(text))
        return text;
    return admi_words_of((const char *)document->decoded + offset + 1);
}

struct adm_bytes admi_node_string(struct admi_node node)
{
    const struct admi_json_token *token = admi_node_token(node.document, node);
    if (token->kind != ADMI_JSON_STRING)
        return admi_words_of("");
    return string_at(node.document, token->offset, token->length);
}

struct adm_bytes admi_node_name(struct admi_node node)
{
    const struct admi_json_token *token = admi_node_token(node.document, node);
    if (token->name_length == 0)
        return admi_words_of("");
    return string_at(node.document, token->name_offset, token->name_length);
}

bool admi_node_first(struct admi_node node, struct admi_node *out)
{
    if (admi_node_token(node.document, node)->after == node.token + 1)
        return false;
    *out = (struct admi_node){ node.document, node.token + 1 };
    return true;
}

bool admi_node_next(const struct admi_document *document, struct admi_node *inout)
{
    const struct admi_json_token *token = admi_node_token(document, *inout);
    if (token->parent == ADMI_JSON_NONE ||
        token->after == document->json.tokens[token->parent].after)
        return false;
    inout->token = token->after;
    return true;
}

uint32_t admi_node_count(struct admi_node node)
{
    struct admi_node child;
    uint32_t count = 0;
    for (bool more = admi_node_first(node, &child); more;
         more = admi_node_next(node.document, &child))
        count++;
    return count;
}
