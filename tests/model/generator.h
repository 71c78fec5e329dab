/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the generator share. */
#ifndef ADMIT_MODEL_GENERATOR_H
#define ADMIT_MODEL_GENERATOR_H

#include "model_state.h"
#include "run.h"

#define GENERATOR_RECENT 64

struct generator {
    struct chance chance;
    struct run *run;
    const struct model *model;
    struct adm_time now;
    uint64_t forward; /* how far the monotonic clock has come in all: at most 100 years */
    int recent[GENERATOR_RECENT]; /* admits that gave a lease, a ring */
    int recent_count;
    int leases[GENERATOR_RECENT]; /* their numbers in the model */
    struct adm_time asked;        /* when the last delay was told */
    uint64_t delay_ms;
    int versions;
    struct model_request known[8]; /* contents of attempts */
};

/* The clocks move, or not, before the next operation (generate_time.c). */
void generator_step(struct generator *generator);

#endif
