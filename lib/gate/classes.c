/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of a snapshot, written for the backend and put in force there. */
#include "base/memory.h"
#include "gate/gate.h"
#include "policy/hashing.h"

static uint64_t identity_bytes(const struct adm_gate *gate, const struct admi_rule *rule)
{
    return 1 + gate->name_space_length + rule->identity.length;
}

/* The namespace, length-prefixed, in front of the rule's identity: two gates on one backend never
 * meet. */
static struct adm_bytes write_identity(const struct adm_gate *gate, const struct admi_rule *rule,
                                       uint8_t **at)
{
    struct adm_bytes identity = { *at, identity_bytes(gate, rule) };

    **at = (uint8_t)gate->name_space_length;
    admi_copy(*at + 1, gate->name_space, gate->name_space_length);
    admi_copy(*at + 1 + gate->name_space_length, rule->identity.data, rule->identity.length);
    *at += identity.length;
    return identity;
}

/* Which of the rule's numbers: a letter, so that an override and a table entry of the same text
 * differ. */
static struct adm_bytes write_origin(char letter, struct adm_bytes text, uint8_t **at)
{
    struct adm_bytes origin = { *at, 1 + text.length };

    **at = (uint8_t)letter;
    admi_copy(*at + 1, text.data, text.length);
    *at += origin.length;
    return origin;
}

static uint64_t class_bytes_needed(const struct adm_gate *gate,
                                   const struct admi_snapshot *snapshot)
{
    uint64_t bytes = 0;

    for (uint32_t r = 0; r < snapshot->policy->rule_count; r++) {
        const struct admi_rule *rule = &snapshot->policy->rules[r];

        if (!admi_rule_has_state(rule))
            continue;
        bytes += identity_bytes(gate, rule) + 1;
        for (uint32_t i = 0; rule->type == ADMI_TOKEN_BUCKET && i < rule->override_count; i++)
            bytes += 1 + rule->overrides[i].origin.length;
        for (uint64_t e = 0;
             snapshot->rules[r].entry_handles != NULL && e < snapshot->rules[r].table->entry_count;
             e++)
            bytes += 1 + snapshot->rules[r].table->entries[e].key.length;
    }
    return bytes;
}

static bool same_when_before(const struct admi_rule *rule, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (admi_bytes_equal(rule->overrides[k].origin, rule->overrides[i].origin))
            return true;
    return false;
}

/* The same for rules of this namespace that match the same requests and split them the same way;
 * shadow state is apart. By names and texts: a later policy version, or another process, groups the
 * same rules. */
static uint64_t group_of(const struct adm_gate *gate, const struct adm_policy *policy,
                         const struct admi_rule *rule)
{
    const struct adm_bytes name_space = { gate->name_space, gate->name_space_length };
    uint64_t hash = admi_policy_match_hash(policy, rule->index);

    hash = admi_policy_mix(hash, admi_policy_hash(name_space));
    hash = admi_policy_mix(hash, rule->shadow);
    hash = admi_policy_mix(hash, policy->shard_key != ADMI_NO_KEY
                                     ? admi_policy_hash(policy->keys[policy->shard_key])
                                     : 0);
    for (uint32_t i = 0; i < rule->partition_count; i++)
        hash = admi_policy_mix(hash, admi_policy_hash(policy->keys[rule->partition_keys[i]]));
    return hash == 0 ? 1 : hash;
}

static struct adm_class class_of(const struct admi_rule *rule, uint64_t group,
                                 struct adm_bytes identity, struct adm_bytes origin,
                                 const struct admi_numbers *numbers)
{
    struct adm_class c = { 0 };

    c.kind = rule->type == ADMI_TOKEN_BUCKET ? ADM_KIND_BUCKET
             : rule->type == ADMI_QUOTA      ? ADM_KIND_QUOTA
                                             : ADM_KIND_CONCURRENCY;
    c.flags = (rule->shadow ? ADM_CLASS_F_SHADOW : 0) |
              (rule->per_replica && rule->type == ADMI_TOKEN_BUCKET ? ADM_CLASS_F_PER_REPLICA : 0);
    c.rule = identity;
    c.origin = origin;
    c.max_partitions = rule->max_partitions;
    c.group = group;
    if (c.kind == ADM_KIND_BUCKET) {
        c.capacity = numbers->capacity;
        c.refill = numbers->refill;
        c.per_ns = numbers->per_ns;
    }
    return c;
}

/* The classes of one rule. handle_of[i] says where the handle of class i goes. */
static uint64_t write_classes_of(const struct adm_gate *gate, const struct admi_snapshot *snapshot,
                                 uint32_t r, struct adm_class *classes, uint8_t **at)
{
    const struct admi_rule *rule = &snapshot->policy->rules[r];
    const struct admi_bound_rule *bound = &snapshot->rules[r];
    const struct adm_bytes none = { NULL, 0 };
    struct adm_bytes identity;
    uint64_t count = 0, group;

    if (!admi_rule_has_state(rule))
        return 0;
    group = group_of(gate, snapshot->policy, rule);
    identity = write_identity(gate, rule, at);
    classes[count] = class_of(rule, group, identity, write_origin('r', none, at), &rule->numbers);
    classes[count++].handle = (uint64_t)(bound->class_handles - snapshot->handles);
    if (rule->type != ADMI_TOKEN_BUCKET)
        return count;
    for (uint32_t i = 0; i < rule->override_count; i++) {
        const struct admi_override *o = &rule->overrides[i];

        if (o->off || same_when_before(rule, i))
            continue;
        classes[count] =
            class_of(rule, group, identity, write_origin('o', o->origin, at), &o->numbers);
        classes[count++].handle = (uint64_t)(bound->class_handles + 1 + i - snapshot->handles);
    }
    for (uint64_t e = 0; bound->entry_handles != NULL && e < bound->table->entry_count; e++) {
        const struct admi_table_entry *entry = &bound->table->entries[e];

        if (entry->off)
            continue;
        classes[count] = class_of(rule, group, identity, write_origin('e', entry->key, at),
                                  &bound->entry_numbers[e]);
        classes[count++].handle = (uint64_t)(bound->entry_handles + e - snapshot->handles);
    }
    return count;
}

struct scope_list {
    struct admi_snapshot *snapshot;
    uint64_t count, bytes;
    bool overflow;
};

static void list_scope(void *self, struct adm_bytes scope, uint64_t healthy)
{
    struct scope_list *list = self;
    struct admi_snapshot *snapshot = list->snapshot;

    if (list->count == snapshot->scope_room ||
        snapshot->scope_byte_room - list->bytes < scope.length) {
        list->overflow = true;
        return;
    }
    admi_copy(snapshot->scope_bytes + list->bytes, scope.data, scope.length);
    snapshot->scopes[list->count].scope.data = snapshot->scope_bytes + list->bytes;
    snapshot->scopes[list->count].scope.length = scope.length;
    snapshot->scopes[list->count++].replicas = healthy == 0 ? 1 : healthy;
    list->bytes += scope.length;
}

/* The replica counts of all scopes at now. Signals may arrive meanwhile, so sizing and filling may
 * have to be repeated. */
static adm_status list_scopes(struct adm_gate *gate, struct admi_snapshot *snapshot,
                              uint64_t now_ns)
{
    const struct adm_allocator *allocator = &gate->allocator;
    struct scope_list list;
    uint64_t values = 0;

    do {
        admi_release(allocator, snapshot->scopes, snapshot->scope_room, sizeof *snapshot->scopes);
        admi_release(allocator, snapshot->scope_bytes, snapshot->scope_byte_room, 1);
        snapshot->scope_bytes = NULL;
        admi_signals_size(gate->signals, &snapshot->scope_room, &snapshot->scope_byte_room,
                          &values);
        snapshot->scopes = admi_allocate(allocator, snapshot->scope_room, sizeof *snapshot->scopes);
        if (snapshot->scopes != NULL)
            snapshot->scope_bytes = admi_allocate(allocator, snapshot->scope_byte_room, 1);
        if (snapshot->scope_bytes == NULL)
            return ADM_E_NOMEM;
        list = (struct scope_list){ snapshot, 0, 0, false };
        admi_signals_scopes(gate->signals, now_ns, list_scope, &list);
    } while (list.overflow);
    snapshot->set.scopes = snapshot->scopes;
    snapshot->set.scope_count = list.count;
    return ADM_OK;
}

static adm_status write_classes(struct adm_gate *gate, struct admi_snapshot *snapshot)
{
    uint8_t *at;
    uint64_t count = 0;

    snapshot->class_byte_count = class_bytes_needed(gate, snapshot);
    snapshot->classes =
        admi_allocate(&gate->allocator, snapshot->handle_count, sizeof *snapshot->classes);
    snapshot->class_bytes = admi_allocate(&gate->allocator, snapshot->class_byte_count, 1);
    if (snapshot->classes == NULL || snapshot->class_bytes == NULL)
        return ADM_E_NOMEM;
    at = snapshot->class_bytes;
    for (uint32_t r = 0; r < snapshot->policy->rule_count; r++)
        count += write_classes_of(gate, snapshot, r, snapshot->classes + count, &at);
    snapshot->set.owner.data = gate->name_space;
    snapshot->set.owner.length = gate->name_space_length;
    snapshot->set.classes = snapshot->classes;
    snapshot->set.class_count = count;
    return ADM_OK;
}

static adm_status write_all(struct adm_gate *gate, struct admi_snapshot *snapshot, uint64_t now_ns)
{
    adm_status status = write_classes(gate, snapshot);

    if (status == ADM_OK)
        status = list_scopes(gate, snapshot, now_ns);
    if (status != ADM_OK)
        return status;
    snapshot->places =
        admi_allocate(&gate->allocator, snapshot->handle_count, sizeof *snapshot->places);
    if (snapshot->places == NULL)
        return ADM_E_NOMEM;
    /* handle is an out field: remember where each belongs. */
    for (uint64_t i = 0; i < snapshot->set.class_count; i++) {
        snapshot->places[i] = snapshot->classes[i].handle;
        snapshot->classes[i].handle = 0;
    }
    return ADM_OK;
}

adm_status admi_snapshot_begin_put(struct adm_gate *gate, struct admi_snapshot *snapshot,
                                   const struct admi_moment *moment, struct admi_call **out_call,
                                   bool *out_complete)
{
    struct admi_gate_thread *thread = admi_gate_thread(gate);
    adm_status status =
        thread == NULL ? ADM_E_NOMEM : write_all(gate, snapshot, moment->now.mono_ns);
    struct admi_call *call = status == ADM_OK ? admi_call_get(gate, thread, &status) : NULL;

    if (call == NULL)
        return status;
    call->op.kind = ADM_OP_PUT_CLASSES;
    call->op.args.classes = &snapshot->set;
    /* The call may outlive us with the buffers that it points to. */
    atomic_fetch_add(&snapshot->references, 1);
    call->snapshot = snapshot;
    *out_complete = admi_call_start(call, thread, moment, gate->backend_timeout_ns);
    *out_call = call;
    return ADM_OK;
}

adm_status admi_snapshot_end_put(struct admi_call *call)
{
    struct adm_gate *gate = call->gate;
    struct admi_snapshot *snapshot = call->snapshot; /* whoever began has a reference too */
    struct admi_gate_thread *thread = admi_gate_thread(gate);
    adm_status status = admi_op_status(&call->op);

    for (uint64_t i = 0; status == ADM_OK && i < snapshot->set.class_count; i++)
        snapshot->handles[snapshot->places[i]] = snapshot->classes[i].handle;
    snapshot->sequence = snapshot->set.sequence;
    admi_terms_prepare(snapshot);
    admi_call_put(gate, thread, call);
    if (status == ADM_OK)
        admi_snapshot_free_classes(snapshot);
    return status == ADM_E_BACKEND_FULL ? ADM_E_POLICY_NO_ROOM : status;
}

static adm_status put_and_wait(struct adm_gate *gate, struct admi_snapshot *snapshot,
                               const struct admi_moment *moment)
{
    struct admi_call *call = NULL;
    bool complete = false;
    adm_status status = admi_snapshot_begin_put(gate, snapshot, moment, &call, &complete);

    if (status != ADM_OK)
        return status;
    if (!complete && !gate->backend.defers) {
        admi_call_lose(call);
        return ADM_E_BACKEND_RESULT;
    }
    if (!complete && !admi_call_wait(call)) {
        admi_call_let_go(call);
        return ADM_E_BACKEND_UNKNOWN;
    }
    return admi_snapshot_end_put(call);
}

adm_status admi_snapshot_put_classes(struct adm_gate *gate, struct admi_snapshot *snapshot)
{
    /* The new policy's skew already rules its own publish. Publishers are alone here. */
    uint64_t old_skew_ns =
        atomic_exchange(&gate->clock.max_skew_ns, snapshot->policy->max_clock_skew_ns);
    struct admi_moment moment = admi_gate_clock_read(&gate->clock);
    adm_status status = put_and_wait(gate, snapshot, &moment);

    if (status != ADM_OK)
        atomic_store(&gate->clock.max_skew_ns, old_skew_ns);
    return status;
}
