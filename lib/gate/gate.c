/* SPDX-License-Identifier: Apache-2.0 */
/* The gate itself: made of its parts, described, swept, measured, taken apart. */
#include "gate/gate.h"

#include <float.h>

#include "base/entropy.h"
#include "base/memory.h"

#define LARGEST_SIGNAL 1e15

static adm_status import_options(const struct adm_gate_options *from, struct adm_gate_options *to)
{
    adm_status status = admi_import(to, sizeof *to, sizeof *to, from);

    if (status != ADM_OK)
        return status;
    if (to->flags != 0 || to->allocator_reserved != NULL ||
        !admi_all_zero(to->reserved, sizeof to->reserved))
        return ADM_E_CALLER_NEWER;
    if (to->policy == NULL || to->name_space.length > ADM_MAX_KEY_BYTES ||
        (to->name_space.length > 0 && to->name_space.data == NULL))
        return ADM_E_INVALID_ARGUMENT;
    return ADM_OK;
}

static uint64_t or_default(uint64_t value, uint64_t otherwise)
{
    return value == 0 ? otherwise : value;
}

static void take_options(struct adm_gate *gate, const struct adm_gate_options *options)
{
    gate->random = options->random;
    if (gate->random.fill == NULL)
        gate->random.fill = admi_entropy_fill;
    gate->on_event = options->on_event;
    gate->on_event_self = options->on_event_self;
    gate->backend_timeout_ns = or_default(options->backend_timeout_ns, ADMI_DEFAULT_TIMEOUT_NS);
    gate->pending_max = or_default(options->pending_max, ADMI_DEFAULT_PENDING);
    gate->name_space_length = (uint32_t)options->name_space.length;
    admi_copy(gate->name_space, options->name_space.data, options->name_space.length);
}

static adm_status make_locks(struct adm_gate *gate)
{
    if (pthread_mutex_init(&gate->publish, NULL) != 0)
        return ADM_E_OS;
    if (pthread_mutex_init(&gate->calls, NULL) == 0)
        return ADM_OK;
    (void)pthread_mutex_destroy(&gate->publish);
    return ADM_E_OS;
}

static void break_locks(struct adm_gate *gate)
{
    (void)pthread_mutex_destroy(&gate->calls);
    (void)pthread_mutex_destroy(&gate->publish);
}

/* Everything but the backend and the first policy. */
static adm_status make_parts(struct adm_gate *gate, const struct adm_gate_options *options)
{
    adm_status status = make_locks(gate);

    if (status != ADM_OK)
        return status;
    admi_fork_guard_init(&gate->fork_guard);
    status = admi_gate_clock_init(&gate->clock, &options->clock);
    if (status != ADM_OK)
        goto locks;
    status = admi_names_init(&gate->keys, &gate->allocator, ADMI_MAX_KEYS);
    if (status != ADM_OK)
        goto clock;
    status = admi_names_init(&gate->units, &gate->allocator, ADMI_MAX_UNITS);
    if (status != ADM_OK)
        goto keys;
    status =
        admi_signals_new(&gate->allocator, or_default(options->signals_max, ADMI_DEFAULT_SIGNALS),
                         ADMI_HEALTH_AGE_NS, &gate->signals);
    if (status != ADM_OK)
        goto units;
    status = admi_observe_new(&gate->allocator, &gate->observe);
    if (status != ADM_OK)
        goto signals;
    status = admi_threads_new(&gate->allocator, sizeof(struct admi_gate_thread), &gate->threads);
    if (status != ADM_OK)
        goto observe;
    if (gate->random.fill(gate->random.self, gate->secret, sizeof gate->secret) == 0)
        return ADM_OK;
    status = ADM_E_OS;
    admi_threads_free(gate->threads, NULL, NULL);
observe:
    admi_observe_free(gate->observe);
  signals:
    admi_signals_free(gate->signals);
units:
    admi_names_fini(&gate->units);
keys:
    admi_names_fini(&gate->keys);
clock:
    admi_gate_clock_fini(&gate->clock);
locks:
    admi_fork_guard_fini(&gate->fork_guard);
    break_locks(gate);
    return status;
}

static void free_parts(struct adm_gate *gate)
{
    admi_gate_publish_fini(gate);
    admi_call_pool_free(gate);
    admi_threads_free(gate->threads, NULL, NULL);
    admi_observe_free(gate->observe);
    admi_signals_free(gate->signals);
    admi_names_fini(&gate->units);
    admi_names_fini(&gate->keys);
    admi_gate_clock_fini(&gate->clock);
    admi_fork_guard_fini(&gate->fork_guard);
    break_locks(gate);
}

/* The backend is ours in every case, so it is closed in every case that ends without a gate. */
static void close_unbound(const struct adm_backend *backend)
{
    struct admi_bound bound;

    if (admi_backend_bind(backend, &bound) == ADM_OK)
        admi_bound_close(&bound);
}

static void free_gate(struct adm_gate *gate)
{
    const struct adm_allocator allocator = gate->allocator;

    admi_release(&allocator, gate, 1, sizeof *gate);
}

static adm_status make_gate(const struct adm_gate_options *options, struct adm_gate **out)
{
    const struct adm_allocator *allocator = admi_allocator_or_malloc(&options->allocator);
    struct adm_gate *gate = admi_allocate(allocator, 1, sizeof *gate);
    adm_status status = ADM_E_NOMEM;

    if (gate == NULL) {
        close_unbound(&options->backend);
        return status;
    }
    gate->allocator = *allocator;
    take_options(gate, options);
    status = make_parts(gate, options);
    if (status != ADM_OK) {
        close_unbound(&options->backend);
        free_gate(gate);
        return status;
    }
    status = admi_backend_bind(&options->backend, &gate->backend); /* on failure it is closed */
    if (status == ADM_OK && (status = admi_gate_publish_first(gate, options->policy)) != ADM_OK)
        admi_bound_close(&gate->backend);
    if (status != ADM_OK) {
        free_parts(gate);
        free_gate(gate);
        return status;
    }
    *out = gate;
    return ADM_OK;
}

adm_status adm_gate_new(const struct adm_gate_options *options, struct adm_gate **out)
{
    struct adm_gate_options known;
    adm_status status;

    if (options == NULL || out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    status = import_options(options, &known);
    if (status == ADM_OK && admi_inside_callback())
        status = ADM_E_REENTRANT;
    if (status == ADM_OK)
        return make_gate(&known, out);
    if (status != ADM_E_STRUCT_SIZE) /* else there is no telling where the backend would be */
        close_unbound(&options->backend);
    return status;
}

void adm_gate_free(struct adm_gate *gate)
{
    if (gate == NULL || admi_inside_callback())
        return;
    admi_gate_stop_healing(gate);
    admi_bound_close(&gate->backend);
    free_parts(gate);
    free_gate(gate);
}

adm_status adm_gate_key(struct adm_gate *gate, struct adm_bytes key, uint32_t *out)
{
    uint32_t index = 0;
    adm_status status;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    if (key.data == NULL || key.length < 1 || key.length > ADM_MAX_KEY_BYTES)
        return ADM_E_INVALID_DESCRIPTORS;
    ADMI_REFUSE_CHILD(gate);
    status = admi_names_intern(&gate->keys, key, &index);
    if (status == ADM_OK)
        *out = index + 1; /* 0 means: no id, look at the key's bytes */
    return status;
}

static bool legal_unit_name(struct adm_bytes name)
{
    const char *text = name.data;

    if (text == NULL || name.length < 1 || name.length > 64 || text[0] < 'a' || text[0] > 'z')
        return false;
    for (uint64_t i = 1; i < name.length; i++)
        if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
              text[i] == '_'))
            return false;
    return true;
}

adm_status adm_gate_unit(struct adm_gate *gate, struct adm_bytes name, uint32_t *out)
{
    static const char *const built_in[] = { "cost",          "requests", "input_tokens",
                                            "output_tokens", "tokens",   "images" };
    uint32_t index = 0;
    adm_status status;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out == NULL || !legal_unit_name(name))
        return ADM_E_INVALID_ARGUMENT;
    for (uint32_t u = 0; u < sizeof built_in / sizeof built_in[0]; u++)
        if (admi_bytes_equal(adm_str(built_in[u]), name)) {
            *out = u;
            return ADM_OK;
        }
    ADMI_REFUSE_CHILD(gate);
    status = admi_names_intern(&gate->units, name, &index);
    if (status == ADM_OK)
        *out = ADM_UNIT_FIRST_DECLARED + index;
    return status;
}

/* How long a value of a signal may still be asked for: no rule looks back further than a pressure
 * rule's max_age, and health is never older than 15 s. */
static uint64_t longest_age(const struct adm_policy *policy)
{
    uint64_t age_ns = ADMI_HEALTH_AGE_NS;

    for (uint32_t r = 0; r < policy->rule_count; r++) {
        const struct admi_rule *rule = &policy->rules[r];

        if (rule->type != ADMI_PRESSURE)
            continue;
        if (rule->numbers.max_age_ns > age_ns)
            age_ns = rule->numbers.max_age_ns;
        for (uint32_t i = 0; i < rule->override_count; i++)
            if (!rule->overrides[i].off && rule->overrides[i].numbers.max_age_ns > age_ns)
                age_ns = rule->overrides[i].numbers.max_age_ns;
    }
    return age_ns;
}

/* The nearest multiple of 10^-9, ties away from zero, exactly. False: not a number. */
static bool fixed_point(double value, admi_i128 *out)
{
    double magnitude = value < 0 ? -value : value;
    admi_u128 scaled;
    int shift = 0;

    if (!(magnitude <= DBL_MAX)) /* NaN and infinity */
        return false;
    /* Beyond every threshold, and 1024 of them still sum up; missing would let everything pass. */
    if (magnitude > LARGEST_SIGNAL)
        magnitude = LARGEST_SIGNAL;
    /* magnitude = digits * 2^-shift with digits below 2^53 */
    while (magnitude != (double)(uint64_t)magnitude && shift < 1100) {
        magnitude *= 2;
        shift++;
        if (magnitude >= 9007199254740992.0)
            break;
    }
    scaled = (admi_u128)(uint64_t)magnitude * (uint64_t)ADMI_SIGNAL_ONE;
    if (shift > 100)
        scaled = 0; /* far below half of 10^-9 */
    else if (shift > 0)
        scaled = (scaled + ((admi_u128)1 << (shift - 1))) >> shift;
    *out = value < 0 ? -(admi_i128)scaled : (admi_i128)scaled;
    return true;
}

static bool legal_name(struct adm_bytes name)
{
    return name.data != NULL && name.length >= 1 && name.length <= ADM_MAX_VALUE_BYTES;
}

adm_status adm_gate_signal(struct adm_gate *gate, struct adm_bytes scope, struct adm_bytes replica,
                           struct adm_bytes name, double value)
{
    struct admi_gate_thread *thread;
    admi_i128 fixed = 0;
    uint64_t keep_ns;
    bool known = fixed_point(value, &fixed);

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || !legal_name(scope) || !legal_name(replica) || !legal_name(name))
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    thread = admi_gate_thread(gate);
    if (thread == NULL)
        return ADM_E_NOMEM;
    const struct admi_snapshot *snapshot = admi_snapshot_enter(gate, thread);
    keep_ns = longest_age(snapshot->policy);
    admi_snapshot_leave(thread);
    admi_count(admi_observe_local(gate->observe), ADMI_SIGNALS, 1);
    return admi_signals_put(gate->signals, scope, replica, name, fixed, !known,
                            admi_gate_clock_read(&gate->clock).now.mono_ns, keep_ns);
}

adm_status adm_gate_describe(struct adm_gate *gate, struct adm_backend_info *inout)
{
    ADMI_REFUSE_REENTRY();
    if (gate == NULL || inout == NULL)
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    return admi_bound_describe(&gate->backend, inout);
}

adm_status adm_gate_sweep(struct adm_gate *gate, uint64_t budget, uint32_t *out_done)
{
    struct admi_gate_thread *thread;
    struct admi_moment moment;
    struct admi_call *call;
    adm_status status = ADM_E_NOMEM;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL)
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    thread = admi_gate_thread(gate);
    if (thread == NULL || (call = admi_call_get(gate, thread, &status)) == NULL)
        return status;
    call->sweep = (struct adm_sweep){ budget, 0, 0, 0, 0 };
    call->op.kind = ADM_OP_SWEEP;
    call->op.args.sweep = &call->sweep;
    moment = admi_gate_clock_read(&gate->clock);
    if (!admi_call_start(call, thread, &moment, gate->backend_timeout_ns)) {
        if (!gate->backend.defers) {
            admi_call_lose(call);
            return ADM_E_BACKEND_RESULT;
        }
        if (!admi_call_wait(call)) {
            admi_call_let_go(call);
            return ADM_E_BACKEND_UNAVAILABLE;
        }
    }
    status = admi_op_status(&call->op);
    if (status == ADM_OK && out_done != NULL)
        *out_done = call->sweep.done;
    admi_call_put(gate, thread, call);
    return status;
}

adm_status adm_gate_metrics(struct adm_gate *gate, char *buffer, uint64_t buffer_bytes,
                            uint64_t *out_length)
{
    struct admi_gauges gauges = { .info = { .size = sizeof gauges.info } };
    char policy_version[ADM_MAX_VERSION + 8], table_version[72];
    struct admi_gate_thread *thread;
    uint64_t scopes = 0, bytes = 0;

    ADMI_REFUSE_REENTRY();
    if (gate == NULL || out_length == NULL || (buffer == NULL && buffer_bytes > 0))
        return ADM_E_INVALID_ARGUMENT;
    ADMI_REFUSE_CHILD(gate);
    thread = admi_gate_thread(gate);
    if (thread == NULL)
        return ADM_E_NOMEM;
    const struct admi_snapshot *snapshot = admi_snapshot_enter(gate, thread);
    admi_copy(policy_version, snapshot->policy->version, sizeof policy_version);
    admi_copy(table_version, snapshot->table_version, sizeof table_version);
    admi_snapshot_leave(thread);
    gauges.policy_version = policy_version;
    gauges.table_version = table_version;
    gauges.backend = gate->backend.ops.name;
    (void)admi_bound_describe(&gate->backend, &gauges.info);
    admi_signals_size(gate->signals, &scopes, &bytes, &gauges.signals);
    (void)pthread_mutex_lock(&gate->calls);
    gauges.pending = gate->calls_away + atomic_load(&gate->resend_count);
    (void)pthread_mutex_unlock(&gate->calls);
    return admi_observe_expose(gate->observe, &gauges, buffer, buffer_bytes, out_length);
}
