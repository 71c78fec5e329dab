/* SPDX-License-Identifier: Apache-2.0 */
/*
 *  A small JSON tree for scenario files, policies that are shown, and trace lines. Every value
 * knows where its text is: a policy inside a scenario goes to the library byte for byte, and a
 * number keeps its digits, so that 2^53 + 1, -0 and 1e400 are what the author wrote and not what
 * a double makes of it.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_kind kind;
    uint32_t line, column; /* of the first byte, from 1 */
    size_t start, end;     /* the value's bytes in the text */
    const char *text;      /* string: decoded; number: as written; both end in NUL as well */
    size_t length;
    const char *key; /* the member's name, NULL in an array */
    size_t key_length;
    struct json *first, *next; /* children, siblings; members keep their order, also equal ones */
    size_t count;
};

struct json_chunk;

/* The tree and its memory. text is borrowed. */
struct json_document {
    const char *text;
    size_t length;
    struct json *root;
    struct json_chunk *chunks;
};

struct json_error {
    uint32_t line, column;
    const char *message;
};

/* Lone surrogates are kept as their three bytes, so that a test can hand broken UTF-8 to the
 * loader. */
bool json_parse(struct json_document *document, const char *text, size_t length,
                struct json_error *error);
void json_free(struct json_document *document);

/* NULL when object is not an object or has no such member; the first of equal ones. */
const struct json *json_member(const struct json *object, const char *key);

/* A second member of the same name, or NULL. */
const struct json *json_repeated(const struct json *object);

bool json_is(const struct json *value, const char *string);

/* Plain digits up to 2^64 - 1; false for anything else, 1.0 and 1e0 included. */
bool json_u64(const struct json *value, uint64_t *out);

/* The value in one line, members and items without blanks, numbers as they were written. */
void json_print(FILE *out, const struct json *value);

/* A string with its quotes; bytes that are not UTF-8 come out as U+FFFD. */
void json_print_string(FILE *out, const char *bytes, size_t length);
void json_print_text(FILE *out, const char *text);

#endif
