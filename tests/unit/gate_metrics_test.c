/* SPDX-License-Identifier: Apache-2.0 */
/* What the gate counts after a known sequence, as the exposed text says it. */
#include "gate_fixture.h"

#include <string.h>

#define RULES                                                                                      \
    "[{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":5,\"lease_ttl\":\"60s\",\"match\":"      \
    "{\"k\":\"*\"}},"                                                                              \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"match\":{\"k\":\"*\"},\"unit\":\"tokens\","      \
    "\"capacity\":100,\"refill\":1,\"per\":\"1s\"},"                                               \
    "{\"id\":\"cap\",\"type\":\"request_cap\",\"match\":{\"k\":\"*\"},\"limit\":4},"               \
    "{\"id\":\"dark\",\"type\":\"concurrency\",\"mode\":\"shadow\",\"limit\":1,"                   \
    "\"lease_ttl\":\"60s\"}]"
#define V1 "{\"version\":\"v1\",\"metric_labels\":[\"service\"],\"rules\":" RULES "}"
#define V2 "{\"version\":\"v2\",\"metric_labels\":[\"service\"],\"rules\":" RULES "}"

static struct fixture f;

static void is(const char *sample, uint64_t expect)
{
    uint64_t found = metric(&f, sample);

    ck_assert_msg(found == expect, "%s is %llu, expected %llu", sample, (unsigned long long)found,
                  (unsigned long long)expect);
}

static struct adm_decision ask(const char *descriptors, uint64_t cost, uint64_t tokens)
{
    struct asked asked;

    ask_for(&asked, descriptors, cost);
    ask_amount(&asked, ADM_UNIT_TOKENS, tokens);
    return decide_for(&f, &asked);
}

START_TEST(B049_decisions_by_reason_label_and_rule)
{
    fixture_open(&f, V1);
    (void)ask("k=a service=x", 2, 60); /* allowed */
    (void)ask("k=a service=x", 1, 60); /* rate */
    (void)ask("k=a service=y", 4, 1);  /* concurrency: 2 + 4 of 5 */
    (void)ask("k=a service=y", 5, 1);  /* cap, and concurrency */
    (void)ask("service=y", 1, 1);      /* no policy */
    (void)ask("k=a", 2, 10);           /* allowed, no label */
    is("admit_decisions_total{verdict=\"allow\",reason=\"allowed\",service=\"x\"}", 1);
    is("admit_decisions_total{verdict=\"allow\",reason=\"allowed\"}", 1);
    is("admit_decisions_total{verdict=\"deny\",reason=\"rate_exceeded\",service=\"x\"}", 1);
    is("admit_decisions_total{verdict=\"deny\",reason=\"concurrency_exceeded\",service=\"y\"}", 1);
    is("admit_decisions_total{verdict=\"deny\",reason=\"cost_above_cap\",service=\"y\"}", 1);
    is("admit_decisions_total{verdict=\"deny\",reason=\"no_policy\",service=\"y\"}", 1);
    is("admit_decision_cost_total{verdict=\"allow\",reason=\"allowed\",service=\"x\"}", 2);
    is("admit_decision_cost_total{verdict=\"deny\",reason=\"cost_above_cap\",service=\"y\"}", 5);
    is("admit_unmatched_total", 1);
    is("admit_rule_requests_total{rule=\"held\",verdict=\"allow\"}", 2);
    is("admit_rule_requests_total{rule=\"held\",verdict=\"deny\"}", 2);
    is("admit_rule_requests_total{rule=\"rate\",verdict=\"allow\"}", 2);
    is("admit_rule_requests_total{rule=\"rate\",verdict=\"deny\"}", 1);
    is("admit_rule_requests_total{rule=\"cap\",verdict=\"allow\"}", 2);
    is("admit_rule_requests_total{rule=\"cap\",verdict=\"deny\"}", 1);
    is("admit_rule_units_total{rule=\"held\",unit=\"cost\",verdict=\"allow\"}", 4);
    is("admit_rule_units_total{rule=\"rate\",unit=\"tokens\",verdict=\"allow\"}", 70);
    is("admit_rule_units_total{rule=\"rate\",unit=\"tokens\",verdict=\"deny\"}", 60);
    is("admit_rule_shadow_total{rule=\"dark\",verdict=\"would_deny\"}", 4);
    is("admit_retry_delay_seconds_count", 1);
    fixture_close(&f);
}
END_TEST

START_TEST(B067_releases_by_outcome_and_result)
{
    struct adm_id a, b, c;
    uint32_t outcome;

    fixture_open(&f, V1);
    a = ask("k=a", 1, 0).lease;
    b = ask("k=a", 1, 0).lease;
    c = ask("k=a", 1, 0).lease;
    ck_assert_int_eq(adm_release(f.gate, a, ADM_RESULT_OK, &outcome), ADM_OK);
    ck_assert_int_eq(adm_release(f.gate, a, ADM_RESULT_ERROR, &outcome), ADM_OK);
    ck_assert_int_eq(adm_release(f.gate, NO_LEASE, ADM_RESULT_TIMEOUT, &outcome), ADM_OK);
    ck_assert_int_eq(adm_renew(f.gate, b, &outcome), ADM_OK);
    ck_assert_int_eq(adm_divert(f.gate, b, &outcome), ADM_OK);
    ck_assert_int_eq(adm_release(f.gate, b, ADM_RESULT_DIVERTED, &outcome), ADM_OK);
    advance(&f, 60 * SEC);
    ck_assert_int_eq(adm_release(f.gate, c, ADM_RESULT_CANCELLED, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_LATE);
    ck_assert_int_eq(adm_renew(f.gate, c, &outcome), ADM_OK);
    ck_assert_int_eq(adm_settle(f.gate, a, NULL, 0, 1, &outcome), ADM_OK);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"released\"}", 2);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"already\"}", 1);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"unknown\"}", 1);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"late\"}", 1);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"queued\"}", 0);
    is("admit_lease_operations_total{operation=\"renew\",outcome=\"renewed\"}", 1);
    is("admit_lease_operations_total{operation=\"renew\",outcome=\"lost\"}", 1);
    is("admit_lease_operations_total{operation=\"divert\",outcome=\"diverted\"}", 1);
    is("admit_lease_operations_total{operation=\"settle\",outcome=\"already\"}", 1);
    is("admit_results_total{result=\"ok\"}", 1);
    is("admit_results_total{result=\"error\"}", 1);
    is("admit_results_total{result=\"timeout\"}", 1);
    is("admit_results_total{result=\"cancelled\"}", 1);
    is("admit_results_total{result=\"diverted\"}", 1);
    is("admit_expired_leases_total", 1);
    fixture_close(&f);
}
END_TEST

START_TEST(B049_what_the_backend_did_and_did_not)
{
    struct adm_id lease;
    uint32_t outcome;

    fixture_init(&f);
    fixture_open_deferring(&f, V1);
    f.relay.automatic = true;
    lease = ask("k=a", 1, 0).lease;
    is("admit_backend_seconds_count", 0); /* it answered inside start's own poll */
    f.relay.automatic = false;
    f.clock.tick_ns = MS;
    ck_assert_uint_eq(ask("k=a", 1, 0).reason, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_int_eq(adm_release(f.gate, lease, 0, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_QUEUED);
    is("admit_backend_errors_total{kind=\"timeout\"}", 2);
    is("admit_lease_operations_total{operation=\"release\",outcome=\"queued\"}", 1);
    is("admit_queued_operations_total", 1);
    is("admit_pending_operations", 1);
    relay_let_all(&f.relay);
    progress(&f);
    is("admit_pending_operations", 0);
    is("admit_decisions_total{verdict=\"deny\",reason=\"state_unavailable\"}", 1);
    is("admit_rule_requests_total{rule=\"held\",verdict=\"deny\"}", 0); /* no rule denied */
    fixture_close(&f);
}
END_TEST

START_TEST(B049_the_time_of_operations_that_deferred)
{
    struct adm_decision d = { .size = sizeof d };
    struct adm_completion c = { .size = sizeof c };
    struct adm_queue *queue = NULL;
    struct asked asked;
    uint64_t ticket;

    fixture_init(&f);
    fixture_open_deferring(&f, V1);
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK);
    ask_for(&asked, "k=a", 1);
    ask_amount(&asked, ADM_UNIT_TOKENS, 1);
    ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &d, NULL, &ticket), ADM_OK);
    advance(&f, 2 * MS);
    relay_let_all(&f.relay);
    ck_assert_uint_eq(adm_queue_next(queue, &c), 1);
    is("admit_backend_seconds_count", 1);
    is("admit_admission_seconds_count", 1);
    adm_queue_close(queue);
    fixture_close(&f);
}
END_TEST

START_TEST(B049_changes_of_policy_and_what_is_in_force)
{
    fixture_open(&f, V1);
    is("admit_info{policy_version=\"v1\",table_version=\"\",backend=\"relay\"}", 1);
    publish(&f, V2);
    ck_assert_int_eq(adm_gate_rollback(f.gate, adm_str("v1")), ADM_OK);
    ck_assert_int_eq(adm_gate_rollback(f.gate, adm_str("v9")), ADM_E_UNKNOWN_VERSION);
    ck_assert_int_eq(
        adm_gate_put_table(f.gate,
                           adm_str("{\"version\":\"t1\",\"rule\":\"held\",\"by\":\"k\","
                                   "\"entries\":{\"a\":{\"limit\":9}}}"),
                           ADM_TABLE_REPLACE, NULL),
        ADM_OK);
    is("admit_policy_changes_total{kind=\"publish\"}", 1);
    is("admit_policy_changes_total{kind=\"rollback\"}", 1);
    is("admit_policy_changes_total{kind=\"table\"}", 1);
    is("admit_policy_changes_total{kind=\"refused\"}", 1);
    is("admit_info{policy_version=\"v1\",table_version=\"t1\",backend=\"relay\"}", 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L5_the_text_fits_the_buffer_or_says_how_long_it_is)
{
    char text[1u << 15], guard[8];
    uint64_t length = 0, again = 0;

    fixture_open(&f, V1);
    ck_assert_int_eq(adm_gate_metrics(f.gate, NULL, 0, &length), ADM_OK);
    ck_assert_uint_gt(length, 100);
    ck_assert_uint_lt(length, sizeof text - sizeof guard);
    memset(text, '~', sizeof text);
    ck_assert_int_eq(adm_gate_metrics(f.gate, text, length - 1, &again), ADM_E_BUFFER_TOO_SMALL);
    ck_assert_uint_eq(again, length);
    ck_assert_int_eq(text[length - 1], '~');
    ck_assert_int_eq(adm_gate_metrics(f.gate, text, length, &again), ADM_OK);
    ck_assert_uint_eq(again, length);
    ck_assert_int_eq(text[length], '~');
    ck_assert_int_eq(memcmp(text + length - 6, "# EOF\n", 6), 0);
    ck_assert_int_eq(adm_gate_metrics(f.gate, NULL, 5, &again), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_metrics(f.gate, text, length, NULL), ADM_E_INVALID_ARGUMENT);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        B049_decisions_by_reason_label_and_rule,
        B067_releases_by_outcome_and_result,
        B049_what_the_backend_did_and_did_not,
        B049_the_time_of_operations_that_deferred,
        B049_changes_of_policy_and_what_is_in_force,
        L5_the_text_fits_the_buffer_or_says_how_long_it_is,
    };

    return RUN_TESTS("gate metrics", tests);
}
