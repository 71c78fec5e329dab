/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about places of a document: pointer, expectation, what stands there. */
#include "policy/report.h"

#include "base/json_names.h"
#include "base/memory.h"
#include "base/utf8.h"

#define NAME_SHOWN  128u
#define VALUE_SHOWN 48u
#define DEPTH_MAX   64u

/* One step of a JSON pointer: RFC 6901 escapes ~ and /. */
static void add_name(const struct admi_json *json, struct admi_words *words,
                     const struct admi_json_token *token)
{
    uint8_t name[NAME_SHOWN];
    uint64_t length =
        admi_json_decode(json, token->name_offset, token->name_length, name, sizeof name);
    uint64_t plain = 0;
    for (uint64_t i = 0; i < length; i++) {
        if (name[i] < 0x20 || name[i] == 0x7F)
            name[i] = '?'; /* a pointer is printed on one line and ends in NUL */
        if (name[i] != '~' && name[i] != '/')
            continue;
        admi_words_add_bytes(words, (struct adm_bytes){ name + plain, i - plain });
        admi_words_add(words, name[i] == '~' ? "~0" : "~1");
        plain = i + 1;
    }
    admi_words_quote(words, (struct adm_bytes){ name + plain, length - plain }, NAME_SHOWN);
}

static uint64_t position(const struct admi_json *json, uint32_t token)
{
    uint64_t i = 0;
    for (uint32_t t = json->tokens[token].parent + 1; t < token; t = json->tokens[t].after)
        i++;
    return i;
}

static void write_pointer(const struct admi_json *json, struct admi_diag_entry *entry,
                          uint32_t token)
{
    struct admi_words words = admi_words_start(entry->pointer, sizeof entry->pointer);
    uint32_t path[DEPTH_MAX], steps = 0;
    for (uint32_t t = token; t != ADMI_JSON_NONE && steps < DEPTH_MAX; t = json->tokens[t].parent)
        path[steps++] = t;
    while (steps-- > 0) {
        const struct admi_json_token *step = &json->tokens[path[steps]];
        if (step->parent == ADMI_JSON_NONE)
            continue;
        admi_words_add(&words, "/");
        if (step->name_length > 0)
            add_name(json, &words, step);
        else
            admi_words_add_number(&words, position(json, path[steps]));
    }
}

/* What an underline covers: a name, a scalar, or the bracket that opens a container. */
static uint32_t length_at(const struct admi_json *json, uint32_t offset, uint32_t token)
{
    const struct admi_json_token *t = &json->tokens[token];
    if (t->name_length > 0 && offset == t->name_offset)
        return t->name_length;
    bool container = t->kind == ADMI_JSON_OBJECT || t->kind == ADMI_JSON_ARRAY;
    return offset == t->offset && !container ? t->length : 1;
}

static struct admi_diag_entry *add(const struct admi_source *source, enum admi_diag kind,
                                   uint32_t offset, uint32_t token)
{
    struct admi_diag_entry *entry = admi_diags_add(source->diags, kind, offset);
    if (entry == NULL || token == ADMI_JSON_NONE)
        return entry;
    entry->place.length = length_at(source->json, offset, token);
    write_pointer(source->json, entry, token);
    return entry;
}

void admi_report_note(const struct admi_source *source, struct admi_diag_entry *entry,
                      uint32_t token, bool of_name, const char *message)
{
    if (entry == NULL || token == ADMI_JSON_NONE)
        return;
    const struct admi_json_token *t = &source->json->tokens[token];
    entry->has_note = true;
    entry->note_place.offset = of_name ? t->name_offset : t->offset;
    entry->note_place.length = length_at(source->json, entry->note_place.offset, token);
    struct admi_words words = admi_words_start(entry->note, sizeof entry->note);
    admi_words_add(&words, message);
}

/* The item of the policy's rules that holds a value, at whatever depth. */
static uint32_t rule_around(const struct admi_json *json, uint32_t token)
{
    for (uint32_t t = token; t != ADMI_JSON_NONE; t = json->tokens[t].parent) {
        uint32_t array = json->tokens[t].parent;
        if (array == ADMI_JSON_NONE || json->tokens[array].parent != 0 ||
            json->tokens[array].kind != ADMI_JSON_ARRAY)
            continue;
        return admi_json_spells(json, json->tokens[array].name_offset,
                                json->tokens[array].name_length, admi_words_of("rules"))
                   ? t
                   : ADMI_JSON_NONE;
    }
    return ADMI_JSON_NONE;
}

void admi_report_note_of_rule(const struct admi_source *source, struct admi_diag_entry *entry,
                              uint32_t token, const char *name, const char *message)
{
    uint32_t rule = entry == NULL ? ADMI_JSON_NONE : rule_around(source->json, token);
    if (rule == ADMI_JSON_NONE)
        return;
    admi_report_note(source, entry, admi_json_member(source->json, rule, admi_words_of(name)),
                     false, message);
}

struct admi_diag_entry *admi_report_value(const struct admi_source *source, enum admi_diag kind,
                                          uint32_t token)
{
    return add(source, kind, source->json->tokens[token].offset, token);
}

struct admi_diag_entry *admi_report_name(const struct admi_source *source, enum admi_diag kind,
                                         uint32_t token)
{
    return add(source, kind, source->json->tokens[token].name_offset, token);
}

struct admi_words admi_report_words(struct admi_diag_entry *entry)
{
    struct adm_bytes so_far = admi_words_of(entry->message);
    struct admi_words words = { entry->message, sizeof entry->message, (uint32_t)so_far.length, 0 };
    return words;
}

void admi_report_nearest(struct admi_diag_entry *entry, struct adm_bytes nearest)
{
    struct admi_words words = admi_words_start(entry->nearest, sizeof entry->nearest);
    admi_words_quote(&words, nearest, sizeof entry->nearest);
}

void admi_report_found(const struct admi_source *source, struct admi_words *words, uint32_t token)
{
    const struct admi_json_token *t = &source->json->tokens[token];
    const char *text = source->json->text.data;
    admi_words_add(words, ", found ");
    if (t->kind == ADMI_JSON_OBJECT)
        admi_words_add(words, "an object");
    else if (t->kind == ADMI_JSON_ARRAY)
        admi_words_add(words, "an array");
    else
        admi_words_quote(words, (struct adm_bytes){ text + t->offset, t->length }, VALUE_SHOWN);
}

struct admi_diag_entry *admi_report_expected(const struct admi_source *source, enum admi_diag kind,
                                             uint32_t token, const char *expected)
{
    struct admi_diag_entry *entry = admi_report_value(source, kind, token);
    if (entry == NULL)
        return NULL;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected ");
    admi_words_add(&words, expected);
    admi_report_found(source, &words, token);
    return entry;
}

void admi_report_at_most(const struct admi_source *source, enum admi_diag kind, uint32_t token,
                         uint64_t most, const char *what)
{
    struct admi_diag_entry *entry = admi_report_value(source, kind, token);
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected at most ");
    admi_words_add_number(&words, most);
    admi_words_add(&words, " ");
    admi_words_add(&words, what);
}

struct admi_diag_entry *admi_report_message(const struct admi_source *source, enum admi_diag kind,
                                            uint32_t token, const char *message)
{
    struct admi_diag_entry *entry = admi_report_value(source, kind, token);
    if (entry == NULL)
        return NULL;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, message);
    return entry;
}

/* ---- what the lexer finds ---- */

static const enum admi_diag lexer_kinds[] = {
    [ADMI_JSON_EMPTY] = ADMI_DIAG_EMPTY_DOCUMENT,
    [ADMI_JSON_SYNTAX] = ADMI_DIAG_SYNTAX,
    [ADMI_JSON_TRAILING] = ADMI_DIAG_TRAILING_TEXT,
    [ADMI_JSON_BOM] = ADMI_DIAG_BOM,
    [ADMI_JSON_UTF8] = ADMI_DIAG_UTF8,
    [ADMI_JSON_CONTROL] = ADMI_DIAG_CONTROL_CHARACTER,
    [ADMI_JSON_ESCAPE] = ADMI_DIAG_ESCAPE,
    [ADMI_JSON_SURROGATE] = ADMI_DIAG_SURROGATE,
    [ADMI_JSON_DEPTH] = ADMI_DIAG_DEPTH,
    [ADMI_JSON_TOO_LARGE] = ADMI_DIAG_TOO_LARGE,
    [ADMI_JSON_TOO_MANY] = ADMI_DIAG_TOO_MANY_VALUES,
    [ADMI_JSON_RAW_NUL] = ADMI_DIAG_NUL,
    [ADMI_JSON_ESCAPED_NUL] = ADMI_DIAG_NUL,
    [ADMI_JSON_LEADING_ZERO] = ADMI_DIAG_LEADING_ZERO,
    [ADMI_JSON_DUPLICATE] = ADMI_DIAG_DUPLICATE_KEY,
};

/* The character at a place, or the byte when it is none that can be printed. */
static void add_character(struct admi_words *words, struct adm_bytes text, uint32_t offset)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *bytes = text.data;
    if (offset >= text.length) {
        admi_words_add(words, "the end of the text");
        return;
    }
    uint32_t length = admi_utf8_sequence(bytes + offset, text.length - offset);
    if (length == 0 || bytes[offset] < 0x20 || bytes[offset] == 0x7F) {
        char byte[] = { '0', 'x', hex[bytes[offset] >> 4], hex[bytes[offset] & 15], '\0' };
        admi_words_add(words, "byte ");
        admi_words_add(words, byte);
        return;
    }
    admi_words_quote(words, (struct adm_bytes){ bytes + offset, length }, length);
}

void admi_report_lexer(void *self, const struct admi_json_finding *finding)
{
    const struct admi_source *source = self;
    const struct admi_json *json = source->json;
    uint32_t offset = json->text.length == 0 ? ADMI_DIAG_NO_PLACE : finding->offset;
    struct admi_diag_entry *entry =
        add(source, lexer_kinds[finding->problem], offset, finding->token);
    if (entry == NULL)
        return;
    struct admi_words words = admi_report_words(entry);
    admi_words_add(&words, "expected ");
    admi_words_add(&words, finding->expected);
    switch (finding->problem) {
    case ADMI_JSON_DUPLICATE:
        admi_words_add(&words, ", found ");
        admi_words_quote(&words,
                         (struct adm_bytes){ (const char *)json->text.data +
                                                 json->tokens[finding->token].name_offset,
                                             json->tokens[finding->token].name_length },
                         VALUE_SHOWN);
        admi_words_add(&words, " again");
        admi_report_note(source, entry, admi_json_first_of_name(json, finding->token), true,
                         "it is first here");
        break;
    case ADMI_JSON_LEADING_ZERO:
        admi_words_add(&words,
                       ", found a leading zero"); /* the length of the token is not known yet */
        break;
    case ADMI_JSON_DEPTH:
    case ADMI_JSON_TOO_MANY:
        admi_words_add(&words, ", at most ");
        admi_words_add_number(&words, finding->bound);
        admi_words_add(&words, ": this one is beyond");
        break;
    case ADMI_JSON_TOO_LARGE:
        admi_words_add(&words, ", at most ");
        admi_words_add_number(&words, finding->bound);
        admi_words_add(&words, " bytes, found ");
        admi_words_add_number(&words, json->text.length);
        break;
    case ADMI_JSON_BOM:
        admi_words_add(&words, " at the start");
        break;
    case ADMI_JSON_ESCAPED_NUL:
        admi_words_add(&words, ", found \\u0000");
        break;
    case ADMI_JSON_EMPTY:
    case ADMI_JSON_SYNTAX:
    case ADMI_JSON_TRAILING:
    case ADMI_JSON_UTF8:
    case ADMI_JSON_CONTROL:
    case ADMI_JSON_ESCAPE:
    case ADMI_JSON_SURROGATE:
    case ADMI_JSON_RAW_NUL:
        admi_words_add(&words, ", found ");
        add_character(&words, json->text, finding->offset);
        break;
    }
}
