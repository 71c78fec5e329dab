/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict JSON: checks a whole text before anything else reads it, and records where each value is.
 */
#include "base/json_lexer.h"

#include "base/json_names.h"
#include "base/memory.h"
#include "base/utf8.h"

struct lexer {
    struct admi_json *json;
    const uint8_t *text;
    uint32_t length, at;
    uint32_t container; /* innermost open token */
    uint32_t depth;
    const struct admi_json_limits *limits;
    const struct admi_json_reporter *reporter;
};

static void report(struct lexer *lexer, enum admi_json_problem problem, uint32_t offset,
                   uint32_t token, const char *expected)
{
    const struct admi_json_limits *limits = lexer->limits;
    struct admi_json_finding finding = { problem, offset, token, expected, 0 };
    if (problem == ADMI_JSON_TOO_LARGE)
        finding.bound = limits->bytes;
    if (problem == ADMI_JSON_TOO_MANY)
        finding.bound = limits->values;
    if (problem == ADMI_JSON_DEPTH)
        finding.bound = limits->depth;
    lexer->reporter->report(lexer->reporter->self, &finding);
}

static adm_status fail(struct lexer *lexer, enum admi_json_problem problem, uint32_t offset,
                       uint32_t token, const char *expected)
{
    report(lexer, problem, offset, token, expected);
    return ADM_E_POLICY_INVALID;
}

static int peek(const struct lexer *lexer)
{
    return lexer->at < lexer->length ? lexer->text[lexer->at] : -1;
}

static void skip_space(struct lexer *lexer)
{
    while (lexer->at < lexer->length) {
        uint8_t c = lexer->text[lexer->at];
        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            break;
        lexer->at++;
    }
}

static int is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/*
 * What stands at the current place instead of what was expected: bytes that are not UTF-8 are named
 * as such.
 */
static adm_status unexpected(struct lexer *lexer, uint32_t token, const char *expected)
{
    enum admi_json_problem problem = ADMI_JSON_SYNTAX;
    if (lexer->at < lexer->length &&
        admi_utf8_sequence(lexer->text + lexer->at, lexer->length - lexer->at) == 0)
        problem = ADMI_JSON_UTF8;
    return fail(lexer, problem, lexer->at, token, expected);
}

/* ---- strings ---- */

static int hex_digit(int c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Four hex digits at offset, or -1. */
static int32_t code_unit(const struct lexer *lexer, uint32_t offset)
{
    if (offset > lexer->length || lexer->length - offset < 4)
        return -1;
    int32_t code = 0;
    for (uint32_t i = 0; i < 4; i++) {
        int digit = hex_digit(lexer->text[offset + i]);
        if (digit < 0)
            return -1;
        code = code << 4 | digit;
    }
    return code;
}

/* At a backslash; moves behind the escape (both halves of a surrogate pair). */
static adm_status read_escape(struct lexer *lexer, uint32_t token, uint32_t *nul_at)
{
    uint32_t start = lexer->at;
    int c = start + 1 < lexer->length ? lexer->text[start + 1] : -1;
    if (c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' ||
        c == 't') {
        lexer->at = start + 2;
        return ADM_OK;
    }
    int32_t code = c == 'u' ? code_unit(lexer, start + 2) : -1;
    if (code < 0)
        return fail(lexer, ADMI_JSON_ESCAPE, start, token,
                    "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u and four hex digits");
    lexer->at = start + 6;
    if (code == 0 && *nul_at == ADMI_JSON_NONE)
        *nul_at = start;
    if (code < 0xD800 || code > 0xDFFF)
        return ADM_OK;
    int32_t low = -1;
    if (code < 0xDC00 && lexer->length - lexer->at >= 2 && lexer->text[lexer->at] == '\\' &&
        lexer->text[lexer->at + 1] == 'u')
        low = code_unit(lexer, lexer->at + 2);
    if (low < 0xDC00 || low > 0xDFFF)
        return fail(lexer, ADMI_JSON_SURROGATE, start, token, "a pair of surrogates");
    lexer->at += 6;
    return ADM_OK;
}

/* At a quote; moves behind the closing one. *nul_at: where an escaped NUL is, or ADMI_JSON_NONE. */
static adm_status read_string(struct lexer *lexer, uint32_t token, uint32_t *nul_at)
{
    *nul_at = ADMI_JSON_NONE;
    lexer->at++;
    while (lexer->at < lexer->length) {
        uint8_t c = lexer->text[lexer->at];
        if (c == '"') {
            lexer->at++;
            return ADM_OK;
        }
        if (c == '\\') {
            adm_status status = read_escape(lexer, token, nul_at);
            if (status != ADM_OK)
                return status;
        } else if (c < 0x20) {
            return fail(lexer, c == 0 ? ADMI_JSON_RAW_NUL : ADMI_JSON_CONTROL, lexer->at, token,
                        "control characters to be escaped");
        } else if (c < 0x80) {
            lexer->at++;
        } else {
            uint32_t bytes = admi_utf8_sequence(lexer->text + lexer->at, lexer->length - lexer->at);
            if (bytes == 0)
                return fail(lexer, ADMI_JSON_UTF8, lexer->at, token, "well-formed UTF-8");
            lexer->at += bytes;
        }
    }
    return fail(lexer, ADMI_JSON_SYNTAX, lexer->at, token, "a closing quote");
}

/* ---- values ---- */

/* Moves behind a number; *zero: it has a leading zero, which is not JSON but is understood. */
static adm_status read_number(struct lexer *lexer, uint32_t token, int *zero)
{
    if (peek(lexer) == '-')
        lexer->at++;
    if (!is_digit(peek(lexer)))
        return unexpected(lexer, token, "a digit");
    uint32_t first = lexer->at;
    while (is_digit(peek(lexer)))
        lexer->at++;
    *zero = lexer->text[first] == '0' && lexer->at - first > 1;
    if (peek(lexer) == '.') {
        lexer->at++;
        if (!is_digit(peek(lexer)))
            return unexpected(lexer, token, "a digit after the point");
        while (is_digit(peek(lexer)))
            lexer->at++;
    }
    if (peek(lexer) == 'e' || peek(lexer) == 'E') {
        lexer->at++;
        if (peek(lexer) == '+' || peek(lexer) == '-')
            lexer->at++;
        if (!is_digit(peek(lexer)))
            return unexpected(lexer, token, "a digit in the exponent");
        while (is_digit(peek(lexer)))
            lexer->at++;
    }
    return ADM_OK;
}

static adm_status read_literal(struct lexer *lexer, uint32_t token, const char *word,
                               enum admi_json_kind kind)
{
    uint32_t i = 0;
    while (word[i] != '\0' && lexer->at + i < lexer->length &&
           lexer->text[lexer->at + i] == (uint8_t)word[i])
        i++;
    if (word[i] != '\0')
        return fail(lexer, ADMI_JSON_SYNTAX, lexer->at, token, "a value");
    lexer->at += i;
    lexer->json->tokens[token].kind = (uint16_t)kind;
    return ADM_OK;
}

/* A number or a string, with its flaws. */
static adm_status read_scalar(struct lexer *lexer, uint32_t token, int c)
{
    struct admi_json_token *t = &lexer->json->tokens[token];
    uint32_t nul_at = ADMI_JSON_NONE;
    int zero = 0;
    adm_status status;
    if (c == '"') {
        t->kind = ADMI_JSON_STRING;
        status = read_string(lexer, token, &nul_at);
    } else {
        t->kind = ADMI_JSON_NUMBER;
        status = read_number(lexer, token, &zero);
    }
    if (status != ADM_OK)
        return status;
    if (nul_at == ADMI_JSON_NONE && !zero)
        return ADM_OK;
    t->flaws |= ADMI_JSON_FLAWED_VALUE;
    if (zero)
        report(lexer, ADMI_JSON_LEADING_ZERO, t->offset, token, "a number without leading zeros");
    else
        report(lexer, ADMI_JSON_ESCAPED_NUL, nul_at, token, "text without NUL");
    return ADM_OK;
}

/* Reads a scalar, or opens a container (which then is lexer->container). */
static adm_status read_value(struct lexer *lexer, uint32_t token)
{
    struct admi_json_token *t = &lexer->json->tokens[token];
    adm_status status;
    int c = peek(lexer);
    switch (c) {
    case '{':
    case '[':
        if (lexer->depth >= lexer->limits->depth)
            return fail(lexer, ADMI_JSON_DEPTH, lexer->at, token,
                        "fewer levels of objects and arrays");
        t->kind = c == '{' ? ADMI_JSON_OBJECT : ADMI_JSON_ARRAY;
        lexer->at++;
        lexer->depth++;
        lexer->container = token;
        return ADM_OK;
    case 't':
        status = read_literal(lexer, token, "true", ADMI_JSON_TRUE);
        break;
    case 'f':
        status = read_literal(lexer, token, "false", ADMI_JSON_FALSE);
        break;
    case 'n':
        status = read_literal(lexer, token, "null", ADMI_JSON_NULL);
        break;
    default:
        if (c != '"' && c != '-' && !is_digit(c))
            return unexpected(lexer, token, "a value");
        status = read_scalar(lexer, token, c);
        break;
    }
    t->length = lexer->at - t->offset;
    t->after = token + 1;
    return status;
}

/* The token of the value that begins at the current place. */
static adm_status add_token(struct lexer *lexer, uint32_t name_offset, uint32_t name_length,
                            uint32_t *out)
{
    struct admi_json *json = lexer->json;
    if (json->count == json->capacity) /* as many as the bound, or as the text can have */
        return fail(lexer, ADMI_JSON_TOO_MANY, lexer->at, lexer->container, "fewer values");
    uint32_t token = json->count++;
    json->tokens[token].offset = lexer->at;
    json->tokens[token].name_offset = name_offset;
    json->tokens[token].name_length = name_length;
    json->tokens[token].parent = lexer->container;
    *out = token;
    return ADM_OK;
}

/* A member up to its value: name, colon, token. */
static adm_status read_name(struct lexer *lexer, uint32_t *out)
{
    skip_space(lexer);
    uint32_t offset = lexer->at, nul_at = ADMI_JSON_NONE, length;
    if (peek(lexer) != '"')
        return unexpected(lexer, lexer->container, "a name in double quotes");
    adm_status status = read_string(lexer, lexer->container, &nul_at);
    if (status != ADM_OK)
        return status;
    length = lexer->at - offset;
    skip_space(lexer);
    if (peek(lexer) != ':')
        return unexpected(lexer, lexer->container, "a colon");
    lexer->at++;
    skip_space(lexer);
    status = add_token(lexer, offset, length, out);
    if (status == ADM_OK && nul_at != ADMI_JSON_NONE) {
        lexer->json->tokens[*out].flaws |= ADMI_JSON_FLAWED_NAME;
        report(lexer, ADMI_JSON_ESCAPED_NUL, nul_at, *out, "a name without NUL");
    }
    return status;
}

/* Before a value: its name if it is a member, and its token. */
static adm_status read_start(struct lexer *lexer, uint32_t *out)
{
    if (lexer->container != ADMI_JSON_NONE &&
        lexer->json->tokens[lexer->container].kind == ADMI_JSON_OBJECT)
        return read_name(lexer, out);
    skip_space(lexer);
    return add_token(lexer, 0, 0, out);
}

static void close_container(struct lexer *lexer)
{
    struct admi_json_token *t = &lexer->json->tokens[lexer->container];
    lexer->at++;
    lexer->depth--;
    t->length = lexer->at - t->offset;
    t->after = lexer->json->count;
    lexer->container = t->parent;
}

/* Behind a value (or an opening bracket): closes what closes. *more: another value follows. */
static adm_status read_end(struct lexer *lexer, int just_opened, int *more)
{
    for (;; just_opened = 0) {
        *more = 0;
        if (lexer->container == ADMI_JSON_NONE)
            return ADM_OK;
        int object = lexer->json->tokens[lexer->container].kind == ADMI_JSON_OBJECT;
        skip_space(lexer);
        int c = peek(lexer);
        if (c == (object ? '}' : ']')) {
            close_container(lexer);
            continue;
        }
        *more = 1;
        if (just_opened)
            return ADM_OK;
        if (c != ',')
            return unexpected(lexer, lexer->container, object ? "a comma or }" : "a comma or ]");
        lexer->at++;
        return ADM_OK;
    }
}

static adm_status lex_document(struct lexer *lexer)
{
    int more = 1;
    while (more) {
        uint32_t token = ADMI_JSON_NONE;
        adm_status status = read_start(lexer, &token);
        if (status == ADM_OK)
            status = read_value(lexer, token);
        if (status == ADM_OK)
            status = read_end(lexer, lexer->container == token, &more);
        if (status != ADM_OK)
            return status;
    }
    skip_space(lexer);
    if (lexer->at < lexer->length)
        return fail(lexer, ADMI_JSON_TRAILING, lexer->at, ADMI_JSON_NONE,
                    "nothing after the end of the document");
    return ADM_OK;
}

/* Every value is the first of the text or of a container, or follows a comma. */
static uint32_t most_values(const uint8_t *text, uint32_t length, uint32_t limit)
{
    uint32_t values = 1;
    for (uint32_t i = 0; i < length && values < limit; i++)
        values += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return values;
}

adm_status admi_json_lex(struct admi_json *json, struct adm_bytes text,
                         const struct admi_json_limits *limits,
                         const struct adm_allocator *allocator,
                         const struct admi_json_reporter *reporter)
{
    struct lexer lexer = { .json = json,
                           .text = text.data,
                           .container = ADMI_JSON_NONE,
                           .limits = limits,
                           .reporter = reporter };
    json->text = text;
    json->allocator = allocator;
    if (text.length > limits->bytes)
        return fail(&lexer, ADMI_JSON_TOO_LARGE, limits->bytes, ADMI_JSON_NONE,
                    "a smaller document");
    lexer.length = (uint32_t)text.length;
    if (lexer.length >= 3 && lexer.text[0] == 0xEF && lexer.text[1] == 0xBB &&
        lexer.text[2] == 0xBF)
        return fail(&lexer, ADMI_JSON_BOM, 0, ADMI_JSON_NONE, "no byte order mark");
    skip_space(&lexer);
    if (lexer.at == lexer.length)
        return fail(&lexer, ADMI_JSON_EMPTY, lexer.at, ADMI_JSON_NONE, "a value");
    uint32_t capacity = most_values(lexer.text, lexer.length, limits->values);
    json->tokens = admi_allocate(allocator, capacity, sizeof *json->tokens);
    if (json->tokens == NULL)
        return ADM_E_NOMEM;
    json->capacity = capacity;
    adm_status status = lex_document(&lexer);
    if (status == ADM_OK)
        status = admi_json_find_duplicates(json, reporter);
    return status;
}

void admi_json_fini(struct admi_json *json)
{
    if (json->tokens != NULL)
        admi_release(json->allocator, json->tokens, json->capacity, sizeof *json->tokens);
    json->tokens = NULL;
    json->count = json->capacity = 0;
}

void admi_json_place(struct adm_bytes text, uint32_t offset, uint32_t *line, uint32_t *column)
{
    const uint8_t *bytes = text.data;
    uint32_t lines = 1, start = 0;
    for (uint32_t i = 0; i < offset && i < text.length; i++)
        if (bytes[i] == '\n') {
            lines++;
            start = i + 1;
        }
    *line = lines;
    *column = offset - start + 1;
}
