/* SPDX-License-Identifier: Apache-2.0 */
/* How time passes in a run: mostly not at all, often to a boundary, sometimes back, sometimes by
 * years. */
#include "generator.h"

#define MS   UINT64_C(1000000)
#define DAY  (86400 * (uint64_t)MODEL_SECOND)
#define YEAR (UINT64_C(366) * DAY)

static void forward(struct generator *g, uint64_t ns)
{
    if (g->forward + ns > 100 * YEAR)
        return;
    g->forward += ns;
    g->now.mono_ns += ns;
    if (g->now.wall_ns + ns < UINT64_C(8000000000) * MODEL_SECOND) /* the year 2223 */
        g->now.wall_ns += ns;
}

static void back(struct generator *g, uint64_t ns, bool mono, bool wall)
{
    /* A quota word of a window that has passed may be forgotten at any time, or not: whether it
     * still counts after the clock went back to that window is nobody's promise. So only runs
     * that know when words are forgotten go there. */
    uint64_t seen = (uint64_t)g->model->wall;
    uint64_t day = seen / DAY * DAY;
    uint64_t lowest = g->run->wall_free               ? 0
                      : seen >= MS && seen - MS < day ? seen - MS
                                                      : day; /* no skew is below 1 ms */
    if (mono)
        g->now.mono_ns -= ns < g->now.mono_ns ? ns : g->now.mono_ns;
    if (wall && g->now.wall_ns > lowest)
        g->now.wall_ns -= ns < g->now.wall_ns - lowest ? ns : g->now.wall_ns - lowest;
}

/* To a moment of the effective clock, or just beside it. */
static void forward_to(struct generator *g, model_wide moment)
{
    model_wide raw = moment - g->model->offset - (model_wide)chance_below(&g->chance, 2);
    if (raw > (model_wide)g->now.mono_ns && raw < (model_wide)1 << 63)
        forward(g, (uint64_t)(raw - (model_wide)g->now.mono_ns));
}

static void to_lease_end(struct generator *g)
{
    if (g->recent_count == 0)
        return;
    int i = (int)chance_below(
        &g->chance,
        (uint64_t)(g->recent_count < GENERATOR_RECENT ? g->recent_count : GENERATOR_RECENT));
    const struct model_lease *l = &g->model->leases[g->leases[i] - 1];
    forward_to(g, chance_of(&g->chance, 700) ? l->expires : l->expires + l->ttl);
}

/* The wait that was told, or a millisecond or a nanosecond less. */
static void to_retry(struct generator *g)
{
    uint64_t wait = g->delay_ms * MS;
    static const uint64_t less[] = { 0, 0, MS, 1 };
    wait -= CHANCE_PICK(&g->chance, less);
    if (g->delay_ms == 0 || g->delay_ms > UINT64_C(3200000000000) ||
        g->asked.mono_ns + wait <= g->now.mono_ns)
        return;
    uint64_t ns = g->asked.mono_ns + wait - g->now.mono_ns;
    forward(g, ns);
    g->delay_ms = 0;
}

/* To the moment at which a signal, or a health, is not fresh any more. */
static void to_signal_end(struct generator *g)
{
    static const uint64_t ages[] = { 15000, 15000, 15000, 100, 20000 };
    if (g->model->signal_count == 0)
        return;
    int i = (int)chance_below(&g->chance, (uint64_t)g->model->signal_count);
    forward_to(g, g->model->signals[i].at + (model_wide)(CHANCE_PICK(&g->chance, ages) * MS));
}

static void to_window_end(struct generator *g)
{
    model_wide begin;
    model_wide end;
    model_window(g->model, chance_of(&g->chance, 700) ? ADM_WINDOW_DAY : ADM_WINDOW_MONTH,
                 (model_wide)g->now.wall_ns, &begin, &end);
    uint64_t ns = (uint64_t)(end - (model_wide)g->now.wall_ns) - chance_below(&g->chance, 2);
    if (chance_of(&g->chance, 500))
        forward(g, ns);
    else
        g->now.wall_ns += ns;
}

static void step_back(struct generator *g)
{
    uint64_t skew = g->model->policy->skew_ns;
    bool mono = chance_of(&g->chance, 700);
    bool wall = !mono || chance_of(&g->chance, 500);
    const uint64_t far[] = { skew - 1, skew, skew + 1, 2 * skew, DAY, 40 * DAY, 3 * YEAR };
    uint64_t ns = chance_of(&g->chance, 700) ? chance_between(&g->chance, 1,
                                                              skew < 3 * MS                ? skew
                                                              : chance_of(&g->chance, 500) ? 3 * MS
                                                                                           : skew)
                                             : CHANCE_PICK(&g->chance, far);
    back(g, ns, mono, wall);
}

void generator_step(struct generator *g)
{
    struct chance *c = &g->chance;
    static const uint64_t some[] = { MS,       2 * MS,   10 * MS,   100 * MS, 250 * MS,
                                     333 * MS, 500 * MS, 1000 * MS, 1500 * MS };
    static const uint64_t long_ones[] = { 15000 * MS - 1, 15000 * MS,   60000 * MS,
                                          59999 * MS,     3600000 * MS, 600000 * MS };
    uint64_t x = chance_below(c, 1000);
    if (x < 480)
        return;
    if (x < 560)
        forward(g, chance_between(c, 1, 1000));
    else if (x < 640)
        forward(g, chance_between(c, 1, 10 * MS));
    else if (x < 760)
        forward(g, CHANCE_PICK(c, some));
    else if (x < 830)
        to_retry(g);
    else if (x < 880)
        to_lease_end(g);
    else if (x < 890)
        to_window_end(g);
    else if (x < 905)
        to_signal_end(g);
    else if (x < 930)
        forward(g, CHANCE_PICK(c, long_ones));
    else if (x < 938)
        forward(g, chance_between(c, 1, 40 * DAY));
    else if (x < 939)
        forward(g, chance_between(c, 1, 20 * YEAR));
    else if (x < 943)
        g->now.wall_ns += chance_between(c, 1, 40 * DAY);
    else if (x < 970)
        step_back(g);
}
