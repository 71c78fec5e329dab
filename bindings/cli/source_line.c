/* SPDX-License-Identifier: Apache-2.0 */
/* One line of a document with a mark under a part of it, as compilers show it. */
#include "cli.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#define SHOWN_MAX 92u   /* columns of the line that are shown; more is cut around the mark */
#define NEAR      8192u /* bytes that are looked at behind a mark: combining ones take no column */
#define BEFORE    32u   /* columns that stay in front of a mark in a line that is cut */

/* One character of the line: its bytes, what stands for it, and how many columns that takes. */
struct glyph {
    size_t bytes;
    const char *shown; /* NULL: the bytes themselves */
    unsigned columns;
};

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t code, const struct range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    return false;
}

/*
 * As terminals do it: wide characters take two columns, marks that combine none. The C library
 * knows which they are, in a locale of UTF-8; that of the caller may be another one.
 */
static unsigned columns_of(uint32_t code)
{
    static locale_t utf8;

    if (code < 0x300)
        return 1;
    if (utf8 == (locale_t)0)
        utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (utf8 == (locale_t)0)
        return 1;
    locale_t before = uselocale(utf8);
    int columns = wcwidth((wchar_t)code);
    uselocale(before);
    return columns < 0 ? 1 : (unsigned)columns;
}

/* Control, format and direction characters could change what the reader sees around them. */
static bool harmful(uint32_t code)
{
    static const struct range ranges[] = {
        { 0x00, 0x1F },     { 0x7F, 0x9F },     { 0xAD, 0xAD },     { 0x200B, 0x200F },
        { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0xFEFF, 0xFEFF },
    };

    return in_ranges(code, ranges, sizeof ranges / sizeof ranges[0]);
}

static struct glyph glyph_at(const char *text, size_t left)
{
    const unsigned char *bytes = (const unsigned char *)text;
    if (bytes[0] >= 0x20 && bytes[0] < 0x7F)
        return (struct glyph){ 1, NULL, 1 };
    size_t length = bytes[0] < 0x80   ? 1
                    : bytes[0] < 0xC0 ? 0
                    : bytes[0] < 0xE0 ? 2
                    : bytes[0] < 0xF0 ? 3
                                      : 4;
    uint32_t code = length <= 1 ? bytes[0] : bytes[0] & (0xFFu >> (length + 1));

    for (size_t i = 1; i < length; i++) {
        if (i >= left || (bytes[i] & 0xC0) != 0x80)
            return (struct glyph){ 1, "?", 1 };
        code = code << 6 | (bytes[i] & 0x3Fu);
    }
    if (length == 0)
        return (struct glyph){ 1, "?", 1 };
    if (code == '\t')
        return (struct glyph){ 1, " ", 1 };
    if (harmful(code))
        return (struct glyph){ length, "?", 1 };
    return (struct glyph){ length, NULL, columns_of(code) };
}

void source_text_print(FILE *out, const char *text)
{
    size_t length = strlen(text);

    for (size_t at = 0; at < length;) {
        struct glyph glyph = glyph_at(text + at, length - at);

        if (glyph.shown != NULL)
            fputs(glyph.shown, out);
        else
            fwrite(text + at, 1, glyph.bytes, out);
        at += glyph.bytes;
    }
}

/* The n-th line, from 1, without its end; NULL when there is none. */
static const char *find_line(const char *text, size_t length, uint32_t number, size_t *out_length)
{
    const char *end = text + length;

    for (; number > 1; number--) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        if (newline == NULL)
            return NULL;
        text = newline + 1;
    }
    const char *newline = memchr(text, '\n', (size_t)(end - text));
    *out_length = (size_t)((newline != NULL ? newline : end) - text);
    if (*out_length > 0 && text[*out_length - 1] == '\r')
        --*out_length;
    return text;
}

static unsigned columns_until(const char *line, size_t length, size_t byte)
{
    unsigned columns = 0;

    for (size_t at = 0; at < length && at < byte;) {
        struct glyph glyph = glyph_at(line + at, length - at);
        columns += glyph.columns;
        at += glyph.bytes;
    }
    return columns;
}

/* The columns [from, to) of the line. */
static void print_columns(FILE *out, const char *line, size_t length, unsigned from, unsigned to)
{
    unsigned column = 0;

    for (size_t at = 0; at < length && column < to;) {
        struct glyph glyph = glyph_at(line + at, length - at);
        if (column >= from && column + glyph.columns <= to) {
            if (glyph.shown != NULL)
                fputs(glyph.shown, out);
            else
                fwrite(line + at, 1, glyph.bytes, out);
        }
        column += glyph.columns;
        at += glyph.bytes;
    }
}

void source_line_print(FILE *out, const char *text, size_t length, uint32_t line_number,
                       uint32_t column, uint32_t marked, enum cli_style style)
{
    size_t size = 0;
    const char *line = find_line(text, length, line_number, &size);

    if (line == NULL || column == 0 || column - 1 > size)
        return;
    unsigned from = columns_until(line, size, column - 1);
    /* No further than what can be shown: a line may be the whole document. */
    size_t near = size - (column - 1) < NEAR ? size : column - 1 + NEAR;
    unsigned total = from + columns_until(line + column - 1, near - (column - 1), SIZE_MAX);
    unsigned to = from + columns_until(line + column - 1, near - (column - 1), marked);
    unsigned first = from > BEFORE && total > SHOWN_MAX ? from - BEFORE : 0;
    unsigned last = total - first > SHOWN_MAX ? first + SHOWN_MAX : total;

    fprintf(out, "%5u | %s", line_number, first > 0 ? "..." : "");
    print_columns(out, line, size, first, last);
    fprintf(out, "%s\n      | %*s%s^", last < total ? "..." : "",
            (int)(from - first + (first > 0 ? 3 : 0)), "", style_on(out, style));
    for (unsigned i = from + 1; i < to && i < last; i++)
        fputc('~', out);
    fprintf(out, "%s\n", style_off(out));
}
