/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON: checks a whole text before anything else reads it, and records where each value is.
 *
 * The result is a tape of tokens in the order of the text, one per value. Broken syntax ends the
 * reading with one finding; a leading zero, an escaped NUL and a duplicate name mark the token as
 * flawed and the reading goes on.
 */
#ifndef ADMI_JSON_LEXER_H
#define ADMI_JSON_LEXER_H

#include <admit/admit.h>

#define ADMI_JSON_NONE UINT32_MAX

enum admi_json_kind {
    ADMI_JSON_NULL = 0,
    ADMI_JSON_FALSE = 1,
    ADMI_JSON_TRUE = 2,
    ADMI_JSON_NUMBER = 3,
    ADMI_JSON_STRING = 4,
    ADMI_JSON_ARRAY = 5,
    ADMI_JSON_OBJECT = 6
};

enum admi_json_problem {
    /* These end the reading. */
    ADMI_JSON_EMPTY = 0,
    ADMI_JSON_SYNTAX,
    ADMI_JSON_TRAILING,
    ADMI_JSON_BOM,
    ADMI_JSON_UTF8,
    ADMI_JSON_CONTROL,
    ADMI_JSON_ESCAPE,
    ADMI_JSON_SURROGATE,
    ADMI_JSON_DEPTH,
    ADMI_JSON_TOO_LARGE,
    ADMI_JSON_TOO_MANY,
    ADMI_JSON_RAW_NUL,
    /* After these it goes on. */
    ADMI_JSON_ESCAPED_NUL,
    ADMI_JSON_LEADING_ZERO,
    ADMI_JSON_DUPLICATE
};

/* Flaws of a token. */
enum { ADMI_JSON_FLAWED_VALUE = 1, ADMI_JSON_FLAWED_NAME = 2, ADMI_JSON_FLAWED_DUPLICATE = 4 };

struct admi_json_token {
    uint32_t offset, length;           /* the text of the value, with its quotes or brackets */
    uint32_t name_offset, name_length; /* of a member: its name, with the quotes; else length 0 */
    uint32_t parent;                   /* token of the container, or ADMI_JSON_NONE */
    uint32_t after;                    /* first token behind this value and all that it contains */
    uint16_t kind;                     /* enum admi_json_kind */
    uint16_t flaws;
};

struct admi_json_limits {
    uint32_t bytes, values, depth;
};

struct admi_json_finding {
    enum admi_json_problem problem;
    uint32_t offset;
    uint32_t token;       /* the value, or the container around the place, or ADMI_JSON_NONE */
    const char *expected; /* static: "a value" */
    uint32_t bound;       /* of TOO_LARGE, TOO_MANY and DEPTH */
};

struct admi_json_reporter {
    void *self;
    void (*report)(void *self, const struct admi_json_finding *finding);
};

struct admi_json {
    struct adm_bytes text; /* the caller's, not copied */
    const struct adm_allocator *allocator;
    struct admi_json_token *tokens;
    uint32_t count, capacity;
};

/*
 * Read text into a zeroed *json. Linear but for a sort of the names, in every case.
 * ADM_OK: the syntax is right (flaws may have been reported); ADM_E_POLICY_INVALID: it is not;
 * ADM_E_NOMEM. Give *json back with admi_json_fini(), whatever the result; the tokens that were
 * read are there for pointers.
 */
adm_status admi_json_lex(struct admi_json *json, struct adm_bytes text,
                         const struct admi_json_limits *limits,
                         const struct adm_allocator *allocator,
                         const struct admi_json_reporter *reporter);
void admi_json_fini(struct admi_json *json);

/* Line and column (in bytes), both from 1, of an offset. */
void admi_json_place(struct adm_bytes text, uint32_t offset, uint32_t *line, uint32_t *column);

/*
 * Decode a name or string of the text (with its quotes) into out; the number of bytes written, at
 * most capacity.
 */
uint64_t admi_json_decode(const struct admi_json *json, uint32_t offset, uint32_t length,
                          uint8_t *out, uint64_t capacity);

/* Whether a name or string of the text (with its quotes) spells these bytes. */
int admi_json_spells(const struct admi_json *json, uint32_t offset, uint32_t length,
                     struct adm_bytes word);

#endif
