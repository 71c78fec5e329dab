/* SPDX-License-Identifier: Apache-2.0 */
/* What lib/policy keeps with a compiled policy: memory, interned keys, the look-up of rules. */
#include "policy/parts.h"

#include "base/memory.h"
#include "policy/hashing.h"

struct admi_policy_parts *admi_parts_new(const struct adm_allocator *allocator)
{
    struct admi_policy_parts *parts = admi_allocate(allocator, 1, sizeof *parts);
    if (parts == NULL)
        return NULL;
    parts->policy.allocator = *allocator;
    parts->policy.references = 1;
    parts->policy.arena = parts;
    parts->arena.allocator = &parts->policy.allocator;
    parts->keys = admi_arena_allocate(&parts->arena, ADMI_POLICY_KEYS_MAX, sizeof *parts->keys);
    parts->key_slots = admi_arena_allocate(&parts->arena, ADMI_KEY_SLOTS, sizeof *parts->key_slots);
    parts->policy.keys = parts->keys;
    if (parts->arena.failed) {
        admi_parts_free(parts);
        return NULL;
    }
    return parts;
}

void admi_parts_free(struct admi_policy_parts *parts)
{
    if (parts == NULL)
        return;
    struct adm_allocator allocator = parts->policy.allocator; /* survives its home */
    admi_arena_fini(&parts->arena);
    admi_release(&allocator, parts, 1, sizeof *parts);
}

/* The slot of a key: where it is, or where it would go. */
static uint32_t key_slot(const struct admi_policy_parts *parts, struct adm_bytes key)
{
    uint32_t at = (uint32_t)admi_policy_hash(key) & (ADMI_KEY_SLOTS - 1);
    while (parts->key_slots[at] != 0 &&
           !admi_bytes_equal(parts->keys[parts->key_slots[at] - 1], key))
        at = (at + 1) & (ADMI_KEY_SLOTS - 1);
    return at;
}

uint32_t admi_parts_intern(struct admi_policy_parts *parts, struct adm_bytes key)
{
    uint32_t at = key_slot(parts, key), count = parts->policy.key_count;
    if (parts->key_slots[at] != 0)
        return parts->key_slots[at] - 1u;
    if (count == ADMI_POLICY_KEYS_MAX)
        return ADMI_NO_KEY;
    struct adm_bytes copy = admi_arena_copy(&parts->arena, key);
    if (copy.data == NULL)
        return ADMI_NO_KEY;
    parts->keys[count] = copy;
    parts->policy.key_count = count + 1;
    parts->key_slots[at] = (uint16_t)(count + 1);
    return count;
}

uint32_t admi_policy_key(const struct adm_policy *policy, struct adm_bytes key)
{
    const struct admi_policy_parts *parts = policy->arena;
    uint32_t index = parts->key_slots[key_slot(parts, key)];
    return index == 0 ? ADMI_NO_KEY : index - 1;
}

void admi_parts_reserve_rules(struct admi_policy_parts *parts, uint32_t count)
{
    uint32_t slots = 4;
    while (slots < 2 * count)
        slots *= 2;
    parts->ids = admi_arena_allocate(&parts->arena, count, sizeof *parts->ids);
    parts->rule_slots = admi_arena_allocate(&parts->arena, slots, sizeof *parts->rule_slots);
    if (!parts->arena.failed)
        parts->rule_slot_count = slots;
}

static uint32_t rule_slot(const struct admi_policy_parts *parts, struct adm_bytes id)
{
    uint32_t mask = parts->rule_slot_count - 1, at = (uint32_t)admi_policy_hash(id) & mask;
    while (parts->rule_slots[at] != 0 &&
           !admi_bytes_equal(parts->ids[parts->rule_slots[at] - 1], id))
        at = (at + 1) & mask;
    return at;
}

bool admi_parts_add_rule(struct admi_policy_parts *parts, uint32_t index)
{
    uint32_t at = rule_slot(parts, parts->ids[index]);
    if (parts->rule_slots[at] != 0)
        return false;
    parts->rule_slots[at] = index + 1;
    return true;
}

uint32_t admi_policy_rule(const struct adm_policy *policy, struct adm_bytes id)
{
    const struct admi_policy_parts *parts = policy->arena;
    if (parts->rule_slot_count == 0)
        return ADMI_NO_RULE;
    uint32_t index = parts->rule_slots[rule_slot(parts, id)];
    return index == 0 ? ADMI_NO_RULE : index - 1;
}

struct adm_bytes admi_parts_rule_id(const struct adm_policy *policy, uint32_t rule)
{
    const struct admi_policy_parts *parts = policy->arena;
    return parts->ids[rule];
}

struct adm_bytes admi_loader_copy(struct admi_loader *loader, struct adm_bytes bytes)
{
    return loader->building ? admi_arena_copy(&loader->parts->arena, bytes) : bytes;
}

bool admi_loader_failed(const struct admi_loader *loader)
{
    return loader->parts->arena.failed || loader->scratch.failed;
}

const char *admi_rule_type_name(enum admi_rule_type type)
{
    return admi_rule_type_words[type];
}

struct adm_bytes admi_policy_unit_name(const struct adm_policy *policy, uint32_t unit)
{
    if (unit <= ADM_UNIT_IMAGES)
        return admi_words_of(admi_builtin_unit_words[unit]);
    if (unit >= ADM_UNIT_FIRST_DECLARED && unit - ADM_UNIT_FIRST_DECLARED < policy->unit_count)
        return policy->units[unit - ADM_UNIT_FIRST_DECLARED];
    return admi_words_of("?");
}
