/* SPDX-License-Identifier: Apache-2.0 */
/* Limit tables: strict documents, replace and patch, one-probe look-up, whether they fit a rule. */
#include "base/memory.h"
#include "policy/ruleset.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char policy_text[] =
    "{\"version\":\"v\",\"rules\":["
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"partition_by\":[\"c\"],\"capacity\":10,"
    "\"refill\":2000000,\"per\":\"1s\"},"
    "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":3,\"lease_ttl\":\"90s\"},"
    "{\"id\":\"kv\",\"type\":\"pressure\",\"signal\":\"kv\",\"gt\":0.5},"
    "{\"id\":\"cap\",\"type\":\"request_cap\",\"limit\":3}]}";

static struct adm_bytes view(const char *text)
{
    return (struct adm_bytes){ text, strlen(text) };
}

static struct admi_table *elsewhere(void)
{
    static struct admi_table table;
    return &table;
}

static adm_status load(const struct adm_policy *policy, const char *text, uint32_t mode,
                       const struct admi_table *previous, struct admi_table **out,
                       struct adm_diags **diags)
{
    size_t length = strlen(text);
    char *exact = malloc(length + 1);
    memcpy(exact, text, length);
    adm_status status = admi_table_load((struct adm_bytes){ exact, length }, policy, previous, mode,
                                        NULL, out, diags);
    free(exact);
    return status;
}

static struct admi_table *must_table(const struct adm_policy *policy, const char *text,
                                     uint32_t mode, const struct admi_table *previous)
{
    struct admi_table *table = NULL;
    struct adm_diags *diags = NULL;
    adm_status status = load(policy, text, mode, previous, &table, &diags);
    if (status != ADM_OK && adm_diags_count(diags) > 0)
        ck_abort_msg("%s: %s", diag_at(diags, 0).pointer, diag_at(diags, 0).message);
    ck_assert_int_eq(status, ADM_OK);
    ck_assert_ptr_null(diags);
    return table;
}

static const struct admi_table_entry *entry_of(const struct admi_table *table, const char *key)
{
    uint64_t i = admi_table_find(table, view(key));
    return i == UINT64_MAX ? NULL : &table->entries[i];
}

START_TEST(replace_reads_every_entry)
{
    struct adm_policy *policy = must_load(policy_text);
    struct admi_table *table =
        must_table(policy,
                   "{\"version\":\"t.1\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{\"a\":{"
                   "\"capacity\":5,\"per\":\"2s\"},"
                   "\"\\u00e9\":\"off\",\"x*\":{},\"zero\":{\"capacity\":0,\"refill\":0}}}",
                   ADM_TABLE_REPLACE, NULL);
    ck_assert_str_eq(table->version, "t.1");
    ck_assert(admi_bytes_equal(table->rule, view("rate")));
    ck_assert(admi_bytes_equal(table->by, view("c")));
    ck_assert_uint_eq(table->entry_count, 4);
    const struct admi_numbers *a = &entry_of(table, "a")->numbers;
    ck_assert_uint_eq(a->given, ADMI_GIVEN_CAPACITY | ADMI_GIVEN_PER);
    struct admi_numbers whole = admi_numbers_overlay(&policy->rules[0].numbers, a);
    ck_assert_uint_eq(whole.capacity, 5);
    ck_assert_uint_eq(whole.refill, 2000000);
    ck_assert_uint_eq(whole.per_ns, 2 * ADM_SECOND);
    ck_assert(entry_of(table, "\xC3\xA9")->off);
    ck_assert_uint_eq(entry_of(table, "x*")->numbers.given, 0);
    ck_assert_ptr_null(entry_of(table, "xy")); /* keys of entries are no patterns */
    ck_assert_ptr_null(entry_of(table, ""));
    ck_assert_ptr_null(entry_of(table, "A"));
    ck_assert(admi_table_fits(table, &policy->rules[0]));
    admi_table_unref(admi_table_ref(table));
    ck_assert_uint_eq(entry_of(table, "zero")->numbers.given,
                      ADMI_GIVEN_CAPACITY | ADMI_GIVEN_REFILL);
    admi_table_unref(table);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(empty_tables)
{
    struct adm_policy *policy = must_load(policy_text);
    struct admi_table *table =
        must_table(policy, "{\"version\":\"t\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{}}",
                   ADM_TABLE_REPLACE, NULL);
    ck_assert_uint_eq(table->entry_count, 0);
    ck_assert_ptr_null(entry_of(table, "a"));
    ck_assert(admi_table_fits(table, &policy->rules[3]));
    admi_table_unref(table);
    admi_table_unref(NULL);
    ck_assert_ptr_null(admi_table_ref(NULL));
    adm_policy_unref(policy);
}
END_TEST

START_TEST(patch_sets_removes_and_keeps)
{
    struct adm_policy *policy = must_load(policy_text);
    struct admi_table *one =
        must_table(policy,
                   "{\"version\":\"t1\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{\"a\":{"
                   "\"capacity\":1},\"b\":{\"capacity\":2},"
                   "\"c\":\"off\"}}",
                   ADM_TABLE_REPLACE, NULL);
    struct admi_table *two =
        must_table(policy,
                   "{\"version\":\"t2\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{\"b\":null,"
                   "\"c\":{\"refill\":3},\"d\":\"off\","
                   "\"unheard\":null}}",
                   ADM_TABLE_PATCH, one);
    ck_assert_str_eq(two->version, "t2");
    ck_assert_uint_eq(two->entry_count, 3);
    ck_assert_uint_eq(entry_of(two, "a")->numbers.capacity, 1);
    ck_assert_ptr_null(entry_of(two, "b"));
    ck_assert(!entry_of(two, "c")->off);
    ck_assert_uint_eq(entry_of(two, "c")->numbers.refill, 3);
    ck_assert_uint_eq(entry_of(two, "c")->numbers.given,
                      ADMI_GIVEN_REFILL); /* the whole entry is set */
    ck_assert(entry_of(two, "d")->off);
    ck_assert_uint_eq(entry_of(one, "b")->numbers.capacity, 2); /* a snapshot never changes */
    admi_table_unref(one);
    ck_assert_uint_eq(entry_of(two, "a")->numbers.capacity, 1); /* and needs no other */
    struct admi_table *three = must_table(
        policy, "{\"version\":\"t3\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{\"a\":\"off\"}}",
        ADM_TABLE_REPLACE, two);
    ck_assert_uint_eq(three->entry_count, 1); /* replace takes nothing over */
    struct admi_table *four = must_table(policy,
                                         "{\"version\":\"t4\",\"rule\":\"rate\",\"by\":\"c\","
                                         "\"entries\":{\"a\":null,\"b\":\"off\"}}",
                                         ADM_TABLE_PATCH, NULL);
    ck_assert_uint_eq(four->entry_count, 1);
    admi_table_unref(two);
    admi_table_unref(three);
    admi_table_unref(four);
    adm_policy_unref(policy);
}
END_TEST

#define TABLE(rule, entries)                                                                       \
    "{\"version\":\"t\",\"rule\":\"" rule "\",\"by\":\"c\",\"entries\":" entries "}"

START_TEST(refused_documents_say_where)
{
    static const struct {
        const char *text;
        uint32_t mode;
        const char *name, *pointer;
    } rows[] = {
        { "", ADM_TABLE_REPLACE, "empty_document", "" },
        { "[]", ADM_TABLE_REPLACE, "type", "" },
        { "{\"version\":\"t\",\"rule\":\"rate\",\"by\":\"c\"}", ADM_TABLE_REPLACE, "missing_key",
          "" },
        { "{\"version\":\"t\",\"by\":\"c\",\"entries\":{}}", ADM_TABLE_REPLACE, "missing_key", "" },
        { "{\"version\":\"t\",\"rule\":\"rate\",\"entries\":{}}", ADM_TABLE_REPLACE, "missing_key",
          "" },
        { "{\"version\":\"t t\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{}}", ADM_TABLE_REPLACE,
          "version", "/version" },
        { "{\"version\":\"t\",\"rule\":\"rate\",\"by\":\"\",\"entries\":{}}", ADM_TABLE_REPLACE,
          "key", "/by" },
        { "{\"version\":\"t\",\"rule\":\"rate\",\"by\":\"c\",\"entries\":{},\"mode\":1}",
          ADM_TABLE_REPLACE, "unknown_key", "/mode" },
        { TABLE("rate", "[]"), ADM_TABLE_REPLACE, "type", "/entries" },
        { TABLE("rate", "{\"a\":null}"), ADM_TABLE_REPLACE, "entry", "/entries/a" },
        { TABLE("rate", "{\"a\":\"on\"}"), ADM_TABLE_PATCH, "entry", "/entries/a" },
        { TABLE("rate", "{\"a\":true}"), ADM_TABLE_REPLACE, "entry", "/entries/a" },
        { TABLE("rate", "{\"a\":5}"), ADM_TABLE_REPLACE, "entry", "/entries/a" },
        { TABLE("rate", "{\"a/b\":[]}"), ADM_TABLE_REPLACE, "entry", "/entries/a~1b" },
        { TABLE("rate", "{\"\":\"off\"}"), ADM_TABLE_REPLACE, "value", "/entries/" },
        { TABLE("rate", "{\"a\":{\"capacity\":-1}}"), ADM_TABLE_REPLACE, "range",
          "/entries/a/capacity" },
        { TABLE("rate", "{\"a\":{\"limit\":1}}"), ADM_TABLE_REPLACE, "foreign_field",
          "/entries/a/limit" },
        { TABLE("rate", "{\"a\":{\"capcity\":1}}"), ADM_TABLE_REPLACE, "unknown_key",
          "/entries/a/capcity" },
        { TABLE("rate", "{\"a\":{\"off\":true}}"), ADM_TABLE_REPLACE, "unknown_key",
          "/entries/a/off" },
        { TABLE("rate", "{\"a\":{\"per\":\"1ms\"}}"), ADM_TABLE_REPLACE, "rate", "/entries/a/per" },
        { TABLE("rate", "{\"a\":\"off\",\"\\u0061\":\"off\"}"), ADM_TABLE_REPLACE, "duplicate_key",
          "/entries/a" },
        { TABLE("rate", "{\"a\":null,\"a\":null}"), ADM_TABLE_PATCH, "duplicate_key",
          "/entries/a" },
        { TABLE("rate", "{\"a\\u0000\":\"off\"}"), ADM_TABLE_REPLACE, "nul", "/entries/a?" },
        { TABLE("kv", "{\"a\":{\"gte\":0.5}}"), ADM_TABLE_REPLACE, "operator", "/entries/a/gte" },
        { TABLE("kv", "{\"a\":{\"gt\":0.5,\"lt\":0.1}}"), ADM_TABLE_REPLACE, "operator",
          "/entries/a/lt" },
        { TABLE("held", "{\"a\":{\"lease_ttl\":\"0s\"}}"), ADM_TABLE_REPLACE, "duration",
          "/entries/a/lease_ttl" },
        { TABLE("rate", "{\"a\":\"off\",}"), ADM_TABLE_REPLACE, "syntax", "/entries" },
    };
    struct adm_policy *policy = must_load(policy_text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admi_table *table = elsewhere();
        struct adm_diags *diags = NULL;
        adm_status status = load(policy, rows[i].text, rows[i].mode, NULL, &table, &diags);
        ck_assert_msg(status == ADM_E_POLICY_INVALID, "%s: %d", rows[i].text, status);
        ck_assert_ptr_eq(table, elsewhere());
        ck_assert_msg(count_findings(diags) == 1, "%s", rows[i].text);
        ck_assert_str_eq(diag_at(diags, 0).name, rows[i].name);
        ck_assert_str_eq(diag_at(diags, 0).pointer, rows[i].pointer);
        adm_diags_free(diags);
    }
    adm_policy_unref(policy);
}
END_TEST

START_TEST(unknown_rules)
{
    struct adm_policy *policy = must_load(policy_text);
    struct admi_table *table = elsewhere();
    struct adm_diags *diags = NULL;
    ck_assert_int_eq(load(policy, TABLE("rat", "{}"), ADM_TABLE_REPLACE, NULL, &table, &diags),
                     ADM_E_UNKNOWN_RULE);
    ck_assert_ptr_eq(table, elsewhere());
    ck_assert_ptr_null(diags);
    ck_assert_int_eq(load(policy, "{\"version\":\"\",\"rule\":\"rat\",\"by\":\"c\",\"entries\":{}}",
                          ADM_TABLE_REPLACE, NULL, &table, &diags),
                     ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(adm_diags_count(diags), 2);
    ck_assert_str_eq(diag_at(diags, 1).name, "unknown_rule");
    ck_assert_str_eq(diag_at(diags, 1).nearest, "rate");
    adm_diags_free(diags);
    ck_assert_int_eq(load(policy, TABLE("rate", "{}"), 2, NULL, &table, NULL),
                     ADM_E_INVALID_ARGUMENT);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(a_patch_keeps_the_key_of_its_table)
{
    struct adm_policy *policy = must_load(policy_text);
    struct admi_table *one =
        must_table(policy, TABLE("rate", "{\"a\":\"off\"}"), ADM_TABLE_REPLACE, NULL);
    struct admi_table *two = elsewhere();
    struct adm_diags *diags = NULL;
    static const char other[] = "{\"version\":\"t\",\"rule\":\"rate\",\"by\":\"d\",\"entries\":{}}";
    ck_assert_int_eq(load(policy, other, ADM_TABLE_PATCH, one, &two, &diags), ADM_E_POLICY_INVALID);
    ck_assert_str_eq(diag_at(diags, 0).name, "table_key");
    ck_assert_str_eq(diag_at(diags, 0).pointer, "/by");
    adm_diags_free(diags);
    ck_assert_ptr_eq(two, elsewhere());
    admi_table_unref(must_table(policy, other, ADM_TABLE_REPLACE, one));
    admi_table_unref(one);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(rule_of_a_document)
{
    static const struct {
        const char *text;
        uint32_t rule;
    } rows[] = {
        { TABLE("held", "{}"), 1 },
        { "{\"entries\":{\"rule\":{\"rule\":\"kv\"}},\"\\u0072ule\":\"c\\u0061p\"}", 3 },
        { TABLE("unheard", "{}"), UINT32_MAX },
        { "{\"rule\":5}", UINT32_MAX },
        { "{\"rule\":{\"rule\":\"kv\"}}", UINT32_MAX },
        { "[\"rule\",\"kv\"]", UINT32_MAX },
        { "{}", UINT32_MAX },
        { "\"rule\"", UINT32_MAX },
        { "", UINT32_MAX },
        { "{\"rule\":\"kv\"", UINT32_MAX },
    };
    struct adm_policy *policy = must_load(policy_text);
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t rule = 77;
        ck_assert_int_eq(admi_table_rule(view(rows[i].text), policy, 0, NULL, &rule), ADM_OK);
        ck_assert_msg(rule == rows[i].rule, "%s: %u", rows[i].text, rule);
    }
    adm_policy_unref(policy);
}
END_TEST

/* A publish may change the rule under a table that is in force. */
START_TEST(fit_is_judged_against_the_rule_of_the_day)
{
    static const struct {
        const char *rule;
        bool fits;
    } rows[] = {
        { "{\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":1,\"refill\":1000,\"per\":"
          "\"1s\"}",
          true },
        { "{\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":1,\"refill\":1000000,\"per\":"
          "\"1s\"}",
          true },
        { "{\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":1,\"refill\":1000001,\"per\":"
          "\"1s\"}",
          false },
        { "{\"id\":\"rate\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\"}", false },
        { "{\"id\":\"rate\",\"type\":\"concurrency\",\"limit\":1,\"lease_ttl\":\"1s\"}", false },
    };
    struct adm_policy *policy =
        must_load("{\"version\":\"v\",\"rules\":[{\"id\":\"rate\",\"type\":\"token_bucket\","
                  "\"capacity\":1,\"refill\":1,\"per\":\"1s\"}]}");
    struct admi_table *table = must_table(
        policy, TABLE("rate", "{\"a\":{\"per\":\"1ms\"},\"b\":\"off\"}"), ADM_TABLE_REPLACE, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text text = { 0 };
        text_add(&text, "{\"version\":\"v\",\"rules\":[%s]}", rows[i].rule);
        struct adm_policy *other = must_load(text.bytes);
        ck_assert_msg(admi_table_fits(table, &other->rules[0]) == rows[i].fits, "%s", rows[i].rule);
        adm_policy_unref(other);
        free(text.bytes);
    }
    admi_table_unref(table);
    adm_policy_unref(policy);
}
END_TEST

/* 10^5 entries, as the engine promises; every one is found, and nothing else. */
START_TEST(hundred_thousand_entries)
{
    struct adm_policy *policy = must_load(policy_text);
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"t\",\"rule\":\"held\",\"by\":\"c\",\"entries\":{");
    for (uint32_t i = 0; i < 100000; i++)
        text_add(&text, "%s\"property-%u\":{\"limit\":%u}", i == 0 ? "" : ",", i, i);
    text_add(&text, "}}");
    ck_assert_uint_gt(text.length, 1u << 20); /* beyond what a policy may have */
    struct admi_table *table = must_table(policy, text.bytes, ADM_TABLE_REPLACE, NULL);
    ck_assert_uint_eq(table->entry_count, 100000);
    for (uint32_t i = 0; i < 100100; i++) {
        char key[32];
        snprintf(key, sizeof key, "property-%u", i);
        const struct admi_table_entry *entry = entry_of(table, key);
        ck_assert_int_eq(entry != NULL, i < 100000);
        ck_assert(entry == NULL || entry->numbers.limit == i);
    }
    admi_table_unref(table);
    adm_policy_unref(policy);
    free(text.bytes);
}
END_TEST

/* D9: a table document is at most 16 MiB. */
START_TEST(bound_of_bytes_D9)
{
    static const char document[] = TABLE("held", "{}");
    struct adm_policy *policy = must_load(policy_text);
    size_t most = 16u << 20;
    char *text = malloc(most + 1);
    memcpy(text, document, sizeof document - 1);
    memset(text + sizeof document - 1, ' ', most + 1 - (sizeof document - 1));
    struct admi_table *table = NULL;
    struct adm_diags *diags = NULL;
    ck_assert_int_eq(admi_table_load((struct adm_bytes){ text, most }, policy, NULL,
                                     ADM_TABLE_REPLACE, NULL, &table, &diags),
                     ADM_OK);
    admi_table_unref(table);
    ck_assert_int_eq(admi_table_load((struct adm_bytes){ text, most + 1 }, policy, NULL,
                                     ADM_TABLE_REPLACE, NULL, &table, &diags),
                     ADM_E_POLICY_INVALID);
    ck_assert_str_eq(diag_at(diags, 0).name, "too_large");
    adm_diags_free(diags);
    adm_policy_unref(policy);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-table");
    TCase *cases = tcase_create("policy-table");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, replace_reads_every_entry);
    tcase_add_test(cases, empty_tables);
    tcase_add_test(cases, patch_sets_removes_and_keeps);
    tcase_add_test(cases, refused_documents_say_where);
    tcase_add_test(cases, unknown_rules);
    tcase_add_test(cases, a_patch_keeps_the_key_of_its_table);
    tcase_add_test(cases, rule_of_a_document);
    tcase_add_test(cases, fit_is_judged_against_the_rule_of_the_day);
    tcase_add_test(cases, hundred_thousand_entries);
    tcase_add_test(cases, bound_of_bytes_D9);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
