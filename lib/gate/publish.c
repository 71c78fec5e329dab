/* SPDX-License-Identifier: Apache-2.0 */
/* Putting policies and limit tables in force: completely or not at all (law L9). */
#include <string.h>

#include "base/memory.h"
#include "gate/gate.h"

static struct adm_bytes version_of(const struct adm_policy *policy)
{
    return adm_str(policy->version);
}

static struct adm_policy *find_kept(const struct adm_gate *gate, struct adm_bytes version)
{
    for (uint32_t i = 0; i < gate->kept_count; i++)
        if (admi_bytes_equal(version_of(gate->kept[i]), version))
            return gate->kept[i];
    return NULL;
}

/* The policy becomes the newest of the kept ones; the oldest goes when there are too many. */
static void keep(struct adm_gate *gate, struct adm_policy *policy)
{
    struct adm_policy *known = find_kept(gate, version_of(policy));
    uint32_t to = 0;

    (void)adm_policy_ref(policy);
    for (uint32_t from = 0; from < gate->kept_count; from++) {
        bool drop = gate->kept[from] == known ||
                    (known == NULL && gate->kept_count == ADMI_KEPT_VERSIONS && from == 0);

        if (drop)
            adm_policy_unref(gate->kept[from]);
        else
            gate->kept[to++] = gate->kept[from];
    }
    gate->kept[to] = policy;
    gate->kept_count = to + 1;
}

/* Build, put the classes in force, then swap the pointer: only the last step can be seen, and it
 * cannot fail. */
static adm_status switch_to(struct adm_gate *gate, struct adm_policy *policy,
                            struct admi_table *const *tables, uint64_t table_count,
                            const char *table_version)
{
    struct admi_snapshot *fresh = NULL;
    adm_status status =
        admi_snapshot_build(gate, policy, tables, table_count, table_version, &fresh);

    if (status != ADM_OK)
        return status;
    admi_gate_stop_healing(gate);
    status = admi_snapshot_put_classes(gate, fresh);
    if (status != ADM_OK) {
        admi_snapshot_unref(fresh);
        return status;
    }
    admi_snapshot_retire(gate, atomic_exchange(&gate->snapshot, fresh));
    return ADM_OK;
}

static adm_status switch_policy(struct adm_gate *gate, struct adm_policy *policy)
{
    const struct admi_snapshot *old =
        atomic_load(&gate->snapshot); /* only publishers free it, and we are the one */

    if (old == NULL)
        return switch_to(gate, policy, NULL, 0, "");
    return switch_to(gate, policy, old->tables, old->table_count, old->table_version);
}

static void count(struct adm_gate *gate, enum admi_counter which)
{
    admi_count(admi_observe_local(gate->observe), which, 1);
}

static adm_status publish_locked(struct adm_gate *gate, struct adm_policy *policy)
{
    const struct adm_policy *known = find_kept(gate, version_of(policy));
    adm_status status;

    if (known != NULL && memcmp(known->digest, policy->digest, sizeof known->digest) != 0)
        return ADM_E_VERSION_CONFLICT;
    status = switch_policy(gate, policy);
    if (status == ADM_OK)
        keep(gate, policy);
    return status;
}

adm_status admi_gate_publish_first(struct adm_gate *gate, struct adm_policy *policy)
{
    (void)pthread_mutex_lock(&gate->publish);
    adm_status status = publish_locked(gate, policy);
    (void)pthread_mutex_unlock(&gate->publish);
    return status;
}

adm_status adm_gate_publish(struct adm_gate *gate, struct adm_policy *policy)
{
    adm_status status;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || policy == NULL)
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    status = admi_gate_publish_first(gate, policy);
    count(gate, status == ADM_OK ? ADMI_PUBLISHES : ADMI_POLICY_REFUSED);
    return status;
}

adm_status adm_gate_rollback(struct adm_gate *gate, struct adm_bytes version)
{
    adm_status status = ADM_E_UNKNOWN_VERSION;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || (version.data == NULL && version.length > 0))
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    (void)pthread_mutex_lock(&gate->publish);
    struct adm_policy *policy = find_kept(gate, version);
    if (policy != NULL)
        status = switch_policy(gate, policy);
    (void)pthread_mutex_unlock(&gate->publish);
    count(gate, status == ADM_OK ? ADMI_ROLLBACKS : ADMI_POLICY_REFUSED);
    return status;
}

/* The tables in force with this one in the place of the old one of its rule. */
static adm_status switch_table(struct adm_gate *gate, const struct admi_snapshot *old,
                               struct admi_table *table)
{
    const uint64_t room = old->table_count + 1; /* old may be freed by the switch */
    struct admi_table **tables = admi_allocate(&gate->allocator, room, sizeof(struct admi_table *));
    uint64_t table_count = 0;
    adm_status status;

    if (tables == NULL)
        return ADM_E_NOMEM;
    for (uint64_t i = 0; i < old->table_count; i++)
        if (!admi_bytes_equal(old->tables[i]->rule, table->rule))
            tables[table_count++] = old->tables[i];
    tables[table_count++] = table;
    status = switch_to(gate, old->policy, tables, table_count, table->version);
    admi_release(&gate->allocator, tables, room, sizeof(struct admi_table *));
    return status;
}

static adm_status put_table_locked(struct adm_gate *gate, struct adm_bytes text, uint32_t mode,
                                   struct adm_diags **out_diags)
{
    const struct admi_snapshot *old = atomic_load(&gate->snapshot);
    struct admi_table *table = NULL;
    uint32_t rule = UINT32_MAX;
    adm_status status = admi_table_rule(text, old->policy, mode, &gate->allocator, &rule);

    if (status != ADM_OK)
        return status;
    status = admi_table_load(text, old->policy, rule == UINT32_MAX ? NULL : old->rules[rule].table,
                             mode, &gate->allocator, &table, out_diags);
    if (status != ADM_OK)
        return status;
    status = switch_table(gate, old, table);
    admi_table_unref(table);
    return status;
}

adm_status adm_gate_put_table(struct adm_gate *gate, struct adm_bytes text, uint32_t mode,
                              struct adm_diags **out_diags)
{
    adm_status status;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || (mode & ~ADM_TABLE_YAML) > ADM_TABLE_PATCH ||
        (text.data == NULL && text.length > 0))
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    (void)pthread_mutex_lock(&gate->publish);
    status = put_table_locked(gate, text, mode, out_diags);
    (void)pthread_mutex_unlock(&gate->publish);
    count(gate, status == ADM_OK ? ADMI_TABLES : ADMI_POLICY_REFUSED);
    return status;
}

adm_status admi_gate_heal(struct adm_gate *gate, const struct admi_snapshot *stale)
{
    adm_status status = ADM_OK;

    (void)pthread_mutex_lock(&gate->publish); /* a publish that is under way ends first */
    const struct admi_snapshot *now = atomic_load(&gate->snapshot);
    if (now ==
        stale) /* none was: an earlier publish was given up, but reached the backend after all */
        status = switch_to(gate, now->policy, now->tables, now->table_count, now->table_version);
    (void)pthread_mutex_unlock(&gate->publish);
    return status;
}

/* ---- healing without waiting ---- */

void admi_gate_stop_healing(struct adm_gate *gate)
{
    struct admi_call *call = gate->healing;

    gate->healing = NULL;
    if (call == NULL)
        return;
    if (admi_call_give_up(call))
        admi_call_let_go(call);
    else
        admi_call_put(gate, admi_gate_thread(gate), call);
}

/* The put has come back: its snapshot takes the place of the one that says the same. */
static void end_healing(struct adm_gate *gate)
{
    struct admi_call *call = gate->healing;
    struct admi_snapshot *fresh = call->snapshot;

    gate->healing = NULL;
    atomic_fetch_add(&fresh->references, 1); /* ours; the call gives its own up */
    if (admi_snapshot_end_put(call) == ADM_OK)
        admi_snapshot_retire(gate, atomic_exchange(&gate->snapshot, fresh));
    else
        admi_snapshot_unref(fresh);
}

static void begin_healing(struct adm_gate *gate)
{
    const struct admi_snapshot *now = atomic_load(&gate->snapshot);
    struct admi_moment moment = admi_gate_clock_read(&gate->clock);
    struct admi_snapshot *fresh = NULL;
    bool complete = false;

    if (admi_snapshot_build(gate, now->policy, now->tables, now->table_count, now->table_version,
                            &fresh) != ADM_OK)
        return;
    if (admi_snapshot_begin_put(gate, fresh, &moment, &gate->healing, &complete) == ADM_OK &&
        complete)
        end_healing(gate);
    admi_snapshot_unref(fresh); /* the call has its own reference */
}

bool admi_gate_heal_by_steps(struct adm_gate *gate, const struct admi_snapshot *stale)
{
    /* Held: a publish is under way, and will do. */
    if (pthread_mutex_trylock(&gate->publish) != 0)
        return atomic_load(&gate->snapshot) != stale;
    if (atomic_load(&gate->snapshot) == stale) {
        struct admi_call *call = gate->healing;

        if (call == NULL)
            begin_healing(gate);
        else if (atomic_load(&call->state) == ADMI_CALL_DONE)
            end_healing(gate);
        else if (admi_gate_clock_read(&gate->clock).now.mono_ns >= call->op.deadline_ns)
            admi_gate_stop_healing(gate);
    }
    bool healed = atomic_load(&gate->snapshot) != stale;
    (void)pthread_mutex_unlock(&gate->publish);
    return healed;
}

adm_status adm_gate_version(struct adm_gate *gate, char *out, uint64_t out_bytes)
{
    struct admi_gate_thread *thread;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    if (out_bytes <= ADM_MAX_VERSION)
        return ADM_E_BUFFER_TOO_SMALL;
    thread = admi_gate_thread(gate);
    if (thread == NULL)
        return ADM_E_NOMEM;
    const struct admi_snapshot *snapshot = admi_snapshot_enter(gate, thread);
    admi_copy(out, snapshot->policy->version, ADM_MAX_VERSION + 1);
    admi_snapshot_leave(thread);
    return ADM_OK;
}

void admi_gate_publish_fini(struct adm_gate *gate)
{
    admi_snapshot_retire(gate, atomic_exchange(&gate->snapshot, NULL));
    for (uint32_t i = 0; i < gate->kept_count; i++)
        adm_policy_unref(gate->kept[i]);
    gate->kept_count = 0;
}
