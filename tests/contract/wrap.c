/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper's table, and carrying out an op of its own. */
#include "contract/wrap.h"

#include <stdlib.h>

#include "state/operation.h"

struct wrapping {
    struct wrapper wrapper; /* first: what start gets */
    wrapped_start start;
    uint32_t threads;
};

static void wrap_start(void *self, struct adm_op *op)
{
    struct wrapping *wrapping = self;

    (void)__atomic_add_fetch(&wrapping->wrapper.count, 1, __ATOMIC_RELAXED);
    wrapping->start(&wrapping->wrapper, op);
}

static void wrap_close(void *self)
{
    struct wrapping *wrapping = self;

    wrapping->wrapper.inner.ops->close(wrapping->wrapper.inner.self);
    free(wrapping);
}

static adm_status wrap_describe(void *self, struct adm_backend_info *inout)
{
    struct wrapping *wrapping = self;

    adm_status status = wrapping->wrapper.inner.ops->describe(wrapping->wrapper.inner.self, inout);

    inout->threads = wrapping->threads;
    return status;
}

static const struct adm_backend_ops wrap_ops = {
    .size = sizeof wrap_ops,
    .abi = ADM_BACKEND_ABI,
    .name = "wrapped-plain",
    .start = wrap_start,
    .close = wrap_close,
    .describe = wrap_describe,
};

adm_status wrap_plain(wrapped_start start, void *user, uint32_t threads,
                      const struct adm_contract_sizes *sizes, struct adm_backend *out)
{
    struct wrapping *wrapping = calloc(1, sizeof *wrapping);
    adm_status status;

    if (wrapping == NULL)
        return ADM_E_NOMEM;
    status = open_plain(NULL, sizes, &wrapping->wrapper.inner);
    if (status != ADM_OK) {
        free(wrapping);
        return status;
    }
    wrapping->wrapper.sizes = *sizes;
    wrapping->wrapper.user = user;
    wrapping->start = start;
    wrapping->threads = threads;
    *out = (struct adm_backend){ &wrap_ops, wrapping };
    return ADM_OK;
}

adm_status wrap_perform(struct wrapper *wrapper, struct adm_op *op)
{
    struct adm_op own = *op;

    admi_op_begin_direct(&own, NULL);
    wrapper->inner.ops->start(wrapper->inner.self, &own);
    op->outcome = own.outcome;
    op->units = own.units;
    op->judged = own.judged;
    return admi_op_status(&own);
}
