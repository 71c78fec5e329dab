/* SPDX-License-Identifier: Apache-2.0 */
/* The memory backend in the sizes that the contract suite asks for. */
#ifndef TESTS_CONTRACT_MEMORY_H
#define TESTS_CONTRACT_MEMORY_H

#include <admit/backends.h>
#include <admit/testing.h>

static inline adm_status open_memory(void *user, const struct adm_contract_sizes *sizes,
                                     struct adm_backend *out)
{
    struct adm_memory_options options = { .size = sizeof options };

    (void)user;
    options.partitions_max = sizes->partitions;
    options.leases_max = sizes->leases;
    options.attempts_max = sizes->attempts;
    options.classes_max = sizes->classes;
    return adm_memory_open(&options, out);
}

#endif
