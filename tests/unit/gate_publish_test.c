/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and limit tables in force: whole or not at all, and nothing is given away (law L9). */
#include "gate_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE(capacity)                                                                             \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],\"capacity\":" capacity   \
    ",\"refill\":1,\"per\":\"1h\"}"
#define HELD                                                                                       \
    "{\"id\":\"held\",\"type\":\"concurrency\",\"partition_by\":[\"k\"],\"limit\":9,"              \
    "\"lease_ttl\":\"60s\"}"
#define POLICY(version, rules) "{\"version\":\"" version "\",\"rules\":[" rules "]}"
#define TABLE(version, entries)                                                                    \
    "{\"version\":\"" version "\",\"rule\":\"rate\",\"by\":\"k\",\"entries\":{" entries "}}"

static struct fixture f;

static void version_is(const char *expect)
{
    char version[65];

    ck_assert_int_eq(adm_gate_version(f.gate, version, sizeof version), ADM_OK);
    ck_assert_str_eq(version, expect);
    ck_assert_str_eq(decide(&f, "k=nobody", 1000000).policy_version, expect);
}

static adm_status put_table(const char *text, uint32_t mode)
{
    struct adm_diags *diags = NULL;
    adm_status status = adm_gate_put_table(f.gate, adm_str(text), mode, &diags);

    ck_assert(status != ADM_E_POLICY_INVALID || adm_diags_count(diags) > 0);
    adm_diags_free(diags);
    return status;
}

static void table_is(const char *expect)
{
    ck_assert_str_eq(decide(&f, "k=nobody", 1000000).table_version, expect);
}

static adm_status rollback(const char *version)
{
    return adm_gate_rollback(f.gate, adm_str(version));
}

START_TEST(L9_levels_and_leases_live_through_publish_and_rollback)
{
    struct adm_id lease;

    fixture_open(&f, POLICY("v1", RATE("100") "," HELD));
    lease = allow(&f, "k=a", 4);
    publish(&f, POLICY("v2", RATE("50") "," HELD));
    version_is("v2");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 50); /* lowered: clamped */
    publish(&f, POLICY("v3", RATE("200") "," HELD));
    ck_assert_int_eq(level(&f, "rate", "k=a"), 50); /* raised: no gift */
    ck_assert_int_eq(level(&f, "held", "k=a"), 4);
    ck_assert_int_eq(rollback("v1"), ADM_OK);
    version_is("v1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 50);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(level(&f, "held", "k=a"), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(B089_a_rule_that_goes_and_comes_back_is_not_refilled)
{
    fixture_open(&f, POLICY("v1", RATE("100") "," HELD));
    (void)allow(&f, "k=a", 9);
    publish(&f, POLICY("v2", HELD));
    publish(&f, POLICY("v3", RATE("100") "," HELD));
    ck_assert_int_eq(level(&f, "rate", "k=a"), 91);
    fixture_close(&f);
}
END_TEST

START_TEST(B088_a_new_limit_counts_at_once)
{
    fixture_open(&f, POLICY("v1", HELD));
    (void)allow(&f, "k=a", 9);
    deny(&f, "k=a", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    publish(&f, "{\"version\":\"v2\",\"rules\":[{\"id\":\"held\",\"type\":\"concurrency\","
                "\"partition_by\":[\"k\"],\"limit\":10,\"lease_ttl\":\"60s\"}]}");
    (void)allow(&f, "k=a", 1);
    deny(&f, "k=a", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_a_version_with_other_content_is_refused_and_the_same_is_welcome)
{
    fixture_open(&f, POLICY("v1", RATE("100")));
    (void)allow(&f, "k=a", 7);
    ck_assert_int_eq(try_publish(&f, POLICY("v1", RATE("99"))), ADM_E_VERSION_CONFLICT);
    version_is("v1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 93);
    ck_assert_int_eq(try_publish(&f, " " POLICY("v1", RATE("100")) "\n"), ADM_OK);
    publish(&f, POLICY("v2", RATE("90")));
    ck_assert_int_eq(try_publish(&f, POLICY("v1", RATE("99"))), ADM_E_VERSION_CONFLICT);
    version_is("v2");
    ck_assert_uint_eq(metric(&f, "admit_policy_changes_total{kind=\"refused\"}"), 2);
    fixture_close(&f);
}
END_TEST

static void publish_numbered(uint32_t i)
{
    char text[512];

    (void)snprintf(text, sizeof text, POLICY("n%u", RATE("%u")), i, 1000 + i);
    publish(&f, text);
}

START_TEST(L9_eight_versions_are_kept_and_the_ninth_is_forgotten)
{
    char version[16];

    fixture_open(&f, POLICY("v1", RATE("100")));
    for (uint32_t i = 1; i <= 8; i++)
        publish_numbered(i);
    ck_assert_int_eq(rollback("v1"), ADM_E_UNKNOWN_VERSION);
    ck_assert_int_eq(rollback(""), ADM_E_UNKNOWN_VERSION);
    ck_assert_int_eq(rollback("n"), ADM_E_UNKNOWN_VERSION);
    version_is("n8");
    for (uint32_t i = 1; i <= 8; i++) {
        (void)snprintf(version, sizeof version, "n%u", i);
        ck_assert_int_eq(rollback(version), ADM_OK);
        version_is(version);
    }
    /* A rollback does not make a version younger. */
    ck_assert_int_eq(rollback("n1"), ADM_OK);
    publish(&f, POLICY("v1", RATE("77"))); /* no longer kept: the version may mean something new */
    ck_assert_int_eq(rollback("n1"), ADM_E_UNKNOWN_VERSION);
    ck_assert_int_eq(rollback("n2"), ADM_OK);
    fixture_close(&f);
}
END_TEST

/* ---- refused ---- */

START_TEST(L5_a_publish_without_room_is_refused_and_changes_nothing)
{
    char rules[4096], *at = rules;
    struct adm_decision before, after;

    fixture_init(&f);
    f.plain.classes_max = 8;
    fixture_start(&f, POLICY("v1", RATE("100")));
    (void)allow(&f, "k=a", 7);
    before = decide(&f, "k=a", 94);
    at += sprintf(at, "{\"version\":\"v2\",\"rules\":[");
    for (uint32_t i = 0; i < 9; i++)
        at += sprintf(at,
                      "%s{\"id\":\"r%u\",\"type\":\"token_bucket\",\"capacity\":5,\"refill\":1,"
                      "\"per\":\"1s\"}",
                      i == 0 ? "" : ",", i);
    (void)sprintf(at, "]}");
    ck_assert_int_eq(try_publish(&f, rules), ADM_E_POLICY_NO_ROOM);
    version_is("v1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 93);
    after = decide(&f, "k=a", 94);
    before.id = after.id;
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_int_eq(rollback("v2"), ADM_E_UNKNOWN_VERSION);
    publish(&f, POLICY("v2", RATE("90"))); /* v2 was never kept: no conflict */
    fixture_close(&f);
}
END_TEST

START_TEST(L5_a_table_without_room_is_refused_and_changes_nothing)
{
    char text[4096], *at = text;

    fixture_init(&f);
    f.plain.classes_max = 8;
    fixture_start(&f, POLICY("v1", RATE("100")));
    ck_assert_int_eq(put_table(TABLE("t1", "\"a\":{\"capacity\":5}"), ADM_TABLE_REPLACE), ADM_OK);
    at += sprintf(at, "{\"version\":\"t2\",\"rule\":\"rate\",\"by\":\"k\",\"entries\":{");
    for (uint32_t i = 0; i < 20; i++)
        at += sprintf(at, "%s\"e%u\":{\"capacity\":5}", i == 0 ? "" : ",", i);
    (void)sprintf(at, "}}");
    ck_assert_int_eq(put_table(text, ADM_TABLE_REPLACE), ADM_E_POLICY_NO_ROOM);
    table_is("t1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 5);
    ck_assert_int_eq(level(&f, "rate", "k=e1"), 100);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_a_backend_that_refuses_the_classes_changes_nothing)
{
    static const adm_status statuses[] = { ADM_E_BACKEND_UNAVAILABLE, ADM_E_BACKEND_UNKNOWN,
                                           ADM_E_BACKEND_FULL, ADM_E_BACKEND_STALE };

    fixture_open(&f, POLICY("v1", RATE("100")));
    (void)allow(&f, "k=a", 7);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        f.relay.fail_kind = ADM_OP_PUT_CLASSES;
        f.relay.fail_count = 3;
        f.relay.fail_status = statuses[i];
        ck_assert_int_eq(try_publish(&f, POLICY("v2", RATE("50"))),
                         statuses[i] == ADM_E_BACKEND_FULL ? ADM_E_POLICY_NO_ROOM : statuses[i]);
        ck_assert_int_eq(rollback("v1"),
                         statuses[i] == ADM_E_BACKEND_FULL ? ADM_E_POLICY_NO_ROOM : statuses[i]);
        ck_assert_int_eq(put_table(TABLE("t1", ""), ADM_TABLE_REPLACE),
                         statuses[i] == ADM_E_BACKEND_FULL ? ADM_E_POLICY_NO_ROOM : statuses[i]);
        ck_assert_uint_eq(f.relay.fail_count, 0);
        version_is("v1");
        table_is("");
        ck_assert_int_eq(level(&f, "rate", "k=a"), 93);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(L4_a_refused_publish_does_not_bring_its_own_skew)
{
    fixture_open(&f, "{\"version\":\"v1\",\"max_clock_skew\":\"10s\",\"rules\":[{\"id\":\"rate\","
                     "\"type\":\"token_bucket\",\"capacity\":10,\"refill\":1,\"per\":\"1s\"}]}");
    (void)allow(&f, "", 10);
    f.relay.fail_kind = ADM_OP_PUT_CLASSES;
    f.relay.fail_count = 1;
    ck_assert_int_eq(try_publish(&f, "{\"version\":\"v2\",\"max_clock_skew\":\"1ms\",\"rules\":[{"
                                     "\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":10,"
                                     "\"refill\":1,\"per\":\"1s\"}]}"),
                     ADM_E_BACKEND_UNAVAILABLE);
    f.clock.time.mono_ns -= 5 * SEC; /* within the old skew: stands still */
    ck_assert_int_eq(level(&f, "rate", ""), 0);
    advance(&f, 6 * SEC); /* one beyond the largest seen */
    ck_assert_int_eq(level(&f, "rate", ""), 1);
    fixture_close(&f);
}
END_TEST

/* ---- tables ---- */

START_TEST(L9_a_table_is_replaced_and_patched_without_a_publish)
{
    fixture_open(&f, POLICY("v1", RATE("100")));
    (void)allow(&f, "k=a", 7);
    table_is("");
    ck_assert_int_eq(put_table(TABLE("t1", "\"a\":{\"capacity\":20},\"b\":{\"capacity\":30},"
                                           "\"c\":\"off\""),
                               ADM_TABLE_REPLACE),
                     ADM_OK);
    table_is("t1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 20); /* a class of its own, new and full */
    ck_assert_int_eq(level(&f, "rate", "k=b"), 30);
    (void)allow(&f, "k=c", 1000000); /* off limits nothing */
    (void)allow(&f, "k=a", 5);
    ck_assert_int_eq(put_table(TABLE("t2", "\"b\":{\"capacity\":40},\"c\":null"), ADM_TABLE_PATCH),
                     ADM_OK);
    table_is("t2");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 15); /* stays */
    ck_assert_int_eq(level(&f, "rate", "k=b"), 30); /* raised: no gift, not even to the unused */
    ck_assert_int_eq(level(&f, "rate", "k=c"), 100);
    ck_assert_int_eq(put_table(TABLE("t3", "\"b\":{\"capacity\":40}"), ADM_TABLE_REPLACE), ADM_OK);
    ck_assert_int_eq(level(&f, "rate", "k=a"), 93); /* the rule's own numbers again, as they were */
    ck_assert_uint_eq(metric(&f, "admit_policy_changes_total{kind=\"table\"}"), 3);
    fixture_close(&f);
}
END_TEST

START_TEST(a_table_may_be_yaml_and_other_modes_do_not_exist)
{
    static const uint32_t unknown[] = { 2, 3, ADM_TABLE_YAML | 2, 512, 1u << 31, UINT32_MAX };
    const char *text = "version: t1\nrule: rate\nby: k\nentries:\n  a: {capacity: 20}\n";
    struct adm_diags *diags = NULL;
    struct adm_diag first = { .size = sizeof first };

    fixture_open(&f, POLICY("v1", RATE("100")));
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        ck_assert_int_eq(adm_gate_put_table(f.gate, adm_str(text), unknown[i], NULL),
                         ADM_E_INVALID_ARGUMENT);
    table_is("");
    adm_status status =
        adm_gate_put_table(f.gate, adm_str(text), ADM_TABLE_REPLACE | ADM_TABLE_YAML, &diags);
    if (status == ADM_E_POLICY_INVALID) { /* a build without YAML says so */
        ck_assert_int_eq(adm_diags_get(diags, 0, &first), ADM_OK);
        ck_assert_str_eq(first.name, "yaml_not_built");
        table_is("");
    } else {
        ck_assert_int_eq(status, ADM_OK);
        table_is("t1");
        ck_assert_int_eq(level(&f, "rate", "k=a"), 20);
        text = "version: t2\nrule: rate\nby: k\nentries: {a: null, b: {capacity: 30}}\n";
        ck_assert_int_eq(put_table(text, ADM_TABLE_PATCH | ADM_TABLE_YAML), ADM_OK);
        table_is("t2");
        ck_assert_int_eq(level(&f, "rate", "k=a"), 100);
        ck_assert_int_eq(level(&f, "rate", "k=b"), 30);
    }
    adm_diags_free(diags);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_a_bad_table_is_refused_and_the_one_in_force_stays)
{
    static const struct {
        const char *text;
        adm_status expect;
    } rows[] = {
        { "", ADM_E_POLICY_INVALID },
        { "{", ADM_E_POLICY_INVALID },
        { "{}", ADM_E_POLICY_INVALID },
        { TABLE("t2", "\"a\":{\"limit\":5}"), ADM_E_POLICY_INVALID },
        { TABLE("t2", "\"a\":{\"capacity\":-5}"), ADM_E_POLICY_INVALID },
        { TABLE("t2", "\"a\":null"), ADM_E_POLICY_INVALID },
        { TABLE("t2", "\"a\":{\"capacity\":1},\"a\":{\"capacity\":2}"), ADM_E_POLICY_INVALID },
        { "{\"version\":\"t2\",\"rule\":\"none\",\"by\":\"k\",\"entries\":{}}",
          ADM_E_UNKNOWN_RULE },
    };

    fixture_open(&f, POLICY("v1", RATE("100")));
    ck_assert_int_eq(put_table(TABLE("t1", "\"a\":{\"capacity\":20}"), ADM_TABLE_REPLACE), ADM_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        adm_status status = put_table(rows[i].text, ADM_TABLE_REPLACE);

        ck_assert_msg(status == rows[i].expect, "%s: %s", rows[i].text, adm_status_name(status));
        table_is("t1");
        ck_assert_int_eq(level(&f, "rate", "k=a"), 20);
    }
    ck_assert_int_eq(adm_gate_put_table(f.gate, adm_str(TABLE("t2", "")), 2, NULL),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_put_table(NULL, adm_str(TABLE("t2", "")), 0, NULL),
                     ADM_E_INVALID_ARGUMENT);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_a_table_whose_rule_is_gone_rests_and_comes_back)
{
    fixture_open(&f, POLICY("v1", RATE("100") "," HELD));
    ck_assert_int_eq(put_table(TABLE("t1", "\"a\":{\"capacity\":20}"), ADM_TABLE_REPLACE), ADM_OK);
    (void)allow(&f, "k=a", 5);
    publish(&f, POLICY("v2", HELD));
    (void)allow(&f, "k=a", 1);
    ck_assert_int_eq(put_table(TABLE("t2", "\"a\":{\"capacity\":21}"), ADM_TABLE_REPLACE),
                     ADM_E_UNKNOWN_RULE);
    publish(&f, POLICY("v3", RATE("100") "," HELD));
    ck_assert_int_eq(level(&f, "rate", "k=a"), 15);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_a_publish_that_a_table_in_force_does_not_fit_is_refused)
{
    fixture_open(&f, POLICY("v1", RATE("100")));
    ck_assert_int_eq(put_table(TABLE("t1", "\"a\":{\"capacity\":20}"), ADM_TABLE_REPLACE), ADM_OK);
    ck_assert_int_eq(try_publish(&f, POLICY("v2", "{\"id\":\"rate\",\"type\":\"concurrency\","
                                                  "\"limit\":3,\"lease_ttl\":\"1m\"}")),
                     ADM_E_POLICY_INVALID);
    version_is("v1");
    table_is("t1");
    ck_assert_int_eq(level(&f, "rate", "k=a"), 20);
    ck_assert_int_eq(rollback("v2"), ADM_E_UNKNOWN_VERSION);
    fixture_close(&f);
}
END_TEST

START_TEST(B050_a_table_by_a_key_that_the_policy_does_not_know)
{
    struct asked asked;
    uint32_t before = 0, after = 0;

    fixture_open(&f, POLICY("v1", RATE("100")));
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("tier"), &before), ADM_OK);
    ck_assert_int_eq(put_table("{\"version\":\"t1\",\"rule\":\"rate\",\"by\":\"tier\",\"entries\":{"
                               "\"gold\":{\"capacity\":500}}}",
                               ADM_TABLE_REPLACE),
                     ADM_OK);
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("tier"), &after), ADM_OK);
    ck_assert_uint_eq(before, after);
    ck_assert_int_eq(level(&f, "rate", "k=a tier=gold"), 500);
    ck_assert_int_eq(level(&f, "rate", "k=a tier=tin"), 100);
    ck_assert_int_eq(level(&f, "rate", "k=a"), 100);
    ask_for(&asked, "k=a tier=gold", 400);
    asked.descriptors[1].key_id = before;
    ck_assert_uint_eq(decide_for(&f, &asked).verdict, ADM_VERDICT_ALLOW);
    ck_assert_int_eq(level(&f, "rate", "k=a tier=gold"), 100);
    deny(&f, "k=a tier=tin", 400, ADM_REASON_UNSATISFIABLE);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_counts_of_concurrency_do_not_split_by_table_entry)
{
    fixture_open(&f, POLICY("v1", HELD));
    (void)allow(&f, "k=a", 5);
    ck_assert_int_eq(put_table("{\"version\":\"t1\",\"rule\":\"held\",\"by\":\"k\",\"entries\":{"
                               "\"a\":{\"limit\":6}}}",
                               ADM_TABLE_REPLACE),
                     ADM_OK);
    ck_assert_int_eq(level(&f, "held", "k=a"), 5);
    (void)allow(&f, "k=a", 1);
    deny(&f, "k=a", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    fixture_close(&f);
}
END_TEST

/* ---- readers ---- */

static _Atomic int stop;
static _Atomic uint64_t wrong, decisions;

/* Each version has one rule, named like the version, that denies everything. */
static void *read_until_told(void *self)
{
    struct asked asked;

    (void)self;
    ask_for(&asked, "k=a", 2);
    while (!atomic_load(&stop)) {
        struct adm_decision d = { .size = sizeof d };
        const char *rule;

        if (adm_admit(f.gate, &asked.request, &d) != ADM_OK) {
            atomic_fetch_add(&wrong, 1);
            continue;
        }
        rule = adm_decision_rule(&d, 0);
        if (d.verdict != ADM_VERDICT_DENY || d.rule_count != 1 || rule == NULL ||
            strcmp(rule, d.policy_version) != 0)
            atomic_fetch_add(&wrong, 1);
        atomic_fetch_add(&decisions, 1);
    }
    return NULL;
}

START_TEST(L9_a_thousand_publishes_under_readers_are_atomic_and_freed)
{
    pthread_t threads[3];
    int64_t bytes;

    fixture_open(&f, POLICY("x0", "{\"id\":\"x0\",\"type\":\"request_cap\",\"limit\":1}"));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_until_told, NULL), 0);
    while (atomic_load(&decisions) < 3)
        continue;
    bytes = atomic_load(&f.counting.bytes);
    for (uint32_t i = 1; i <= 1000; i++) {
        char text[256];

        (void)snprintf(text, sizeof text,
                       POLICY("x%u", "{\"id\":\"x%u\",\"type\":\"%s\",\"limit\":1%s}"), i, i,
                       i % 2 == 0 ? "request_cap" : "concurrency",
                       i % 2 == 0 ? "" : ",\"lease_ttl\":\"1m\"");
        publish(&f, text);
    }
    atomic_store(&stop, 1);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    /* Names of rules are kept for their counters; snapshots are not. */
    ck_assert_int_lt(atomic_load(&f.counting.bytes) - bytes, 1000 * 1024);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_calls_without_a_policy_or_a_version_are_refused)
{
    char small[64];

    fixture_open(&f, POLICY("v1", RATE("100")));
    ck_assert_int_eq(adm_gate_publish(f.gate, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_rollback(f.gate, bytes_of(NULL, 3)), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_version(f.gate, small, sizeof small), ADM_E_BUFFER_TOO_SMALL);
    ck_assert_int_eq(adm_gate_version(f.gate, NULL, 100), ADM_E_INVALID_ARGUMENT);
    version_is("v1");
    fixture_close(&f);
}
END_TEST

/* ---- groups ---- */

#define GROUPED(id, more)                                                                          \
    "{\"id\":\"" id "\",\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"60s\"," more "}"

static struct {
    uint64_t group[8];
    uint64_t count;
} seen;

static void see_groups(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind != ADM_OP_PUT_CLASSES)
        return;
    seen.count = op->args.classes->class_count;
    ck_assert_uint_le(seen.count, 8);
    for (uint64_t i = 0; i < seen.count; i++)
        seen.group[i] = op->args.classes->classes[i].group;
}

START_TEST(rules_that_match_and_split_alike_share_a_group_and_no_others)
{
    uint64_t first;

    fixture_open(&f, POLICY("v1", HELD));
    f.relay.twist = see_groups;
    publish(&f,
            POLICY(
                "v2",
                GROUPED("a",
                        "\"match\":{\"m\":[\"x\",\"y\"],\"n\":\"z\"},"
                        "\"partition_by\":[\"k\",\"l\"]") "," GROUPED("b",
                                                                      "\"match\":{\"n\":\"z\","
                                                                      "\"m\":[\"y\",\"x\"]},"
                                                                      "\"partition_by\":[\"k\","
                                                                      "\"l\"]") "," GROUPED("c",
                                                                                            "\"matc"
                                                                                            "h\":{"
                                                                                            "\"m\":"
                                                                                            "[\"x\""
                                                                                            ",\"y\""
                                                                                            "],"
                                                                                            "\"n\":"
                                                                                            "\"z\"}"
                                                                                            ","
                                                                                            "\"part"
                                                                                            "ition_"
                                                                                            "by\":["
                                                                                            "\"l\","
                                                                                            "\"k\""
                                                                                            "]") "," GROUPED("d",
                                                                                                             "\"match\":{\"m\":[\"x\",\"y\"],\"n\":\"z\"},"
                                                                                                             "\"partition_by\":[\"k\"]") "," GROUPED("e",
                                                                                                                                                     "\"match\":{\"m\":[\"x\",\"y\"]},"
                                                                                                                                                     "\"partition_by\":[\"k\",\"l\"]") "," GROUPED("f",
                                                                                                                                                                                                   "\"match\":{\"m\":[\"x\",\"y\"],\"n\":\"z\"},"
                                                                                                                                                                                                   "\"partition_by\":[\"k\",\"l\"],\"mode\":\"shadow\"")));
    ck_assert_uint_eq(seen.count, 6);
    ck_assert_uint_ne(seen.group[0], 0);
    ck_assert_uint_eq(seen.group[0], seen.group[1]);
    for (uint64_t i = 2; i < seen.count; i++)
        for (uint64_t k = 1; k < i; k++)
            ck_assert_uint_ne(seen.group[i], seen.group[k]);
    first = seen.group[0];
    publish(&f, "{\"version\":\"v3\",\"shard_by\":\"k\",\"rules\":[" GROUPED(
                    "a", "\"match\":{\"m\":[\"x\",\"y\"],\"n\":\"z\"},"
                         "\"partition_by\":[\"k\",\"l\"]") "]}");
    ck_assert_uint_ne(seen.group[0], first);
    publish(&f, POLICY("v4", HELD "," GROUPED("g", "\"match\":{\"m\":[\"x\",\"y\"],\"n\":\"z\"},"
                                                   "\"partition_by\":[\"k\",\"l\"]")));
    ck_assert_uint_eq(seen.group[1], first); /* another version, other key slots */
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L9_levels_and_leases_live_through_publish_and_rollback,
        B089_a_rule_that_goes_and_comes_back_is_not_refilled,
        B088_a_new_limit_counts_at_once,
        L9_a_version_with_other_content_is_refused_and_the_same_is_welcome,
        L9_eight_versions_are_kept_and_the_ninth_is_forgotten,
        L5_a_publish_without_room_is_refused_and_changes_nothing,
        L5_a_table_without_room_is_refused_and_changes_nothing,
        L9_a_backend_that_refuses_the_classes_changes_nothing,
        L4_a_refused_publish_does_not_bring_its_own_skew,
        L9_a_table_is_replaced_and_patched_without_a_publish,
        a_table_may_be_yaml_and_other_modes_do_not_exist,
        L9_a_bad_table_is_refused_and_the_one_in_force_stays,
        L9_a_table_whose_rule_is_gone_rests_and_comes_back,
        L9_a_publish_that_a_table_in_force_does_not_fit_is_refused,
        B050_a_table_by_a_key_that_the_policy_does_not_know,
        L9_counts_of_concurrency_do_not_split_by_table_entry,
        L9_a_thousand_publishes_under_readers_are_atomic_and_freed,
        L9_calls_without_a_policy_or_a_version_are_refused,
        rules_that_match_and_split_alike_share_a_group_and_no_others,
    };

    return RUN_TESTS("gate publish", tests);
}
