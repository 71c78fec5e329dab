/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory backend: open, describe, close; and one operation, which goes by its time, lets
 * whatever was due by then expire, and does what it is there for. Any number of threads; none waits
 * for another.
 */
#include "state/memory.h"

#include <pthread.h>

#include <admit/backends.h>

#include "base/abi.h"
#include "base/entropy.h"
#include "base/fork_guard.h"
#include "base/memory.h"

#define DEFAULT_PARTITIONS 65536u
#define DEFAULT_LEASES     65536u
#define DEFAULT_ATTEMPTS   16384u
#define DEFAULT_CLASSES    131072u
#define DEFAULT_THREADS    64u
#define PARTITIONS_MAX     (UINT64_C(1) << 26)
#define CLASSES_MAX        (UINT64_C(1) << 24)
#define ATTEMPTS_MAX       (UINT64_C(1) << 24)

/* How often an attempt is made fast, and how long others' are let alone. Neither changes an
 * answer. */
#define HARD_AFTER 16u
#define BACK_OFF   256u

#define REGION_ALIGNMENT 64u

struct memory {
    struct admi_fork_guard fork_guard;
    struct memory_region *region;
    struct admi_txn txn; /* as an operation begins with it */
    void *block;         /* in which the region lies */
    uint64_t block_bytes;
    struct adm_allocator allocator;
};

/* ---- one operation ---- */

/* Threads have different stacks and thread control blocks: so most of them begin to look for a
 * context at places of their own. */
static uint32_t own_context(const struct admi_txn *txn)
{
    uint64_t self = (uint64_t)(uintptr_t)pthread_self();

    return (uint32_t)((self >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (txn->context_count - 1);
}

bool admi_memory_claim(struct memory_run *run)
{
    struct memory_context_state *own;

    if (run->claimed)
        return true;
    if (!admi_txn_claim(&run->txn))
        return false;
    run->claimed = true;
    own = admi_memory_context_state(run);
    if (atomic_load_explicit(&own->latest_ns, memory_order_relaxed) < run->now_ns)
        atomic_store_explicit(&own->latest_ns, run->now_ns, memory_order_relaxed);
    return true;
}

static adm_status perform(struct memory_run *run, struct adm_op *op)
{
    switch (op->kind) {
    case ADM_OP_PUT_CLASSES:
        return admi_memory_put_classes(run, op->args.classes);
    case ADM_OP_TAKE:
        return admi_memory_take(run, op);
    case ADM_OP_GIVE:
        return admi_memory_give(run, op);
    case ADM_OP_RENEW:
        return admi_memory_renew(run, op);
    case ADM_OP_SETTLE:
        return admi_memory_settle(run, op);
    case ADM_OP_DIVERT:
        return admi_memory_divert(run, op);
    case ADM_OP_SWEEP:
        return admi_memory_sweep(run, op);
    default:
        return ADM_E_BACKEND_RESULT;
    }
}

static void memory_start(void *self, struct adm_op *op)
{
    struct memory *memory = self;
    struct memory_run run;
    uint64_t latest;
    adm_status status;

    if (admi_fork_guard_is_child(&memory->fork_guard)) {
        adm_op_complete(op, ADM_E_BACKEND_FORKED);
        return;
    }
    run.region = memory->region;
    run.txn = memory->txn;
    run.txn.self = own_context(&run.txn);
    run.claimed = false;
    /* Time never runs back for a thread, whatever order its operations come in. */
    latest =
        atomic_load_explicit(&admi_memory_context_state(&run)->latest_ns, memory_order_relaxed);
    run.now_ns = op->now.mono_ns > latest ? op->now.mono_ns : latest;
    run.wall_ns = op->now.wall_ns;
    run.max_skew_ns = op->max_skew_ns;
    op->judged.mono_ns = run.now_ns;
    op->judged.wall_ns = run.wall_ns;
    op->outcome = ADM_OUTCOME_UNKNOWN;
    op->units = 0;
    admi_memory_expire(&run);
    status = perform(&run, op);
    if (run.claimed)
        admi_txn_unclaim(&run.txn);
    adm_op_complete(op, status);
}

void admi_memory_tune(void *self, uint32_t hard_after, uint32_t back_off)
{
    struct memory *memory = self;

    memory->txn.hard_after = hard_after;
    memory->txn.back_off = back_off;
}

/* ---- describe ---- */

static uint64_t expired(const struct memory_run *run)
{
    const struct memory_context_state *states =
        admi_array(run->region, run->region->context_states_at);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < run->region->context_count; i++)
        sum += atomic_load_explicit(&states[i].expired, memory_order_acquire);
    return sum;
}

/* The largest time that any operation went by: what has run out by then is not told any more. */
static uint64_t latest(const struct memory_run *run)
{
    const struct memory_context_state *states =
        admi_array(run->region, run->region->context_states_at);
    uint64_t largest = 0;

    for (uint64_t i = 0; i < run->region->context_count; i++) {
        uint64_t time_ns = atomic_load_explicit(&states[i].latest_ns, memory_order_relaxed);

        largest = time_ns > largest ? time_ns : largest;
    }
    return largest;
}

static adm_status memory_describe(void *self, struct adm_backend_info *inout)
{
    struct memory *memory = self;
    struct memory_region *region = memory->region;
    struct memory_space *enforced = &region->spaces[MEMORY_ENFORCED];
    struct memory_run run = { .region = region, .txn = memory->txn };
    struct adm_backend_info info = { .threads = ADM_THREADS_ANY };

    if (admi_fork_guard_is_child(&memory->fork_guard))
        return ADM_E_BACKEND_FORKED;
    run.now_ns = latest(&run);
    admi_memory_begin(&run);
    info.classes = atomic_load_explicit(&region->class_count, memory_order_acquire);
    info.classes_max = region->registry.classes_max;
    info.partitions = admi_memory_read(&run.txn, &enforced->lines.used);
    info.partitions_max = enforced->lines.count;
    info.leases = admi_memory_leases_used(&run, &enforced->leases);
    info.leases_max = enforced->leases.count;
    info.attempts = admi_memory_attempts_used(&run);
    info.attempts_max = region->attempt_lines.count;
    info.expired = expired(&run);
    admi_export(inout, &info, sizeof info);
    return ADM_OK;
}

/* ---- open, close ---- */

static void memory_free(struct memory *memory)
{
    struct adm_allocator allocator = memory->allocator;

    admi_release(&allocator, memory->block, 1, memory->block_bytes);
    admi_fork_guard_fini(&memory->fork_guard);
    admi_release(&allocator, memory, 1, sizeof *memory);
}

static void memory_close(void *self)
{
    memory_free(self);
}

static const struct adm_backend_ops memory_ops = {
    .size = sizeof memory_ops,
    .abi = ADM_BACKEND_ABI,
    .name = "memory",
    .start = memory_start,
    .close = memory_close,
    .describe = memory_describe,
};

static uint64_t or_default(uint64_t value, uint64_t default_value)
{
    return value != 0 ? value : default_value;
}

static adm_status import_sizes(const struct adm_memory_options *from,
                               struct adm_memory_options *options, struct memory_sizes *out)
{
    *options = (struct adm_memory_options){ .size = sizeof *options };
    if (from != NULL) {
        adm_status status = admi_import(options, sizeof *options,
                                        ADMI_BYTES_WITH(struct adm_memory_options, reserved), from);

        if (status != ADM_OK)
            return status;
    }
    if (options->flags != 0 || !admi_all_zero(options->reserved, sizeof options->reserved))
        return ADM_E_CALLER_NEWER;
    out->partitions_max = or_default(options->partitions_max, DEFAULT_PARTITIONS);
    out->leases_max = or_default(options->leases_max, DEFAULT_LEASES);
    out->attempts_max = or_default(options->attempts_max, DEFAULT_ATTEMPTS);
    out->classes_max = or_default(options->classes_max, DEFAULT_CLASSES);
    if (out->partitions_max > PARTITIONS_MAX || out->leases_max > MEMORY_LEASES_MAX ||
        out->attempts_max > ATTEMPTS_MAX || out->classes_max > CLASSES_MAX ||
        options->threads_max > ADMI_TXN_CONTEXTS_MAX)
        return ADM_E_INVALID_ARGUMENT;
    for (out->contexts = 1; out->contexts < or_default(options->threads_max, DEFAULT_THREADS);)
        out->contexts *= 2;
    return ADM_OK;
}

static adm_status open_region(struct memory *memory, const struct memory_sizes *sizes,
                              const struct adm_random *given)
{
    const struct adm_random system = { NULL, admi_entropy_fill };
    const struct adm_random *random = given != NULL ? given : &system;
    uint64_t bytes = admi_memory_region_bytes(sizes);
    uint8_t secrets[MEMORY_SECRETS_BYTES];

    if (bytes == 0)
        return ADM_E_INVALID_ARGUMENT;
    if (random->fill(random->self, secrets, sizeof secrets) != 0)
        return ADM_E_OS;
    memory->block_bytes = bytes + REGION_ALIGNMENT;
    memory->block = admi_allocate(&memory->allocator, 1, memory->block_bytes);
    if (memory->block == NULL)
        return ADM_E_NOMEM;
    memory->region = (struct memory_region *)(((uintptr_t)memory->block + REGION_ALIGNMENT - 1) /
                                              REGION_ALIGNMENT * REGION_ALIGNMENT);
    admi_memory_region_init(memory->region, sizes, secrets);
    admi_clear(secrets, sizeof secrets);
    memory->txn =
        (struct admi_txn){ .words = (_Atomic uint64_t *)memory->region,
                           .contexts = admi_array(memory->region, memory->region->contexts_at),
                           .context_count = (uint32_t)sizes->contexts,
                           .hard_after = HARD_AFTER,
                           .back_off = BACK_OFF };
    memory->txn.guard = admi_memory_word(&memory->txn, &memory->region->guard);
    return ADM_OK;
}

adm_status adm_memory_open(const struct adm_memory_options *options, struct adm_backend *out)
{
    struct adm_memory_options imported;
    const struct adm_allocator *allocator;
    struct memory_sizes sizes;
    struct memory *memory;
    adm_status status;

    if (out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    status = import_sizes(options, &imported, &sizes);
    if (status != ADM_OK)
        return status;
    allocator = admi_allocator_or_malloc(imported.allocator);
    memory = admi_allocate(allocator, 1, sizeof *memory);
    if (memory == NULL)
        return ADM_E_NOMEM;
    memory->allocator = *allocator; /* the caller's struct need not outlive this call */
    admi_fork_guard_init(&memory->fork_guard);
    status = open_region(memory, &sizes, imported.random);
    if (status != ADM_OK) {
        memory_free(memory);
        return status;
    }
    *out = (struct adm_backend){ &memory_ops, memory };
    return ADM_OK;
}
