/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the members of an object by its table, and scalars by their kind; whatever is wrong is
 * reported here.
 */
#ifndef ADMI_FIELDS_H
#define ADMI_FIELDS_H

#include "policy/document.h"
#include "policy/schema.h"

struct admi_found {
    struct admi_node node;
    bool present;
    bool excused; /* absent, but something that looks like a misspelling of it was reported */
};

/*
 * Sort the members of an object into own[object->count] and numbers[ADMI_NUMBER_COUNT] (NULL:
 * none). types: the bit of the rule type, or ADMI_TYPES_ALL where there is none or it is unknown.
 * false: it is not an object; then nothing is present.
 */
bool admi_fields_find(const struct admi_document *document, struct admi_node node,
                      const struct admi_object *object, uint32_t types, struct admi_found *own,
                      struct admi_found *numbers);

/* Each writes *out and says true, or has reported why not. */
bool admi_read_whole(const struct admi_document *document, struct admi_node node, uint64_t least,
                     uint64_t most, uint64_t *out);
bool admi_read_decimal(const struct admi_document *document, struct admi_node node,
                       struct admi_decimal *out);
bool admi_read_fraction(const struct admi_document *document, struct admi_node node,
                        struct admi_decimal *out);
bool admi_read_duration(const struct admi_document *document, struct admi_node node,
                        uint64_t *out_ns);
bool admi_read_boolean(const struct admi_document *document, struct admi_node node, bool *out);
/* The index of a word in a NULL-terminated list. */
bool admi_read_word(const struct admi_document *document, struct admi_node node,
                    const char *const *words, enum admi_diag kind, uint32_t *out);
bool admi_read_text(const struct admi_document *document, struct admi_node node,
                    struct adm_bytes *out);
/* A descriptor key, 1 to 64 bytes; a descriptor value, 1 to 256 bytes. */
bool admi_read_key(const struct admi_document *document, struct admi_node node,
                   struct adm_bytes *out);
bool admi_read_value(const struct admi_document *document, struct admi_node node,
                     struct adm_bytes *out);
bool admi_read_id(const struct admi_document *document, struct admi_node node,
                  struct adm_bytes *out);
bool admi_read_version(const struct admi_document *document, struct admi_node node,
                       struct adm_bytes *out);
/* An array of at least least and at most most items. */
bool admi_read_array(const struct admi_document *document, struct admi_node node, uint64_t least,
                     uint64_t most);

/* The name of a member as a descriptor key or as a value, within its bounds. */
bool admi_check_name(const struct admi_document *document, struct admi_node node, uint64_t most,
                     enum admi_diag kind);

bool admi_node_is(const struct admi_document *document, struct admi_node node,
                  enum admi_json_kind kind);
bool admi_node_flawed(const struct admi_document *document, struct admi_node node);

/*
 * The word of a NULL-terminated list that is nearest to what was written, at most two typing errors
 * away.
 */
struct adm_bytes admi_nearest_word(const char *const *words, struct adm_bytes written);

#endif
