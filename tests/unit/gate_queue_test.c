/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: tickets that complete, expire, are cancelled or left behind; on a backend that answers
 * when told to. */
#include "gate_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define HELD "{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"60s\"}"
#define EXACT                                                                                      \
    "{\"id\":\"exact\",\"type\":\"token_bucket\",\"capacity\":100,\"refill\":1,\"per\":\"1h\","    \
    "\"settle\":\"exact\"}"
#define MIXED "[" HELD "," EXACT "]"
#define V2    "{\"version\":\"v2\",\"rules\":[" HELD "," EXACT "]}"
#define N     4u

static struct fixture f;
static struct adm_queue *queue;
static struct asked asked;
static struct adm_decision decisions[N];
static int users[N];

static void open_queue(void)
{
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK);
    ask_for(&asked, "", 1);
    for (uint32_t i = 0; i < N; i++) {
        memset(&decisions[i], 0x5a, sizeof decisions[i]);
        decisions[i].size = sizeof decisions[i];
    }
}

static void open_late(void)
{
    fixture_init(&f);
    fixture_open_deferring(&f, MIXED);
    open_queue();
}

static void close_late(void)
{
    adm_queue_close(queue);
    fixture_close(&f);
}

static uint64_t admit_start(uint32_t i)
{
    uint64_t ticket = UINT64_MAX;

    ck_assert_int_eq(
        adm_admit_start(f.gate, queue, &asked.request, &decisions[i], &users[i], &ticket), ADM_OK);
    return ticket;
}

static struct adm_completion next_of(uint32_t expect)
{
    struct adm_completion c = { .size = sizeof c };

    ck_assert_uint_eq(adm_queue_next(queue, &c), expect);
    return c;
}

static void nothing_more(void)
{
    (void)next_of(0);
}

static void untouched(uint32_t i)
{
    ck_assert_uint_eq(decisions[i].verdict, 0x5a5a5a5a);
    ck_assert_uint_eq(decisions[i].reason, 0x5a5a5a5a);
}

static bool readable(void)
{
    struct pollfd fd = { adm_queue_fd(queue), POLLIN, 0 };
    int n = poll(&fd, 1, 0);

    ck_assert_int_ge(n, 0);
    return n == 1;
}

static void levels_are(int64_t held, int64_t exact)
{
    f.relay.automatic_kind = ADM_OP_TAKE;
    ck_assert_int_eq(level(&f, "held", ""), held);
    ck_assert_int_eq(level(&f, "exact", ""), exact);
    f.relay.automatic_kind = 0;
}

/* Everything that is held comes back, and what follows from it. */
static void carry_on(void)
{
    f.relay.automatic = true;
    for (uint32_t i = 0; i < 4; i++)
        progress(&f);
    f.relay.automatic = false;
}

START_TEST(L2_tickets_complete_in_the_order_of_the_backend)
{
    uint64_t tickets[N];

    open_late();
    for (uint32_t i = 0; i < N; i++) {
        tickets[i] = admit_start(i);
        ck_assert_uint_ne(tickets[i], 0);
        ck_assert(i == 0 || tickets[i] != tickets[i - 1]);
        untouched(i);
    }
    nothing_more();
    ck_assert(!readable());
    relay_let(&f.relay, 2);
    relay_let(&f.relay, 0);
    for (uint32_t round = 0; round < 2; round++) {
        uint32_t i = round == 0 ? 0 : 2; /* both were due at the same poll, which goes in order */
        struct adm_completion c = next_of(1);

        ck_assert_int_eq(c.status, ADM_OK);
        ck_assert_uint_eq(c.ticket, tickets[i]);
        ck_assert_ptr_eq(c.user, &users[i]);
        ck_assert_ptr_eq(c.decision, &decisions[i]);
        ck_assert_uint_eq(decisions[i].verdict, ADM_VERDICT_ALLOW);
        ck_assert(!is_none(decisions[i].lease));
    }
    nothing_more();
    untouched(1);
    untouched(3);
    relay_let_all(&f.relay);
    (void)next_of(1);
    (void)next_of(1);
    nothing_more();
    ck_assert_uint_eq(adm_ticket_cancel(queue, tickets[1]), 0);
    levels_are(4, 96);
    close_late();
}
END_TEST

START_TEST(L2_the_request_may_be_gone_before_the_backend_answers)
{
    struct adm_completion c;
    uint64_t ticket;

    fixture_init(&f);
    fixture_open_deferring(&f, "[{\"id\":\"b\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],"
                               "\"capacity\":9,\"refill\":1,\"per\":\"1h\"}]");
    open_queue();
    ask_for(&asked, "k=a l=b", 2);
    ask_amount(&asked, ADM_UNIT_IMAGES, 1);
    ask_attempt(&asked, "attempt");
    ticket = admit_start(0);
    memset(&asked, 0xa5, sizeof asked); /* what it pointed to is ours again */
    relay_let_all(&f.relay);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_uint_eq(decisions[0].verdict, ADM_VERDICT_ALLOW);
    f.relay.automatic = true;
    ck_assert_int_eq(level(&f, "b", "k=a"), 7);
    close_late();
}
END_TEST

START_TEST(L3_operations_on_leases_complete_as_tickets_too)
{
    static const uint32_t expect[] = { ADM_OUTCOME_RENEWED, ADM_OUTCOME_SETTLED,
                                       ADM_OUTCOME_RELEASED, ADM_OUTCOME_ALREADY };
    const struct adm_amount total = { ADM_UNIT_COST, 0, 3 };
    uint64_t tickets[N];
    uint32_t outcome = 77;
    struct adm_id lease;

    open_late();
    f.relay.automatic = true;
    lease = allow(&f, "", 1);
    f.relay.automatic = false;
    ck_assert_int_eq(adm_renew_start(f.gate, queue, lease, &users[0], &outcome, &tickets[0]),
                     ADM_OK);
    ck_assert_int_eq(
        adm_settle_start(f.gate, queue, lease, &total, 1, 0, &users[1], &outcome, &tickets[1]),
        ADM_OK);
    ck_assert_int_eq(
        adm_release_start(f.gate, queue, lease, ADM_RESULT_OK, &users[2], &outcome, &tickets[2]),
        ADM_OK);
    ck_assert_int_eq(adm_divert_start(f.gate, queue, lease, &users[3], &outcome, &tickets[3]),
                     ADM_OK);
    relay_let_all(&f.relay);
    for (uint32_t i = 0; i < N; i++) {
        struct adm_completion c = next_of(1);

        ck_assert_uint_eq(c.ticket, tickets[i]);
        ck_assert_uint_eq(c.outcome, expect[i]);
        ck_assert_int_eq(c.status, ADM_OK);
        ck_assert_ptr_eq(c.user, &users[i]);
        ck_assert_ptr_null(c.decision);
    }
    nothing_more();
    levels_are(0, 97);
    close_late();
}
END_TEST

static void *poll_once(void *self)
{
    (void)self;
    progress(&f);
    return NULL;
}

START_TEST(B082_the_descriptor_is_readable_when_another_thread_completes_a_ticket)
{
    pthread_t thread;

    open_late();
    (void)admit_start(0);
    (void)admit_start(1);
    relay_let_all(&f.relay);
    ck_assert(!readable());
    ck_assert_int_eq(pthread_create(&thread, NULL, poll_once, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(readable());
    ck_assert_uint_eq(adm_queue_deadline(queue), 0);
    (void)next_of(1);
    ck_assert(readable()); /* there is more */
    (void)next_of(1);
    ck_assert(!readable());
    nothing_more();
    close_late();
}
END_TEST

START_TEST(B082_the_descriptor_is_readable_when_the_backends_own_is)
{
    const uint64_t one = 1;

    fixture_init(&f);
    f.relay.fd = eventfd(0, EFD_NONBLOCK);
    ck_assert_int_ge(f.relay.fd, 0);
    fixture_open_deferring(&f, MIXED);
    open_queue();
    ck_assert(!readable());
    ck_assert_int_eq(write(f.relay.fd, &one, sizeof one), sizeof one);
    ck_assert(readable());
    close_late();
    (void)close(f.relay.fd);
}
END_TEST

START_TEST(L7_a_ticket_ends_at_its_deadline)
{
    uint64_t started, ticket;
    struct adm_completion c;
    uint32_t outcome = 77;

    open_late();
    started = f.clock.time.mono_ns;
    asked.request.deadline_ns = 7 * MS;
    ticket = admit_start(0);
    ck_assert_uint_eq(adm_queue_deadline(queue), started + 7 * MS);
    advance(&f, 7 * MS - 1);
    nothing_more();
    advance(&f, 1);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_int_eq(c.status, ADM_OK);
    ck_assert_ptr_eq(c.decision, &decisions[0]);
    ck_assert_uint_eq(decisions[0].reason, ADM_REASON_STATE_UNAVAILABLE);
    ck_assert_uint_eq(decisions[0].http_status, 503);
    nothing_more();
    ck_assert_uint_eq(adm_queue_deadline(queue), UINT64_MAX);
    ck_assert_uint_eq(f.relay.held_count, 0);
    ck_assert_int_eq(adm_release_start(f.gate, queue, NO_LEASE, 0, NULL, &outcome, &ticket),
                     ADM_OK);
    advance(&f, 20 * MS);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_uint_eq(c.outcome, ADM_OUTCOME_QUEUED);
    ck_assert_int_eq(adm_renew_start(f.gate, queue, NO_LEASE, NULL, &outcome, &ticket), ADM_OK);
    advance(&f, 20 * MS);
    c = next_of(1);
    ck_assert_int_eq(c.status, ADM_E_BACKEND_UNKNOWN);
    levels_are(0, 100);
    close_late();
}
END_TEST

START_TEST(B072_a_cancelled_ticket_takes_nothing)
{
    uint64_t ticket;

    open_late();
    ticket = admit_start(0);
    ck_assert_uint_eq(adm_ticket_cancel(queue, ticket + 1), 0);
    ck_assert_uint_eq(adm_ticket_cancel(queue, ticket), 1);
    ck_assert_uint_eq(adm_ticket_cancel(queue, ticket), 0);
    ck_assert_uint_eq(f.relay.held_count, 0);
    nothing_more();
    untouched(0);
    levels_are(0, 100);
    close_late();
}
END_TEST

START_TEST(B071_a_grant_that_races_a_cancel_is_given_back)
{
    uint64_t ticket;

    open_late();
    f.relay.keeps_cancelled = true;
    ticket = admit_start(0);
    relay_let_all(&f.relay); /* it will be granted */
    ck_assert_uint_eq(adm_ticket_cancel(queue, ticket), 1);
    carry_on();
    nothing_more();
    untouched(0);
    levels_are(0, 100);
    close_late();
}
END_TEST

START_TEST(B071_a_ticket_that_has_completed_cannot_be_cancelled)
{
    uint64_t ticket;

    open_late();
    ticket = admit_start(0);
    relay_let_all(&f.relay);
    progress(&f);
    ck_assert_uint_eq(adm_ticket_cancel(queue, ticket), 0);
    ck_assert_uint_eq(next_of(1).ticket, ticket);
    ck_assert_uint_eq(decisions[0].verdict, ADM_VERDICT_ALLOW);
    levels_are(1, 99);
    close_late();
}
END_TEST

START_TEST(B075_closing_the_queue_gives_back_what_is_open_and_what_nobody_took)
{
    open_late();
    f.relay.keeps_cancelled = true;
    (void)admit_start(0);
    (void)admit_start(1);
    relay_let(&f.relay, 0);
    progress(&f); /* finished, and not taken */
    (void)admit_start(2);
    adm_queue_close(queue);
    relay_let_all(&f.relay);
    carry_on();
    untouched(0);
    untouched(1);
    untouched(2);
    ck_assert_uint_eq(metric(&f, "admit_pending_operations"), 0);
    levels_are(0, 100);
    fixture_close(&f);
}
END_TEST

START_TEST(B075_closing_the_queue_does_not_drop_a_release)
{
    uint64_t ticket;
    uint32_t outcome = 77;
    struct adm_id lease;

    open_late();
    f.relay.automatic = true;
    lease = allow(&f, "", 3);
    f.relay.automatic = false;
    ck_assert_int_eq(adm_release_start(f.gate, queue, lease, 0, NULL, &outcome, &ticket), ADM_OK);
    adm_queue_close(queue);
    relay_let_all(&f.relay);
    carry_on();
    levels_are(0, 97);
    fixture_close(&f);
}
END_TEST

START_TEST(B075_a_gate_with_operations_in_flight_can_be_freed)
{
    open_late();
    f.relay.keeps_cancelled = true;
    (void)admit_start(0);
    (void)admit_start(1);
    adm_queue_close(queue);
    fixture_close(&f); /* the backend still had both */
}
END_TEST

START_TEST(L3_two_queues_each_get_their_own_tickets)
{
    struct adm_queue *first, *second = NULL;
    struct adm_completion c;
    uint64_t one, two;

    open_late();
    first = queue;
    one = admit_start(0);
    ck_assert_int_eq(adm_queue_open(f.gate, &second), ADM_OK);
    queue = second;
    two = admit_start(1);
    relay_let_all(&f.relay);
    queue = first;
    ck_assert_uint_eq(adm_ticket_cancel(queue, two + 100), 0);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, one);
    ck_assert_ptr_eq(c.user, &users[0]);
    nothing_more();
    queue = second;
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, two);
    ck_assert_ptr_eq(c.user, &users[1]);
    nothing_more();
    adm_queue_close(first);
    close_late();
}
END_TEST

/* ---- publishes in between ---- */

/* The held take was built for v1, and the backend has v2 by now. */
static void publish_behind_its_back(const char *policy)
{
    f.relay.automatic_kind = ADM_OP_PUT_CLASSES;
    publish(&f, policy);
    f.relay.automatic_kind = 0;
}

START_TEST(L9_a_take_that_a_publish_overtook_is_asked_again_under_the_new_policy)
{
    struct adm_completion c;
    uint64_t ticket;

    open_late();
    ticket = admit_start(0);
    publish_behind_its_back(V2);
    relay_let_all(&f.relay);
    nothing_more(); /* stale: on its way again */
    ck_assert_uint_eq(f.relay.held_count, 1);
    relay_let_all(&f.relay);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_ptr_eq(c.user, &users[0]);
    ck_assert_uint_eq(decisions[0].verdict, ADM_VERDICT_ALLOW);
    ck_assert_str_eq(decisions[0].policy_version, "v2");
    ck_assert_uint_eq(metric(&f, "admit_rebuilt_takes_total"), 1);
    levels_are(1, 99);
    close_late();
}
END_TEST

START_TEST(L9_asked_again_it_may_be_answered_at_once)
{
    struct adm_completion c;
    uint64_t ticket;

    open_late();
    ticket = admit_start(0);
    publish_behind_its_back(V2);
    f.relay.automatic = true;
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_str_eq(decisions[0].policy_version, "v2");
    nothing_more(); /* and only once */
    (void)allow(&f, "", 1);
    f.relay.automatic = false;
    levels_are(2, 98);
    close_late();
}
END_TEST

START_TEST(L7_publishes_without_end_do_not_move_a_tickets_deadline)
{
    struct adm_completion c;
    uint64_t ticket, started;
    char policy[512];

    open_late();
    started = f.clock.time.mono_ns;
    ticket = admit_start(0);
    for (uint32_t i = 0; i < 4; i++) {
        (void)snprintf(policy, sizeof policy, "{\"version\":\"w%u\",\"rules\":[%s]}", i, HELD);
        publish_behind_its_back(policy);
        relay_let_all(&f.relay);
        advance(&f, 5 * MS - 1);
        nothing_more();
        ck_assert_uint_eq(adm_queue_deadline(queue), started + 20 * MS);
    }
    advance(&f, 4);
    c = next_of(1);
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_uint_eq(decisions[0].reason, ADM_REASON_STATE_UNAVAILABLE);
    close_late();
}
END_TEST

START_TEST(L9_an_abandoned_publish_is_healed_by_a_queue_as_well)
{
    struct adm_completion c;
    uint64_t ticket;

    open_late();
    f.relay.keeps_cancelled = true;
    f.clock.tick_ns = MS;
    ck_assert_int_eq(try_publish(&f, V2), ADM_E_BACKEND_UNKNOWN);
    f.clock.tick_ns = 0;
    relay_let_all(&f.relay);
    progress(&f); /* the backend has the classes of v2 now */
    ticket = admit_start(0);
    c.ticket = 0;
    for (uint32_t i = 0; i < 8 && c.ticket == 0; i++) {
        c = (struct adm_completion){ .size = sizeof c };
        relay_let_all(&f.relay);
        (void)adm_queue_next(queue, &c);
    }
    ck_assert_uint_eq(c.ticket, ticket);
    ck_assert_uint_eq(decisions[0].verdict, ADM_VERDICT_ALLOW);
    ck_assert_str_eq(decisions[0].policy_version, "v1");
    levels_are(1, 99);
    close_late();
}
END_TEST

/* ---- bounds ---- */

START_TEST(L7_nothing_where_something_must_be)
{
    struct adm_completion c = { .size = sizeof c };
    uint64_t ticket = 77;
    uint32_t outcome = 77;

    open_late();
    ck_assert_int_eq(adm_queue_open(NULL, &queue), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_queue_open(f.gate, NULL), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_admit_start(f.gate, NULL, &asked.request, &decisions[0], NULL, &ticket),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &decisions[0], NULL, NULL),
                     ADM_E_INVALID_ARGUMENT);
    asked.request.cost = 0;
    ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &decisions[0], NULL, &ticket),
                     ADM_E_INVALID_COST);
    ck_assert_int_eq(adm_release_start(f.gate, NULL, NO_LEASE, 0, NULL, &outcome, &ticket),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_release_start(f.gate, queue, NO_LEASE, 0, NULL, NULL, &ticket),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(ticket, 77);
    ck_assert_uint_eq(outcome, 77);
    untouched(0);
    ck_assert_uint_eq(adm_queue_next(NULL, &c), 0);
    ck_assert_uint_eq(adm_queue_next(queue, NULL), 0);
    c.size = sizeof c - 1;
    ck_assert_uint_eq(adm_queue_next(queue, &c), 0);
    ck_assert_int_eq(adm_queue_fd(NULL), -1);
    ck_assert_uint_eq(adm_queue_deadline(NULL), UINT64_MAX);
    adm_queue_close(NULL);
    ck_assert_uint_eq(f.relay.held_count, 0);
    close_late();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L2_tickets_complete_in_the_order_of_the_backend,
        L2_the_request_may_be_gone_before_the_backend_answers,
        L3_operations_on_leases_complete_as_tickets_too,
        B082_the_descriptor_is_readable_when_another_thread_completes_a_ticket,
        B082_the_descriptor_is_readable_when_the_backends_own_is,
        L7_a_ticket_ends_at_its_deadline,
        B072_a_cancelled_ticket_takes_nothing,
        B071_a_grant_that_races_a_cancel_is_given_back,
        B071_a_ticket_that_has_completed_cannot_be_cancelled,
        B075_closing_the_queue_gives_back_what_is_open_and_what_nobody_took,
        B075_closing_the_queue_does_not_drop_a_release,
        B075_a_gate_with_operations_in_flight_can_be_freed,
        L3_two_queues_each_get_their_own_tickets,
        L9_a_take_that_a_publish_overtook_is_asked_again_under_the_new_policy,
        L9_asked_again_it_may_be_answered_at_once,
        L7_publishes_without_end_do_not_move_a_tickets_deadline,
        L9_an_abandoned_publish_is_healed_by_a_queue_as_well,
        L7_nothing_where_something_must_be,
    };

    return RUN_TESTS("gate queues", tests);
}
