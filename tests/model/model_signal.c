/* SPDX-License-Identifier: Apache-2.0 */
/* The model's signals: exact fixed point, the mean over fresh healthy replicas, replica counts. */
#include "model_state.h"

#include <math.h>

#define E9 ((model_wide)1000000000)

/* To the nearest 10^-9, ties away from zero, from the bits of the double: no rounding but this
 * one. */
static model_wide fixed_point(double value)
{
    int exponent;
    double mantissa = frexp(fabs(value), &exponent); /* [0.5, 1) */
    model_wide whole = (model_wide)ldexp(mantissa, 53);
    model_wide result;
    exponent -= 53;
    if (exponent >= 0)
        result =
            exponent > 20 ? ((model_wide)1 << 73) * E9 : whole * ((model_wide)1 << exponent) * E9;
    else if (exponent < -110)
        result = 0;
    else
        result = (whole * E9 + ((model_wide)1 << (-exponent - 1))) >> -exponent;
    return value < 0 ? -result : result;
}

void model_signal(struct model *model, struct adm_time now, int scope, int replica, int name,
                  double value)
{
    model_clock(model, now);
    struct model_signal_value *s = NULL;
    for (int i = 0; i < model->signal_count; i++)
        if (model->signals[i].scope == scope && model->signals[i].replica == replica &&
            model->signals[i].name == name)
            s = &model->signals[i];
    if (s == NULL)
        s = MODEL_APPEND(model->signals, model->signal_count, model->signal_room);
    *s = (struct model_signal_value){
        .scope = scope, .replica = replica, .name = name, .at = model->seen
    };
    s->missing = !isfinite(value);
    s->value_e9 = s->missing ? 0 : fixed_point(value);
}

static bool fresh(const struct model *model, const struct model_signal_value *s, model_wide age)
{
    if (planted(model, PLANT_STALE_REPLICA))
        return model->seen - s->at <= age;
    return model->seen - s->at < age;
}

static bool healthy(const struct model *model, const struct model_signal_value *s)
{
    return s->name == model->healthy && !s->missing && s->value_e9 == E9 &&
           fresh(model, s, MODEL_SIGNAL_AGE);
}

uint64_t model_replicas(const struct model *model, int scope)
{
    uint64_t n = 0;
    for (int i = 0; i < model->signal_count; i++)
        if (model->signals[i].scope == scope && healthy(model, &model->signals[i]))
            n++;
    return n == 0 ? 1 : n;
}

/* Whether the scope knows healths at all, and whether this replica is healthy. */
static void health_of(const struct model *model, int scope, int replica, bool *known, bool *well)
{
    *known = *well = false;
    for (int i = 0; i < model->signal_count; i++) {
        const struct model_signal_value *s = &model->signals[i];
        if (s->scope != scope || s->name != model->healthy)
            continue;
        *known = true;
        if (s->replica == replica && healthy(model, s))
            *well = true;
    }
}

/* Whether the mean breaches the threshold. Nothing to go by: it does not. */
bool model_pressed(const struct model *model, const struct model_rule *rule,
                   const struct model_numbers *n, int scope)
{
    model_wide sum = 0;
    model_wide count = 0;
    model_wide age = n->age_ns != 0 ? (model_wide)n->age_ns : MODEL_SIGNAL_AGE;
    for (int i = 0; i < model->signal_count; i++) {
        const struct model_signal_value *s = &model->signals[i];
        bool known;
        bool well;
        if (s->scope != scope || s->name != rule->signal || s->missing || !fresh(model, s, age))
            continue;
        health_of(model, scope, s->replica, &known, &well);
        if (known && !well)
            continue;
        sum += s->value_e9;
        count++;
    }
    if (count == 0)
        return false;
    /* mean against threshold, both times count and 10^18; a threshold is at most 10^12, a sum
     * below 2^114 */
    model_wide whole = (model_wide)n->threshold_whole * count * E9; /* in 10^-9 */
    model_wide part = (model_wide)n->threshold_e18 * count;         /* in 10^-18 */
    model_wide left = sum - whole;
    int order; /* of the mean against the threshold */
    if (left > part / E9 + 1)
        order = 1;
    else if (left < part / E9 - 1)
        order = -1;
    else
        order = left * E9 > part ? 1 : left * E9 < part ? -1 : 0;
    if (planted(model, PLANT_PRESSURE_EQUAL) && order == 0)
        return n->comparison == MODEL_GT || n->comparison == MODEL_LT;
    switch (n->comparison) {
    case MODEL_GT:
        return order > 0;
    case MODEL_GTE:
        return order >= 0;
    case MODEL_LT:
        return order < 0;
    case MODEL_LTE:
        return order <= 0;
    }
    return false;
}
