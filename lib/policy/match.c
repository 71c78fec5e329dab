/* SPDX-License-Identifier: Apache-2.0 */
/* Which rules match a request: the hot path. What does not match costs nothing. */
#include "base/memory.h"
#include "policy/match_index.h"

static void mark_word(struct admi_matched *out, uint32_t word, uint64_t bits)
{
    uint64_t bit = UINT64_C(1) << word % 64;
    if ((out->summary[word / 64] & bit) == 0) {
        out->summary[word / 64] |= bit;
        out->words[word] = bits; /* stale until its summary bit says otherwise */
        if (word >= out->end)
            out->end = word + 1;
    } else {
        out->words[word] |= bits;
    }
}

/* Rules of one match are often neighbours: a word is written once for those in it. */
static void mark(const uint32_t *rules, uint32_t count, struct admi_matched *out)
{
    for (uint32_t i = 0; i < count;) {
        uint32_t word = rules[i] / 64;
        uint64_t bits = 0;
        do {
            bits |= UINT64_C(1) << rules[i++] % 64;
        } while (i < count && rules[i] / 64 == word);
        mark_word(out, word, bits);
    }
}

/* Most matches are one key with one value. */
static bool holds(const struct admi_match *match, const struct adm_bytes *values)
{
    const struct admi_match_entry *entry = match->entries;
    if (match->entry_count == 1 && !match->has_not && entry->value_count == 1 &&
        entry->values[0].kind == ADMI_VALUE_EXACT)
        return admi_bytes_equal(values[entry->key], entry->values[0].text);
    return admi_match_holds(match, values);
}

static inline void visit(const struct admi_match_index *index, uint32_t group,
                         const struct adm_bytes *values, struct admi_matched *out)
{
    const struct admi_match_group *g = &index->groups[group];
    if (!holds(g->match, values))
        return;
    mark(index->rules + g->first_rule, g->rule_count, out);
}

static inline void visit_list(const struct admi_match_index *index, struct admi_match_list list,
                              const struct adm_bytes *values, struct admi_matched *out)
{
    for (uint32_t i = 0; i < list.count; i++)
        visit(index, index->members[list.first + i], values, out);
}

/* Candidates only: each match is tested in full, so that equal hashes do no harm. */
static void probe(const struct admi_match_index *index, uint64_t hash,
                  const struct adm_bytes *values, struct admi_matched *out)
{
    for (uint64_t at = hash & index->slot_mask;; at = (at + 1) & index->slot_mask) {
        const struct admi_match_slot *slot = &index->slots[at];
        if (slot->list.count == 0)
            return;
        if (slot->hash == hash) {
            visit_list(index, slot->list, values, out);
            return;
        }
    }
}

static void match_key(const struct admi_match_index *index, const struct admi_match_key *key,
                      const struct adm_bytes *values, uint64_t *pair_hashes,
                      struct admi_matched *out)
{
    struct adm_bytes value = values[key->slot];
    if (value.length == 0)
        return;
    visit_list(index, key->present, values, out);
    if (key->exact || key->pair_index != ADMI_MATCH_NO_PAIR) {
        uint64_t hash = admi_match_hash(key->slot, ADMI_VALUE_EXACT, value);
        if (key->exact)
            probe(index, hash, values, out);
        if (key->pair_index != ADMI_MATCH_NO_PAIR)
            pair_hashes[key->pair_index] = hash;
    }
    for (uint32_t i = 0; i < key->length_count; i++) {
        uint32_t length = index->lengths[key->first_length + i];
        if (length > value.length)
            break; /* they ascend */
        probe(
            index,
            admi_match_hash(key->slot, ADMI_VALUE_PREFIX, (struct adm_bytes){ value.data, length }),
            values, out);
    }
}

void admi_policy_match(const struct adm_policy *policy, const struct adm_bytes *values,
                       struct admi_matched *out)
{
    const struct admi_match_index *index = policy->match_index;
    uint64_t pair_hashes[ADMI_MATCH_PAIR_KEYS];
    admi_clear(out->summary, sizeof out->summary);
    out->end = 0;
    for (uint32_t i = 0; i < index->pair_key_count; i++)
        pair_hashes[i] = 0;
    visit_list(index, index->always, values, out);
    for (uint32_t i = 0; i < index->key_count; i++)
        match_key(index, &index->keys[i], values, pair_hashes, out);
    for (uint32_t i = 0; i < index->pair_count; i++) {
        uint64_t one = pair_hashes[index->pairs[i].one], two = pair_hashes[index->pairs[i].two];
        if (one != 0 && two != 0)
            probe(index, admi_match_pair_hash(one, two), values, out);
    }
}

static uint32_t lowest_bit(uint64_t word)
{
    return (uint32_t)__builtin_ctzll(word);
}

bool admi_matched_has(const struct admi_matched *matched, uint32_t rule)
{
    uint32_t word = rule / 64;
    return (matched->summary[word / 64] >> word % 64 & 1) != 0 &&
           (matched->words[word] >> rule % 64 & 1) != 0;
}

uint32_t admi_matched_next_word(const struct admi_matched *matched, uint32_t word)
{
    const uint32_t summaries = ADMI_MAX_RULES / 64 / 64;
    for (uint32_t i = word / 64; i < summaries; i++, word = i * 64) {
        uint64_t rest = matched->summary[i] >> word % 64;
        if (rest != 0) {
            word += lowest_bit(rest);
            return word * 64 + lowest_bit(matched->words[word]);
        }
    }
    return UINT32_MAX;
}
