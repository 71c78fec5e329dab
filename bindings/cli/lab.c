/* SPDX-License-Identifier: Apache-2.0 */
/* A gate on a fake clock, fake randomness and a backend that the command chose. */
#include "lab.h"

#include <admit/backends.h>

const char *const lab_backend_names[] = { "memory", "plain", "deferring", NULL };

/* Wraps the inner backend; on failure the inner one is closed. */
static adm_status defer(const struct lab_options *options, struct adm_backend *backend)
{
    struct adm_deferring_options deferring = {
        .size = sizeof deferring,
        .flags = ADM_DEFER_OUT_OF_ORDER,
        .polls_min = 0,
        .polls_max = 3,
        .seed = options->seed + 1,
    };
    struct adm_backend inner = *backend;
    adm_status status = adm_deferring_open(&deferring, inner, backend);

    if (status != ADM_OK)
        inner.ops->close(inner.self);
    return status;
}

static adm_status open_backend(const struct lab_options *options, const struct adm_random *random,
                               struct adm_backend *out)
{
    struct adm_plain_options plain = {
        .size = sizeof plain,
        .partitions_max = options->partitions_max,
        .leases_max = options->leases_max,
        .attempts_max = options->attempts_max,
        .classes_max = options->classes_max,
        .random = random, /* lease ids too: the same seed, the same output */
    };
    struct adm_memory_options memory = {
        .size = sizeof memory,
        .partitions_max = options->partitions_max,
        .leases_max = options->leases_max,
        .attempts_max = options->attempts_max,
        .classes_max = options->classes_max,
        .random = random,
    };
    adm_status status;

    if (options->backend == LAB_MEMORY)
        return adm_memory_open(&memory, out);
    status = adm_plain_open(&plain, out);
    if (status == ADM_OK && options->backend == LAB_DEFERRING)
        status = defer(options, out);
    return status;
}

adm_status lab_open(struct lab *lab, const struct lab_options *options, struct adm_policy *policy)
{
    struct adm_gate_options gate = { .size = sizeof gate };

    *lab = (struct lab){ .random = { .state = options->seed } };
    const struct adm_random random = adm_fake_random_as_random(&lab->random);
    lab_at(lab, options->start_ns);
    adm_status status = open_backend(options, &random, &gate.backend);
    if (status != ADM_OK)
        return status;
    gate.policy = policy;
    gate.clock = adm_fake_clock_as_clock(&lab->clock);
    gate.random = random;
    return adm_gate_new(&gate, &lab->gate);
}

void lab_close(struct lab *lab)
{
    adm_gate_free(lab->gate);
    lab->gate = NULL;
}

void lab_at(struct lab *lab, uint64_t ns)
{
    lab->clock.time = (struct adm_time){ .mono_ns = ns, .wall_ns = ns };
}
