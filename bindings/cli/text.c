/* SPDX-License-Identifier: Apache-2.0 */
/* Text helpers: numbers, times, edit distance, memory that is there or the program ends. */
#include "cli.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 64u

void *cli_allocate(size_t bytes)
{
    void *memory = calloc(1, bytes > 0 ? bytes : 1);

    if (memory == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    return memory;
}

void *cli_grow(void *memory, size_t *room, size_t used, size_t item_bytes)
{
    if (used < *room)
        return memory;
    size_t more = *room < 16 ? 16 : *room * 2;
    void *fresh = reallocarray(memory, more, item_bytes);
    if (fresh == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    *room = more;
    return fresh;
}

char *cli_copy(const char *bytes, size_t length)
{
    char *copy = cli_allocate(length + 1);

    memcpy(copy, bytes, length);
    return copy;
}

bool cli_parse_u64(const char *text, size_t length, uint64_t *out)
{
    uint64_t value = 0;

    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* Whole part and at most `places` decimals, scaled by 10^places. */
static bool parse_decimal(const char *text, size_t length, unsigned places, uint64_t *out)
{
    const char *point = memchr(text, '.', length);
    size_t whole = point != NULL ? (size_t)(point - text) : length;
    uint64_t value, fraction = 0, scale = 1;

    if (!cli_parse_u64(text, whole, &value))
        return false;
    for (unsigned i = 0; i < places; i++)
        scale *= 10;
    if (point != NULL) {
        size_t decimals = length - whole - 1;

        while (decimals > places && text[whole + decimals] == '0')
            decimals--;
        if (decimals > places || !cli_parse_u64(point + 1, decimals, &fraction))
            return false;
        for (size_t i = decimals; i < places; i++)
            fraction *= 10;
    }
    if (value > (UINT64_MAX - fraction) / scale)
        return false;
    *out = value * scale + fraction;
    return true;
}

bool cli_parse_ms(const char *text, size_t length, uint64_t *out_ns)
{
    return parse_decimal(text, length, 6, out_ns);
}

/* Days since 1970-01-01 of a date of the Gregorian calendar, 1970 or later. */
static uint64_t days_from_date(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t y = month <= 2 ? year - 1 : year;
    uint64_t shifted = (month + 9) % 12; /* March is 0: the leap day comes last */
    uint64_t day_of_year = (153 * shifted + 2) / 5 + day - 1;

    return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

static bool leap(uint64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

bool cli_parse_timestamp(const char *text, size_t length, uint64_t *out_ns)
{
    static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    static const char shape[] = "dddd-dd-dd dd:dd:dd";
    uint64_t part[6] = { 0 }, seconds_ns;

    if (length > 0 && text[length - 1] == 'Z')
        length--;
    if (length < sizeof shape - 1)
        return false;
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        bool same = shape[i] == 'd' ? text[i] >= '0' && text[i] <= '9'
                                    : text[i] == shape[i] || (shape[i] == ' ' && text[i] == 'T');

        if (!same)
            return false;
    }
    cli_parse_u64(text, 4, &part[0]);
    for (size_t i = 1; i < 6; i++)
        cli_parse_u64(text + 2 + i * 3, 2, &part[i]);
    if (!parse_decimal(text + 17, length - 17, 9, &seconds_ns))
        return false;
    if (part[0] < 1970 || part[0] > 2500 || part[1] < 1 || part[1] > 12 || part[2] < 1 ||
        part[3] > 23 || part[4] > 59 || seconds_ns >= UINT64_C(60000000000))
        return false;
    if (part[2] > days[part[1] - 1] + (part[1] == 2 && leap(part[0]) ? 1u : 0u))
        return false;
    uint64_t minutes = (days_from_date(part[0], part[1], part[2]) * 24 + part[3]) * 60 + part[4];
    *out_ns = minutes * UINT64_C(60000000000) + seconds_ns;
    return true;
}

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* In a short word two errors leave nothing of it: "x" is not nearly "to". */
static unsigned most_errors(size_t shorter)
{
    return shorter < 2 ? 0 : shorter < 4 ? 1 : 2;
}

unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0], *above = rows[1], *row = rows[2];
    size_t la = strlen(a), lb = strlen(b);

    if (strcmp(a, b) == 0)
        return 0;
    if (la > WORD_MAX || lb > WORD_MAX)
        return EDIT_TOO_FAR;
    for (size_t j = 0; j <= lb; j++)
        above[j] = before[j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            bool other = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);

            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + other);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        unsigned *oldest = before;

        before = above;
        above = row;
        row = oldest;
    }
    if (above[lb] > most_errors(la < lb ? la : lb))
        return EDIT_TOO_FAR;
    return above[lb] > 0 ? above[lb] : 1; /* only the case differs */
}

bool split_pair(const char *text, struct adm_bytes *key, struct adm_bytes *value)
{
    const char *sign = strchr(text, '=');

    if (sign == NULL || sign == text)
        return false;
    *key = (struct adm_bytes){ text, (uint64_t)(sign - text) };
    *value = adm_str(sign + 1);
    return true;
}
