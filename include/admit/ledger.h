/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger: all that a backend keeps (classes, buckets, counts, quotas, leases, attempts) in one
 * block of memory, and what each operation does to it. For authors of backends: yours is then a
 * place for the block and a lock around it. examples/write_a_backend.c is one.
 *
 *      adm_ledger_bytes -> zeroed memory -> adm_ledger_init -> adm_ledger_perform *
 *
 * The block holds no pointers: it may lie in memory that processes share, at another address in
 * each.
 *
 * Caveats: a block is for one version of the library on one machine, and is nothing to keep in a
 * file: the monotonic times in it mean nothing after a restart of the machine. Whoever may write to
 * it may admit anything.
 */
#ifndef ADMIT_LEDGER_H
#define ADMIT_LEDGER_H

#include <admit/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adm_random;

/* Sizes are fixed at creation. 0: the default in brackets. */
struct adm_ledger_options {
    uint32_t size;
    uint32_t flags;
    uint64_t partitions_max; /* [65536] per region (enforced, shadow), at most 2^27 */
    uint64_t leases_max;     /* [65536] per region, at most 2^23 */
    uint64_t attempts_max;   /* [16384] at most 2^27 */
    uint64_t classes_max;    /* [131072] classes, replica scopes included, at most 2^27 */
    const struct adm_random *random; /* admit/admit.h; NULL: getrandom(2); read at creation only */
    const void *reserved_pointer;
    uint64_t reserved[4];
};

/**
 * The bytes that a ledger of these sizes needs.
 * options   in, or NULL for the defaults.
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT a size beyond its bound; ADM_E_STRUCT_SIZE, ADM_E_CALLER_NEWER.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_ledger_bytes(const struct adm_ledger_options *options,
                                                 uint64_t *out_bytes);

/**
 * Begin an empty ledger.
 * memory    aligned to 8 bytes and all zero, as calloc(3) and mmap(2) give it: nearly all of it is
 *           not touched before it is used.
 * bytes     at least those of adm_ledger_bytes().
 * Ownership the memory stays the caller's; there is nothing else to free.
 * Threads   one, before all others.
 * Blocking  never.
 * Errors    as adm_ledger_bytes(); ADM_E_BUFFER_TOO_SMALL; ADM_E_OS no random bytes.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_ledger_init(void *memory, uint64_t bytes,
                                                const struct adm_ledger_options *options);

/**
 * Carry out an operation, completely: the status is for adm_op_complete(). Results are as
 * admit/backend.h says, and all laws there hold.
 * Threads   one at a time: the caller locks.
 * Blocking  never. It does not allocate.
 * Errors    those of the operation; ADM_E_BACKEND_UNAVAILABLE a process died inside an operation:
 *           what is counted is not certain any more, and nothing will be done from now on. Begin a
 *           new ledger.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_ledger_perform(void *memory, struct adm_op *op);

/**
 * Counts and bounds for a backend's describe(); threads and capabilities are the caller's to say.
 * Threads   as adm_ledger_perform().
 * Blocking  never.
 * Since     1.0
 */
ADM_API void adm_ledger_describe(const void *memory, struct adm_backend_info *inout);

#ifdef __cplusplus
}
#endif
#endif
