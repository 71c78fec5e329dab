/* SPDX-License-Identifier: Apache-2.0 */
/* A gate whose clock and randomness belong to the command: what test, explain and replay run on. */
#ifndef CLI_LAB_H
#define CLI_LAB_H

#include <admit/admit.h>
#include <admit/testing.h>

#include <stdbool.h>

enum lab_backend { LAB_MEMORY, LAB_PLAIN, LAB_DEFERRING }; /* the first is the default */
extern const char *const lab_backend_names[]; /* ends with NULL */

struct lab_options {
    enum lab_backend backend;
    uint64_t seed;
    uint64_t start_ns; /* both clocks when the gate is created */
    uint64_t partitions_max, leases_max, attempts_max, classes_max; /* 0: the backend's default */
};

struct lab {
    struct adm_gate *gate;
    struct adm_fake_clock clock;
    struct adm_fake_random random;
};

/* The gate takes its own reference of the policy. The lab must not move afterwards: the gate
 * holds pointers into it. */
adm_status lab_open(struct lab *lab, const struct lab_options *options, struct adm_policy *policy);
void lab_close(struct lab *lab);

/* Both clocks to exactly this moment, also backwards. */
void lab_at(struct lab *lab, uint64_t ns);

#endif
