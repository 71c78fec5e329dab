/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people in a buffer of fixed size, and the nearest legal word. */
#include "policy/words.h"

#include "base/memory.h"

#define WORD_MAX 64u
#define TOO_FAR  3u

struct adm_bytes admi_words_of(const char *text)
{
    struct adm_bytes bytes = { text, 0 };
    while (text[bytes.length] != '\0')
        bytes.length++;
    return bytes;
}

struct admi_words admi_words_start(char *text, uint32_t capacity)
{
    struct admi_words words = { text, capacity, 0, 0 };
    text[0] = '\0';
    return words;
}

/* The most that can be cut off at limit without breaking a character. */
static uint64_t whole_characters(struct adm_bytes bytes, uint64_t limit)
{
    const uint8_t *text = bytes.data;
    if (limit >= bytes.length)
        return bytes.length;
    while (limit > 0 && (text[limit] & 0xC0) == 0x80)
        limit--;
    return limit;
}

void admi_words_add_bytes(struct admi_words *words, struct adm_bytes bytes)
{
    if (words->full || bytes.length == 0)
        return;
    uint64_t length = whole_characters(bytes, words->capacity - 1 - words->length);
    words->full = length < bytes.length;
    admi_copy(words->text + words->length, bytes.data, length);
    words->length += (uint32_t)length;
    words->text[words->length] = '\0';
}

void admi_words_add(struct admi_words *words, const char *text)
{
    admi_words_add_bytes(words, admi_words_of(text));
}

void admi_words_add_number(struct admi_words *words, uint64_t number)
{
    char digits[21];
    uint32_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    admi_words_add(words, digits + at);
}

/*
 * A message may go to a terminal or a log, and what is quoted comes from a stranger: no control
 * character of ASCII or of C1 (in UTF-8: C2 and 80 to 9F) gets there.
 */
static void hide_controls(char *text, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        uint8_t c = (uint8_t)text[i], next = i + 1 < length ? (uint8_t)text[i + 1] : 0;
        if (c == 0xC2 && next >= 0x80 && next < 0xA0)
            text[i] = text[i + 1] = '?';
        else if (c < 0x20 || c == 0x7F)
            text[i] = '?';
    }
}

void admi_words_quote(struct admi_words *words, struct adm_bytes bytes, uint32_t most)
{
    uint64_t length = whole_characters(bytes, most);
    uint32_t start = words->length;
    admi_words_add_bytes(words, (struct adm_bytes){ bytes.data, length });
    hide_controls(words->text + start, words->length - start);
    if (length < bytes.length)
        admi_words_add(words, "...");
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* In a short word two errors leave nothing of it: "x" is not nearly "id". */
static uint32_t most_errors(uint64_t shorter)
{
    return shorter < 2 ? 0 : shorter < 4 ? 1 : TOO_FAR - 1;
}

uint32_t admi_words_distance(struct adm_bytes a, struct adm_bytes b)
{
    if (a.length > WORD_MAX || b.length > WORD_MAX)
        return TOO_FAR;
    if (a.length > b.length + 2 || b.length > a.length + 2)
        return TOO_FAR;
    const uint8_t *s = a.data, *t = b.data;
    uint32_t rows[3][WORD_MAX + 1];
    uint32_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (uint32_t j = 0; j <= b.length; j++)
        above[j] = before[j] = j;
    for (uint32_t i = 1; i <= a.length; i++) {
        row[0] = i;
        for (uint32_t j = 1; j <= b.length; j++) {
            row[j] = least(above[j] + 1, row[j - 1] + 1);
            row[j] = least(row[j], above[j - 1] + (lower(s[i - 1]) != lower(t[j - 1])));
            if (i > 1 && j > 1 && s[i - 1] == t[j - 2] && s[i - 2] == t[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        uint32_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    uint64_t shorter = a.length < b.length ? a.length : b.length;
    return above[b.length] > most_errors(shorter) ? TOO_FAR : above[b.length];
}
