/* SPDX-License-Identifier: Apache-2.0 */
#include "windows.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define WINDOW_NS 2000000u /* long enough for the clock, short enough to be left alone */

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static long taken_away(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        die("no getrusage");
    return usage.ru_nivcsw;
}

static void window(struct candidate *candidate, unsigned round)
{
    long switches = taken_away();
    uint64_t from = now_ns();

    for (uint64_t i = 0; i < candidate->pairs; i++)
        candidate->pair(candidate->self);
    candidate->ns[round] = (double)(now_ns() - from) / (double)candidate->pairs;
    candidate->clean[round] = taken_away() == switches;
}

void calibrate(struct candidate *candidate)
{
    for (candidate->pairs = 64; candidate->pairs < (uint64_t)1 << 40; candidate->pairs *= 2) {
        uint64_t from = now_ns();

        for (uint64_t i = 0; i < candidate->pairs; i++)
            candidate->pair(candidate->self);
        if (now_ns() - from >= WINDOW_NS)
            return;
    }
}

unsigned measure(struct candidate *all, int count, unsigned rounds)
{
    unsigned clean[16] = { 0 }, round = 0;
    bool enough = false;

    while (round < rounds || (!enough && round < ROUNDS_MAX)) {
        enough = true;
        for (int i = 0; i < count; i++) {
            window(&all[i], round);
            clean[i] += all[i].clean[round];
            enough = enough && clean[i] >= ROUNDS_MIN;
        }
        round++;
    }
    if (!enough)
        printf("too few clean windows: this machine was too busy for these numbers to mean much\n");
    return round;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

struct quartiles quartiles(const struct candidate *candidate, const struct candidate *base,
                           unsigned rounds)
{
    double values[ROUNDS_MAX];
    unsigned n = 0;

    for (unsigned i = 0; i < rounds; i++)
        if (candidate->clean[i] && (base == NULL || base->clean[i]))
            values[n++] = candidate->ns[i] / (base != NULL ? base->ns[i] : 1);
    if (n == 0)
        return (struct quartiles){ 0, 0, 0, 0 };
    qsort(values, n, sizeof values[0], by_size);
    return (struct quartiles){ values[n / 4], values[n / 2], values[3 * n / 4], n };
}
