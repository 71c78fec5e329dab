/* SPDX-License-Identifier: Apache-2.0 */
/* The request as it came: its bounds, and its descriptors bound to the value slots of the policy in
 * force. */
#include "base/memory.h"
#include "gate/gate.h"

bool admi_unit_exists(const struct adm_gate *gate, uint32_t unit)
{
    return unit <= ADM_UNIT_IMAGES ||
           (unit >= ADM_UNIT_FIRST_DECLARED &&
            unit - ADM_UNIT_FIRST_DECLARED < admi_names_count(&gate->units));
}

static adm_status check_amounts(const struct adm_gate *gate, const struct adm_request *request)
{
    uint64_t seen[2] = { 1u << ADM_UNIT_COST | 1u << ADM_UNIT_REQUESTS, 0 };

    if (request->cost < 1 || request->cost > ADM_MAX_AMOUNT ||
        request->amount_count > ADM_MAX_AMOUNTS ||
        (request->amount_count > 0 && request->amounts == NULL))
        return ADM_E_INVALID_COST;
    for (uint64_t i = 0; i < request->amount_count; i++) {
        const struct adm_amount *a = &request->amounts[i];

        if (!admi_unit_exists(gate, a->unit) || a->flags != 0 || a->value > ADM_MAX_AMOUNT ||
            (seen[a->unit / 64] >> (a->unit % 64) & 1) != 0)
            return ADM_E_INVALID_COST;
        seen[a->unit / 64] |= UINT64_C(1) << (a->unit % 64);
    }
    return ADM_OK;
}

static bool legal(struct adm_bytes bytes, uint64_t longest)
{
    return bytes.data != NULL && bytes.length >= 1 && bytes.length <= longest;
}

static struct adm_bytes key_of(const struct adm_gate *gate, const struct adm_descriptor *d)
{
    return d->key_id == 0 ? d->key : admi_names_get(&gate->keys, d->key_id - 1);
}

adm_status admi_descriptors_check(const struct adm_gate *gate,
                                  const struct adm_descriptor *descriptors, uint64_t count)
{
    if (count > ADM_MAX_DESCRIPTORS || (count > 0 && descriptors == NULL))
        return ADM_E_INVALID_DESCRIPTORS;
    uint32_t keys = admi_names_count(&gate->keys);

    for (uint64_t i = 0; i < count; i++) {
        const struct adm_descriptor *d = &descriptors[i];

        if (d->key_id > keys || (d->key_id == 0 && !legal(d->key, ADM_MAX_KEY_BYTES)) ||
            !legal(d->value, ADM_MAX_VALUE_BYTES))
            return ADM_E_INVALID_DESCRIPTORS;
    }
    return ADM_OK;
}

adm_status admi_request_check(struct adm_gate *gate, const struct adm_request *request)
{
    adm_status status = check_amounts(gate, request);

    if (status == ADM_OK)
        status = admi_descriptors_check(gate, request->descriptors, request->descriptor_count);
    if (status == ADM_OK && request->attempt.data != NULL &&
        !legal(request->attempt, ADM_MAX_ATTEMPT_BYTES))
        status = ADM_E_INVALID_ATTEMPT;
    return status;
}

/* ---- descriptors to value slots ---- */

/* The first use of an interned key under this snapshot, or a key given by its bytes. */
ADMI_APART static uint32_t look_up_slot(const struct adm_gate *gate,
                                        const struct admi_snapshot *snapshot,
                                        const struct adm_descriptor *d)
{
    if (d->key_id == 0)
        return admi_snapshot_slot(snapshot, d->key);
    uint32_t slot = admi_snapshot_slot(snapshot, key_of(gate, d));

    /* Everybody finds the same. */
    atomic_store_explicit(&snapshot->slot_of_key[d->key_id - 1], slot + 2, memory_order_relaxed);
    return slot;
}

static inline uint32_t slot_of(const struct adm_gate *gate, const struct admi_snapshot *snapshot,
                               const struct adm_descriptor *d)
{
    uint32_t known = d->key_id == 0
                         ? 0
                         : atomic_load_explicit(&snapshot->slot_of_key[d->key_id - 1],
                                                memory_order_relaxed); /* ADMI_NO_KEY: 1 */

    return known != 0 ? known - 2 : look_up_slot(gate, snapshot, d);
}

/* Keys that the policy knows collide in their slot; the others are compared with each other. */
ADMI_APART static bool unknown_key_twice(const struct adm_gate *gate,
                                         const struct adm_descriptor *descriptors,
                                         const uint32_t *unknown, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (admi_bytes_equal(key_of(gate, &descriptors[unknown[i]]),
                                 key_of(gate, &descriptors[unknown[k]])))
                return true;
    return false;
}

adm_status admi_values_set(struct adm_gate *gate, struct admi_gate_thread *thread,
                           const struct admi_snapshot *snapshot,
                           const struct adm_descriptor *descriptors, uint64_t count,
                           uint32_t slots[ADM_MAX_DESCRIPTORS], uint32_t *out_slot_count)
{
    uint32_t unknown[ADM_MAX_DESCRIPTORS];
    uint32_t unknown_count = 0, slot_count = 0;
    uint64_t twice = 0;

    *out_slot_count = 0;
    if (snapshot->slot_count > thread->value_count &&
        !admi_thread_reserve(gate, thread, snapshot->slot_count))
        return ADM_E_NOMEM;
    struct adm_bytes *values = thread->values;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = slot_of(gate, snapshot, &descriptors[i]);

        if (slot == ADMI_NO_KEY) {
            unknown[unknown_count++] = i;
            continue;
        }
        twice |= values[slot].length;
        values[slot] = descriptors[i].value;
        slots[slot_count++] = slot;
    }
    *out_slot_count = slot_count;
    if (twice != 0 ||
        (unknown_count > 1 && unknown_key_twice(gate, descriptors, unknown, unknown_count))) {
        admi_values_clear(thread, slots, slot_count);
        *out_slot_count = 0;
        return ADM_E_INVALID_DESCRIPTORS;
    }
    return ADM_OK;
}

void admi_values_clear(struct admi_gate_thread *thread, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        thread->values[slots[i]] = (struct adm_bytes){ NULL, 0 };
}
