/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a run that showed a difference as small as it gets. */
#ifndef ADMIT_MODEL_SHRINK_H
#define ADMIT_MODEL_SHRINK_H

#include "player.h"

/* Prints the smallest case found: the policies that are left, the operations, both answers. */
void shrink(const struct run *run, struct model *model, enum model_plant plant, int replays_max);

#endif
