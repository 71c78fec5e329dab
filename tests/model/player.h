/* SPDX-License-Identifier: Apache-2.0 */
/* Plays the operations of a run on a real gate and on the model at once, and compares every
 * answer. */
#ifndef ADMIT_MODEL_PLAYER_H
#define ADMIT_MODEL_PLAYER_H

#include <admit/testing.h>

#include "run.h"

/* How often each thing was seen, so that one knows that everything was exercised. */
struct tally {
    uint64_t operations[OPERATION_KINDS];
    uint64_t reasons[ADM_REASON_COUNT];
    uint64_t outcomes[ADM_OUTCOME_COUNT];
    uint64_t invalid, repeated, shadow_denied, shadow_unknown, published, refused, levels;
};

/* What to leave out, for shrinking; NULL: nothing. */
struct omissions {
    const bool *operations; /* by number: true is left out */
    const bool *rules;      /* by word: true is left out of every policy and table */
};

struct player;

/* A new gate and the model begun anew; NULL when the first policy is not loadable under the
 * omissions. */
struct player *player_new(const struct run *run, struct model *model, enum model_plant plant,
                          const struct omissions *omissions, struct tally *tally);
void player_free(struct player *player);

/* Plays one operation. False: the answers differ; both are then in player_difference(). */
bool player_play(struct player *player, int number);
const char *player_difference(const struct player *player);
/* The model's answer to the last admit; NULL when the last operation was none. */
const struct model_answer *player_answer(const struct player *player);

/* Policies as this player sees them, after the omissions. */
const struct model_policy *player_policy(struct player *player, int number);

#endif
