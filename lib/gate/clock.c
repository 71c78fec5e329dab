/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's effective time: the host's clocks, made to never run back (law L4). */
#include <time.h>

#include "gate/gate.h"

#define WALL_KEPT_NS ADM_MILLISECOND

static inline uint64_t read_system_clock(clockid_t which)
{
    struct timespec now;

    (void)clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * ADM_SECOND + (uint64_t)now.tv_nsec;
}

static void read_system_clocks(void *self, struct adm_time *out)
{
    (void)self;
    out->mono_ns = read_system_clock(CLOCK_MONOTONIC);
    out->wall_ns = read_system_clock(CLOCK_REALTIME);
}

adm_status admi_gate_clock_init(struct admi_gate_clock *clock, const struct adm_clock *source)
{
    clock->source = *source;
    clock->is_system = source->now == NULL;
    if (clock->is_system)
        clock->source.now = read_system_clocks;
    atomic_init(&clock->seen_mono_ns, 0);
    atomic_init(&clock->seen_wall_ns, 0);
    atomic_init(&clock->offset_ns, 0);
    atomic_init(&clock->max_skew_ns, 0);
    return pthread_mutex_init(&clock->step, NULL) == 0 ? ADM_OK : ADM_E_OS;
}

void admi_gate_clock_fini(struct admi_gate_clock *clock)
{
    (void)pthread_mutex_destroy(&clock->step);
}

/* A large step back: from now on the source counts from the largest time seen, so the loss goes
 * into the offset. Under a lock, because two threads must not both add it. */
static void shift_offset(struct admi_gate_clock *clock, uint64_t source_ns, uint64_t max_skew_ns)
{
    (void)pthread_mutex_lock(&clock->step);
    uint64_t offset = atomic_load(&clock->offset_ns);
    uint64_t seen = atomic_load(&clock->seen_mono_ns);
    uint64_t now = source_ns + offset;

    if (now < seen && seen - now > max_skew_ns)
        atomic_store(&clock->offset_ns, offset + (seen - now));
    (void)pthread_mutex_unlock(&clock->step);
}

static uint64_t effective_mono(struct admi_gate_clock *clock, uint64_t source_ns,
                               uint64_t max_skew_ns, uint64_t *out_caller)
{
    uint64_t now = source_ns + atomic_load(&clock->offset_ns);
    uint64_t seen = atomic_load(&clock->seen_mono_ns);

    if (now < seen && seen - now > max_skew_ns) {
        shift_offset(clock, source_ns, max_skew_ns);
        now = source_ns + atomic_load(&clock->offset_ns);
        seen = atomic_load(&clock->seen_mono_ns);
    }
    *out_caller = now;
    while (now > seen)
        if (atomic_compare_exchange_weak(&clock->seen_mono_ns, &seen, now))
            return now;
    return seen;
}

/* The wall clock may be set back in earnest: beyond the skew it is believed (quota windows then
 * carry what was used). */
static uint64_t effective_wall(struct admi_gate_clock *clock, uint64_t wall_ns,
                               uint64_t max_skew_ns)
{
    uint64_t seen = atomic_load(&clock->seen_wall_ns);

    while (wall_ns != seen) {
        if (wall_ns < seen && seen - wall_ns <= max_skew_ns)
            return seen;
        if (atomic_compare_exchange_weak(&clock->seen_wall_ns, &seen, wall_ns))
            break;
    }
    return wall_ns;
}

struct admi_moment admi_gate_clock_read(struct admi_gate_clock *clock)
{
    uint64_t max_skew_ns = atomic_load_explicit(&clock->max_skew_ns, memory_order_relaxed);
    struct admi_moment moment;
    struct adm_time source;

    clock->source.now(clock->source.self, &source);
    moment.now.mono_ns = effective_mono(clock, source.mono_ns, max_skew_ns, &moment.caller_mono_ns);
    moment.now.wall_ns = effective_wall(clock, source.wall_ns, max_skew_ns);
    moment.caller_wall_ns = source.wall_ns;
    return moment;
}

/* ---- by the system's clocks, often ---- */

static void look_at_wall(struct admi_gate_clock *clock, struct admi_wall *wall, uint64_t mono_ns)
{
    uint64_t max_skew_ns = atomic_load_explicit(&clock->max_skew_ns, memory_order_relaxed);
    uint64_t source_ns = read_system_clock(CLOCK_REALTIME);
    uint64_t seen = atomic_load(&clock->seen_wall_ns);

    /* What was told since counts as seen, or a small step back would not be noticed. */
    while (wall->last_ns > seen && wall->last_ns - seen <= WALL_KEPT_NS)
        if (atomic_compare_exchange_weak(&clock->seen_wall_ns, &seen, wall->last_ns))
            break;
    uint64_t effective_ns = effective_wall(clock, source_ns, max_skew_ns);

    wall->ahead_ns = effective_ns - mono_ns;
    wall->caller_ahead_ns = source_ns - mono_ns;
    /* A wall clock that stands still, because it was set back, does not go with the other. */
    wall->until_ns = mono_ns + (effective_ns == source_ns ? WALL_KEPT_NS : 0);
}

struct admi_moment admi_gate_clock_now(struct admi_gate_clock *clock, struct admi_wall *wall)
{
    struct admi_moment moment;

    if (!clock->is_system)
        return admi_gate_clock_read(clock);
    uint64_t mono_ns = read_system_clock(CLOCK_MONOTONIC);

    if (mono_ns >= wall->until_ns)
        look_at_wall(clock, wall, mono_ns);
    moment.now.mono_ns = moment.caller_mono_ns = mono_ns;
    moment.now.wall_ns = wall->last_ns = mono_ns + wall->ahead_ns;
    moment.caller_wall_ns = mono_ns + wall->caller_ahead_ns;
    return moment;
}
