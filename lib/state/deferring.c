/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend that answers late: it keeps each op for some polls, then hands it to the backend it
 * wraps. While an op is here, backend_use links it and counts its polls; when it is handed on,
 * backend_use is the inner backend's.
 */
#include <stdbool.h>
#include <stdlib.h>

#include <admit/testing.h>

#define NEVER UINTPTR_MAX /* as a count of polls */

struct deferring {
    struct adm_backend inner;
    struct adm_deferring_options options;
    struct adm_op *first, *last; /* waiting, oldest first */
    uint64_t random;
};

static uint64_t draw(struct deferring *deferring, uint64_t below)
{
    uint64_t x = deferring->random += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

static struct adm_op *next_of(const struct adm_op *op)
{
    return op->backend_use[0];
}

static uintptr_t polls_of(const struct adm_op *op)
{
    return (uintptr_t)op->backend_use[1];
}

static void take_out(struct deferring *deferring, struct adm_op *op, struct adm_op *before)
{
    if (before != NULL)
        before->backend_use[0] = next_of(op);
    else
        deferring->first = next_of(op);
    if (deferring->last == op)
        deferring->last = before;
    op->backend_use[0] = op->backend_use[1] = NULL;
}

static void deferring_start(void *self, struct adm_op *op)
{
    struct deferring *deferring = self;
    const struct adm_deferring_options *options = &deferring->options;
    uint64_t polls =
        options->polls_min + draw(deferring, options->polls_max - options->polls_min + 1);

    if (draw(deferring, 1000) < options->never_permille)
        polls = NEVER;
    op->backend_use[0] = NULL;
    op->backend_use[1] = (void *)(uintptr_t)polls;
    if (deferring->last != NULL)
        deferring->last->backend_use[0] = op;
    else
        deferring->first = op;
    deferring->last = op;
}

/* The next op to hand on. In order, one that is not due yet holds back those behind it; one that
 * never comes does not. */
static struct adm_op *due(struct deferring *deferring, struct adm_op **before)
{
    bool in_order = (deferring->options.flags & ADM_DEFER_OUT_OF_ORDER) == 0;

    *before = NULL;
    for (struct adm_op *op = deferring->first; op != NULL; *before = op, op = next_of(op)) {
        if (polls_of(op) == 0)
            return op;
        if (in_order && polls_of(op) != NEVER)
            return NULL;
    }
    return NULL;
}

static adm_status deferring_poll(void *self, const struct adm_time *now)
{
    struct deferring *deferring = self;
    struct adm_op *before;

    for (struct adm_op *op = deferring->first; op != NULL; op = next_of(op)) {
        if (polls_of(op) != NEVER && polls_of(op) > 0)
            op->backend_use[1] = (void *)(polls_of(op) - 1);
    }
    for (struct adm_op *op = due(deferring, &before); op != NULL; op = due(deferring, &before)) {
        take_out(deferring, op, before);
        deferring->inner.ops->start(deferring->inner.self, op);
    }
    return deferring->inner.ops->poll != NULL
               ? deferring->inner.ops->poll(deferring->inner.self, now)
               : ADM_OK;
}

static void deferring_cancel(void *self, struct adm_op *op)
{
    struct deferring *deferring = self;
    struct adm_op *before = NULL, *at = deferring->first;

    if ((deferring->options.flags & ADM_DEFER_KEEP_CANCELLED) != 0) {
        for (; at != NULL; at = next_of(at)) {
            if (at == op && polls_of(op) == NEVER)
                op->backend_use[1] = NULL; /* nobody waits any more: now it is carried out */
        }
        return;
    }
    while (at != NULL && at != op) {
        before = at;
        at = next_of(at);
    }
    if (at != NULL) {
        take_out(deferring, op, before);
        adm_op_complete(op, ADM_E_BACKEND_CANCELLED);
    } else if (deferring->inner.ops->cancel != NULL) {
        deferring->inner.ops->cancel(deferring->inner.self, op);
    }
}

static adm_status deferring_watch(void *self, struct adm_watch *out)
{
    const struct deferring *deferring = self;

    *out = (struct adm_watch){ .fd = -1, .deadline_ns = deferring->first != NULL ? 0 : UINT64_MAX };
    return ADM_OK;
}

static adm_status deferring_describe(void *self, struct adm_backend_info *inout)
{
    struct deferring *deferring = self;
    adm_status status = ADM_OK;

    if (deferring->inner.ops->describe != NULL)
        status = deferring->inner.ops->describe(deferring->inner.self, inout);
    else
        inout->classes_max = inout->partitions_max = inout->leases_max = inout->attempts_max =
            UINT64_MAX;
    inout->threads = ADM_THREADS_SERIAL;
    inout->capabilities |= ADM_CAN_DEFER;
    return status;
}

static void deferring_close(void *self)
{
    struct deferring *deferring = self;

    while (deferring->first != NULL) {
        struct adm_op *op = deferring->first;

        take_out(deferring, op, NULL);
        adm_op_complete(op, ADM_E_BACKEND_CANCELLED);
    }
    deferring->inner.ops->close(deferring->inner.self);
    free(deferring);
}

static const struct adm_backend_ops deferring_ops = {
    .size = sizeof deferring_ops,
    .abi = ADM_BACKEND_ABI,
    .name = "deferring",
    .start = deferring_start,
    .close = deferring_close,
    .poll = deferring_poll,
    .cancel = deferring_cancel,
    .watch = deferring_watch,
    .describe = deferring_describe,
};

adm_status adm_deferring_open(const struct adm_deferring_options *options, struct adm_backend inner,
                              struct adm_backend *out)
{
    struct deferring *deferring;

    /* Source-stable only, so the struct is exactly ours. */
    if (options == NULL || options->size != sizeof *options || out == NULL || inner.ops == NULL ||
        options->polls_max < options->polls_min || options->polls_max > UINT32_MAX ||
        options->never_permille > 1000)
        return ADM_E_INVALID_ARGUMENT;
    if (inner.ops->size < sizeof *inner.ops)
        return ADM_E_BACKEND_ABI;
    deferring = malloc(sizeof *deferring);
    if (deferring == NULL)
        return ADM_E_NOMEM;
    *deferring = (struct deferring){ .inner = inner, .options = *options, .random = options->seed };
    *out = (struct adm_backend){ &deferring_ops, deferring };
    return ADM_OK;
}
