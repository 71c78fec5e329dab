/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader on files: scenario 05, tests/policies. Arguments: scenario file, folder.
 */
#include <cjson/cJSON.h>

#include "policy/catalog.h"
#include "policy_support.h"

static const char *scenario_path, *policies_path;

/* ---- scenario 05 ---- */

static const char *member_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return item == NULL ? NULL : item->valuestring;
}

static size_t from_hex(const char *hex, unsigned char *out)
{
    size_t length = strlen(hex) / 2;
    for (size_t i = 0; i < length; i++) {
        char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };
        out[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return length;
}

static void check_document(const cJSON *document)
{
    const char *name = member_text(document, "name"), *text = member_text(document, "text");
    const char *hex = member_text(document, "hex"), *expect = member_text(document, "expect");
    unsigned char bytes[4096];
    ck_assert_ptr_nonnull(expect);
    size_t length;
    if (text == NULL) {
        ck_assert_uint_lt(strlen(hex) / 2, sizeof bytes);
        length = from_hex(hex, bytes);
    } else {
        length = strlen(text);
        ck_assert_uint_lt(length, sizeof bytes);
        memcpy(bytes, text, length);
    }
    struct loaded loaded = load_bytes(bytes, length);
    if (strcmp(expect, "accept") == 0) {
        ck_assert_msg(loaded.status == ADM_OK, "%s: refused", name);
        ck_assert_ptr_nonnull(loaded.policy);
    } else {
        ck_assert_msg(loaded.status == ADM_E_POLICY_INVALID, "%s: %d", name, loaded.status);
        ck_assert_ptr_null(loaded.policy);
        ck_assert_msg(adm_diags_count(loaded.diags) >= 1, "%s: no finding", name);
        struct adm_diag diag = diag_at(loaded.diags, 0);
        ck_assert_msg(length == 0 || (diag.line >= 1 && diag.column >= 1), "%s: no place", name);
        ck_assert_str_eq(diag.file, "policy.json");
    }
    loaded_free(&loaded);
}

START_TEST(case_05_every_json_document_gets_its_verdict)
{
    size_t length;
    uint32_t checked = 0;
    char *text = read_file(scenario_path, &length);
    ck_assert_msg(text != NULL, "no %s", scenario_path);
    cJSON *root = cJSON_Parse(text);
    ck_assert_ptr_nonnull(root);
    const cJSON *scenario, *document;
    cJSON_ArrayForEach(scenario, cJSON_GetObjectItemCaseSensitive(root, "scenarios"))
    {
        cJSON_ArrayForEach(document, cJSON_GetObjectItemCaseSensitive(scenario, "documents"))
        {
            if (strcmp(member_text(document, "format"), "json") != 0)
                continue;
            check_document(document);
            checked++;
        }
    }
    ck_assert_uint_ge(checked, 69);
    cJSON_Delete(root);
    free(text);
}
END_TEST

/* ---- tests/policies ---- */

/* What was found, in the form of the .expect files. */
static void describe(const struct adm_diags *diags, struct text *out)
{
    text_add(out, "%s", "");
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = diag_at(diags, i);
        if (diag.severity == ADM_SEVERITY_NOTE) {
            text_add(out, "note line %u column %u: %s\n", diag.line, diag.column, diag.message);
            continue;
        }
        text_add(out, "%s %s line %u pointer \"%s\"", diag.code, diag.name, diag.line,
                 diag.pointer);
        if (diag.nearest != NULL)
            text_add(out, " nearest %s", diag.nearest);
        text_add(out, "\n");
        ck_assert_uint_ge(strlen(diag.message), 10);
    }
}

static void check_file(const char *folder, const char *name, adm_status expect)
{
    char path[4096];
    size_t length, expected_length;
    struct text found = { 0 };
    snprintf(path, sizeof path, "%s/%s/%s", policies_path, folder, name);
    char *text = read_file(path, &length);
    ck_assert_ptr_nonnull(text);
    memcpy(strrchr(path, '.'), ".expect", sizeof ".expect");
    char *expected = read_file(path, &expected_length);
    ck_assert_msg(expected != NULL || expect == ADM_OK, "no %s", path);
    struct loaded loaded = load_bytes(text, length);
    ck_assert_msg(loaded.status == expect, "%s/%s: %d", folder, name, loaded.status);
    describe(loaded.diags, &found);
    ck_assert_msg(strcmp(found.bytes, expected == NULL ? "" : expected) == 0,
                  "%s/%s\nexpected\n%sfound\n%s", folder, name, expected == NULL ? "" : expected,
                  found.bytes);
    loaded_free(&loaded);
    free(found.bytes);
    free(expected);
    free(text);
}

static uint32_t check_folder(const char *folder, adm_status expect)
{
    char path[4096];
    uint32_t count = 0;
    snprintf(path, sizeof path, "%s/%s", policies_path, folder);
    DIR *listing = opendir(path);
    ck_assert_msg(listing != NULL, "no %s", path);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || strcmp(dot, ".json") != 0)
            continue;
        check_file(folder, entry->d_name, expect);
        count++;
    }
    closedir(listing);
    return count;
}

START_TEST(every_reject_file_names_code_pointer_and_line)
{
    ck_assert_uint_ge(check_folder("reject", ADM_E_POLICY_INVALID), 130);
}
END_TEST

START_TEST(every_accept_file_is_accepted_with_its_warnings)
{
    ck_assert_uint_ge(check_folder("accept", ADM_OK), 15);
}
END_TEST

/* ---- the registry ---- */

START_TEST(codes_and_names_are_unique)
{
    for (uint32_t i = 0; i < ADMI_DIAG_KIND_COUNT; i++)
        for (uint32_t j = 0; j < i; j++) {
            ck_assert_str_ne(admi_diag_kinds[i].code, admi_diag_kinds[j].code);
            ck_assert_str_ne(admi_diag_kinds[i].name, admi_diag_kinds[j].name);
        }
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s scenario-05.json tests/policies\n", argv[0]);
        return 2;
    }
    scenario_path = argv[1];
    policies_path = argv[2];
    Suite *suite = suite_create("policy-loader");
    TCase *cases = tcase_create("policy-loader");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, case_05_every_json_document_gets_its_verdict);
    tcase_add_test(cases, every_reject_file_names_code_pointer_and_line);
    tcase_add_test(cases, every_accept_file_is_accepted_with_its_warnings);
    tcase_add_test(cases, codes_and_names_are_unique);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
