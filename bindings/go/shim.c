/* SPDX-License-Identifier: Apache-2.0 */
/* What Go cannot say to the library itself; nothing here keeps a pointer to Go memory. */
//go:build cgo

#include "shim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

adm_status admit_go_unit(struct adm_gate *gate, const uint8_t *name, uint64_t length, uint32_t *out)
{
    return adm_gate_unit(gate, view(name, length), out);
}

/* ---- requests ---- */

struct admit_go_call *admit_go_call_new(void)
{
    struct admit_go_call *call = calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    for (size_t i = 0; i < ADM_MAX_DESCRIPTORS; i++) {
        call->descriptors[i].key.data = call->texts[i].key;
        call->descriptors[i].value.data = call->texts[i].value;
    }
    call->request.size = sizeof call->request;
    call->request.descriptors = call->descriptors;
    call->request.amounts = call->amounts;
    call->decision.size = sizeof call->decision;
    return call;
}

void admit_go_call_free(struct admit_go_call *call)
{
    free(call);
}

/* NULL says that there is no attempt id. */
static void point_at_attempt(struct admit_go_call *call)
{
    call->request.attempt.data = call->request.attempt.length > 0 ? call->attempt : NULL;
}

void admit_go_admit(uintptr_t number)
{
    struct admit_go_call *call = (struct admit_go_call *)number;

    point_at_attempt(call);
    call->status = adm_admit(call->gate, &call->request, &call->decision);
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
    return adm_settle(gate, id_of(high, low), call->amounts, call->request.amount_count, final_all,
                      out_outcome);
}

uint64_t admit_go_release(uintptr_t gate, uint64_t high, uint64_t low, uint32_t result)
{
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    adm_status status = adm_release((struct adm_gate *)gate, id_of(high, low), result, &outcome);

    return (uint64_t)(uint32_t)status << 32 | outcome;
}

adm_status admit_go_renew(struct adm_gate *gate, uint64_t high, uint64_t low, uint32_t *out_outcome)
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

adm_status admit_go_explain(struct admit_go_call *call, struct admit_go_reports *out)
{
    adm_status status;

    point_at_attempt(call);
    status = adm_explain(call->gate, &call->request, add_report, out, &call->decision);
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

adm_status admit_go_read(const uint8_t *rule, uint64_t length, const struct admit_go_call *call,
                         int64_t *out)
{
    return adm_gate_read(call->gate, view(rule, length), call->descriptors,
                         call->request.descriptor_count, out);
}

/* ---- for the benchmark ---- */

static uint64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t admit_go_loop(struct admit_go_call *call, uint64_t count, uint32_t pairs, uint64_t *out_ns)
{
    uint64_t failed = 0, start = nanoseconds();

    for (uint64_t i = 0; i < count; i++) {
        uint32_t outcome = ADM_OUTCOME_RELEASED;

        if (adm_admit(call->gate, &call->request, &call->decision) != ADM_OK ||
            call->decision.verdict != ADM_VERDICT_ALLOW ||
            (pairs != 0 &&
             adm_release(call->gate, call->decision.lease, ADM_RESULT_OK, &outcome) != ADM_OK) ||
            outcome != ADM_OUTCOME_RELEASED)
            failed++;
    }
    *out_ns = nanoseconds() - start;
    return failed;
}

void admit_go_nothing(uintptr_t call)
{
    (void)call;
}
