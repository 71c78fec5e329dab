/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damaged documents, a fixed number from fixed seeds: each is accepted or refused with a place, and
 * nothing breaks.
 */
#include "policy/ruleset.h"
#include "policy_support.h"

static const char *const seeds[] = {
    "{\"version\":\"2026-12-01.1\",\"description\":\"d\",\"unmatched\":\"deny\",\"max_clock_skew\":"
    "\"10s\","
    "\"shard_by\":\"pool\",\"hard_timeout\":\"60s\",\"metric_labels\":[\"service\"],\"units\":["
    "\"gpu_ms\"],\"rules\":["
    "{\"id\":\"a\",\"type\":\"concurrency\",\"partition_by\":[\"pool\"],\"limit\":64,\"lease_ttl\":"
    "\"90s\",\"fraction\":0.5},"
    "{\"id\":\"b\",\"type\":\"token_bucket\",\"unit\":\"requests\",\"capacity\":50,\"refill\":25,"
    "\"per\":\"1s\","
    "\"max_partitions\":100000,\"overrides\":[{\"when\":{\"tier\":\"internal\"},\"off\":true},"
    "{\"when\":{\"c\":\"42\"},\"capacity\":500}]},"
    "{\"id\":\"c\",\"type\":\"request_cap\",\"match\":{\"op\":[\"chat\",\"m\\u00e9\\ud83d\\ude00*"
    "\"]},\"limit\":131072}]}",
    "{\"version\":\"v\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"match\":{\"model\":\"*\","
    "\"not\":{\"x\":\"y\"}},"
    "\"signal\":\"kv\",\"gt\":0.90,\"max_age\":\"15s\"},{\"id\":\"q\",\"type\":\"quota\",\"unit\":"
    "\"tokens\","
    "\"limit\":50000000,\"window\":\"day\",\"settle\":\"exact\",\"mode\":\"shadow\"}],\"on_state_"
    "failure\":[{\"id\":\"e\","
    "\"match\":{\"op\":\"checkout\"},\"capacity\":5,\"refill\":5,\"per\":\"1s\"}],\"examples\":[{"
    "\"d\":{\"c\":\"1\"},"
    "\"amounts\":{\"images\":3},\"expect\":{\"allow\":true,\"rules\":[\"q\"],\"retry_after_ms\":"
    "null}}]}",
};

static const char *const table_seed =
    "{\"version\":\"t\",\"rule\":\"b\",\"by\":\"c\",\"entries\":{\"x\":{\"capacity\":5,\"per\":"
    "\"2s\"},\"y\":\"off\",\"z\":null}}";

/* What texts are made of, and what breaks them. */
static const char *const pieces[] = {
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "-",
    "0",
    "1e9",
    ".",
    "null",
    "true",
    "\\u0000",
    "\\ud800",
    "\xFF",
    "\xC3",
    "\xED\xA0\x80",
    "\t",
    " ",
    "\n",
    "not",
    "*",
    "off",
    "\"\"",
    "999999999999999999999",
    "{}",
    "[[[[[[[[",
    "id",
    "1s",
};

struct damaged {
    char bytes[4096];
    size_t length;
};

static void replace(struct damaged *text, size_t at, size_t cut, const char *with, size_t length)
{
    if (text->length - cut + length > sizeof text->bytes)
        return;
    memmove(text->bytes + at + length, text->bytes + at + cut, text->length - at - cut);
    memmove(text->bytes + at, with, length);
    text->length = text->length - cut + length;
}

static void damage(struct damaged *text, uint64_t *random)
{
    size_t at = below(random, (uint32_t)text->length + 1);
    size_t rest = text->length - at;
    const char *piece = pieces[below(random, sizeof pieces / sizeof pieces[0])];
    char span[32], byte = (char)below(random, 256);
    size_t length = below(random, 24);
    switch (below(random, 6)) {
    case 0: /* flip a byte */
        replace(text, at, rest > 0, &byte, 1);
        break;
    case 1: /* insert a piece */
        replace(text, at, 0, piece, strlen(piece));
        break;
    case 2: /* in place of what was there */
        replace(text, at, length < rest ? length : rest, piece, strlen(piece));
        break;
    case 3: /* cut out */
        replace(text, at, length < rest ? length : rest, "", 0);
        break;
    case 4: /* the same span once more, elsewhere */
        if (length < rest) {
            memcpy(span, text->bytes + at, length);
            replace(text, below(random, (uint32_t)text->length + 1), 0, span, length);
        }
        break;
    default: /* cut off */
        if (below(random, 8) == 0)
            text->length = at;
        break;
    }
}

static void damage_seed(struct damaged *text, const char *seed, uint64_t *random)
{
    text->length = strlen(seed);
    memcpy(text->bytes, seed, text->length);
    for (uint32_t n = 1 + below(random, 3); n > 0; n--)
        damage(text, random);
}

/* An error is among the findings exactly when it was refused; each finding has a place. */
static void check_findings(const struct adm_diags *diags, bool refused, size_t length)
{
    uint64_t errors = 0;
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = diag_at(diags, i);
        errors += diag.severity == ADM_SEVERITY_ERROR;
        if (diag.message[0] == '\0' || (length > 0 && (diag.line == 0 || diag.column == 0)))
            ck_abort_msg("a finding without text or place");
        if (diag.column > length + 1 || strlen(diag.pointer) > 511)
            ck_abort_msg("a place outside of the text");
    }
    ck_assert_int_eq(errors > 0, refused);
}

START_TEST(damaged_policies)
{
    uint64_t random = 1, accepted = 0, refused = 0;
    for (uint32_t i = 0; i < 30000; i++) {
        struct damaged text;
        damage_seed(&text, seeds[i % 2], &random);
        struct loaded loaded = load_bytes(text.bytes, text.length);
        if (loaded.status != ADM_OK && loaded.status != ADM_E_POLICY_INVALID)
            ck_abort_msg("%d: %.*s", loaded.status, (int)text.length, text.bytes);
        check_findings(loaded.diags, loaded.status != ADM_OK, text.length);
        if (loaded.status == ADM_OK) {
            struct loaded again = load_bytes(text.bytes, text.length);
            ck_assert_int_eq(again.status, ADM_OK);
            ck_assert_int_eq(memcmp(again.policy->digest, loaded.policy->digest, 16), 0);
            loaded_free(&again);
            accepted++;
        } else {
            refused++;
        }
        loaded_free(&loaded);
    }
    ck_assert_uint_gt(accepted, 500); /* the damage is neither always fatal nor never */
    ck_assert_uint_gt(refused, 10000);
}
END_TEST

START_TEST(damaged_tables)
{
    uint64_t random = 2, accepted = 0, refused = 0;
    struct adm_policy *policy = must_load(seeds[0]);
    for (uint32_t i = 0; i < 15000; i++) {
        struct damaged text;
        struct admi_table *table = NULL;
        struct adm_diags *diags = NULL;
        uint32_t rule = 77;
        damage_seed(&text, table_seed, &random);
        char *exact = malloc(text.length + 1);
        memcpy(exact, text.bytes, text.length);
        struct adm_bytes bytes = { exact, text.length };
        adm_status status = admi_table_load(bytes, policy, NULL, i % 2, NULL, &table, &diags);
        ck_assert_int_eq(admi_table_rule(bytes, policy, 0, NULL, &rule), ADM_OK);
        if (status == ADM_OK) {
            ck_assert_uint_eq(rule, admi_policy_rule(policy, table->rule));
            accepted++;
        } else if (status == ADM_E_POLICY_INVALID) {
            check_findings(diags, true, text.length);
            refused++;
        } else {
            ck_assert_int_eq(status, ADM_E_UNKNOWN_RULE);
            ck_assert_uint_eq(rule, UINT32_MAX);
        }
        admi_table_unref(table);
        adm_diags_free(diags);
        free(exact);
    }
    ck_assert_uint_gt(accepted, 500);
    ck_assert_uint_gt(refused, 5000);
    adm_policy_unref(policy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-mutation");
    TCase *cases = tcase_create("policy-mutation");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, damaged_policies);
    tcase_add_test(cases, damaged_tables);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
