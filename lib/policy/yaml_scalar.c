/* SPDX-License-Identifier: Apache-2.0 */
/* What a YAML scalar without quotes is. */
#include "policy/yaml_scalar.h"

#include <stdbool.h>

#define WORD_LONGEST 5u /* false */

/* Consumes from the front of a scalar; at the end nothing may be left. */
struct cursor {
    const uint8_t *at, *end;
};

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool take(struct cursor *c, uint8_t wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static bool take_any(struct cursor *c, const char *wanted)
{
    for (; *wanted != '\0'; wanted++)
        if (take(c, (uint8_t)*wanted))
            return true;
    return false;
}

static uint32_t take_digits(struct cursor *c)
{
    uint32_t count = 0;
    for (; c->at < c->end && is_digit(*c->at); c->at++)
        count++;
    return count;
}

/* Digits of a base, with the underscores that YAML 1.1 allows. */
static uint32_t take_based(struct cursor *c, uint32_t base)
{
    uint32_t count = 0;
    for (; c->at < c->end; c->at++) {
        uint8_t lower = *c->at | 0x20;
        uint32_t digit = is_digit(*c->at)               ? (uint32_t)(*c->at - '0')
                         : lower >= 'a' && lower <= 'f' ? (uint32_t)(lower - 'a' + 10)
                                                        : 16u;
        if (*c->at != '_' && digit >= base)
            break;
        count += digit < base;
    }
    return count;
}

static bool take_word(struct cursor *c, const char *word)
{
    struct cursor trial = *c;
    for (; *word != '\0'; word++)
        if (!take(&trial, (uint8_t)*word))
            return false;
    *c = trial;
    return true;
}

static bool done(struct cursor c)
{
    return c.at == c.end;
}

/* e+12: false when there is an e without digits. */
static bool exponent(struct cursor *c)
{
    if (!take_any(c, "eE"))
        return true;
    take_any(c, "+-");
    return take_digits(c) > 0;
}

static bool json_number(struct cursor c)
{
    take(&c, '-');
    if (!take(&c, '0') && take_digits(&c) == 0)
        return false;
    if (take(&c, '.') && take_digits(&c) == 0)
        return false;
    return exponent(&c) && done(c);
}

static bool is_word(struct cursor c, const char *const *words)
{
    for (; *words != NULL; words++) {
        struct cursor trial = c;
        if (take_word(&trial, *words) && done(trial))
            return true;
    }
    return false;
}

/* 0b1_0, 0o17, 017, 0x1F: with or without a sign. */
static bool based_number(struct cursor c)
{
    uint32_t base = 8;
    take_any(&c, "+-");
    if (!take(&c, '0'))
        return false;
    if (take(&c, 'b'))
        base = 2;
    else if (take(&c, 'x'))
        base = 16;
    else
        take(&c, 'o');
    return take_based(&c, base) > 0 && done(c);
}

/* 1_000, +1, 010, 1., .5, 1.5e3, 1e3 */
static bool decimal_number(struct cursor c)
{
    take_any(&c, "+-");
    uint32_t digits = take_based(&c, 10);
    if (take(&c, '.'))
        digits += take_based(&c, 10);
    return digits > 0 && exponent(&c) && done(c);
}

/* 1:30 and 1:30:00.5 are numbers of base 60 in YAML 1.1. */
static bool sexagesimal(struct cursor c)
{
    uint32_t groups = 0;
    take_any(&c, "+-");
    if (take_based(&c, 10) == 0)
        return false;
    while (take(&c, ':')) {
        struct cursor first = c;
        uint32_t digits = take_digits(&c);
        if (digits == 0 || digits > 2 || (digits == 2 && *first.at > '5'))
            return false;
        groups++;
    }
    if (take(&c, '.'))
        take_based(&c, 10);
    return groups > 0 && done(c);
}

static bool infinity(struct cursor c)
{
    static const char *const infinities[] = { ".inf", ".Inf", ".INF", NULL };
    static const char *const nans[] = { ".nan", ".NaN", ".NAN", NULL };
    if (is_word(c, nans))
        return true;
    take_any(&c, "+-");
    return is_word(c, infinities);
}

/* 2026-12-01, and 2026-12-1 with a time behind it. */
static bool date(struct cursor c)
{
    if (take_digits(&c) != 4 || !take(&c, '-'))
        return false;
    uint32_t month = take_digits(&c);
    if (month == 0 || month > 2 || !take(&c, '-'))
        return false;
    uint32_t day = take_digits(&c);
    if (day == 0 || day > 2)
        return false;
    if (done(c))
        return month == 2 && day == 2;
    if (!take_any(&c, "Tt \t"))
        return false;
    while (take_any(&c, " \t"))
        continue;
    return take_digits(&c) > 0 && take(&c, ':');
}

/* Nearly every plain scalar is a string, and shows it at once: the words are short, and all others
 * begin with a digit, a sign or a point. */
static bool is_clearly_string(struct adm_bytes plain)
{
    uint8_t first = *(const uint8_t *)plain.data, lower = first | 0x20;
    if (lower >= 'a' && lower <= 'z')
        return plain.length > WORD_LONGEST ||
               (lower != 't' && lower != 'f' && lower != 'n' && lower != 'y' && lower != 'o');
    return first >= 0x80;
}

enum admi_yaml_scalar admi_yaml_scalar(struct adm_bytes plain)
{
    static const char *const literals[] = { "true", "false", "null", NULL };
    static const char *const nulls[] = { "~", "Null", "NULL", NULL };
    static const char *const booleans[] = { "y",  "Y",  "yes", "Yes",  "YES",  "n",     "N",
                                            "no", "No", "NO",  "True", "TRUE", "False", "FALSE",
                                            "on", "On", "ON",  "off",  "Off",  "OFF",   NULL };
    static const char *const special[] = { "=", "<<", NULL };
    if (plain.length == 0)
        return ADMI_YAML_NULL;
    if (is_clearly_string(plain))
        return ADMI_YAML_STRING;
    struct cursor c = { plain.data, (const uint8_t *)plain.data + plain.length };
    if (json_number(c) || is_word(c, literals))
        return ADMI_YAML_LITERAL;
    if (is_word(c, nulls))
        return ADMI_YAML_NULL;
    if (is_word(c, booleans))
        return ADMI_YAML_BOOLEAN;
    if (is_word(c, special))
        return ADMI_YAML_SPECIAL;
    if (based_number(c) || decimal_number(c) || sexagesimal(c) || infinity(c))
        return ADMI_YAML_NUMBER;
    return date(c) ? ADMI_YAML_DATE : ADMI_YAML_STRING;
}
