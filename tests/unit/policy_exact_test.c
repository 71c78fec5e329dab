/* SPDX-License-Identifier: Apache-2.0 */
/* policy/exact, policy/words: numbers from their text, typing errors, text in small buffers. */
#include "policy/exact.h"

#include "policy/words.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* On the heap without anything behind it, so that a sanitizer sees a byte read too many. */
static struct adm_bytes exact(const char *text)
{
    size_t length = strlen(text);
    char *copy = malloc(length == 0 ? 1 : length);
    memcpy(copy, text, length);
    return (struct adm_bytes){ copy, length };
}

static void release(struct adm_bytes bytes)
{
    const void *data = bytes.data;
    void *memory;
    memcpy(&memory, &data, sizeof memory);
    free(memory);
}

START_TEST(whole_numbers)
{
    static const struct {
        const char *text;
        enum admi_exact result;
        uint64_t value;
    } rows[] = {
        { "0", ADMI_EXACT_OK, 0 },
        { "1000000000000", ADMI_EXACT_OK, ADM_MAX_AMOUNT },
        { "1000000000001", ADMI_EXACT_RANGE, 0 },
        { "18446744073709551615", ADMI_EXACT_RANGE, 0 },
        { "18446744073709551616", ADMI_EXACT_RANGE, 0 },                    /* 2^64 + 0 */
        { "18446744073709551626", ADMI_EXACT_RANGE, 0 },                    /* 2^64 + 10 */
        { "340282366920938463463374607431768211466", ADMI_EXACT_RANGE, 0 }, /* 2^128 + 10 */
        { "-1", ADMI_EXACT_NEGATIVE, 0 },
        { "-0", ADMI_EXACT_NEGATIVE, 0 },
        { "1.0", ADMI_EXACT_POINT, 0 },
        { "1.5", ADMI_EXACT_POINT, 0 },
        { "-1.5", ADMI_EXACT_NEGATIVE, 0 },
        { "1e3", ADMI_EXACT_EXPONENT, 0 },
        { "1E0", ADMI_EXACT_EXPONENT, 0 },
        { "1.0e1", ADMI_EXACT_EXPONENT, 0 },
        { "1e-400", ADMI_EXACT_EXPONENT, 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t value = 77;
        struct adm_bytes text = exact(rows[i].text);
        enum admi_exact result = admi_exact_whole(text, 0, ADM_MAX_AMOUNT, &value);
        ck_assert_msg(result == rows[i].result, "%s: %d", rows[i].text, (int)result);
        ck_assert_uint_eq(value, result == ADMI_EXACT_OK ? rows[i].value : 77);
        release(text);
    }
    uint64_t value = 77;
    struct adm_bytes zero = exact("0");
    ck_assert_int_eq(admi_exact_whole(zero, 1, 5, &value), ADMI_EXACT_RANGE);
    release(zero);
}
END_TEST

START_TEST(decimals)
{
    static const struct {
        const char *text;
        enum admi_exact result;
        struct admi_decimal value;
    } rows[] = {
        { "0", ADMI_EXACT_OK, { 0, 0 } },
        { "0.0", ADMI_EXACT_OK, { 0, 0 } },
        { "0.9", ADMI_EXACT_OK, { 0, UINT64_C(900000000000000000) } },
        { "0.90", ADMI_EXACT_OK, { 0, UINT64_C(900000000000000000) } },
        { "0.1", ADMI_EXACT_OK, { 0, UINT64_C(100000000000000000) } }, /* no float is 0.1 */
        { "0.000000000000000001", ADMI_EXACT_OK, { 0, 1 } },
        { "0.999999999999999999", ADMI_EXACT_OK, { 0, UINT64_C(999999999999999999) } },
        { "12.000000000000000034", ADMI_EXACT_OK, { 12, 34 } },
        { "1000000000000", ADMI_EXACT_OK, { ADM_MAX_AMOUNT, 0 } },
        { "1000000000000.0", ADMI_EXACT_OK, { ADM_MAX_AMOUNT, 0 } },
        { "1000000000000.000000000000000001", ADMI_EXACT_RANGE, { 0, 0 } },
        { "1000000000001", ADMI_EXACT_RANGE, { 0, 0 } },
        { "18446744073709551616", ADMI_EXACT_RANGE, { 0, 0 } },
        { "0.0000000000000000000", ADMI_EXACT_DIGITS, { 0, 0 } }, /* 19, even if they are zeros */
        { "-0.5", ADMI_EXACT_NEGATIVE, { 0, 0 } },
        { "-0.0", ADMI_EXACT_NEGATIVE, { 0, 0 } },
        { "5e-1", ADMI_EXACT_EXPONENT, { 0, 0 } },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admi_decimal value = { 7, 7 };
        struct adm_bytes text = exact(rows[i].text);
        enum admi_exact result = admi_exact_decimal(text, &value);
        ck_assert_msg(result == rows[i].result, "%s: %d", rows[i].text, (int)result);
        ck_assert_uint_eq(value.whole, result == ADMI_EXACT_OK ? rows[i].value.whole : 7);
        ck_assert_uint_eq(value.fraction_e18,
                          result == ADMI_EXACT_OK ? rows[i].value.fraction_e18 : 7);
        release(text);
    }
}
END_TEST

/* B008: a product that overflows must not become a small duration. */
START_TEST(durations_B008)
{
    static const struct {
        const char *text;
        uint64_t ns; /* 0: refused */
    } rows[] = {
        { "1ms", ADM_MILLISECOND },
        { "0ms", 0 },
        { "0s", 0 },
        { "00ms", 0 },
        { "01s", 0 },
        { "1s", ADM_SECOND },
        { "1m", 60 * ADM_SECOND },
        { "1h", 3600 * ADM_SECOND },
        { "1d", 86400 * ADM_SECOND },
        { "366d", ADMI_DURATION_MAX },
        { "367d", 0 },
        { "8784h", ADMI_DURATION_MAX },
        { "8785h", 0 },
        { "31622400s", ADMI_DURATION_MAX },
        { "31622401s", 0 },
        { "31622400000ms", ADMI_DURATION_MAX },
        { "31622400001ms", 0 },
        { "213503982334602d", 0 }, /* * 86400 * 10^9 is just above a multiple of 2^64 */
        { "18446744073709551617ms", 0 },
        { "18446744074ms", 18446744074 * ADM_MILLISECOND },
        { "18446744073709ms", 0 },
        { "99999999999999999999d", 0 },
        { "", 0 },
        { "s", 0 },
        { "1", 0 },
        { "ms", 0 },
        { "-1s", 0 },
        { "+1s", 0 },
        { "1.5s", 0 },
        { "1e3s", 0 },
        { "1 s", 0 },
        { " 1s", 0 },
        { "1s ", 0 },
        { "1S", 0 },
        { "1us", 0 },
        { "1ns", 0 },
        { "1w", 0 },
        { "1sm", 0 },
        { "1m1s", 0 },
        { "\xC2\xB2s", 0 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t ns = 0;
        struct adm_bytes text = exact(rows[i].text);
        enum admi_exact result = admi_exact_duration(text, &ns);
        ck_assert_msg(ns == rows[i].ns && (result == ADMI_EXACT_OK) == (rows[i].ns > 0), "%s",
                      rows[i].text);
        release(text);
    }
}
END_TEST

START_TEST(typing_errors)
{
    static const struct {
        const char *one, *two;
        uint32_t distance; /* 3: more than two */
    } rows[] = {
        { "", "", 0 },
        { "a", "", 3 },
        { "ab", "", 3 },
        { "x", "id", 3 }, /* nothing of a short word is left */
        { "ty", "id", 3 },
        { "zz", "mode", 3 },
        { "da", "day", 1 },
        { "d", "day", 3 },
        { "csto", "cost", 2 },
        { "abc", "", 3 },
        { "capacity", "capacity", 0 },
        { "capcity", "capacity", 1 },
        { "capaacity", "capacity", 1 },
        { "capacizy", "capacity", 1 },
        { "acpacity", "capacity", 1 }, /* neighbours swapped: one error */
        { "caapcityx", "capacity", 2 },
        { "Capacity", "capacity", 0 }, /* the case is no error */
        { "CAPACITY", "capacity", 0 },
        { "CAPACYTI", "capacity", 2 },
        { "limit", "capacity", 3 },
        { "ab", "ba", 1 },
        { "abcd", "badc", 2 },
        { "gt", "lt", 1 },
        { "gt", "gte", 1 },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct adm_bytes one = exact(rows[i].one), two = exact(rows[i].two);
        ck_assert_msg(admi_words_distance(one, two) == rows[i].distance, "%s %s", rows[i].one,
                      rows[i].two);
        ck_assert_uint_eq(admi_words_distance(two, one), rows[i].distance);
        release(one);
        release(two);
    }
    char longest[66], longer[66];
    memset(longest, 'a', sizeof longest);
    memset(longer, 'a', sizeof longer);
    ck_assert_uint_eq(
        admi_words_distance((struct adm_bytes){ longest, 64 }, (struct adm_bytes){ longer, 63 }),
        1);
    ck_assert_uint_eq(
        admi_words_distance((struct adm_bytes){ longest, 65 }, (struct adm_bytes){ longer, 65 }),
        3); /* no word of ours is longer than 64 bytes */
}
END_TEST

START_TEST(words_are_cut_between_characters)
{
    for (uint32_t capacity = 1; capacity < 24; capacity++) {
        char buffer[32];
        memset(buffer, 'X', sizeof buffer);
        struct admi_words words = admi_words_start(buffer, capacity);
        admi_words_add(&words, "a\xC3\xA9");
        admi_words_add_number(&words, 1234567890);
        admi_words_add(&words, "\xF0\x9F\x98\x80z");
        ck_assert_uint_lt(strlen(buffer), capacity);
        ck_assert_int_eq(buffer[capacity], 'X');
        ck_assert_int_eq(strncmp(buffer,
                                 "a\xC3\xA9"
                                 "1234567890\xF0\x9F\x98\x80z",
                                 strlen(buffer)),
                         0);
        size_t length = strlen(buffer);
        ck_assert(length == 0 || (unsigned char)buffer[length - 1] != 0xC3);
        ck_assert(length < 14 || length >= 17);
    }
    char buffer[64];
    struct admi_words words = admi_words_start(buffer, sizeof buffer);
    admi_words_quote(&words, admi_words_of("abc\xC3\xA9xyz"), 4);
    ck_assert_str_eq(buffer, "abc...");
    words = admi_words_start(buffer, sizeof buffer);
    admi_words_add_number(&words, UINT64_MAX);
    admi_words_add_number(&words, 0);
    ck_assert_str_eq(buffer, "184467440737095516150");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-exact");
    TCase *cases = tcase_create("policy-exact");
    tcase_add_test(cases, whole_numbers);
    tcase_add_test(cases, decimals);
    tcase_add_test(cases, durations_B008);
    tcase_add_test(cases, typing_errors);
    tcase_add_test(cases, words_are_cut_between_characters);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
