/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break their contract: whatever they say, the gate does not allow what was not
 * granted (law L7). */
#include "gate_fixture.h"

#include <string.h>

#define HELD "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":2,\"lease_ttl\":\"60s\"}"
#define RATE                                                                                       \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"capacity\":2,\"refill\":1,\"per\":\"1h\"}"
#define LIES "admit_backend_errors_total{kind=\"result\"}"

static struct fixture f;

static void deny_as_unavailable(uint64_t cost)
{
    struct adm_decision d = decide(&f, "", cost);

    ck_assert_uint_eq(d.verdict, ADM_VERDICT_DENY);
    ck_assert_uint_eq(d.reason, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_eq(d.http_status, 503);
    ck_assert_uint_eq(d.rule_count, 0);
    ck_assert_uint_eq(d.names_used, 0);
    ck_assert_uint_eq(d.retry_after_ms, 0);
    ck_assert(is_none(d.lease));
}

/* ---- answers that contradict themselves ---- */

static void allow_anyway(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE) {
        op->args.take->verdict = ADM_VERDICT_ALLOW;
        op->args.take->lease = (struct adm_id){ 1, 2 };
    }
}

static void deny_anyway(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE)
        op->args.take->verdict = ADM_VERDICT_DENY;
}

static void forget_lease(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE)
        op->args.take->lease = NO_LEASE;
}

static void invent_lease(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE)
        op->args.take->lease = (struct adm_id){ 3, 4 };
}

static void strange_verdict(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE)
        op->args.take->verdict = 2;
}

static void strange_term(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind == ADM_OP_TAKE)
        op->args.take->terms[0].verdict = 99;
}

static void empty_answer(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind != ADM_OP_TAKE)
        return;
    op->args.take->lease = NO_LEASE;
    op->args.take->verdict = 0;
    for (uint32_t i = 0; i < op->args.take->term_count; i++)
        op->args.take->terms[i].verdict = ADM_TERM_UNKNOWN;
}

START_TEST(L7_an_allow_although_a_term_did_not_pass_is_a_denial)
{
    fixture_open(&f, "[" HELD "," RATE "]");
    (void)allow(&f, "", 2);
    f.relay.twist = allow_anyway;
    deny_as_unavailable(1);
    ck_assert_uint_eq(metric(&f, LIES), 1);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_answers_that_contradict_themselves_are_denials)
{
    static const relay_twist lies[] = { deny_anyway, forget_lease, strange_verdict, strange_term };

    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        fixture_open(&f, "[" HELD "]");
        f.relay.twist = lies[i];
        deny_as_unavailable(1);
        ck_assert_uint_eq(metric(&f, LIES), 1);
        fixture_close(&f);
    }
    fixture_open(&f, "[" HELD "]");
    f.relay.twist = empty_answer;
    ck_assert_uint_eq(decide(&f, "", 1).reason, ADM_REASON_STATE_UNAVAILABLE);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_a_lease_that_nobody_asked_for_is_not_believed)
{
    fixture_open(&f, "[" RATE "]");
    f.relay.twist = invent_lease;
    deny_as_unavailable(1);
    fixture_close(&f);
}
END_TEST

/* ---- statuses ---- */

START_TEST(L7_statuses_that_are_not_a_backends_to_say_are_no_answer)
{
    static const adm_status statuses[] = {
        1,
        77,
        INT32_MAX,
        INT32_MIN,
        ADM_E_INVALID_COST,
        ADM_E_INVALID_ATTEMPT,
        ADM_E_NOMEM,
        ADM_E_VERSION_CONFLICT,
        ADM_E_INTERNAL,
        -299,
        -400,
        ADM_E_BACKEND_RESULT,
        ADM_E_BACKEND_CANCELLED,
        ADM_E_BACKEND_UNKNOWN,
        -399,
    };
    uint32_t outcome = 77;

    fixture_open(&f, "[" HELD "]");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bool in_band = statuses[i] <= -300 && statuses[i] >= -399;

        f.relay.fail_status = statuses[i];
        f.relay.fail_count = 1;
        deny_as_unavailable(1);
        f.relay.fail_count = 1;
        ck_assert_int_eq(adm_release(f.gate, NO_LEASE, 0, &outcome),
                         in_band ? statuses[i] : ADM_E_BACKEND_RESULT);
        f.relay.fail_count = 1;
        ck_assert_int_eq(try_publish(&f, "{\"version\":\"v2\",\"rules\":[" RATE "]}"),
                         in_band ? statuses[i] : ADM_E_BACKEND_RESULT);
    }
    ck_assert_uint_eq(outcome, 77);
    ck_assert_int_eq(level(&f, "held", ""), 0);
    fixture_close(&f);
}
END_TEST

/* ---- outcomes ---- */

static uint32_t outcome_to_say;

static void say_outcome(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    op->outcome = outcome_to_say;
}

START_TEST(L3_outcomes_that_do_not_belong_to_the_operation_are_no_answer)
{
    static const uint32_t legal[] = {
        1u << ADM_OUTCOME_UNKNOWN | 1u << ADM_OUTCOME_ALREADY | 1u << ADM_OUTCOME_LATE |
            1u << ADM_OUTCOME_RELEASED,
        1u << ADM_OUTCOME_RENEWED | 1u << ADM_OUTCOME_LOST,
        1u << ADM_OUTCOME_UNKNOWN | 1u << ADM_OUTCOME_ALREADY | 1u << ADM_OUTCOME_LATE |
            1u << ADM_OUTCOME_SETTLED,
        1u << ADM_OUTCOME_UNKNOWN | 1u << ADM_OUTCOME_ALREADY | 1u << ADM_OUTCOME_LATE |
            1u << ADM_OUTCOME_DIVERTED,
    };

    fixture_open(&f, "[" HELD "]");
    f.relay.twist = say_outcome;
    for (uint32_t said = 0; said < 12; said++) {
        outcome_to_say = said < 10 ? said : said == 10 ? UINT32_MAX : 1u << 31;
        for (uint32_t op = 0; op < 4; op++) {
            uint32_t got = 77;
            adm_status status = op == 0   ? adm_release(f.gate, NO_LEASE, 0, &got)
                                : op == 1 ? adm_renew(f.gate, NO_LEASE, &got)
                                : op == 2 ? adm_settle(f.gate, NO_LEASE, NULL, 0, 1, &got)
                                          : adm_divert(f.gate, NO_LEASE, &got);
            bool believed = outcome_to_say < 32 && (legal[op] >> outcome_to_say & 1) != 0;

            ck_assert_int_eq(status, believed ? ADM_OK : ADM_E_BACKEND_RESULT);
            ck_assert_uint_eq(got, believed ? outcome_to_say : 77);
        }
    }
    fixture_close(&f);
}
END_TEST

/* ---- memos ---- */

static uint64_t memo_length_to_say;

static void say_memo(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)status;
    if (op->kind != ADM_OP_TAKE)
        return;
    op->args.take->repeated = ADM_REPEAT_SAME;
    op->args.take->verdict = ADM_VERDICT_ALLOW;
    op->args.take->memo_out_length = memo_length_to_say;
    memset(op->args.take->memo_out, (int)(memo_length_to_say % 70), ADM_MEMO_BYTES);
}

START_TEST(L10_a_memo_that_is_not_ours_allows_nothing)
{
    static const uint64_t lengths[] = {
        0, 1, 17, 64, 65, 130, 255, 256, 257, 1u << 20, UINT64_MAX
    };
    struct asked asked;

    fixture_open(&f, "[" RATE "]");
    ask_for(&asked, "", 1);
    ask_attempt(&asked, "a");
    f.relay.twist = say_memo;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct adm_decision d;

        memo_length_to_say = lengths[i];
        d = decide_for(&f, &asked);
        ck_assert_uint_eq(d.verdict, ADM_VERDICT_DENY);
        ck_assert_uint_eq(d.reason, ADM_REASON_STATE_UNAVAILABLE);
        ck_assert_str_eq(d.policy_version, "v1");
        ck_assert_uint_lt(strlen(d.table_version), sizeof d.table_version);
    }
    fixture_close(&f);
}
END_TEST

/* ---- completions ---- */

static void complete_twice(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    adm_op_complete(op, *status);
    adm_op_complete(op, ADM_E_BACKEND_UNAVAILABLE);
}

START_TEST(K8_an_operation_that_is_completed_three_times_is_answered_once)
{
    struct adm_id lease;

    fixture_open(&f, "[" HELD "]");
    f.relay.twist = complete_twice; /* the relay completes it once more */
    lease = allow(&f, "", 1);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(level(&f, "held", ""), 0);
    fixture_close(&f);

    fixture_init(&f);
    fixture_open_deferring(&f, "[" HELD "]");
    f.relay.automatic = true;
    f.relay.twist = complete_twice;
    lease = allow(&f, "", 1);
    (void)allow(&f, "", 1);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(level(&f, "held", ""), 1);
    fixture_close(&f);
}
END_TEST

/* The op comes back long after the gate has stopped believing in it. */
static void complete_forgotten(void)
{
    ck_assert_ptr_nonnull(f.relay.forgotten);
    adm_op_complete(f.relay.forgotten, ADM_OK);
    f.relay.forgotten = NULL;
}

START_TEST(L7_an_operation_that_is_not_completed_although_it_must_be_denies)
{
    struct adm_decision d = { .size = sizeof d };
    struct adm_queue *queue = NULL;
    struct asked asked;
    uint64_t ticket = 77;

    fixture_open(&f, "[" HELD "]");
    f.relay.forget_count = 1;
    deny_as_unavailable(1);
    ck_assert_uint_eq(metric(&f, LIES), 1);
    (void)allow(&f, "", 1); /* with another operation than the lost one */
    complete_forgotten();
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK);
    ask_for(&asked, "", 1);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &d, NULL, &ticket), ADM_OK);
    ck_assert_uint_eq(ticket, 0);
    ck_assert_uint_eq(d.reason, ADM_REASON_STATE_UNAVAILABLE);
    deny(&f, "", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    complete_forgotten();
    deny(&f, "", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    adm_queue_close(queue);
    fixture_close(&f);
}
END_TEST

START_TEST(L7_every_other_operation_that_is_not_completed_fails)
{
    struct asked asked;
    struct adm_decision d = { .size = sizeof d };
    uint32_t outcome = 77, done = 77;
    int64_t found = 77;

    fixture_open(&f, "[" HELD "]");
    ask_for(&asked, "", 1);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_release(f.gate, NO_LEASE, 0, &outcome), ADM_E_BACKEND_RESULT);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_settle(f.gate, NO_LEASE, NULL, 0, 1, &outcome), ADM_E_BACKEND_RESULT);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("held"), NULL, 0, &found), ADM_E_BACKEND_RESULT);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_gate_sweep(f.gate, 1, &done), ADM_E_BACKEND_RESULT);
    f.relay.forget_count = 1;
    ck_assert_int_eq(try_publish(&f, "{\"version\":\"v2\",\"rules\":[" RATE "]}"),
                     ADM_E_BACKEND_RESULT);
    f.relay.forget_count = 1;
    ck_assert_int_eq(adm_explain(f.gate, &asked.request, NULL, NULL, &d), ADM_OK);
    ck_assert_uint_eq(d.reason, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_eq(outcome, 77);
    ck_assert_uint_eq(done, 77);
    ck_assert_int_eq(found, 77);
    (void)allow(&f, "", 1); /* heals what the publish left in the backend */
    ck_assert_int_eq(level(&f, "held", ""), 1);
    fixture_close(&f);
}
END_TEST

/* ---- binding ---- */

static uint32_t closed;

static void count_close(void *self)
{
    (void)self;
    closed++;
}

static void never_called(void *self, struct adm_op *op)
{
    (void)self;
    (void)op;
    ck_abort_msg("start of a backend that was refused");
}

START_TEST(K8_a_gate_that_cannot_be_made_closes_the_backend_once)
{
    struct adm_backend_ops ops = { .size = sizeof ops,
                                   .abi = ADM_BACKEND_ABI,
                                   .name = "refused",
                                   .start = never_called,
                                   .close = count_close };
    struct adm_gate *gate = NULL;

    for (uint32_t fault = 0; fault < 7; fault++) {
        struct adm_backend_ops bad = ops;

        fixture_init(&f);
        f.options.policy = policy_of("[" HELD "]");
        f.options.backend = (struct adm_backend){ &bad, NULL };
        closed = 0;
        if (fault == 0)
            bad.name = "Not Legal";
        if (fault == 1)
            bad.start = NULL;
        if (fault == 2)
            f.options.flags = 1;
        if (fault == 3)
            f.options.reserved[0] = 1;
        if (fault == 4)
            f.options.name_space.length = 65;
        if (fault == 5)
            atomic_store(&f.counting.fail_from, 1);
        if (fault == 6) {
            adm_policy_unref(f.options.policy);
            f.options.policy = NULL;
        }
        ck_assert_int_ne(adm_gate_new(&f.options, &gate), ADM_OK);
        ck_assert_ptr_null(gate);
        ck_assert_uint_eq(closed, 1);
        ck_assert_int_eq(atomic_load(&f.counting.bytes), 0);
        adm_policy_unref(f.options.policy);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L7_an_allow_although_a_term_did_not_pass_is_a_denial,
        L7_answers_that_contradict_themselves_are_denials,
        L7_a_lease_that_nobody_asked_for_is_not_believed,
        L7_statuses_that_are_not_a_backends_to_say_are_no_answer,
        L3_outcomes_that_do_not_belong_to_the_operation_are_no_answer,
        L10_a_memo_that_is_not_ours_allows_nothing,
        K8_an_operation_that_is_completed_three_times_is_answered_once,
        L7_an_operation_that_is_not_completed_although_it_must_be_denies,
        L7_every_other_operation_that_is_not_completed_fails,
        K8_a_gate_that_cannot_be_made_closes_the_backend_once,
    };

    return RUN_TESTS("gate liars", tests);
}
