/* SPDX-License-Identifier: Apache-2.0 */
/* Events: one record per decision, usage report and release, joined by the decision id; and no way
 * back in (law K9). */
#include "gate_fixture.h"

#include <stdlib.h>
#include <string.h>

#define RULES                                                                                      \
    "[{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":3,\"lease_ttl\":\"60s\"},"               \
    "{\"id\":\"exact\",\"type\":\"token_bucket\",\"unit\":\"tokens\",\"match\":{\"t\":\"*\"},"     \
    "\"capacity\":100,\"refill\":1,\"per\":\"1h\",\"settle\":\"exact\"}]"
#define EVENTS 16u

static struct fixture f;
static struct adm_event events[EVENTS];
static struct adm_decision event_decision;
static struct adm_amount event_amounts[ADM_MAX_AMOUNTS];
static uint32_t event_count, descriptors_seen;

static void take_event(void *self, const struct adm_event *event)
{
    ck_assert_ptr_eq(self, &f);
    ck_assert_uint_lt(event_count, EVENTS);
    ck_assert_uint_eq(event->size, sizeof *event);
    events[event_count++] = *event;
    for (uint64_t i = 0; i < event->amount_count; i++)
        event_amounts[i] = event->amounts[i];
    descriptors_seen = 0;
    for (uint64_t i = 0; i < event->descriptor_count; i++)
        descriptors_seen += event->descriptors[i].value.length > 0;
    if (event->kind == ADM_EVENT_DECISION)
        event_decision = *event->decision;
    else
        ck_assert_ptr_null(event->decision);
}

static void open_with_events(void (*on_event)(void *, const struct adm_event *), bool defers)
{
    fixture_init(&f);
    f.options.on_event = on_event;
    f.options.on_event_self = &f;
    if (defers)
        fixture_open_deferring(&f, RULES);
    else
        fixture_start(&f, RULES);
}

START_TEST(L3_decision_usage_and_release_join_by_the_decision_id)
{
    const struct adm_amount totals[] = { { ADM_UNIT_TOKENS, ADM_AMOUNT_FINAL, 30 },
                                         { ADM_UNIT_IMAGES, 0, 2 } };
    struct adm_decision d;
    struct asked asked;
    uint32_t outcome = 77;

    open_with_events(take_event, false);
    ask_for(&asked, "t=x u=y", 2);
    ask_amount(&asked, ADM_UNIT_TOKENS, 50);
    d = decide_for(&f, &asked);
    ck_assert_uint_eq(event_count, 1);
    ck_assert_uint_eq(events[0].kind, ADM_EVENT_DECISION);
    ck_assert_mem_eq(&event_decision, &d, sizeof d);
    ck_assert(same_id(events[0].decision_id, d.id));
    ck_assert(same_id(events[0].lease, d.lease));
    ck_assert(
        !same_id(d.id, d.lease)); /* who sees the id of a decision cannot give its units back */
    ck_assert_uint_eq(events[0].cost, 2);
    ck_assert_uint_eq(events[0].amount_count, 1);
    ck_assert_uint_eq(event_amounts[0].value, 50);
    ck_assert_uint_eq(descriptors_seen, 2);
    ck_assert_uint_eq(events[0].now.mono_ns, f.clock.time.mono_ns);
    ck_assert_uint_eq(events[0].now.wall_ns, f.clock.time.wall_ns);
    ck_assert_int_eq(adm_settle(f.gate, d.lease, totals, 2, 1, &outcome), ADM_OK);
    ck_assert_uint_eq(events[1].kind, ADM_EVENT_USAGE);
    ck_assert_uint_eq(events[1].outcome, ADM_OUTCOME_SETTLED);
    ck_assert_uint_eq(events[1].final_all, 1);
    ck_assert_uint_eq(events[1].amount_count, 2);
    ck_assert_uint_eq(event_amounts[0].value, 30);
    ck_assert_uint_eq(event_amounts[0].flags, ADM_AMOUNT_FINAL);
    ck_assert_int_eq(adm_renew(f.gate, d.lease, &outcome), ADM_OK); /* tells nothing */
    ck_assert_int_eq(adm_divert(f.gate, d.lease, &outcome), ADM_OK);
    ck_assert_uint_eq(events[2].kind, ADM_EVENT_RELEASE);
    ck_assert_uint_eq(events[2].outcome, ADM_OUTCOME_DIVERTED);
    ck_assert_uint_eq(events[2].result, ADM_RESULT_DIVERTED);
    ck_assert_int_eq(adm_release(f.gate, d.lease, ADM_RESULT_TIMEOUT, &outcome), ADM_OK);
    ck_assert_uint_eq(events[3].kind, ADM_EVENT_RELEASE);
    ck_assert_uint_eq(events[3].result, ADM_RESULT_TIMEOUT);
    ck_assert_uint_eq(event_count, 4);
    for (uint32_t i = 0; i < event_count; i++)
        ck_assert(same_id(events[i].decision_id, d.id));
    fixture_close(&f);
}
END_TEST

START_TEST(L3_denials_are_told_and_refused_calls_and_looks_are_not)
{
    struct adm_decision d = { .size = sizeof d };
    struct asked asked;
    uint32_t outcome;

    open_with_events(take_event, false);
    deny(&f, "", 4, ADM_REASON_UNSATISFIABLE);
    ck_assert_uint_eq(event_count, 1);
    ck_assert_uint_eq(event_decision.verdict, ADM_VERDICT_DENY);
    ck_assert(is_none(events[0].lease));
    ck_assert(!is_none(events[0].decision_id));
    ask_for(&asked, "", 0);
    ck_assert_int_eq(adm_admit(f.gate, &asked.request, &d), ADM_E_INVALID_COST);
    ask_for(&asked, "", 1);
    ck_assert_int_eq(adm_explain(f.gate, &asked.request, NULL, NULL, &d), ADM_OK);
    (void)level(&f, "held", "");
    ck_assert_uint_eq(event_count, 1);
    f.relay.fail_count = 1;
    ck_assert_int_eq(adm_release(f.gate, NO_LEASE, 0, &outcome), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_uint_eq(event_count, 1);
    ck_assert_uint_eq(release(&f, NO_LEASE), ADM_OUTCOME_UNKNOWN);
    ck_assert_uint_eq(event_count, 2);
    ck_assert_uint_eq(events[1].outcome, ADM_OUTCOME_UNKNOWN);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_a_repeated_attempt_joins_the_first_decision)
{
    struct asked asked;

    open_with_events(take_event, false);
    ask_for(&asked, "", 1);
    ask_attempt(&asked, "a");
    (void)decide_for(&f, &asked);
    (void)decide_for(&f, &asked);
    ck_assert_uint_eq(event_count, 2);
    ck_assert(same_id(events[0].decision_id, events[1].decision_id));
    ck_assert(same_id(events[0].lease, events[1].lease));
    ck_assert_uint_eq(event_decision.flags, ADM_DECISION_REPEATED);
    fixture_close(&f);
}
END_TEST

START_TEST(L3_a_queued_release_is_told_as_queued_and_once)
{
    struct adm_id lease;

    open_with_events(take_event, true);
    f.relay.automatic = true;
    lease = allow(&f, "", 1);
    f.relay.automatic = false;
    f.clock.tick_ns = MS;
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_QUEUED);
    ck_assert_uint_eq(event_count, 2);
    ck_assert_uint_eq(events[1].outcome, ADM_OUTCOME_QUEUED);
    ck_assert(same_id(events[1].decision_id, events[0].decision_id));
    relay_let_all(&f.relay);
    progress(&f);
    progress(&f);
    ck_assert_uint_eq(event_count, 2);
    fixture_close(&f);
}
END_TEST

START_TEST(L3_the_event_of_a_ticket_shows_the_request_as_it_was)
{
    struct adm_decision d = { .size = sizeof d };
    struct adm_completion c = { .size = sizeof c };
    struct adm_queue *queue = NULL;
    uint64_t ticket = 0;
    struct asked asked;

    open_with_events(take_event, true);
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK);
    ask_for(&asked, "t=x u=y", 2);
    ask_amount(&asked, ADM_UNIT_TOKENS, 50);
    ck_assert_int_eq(adm_admit_start(f.gate, queue, &asked.request, &d, NULL, &ticket), ADM_OK);
    memset(&asked, 0, sizeof asked);
    ck_assert_uint_eq(event_count, 0);
    relay_let_all(&f.relay);
    ck_assert_uint_eq(adm_queue_next(queue, &c), 1);
    ck_assert_uint_eq(event_count, 1);
    ck_assert_uint_eq(descriptors_seen, 2);
    ck_assert_uint_eq(events[0].cost, 2);
    ck_assert_uint_eq(event_amounts[0].value, 50);
    adm_queue_close(queue);
    fixture_close(&f);
}
END_TEST

/* ---- no way back in ---- */

static struct adm_queue *open_queue;
static uint32_t tries;

static void call_everything(void *self, const struct adm_event *event)
{
    struct adm_decision d = { .size = sizeof d };
    struct adm_completion c = { .size = sizeof c };
    struct adm_backend_info info = { .size = sizeof info };
    struct adm_bytes text = adm_str("x");
    struct adm_queue *queue = NULL;
    struct adm_gate *gate = f.gate, *another = NULL;
    struct adm_gate_options options = f.options;
    struct adm_policy *policy = policy_of(RULES);
    struct asked asked;
    char version[65];
    uint64_t number = 0;
    uint32_t id = 0;
    int64_t found;

    (void)self;
    (void)event;
    tries++;
    ask_for(&asked, "", 1);
    ck_assert_int_eq(adm_admit(gate, &asked.request, &d), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_explain(gate, &asked.request, NULL, NULL, &d), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_admit_start(gate, open_queue, &asked.request, &d, NULL, &number),
                     ADM_E_REENTRANT);
    ck_assert_int_eq(adm_release(gate, NO_LEASE, 0, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_renew(gate, NO_LEASE, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_settle(gate, NO_LEASE, NULL, 0, 1, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_divert(gate, NO_LEASE, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_release_start(gate, open_queue, NO_LEASE, 0, NULL, &id, &number),
                     ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_key(gate, text, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_unit(gate, text, &id), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_signal(gate, text, text, text, 1), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_publish(gate, policy), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_rollback(gate, text), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_put_table(gate, text, 0, NULL), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_version(gate, version, sizeof version), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_read(gate, text, NULL, 0, &found), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_describe(gate, &info), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_sweep(gate, 1, NULL), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_gate_metrics(gate, NULL, 0, &number), ADM_E_REENTRANT);
    ck_assert_int_eq(adm_queue_open(gate, &queue), ADM_E_REENTRANT);
    ck_assert_uint_eq(adm_queue_next(open_queue, &c), 0);
    ck_assert_uint_eq(adm_ticket_cancel(open_queue, 1), 0);
    adm_queue_close(open_queue);
    adm_gate_free(gate);
    options.policy = policy;
    memset(&options.backend, 0, sizeof options.backend);
    ck_assert_int_eq(adm_plain_open(&f.plain, &options.backend), ADM_OK);
    ck_assert_int_eq(adm_gate_new(&options, &another),
                     ADM_E_REENTRANT); /* and closes the backend */
    adm_policy_unref(policy);
}

START_TEST(K9_an_event_callback_cannot_enter_any_gate)
{
    open_with_events(call_everything, false);
    ck_assert_int_eq(adm_queue_open(f.gate, &open_queue), ADM_OK);
    (void)allow(&f, "", 1);
    (void)release(&f, NO_LEASE);
    ck_assert_uint_eq(tries, 2);
    adm_queue_close(open_queue);
    fixture_close(&f);
}
END_TEST

static void call_from_start(struct relay *relay, struct adm_op *op, adm_status *status)
{
    (void)relay;
    (void)op;
    (void)status;
    call_everything(NULL, NULL);
}

START_TEST(K9_a_backend_cannot_enter_any_gate)
{
    open_with_events(NULL, false);
    ck_assert_int_eq(adm_queue_open(f.gate, &open_queue), ADM_OK);
    f.relay.twist = call_from_start;
    (void)allow(&f, "", 1);
    f.relay.twist = NULL;
    ck_assert_uint_eq(tries, 1);
    adm_queue_close(open_queue);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L3_decision_usage_and_release_join_by_the_decision_id,
        L3_denials_are_told_and_refused_calls_and_looks_are_not,
        L10_a_repeated_attempt_joins_the_first_decision,
        L3_a_queued_release_is_told_as_queued_and_once,
        L3_the_event_of_a_ticket_shows_the_request_as_it_was,
        K9_an_event_callback_cannot_enter_any_gate,
        K9_a_backend_cannot_enter_any_gate,
    };

    return RUN_TESTS("gate events", tests);
}
