/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a JSON tree, and printing one. */
#include "json.h"

#include "cli.h"

#include <string.h>

const struct json *json_member(const struct json *object, const char *key)
{
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    size_t length = strlen(key);
    for (const struct json *member = object->first; member != NULL; member = member->next)
        if (member->key_length == length && memcmp(member->key, key, length) == 0)
            return member;
    return NULL;
}

const struct json *json_repeated(const struct json *object)
{
    if (object == NULL || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *a = object->first; a != NULL; a = a->next)
        for (const struct json *b = a->next; b != NULL; b = b->next)
            if (a->key_length == b->key_length && memcmp(a->key, b->key, a->key_length) == 0)
                return b;
    return NULL;
}

bool json_is(const struct json *value, const char *string)
{
    return value != NULL && value->kind == JSON_STRING && value->length == strlen(string) &&
           memcmp(value->text, string, value->length) == 0;
}

bool json_u64(const struct json *value, uint64_t *out)
{
    return value != NULL && value->kind == JSON_NUMBER &&
           cli_parse_u64(value->text, value->length, out);
}

void json_print(FILE *out, const struct json *value)
{
    bool object = value->kind == JSON_OBJECT;

    switch (value->kind) {
    case JSON_NULL:
        fputs("null", out);
        break;
    case JSON_FALSE:
        fputs("false", out);
        break;
    case JSON_TRUE:
        fputs("true", out);
        break;
    case JSON_NUMBER:
        fwrite(value->text, 1, value->length, out);
        break;
    case JSON_STRING:
        json_print_string(out, value->text, value->length);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        fputc(object ? '{' : '[', out);
        for (const struct json *child = value->first; child != NULL; child = child->next) {
            if (child != value->first)
                fputc(',', out);
            if (object) {
                json_print_string(out, child->key, child->key_length);
                fputc(':', out);
            }
            json_print(out, child);
        }
        fputc(object ? '}' : ']', out);
        break;
    }
}

/* The length of the well-formed UTF-8 sequence at bytes, 0 when there is none. */
static size_t sequence(const unsigned char *bytes, size_t length)
{
    unsigned char lead = bytes[0];
    size_t need = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    unsigned char low = 0x80, high = 0xbf;

    if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || need > length)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        high = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < need; i++) {
        if (bytes[i] < low || bytes[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

void json_print_string(FILE *out, const char *bytes, size_t length)
{
    const unsigned char *at = (const unsigned char *)bytes;

    fputc('"', out);
    while (length > 0) {
        size_t step = sequence(at, length);

        if (step == 0) {
            fputs("\\ufffd", out);
            step = 1;
        } else if (*at == '"' || *at == '\\') {
            fprintf(out, "\\%c", *at);
        } else if (*at == '\n') {
            fputs("\\n", out);
        } else if (*at < 0x20 || *at == 0x7f) {
            fprintf(out, "\\u%04x", *at);
        } else {
            fwrite(at, 1, step, out);
        }
        at += step;
        length -= step;
    }
    fputc('"', out);
}

void json_print_text(FILE *out, const char *text)
{
    json_print_string(out, text, strlen(text));
}
