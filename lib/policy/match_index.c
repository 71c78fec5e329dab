/* SPDX-License-Identifier: Apache-2.0 */
/* Building the index over the matches of a policy. */
#include "policy/match_index.h"

#include "base/memory.h"
#include "base/sort.h"
#include "policy/parts.h"

#define CROWDED      8u /* so many other groups under the best single entry: try pairs */
#define PAIR_ENTRIES 4u /* of the best entries only these are paired */
#define PAIR_VALUES  4u /* a pair is filed under at most so many pairs of values */
#define LENGTH_WORDS (ADM_MAX_VALUE_BYTES / 64 + 1)

/* How many groups would be filed under a hash. */
struct tally {
    uint64_t hash;
    uint64_t count;
};

struct filing {
    uint64_t hash; /* 0: always looked at */
    uint32_t group;
};

/* What is filed under a key. */
struct key_use {
    uint64_t lengths[LENGTH_WORDS]; /* of prefixes */
    bool exact, present;
    uint32_t pair_index; /* + 1; 0: none */
};

struct builder {
    const struct adm_policy *policy;
    struct admi_arena *arena, *scratch;
    struct admi_match_index *index;
    struct admi_match_group *groups;
    struct tally *tallies;
    uint64_t tally_mask;
    struct filing *filings;
    uint64_t filing_count;
    struct key_use *uses; /* by key slot */
};

/* ---- groups ---- */

static uint64_t power_of_two(uint64_t least)
{
    uint64_t power = 4;
    while (power < least)
        power *= 2;
    return power;
}

/* groups[], and in which one each rule is. */
static bool make_groups(struct builder *b, uint32_t *group_of)
{
    uint32_t rules = b->policy->rule_count, groups = 0;
    uint64_t mask = power_of_two(2 * (uint64_t)rules) - 1;
    uint32_t *slots = admi_arena_allocate(b->scratch, mask + 1, sizeof *slots);
    struct adm_bytes *texts = admi_arena_allocate(b->scratch, rules, sizeof *texts);
    uint64_t *hashes = admi_arena_allocate(b->arena, rules, sizeof *hashes);
    if (slots == NULL || texts == NULL || hashes == NULL)
        return false;
    b->index->hashes = hashes;
    for (uint32_t i = 0; i < rules; i++) {
        const struct admi_match *match = &b->policy->rules[i].match;
        struct adm_bytes text = admi_match_canonical(b->scratch, b->policy->keys, match);
        if (text.data == NULL)
            return false;
        hashes[i] = admi_policy_hash(text);
        uint64_t at = hashes[i] & mask;
        while (slots[at] != 0 && !admi_bytes_equal(texts[slots[at] - 1], text))
            at = (at + 1) & mask;
        if (slots[at] == 0) {
            texts[groups] = text;
            b->groups[groups].match = match;
            slots[at] = ++groups;
        }
        group_of[i] = slots[at] - 1;
        b->groups[group_of[i]].rule_count++;
    }
    b->index->group_count = groups;
    return true;
}

static bool list_rules(struct builder *b, const uint32_t *group_of)
{
    uint32_t *rules = admi_arena_allocate(b->arena, b->policy->rule_count, sizeof *rules);
    uint32_t first = 0;
    if (rules == NULL)
        return false;
    for (uint32_t i = 0; i < b->index->group_count; i++) {
        b->groups[i].first_rule = first;
        first += b->groups[i].rule_count;
        b->groups[i].rule_count = 0;
    }
    for (uint32_t i = 0; i < b->policy->rule_count; i++) {
        struct admi_match_group *group = &b->groups[group_of[i]];
        rules[group->first_rule + group->rule_count++] = i;
    }
    b->index->rules = rules;
    return true;
}

/* ---- tallies ---- */

static struct tally *tally(const struct builder *b, uint64_t hash)
{
    uint64_t at = hash & b->tally_mask;
    while (b->tallies[at].hash != 0 && b->tallies[at].hash != hash)
        at = (at + 1) & b->tally_mask;
    b->tallies[at].hash = hash;
    return &b->tallies[at];
}

static bool tally_start(struct builder *b, uint64_t most)
{
    b->tally_mask = power_of_two(2 * most) - 1;
    b->tallies = admi_arena_allocate(b->scratch, b->tally_mask + 1, sizeof *b->tallies);
    return b->tallies != NULL;
}

static uint64_t value_hash(const struct admi_match_entry *entry, uint32_t i)
{
    const struct admi_match_value *value = &entry->values[i];
    return admi_match_hash(entry->key, value->kind, value->text);
}

static bool is_exact(const struct admi_match_entry *entry)
{
    return entry->values[0].kind == ADMI_VALUE_EXACT; /* exact values are sorted last */
}

static bool tally_values(struct builder *b)
{
    uint64_t most = 0;
    for (uint32_t g = 0; g < b->index->group_count; g++)
        for (uint32_t e = 0; e < b->groups[g].match->entry_count; e++)
            most += b->groups[g].match->entries[e].value_count;
    if (!tally_start(b, most))
        return false;
    for (uint32_t g = 0; g < b->index->group_count; g++)
        for (uint32_t e = 0; e < b->groups[g].match->entry_count; e++) {
            const struct admi_match_entry *entry = &b->groups[g].match->entries[e];
            for (uint32_t i = 0; i < entry->value_count; i++)
                tally(b, value_hash(entry, i))->count++;
        }
    return true;
}

/* ---- the best place of a group ---- */

struct place {
    uint64_t cost; /* 4 * (groups filed there, at the worst value) + the kind of the values */
    uint32_t entry;
};

static struct place entry_place(const struct builder *b, const struct admi_match *match, uint32_t e)
{
    const struct admi_match_entry *entry = &match->entries[e];
    uint64_t worst = 0;
    for (uint32_t i = 0; i < entry->value_count; i++) {
        uint64_t count = tally(b, value_hash(entry, i))->count;
        if (count > worst)
            worst = count;
    }
    return (struct place){ worst * 4 + entry->values[0].kind, e };
}

static bool better(const struct admi_match *match, struct place a, struct place b)
{
    if (a.cost != b.cost)
        return a.cost < b.cost;
    return match->entries[a.entry].value_count < match->entries[b.entry].value_count;
}

/* All entries of a group (at least one), best first. */
static uint32_t rank_entries(const struct builder *b, const struct admi_match *match,
                             struct place places[ADMI_MATCH_ENTRIES_MAX])
{
    for (uint32_t e = 0; e < match->entry_count; e++) {
        struct place place = entry_place(b, match, e);
        uint32_t j = e;
        for (; j > 0 && better(match, place, places[j - 1]); j--)
            places[j] = places[j - 1];
        places[j] = place;
    }
    return match->entry_count;
}

/* Up to four exact entries that may be paired. */
static uint32_t pair_entries(const struct builder *b, const struct admi_match *match,
                             uint32_t chosen[PAIR_ENTRIES])
{
    struct place places[ADMI_MATCH_ENTRIES_MAX];
    uint32_t ranked = rank_entries(b, match, places), count = 0;
    if (ranked < 2 || places[0].cost / 4 <= CROWDED)
        return 0;
    for (uint32_t i = 0; i < ranked && count < PAIR_ENTRIES; i++)
        if (is_exact(&match->entries[places[i].entry]))
            chosen[count++] = places[i].entry;
    return count;
}

/* The hashes of a pair of entries; 0: too many. */
static uint32_t pair_hashes(const struct admi_match *match, uint32_t one, uint32_t two,
                            uint64_t out[PAIR_VALUES])
{
    const struct admi_match_entry *a = &match->entries[one], *b = &match->entries[two];
    uint32_t count = 0;
    if (a->key > b->key) {
        a = &match->entries[two];
        b = &match->entries[one];
    }
    if ((uint64_t)a->value_count * b->value_count > PAIR_VALUES)
        return 0;
    for (uint32_t i = 0; i < a->value_count; i++)
        for (uint32_t j = 0; j < b->value_count; j++)
            out[count++] = admi_match_pair_hash(value_hash(a, i), value_hash(b, j));
    return count;
}

/* Into a table of its own: the places of single entries are judged by the first. */
static bool tally_pairs(struct builder *b, struct builder *pairs)
{
    uint64_t most = 0, hashes[PAIR_VALUES];
    uint32_t chosen[PAIR_ENTRIES];
    for (uint32_t g = 0; g < b->index->group_count; g++)
        if (pair_entries(b, b->groups[g].match, chosen) > 1)
            most += PAIR_ENTRIES * (PAIR_ENTRIES - 1) / 2 * PAIR_VALUES;
    *pairs = *b;
    if (!tally_start(pairs, most))
        return false;
    for (uint32_t g = 0; most > 0 && g < b->index->group_count; g++) {
        const struct admi_match *match = b->groups[g].match;
        uint32_t count = pair_entries(b, match, chosen);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t j = i + 1; j < count; j++)
                for (uint32_t k = pair_hashes(match, chosen[i], chosen[j], hashes); k-- > 0;)
                    tally(pairs, hashes[k])->count++;
    }
    return true;
}

/* ---- filing ---- */

static void file(struct builder *b, uint64_t hash, uint32_t group)
{
    b->filings[b->filing_count++] = (struct filing){ hash, group };
}

static void file_entry(struct builder *b, uint32_t group, const struct admi_match_entry *entry)
{
    struct key_use *use = &b->uses[entry->key];
    for (uint32_t i = 0; i < entry->value_count; i++) {
        const struct admi_match_value *value = &entry->values[i];
        if (value->kind == ADMI_VALUE_PRESENT)
            use->present = true;
        else if (value->kind == ADMI_VALUE_EXACT)
            use->exact = true;
        else
            use->lengths[value->text.length / 64] |= UINT64_C(1) << value->text.length % 64;
        file(b, value_hash(entry, i), group);
    }
}

/* The number of a key among those of pairs, or ADMI_MATCH_NO_PAIR when there are too many. */
static uint32_t pair_key(struct builder *b, uint32_t key)
{
    if (b->uses[key].pair_index == 0) {
        if (b->index->pair_key_count == ADMI_MATCH_PAIR_KEYS)
            return ADMI_MATCH_NO_PAIR;
        b->uses[key].pair_index = ++b->index->pair_key_count;
    }
    return b->uses[key].pair_index - 1;
}

static bool add_pair(struct builder *b, uint32_t key, uint32_t other)
{
    struct admi_match_index *index = b->index;
    uint32_t one = pair_key(b, key < other ? key : other),
             two = pair_key(b, key < other ? other : key);
    if (one == ADMI_MATCH_NO_PAIR || two == ADMI_MATCH_NO_PAIR)
        return false;
    for (uint32_t i = 0; i < index->pair_count; i++)
        if (index->pairs[i].one == one && index->pairs[i].two == two)
            return true;
    if (index->pair_count == ADMI_MATCH_PAIRS)
        return false;
    index->pairs[index->pair_count++] = (struct admi_match_pair){ one, two };
    return true;
}

/* Under the best pair, when it is much better than the best single entry. */
static bool file_pair(struct builder *b, const struct builder *pairs, uint32_t group,
                      uint64_t single_cost)
{
    const struct admi_match *match = b->groups[group].match;
    uint64_t best = single_cost / 4 / 2 + 1, hashes[PAIR_VALUES];
    uint32_t chosen[PAIR_ENTRIES], count = pair_entries(b, match, chosen), one = 0, two = 0;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++) {
            uint64_t worst = 0;
            for (uint32_t k = pair_hashes(match, chosen[i], chosen[j], hashes); k-- > 0;)
                if (tally(pairs, hashes[k])->count > worst)
                    worst = tally(pairs, hashes[k])->count;
            if (worst > 0 && worst < best) {
                best = worst;
                one = chosen[i];
                two = chosen[j];
            }
        }
    if (one == two || !add_pair(b, match->entries[one].key, match->entries[two].key))
        return false;
    for (uint32_t k = pair_hashes(match, one, two, hashes); k-- > 0;)
        file(b, hashes[k], group);
    return true;
}

static bool file_groups(struct builder *b)
{
    struct builder pairs;
    uint64_t most = 0;
    if (!tally_values(b) || !tally_pairs(b, &pairs))
        return false;
    for (uint32_t g = 0; g < b->index->group_count; g++) {
        most += PAIR_VALUES;
        for (uint32_t e = 0; e < b->groups[g].match->entry_count; e++)
            most += b->groups[g].match->entries[e].value_count;
    }
    b->filings = admi_arena_allocate(b->scratch, most, sizeof *b->filings);
    if (b->filings == NULL)
        return false;
    for (uint32_t g = 0; g < b->index->group_count; g++) {
        const struct admi_match *match = b->groups[g].match;
        struct place places[ADMI_MATCH_ENTRIES_MAX];
        if (rank_entries(b, match, places) == 0)
            file(b, 0, g);
        else if (!file_pair(b, &pairs, g, places[0].cost))
            file_entry(b, g, &match->entries[places[0].entry]);
    }
    return true;
}

/* ---- the final tables ---- */

static int compare(const void *a, const void *b, const void *context)
{
    const struct filing *one = a, *two = b;
    (void)context;
    if (one->hash != two->hash)
        return one->hash < two->hash ? -1 : 1;
    return one->group < two->group ? -1 : one->group > two->group;
}

static bool make_slots(struct builder *b)
{
    struct admi_match_index *index = b->index;
    uint64_t mask = power_of_two(2 * b->filing_count) - 1;
    struct admi_match_slot *slots = admi_arena_allocate(b->arena, mask + 1, sizeof *slots);
    uint32_t *members = admi_arena_allocate(b->arena, b->filing_count, sizeof *members);
    if (slots == NULL || members == NULL)
        return false;
    admi_sort(b->filings, b->filing_count, sizeof *b->filings, compare, NULL);
    for (uint64_t i = 0, next; i < b->filing_count; i = next) {
        uint64_t hash = b->filings[i].hash, at = hash & mask;
        for (next = i; next < b->filing_count && b->filings[next].hash == hash; next++)
            members[next] = b->filings[next].group;
        struct admi_match_list list = { (uint32_t)i, (uint32_t)(next - i) };
        if (hash == 0) {
            index->always = list;
            continue;
        }
        while (slots[at].list.count != 0)
            at = (at + 1) & mask;
        slots[at] = (struct admi_match_slot){ hash, list };
    }
    index->slots = slots;
    index->slot_mask = mask;
    index->members = members;
    return true;
}

static struct admi_match_list find_list(const struct admi_match_index *index, uint64_t hash)
{
    uint64_t at = hash & index->slot_mask;
    while (index->slots[at].list.count != 0 && index->slots[at].hash != hash)
        at = (at + 1) & index->slot_mask;
    return index->slots[at].list;
}

static uint32_t list_lengths(const struct key_use *use, uint16_t *out)
{
    uint32_t count = 0;
    for (uint16_t length = 1; length <= ADM_MAX_VALUE_BYTES; length++)
        if ((use->lengths[length / 64] >> length % 64 & 1) != 0)
            out[count++] = length;
    return count;
}

static bool make_keys(struct builder *b)
{
    struct admi_match_index *index = b->index;
    uint16_t lengths[ADM_MAX_VALUE_BYTES];
    uint32_t total = 0, used = 0;
    for (uint32_t k = 0; k < b->policy->key_count; k++) {
        uint32_t count = list_lengths(&b->uses[k], lengths);
        total += count;
        used += count > 0 || b->uses[k].exact || b->uses[k].present || b->uses[k].pair_index > 0;
    }
    struct admi_match_key *keys = admi_arena_allocate(b->arena, used, sizeof *keys);
    uint16_t *all = admi_arena_allocate(b->arena, total, sizeof *all);
    if (keys == NULL || all == NULL)
        return false;
    total = used = 0;
    for (uint32_t k = 0; k < b->policy->key_count; k++) {
        const struct key_use *use = &b->uses[k];
        uint32_t count = list_lengths(use, &lengths[0]);
        if (count == 0 && !use->exact && !use->present && use->pair_index == 0)
            continue;
        admi_copy(all + total, lengths, count * sizeof *all);
        keys[used++] = (struct admi_match_key){
            .slot = k,
            .exact = use->exact,
            .pair_index = use->pair_index == 0 ? ADMI_MATCH_NO_PAIR : use->pair_index - 1,
            .first_length = total,
            .length_count = count,
        };
        if (use->present)
            keys[used - 1].present = find_list(
                index, admi_match_hash(k, ADMI_VALUE_PRESENT, (struct adm_bytes){ NULL, 0 }));
        total += count;
    }
    index->keys = keys;
    index->key_count = used;
    index->lengths = all;
    return true;
}

const struct admi_match_index *admi_match_index_build(const struct adm_policy *policy,
                                                      struct admi_arena *arena,
                                                      struct admi_arena *scratch)
{
    struct builder b = { .policy = policy, .arena = arena, .scratch = scratch };
    b.index = admi_arena_allocate(arena, 1, sizeof *b.index);
    b.groups = admi_arena_allocate(arena, policy->rule_count, sizeof *b.groups);
    b.uses = admi_arena_allocate(scratch, policy->key_count, sizeof *b.uses);
    uint32_t *group_of = admi_arena_allocate(scratch, policy->rule_count, sizeof *group_of);
    if (b.index == NULL || b.groups == NULL || b.uses == NULL || group_of == NULL)
        return NULL;
    b.index->groups = b.groups;
    if (!make_groups(&b, group_of) || !list_rules(&b, group_of) || !file_groups(&b) ||
        !make_slots(&b) || !make_keys(&b))
        return NULL;
    return b.index;
}

uint64_t admi_policy_match_hash(const struct adm_policy *policy, uint32_t rule)
{
    return policy->match_index->hashes[rule];
}
