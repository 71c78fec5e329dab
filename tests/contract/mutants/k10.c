/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K10, fork. */
#include "contract/mutants/mutants.h"

#include <unistd.h>

static pid_t parent; /* who opened the backend; the suite puts classes first */

static void note_parent(const struct adm_op *op)
{
    if (op->kind == ADM_OP_PUT_CLASSES)
        parent = getpid();
}

/* A child is told that all is well, while nothing is counted (B128). */
static void pretend(struct wrapper *wrapper, struct adm_op *op)
{
    note_parent(op);
    if (getpid() == parent || op->kind != ADM_OP_TAKE) {
        pass_on(wrapper, op);
        return;
    }
    op->args.take->verdict = ADM_VERDICT_ALLOW;
    adm_op_complete(op, ADM_OK);
}

/* A child gets no answer at all, as from a mutex that was locked at the fork. */
static void hang(struct wrapper *wrapper, struct adm_op *op)
{
    note_parent(op);
    if (getpid() == parent || op->kind != ADM_OP_TAKE)
        pass_on(wrapper, op);
}

const struct mutant mutants_k10[] = {
    { 10, "pretends to work in a child", pretend },
    { 10, "does not answer in a child", hang },
    { 0, NULL, NULL },
};
