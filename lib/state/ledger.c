/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block of memory that a ledger is: how long it must be, where its arrays lie, what it
 * begins with; and one op at a time on it.
 */
#include "state/ledger.h"

#include <stdatomic.h>

#include <admit/ledger.h>

#include "base/abi.h"
#include "base/entropy.h"
#include "base/memory.h"

#define DEFAULT_PARTITIONS 65536u
#define DEFAULT_LEASES     65536u
#define DEFAULT_ATTEMPTS   16384u
#define DEFAULT_CLASSES    131072u
#define PLACES_MAX         (UINT64_C(1) << 27) /* so that the places of families fit 2^30 */
#define LEASES_MAX         (UINT64_C(1) << 23) /* times 2 * 10^12 held by each: below 2^64 */

/* ---- sizes ---- */

static uint64_t or_default(uint64_t value, uint64_t default_value)
{
    return value != 0 ? value : default_value;
}

static adm_status import_options(const struct adm_ledger_options *from,
                                 struct adm_ledger_options *out)
{
    *out = (struct adm_ledger_options){ .size = sizeof *out };
    if (from != NULL) {
        adm_status status = admi_import(out, sizeof *out,
                                        ADMI_BYTES_WITH(struct adm_ledger_options, reserved), from);

        if (status != ADM_OK)
            return status;
    }
    if (out->flags != 0 || out->reserved_pointer != NULL ||
        !admi_all_zero(out->reserved, sizeof out->reserved))
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

/* ---- layout ---- */

/* `end` counts from the ledger; a part of it counts its own arrays from itself. */
static uint64_t distance(const struct ledger *ledger, const void *part)
{
    return (uint64_t)((uintptr_t)part - (uintptr_t)ledger);
}

static void lay_table(struct ledger *ledger, struct admi_table *table, uint64_t places,
                      uint64_t *end)
{
    uint64_t own = distance(ledger, table), own_end = *end - own;

    admi_table_init(table, places, &own_end);
    *end = own + own_end;
}

static void lay_heap(struct ledger *ledger, struct admi_heap *heap, uint64_t places, uint64_t *end)
{
    uint64_t own = distance(ledger, heap), own_end = *end - own;

    admi_heap_init(heap, places, &own_end);
    *end = own + own_end;
}

static uint64_t lay_records(struct ledger *ledger, const void *owner, uint64_t places,
                            uint64_t bytes, uint64_t *end)
{
    /* Place 0 is nobody's, and reading it is harmless. */
    return admi_array_reserve(end, places + 1, bytes) - distance(ledger, owner);
}

/* Touches the struct alone, so it may as well be on a stack, to measure. */
static void lay_out(struct ledger *ledger, const struct adm_ledger_options *options)
{
    uint64_t families = admi_registry_families_max(options->classes_max, options->partitions_max);
    uint64_t own = distance(ledger, &ledger->registry), own_end;
    uint64_t end = sizeof *ledger;

    own_end = end - own;
    admi_registry_init(&ledger->registry, options->classes_max, 0, families, &own_end);
    end = own + own_end;
    ledger->families_at = lay_records(ledger, ledger, families, sizeof(struct ledger_family), &end);
    ledger->classes_at =
        lay_records(ledger, ledger, options->classes_max, sizeof(struct ledger_class), &end);
    lay_table(ledger, &ledger->attempt_table, options->attempts_max, &end);
    lay_heap(ledger, &ledger->attempt_heap, options->attempts_max, &end);
    ledger->attempts_at =
        lay_records(ledger, ledger, options->attempts_max, sizeof(struct ledger_attempt), &end);
    for (uint32_t i = 0; i < LEDGER_REGIONS; i++) {
        struct ledger_region *region = &ledger->regions[i];

        lay_table(ledger, &region->partition_table, options->partitions_max, &end);
        region->partitions_at = lay_records(ledger, region, options->partitions_max,
                                            sizeof(struct ledger_partition), &end);
        lay_table(ledger, &region->lease_table, options->leases_max, &end);
        lay_heap(ledger, &region->lease_heap, options->leases_max, &end);
        region->leases_at =
            lay_records(ledger, region, options->leases_max, sizeof(struct ledger_lease), &end);
    }
    ledger->bytes = end;
}

adm_status adm_ledger_bytes(const struct adm_ledger_options *options, uint64_t *out_bytes)
{
    struct adm_ledger_options imported;
    struct ledger measure = { 0 };
    adm_status status = import_options(options, &imported);

    if (status != ADM_OK)
        return status;
    if (out_bytes == NULL)
        return ADM_E_INVALID_ARGUMENT;
    lay_out(&measure, &imported);
    *out_bytes = measure.bytes;
    return ADM_OK;
}

/* ---- beginning ---- */

static bool make_secrets(struct ledger *ledger, const struct adm_random *given)
{
    const struct adm_random system = { NULL, admi_entropy_fill };
    const struct adm_random *random = given != NULL ? given : &system;

    struct admi_registry *registry = &ledger->registry;

    if (random->fill(random->self, ledger->hash_secret, sizeof ledger->hash_secret) != 0 ||
        random->fill(random->self, ledger->id_secret, sizeof ledger->id_secret) != 0 ||
        random->fill(random->self, registry->key_secrets, sizeof registry->key_secrets) != 0)
        return false;
    admi_copy(registry->hash_secret, ledger->hash_secret, sizeof registry->hash_secret);
    return true;
}

adm_status adm_ledger_init(void *memory, uint64_t bytes, const struct adm_ledger_options *options)
{
    struct adm_ledger_options imported;
    struct ledger begun = { 0 };
    adm_status status = import_options(options, &imported);

    if (status != ADM_OK)
        return status;
    if (memory == NULL || (uintptr_t)memory % 8 != 0)
        return ADM_E_INVALID_ARGUMENT;
    lay_out(&begun, &imported);
    if (bytes < begun.bytes)
        return ADM_E_BUFFER_TOO_SMALL;
    if (!make_secrets(&begun, imported.random))
        return ADM_E_OS;
    *(struct ledger *)memory = begun; /* distances stay what they are wherever it lies */
    return ADM_OK;
}

/* ---- one op at a time ---- */

static adm_status perform(struct ledger *ledger, struct adm_op *op)
{
    /* Time never runs back, whatever order threads come in; and whatever is due has happened before
     * anything else. */
    if (op->now.mono_ns > ledger->now_ns)
        ledger->now_ns = op->now.mono_ns;
    ledger->wall_ns = op->now.wall_ns;
    ledger->max_skew_ns = op->max_skew_ns;
    op->judged.mono_ns = ledger->now_ns;
    op->judged.wall_ns = op->now.wall_ns;
    op->outcome = ADM_OUTCOME_UNKNOWN;
    op->units = 0;
    admi_ledger_expire(ledger);
    switch (op->kind) {
    case ADM_OP_PUT_CLASSES:
        return admi_ledger_put_classes(ledger, op->args.classes);
    case ADM_OP_TAKE:
        return admi_ledger_take(ledger, op);
    case ADM_OP_GIVE:
        return admi_ledger_give(ledger, op);
    case ADM_OP_RENEW:
        return admi_ledger_renew(ledger, op);
    case ADM_OP_SETTLE:
        return admi_ledger_settle(ledger, op);
    case ADM_OP_DIVERT:
        return admi_ledger_divert(ledger, op);
    case ADM_OP_SWEEP:
        return admi_ledger_sweep(ledger, op);
    default:
        return ADM_E_BACKEND_RESULT;
    }
}

adm_status adm_ledger_perform(void *memory, struct adm_op *op)
{
    struct ledger *ledger = memory;
    adm_status status;

    if (ledger->running != 0)
        return ADM_E_BACKEND_UNAVAILABLE; /* half of an op may be in here */
    ledger->running = 1;
    /* The compiler must not move stores over these: a process that is killed in between leaves the
     * mark and, in memory that others see, what it had stored by then. */
    atomic_signal_fence(memory_order_seq_cst);
    status = perform(ledger, op);
    atomic_signal_fence(memory_order_seq_cst);
    ledger->running = 0;
    return status;
}

void adm_ledger_describe(const void *memory, struct adm_backend_info *inout)
{
    const struct ledger *ledger = memory;
    const struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];

    inout->classes = ledger->registry.class_table.used;
    inout->classes_max = ledger->registry.classes_max;
    inout->partitions = region->partition_table.used;
    inout->partitions_max = region->partition_table.max;
    inout->leases = region->lease_table.used;
    inout->leases_max = region->lease_table.max;
    inout->attempts = ledger->attempt_table.used;
    inout->attempts_max = ledger->attempt_table.max;
    inout->expired = ledger->expired;
}
