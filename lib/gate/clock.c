/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's effective time: the host's clocks, made to never run back (law L4). */
#include <time.h>

#include "gate/gate.h"

static void read_system_clocks(void *self, struct adm_time *out)
{
    struct timespec mono, wall;

    (void)self;
    (void)clock_gettime(CLOCK_MONOTONIC, &mono);
    (void)clock_gettime(CLOCK_REALTIME, &wall);
    out->mono_ns = (uint64_t)mono.tv_sec * ADM_SECOND + (uint64_t)mono.tv_nsec;
    out->wall_ns = (uint64_t)wall.tv_sec * ADM_SECOND + (uint64_t)wall.tv_nsec;
}

adm_status admi_gate_clock_init(struct admi_gate_clock *clock, const struct adm_clock *source)
{
    clock->source = *source;
    if (source->now == NULL)
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
