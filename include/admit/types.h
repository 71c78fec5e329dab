/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that cross every other header: bytes, time, ids, descriptors, amounts, the request and
 * the decision. Plain data; no function here does more than build or name a value.
 *
 * Caveats: structs that the caller allocates start with their size: initialise them with
 * { sizeof(struct X) } and leave the rest zero, which is the default of every field. Strings are
 * views of bytes, compared raw: no case folding, no trimming, no decoding, NUL is a byte.
 */
#ifndef ADMIT_TYPES_H
#define ADMIT_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include <admit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bounds. Values outside are refused with a status before any state is touched. */
#define ADM_MAX_DESCRIPTORS   16
#define ADM_MAX_KEY_BYTES     64
#define ADM_MAX_VALUE_BYTES   256
#define ADM_MAX_ATTEMPT_BYTES 64
#define ADM_MAX_AMOUNT        UINT64_C(1000000000000) /* 10^12: also of capacities and limits */
#define ADM_MAX_AMOUNTS       16 /* further amounts per request, totals per settle */
#define ADM_MAX_TERMS         16 /* consuming rules that may match one request */
#define ADM_MAX_RULE_ID       64
#define ADM_MAX_VERSION       64

#define ADM_MILLISECOND UINT64_C(1000000)
#define ADM_SECOND      UINT64_C(1000000000)

/* A view of bytes; never owned, never NUL-terminated. data may be NULL only when length is 0. */
struct adm_bytes {
    const void *data;
    uint64_t length;
};

/* A moment on both clocks, in nanoseconds. mono_ns only ever serves differences; wall_ns is UTC
 * since 1970 and serves calendar windows alone. */
struct adm_time {
    uint64_t mono_ns;
    uint64_t wall_ns;
};

/* 128 bits, unguessable, never reused. All zero means none. In text: 32 lower-case hex digits. */
struct adm_id {
    uint64_t high;
    uint64_t low;
};

/* A trusted fact about a request, set by authentication or routing, never by the caller's own
 * fields. key_id, from adm_gate_key(), saves the look-up of the key; 0 means that key is used. */
struct adm_descriptor {
    struct adm_bytes key;   /* 1 … 64 bytes */
    struct adm_bytes value; /* 1 … 256 bytes */
    uint32_t key_id;
    uint32_t reserved0;
};

/* What an amount counts. Units that a policy declares get ids from adm_gate_unit(). */
enum {
    ADM_UNIT_COST = 0,
    ADM_UNIT_REQUESTS = 1, /* always 1, never given */
    ADM_UNIT_INPUT_TOKENS = 2,
    ADM_UNIT_OUTPUT_TOKENS = 3,
    ADM_UNIT_TOKENS = 4, /* absent: input_tokens + output_tokens, if either is given */
    ADM_UNIT_IMAGES = 5,
    ADM_UNIT_FIRST_DECLARED = 16
};

struct adm_amount {
    uint32_t unit;
    uint32_t flags; /* settle: ADM_AMOUNT_FINAL; admit: 0 */
    uint64_t value; /* 0 … 10^12 */
};

#define ADM_AMOUNT_FINAL 1u /* no later report changes this unit */

/* A question: may this work start? Everything is read during the call only. */
struct adm_request {
    uint32_t size;
    uint32_t flags;
    const struct adm_descriptor *descriptors;
    uint64_t descriptor_count;
    const struct adm_amount *amounts; /* beside cost; each unit at most once */
    uint64_t amount_count;
    uint64_t cost; /* 1 … 10^12 */
    /* data NULL: none. The same id with the same contents: the first allow again. */
    struct adm_bytes attempt;
    /* Longest wait for the backend, relative; 0, or more than it: the gate's backend_timeout_ns. */
    uint64_t deadline_ns;
    uint64_t reserved[4];
};

enum { ADM_VERDICT_DENY = 0, ADM_VERDICT_ALLOW = 1 };

/* Why. Treat a reason that you do not know as a denial with HTTP status 503. */
enum {
    ADM_REASON_ALLOWED = 0,
    ADM_REASON_EMERGENCY_ALLOWED = 1, /* reserved for emergency allowances */
    ADM_REASON_RATE_EXCEEDED = 2,
    ADM_REASON_CONCURRENCY_EXCEEDED = 3,
    ADM_REASON_PRESSURE = 4,
    ADM_REASON_QUOTA_EXCEEDED = 5,
    ADM_REASON_UNSATISFIABLE = 6, /* more than the rule can ever hold */
    ADM_REASON_COST_ABOVE_CAP = 7,
    ADM_REASON_NO_POLICY = 8, /* no enforced rule matches */
    ADM_REASON_MISSING_DESCRIPTOR = 9,
    ADM_REASON_MISSING_AMOUNT = 10,
    ADM_REASON_POLICY_TOO_WIDE = 11, /* more than ADM_MAX_TERMS consuming rules match */
    ADM_REASON_KEY_SPACE_FULL = 12,
    ADM_REASON_STATE_UNAVAILABLE = 13,
    ADM_REASON_COUNT = 14
};

/* The answer. Self-contained: nothing in it points into the gate or the policy. */
struct adm_decision {
    uint32_t size;
    uint32_t flags;         /* ADM_DECISION_* */
    uint32_t verdict;       /* ADM_VERDICT_* */
    uint32_t reason;        /* ADM_REASON_* */
    uint32_t http_status;   /* 200 when allowed; else 400, 429 or 503 */
    uint32_t rule_count;    /* denying rules, policy order; adm_decision_rule() names them */
    uint32_t shadow_count;  /* shadow rules that would have denied */
    uint32_t unknown_count; /* shadow rules without a verdict: their state is full */
    /* Least wait after which the same request alone would pass; 0: none. */
    uint64_t retry_after_ms;
    struct adm_id lease;     /* for adm_release(); none: nothing is held or to be settled */
    struct adm_id id;        /* this decision, for logs and answers */
    char policy_version[72]; /* NUL-terminated */
    char table_version[72];  /* NUL-terminated; empty: no limit table is in force */
    uint32_t names_used;     /* bytes used of names */
    uint32_t reserved0;
    uint64_t reserved[4];
    /* Rule ids, each NUL-terminated: first denying, then shadow rules. */
    char names[2080];
};

#define ADM_DECISION_REPEATED  1u /* the answer to an attempt id that was already allowed */
#define ADM_DECISION_TRUNCATED 2u /* more rules denied than names has room for */

/* How the work ended; telemetry only, the lease returns everything whatever it says. */
enum {
    ADM_RESULT_OK = 0,
    ADM_RESULT_ERROR = 1,
    ADM_RESULT_TIMEOUT = 2,
    ADM_RESULT_CANCELLED = 3,
    ADM_RESULT_DIVERTED = 4,
    ADM_RESULT_COUNT = 5
};

/* What an operation on a lease found. Never an error: a late or second release is normal life. */
enum {
    ADM_OUTCOME_UNKNOWN = 0,  /* no such lease, or its record is gone */
    ADM_OUTCOME_RELEASED = 1, /* held units returned now */
    ADM_OUTCOME_ALREADY = 2,  /* it had been released (settle: or diverted) */
    ADM_OUTCOME_LATE = 3,     /* it had expired; usage was still charged */
    ADM_OUTCOME_QUEUED = 4,   /* the backend is away; will be sent */
    ADM_OUTCOME_RENEWED = 5,
    ADM_OUTCOME_LOST = 6, /* renew: not live any more */
    ADM_OUTCOME_SETTLED = 7,
    ADM_OUTCOME_DIVERTED = 8,
    ADM_OUTCOME_COUNT = 9
};

/**
 * A view of a C string, without its NUL.
 * Ownership borrows text.
 * Threads   any.
 * Blocking  never.
 * Errors    none; NULL gives an empty view.
 * Since     1.0
 */
ADM_API struct adm_bytes adm_str(const char *text);

/**
 * The stable word of a reason, outcome or result: "rate_exceeded", "released", "ok"; "?" for an
 * unknown one.
 * Ownership static.
 * Threads   any.
 * Blocking  never.
 * Errors    none.
 * Since     1.0
 */
ADM_API const char *adm_reason_name(uint32_t reason);
ADM_API const char *adm_outcome_name(uint32_t outcome);
ADM_API const char *adm_result_name(uint32_t result);

/**
 * The i-th denying rule (adm_decision_shadow: would-denying shadow rule) of a decision, policy
 * order.
 * Ownership points into decision.
 * Threads   any.
 * Blocking  never.
 * Errors    NULL when i is out of range or the id did not fit.
 * Since     1.0
 */
ADM_API const char *adm_decision_rule(const struct adm_decision *decision, uint32_t i);
ADM_API const char *adm_decision_shadow(const struct adm_decision *decision, uint32_t i);

/**
 * The value of the HTTP header Retry-After for a decision: max(1, ceil(retry_after_ms / 1000)), 0:
 * send none.
 * Threads   any.
 * Blocking  never.
 * Errors    none.
 * Since     1.0
 */
ADM_API uint64_t adm_decision_retry_after_s(const struct adm_decision *decision);

/**
 * An id as 32 lower-case hex digits and a NUL; and back. "Nothing" is 32 zeros.
 * out       caller's memory, 33 bytes; or the id, written on success only.
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT: not 32 hex digits.
 * Since     1.0
 */
ADM_API void adm_id_format(struct adm_id id, char out[33]);
ADM_API ADM_MUST_USE adm_status adm_id_parse(struct adm_bytes text, struct adm_id *out);

#ifdef __cplusplus
}
#endif
#endif
