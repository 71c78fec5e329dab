/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision says: which rules denied, why, for how long; and which state it was about. */
#include "gate_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKET(id, keys, capacity)                                                                 \
    "{\"id\":\"" id "\",\"type\":\"token_bucket\",\"partition_by\":[" keys                         \
    "],\"capacity\":" capacity ",\"refill\":1,\"per\":\"1s\"}"
#define HELD(id, limit)                                                                            \
    "{\"id\":\"" id "\",\"type\":\"concurrency\",\"limit\":" limit ",\"lease_ttl\":\"60s\"}"

static struct fixture f;

START_TEST(B091_a_key_by_id_and_by_bytes_is_one_key_whenever_it_was_interned)
{
    struct asked asked;
    uint32_t before = 0, after = 0;

    fixture_init(&f);
    fixture_start(&f, "[" BUCKET("b", "\"k\",\"l\"", "10") "]");
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("k"), &before), ADM_OK);
    publish(&f, "{\"version\":\"v2\",\"rules\":[" BUCKET("b", "\"k\",\"l\"", "10") "]}");
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("l"), &after), ADM_OK);
    (void)allow(&f, "k=a l=b", 1);
    for (uint32_t way = 0; way < 4; way++) {
        ask_for(&asked, "k=a l=b", 1);
        asked.descriptors[0].key_id = way & 1 ? before : 0;
        asked.descriptors[1].key_id = way & 2 ? after : 0;
        ck_assert_uint_eq(decide_for(&f, &asked).verdict, ADM_VERDICT_ALLOW);
    }
    ck_assert_int_eq(level(&f, "b", "k=a l=b"), 5);
    ck_assert_int_eq(level(&f, "b", "l=b k=a"), 5);
    ck_assert_int_eq(level(&f, "b", "k=b l=a"), 10);
    fixture_close(&f);
}
END_TEST

START_TEST(B090_values_do_not_run_into_each_other)
{
    struct asked asked;

    fixture_open(&f, "[" BUCKET("b", "\"k\",\"l\"", "10") "]");
    (void)allow(&f, "k=a l=bc", 10);
    ck_assert_int_eq(level(&f, "b", "k=ab l=c"), 10);
    (void)allow(&f, "k=ab l=c", 10);
    (void)allow(&f, "k=abc l=x", 10);
    deny(&f, "k=a l=bc", 1, ADM_REASON_RATE_EXCEEDED);
    deny(&f, "k=ab l=c", 1, ADM_REASON_RATE_EXCEEDED);
    /* Nor when they contain what might be taken for a separator. */
    ask_for(&asked, "k=x l=y", 10);
    asked.descriptors[0].value = bytes_of("a\0\0b", 4);
    asked.descriptors[1].value = bytes_of("c", 1);
    ck_assert_uint_eq(decide_for(&f, &asked).verdict, ADM_VERDICT_ALLOW);
    asked.descriptors[0].value = bytes_of("a", 1);
    asked.descriptors[1].value = bytes_of("b\0\0c", 4);
    ck_assert_uint_eq(decide_for(&f, &asked).verdict, ADM_VERDICT_ALLOW);
    fixture_close(&f);
}
END_TEST

START_TEST(B051_two_rules_over_one_key_count_apart)
{
    fixture_open(&f, "[" BUCKET("one", "\"k\"", "10") "," BUCKET("two", "\"k\"", "7") "]");
    (void)allow(&f, "k=a", 4);
    ck_assert_int_eq(level(&f, "one", "k=a"), 6);
    ck_assert_int_eq(level(&f, "two", "k=a"), 3);
    fixture_close(&f);
}
END_TEST

START_TEST(B038_a_rule_that_would_pass_is_not_charged_when_another_denies)
{
    struct adm_decision d;

    fixture_open(&f, "[" BUCKET("wide", "\"k\"",
                                "10") "," HELD("held", "1") "," BUCKET("narrow", "\"k\"", "2") "]");
    d = decide(&f, "k=a", 2);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_DENY);
    ck_assert_uint_eq(d.reason, ADM_REASON_UNSATISFIABLE); /* 2 of 1 can never be held */
    ck_assert_uint_eq(d.retry_after_ms, 0);
    ck_assert_int_eq(level(&f, "wide", "k=a"), 10);
    ck_assert_int_eq(level(&f, "narrow", "k=a"), 2);
    ck_assert_int_eq(level(&f, "held", "k=a"), 0);
    fixture_close(&f);
}
END_TEST

/* n rules, all of one kind, ids of the given length. */
static char *many_rules(uint32_t n, uint32_t id_length, const char *rest)
{
    char *text = calloc(1, 64 + n * (160u + id_length)), *at = text;

    ck_assert_ptr_nonnull(text);
    at += sprintf(at, "[");
    for (uint32_t i = 0; i < n; i++)
        at += sprintf(at, "%s{\"id\":\"%0*u\",%s}", i == 0 ? "" : ",", (int)id_length, i, rest);
    (void)sprintf(at, "]");
    return text;
}

START_TEST(L2_every_denying_rule_is_listed_also_beyond_sixteen)
{
    char *text = many_rules(40, 3, "\"type\":\"request_cap\",\"limit\":1");
    struct adm_decision d;

    fixture_open(&f, text);
    d = decide(&f, "k=a", 2);
    ck_assert_uint_eq(d.reason, ADM_REASON_COST_ABOVE_CAP);
    ck_assert_uint_eq(d.rule_count, 40);
    ck_assert_uint_eq(d.flags & ADM_DECISION_TRUNCATED, 0);
    for (uint32_t i = 0; i < 40; i++) {
        char id[8];

        (void)snprintf(id, sizeof id, "%03u", i);
        ck_assert_str_eq(adm_decision_rule(&d, i), id);
    }
    ck_assert_ptr_null(adm_decision_rule(&d, 40));
    free(text);
    fixture_close(&f);
}
END_TEST

START_TEST(L2_names_that_do_not_fit_are_counted_and_said_to_be_cut)
{
    static const uint32_t counts[] = { 32, 33, 96, 97, 140, 500 };

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char *text = many_rules(counts[i], 64, "\"type\":\"request_cap\",\"limit\":1");
        struct adm_decision d;

        fixture_open(&f, text);
        d = decide(&f, "k=a", 2);
        ck_assert_uint_eq(d.rule_count, counts[i]);
        ck_assert_uint_eq((d.flags & ADM_DECISION_TRUNCATED) != 0, counts[i] > 32);
        ck_assert_uint_le(d.names_used, sizeof d.names);
        ck_assert_uint_eq(strlen(adm_decision_rule(&d, 31)), 64);
        ck_assert_ptr_null(adm_decision_rule(&d, 32));
        ck_assert_uint_eq(
            metric(&f, "admit_decisions_total{verdict=\"deny\",reason=\"cost_above_cap\"}"), 1);
        free(text);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(L2_sixteen_consuming_rules_are_charged_and_seventeen_are_too_wide)
{
    static const char rest[] = "\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"1m\"";
    char *sixteen = many_rules(16, 2, rest), *seventeen = many_rules(17, 2, rest);
    struct adm_id lease;
    struct adm_decision d;

    fixture_open(&f, sixteen);
    lease = allow(&f, "", 5);
    for (uint32_t i = 0; i < 16; i++) {
        char id[8];

        (void)snprintf(id, sizeof id, "%02u", i);
        ck_assert_int_eq(level(&f, id, ""), 5);
    }
    d = decide(&f, "", 5);
    ck_assert_uint_eq(d.rule_count, 16);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(level(&f, "15", ""), 0);
    fixture_close(&f);

    fixture_open(&f, seventeen);
    d = decide(&f, "", 5);
    ck_assert_uint_eq(d.reason, ADM_REASON_POLICY_TOO_WIDE);
    ck_assert_uint_eq(d.http_status, 503);
    ck_assert_int_eq(level(&f, "00", ""), 0);
    ck_assert_int_eq(level(&f, "16", ""), 0);
    free(sixteen);
    free(seventeen);
    fixture_close(&f);
}
END_TEST

START_TEST(L8_sixteen_shadow_rules_are_judged_and_the_seventeenth_is_unknown)
{
    char *shadows = many_rules(17, 2,
                               "\"type\":\"concurrency\",\"limit\":1,\"lease_ttl\":\"1m\","
                               "\"mode\":\"shadow\"");
    char text[4096];
    struct adm_decision d;

    (void)snprintf(text, sizeof text, "[" HELD("held", "9") ",%s", shadows + 1);
    fixture_open(&f, text);
    d = decide(&f, "", 1);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(d.shadow_count, 0);
    ck_assert_uint_eq(d.unknown_count, 1);
    d = decide(&f, "", 1);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(d.shadow_count, 16);
    ck_assert_uint_eq(d.unknown_count, 1);
    ck_assert_str_eq(adm_decision_shadow(&d, 0), "00");
    ck_assert_str_eq(adm_decision_shadow(&d, 15), "15");
    ck_assert_ptr_null(adm_decision_shadow(&d, 16));
    ck_assert_ptr_null(adm_decision_rule(&d, 0));
    free(shadows);
    fixture_close(&f);
}
END_TEST

START_TEST(B090_gates_of_two_namespaces_on_one_backend_do_not_meet)
{
    static const char *const spaces[] = { "", "a", "ab" };
    struct relay shared[3];
    struct adm_gate *gates[3];
    struct adm_backend plain;
    struct adm_decision d;
    struct asked asked;

    /* The identities would be the same if namespace and rule ran into each other. */
    fixture_init(&f);
    ck_assert_int_eq(adm_plain_open(&f.plain, &plain), ADM_OK);
    for (uint32_t i = 0; i < 3; i++) {
        struct adm_policy *policy =
            policy_of(i == 1 ? "[" BUCKET("bb", "", "10") "]" : "[" BUCKET("b", "", "10") "]");

        memset(&shared[i], 0, sizeof shared[i]);
        shared[i].inner = plain;
        shared[i].fd = -1;
        f.options.backend = relay_backend(&shared[i]);
        f.options.policy = policy;
        f.options.name_space = adm_str(spaces[i]);
        /* Only the last close is passed on. */
        shared[i].shared = i < 2;
        ck_assert_int_eq(adm_gate_new(&f.options, &gates[i]), ADM_OK);
        adm_policy_unref(policy);
    }
    for (uint32_t i = 0; i < 3; i++) {
        f.gate = gates[i];
        ck_assert_int_eq(level(&f, i == 1 ? "bb" : "b", ""), 10);
        /* The same attempt id, with other contents: an attempt of another gate is not a repeat. */
        ask_for(&asked, "", 10 - i);
        ask_attempt(&asked, "one");
        d = decide_for(&f, &asked);
        ck_assert_uint_eq(d.verdict, ADM_VERDICT_ALLOW);
        ck_assert_uint_eq(d.flags, 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        f.gate = gates[i];
        ck_assert_int_eq(level(&f, i == 1 ? "bb" : "b", ""), (int64_t)i);
    }
    for (uint32_t i = 0; i < 3; i++) {
        adm_gate_free(gates[i]);
        ck_assert_uint_eq(atomic_load(&shared[i].closed), 1);
    }
    ck_assert_int_eq(atomic_load(&f.counting.bytes), 0);
}
END_TEST

START_TEST(B085_a_lease_of_another_gate_gives_nothing_back)
{
    struct fixture other;
    struct adm_id lease;

    fixture_open(&f, "[" HELD("held", "9") "]");
    fixture_open(&other, "[" HELD("held", "9") "]");
    lease = allow(&f, "", 1);
    (void)allow(&other, "", 1);
    ck_assert_uint_eq(release(&other, lease), ADM_OUTCOME_UNKNOWN);
    ck_assert_int_eq(level(&other, "held", ""), 1);
    ck_assert_int_eq(level(&f, "held", ""), 1);
    fixture_close(&f);
    fixture_close(&other);
}
END_TEST

START_TEST(L9_a_decision_outlives_the_publish_and_the_gate)
{
    struct adm_decision d, copy;

    fixture_open(&f, "[" BUCKET("first-rule", "", "1") "," BUCKET("second-rule", "", "1") "]");
    (void)allow(&f, "", 1);
    d = decide(&f, "", 1);
    copy = d;
    publish(&f, "{\"version\":\"v2\",\"rules\":[" HELD("held", "9") "]}");
    fixture_close(&f);
    ck_assert_mem_eq(&d, &copy, sizeof d);
    ck_assert_str_eq(d.policy_version, "v1");
    ck_assert_str_eq(d.table_version, "");
    ck_assert_str_eq(adm_decision_rule(&d, 0), "first-rule");
    ck_assert_str_eq(adm_decision_rule(&d, 1), "second-rule");
}
END_TEST

/* ---- reasons, statuses, delays ---- */

static void speaks(const struct adm_decision *d, uint32_t reason, uint32_t status, uint64_t wait_s)
{
    ck_assert_msg(d->reason == reason, "%s, expected %s", adm_reason_name(d->reason),
                  adm_reason_name(reason));
    ck_assert_uint_eq(d->http_status, status);
    ck_assert_uint_eq(adm_decision_retry_after_s(d), wait_s);
    ck_assert_uint_eq(d->verdict,
                      reason == ADM_REASON_ALLOWED ? ADM_VERDICT_ALLOW : ADM_VERDICT_DENY);
}

START_TEST(B012_status_and_wait_of_every_reason)
{
    struct adm_decision d;

    fixture_open(&f,
                 "[{\"id\":\"r\",\"type\":\"token_bucket\",\"match\":{\"t\":\"rate\"},"
                 "\"capacity\":2,\"refill\":2,\"per\":\"3s\"},"
                 "{\"id\":\"c\",\"type\":\"concurrency\",\"match\":{\"t\":\"held\"},\"limit\":2,"
                 "\"lease_ttl\":\"60s\"},"
                 "{\"id\":\"q\",\"type\":\"quota\",\"match\":{\"t\":\"quota\"},\"limit\":2,"
                 "\"window\":\"day\"},"
                 "{\"id\":\"cap\",\"type\":\"request_cap\",\"match\":{\"t\":\"cap\"},\"limit\":2},"
                 "{\"id\":\"p\",\"type\":\"pressure\",\"match\":{\"t\":\"push\"},\"signal\":\"s\","
                 "\"gt\":0.5,\"scope_by\":\"t\"},"
                 "{\"id\":\"m\",\"type\":\"concurrency\",\"match\":{\"t\":\"miss\"},"
                 "\"partition_by\":[\"z\"],\"limit\":2,\"lease_ttl\":\"60s\"},"
                 "{\"id\":\"a\",\"type\":\"token_bucket\",\"match\":{\"t\":\"amount\"},"
                 "\"unit\":\"images\",\"capacity\":2,\"refill\":2,\"per\":\"3s\"}]");
    d = decide(&f, "t=rate", 2);
    speaks(&d, ADM_REASON_ALLOWED, 200, 0);
    ck_assert(is_none(d.lease));
    ck_assert(!is_none(d.id));
    d = decide(&f, "t=rate", 1);
    speaks(&d, ADM_REASON_RATE_EXCEEDED, 429, 2);
    ck_assert_uint_eq(d.retry_after_ms, 1500);
    d = decide(&f, "t=rate", 3);
    speaks(&d, ADM_REASON_UNSATISFIABLE, 429, 0);
    (void)allow(&f, "t=held", 2);
    d = decide(&f, "t=held", 1);
    speaks(&d, ADM_REASON_CONCURRENCY_EXCEEDED, 429, 0);
    (void)allow(&f, "t=quota", 2);
    d = decide(&f, "t=quota", 1);
    speaks(&d, ADM_REASON_QUOTA_EXCEEDED, 429, 86400 - 1790000000 % 86400);
    d = decide(&f, "t=cap", 3);
    speaks(&d, ADM_REASON_COST_ABOVE_CAP, 400, 0);
    ck_assert_int_eq(adm_gate_signal(f.gate, adm_str("push"), adm_str("r"), adm_str("s"), 0.75),
                     ADM_OK);
    d = decide(&f, "t=push", 1);
    speaks(&d, ADM_REASON_PRESSURE, 429, 0);
    d = decide(&f, "t=miss", 1);
    speaks(&d, ADM_REASON_MISSING_DESCRIPTOR, 503, 0);
    ck_assert_str_eq(adm_decision_rule(&d, 0), "m");
    d = decide(&f, "t=amount", 1);
    speaks(&d, ADM_REASON_MISSING_AMOUNT, 503, 0);
    ck_assert_str_eq(adm_decision_rule(&d, 0), "a");
    d = decide(&f, "t=none", 1);
    speaks(&d, ADM_REASON_NO_POLICY, 503, 0);
    ck_assert_uint_eq(d.rule_count, 0);
    f.relay.fail_count = 1;
    d = decide(&f, "t=rate", 1);
    speaks(&d, ADM_REASON_STATE_UNAVAILABLE, 503, 0);
    f.relay.fail_count = 1;
    f.relay.fail_status = ADM_E_BACKEND_FULL;
    d = decide(&f, "t=rate", 1);
    speaks(&d, ADM_REASON_KEY_SPACE_FULL, 503, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(B012_the_wait_is_the_longest_of_the_rates_and_hidden_by_what_waiting_cannot_help)
{
    struct adm_decision d;

    fixture_open(
        &f,
        "[{\"id\":\"slow\",\"type\":\"token_bucket\",\"capacity\":4,\"refill\":1,\"per\":\"9s\"},"
        "{\"id\":\"fast\",\"type\":\"token_bucket\",\"capacity\":4,\"refill\":1,\"per\":\"1s\"},"
        "{\"id\":\"c\",\"type\":\"concurrency\",\"limit\":4,\"lease_ttl\":\"60s\"},"
        "{\"id\":\"cap\",\"type\":\"request_cap\",\"limit\":5}]");
    (void)allow(&f, "", 4);
    d = decide(&f, "", 1);
    ck_assert_uint_eq(d.rule_count, 3);
    ck_assert_uint_eq(d.reason, ADM_REASON_RATE_EXCEEDED);
    ck_assert_uint_eq(d.retry_after_ms, 9000);
    d = decide(&f, "", 5); /* above every capacity */
    ck_assert_uint_eq(d.reason, ADM_REASON_UNSATISFIABLE);
    ck_assert_uint_eq(d.retry_after_ms, 0);
    d = decide(&f, "", 6);
    ck_assert_uint_eq(d.reason, ADM_REASON_COST_ABOVE_CAP);
    ck_assert_uint_eq(d.retry_after_ms, 0);
    ck_assert_uint_eq(d.rule_count, 4); /* all of them deny, and all are named */
    fixture_close(&f);
}
END_TEST

START_TEST(L5_a_full_partition_table_speaks_before_other_denials_and_charges_nothing)
{
    struct adm_decision d;

    fixture_open(
        &f, "[{\"id\":\"b\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],\"capacity\":10,"
            "\"refill\":10,\"per\":\"1s\",\"max_partitions\":2},"
            "{\"id\":\"n\",\"type\":\"token_bucket\",\"capacity\":2,\"refill\":1,\"per\":\"1h\"}]");
    (void)allow(&f, "k=a", 1);
    (void)allow(&f, "k=b", 1);
    d = decide(&f, "k=c", 1);
    ck_assert_uint_eq(d.reason, ADM_REASON_KEY_SPACE_FULL);
    ck_assert_uint_eq(d.rule_count, 1);
    ck_assert_str_eq(adm_decision_rule(&d, 0), "b");
    ck_assert_uint_eq(d.retry_after_ms, 100); /* then the first of the two is full again */
    d = decide(&f, "k=a", 1);                 /* a known one is not a newcomer */
    ck_assert_uint_eq(d.reason, ADM_REASON_RATE_EXCEEDED);
    fixture_close(&f);
}
END_TEST

START_TEST(B054_unmatched_requests_are_denied_or_allowed_as_the_policy_says)
{
    struct adm_decision d;

    fixture_open(&f,
                 "{\"version\":\"v1\",\"unmatched\":\"allow\",\"rules\":[{\"id\":\"c\",\"type\":"
                 "\"concurrency\",\"match\":{\"k\":\"a\"},\"limit\":1,\"lease_ttl\":\"1m\"}]}");
    d = decide(&f, "k=b", 1);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_ALLOW);
    ck_assert(is_none(d.lease));
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_TAKE]), 0);
    ck_assert_uint_eq(metric(&f, "admit_unmatched_total"), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_an_attempt_gives_the_first_answer_after_a_publish_too)
{
    struct adm_decision first, again;
    struct asked asked;
    uint32_t k = 0;

    fixture_open(&f, "[" HELD("held", "1") "]");
    ask_for(&asked, "k=a l=b", 1);
    ask_attempt(&asked, "once");
    first = decide_for(&f, &asked);
    publish(&f, "{\"version\":\"v2\",\"rules\":[" HELD("held", "0") "]}");
    ck_assert_int_eq(adm_gate_key(f.gate, adm_str("k"), &k), ADM_OK);
    ask_for(&asked, "l=b k=a",
            1); /* the order of descriptors is not part of it, nor how keys are named */
    asked.descriptors[1].key_id = k;
    ask_attempt(&asked, "once");
    again = decide_for(&f, &asked);
    ck_assert_uint_eq(again.verdict, ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(again.flags, ADM_DECISION_REPEATED);
    ck_assert_uint_eq(again.http_status, 200);
    ck_assert(same_id(again.lease, first.lease));
    ck_assert(same_id(again.id, first.id));
    ck_assert_str_eq(again.policy_version, "v1");
    ck_assert_int_eq(level(&f, "held", ""), 1);
    ck_assert_uint_eq(metric(&f, "admit_repeated_attempts_total"), 1);
    ck_assert_uint_eq(metric(&f, "admit_rule_requests_total{rule=\"held\",verdict=\"allow\"}"), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_a_denied_attempt_is_not_remembered)
{
    struct adm_id lease;
    struct asked asked;

    fixture_open(&f, "[" HELD("held", "1") "]");
    lease = allow(&f, "", 1);
    ask_for(&asked, "", 1);
    ask_attempt(&asked, "later");
    ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_CONCURRENCY_EXCEEDED);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(decide_for(&f, &asked).flags, 0);
    ck_assert_int_eq(level(&f, "held", ""), 1);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        B091_a_key_by_id_and_by_bytes_is_one_key_whenever_it_was_interned,
        B090_values_do_not_run_into_each_other,
        B051_two_rules_over_one_key_count_apart,
        B038_a_rule_that_would_pass_is_not_charged_when_another_denies,
        L2_every_denying_rule_is_listed_also_beyond_sixteen,
        L2_names_that_do_not_fit_are_counted_and_said_to_be_cut,
        L2_sixteen_consuming_rules_are_charged_and_seventeen_are_too_wide,
        L8_sixteen_shadow_rules_are_judged_and_the_seventeenth_is_unknown,
        B090_gates_of_two_namespaces_on_one_backend_do_not_meet,
        B085_a_lease_of_another_gate_gives_nothing_back,
        L9_a_decision_outlives_the_publish_and_the_gate,
        B012_status_and_wait_of_every_reason,
        B012_the_wait_is_the_longest_of_the_rates_and_hidden_by_what_waiting_cannot_help,
        L5_a_full_partition_table_speaks_before_other_denials_and_charges_nothing,
        B054_unmatched_requests_are_denied_or_allowed_as_the_policy_says,
        L10_an_attempt_gives_the_first_answer_after_a_publish_too,
        L10_a_denied_attempt_is_not_remembered,
    };

    return RUN_TESTS("gate decisions", tests);
}
