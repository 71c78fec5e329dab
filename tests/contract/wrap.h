/* SPDX-License-Identifier: Apache-2.0 */
/* A backend around another one, for tests that change one thing: the author's half-page, reused. */
#ifndef TESTS_CONTRACT_WRAP_H
#define TESTS_CONTRACT_WRAP_H

#include "contract/plain.h"

struct wrapper {
    struct adm_backend inner;
    struct adm_contract_sizes sizes;
    uint64_t count; /* ops so far */
    void *user;
};

/* What the wrapper does with an op; it must complete it, or hand it to inner. */
typedef void (*wrapped_start)(struct wrapper *wrapper, struct adm_op *op);

/* A plain backend with another start. user: for the wrapper. threads: ADM_THREADS_*, what it says
 * of itself. */
adm_status wrap_plain(wrapped_start start, void *user, uint32_t threads,
                      const struct adm_contract_sizes *sizes, struct adm_backend *out);

/* Carry an op out on the inner backend without completing the caller's: the results are in *op, the
 * status is returned. The op may be a copy. */
adm_status wrap_perform(struct wrapper *wrapper, struct adm_op *op);

#endif
