/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the gate: the relay, and a gate with everything around it. */
#include "gate_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "state/operation.h"

/* ---- relay ---- */

/* Not an assertion of Check's: those allocate, and here other threads may run. */
static void must(int holds)
{
    if (!holds)
        abort();
}

adm_status relay_carry_out(struct relay *relay, struct adm_op *op)
{
    struct adm_op ours = *op;

    admi_op_begin_direct(&ours, NULL);
    relay->inner.ops->start(relay->inner.self, &ours);
    must(admi_op_is_complete(&ours));
    op->outcome = ours.outcome;
    op->units = ours.units;
    op->judged = ours.judged;
    return admi_op_status(&ours);
}

static void relay_answer(struct relay *relay, struct adm_op *op)
{
    adm_status status;

    if (relay->fail_count > 0 && (relay->fail_kind == 0 || relay->fail_kind == op->kind)) {
        relay->fail_count--;
        adm_op_complete(op, relay->fail_status);
        return;
    }
    status = relay_carry_out(relay, op);
    if (relay->twist != NULL)
        relay->twist(relay, op, &status);
    if (relay->forget_count > 0) {
        relay->forget_count--;
        relay->forgotten = op;
        return;
    }
    adm_op_complete(op, status);
}

static void relay_start(void *self, struct adm_op *op)
{
    struct relay *relay = self;

    must(op->kind < RELAY_KINDS);
    atomic_fetch_add(&relay->started[op->kind], 1);
    if (!relay->defers) {
        relay_answer(relay, op);
        return;
    }
    must(relay->held_count < RELAY_HELD);
    relay->held[relay->held_count++] = (struct relay_held){ op, false };
}

static struct adm_op *take_held(struct relay *relay, uint32_t i)
{
    struct adm_op *op = relay->held[i].op;

    for (uint32_t k = i + 1; k < relay->held_count; k++)
        relay->held[k - 1] = relay->held[k];
    relay->held_count--;
    return op;
}

static adm_status relay_poll(void *self, const struct adm_time *now)
{
    struct relay *relay = self;
    uint32_t i = 0;

    (void)now;
    atomic_fetch_add(&relay->polls, 1);
    while (i < relay->held_count) {
        if (relay->automatic || relay->held[i].due ||
            relay->held[i].op->kind == relay->automatic_kind)
            relay_answer(relay, take_held(relay, i));
        else
            i++;
    }
    return ADM_OK;
}

static void relay_cancel(void *self, struct adm_op *op)
{
    struct relay *relay = self;

    atomic_fetch_add(&relay->cancels, 1);
    for (uint32_t i = 0; i < relay->held_count && !relay->keeps_cancelled; i++)
        if (relay->held[i].op == op) {
            adm_op_complete(take_held(relay, i), ADM_E_BACKEND_CANCELLED);
            return;
        }
}

static adm_status relay_watch(void *self, struct adm_watch *out)
{
    const struct relay *relay = self;

    *out = (struct adm_watch){ .fd = relay->fd, .deadline_ns = UINT64_MAX };
    return ADM_OK;
}

static adm_status relay_describe(void *self, struct adm_backend_info *inout)
{
    struct relay *relay = self;
    adm_status status = relay->inner.ops->describe(relay->inner.self, inout);

    if (relay->defers) {
        inout->threads = ADM_THREADS_SERIAL;
        inout->capabilities |= ADM_CAN_DEFER;
    }
    return status;
}

static void relay_close(void *self)
{
    struct relay *relay = self;

    while (relay->held_count > 0)
        adm_op_complete(take_held(relay, 0), ADM_E_BACKEND_CANCELLED);
    if (!relay->shared)
        relay->inner.ops->close(relay->inner.self);
    atomic_fetch_add(&relay->closed, 1);
}

static const struct adm_backend_ops relay_ops = {
    .size = sizeof relay_ops,
    .abi = ADM_BACKEND_ABI,
    .name = "relay",
    .start = relay_start,
    .close = relay_close,
    .poll = relay_poll,
    .cancel = relay_cancel,
    .watch = relay_watch,
    .describe = relay_describe,
};

struct adm_backend relay_backend(struct relay *relay)
{
    struct adm_backend backend = { &relay_ops, relay };

    return backend;
}

void relay_let(struct relay *relay, uint32_t i)
{
    ck_assert_uint_lt(i, relay->held_count);
    relay->held[i].due = true;
}

void relay_let_all(struct relay *relay)
{
    for (uint32_t i = 0; i < relay->held_count; i++)
        relay->held[i].due = true;
}

/* ---- fixture ---- */

void fixture_init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->started_ns = 1000 * SEC;
    f->clock.time.mono_ns = f->started_ns;
    f->clock.time.wall_ns = UINT64_C(1790000000) * SEC;
    f->random.state = 42;
    f->allocator = counting_allocator_of(&f->counting);
    f->relay.fd = -1;
    f->relay.fail_status = ADM_E_BACKEND_UNAVAILABLE;
    f->plain = (struct adm_plain_options){ .size = sizeof f->plain,
                                           .partitions_max = 4096,
                                           .leases_max = 4096,
                                           .attempts_max = 1024,
                                           .classes_max = 4096 };
    f->plain.allocator = &f->allocator;
    f->options = (struct adm_gate_options){ .size = sizeof f->options };
    f->options.clock = adm_fake_clock_as_clock(&f->clock);
    f->options.random = adm_fake_random_as_random(&f->random);
    f->options.allocator = f->allocator;
}

void fixture_start(struct fixture *f, const char *policy)
{
    if (f->options.backend.ops == NULL) {
        ck_assert_int_eq(adm_plain_open(&f->plain, &f->relay.inner), ADM_OK);
        f->options.backend = relay_backend(&f->relay);
    }
    f->options.policy = policy_of(policy);
    ck_assert_int_eq(adm_gate_new(&f->options, &f->gate), ADM_OK);
    adm_policy_unref(f->options.policy);
    f->options.policy = NULL;
}

void fixture_open(struct fixture *f, const char *policy)
{
    fixture_init(f);
    fixture_start(f, policy);
}

void fixture_open_deferring(struct fixture *f, const char *policy)
{
    f->relay.defers = true;
    f->relay.automatic = true;
    fixture_start(f, policy);
    f->relay.automatic = false;
}

/* Renewing no lease is the least that goes through the whole path. */
void progress(struct fixture *f)
{
    uint32_t outcome = UINT32_MAX;
    uint32_t kind = f->relay.automatic_kind;

    f->relay.automatic_kind = ADM_OP_RENEW;
    ck_assert_int_eq(adm_renew(f->gate, NO_LEASE, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, ADM_OUTCOME_LOST);
    f->relay.automatic_kind = kind;
}

void fixture_close(struct fixture *f)
{
    adm_gate_free(f->gate);
    f->gate = NULL;
    if (f->options.backend.self == &f->relay)
        ck_assert_uint_eq(atomic_load(&f->relay.closed), 1);
    ck_assert_int_eq(atomic_load(&f->counting.bytes), 0);
    ck_assert_uint_eq(atomic_load(&f->counting.wrong_size), 0);
}

/* A text that starts with '[' is the rules of a policy of version "v1". */
struct adm_policy *policy_of(const char *text)
{
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    char *whole = malloc(strlen(text) + 64);
    struct adm_diag diag = { .size = sizeof diag };
    adm_status status;

    ck_assert_ptr_nonnull(whole);
    (void)sprintf(whole, text[0] == '[' ? "{\"version\":\"v1\",\"rules\":%s}" : "%s", text);
    status = adm_policy_load(adm_str(whole), NULL, &policy, &diags);
    if (status != ADM_OK && adm_diags_get(diags, 0, &diag) == ADM_OK)
        ck_abort_msg("%s: %s %s", whole, diag.pointer, diag.message);
    ck_assert_int_eq(status, ADM_OK);
    adm_diags_free(diags);
    free(whole);
    return policy;
}

adm_status try_publish(struct fixture *f, const char *text)
{
    struct adm_policy *policy = policy_of(text);
    adm_status status = adm_gate_publish(f->gate, policy);

    adm_policy_unref(policy);
    return status;
}

void publish(struct fixture *f, const char *text)
{
    ck_assert_int_eq(try_publish(f, text), ADM_OK);
}

/* ---- requests ---- */

static void split(struct asked *asked)
{
    char *at = asked->text;

    while (*at != '\0') {
        struct adm_descriptor *d = &asked->descriptors[asked->request.descriptor_count++];
        char *equals = strchr(at, '=');

        ck_assert_ptr_nonnull(equals);
        d->key = bytes_of(at, (uint64_t)(equals - at));
        d->value = bytes_of(equals + 1, strcspn(equals + 1, " "));
        at = equals + 1 + d->value.length;
        at += *at == ' ';
    }
}

void ask_for(struct asked *asked, const char *descriptors, uint64_t cost)
{
    memset(asked, 0, sizeof *asked);
    ck_assert_uint_lt(strlen(descriptors), sizeof asked->text);
    (void)strcpy(asked->text, descriptors);
    asked->request.size = sizeof asked->request;
    asked->request.cost = cost;
    split(asked);
    asked->request.descriptors = asked->descriptors;
    asked->request.amounts = asked->amounts;
}

void ask_amount(struct asked *asked, uint32_t unit, uint64_t value)
{
    asked->amounts[asked->request.amount_count++] = (struct adm_amount){ unit, 0, value };
}

void ask_attempt(struct asked *asked, const char *attempt)
{
    asked->request.attempt = adm_str(attempt);
}

struct adm_decision decide_for(struct fixture *f, const struct asked *asked)
{
    struct adm_decision decision = { .size = sizeof decision };

    ck_assert_int_eq(adm_admit(f->gate, &asked->request, &decision), ADM_OK);
    return decision;
}

struct adm_decision decide(struct fixture *f, const char *descriptors, uint64_t cost)
{
    struct asked asked;

    ask_for(&asked, descriptors, cost);
    return decide_for(f, &asked);
}

struct adm_id allow(struct fixture *f, const char *descriptors, uint64_t cost)
{
    struct adm_decision d = decide(f, descriptors, cost);

    ck_assert_msg(d.verdict == ADM_VERDICT_ALLOW && d.reason == ADM_REASON_ALLOWED,
                  "%s cost %llu: denied, %s", descriptors, (unsigned long long)cost,
                  adm_reason_name(d.reason));
    return d.lease;
}

void deny(struct fixture *f, const char *descriptors, uint64_t cost, uint32_t reason)
{
    struct adm_decision d = decide(f, descriptors, cost);

    ck_assert_msg(d.verdict == ADM_VERDICT_DENY && d.reason == reason,
                  "%s cost %llu: %s, expected %s", descriptors, (unsigned long long)cost,
                  adm_reason_name(d.reason), adm_reason_name(reason));
    ck_assert(is_none(d.lease));
}

int64_t level(struct fixture *f, const char *rule, const char *descriptors)
{
    struct asked asked;
    int64_t found = INT64_MIN;

    ask_for(&asked, descriptors, 1);
    ck_assert_int_eq(adm_gate_read(f->gate, adm_str(rule), asked.descriptors,
                                   asked.request.descriptor_count, &found),
                     ADM_OK);
    return found;
}

uint32_t release(struct fixture *f, struct adm_id lease)
{
    uint32_t outcome = UINT32_MAX;

    ck_assert_int_eq(adm_release(f->gate, lease, ADM_RESULT_OK, &outcome), ADM_OK);
    return outcome;
}

void settle(struct fixture *f, struct adm_id lease, uint32_t unit, uint64_t total, uint32_t expect)
{
    const struct adm_amount amount = { unit, 0, total };
    uint32_t outcome = UINT32_MAX;

    ck_assert_int_eq(adm_settle(f->gate, lease, &amount, 1, 0, &outcome), ADM_OK);
    ck_assert_uint_eq(outcome, expect);
}

static char *metrics(struct fixture *f)
{
    uint64_t room = 1u << 20, length = 0;
    char *text = calloc(1, (size_t)room);

    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(adm_gate_metrics(f->gate, text, room - 1, &length), ADM_OK);
    return text;
}

/* The line of a sample, or NULL. */
static char *line_of(char *text, const char *sample)
{
    size_t name = strlen(sample);

    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, name) == 0 && line[name] == ' ')
            return line;
    }
    return NULL;
}

uint64_t metric(struct fixture *f, const char *sample)
{
    char *text = metrics(f), *line = line_of(text, sample);
    uint64_t value = line == NULL ? UINT64_MAX : strtoull(line + strlen(sample) + 1, NULL, 10);

    free(text);
    return value;
}

char *metrics_but(struct fixture *f, const char *sample)
{
    char *text = metrics(f), *line = line_of(text, sample);

    if (line != NULL) {
        char *rest = line + strcspn(line, "\n");

        memmove(line, rest, strlen(rest) + 1);
    }
    return text;
}

void advance(struct fixture *f, uint64_t ns)
{
    adm_fake_clock_advance(&f->clock, ns);
}

int run_tests(const char *name, const TTest *const *tests, uint64_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 120);
    for (uint64_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
