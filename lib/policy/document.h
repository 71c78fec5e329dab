/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as a tree: the strict lexer has checked every byte and knows every place, and its
 * tokens are the tree. Numbers are only ever read from their text.
 * YAML becomes JSON text first; only places of findings know that it was there.
 */
#ifndef ADMI_DOCUMENT_H
#define ADMI_DOCUMENT_H

#include <stdbool.h>

#include "policy/report.h"
#include "policy/yaml_json.h"

enum admi_format { ADMI_FORMAT_JSON = 0, ADMI_FORMAT_YAML = 1 };

struct admi_document {
    struct admi_yaml yaml; /* of a JSON document: empty */
    struct admi_json json;
    uint8_t *decoded; /* strings with escapes, each where it stands in json.text; or NULL */
    struct admi_source source;
};

/* A value of a document. */
struct admi_node {
    const struct admi_document *document;
    uint32_t token;
};

/*
 * Read text into a zeroed *document.
 * ADM_OK: there is a tree (findings may have been reported); ADM_E_POLICY_INVALID: broken syntax,
 * reported; ADM_E_NOMEM. Give it back with admi_document_fini() in every case.
 */
adm_status admi_document_read(struct admi_document *document, struct adm_bytes text,
                              enum admi_format format, const struct admi_json_limits *limits,
                              const struct adm_allocator *allocator, struct adm_diags *diags);
/*
 * The same without the tree: the syntax is checked, the tokens are there, and document.json.text is
 * the JSON text.
 */
adm_status admi_document_check(struct admi_document *document, struct adm_bytes text,
                               enum admi_format format, const struct admi_json_limits *limits,
                               const struct adm_allocator *allocator, struct adm_diags *diags);
/* Findings now have places of the text that was read. Once, when all have been reported. */
void admi_document_place_findings(struct admi_document *document);
void admi_document_fini(struct admi_document *document);

struct admi_node admi_document_root(const struct admi_document *document);
const struct admi_json_token *admi_node_token(const struct admi_document *document,
                                              struct admi_node node);
/* The value as it is written. */
struct adm_bytes admi_node_text(const struct admi_document *document, struct admi_node node);
/* Decoded; of a string, and of a member's name. They live as long as the document. */
struct adm_bytes admi_node_string(struct admi_node node);
struct adm_bytes admi_node_name(struct admi_node node);

/* Children, in the order of the text: for (ok = first(…, &child); ok; ok = next(…, &child)). */
bool admi_node_first(struct admi_node node, struct admi_node *out);
bool admi_node_next(const struct admi_document *document, struct admi_node *inout);
uint32_t admi_node_count(struct admi_node node);

#endif
