/* SPDX-License-Identifier: Apache-2.0 */
/* Terms: the numbers in force for a rule, the partition that a request falls into, and both as the
 * backend sees them. */
#include "base/memory.h"
#include "gate/gate.h"

#define SPLITS_COMPARED 64u

/* ---- the numbers in force ---- */

const struct admi_numbers *admi_pick(const struct admi_snapshot *snapshot, uint32_t r,
                                     const struct adm_bytes *values, uint64_t *out_handle,
                                     uint32_t *out_origin, uint64_t *out_entry)
{
    const struct admi_rule *rule = &snapshot->policy->rules[r];
    const struct admi_bound_rule *bound = &snapshot->rules[r];
    bool bucket = rule->type == ADMI_TOKEN_BUCKET;

    *out_origin = 0;
    *out_handle = admi_rule_has_state(rule) ? bound->class_handles[0] : 0;
    if (bound->table != NULL && values[bound->table_slot].length != 0) {
        uint64_t entry = admi_table_find(bound->table, values[bound->table_slot]);

        if (entry != UINT64_MAX) {
            *out_origin = UINT32_MAX;
            *out_entry = entry;
            if (bucket)
                *out_handle = bound->entry_handles[entry];
            return bound->table->entries[entry].off ? NULL : &bound->entry_numbers[entry];
        }
    }
    for (uint32_t i = 0; i < rule->override_count; i++) {
        const struct admi_override *o = &rule->overrides[i];

        if (!admi_match_holds(&o->when, values))
            continue;
        *out_origin = i + 1;
        if (bucket)
            *out_handle = bound->class_handles[1 + i];
        return o->off ? NULL : &o->numbers;
    }
    return &rule->numbers;
}

/* Scale first, then the fraction, truncated but never to nothing; a limit of 0 stays 0. */
uint64_t admi_limit_in_force(const struct admi_rule *rule, const struct admi_numbers *numbers,
                             uint64_t replicas)
{
    admi_u128 limit = (admi_u128)numbers->limit * replicas;
    admi_u128 parts;

    if (limit > ADM_MAX_AMOUNT)
        limit = ADM_MAX_AMOUNT;
    if (rule->type != ADMI_CONCURRENCY || limit == 0 || numbers->fraction.whole >= 1)
        return (uint64_t)limit;
    parts = limit * numbers->fraction.fraction_e18 / ADMI_DECIMAL_ONE;
    return parts == 0 ? 1 : (uint64_t)parts;
}

/* ---- partitions ---- */

uint64_t admi_partition_bytes(const struct admi_snapshot *snapshot, const struct admi_rule *rule,
                              const struct adm_bytes *values)
{
    uint64_t bytes = 0;

    if (snapshot->policy->shard_key != ADMI_NO_KEY)
        bytes += 2 + values[snapshot->policy->shard_key].length;
    for (uint32_t i = 0; i < rule->partition_count; i++)
        bytes += 2 + values[rule->partition_keys[i]].length;
    return bytes;
}

static uint8_t *write_value(struct adm_bytes value, uint8_t *to)
{
    /* Length first: joined values must not run into each other (ab + c is not a + bc). */
    to[0] = (uint8_t)(value.length >> 8);
    to[1] = (uint8_t)(value.length & 0xff);
    admi_copy_short(to + 2, value.data, value.length);
    return to + 2 + value.length;
}

struct adm_bytes admi_partition_write(const struct admi_snapshot *snapshot,
                                      const struct admi_rule *rule, const struct adm_bytes *values,
                                      uint8_t *to)
{
    uint8_t *at = to;

    if (snapshot->policy->shard_key != ADMI_NO_KEY)
        at = write_value(values[snapshot->policy->shard_key], at);
    for (uint32_t i = 0; i < rule->partition_count; i++)
        at = write_value(values[rule->partition_keys[i]], at);
    return (struct adm_bytes){ to, (uint64_t)(at - to) };
}

void admi_term_fill(const struct admi_snapshot *snapshot, const struct admi_rule *rule,
                    const struct admi_numbers *numbers, uint64_t handle,
                    const struct adm_bytes *values, uint64_t replicas, uint64_t amount,
                    struct adm_term *out)
{
    out->kind = rule->type == ADMI_TOKEN_BUCKET ? ADM_KIND_BUCKET
                : rule->type == ADMI_QUOTA      ? ADM_KIND_QUOTA
                                                : ADM_KIND_CONCURRENCY;
    out->flags = (rule->shadow ? ADM_TERM_F_SHADOW : 0) |
                 (rule->completion ? ADM_TERM_F_COMPLETION : 0) |
                 (rule->settle_exact ? ADM_TERM_F_SETTLE_EXACT : 0);
    out->class_handle = handle;
    out->scope = rule->per_replica && rule->type == ADMI_TOKEN_BUCKET
                     ? values[rule->scope_key]
                     : (struct adm_bytes){ NULL, 0 };
    out->replicas = replicas;
    out->amount = amount;
    out->limit = rule->type == ADMI_TOKEN_BUCKET ? 0 : admi_limit_in_force(rule, numbers, replicas);
    out->unit = snapshot->unit_of_policy[rule->unit];
    out->window = rule->window;
    out->verdict = ADM_TERM_UNKNOWN;
    out->level = 0;
    out->passes_at_ns = UINT64_MAX;
}

static bool split_alike(const struct admi_rule *a, const struct admi_rule *b)
{
    if (a->partition_count != b->partition_count)
        return false;
    for (uint32_t i = 0; i < a->partition_count; i++)
        if (a->partition_keys[i] != b->partition_keys[i])
            return false;
    return true;
}

static void prepare_rule(struct admi_snapshot *snapshot, const struct admi_rule *rule)
{
    struct admi_bound_rule *bound = &snapshot->rules[rule->index];

    if (rule->per_replica)
        return; /* its terms depend on the request */
    admi_term_fill(snapshot, rule, &rule->numbers, bound->class_handles[0], NULL, 1, 0,
                   &bound->term);
    bound->plain =
        !rule->shadow && !rule->completion && rule->override_count == 0 && bound->table == NULL;
    bound->lease_ttl_ns = rule->type == ADMI_CONCURRENCY ? rule->numbers.lease_ttl_ns : 0;
    bound->keeps_lease = rule->type == ADMI_CONCURRENCY || rule->settle_exact;
}

/* Each rule with state is compared with the last few that differ: should there be more ways to
 * split, some rules get a number of their own, and write a partition twice. */
void admi_terms_prepare(struct admi_snapshot *snapshot)
{
    const struct admi_rule *kinds[SPLITS_COMPARED];
    uint32_t count = 0;

    for (uint32_t r = 0; r < snapshot->policy->rule_count; r++) {
        const struct admi_rule *rule = &snapshot->policy->rules[r];
        uint32_t k = 0;

        if (!admi_rule_has_state(rule))
            continue;
        while (k < count && k < SPLITS_COMPARED && !split_alike(kinds[k], rule))
            k++;
        if (k == count || k == SPLITS_COMPARED)
            kinds[k = count++ % SPLITS_COMPARED] = rule;
        snapshot->rules[r].split = kinds[k]->index;
        prepare_rule(snapshot, rule);
    }
}

/* Room for another partition key. Keys that are written already move along. */
bool admi_call_reserve_keys(struct admi_call *call, uint64_t bytes)
{
    uint64_t wanted = call->key_bytes;
    uint8_t *keys;

    while (wanted - call->keys_used < bytes)
        wanted *= 2;
    if (wanted == call->key_bytes)
        return true;
    keys = admi_allocate(&call->gate->allocator, wanted, 1);
    if (keys == NULL)
        return false;
    admi_copy(keys, call->keys, call->keys_used);
    for (uint32_t i = 0; i < 2 * ADM_MAX_TERMS; i++) {
        const uint8_t *key = call->terms[i].partition.data;

        /* By integers: terms of an earlier use may point anywhere. */
        if ((uintptr_t)key >= (uintptr_t)call->keys &&
            (uintptr_t)key < (uintptr_t)call->keys + call->key_bytes)
            call->terms[i].partition.data = keys + ((uintptr_t)key - (uintptr_t)call->keys);
    }
    admi_release(&call->gate->allocator, call->keys, call->key_bytes, 1);
    call->keys = keys;
    call->key_bytes = wanted;
    return true;
}
