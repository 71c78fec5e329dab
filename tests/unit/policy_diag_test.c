/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings as the registry describes them: every example has its fault, every repair has none.
 * What a finding covers, and the notes behind it.
 */
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
    { "policy_too_wide", "17 rules" },         { "yaml_not_built", "a build without it" },
};

static bool is_without_example(const char *name)
{
    for (size_t i = 0; i < COUNT(without_example); i++)
        if (strcmp(without_example[i].name, name) == 0)
            return true;
    return false;
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

/* With all that can be found: what only lint finds as well. */
static struct loaded load_linted(const char *text)
{
    struct loaded loaded = { ADM_OK, NULL, NULL };
    struct adm_policy_options options = { .size = sizeof options, .flags = ADM_POLICY_LINT };
    loaded.status = adm_policy_load((struct adm_bytes){ text, strlen(text) }, &options,
                                    &loaded.policy, &loaded.diags);
    return loaded;
}

static struct loaded load_example(const struct diagnostic_text *entry, const char *text)
{
    if (strcmp(entry->format, "yaml") == 0)
        return load_yaml(text, strlen(text));
    return strcmp(entry->of, "policy") == 0
               ? load_linted(text)
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
        bool yaml = strcmp(entry->format, "yaml") == 0;
        if (entry->bad == NULL || (yaml && !BUILD_HAS_YAML))
            continue;
        check_bad(entry);
        ck_assert_msg(entry->good != NULL, "%s: no repair", entry->name);
        check_good(entry);
        checked++;
    }
    ck_assert_uint_ge(checked, BUILD_HAS_YAML ? 53 : 44);
}
END_TEST

START_TEST(every_error_has_an_example_or_a_reason)
{
    for (const struct diagnostic_text *entry = diagnostic_texts; entry->id != NULL; entry++)
        ck_assert_msg((entry->bad != NULL) != is_without_example(entry->name),
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

/* ---- what a finding covers ---- */

#define RULES(text)  "{\"version\":\"v\",\n \"rules\":[\n" text "\n]}"
#define BUCKET(text) "{\"id\":\"r\",\"type\":\"token_bucket\"," text "}"

/* Each text has one finding, and a note behind it where note_line is not 0. */
struct covered {
    const char *text, *name;
    uint32_t line, column, length, note_line, note_column, note_length;
    const char *note;
};

static void check_covered(const struct covered *row)
{
    struct loaded loaded = load_text(row->text);
    ck_assert_msg(adm_diags_count(loaded.diags) == (row->note_line == 0 ? 1 : 2), "%s: %d findings",
                  row->text, (int)adm_diags_count(loaded.diags));
    struct adm_diag diag = diag_at(loaded.diags, 0);
    ck_assert_str_eq(diag.name, row->name);
    ck_assert_msg(diag.line == row->line && diag.column == row->column &&
                      diag.length == row->length,
                  "%s: %s at %u:%u+%u", row->text, diag.name, diag.line, diag.column, diag.length);
    if (row->note_line != 0) {
        struct adm_diag note = diag_at(loaded.diags, 1);
        ck_assert_uint_eq(note.severity, ADM_SEVERITY_NOTE);
        ck_assert_msg(note.line == row->note_line && note.column == row->note_column &&
                          note.length == row->note_length,
                      "%s: note at %u:%u+%u", row->text, note.line, note.column, note.length);
        ck_assert_str_eq(note.message, row->note);
        ck_assert_str_eq(note.code, diag.code);
        ck_assert_ptr_null(note.nearest);
    }
    loaded_free(&loaded);
}

START_TEST(a_finding_covers_what_it_is_about)
{
    static const struct covered rows[] = {
        /* a scalar, with its quotes */
        { RULES(BUCKET("\"capacity\":\"40\",\"refill\":1,\"per\":\"1s\"")), "type", 3, 44, 4,
          .note = NULL },
        { RULES(BUCKET("\"capacity\":1e3,\"refill\":1,\"per\":\"1s\"")), "exponent", 3, 44, 3,
          .note = NULL },
        /* a name */
        { RULES(BUCKET("\"capcity\":1,\"refill\":1,\"per\":\"1s\"")), "unknown_key", 3, 33, 9,
          .note = NULL },
        /* of an object or array, the bracket that opens it */
        { RULES(BUCKET("\"capacity\":1,\"refill\":1")), "missing_key", 3, 1, 1, .note = NULL },
        { RULES(BUCKET("\"capacity\":[\n1],\"refill\":1,\"per\":\"1s\"")), "type", 3, 44, 1,
          .note = NULL },
        /* one byte where no value was understood, also at the end of a line and of the text */
        { "{\"version\":\"v\",\n\"rules\" []}", "syntax", 2, 9, 1, .note = NULL },
        { "{\"version\":\"v\n\"}", "control_character", 1, 14, 1, .note = NULL },
        { "{", "syntax", 1, 2, 1, .note = NULL },
        { "\n", "empty_document", 2, 1, 1, .note = NULL },
        /* no text, no place */
        { "", "empty_document", 0, 0, 0, .note = NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        check_covered(&rows[i]);
}
END_TEST

START_TEST(a_note_is_at_the_other_end)
{
    static const struct covered rows[] = {
        { "{\"version\":\"v\",\n\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}],\n"
          "\"versi\\u006fn\":\"w\"}",
          "duplicate_key", 3, 1, 14, 1, 2, 9, "it is first here" },
        { RULES("{\"id\":\"s\",\"type\":\"request_cap\",\"limit\":1},\n"
                "{\"type\":\"request_cap\",\"id\":\"r\",\"limit\":1},\n"
                "{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}"),
          "duplicate_rule_id", 5, 7, 3, 4, 28, 3, "it is first here" },
        { RULES("{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1,\n\"partition_by\":[\"a\",\n"
                "\"b\",\n\"a\"]}"),
          "duplicate_item", 6, 1, 3, 4, 17, 3, "it is first here" },
        { "{\"version\":\"v\",\n\"units\":[\"gpu_ms\",\n\"gpu_ms\"],\"rules\":["
          "{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}]}",
          "duplicate_item", 3, 1, 8, 2, 10, 8, "it is first here" },
        { RULES("{\"id\":\"r\",\"capacity\":9,\n\"type\":\"request_cap\",\"limit\":1}"),
          "foreign_field", 3, 11, 10, 4, 8, 13, "the type of the rule is given here" },
        { RULES("{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1,\n"
                "\"overrides\":[{\"when\":{\"type\":\"x\"},\"per\":\"1s\"}]}"),
          "foreign_field", 4, 35, 5, 3, 18, 13, "the type of the rule is given here" },
        { RULES(BUCKET("\"capacity\":1,\"per\":\"1ms\",\n\"refill\":2000000")), "rate", 4, 10, 7, 3,
          52, 5, "per is given here" },
        { RULES(BUCKET("\"capacity\":1,\"per\":\"1ms\",\"refill\":2,\n"
                       "\"overrides\":[{\"when\":{},\"refill\":2000000}]")),
          "rate", 4, 34, 7, 3, 52, 5, "per is given here" },
        { RULES(BUCKET("\"capacity\":1,\"per\":\"1s\",\"refill\":2000000,\n"
                       "\"overrides\":[{\"when\":{},\"per\":\"1ms\"}]")),
          "rate", 4, 31, 5, 3, 66, 7, "refill is given here" },
        /* a third one points at the first that has the same when, which is the one that applies */
        { RULES(BUCKET("\"capacity\":1,\"per\":\"1s\",\"refill\":1,\"overrides\":[\n"
                       "{\"when\":{\"t\":\"a\"},\"capacity\":2},\n"
                       "{\"when\":{\"t\":\"b\"},\"capacity\":3},\n"
                       "{\"when\":{\"t\":[\"a\"]},\"capacity\":4}]")),
          "unreachable_override", 6, 1, 1, 4, 1, 1, "this one applies" },
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        check_covered(&rows[i]);
}
END_TEST

START_TEST(there_is_no_note_where_the_other_end_is_not_in_the_text)
{
    static const char text[] = "{\"version\":\"t\",\"rule\":\"r\",\"by\":\"type\",\"entries\":"
                               "{\"type\":{\"limit\":1}}}";
    static const char fast[] = "{\"version\":\"t\",\"rule\":\"r\",\"by\":\"rules\",\"entries\":"
                               "{\"rules\":{\"refill\":1000000000000}}}";
    struct loaded loaded = load_table_example(text, false);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 1);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "foreign_field");
    loaded_free(&loaded);
    loaded = load_table_example(fast, false);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 1);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "rate");
    loaded_free(&loaded);
}
END_TEST

START_TEST(notes_do_not_count_among_twenty_and_stay_behind_their_finding)
{
    struct text text = { 0 };
    text_add(&text, "{\"a\":0");
    for (int i = 0; i < 25; i++)
        text_add(&text, ",\n\"a\":%d", i);
    text_add(&text, "}");
    struct loaded loaded = load_text(text.bytes);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(count_findings(loaded.diags), 20);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 40);
    for (uint64_t i = 0; i < 40; i += 2) {
        struct adm_diag finding = diag_at(loaded.diags, i), note = diag_at(loaded.diags, i + 1);
        ck_assert_uint_eq(finding.severity, ADM_SEVERITY_ERROR);
        ck_assert_uint_eq(finding.line, i / 2 + 2);
        ck_assert_uint_eq(note.severity, ADM_SEVERITY_NOTE);
        ck_assert_uint_eq(note.line, 1);
    }
    struct adm_diag beyond = { .size = sizeof beyond };
    ck_assert_int_eq(adm_diags_get(loaded.diags, 40, &beyond), ADM_E_INVALID_ARGUMENT);
    loaded_free(&loaded);
    free(text.bytes);
}
END_TEST

static void check_bound(char *text, size_t length, const char *name, const char *bound)
{
    struct loaded loaded = load_bytes(text, length);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    struct adm_diag diag = diag_at(loaded.diags, 0);
    ck_assert_str_eq(diag.name, name);
    ck_assert_msg(strstr(diag.message, bound) != NULL, "no %s in: %s", bound, diag.message);
    loaded_free(&loaded);
}

START_TEST(a_bound_is_in_the_message)
{
    size_t bytes = (1u << 20) + 1;
    char *text = malloc(bytes);
    ck_assert_ptr_nonnull(text);
    memset(text, ' ', bytes);
    check_bound(text, bytes, "too_large", "at most 1048576 bytes, found 1048577");
    text[0] = '[';
    for (uint32_t i = 1; i <= 65536; i++) { /* the array is a value too */
        text[2 * i - 1] = '0';
        text[2 * i] = i == 65536 ? ']' : ',';
    }
    check_bound(text, 2 * 65536 + 1, "too_many_values", "at most 65536");
    memset(text, '[', 33);
    check_bound(text, 33, "depth", "at most 32");
    free(text);
}
END_TEST

START_TEST(no_control_character_of_a_document_gets_into_a_message)
{
    static const char *const rows[] = {
        "{\"version\":\"v\",\"\\u001b[31m\":1}", /* decoded: a key that does not exist */
        "{\"version\":\"\\u0007\x7F\"}",         /* decoded, and DEL as it is */
        "{\"version\":\"\xC2\x9B 2J\"}",         /* C1: the same as ESC [ to some */
        "{\"version\":\"v\",\"a\\u001b\":1,\"a\\u001b\":2}",
        "{\"version\":\"v\" \xC2\x9B", /* where a comma was expected */
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct loaded loaded = load_text(rows[i]);
        ck_assert_uint_ge(adm_diags_count(loaded.diags), 1);
        for (uint64_t j = 0; j < adm_diags_count(loaded.diags); j++) {
            struct adm_diag diag = diag_at(loaded.diags, j);
            const char *const texts[] = { diag.message, diag.pointer };
            for (size_t k = 0; k < COUNT(texts); k++)
                for (const char *at = texts[k]; *at != '\0'; at++)
                    ck_assert_msg(
                        (unsigned char)*at >= 0x20 && *at != 0x7F &&
                            ((unsigned char)at[0] != 0xC2 || (unsigned char)at[1] >= 0xA0),
                        "%s: byte %02x", rows[i], (unsigned char)*at);
        }
        loaded_free(&loaded);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-diag");
    TCase *cases = tcase_create("policy-diag");
    tcase_add_test(cases, every_example_has_its_fault_and_every_repair_none);
    tcase_add_test(cases, every_error_has_an_example_or_a_reason);
    tcase_add_test(cases, texts_and_rows_are_of_one_registry);
    tcase_add_test(cases, a_finding_covers_what_it_is_about);
    tcase_add_test(cases, a_note_is_at_the_other_end);
    tcase_add_test(cases, there_is_no_note_where_the_other_end_is_not_in_the_text);
    tcase_add_test(cases, notes_do_not_count_among_twenty_and_stay_behind_their_finding);
    tcase_add_test(cases, a_bound_is_in_the_message);
    tcase_add_test(cases, no_control_character_of_a_document_gets_into_a_message);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
