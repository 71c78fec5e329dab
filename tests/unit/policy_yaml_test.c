/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML policies: the same verdict for the same content as in JSON, and places in the YAML text.
 * Arguments: scenario file 05, tests/policies, folder of the YAML test suite (may be missing).
 */
#include <cjson/cJSON.h>
#include <time.h>

#include "base/memory.h"
#include "policy/catalog.h"
#include "policy/ruleset.h"
#include "policy/yaml_json.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *scenario_path, *policies_path, *suite_path;

/* ---- one text, one finding ---- */

#define HEAD "version: v1\nrules:\n  - id: "
#define TAIL "\n    type: token_bucket\n    capacity: 10\n    refill: 1\n    per: 1s\n"
#define GOOD HEAD "r" TAIL

static const struct {
    const char *text, *code; /* code NULL: accepted */
    uint32_t line, column;
    const char *pointer;
} texts[] = {
    { GOOD, NULL, 0, 0, NULL },
    { "---\n" GOOD "...\n", NULL, 0, 0, NULL },
    { "%YAML 1.1\n---\n" GOOD, NULL, 0, 0, NULL },
    { "# talk\n%YAML 1.2\n--- # talk\n" GOOD "# end", NULL, 0, 0, NULL },
    { "version: v1\r\nrules:\r\n- {id: r, type: request_cap, limit: 1}\r\n", NULL, 0, 0, NULL },
    { "{version: v1, rules: [{id: r, type: request_cap, limit: 1, },], }", NULL, 0, 0, NULL },
    { HEAD "\"no\"" TAIL, NULL, 0, 0, NULL },
    { HEAD "'12'" TAIL, NULL, 0, 0, NULL },
    { HEAD "|-\n      r\n   " TAIL, NULL, 0, 0, NULL },
    { GOOD "description: 1.2.3\n", NULL, 0, 0, NULL },
    { GOOD "description: \"\\u00e9\\x41\"\n", NULL, 0, 0, NULL },
    /* Broken text. */
    { "", "ADM-D-102", 0, 0, "" },
    { "# talk\n", "ADM-D-102", 2, 1, "" },
    { "\xEF\xBB\xBFversion: v1\n", "ADM-D-104", 1, 1, "" },
    { "version: v\xFF\n", "ADM-D-105", 1, 11, "" },
    { "version: v\x01\n", "ADM-D-106", 1, 11, "" },
    { "version: \xC3\xA9\xC2\x85\n", "ADM-D-120", 1, 12, "" },
    { "version: \xE2\x80\xA8\n", "ADM-D-120", 1, 10, "" },
    { "version: v1\nrules:\n  - id: r\n\ttype: request_cap\n", "ADM-D-120", 4, 1, NULL },
    { "version: [v1\n", "ADM-D-120", 2, 1, NULL },
    { "version: \"\\uD800\"\n", "ADM-D-120", 1, 13, NULL },
    { "version: v1\n]\n", "ADM-D-120", 2, 1, NULL },
    /* What is not in JSON. */
    { HEAD "&n r" TAIL, "ADM-D-122", 3, 9, "/rules/0/id" },
    { "version: *n\n", "ADM-D-121", 1, 10, "/version" },
    { HEAD "!x r" TAIL, "ADM-D-123", 3, 9, "/rules/0/id" },
    { HEAD "!!str r" TAIL, "ADM-D-123", 3, 9, "/rules/0/id" },
    { HEAD "! r" TAIL, "ADM-D-123", 3, 9, "/rules/0/id" },
    { "version: v1\nrules: !!seq []\n", "ADM-D-123", 2, 8, "/rules" },
    { "version: v1\nrules:\n- <<: {}\n", "ADM-D-124", 3, 3, "/rules/0" },
    { GOOD "? [a]\n: b\n", "ADM-D-125", 8, 3, "" },
    { GOOD "1: b\n", "ADM-D-125", 8, 1, "" },
    { GOOD "true: b\n", "ADM-D-125", 8, 1, "" },
    { GOOD "yes: b\n", "ADM-D-125", 8, 1, "" },
    { GOOD "---\n" GOOD, "ADM-D-127", 8, 1, "" },
    { GOOD "...\n%YAML 1.1\n---\n", "ADM-D-127", 9, 1, "" },
    { "%TAG ! x\n---\n" GOOD, "ADM-D-128", 1, 1, "" },
    { "%FOO\n---\n" GOOD, "ADM-D-128", 1, 1, "" },
    { "%YAML 1.3\n---\n" GOOD, "ADM-D-128", 1, 1, "" },
    /* The schema, with places of the YAML text. */
    { GOOD "off: 1\n", "ADM-D-202", 8, 1, "/off" },
    { GOOD "description: \xC3\xA9\nfoo: 1\n", "ADM-D-202", 9, 1, "/foo" },
    { "{\"\xC3\xA9\": 1, "
      "version: v1, rules: [{id: r, type: request_cap, limit: 1}]}",
      "ADM-D-202", 1, 2, "/\xC3\xA9" },
    { "{description: \xC3\xA9\xE2\x82\xAC, foo: 1, version: v1, rules: [{id: r, type: request_cap, "
      "limit: 1}]}",
      "ADM-D-202", 1, 22, "/foo" },
    { "version: v1\r\nrules:\r\n- {id: r, type: request_cap, limit: 1e3}\r\n", "ADM-D-214", 3, 37,
      NULL },
};

START_TEST(every_text_has_its_finding_at_its_place)
{
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct loaded loaded = load_yaml(texts[i].text, strlen(texts[i].text));
        if (texts[i].line == 0 && texts[i].code == NULL) {
            ck_assert_msg(loaded.status == ADM_OK, "%s: %s", texts[i].text,
                          loaded.diags == NULL ? "?" : diag_at(loaded.diags, 0).message);
            loaded_free(&loaded);
            continue;
        }
        ck_assert_msg(loaded.status == ADM_E_POLICY_INVALID, "accepted: %s", texts[i].text);
        struct adm_diag diag = diag_at(loaded.diags, 0);
        ck_assert_msg(texts[i].code == NULL || strcmp(diag.code, texts[i].code) == 0, "%s: %s %s",
                      texts[i].text, diag.code, diag.message);
        ck_assert_msg(diag.line == texts[i].line && diag.column == texts[i].column, "%s: %u:%u %s",
                      texts[i].text, diag.line, diag.column, diag.message);
        if (texts[i].code != NULL && texts[i].pointer != NULL)
            ck_assert_msg(strcmp(diag.pointer, texts[i].pointer) == 0, "%s: %s", texts[i].text,
                          diag.pointer);
        loaded_free(&loaded);
    }
}
END_TEST

/* ---- plain scalars ---- */

static const char *const ambiguous[] = {
    "",
    "~",
    "y",
    "N",
    "yes",
    "YES",
    "No",
    "on",
    "OFF",
    "True",
    "TRUE",
    "False",
    "NULL",
    "Null",
    "=",
    "<<",
    "010",
    "0o10",
    "0x1F",
    "0b101",
    "1_000",
    "1:30",
    "-1:30",
    "+1",
    "+1.5",
    ".5",
    "1.",
    "1.e+3",
    ".inf",
    "-.INF",
    ".NaN",
    "-010",
    "08",
    "00",
    "1_0.5",
    "12:30:45.5",
    "2024-01-01",
    "2024-1-1 1:00",
    "2024-01-01T10:00:00Z",
    "2024-01-01 10:00",
};
static const char *const literals[] = { "0",    "-1",   "10",    "1e3", "1.5",
                                        "1E-9", "true", "false", "null" };
static const char *const strings[] = {
    "r",   "yess",    "1s",   "1h30m",    "1.2.3", "0xg",     "1e",          "1:99",
    "a:b", "v1",      "none", "10.0.0.1", "x_1",   "2024-01", "20240-01-01", "+",
    "1_a", "offline", "nan",  "inf",      "nULL",  "yEs",     "2024-1-1",
};

/* The finding of a load of HEAD + scalar + TAIL, or "". */
static void check_id(const char *scalar, const char *expect)
{
    struct text text = { 0 };
    text_add(&text, "%s%s%s", HEAD, scalar, TAIL);
    struct loaded loaded = load_yaml(text.bytes, text.length);
    const char *name = loaded.diags == NULL ? "" : diag_at(loaded.diags, 0).name;
    ck_assert_msg(strcmp(name, expect) == 0, "id %s: %s", scalar, name);
    ck_assert_int_eq(loaded.status, expect[0] == '\0' ? ADM_OK : ADM_E_POLICY_INVALID);
    if (expect[0] != '\0')
        ck_assert_str_eq(diag_at(loaded.diags, 0).pointer, "/rules/0/id");
    loaded_free(&loaded);
    free(text.bytes);
}

static void check_key(const char *scalar, const char *expect)
{
    struct text text = { 0 };
    text_add(&text, "%s    match: {%s: a}\n", GOOD, scalar);
    struct loaded loaded = load_yaml(text.bytes, text.length);
    const char *name = loaded.diags == NULL ? "" : diag_at(loaded.diags, 0).name;
    ck_assert_msg(strcmp(name, expect) == 0, "key %s: %s", scalar, name);
    loaded_free(&loaded);
    free(text.bytes);
}

START_TEST(every_plain_scalar_has_one_meaning)
{
    for (size_t i = 0; i < COUNT(ambiguous); i++) {
        const char *scalar = ambiguous[i];
        check_id(scalar, "ambiguous_scalar");
        if (scalar[0] != '\0' && strcmp(scalar, "=") != 0)
            check_key(scalar, strcmp(scalar, "<<") == 0 ? "merge_key" : "key_not_string");
    }
    for (size_t i = 0; i < COUNT(literals); i++) {
        struct text text = { 0 };
        text_add(&text, "%s%s%s", HEAD, literals[i], TAIL);
        struct loaded loaded = load_yaml(text.bytes, text.length);
        ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
        ck_assert_str_eq(diag_at(loaded.diags, 0).name, "type");
        loaded_free(&loaded);
        free(text.bytes);
        check_key(literals[i], "key_not_string");
    }
    for (size_t i = 0; i < COUNT(strings); i++) {
        struct admi_yaml yaml = { .allocator = NULL };
        const struct admi_json_limits limits = { 1000, 1000, 32 };
        struct text json = { 0 };
        struct adm_diags *diags = admi_diags_new(&admi_malloc_allocator, "");
        text_add(&json, "\"%s\"", strings[i]);
        ck_assert_int_eq(admi_yaml_read(&yaml, (struct adm_bytes){ strings[i], strlen(strings[i]) },
                                        &limits, &admi_malloc_allocator, diags),
                         ADM_OK);
        ck_assert_uint_eq(yaml.length, json.length);
        ck_assert_mem_eq(yaml.json, json.bytes, json.length);
        admi_yaml_fini(&yaml);
        adm_diags_free(diags);
        free(json.bytes);
    }
}
END_TEST

/* ---- bounds ---- */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check_refused(const char *what, const char *start_text, const char *item,
                          uint32_t count, const char *name)
{
    struct text text = { 0 };
    text_add(&text, "%s", start_text);
    for (uint32_t i = 0; i < count; i++)
        text_add(&text, "%s", item);
    double start = seconds_now();
    struct loaded loaded = load_yaml(text.bytes, text.length);
    printf("# %s: %.1f ms\n", what, (seconds_now() - start) * 1e3);
    fflush(stdout);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_msg(strcmp(diag_at(loaded.diags, 0).name, name) == 0, "%s: %s", what,
                  diag_at(loaded.diags, 0).name);
    ck_assert_msg(seconds_now() - start < 5, "%s", what); /* quadratic work would take minutes */
    loaded_free(&loaded);
    free(text.bytes);
}

START_TEST(bounds_act_before_the_whole_text_is_parsed)
{
    check_refused("200000 open brackets", "a: ", "[", 200000, "depth");
    check_refused("33 open brackets", "a: ", "[", 32, "depth");
    check_refused("200000 open braces", "a: ", "{", 200000, "key_not_string");
    check_refused("200000 objects in objects", "a: ", "{a: ", 200000, "depth");
    check_refused("many values", "a: ", "\n- 1", 70000, "too_many_values");
    check_refused("more than 1 MiB", "a: ", "xxxxxxxxxxxxxxxx", 65536, "too_large");
    check_refused("many tag directives", "%TAG !", "%TAG !a! x\n", 80000, "directive");
    check_refused("tag directives behind", "a: b\n...\n", "%TAG !a! x\n", 80000, "many_documents");
}
END_TEST

START_TEST(a_container_beyond_the_bound_is_named_without_a_member)
{
    struct text text = { 0 };
    text_add(&text, "[");
    for (uint32_t i = 0; i < 65536; i++)
        text_add(&text, "[],");
    struct loaded loaded = load_yaml(text.bytes, text.length);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "too_many_values");
    ck_assert_str_eq(diag_at(loaded.diags, 0).pointer, "/65535");
    loaded_free(&loaded);
    free(text.bytes);
}
END_TEST

/* ---- the same verdict ---- */

/* All that is refused as JSON and legal in YAML. */
static const char *const accepted_as_yaml[] = {
    "control-newline-in-string.json",
    "control-character.json",
    "escape.json",
};
static uint32_t different;

/* Differences between a JSON text read as JSON and as YAML; each is stricter, none is laxer. */
static void check_same(const char *folder, const char *name, uint32_t *same)
{
    char path[4096];
    size_t length;
    snprintf(path, sizeof path, "%s/%s/%s", policies_path, folder, name);
    char *text = read_file(path, &length);
    ck_assert_ptr_nonnull(text);
    struct loaded json = load_bytes(text, length), yaml = load_yaml(text, length);
    if (strcmp(name, "escapes.json") == 0) {
        /* JSON writes U+1F600 as two surrogates; YAML has no such escape. */
        ck_assert_int_eq(yaml.status, ADM_E_POLICY_INVALID);
        ck_assert_str_eq(diag_at(yaml.diags, 0).name, "yaml_syntax");
        loaded_free(&json);
        loaded_free(&yaml);
        free(text);
        return;
    }
    if (json.status == ADM_OK) {
        ck_assert_msg(yaml.status == ADM_OK, "%s: %s", name,
                      yaml.diags == NULL ? "?" : diag_at(yaml.diags, 0).message);
        ck_assert_mem_eq(json.policy->digest, yaml.policy->digest, sizeof json.policy->digest);
    }
    if (json.status == yaml.status) {
        (*same)++;
    } else {
        bool known = false;
        for (size_t i = 0; i < COUNT(accepted_as_yaml); i++)
            known = known || strcmp(name, accepted_as_yaml[i]) == 0;
        ck_assert_msg(known, "%s: refused as JSON, accepted as YAML", name);
        different++;
    }
    bool syntax = json.diags != NULL && strcmp(diag_at(json.diags, 0).code, "ADM-D-2") < 0;
    for (uint64_t i = 0; !syntax && i < adm_diags_count(json.diags); i++) {
        struct adm_diag a = diag_at(json.diags, i), b = diag_at(yaml.diags, i);
        ck_assert_msg(strcmp(a.code, b.code) == 0 && a.line == b.line && a.column == b.column &&
                          strcmp(a.pointer, b.pointer) == 0,
                      "%s: %s %u:%u and %s %u:%u", name, a.code, a.line, a.column, b.code, b.line,
                      b.column);
    }
    ck_assert_msg(json.status == yaml.status || syntax, "%s", name);
    fflush(stdout);
    loaded_free(&json);
    loaded_free(&yaml);
    free(text);
}

static uint32_t check_folder(const char *folder)
{
    char path[4096];
    uint32_t same = 0;
    snprintf(path, sizeof path, "%s/%s", policies_path, folder);
    DIR *listing = opendir(path);
    ck_assert_msg(listing != NULL, "no %s", path);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot != NULL && strcmp(dot, ".json") == 0)
            check_same(folder, entry->d_name, &same);
    }
    closedir(listing);
    return same;
}

START_TEST(json_files_have_the_same_verdict_and_places_as_yaml)
{
    ck_assert_uint_ge(check_folder("accept"), 15);
    ck_assert_uint_ge(check_folder("reject"), 120);
    ck_assert_uint_eq(different, COUNT(accepted_as_yaml));
}
END_TEST

static const char *member_text(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    return item == NULL ? NULL : item->valuestring;
}

START_TEST(case_05_every_yaml_document_gets_its_verdict)
{
    size_t length;
    uint32_t checked = 0;
    char *text = read_file(scenario_path, &length);
    ck_assert_ptr_nonnull(text);
    cJSON *root = cJSON_Parse(text);
    const cJSON *scenario, *document;
    cJSON_ArrayForEach(scenario, cJSON_GetObjectItemCaseSensitive(root, "scenarios"))
    {
        cJSON_ArrayForEach(document, cJSON_GetObjectItemCaseSensitive(scenario, "documents"))
        {
            if (strcmp(member_text(document, "format"), "yaml") != 0)
                continue;
            const char *body = member_text(document, "text");
            struct loaded loaded = load_yaml(body, strlen(body));
            bool accept = strcmp(member_text(document, "expect"), "accept") == 0;
            ck_assert_msg(loaded.status == (accept ? ADM_OK : ADM_E_POLICY_INVALID), "%s: %d",
                          member_text(document, "name"), loaded.status);
            ck_assert_uint_ge(adm_diags_count(loaded.diags), accept ? 0 : 1);
            loaded_free(&loaded);
            checked++;
        }
    }
    ck_assert_uint_ge(checked, 36);
    cJSON_Delete(root);
    free(text);
}
END_TEST

/* ---- the JSON text ---- */

static adm_status to_json(const char *text, uint32_t flags, char *buffer, uint64_t bytes,
                          uint64_t *length, struct adm_diags **diags)
{
    struct adm_policy_options options = { .size = sizeof options, .flags = flags };
    return adm_policy_json((struct adm_bytes){ text, strlen(text) }, &options, buffer, bytes,
                           length, diags);
}

START_TEST(json_text_comes_in_a_buffer_of_the_caller)
{
    static const char yaml[] = "# talk\na: [1e3, 0.10, \"no\", x]\n'b': |\n  one\n  \"two\"\n";
    static const char json[] = "{\"a\":[1e3,0.10,\"no\",\"x\"],\"b\":\"one\\n\\\"two\\\"\\n\"}";
    char buffer[128];
    uint64_t length = 0;
    memset(buffer, '#', sizeof buffer);
    ck_assert_int_eq(to_json(yaml, ADM_POLICY_YAML, NULL, 0, &length, NULL),
                     ADM_E_BUFFER_TOO_SMALL);
    ck_assert_uint_eq(length, sizeof json - 1);
    ck_assert_int_eq(to_json(yaml, ADM_POLICY_YAML, buffer, length - 1, &length, NULL),
                     ADM_E_BUFFER_TOO_SMALL);
    ck_assert_int_eq(buffer[0], '#');
    ck_assert_int_eq(to_json(yaml, ADM_POLICY_YAML, buffer, length, &length, NULL), ADM_OK);
    ck_assert_uint_eq(length, sizeof json - 1);
    ck_assert_mem_eq(buffer, json, length);
    ck_assert_int_eq(buffer[length], '#');
}
END_TEST

START_TEST(json_passes_through_as_it_is)
{
    static const char json[] = " { \"a\" : [ 1.50 , \"\\u0041\" ] }\n";
    char buffer[64];
    uint64_t length = 0;
    ck_assert_int_eq(to_json(json, 0, buffer, sizeof buffer, &length, NULL), ADM_OK);
    ck_assert_uint_eq(length, sizeof json - 1);
    ck_assert_mem_eq(buffer, json, length);
}
END_TEST

START_TEST(json_text_of_what_cannot_be_read_is_an_error)
{
    static const struct {
        const char *text;
        uint32_t flags;
        const char *name;
    } broken[] = {
        { "{\"a\":1,}", 0, "syntax" },
        { "{\"a\":1,\"a\":2}", 0, "duplicate_key" },
        { "a: 1", 0, "syntax" },
        { "", 0, "empty_document" },
        { "a: [1", ADM_POLICY_YAML, "yaml_syntax" },
        { "a: 1\na: 2\n", ADM_POLICY_YAML, "duplicate_key" },
        { "a: no\n", ADM_POLICY_YAML, "ambiguous_scalar" },
        { "a: &x b\n", ADM_POLICY_YAML, "anchor" },
        { "a: 01\n", ADM_POLICY_YAML, "ambiguous_scalar" },
    };
    char buffer[64];
    for (size_t i = 0; i < COUNT(broken); i++) {
        uint64_t length = 77;
        struct adm_diags *diags = NULL;
        buffer[0] = '#';
        ck_assert_int_eq(
            to_json(broken[i].text, broken[i].flags, buffer, sizeof buffer, &length, &diags),
            ADM_E_POLICY_INVALID);
        ck_assert_msg(strcmp(diag_at(diags, 0).name, broken[i].name) == 0, "%s: %s", broken[i].text,
                      diag_at(diags, 0).name);
        ck_assert_uint_eq(length, 77);
        ck_assert_int_eq(buffer[0], '#');
        adm_diags_free(diags);
    }
    uint64_t length = 77;
    ck_assert_int_eq(to_json("1", 1u << 31, buffer, sizeof buffer, &length, NULL),
                     ADM_E_CALLER_NEWER);
    ck_assert_int_eq(to_json("1", 0, NULL, 1, &length, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(to_json("1", 0, buffer, sizeof buffer, NULL, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(
        adm_policy_json((struct adm_bytes){ NULL, 1 }, NULL, buffer, sizeof buffer, &length, NULL),
        ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(length, 77);
}
END_TEST

/* ---- limit tables ---- */

static adm_status load_table(const char *text, uint32_t mode, struct adm_diags **diags)
{
    struct adm_policy *policy = must_load(
        "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"token_bucket\",\"partition_by\":"
        "[\"c\"],\"capacity\":10,\"refill\":1,\"per\":\"1s\"}]}");
    struct admi_table *table = NULL;
    struct adm_bytes bytes = { text, strlen(text) };
    uint32_t rule = 77;
    ck_assert_int_eq(admi_table_rule(bytes, policy, mode, NULL, &rule), ADM_OK);
    adm_status status = admi_table_load(bytes, policy, NULL, mode, NULL, &table, diags);
    ck_assert_uint_eq(rule, status == ADM_OK ? 0 : rule);
    admi_table_unref(table);
    adm_policy_unref(policy);
    return status;
}

START_TEST(limit_tables_are_yaml_with_their_flag_only)
{
    static const char good[] =
        "version: t1\nrule: r\nby: c\nentries:\n  a: \"off\"\n  b: {capacity: 5}\n";
    static const char plain_off[] = "version: t1\nrule: r\nby: c\nentries:\n  \xC3\xA9: off\n";
    struct adm_diags *diags = NULL;
    ck_assert_int_eq(load_table(good, ADM_TABLE_REPLACE | ADM_TABLE_YAML, &diags), ADM_OK);
    ck_assert_int_eq(load_table(good, ADM_TABLE_PATCH | ADM_TABLE_YAML, &diags), ADM_OK);
    ck_assert_int_eq(load_table(good, ADM_TABLE_REPLACE, &diags), ADM_E_POLICY_INVALID);
    adm_diags_free(diags);
    ck_assert_int_eq(load_table(plain_off, ADM_TABLE_REPLACE | ADM_TABLE_YAML, &diags),
                     ADM_E_POLICY_INVALID);
    struct adm_diag diag = diag_at(diags, 0);
    ck_assert_str_eq(diag.name, "ambiguous_scalar");
    ck_assert_uint_eq(diag.line, 5);
    ck_assert_uint_eq(diag.column, 7);
    ck_assert_str_eq(diag.pointer, "/entries/\xC3\xA9");
    adm_diags_free(diags);
}
END_TEST

/* ---- any text ---- */

START_TEST(mutated_texts_are_read_or_refused)
{
    static const char bytes[] = "\n \t:-?,[]{}#&*!|>'\"%@`\\0a<~=\r.";
    static const char seed_text[] =
        GOOD "description: |\n  a\n  b\nunits: [x, \"\\x41\", 'y''z']\n# talk\n";
    uint64_t random = 20;
    for (uint32_t i = 0; i < 20000; i++) {
        char text[sizeof seed_text + 8];
        size_t length = sizeof seed_text - 1;
        memcpy(text, seed_text, length);
        for (uint32_t n = 1 + below(&random, 4); n > 0; n--) {
            uint32_t at = below(&random, (uint32_t)length);
            uint32_t how = below(&random, 8);
            if (how == 0)
                length = at + 1;
            else
                text[at] =
                    how == 1 ? (char)next_random(&random) : bytes[below(&random, sizeof bytes - 1)];
        }
        struct loaded loaded = load_yaml(text, length);
        ck_assert(loaded.status == ADM_OK ||
                  (loaded.status == ADM_E_POLICY_INVALID && adm_diags_count(loaded.diags) > 0));
        loaded_free(&loaded);
    }
}
END_TEST

START_TEST(the_yaml_test_suite_crashes_nothing)
{
    DIR *listing = opendir(suite_path);
    if (listing == NULL)
        return; /* said in main() */
    uint32_t files = 0;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        char path[4096];
        size_t length;
        snprintf(path, sizeof path, "%s/%s", suite_path, entry->d_name);
        char *text = entry->d_name[0] == '.' ? NULL : read_file(path, &length);
        if (text == NULL)
            continue;
        struct loaded loaded = load_yaml(text, length);
        ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID); /* none of them is a policy */
        loaded_free(&loaded);
        free(text);
        files++;
    }
    closedir(listing);
    ck_assert_uint_ge(files, 100);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s scenario-05.json tests/policies yaml-test-suite\n", argv[0]);
        return 2;
    }
    scenario_path = argv[1];
    policies_path = argv[2];
    suite_path = argv[3];
    Suite *suite = suite_create("policy-yaml");
    TCase *cases = tcase_create("policy-yaml");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, every_text_has_its_finding_at_its_place);
    tcase_add_test(cases, every_plain_scalar_has_one_meaning);
    tcase_add_test(cases, bounds_act_before_the_whole_text_is_parsed);
    tcase_add_test(cases, a_container_beyond_the_bound_is_named_without_a_member);
    tcase_add_test(cases, json_files_have_the_same_verdict_and_places_as_yaml);
    tcase_add_test(cases, case_05_every_yaml_document_gets_its_verdict);
    tcase_add_test(cases, json_text_comes_in_a_buffer_of_the_caller);
    tcase_add_test(cases, json_passes_through_as_it_is);
    tcase_add_test(cases, json_text_of_what_cannot_be_read_is_an_error);
    tcase_add_test(cases, limit_tables_are_yaml_with_their_flag_only);
    tcase_add_test(cases, mutated_texts_are_read_or_refused);
    DIR *listing = opendir(suite_path);
    if (listing == NULL)
        printf("# the YAML test suite is not at %s: left out\n", suite_path);
    else {
        closedir(listing);
        tcase_add_test(cases, the_yaml_test_suite_crashes_nothing);
    }
    fflush(stdout);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
