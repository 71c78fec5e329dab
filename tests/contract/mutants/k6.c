/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K6, exact expiry. */
#include "contract/mutants/mutants.h"

/* A lease lives a nanosecond too long. */
static void too_long(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status;

    if (op->kind != ADM_OP_TAKE) {
        pass_on(wrapper, op);
        return;
    }
    op->args.take->ttl_ns++;
    status = wrap_perform(wrapper, op);
    op->args.take->ttl_ns--;
    adm_op_complete(op, status);
}

/* Every take moves the expiry of the lease before it (B058, B101). */
static void traffic_renews(struct wrapper *wrapper, struct adm_op *op)
{
    static struct adm_id last; /* of the one backend that runs at a time */
    adm_status status;

    if (op->kind == ADM_OP_TAKE) {
        struct adm_op renew = *op;

        renew.kind = ADM_OP_RENEW;
        renew.lease = last;
        (void)wrap_perform(wrapper, &renew);
    }
    status = wrap_perform(wrapper, op);
    if (op->kind == ADM_OP_TAKE && status == ADM_OK && op->args.take->lease.high != 0)
        last = op->args.take->lease;
    adm_op_complete(op, status);
}

/* Renewal says so and does nothing (B087). */
static void no_renewal(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind != ADM_OP_RENEW) {
        pass_on(wrapper, op);
        return;
    }
    op->outcome = ADM_OUTCOME_RENEWED;
    adm_op_complete(op, ADM_OK);
}

const struct mutant mutants_k6[] = {
    { 6, "keeps a lease a nanosecond too long", too_long },
    { 6, "lets traffic move an expiry", traffic_renews },
    { 6, "does not renew", no_renewal },
    { 0, NULL, NULL },
};
