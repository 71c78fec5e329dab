/* SPDX-License-Identifier: Apache-2.0 */
/* The model's counts: units held by live leases, quotas used, limits in force. */
#include "model_state.h"

uint64_t model_held(struct model *model, int region, int identity, int partition)
{
    uint64_t held = 0;
    for (int i = 0; i < model->holding_count;) {
        struct model_lease *l = &model->leases[model->holding[i]];
        model_wide now = planted(model, PLANT_EXPIRY_LATE) ? model->seen - 1 : model->seen;
        bool live = l->kept && !l->closed && !l->diverted && now < l->expires;
        bool dark = l->dark_live && now < l->dark_expires;
        if (!live && !dark) { /* no operation makes it live again */
            model->holding[i] = model->holding[--model->holding_count];
            continue;
        }
        for (int j = 0; region == MODEL_LIVE && live && j < l->item_count; j++)
            if (l->items[j].identity == identity && l->items[j].partition == partition)
                held += l->items[j].held;
        for (int j = 0; region == MODEL_DARK && dark && j < l->dark_count; j++)
            if (l->dark[j].identity == identity && l->dark[j].partition == partition)
                held += l->dark[j].held;
        i++;
    }
    return held;
}

static struct model_count *find_count(const struct model *model, int identity, int partition)
{
    for (int i = 0; i < model->count_count; i++)
        if (model->counts[i].identity == identity && model->counts[i].partition == partition)
            return &model->counts[i];
    return NULL;
}

/* What a quota counts at this operation's wall time. The window of the word does not go back
 * while the wall clock is less than the skew before its begin; further back, the word counts in
 * the earlier window and carries what is used. */
struct model_usage model_used(const struct model *model, int identity, int partition, uint32_t kind)
{
    model_wide begin;
    struct model_usage u = { 0 };
    const struct model_count *word = find_count(model, identity, partition);
    u.window = model_window(model, kind, model->wall, &begin, &u.end);
    if (word == NULL || word->used == 0 || word->window < u.window) /* as new */
        return u;
    u.used = word->used;
    if (word->window > u.window) {
        model_wide end;
        u.ahead = true;
        model_window_of(model, kind, word->window, &begin, &end);
        u.end = end; /* then what is used is forgotten, if nothing more is charged */
        if (begin - model->wall <= (model_wide)model->policy->skew_ns) {
            u.window = word->window;
            u.ahead = false;
        }
    }
    return u;
}

void model_use(struct model *model, int identity, int partition, uint64_t window, uint64_t used)
{
    struct model_count *word = find_count(model, identity, partition);
    if (word == NULL)
        word = MODEL_APPEND(model->counts, model->count_count, model->count_room);
    *word = (struct model_count){ identity, partition, window,
                                  used > MODEL_QUOTA_MAX ? MODEL_QUOTA_MAX : used };
}

/* A concurrency limit: scaled by replicas, saturated, then the fraction of it, floored, but at
 * least 1. */
uint64_t model_limit(const struct model *model, const struct model_rule *rule,
                     const struct model_numbers *n, const struct model_request *request)
{
    model_wide limit = (model_wide)n->limit;
    if (rule->per_replica)
        limit *= (model_wide)model_replicas(model, model_value(request, rule->scope));
    if (limit > (model_wide)ADM_MAX_AMOUNT)
        limit = (model_wide)ADM_MAX_AMOUNT;
    if ((n->given & MODEL_GIVEN_FRACTION) && limit > 0) {
        model_wide e18 = MODEL_E18;
        model_wide part = limit * (model_wide)n->fraction_e18;
        limit = planted(model, PLANT_FRACTION_UP) ? (part + e18 - 1) / e18 : part / e18;
        if (limit < 1)
            limit = 1;
    }
    return (uint64_t)limit;
}
