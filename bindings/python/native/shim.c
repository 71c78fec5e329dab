/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the Python binding that is in C. */
#include "shim.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* users counts calls inside, doubled; bit 0 says closed. Whoever brings it to 1 frees the gate. */
struct shim_gate {
    _Atomic uint64_t users;
    struct adm_gate *gate;
    pid_t owner;
    struct adm_fake_random random;
};

#define CLOSED 1u
#define INSIDE 2u

static void free_gate(struct shim_gate *handle)
{
    /* In a forked child the gate belongs to the parent. */
    if (getpid() == handle->owner)
        adm_gate_free(handle->gate);
}

struct adm_gate *shim_enter(struct shim_gate *handle)
{
    uint64_t users = atomic_load(&handle->users);
    do {
        if (users & CLOSED)
            return NULL;
    } while (!atomic_compare_exchange_weak(&handle->users, &users, users + INSIDE));
    return handle->gate;
}

void shim_leave(struct shim_gate *handle)
{
    if (atomic_fetch_sub(&handle->users, INSIDE) == (INSIDE | CLOSED))
        free_gate(handle);
}

void shim_gate_close(struct shim_gate *handle)
{
    if (atomic_fetch_or(&handle->users, CLOSED) == 0)
        free_gate(handle);
}

void shim_gate_free(struct shim_gate *handle)
{
    if (handle == NULL)
        return;
    shim_gate_close(handle);
    /* Whoever is still inside, against the rules, loses memory rather than writing to what is not
     * his any more. */
    if (atomic_load(&handle->users) == CLOSED)
        free(handle);
}

/* One descriptor at *at; false: the bytes end in the middle of it. */
static int32_t unpack_one(const char *packed, uint64_t packed_bytes, uint64_t *at,
                          struct adm_descriptor *out)
{
    const unsigned char *head = (const unsigned char *)packed + *at;
    if (packed_bytes - *at < 3)
        return 0;
    uint64_t key = head[0], value = head[1] | (uint64_t)head[2] << 8;
    *at += 3;
    if (packed_bytes - *at < key + value)
        return 0;
    *out = (struct adm_descriptor){ .key = { packed + *at, key },
                                    .value = { packed + *at + key, value } };
    *at += key + value;
    return 1;
}

/* -1: not what the binding packs. More than out can hold is left to the library to refuse. */
static int64_t unpack(const char *packed, uint64_t packed_bytes, struct adm_descriptor *out,
                      uint64_t room)
{
    uint64_t at = 0;
    int64_t count = 0;
    while (at < packed_bytes && (uint64_t)count < room)
        if (!unpack_one(packed, packed_bytes, &at, &out[count++]))
            return -1;
    return count;
}

static struct adm_bytes attempt_of(const char *attempt, uint64_t attempt_bytes)
{
    return (struct adm_bytes){ attempt_bytes > 0 ? attempt : NULL, attempt_bytes };
}

static int32_t decide(struct shim_gate *handle, const struct adm_request *request,
                      struct adm_decision *decision)
{
    struct adm_gate *gate = shim_enter(handle);
    if (gate == NULL)
        return -SHIM_CLOSED;
    adm_status status = adm_admit(gate, request, decision);
    shim_leave(handle);
    if (status != ADM_OK)
        return status;
    return (int32_t)(offsetof(struct adm_decision, names) + decision->names_used);
}

int32_t shim_admit(struct shim_gate *handle, const char *packed, uint64_t packed_bytes,
                   const struct adm_amount *amounts, uint64_t amount_count, uint64_t cost,
                   const char *attempt, uint64_t attempt_bytes, uint64_t deadline_ns,
                   struct adm_decision *decision)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS + 1];
    int64_t count = unpack(packed, packed_bytes, descriptors, ADM_MAX_DESCRIPTORS + 1);
    if (count < 0)
        return ADM_E_INVALID_DESCRIPTORS;
    struct adm_request request = { .size = sizeof request,
                                   .descriptors = descriptors,
                                   .descriptor_count = (uint64_t)count,
                                   .amounts = amounts,
                                   .amount_count = amount_count,
                                   .cost = cost,
                                   .attempt = attempt_of(attempt, attempt_bytes),
                                   .deadline_ns = deadline_ns };
    return decide(handle, &request, decision);
}

/* With too many keys in use the bytes do as well. */
static adm_status intern(struct adm_gate *gate, struct adm_descriptor *descriptors, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        adm_status status = adm_gate_key(gate, descriptors[i].key, &descriptors[i].key_id);
        if (status != ADM_OK && status != ADM_E_LIMIT)
            return status;
    }
    return ADM_OK;
}

adm_status shim_prepare(struct shim_gate *handle, const char *packed, uint64_t packed_bytes,
                        const struct adm_amount *amounts, uint64_t amount_count, uint64_t cost,
                        struct shim_request *out)
{
    if (packed_bytes > sizeof out->bytes || amount_count > ADM_MAX_AMOUNTS)
        return ADM_E_INVALID_DESCRIPTORS;
    memcpy(out->bytes, packed, packed_bytes);
    int64_t count = unpack(out->bytes, packed_bytes, out->descriptors, ADM_MAX_DESCRIPTORS);
    if (count < 0)
        return ADM_E_INVALID_DESCRIPTORS;
    struct adm_gate *gate = shim_enter(handle);
    if (gate == NULL)
        return -SHIM_CLOSED;
    adm_status status = intern(gate, out->descriptors, count);
    shim_leave(handle);
    if (status != ADM_OK)
        return status;
    if (amount_count > 0)
        memcpy(out->amounts, amounts, amount_count * sizeof *amounts);
    out->request = (struct adm_request){ .size = sizeof out->request,
                                         .descriptors = out->descriptors,
                                         .descriptor_count = (uint64_t)count,
                                         .amounts = out->amounts,
                                         .amount_count = amount_count,
                                         .cost = cost };
    out->handle = handle;
    return ADM_OK;
}

static struct adm_request ask_again(const struct shim_request *prepared, const char *attempt,
                                    uint64_t attempt_bytes, uint64_t deadline_ns)
{
    struct adm_request request = prepared->request;
    request.attempt = attempt_of(attempt, attempt_bytes);
    request.deadline_ns = deadline_ns;
    return request;
}

int32_t shim_ask(const struct shim_request *prepared, struct adm_decision *decision)
{
    return decide(prepared->handle, &prepared->request, decision);
}

int32_t shim_admit_prepared(const struct shim_request *prepared, const char *attempt,
                            uint64_t attempt_bytes, uint64_t deadline_ns,
                            struct adm_decision *decision)
{
    struct adm_request request = ask_again(prepared, attempt, attempt_bytes, deadline_ns);
    return decide(prepared->handle, &request, decision);
}

int32_t shim_release(struct shim_gate *handle, uint64_t high, uint64_t low, uint32_t result)
{
    struct adm_gate *gate = shim_enter(handle);
    if (gate == NULL)
        return -SHIM_CLOSED;
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    adm_status status = adm_release(gate, (struct adm_id){ high, low }, result, &outcome);
    shim_leave(handle);
    return status == ADM_OK ? (int32_t)outcome : status;
}

/* renew and divert look alike. */
static int32_t change(struct shim_gate *handle, struct adm_id lease,
                      adm_status (*call)(struct adm_gate *gate, struct adm_id lease,
                                         uint32_t *out_outcome))
{
    struct adm_gate *gate = shim_enter(handle);
    if (gate == NULL)
        return -SHIM_CLOSED;
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    adm_status status = call(gate, lease, &outcome);
    shim_leave(handle);
    return status == ADM_OK ? (int32_t)outcome : status;
}

int32_t shim_renew(struct shim_gate *handle, uint64_t high, uint64_t low)
{
    return change(handle, (struct adm_id){ high, low }, adm_renew);
}

int32_t shim_divert(struct shim_gate *handle, uint64_t high, uint64_t low)
{
    return change(handle, (struct adm_id){ high, low }, adm_divert);
}

int32_t shim_settle(struct shim_gate *handle, uint64_t high, uint64_t low,
                    const struct adm_amount *totals, uint64_t total_count, uint32_t final_all)
{
    struct adm_gate *gate = shim_enter(handle);
    if (gate == NULL)
        return -SHIM_CLOSED;
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    adm_status status =
        adm_settle(gate, (struct adm_id){ high, low }, totals, total_count, final_all, &outcome);
    shim_leave(handle);
    return status == ADM_OK ? (int32_t)outcome : status;
}

adm_status shim_start(struct adm_gate *gate, struct adm_queue *queue, int32_t operation,
                      uint64_t high, uint64_t low, uint32_t result, const struct adm_amount *totals,
                      uint64_t total_count, uint32_t final_all, uint32_t *out_outcome,
                      uint64_t *out_ticket)
{
    struct adm_id lease = { high, low };
    switch (operation) {
    case SHIM_RELEASE:
        return adm_release_start(gate, queue, lease, result, NULL, out_outcome, out_ticket);
    case SHIM_RENEW:
        return adm_renew_start(gate, queue, lease, NULL, out_outcome, out_ticket);
    case SHIM_DIVERT:
        return adm_divert_start(gate, queue, lease, NULL, out_outcome, out_ticket);
    default:
        return adm_settle_start(gate, queue, lease, totals, total_count, final_all, NULL,
                                out_outcome, out_ticket);
    }
}

adm_status shim_admit_start(struct adm_gate *gate, struct adm_queue *queue, const char *packed,
                            uint64_t packed_bytes, const struct adm_amount *amounts,
                            uint64_t amount_count, uint64_t cost, const char *attempt,
                            uint64_t attempt_bytes, uint64_t deadline_ns,
                            struct adm_decision *decision, uint64_t *out_ticket)
{
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS + 1];
    int64_t count = unpack(packed, packed_bytes, descriptors, ADM_MAX_DESCRIPTORS + 1);
    if (count < 0)
        return ADM_E_INVALID_DESCRIPTORS;
    struct adm_request request = { .size = sizeof request,
                                   .descriptors = descriptors,
                                   .descriptor_count = (uint64_t)count,
                                   .amounts = amounts,
                                   .amount_count = amount_count,
                                   .cost = cost,
                                   .attempt = attempt_of(attempt, attempt_bytes),
                                   .deadline_ns = deadline_ns };
    return adm_admit_start(gate, queue, &request, decision, NULL, out_ticket);
}

adm_status shim_admit_prepared_start(struct adm_gate *gate, struct adm_queue *queue,
                                     const struct shim_request *prepared, const char *attempt,
                                     uint64_t attempt_bytes, uint64_t deadline_ns,
                                     struct adm_decision *decision, uint64_t *out_ticket)
{
    struct adm_request request = ask_again(prepared, attempt, attempt_bytes, deadline_ns);
    return adm_admit_start(gate, queue, &request, decision, NULL, out_ticket);
}

static adm_status open_backend(const struct shim_gate_options *options, struct adm_backend *out)
{
    struct adm_plain_options plain = { .size = sizeof plain,
                                       .partitions_max = options->partitions_max,
                                       .leases_max = options->leases_max,
                                       .attempts_max = options->attempts_max,
                                       .classes_max = options->classes_max };
    adm_status status = adm_plain_open(&plain, out);
    if (status != ADM_OK || !options->deferring)
        return status;
    struct adm_deferring_options late = { .size = sizeof late,
                                          .polls_min = options->polls_min,
                                          .polls_max = options->polls_max,
                                          .never_permille = options->never_permille,
                                          .seed = options->seed };
    struct adm_backend inner = *out;
    status = adm_deferring_open(&late, inner, out);
    if (status != ADM_OK)
        inner.ops->close(inner.self);
    return status;
}

adm_status shim_gate_new(const struct shim_gate_options *options,
                         void (*on_event)(void *self, const struct adm_event *event),
                         struct shim_gate **out)
{
    struct shim_gate *handle = calloc(1, sizeof *handle);
    if (handle == NULL)
        return ADM_E_NOMEM;
    struct adm_gate_options gate = {
        .size = sizeof gate,
        .policy = options->policy,
        .name_space = { options->name_space, options->name_space_bytes },
        .backend_timeout_ns = options->backend_timeout_ns,
        .signals_max = options->signals_max,
        .pending_max = options->pending_max,
    };
    adm_status status = open_backend(options, &gate.backend);
    if (status != ADM_OK) {
        free(handle);
        return status;
    }
    if (options->events) {
        gate.on_event = on_event;
        gate.on_event_self = options->self;
    }
    if (options->clock != NULL)
        gate.clock = adm_fake_clock_as_clock(options->clock);
    if (options->seed != 0) {
        handle->random.state = options->seed;
        gate.random = adm_fake_random_as_random(&handle->random);
    }
    handle->owner = getpid();
    status = adm_gate_new(&gate, &handle->gate);
    if (status != ADM_OK)
        free(handle);
    else
        *out = handle;
    return status;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t shim_measure_pairs(const struct shim_request *request, uint64_t rounds)
{
    struct adm_decision decision = { .size = sizeof decision };
    struct adm_gate *gate = request->handle->gate; /* the caller keeps it open */
    uint64_t from = now_ns();
    for (uint64_t i = 0; i < rounds; i++) {
        if (adm_admit(gate, &request->request, &decision) != ADM_OK ||
            decision.verdict != ADM_VERDICT_ALLOW)
            return 0;
        adm_release(gate, decision.lease, ADM_RESULT_OK, NULL);
    }
    return now_ns() - from;
}

uint64_t shim_measure_decisions(const struct shim_request *request, uint64_t rounds)
{
    struct adm_decision decision = { .size = sizeof decision };
    struct adm_gate *gate = request->handle->gate;
    struct adm_id *leases = calloc(rounds, sizeof *leases);
    uint64_t taken = 0;
    if (leases == NULL)
        return 0;
    uint64_t from = now_ns();
    for (; taken < rounds; taken++) {
        if (adm_admit(gate, &request->request, &decision) != ADM_OK ||
            decision.verdict != ADM_VERDICT_ALLOW)
            break;
        leases[taken] = decision.lease;
    }
    uint64_t ns = now_ns() - from;
    for (uint64_t i = 0; i < taken; i++)
        adm_release(gate, leases[i], ADM_RESULT_OK, NULL);
    free(leases);
    return taken == rounds ? ns : 0;
}
