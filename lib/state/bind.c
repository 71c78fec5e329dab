/* SPDX-License-Identifier: Apache-2.0 */
/* Binding a backend once, and the calls into it. */
#include "state/bind.h"

#include <stddef.h>

#include "base/abi.h"
#include "base/memory.h"
#include "base/threads.h"

#define NAME_BYTES_MAX     64u
#define KNOWN_CAPABILITIES (ADM_CAN_OWN_CLOCK | ADM_CAN_FORK | ADM_CAN_DEFER)

/* ---- what an absent slot means ---- */

static adm_status poll_nothing(void *self, const struct adm_time *now)
{
    (void)self;
    (void)now;
    return ADM_OK;
}

static void cancel_nothing(void *self, struct adm_op *op)
{
    (void)self;
    (void)op;
}

static adm_status watch_nothing(void *self, struct adm_watch *out)
{
    (void)self;
    *out = (struct adm_watch){ .fd = -1, .deadline_ns = UINT64_MAX };
    return ADM_OK;
}

static adm_status describe_little(void *self, struct adm_backend_info *inout)
{
    struct adm_backend_info info = { 0 };

    (void)self;
    info.threads = ADM_THREADS_SERIAL;
    info.classes_max = info.partitions_max = info.leases_max = info.attempts_max = UINT64_MAX;
    admi_export(inout, &info, sizeof info);
    return ADM_OK;
}

/* ---- the table ---- */

static int name_is_legal(const char *name)
{
    uint32_t length = 0;

    if (name == NULL)
        return 0;
    for (; name[length] != '\0'; length++) {
        char c = name[length];

        if (length == NAME_BYTES_MAX ||
            !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return 0;
    }
    return length > 0;
}

static adm_status import_table(const struct adm_backend_ops *from, struct adm_backend_ops *out)
{
    uint32_t first_bytes = ADMI_BYTES_WITH(struct adm_backend_ops, close);

    if (admi_import(out, sizeof *out, first_bytes, from) != ADM_OK)
        return ADM_E_BACKEND_ABI; /* too small, absurd, or it has slots that this library would
                                     never call */
    if (out->abi == 0 || out->abi > ADM_BACKEND_ABI || out->start == NULL || out->close == NULL ||
        !name_is_legal(out->name))
        return ADM_E_BACKEND_ABI;
    if (out->poll == NULL)
        out->poll = poll_nothing;
    if (out->cancel == NULL)
        out->cancel = cancel_nothing;
    if (out->watch == NULL)
        out->watch = watch_nothing;
    if (out->describe == NULL)
        out->describe = describe_little;
    return ADM_OK;
}

/* A table of our layout up to close can be closed, whatever else is wrong with it. */
static void close_refused(const struct adm_backend *backend)
{
    uint32_t first_bytes = ADMI_BYTES_WITH(struct adm_backend_ops, close);

    if (admi_check_size(backend->ops, first_bytes) == ADM_OK &&
        backend->ops->abi == ADM_BACKEND_ABI && backend->ops->close != NULL)
        backend->ops->close(backend->self);
}

static adm_status describe_once(struct admi_bound *bound)
{
    adm_status status = ADM_OK;

    bound->info = (struct adm_backend_info){ .size = sizeof bound->info };
    admi_enter_callback();
    status = bound->ops.describe(bound->self, &bound->info);
    admi_leave_callback();
    if (status != ADM_OK)
        return status;
    if (bound->info.threads > ADM_THREADS_ANY ||
        (bound->info.capabilities & ~KNOWN_CAPABILITIES) != 0)
        return ADM_E_BACKEND_RESULT;
    bound->serial = bound->info.threads == ADM_THREADS_SERIAL;
    bound->defers = (bound->info.capabilities & ADM_CAN_DEFER) != 0;
    return ADM_OK;
}

adm_status admi_backend_bind(const struct adm_backend *backend, struct admi_bound *out)
{
    struct admi_bound fresh = { 0 };
    adm_status status = ADM_OK;

    if (backend == NULL || backend->ops == NULL)
        return ADM_E_INVALID_ARGUMENT;
    status = import_table(backend->ops, &fresh.ops);
    if (status != ADM_OK)
        goto refuse;
    fresh.self = backend->self;
    status = describe_once(&fresh);
    if (status != ADM_OK)
        goto refuse;
    *out = fresh;
    if (pthread_mutex_init(&out->mutex, NULL) != 0) {
        status = ADM_E_OS;
        goto refuse;
    }
    return ADM_OK;
refuse:
    close_refused(backend);
    return status;
}

/* ---- the calls ---- */

static void enter(struct admi_bound *bound)
{
    if (bound->serial)
        (void)pthread_mutex_lock(&bound->mutex);
    admi_enter_callback();
}

static void leave(struct admi_bound *bound)
{
    admi_leave_callback();
    if (bound->serial)
        (void)pthread_mutex_unlock(&bound->mutex);
}

void admi_bound_start(struct admi_bound *bound, struct adm_op *op)
{
    enter(bound);
    bound->ops.start(bound->self, op);
    leave(bound);
}

adm_status admi_bound_poll(struct admi_bound *bound, const struct adm_time *now)
{
    adm_status status = ADM_OK;

    enter(bound);
    status = bound->ops.poll(bound->self, now);
    leave(bound);
    return status;
}

void admi_bound_cancel(struct admi_bound *bound, struct adm_op *op)
{
    enter(bound);
    bound->ops.cancel(bound->self, op);
    leave(bound);
}

adm_status admi_bound_watch(struct admi_bound *bound, struct adm_watch *out)
{
    adm_status status = ADM_OK;

    enter(bound);
    status = bound->ops.watch(bound->self, out);
    leave(bound);
    return status;
}

adm_status admi_bound_describe(struct admi_bound *bound, struct adm_backend_info *inout)
{
    adm_status status = admi_check_size(inout, ADMI_BYTES_WITH(struct adm_backend_info, expired));

    if (status != ADM_OK)
        return status;
    enter(bound);
    status = bound->ops.describe(bound->self, inout);
    leave(bound);
    return status;
}

void admi_bound_close(struct admi_bound *bound)
{
    admi_enter_callback();
    bound->ops.close(bound->self);
    admi_leave_callback();
    (void)pthread_mutex_destroy(&bound->mutex);
}
