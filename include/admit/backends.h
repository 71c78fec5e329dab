/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backends that come with the library. For applications: open one, give it to adm_gate_new(),
 * which owns and closes it from then on.
 *
 * Caveats: state of these is private to the process; in a forked child every operation fails with
 * ADM_E_BACKEND_FORKED, and admit answers deny, state_unavailable.
 */
#ifndef ADMIT_BACKENDS_H
#define ADMIT_BACKENDS_H

#include <admit/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adm_allocator;
struct adm_random;

/* Sizes are fixed at creation: admit and release never allocate. 0: the default in brackets. */
struct adm_plain_options {
    uint32_t size;
    uint32_t flags;
    uint64_t partitions_max; /* [65536] per region (enforced, shadow), at most 2^27 */
    uint64_t leases_max;     /* [65536] per region, at most 2^23 */
    uint64_t attempts_max;   /* [16384] at most 2^27 */
    uint64_t classes_max;    /* [131072] classes, replica scopes included, at most 2^27 */
    const struct adm_allocator *allocator; /* admit/admit.h; NULL: malloc */
    const struct adm_random *random; /* admit/admit.h; NULL: getrandom(2); read at creation only */
    uint64_t reserved[4];
};

/**
 * State in this process behind one mutex: short, obvious, exact. The reference for authors of
 * backends.
 * options   in, or NULL for the defaults.
 * out       written on success only.
 * Ownership the backend is closed by the gate it is given to, or by out->ops->close(out->self).
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT a size beyond its bound; ADM_E_NOMEM, ADM_E_OS: nothing was
 *           opened.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_plain_open(const struct adm_plain_options *options,
                                               struct adm_backend *out);

/* Sizes are fixed at creation: admit and release never allocate. 0: the default in brackets. */
struct adm_memory_options {
    uint32_t size;
    uint32_t flags;
    uint64_t
        partitions_max;    /* [65536] lines per region (enforced, shadow), at most 2^26. Rules that
                                are asked for together with the same partition share one, up to
                                four */
    uint64_t leases_max;   /* [65536] per region, at most 2^21. A lease of more than three rules
                                counts as up to four */
    uint64_t attempts_max; /* [16384] at most 2^24 */
    uint64_t classes_max;  /* [131072] classes, replica scopes included, at most 2^24 */
    uint64_t threads_max;  /* [64] operations at a time, at most 1024; more of them are told
                                ADM_E_BACKEND_UNAVAILABLE */
    const struct adm_allocator *allocator; /* admit/admit.h; NULL: malloc */
    const struct adm_random *random; /* admit/admit.h; NULL: getrandom(2); read at creation only */
    uint64_t reserved[4];
};

/**
 * State in this process for any number of threads, without a lock: a thread that is stopped
 * anywhere stops no other (only class sets wait for each other). All rules of a take are charged at
 * one moment, or none; a denial writes nothing.
 * options   in, or NULL for the defaults: about 320 MiB of address space, of which only what is
 *           used becomes memory.
 * out       written on success only.
 * Ownership the backend is closed by the gate it is given to, or by out->ops->close(out->self).
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT a size beyond its bound, or all together beyond 32 GiB;
 *           ADM_E_NOMEM, ADM_E_OS: nothing was opened.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_memory_open(const struct adm_memory_options *options,
                                                struct adm_backend *out);

#ifdef __cplusplus
}
#endif
#endif
