/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and durations, exactly from their text and never through a float. */
#include "policy/exact.h"

#include "base/memory.h"
#include "policy/words.h"

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* The digits at the start of text, saturating; *used: how many. */
static uint64_t read_digits(const uint8_t *text, uint64_t length, uint64_t *used)
{
    uint64_t value = 0, i = 0;
    for (; i < length && is_digit(text[i]); i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');
        value = value > (UINT64_MAX - digit) / 10 ? UINT64_MAX : value * 10 + digit;
    }
    *used = i;
    return value;
}

/* What no number of a policy may have. */
static enum admi_exact refuse(struct adm_bytes text)
{
    const uint8_t *bytes = text.data;
    for (uint64_t i = 0; i < text.length; i++)
        if (bytes[i] == 'e' || bytes[i] == 'E')
            return ADMI_EXACT_EXPONENT;
    return text.length > 0 && bytes[0] == '-' ? ADMI_EXACT_NEGATIVE : ADMI_EXACT_OK;
}

enum admi_exact admi_exact_whole(struct adm_bytes text, uint64_t least, uint64_t most,
                                 uint64_t *out)
{
    uint64_t used;
    enum admi_exact result = refuse(text);
    if (result != ADMI_EXACT_OK)
        return result;
    uint64_t value = read_digits(text.data, text.length, &used);
    if (used < text.length)
        return ADMI_EXACT_POINT;
    if (value < least || value > most)
        return ADMI_EXACT_RANGE;
    *out = value;
    return ADMI_EXACT_OK;
}

enum admi_exact admi_exact_decimal(struct adm_bytes text, struct admi_decimal *out)
{
    const uint8_t *bytes = text.data;
    uint64_t used, digits;
    enum admi_exact result = refuse(text);
    if (result != ADMI_EXACT_OK)
        return result;
    uint64_t whole = read_digits(bytes, text.length, &used), fraction = 0;
    if (used < text.length) {
        used++; /* the point */
        if (text.length - used > ADMI_DECIMAL_DIGITS)
            return ADMI_EXACT_DIGITS;
        fraction = read_digits(bytes + used, text.length - used, &digits);
        for (; digits < ADMI_DECIMAL_DIGITS; digits++)
            fraction *= 10;
    }
    if (whole > ADM_MAX_AMOUNT || (whole == ADM_MAX_AMOUNT && fraction > 0))
        return ADMI_EXACT_RANGE;
    out->whole = whole;
    out->fraction_e18 = fraction;
    return ADMI_EXACT_OK;
}

enum admi_exact admi_exact_duration(struct adm_bytes text, uint64_t *out_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ms", ADM_MILLISECOND },
                  { "s", ADM_SECOND },
                  { "m", 60 * ADM_SECOND },
                  { "h", 3600 * ADM_SECOND },
                  { "d", 86400 * ADM_SECOND } };
    const uint8_t *bytes = text.data;
    uint64_t used, value = read_digits(bytes, text.length, &used);
    if (used == 0 || (used > 1 && bytes[0] == '0'))
        return ADMI_EXACT_MALFORMED;
    struct adm_bytes unit = { bytes + used, text.length - used };
    for (uint32_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (!admi_bytes_equal(unit, admi_words_of(units[i].name)))
            continue;
        if (value == 0 || value > ADMI_DURATION_MAX / units[i].ns)
            return ADMI_EXACT_RANGE;
        *out_ns = value * units[i].ns;
        return ADMI_EXACT_OK;
    }
    return ADMI_EXACT_MALFORMED;
}
