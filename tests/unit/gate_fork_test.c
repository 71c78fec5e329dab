/* SPDX-License-Identifier: Apache-2.0 */
/* Law K10: in a forked child a gate on private state denies and fails, whatever the parent's other
 * threads were doing; and two processes never hand out one id. */
#include "gate_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate/gate.h"

#define RULES                                                                                      \
    "[{\"id\":\"held\",\"type\":\"concurrency\",\"limit\":1000,\"lease_ttl\":\"60s\","             \
    "\"per_replica\":true,\"scope_by\":\"m\"},"                                                    \
    "{\"id\":\"push\",\"type\":\"pressure\",\"match\":{\"m\":\"*\"},\"signal\":\"load\","          \
    "\"gt\":5,\"scope_by\":\"m\"}]"
#define V1                                                                                         \
    "{\"version\":\"v1\",\"unmatched\":\"allow\",\"metric_labels\":[\"k\"],\"rules\":" RULES "}"
#define V2 "{\"version\":\"v2\",\"rules\":" RULES "}"

static struct fixture f;

/* Prepared before any fork: Check's assertions take a lock, which a child must not. */
static struct asked matching, with_label, unmatched;

/* Run in a child, without assertions; its answer is its exit status. */
static int in_child(int (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(20); /* a deadlock is a failure too */
        _exit(body());
    }
    ck_assert_int_ge(pid, 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

#define CHECK(holds)                                                                               \
    do {                                                                                           \
        if (!(holds))                                                                              \
            return __LINE__ % 256;                                                                 \
    } while (0)

static struct adm_id lease;
static struct adm_policy *second;

static void prepare_requests(void)
{
    ask_for(&matching, "m=x", 1);
    ask_for(&with_label, "m=x k=new", 1);
    ask_for(&unmatched, "z=1", 1);
}

static int denied_in_child(const struct asked *asked)
{
    struct adm_decision d = { .size = sizeof d };

    CHECK(adm_admit(f.gate, &asked->request, &d) == ADM_OK);
    CHECK(d.verdict == ADM_VERDICT_DENY);
    CHECK(d.reason == ADM_REASON_STATE_UNAVAILABLE);
    CHECK(d.http_status == 503);
    CHECK(d.retry_after_ms == 0 && d.rule_count == 0);
    CHECK(is_none(d.lease));
    CHECK(strcmp(d.policy_version, "v1") == 0);
    return 0;
}

static int use_in_child(void)
{
    struct adm_backend_info info = { .size = sizeof info };
    struct adm_decision d = { .size = sizeof d };
    uint32_t outcome = 77;
    int64_t found = 77;
    int line = denied_in_child(&with_label);

    CHECK(line == 0);
    CHECK(adm_explain(f.gate, &matching.request, NULL, NULL, &d) == ADM_OK);
    CHECK(d.reason == ADM_REASON_STATE_UNAVAILABLE);
    CHECK(adm_status_class(adm_release(f.gate, lease, 0, &outcome)) == ADM_STATUS_CLASS_BACKEND);
    CHECK(adm_status_class(adm_renew(f.gate, lease, &outcome)) == ADM_STATUS_CLASS_BACKEND);
    CHECK(adm_status_class(adm_settle(f.gate, lease, NULL, 0, 1, &outcome)) ==
          ADM_STATUS_CLASS_BACKEND);
    CHECK(adm_status_class(adm_divert(f.gate, lease, &outcome)) == ADM_STATUS_CLASS_BACKEND);
    CHECK(outcome == 77);
    CHECK(adm_status_class(adm_gate_read(f.gate, adm_str("held"), NULL, 0, &found)) ==
          ADM_STATUS_CLASS_BACKEND);
    CHECK(found == 77);
    CHECK(adm_status_class(adm_gate_sweep(f.gate, 1, NULL)) == ADM_STATUS_CLASS_BACKEND);
    CHECK(adm_status_class(adm_gate_publish(f.gate, second)) == ADM_STATUS_CLASS_BACKEND);
    CHECK(adm_status_class(adm_gate_describe(f.gate, &info)) == ADM_STATUS_CLASS_BACKEND);
    return 0;
}

START_TEST(K10_a_child_denies_and_fails_and_the_parent_does_not_notice)
{
    prepare_requests();
    fixture_open(&f, V1);
    second = policy_of(V2);
    lease = allow(&f, "m=x", 3);
    ck_assert_int_eq(in_child(use_in_child), 0);
    ck_assert_int_eq(level(&f, "held", ""), 3);
    ck_assert_uint_eq(release(&f, lease), ADM_OUTCOME_RELEASED);
    publish(&f, V2);
    adm_policy_unref(second);
    fixture_close(&f);
}
END_TEST

/* Nothing matches and unmatched is allow, but a child's gate has no business to allow anything. */
static int use_requests_without_state(void)
{
    return denied_in_child(&unmatched);
}

START_TEST(K10_a_child_denies_everything)
{
    prepare_requests();
    fixture_open(&f,
                 "{\"version\":\"v1\",\"unmatched\":\"allow\",\"rules\":[{\"id\":\"c\",\"type\":"
                 "\"request_cap\",\"match\":{\"k\":\"a\"},\"limit\":9}]}");
    (void)allow(&f, "z=1", 1);
    ck_assert_int_eq(in_child(use_requests_without_state), 0);
    (void)allow(&f, "z=1", 1);
    fixture_close(&f);
}
END_TEST

static int use_relay_in_child(void)
{
    return denied_in_child(&matching);
}

START_TEST(K10_a_child_of_a_gate_on_a_backend_that_defers_denies_at_once)
{
    prepare_requests();
    fixture_init(&f);
    fixture_open_deferring(&f, V1);
    f.relay.automatic = true;
    (void)allow(&f, "m=x", 1);
    ck_assert_int_eq(in_child(use_relay_in_child), 0);
    (void)allow(&f, "m=x", 1);
    fixture_close(&f);
}
END_TEST

/* ---- a fork while others hold locks ---- */

static _Atomic int stop;

static void *keep_signalling(void *self)
{
    (void)self;
    for (uint32_t i = 0; !atomic_load(&stop); i++) {
        char replica[8];

        (void)snprintf(replica, sizeof replica, "r%u", i % 900);
        if (adm_gate_signal(f.gate, adm_str("x"), adm_str(replica), adm_str("healthy"), 1) !=
            ADM_OK)
            abort();
    }
    return NULL;
}

static void *keep_admitting(void *self)
{
    (void)self;
    while (!atomic_load(&stop)) {
        struct adm_decision d = { .size = sizeof d };

        if (adm_admit(f.gate, &matching.request, &d) != ADM_OK)
            abort();
        (void)adm_release(f.gate, d.lease, 0, NULL);
    }
    return NULL;
}

static void *keep_publishing(void *self)
{
    struct adm_policy *first = policy_of(V1);

    (void)self;
    while (!atomic_load(&stop))
        if (adm_gate_publish(f.gate, first) != ADM_OK)
            abort();
    adm_policy_unref(first);
    return NULL;
}

/* Everything that takes one of the gate's locks. */
static int use_all_in_child(void)
{
    static char text[1u << 17];
    struct adm_queue *queue = NULL;
    uint64_t length = 0;
    uint32_t id = 0;
    int line = use_in_child();

    CHECK(line == 0);
    CHECK(adm_gate_signal(f.gate, adm_str("x"), adm_str("r"), adm_str("healthy"), 1) != ADM_OK);
    CHECK(adm_gate_metrics(f.gate, text, sizeof text, &length) != ADM_OK);
    CHECK(adm_gate_key(f.gate, adm_str("new"), &id) != ADM_OK);
    CHECK(adm_gate_unit(f.gate, adm_str("new"), &id) != ADM_OK);
    CHECK(adm_gate_rollback(f.gate, adm_str("v1")) != ADM_OK);
    CHECK(adm_queue_open(f.gate, &queue) != ADM_OK);
    adm_queue_close(queue);
    return 0;
}

static void *first_call_in_a_fresh_thread(void *self)
{
    *(int *)self = denied_in_child(&with_label);
    return NULL;
}

static int use_in_a_thread_of_the_child(void)
{
    pthread_t thread;
    int line = 77;

    CHECK(pthread_create(&thread, NULL, first_call_in_a_fresh_thread, &line) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return line;
}

/* The thread sanitizer ends a child that makes threads, and the address sanitizer's own locks may be
 * held by a thread that such a child does not have; then every child is of the other kind. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CHILD_THREADS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define CHILD_THREADS 0
#endif
#endif
#ifndef CHILD_THREADS
#define CHILD_THREADS 1
#endif

START_TEST(B128_a_fork_at_any_moment_leaves_a_child_that_answers)
{
    void *(*const bodies[])(void *) = { keep_signalling, keep_signalling, keep_admitting,
                                        keep_publishing };
    pthread_t threads[4];

    prepare_requests();
    fixture_open(&f, V1);
    second = policy_of(V2);
    lease = allow(&f, "m=x", 3);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, bodies[i], NULL), 0);
    for (uint32_t i = 0; i < 30; i++) {
        int line =
            in_child(i % 2 == 1 && CHILD_THREADS ? use_in_a_thread_of_the_child : use_all_in_child);

        ck_assert_msg(line == 0, "fork %u, line %d", i, line);
    }
    atomic_store(&stop, 1);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    adm_policy_unref(second);
    fixture_close(&f);
}
END_TEST

/* ---- ids ---- */

#define DRAWN 1000u

static void draw_ids(struct adm_id *out)
{
    struct admi_gate_thread *thread = admi_gate_thread(f.gate);

    for (uint32_t i = 0; i < DRAWN; i++)
        if (admi_thread_random(f.gate, thread, &out[i]) != ADM_OK)
            abort();
}

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct adm_id));
}

START_TEST(L3_parent_and_child_never_draw_the_same_random_id)
{
    static struct adm_id ids[3 * DRAWN];
    int ends[2];
    size_t received = 0;
    pid_t pid;

    fixture_init(&f);
    f.options.random.fill = NULL; /* the system's own */
    fixture_start(&f, V1);
    (void)allow(&f, "m=x", 1); /* random bytes are in stock */
    for (uint32_t child = 0; child < 2; child++) {
        ck_assert_int_eq(pipe(ends), 0);
        pid = fork();
        if (pid == 0) {
            static struct adm_id drawn[DRAWN];

            draw_ids(drawn);
            for (size_t at = 0; at < sizeof drawn;) {
                ssize_t n = write(ends[1], (const char *)drawn + at, sizeof drawn - at);

                if (n <= 0)
                    _exit(1);
                at += (size_t)n;
            }
            _exit(0);
        }
        ck_assert_int_ge(pid, 0);
        (void)close(ends[1]);
        for (ssize_t n = 1; n > 0;) {
            n = read(ends[0], (char *)ids + received, sizeof ids - received);
            received += n > 0 ? (size_t)n : 0;
        }
        (void)close(ends[0]);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
    ck_assert_uint_eq(received, 2 * DRAWN * sizeof ids[0]);
    draw_ids(ids + 2 * DRAWN);
    qsort(ids, 3 * DRAWN, sizeof ids[0], compare_ids);
    for (uint32_t i = 1; i < 3 * DRAWN; i++)
        ck_assert(!same_id(ids[i - 1], ids[i]));
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        K10_a_child_denies_and_fails_and_the_parent_does_not_notice,
        K10_a_child_denies_everything,
        K10_a_child_of_a_gate_on_a_backend_that_defers_denies_at_once,
        B128_a_fork_at_any_moment_leaves_a_child_that_answers,
        L3_parent_and_child_never_draw_the_same_random_id,
    };

    return RUN_TESTS("gate fork", tests);
}
