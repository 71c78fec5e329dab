/* SPDX-License-Identifier: Apache-2.0 */
/* Random lives of a few buckets of one class, written down for state_odometer_check.py, which
 * knows only fractions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "state/odometer.h"

#define BUCKETS 3u

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

/* Of every size alike. */
static uint64_t draw_magnitude(uint64_t most)
{
    uint64_t bound = UINT64_C(1) << draw(64);

    return draw(bound < most ? bound + 1 : most + 1);
}

static void draw_numbers(uint64_t numbers[3])
{
    uint64_t per_ns = ADM_MILLISECOND * (1 + draw_magnitude(UINT64_C(366) * 86400 * 1000 - 1));
    uint64_t most = per_ns < ADM_MAX_AMOUNT ? per_ns : ADM_MAX_AMOUNT;

    numbers[0] = draw_magnitude(ADM_MAX_AMOUNT);
    numbers[1] = draw_magnitude(most);
    numbers[2] = per_ns;
}

static void print_state(const struct adm_odometer *odometer, int64_t empty, const int64_t *all,
                        uint32_t count)
{
    (void)printf(" %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRId64
                 " %" PRId64,
                 odometer->t0_ns, odometer->v0, odometer->a, odometer->b, odometer->shift,
                 odometer->floor, empty);
    for (uint32_t i = 0; i < count; i++)
        (void)printf(" %" PRId64, all[i]);
    (void)printf("\n");
}

static void change(struct adm_odometer *odometer, uint64_t now_ns, int64_t empty[BUCKETS])
{
    const struct adm_odometer before = *odometer;
    uint64_t numbers[3] = { odometer->capacity, odometer->refill, odometer->per_ns };
    uint64_t fresh[3];
    uint32_t which = (uint32_t)draw(4);

    draw_numbers(fresh);
    if (which == 0)
        numbers[0] = fresh[0];
    else if (which == 1)
        numbers[1] = draw(odometer->refill * 2 + 1 < odometer->per_ns ? odometer->refill * 2 + 1
                                                                      : odometer->per_ns);
    else
        numbers[0] = fresh[0], numbers[1] = fresh[1], numbers[2] = fresh[2];
    if (numbers[1] > ADM_MAX_AMOUNT)
        numbers[1] = ADM_MAX_AMOUNT;
    if (adm_odometer_change(odometer, now_ns, numbers[0], numbers[1], numbers[2], 1)) {
        for (uint32_t i = 0; i < BUCKETS; i++)
            empty[i] = adm_bucket_rescale(&before, odometer, now_ns, empty[i]);
    }
    (void)printf("change %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, now_ns, numbers[0],
                 numbers[1], numbers[2]);
    print_state(odometer, 0, empty, BUCKETS);
}

static void step(struct adm_odometer *odometer, uint64_t now_ns, int64_t empty[BUCKETS])
{
    uint32_t which = (uint32_t)draw(BUCKETS);
    uint64_t amount = draw(4) == 0 ? draw_magnitude(ADM_MAX_AMOUNT) : draw(odometer->capacity + 2);
    uint64_t passes_at_ns = adm_bucket_passes_at(odometer, now_ns, empty[which], amount);
    const char *word = "take";
    uint32_t taken = 0;

    switch (draw(8)) {
    case 0:
        word = "charge";
        amount = draw(odometer->capacity + 2); /* far from where a word saturates */
        adm_bucket_charge(odometer, now_ns, &empty[which], amount);
        break;
    case 1:
        word = "refund";
        adm_bucket_refund(odometer, now_ns, &empty[which], amount);
        break;
    case 2: /* forget what is as new: nobody may notice */
        word = "forget";
        taken = (uint32_t)admi_bucket_is_as_new(odometer, now_ns, empty[which]);
        if (taken)
            empty[which] = ADM_BUCKET_FRESH;
        break;
    default:
        taken = adm_bucket_take(odometer, now_ns, &empty[which], amount);
        break;
    }
    (void)printf("%s %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRId64 " %" PRIu64, word,
                 now_ns, which, amount, taken, adm_bucket_level(odometer, now_ns, empty[which]),
                 passes_at_ns);
    print_state(odometer, empty[which], NULL, 0);
}

int main(int argc, char **argv)
{
    uint64_t lives = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;

    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    while (lives-- > 0) {
        struct adm_odometer odometer;
        int64_t empty[BUCKETS] = { ADM_BUCKET_FRESH, ADM_BUCKET_FRESH, ADM_BUCKET_FRESH };
        uint64_t numbers[3], now_ns = draw_magnitude(UINT64_C(1) << 60);

        draw_numbers(numbers);
        adm_odometer_init(&odometer, now_ns, numbers[0], numbers[1], numbers[2], 1);
        (void)printf("new %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, now_ns, numbers[0],
                     numbers[1], numbers[2]);
        print_state(&odometer, 0, NULL, 0);
        for (uint32_t i = 0; i < 60; i++) {
            now_ns += draw(8) == 0 ? draw_magnitude(UINT64_C(1) << 54)
                                   : draw(2 * numbers[2] / (numbers[1] + 1) + 2);
            if (draw(10) == 0)
                change(&odometer, now_ns, empty);
            else
                step(&odometer, now_ns, empty);
        }
    }
    return 0;
}
