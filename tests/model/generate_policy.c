/* SPDX-License-Identifier: Apache-2.0 */
/* Random policies and limit tables over small alphabets, so that things collide; small and huge
 * numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

#define MS     UINT64_C(1000000)
#define VALUES 8

/* 62 bytes fit a key slot whole, longer ones are digested: values of a length around that, equal
 * but for one byte. */
#define SIXTY "012345678901234567890123456789012345678901234567890123456789"
#define LONG  SIXTY SIXTY SIXTY SIXTY "abcdefghijklmno"

static const char *const key_texts[GENERATE_KEYS] = { "consumer", "tier",    "pool",
                                                      "model",    "service", "k" SIXTY "end" };
static const char *const value_texts[GENERATE_KEYS][VALUES] = {
    { "a", "b", "ab", "abc", SIXTY "aa", LONG "x", LONG "y", "\xc3\xa9\"\\\x01" },
    { "gold", "go", "iron", NULL },
    { "p", "q", NULL },
    { "m1", "m2", "m10", NULL },
    { "x", "y", NULL },
    { "1", "2", NULL },
};

int generate_key(int i)
{
    static int words[GENERATE_KEYS];
    if (words[i] == 0)
        words[i] = model_word_of(key_texts[i]);
    return words[i];
}

static int value_count(int key)
{
    int n = 0;
    while (n < VALUES && value_texts[key][n] != NULL)
        n++;
    return n;
}

int generate_value(struct chance *chance, int key)
{
    static int words[GENERATE_KEYS][VALUES];
    int count = value_count(key);
    /* mostly the first two, so that state is met again */
    int i = (int)(chance_of(chance, 600) ? chance_below(chance, 2)
                                         : chance_below(chance, (uint64_t)count));
    if (words[key][i] == 0)
        words[key][i] = model_word_of(value_texts[key][i]);
    return words[key][i];
}

/* ---- numbers ---- */

static uint64_t amount(struct chance *chance)
{
    static const uint64_t some[] = { 0,
                                     1,
                                     2,
                                     3,
                                     4,
                                     5,
                                     5,
                                     6,
                                     7,
                                     8,
                                     10,
                                     10,
                                     12,
                                     16,
                                     20,
                                     64,
                                     100,
                                     1000,
                                     999983,
                                     1000000000,
                                     ADM_MAX_AMOUNT - 1,
                                     ADM_MAX_AMOUNT };
    if (chance_of(chance, 50))
        return chance_below(chance, ADM_MAX_AMOUNT + 1);
    return CHANCE_PICK(chance, some);
}

static uint64_t duration(struct chance *chance)
{
    static const uint64_t some[] = { 1,
                                     2,
                                     3,
                                     7,
                                     10,
                                     100,
                                     999,
                                     1000,
                                     1000,
                                     1000,
                                     1500,
                                     7000,
                                     60000,
                                     60000,
                                     3600000,
                                     86400000,
                                     UINT64_C(31622400000) };
    if (chance_of(chance, 100))
        return chance_between(chance, 1, UINT64_C(31622400000)) * MS;
    return CHANCE_PICK(chance, some) * MS;
}

static void bucket_numbers(struct chance *chance, struct model_numbers *n)
{
    static const uint64_t refills[] = { 0, 1, 1,  1,   2,      2,       3,
                                        5, 7, 10, 100, 999979, 1000000, 1000000000 };
    n->capacity = amount(chance);
    n->refill = chance_of(chance, 50) ? chance_below(chance, ADM_MAX_AMOUNT + 1)
                                      : CHANCE_PICK(chance, refills);
    n->per_ns = duration(chance);
    if (n->refill > n->per_ns) /* at most one token per nanosecond */
        n->refill = chance_of(chance, 500) ? n->per_ns : 1;
    if (n->refill > ADM_MAX_AMOUNT)
        n->refill = ADM_MAX_AMOUNT;
    n->given = MODEL_GIVEN_CAPACITY | MODEL_GIVEN_REFILL | MODEL_GIVEN_PER;
}

static void concurrency_numbers(struct chance *chance, struct model_numbers *n)
{
    static const uint64_t fractions[] = { 500000000000000000,
                                          100000000000000000,
                                          333333333333333333,
                                          340000000000000000,
                                          999999999999999999,
                                          1000000000000000000,
                                          1,
                                          250000000000000000 };
    static const uint64_t ttls[] = {
        1, 10, 100, 1000, 1000, 5000, 60000, 60000, 60001, 3600000, UINT64_C(31622400000)
    };
    n->limit = amount(chance);
    n->ttl_ns = CHANCE_PICK(chance, ttls) * MS;
    n->given = MODEL_GIVEN_LIMIT | MODEL_GIVEN_TTL;
    if (chance_of(chance, 300)) {
        n->fraction_e18 = CHANCE_PICK(chance, fractions);
        n->given |= MODEL_GIVEN_FRACTION;
    }
}

static void pressure_numbers(struct chance *chance, enum model_comparison comparison,
                             struct model_numbers *n)
{
    static const uint64_t wholes[] = { 0, 0, 0, 1, 2, ADM_MAX_AMOUNT };
    static const uint64_t parts[] = {
        0, 500000000000000000, 900000000000000000, 900000000000000001, 333333333000000000,
        1, 999999999999999999
    };
    static const uint64_t ages[] = { 1, 100, 15000, 15001, 20000 };
    n->threshold_whole = CHANCE_PICK(chance, wholes);
    n->threshold_e18 = n->threshold_whole == ADM_MAX_AMOUNT ? 0 : CHANCE_PICK(chance, parts);
    n->comparison = comparison;
    n->given = MODEL_GIVEN_THRESHOLD;
    if (chance_of(chance, 300)) {
        n->age_ns = CHANCE_PICK(chance, ages) * MS;
        n->given |= MODEL_GIVEN_AGE;
    }
}

static void numbers(struct chance *chance, enum model_type type, enum model_comparison comparison,
                    struct model_numbers *n)
{
    memset(n, 0, sizeof *n);
    if (type == MODEL_BUCKET) {
        bucket_numbers(chance, n);
    } else if (type == MODEL_CONCURRENCY) {
        concurrency_numbers(chance, n);
    } else if (type == MODEL_PRESSURE) {
        pressure_numbers(chance, comparison, n);
    } else {
        n->limit = amount(chance);
        n->given = MODEL_GIVEN_LIMIT;
    }
}

static uint64_t overlaid(const struct model_numbers *base, const struct model_numbers *given,
                         bool per)
{
    const struct model_numbers *from =
        given->given & (per ? MODEL_GIVEN_PER : MODEL_GIVEN_REFILL) ? given : base;
    return per ? from->per_ns : from->refill;
}

/* Some of the numbers of an override or entry, so that what remains stays legal. */
static void some_numbers(struct chance *chance, const struct model_rule *rule,
                         struct model_numbers *n)
{
    static const unsigned masks[] = { MODEL_GIVEN_CAPACITY, MODEL_GIVEN_REFILL,
                                      MODEL_GIVEN_PER,      MODEL_GIVEN_LIMIT,
                                      MODEL_GIVEN_TTL,      MODEL_GIVEN_THRESHOLD,
                                      MODEL_GIVEN_AGE };
    struct model_numbers whole;
    numbers(chance, rule->type, rule->numbers.comparison, &whole);
    *n = whole;
    if (chance_of(chance, 500))
        n->given &= ~CHANCE_PICK(chance, masks);
    if (n->given == 0 || (rule->type == MODEL_BUCKET &&
                          overlaid(&rule->numbers, n, false) > overlaid(&rule->numbers, n, true)))
        *n = whole;
    if ((n->given & MODEL_GIVEN_THRESHOLD) == 0)
        n->comparison = 0;
    /* what is not given is zero: contents compare field by field */
    n->capacity = n->given & MODEL_GIVEN_CAPACITY ? n->capacity : 0;
    n->refill = n->given & MODEL_GIVEN_REFILL ? n->refill : 0;
    n->per_ns = n->given & MODEL_GIVEN_PER ? n->per_ns : 0;
    n->limit = n->given & MODEL_GIVEN_LIMIT ? n->limit : 0;
    n->ttl_ns = n->given & MODEL_GIVEN_TTL ? n->ttl_ns : 0;
    n->age_ns = n->given & MODEL_GIVEN_AGE ? n->age_ns : 0;
    n->threshold_whole = n->given & MODEL_GIVEN_THRESHOLD ? n->threshold_whole : 0;
    n->threshold_e18 = n->given & MODEL_GIVEN_THRESHOLD ? n->threshold_e18 : 0;
}

/* ---- matches ---- */

static int pattern(struct chance *chance, int key)
{
    int value = generate_value(chance, key);
    char text[ADM_MAX_VALUE_BYTES];
    size_t length = model_length(value);
    if (chance_of(chance, 200))
        return model_word_of("*");
    if (!chance_of(chance, 150) || length < 2 || length >= sizeof text ||
        (signed char)model_text(value)[0] < 0)
        return value;
    length = (size_t)chance_between(chance, 1, length - 1);
    memcpy(text, model_text(value), length);
    text[length] = '*';
    return model_word(text, length + 1);
}

static int entries(struct chance *chance, struct model_entry *out, int most)
{
    int count = (int)chance_between(chance, 0, (uint64_t)most);
    int used = 0;
    for (int i = 0; i < count; i++) {
        int key = (int)chance_below(chance, GENERATE_KEYS);
        bool again = false;
        for (int j = 0; j < used; j++)
            again = again || out[j].key == generate_key(key);
        if (again)
            continue;
        struct model_entry *entry = &out[used++];
        entry->key = generate_key(key);
        entry->count = 0;
        for (int j = (int)chance_between(chance, 1, MODEL_MAX_VALUES); j > 0; j--) {
            int value = pattern(chance, key);
            bool twice = false;
            for (int k = 0; k < entry->count; k++)
                twice = twice || entry->values[k] == value;
            if (!twice)
                entry->values[entry->count++] = value;
        }
    }
    return used;
}

static void make_match(struct chance *chance, struct model_match *match)
{
    memset(match, 0, sizeof *match);
    match->count = entries(chance, match->entries, 2);
    match->has_not = chance_of(chance, 150);
    if (match->has_not)
        match->not_count = entries(chance, match->negated, 2);
    if (match->not_count == 0 &&
        !chance_of(chance, 20)) /* an empty block never holds: seldom wanted */
        match->has_not = false;
}

/* ---- rules ---- */

static void make_overrides(struct chance *chance, struct model_rule *rule)
{
    if (!chance_of(chance, 350))
        return;
    for (int i = (int)chance_between(chance, 1, MODEL_MAX_OVERRIDES); i > 0; i--) {
        struct model_override *override = &rule->overrides[rule->override_count];
        bool twice = false;
        memset(override, 0, sizeof *override);
        make_match(chance, &override->when);
        for (int j = 0; j < rule->override_count; j++)
            twice = twice || model_match_equal(&rule->overrides[j].when, &override->when);
        if (twice)
            continue;
        override->off = chance_of(chance, 200);
        if (!override->off)
            some_numbers(chance, rule, &override->numbers);
        rule->override_count++;
    }
}

static void make_parts(struct chance *chance, struct model_rule *rule)
{
    static const int often[] = { 0, 0, 0, 0, 3, 1, 2, 4, 5 };
    for (int i = (int)chance_below(chance, chance_of(chance, 800) ? 2 : MODEL_MAX_PARTS + 1); i > 0;
         i--) {
        int key = generate_key(CHANCE_PICK(chance, often));
        bool twice = false;
        for (int j = 0; j < rule->part_count; j++)
            twice = twice || rule->parts[j] == key;
        if (!twice)
            rule->parts[rule->part_count++] = key;
    }
}

static void make_type_fields(struct chance *chance, struct model_rule *rule)
{
    bool replicas = rule->type == MODEL_BUCKET || rule->type == MODEL_CONCURRENCY;
    rule->per_replica = replicas && chance_of(chance, 250);
    rule->completion = rule->type == MODEL_BUCKET && chance_of(chance, 200);
    rule->exact =
        (rule->type == MODEL_BUCKET || rule->type == MODEL_QUOTA) && chance_of(chance, 350);
    if (rule->type == MODEL_QUOTA)
        rule->window = chance_of(chance, 500) ? ADM_WINDOW_DAY : ADM_WINDOW_MONTH;
    if (rule->type == MODEL_PRESSURE)
        rule->signal = model_word_of(chance_of(chance, 500) ? "load" : "kv");
    if (rule->per_replica || rule->type == MODEL_PRESSURE)
        rule->scope = chance_of(chance, 200) ? generate_key(4) : model_word_of("model");
    if ((replicas || rule->type == MODEL_QUOTA) && chance_of(chance, 200))
        rule->max_partitions = chance_between(chance, 1, 4);
}

static void make_rule(struct chance *chance, int id, struct model_rule *rule)
{
    static const enum model_type types[] = { MODEL_BUCKET,      MODEL_BUCKET,      MODEL_BUCKET,
                                             MODEL_CONCURRENCY, MODEL_CONCURRENCY, MODEL_CAP,
                                             MODEL_PRESSURE,    MODEL_QUOTA,       MODEL_QUOTA };
    memset(rule, 0, sizeof *rule);
    rule->id = id;
    rule->type = CHANCE_PICK(chance, types);
    rule->shadow = chance_of(chance, 200);
    rule->unit = chance_of(chance, 500) ? MODEL_COST : (int)chance_below(chance, MODEL_UNITS);
    if (chance_of(chance, 500))
        make_match(chance, &rule->match);
    make_parts(chance, rule);
    numbers(chance, rule->type, (enum model_comparison)chance_between(chance, MODEL_GT, MODEL_LTE),
            &rule->numbers);
    make_type_fields(chance, rule);
    make_overrides(chance, rule);
}

static int rule_id(int i)
{
    char id[16];
    snprintf(id, sizeof id, "r%d", i);
    return model_word_of(id);
}

/* More consuming rules than may match one request. */
static void make_wide(struct chance *chance, struct model_policy *policy)
{
    policy->rule_count = (int)chance_between(chance, 16, 18);
    for (int i = 0; i < policy->rule_count; i++) {
        struct model_rule *rule = &policy->rules[i];
        memset(rule, 0, sizeof *rule);
        rule->id = rule_id(20 + i);
        rule->type = i % 2 == 0 ? MODEL_BUCKET : MODEL_CONCURRENCY;
        numbers(chance, rule->type, 0, &rule->numbers);
        rule->numbers.given &= ~(unsigned)MODEL_GIVEN_FRACTION;
        rule->numbers.fraction_e18 = 0;
    }
}

static struct model_policy *new_policy(void)
{
    struct model_policy *policy = calloc(1, sizeof *policy);
    if (policy == NULL)
        abort();
    return policy;
}

struct model_policy *generate_policy(struct chance *chance, int version)
{
    static const uint64_t skews[] = { 1, 50, 10000, 10001, 60000, 3600000 };
    struct model_policy *policy = new_policy();
    policy->version = version;
    policy->unmatched_allow = chance_of(chance, 400);
    policy->skew_given = chance_of(chance, 400);
    policy->skew_ns = (policy->skew_given ? CHANCE_PICK(chance, skews) : 10000) * MS;
    if (chance_of(chance, 150))
        policy->shard = generate_key(2);
    if (chance_of(chance, 20)) {
        make_wide(chance, policy);
        return policy;
    }
    for (int i = 0; i < 8; i++)
        if (chance_of(chance, 450) || (i == 7 && policy->rule_count == 0))
            make_rule(chance, rule_id(i), &policy->rules[policy->rule_count++]);
    return policy;
}

static void change_numbers(struct chance *chance, struct model_rule *rule)
{
    struct model_numbers n;
    numbers(chance, rule->type, rule->numbers.comparison, &n);
    if (rule->type == MODEL_BUCKET && chance_of(chance, 500)) { /* only one of them */
        n = rule->numbers;
        n.capacity = amount(chance);
    }
    rule->numbers = n;
    for (int i = 0; i < rule->override_count; i++)
        if (!rule->overrides[i].off)
            some_numbers(chance, rule, &rule->overrides[i].numbers);
}

struct model_policy *generate_change(struct chance *chance, const struct model_policy *old,
                                     int version)
{
    struct model_policy *policy = new_policy();
    *policy = *old;
    policy->version = version;
    struct model_rule *rule = &policy->rules[chance_below(chance, (uint64_t)policy->rule_count)];
    switch (chance_below(chance, 10)) {
    case 0: /* a rule goes */
        if (policy->rule_count > 1)
            *rule = policy->rules[--policy->rule_count];
        break;
    case 1: /* a rule comes, perhaps back */
        for (int i = 0; i < 8 && policy->rule_count < MODEL_MAX_RULES; i++) {
            bool there = false;
            for (int j = 0; j < policy->rule_count; j++)
                there = there || policy->rules[j].id == rule_id(i);
            if (there)
                continue;
            make_rule(chance, rule_id(i), &policy->rules[policy->rule_count++]);
            break;
        }
        break;
    case 2: /* another rule of the same name */
        make_rule(chance, rule->id, rule);
        break;
    case 3:
        rule->shadow = !rule->shadow;
        break;
    case 4:
        if (rule->per_replica || rule->type == MODEL_BUCKET)
            rule->per_replica = !rule->per_replica;
        rule->scope = rule->per_replica || rule->type == MODEL_PRESSURE ? generate_key(3) : 0;
        break;
    case 5:
        rule->override_count = 0;
        make_overrides(chance, rule);
        break;
    default:
        change_numbers(chance, rule);
        break;
    }
    return policy;
}

void generate_table(struct chance *chance, const struct model_policy *policy, int version,
                    struct model_table *out)
{
    const struct model_rule *rule =
        &policy->rules[chance_below(chance, (uint64_t)policy->rule_count)];
    int key = chance_of(chance, 900) ? 0 : 1;
    memset(out, 0, sizeof *out);
    out->version = version;
    out->rule = chance_of(chance, 20) ? model_word_of("nobody") : rule->id;
    out->by = generate_key(key);
    for (int i = (int)chance_between(chance, 0, 4); i > 0; i--) {
        struct model_table_entry *entry = &out->entries[out->count];
        bool twice = false;
        entry->value = generate_value(chance, key);
        for (int j = 0; j < out->count; j++)
            twice = twice || out->entries[j].value == entry->value;
        if (twice)
            continue;
        entry->off = chance_of(chance, 150);
        if (!entry->off)
            some_numbers(chance, rule, &entry->numbers);
        out->count++;
    }
}
