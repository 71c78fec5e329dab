/* SPDX-License-Identifier: Apache-2.0 */
/* No memory: every call says so, or is not affected, and nothing has changed; and the hot path asks
 * for none. */
#include "gate_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define RULES                                                                                      \
    "[{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":9,\"lease_ttl\":\"60s\"},"               \
    "{\"id\":\"rate\",\"type\":\"token_bucket\",\"partition_by\":[\"k\"],\"capacity\":100,"        \
    "\"refill\":1,\"per\":\"1h\",\"per_replica\":true,\"scope_by\":\"m\"},"                        \
    "{\"id\":\"exact\",\"type\":\"token_bucket\",\"unit\":\"gpu_ms\",\"match\":{\"g\":\"*\"},"     \
    "\"capacity\":100,\"refill\":1,\"per\":\"1h\",\"settle\":\"exact\"},"                          \
    "{\"id\":\"hot\",\"type\":\"pressure\",\"match\":{\"m\":\"*\"},\"signal\":\"load\",\"gt\":5,"  \
    "\"scope_by\":\"m\"}]"
#define V1                                                                                         \
    "{\"version\":\"v1\",\"units\":[\"gpu_ms\"],\"metric_labels\":[\"k\"],\"rules\":" RULES "}"
#define V2                                                                                         \
    "{\"version\":\"v2\",\"units\":[\"gpu_ms\",\"other\"],\"metric_labels\":[\"k\",\"m\"],"        \
    "\"rules\":" RULES "}"
#define TABLE                                                                                      \
    "{\"version\":\"t%u\",\"rule\":\"rate\",\"by\":\"k\",\"entries\":{\"a\":{\"capacity\":50}}}"
#define ROUNDS 3000u

static struct fixture f;

/* ---- malloc, watched: linked with --wrap ---- */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

/* Counts only while the library is being called: the test's own assertions allocate. */
static bool watching;
static uint64_t system_calls;

void *__wrap_malloc(size_t bytes)
{
    if (watching)
        system_calls++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    if (watching)
        system_calls++;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (watching)
        system_calls++;
    return __real_realloc(memory, bytes);
}

/* ---- each call, with the n-th allocation failing ---- */

/* What can be seen of the gate from outside, by looking only. */
struct seen {
    int64_t held, rate;
    char version[65];
    struct adm_decision decision; /* explain's */
};

static void fail_from(uint64_t nth)
{
    uint64_t calls = atomic_load(&f.counting.calls);

    atomic_store(&f.counting.fail_from, nth == 0 ? 0 : calls + nth);
}

static struct seen look(void)
{
    struct seen seen;
    struct asked asked;

    memset(&seen, 0, sizeof seen);
    seen.held = level(&f, "held", "k=a m=x");
    seen.rate = level(&f, "rate", "k=a m=x");
    ck_assert_int_eq(adm_gate_version(f.gate, seen.version, sizeof seen.version), ADM_OK);
    ask_for(&asked, "k=a m=x", 60);
    seen.decision.size = sizeof seen.decision;
    ck_assert_int_eq(adm_explain(f.gate, &asked.request, NULL, NULL, &seen.decision), ADM_OK);
    seen.decision.id = NO_LEASE; /* random */
    return seen;
}

static void same(const struct seen *a, const struct seen *b)
{
    ck_assert_int_eq(a->held, b->held);
    ck_assert_int_eq(a->rate, b->rate);
    ck_assert_str_eq(a->version, b->version);
    ck_assert_mem_eq(&a->decision, &b->decision, sizeof a->decision);
}

/* One call; its outputs must be untouched on failure. */
typedef adm_status (*attempt)(void);

static struct asked asked;
static struct adm_decision answer, untouched_answer;
static struct adm_policy *second;
static struct adm_queue *queue;
static uint64_t number;
static int64_t found;
static char name[16];

/* The new thread's first call; it ends, so its block serves the next one. */
static adm_status in_status;

static void *run_in_thread(void *self)
{
    attempt call = *(attempt *)self;

    in_status = call();
    return NULL;
}

static adm_status on_a_fresh_thread(attempt call)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, run_in_thread, &call), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    return in_status;
}

/* Until it succeeds; how many allocations it took. */
static uint64_t fail_each(attempt call, bool fresh_thread)
{
    struct seen before = look();

    for (uint64_t n = 1; n < 1000; n++) {
        struct seen after;
        adm_status status;

        memset(&answer, 0x5a, sizeof answer);
        answer.size = sizeof answer;
        untouched_answer = answer;
        found = 77;
        fail_from(n);
        status = fresh_thread ? on_a_fresh_thread(call) : call();
        fail_from(0);
        if (status == ADM_OK)
            return n - 1;
        ck_assert_msg(status == ADM_E_NOMEM, "%s at allocation %u", adm_status_name(status),
                      (unsigned)n);
        ck_assert_mem_eq(&answer, &untouched_answer, sizeof answer);
        ck_assert_int_eq(found, 77);
        ck_assert_uint_eq(number, 77);
        ck_assert_ptr_null(queue);
        after = look();
        same(&before, &after);
    }
    ck_abort_msg("never succeeds");
}

static void open_for_failures(void)
{
    fixture_open(&f, V1);
    second = policy_of(V2);
    number = 77;
    queue = NULL;
    ck_assert_int_eq(adm_gate_signal(f.gate, adm_str("x"), adm_str("r"), adm_str("healthy"), 1),
                     ADM_OK);
    (void)allow(&f, "k=a m=x", 3);
}

static void close_after_failures(void)
{
    adm_queue_close(queue);
    adm_policy_unref(second);
    fixture_close(&f);
}

static adm_status call_admit(void)
{
    ask_for(&asked, "k=a m=x", 1);
    return adm_admit(f.gate, &asked.request, &answer);
}

static adm_status call_wide_admit(void)
{
    static char value[257];

    memset(value, 'v', 256);
    ask_for(&asked, "k=a m=x", 1);
    asked.descriptors[0].value = bytes_of(value, 256);
    return adm_admit(f.gate, &asked.request, &answer);
}

static adm_status call_explain(void)
{
    ask_for(&asked, "k=a m=x", 1);
    return adm_explain(f.gate, &asked.request, NULL, NULL, &answer);
}

static adm_status call_key(void)
{
    uint32_t id = 77;
    adm_status status = adm_gate_key(f.gate, adm_str("another"), &id);

    ck_assert(status == ADM_OK || id == 77);
    return status;
}

static adm_status call_unit(void)
{
    uint32_t id = 77;
    adm_status status = adm_gate_unit(f.gate, adm_str("another"), &id);

    ck_assert(status == ADM_OK || id == 77);
    return status;
}

static adm_status call_signal(void)
{
    return adm_gate_signal(f.gate, adm_str("new scope"), adm_str("new replica"), adm_str("load"),
                           1);
}

static adm_status call_publish(void)
{
    return adm_gate_publish(f.gate, second);
}

static adm_status call_rollback(void)
{
    return adm_gate_rollback(f.gate, adm_str("v1"));
}

static adm_status call_table(void)
{
    char text[256];

    (void)snprintf(text, sizeof text, TABLE, 1u);
    return adm_gate_put_table(f.gate, adm_str(text), ADM_TABLE_REPLACE, NULL);
}

static adm_status call_patch(void)
{
    char text[256];
    struct adm_diags *diags = NULL;
    adm_status status;

    (void)snprintf(text, sizeof text, TABLE, 2u);
    status = adm_gate_put_table(f.gate, adm_str(text), ADM_TABLE_PATCH, &diags);
    adm_diags_free(diags);
    return status;
}

static adm_status call_read(void)
{
    ask_for(&asked, "k=a m=x", 1);
    return adm_gate_read(f.gate, adm_str("rate"), asked.descriptors, asked.request.descriptor_count,
                         &found);
}

static adm_status call_queue_open(void)
{
    return adm_queue_open(f.gate, &queue);
}

static adm_status call_admit_start(void)
{
    uint64_t ticket = 77;

    ask_for(&asked, "k=a m=x", 1);
    return adm_admit_start(f.gate, queue, &asked.request, &answer, NULL, &ticket);
}

static adm_status call_metrics(void)
{
    static char text[1u << 16];
    adm_status status = adm_gate_metrics(f.gate, text, sizeof text, &number);

    if (status == ADM_OK)
        number = 77;
    return status;
}

static adm_status call_sweep(void)
{
    return adm_gate_sweep(f.gate, 10, NULL);
}

static adm_status call_release(void)
{
    uint32_t outcome = 77;
    adm_status status = adm_release(f.gate, NO_LEASE, 0, &outcome);

    ck_assert_uint_eq(outcome, status == ADM_OK ? ADM_OUTCOME_UNKNOWN : 77u);
    return status;
}

static adm_status call_version(void)
{
    char version[65];

    return adm_gate_version(f.gate, version, sizeof version);
}

START_TEST(L7_every_call_on_a_known_thread_survives_every_failing_allocation)
{
    static const struct {
        attempt call;
        uint64_t at_least; /* allocations that the call makes, so that this tests something */
    } calls[] = {
        { call_key, 1 },   { call_unit, 1 },    { call_signal, 4 },  { call_table, 5 },
        { call_patch, 5 }, { call_read, 0 },    { call_explain, 0 }, { call_metrics, 0 },
        { call_sweep, 0 }, { call_release, 0 }, { call_version, 0 },
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        uint64_t allocations;

        open_for_failures();
        allocations = fail_each(calls[i].call, false);
        ck_assert_msg(allocations >= calls[i].at_least, "call %u: %u allocations", (unsigned)i,
                      (unsigned)allocations);
        close_after_failures();
    }
}
END_TEST

START_TEST(L9_a_publish_and_a_rollback_survive_every_failing_allocation)
{
    open_for_failures();
    ck_assert_uint_ge(fail_each(call_publish, false), 8);
    ck_assert_uint_ge(fail_each(call_rollback, false), 5);
    ck_assert_uint_ge(fail_each(call_table, false), 5);
    ck_assert_uint_ge(fail_each(call_publish, false), 5);
    (void)allow(&f, "k=a m=x", 1);
    close_after_failures();
}
END_TEST

START_TEST(L7_the_first_call_of_a_thread_survives_every_failing_allocation)
{
    static const attempt calls[] = { call_admit, call_wide_admit, call_explain,
                                     call_read,  call_release,    call_signal,
                                     call_sweep, call_metrics,    call_version };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        open_for_failures();
        ck_assert_msg(fail_each(calls[i], true) >= 1, "call %u", (unsigned)i);
        close_after_failures();
    }
}
END_TEST

START_TEST(L7_a_queue_survives_every_failing_allocation)
{
    open_for_failures();
    ck_assert_uint_ge(fail_each(call_queue_open, false), 1);
    ck_assert_int_eq(call_admit_start(), ADM_OK);
    ck_assert_uint_eq(answer.verdict, ADM_VERDICT_ALLOW);
    close_after_failures();
}
END_TEST

START_TEST(L7_a_gate_that_cannot_be_made_leaves_nothing_behind)
{
    uint64_t n = 1;
    bool made = false;

    for (; n < 1000 && !made; n++) {
        struct adm_policy *policy = policy_of(V1);
        adm_status status;

        fixture_init(&f);
        ck_assert_int_eq(adm_plain_open(&f.plain, &f.relay.inner), ADM_OK);
        f.options.backend = relay_backend(&f.relay);
        f.options.policy = policy;
        fail_from(n);
        status = adm_gate_new(&f.options, &f.gate);
        fail_from(0);
        made = status == ADM_OK;
        if (made) {
            (void)allow(&f, "k=a m=x", 1);
            fixture_close(&f);
        } else {
            ck_assert_int_eq(status, ADM_E_NOMEM);
            ck_assert_ptr_null(f.gate);
            ck_assert_uint_eq(atomic_load(&f.relay.closed), 1);
            ck_assert_int_eq(atomic_load(&f.counting.bytes), 0);
        }
        adm_policy_unref(policy);
    }
    ck_assert(made);
    ck_assert_uint_gt(n, 20);
}
END_TEST

static int32_t no_random(void *self, void *out, uint64_t bytes)
{
    (void)self;
    (void)out;
    (void)bytes;
    return -1;
}

START_TEST(L7_without_random_bytes_nothing_is_admitted)
{
    struct adm_gate *gate = NULL;

    fixture_init(&f);
    ck_assert_int_eq(adm_plain_open(&f.plain, &f.relay.inner), ADM_OK);
    f.options.backend = relay_backend(&f.relay);
    f.options.policy = policy_of(V1);
    f.options.random.fill = no_random;
    ck_assert_int_eq(adm_gate_new(&f.options, &gate), ADM_E_OS);
    ck_assert_uint_eq(atomic_load(&f.relay.closed), 1);
    ck_assert_int_eq(atomic_load(&f.counting.bytes), 0);
    adm_policy_unref(f.options.policy);
}
END_TEST

/* ---- the hot path ---- */

static void one_round(uint32_t i, bool with_queue)
{
    const struct adm_amount total = { ADM_UNIT_FIRST_DECLARED, 0, 1 };
    struct adm_decision d = { .size = sizeof d };
    adm_status status = ADM_OK;
    uint64_t ticket = 77;
    uint32_t outcome = 77;
    char text[64];

    (void)snprintf(text, sizeof text, "k=%u m=x g=1", i % 50);
    ask_for(&asked, text, 1);
    ask_amount(&asked, ADM_UNIT_FIRST_DECLARED, 1);
    (void)snprintf(name, sizeof name, "%u", i % 2000);
    if (i % 3 == 0)
        ask_attempt(&asked, name);
    watching = true;
    status |= adm_admit(f.gate, &asked.request, &d);
    status |= adm_renew(f.gate, d.lease, &outcome);
    status |= adm_settle(f.gate, d.lease, &total, 1, 0, &outcome);
    if (i % 2 == 0)
        status |= adm_divert(f.gate, d.lease, &outcome);
    status |= adm_release(f.gate, d.lease, i % ADM_RESULT_COUNT, &outcome);
    if (with_queue) {
        status |= adm_admit_start(f.gate, queue, &asked.request, &d, NULL, &ticket);
        status |= adm_release_start(f.gate, queue, d.lease, 0, NULL, &outcome, &ticket);
    }
    watching = false;
    ck_assert_int_eq(status, ADM_OK);
    advance(&f, MS);
}

static void hot_path(bool with_queue)
{
    uint64_t ours, systems;

    for (uint32_t i = 0; i < 200; i++)
        one_round(i, with_queue);
    ours = atomic_load(&f.counting.calls);
    systems = system_calls;
    for (uint32_t i = 0; i < ROUNDS; i++)
        one_round(i, with_queue);
    ck_assert_uint_eq(atomic_load(&f.counting.calls), ours);
    ck_assert_uint_eq(system_calls, systems);
}

START_TEST(L5_the_hot_path_never_allocates)
{
    open_for_failures();
    watching = true;
    queue = NULL;
    ck_assert_int_eq(adm_queue_open(f.gate, &queue), ADM_OK); /* it allocates, and is seen to */
    watching = false;
    ck_assert_uint_gt(system_calls, 0);
    hot_path(false);
    hot_path(true);
    close_after_failures();
}
END_TEST

START_TEST(L5_the_hot_path_on_a_backend_that_defers_never_allocates)
{
    fixture_init(&f);
    fixture_open_deferring(&f, V1);
    f.relay.automatic = true;
    queue = NULL;
    hot_path(false);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L7_every_call_on_a_known_thread_survives_every_failing_allocation,
        L9_a_publish_and_a_rollback_survive_every_failing_allocation,
        L7_the_first_call_of_a_thread_survives_every_failing_allocation,
        L7_a_queue_survives_every_failing_allocation,
        L7_a_gate_that_cannot_be_made_leaves_nothing_behind,
        L7_without_random_bytes_nothing_is_admitted,
        L5_the_hot_path_never_allocates,
        L5_the_hot_path_on_a_backend_that_defers_never_allocates,
    };

    return RUN_TESTS("gate without memory", tests);
}
