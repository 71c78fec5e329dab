/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text out through libyaml's emitter, and the search for comments between its tokens. */
#include "yaml_text.h"

#include <string.h>
#include <strings.h>
#include <yaml.h>

bool yaml_is_built(void)
{
    return true;
}

/* ---- comments ------------------------------------------------------------------------------- */

/* libyaml counts characters, the text is bytes. */
struct walk {
    const char *text;
    size_t length;
    size_t byte, character;
};

static size_t byte_of(struct walk *walk, size_t character)
{
    if (character < walk->character)
        walk->byte = walk->character = 0;
    while (walk->character < character && walk->byte < walk->length) {
        walk->byte++;
        while (walk->byte < walk->length && ((unsigned char)walk->text[walk->byte] & 0xc0) == 0x80)
            walk->byte++;
        walk->character++;
    }
    return walk->byte;
}

/* Between tokens are blanks, ends of lines and comments. */
static size_t first_mark(const char *text, size_t from, size_t to)
{
    while (from < to && strchr(" \t\r\n", text[from]) != NULL && text[from] != 0)
        from++;
    return from;
}

/* The head of a block scalar belongs to its token, with the comment behind it: "| # why". */
static size_t head_mark(const char *text, size_t from, size_t to)
{
    while (from < to && text[from] != '\n' && text[from] != '\r' && text[from] != '#')
        from++;
    return from < to && text[from] == '#' ? from : to;
}

static bool is_block(const yaml_token_t *token)
{
    return token->type == YAML_SCALAR_TOKEN &&
           (token->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ||
            token->data.scalar.style == YAML_FOLDED_SCALAR_STYLE);
}

/* Where the first comment begins; length: there is none. */
static size_t find_comment(yaml_parser_t *parser, const char *text, size_t length)
{
    struct walk walk = { .text = text, .length = length };
    size_t done = 0;

    for (;;) {
        yaml_token_t token;

        if (!yaml_parser_scan(parser, &token))
            return done; /* it was read before: only memory can be missing */
        size_t start = byte_of(&walk, token.start_mark.index);
        size_t end = byte_of(&walk, token.end_mark.index);
        bool last = token.type == YAML_STREAM_END_TOKEN || token.type == YAML_NO_TOKEN;
        if (last)
            start = end = length;
        size_t found = first_mark(text, done, start);
        bool comment = found < start;
        if (!comment && is_block(&token)) {
            found = head_mark(text, start, end);
            comment = found < end;
        }
        if (end > done)
            done = end;
        yaml_token_delete(&token);
        if (comment || last)
            return comment ? found : length;
    }
}

bool yaml_first_comment(const char *text, size_t length, struct yaml_place *out)
{
    yaml_parser_t parser;
    size_t at = 0, line_start = 0;

    if (yaml_parser_initialize(&parser)) {
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
        at = find_comment(&parser, text, length);
        yaml_parser_delete(&parser);
    }
    if (at >= length)
        return false;
    out->line = 1;
    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n' || (text[i] == '\r' && text[i + 1] != '\n')) {
            out->line++;
            line_start = i + 1;
        }
    out->column = (uint32_t)(at - line_start + 1);
    return true;
}

/* ---- text ----------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "15s": what YAML readers take for a number has no such end. */
static bool is_duration(const char *text, size_t length)
{
    static const char *const units[] = { "ms", "s", "m", "h", "d" };
    size_t digits = 0;

    while (digits < length && is_digit(text[digits]))
        digits++;
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof units[0]; i++)
        if (strlen(units[i]) == length - digits &&
            memcmp(text + digits, units[i], length - digits) == 0)
            return true;
    return false;
}

/* Words that no version of YAML takes for anything but a string. All else is quoted. */
static bool is_plain(const char *text, size_t length)
{
    static const char *const words[] = {
        "y", "n", "yes", "no", "on", "off", "true", "false", "null"
    };

    if (is_duration(text, length))
        return true;
    if (length == 0 || !is_letter(text[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_letter(text[i]) && !is_digit(text[i]) && strchr("_-./", text[i]) == NULL)
            return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], text, length) == 0)
            return false;
    return true;
}

static bool is_scalar(const struct json *value)
{
    return value->kind != JSON_OBJECT && value->kind != JSON_ARRAY;
}

static const char *word_of(const struct json *value, size_t *length)
{
    const char *word = value->kind == JSON_NULL   ? "null"
                       : value->kind == JSON_TRUE ? "true"
                                                  : "false";

    *length = strlen(word);
    return word;
}

struct printer {
    yaml_emitter_t emitter;
    size_t columns;
};

static bool emit_bytes(struct printer *printer, const char *bytes, size_t length, bool plain)
{
    yaml_event_t event;
    yaml_char_t *text = (yaml_char_t *)(uintptr_t)bytes; /* copied, never written to */

    return yaml_scalar_event_initialize(&event, NULL, NULL, text, (int)length, 1, 1,
                                        plain ? YAML_PLAIN_SCALAR_STYLE
                                              : YAML_DOUBLE_QUOTED_SCALAR_STYLE) &&
           yaml_emitter_emit(&printer->emitter, &event);
}

static bool emit_string(struct printer *printer, const char *bytes, size_t length)
{
    return emit_bytes(printer, bytes, length, is_plain(bytes, length));
}

static bool emit_scalar(struct printer *printer, const struct json *value)
{
    size_t length = value->length;

    if (value->kind == JSON_STRING)
        return emit_string(printer, value->text, length);
    if (value->kind == JSON_NUMBER)
        return emit_bytes(printer, value->text, length, true);
    const char *word = word_of(value, &length);
    return emit_bytes(printer, word, length, true);
}

/* A list of scalars stands in one line where it fits. The places of quotes are not known here: as
 * many as possible are assumed. */
static bool in_one_line(const struct printer *printer, const struct json *list, size_t indent)
{
    size_t columns = indent + list->key_length + 4;

    for (const struct json *item = list->first; item != NULL; item = item->next) {
        if (!is_scalar(item))
            return false;
        columns += item->length + 4;
    }
    return columns <= printer->columns;
}

/* Depth is bounded by the reader. */
static bool emit_value(struct printer *printer, const struct json *value, size_t indent)
{
    yaml_event_t event;
    bool object = value->kind == JSON_OBJECT;
    int good;

    if (is_scalar(value))
        return emit_scalar(printer, value);
    if (object)
        good = yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE);
    else
        good = yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
                                                    in_one_line(printer, value, indent)
                                                        ? YAML_FLOW_SEQUENCE_STYLE
                                                        : YAML_BLOCK_SEQUENCE_STYLE);
    if (!good || !yaml_emitter_emit(&printer->emitter, &event))
        return false;
    for (const struct json *child = value->first; child != NULL; child = child->next)
        if ((object && !emit_string(printer, child->key, child->key_length)) ||
            !emit_value(printer, child, indent + 2))
            return false;
    good = object ? yaml_mapping_end_event_initialize(&event)
                  : yaml_sequence_end_event_initialize(&event);
    return good && yaml_emitter_emit(&printer->emitter, &event);
}

static int to_stream(void *stream, unsigned char *bytes, size_t length)
{
    return fwrite(bytes, 1, length, stream) == length;
}

bool yaml_print(FILE *out, const struct json *value, size_t columns)
{
    struct printer printer = { .columns = columns };
    yaml_event_t event;

    if (!yaml_emitter_initialize(&printer.emitter))
        return false;
    yaml_emitter_set_output(&printer.emitter, to_stream, out);
    yaml_emitter_set_encoding(&printer.emitter, YAML_UTF8_ENCODING);
    yaml_emitter_set_unicode(&printer.emitter, 1);
    yaml_emitter_set_width(&printer.emitter, -1); /* no string is folded */
    bool good = yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
                yaml_emitter_emit(&printer.emitter, &event) &&
                yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
                yaml_emitter_emit(&printer.emitter, &event) && emit_value(&printer, value, 0) &&
                yaml_document_end_event_initialize(&event, 1) &&
                yaml_emitter_emit(&printer.emitter, &event) &&
                yaml_stream_end_event_initialize(&event) &&
                yaml_emitter_emit(&printer.emitter, &event) && yaml_emitter_flush(&printer.emitter);
    yaml_emitter_delete(&printer.emitter);
    return good;
}
