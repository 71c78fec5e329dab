/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML text as JSON text of the same content: the one file that knows libyaml.
 *
 * It reads events one by one and refuses at the first one that is not ours, so that no limit waits
 * for the end of the text: libyaml alone needs a minute for 200 000 open brackets, and an alias is
 * never followed.
 */
#include "policy/yaml_json.h"

#include <yaml.h>

#include <stdbool.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "policy/words.h"
#include "policy/yaml_scalar.h"
#include "policy/yaml_text.h"

#define DEPTH_MAX   64u
#define VALUE_SHOWN 48u
#define NAME_SHOWN  128u

/* An open mapping or sequence. */
struct level {
    bool mapping;
    bool named;              /* mapping: a name was written, its value comes next */
    uint32_t members;        /* values so far, the one being read included */
    uint32_t name, name_end; /* mapping: the last name in the JSON text, with its quotes */
};

struct reader {
    struct admi_yaml *yaml;
    struct adm_bytes text;
    const struct admi_json_limits *limits;
    struct adm_diags *diags;
    struct level levels[DEPTH_MAX];
    uint32_t depth;
    uint32_t values;
    uint32_t documents;
    bool ascii; /* a character is a byte */
    /* libyaml counts characters: where the last look-up was, in both measures. */
    uint64_t characters, bytes;
};

/* ---- places ---- */

static uint32_t byte_offset(struct reader *reader, const yaml_mark_t *mark)
{
    const uint8_t *text = reader->text.data;
    if (reader->ascii)
        return (uint32_t)(mark->index < reader->text.length ? mark->index : reader->text.length);
    while (reader->characters > mark->index) { /* no further than the start of one token */
        do
            reader->bytes--;
        while ((text[reader->bytes] & 0xC0) == 0x80);
        reader->characters--;
    }
    while (reader->characters < mark->index && reader->bytes < reader->text.length) {
        reader->bytes++;
        while (reader->bytes < reader->text.length && (text[reader->bytes] & 0xC0) == 0x80)
            reader->bytes++;
        reader->characters++;
    }
    return (uint32_t)reader->bytes;
}

/* ---- findings ---- */

/* The way to the value that is being read, as a JSON pointer. */
static void write_pointer(const struct reader *reader, struct admi_diag_entry *entry)
{
    struct admi_words words = admi_words_start(entry->pointer, sizeof entry->pointer);
    for (uint32_t i = 0; i < reader->depth; i++) {
        const struct level *level = &reader->levels[i];
        if (!level->mapping && level->members > 0) { /* 0: it is itself what is reported */
            admi_words_add(&words, "/");
            admi_words_add_number(&words, level->members - 1);
        }
        if (!level->mapping)
            continue;
        if (level->name_end == level->name)
            continue;
        admi_words_add(&words, "/");
        uint32_t plain = level->name + 1, end = level->name_end - 1;
        if (end - plain > NAME_SHOWN)
            end = plain + NAME_SHOWN;
        for (uint32_t at = plain; at <= end; at++) {
            char c = at < end ? reader->yaml->json[at] : '/';
            if (c != '~' && c != '/')
                continue;
            admi_words_add_bytes(&words,
                                 (struct adm_bytes){ reader->yaml->json + plain, at - plain });
            if (at < end)
                admi_words_add(&words, c == '~' ? "~0" : "~1");
            plain = at + 1;
        }
    }
}

/* An entry with its place, or NULL when no more are kept. */
static struct admi_diag_entry *report(struct reader *reader, enum admi_diag kind,
                                      const yaml_mark_t *start, const yaml_mark_t *end)
{
    uint32_t offset = byte_offset(reader, start);
    struct admi_diag_entry *entry = admi_diags_add(reader->diags, kind, offset);
    if (entry == NULL)
        return NULL;
    entry->in_source = true;
    entry->place.length = end == NULL ? 1 : byte_offset(reader, end) - offset;
    write_pointer(reader, entry);
    return entry;
}

static adm_status refuse(struct reader *reader, enum admi_diag kind, const yaml_mark_t *start,
                         const yaml_mark_t *end, const char *message)
{
    struct admi_diag_entry *entry = report(reader, kind, start, end);
    if (entry != NULL) {
        struct admi_words words = admi_words_start(entry->message, sizeof entry->message);
        admi_words_add(&words, message);
    }
    return ADM_E_POLICY_INVALID;
}

/* What libyaml could not read, in its own short words. */
static adm_status refuse_syntax(struct reader *reader, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return ADM_E_NOMEM;
    if (parser->problem != NULL &&
        admi_bytes_equal(admi_words_of(parser->problem),
                         admi_words_of("found incompatible YAML document")))
        return refuse(reader, ADMI_DIAG_DIRECTIVE, &parser->problem_mark, NULL,
                      "expected %YAML 1.1 or %YAML 1.2, found another version");
    /* For a character that libyaml does not take there is no mark, only an offset in bytes. */
    bool unread = parser->error == YAML_READER_ERROR;
    struct admi_diag_entry *entry =
        report(reader, ADMI_DIAG_YAML_SYNTAX, &parser->problem_mark, NULL);
    if (entry != NULL && unread)
        entry->place.offset = (uint32_t)parser->problem_offset;
    if (entry == NULL)
        return ADM_E_POLICY_INVALID;
    struct admi_words words = admi_words_start(entry->message, sizeof entry->message);
    admi_words_add(&words, "expected YAML: ");
    admi_words_add(&words, parser->problem != NULL ? parser->problem : "it cannot be read");
    if (parser->context != NULL) {
        admi_words_add(&words, " (");
        admi_words_add(&words, parser->context);
        admi_words_add(&words, " that starts in line ");
        admi_words_add_number(&words, parser->context_mark.line + 1);
        admi_words_add(&words, ")");
    }
    return ADM_E_POLICY_INVALID;
}

static const char *taken_for(enum admi_yaml_scalar scalar)
{
    switch (scalar) {
    case ADMI_YAML_BOOLEAN:
        return "a boolean";
    case ADMI_YAML_NUMBER:
        return "another number or a string";
    case ADMI_YAML_DATE:
        return "a date";
    case ADMI_YAML_NULL:
        return "null";
    case ADMI_YAML_SPECIAL:
        return "an operator";
    case ADMI_YAML_STRING:
    case ADMI_YAML_LITERAL:
        break;
    }
    return "something else";
}

/* Reported, marked, and then carried on as a string, so that the rest is looked at as well. */
static void report_scalar(struct reader *reader, enum admi_diag kind, const yaml_event_t *event,
                          enum admi_yaml_scalar scalar)
{
    struct admi_yaml *yaml = reader->yaml;
    struct adm_bytes plain = { event->data.scalar.value, event->data.scalar.length };
    if (yaml->flawed_count < ADMI_DIAGS_MAX)
        yaml->flawed[yaml->flawed_count++] = (uint32_t)yaml->length;
    struct admi_diag_entry *entry = report(reader, kind, &event->start_mark, &event->end_mark);
    if (entry == NULL)
        return;
    struct admi_words words = admi_words_start(entry->message, sizeof entry->message);
    if (plain.length == 0) {
        admi_words_add(&words, "expected a value, found nothing, which is null");
        return;
    }
    bool name = kind == ADMI_DIAG_KEY_NOT_STRING;
    admi_words_add(&words,
                   name ? "expected a key in quotes, found "
                        : "expected a decimal number, true, false or a string in quotes, found ");
    admi_words_quote(&words, plain, VALUE_SHOWN);
    admi_words_add(&words, name ? " without them, which is " : ", which YAML readers take for ");
    admi_words_add(&words, scalar == ADMI_YAML_LITERAL ? "no string" : taken_for(scalar));
    if (plain.length <= VALUE_SHOWN) {
        words = admi_words_start(entry->nearest, sizeof entry->nearest);
        admi_words_add(&words, "\"");
        admi_words_add_bytes(&words, plain);
        admi_words_add(&words, "\"");
    }
}

/* What is written next stands there in the YAML text. */
static void mark_place(struct reader *reader, const yaml_mark_t *start, const yaml_mark_t *end)
{
    uint32_t first = byte_offset(reader, start);
    admi_yaml_mark(reader->yaml, first, end == NULL ? first + 1 : byte_offset(reader, end));
}

/* ---- what libyaml must not see ---- */

static adm_status refuse_byte(struct reader *reader, enum admi_diag kind, uint64_t offset,
                              const char *message)
{
    struct admi_diag_entry *entry = admi_diags_add(
        reader->diags, kind, reader->text.length == 0 ? ADMI_DIAG_NO_PLACE : (uint32_t)offset);
    if (entry != NULL) {
        struct admi_words words = admi_words_start(entry->message, sizeof entry->message);
        admi_words_add(&words, message);
        entry->in_source = true;
        entry->place.length = 1;
    }
    return ADM_E_POLICY_INVALID;
}

/* Behind blanks, ends of lines and comments. */
static uint64_t skip_empty(struct adm_bytes text, uint64_t at)
{
    const uint8_t *bytes = text.data;
    bool comment = false;
    for (; at < text.length; at++) {
        bool end = bytes[at] == '\n' || bytes[at] == '\r';
        comment = !end && (comment || bytes[at] == '#');
        if (!end && !comment && bytes[at] != ' ' && bytes[at] != '\t')
            break;
    }
    return at;
}

static bool stands_at(struct adm_bytes text, uint64_t at, const char *word)
{
    struct adm_bytes wanted = admi_words_of(word);
    return at <= text.length && text.length - at >= wanted.length &&
           admi_bytes_equal((struct adm_bytes){ (const uint8_t *)text.data + at, wanted.length },
                            wanted);
}

/* libyaml compares every %TAG with all before it; there is no reason for even one. */
static adm_status check_directives(struct reader *reader)
{
    const uint8_t *bytes = reader->text.data;
    uint64_t at = skip_empty(reader->text, 0);
    while (stands_at(reader->text, at, "%YAML ")) {
        while (at < reader->text.length && bytes[at] != '\n' && bytes[at] != '\r')
            at++;
        at = skip_empty(reader->text, at);
    }
    if (stands_at(reader->text, at, "%"))
        return refuse_byte(reader, ADMI_DIAG_DIRECTIVE, at,
                           "expected no directive but %YAML 1.1 or %YAML 1.2");
    return ADM_OK;
}

/* The directives of a second document, for the same reason. */
static adm_status check_rest(struct reader *reader, const yaml_event_t *end)
{
    uint64_t at = skip_empty(reader->text, byte_offset(reader, &end->end_mark));
    while (stands_at(reader->text, at, "..."))
        at = skip_empty(reader->text, at + 3);
    if (stands_at(reader->text, at, "%"))
        return refuse_byte(reader, ADMI_DIAG_MANY_DOCUMENTS, at,
                           "expected one document, found directives of a second one");
    return ADM_OK;
}

/* ---- events ---- */

static struct level *innermost(struct reader *reader)
{
    return reader->depth == 0 ? NULL : &reader->levels[reader->depth - 1];
}

static bool expects_name(struct reader *reader)
{
    const struct level *level = innermost(reader);
    return level != NULL && level->mapping && !level->named;
}

/* The comma or colon in front of a value. */
static void begin_value(struct reader *reader)
{
    struct level *level = innermost(reader);
    reader->values++;
    if (level == NULL)
        return;
    if (level->mapping) {
        admi_yaml_put(reader->yaml, ":", 1);
        level->named = false;
        return;
    }
    if (level->members++ > 0)
        admi_yaml_put(reader->yaml, ",", 1);
}

static void write_name(struct reader *reader, const yaml_event_t *event)
{
    struct level *level = innermost(reader);
    const uint8_t *bytes = event->data.scalar.value;
    uint64_t length = event->data.scalar.length;
    if (level->members++ > 0)
        admi_yaml_put(reader->yaml, ",", 1);
    level->name = level->name_end = (uint32_t)reader->yaml->length;
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        struct adm_bytes plain = { bytes, length };
        enum admi_yaml_scalar scalar = admi_yaml_scalar(plain);
        /* "off" is a word of the policy language; it is the only such word that YAML 1.1 has. */
        if (admi_bytes_equal(plain, admi_words_of("<<")))
            report_scalar(reader, ADMI_DIAG_MERGE_KEY, event, scalar);
        else if (scalar != ADMI_YAML_STRING && !admi_bytes_equal(plain, admi_words_of("off")))
            report_scalar(reader, ADMI_DIAG_KEY_NOT_STRING, event, scalar);
    }
    mark_place(reader, &event->start_mark, &event->end_mark);
    admi_yaml_put_string(reader->yaml, bytes, length);
    level->name_end = (uint32_t)reader->yaml->length;
    level->named = true;
}

static void write_scalar(struct reader *reader, const yaml_event_t *event)
{
    const uint8_t *bytes = event->data.scalar.value;
    uint64_t length = event->data.scalar.length;
    enum admi_yaml_scalar scalar = ADMI_YAML_STRING;
    begin_value(reader);
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        scalar = admi_yaml_scalar((struct adm_bytes){ bytes, length });
    if (scalar != ADMI_YAML_STRING && scalar != ADMI_YAML_LITERAL)
        report_scalar(reader, ADMI_DIAG_AMBIGUOUS_SCALAR, event, scalar);
    mark_place(reader, &event->start_mark, &event->end_mark);
    if (scalar == ADMI_YAML_LITERAL)
        admi_yaml_put(reader->yaml, bytes, length);
    else
        admi_yaml_put_string(reader->yaml, bytes, length);
}

static adm_status open_level(struct reader *reader, const yaml_event_t *event, bool mapping)
{
    if (expects_name(reader)) {
        struct level *level = innermost(reader);
        level->name_end = level->name; /* the name before this one has nothing to do with it */
        return refuse(reader, ADMI_DIAG_KEY_NOT_STRING, &event->start_mark, NULL,
                      mapping ? "expected a key that is a string, found a mapping"
                              : "expected a key that is a string, found a sequence");
    }
    begin_value(reader);
    if (reader->depth >= reader->limits->depth || reader->depth >= DEPTH_MAX)
        return refuse(reader, ADMI_DIAG_DEPTH, &event->start_mark, NULL,
                      "expected at most 32 levels: the document is nested too deeply");
    mark_place(reader, &event->start_mark, NULL);
    reader->levels[reader->depth++] = (struct level){ .mapping = mapping };
    admi_yaml_put(reader->yaml, mapping ? "{" : "[", 1);
    return ADM_OK;
}

static adm_status close_level(struct reader *reader)
{
    admi_yaml_put(reader->yaml, innermost(reader)->mapping ? "}" : "]", 1);
    reader->depth--;
    return ADM_OK;
}

static adm_status open_document(struct reader *reader, const yaml_event_t *event)
{
    if (reader->documents++ > 0)
        return refuse(reader, ADMI_DIAG_MANY_DOCUMENTS, &event->start_mark, NULL,
                      "expected one document, found a second one");
    return ADM_OK;
}

static adm_status refuse_properties(struct reader *reader, const yaml_event_t *event,
                                    const yaml_char_t *anchor)
{
    if (anchor != NULL)
        return refuse(reader, ADMI_DIAG_ANCHOR, &event->start_mark, NULL,
                      "expected no anchor: a policy says everything where it stands");
    return refuse(reader, ADMI_DIAG_TAG, &event->start_mark, NULL,
                  "expected no tag: the form of a value says its type");
}

static adm_status on_event(struct reader *reader, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return open_document(reader, event);
    case YAML_ALIAS_EVENT:
        return refuse(reader, ADMI_DIAG_ALIAS, &event->start_mark, &event->end_mark,
                      "expected a value, found an alias: a policy says everything where it stands");
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL)
            return refuse_properties(reader, event, event->data.scalar.anchor);
        if (expects_name(reader))
            write_name(reader, event);
        else
            write_scalar(reader, event);
        return ADM_OK;
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL)
            return refuse_properties(reader, event, event->data.sequence_start.anchor);
        return open_level(reader, event, false);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL)
            return refuse_properties(reader, event, event->data.mapping_start.anchor);
        return open_level(reader, event, true);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_level(reader);
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
        break;
    case YAML_DOCUMENT_END_EVENT:
        return check_rest(reader, event);
    }
    return ADM_OK;
}

static adm_status read_events(struct reader *reader, yaml_parser_t *parser)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event))
            return refuse_syntax(reader, parser);
        bool end = event.type == YAML_STREAM_END_EVENT;
        adm_status status = on_event(reader, &event);
        if (status == ADM_OK && reader->values > reader->limits->values)
            status = refuse(reader, ADMI_DIAG_TOO_MANY_VALUES, &event.start_mark, NULL,
                            "expected fewer values: this one is beyond the bound");
        yaml_event_delete(&event);
        if (reader->yaml->failed)
            return ADM_E_NOMEM;
        if (status != ADM_OK)
            return status;
        if (admi_diags_full(reader->diags))
            return ADM_E_POLICY_INVALID;
        if (end)
            break;
    }
    if (reader->documents == 0)
        return refuse_byte(reader, ADMI_DIAG_EMPTY_DOCUMENT, reader->text.length,
                           "expected a value, found the end of the text");
    return ADM_OK;
}

/* U+0085, U+2028, U+2029: they would change what a string holds, and the number of the line. */
static bool ends_line_to_some(const uint8_t *c, uint32_t sequence)
{
    if (sequence == 2)
        return c[0] == 0xC2 && c[1] == 0x85;
    return sequence == 3 && c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9);
}

/* The same bytes are text in both forms: UTF-8 without a byte order mark and without NUL. */
static adm_status check_bytes(struct reader *reader)
{
    const uint8_t *bytes = reader->text.data;
    uint64_t length = reader->text.length;
    if (length > reader->limits->bytes)
        return refuse_byte(reader, ADMI_DIAG_TOO_LARGE, reader->limits->bytes,
                           "expected a shorter document: this byte is beyond the bound");
    if (length >= 3 && bytes[0] == 0xEF && bytes[1] == 0xBB && bytes[2] == 0xBF)
        return refuse_byte(reader, ADMI_DIAG_BOM, 0, "expected no byte order mark at the start");
    for (uint64_t i = 0; i < length;) {
        if (bytes[i] >= 0x20 && bytes[i] < 0x80) { /* most of all texts */
            i++;
            continue;
        }
        uint32_t sequence = admi_utf8_sequence(bytes + i, length - i);
        bool control = bytes[i] < 0x20 && bytes[i] != '\t' && bytes[i] != '\n' && bytes[i] != '\r';
        if (control && bytes[i] != 0)
            return refuse_byte(reader, ADMI_DIAG_CONTROL_CHARACTER, i,
                               "expected control characters to be escaped in double quotes");
        reader->ascii = reader->ascii && bytes[i] < 0x80;
        if (ends_line_to_some(bytes + i, sequence))
            return refuse_byte(reader, ADMI_DIAG_YAML_SYNTAX, i,
                               "U+0085, U+2028 and U+2029 end a line in YAML 1.1 and not in 1.2: "
                               "escape them in double quotes");
        if (bytes[i] == 0)
            return refuse_byte(reader, ADMI_DIAG_NUL, i, "expected text, found byte 0x00");
        if (sequence == 0)
            return refuse_byte(reader, ADMI_DIAG_UTF8, i, "expected UTF-8");
        i += sequence;
    }
    return ADM_OK;
}

adm_status admi_yaml_read(struct admi_yaml *yaml, struct adm_bytes text,
                          const struct admi_json_limits *limits,
                          const struct adm_allocator *allocator, struct adm_diags *diags)
{
    struct reader reader = {
        .yaml = yaml, .text = text, .limits = limits, .diags = diags, .ascii = true
    };
    yaml_parser_t parser;
    yaml->allocator = allocator;
    adm_status status = check_bytes(&reader);
    if (status == ADM_OK)
        status = check_directives(&reader);
    if (status != ADM_OK)
        return status;
    if (!yaml_parser_initialize(&parser))
        return ADM_E_NOMEM;
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, text.length == 0 ? (const uint8_t *)"" : text.data,
                                 (size_t)text.length);
    status = read_events(&reader, &parser);
    yaml_parser_delete(&parser);
    return status == ADM_OK ? admi_yaml_fit(yaml) : status;
}
