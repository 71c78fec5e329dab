/* SPDX-License-Identifier: Apache-2.0 */
/* The model as a whole: its memory, its start, the names of its planted faults. */
#include "model_state.h"

#include <stdlib.h>

const char *const model_plant_names[PLANT_COUNT] = {
    [PLANT_NONE] = "none",
    [PLANT_CAPACITY_EXCLUSIVE] = "capacity-exclusive",
    [PLANT_OVERFULL] = "overfull",
    [PLANT_EXPIRY_LATE] = "expiry-late",
    [PLANT_WINDOW_OFF] = "window-off",
    [PLANT_MONTH_OF_30] = "month-of-30",
    [PLANT_LOST_FRACTION] = "lost-fraction",
    [PLANT_SETTLE_TWICE] = "settle-twice",
    [PLANT_SHADOW_TOUCHES] = "shadow-touches",
    [PLANT_PRECEDENCE] = "precedence",
    [PLANT_RETRY_LATE] = "retry-late",
    [PLANT_RAISE_ADDS] = "raise-adds",
    [PLANT_COMPLETION_ABOVE_CAPACITY] = "completion-above-capacity",
    [PLANT_DENIED_CHARGES] = "denied-charges",
    [PLANT_ATTEMPT_SHORT] = "attempt-short",
    [PLANT_LATE_SETTLE_LOST] = "late-settle-lost",
    [PLANT_DIVERT_CHARGES] = "divert-charges",
    [PLANT_RENEW_FROM_END] = "renew-from-end",
    [PLANT_PRESSURE_EQUAL] = "pressure-equal",
    [PLANT_STALE_REPLICA] = "stale-replica",
    [PLANT_CLOCK_MINTS] = "clock-mints",
    [PLANT_PARTITIONS_PLUS_ONE] = "partitions-plus-one",
    [PLANT_FRACTION_UP] = "fraction-up",
    [PLANT_ROLLBACK_REORDERS] = "rollback-reorders",
    [PLANT_RELEASE_KEEPS] = "release-keeps",
    [PLANT_TABLE_AFTER_OVERRIDE] = "table-after-override",
};

void *model_more(void *array, int count, int *room, size_t bytes)
{
    if (count < *room)
        return array;
    *room = *room == 0 ? 16 : *room * 2;
    array = realloc(array, (size_t)*room * bytes);
    if (array == NULL)
        abort();
    return array;
}

struct model *model_new(void)
{
    struct model *model = calloc(1, sizeof *model);
    if (model == NULL)
        abort();
    return model;
}

void model_free(struct model *model)
{
    if (model == NULL)
        return;
    free(model->identities);
    free(model->classes);
    free(model->partitions);
    free(model->buckets);
    free(model->counts);
    free(model->leases);
    free(model->holding);
    free(model->attempts);
    free(model->signals);
    free(model);
}

/* Keeps the arrays of an earlier run, emptied. */
void model_start(struct model *model, const struct model_policy *policy, struct adm_time now,
                 enum model_plant plant)
{
    struct model fresh = {
        .plant = plant,
        .healthy = model_word_of("healthy"),
        .policy = policy,
        .history_count = 1,
        .identities = model->identities,
        .identity_room = model->identity_room,
        .classes = model->classes,
        .class_room = model->class_room,
        .partitions = model->partitions,
        .partition_room = model->partition_room,
        .buckets = model->buckets,
        .bucket_room = model->bucket_room,
        .counts = model->counts,
        .count_room = model->count_room,
        .leases = model->leases,
        .lease_room = model->lease_room,
        .holding = model->holding,
        .holding_room = model->holding_room,
        .attempts = model->attempts,
        .attempt_room = model->attempt_room,
        .signals = model->signals,
        .signal_room = model->signal_room,
    };
    fresh.history[0] = policy;
    *model = fresh;
    model_clock(model, now);
    model_refresh(model);
}
