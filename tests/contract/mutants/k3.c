/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K3, idempotent give. */
#include "contract/mutants/mutants.h"

static struct adm_id last_allowed; /* of the one backend that runs at a time */

static void remember(const struct adm_op *op, adm_status status)
{
    if (op->kind == ADM_OP_TAKE && status == ADM_OK &&
        (op->args.take->lease.high | op->args.take->lease.low) != 0)
        last_allowed = op->args.take->lease;
}

/* The slot is looked up without its generation: a stale id hits its next owner (B085). */
static void next_owner(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_GIVE && op->outcome == ADM_OUTCOME_ALREADY) {
        struct adm_op other = *op;

        other.lease = last_allowed;
        status = wrap_perform(wrapper, &other);
    }
    remember(op, status);
    adm_op_complete(op, status);
}

/* Part of the id is not looked at, so that ids can be guessed. */
static void loose_id(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_op near = *op;
    adm_status status;

    if (op->kind != ADM_OP_TAKE && op->kind != ADM_OP_PUT_CLASSES &&
        (op->lease.low ^ last_allowed.low) == 1 && op->lease.high == last_allowed.high)
        near.lease = last_allowed;
    status = wrap_perform(wrapper, &near);
    op->outcome = near.outcome;
    op->units = near.units;
    op->judged = near.judged;
    if (op->kind == ADM_OP_TAKE && last_allowed.high == 0)
        remember(op, status);
    if (op->kind == ADM_OP_PUT_CLASSES)
        last_allowed = (struct adm_id){ 0, 0 };
    adm_op_complete(op, status);
}

/* Attempt ids are not remembered: a resend is charged again (B105). */
static void forget_attempts(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_bytes attempt;
    adm_status status;

    if (op->kind != ADM_OP_TAKE) {
        pass_on(wrapper, op);
        return;
    }
    attempt = op->args.take->attempt;
    op->args.take->attempt = (struct adm_bytes){ NULL, 0 };
    status = wrap_perform(wrapper, op);
    op->args.take->attempt = attempt;
    adm_op_complete(op, status);
}

const struct mutant mutants_k3[] = {
    { 3, "gives the next owner's units for a stale id", next_owner },
    { 3, "takes a near miss for the id", loose_id },
    { 3, "charges a repeated attempt again", forget_attempts },
    { 0, NULL, NULL },
};
