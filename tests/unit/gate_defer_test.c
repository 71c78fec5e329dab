/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking calls on a backend that answers late, out of order, or never. */
#include "gate_fixture.h"

#include <stdio.h>
#include <string.h>

#define HELD "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"60s\"}"
#define EXACT                                                                                      \
    "{\"id\":\"exact\",\"type\":\"token_bucket\",\"capacity\":100,\"refill\":1,\"per\":\"1h\","    \
    "\"settle\":\"exact\"}"
#define QUOTA                                                                                      \
    "{\"id\":\"quota\",\"type\":\"quota\",\"limit\":100,\"window\":\"day\",\"settle\":\"exact\"}"
#define RATE                                                                                       \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":100,\"refill\":1,\"per\":\"1h\"}"
#define V2       "{\"version\":\"v2\",\"rules\":[" HELD "," EXACT "," QUOTA "," RATE "]}"
#define MIXED    "[" HELD "," EXACT "," QUOTA "," RATE "]"
#define TIMEOUTS "admit_backend_errors_total{kind=\"timeout\"}"

static struct fixture f;

/* A gate whose backend answers when told to; the clock ticks, so that waiting ends. */
static void open_mixed(void)
{
    fixture_init(&f);
    fixture_open_deferring(&f, MIXED);
    f.clock.tick_ns = MS;
}

static struct adm_id allow_at_once(uint64_t cost)
{
    struct adm_id lease;

    f.relay.automatic = true;
    lease = allow(&f, "", cost);
    f.relay.automatic = false;
    return lease;
}

static void levels_are(int64_t held, int64_t exact, int64_t quota, int64_t rate)
{
    f.relay.automatic_kind = ADM_OP_TAKE; /* a look is a take */
    ck_assert_int_eq(level(&f, "held", ""), held);
    ck_assert_int_eq(level(&f, "exact", ""), exact);
    ck_assert_int_eq(level(&f, "quota", ""), quota);
    ck_assert_int_eq(level(&f, "rate", ""), rate);
    f.relay.automatic_kind = 0;
}

static void carry_on(void)
{
    f.relay.automatic = true;
    for (uint32_t i = 0; i < 4; i++)
        progress(&f);
    f.relay.automatic = false;
}

START_TEST(L7_admit_ends_at_its_deadline_and_denies)
{
    uint64_t before;
    struct adm_decision d;

    open_mixed();
    before = f.clock.time.mono_ns;
    d = decide(&f, "", 1);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_DENY);
    ck_assert_uint_eq(d.reason, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_eq(d.http_status, 503);
    ck_assert_uint_eq(d.retry_after_ms, 0);
    ck_assert_uint_eq(d.rule_count, 0);
    ck_assert(is_none(d.lease));
    ck_assert_uint_ge(f.clock.time.mono_ns - before, 20 * MS);
    ck_assert_uint_le(f.clock.time.mono_ns - before, 30 * MS);
    ck_assert_uint_eq(atomic_load(&f.relay.cancels), 1);
    ck_assert_uint_eq(f.relay.held_count, 0); /* taken back: nothing was charged */
    levels_are(0, 100, 0, 100);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_the_requests_own_deadline_counts_when_it_is_the_shorter_one)
{
    static const uint64_t wanted[] = { 5 * MS, 20 * MS, 500 * MS, UINT64_MAX, 0 };
    static const uint64_t expect[] = { 5 * MS, 20 * MS, 20 * MS, 20 * MS, 20 * MS };
    struct asked asked;

    open_mixed();
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        uint64_t before = f.clock.time.mono_ns, took;

        ask_for(&asked, "", 1);
        asked.request.deadline_ns = wanted[i];
        ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_STATE_UNAVAILABLE);
        took = f.clock.time.mono_ns - before;
        ck_assert_uint_ge(took, expect[i]);
        ck_assert_uint_le(took, expect[i] + 10 * MS);
    }
    fixture_close(&f);
}
END_TEST

START_TEST(L7_a_timeout_beyond_the_end_of_time_is_no_timeout_at_once)
{
    fixture_init(&f);
    f.options.backend_timeout_ns = UINT64_MAX;
    fixture_open_deferring(&f, MIXED);
    f.clock.tick_ns = MS;
    f.relay.automatic = true;
    f.relay.fail_kind = ADM_OP_TAKE;
    (void)allow(&f, "", 1);
    fixture_close(&f);
    /* The same with a backend that needs some polls. */
    fixture_init(&f);
    f.options.backend_timeout_ns = UINT64_MAX - 5;
    ck_assert_int_eq(adm_plain_open(&f.plain, &f.relay.inner), ADM_OK);
    ck_assert_int_eq(
        adm_deferring_open(
            &(struct adm_deferring_options){
                .size = sizeof(struct adm_deferring_options), .polls_min = 5, .polls_max = 5 },
            relay_backend(&f.relay), &f.options.backend),
        ADM_OK);
    f.clock.tick_ns = MS;
    fixture_start(&f, MIXED);
    (void)allow(&f, "", 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L1_a_grant_that_comes_after_the_deadline_is_given_back)
{
    open_mixed();
    f.relay.keeps_cancelled = true;
    deny(&f, "", 5, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_eq(f.relay.held_count, 1);
    relay_let_all(&f.relay); /* the take is carried out, and nobody wants it */
    carry_on();
    ck_assert_uint_eq(f.relay.held_count, 0);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_GIVE]), 1);
    /* Held units, exact buckets and quotas are back; a plain bucket cannot be given back. */
    levels_are(0, 100, 0, 95);
    fixture_close(&f);
}
END_TEST

START_TEST(L1_giving_back_goes_on_although_the_backend_is_away_for_a_while)
{
    open_mixed();
    f.relay.keeps_cancelled = true;
    deny(&f, "", 5, ADM_REASON_STATE_UNAVAILABLE);
    f.relay.automatic = true;
    f.relay.fail_kind = ADM_OP_GIVE;
    f.relay.fail_count = 3;
    for (uint32_t i = 0; i < 20; i++) {
        progress(&f);
        advance(&f, 50 * MS);
    }
    f.relay.automatic = false;
    ck_assert_uint_eq(f.relay.fail_count, 0);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_GIVE]), 4);
    levels_are(0, 100, 0, 95);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_a_late_grant_with_an_attempt_id_is_kept_for_the_repeat)
{
    struct adm_decision d;
    struct asked asked;

    open_mixed();
    f.relay.keeps_cancelled = true;
    ask_for(&asked, "", 5);
    ask_attempt(&asked, "lost-reply");
    ck_assert_uint_eq(decide_for(&f, &asked).reason, ADM_REASON_STATE_UNAVAILABLE);
    carry_on();
    f.relay.automatic = true;
    d = decide_for(&f, &asked);
    ck_assert_uint_eq(d.verdict, ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(d.flags, ADM_DECISION_REPEATED);
    f.relay.automatic = false;
    levels_are(5, 95, 5, 95); /* the allow means something: its units are held, once */
    f.relay.automatic = true;
    ck_assert_uint_eq(release(&f, d.lease), ADM_OUTCOME_RELEASED);
    f.relay.automatic = false;
    levels_are(0, 95, 5, 95);
    fixture_close(&f);
}
END_TEST

START_TEST(L3_what_nobody_waits_for_is_queued_and_carried_out_later)
{
    const struct adm_amount total = { ADM_UNIT_COST, 0, 1 };
    struct adm_id given, settled, diverted;
    uint32_t outcome = UINT32_MAX;

    open_mixed();
    given = allow_at_once(3);
    settled = allow_at_once(3);
    diverted = allow_at_once(3);
    levels_are(9, 91, 9, 91);
    ck_assert_uint_eq(release(&f, given), ADM_OUTCOME_QUEUED);
    ck_assert_int_eq(adm_settle(f.gate, settled, &total, 1, 1, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_QUEUED);
    ck_assert_int_eq(adm_divert(f.gate, diverted, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_QUEUED);
    outcome = 77;
    ck_assert_int_eq(adm_renew(f.gate, settled, &outcome), ADM_E_BACKEND_UNKNOWN);
    ck_assert_uint_eq(outcome, 77); /* a renewal that nobody waits for is taken back */
    ck_assert_uint_eq(f.relay.held_count, 3);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 3);
    ck_assert_uint_eq(metric(&f, "admit_queued_operations_total"), 3);
    levels_are(9, 91, 9, 91);
    relay_let_all(&f.relay);
    progress(&f);
    levels_are(1, 93, 7, 91);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 0);
    f.relay.automatic = true;
    ck_assert_uint_eq(release(&f, given), ADM_OUTCOME_ALREADY);
    fixture_close(&f);
}
END_TEST

START_TEST(L3_a_release_refused_as_unavailable_is_sent_again)
{
    struct adm_id lease;
    uint32_t outcome = UINT32_MAX;

    open_mixed();
    lease = allow_at_once(5);
    f.clock.tick_ns = 0;
    f.relay.automatic = true;
    f.relay.fail_kind = ADM_OP_GIVE;
    f.relay.fail_count = 2;
    ck_assert_int_eq(adm_release(f.gate, lease, ADM_RESULT_OK, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_QUEUED);
    ck_assert_uint_eq(metric(&f, "admit_queued_operations_total"), 1);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 1);
    progress(&f);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_GIVE]), 1); /* not at once */
    advance(&f, 50 * MS);
    progress(&f);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_GIVE]), 2);
    progress(&f);
    advance(&f, 50 * MS);
    progress(&f);
    progress(&f);
    ck_assert_uint_eq(atomic_load(&f.relay.started[ADM_OP_GIVE]), 3);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 0);
    ck_assert_int_eq(level(&f, "held", ""), 0);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_ALREADY);
    fixture_close(&f);
}
END_TEST

START_TEST(L3_what_cannot_be_sent_again_says_so)
{
    struct adm_id lease;
    uint32_t outcome = 77;

    open_mixed();
    lease = allow_at_once(5);
    f.relay.automatic = true;
    f.relay.fail_count = 1;
    f.relay.fail_status = ADM_E_BACKEND_FORKED;
    ck_assert_int_eq(adm_release(f.gate, lease, ADM_RESULT_OK, &outcome), ADM_E_BACKEND_FORKED);
    f.relay.fail_count = 1;
    f.relay.fail_status = ADM_E_BACKEND_UNAVAILABLE;
    ck_assert_int_eq(adm_renew(f.gate, lease, &outcome), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_uint_eq(outcome, 77);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 0);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    fixture_close(&f);
}
END_TEST

START_TEST(L5_operations_that_wait_to_be_sent_again_are_bounded)
{
    struct adm_id leases[3];
    uint32_t outcome = 77;

    fixture_init(&f);
    f.options.pending_max = 2;
    fixture_open_deferring(&f, MIXED);
    for (uint32_t i = 0; i < 3; i++)
        leases[i] = allow_at_once(1);
    f.relay.automatic = true;
    f.relay.fail_kind = ADM_OP_GIVE;
    f.relay.fail_count = 3;
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(adm_release(f.gate, leases[i], ADM_RESULT_OK, &outcome), ADM_OK);
        ck_assert_uint_eq(outcome, ADM_OUTCOME_QUEUED);
    }
    outcome = 77;
    ck_assert_int_eq(adm_release(f.gate, leases[2], ADM_RESULT_OK, &outcome),
                     ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_uint_eq(outcome, 77);
    ck_assert_uint_eq(metric(&f, "admit_queued_operations_total"), 2);
    advance(&f, 50 * MS);
    progress(&f);
    progress(&f);
    ck_assert_int_eq(level(&f, "held", ""), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_as_many_operations_as_pending_max_and_the_next_is_denied)
{
    struct adm_decision held[2];
    struct adm_queue *queue = NULL;
    struct asked asked;
    uint64_t ticket = 0;
    uint32_t outcome = 77;

    fixture_init(&f);
    f.options.pending_max = 2;
    fixture_open_deferring(&f, MIXED);
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK);
    ask_for(&asked, "", 1);
    for (uint32_t i = 0; i < 2; i++) {
        held[i].size = sizeof held[i];
        ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &held[i], NULL, &ticket),
                         ADM_OK);
        ck_assert_uint_ne(ticket, 0);
    }
    deny(&f, "", 1, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_int_eq(adm_renew(f.gate, NO_LEASE, &outcome), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_int_eq(adm_gate_sweep(f.gate, 10, NULL), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_int_eq(try_publish(&f, V2), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_uint_eq(f.relay.held_count, 2);
    adm_queue_close(queue);
    levels_are(0, 100, 0, 100);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_operations_that_nobody_waits_for_do_not_lock_everybody_out)
{
    struct adm_id leases[2];

    fixture_init(&f);
    f.options.pending_max = 2;
    fixture_open_deferring(&f, MIXED);
    f.clock.tick_ns = MS;
    for (uint32_t i = 0; i < 2; i++)
        leases[i] = allow_at_once(1);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert_uint_eq(release(&f, leases[i]), ADM_OUTCOME_QUEUED);
    deny(&f, "", 1, ADM_REASON_STATE_UNAVAILABLE);
    relay_let_all(&f.relay); /* the backend is back, and there is no other traffic */
    (void)allow_at_once(1);
    levels_are(1, 97, 3, 97);
    fixture_close(&f);
}
END_TEST

/* ---- publish ---- */

static void version_is(const char *expect)
{
    char version[65];

    ck_assert_int_eq(adm_gate_version(f.gate, version, sizeof version), ADM_OK);
    ck_assert_str_eq(version, expect);
}

START_TEST(L9_a_publish_that_the_backend_does_not_answer_changes_nothing)
{
    open_mixed();
    (void)allow_at_once(4);
    ck_assert_int_eq(try_publish(&f, V2), ADM_E_BACKEND_UNKNOWN);
    version_is("v1");
    ck_assert_uint_eq(f.relay.held_count, 0);
    levels_are(4, 96, 4, 96);
    ck_assert_int_eq(adm_gate_rollback(f.gate, adm_str("v2")), ADM_E_UNKNOWN_VERSION);
    fixture_close(&f);
}
END_TEST

START_TEST(L9_an_abandoned_publish_that_reached_the_backend_is_healed)
{
    open_mixed();
    f.relay.keeps_cancelled = true;
    (void)allow_at_once(4);
    ck_assert_int_eq(try_publish(&f, V2), ADM_E_BACKEND_UNKNOWN);
    carry_on(); /* now the backend has the classes of v2, and the gate those of v1 */
    version_is("v1");
    (void)allow_at_once(4);
    levels_are(8, 92, 8, 92);
    version_is("v1");
    f.relay.automatic = true;
    ck_assert_int_eq(try_publish(&f, V2), ADM_OK);
    version_is("v2");
    f.relay.automatic = false;
    (void)allow_at_once(1);
    levels_are(9, 91, 9, 91);
    fixture_close(&f);
}
END_TEST

static void stale_for_ever(bool defers, bool automatic)
{
    uint64_t before;
    int64_t found = 77;

    fixture_init(&f);
    if (defers)
        fixture_open_deferring(&f, MIXED);
    else
        fixture_start(&f, MIXED);
    f.relay.automatic = automatic;
    f.relay.fail_kind = ADM_OP_TAKE;
    f.relay.fail_count = UINT64_MAX;
    f.relay.fail_status = ADM_E_BACKEND_STALE;
    f.clock.tick_ns = MS / 10;
    before = f.clock.time.mono_ns;
    deny(&f, "", 1, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_lt(f.clock.time.mono_ns - before, 60 * MS);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("held"), NULL, 0, &found), ADM_E_BACKEND_STALE);
    ck_assert_int_eq(found, 77);
    f.relay.fail_count = 0;
    (void)allow(&f, "", 1);
    fixture_close(&f);
}

START_TEST(L7_a_backend_that_is_stale_for_ever_ends_in_a_denial)
{
    stale_for_ever(false, false);
    stale_for_ever(true, true);
}
END_TEST

START_TEST(L7_a_backend_that_is_late_and_stale_for_ever_ends_at_the_deadline)
{
    uint64_t before;

    fixture_init(&f);
    ck_assert_int_eq(adm_plain_open(&f.plain, &f.relay.inner), ADM_OK);
    ck_assert_int_eq(
        adm_deferring_open(
            &(struct adm_deferring_options){
                .size = sizeof(struct adm_deferring_options), .polls_min = 3, .polls_max = 3 },
            relay_backend(&f.relay), &f.options.backend),
        ADM_OK);
    fixture_start(&f, MIXED);
    f.relay.fail_kind = ADM_OP_TAKE;
    f.relay.fail_count = UINT64_MAX;
    f.relay.fail_status = ADM_E_BACKEND_STALE;
    f.clock.tick_ns = MS / 10;
    before = f.clock.time.mono_ns;
    deny(&f, "", 1, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_lt(f.clock.time.mono_ns - before, 60 * MS);
    f.relay.fail_count = 0;
    (void)allow(&f, "", 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_classes_that_cannot_be_put_again_do_not_move_the_deadline)
{
    const struct adm_deferring_options options = { .size = sizeof options,
                                                   .polls_min = 3,
                                                   .polls_max = 3 };
    uint64_t before;

    fixture_init(&f);
    ck_assert_int_eq(adm_plain_open(&f.plain, &f.relay.inner), ADM_OK);
    ck_assert_int_eq(adm_deferring_open(&options, relay_backend(&f.relay), &f.options.backend),
                     ADM_OK);
    fixture_start(&f, MIXED);
    f.relay.fail_kind = ADM_OP_TAKE; /* stale, and a put is never answered */
    f.relay.fail_count = UINT64_MAX;
    f.relay.fail_status = ADM_E_BACKEND_STALE;
    f.relay.forget_count = UINT64_MAX;
    f.clock.tick_ns = MS / 10;
    before = f.clock.time.mono_ns;
    deny(&f, "", 1, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_lt(f.clock.time.mono_ns - before, 60 * MS);
    f.relay.fail_count = f.relay.forget_count = 0;
    (void)allow(&f, "", 1);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L7_admit_ends_at_its_deadline_and_denies,
        L7_the_requests_own_deadline_counts_when_it_is_the_shorter_one,
        L7_a_timeout_beyond_the_end_of_time_is_no_timeout_at_once,
        L1_a_grant_that_comes_after_the_deadline_is_given_back,
        L1_giving_back_goes_on_although_the_backend_is_away_for_a_while,
        L10_a_late_grant_with_an_attempt_id_is_kept_for_the_repeat,
        L3_what_nobody_waits_for_is_queued_and_carried_out_later,
        L3_a_release_refused_as_unavailable_is_sent_again,
        L3_what_cannot_be_sent_again_says_so,
        L5_operations_that_wait_to_be_sent_again_are_bounded,
        L7_as_many_operations_as_pending_max_and_the_next_is_denied,
        L7_operations_that_nobody_waits_for_do_not_lock_everybody_out,
        L9_a_publish_that_the_backend_does_not_answer_changes_nothing,
        L9_an_abandoned_publish_that_reached_the_backend_is_healed,
        L7_a_backend_that_is_stale_for_ever_ends_in_a_denial,
        L7_a_backend_that_is_late_and_stale_for_ever_ends_at_the_deadline,
        L7_classes_that_cannot_be_put_again_do_not_move_the_deadline,
    };

    return RUN_TESTS("gate deferring", tests);
}
