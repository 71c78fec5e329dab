/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that stands still, and bytes that repeat. */
#include <admit/testing.h>

static void read_fake(void *self, struct adm_time *out)
{
    struct adm_fake_clock *fake = self;
    uint64_t tick_ns = __atomic_load_n(&fake->tick_ns, __ATOMIC_RELAXED);

    out->mono_ns = __atomic_fetch_add(&fake->time.mono_ns, tick_ns, __ATOMIC_RELAXED);
    out->wall_ns = __atomic_fetch_add(&fake->time.wall_ns, tick_ns, __ATOMIC_RELAXED);
}

struct adm_clock adm_fake_clock_as_clock(struct adm_fake_clock *fake)
{
    return (struct adm_clock){ fake, read_fake };
}

void adm_fake_clock_advance(struct adm_fake_clock *fake, uint64_t ns)
{
    (void)__atomic_fetch_add(&fake->time.mono_ns, ns, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&fake->time.wall_ns, ns, __ATOMIC_RELAXED);
}

/* splitmix64: any thread may ask, and all bytes differ. */
static int32_t fill_fake(void *self, void *out, uint64_t bytes)
{
    struct adm_fake_random *fake = self;
    uint8_t *to = out;

    for (uint64_t i = 0; i < bytes;) {
        uint64_t x =
            __atomic_add_fetch(&fake->state, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);

        x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
        x ^= x >> 31;
        for (uint32_t j = 0; j < 8 && i < bytes; j++, i++)
            to[i] = (uint8_t)(x >> 8 * j);
    }
    return 0;
}

struct adm_random adm_fake_random_as_random(struct adm_fake_random *fake)
{
    return (struct adm_random){ fake, fill_fake };
}
