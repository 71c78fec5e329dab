/* SPDX-License-Identifier: Apache-2.0 */
/* JSON text to a tree that remembers places and digits. */
#include "json.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64u

struct json_chunk {
    struct json_chunk *next;
    size_t used, size;
    max_align_t memory[];
};

struct reader {
    struct json_document *document;
    const char *text;
    size_t at, length;
    uint32_t line;
    size_t line_start;
    const char *message;
};

static void *take(struct json_document *document, size_t bytes)
{
    struct json_chunk *chunk = document->chunks;
    size_t rounded = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);

    if (chunk == NULL || chunk->size - chunk->used < rounded) {
        size_t size = rounded > 32768 ? rounded : 32768;

        chunk = cli_allocate(sizeof *chunk + size);
        chunk->next = document->chunks;
        chunk->size = size;
        document->chunks = chunk;
    }
    void *memory = (char *)chunk->memory + chunk->used;
    chunk->used += rounded;
    return memory;
}

static bool fail(struct reader *reader, const char *message)
{
    if (reader->message == NULL)
        reader->message = message;
    return false;
}

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->length) {
        char c = reader->text[reader->at];

        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return;
        reader->at++;
        if (c == '\n') {
            reader->line++;
            reader->line_start = reader->at;
        }
    }
}

static int peek(const struct reader *reader)
{
    return reader->at < reader->length ? (unsigned char)reader->text[reader->at] : -1;
}

static int hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits at an offset; -1 when they are not there. */
static int32_t unit_at(const struct reader *reader, size_t at)
{
    int32_t unit = 0;

    if (at > reader->length || reader->length - at < 4)
        return -1;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit((unsigned char)reader->text[at + i]);

        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

static size_t encode(uint32_t point, char *out)
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

/* What stands after a backslash; the bytes it means go to out. */
static bool escape(struct reader *reader, char *out, size_t *length)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    int c = peek(reader);
    const char *found = c > 0 ? strchr(names, c) : NULL;

    reader->at++;
    if (found != NULL) {
        out[(*length)++] = meanings[found - names];
        return true;
    }
    int32_t unit = c == 'u' ? unit_at(reader, reader->at) : -1;
    if (unit < 0)
        return fail(reader, "unknown escape in a string");
    reader->at += 4;
    uint32_t point = (uint32_t)unit;
    if (point >= 0xd800 && point < 0xdc00 && peek(reader) == '\\' &&
        reader->at + 1 < reader->length && reader->text[reader->at + 1] == 'u') {
        int32_t low = unit_at(reader, reader->at + 2);

        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((point - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
            reader->at += 6;
        }
    }
    *length += encode(point, out + *length);
    return true;
}

static bool read_string(struct reader *reader, const char **text, size_t *length)
{
    size_t end = ++reader->at;

    while (end < reader->length && reader->text[end] != '"')
        end += reader->text[end] == '\\' ? 2 : 1;
    if (end >= reader->length)
        return fail(reader, "a string without an end");
    char *out = take(reader->document, end - reader->at + 1); /* decoded is never longer */
    size_t used = 0;
    while (reader->at < end) {
        unsigned char c = (unsigned char)reader->text[reader->at];

        if (c < 0x20)
            return fail(reader, "a control character in a string");
        reader->at++;
        if (c != '\\')
            out[used++] = (char)c;
        else if (!escape(reader, out, &used))
            return false;
    }
    reader->at = end + 1;
    out[used] = 0;
    *text = out;
    *length = used;
    return true;
}

static size_t digits(struct reader *reader)
{
    size_t from = reader->at;

    while (peek(reader) >= '0' && peek(reader) <= '9')
        reader->at++;
    return reader->at - from;
}

static bool read_number(struct reader *reader, struct json *value)
{
    size_t from = reader->at;

    if (peek(reader) == '-')
        reader->at++;
    bool zero = peek(reader) == '0';
    size_t whole = digits(reader);
    if (whole == 0 || (zero && whole > 1))
        return fail(reader, "not a JSON number");
    if (peek(reader) == '.') {
        reader->at++;
        if (digits(reader) == 0)
            return fail(reader, "not a JSON number");
    }
    if (peek(reader) == 'e' || peek(reader) == 'E') {
        reader->at++;
        if (peek(reader) == '+' || peek(reader) == '-')
            reader->at++;
        if (digits(reader) == 0)
            return fail(reader, "not a JSON number");
    }
    value->length = reader->at - from;
    char *text = take(reader->document, value->length + 1);
    memcpy(text, reader->text + from, value->length);
    text[value->length] = 0;
    value->text = text;
    value->kind = JSON_NUMBER;
    return true;
}

static bool read_word(struct reader *reader, struct json *value)
{
    static const struct {
        const char *word;
        enum json_kind kind;
    } words[] = { { "null", JSON_NULL }, { "false", JSON_FALSE }, { "true", JSON_TRUE } };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i].word);

        if (reader->length - reader->at >= length &&
            memcmp(reader->text + reader->at, words[i].word, length) == 0) {
            reader->at += length;
            value->kind = words[i].kind;
            return true;
        }
    }
    return fail(reader, "expected a JSON value");
}

static struct json *read_value(struct reader *reader, unsigned depth);

static bool read_children(struct reader *reader, struct json *value, unsigned depth)
{
    bool object = value->kind == JSON_OBJECT;
    int close = object ? '}' : ']';
    struct json **link = &value->first;

    reader->at++;
    skip_blanks(reader);
    while (value->count > 0 || peek(reader) != close) {
        const char *key = NULL;
        size_t key_length = 0;

        if (object) {
            if (peek(reader) != '"')
                return fail(reader, "expected a member name in double quotes");
            if (!read_string(reader, &key, &key_length))
                return false;
            skip_blanks(reader);
            if (peek(reader) != ':')
                return fail(reader, "expected ':'");
            reader->at++;
        }
        struct json *child = read_value(reader, depth + 1);
        if (child == NULL)
            return false;
        child->key = key;
        child->key_length = key_length;
        *link = child;
        link = &child->next;
        value->count++;
        skip_blanks(reader);
        if (peek(reader) == close)
            break;
        if (peek(reader) != ',')
            return fail(reader, object ? "expected ',' or '}'" : "expected ',' or ']'");
        reader->at++;
        skip_blanks(reader);
    }
    reader->at++;
    return true;
}

static struct json *read_value(struct reader *reader, unsigned depth)
{
    skip_blanks(reader);
    struct json *value = take(reader->document, sizeof *value);
    int c = peek(reader);
    bool good;

    memset(value, 0, sizeof *value);
    value->start = reader->at;
    value->line = reader->line;
    value->column = (uint32_t)(reader->at - reader->line_start + 1);
    if (depth > DEPTH_MAX) {
        good = fail(reader, "nested too deeply");
    } else if (c == '{' || c == '[') {
        value->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        good = read_children(reader, value, depth);
    } else if (c == '"') {
        value->kind = JSON_STRING;
        good = read_string(reader, &value->text, &value->length);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        good = read_number(reader, value);
    } else {
        good = read_word(reader, value);
    }
    value->end = reader->at;
    return good ? value : NULL;
}

bool json_parse(struct json_document *document, const char *text, size_t length,
                struct json_error *error)
{
    struct reader reader = { .document = document, .text = text, .length = length, .line = 1 };

    *document = (struct json_document){ .text = text, .length = length };
    document->root = read_value(&reader, 1);
    if (document->root != NULL) {
        skip_blanks(&reader);
        if (reader.at == reader.length)
            return true;
        fail(&reader, "text after the end of the document");
    }
    error->line = reader.line;
    error->column = (uint32_t)(reader.at - reader.line_start + 1);
    error->message = reader.message;
    json_free(document);
    return false;
}

void json_free(struct json_document *document)
{
    while (document->chunks != NULL) {
        struct json_chunk *next = document->chunks->next;

        free(document->chunks);
        document->chunks = next;
    }
    document->root = NULL;
}
