/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rest of the library sees of a policy: an immutable rule set, the test of its matches,
 * limit tables. struct adm_policy (admit/policy.h) is this rule set.
 */
#ifndef ADMI_RULESET_H
#define ADMI_RULESET_H

#include <stdbool.h>

#include <admit/admit.h>
#include <admit/policy.h>

#define ADMI_MAX_RULES          16384u
#define ADMI_MAX_PARTITION_KEYS ADM_MAX_DESCRIPTORS
#define ADMI_NO_KEY             UINT32_MAX
#define ADMI_DECIMAL_ONE        UINT64_C(1000000000000000000) /* 10^18 */
/* Descriptor keys that a policy may mention, so that a gate can keep one value per slot. */
#define ADMI_POLICY_KEYS_MAX 1024u

enum admi_rule_type {
    ADMI_TOKEN_BUCKET = 0,
    ADMI_CONCURRENCY = 1,
    ADMI_REQUEST_CAP = 2,
    ADMI_PRESSURE = 3,
    ADMI_QUOTA = 4
};

enum admi_comparison { ADMI_GT = 1, ADMI_GTE = 2, ADMI_LT = 3, ADMI_LTE = 4 };

/* Which numbers a rule, an override or a table entry gives. */
enum {
    ADMI_GIVEN_CAPACITY = 1u << 0,
    ADMI_GIVEN_REFILL = 1u << 1,
    ADMI_GIVEN_PER = 1u << 2,
    ADMI_GIVEN_LIMIT = 1u << 3,
    ADMI_GIVEN_LEASE_TTL = 1u << 4,
    ADMI_GIVEN_PARK = 1u << 5,
    ADMI_GIVEN_FRACTION = 1u << 6,
    ADMI_GIVEN_THRESHOLD = 1u << 7,
    ADMI_GIVEN_MAX_AGE = 1u << 8
};

/* A plain decimal, exact: whole + fraction_e18 / 10^18. */
struct admi_decimal {
    uint64_t whole; /* 0 … 10^12 */
    uint64_t fraction_e18;
};

struct admi_numbers {
    uint32_t given;
    uint32_t comparison; /* enum admi_comparison; pressure */
    uint64_t capacity, refill, per_ns;
    uint64_t limit;
    uint64_t lease_ttl_ns, park_ns;
    uint64_t max_age_ns;          /* pressure; 15 s when not given */
    struct admi_decimal fraction; /* (0, 1]; 1 when not given */
    struct admi_decimal threshold;
};

/*
 * One value of a match entry. kind EXACT: value equals text; PREFIX: value starts with text;
 * PRESENT: any value.
 */
enum { ADMI_VALUE_EXACT = 0, ADMI_VALUE_PREFIX = 1, ADMI_VALUE_PRESENT = 2 };
struct admi_match_value {
    uint32_t kind;
    uint32_t reserved0;
    struct adm_bytes text;
};

/* Holds when the key is present and one of the values fits. */
struct admi_match_entry {
    uint32_t key; /* key slot of this policy */
    uint32_t value_count;
    const struct admi_match_value *values;
};

/* All entries hold, and not all of the negated ones (if there is a "not"). */
struct admi_match {
    const struct admi_match_entry *entries;
    const struct admi_match_entry *negated;
    uint32_t entry_count;
    uint32_t negated_count;
    uint32_t has_not; /* an empty "not" block holds always, so its negation never does */
    uint32_t reserved0;
};

struct admi_override {
    struct admi_match when;
    bool off;
    struct admi_numbers numbers; /* complete: the rule's, overlaid */
    struct adm_bytes origin;     /* canonical text of the when block: identity of the class */
};

struct admi_rule {
    struct adm_bytes id; /* NUL-terminated as well */
    enum admi_rule_type type;
    uint32_t index; /* in policy order */
    bool shadow, per_replica, completion, settle_exact;
    uint32_t unit;      /* of the policy: below ADM_UNIT_FIRST_DECLARED it is ADM_UNIT_* itself */
    uint32_t window;    /* ADM_WINDOW_* */
    uint32_t scope_key; /* key slot; pressure and per_replica rules, else ADMI_NO_KEY */
    uint32_t partition_count;
    uint32_t partition_keys[ADMI_MAX_PARTITION_KEYS];
    struct adm_bytes signal;
    uint64_t max_partitions; /* 0: unbounded */
    struct admi_match match;
    struct admi_numbers numbers;
    uint32_t override_count;
    const struct admi_override *overrides;
    /* length-prefixed: id, type, unit name, window, partition_by; without the namespace */
    struct adm_bytes identity;
};

struct admi_match_index; /* lib/policy/match_index.h */

struct adm_policy {
    _Atomic uint32_t references;
    struct adm_allocator allocator;
    char version[ADM_MAX_VERSION + 8];
    /* of the content: the same for documents that differ only in layout and order of members */
    uint8_t digest[16];
    bool unmatched_allow;
    uint64_t max_clock_skew_ns;
    uint64_t hard_timeout_ns; /* 0: not given */
    uint32_t shard_key;       /* key slot or ADMI_NO_KEY */
    uint32_t key_count;       /* keys that the policy mentions; at most ADMI_POLICY_KEYS_MAX */
    const struct adm_bytes *keys;
    uint32_t unit_count; /* declared units; their index is ADM_UNIT_FIRST_DECLARED + i */
    const struct adm_bytes *units;
    uint32_t label_count; /* metric_labels, key slots */
    uint32_t labels[4];
    uint32_t rule_count;
    const struct admi_rule *rules;
    const struct admi_match_index *match_index;
    void *arena; /* lib/policy's own: owns everything above */
};

/*
 * The rules that match, as a bitmap with a summary, so that visiting them costs what matches, in
 * policy order. A word whose summary bit is 0 has no meaning (it is not even cleared): read it only
 * through admi_matched_next() and admi_matched_has().
 */
struct admi_matched {
    uint32_t end; /* words from this one on are not marked */
    uint64_t summary[ADMI_MAX_RULES / 64 / 64];
    uint64_t words[ADMI_MAX_RULES / 64];
};

/*
 * values[slot]: the descriptor's value, length 0 when absent. The cost does not grow with rules
 * that do not match.
 */
void admi_policy_match(const struct adm_policy *policy, const struct adm_bytes *values,
                       struct admi_matched *out);

/* The same for rules whose matches say the same, in every process. */
uint64_t admi_policy_match_hash(const struct adm_policy *policy, uint32_t rule);

/* The first matching rule in a word of the bitmap or a later one, or UINT32_MAX. */
uint32_t admi_matched_next_word(const struct admi_matched *matched, uint32_t word);

/* Next matching rule with index >= from, or UINT32_MAX. */
static inline uint32_t admi_matched_next(const struct admi_matched *matched, uint32_t from)
{
    uint32_t word = from / 64;
    if (from >= ADMI_MAX_RULES || word >= matched->end)
        return UINT32_MAX;
    if ((matched->summary[word / 64] >> word % 64 & 1) != 0) {
        uint64_t rest = matched->words[word] >> from % 64;
        if (rest != 0)
            return from + (uint32_t)__builtin_ctzll(rest);
    }
    return word + 1 < matched->end ? admi_matched_next_word(matched, word + 1) : UINT32_MAX;
}

bool admi_matched_has(const struct admi_matched *matched, uint32_t rule);

bool admi_match_holds(const struct admi_match *match, const struct adm_bytes *values);
/*
 * The first entry that does not hold (for a "not" block that holds: its first entry; for an empty
 * one: an entry whose key is ADMI_NO_KEY), or NULL when the match holds.
 */
const struct admi_match_entry *admi_match_failure(const struct admi_match *match,
                                                  const struct adm_bytes *values);

/* Slot of a key in this policy, or ADMI_NO_KEY. */
uint32_t admi_policy_key(const struct adm_policy *policy, struct adm_bytes key);
/* Index of a rule by id, or UINT32_MAX. */
uint32_t admi_policy_rule(const struct adm_policy *policy, struct adm_bytes id);

const char *admi_rule_type_name(enum admi_rule_type type);
/* Name of a unit index of this policy. */
struct adm_bytes admi_policy_unit_name(const struct adm_policy *policy, uint32_t unit);

/* ---- limit tables ---- */

struct admi_table_entry {
    struct adm_bytes key; /* value of the by descriptor */
    bool off;
    struct admi_numbers numbers; /* only what the entry gives */
};

struct admi_table {
    _Atomic uint32_t references;
    struct adm_allocator allocator;
    char version[ADM_MAX_VERSION + 8];
    struct adm_bytes rule;
    struct adm_bytes by;
    uint64_t entry_count;
    const struct admi_table_entry *entries;
    const void *index; /* lib/policy's own */
    void *arena;
};

/*
 * Read a table document for a rule of this policy. previous: NULL, or for ADM_TABLE_PATCH the table
 * to start from (admi_table_rule() says of which rule it must be).
 */
adm_status admi_table_load(struct adm_bytes text, const struct adm_policy *policy,
                           const struct admi_table *previous, uint32_t mode,
                           const struct adm_allocator *allocator, struct admi_table **out,
                           struct adm_diags **out_diags);
/*
 * The rule that a table document names, without reading the rest of it: *out is its index, or
 * UINT32_MAX when the document is broken or names none (admi_table_load() then says why).
 */
adm_status admi_table_rule(struct adm_bytes text, const struct adm_policy *policy, uint32_t mode,
                           const struct adm_allocator *allocator, uint32_t *out);
struct admi_table *admi_table_ref(struct admi_table *table);
void admi_table_unref(struct admi_table *table);
/* Index of the entry for a value, or UINT64_MAX. One probe. */
uint64_t admi_table_find(const struct admi_table *table, struct adm_bytes value);
/* Whether every entry fits the rule (fields of its type, rate bound after overlay). */
bool admi_table_fits(const struct admi_table *table, const struct admi_rule *rule);
/* The rule's numbers overlaid with what is given. */
struct admi_numbers admi_numbers_overlay(const struct admi_numbers *base,
                                         const struct admi_numbers *given);

#endif
