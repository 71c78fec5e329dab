/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public JSON conformance texts (nst/JSONTestSuite): n_ are refused, y_ are read, and for i_,
 * where either is legal, the verdict is pinned here. They are not part of this project: the folder
 * is the environment variable ADMIT_JSON_TEST_SUITE or the argument, and without it the test is
 * skipped.
 */
#include "base/json_lexer.h"
#include "base/memory.h"
#include "policy_support.h"

static char *folder;

static const struct admi_json_limits limits = { 1u << 20, 65536, 32 };

/* i_: refused with this, or read. */
#define READ (-1)
static const struct {
    const char *name;
    int verdict;
} implementation_defined[] = {
    { "i_number_double_huge_neg_exp.json", READ },
    { "i_number_huge_exp.json", READ },
    { "i_number_neg_int_huge_exp.json", READ },
    { "i_number_pos_double_huge_exp.json", READ },
    { "i_number_real_neg_overflow.json", READ },
    { "i_number_real_pos_overflow.json", READ },
    { "i_number_real_underflow.json", READ },
    { "i_number_too_big_neg_int.json", READ },
    { "i_number_too_big_pos_int.json", READ },
    { "i_number_very_big_negative_int.json", READ },
    { "i_object_key_lone_2nd_surrogate.json", ADMI_JSON_SURROGATE },
    { "i_string_1st_surrogate_but_2nd_missing.json", ADMI_JSON_SURROGATE },
    { "i_string_1st_valid_surrogate_2nd_invalid.json", ADMI_JSON_SURROGATE },
    { "i_string_UTF-16LE_with_BOM.json", ADMI_JSON_UTF8 },
    { "i_string_UTF-8_invalid_sequence.json", ADMI_JSON_UTF8 },
    { "i_string_UTF8_surrogate_U+D800.json", ADMI_JSON_UTF8 },
    { "i_string_incomplete_surrogate_and_escape_valid.json", ADMI_JSON_SURROGATE },
    { "i_string_incomplete_surrogate_pair.json", ADMI_JSON_SURROGATE },
    { "i_string_incomplete_surrogates_escape_valid.json", ADMI_JSON_SURROGATE },
    { "i_string_invalid_lonely_surrogate.json", ADMI_JSON_SURROGATE },
    { "i_string_invalid_surrogate.json", ADMI_JSON_SURROGATE },
    { "i_string_invalid_utf-8.json", ADMI_JSON_UTF8 },
    { "i_string_inverted_surrogates_U+1D11E.json", ADMI_JSON_SURROGATE },
    { "i_string_iso_latin_1.json", ADMI_JSON_UTF8 },
    { "i_string_lone_second_surrogate.json", ADMI_JSON_SURROGATE },
    { "i_string_lone_utf8_continuation_byte.json", ADMI_JSON_UTF8 },
    { "i_string_not_in_unicode_range.json", ADMI_JSON_UTF8 },
    { "i_string_overlong_sequence_2_bytes.json", ADMI_JSON_UTF8 },
    { "i_string_overlong_sequence_6_bytes.json", ADMI_JSON_UTF8 },
    { "i_string_overlong_sequence_6_bytes_null.json", ADMI_JSON_UTF8 },
    { "i_string_truncated-utf-8.json", ADMI_JSON_UTF8 },
    { "i_string_utf16BE_no_BOM.json", ADMI_JSON_SYNTAX },
    { "i_string_utf16LE_no_BOM.json", ADMI_JSON_SYNTAX },
    { "i_structure_500_nested_arrays.json", ADMI_JSON_DEPTH },
    { "i_structure_UTF-8_BOM_empty_object.json", ADMI_JSON_BOM },
};
#define DEFINED_COUNT (sizeof implementation_defined / sizeof implementation_defined[0])

struct verdict {
    adm_status status;
    uint32_t findings;
    int first; /* problem */
    int flaws_only;
};

static void note(void *self, const struct admi_json_finding *finding)
{
    struct verdict *verdict = self;
    if (verdict->findings++ == 0)
        verdict->first = (int)finding->problem;
    if (finding->problem != ADMI_JSON_DUPLICATE && finding->problem != ADMI_JSON_ESCAPED_NUL)
        verdict->flaws_only = 0;
}

static struct verdict judge(const char *text, size_t length)
{
    struct verdict verdict = { .flaws_only = 1 };
    struct admi_json_reporter reporter = { &verdict, note };
    struct admi_json json = { .count = 0 };
    verdict.status = admi_json_lex(&json, (struct adm_bytes){ text, length }, &limits,
                                   &admi_malloc_allocator, &reporter);
    admi_json_fini(&json);
    return verdict;
}

/*
 * Whatever the lexer says of a text, no text of the suite is a policy; and memory never seems to be
 * missing.
 */
static void load_refuses(const char *name, const char *text, size_t length)
{
    struct loaded loaded = load_bytes(text, length);
    ck_assert_msg(loaded.status == ADM_E_POLICY_INVALID, "%s: %d", name, loaded.status);
    ck_assert_msg(adm_diags_count(loaded.diags) > 0, "%s", name);
    ck_assert_msg(length == 0 || diag_at(loaded.diags, 0).line > 0, "%s has no place", name);
    loaded_free(&loaded);
}

/* Calls check for each text whose name starts with kind; the number of texts. */
static uint32_t each(char kind, void (*check)(const char *name, const char *text, size_t length))
{
    uint32_t count = 0;
    DIR *listing = opendir(folder);
    ck_assert_ptr_nonnull(listing);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        char path[4096];
        size_t length;
        if (entry->d_name[0] != kind || entry->d_name[1] != '_')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        char *text = read_file(path, &length);
        ck_assert_ptr_nonnull(text);
        check(entry->d_name, text, length);
        load_refuses(entry->d_name, text, length);
        free(text);
        count++;
    }
    closedir(listing);
    return count;
}

static void check_refused(const char *name, const char *text, size_t length)
{
    struct verdict verdict = judge(text, length);
    ck_assert_msg(verdict.status == ADM_E_POLICY_INVALID || verdict.findings > 0, "%s is read",
                  name);
}

static void check_read(const char *name, const char *text, size_t length)
{
    struct verdict verdict = judge(text, length);
    ck_assert_msg(verdict.status == ADM_OK && verdict.flaws_only, "%s is refused", name);
}

static void check_pinned(const char *name, const char *text, size_t length)
{
    struct verdict verdict = judge(text, length);
    for (size_t i = 0; i < DEFINED_COUNT; i++) {
        if (strcmp(implementation_defined[i].name, name) != 0)
            continue;
        int got = verdict.status == ADM_OK && verdict.findings == 0 ? READ : verdict.first;
        ck_assert_msg(got == implementation_defined[i].verdict, "%s: %d", name, got);
        return;
    }
    ck_abort_msg("%s has no verdict here", name);
}

START_TEST(every_n_text_is_refused)
{
    ck_assert_uint_ge(each('n', check_refused), 188);
}
END_TEST

START_TEST(every_y_text_is_read)
{
    ck_assert_uint_ge(each('y', check_read), 95);
}
END_TEST

START_TEST(every_i_text_has_its_verdict)
{
    ck_assert_uint_eq(each('i', check_pinned), DEFINED_COUNT);
}
END_TEST

int main(int argc, char **argv)
{
    const char *given = getenv("ADMIT_JSON_TEST_SUITE");
    if (given == NULL && argc > 1)
        given = argv[1];
    char path[4096];
    snprintf(path, sizeof path, "%s/test_parsing", given == NULL ? "." : given);
    DIR *listing = opendir(path);
    if (listing == NULL) {
        printf("1..0 # SKIP no JSONTestSuite at %s: set ADMIT_JSON_TEST_SUITE to a copy of it\n",
               path);
        return 0; /* the plan says it: TAP knows no exit status for it */
    }
    closedir(listing);
    folder = path;
    Suite *suite = suite_create("policy-json-suite");
    TCase *cases = tcase_create("policy-json-suite");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, every_n_text_is_refused);
    tcase_add_test(cases, every_y_text_is_read);
    tcase_add_test(cases, every_i_text_has_its_verdict);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
