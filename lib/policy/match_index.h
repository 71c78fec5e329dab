/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index over the matches of a policy. Rules with the same match form a group; each group is
 * filed where the fewest others are: under the values of one entry, under pairs of values of two,
 * under the prefixes of one, under the presence of a key, or, without entries, among those that are
 * always looked at.
 */
#ifndef ADMI_MATCH_INDEX_H
#define ADMI_MATCH_INDEX_H

#include "policy/hashing.h"
#include "policy/ruleset.h"

#define ADMI_MATCH_PAIR_KEYS 32u
#define ADMI_MATCH_PAIRS     32u
#define ADMI_MATCH_NO_PAIR   UINT32_MAX

struct admi_match_list {
    uint32_t first, count; /* of members */
};

struct admi_match_group {
    const struct admi_match *match;
    uint32_t first_rule, rule_count; /* of rules */
};

struct admi_match_slot {
    uint64_t hash;
    struct admi_match_list list; /* count 0: empty */
};

/* A key under which something is filed. */
struct admi_match_key {
    uint32_t slot;
    uint32_t exact;                      /* values of it are */
    uint32_t pair_index;                 /* of pair_hashes, or ADMI_MATCH_NO_PAIR */
    uint32_t first_length, length_count; /* prefixes: their distinct lengths, ascending */
    struct admi_match_list present;
};

struct admi_match_pair {
    uint32_t one, two; /* pair_index of two keys */
};

struct admi_match_index {
    const struct admi_match_group *groups;
    const uint32_t *rules;
    const uint64_t *hashes;  /* by rule: of its match's canonical text */
    const uint32_t *members; /* groups */
    const struct admi_match_slot *slots;
    uint64_t slot_mask;
    struct admi_match_list always;
    const struct admi_match_key *keys;
    uint32_t key_count;
    uint32_t pair_count;
    uint32_t pair_key_count;
    uint32_t group_count;
    struct admi_match_pair pairs[ADMI_MATCH_PAIRS];
    const uint16_t *lengths;
};

static inline uint64_t admi_match_load(const uint8_t *bytes, uint32_t count)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < count; i++) /* count is a constant: one load */
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

/*
 * A hash of a value, inline because it is most of the cost of a look-up. Collisions do no harm
 * (every candidate is tested in full), and nobody gains by them: what is filed comes from the
 * policy.
 */
static inline uint64_t admi_match_value_hash(struct adm_bytes value)
{
    const uint8_t *bytes = value.data;
    uint64_t length = value.length, hash = length * UINT64_C(0x9e3779b97f4a7c15);
    while (length > 8) {
        hash = (hash ^ admi_match_load(bytes, 8)) * UINT64_C(0xd6e8feb86659fd93);
        hash ^= hash >> 32;
        bytes += 8;
        length -= 8;
    }
    uint64_t last = 0;
    if (length >= 4)
        last = admi_match_load(bytes, 4) | admi_match_load(bytes + length - 4, 4) << 32;
    else if (length > 0)
        last = (uint64_t)bytes[0] | (uint64_t)bytes[length / 2] << 8 |
               (uint64_t)bytes[length - 1] << 16;
    hash = (hash ^ last) * UINT64_C(0xd6e8feb86659fd93);
    return hash ^ hash >> 32;
}

/* Never 0. kind: ADMI_VALUE_*. */
static inline uint64_t admi_match_hash(uint32_t key, uint32_t kind, struct adm_bytes value)
{
    uint64_t hash = admi_policy_mix(admi_match_value_hash(value), (uint64_t)key << 2 | kind);
    return hash | UINT64_C(1) << 63;
}

/* one is the hash of the key with the smaller slot. */
static inline uint64_t admi_match_pair_hash(uint64_t one, uint64_t two)
{
    return admi_policy_mix(one, two) | UINT64_C(1) << 63;
}

#endif
