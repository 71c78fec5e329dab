/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K8, clean failure. */
#include "contract/mutants/mutants.h"

/* It happened, and then it says that it did not. */
static void happened(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status;

    if (wrapper->count % 11 != 0) {
        pass_on(wrapper, op);
        return;
    }
    status = wrap_perform(wrapper, op);
    adm_op_complete(op, status == ADM_OK ? ADM_E_BACKEND_UNAVAILABLE : status);
}

/* A take for another class set is charged all the same, and then refused. */
static void stale_charges(struct wrapper *wrapper, struct adm_op *op)
{
    static uint64_t sequence; /* of the one backend that runs at a time */
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_PUT_CLASSES && status == ADM_OK)
        sequence = op->args.classes->sequence;
    if (op->kind == ADM_OP_TAKE && status == ADM_E_BACKEND_STALE) {
        uint64_t asked = op->args.take->sequence;

        op->args.take->sequence = sequence;
        (void)wrap_perform(wrapper, op);
        op->args.take->sequence = asked;
    }
    adm_op_complete(op, status);
}

/* A failure of its own invention. */
static void strange_status(struct wrapper *wrapper, struct adm_op *op)
{
    if (wrapper->count % 11 == 0)
        adm_op_complete(op, -5);
    else
        pass_on(wrapper, op);
}

/* Completes twice. */
static void twice(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    adm_op_complete(op, status);
    adm_op_complete(op, status);
}

/* Makes legal numbers of illegal ones. */
static void clamps_numbers(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_PUT_CLASSES) {
        for (uint64_t i = 0; i < op->args.classes->class_count; i++) {
            struct adm_class *class_ = &op->args.classes->classes[i];

            if (class_->kind != ADM_KIND_BUCKET)
                continue;
            if (class_->capacity > ADM_MAX_AMOUNT)
                class_->capacity = ADM_MAX_AMOUNT;
            if (class_->per_ns == 0)
                class_->per_ns = ADM_SECOND;
            if (class_->refill > class_->per_ns)
                class_->refill = class_->per_ns;
        }
    }
    pass_on(wrapper, op);
}

/* Holds units that nobody can give back. */
static void holds_without_lease(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_TAKE && op->args.take->mode == ADM_TAKE_CHARGE) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            const struct adm_term *term = &op->args.take->terms[i];

            if (term->kind == ADM_KIND_CONCURRENCY && (term->flags & ADM_TERM_F_SHADOW) == 0)
                op->args.take->flags |= ADM_TAKE_F_LEASE;
        }
    }
    pass_on(wrapper, op);
}

const struct mutant mutants_k8[] = {
    { 8, "fails after it happened", happened },
    { 8, "charges a take for another class set", stale_charges },
    { 8, "fails with a status that is not a backend's", strange_status },
    { 8, "completes twice", twice },
    { 8, "makes legal numbers of illegal ones", clamps_numbers },
    { 8, "holds units without a lease", holds_without_lease },
    { 0, NULL, NULL },
};
