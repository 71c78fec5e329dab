/* SPDX-License-Identifier: Apache-2.0 */
/* Well-formed UTF-8 only: no overlong forms, no surrogates, nothing above U+10FFFF. */
#include "base/utf8.h"

static uint32_t tail(const uint8_t *text, uint64_t left, uint32_t length)
{
    if (left < length)
        return 0;
    for (uint32_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return length;
}

uint32_t admi_utf8_sequence(const uint8_t *text, uint64_t left)
{
    if (left == 0)
        return 0;
    uint8_t first = text[0];
    if (first < 0x80)
        return 1;
    if (first < 0xC2) /* a continuation byte, or an overlong form of ASCII */
        return 0;
    if (first < 0xE0)
        return tail(text, left, 2);
    if (left < 2)
        return 0;
    uint8_t second = text[1];
    if (first < 0xF0) {
        if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F))
            return 0; /* overlong; a surrogate */
        return tail(text, left, 3);
    }
    if (first > 0xF4 || (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
        return 0; /* overlong; above U+10FFFF */
    return tail(text, left, 4);
}

uint32_t admi_utf8_encode(uint32_t code, uint8_t out[4])
{
    if (code < 0x80) {
        out[0] = (uint8_t)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (uint8_t)(0xC0 | code >> 6);
        out[1] = (uint8_t)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (uint8_t)(0xE0 | code >> 12);
        out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | code >> 18);
    out[1] = (uint8_t)(0x80 | (code >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (code >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (code & 0x3F));
    return 4;
}
