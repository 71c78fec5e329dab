/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoll loop, one queue: requests that are decided later, and one that is given up before.
 *
 * The state sits behind a backend that answers only some polls after it was asked, as one across a
 * network would. Two units may be held at once. Requests a, b and c are sent together and b is
 * given up, so c gets its unit; d comes too late; e is sent when a is finished.
 */
#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/testing.h>

#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static const char policy_text[] =
    "{ \"version\": \"1\", \"rules\": [ { \"id\": \"pool\", \"type\": \"concurrency\","
    "  \"limit\": 2, \"lease_ttl\": \"1m\" } ] }";

enum { A, B, C, D, E, JOB_COUNT };

enum job_state { NEW, ASKED, GIVEN_UP, DENIED, WORKING, RELEASING, DONE };

struct job {
    char name;
    enum job_state state;
    uint64_t ticket;
    struct adm_decision decision; /* must stay where it is while the ticket is open */
};

struct loop {
    struct adm_gate *gate;
    struct adm_queue *queue;
    struct job jobs[JOB_COUNT];
    int failed;
};

/* ---- what happens to a job ------------------------------------------------------------------ */

static void fail(struct loop *loop, const struct job *job, adm_status status)
{
    printf("%c: %s\n", job->name, adm_status_text(status));
    loop->failed = 1;
}

static void decided(struct loop *loop, struct job *job, adm_status status)
{
    if (status != ADM_OK) {
        fail(loop, job, status);
        return;
    }
    job->state = job->decision.verdict == ADM_VERDICT_ALLOW ? WORKING : DENIED;
    printf("%c: %s\n", job->name, adm_reason_name(job->decision.reason));
}

static void released(struct job *job, uint32_t outcome)
{
    job->state = DONE;
    printf("%c: %s\n", job->name, adm_outcome_name(outcome));
}

static void ask(struct loop *loop, struct job *job)
{
    struct adm_request request = { .size = sizeof request, .cost = 1 }; /* read in the call only */

    job->state = ASKED;
    job->decision.size = sizeof job->decision;
    adm_status status =
        adm_admit_start(loop->gate, loop->queue, &request, &job->decision, job, &job->ticket);
    if (status == ADM_OK && job->ticket != 0)
        printf("%c: asked\n", job->name);
    else /* ticket 0: this backend answered at once, or the call failed */
        decided(loop, job, status);
}

static void give_back(struct loop *loop, struct job *job)
{
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;

    job->state = RELEASING;
    adm_status status = adm_release_start(loop->gate, loop->queue, job->decision.lease,
                                          ADM_RESULT_OK, job, &outcome, &job->ticket);
    if (status != ADM_OK)
        fail(loop, job, status);
    else if (job->ticket == 0)
        released(job, outcome);
}

static void give_up(struct loop *loop, struct job *job)
{
    /* 0 would mean that the answer is already waiting in adm_queue_next(); then the lease would
     * have to go back. */
    if (adm_ticket_cancel(loop->queue, job->ticket) == 1) {
        job->state = GIVEN_UP;
        printf("%c: given up\n", job->name);
    }
}

/* The story: what to start when the others have come this far. Returns 0 at its end. */
static int go_on(struct loop *loop)
{
    struct job *job = loop->jobs;

    if (job[A].state == NEW) {
        ask(loop, &job[A]);
        ask(loop, &job[B]);
        ask(loop, &job[C]);
        give_up(loop, &job[B]);
    } else if (job[A].state == WORKING && job[C].state == WORKING && job[D].state == NEW) {
        ask(loop, &job[D]);
    } else if (job[A].state == WORKING && job[D].state == DENIED) {
        give_back(loop, &job[A]);
    } else if (job[A].state == DONE && job[E].state == NEW) {
        ask(loop, &job[E]);
    } else if (job[E].state == WORKING && job[C].state == WORKING) {
        give_back(loop, &job[C]);
        give_back(loop, &job[E]);
    }
    return !(job[C].state == DONE && job[E].state == DONE) && !loop->failed;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Milliseconds for epoll_wait until the queue wants to be looked at; -1: no need. Never too
 * early, so rounded up. */
static int wait_ms(const struct adm_queue *queue)
{
    uint64_t deadline = adm_queue_deadline(queue);
    struct timespec now;

    if (deadline == UINT64_MAX)
        return -1;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec;
    if (deadline <= now_ns)
        return 0;
    uint64_t ms = (deadline - now_ns + ADM_MILLISECOND - 1) / ADM_MILLISECOND;
    return ms < 60000 ? (int)ms : 60000;
}

static void finished(struct loop *loop)
{
    struct adm_completion completion = { .size = sizeof completion };

    while (adm_queue_next(loop->queue, &completion)) {
        struct job *job = completion.user;

        if (job->state == ASKED)
            decided(loop, job, completion.status);
        else if (completion.status == ADM_OK)
            released(job, completion.outcome);
        else
            fail(loop, job, completion.status);
        completion.size = sizeof completion;
    }
}

static int run(struct loop *loop, int epoll)
{
    struct epoll_event event = { .events = EPOLLIN };

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, adm_queue_fd(loop->queue), &event) != 0)
        return 1;
    while (go_on(loop)) {
        /* Interrupted or timed out is all the same: look. A real loop has its sockets in here as
         * well. */
        (void)epoll_wait(epoll, &event, 1, wait_ms(loop->queue));
        finished(loop);
    }
    return loop->failed;
}

static adm_status open_gate(struct adm_gate **out)
{
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_deferring_options late = { .size = sizeof late, .polls_min = 3, .polls_max = 3 };
    struct adm_backend plain;

    options.backend_timeout_ns = 10 * ADM_SECOND;
    adm_status status = adm_policy_load(adm_str(policy_text), NULL, &options.policy, NULL);
    if (status == ADM_OK)
        status = adm_plain_open(NULL, &plain);
    if (status == ADM_OK)
        status = adm_deferring_open(&late, plain, &options.backend); /* owns plain from here on */
    if (status == ADM_OK)
        status = adm_gate_new(&options, out); /* and the gate owns both */
    adm_policy_unref(options.policy);
    return status;
}

int main(void)
{
    struct loop loop = { .jobs = { { 'a', NEW, 0, { 0 } }, { 'b', NEW, 0, { 0 } },
                                   { 'c', NEW, 0, { 0 } }, { 'd', NEW, 0, { 0 } },
                                   { 'e', NEW, 0, { 0 } } } };
    adm_status status = open_gate(&loop.gate);

    if (status == ADM_OK)
        status = adm_queue_open(loop.gate, &loop.queue);
    if (status != ADM_OK) {
        printf("no gate: %s\n", adm_status_text(status));
        adm_gate_free(loop.gate);
        return 1;
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int result = epoll >= 0 ? run(&loop, epoll) : 1;

    if (epoll >= 0)
        close(epoll);
    adm_queue_close(loop.queue); /* before the gate */
    adm_gate_free(loop.gate);
    return result;
}
