/* SPDX-License-Identifier: Apache-2.0 */
/* Repeatable random numbers: splitmix64. */
#include "run.h"

uint64_t chance_bits(struct chance *chance)
{
    uint64_t z = (chance->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Slightly uneven for huge bounds, which does no harm here. */
uint64_t chance_below(struct chance *chance, uint64_t bound)
{
    uint64_t bits = chance_bits(chance);
    return bound == 0 ? bits : bits % bound;
}

uint64_t chance_between(struct chance *chance, uint64_t low, uint64_t high)
{
    return low + chance_below(chance, high - low + 1);
}

bool chance_of(struct chance *chance, unsigned permille)
{
    return chance_below(chance, 1000) < permille;
}
