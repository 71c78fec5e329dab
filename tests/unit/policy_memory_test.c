/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a load: the n-th allocation fails, for every n (the host's allocator and the parser's
 * malloc alike), and how much is used at most. This program defines malloc and its like itself, so
 * that the parser's are counted too.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <time.h>

#include "base/memory.h"
#include "policy/ruleset.h"
#include "policy_support.h"

/* ---- malloc ---- */

/*
 * Everything that a load allocates, while it is watched. Volatile: a compiler knows that malloc
 * does not look at it.
 */
static volatile struct {
    int on;
    uint64_t calls, fail_at; /* the call of this number fails; 0: none */
    int fail_rest;           /* and all later ones */
    int64_t allocator_bytes, parser_bytes, peak;
} watch;

static int must_fail(void)
{
    uint64_t call = ++watch.calls;
    return watch.fail_at != 0 &&
           (call == watch.fail_at || (watch.fail_rest && call > watch.fail_at));
}

static void account(volatile int64_t *of, int64_t bytes)
{
    *of += bytes;
    int64_t all = watch.allocator_bytes + watch.parser_bytes;
    if (all > watch.peak)
        watch.peak = all;
}

/* A sanitizer's own, if there is one. */
extern void *__interceptor_malloc(size_t bytes) __attribute__((weak));
extern void *__interceptor_realloc(void *memory, size_t bytes) __attribute__((weak));
extern void __interceptor_free(void *memory) __attribute__((weak));

/* Visible, or the parser's library would go on using the other one. */
__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    static void *(*next)(size_t);
    if (next == NULL) {
        next = __interceptor_malloc;
        if (next == NULL) {
            void *found = dlsym(RTLD_NEXT, "malloc");
            memcpy(&next, &found, sizeof next);
        }
    }
    if (!watch.on)
        return next(bytes);
    if (must_fail())
        return NULL;
    void *memory = next(bytes);
    account(&watch.parser_bytes, (int64_t)malloc_usable_size(memory));
    return memory;
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes)
{
    static void *(*next)(void *, size_t);
    if (next == NULL) {
        next = __interceptor_realloc;
        if (next == NULL) {
            void *found = dlsym(RTLD_NEXT, "realloc");
            memcpy(&next, &found, sizeof next);
        }
    }
    if (!watch.on)
        return next(memory, bytes);
    if (must_fail())
        return NULL;
    int64_t before = memory == NULL ? 0 : (int64_t)malloc_usable_size(memory);
    void *fresh = next(memory, bytes);
    account(&watch.parser_bytes, (int64_t)malloc_usable_size(fresh)); /* for a while, both */
    account(&watch.parser_bytes, -before);
    return fresh;
}

__attribute__((visibility("default"))) void free(void *memory)
{
    static void (*next)(void *);
    if (next == NULL) {
        next = __interceptor_free;
        if (next == NULL) {
            void *found = dlsym(RTLD_NEXT, "free");
            memcpy(&next, &found, sizeof next);
        }
    }
    if (watch.on && memory != NULL)
        account(&watch.parser_bytes, -(int64_t)malloc_usable_size(memory));
    next(memory);
}

/* A sanitizer's would not come past malloc. */
__attribute__((visibility("default"))) char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

/* ---- the host's allocator ---- */

static void *allocate(void *self, uint64_t bytes)
{
    (void)self; /* nothing of the test framework here: it allocates, too */
    if (watch.on && must_fail())
        return NULL;
    int on = watch.on;
    watch.on = 0;
    void *memory = calloc(1, (size_t)bytes);
    watch.on = on;
    account(&watch.allocator_bytes, (int64_t)bytes);
    return memory;
}

static void release(void *self, void *memory, uint64_t bytes)
{
    (void)self;
    int on = watch.on;
    watch.on = 0;
    free(memory);
    watch.on = on;
    account(&watch.allocator_bytes, -(int64_t)bytes);
}

static const struct adm_allocator allocator = { NULL, allocate, release };

static void watch_start(uint64_t fail_at, int fail_rest)
{
    watch.calls = 0;
    watch.fail_at = fail_at;
    watch.fail_rest = fail_rest;
    watch.peak = 0;
    watch.on = 1;
}

static max_align_t elsewhere;

/* ---- every allocation fails once ---- */

static const char good[] =
    "{\"version\":\"v\",\"description\":\"d\",\"shard_by\":\"p\",\"metric_"
    "labels\":[\"service\"],\"units\":[\"gpu_ms\"],"
    "\"hard_timeout\":\"9s\",\"rules\":[{\"id\":\"a\",\"type\":"
    "\"concurrency\",\"unit\":\"gpu_ms\",\"partition_by\":[\"c\"],"
    "\"limit\":5,\"lease_ttl\":\"1s\",\"park\":\"1s\",\"match\":{\"m\":["
    "\"x\",\"y*\",\"z\"],\"not\":{\"t\":\"*\"}},"
    "\"overrides\":[{\"when\":{\"t\":\"a\"},\"limit\":9},{\"when\":{\"t\":"
    "\"a\"},\"off\":true},{\"when\":{\"u\":\"b\"},\"off\":true}]},"
    "{\"id\":\"k\",\"type\":\"pressure\",\"signal\":\"s\","
    "\"gt\":0.500000000000000000}],\"on_state_failure\":[{\"id\":\"e\","
    "\"capacity\":1,\"refill\":1,\"per\":\"1s\"}],"
    "\"examples\":[{\"d\":{\"c\":\"1\"},\"expect\":{\"allow\":true,\"rules\":[\"a\"]}}]}";

static const char bad[] =
    "{\"version\":\"v\",\"rules\":[{\"id\":\"a\",\"type\":\"request_cap\",\"limit\":"
    "1000000000000000000000000000000000000000000000000000000000000000000000000}]}";

#if BUILD_HAS_YAML
static const char good_yaml[] =
    "%YAML 1.2\n--- # talk\nversion: \"v\\x31\"\n"
    "shard_by: \"\\u00e9 and more than sixteen bytes\"\n"
    "description: |\n  one line of some length\n\n  another line of some length\n"
    "units: ['gpu_ms', other]\n"
    "rules:\n"
    "- id: a\n  type: concurrency\n  partition_by: [c]\n  limit: 5\n  lease_ttl: 1s\n"
    "  match: {m: [x, y*, 'z'], not: {\"t\": \"*\"}}\n"
    "  overrides:\n  - when: {t: a}\n    off: true\n"
    "...\n";

static const char bad_yaml[] = "version: v\nrules:\n- id: no\n  type: request_cap\n  limit: 1e3\n"
                               "  yes: {a: 010}\n";

static const char broken_yaml[] = "version: v\nrules:\n- id: [a, {b: \"c\"}, &x d\n";
#endif

static adm_status load_policy(const char *text, uint32_t flags, struct adm_policy **policy,
                              struct adm_diags **diags)
{
    struct adm_policy_options options = {
        .size = sizeof options, .flags = flags, .file = "a", .allocator = &allocator
    };
    adm_status status =
        adm_policy_load((struct adm_bytes){ text, strlen(text) }, &options, policy, diags);
    watch.on = 0;
    return status;
}

/* Loads with the n-th allocation failing until none does; the number of failures. */
static uint64_t fail_each(const char *text, uint32_t flags, adm_status expect, int fail_rest)
{
    for (uint64_t n = 1;; n++) {
        struct adm_policy *policy = (struct adm_policy *)&elsewhere;
        struct adm_diags *diags = (struct adm_diags *)&elsewhere;
        watch_start(n, fail_rest);
        adm_status status = load_policy(text, flags, &policy, &diags);
        if (status != ADM_E_NOMEM) {
            ck_assert_int_eq(status, expect);
            ck_assert_uint_lt(watch.calls, n); /* nothing failed in silence */
            if (status == ADM_OK)
                adm_policy_unref(policy);
            adm_diags_free(diags);
            ck_assert_int_eq(watch.allocator_bytes, 0);
            return n - 1;
        }
        ck_assert_ptr_eq(policy, &elsewhere);
        ck_assert_ptr_eq(diags, &elsewhere);
        ck_assert_int_eq(watch.allocator_bytes, 0);
        ck_assert_int_eq(watch.parser_bytes, 0);
        ck_assert_uint_lt(n, 10000);
    }
}

START_TEST(policy_load_survives_every_failing_allocation)
{
    for (int fail_rest = 0; fail_rest < 2; fail_rest++) {
        ck_assert_uint_gt(fail_each(good, 0, ADM_OK, fail_rest), 5);
        ck_assert_uint_gt(fail_each(bad, 0, ADM_E_POLICY_INVALID, fail_rest), 4);
    }
}
END_TEST

#if BUILD_HAS_YAML
/* The parser's own are most of them. */
START_TEST(yaml_load_survives_every_failing_allocation)
{
    for (int fail_rest = 0; fail_rest < 2; fail_rest++) {
        ck_assert_uint_gt(fail_each(good, ADM_POLICY_YAML, ADM_OK, fail_rest), 100);
        ck_assert_uint_gt(fail_each(good_yaml, ADM_POLICY_YAML, ADM_OK, fail_rest), 100);
        ck_assert_uint_gt(fail_each(bad, ADM_POLICY_YAML, ADM_E_POLICY_INVALID, fail_rest), 20);
        ck_assert_uint_gt(fail_each(bad_yaml, ADM_POLICY_YAML, ADM_E_POLICY_INVALID, fail_rest),
                          20);
        ck_assert_uint_gt(fail_each(broken_yaml, ADM_POLICY_YAML, ADM_E_POLICY_INVALID, fail_rest),
                          20);
    }
}
END_TEST
#endif

/* A policy of more than one chunk of every table. */
START_TEST(large_policy_survives_every_failing_allocation_of_the_host)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (uint32_t i = 0; i < 400; i++)
        text_add(&text,
                 "%s{\"id\":\"%u\",\"type\":\"request_cap\",\"limit\":1,\"match\":{\"a\":\"x%u\","
                 "\"b\":\"y%u\"},"
                 "\"overrides\":[{\"when\":{\"c\":\"%u\"},\"off\":true}]}",
                 i == 0 ? "" : ",", i, i / 20, i % 20, i);
    text_add(&text, "]}");
    struct adm_policy *policy = (struct adm_policy *)&elsewhere;
    watch_start(0, 0);
    ck_assert_int_eq(load_policy(text.bytes, 0, &policy, NULL), ADM_OK);
    uint64_t calls = watch.calls;
    adm_policy_unref(policy);
    policy = (struct adm_policy *)&elsewhere;
    ck_assert_uint_gt(calls, 15);
    for (uint64_t n = 1; n <= calls; n++) {
        watch_start(n, 0);
        ck_assert_int_eq(load_policy(text.bytes, 0, &policy, NULL), ADM_E_NOMEM);
        ck_assert_ptr_eq(policy, &elsewhere);
        ck_assert_int_eq(watch.allocator_bytes, 0);
        ck_assert_int_eq(watch.parser_bytes, 0);
    }
    free(text.bytes);
}
END_TEST

static uint64_t fail_each_table(const struct adm_policy *policy, const char *text, uint32_t mode,
                                const struct admi_table *previous)
{
    int64_t before = watch.allocator_bytes;
    for (uint64_t n = 1;; n++) {
        struct admi_table *table = (struct admi_table *)&elsewhere;
        struct adm_diags *diags = (struct adm_diags *)&elsewhere;
        watch_start(n, 0);
        adm_status status = admi_table_load((struct adm_bytes){ text, strlen(text) }, policy,
                                            previous, mode, &allocator, &table, &diags);
        watch.on = 0;
        if (status == ADM_OK) {
            ck_assert_uint_lt(watch.calls, n);
            admi_table_unref(table);
            ck_assert_int_eq(watch.allocator_bytes, before);
            return n - 1;
        }
        ck_assert_int_eq(status, ADM_E_NOMEM);
        ck_assert_ptr_eq(table, &elsewhere);
        ck_assert_ptr_eq(diags, &elsewhere);
        ck_assert_int_eq(watch.allocator_bytes, before);
        ck_assert_int_eq(watch.parser_bytes, 0);
    }
}

START_TEST(table_load_survives_every_failing_allocation)
{
    static const char text[] = "{\"version\":\"t\",\"rule\":\"a\",\"by\":\"c\",\"entries\":{\"x\":{"
                               "\"limit\":5},\"y\":\"off\"}}";
    static const char patch[] =
        "{\"version\":\"t\",\"rule\":\"a\",\"by\":\"c\",\"entries\":{\"x\":null,\"z\":\"off\"}}";
    struct adm_policy *policy = must_load(good);
    struct admi_table *table = NULL;
    struct adm_diags *diags = NULL;
    uint32_t rule = 77;
    ck_assert_uint_gt(fail_each_table(policy, text, ADM_TABLE_REPLACE, NULL), 4);
    ck_assert_int_eq(admi_table_load((struct adm_bytes){ text, strlen(text) }, policy, NULL,
                                     ADM_TABLE_REPLACE, &allocator, &table, &diags),
                     ADM_OK);
    ck_assert_uint_gt(fail_each_table(policy, patch, ADM_TABLE_PATCH, table), 4);
    for (uint64_t n = 1; n <= 2; n++) {
        watch_start(n, 0);
        ck_assert_int_eq(
            admi_table_rule((struct adm_bytes){ text, strlen(text) }, policy, 0, &allocator, &rule),
            ADM_E_NOMEM);
        watch.on = 0;
        ck_assert_uint_eq(rule, 77);
    }
    admi_table_unref(table);
    adm_policy_unref(policy);
    ck_assert_int_eq(watch.allocator_bytes, 0);
}
END_TEST

/* ---- how much ---- */

static void measure_as(const char *what, const struct text *text, uint32_t flags, adm_status expect,
                       int64_t most)
{
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    struct timespec from, to;
    watch_start(0, 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    adm_status status = load_policy(text->bytes, flags, &policy, &diags);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    printf("# %-24s %s %8zu bytes: %5.1f ms, peak %5.2f MiB\n", what,
           flags == ADM_POLICY_YAML ? "YAML" : "JSON", text->length, seconds * 1e3,
           (double)watch.peak / (1 << 20));
    fflush(stdout);
    ck_assert_msg(status == expect, "%s: %d", what, status);
    ck_assert_msg(watch.peak <= most, "%s", what);
    ck_assert_msg(seconds < 5, "%s", what); /* quadratic work would take minutes */
    adm_policy_unref(policy);
    adm_diags_free(diags);
    ck_assert_int_eq(watch.allocator_bytes, 0);
    ck_assert_int_eq(watch.parser_bytes, 0);
}

/* A text in JSON, and read as YAML. */
static void measure(const char *what, const struct text *text, adm_status expect, int64_t most)
{
    measure_as(what, text, 0, expect, most);
#if BUILD_HAS_YAML
    measure_as(what, text, ADM_POLICY_YAML, expect, most);
#endif
}

static void repeat(struct text *text, const char *start, const char *item, uint32_t count,
                   const char *end)
{
    text->length = 0;
    text_add(text, "%s", start);
    for (uint32_t i = 0; i < count && text->length + strlen(item) + strlen(end) + 1 < 1u << 20; i++)
        text_add(text, "%s%s", i == 0 ? "" : ",", item);
    text_add(text, "%s", end);
}

#define MIB (INT64_C(1) << 20)

/* With a rule at the end that lacks everything: by then all the others have been read. */
static const char *end_of(adm_status expect)
{
    return expect == ADM_OK ? "]}" : ",{}]}";
}

static void long_array(adm_status expect, int64_t most)
{
    struct text text = { 0 };
    struct text end = { 0 };
    text_add(&end, "]}}%s", end_of(expect));
    repeat(&text,
           "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1,"
           "\"match\":{\"a\":[",
           "\"aaaaaaa\"", 65520, end.bytes);
    measure("one long array", &text, expect, most);
    free(text.bytes);
    free(end.bytes);
}

static void many_rules(adm_status expect, int64_t most)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (uint32_t i = 0; i < 16380; i++)
        text_add(&text, "%s{\"id\":\"%05u\",\"type\":\"request_cap\",\"limit\":1}",
                 i == 0 ? "" : ",", i);
    text_add(&text, "%s", end_of(expect));
    measure("most rules", &text, expect, most);
    text.length = 0;
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (uint32_t i = 0; i < 9350; i++)
        text_add(&text,
                 "%s{\"id\":\"%05u\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"match\":{"
                 "\"c\":\"%024u\"}}",
                 i == 0 ? "" : ",", i, i);
    text_add(&text, "%s", end_of(expect));
    measure("most rules with match", &text, expect, most);
    free(text.bytes);
}

static void many_overrides(adm_status expect, int64_t most)
{
    static const char start[] = "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"quota\","
                                "\"limit\":1,\"window\":\"day\",\"overrides\":[";
    struct text text = { 0 };
    text_add(&text, "%s", start);
    for (uint32_t i = 0; i < 16376; i++)
        text_add(&text, "%s{\"when\":{\"c\":\"%018u\"},\"limit\":1}", i == 0 ? "" : ",", i);
    text_add(&text, "]}%s", end_of(expect));
    measure("most overrides", &text, expect, most);
    text.length = 0;
    text_add(&text, "%s", start);
    for (uint32_t i = 0; i < 3440; i++) { /* 19 values each */
        text_add(&text, "%s{\"when\":{", i == 0 ? "" : ",");
        for (uint32_t key = 0; key < 16; key++)
            text_add(&text, "%s\"k%u\":\"%u\"", key == 0 ? "" : ",", key, i);
        text_add(&text, "},\"off\":true}");
    }
    text_add(&text, "]}%s", end_of(expect));
    measure("most entries", &text, expect, most);
    ck_assert_uint_gt(text.length, 700000);
    free(text.bytes);
}

static void many_escapes(adm_status expect, int64_t most)
{
    struct text text = { 0 };
    struct text end = { 0 };
    text_add(&end, "]}}%s", end_of(expect));
    repeat(&text,
           "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1,"
           "\"match\":{\"a\":[",
           "\"\\\"\\\"\\n\\t\\\\\\\"\"", 65520, end.bytes);
    measure("strings of escapes", &text, expect, most);
    free(text.bytes);
    free(end.bytes);
}

/* What is refused is refused within 8 MiB, and what was right before it does not matter. */
START_TEST(refusals_stay_within_8_MiB)
{
    struct text text = { 0 };
    repeat(&text, "{\"version\":\"v\",\"rules\":[", "0", 65533, "]}");
    measure("numbers", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "{\"version\":\"v\",\"rules\":[", "\"\"", 65533, "]}");
    measure("strings", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "{\"version\":\"v\",\"rules\":[", "{\"\":\"\"}", 32766, "]}");
    measure("members", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "{\"version\":\"v\",\"rules\":[{", "\"a\":{}", 65532, "}]}");
    measure("one name", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "{\"version\":\"v\",\"rules\":[", "0", 70000, "]}");
    measure("too many values", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 70000, "");
    measure("too deep", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    repeat(&text, "{\"version\":\"v\",\"rules\":[",
           "{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}", 16383, "]}");
    measure("one id", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    text.length = 0;
    text_add(&text, "{\"version\":\"v\"");
    for (uint32_t i = 0; i < 65530; i++)
        text_add(&text, ",\"%05u\":\"a\"", i);
    text_add(&text, "}");
    measure("different names", &text, ADM_E_POLICY_INVALID, 8 * MIB);
    free(text.bytes);
    long_array(ADM_E_POLICY_INVALID, 8 * MIB);
    many_rules(ADM_E_POLICY_INVALID, 8 * MIB);
    many_overrides(ADM_E_POLICY_INVALID, 8 * MIB);
    many_escapes(ADM_E_POLICY_INVALID, 8 * MIB);
}
END_TEST

START_TEST(accepted_policies_stay_within_16_MiB)
{
    long_array(ADM_OK, 16 * MIB);
    many_rules(ADM_OK, 16 * MIB);
    many_overrides(ADM_OK, 16 * MIB);
    many_escapes(ADM_OK, 16 * MIB);
}
END_TEST

#if BUILD_HAS_YAML
static void measure_yaml(const char *what, const char *start, const char *item, uint32_t count,
                         const char *end, adm_status expect)
{
    struct text text = { 0 }, items = { 0 };
    for (uint32_t i = 0; i < 60; i++)
        text_add(&items, "%s", item);
    text_add(&text, "version: v\n%s", start);
    for (uint32_t i = 0;
         i < count / 60 && text.length + items.length + strlen(end) < (size_t)1 << 20; i++)
        text_add(&text, "%s", items.bytes);
    free(items.bytes);
    text_add(&text, "%s", end);
    measure_as(what, &text, ADM_POLICY_YAML, expect, (expect == ADM_OK ? 16 : 8) * MIB);
    free(text.bytes);
}

/* Texts that only YAML has: in JSON one of their bytes is up to three. */
static void measure_yaml_texts(const char *rules, adm_status expect)
{
    struct text end = { 0 };
    text_add(&end, "\"\n%s", rules);
    measure_yaml("one long string", "description: \"", "\\a", UINT32_MAX, end.bytes, expect);
    measure_yaml("lines of a block", "description: |\n", "\n", UINT32_MAX, rules, expect);
    measure_yaml("lines of words", "description: |\n", "  a\n", UINT32_MAX, rules, expect);
    measure_yaml("folded lines", "description: >-\n", "  a\n", UINT32_MAX, rules, expect);
    measure_yaml("comments", "", "# no\n", UINT32_MAX, rules, expect);
    measure_yaml("blanks", "", " \n", UINT32_MAX, rules, expect);
    end.length = 0;
    text_add(&end, "]}}\n%s", expect == ADM_OK ? "" : "- {}\n");
    measure_yaml("many strings", "rules:\n- {id: r, type: request_cap, limit: 1, match: {a: [",
                 "\"\\a\\a\\a\\a\\a\\a\\a\",", 65520, end.bytes, expect);
    measure_yaml("many names", "rules:\n- ", "{\"\\a\\a\\a\":\"\\a\\a\\a\"}\n- ", 65520, "{}\n",
                 ADM_E_POLICY_INVALID);
    free(end.bytes);
}

START_TEST(yaml_texts_stay_within_the_same_bounds)
{
    measure_yaml_texts("rules:\n- {id: r, type: request_cap, limit: 1}\n", ADM_OK);
    measure_yaml_texts("rules:\n- {id: r, type: request_cap, limit: 1}\n- {}\n",
                       ADM_E_POLICY_INVALID);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("policy-memory");
    TCase *cases = tcase_create("policy-memory");
    tcase_set_timeout(cases, 240);
    tcase_add_test(cases, policy_load_survives_every_failing_allocation);
#if BUILD_HAS_YAML
    tcase_add_test(cases, yaml_load_survives_every_failing_allocation);
#endif
    tcase_add_test(cases, large_policy_survives_every_failing_allocation_of_the_host);
    tcase_add_test(cases, table_load_survives_every_failing_allocation);
    tcase_add_test(cases, refusals_stay_within_8_MiB);
    tcase_add_test(cases, accepted_policies_stay_within_16_MiB);
#if BUILD_HAS_YAML
    tcase_add_test(cases, yaml_texts_stay_within_the_same_bounds);
#endif
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
