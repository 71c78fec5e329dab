/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain backend: state in this process behind one mutex. Short, obvious and exact: an example
 * for authors of backends, and what every other backend is compared with. All memory is taken at
 * open; an op never allocates.
 */
#include "state/plain.h"

#include "base/abi.h"
#include "base/entropy.h"
#include "base/memory.h"

#define DEFAULT_PARTITIONS 65536u
#define DEFAULT_LEASES     65536u
#define DEFAULT_ATTEMPTS   16384u
#define DEFAULT_CLASSES    131072u
#define PLACES_MAX         (UINT64_C(1) << 27) /* so that the places of families fit 2^30 */
#define LEASES_MAX         (UINT64_C(1) << 23) /* times 2 * 10^12 held by each: below 2^64 */

/* ---- one op at a time ---- */

static adm_status perform(struct plain *plain, struct adm_op *op)
{
    /* Time never runs back, whatever order threads come in; and whatever is due has happened before
     * anything else. */
    if (op->now.mono_ns > plain->now_ns)
        plain->now_ns = op->now.mono_ns;
    plain->wall_ns = op->now.wall_ns;
    plain->max_skew_ns = op->max_skew_ns;
    op->judged.mono_ns = plain->now_ns;
    op->judged.wall_ns = op->now.wall_ns;
    op->outcome = ADM_OUTCOME_UNKNOWN;
    op->units = 0;
    admi_plain_expire(plain);
    switch (op->kind) {
    case ADM_OP_PUT_CLASSES:
        return admi_plain_put_classes(plain, op->args.classes);
    case ADM_OP_TAKE:
        return admi_plain_take(plain, op);
    case ADM_OP_GIVE:
        return admi_plain_give(plain, op);
    case ADM_OP_RENEW:
        return admi_plain_renew(plain, op);
    case ADM_OP_SETTLE:
        return admi_plain_settle(plain, op);
    case ADM_OP_DIVERT:
        return admi_plain_divert(plain, op);
    case ADM_OP_SWEEP:
        return admi_plain_sweep(plain, op);
    default:
        return ADM_E_BACKEND_RESULT;
    }
}

static void plain_start(void *self, struct adm_op *op)
{
    struct plain *plain = self;
    adm_status status = ADM_E_BACKEND_FORKED;

    /* Before the mutex: at the fork another thread may have held it, and here nobody will unlock
     * it. */
    if (!admi_fork_guard_is_child(&plain->fork_guard)) {
        (void)pthread_mutex_lock(&plain->mutex);
        status = perform(plain, op);
        (void)pthread_mutex_unlock(&plain->mutex);
    }
    adm_op_complete(op, status);
}

static adm_status plain_describe(void *self, struct adm_backend_info *inout)
{
    struct plain *plain = self;
    const struct plain_region *region = &plain->regions[PLAIN_ENFORCED];
    struct adm_backend_info info = { 0 };

    if (admi_fork_guard_is_child(&plain->fork_guard))
        return ADM_E_BACKEND_FORKED;
    info.threads = ADM_THREADS_ANY;
    (void)pthread_mutex_lock(&plain->mutex);
    info.classes = plain->class_table.used;
    info.classes_max = plain->class_table.max;
    info.partitions = region->partition_table.used;
    info.partitions_max = region->partition_table.max;
    info.leases = region->lease_table.used;
    info.leases_max = region->lease_table.max;
    info.attempts = plain->attempt_table.used;
    info.attempts_max = plain->attempt_table.max;
    info.expired = plain->expired;
    (void)pthread_mutex_unlock(&plain->mutex);
    admi_export(inout, &info, sizeof info);
    return ADM_OK;
}

/* ---- open and close ---- */

static void region_fini(struct plain_region *region, const struct adm_allocator *allocator)
{
    admi_heap_fini(&region->lease_heap, allocator);
    admi_release(allocator, region->leases, (uint64_t)region->lease_table.max + 1,
                 sizeof *region->leases);
    admi_table_fini(&region->lease_table, allocator);
    admi_release(allocator, region->partitions, (uint64_t)region->partition_table.max + 1,
                 sizeof *region->partitions);
    admi_table_fini(&region->partition_table, allocator);
}

/* On failure too everything can be given to region_fini(): what is not there is NULL. */
static adm_status region_init(struct plain_region *region, const struct adm_allocator *allocator,
                              const struct adm_plain_options *options)
{
    if (admi_table_init(&region->partition_table, allocator, options->partitions_max) != ADM_OK ||
        admi_table_init(&region->lease_table, allocator, options->leases_max) != ADM_OK ||
        admi_heap_init(&region->lease_heap, allocator, options->leases_max) != ADM_OK)
        return ADM_E_NOMEM;
    region->partitions =
        admi_allocate(allocator, options->partitions_max + 1, sizeof *region->partitions);
    region->leases = admi_allocate(allocator, options->leases_max + 1, sizeof *region->leases);
    return region->partitions != NULL && region->leases != NULL ? ADM_OK : ADM_E_NOMEM;
}

static adm_status tables_init(struct plain *plain, const struct adm_plain_options *options)
{
    const struct adm_allocator *allocator = plain->allocator;
    uint64_t families = admi_plain_families_max(options->classes_max, options->partitions_max);

    if (admi_table_init(&plain->family_table, allocator, families) != ADM_OK ||
        admi_table_init(&plain->class_table, allocator, options->classes_max) != ADM_OK ||
        admi_table_init(&plain->attempt_table, allocator, options->attempts_max) != ADM_OK ||
        admi_heap_init(&plain->attempt_heap, allocator, options->attempts_max) != ADM_OK)
        return ADM_E_NOMEM;
    plain->families = admi_allocate(allocator, families + 1, sizeof *plain->families);
    plain->classes = admi_allocate(allocator, options->classes_max + 1, sizeof *plain->classes);
    plain->attempts = admi_allocate(allocator, options->attempts_max + 1, sizeof *plain->attempts);
    if (plain->families == NULL || plain->classes == NULL || plain->attempts == NULL)
        return ADM_E_NOMEM;
    for (uint32_t i = 0; i < PLAIN_REGIONS; i++) {
        if (region_init(&plain->regions[i], allocator, options) != ADM_OK)
            return ADM_E_NOMEM;
    }
    return ADM_OK;
}

static void plain_free(struct plain *plain)
{
    struct adm_allocator allocator = plain->own_allocator;

    for (uint32_t i = 0; i < PLAIN_REGIONS; i++)
        region_fini(&plain->regions[i], &allocator);
    admi_heap_fini(&plain->attempt_heap, &allocator);
    admi_release(&allocator, plain->attempts, (uint64_t)plain->attempt_table.max + 1,
                 sizeof *plain->attempts);
    admi_table_fini(&plain->attempt_table, &allocator);
    admi_release(&allocator, plain->classes, (uint64_t)plain->class_table.max + 1,
                 sizeof *plain->classes);
    admi_table_fini(&plain->class_table, &allocator);
    admi_release(&allocator, plain->families, (uint64_t)plain->family_table.max + 1,
                 sizeof *plain->families);
    admi_table_fini(&plain->family_table, &allocator);
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

static uint64_t or_default(uint64_t value, uint64_t default_value)
{
    return value != 0 ? value : default_value;
}

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
    out->partitions_max = or_default(out->partitions_max, DEFAULT_PARTITIONS);
    out->leases_max = or_default(out->leases_max, DEFAULT_LEASES);
    out->attempts_max = or_default(out->attempts_max, DEFAULT_ATTEMPTS);
    out->classes_max = or_default(out->classes_max, DEFAULT_CLASSES);
    if (out->partitions_max > PLACES_MAX || out->leases_max > LEASES_MAX ||
        out->attempts_max > PLACES_MAX || out->classes_max > PLACES_MAX)
        return ADM_E_INVALID_ARGUMENT;
    return ADM_OK;
}

static bool make_secrets(struct plain *plain, const struct adm_random *given)
{
    const struct adm_random system = { NULL, admi_entropy_fill };
    const struct adm_random *random = given != NULL ? given : &system;

    return random->fill(random->self, plain->hash_secret, sizeof plain->hash_secret) == 0 &&
           random->fill(random->self, plain->id_secret, sizeof plain->id_secret) == 0 &&
           random->fill(random->self, plain->key_secrets, sizeof plain->key_secrets) == 0;
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
    plain->own_allocator = *allocator; /* the caller's struct need not outlive this call */
    plain->allocator = &plain->own_allocator;
    plain->reclaimed_ns = UINT64_MAX;
    admi_fork_guard_init(&plain->fork_guard);
    status = tables_init(plain, &imported);
    if (status != ADM_OK)
        goto free_plain;
    status = ADM_E_OS;
    if (!make_secrets(plain, imported.random))
        goto free_plain;
    if (pthread_mutex_init(&plain->mutex, NULL) != 0)
        goto free_plain;
    *out = (struct adm_backend){ &plain_ops, plain };
    return ADM_OK;
free_plain:
    plain_free(plain);
    return status;
}
