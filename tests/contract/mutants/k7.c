/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K7, linearisability. */
#include "contract/mutants/mutants.h"

#include <sched.h>

static _Atomic uint64_t begun; /* ops of all threads */

/* Until other threads have begun some ops, or there are none: this is what makes the fault show. */
static void let_others(void)
{
    uint64_t seen = begun;

    for (uint32_t i = 0; i < 300 && begun < seen + 4; i++)
        (void)sched_yield();
}

/* Looks first and takes later, without looking again (B022, B036). */
static void check_then_act(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    adm_status status;

    begun++;
    if (op->kind != ADM_OP_TAKE || take->mode != ADM_TAKE_CHARGE) {
        pass_on(wrapper, op);
        return;
    }
    take->mode = ADM_TAKE_JUDGE;
    status = wrap_perform(wrapper, op);
    take->mode = ADM_TAKE_CHARGE;
    let_others();
    if (status == ADM_OK && take->verdict == ADM_VERDICT_ALLOW) {
        for (uint32_t i = 0; i < take->term_count; i++)
            take->terms[i].limit = ADM_MAX_AMOUNT;
        status = wrap_perform(wrapper, op);
    }
    adm_op_complete(op, status);
}

/* Takes the first term, then all of them; who is denied gives the first back: for a moment it was
 * charged. */
static void roll_back(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    struct adm_take first;
    struct adm_op own = *op;
    adm_status status;

    begun++;
    if (op->kind != ADM_OP_TAKE || take->mode != ADM_TAKE_CHARGE || take->term_count < 2 ||
        take->terms[0].kind != ADM_KIND_CONCURRENCY) {
        pass_on(wrapper, op);
        return;
    }
    first = *take;
    first.term_count = 1;
    own.args.take = &first;
    status = wrap_perform(wrapper, &own);
    let_others();
    if (status == ADM_OK && first.verdict == ADM_VERDICT_ALLOW) {
        own.kind = ADM_OP_GIVE;
        own.lease = first.lease;
        (void)wrap_perform(wrapper, &own);
    }
    pass_on(wrapper, op);
}

const struct mutant mutants_k7[] = {
    { 7, "checks, then acts", check_then_act },
    { 7, "charges for a moment what it denies", roll_back },
    { 0, NULL, NULL },
};
