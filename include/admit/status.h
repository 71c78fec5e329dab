/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes: what a call could not do, and why. For applications, bindings and backend authors.
 *
 * A denial is not an error: a request that may not start is ADM_OK with decision.verdict ==
 * ADM_VERDICT_DENY. A failing status means that there is no decision at all.
 *
 * Caveats: numbers are never reused; later versions may add codes inside a band, so switch on
 * adm_status_class() and treat an unknown code as its class.
 */
#ifndef ADMIT_STATUS_H
#define ADMIT_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ADM_API      __attribute__((visibility("default")))
#define ADM_MUST_USE __attribute__((warn_unused_result))
#else
#define ADM_API
#define ADM_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t adm_status;

enum {
    ADM_OK = 0,

    /* -1 … -99: the caller's bug. Nothing was changed; fix the call. */
    ADM_E_INVALID_ARGUMENT = -1, /* a null pointer, an unknown enumerator, a length out of range */
    ADM_E_INVALID_COST = -2,     /* cost not in 1 … 10^12, an amount above 10^12, a unit twice */
    ADM_E_INVALID_DESCRIPTORS =
        -3,                     /* more than 16, a key twice, a key or value of illegal length */
    ADM_E_INVALID_ATTEMPT = -4, /* attempt id not 1 … 64 bytes, or known with other contents */
    ADM_E_STRUCT_SIZE = -5,     /* a sized struct is too small or absurdly large */
    ADM_E_CALLER_NEWER = -6,    /* a field or flag that this library does not know is set */
    ADM_E_REENTRANT = -7, /* a gate was entered from inside a backend call or an event callback */
    ADM_E_UNKNOWN_RULE = -8,     /* the active policy has no rule of that id */
    ADM_E_BUFFER_TOO_SMALL = -9, /* the needed length was written; nothing else was */
    ADM_E_BUSY = -10,            /* the object still has work in flight */
    ADM_E_LIMIT = -11, /* a documented bound of this object is reached (keys, units, signals) */

    /* -100 … -199: the environment. Nothing was changed; try again or give up. */
    ADM_E_NOMEM = -100,
    ADM_E_OS = -101, /* the system refused a clock, random bytes, a descriptor or a mapping */

    /* -200 … -299: the policy. The one in force was not touched. */
    ADM_E_POLICY_INVALID = -200,   /* see the diagnostics */
    ADM_E_VERSION_CONFLICT = -201, /* a kept policy has this version and other content */
    ADM_E_UNKNOWN_VERSION = -202,  /* no kept policy has this version */
    ADM_E_POLICY_NO_ROOM = -203,   /* the backend has no room for its classes */

    /* -300 … -399: the backend. From a backend to the gate; an application never sees them from
     * admit, where they are a denial, state_unavailable. */
    ADM_E_BACKEND_FULL = -300,
    ADM_E_BACKEND_UNKNOWN = -301,     /* it may or may not have happened (a lost reply) */
    ADM_E_BACKEND_UNAVAILABLE = -302, /* it did not happen */
    ADM_E_BACKEND_FORKED = -303,      /* private state used in a forked child */
    ADM_E_BACKEND_RESULT = -304,    /* the backend answered with something that is not an answer */
    ADM_E_BACKEND_STALE = -305,     /* the operation was built for another set of classes */
    ADM_E_BACKEND_CANCELLED = -306, /* cancelled before anything happened */
    ADM_E_BACKEND_ABI = -307,       /* the table of operations cannot be used */

    /* -900 …: a bug of ours. */
    ADM_E_INTERNAL = -900
};

enum {
    ADM_STATUS_CLASS_OK = 0,
    ADM_STATUS_CLASS_CALLER = 1,
    ADM_STATUS_CLASS_ENVIRONMENT = 2,
    ADM_STATUS_CLASS_POLICY = 3,
    ADM_STATUS_CLASS_BACKEND = 4,
    ADM_STATUS_CLASS_INTERNAL = 5
};

/**
 * The class of a status: one of ADM_STATUS_CLASS_*, five failures to switch on.
 * Threads   any.
 * Blocking  never.
 * Errors    none.
 * Since     1.0
 */
ADM_API uint32_t adm_status_class(adm_status status);

/**
 * The stable identifier of a status, for instance "ADM_E_INVALID_COST"; "ADM_E_?" for an unknown
 * one.
 * Ownership static, never freed.
 * Threads   any.
 * Blocking  never.
 * Errors    none.
 * Since     1.0
 */
ADM_API const char *adm_status_name(adm_status status);

/**
 * One sentence for people. Not parsed by anybody: it may change in any release.
 * Ownership static, never freed.
 * Threads   any.
 * Blocking  never.
 * Errors    none.
 * Since     1.0
 */
ADM_API const char *adm_status_text(adm_status status);

#ifdef __cplusplus
}
#endif
#endif
