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

/* A shadow hold without a lease lives as long as two. */
static void long_shadow(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_TAKE)
        op->args.take->shadow_ttl_ns *= 2;
    pass_on(wrapper, op);
}

/* Holds nothing in shadow beside a lease. */
static void no_shadow_hold(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_TAKE && (op->args.take->flags & ADM_TAKE_F_LEASE) != 0) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            struct adm_term *term = &op->args.take->terms[i];

            if (term->kind == ADM_KIND_CONCURRENCY && (term->flags & ADM_TERM_F_SHADOW) != 0)
                term->amount = 0;
        }
    }
    pass_on(wrapper, op);
}

const struct mutant mutants_k6[] = {
    { 6, "keeps a lease a nanosecond too long", too_long },
    { 6, "lets traffic move an expiry", traffic_renews },
    { 6, "does not renew", no_renewal },
    { 6, "keeps a shadow hold for too long", long_shadow },
    { 6, "holds nothing in shadow beside a lease", no_shadow_hold },
    { 0, NULL, NULL },
};
