/* SPDX-License-Identifier: Apache-2.0 */
/* The names of members after unescaping: comparing them, and finding duplicates. */
#include "base/json_names.h"

#include "base/memory.h"
#include "base/sort.h"
#include "base/utf8.h"

/* Yields the decoded bytes of a string that the lexer has accepted. */
struct speller {
    const uint8_t *at, *end; /* without the quotes */
    uint8_t held[4];
    uint32_t held_count, held_next;
};

static struct speller speller(const struct admi_json *json, uint32_t offset, uint32_t length)
{
    const uint8_t *text = json->text.data;
    struct speller s = { .at = text + offset + 1, .end = text + offset + length - 1 };
    return s;
}

static uint32_t code_unit(const uint8_t *digits)
{
    uint32_t code = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint8_t c = digits[i];
        code = code << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return code;
}

static uint32_t next_unicode(struct speller *s)
{
    uint32_t code = code_unit(s->at);
    s->at += 4;
    if (code >= 0xD800 &&
        code < 0xDC00) { /* the lexer has seen to it that the other half follows */
        code = 0x10000 + ((code - 0xD800) << 10) + (code_unit(s->at + 2) - 0xDC00);
        s->at += 6;
    }
    s->held_count = admi_utf8_encode(code, s->held);
    s->held_next = 1;
    return s->held[0];
}

/* The next byte, or -1 at the end. */
static int next_byte(struct speller *s)
{
    if (s->held_next < s->held_count)
        return s->held[s->held_next++];
    if (s->at == s->end)
        return -1;
    uint8_t c = *s->at++;
    if (c != '\\')
        return c;
    c = *s->at++;
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        return (int)next_unicode(s);
    default:
        return c;
    }
}

int admi_json_spells(const struct admi_json *json, uint32_t offset, uint32_t length,
                     struct adm_bytes word)
{
    struct speller s = speller(json, offset, length);
    const uint8_t *bytes = word.data;
    for (uint64_t i = 0; i < word.length; i++)
        if (next_byte(&s) != bytes[i])
            return 0;
    return next_byte(&s) < 0;
}

uint64_t admi_json_decode(const struct admi_json *json, uint32_t offset, uint32_t length,
                          uint8_t *out, uint64_t capacity)
{
    struct speller s = speller(json, offset, length);
    uint64_t written = 0;
    while (written < capacity) {
        int c = next_byte(&s);
        if (c < 0)
            break;
        out[written++] = (uint8_t)c;
    }
    return written;
}

/*
 * A member: its object, a hash of its decoded name, its token. Equal hashes are compared in full.
 */
struct name {
    uint32_t parent, hash, token;
};

static uint32_t hash_name(const struct admi_json *json, const struct admi_json_token *token)
{
    struct speller s = speller(json, token->name_offset, token->name_length);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int c = next_byte(&s); c >= 0; c = next_byte(&s))
        hash = (hash ^ (uint64_t)c) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash ^ hash >> 32);
}

static int compare_names(const struct admi_json *json, uint32_t a, uint32_t b)
{
    const struct admi_json_token *one = &json->tokens[a], *two = &json->tokens[b];
    struct adm_bytes as_written = { (const char *)json->text.data + one->name_offset,
                                    one->name_length };
    struct adm_bytes other = { (const char *)json->text.data + two->name_offset, two->name_length };
    if (admi_bytes_equal(as_written, other))
        return 0; /* the usual case of two equal names, without decoding them */
    struct speller s = speller(json, one->name_offset, one->name_length);
    struct speller t = speller(json, two->name_offset, two->name_length);
    for (;;) {
        int c = next_byte(&s), d = next_byte(&t);
        if (c != d)
            return c < d ? -1 : 1;
        if (c < 0)
            return 0;
    }
}

static int compare_hashes(const void *a, const void *b, const void *context)
{
    const struct name *one = a, *two = b;
    (void)context;
    if (one->parent != two->parent)
        return one->parent < two->parent ? -1 : 1;
    if (one->hash != two->hash)
        return one->hash < two->hash ? -1 : 1;
    return one->token < two->token ? -1 : one->token > two->token;
}

static int compare_spellings(const void *a, const void *b, const void *context)
{
    const struct name *one = a, *two = b;
    int order = compare_names(context, one->token, two->token);
    if (order != 0)
        return order;
    return one->token < two->token ? -1 : one->token > two->token;
}

/* Members of one object whose names have one hash, in the order of the text. */
static void mark_duplicates(struct admi_json *json, struct name *run, uint32_t count)
{
    uint32_t equal = 1;
    while (equal < count && compare_names(json, run[0].token, run[equal].token) == 0)
        equal++;
    if (equal < count) /* the hash is no secret: somebody may have looked for names that share it */
        admi_sort(run, count, sizeof *run, compare_spellings, json);
    for (uint32_t i = 1; i < count; i++)
        if (equal == count || compare_names(json, run[i - 1].token, run[i].token) == 0)
            json->tokens[run[i].token].flaws |= ADMI_JSON_FLAWED_DUPLICATE;
}

adm_status admi_json_find_duplicates(struct admi_json *json,
                                     const struct admi_json_reporter *reporter)
{
    uint32_t count = 0, capacity = json->count;
    struct name *names = admi_allocate(json->allocator, capacity, sizeof *names);
    if (names == NULL)
        return ADM_E_NOMEM;
    for (uint32_t i = 0; i < json->count; i++) {
        const struct admi_json_token *token = &json->tokens[i];
        if (token->name_length > 0)
            names[count++] = (struct name){ token->parent, hash_name(json, token), i };
    }
    /* Sorts and no hash table: no choice of names makes it slower than n log n. */
    admi_sort(names, count, sizeof *names, compare_hashes, NULL);
    for (uint32_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && names[next].parent == names[i].parent &&
                           names[next].hash == names[i].hash;)
            next++;
        if (next - i > 1)
            mark_duplicates(json, names + i, next - i);
    }
    admi_release(json->allocator, names, capacity, sizeof *names);
    for (uint32_t i = 0; i < json->count; i++)
        if ((json->tokens[i].flaws & ADMI_JSON_FLAWED_DUPLICATE) != 0) {
            struct admi_json_finding finding = { ADMI_JSON_DUPLICATE, json->tokens[i].name_offset,
                                                 i, "each name once", 0 };
            reporter->report(reporter->self, &finding);
        }
    return ADM_OK;
}

uint32_t admi_json_first_of_name(const struct admi_json *json, uint32_t token)
{
    uint32_t first = json->tokens[token].parent + 1;
    while (first != token && compare_names(json, first, token) != 0)
        first = json->tokens[first].after;
    return first;
}

uint32_t admi_json_member(const struct admi_json *json, uint32_t object, struct adm_bytes name)
{
    if (json->tokens[object].kind != ADMI_JSON_OBJECT)
        return ADMI_JSON_NONE;
    for (uint32_t t = object + 1; t < json->tokens[object].after; t = json->tokens[t].after)
        if (admi_json_spells(json, json->tokens[t].name_offset, json->tokens[t].name_length, name))
            return t;
    return ADMI_JSON_NONE;
}

uint32_t admi_json_item(const struct admi_json *json, uint32_t array, uint32_t index)
{
    for (uint32_t t = array + 1; t < json->tokens[array].after; t = json->tokens[t].after)
        if (index-- == 0)
            return t;
    return ADMI_JSON_NONE;
}
