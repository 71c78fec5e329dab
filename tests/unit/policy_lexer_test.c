/* SPDX-License-Identifier: Apache-2.0 */
/* base/json_lexer, json_names, utf8, sort: strict texts, exact places, no quadratic input. */
#include "base/json_lexer.h"

#include <stdarg.h>
#include <time.h>

#include "base/memory.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "policy_support.h"

/* ---- utf8 ---- */

/* The definition, the slow way round: decode, then look whether that is how it is encoded. */
static uint32_t slow_sequence(const uint8_t *text, uint64_t left)
{
    uint32_t length, code;
    if (left == 0)
        return 0;
    if (text[0] < 0x80)
        return 1;
    if (text[0] >> 5 == 6) {
        length = 2;
        code = text[0] & 0x1F;
    } else if (text[0] >> 4 == 14) {
        length = 3;
        code = text[0] & 0x0F;
    } else if (text[0] >> 3 == 30) {
        length = 4;
        code = text[0] & 0x07;
    } else {
        return 0;
    }
    if (left < length)
        return 0;
    for (uint32_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3F);
    }
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return length;
}

START_TEST(utf8_every_three_bytes_and_every_cut)
{
    /* bytes that stand for their whole class, at all four places; all 256 at the first two */
    static const uint8_t edges[] = { 0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0,
                                     0xBF, 0xC0, 0xE0, 0xED, 0xF0, 0xF4, 0xFF };
    for (uint32_t first = 0; first < 256; first++)
        for (uint32_t second = 0; second < 256; second++)
            for (uint32_t i = 0; i < sizeof edges; i++)
                for (uint32_t j = 0; j < sizeof edges; j++) {
                    uint8_t text[] = { (uint8_t)first, (uint8_t)second, edges[i], edges[j] };
                    for (uint64_t left = 0; left <= 4; left++)
                        if (admi_utf8_sequence(text, left) != slow_sequence(text, left))
                            ck_abort_msg("%02x %02x %02x %02x, %d", first, second, edges[i],
                                         edges[j], (int)left);
                }
}
END_TEST

START_TEST(utf8_every_scalar_value_round_trips)
{
    uint8_t text[4];
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        if (code >= 0xD800 && code <= 0xDFFF)
            continue;
        uint32_t length = admi_utf8_encode(code, text);
        if (slow_sequence(text, length) != length)
            ck_abort_msg("U+%04X", code);
    }
}
END_TEST

/* ---- sort ---- */

static const char the_context[] = "handed through";

static int compare_numbers(const void *a, const void *b, const void *context)
{
    const uint64_t *one = a, *two = b;
    ck_assert_ptr_eq(context, the_context);
    return *one < *two ? -1 : *one > *two;
}

START_TEST(sort_sorts_every_length)
{
    uint64_t seed = 7, numbers[300];
    for (uint32_t count = 0; count < 300; count++) {
        uint64_t sum = 0, sorted_sum = 0;
        for (uint32_t i = 0; i < count; i++)
            sum += numbers[i] = below(&seed, count + 1);
        admi_sort(numbers, count, sizeof numbers[0], compare_numbers, the_context);
        for (uint32_t i = 0; i < count; i++) {
            sorted_sum += numbers[i];
            if (i > 0)
                ck_assert_uint_le(numbers[i - 1], numbers[i]);
        }
        ck_assert_uint_eq(sum, sorted_sum);
    }
}
END_TEST

/* ---- the lexer ---- */

static const struct admi_json_limits wide = { 1u << 20, 65536, 32 };

struct findings {
    uint32_t count;
    struct admi_json_finding all[64];
};

static void collect(void *self, const struct admi_json_finding *finding)
{
    struct findings *findings = self;
    if (findings->count < 64)
        findings->all[findings->count] = *finding;
    findings->count++;
}

static adm_status lex(struct admi_json *json, const void *text, size_t length,
                      const struct admi_json_limits *limits, struct findings *findings)
{
    struct admi_json_reporter reporter = { findings, collect };
    memset(json, 0, sizeof *json);
    memset(findings, 0, sizeof *findings);
    return admi_json_lex(json, (struct adm_bytes){ text, length }, limits, &admi_malloc_allocator,
                         &reporter);
}

START_TEST(lexer_ends_at_the_first_broken_place)
{
    static const struct {
        const char *text;
        enum admi_json_problem problem;
        uint32_t offset;
    } rows[] = {
        { "", ADMI_JSON_EMPTY, 0 },
        { " \n", ADMI_JSON_EMPTY, 2 },
        { "{", ADMI_JSON_SYNTAX, 1 },
        { "[", ADMI_JSON_SYNTAX, 1 },
        { "[1", ADMI_JSON_SYNTAX, 2 },
        { "[1,]", ADMI_JSON_SYNTAX, 3 },
        { "[,1]", ADMI_JSON_SYNTAX, 1 },
        { "[1 2]", ADMI_JSON_SYNTAX, 3 },
        { "[1}", ADMI_JSON_SYNTAX, 2 },
        { "{\"a\":1]", ADMI_JSON_SYNTAX, 6 },
        { "{\"a\" 1}", ADMI_JSON_SYNTAX, 5 },
        { "{\"a\":}", ADMI_JSON_SYNTAX, 5 },
        { "{\"a\":1,}", ADMI_JSON_SYNTAX, 7 },
        { "{a:1}", ADMI_JSON_SYNTAX, 1 },
        { "{1:1}", ADMI_JSON_SYNTAX, 1 },
        { "{,}", ADMI_JSON_SYNTAX, 1 },
        { "]", ADMI_JSON_SYNTAX, 0 },
        { "nul", ADMI_JSON_SYNTAX, 0 },
        { "nulL", ADMI_JSON_SYNTAX, 0 },
        { "True", ADMI_JSON_SYNTAX, 0 },
        { "NaN", ADMI_JSON_SYNTAX, 0 },
        { "-", ADMI_JSON_SYNTAX, 1 },
        { "-a", ADMI_JSON_SYNTAX, 1 },
        { "+1", ADMI_JSON_SYNTAX, 0 },
        { ".5", ADMI_JSON_SYNTAX, 0 },
        { "1.", ADMI_JSON_SYNTAX, 2 },
        { "1.e1", ADMI_JSON_SYNTAX, 2 },
        { "1e", ADMI_JSON_SYNTAX, 2 },
        { "1e+", ADMI_JSON_SYNTAX, 3 },
        { "0x1", ADMI_JSON_TRAILING, 1 },
        { "1_0", ADMI_JSON_TRAILING, 1 },
        { "{}x", ADMI_JSON_TRAILING, 2 },
        { "1 2", ADMI_JSON_TRAILING, 2 },
        { "\"", ADMI_JSON_SYNTAX, 1 },
        { "\"a", ADMI_JSON_SYNTAX, 2 },
        { "\"\\", ADMI_JSON_ESCAPE, 1 },
        { "\"\\u", ADMI_JSON_ESCAPE, 1 },
        { "\"\\u123", ADMI_JSON_ESCAPE, 1 },
        { "\"\\u123g\"", ADMI_JSON_ESCAPE, 1 },
        { "\"\\U0041\"", ADMI_JSON_ESCAPE, 1 },
        { "\"\\'\"", ADMI_JSON_ESCAPE, 1 },
        { "\"\\ud800\"", ADMI_JSON_SURROGATE, 1 },
        { "\"\\ud800\\", ADMI_JSON_SURROGATE, 1 },
        { "\"\\ud800\\u", ADMI_JSON_SURROGATE, 1 },
        { "\"\\ud800\\u0041\"", ADMI_JSON_SURROGATE, 1 },
        { "\"\\udc00\"", ADMI_JSON_SURROGATE, 1 },
        { "\"a\tb\"", ADMI_JSON_CONTROL, 2 },
        { "\"a\x1f\"", ADMI_JSON_CONTROL, 2 },
        { "\"\x80\"", ADMI_JSON_UTF8, 1 },
        { "\"\xC3\"", ADMI_JSON_UTF8, 1 },
        { "\xFF", ADMI_JSON_UTF8, 0 },
        { "\xC3\xA9", ADMI_JSON_SYNTAX, 0 },
        { "\xEF\xBB\xBF{}", ADMI_JSON_BOM, 0 },
        { "\f{}", ADMI_JSON_SYNTAX, 0 },
        { "\xC2\xA0{}", ADMI_JSON_SYNTAX, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admi_json json;
        struct findings findings;
        size_t length = strlen(rows[i].text);
        char *exact = malloc(length + 1);
        memcpy(exact, rows[i].text, length);
        adm_status status = lex(&json, exact, length, &wide, &findings);
        ck_assert_msg(status == ADM_E_POLICY_INVALID, "%s", rows[i].text);
        ck_assert_uint_eq(findings.count, 1);
        ck_assert_msg(findings.all[0].problem == rows[i].problem &&
                          findings.all[0].offset == rows[i].offset,
                      "%s: problem %d at %u", rows[i].text, (int)findings.all[0].problem,
                      findings.all[0].offset);
        admi_json_fini(&json);
        free(exact);
    }
}
END_TEST

START_TEST(lexer_goes_on_after_a_flaw)
{
    static const char text[] =
        "{\"a\":01,\"\\u0061\":-00.5,\"x\\u0000\":\"\\u0000\",\"b\":{\"a\":1}}";
    struct admi_json json;
    struct findings findings;
    ck_assert_int_eq(lex(&json, text, strlen(text), &wide, &findings), ADM_OK);
    static const enum admi_json_problem expected[] = { ADMI_JSON_LEADING_ZERO,
                                                       ADMI_JSON_LEADING_ZERO,
                                                       ADMI_JSON_ESCAPED_NUL, ADMI_JSON_ESCAPED_NUL,
                                                       ADMI_JSON_DUPLICATE };
    ck_assert_uint_eq(findings.count, 5);
    for (uint32_t i = 0; i < 5; i++)
        ck_assert_int_eq(findings.all[i].problem, expected[i]);
    ck_assert_uint_eq(findings.all[4].token, 2);
    ck_assert_uint_eq(json.tokens[1].flaws, ADMI_JSON_FLAWED_VALUE);
    ck_assert_uint_eq(json.tokens[2].flaws, ADMI_JSON_FLAWED_VALUE | ADMI_JSON_FLAWED_DUPLICATE);
    ck_assert_uint_eq(json.tokens[3].flaws, ADMI_JSON_FLAWED_VALUE | ADMI_JSON_FLAWED_NAME);
    ck_assert_uint_eq(json.tokens[5].flaws, 0); /* another object's "a" */
    admi_json_fini(&json);
}
END_TEST

START_TEST(lexer_knows_every_place)
{
    static const char text[] =
        "{\n  \"a\": [1, -2.5e3,\r\n\ttrue],\n  \"\xC3\xA9\": {\"b\": null}\n}";
    static const struct {
        const char *value;
        enum admi_json_kind kind;
        uint32_t parent, after, line, column;
    } rows[] = {
        { text, ADMI_JSON_OBJECT, ADMI_JSON_NONE, 7, 1, 1 },
        { "[1, -2.5e3,\r\n\ttrue]", ADMI_JSON_ARRAY, 0, 5, 2, 8 },
        { "1", ADMI_JSON_NUMBER, 1, 3, 2, 9 },
        { "-2.5e3", ADMI_JSON_NUMBER, 1, 4, 2, 12 },
        { "true", ADMI_JSON_TRUE, 1, 5, 3, 2 },
        { "{\"b\": null}", ADMI_JSON_OBJECT, 0, 7, 4, 9 }, /* columns are bytes */
        { "null", ADMI_JSON_NULL, 5, 7, 4, 15 },
    };
    struct admi_json json;
    struct findings findings;
    ck_assert_int_eq(lex(&json, text, strlen(text), &wide, &findings), ADM_OK);
    ck_assert_uint_eq(json.count, sizeof rows / sizeof rows[0]);
    ck_assert_uint_eq(findings.count, 0);
    for (uint32_t i = 0; i < json.count; i++) {
        const struct admi_json_token *token = &json.tokens[i];
        uint32_t line, column;
        admi_json_place(json.text, token->offset, &line, &column);
        ck_assert_uint_eq(token->length, strlen(rows[i].value));
        ck_assert_int_eq(memcmp(text + token->offset, rows[i].value, token->length), 0);
        ck_assert_uint_eq(token->kind, rows[i].kind);
        ck_assert_uint_eq(token->parent, rows[i].parent);
        ck_assert_uint_eq(token->after, rows[i].after);
        ck_assert_uint_eq(line, rows[i].line);
        ck_assert_uint_eq(column, rows[i].column);
    }
    admi_json_fini(&json);
}
END_TEST

START_TEST(lexer_bounds_at_most_and_one_more)
{
    static const struct {
        const char *text;
        struct admi_json_limits limits;
        adm_status status;
        enum admi_json_problem problem;
    } rows[] = {
        { "[[[]]]", { 6, 3, 3 }, ADM_OK, ADMI_JSON_EMPTY },
        { "[[[]]]", { 5, 3, 3 }, ADM_E_POLICY_INVALID, ADMI_JSON_TOO_LARGE },
        { "[[[]]]", { 6, 2, 3 }, ADM_E_POLICY_INVALID, ADMI_JSON_TOO_MANY },
        { "[[[]]]", { 6, 3, 2 }, ADM_E_POLICY_INVALID, ADMI_JSON_DEPTH },
        { "{\"a\":{}}", { 8, 2, 2 }, ADM_OK, ADMI_JSON_EMPTY },
        { "{\"a\":{}}", { 8, 2, 1 }, ADM_E_POLICY_INVALID, ADMI_JSON_DEPTH },
        { "[1,2]", { 5, 3, 1 }, ADM_OK, ADMI_JSON_EMPTY },
        { "[1,2]", { 5, 2, 1 }, ADM_E_POLICY_INVALID, ADMI_JSON_TOO_MANY },
        { "[[],[],[]]",
          { 10, 4, 2 },
          ADM_OK,
          ADMI_JSON_EMPTY }, /* depth is not the number of brackets */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admi_json json;
        struct findings findings;
        ck_assert_int_eq(lex(&json, rows[i].text, strlen(rows[i].text), &rows[i].limits, &findings),
                         rows[i].status);
        if (rows[i].status != ADM_OK)
            ck_assert_int_eq(findings.all[0].problem, rows[i].problem);
        admi_json_fini(&json);
    }
}
END_TEST

START_TEST(names_are_compared_decoded)
{
    static const struct {
        const char *one, *two;
        int equal;
    } rows[] = {
        { "\"a\"", "\"a\"", 1 },
        { "\"a\"", "\"\\u0061\"", 1 },
        { "\"\\/\"", "\"/\"", 1 },
        { "\"\\ud83d\\ude00\"", "\"\xF0\x9F\x98\x80\"", 1 },
        { "\"\\n\"", "\"\\u000a\"", 1 },
        { "\"\\u000A\"", "\"\\u000a\"", 1 },
        { "\"\\\\\"", "\"\\u005c\"", 1 },
        { "\"a\"", "\"A\"", 0 },
        { "\"\"", "\"a\"", 0 },
        { "\"ab\"", "\"a\"", 0 },
        { "\"\\u00e9\"", "\"e\\u0301\"", 0 }, /* not normalised */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admi_json json;
        struct findings findings;
        char text[128];
        int length = snprintf(text, sizeof text, "{%s:1,%s:2}", rows[i].one, rows[i].two);
        ck_assert_int_eq(lex(&json, text, (size_t)length, &wide, &findings), ADM_OK);
        ck_assert_msg(findings.count == (uint32_t)rows[i].equal, "%s", text);
        admi_json_fini(&json);
    }
}
END_TEST

/*
 * Names that share the 32-bit hash of json_names.c (found by search): they are neither equal nor
 * lost.
 */
START_TEST(names_with_one_hash)
{
    static const struct {
        const char *text;
        uint32_t duplicates[4]; /* tokens; 0 ends them */
    } rows[] = {
        { "{\"k753e\":1,\"k94d6\":2}", { 0 } },
        { "{\"k753e\":1,\"k94d6\":2,\"k753e\":3}", { 3 } },
        { "{\"k94d6\":1,\"k753e\":2,\"k\\u00394d6\":3,\"k753e\":4,\"k94d6\":5}", { 3, 4, 5 } },
        { "{\"k94d6\":{\"k753e\":1},\"k753e\":{\"k94d6\":1}}", { 0 } },
        { "{\"keb32\":1,\"k753e\":1,\"k16263\":1,\"k94d6\":1,\"keb32\":1}", { 5 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct admi_json json;
        struct findings findings;
        uint32_t expected = 0;
        ck_assert_int_eq(lex(&json, rows[i].text, strlen(rows[i].text), &wide, &findings), ADM_OK);
        while (expected < 4 && rows[i].duplicates[expected] != 0)
            expected++;
        ck_assert_msg(findings.count == expected, "%s: %u", rows[i].text, findings.count);
        for (uint32_t j = 0; j < expected; j++) {
            ck_assert_int_eq(findings.all[j].problem, ADMI_JSON_DUPLICATE);
            ck_assert_uint_eq(findings.all[j].token, rows[i].duplicates[j]);
        }
        admi_json_fini(&json);
    }
}
END_TEST

static double seconds_of(const char *text, size_t length, adm_status expect)
{
    struct timespec from, to;
    struct admi_json json;
    struct findings findings;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    adm_status status = lex(&json, text, length, &wide, &findings);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    admi_json_fini(&json);
    ck_assert_int_eq(status, expect);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/*
 * Quadratic work on 65 535 names would be 2 * 10^9 comparisons: many seconds, also without
 * sanitizers.
 */
START_TEST(lexer_is_not_quadratic)
{
    struct text distinct = { 0 }, equal = { 0 }, long_names = { 0 };
    for (uint32_t i = 0; i < 65535; i++) {
        text_add(&distinct, "%s\"%x\":1", i == 0 ? "{" : ",", i);
        text_add(&equal, "%s\"a\":1", i == 0 ? "{" : ",");
    }
    for (uint32_t i = 0; i < 1000; i++) /* they differ in the last byte only, if at all */
        text_add(&long_names, "%s\"%01000u\":1", i == 0 ? "{" : ",", i / 2);
    text_add(&distinct, "}");
    text_add(&equal, "}");
    text_add(&long_names, "}");
    char *open = malloc(1u << 20);
    memset(open, '[', 1u << 20);
    ck_assert(seconds_of(distinct.bytes, distinct.length, ADM_OK) < 1.5);
    ck_assert(seconds_of(equal.bytes, equal.length, ADM_OK) < 1.5);
    ck_assert(seconds_of(long_names.bytes, long_names.length, ADM_OK) < 1.5);
    ck_assert(seconds_of(open, 1u << 20, ADM_E_POLICY_INVALID) < 0.5);
    free(open);
    free(distinct.bytes);
    free(equal.bytes);
    free(long_names.bytes);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-lexer");
    TCase *cases = tcase_create("policy-lexer");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, utf8_every_three_bytes_and_every_cut);
    tcase_add_test(cases, utf8_every_scalar_value_round_trips);
    tcase_add_test(cases, sort_sorts_every_length);
    tcase_add_test(cases, lexer_ends_at_the_first_broken_place);
    tcase_add_test(cases, lexer_goes_on_after_a_flaw);
    tcase_add_test(cases, lexer_knows_every_place);
    tcase_add_test(cases, lexer_bounds_at_most_and_one_more);
    tcase_add_test(cases, names_are_compared_decoded);
    tcase_add_test(cases, names_with_one_hash);
    tcase_add_test(cases, lexer_is_not_quadratic);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
