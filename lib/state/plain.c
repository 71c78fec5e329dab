/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain backend: a ledger in this process behind one mutex. Short, obvious and exact: what
 * every other backend is compared with. All memory is taken at open; an op never allocates.
 */
#include <pthread.h>

#include <admit/backends.h>
#include <admit/ledger.h>

#include "base/abi.h"
#include "base/fork_guard.h"
#include "base/memory.h"

struct plain {
    struct admi_fork_guard fork_guard;
    pthread_mutex_t mutex;
    struct adm_allocator allocator;
    void *ledger;
    uint64_t ledger_bytes;
};

static void plain_start(void *self, struct adm_op *op)
{
    struct plain *plain = self;
    adm_status status = ADM_E_BACKEND_FORKED;

    /* Before the mutex: at the fork another thread may have held it, and here nobody will unlock
     * it. */
    if (!admi_fork_guard_is_child(&plain->fork_guard)) {
        (void)pthread_mutex_lock(&plain->mutex);
        status = adm_ledger_perform(plain->ledger, op);
        (void)pthread_mutex_unlock(&plain->mutex);
    }
    adm_op_complete(op, status);
}

static adm_status plain_describe(void *self, struct adm_backend_info *inout)
{
    struct plain *plain = self;
    struct adm_backend_info info = { .threads = ADM_THREADS_ANY };

    if (admi_fork_guard_is_child(&plain->fork_guard))
        return ADM_E_BACKEND_FORKED;
    (void)pthread_mutex_lock(&plain->mutex);
    adm_ledger_describe(plain->ledger, &info);
    (void)pthread_mutex_unlock(&plain->mutex);
    admi_export(inout, &info, sizeof info);
    return ADM_OK;
}

static void plain_free(struct plain *plain)
{
    struct adm_allocator allocator = plain->allocator;

    admi_release(&allocator, plain->ledger, 1, plain->ledger_bytes);
    admi_fork_guard_fini(&plain->fork_guard);
    admi_release(&allocator, plain, 1, sizeof *plain);
}

static void plain_close(void *self)
{
    struct plain *plain = self;

    if (!admi_fork_guard_is_child(&plain->fork_guard))
        (void)pthread_mutex_destroy(
            &plain->mutex); /* in a child it may be locked, and then must not be touched */
    plain_free(plain);
}

static const struct adm_backend_ops plain_ops = {
    .size = sizeof plain_ops,
    .abi = ADM_BACKEND_ABI,
    .name = "plain",
    .start = plain_start,
    .close = plain_close,
    .describe = plain_describe,
};

static adm_status import_options(const struct adm_plain_options *from,
                                 struct adm_plain_options *out)
{
    *out = (struct adm_plain_options){ .size = sizeof *out };
    if (from != NULL) {
        adm_status status = admi_import(out, sizeof *out,
                                        ADMI_BYTES_WITH(struct adm_plain_options, reserved), from);

        if (status != ADM_OK)
            return status;
    }
    if (out->flags != 0 || !admi_all_zero(out->reserved, sizeof out->reserved))
        return ADM_E_CALLER_NEWER;
    return ADM_OK;
}

static adm_status open_ledger(struct plain *plain, const struct adm_plain_options *options)
{
    const struct adm_ledger_options ledger = { .size = sizeof ledger,
                                               .partitions_max = options->partitions_max,
                                               .leases_max = options->leases_max,
                                               .attempts_max = options->attempts_max,
                                               .classes_max = options->classes_max,
                                               .random = options->random };
    adm_status status = adm_ledger_bytes(&ledger, &plain->ledger_bytes);

    if (status != ADM_OK)
        return status;
    plain->ledger = admi_allocate(&plain->allocator, 1, plain->ledger_bytes);
    if (plain->ledger == NULL)
        return ADM_E_NOMEM;
    return adm_ledger_init(plain->ledger, plain->ledger_bytes, &ledger);
}

adm_status adm_plain_open(const struct adm_plain_options *options, struct adm_backend *out)
{
    struct adm_plain_options imported;
    const struct adm_allocator *allocator;
    struct plain *plain;
    adm_status status;

    if (out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    status = import_options(options, &imported);
    if (status != ADM_OK)
        return status;
    allocator = admi_allocator_or_malloc(imported.allocator);
    plain = admi_allocate(allocator, 1, sizeof *plain);
    if (plain == NULL)
        return ADM_E_NOMEM;
    plain->allocator = *allocator; /* the caller's struct need not outlive this call */
    admi_fork_guard_init(&plain->fork_guard);
    status = open_ledger(plain, &imported);
    if (status == ADM_OK && pthread_mutex_init(&plain->mutex, NULL) != 0)
        status = ADM_E_OS;
    if (status != ADM_OK) {
        plain_free(plain);
        return status;
    }
    *out = (struct adm_backend){ &plain_ops, plain };
    return ADM_OK;
}
