/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of policy contents and of its look-up tables; the same in every process. */
#ifndef ADMI_HASHING_H
#define ADMI_HASHING_H

#include <admit/types.h>

#include "base/hash.h"

extern const uint8_t admi_policy_secret[ADMI_SECRET_BYTES];

uint64_t admi_policy_hash(struct adm_bytes bytes);
/* Another hash for each salt. */
static inline uint64_t admi_policy_mix(uint64_t hash, uint64_t salt)
{
    uint64_t mixed =
        (hash ^ (salt + 1) * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    return mixed ^ mixed >> 32;
}

#endif
