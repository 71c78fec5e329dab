/* SPDX-License-Identifier: Apache-2.0 */
/* A policy version with a set of limit tables, bound to this gate's names: built aside, then put in
 * force whole. */
#include "base/memory.h"
#include "gate/gate.h"

bool admi_rule_has_state(const struct admi_rule *rule)
{
    return rule->type == ADMI_TOKEN_BUCKET || rule->type == ADMI_CONCURRENCY ||
           rule->type == ADMI_QUOTA;
}

void admi_snapshot_free_classes(struct admi_snapshot *snapshot)
{
    const struct adm_allocator *allocator = snapshot->allocator;

    admi_release(allocator, snapshot->classes, snapshot->handle_count, sizeof *snapshot->classes);
    admi_release(allocator, snapshot->places, snapshot->handle_count, sizeof *snapshot->places);
    admi_release(allocator, snapshot->class_bytes, snapshot->class_byte_count, 1);
    admi_release(allocator, snapshot->scopes, snapshot->scope_room, sizeof *snapshot->scopes);
    admi_release(allocator, snapshot->scope_bytes, snapshot->scope_byte_room, 1);
    snapshot->classes = NULL;
    snapshot->places = NULL;
    snapshot->class_bytes = NULL;
    snapshot->scopes = NULL;
    snapshot->scope_bytes = NULL;
}

static void snapshot_free(struct admi_snapshot *snapshot)
{
    const struct adm_allocator *allocator = snapshot->allocator;

    admi_snapshot_free_classes(snapshot);
    for (uint64_t i = 0; snapshot->tables != NULL && i < snapshot->table_count; i++)
        admi_table_unref(snapshot->tables[i]);
    admi_release(allocator, snapshot->tables, snapshot->table_count, sizeof(struct admi_table *));
    admi_release(allocator, snapshot->table_keys, snapshot->table_count,
                 sizeof *snapshot->table_keys);
    admi_release(allocator, snapshot->slot_of_key, ADMI_MAX_KEYS, sizeof *snapshot->slot_of_key);
    admi_release(allocator, snapshot->entry_numbers, snapshot->entry_count,
                 sizeof *snapshot->entry_numbers);
    admi_release(allocator, snapshot->handles, snapshot->handle_count, sizeof *snapshot->handles);
    if (snapshot->policy != NULL)
        admi_release(allocator, snapshot->rules, snapshot->policy->rule_count,
                     sizeof *snapshot->rules);
    adm_policy_unref(snapshot->policy);
    admi_release(allocator, snapshot, 1, sizeof *snapshot);
}

void admi_snapshot_unref(struct admi_snapshot *snapshot)
{
    if (snapshot != NULL && atomic_fetch_sub(&snapshot->references, 1) == 1)
        snapshot_free(snapshot);
}

/* ---- building ---- */

static const struct admi_table *table_of(const struct admi_snapshot *snapshot,
                                         const struct admi_rule *rule)
{
    for (uint64_t i = 0; i < snapshot->table_count; i++)
        if (admi_bytes_equal(snapshot->tables[i]->rule, rule->id))
            return snapshot->tables[i];
    return NULL;
}

/* Tables of rules that this policy lacks rest until a policy has them again. */
static adm_status bind_tables(struct admi_snapshot *snapshot)
{
    struct adm_policy *policy = snapshot->policy;

    snapshot->slot_count = policy->key_count;
    for (uint32_t r = 0; r < policy->rule_count; r++) {
        struct admi_bound_rule *bound = &snapshot->rules[r];
        const struct admi_rule *rule = &policy->rules[r];
        const struct admi_table *table =
            snapshot->table_count > 0 ? table_of(snapshot, rule) : NULL;

        bound->table = table;
        if (admi_rule_has_state(rule))
            snapshot->handle_count +=
                rule->type == ADMI_TOKEN_BUCKET ? 1 + rule->override_count : 1;
        if (table == NULL)
            continue;
        if (!admi_table_fits(table, rule))
            return ADM_E_POLICY_INVALID;
        snapshot->entry_count += table->entry_count;
        if (rule->type == ADMI_TOKEN_BUCKET)
            snapshot->handle_count += table->entry_count;
        bound->table_slot = admi_policy_key(policy, table->by);
        if (bound->table_slot == ADMI_NO_KEY) {
            uint32_t extra = policy->key_count;

            while (extra < snapshot->slot_count &&
                   !admi_bytes_equal(snapshot->table_keys[extra - policy->key_count], table->by))
                extra++;
            if (extra == snapshot->slot_count)
                snapshot->table_keys[snapshot->slot_count++ - policy->key_count] = table->by;
            bound->table_slot = extra;
        }
    }
    return ADM_OK;
}

static void lay_out_numbers(struct admi_snapshot *snapshot)
{
    uint64_t *handle = snapshot->handles;
    struct admi_numbers *numbers = snapshot->entry_numbers;

    for (uint32_t r = 0; r < snapshot->policy->rule_count; r++) {
        struct admi_bound_rule *bound = &snapshot->rules[r];
        const struct admi_rule *rule = &snapshot->policy->rules[r];

        bound->class_handles = handle;
        if (admi_rule_has_state(rule))
            handle += rule->type == ADMI_TOKEN_BUCKET ? 1 + rule->override_count : 1;
        if (bound->table == NULL)
            continue;
        bound->entry_numbers = numbers;
        for (uint64_t e = 0; e < bound->table->entry_count; e++)
            numbers[e] = admi_numbers_overlay(&rule->numbers, &bound->table->entries[e].numbers);
        numbers += bound->table->entry_count;
        if (rule->type == ADMI_TOKEN_BUCKET) {
            bound->entry_handles = handle;
            handle += bound->table->entry_count;
        }
    }
}

uint32_t admi_snapshot_slot(const struct admi_snapshot *snapshot, struct adm_bytes key)
{
    uint32_t slot = admi_policy_key(snapshot->policy, key);

    for (uint32_t i = snapshot->policy->key_count; slot == ADMI_NO_KEY && i < snapshot->slot_count;
         i++)
        if (admi_bytes_equal(snapshot->table_keys[i - snapshot->policy->key_count], key))
            return i;
    return slot;
}

static adm_status bind_names(struct adm_gate *gate, struct admi_snapshot *snapshot)
{
    struct adm_policy *policy = snapshot->policy;

    for (uint32_t u = 0; u < ADM_UNIT_FIRST_DECLARED; u++)
        snapshot->unit_of_policy[u] = u;
    for (uint32_t u = 0; u < policy->unit_count; u++) {
        uint32_t id = 0;
        adm_status status = admi_names_intern(&gate->units, policy->units[u], &id);

        if (status != ADM_OK)
            return status == ADM_E_LIMIT ? ADM_E_POLICY_NO_ROOM : status;
        snapshot->unit_of_policy[ADM_UNIT_FIRST_DECLARED + u] = ADM_UNIT_FIRST_DECLARED + id;
    }
    return ADM_OK;
}

static adm_status bind_metrics(struct adm_gate *gate, struct admi_snapshot *snapshot)
{
    struct adm_policy *policy = snapshot->policy;
    struct adm_bytes *names =
        admi_allocate(&gate->allocator, policy->rule_count, 2 * sizeof *names);
    uint32_t *slots = admi_allocate(&gate->allocator, policy->rule_count, sizeof *slots);
    struct adm_bytes labels[ADMI_MAX_LABELS];
    adm_status status = ADM_E_NOMEM;

    if (names != NULL && slots != NULL) {
        for (uint32_t r = 0; r < policy->rule_count; r++) {
            names[r] = policy->rules[r].id;
            names[policy->rule_count + r] = admi_policy_unit_name(policy, policy->rules[r].unit);
        }
        status = admi_observe_rules(gate->observe, names, names + policy->rule_count,
                                    policy->rule_count, slots);
    }
    for (uint32_t r = 0; status == ADM_OK && r < policy->rule_count; r++)
        snapshot->rules[r].metrics_slot = slots[r];
    for (uint32_t l = 0; l < policy->label_count; l++)
        labels[l] = policy->keys[policy->labels[l]];
    if (status == ADM_OK)
        status =
            admi_observe_labels(gate->observe, labels, policy->label_count, &snapshot->labels_id);
    admi_release(&gate->allocator, slots, policy->rule_count, sizeof *slots);
    admi_release(&gate->allocator, names, policy->rule_count, 2 * sizeof *names);
    return status;
}

static adm_status fill(struct adm_gate *gate, struct admi_snapshot *snapshot,
                       struct admi_table *const *tables)
{
    const struct adm_allocator *allocator = &gate->allocator;
    adm_status status;

    snapshot->rules =
        admi_allocate(allocator, snapshot->policy->rule_count, sizeof *snapshot->rules);
    snapshot->tables = admi_allocate(allocator, snapshot->table_count, sizeof(struct admi_table *));
    snapshot->table_keys =
        admi_allocate(allocator, snapshot->table_count, sizeof *snapshot->table_keys);
    snapshot->slot_of_key = admi_allocate(allocator, ADMI_MAX_KEYS, sizeof *snapshot->slot_of_key);
    if (snapshot->rules == NULL || snapshot->tables == NULL || snapshot->table_keys == NULL ||
        snapshot->slot_of_key == NULL)
        return ADM_E_NOMEM;
    for (uint64_t i = 0; i < snapshot->table_count; i++)
        snapshot->tables[i] = admi_table_ref(tables[i]);
    status = bind_tables(snapshot);
    if (status != ADM_OK)
        return status;
    snapshot->handles = admi_allocate(allocator, snapshot->handle_count, sizeof *snapshot->handles);
    snapshot->entry_numbers =
        admi_allocate(allocator, snapshot->entry_count, sizeof *snapshot->entry_numbers);
    if (snapshot->handles == NULL || snapshot->entry_numbers == NULL)
        return ADM_E_NOMEM;
    lay_out_numbers(snapshot);
    status = bind_names(gate, snapshot);
    return status == ADM_OK ? bind_metrics(gate, snapshot) : status;
}

adm_status admi_snapshot_build(struct adm_gate *gate, struct adm_policy *policy,
                               struct admi_table *const *tables, uint64_t table_count,
                               const char *table_version, struct admi_snapshot **out)
{
    struct admi_snapshot *snapshot = admi_allocate(&gate->allocator, 1, sizeof *snapshot);
    adm_status status;

    if (snapshot == NULL)
        return ADM_E_NOMEM;
    atomic_init(&snapshot->references, 1);
    snapshot->allocator = &gate->allocator;
    snapshot->policy = adm_policy_ref(policy);
    snapshot->table_count = table_count;
    for (uint32_t i = 0; i + 1 < sizeof snapshot->table_version && table_version[i] != '\0'; i++)
        snapshot->table_version[i] = table_version[i];
    status = fill(gate, snapshot, tables);
    if (status != ADM_OK) {
        admi_snapshot_unref(snapshot);
        return status;
    }
    *out = snapshot;
    return ADM_OK;
}

/* ---- retiring ---- */

struct hazard_search {
    const struct admi_snapshot *snapshot;
    bool found;
};

static void search_hazard(void *self, void *block)
{
    struct hazard_search *search = self;
    struct admi_gate_thread *thread = block;

    if (atomic_load(&thread->hazard) == search->snapshot)
        search->found = true;
}

/* Called with gate->publish held, after the pointer was replaced. What a thread is still reading
 * waits for the next publish, or for the end of the gate. */
void admi_snapshot_retire(struct adm_gate *gate, struct admi_snapshot *old)
{
    if (old != NULL) {
        old->next_retired = gate->retired;
        gate->retired = old;
    }
    for (struct admi_snapshot **link = &gate->retired; *link != NULL;) {
        struct hazard_search search = { *link, false };

        admi_threads_each(gate->threads, search_hazard, &search);
        if (search.found) {
            link = &(*link)->next_retired;
        } else {
            struct admi_snapshot *done = *link;

            *link = done->next_retired;
            admi_snapshot_unref(done);
        }
    }
}
