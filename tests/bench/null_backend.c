/* SPDX-License-Identifier: Apache-2.0 */
#include "null_backend.h"

static void take(struct adm_take *take, struct adm_time now, bool deny)
{
    for (uint32_t i = 0; i < take->term_count; i++) {
        take->terms[i].verdict = deny ? ADM_TERM_EXCEEDED : ADM_TERM_PASS;
        take->terms[i].level = 0;
        take->terms[i].passes_at_ns = now.mono_ns + ADM_SECOND;
    }
    take->verdict = deny ? ADM_VERDICT_DENY : ADM_VERDICT_ALLOW;
    if (!deny && (take->flags & ADM_TAKE_F_LEASE) != 0)
        take->lease = take->seed;
}

static void start(void *self, struct adm_op *op)
{
    switch (op->kind) {
    case ADM_OP_PUT_CLASSES:
        for (uint64_t i = 0; i < op->args.classes->class_count; i++)
            op->args.classes->classes[i].handle = i + 1;
        op->args.classes->sequence = 1;
        break;
    case ADM_OP_TAKE:
        take(op->args.take, op->now, self != NULL);
        break;
    case ADM_OP_GIVE:
        op->outcome = ADM_OUTCOME_RELEASED;
        break;
    default:
        break;
    }
    op->judged = op->now;
    adm_op_complete(op, ADM_OK);
}

static void close(void *self)
{
    (void)self;
}

static adm_status describe(void *self, struct adm_backend_info *inout)
{
    uint32_t size = inout->size;

    (void)self;
    *inout = (struct adm_backend_info){ .size = size, .threads = ADM_THREADS_ANY };
    return ADM_OK;
}

struct adm_backend null_backend(bool deny)
{
    static const struct adm_backend_ops ops = { .size = sizeof ops,
                                                .abi = ADM_BACKEND_ABI,
                                                .name = "null",
                                                .start = start,
                                                .close = close,
                                                .describe = describe };
    static char denies;

    return (struct adm_backend){ &ops, deny ? &denies : NULL };
}
