/* SPDX-License-Identifier: Apache-2.0 */
/* What lint finds, and, for each finding, what looks like it and is none. */
#include "policy_support.h"

#define RULES(rules)       "{\"version\":\"v1\",\"rules\":[" rules "]}"
#define BUCKET(more)       "{\"id\":\"b\",\"type\":\"token_bucket\",\"per\":\"1s\"," more "}"
#define PLAIN              "\"capacity\":10,\"refill\":1"
#define CAP(more)          "{\"id\":\"c\",\"type\":\"request_cap\"," more "}"
#define OTHER(more)        "{\"id\":\"o\",\"type\":\"token_bucket\",\"per\":\"1s\"," more "}"
#define QUOTA(more)        "{\"id\":\"q\",\"type\":\"quota\",\"window\":\"day\",\"limit\":9," more "}"
#define HELD(more)         "\"type\":\"concurrency\",\"limit\":" more
#define WHEN(values, more) "{\"when\":{\"a\":" values "}," more "}"

struct row {
    const char *text, *name, *pointer; /* name NULL: nothing is found */
};

static const struct row rows[] = {
    { RULES(BUCKET(PLAIN)), NULL, NULL },
    /* a partition key that any value will do for */
    { RULES(BUCKET("\"match\":{\"a\":\"*\"},\"partition_by\":[\"a\"]," PLAIN)),
      "optional_partition_key", "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":\"x*\"},\"partition_by\":[\"a\"]," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"*\"},\"partition_by\":[\"b\"]," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"*\"}," PLAIN)), NULL, NULL },
    /* room for nothing */
    { RULES(BUCKET("\"capacity\":0,\"refill\":1")), "nothing_fits", "/rules/0/capacity" },
    { RULES(CAP("\"limit\":0")), "nothing_fits", "/rules/0/limit" },
    { RULES(BUCKET("\"capacity\":0,\"refill\":0,"
                   "\"overrides\":[{\"when\":{\"a\":\"x\"},\"capacity\":5}]")),
      NULL, NULL },
    { RULES(BUCKET("\"capacity\":10,\"refill\":0")), "never_refills", "/rules/0/refill" },
    /* below a cap */
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":11")), "below_cap", "/rules/0/capacity" },
    { RULES(CAP("\"limit\":11") "," BUCKET("\"match\":{\"a\":\"x\"}," PLAIN)), "below_cap",
      "/rules/1/capacity" },
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":10")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":11,\"unit\":\"tokens\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":11,\"match\":{\"a\":\"x\"}")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":11,\"mode\":\"shadow\",\"description\":\"d\"")), NULL,
      NULL },
    { RULES(BUCKET("\"charge\":\"completion\"," PLAIN) "," CAP("\"limit\":11")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," CAP("\"limit\":11") ",{\"id\":\"d\",\"type\":\"request_cap\","
                                                  "\"limit\":5}"),
      "never_denies", "/rules/1/limit" },
    /* below a cap, with overrides */
    { RULES(BUCKET(PLAIN ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":12") "]") "," CAP(
          "\"limit\":13")),
      "below_cap", "/rules/0/overrides/0/capacity" },
    { RULES(BUCKET(PLAIN
                   ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":5") "]") "," CAP("\"limit\":13")),
      "below_cap", "/rules/0/capacity" },
    { RULES(BUCKET(PLAIN ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":13") "]") "," CAP(
          "\"limit\":13")),
      NULL, NULL },
    { RULES(BUCKET(PLAIN
                   ",\"overrides\":[" WHEN("\"x\"", "\"off\":true") "]") "," CAP("\"limit\":13")),
      NULL, NULL },
    { RULES(BUCKET("\"capacity\":50,\"refill\":1,\"overrides\":[" WHEN(
          "\"x\"", "\"capacity\":5") "]") "," CAP("\"limit\":13")),
      NULL, NULL },
    { RULES(BUCKET("\"capacity\":50,\"refill\":1,\"overrides\":[" WHEN(
          "\"x\"", "\"capacity\":5") "]") "," CAP("\"limit\":13,\"match\":{\"a\":\"x\"}")),
      "below_cap", "/rules/0/overrides/0/capacity" },
    { RULES(BUCKET("\"capacity\":50,\"refill\":1,\"overrides\":[" WHEN(
          "\"x\"", "\"capacity\":0") "]") "," CAP("\"limit\":13,\"match\":{\"a\":\"x\"}")),
      NULL, NULL },
    { RULES(BUCKET("\"capacity\":50,\"refill\":1,\"overrides\":[" WHEN(
          "[\"x\",\"y\"]", "\"capacity\":5") "]") "," CAP("\"limit\":13,\"match\":{\"a\":\"x\"}")),
      NULL, NULL },
    /* of two rules one never decides */
    { RULES(BUCKET(PLAIN) "," OTHER("\"capacity\":20,\"refill\":1")), "never_denies",
      "/rules/1/capacity" },
    { RULES(OTHER("\"capacity\":20,\"refill\":1") "," BUCKET(PLAIN)), "never_denies",
      "/rules/0/capacity" },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN)), "never_denies", "/rules/1/capacity" },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"match\":{\"a\":\"x\"}")), "never_denies",
      "/rules/1/capacity" },
    { RULES(BUCKET(PLAIN ",\"partition_by\":[\"a\"]") "," OTHER(PLAIN ",\"partition_by\":[\"a\"]")),
      "never_denies", "/rules/1/capacity" },
    { RULES("{\"id\":\"h\",\"lease_ttl\":\"9s\"," HELD(
          "3") "},{\"id\":\"i\",\"lease_ttl\":\"9s\"," HELD("4") "}"),
      "never_denies", "/rules/1/limit" },
    { RULES("{\"id\":\"h\",\"lease_ttl\":\"9s\"," HELD(
          "3") "},{\"id\":\"i\",\"lease_ttl\":\"8s\"," HELD("4") "}"),
      NULL, NULL },
    { RULES(CAP("\"limit\":5") ",{\"id\":\"d\",\"type\":\"request_cap\",\"limit\":6,"
                               "\"match\":{\"a\":\"x\"}}"),
      "never_denies", "/rules/1/limit" },
    { RULES(CAP("\"limit\":5,\"match\":{\"a\":\"x\"}") ",{\"id\":\"d\",\"type\":\"request_cap\","
                                                       "\"limit\":6}"),
      NULL, NULL },
    /* burst and rate; ceilings of tables; other units, windows, keys, modes */
    { RULES(BUCKET(PLAIN) "," OTHER("\"capacity\":5,\"refill\":2")), NULL, NULL },
    { RULES(BUCKET(PLAIN) ",{\"id\":\"m\",\"type\":\"token_bucket\",\"per\":\"1m\","
                          "\"capacity\":100,\"refill\":20}"),
      NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"partition_by\":[\"a\"]") "," OTHER(
          "\"capacity\":20,\"refill\":1,\"partition_by\":[\"a\"]")),
      NULL, NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"partition_by\":[\"a\"]")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"unit\":\"requests\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"mode\":\"shadow\",\"description\":\"d\"")), NULL,
      NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"charge\":\"completion\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"settle\":\"exact\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN) "," OTHER(PLAIN ",\"max_partitions\":5,\"partition_by\":[\"a\"]")), NULL,
      NULL },
    { RULES(BUCKET(PLAIN ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":30") "]") "," OTHER(
          "\"capacity\":20,\"refill\":1")),
      NULL, NULL },
    { RULES(QUOTA("\"unit\":\"requests\"") ",{\"id\":\"m\",\"type\":\"quota\",\"window\":\"month\","
                                           "\"limit\":90,\"unit\":\"requests\"}"),
      NULL, NULL },
    /* quotas of what is not known yet */
    { RULES(QUOTA("\"unit\":\"tokens\"")), "estimated_quota", "/rules/0/unit" },
    { RULES(QUOTA("\"unit\":\"output_tokens\",\"settle\":\"none\"")), "estimated_quota",
      "/rules/0/unit" },
    { RULES(QUOTA("\"unit\":\"tokens\",\"settle\":\"exact\"")), NULL, NULL },
    { RULES(QUOTA("\"unit\":\"input_tokens\"")), NULL, NULL },
    { RULES(QUOTA("\"unit\":\"requests\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"unit\":\"output_tokens\"")), NULL, NULL },
    /* shadow rules */
    { RULES(BUCKET(PLAIN ",\"mode\":\"shadow\"")), "unexplained_shadow", "/rules/0/mode" },
    { RULES(BUCKET(PLAIN ",\"mode\":\"shadow\",\"description\":\"until June\"")), NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"mode\":\"enforce\"")), NULL, NULL },
    /* a not that leaves nothing */
    { RULES(BUCKET("\"match\":{\"a\":\"xy\",\"not\":{\"a\":\"x*\"}}," PLAIN)), "contradiction",
      "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":[\"x\",\"y\"],\"not\":{\"a\":[\"y\",\"x\"]}}," PLAIN)),
      "contradiction", "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":\"x*\",\"not\":{\"a\":\"*\"}}," PLAIN)), "contradiction",
      "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":\"x*\",\"not\":{\"a\":\"xy\"}}," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":[\"x\",\"y\"],\"not\":{\"a\":\"x\"}}," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"x\",\"not\":{\"b\":\"x\"}}," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"x\",\"not\":{\"a\":\"x\",\"b\":\"y\"}}," PLAIN)), NULL,
      NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"x\",\"not\":{\"a\":\"xy*\"}}," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":[\"xy\",\"xz\"],\"not\":{\"a\":\"x*\"}}," PLAIN)),
      "contradiction", "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":[\"xy\",\"z\"],\"not\":{\"a\":\"x*\"}}," PLAIN)), NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":[\"xy\",\"xz\"],\"b\":\"1\","
                   "\"not\":{\"a\":\"x*\",\"b\":[\"1\",\"2\"]}}," PLAIN)),
      "contradiction", "/rules/0/match" },
    { RULES(BUCKET("\"match\":{\"a\":[\"xy\",\"xz\"],\"b\":\"1*\","
                   "\"not\":{\"a\":\"x*\",\"b\":[\"1\",\"2\"]}}," PLAIN)),
      NULL, NULL },
    /* overrides that no request of the rule can hold for */
    { RULES(BUCKET("\"match\":{\"a\":\"y*\"}," PLAIN
                   ",\"overrides\":[" WHEN("[\"x\",\"z\"]", "\"capacity\":5") "]")),
      "contradiction", "/rules/0/overrides/0/when" },
    { RULES(BUCKET("\"match\":{\"not\":{\"a\":\"x*\"}}," PLAIN
                   ",\"overrides\":[" WHEN("[\"x\",\"xz\"]", "\"capacity\":5") "]")),
      "contradiction", "/rules/0/overrides/0/when" },
    { RULES(BUCKET("\"match\":{\"a\":\"y*\"}," PLAIN
                   ",\"overrides\":[" WHEN("[\"x\",\"yz\"]", "\"capacity\":5") "]")),
      NULL, NULL },
    { RULES(BUCKET("\"match\":{\"a\":\"yz\"}," PLAIN
                   ",\"overrides\":[" WHEN("\"y*\"", "\"capacity\":5") "]")),
      NULL, NULL },
    { RULES(BUCKET("\"match\":{\"b\":\"1\"}," PLAIN
                   ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":5") "]")),
      NULL, NULL },
    { RULES(BUCKET("\"match\":{\"not\":{\"a\":\"x\"}}," PLAIN
                   ",\"overrides\":[" WHEN("\"x*\"", "\"capacity\":5") "]")),
      NULL, NULL },
    { RULES(BUCKET("\"match\":{\"not\":{\"a\":\"x\",\"b\":\"1\"}}," PLAIN
                   ",\"overrides\":[" WHEN("\"x\"", "\"capacity\":5") "]")),
      NULL, NULL },
    /* overrides that others cover */
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{\"a\":\"x*\"},\"capacity\":1},"
                         "{\"when\":{\"a\":\"xy\",\"b\":\"z\"},\"capacity\":2}]")),
      "covered_override", "/rules/0/overrides/1/when" },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{\"a\":[\"x\",\"y\"]},\"capacity\":1},"
                         "{\"when\":{\"a\":\"y\"},\"capacity\":2}]")),
      "covered_override", "/rules/0/overrides/1/when" },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{\"a\":\"xy\"},\"capacity\":1},"
                         "{\"when\":{\"a\":\"x*\"},\"capacity\":2}]")),
      NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{\"a\":\"x\",\"b\":\"z\"},\"capacity\":1},"
                         "{\"when\":{\"a\":\"x\"},\"capacity\":2}]")),
      NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{\"not\":{\"a\":\"x\"}},\"capacity\":1},"
                         "{\"when\":{\"a\":\"x\"},\"capacity\":2}]")),
      NULL, NULL },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{},\"off\":true}]")), "always_off",
      "/rules/0/overrides/0/when" },
    { RULES(BUCKET(PLAIN ",\"overrides\":[{\"when\":{},\"capacity\":5}]")), NULL, NULL },
};

static struct loaded load(const char *text, uint32_t flags)
{
    struct loaded loaded = { ADM_OK, NULL, NULL };
    struct adm_policy_options options = { .size = sizeof options, .flags = flags };
    loaded.status = adm_policy_load(adm_str(text), &options, &loaded.policy, &loaded.diags);
    return loaded;
}

START_TEST(what_is_suspicious_and_what_only_looks_like_it)
{
    const struct row *row = &rows[_i];
    struct loaded loaded = load(row->text, ADM_POLICY_LINT);
    ck_assert_int_eq(loaded.status, ADM_OK);
    if (row->name == NULL) {
        ck_assert_msg(loaded.diags == NULL, "%s: %s", row->text,
                      loaded.diags == NULL ? "" : diag_at(loaded.diags, 0).name);
    } else {
        ck_assert_msg(loaded.diags != NULL, "%s: nothing is found", row->text);
        ck_assert_str_eq(diag_at(loaded.diags, 0).name, row->name);
        ck_assert_str_eq(diag_at(loaded.diags, 0).pointer, row->pointer);
        ck_assert_uint_eq(diag_at(loaded.diags, 0).severity, ADM_SEVERITY_WARNING);
        ck_assert_uint_eq(count_named(loaded.diags, row->name), 1);
    }
    loaded_free(&loaded);
    loaded = load(row->text, 0); /* who does not ask is not told */
    ck_assert_int_eq(loaded.status, ADM_OK);
    ck_assert_ptr_null(loaded.diags);
    loaded_free(&loaded);
}
END_TEST

START_TEST(a_flag_that_does_not_exist_is_refused)
{
    struct loaded loaded = load(RULES(BUCKET(PLAIN)), 4u | ADM_POLICY_LINT);
    ck_assert_int_eq(loaded.status, ADM_E_CALLER_NEWER);
    ck_assert_ptr_null(loaded.policy);
}
END_TEST

START_TEST(errors_come_without_suspicions)
{
    struct loaded loaded = load(RULES(BUCKET("\"capacity\":0,\"refill\":-1")), ADM_POLICY_LINT);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(count_named(loaded.diags, "nothing_fits"), 0);
    loaded_free(&loaded);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-lint");
    TCase *cases = tcase_create("policy-lint");
    tcase_add_loop_test(cases, what_is_suspicious_and_what_only_looks_like_it, 0,
                        (int)(sizeof rows / sizeof rows[0]));
    tcase_add_test(cases, a_flag_that_does_not_exist_is_refused);
    tcase_add_test(cases, errors_come_without_suspicions);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
