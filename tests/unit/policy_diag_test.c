/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as the registry describes them: every example has its fault, every repair has none. */
#include "diagnostic_texts.h"
#include "policy/catalog.h"
#include "policy/ruleset.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- the examples of the registry ---- */

static const char policy_of_tables[] =
    "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"token_bucket\","
    "\"partition_by\":[\"consumer\"],\"capacity\":10,\"refill\":1,\"per\":\"1s\"}]}";

static const char table_in_force[] =
    "{\"version\":\"t0\",\"rule\":\"r\",\"by\":\"consumer\",\"entries\":{}}";

/* Kinds without an example, and why. */
static const struct {
    const char *name, *why;
} without_example[] = {
    { "utf8", "bytes that no text can show" }, { "too_large", "more than a mebibyte" },
    { "too_many_values", "65537 values" },     { "too_many_keys", "1025 keys" },
    { "policy_too_wide", "17 rules" },
};

static bool is_without_example(const char *name)
{
    for (size_t i = 0; i < COUNT(without_example); i++)
        if (strcmp(without_example[i].name, name) == 0)
            return true;
    return false;
}

/* 120 to 139 are the kinds of YAML, which not every build reads. */
static bool is_of_yaml(const struct diagnostic_text *entry)
{
    return strncmp(entry->id, "ADM-D-12", 8) == 0 || strncmp(entry->id, "ADM-D-13", 8) == 0;
}

static struct admi_table *load_table(const struct adm_policy *policy, const char *text,
                                     uint32_t mode, const struct admi_table *previous,
                                     struct loaded *out)
{
    struct admi_table *table = NULL;
    struct adm_bytes bytes = { text, strlen(text) };
    out->status = admi_table_load(bytes, policy, previous, mode, NULL, &table, &out->diags);
    return table;
}

/* A limit table, for a rule "r" with a table by consumer in force. */
static struct loaded load_table_example(const char *text, bool patch)
{
    struct adm_policy *policy = must_load(policy_of_tables);
    struct loaded first = { ADM_OK, NULL, NULL }, loaded = { ADM_OK, NULL, NULL };
    struct admi_table *previous =
        load_table(policy, table_in_force, ADM_TABLE_REPLACE, NULL, &first);
    ck_assert_int_eq(first.status, ADM_OK);
    admi_table_unref(
        load_table(policy, text, patch ? ADM_TABLE_PATCH : ADM_TABLE_REPLACE, previous, &loaded));
    admi_table_unref(previous);
    adm_policy_unref(policy);
    return loaded;
}

static struct loaded load_example(const struct diagnostic_text *entry, const char *text)
{
    return strcmp(entry->of, "policy") == 0
               ? load_text(text)
               : load_table_example(text, strcmp(entry->of, "patch") == 0);
}

/* Errors and warnings of another code. */
static uint64_t count_others(const struct adm_diags *diags, uint32_t severity, const char *code)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = diag_at(diags, i);
        count += diag.severity == severity && strcmp(diag.code, code) != 0;
    }
    return count;
}

static void check_bad(const struct diagnostic_text *entry)
{
    bool error = strcmp(entry->severity, "error") == 0;
    struct loaded loaded = load_example(entry, entry->bad);
    ck_assert_msg(loaded.status == (error ? ADM_E_POLICY_INVALID : ADM_OK), "%s: status %d",
                  entry->name, loaded.status);
    ck_assert_msg(count_named(loaded.diags, entry->name) > 0, "%s is not found in its example",
                  entry->name);
    ck_assert_msg(count_others(loaded.diags, ADM_SEVERITY_ERROR, entry->id) == 0,
                  "%s: its example has other errors", entry->name);
    loaded_free(&loaded);
}

static void check_good(const struct diagnostic_text *entry)
{
    struct loaded loaded = load_example(entry, entry->good);
    ck_assert_msg(loaded.status == ADM_OK, "%s: the repaired example is refused: %s", entry->name,
                  adm_diags_count(loaded.diags) == 0 ? "?" : diag_at(loaded.diags, 0).message);
    ck_assert_msg(count_named(loaded.diags, entry->name) == 0, "%s: not repaired", entry->name);
    loaded_free(&loaded);
}

START_TEST(every_example_has_its_fault_and_every_repair_none)
{
    uint32_t checked = 0;
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++) {
        if (entry->bad == NULL || strcmp(entry->format, "json") != 0)
            continue;
        check_bad(entry);
        ck_assert_msg(entry->good != NULL, "%s: no repair", entry->name);
        check_good(entry);
        checked++;
    }
    ck_assert_uint_ge(checked, 44);
}
END_TEST

START_TEST(every_error_has_an_example_or_a_reason)
{
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++)
        ck_assert_msg(is_of_yaml(entry) || (entry->bad != NULL) != is_without_example(entry->name),
                      "%s: give it an example, or take it off the list", entry->name);
}
END_TEST

START_TEST(texts_and_rows_are_of_one_registry)
{
    uint32_t i = 0;
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++, i++) {
        ck_assert_uint_lt(i, ADMI_DIAG_KIND_COUNT);
        ck_assert_str_eq(entry->id, admi_diag_kinds[i].code);
        ck_assert_str_eq(entry->name, admi_diag_kinds[i].name);
    }
    ck_assert_uint_eq(i, ADMI_DIAG_KIND_COUNT);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-diag");
    TCase *cases = tcase_create("policy-diag");
    tcase_add_test(cases, every_example_has_its_fault_and_every_repair_none);
    tcase_add_test(cases, every_error_has_an_example_or_a_reason);
    tcase_add_test(cases, texts_and_rows_are_of_one_registry);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
