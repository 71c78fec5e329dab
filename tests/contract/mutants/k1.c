/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K1, conservation. */
#include "contract/mutants/mutants.h"

/* A give says released and returns nothing: every client that goes away leaves a phantom (B056,
 * B063). */
static void lose_give(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind != ADM_OP_GIVE || (op->lease.high | op->lease.low) == 0 ||
        wrapper->count % 7 != 0) {
        pass_on(wrapper, op);
        return;
    }
    op->outcome = ADM_OUTCOME_RELEASED;
    op->units = 1;
    adm_op_complete(op, ADM_OK);
}

/* What is told is one unit less than what is held (B021). */
static void wrong_level(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_TAKE && status == ADM_OK) {
        struct adm_term *term = &op->args.take->terms[0];

        if (op->args.take->term_count > 0 && term->kind == ADM_KIND_QUOTA && term->level > 100)
            term->level--;
    }
    adm_op_complete(op, status);
}

/* Settlement is counted as a delta, so the same report twice charges twice (B119). */
static void settle_twice(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_settlement settle;
    struct adm_amount totals[ADM_MAX_AMOUNTS];

    if (op->kind != ADM_OP_SETTLE || op->args.settle->total_count > ADM_MAX_AMOUNTS) {
        pass_on(wrapper, op);
        return;
    }
    settle = *op->args.settle;
    for (uint32_t i = 0; i < settle.total_count; i++) {
        totals[i] = settle.totals[i];
        totals[i].value += wrapper->count; /* ever more */
    }
    settle.totals = totals;
    struct adm_op copy = *op;

    copy.args.settle = &settle;
    adm_status status = wrap_perform(wrapper, &copy);

    op->outcome = copy.outcome;
    adm_op_complete(op, status);
}

/* The sum of input and output stays what was asked for, whatever is reported. */
static void forgets_derived(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_meter meters[2 * ADM_MAX_TERMS];
    const struct adm_meter *given;
    adm_status status;

    if (op->kind != ADM_OP_TAKE || op->args.take->meter_count > 2 * ADM_MAX_TERMS) {
        pass_on(wrapper, op);
        return;
    }
    given = op->args.take->meters;
    for (uint32_t i = 0; i < op->args.take->meter_count; i++) {
        meters[i] = given[i];
        meters[i].flags = 0;
    }
    op->args.take->meters = meters;
    status = wrap_perform(wrapper, op);
    op->args.take->meters = given;
    adm_op_complete(op, status);
}

/* Output that is not to come any more is charged all the same. */
static void divert_gives(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status;

    if (op->kind != ADM_OP_DIVERT) {
        pass_on(wrapper, op);
        return;
    }
    op->kind = ADM_OP_GIVE;
    status = wrap_perform(wrapper, op);
    op->kind = ADM_OP_DIVERT;
    if (op->outcome == ADM_OUTCOME_RELEASED)
        op->outcome = ADM_OUTCOME_DIVERTED;
    adm_op_complete(op, status);
}

const struct mutant mutants_k1[] = {
    { 1, "loses the units of a give", lose_give },
    { 1, "tells a level that is not so", wrong_level },
    { 1, "charges the same report twice", settle_twice },
    { 1, "does not add up derived tokens", forgets_derived },
    { 1, "charges the output of a diverted lease", divert_gives },
    { 0, NULL, NULL },
};
