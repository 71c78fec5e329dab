/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of admit/status.h and admit/types.h: words, ids as text, the names inside a
 * decision. */
#include <admit/types.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- status codes, against the header itself ---- */

#ifndef STATUS_HEADER
#define STATUS_HEADER "include/admit/status.h"
#endif

#define STATUS_CODES 27 /* of the 1.0 header; a new code changes this, the table and the header */

struct code {
    char name[64];
    long value;
};

/* The "ADM_… = number" of the header's first enumeration. */
static size_t read_codes(struct code *codes, size_t max)
{
    FILE *file = fopen(STATUS_HEADER, "r");
    char word[64];
    struct code code = { "", 0 };
    size_t count = 0;
    ck_assert_msg(file != NULL, "cannot open %s", STATUS_HEADER);
    while (fscanf(file, "%63s", word) == 1 && strcmp(word, "ADM_STATUS_CLASS_OK") != 0) {
        if (strncmp(word, "ADM_", 4) == 0)
            memcpy(code.name, word, sizeof word);
        if (strcmp(word, "=") != 0 || fscanf(file, "%ld", &code.value) != 1)
            continue;
        ck_assert_uint_lt(count, max);
        codes[count++] = code;
    }
    fclose(file);
    return count;
}

static uint32_t class_of_name(const char *name, long value)
{
    if (value == 0)
        return ADM_STATUS_CLASS_OK;
    if (strncmp(name, "ADM_E_BACKEND_", 14) == 0)
        return ADM_STATUS_CLASS_BACKEND;
    if (strcmp(name, "ADM_E_NOMEM") == 0 || strcmp(name, "ADM_E_OS") == 0)
        return ADM_STATUS_CLASS_ENVIRONMENT;
    if (strncmp(name, "ADM_E_POLICY_", 13) == 0 || strstr(name, "VERSION") != NULL)
        return ADM_STATUS_CLASS_POLICY;
    return strcmp(name, "ADM_E_INTERNAL") == 0 ? ADM_STATUS_CLASS_INTERNAL
                                               : ADM_STATUS_CLASS_CALLER;
}

START_TEST(every_status_has_its_name_class_and_sentence)
{
    struct code codes[64];
    size_t count = read_codes(codes, 64);
    ck_assert_uint_eq(count, STATUS_CODES);
    for (size_t i = 0; i < count; i++) {
        adm_status status = (adm_status)codes[i].value;
        ck_assert_str_eq(adm_status_name(status), codes[i].name);
        ck_assert_uint_eq(adm_status_class(status), class_of_name(codes[i].name, codes[i].value));
        const char *text = adm_status_text(status);
        ck_assert_uint_ge(strlen(text), status == ADM_OK ? 4 : 15);
        for (size_t k = 0; k < i; k++) {
            ck_assert_int_ne(codes[k].value, codes[i].value);
            ck_assert_str_ne(adm_status_text((adm_status)codes[k].value), text);
        }
    }
}
END_TEST

START_TEST(unknown_statuses_have_the_class_of_their_band)
{
    static const struct {
        adm_status status;
        uint32_t class;
    } rows[] = {
        { -99, ADM_STATUS_CLASS_CALLER },       { -199, ADM_STATUS_CLASS_ENVIRONMENT },
        { -299, ADM_STATUS_CLASS_POLICY },      { -399, ADM_STATUS_CLASS_BACKEND },
        { -400, ADM_STATUS_CLASS_INTERNAL },    { -899, ADM_STATUS_CLASS_INTERNAL },
        { -999, ADM_STATUS_CLASS_INTERNAL },    { INT32_MIN, ADM_STATUS_CLASS_INTERNAL },
        { 1, ADM_STATUS_CLASS_INTERNAL },       { INT32_MAX, ADM_STATUS_CLASS_INTERNAL },
        { -150, ADM_STATUS_CLASS_ENVIRONMENT }, { -50, ADM_STATUS_CLASS_CALLER },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_uint_eq(adm_status_class(rows[i].status), rows[i].class);
        ck_assert_str_eq(adm_status_name(rows[i].status), "ADM_E_?");
        ck_assert_uint_gt(strlen(adm_status_text(rows[i].status)), 0);
    }
}
END_TEST

/* ---- words ---- */

typedef const char *word_fn(uint32_t number);

static void check_words(word_fn *word, const char *const *expected, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        ck_assert_str_eq(word(i), expected[i]);
    ck_assert_str_eq(word(count), "?");
    ck_assert_str_eq(word(UINT32_MAX), "?");
}

START_TEST(words_are_the_literal_ones)
{
    static const char *const reasons[] = {
        "allowed",        "emergency_allowed",  "rate_exceeded",  "concurrency_exceeded",
        "pressure",       "quota_exceeded",     "unsatisfiable",  "cost_above_cap",
        "no_policy",      "missing_descriptor", "missing_amount", "policy_too_wide",
        "key_space_full", "state_unavailable"
    };
    static const char *const outcomes[] = { "unknown", "released", "already", "late",    "queued",
                                            "renewed", "lost",     "settled", "diverted" };
    static const char *const results[] = { "ok", "error", "timeout", "cancelled", "diverted" };
    check_words(adm_reason_name, reasons, ADM_REASON_COUNT);
    check_words(adm_outcome_name, outcomes, ADM_OUTCOME_COUNT);
    check_words(adm_result_name, results, ADM_RESULT_COUNT);
}
END_TEST

START_TEST(str_is_a_view)
{
    static const char text[] = "ab\0c";
    ck_assert_ptr_eq(adm_str(text).data, text);
    ck_assert_uint_eq(adm_str(text).length, 2);
    ck_assert_uint_eq(adm_str("").length, 0);
    ck_assert_ptr_null(adm_str(NULL).data);
    ck_assert_uint_eq(adm_str(NULL).length, 0);
}
END_TEST

/* ---- the names inside a decision ---- */

static struct adm_decision decision_with(uint32_t rules, uint32_t shadows, const char *names,
                                         uint32_t bytes)
{
    struct adm_decision decision;
    memset(&decision, 0, sizeof decision);
    decision.size = sizeof decision;
    decision.rule_count = rules;
    decision.shadow_count = shadows;
    decision.names_used = bytes;
    memcpy(decision.names, names, bytes);
    return decision;
}

START_TEST(names_in_order)
{
    struct adm_decision decision = decision_with(2, 1, "first\0second\0third\0", 19);
    ck_assert_str_eq(adm_decision_rule(&decision, 0), "first");
    ck_assert_str_eq(adm_decision_rule(&decision, 1), "second");
    ck_assert_ptr_null(adm_decision_rule(&decision, 2)); /* third is a shadow rule */
    ck_assert_str_eq(adm_decision_shadow(&decision, 0), "third");
    ck_assert_ptr_null(adm_decision_shadow(&decision, 1));
    ck_assert_ptr_null(adm_decision_rule(&decision, UINT32_MAX));
    ck_assert_ptr_null(adm_decision_shadow(&decision, UINT32_MAX));
    ck_assert_ptr_null(adm_decision_rule(NULL, 0));
    ck_assert_ptr_null(adm_decision_shadow(NULL, 0));
}
END_TEST

START_TEST(names_that_did_not_fit)
{
    struct adm_decision decision = decision_with(3, 2, "a\0b\0", 4);
    ck_assert_str_eq(adm_decision_rule(&decision, 1), "b");
    ck_assert_ptr_null(adm_decision_rule(&decision, 2));
    ck_assert_ptr_null(adm_decision_shadow(&decision, 0));
    decision = decision_with(2, 0, "a\0bc", 4); /* no NUL: a caller's memory may hold anything */
    ck_assert_str_eq(adm_decision_rule(&decision, 0), "a");
    ck_assert_ptr_null(adm_decision_rule(&decision, 1));
}
END_TEST

START_TEST(names_stay_inside_the_struct)
{
    struct adm_decision decision = decision_with(UINT32_MAX, UINT32_MAX, "a\0b\0", 4);
    decision.names_used = UINT32_MAX; /* the rest of names is empty strings */
    ck_assert_str_eq(adm_decision_rule(&decision, 1), "b");
    ck_assert_str_eq(adm_decision_rule(&decision, 2), "");
    ck_assert_ptr_null(adm_decision_rule(&decision, sizeof decision.names - 2));
    ck_assert_ptr_null(adm_decision_shadow(&decision, 0));
    memset(decision.names, 'x', sizeof decision.names);
    ck_assert_ptr_null(adm_decision_rule(&decision, 0));

    decision = decision_with(2, 0, "a\0b\0", 4);
    static const struct {
        uint32_t after; /* bytes of names inside the caller's size */
        int rules;
    } rows[] = { { 0, 0 }, { 1, 0 }, { 2, 1 }, { 3, 1 }, { 4, 2 } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        decision.size = (uint32_t)offsetof(struct adm_decision, names) + rows[i].after;
        for (uint32_t rule = 0; rule < 2; rule++)
            ck_assert_int_eq(adm_decision_rule(&decision, rule) != NULL, (int)rule < rows[i].rules);
    }
    decision.size = 0;
    ck_assert_ptr_null(adm_decision_rule(&decision, 0));
}
END_TEST

START_TEST(retry_after_is_rounded_up)
{
    static const struct {
        uint64_t ms, s;
    } rows[] = { { 0, 0 },
                 { 1, 1 },
                 { 999, 1 },
                 { 1000, 1 },
                 { 1001, 2 },
                 { 60000, 60 },
                 { UINT64_MAX - 1, UINT64_MAX / 1000 + 1 },
                 { UINT64_MAX, UINT64_MAX / 1000 + 1 } };
    struct adm_decision decision = decision_with(0, 0, "", 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        decision.retry_after_ms = rows[i].ms;
        ck_assert_uint_eq(adm_decision_retry_after_s(&decision), rows[i].s);
    }
    ck_assert_uint_eq(adm_decision_retry_after_s(NULL), 0);
}
END_TEST

/* ---- ids ---- */

START_TEST(id_there_and_back)
{
    static const struct {
        struct adm_id id;
        const char *text;
    } rows[] = {
        { { 0, 0 }, "00000000000000000000000000000000" },
        { { 0, 1 }, "00000000000000000000000000000001" },
        { { UINT64_C(1) << 63, 0 }, "80000000000000000000000000000000" },
        { { UINT64_C(0x0123456789ABCDEF), UINT64_C(0xFEDCBA9876543210) },
          "0123456789abcdeffedcba9876543210" },
        { { UINT64_MAX, UINT64_MAX }, "ffffffffffffffffffffffffffffffff" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[34];
        struct adm_id id = { 7, 7 };
        memset(text, '#', sizeof text);
        adm_id_format(rows[i].id, text);
        ck_assert_str_eq(text, rows[i].text);
        ck_assert_int_eq(text[33], '#');
        ck_assert_int_eq(adm_id_parse(adm_str(text), &id), ADM_OK);
        ck_assert(id.high == rows[i].id.high && id.low == rows[i].id.low);
    }
    struct adm_id id;
    ck_assert_int_eq(adm_id_parse(adm_str("0123456789ABCDEFfedcba9876543210"), &id), ADM_OK);
    ck_assert(id.high == rows[3].id.high && id.low == rows[3].id.low);
}
END_TEST

START_TEST(id_refuses_everything_else)
{
    static const char good[] = "0123456789abcdeffedcba9876543210";
    static const char *const bad[] = { "",
                                       "0",
                                       "0123456789abcdeffedcba987654321",
                                       "0123456789abcdeffedcba98765432100",
                                       "0x23456789abcdeffedcba9876543210",
                                       " 123456789abcdeffedcba9876543210",
                                       "01234567-89ab-cdef-fedc-ba9876543210" };
    struct adm_id id = { 7, 7 };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(adm_id_parse(adm_str(bad[i]), &id), ADM_E_INVALID_ARGUMENT);
    for (size_t at = 0; at < 32; at++) {
        for (unsigned value = 0; value < 256; value++) {
            char text[33];
            memcpy(text, good, sizeof text);
            text[at] = (char)value;
            const struct adm_bytes bytes = { text, 32 };
            int is_digit = value != 0 && strchr("0123456789abcdefABCDEF", (int)value) != NULL;
            struct adm_id ignored = { 0, 0 };
            ck_assert_int_eq(adm_id_parse(bytes, is_digit ? &ignored : &id),
                             is_digit ? ADM_OK : ADM_E_INVALID_ARGUMENT);
        }
    }
    ck_assert(id.high == 7 && id.low == 7);
    ck_assert_int_eq(adm_id_parse(adm_str(good), NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_id_parse((struct adm_bytes){ NULL, 32 }, &id), ADM_E_INVALID_ARGUMENT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("names");
    TCase *cases = tcase_create("names");
    tcase_add_test(cases, every_status_has_its_name_class_and_sentence);
    tcase_add_test(cases, unknown_statuses_have_the_class_of_their_band);
    tcase_add_test(cases, words_are_the_literal_ones);
    tcase_add_test(cases, str_is_a_view);
    tcase_add_test(cases, names_in_order);
    tcase_add_test(cases, names_that_did_not_fit);
    tcase_add_test(cases, names_stay_inside_the_struct);
    tcase_add_test(cases, retry_after_is_rounded_up);
    tcase_add_test(cases, id_there_and_back);
    tcase_add_test(cases, id_refuses_everything_else);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
