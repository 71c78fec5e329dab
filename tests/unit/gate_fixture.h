/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the gate: a gate on the plain backend with a clock that stands still, counted
 * memory, and a relay between gate and backend that can hold, refuse, change or forget operations.
 */
#ifndef ADMIT_TESTS_GATE_FIXTURE_H
#define ADMIT_TESTS_GATE_FIXTURE_H

#include <check.h>
#include <stdbool.h>

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/testing.h>

#include "counting_allocator.h"

#define MS          ADM_MILLISECOND
#define SEC         ADM_SECOND
#define RELAY_HELD  256u
#define RELAY_KINDS 8u
#define NO_LEASE    ((struct adm_id){ 0, 0 })

/* ---- a backend between gate and backend ---- */

struct relay;
typedef void (*relay_twist)(struct relay *relay, struct adm_op *op, adm_status *status);

struct relay_held {
    struct adm_op *op;
    bool due; /* handed on at the next poll */
};

struct relay {
    struct adm_backend inner;
    /* How it presents itself; set before the gate is made. */
    bool defers;             /* keeps each op until it is let go and polled */
    bool automatic;          /* with defers: every op is due at the next poll */
    uint32_t automatic_kind; /* … or every op of this kind; 0: none */
    bool keeps_cancelled;
    bool shared; /* inner belongs to somebody else: close is not passed on */
    int32_t fd;  /* what watch tells; -1: none */
    /* What it does to ops. */
    relay_twist twist;   /* changes an answer on its way back */
    uint32_t fail_kind;  /* ADM_OP_*; 0: any */
    uint64_t fail_count; /* so many of them are not carried out */
    adm_status fail_status;
    uint64_t forget_count; /* so many are carried out and never completed */
    void *user;
    /* What it has seen. */
    _Atomic uint64_t started[RELAY_KINDS];
    _Atomic uint64_t polls;
    _Atomic uint64_t cancels;
    _Atomic uint32_t closed;
    struct relay_held held[RELAY_HELD];
    uint32_t held_count;
    struct adm_op *forgotten;
};

struct adm_backend relay_backend(struct relay *relay);
/* The i-th op that is held, oldest first, is due now. */
void relay_let(struct relay *relay, uint32_t i);
void relay_let_all(struct relay *relay);
/* Carry an op out on the inner backend, and what it answered. The op is not completed. */
adm_status relay_carry_out(struct relay *relay, struct adm_op *op);

/* ---- a gate with all that it needs ---- */

struct fixture {
    struct adm_fake_clock clock;
    struct adm_fake_random random;
    struct counting_allocator counting;
    struct adm_allocator allocator;
    struct relay relay;
    struct adm_plain_options plain;
    struct adm_gate_options options; /* changed by a test before fixture_start() */
    struct adm_gate *gate;
    uint64_t started_ns;
};

/* Prepare everything but the gate; the relay is in between, transparent. */
void fixture_init(struct fixture *f);
/* Open the backend and the gate with this policy. */
void fixture_start(struct fixture *f, const char *policy);
/* Both. */
void fixture_open(struct fixture *f, const char *policy);
/* Free the gate; the backend must have been closed once, and all memory must be back. */
void fixture_close(struct fixture *f);
/* Both for a backend that answers only when told to; the first publish has gone through. */
void fixture_open_deferring(struct fixture *f, const char *policy);
/* Let the gate poll its backend. */
void progress(struct fixture *f);

/* Policies: the text of the rules array is enough. */
struct adm_policy *policy_of(const char *text);
void publish(struct fixture *f, const char *text);
adm_status try_publish(struct fixture *f, const char *text);

/* ---- requests ---- */

struct asked {
    struct adm_request request;
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS + 1];
    struct adm_amount amounts[ADM_MAX_AMOUNTS + 1];
    char text[512];
};

/* "consumer=a service=b" */
void ask_for(struct asked *asked, const char *descriptors, uint64_t cost);
void ask_amount(struct asked *asked, uint32_t unit, uint64_t value);
void ask_attempt(struct asked *asked, const char *attempt);
struct adm_decision decide_for(struct fixture *f, const struct asked *asked);
struct adm_decision decide(struct fixture *f, const char *descriptors, uint64_t cost);

struct adm_id allow(struct fixture *f, const char *descriptors, uint64_t cost);
void deny(struct fixture *f, const char *descriptors, uint64_t cost, uint32_t reason);
int64_t level(struct fixture *f, const char *rule, const char *descriptors);
uint32_t release(struct fixture *f, struct adm_id lease);
void settle(struct fixture *f, struct adm_id lease, uint32_t unit, uint64_t total, uint32_t expect);
/* A sample of the gate's metrics, "name{label=\"word\"}"; UINT64_MAX: there is none. */
uint64_t metric(struct fixture *f, const char *sample);
void advance(struct fixture *f, uint64_t ns);
/* All metrics but the line of this sample; to be freed. */
char *metrics_but(struct fixture *f, const char *sample);

static inline bool is_none(struct adm_id id)
{
    return (id.high | id.low) == 0;
}

static inline bool same_id(struct adm_id a, struct adm_id b)
{
    return a.high == b.high && a.low == b.low;
}

static inline struct adm_bytes bytes_of(const void *data, uint64_t length)
{
    struct adm_bytes bytes = { data, length };

    return bytes;
}

/* ---- running ---- */

/* Run and report; the value for main() to return. */
int run_tests(const char *name, const TTest *const *tests, uint64_t count);

#define RUN_TESTS(name, tests) run_tests((name), (tests), sizeof(tests) / sizeof((tests)[0]))

#endif
