/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K5, bounded memory. */
#include "contract/mutants/mutants.h"

/* Over the cap everything is cleared, and everybody gets a full burst (B097). The new backend needs
 * the classes again, so they are kept. */
static struct adm_class kept[64];
static struct adm_class_set kept_set; /* of the one backend that runs at a time */

static adm_status put_again(struct wrapper *wrapper, const struct adm_op *like)
{
    struct adm_op put = *like;

    put.kind = ADM_OP_PUT_CLASSES;
    put.args.classes = &kept_set;
    return wrap_perform(wrapper, &put);
}

static void clear_when_full(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status;

    if (op->kind == ADM_OP_PUT_CLASSES && op->args.classes->class_count <= 64) {
        kept_set = *op->args.classes;
        for (uint64_t i = 0; i < kept_set.class_count; i++)
            kept[i] = kept_set.classes[i];
        kept_set.classes = kept;
    }
    status = wrap_perform(wrapper, op);
    if (op->kind == ADM_OP_TAKE && status == ADM_OK && op->args.take->term_count > 0 &&
        op->args.take->terms[0].verdict == ADM_TERM_NO_ROOM) {
        uint64_t sequence = op->args.take->sequence;

        wrapper->inner.ops->close(wrapper->inner.self);
        status = open_plain(NULL, &wrapper->sizes, &wrapper->inner);
        if (status == ADM_OK)
            status = put_again(wrapper, op);
        op->args.take->sequence = kept_set.sequence;
        if (status == ADM_OK)
            status = wrap_perform(wrapper, op);
        op->args.take->sequence = sequence;
    }
    adm_op_complete(op, status);
}

/* The rule's own bound is not looked at. */
static void no_bound(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_PUT_CLASSES) {
        for (uint64_t i = 0; i < op->args.classes->class_count; i++)
            op->args.classes->classes[i].max_partitions = 0;
    }
    pass_on(wrapper, op);
}

/* A full table lets everybody in, uncounted. */
static void let_in(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_TAKE && status == ADM_E_BACKEND_FULL) {
        op->args.take->verdict = ADM_VERDICT_ALLOW;
        status = ADM_OK;
    }
    adm_op_complete(op, status);
}

/* Denies what a full shadow table cannot judge. */
static void shadow_full_denies(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_TAKE && status == ADM_OK) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            if (op->args.take->terms[i].verdict == ADM_TERM_UNKNOWN)
                op->args.take->verdict = ADM_VERDICT_DENY;
        }
    }
    adm_op_complete(op, status);
}

const struct mutant mutants_k5[] = {
    { 5, "clears everything when it is full", clear_when_full },
    { 5, "does not look at max_partitions", no_bound },
    { 5, "admits when it is full", let_in },
    { 5, "denies when a shadow table is full", shadow_full_denies },
    { 0, NULL, NULL },
};
