/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K2, all or nothing. */
#include "contract/mutants/mutants.h"

/* One term after the other, and no way back: who is denied by the second has paid for the first
 * (B037, B041). */
static void one_by_one(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    adm_status status = ADM_OK;

    if (op->kind != ADM_OP_TAKE || take->mode != ADM_TAKE_CHARGE || take->term_count < 2) {
        pass_on(wrapper, op);
        return;
    }
    take->verdict = ADM_VERDICT_ALLOW;
    for (uint32_t i = 0; i < take->term_count && status == ADM_OK; i++) {
        struct adm_take one = *take;
        struct adm_op own = *op;

        one.terms = &take->terms[i];
        one.term_count = 1;
        own.args.take = &one;
        status = wrap_perform(wrapper, &own);
        if (one.verdict != ADM_VERDICT_ALLOW)
            take->verdict = ADM_VERDICT_DENY;
        take->lease = one.lease;
    }
    if (take->verdict == ADM_VERDICT_DENY)
        take->lease = (struct adm_id){ 0, 0 };
    adm_op_complete(op, status);
}

/* Judging is taking (explain consumes). */
static void judge_charges(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    adm_status status;

    if (op->kind != ADM_OP_TAKE || take->mode != ADM_TAKE_JUDGE) {
        pass_on(wrapper, op);
        return;
    }
    take->mode = ADM_TAKE_CHARGE;
    status = wrap_perform(wrapper, op);
    take->mode = ADM_TAKE_JUDGE;
    take->lease = (struct adm_id){ 0, 0 };
    adm_op_complete(op, status);
}

/* A shadow term that would deny does deny (B048). */
static void shadow_denies(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_TAKE && status == ADM_OK) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            if (op->args.take->terms[i].verdict != ADM_TERM_PASS)
                op->args.take->verdict = ADM_VERDICT_DENY;
        }
    }
    adm_op_complete(op, status);
}

const struct mutant mutants_k2[] = {
    { 2, "charges one term after the other", one_by_one },
    { 2, "charges what is only judged", judge_charges },
    { 2, "lets shadow terms deny", shadow_denies },
    { 0, NULL, NULL },
};
