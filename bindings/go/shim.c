/* SPDX-License-Identifier: Apache-2.0 */
/* Flat blocks from Go become the library's structs; nothing here keeps a pointer to Go memory. */
//go:build cgo

#include "shim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Written in Go (events.go). */
void admitGoEvent(uint64_t handle, struct adm_event *event);

static struct adm_bytes view(const uint8_t *data, uint64_t length)
{
    return (struct adm_bytes){ .data = data, .length = length };
}

/* ---- a clock that is moved by hand ---- */

struct admit_go_clock {
    _Atomic uint64_t mono_ns, wall_ns;
};

struct admit_go_clock *admit_go_clock_new(uint64_t mono_ns, uint64_t wall_ns)
{
    struct admit_go_clock *clock = calloc(1, sizeof *clock);

    if (clock != NULL)
        admit_go_clock_set(clock, mono_ns, wall_ns);
    return clock;
}

void admit_go_clock_free(struct admit_go_clock *clock)
{
    free(clock);
}

void admit_go_clock_set(struct admit_go_clock *clock, uint64_t mono_ns, uint64_t wall_ns)
{
    atomic_store(&clock->wall_ns, wall_ns);
    atomic_store(&clock->mono_ns, mono_ns);
}

static void clock_now(void *self, struct adm_time *out)
{
    struct admit_go_clock *clock = self;

    out->mono_ns = atomic_load(&clock->mono_ns);
    out->wall_ns = atomic_load(&clock->wall_ns);
}

/* ---- policies and gates ---- */

adm_status admit_go_policy_load(const uint8_t *text, uint64_t length, const char *file,
                                uint32_t flags, struct adm_policy **out,
                                struct adm_diags **out_diags)
{
    const struct adm_policy_options options = {
        .size = sizeof options,
        .flags = flags,
        .file = file,
    };

    return adm_policy_load(view(text, length), &options, out, out_diags);
}

/* The library keeps the handle as a pointer that it never follows. */
static void on_event(void *self, const struct adm_event *event)
{
    struct adm_event copy = *event;

    admitGoEvent((uint64_t)(uintptr_t)self, &copy);
}

adm_status admit_go_new(const struct admit_go_options *options, const uint8_t *name_space,
                        uint64_t length, struct adm_gate **out)
{
    struct adm_gate_options gate = {
        .size = sizeof gate,
        .policy = options->policy,
        .name_space = view(name_space, length),
        .backend = options->backend,
        .backend_timeout_ns = options->backend_timeout_ns,
        .signals_max = options->signals_max,
        .pending_max = options->pending_max,
    };

    if (gate.backend.ops == NULL) {
        const struct adm_plain_options plain = {
            .size = sizeof plain,
            .partitions_max = options->partitions_max,
            .leases_max = options->leases_max,
            .attempts_max = options->attempts_max,
            .classes_max = options->classes_max,
        };
        adm_status status = adm_plain_open(&plain, &gate.backend);

        if (status != ADM_OK)
            return status;
    }
    if (options->clock != NULL)
        gate.clock = (struct adm_clock){ .self = options->clock, .now = clock_now };
    if (options->events != 0) {
        gate.on_event = on_event;
        gate.on_event_self = (void *)(uintptr_t)options->events;
    }
    return adm_gate_new(&gate, out);
}

adm_status admit_go_key(struct adm_gate *gate, const uint8_t *key, uint64_t length, uint32_t *out)
{
    return adm_gate_key(gate, view(key, length), out);
}

adm_status admit_go_unit(struct adm_gate *gate, const uint8_t *name, uint64_t length,
                         uint32_t *out)
{
    return adm_gate_unit(gate, view(name, length), out);
}

/* ---- requests ---- */

/* Returns what comes after the descriptors. */
static const uint8_t *unfold(const struct admit_go_call *call, struct adm_descriptor *out)
{
    const uint8_t *at = call->bytes;

    for (uint32_t i = 0; i < call->descriptor_count; i++) {
        const struct admit_go_descriptor *from = &call->descriptors[i];

        out[i].key = view(at, from->key_length);
        at += from->key_length;
        out[i].value = view(at, from->value_length);
        at += from->value_length;
        out[i].key_id = from->key_id;
        out[i].reserved0 = 0;
    }
    return at;
}

static struct adm_request request_of(const struct admit_go_call *call,
                                     struct adm_descriptor *descriptors)
{
    const uint8_t *attempt = unfold(call, descriptors);

    return (struct adm_request){
        .size = sizeof(struct adm_request),
        .descriptors = descriptors,
        .descriptor_count = call->descriptor_count,
        .amounts = call->amounts,
        .amount_count = call->amount_count,
        .cost = call->cost,
        .attempt = view(call->attempt_length > 0 ? attempt : NULL, call->attempt_length),
        .deadline_ns = call->deadline_ns,
    };
}

adm_status admit_go_admit(struct adm_gate *gate, struct admit_go_call *call)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    const struct adm_request request = request_of(call, descriptors);

    call->decision.size = sizeof call->decision;
    return adm_admit(gate, &request, &call->decision);
}

uint64_t admit_go_pairs(struct adm_gate *gate, struct admit_go_call *call, uint64_t pairs)
{
    uint64_t failed = 0;

    for (uint64_t i = 0; i < pairs; i++) {
        uint32_t outcome = ADM_OUTCOME_UNKNOWN;

        if (admit_go_admit(gate, call) != ADM_OK || call->decision.verdict != ADM_VERDICT_ALLOW ||
            adm_release(gate, call->decision.lease, ADM_RESULT_OK, &outcome) != ADM_OK ||
            outcome != ADM_OUTCOME_RELEASED)
            failed++;
    }
    return failed;
}

/* ---- leases ---- */

static struct adm_id id_of(uint64_t high, uint64_t low)
{
    return (struct adm_id){ .high = high, .low = low };
}

adm_status admit_go_settle(struct adm_gate *gate, uint64_t high, uint64_t low,
                           const struct admit_go_call *call, uint32_t final_all,
                           uint32_t *out_outcome)
{
    return adm_settle(gate, id_of(high, low), call->amounts, call->amount_count, final_all,
                      out_outcome);
}

uint64_t admit_go_release(struct adm_gate *gate, uint64_t high, uint64_t low, uint32_t result)
{
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    adm_status status = adm_release(gate, id_of(high, low), result, &outcome);

    return (uint64_t)(uint32_t)status << 32 | outcome;
}

adm_status admit_go_renew(struct adm_gate *gate, uint64_t high, uint64_t low,
                          uint32_t *out_outcome)
{
    return adm_renew(gate, id_of(high, low), out_outcome);
}

adm_status admit_go_divert(struct adm_gate *gate, uint64_t high, uint64_t low,
                           uint32_t *out_outcome)
{
    return adm_divert(gate, id_of(high, low), out_outcome);
}

/* ---- explanations ---- */

/* Room for one more of size bytes each; false: no memory, what was there is still there. */
static int grow(void **memory, uint64_t *room, uint64_t needed, uint64_t size)
{
    if (needed <= *room)
        return 1;
    uint64_t wanted = *room * 2 > needed ? *room * 2 : needed;
    void *larger = realloc(*memory, wanted * size);

    if (larger == NULL)
        return 0;
    *memory = larger;
    *room = wanted;
    return 1;
}

static void append(struct admit_go_reports *reports, struct adm_bytes text, uint32_t *out_length)
{
    void *memory = reports->text;

    if (!grow(&memory, &reports->text_room, reports->length + text.length, 1)) {
        reports->failed = 1;
        return;
    }
    reports->text = memory;
    if (text.length > 0)
        memcpy(reports->text + reports->length, text.data, text.length);
    reports->length += text.length;
    *out_length = (uint32_t)text.length;
}

static void add_report(void *self, const struct adm_rule_report *report)
{
    struct admit_go_reports *reports = self;
    void *memory = reports->list;
    struct admit_go_report *to;

    if (!grow(&memory, &reports->room, reports->count + 1, sizeof *reports->list)) {
        reports->failed = 1;
        return;
    }
    reports->list = memory;
    to = &reports->list[reports->count++];
    *to = (struct admit_go_report){
        .matched = report->matched,
        .off = report->off,
        .shadow = report->shadow,
        .denies = report->denies,
        .reason = report->reason,
        .stateful = report->stateful,
        .has_amount = report->has_amount,
        .level = report->level,
        .limit = report->limit,
        .amount = report->amount,
        .replicas = report->replicas,
        .retry_after_ms = report->retry_after_ms,
    };
    const struct adm_bytes texts[] = {
        adm_str(report->rule),   adm_str(report->type), adm_str(report->unit),
        adm_str(report->origin), report->mismatch,      report->entry,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        append(reports, texts[i], &to->lengths[i]);
}

adm_status admit_go_explain(struct adm_gate *gate, struct admit_go_call *call,
                            struct admit_go_reports *out)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];
    const struct adm_request request = request_of(call, descriptors);

    call->decision.size = sizeof call->decision;
    adm_status status = adm_explain(gate, &request, add_report, out, &call->decision);
    return status == ADM_OK && out->failed != 0 ? ADM_E_NOMEM : status;
}

void admit_go_reports_free(struct admit_go_reports *reports)
{
    free(reports->list);
    free(reports->text);
}

/* ---- the rest ---- */

adm_status admit_go_signal(struct adm_gate *gate, const uint8_t *scope, uint64_t scope_length,
                           const uint8_t *replica, uint64_t replica_length, const uint8_t *name,
                           uint64_t name_length, double value)
{
    return adm_gate_signal(gate, view(scope, scope_length), view(replica, replica_length),
                           view(name, name_length), value);
}

adm_status admit_go_rollback(struct adm_gate *gate, const uint8_t *version, uint64_t length)
{
    return adm_gate_rollback(gate, view(version, length));
}

adm_status admit_go_put_table(struct adm_gate *gate, const uint8_t *text, uint64_t length,
                              uint32_t mode, struct adm_diags **out_diags)
{
    return adm_gate_put_table(gate, view(text, length), mode, out_diags);
}

adm_status admit_go_read(struct adm_gate *gate, const uint8_t *rule, uint64_t length,
                         const struct admit_go_call *call, int64_t *out)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS];

    (void)unfold(call, descriptors);
    return adm_gate_read(gate, view(rule, length), descriptors, call->descriptor_count, out);
}
