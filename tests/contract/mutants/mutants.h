/* SPDX-License-Identifier: Apache-2.0 */
/* Broken backends, one file per law: the suite must fail on each and name the law. */
#ifndef TESTS_CONTRACT_MUTANTS_H
#define TESTS_CONTRACT_MUTANTS_H

#include "contract/wrap.h"

struct mutant {
    uint32_t law;
    const char *what; /* it does */
    wrapped_start start;
};

/* Each ends with law 0. */
extern const struct mutant mutants_k1[], mutants_k2[], mutants_k3[], mutants_k4[], mutants_k5[],
    mutants_k6[], mutants_k7[], mutants_k8[], mutants_k9[], mutants_k10[];

static inline void pass_on(struct wrapper *wrapper, struct adm_op *op)
{
    wrapper->inner.ops->start(wrapper->inner.self, op);
}

#endif
