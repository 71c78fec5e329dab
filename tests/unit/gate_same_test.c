/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that answers late or out of order gives the same decisions as one that answers at once.
 */
#include "gate_fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define STEPS 3000u
#define OPEN  24u

#define V1                                                                                         \
    "{\"version\":\"v1\",\"rules\":["                                                              \
    "{\"id\":\"bucket\",\"type\":\"token_bucket\",\"partition_by\":[\"c\"],\"capacity\":20,"       \
    "\"refill\":3,\"per\":\"7s\",\"settle\":\"exact\"},"                                           \
    "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":12,\"lease_ttl\":\"9s\"},"                \
    "{\"id\":\"quota\",\"type\":\"quota\",\"partition_by\":[\"c\"],\"limit\":400,"                 \
    "\"window\":\"day\",\"settle\":\"exact\"},"                                                    \
    "{\"id\":\"done\",\"type\":\"token_bucket\",\"unit\":\"output_tokens\",\"match\":"             \
    "{\"c\":\"c2\"},\"charge\":\"completion\",\"capacity\":50,\"refill\":5,\"per\":\"1s\"},"       \
    "{\"id\":\"dark\",\"type\":\"concurrency\",\"mode\":\"shadow\",\"limit\":3,"                   \
    "\"lease_ttl\":\"5s\"}]}"
#define V2                                                                                         \
    "{\"version\":\"v2\",\"rules\":["                                                              \
    "{\"id\":\"bucket\",\"type\":\"token_bucket\",\"partition_by\":[\"c\"],\"capacity\":15,"       \
    "\"refill\":9,\"per\":\"7s\",\"settle\":\"exact\"},"                                           \
    "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"4s\"},"                 \
    "{\"id\":\"quota\",\"type\":\"quota\",\"partition_by\":[\"c\"],\"limit\":500,"                 \
    "\"window\":\"day\",\"settle\":\"exact\"}]}"

/* Two gates that are asked the same. */
static struct fixture at_once, late;
static struct adm_queue *queue;
static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

struct pair {
    struct adm_id at_once, late;
};

static struct pair leases[OPEN];

/* Through the queue: start, and poll until it has come. */
static struct adm_decision decide_by_queue(const struct asked *asked)
{
    struct adm_decision d = { .size = sizeof d };
    struct adm_completion c = { .size = sizeof c };
    uint64_t ticket = 77;

    ck_assert_int_eq(adm_admit_start(late.gate, queue, &asked->request, &d, NULL, &ticket), ADM_OK);
    for (uint32_t i = 0; i < 1000 && ticket != 0; i++)
        if (adm_queue_next(queue, &c) == 1) {
            ck_assert_uint_eq(c.ticket, ticket);
            ck_assert_int_eq(c.status, ADM_OK);
            ticket = 0;
        }
    ck_assert_uint_eq(ticket, 0);
    return d;
}

static void same_decision(const struct adm_decision *a, const struct adm_decision *b)
{
    ck_assert_msg(a->reason == b->reason, "at once %s, late %s", adm_reason_name(a->reason),
                  adm_reason_name(b->reason));
    ck_assert_uint_eq(a->verdict, b->verdict);
    ck_assert_uint_eq(a->flags, b->flags);
    ck_assert_uint_eq(a->rule_count, b->rule_count);
    ck_assert_uint_eq(a->shadow_count, b->shadow_count);
    ck_assert_uint_eq(a->unknown_count, b->unknown_count);
    ck_assert_uint_eq(a->retry_after_ms, b->retry_after_ms);
    ck_assert_uint_eq(a->names_used, b->names_used);
    ck_assert_mem_eq(a->names, b->names, a->names_used);
    ck_assert_str_eq(a->policy_version, b->policy_version);
    ck_assert_uint_eq(is_none(a->lease), is_none(b->lease));
}

static void ask_both(bool by_queue)
{
    struct adm_decision first, second;
    struct asked asked;
    char text[16], attempt[8];

    (void)snprintf(text, sizeof text, "c=c%u", (uint32_t)draw(3));
    (void)snprintf(attempt, sizeof attempt, "a%u", (uint32_t)draw(40));
    ask_for(&asked, text, 1 + draw(5));
    ask_amount(&asked, ADM_UNIT_OUTPUT_TOKENS, draw(30));
    if (draw(3) == 0)
        ask_attempt(&asked, attempt);
    first.size = second.size = sizeof first;
    if (asked.request.attempt.data != NULL) {
        /* It may be known with other contents: then both must say so. */
        adm_status status = adm_admit(at_once.gate, &asked.request, &first);

        ck_assert_int_eq(adm_admit(late.gate, &asked.request, &second), status);
        if (status != ADM_OK)
            return;
    } else {
        first = decide_for(&at_once, &asked);
        second = by_queue ? decide_by_queue(&asked) : decide_for(&late, &asked);
    }
    same_decision(&first, &second);
    if (!is_none(first.lease))
        leases[draw(OPEN)] = (struct pair){ first.lease, second.lease };
}

static void use_both(void)
{
    const struct pair *lease = &leases[draw(OPEN)];
    const struct adm_amount totals[2] = { { ADM_UNIT_COST, 0, draw(8) },
                                          { ADM_UNIT_OUTPUT_TOKENS, (uint32_t)draw(2), draw(60) } };
    uint32_t what = (uint32_t)draw(4), final_all = (uint32_t)draw(2), first = 77, second = 78;

    switch (what) {
    case 0:
        ck_assert_int_eq(adm_release(at_once.gate, lease->at_once, 0, &first), ADM_OK);
        ck_assert_int_eq(adm_release(late.gate, lease->late, 0, &second), ADM_OK);
        break;
    case 1:
        ck_assert_int_eq(adm_renew(at_once.gate, lease->at_once, &first), ADM_OK);
        ck_assert_int_eq(adm_renew(late.gate, lease->late, &second), ADM_OK);
        break;
    case 2:
        ck_assert_int_eq(adm_settle(at_once.gate, lease->at_once, totals, 2, final_all, &first),
                         ADM_OK);
        ck_assert_int_eq(adm_settle(late.gate, lease->late, totals, 2, final_all, &second), ADM_OK);
        break;
    default:
        ck_assert_int_eq(adm_divert(at_once.gate, lease->at_once, &first), ADM_OK);
        ck_assert_int_eq(adm_divert(late.gate, lease->late, &second), ADM_OK);
        break;
    }
    ck_assert_msg(first == second, "operation %u: %s and %s", what, adm_outcome_name(first),
                  adm_outcome_name(second));
}

static void look_at_both(void)
{
    static const char *const partitions[] = { "c=c0", "c=c1", "c=c2" };

    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(level(&at_once, "bucket", partitions[i]),
                         level(&late, "bucket", partitions[i]));
        ck_assert_int_eq(level(&at_once, "quota", partitions[i]),
                         level(&late, "quota", partitions[i]));
    }
    ck_assert_int_eq(level(&at_once, "held", ""), level(&late, "held", ""));
}

static void change_both(void)
{
    const char *policy = draw(2) ? V1 : V2;

    ck_assert_int_eq(try_publish(&at_once, policy), ADM_OK);
    ck_assert_int_eq(try_publish(&late, policy), ADM_OK);
}

static void walk(const struct adm_deferring_options *options, bool by_queue)
{
    struct adm_backend plain;

    memset(leases, 0, sizeof leases);
    fixture_open(&at_once, V1);
    fixture_init(&late);
    ck_assert_int_eq(adm_plain_open(&late.plain, &plain), ADM_OK);
    ck_assert_int_eq(adm_deferring_open(options, plain, &late.options.backend), ADM_OK);
    fixture_start(&late, V1);
    ck_assert_int_eq(adm_queue_open(late.gate, &queue), ADM_OK);
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t pause = draw(6) == 0 ? draw(3000) * MS : 0;

        if (draw(2) == 0)
            ask_both(by_queue);
        else
            use_both();
        if (draw(50) == 0)
            change_both();
        if (draw(10) == 0)
            look_at_both();
        advance(&at_once, pause);
        advance(&late, pause);
    }
    adm_queue_close(queue);
    fixture_close(&late);
    fixture_close(&at_once);
}

START_TEST(K7_late_answers_are_the_same_answers)
{
    const struct adm_deferring_options options = { .size = sizeof options,
                                                   .polls_max = 4,
                                                   .seed = 3 };

    random_state = 11;
    walk(&options, false);
}
END_TEST

START_TEST(K7_late_answers_through_a_queue_are_the_same_answers)
{
    const struct adm_deferring_options options = { .size = sizeof options,
                                                   .flags = ADM_DEFER_OUT_OF_ORDER,
                                                   .polls_min = 1,
                                                   .polls_max = 9,
                                                   .seed = 4 };

    random_state = 12;
    walk(&options, true);
}
END_TEST

/* ---- out of order: whatever the order, all of it happened one after another ---- */

#define TOGETHER 12u

START_TEST(L2_takes_that_overtake_each_other_grant_no_more_than_the_limit)
{
    static struct adm_decision decisions[TOGETHER];

    for (uint64_t seed = 1; seed <= 40; seed++) {
        const struct adm_deferring_options options = {
            .size = sizeof options, .flags = ADM_DEFER_OUT_OF_ORDER, .polls_max = 20, .seed = seed
        };
        struct adm_completion c = { .size = sizeof c };
        uint64_t open = 0, granted = 0, ticket = 0;
        struct adm_backend plain;
        struct asked asked;

        fixture_init(&late);
        ck_assert_int_eq(adm_plain_open(&late.plain, &plain), ADM_OK);
        ck_assert_int_eq(adm_deferring_open(&options, plain, &late.options.backend), ADM_OK);
        fixture_start(&late, "[{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":13,"
                             "\"lease_ttl\":\"60s\"}]");
        ck_assert_int_eq(adm_queue_open(late.gate, &queue), ADM_OK);
        for (uint32_t i = 0; i < TOGETHER; i++) {
            ask_for(&asked, "", 1 + i % 4);
            decisions[i].size = sizeof decisions[i];
            ck_assert_int_eq(adm_admit_start(late.gate, queue, &asked.request, &decisions[i],
                                             &decisions[i], &ticket),
                             ADM_OK);
            open += ticket != 0;
        }
        for (uint32_t i = 0; i < 1000 && open > 0; i++)
            open -= adm_queue_next(queue, &c);
        ck_assert_uint_eq(open, 0);
        for (uint32_t i = 0; i < TOGETHER; i++) {
            if (decisions[i].verdict == ADM_VERDICT_ALLOW)
                granted += 1 + i % 4;
            else
                ck_assert_uint_eq(decisions[i].reason, ADM_REASON_CONCURRENCY_EXCEEDED);
        }
        ck_assert_uint_le(granted, 13);
        ck_assert_uint_gt(granted, 9); /* 30 were asked for, at most 4 at a time */
        ck_assert_int_eq(level(&late, "held", ""), (int64_t)granted);
        for (uint32_t i = 0; i < TOGETHER; i++)
            if (decisions[i].verdict == ADM_VERDICT_ALLOW)
                ck_assert_uint_eq(release(&late, decisions[i].lease), ADM_OUTCOME_RELEASED);
        ck_assert_int_eq(level(&late, "held", ""), 0);
        adm_queue_close(queue);
        fixture_close(&late);
    }
}
END_TEST

/* ---- at once: the same calls, and nothing waits ---- */

START_TEST(L3_with_a_backend_that_completes_at_once_nothing_waits_in_the_queue)
{
    const struct adm_amount total = { ADM_UNIT_COST, 0, 2 };
    struct adm_decision first = { .size = sizeof first }, second = { .size = sizeof second };
    struct adm_completion c = { .size = sizeof c };
    uint64_t tickets[6] = { 77, 77, 77, 77, 77, 77 };
    struct adm_gate *gate;
    struct pollfd fd;
    uint32_t outcome = 77;
    struct asked asked;

    fixture_open(&at_once, V1);
    gate = at_once.gate;
    ck_assert_int_eq(adm_queue_open(gate, &queue), ADM_OK);
    ask_for(&asked, "c=c0", 1);
    ck_assert_int_eq(adm_admit_start(gate, queue, &asked.request, &first, NULL, &tickets[0]),
                     ADM_OK);
    ck_assert_int_eq(adm_admit_start(gate, queue, &asked.request, &second, NULL, &tickets[1]),
                     ADM_OK);
    ck_assert_uint_eq(first.verdict, ADM_VERDICT_ALLOW);
    ck_assert_int_eq(adm_renew_start(gate, queue, first.lease, NULL, &outcome, &tickets[2]),
                     ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_RENEWED);
    ck_assert_int_eq(
        adm_settle_start(gate, queue, first.lease, &total, 1, 1, NULL, &outcome, &tickets[3]),
        ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_SETTLED);
    ck_assert_int_eq(
        adm_release_start(gate, queue, first.lease, ADM_RESULT_OK, NULL, &outcome, &tickets[4]),
        ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_RELEASED);
    ck_assert_int_eq(adm_divert_start(gate, queue, second.lease, NULL, &outcome, &tickets[5]),
                     ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_DIVERTED);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_uint_eq(tickets[i], 0);
    ck_assert_uint_eq(adm_queue_next(queue, &c), 0);
    fd = (struct pollfd){ adm_queue_fd(queue), POLLIN, 0 };
    ck_assert_int_eq(poll(&fd, 1, 0), 0);
    ck_assert_uint_eq(adm_queue_deadline(queue), UINT64_MAX);
    ck_assert_uint_eq(adm_ticket_cancel(queue, 0), 0);
    ck_assert_uint_eq(adm_ticket_cancel(queue, 1), 0);
    adm_queue_close(queue);
    fixture_close(&at_once);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        K7_late_answers_are_the_same_answers,
        K7_late_answers_through_a_queue_are_the_same_answers,
        L2_takes_that_overtake_each_other_grant_no_more_than_the_limit,
        L3_with_a_backend_that_completes_at_once_nothing_waits_in_the_queue,
    };

    return RUN_TESTS("gate same", tests);
}
