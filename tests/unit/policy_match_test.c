/* SPDX-License-Identifier: Apache-2.0 */
/* Matching: what each kind of entry means, and the index against a loop over all rules. */
#include "base/memory.h"
#include "policy/match_index.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct adm_bytes view(const char *text)
{
    return (struct adm_bytes){ text, strlen(text) };
}

/* A request: a value for each key of the policy, or none. */
struct request {
    struct adm_bytes values[ADMI_POLICY_KEYS_MAX];
};

static void give(const struct adm_policy *policy, struct request *request, const char *key,
                 struct adm_bytes value)
{
    uint32_t slot = admi_policy_key(policy, view(key));
    if (slot != ADMI_NO_KEY)
        request->values[slot] = value;
}

/* ---- the definition ---- */

static const struct {
    const char *match;
    const char *request; /* key=value,key=value */
    bool holds;
} meanings[] = {
    { "{}", "", true },
    { "{}", "a=1", true },
    { "{\"a\":\"1\"}", "a=1", true },
    { "{\"a\":\"1\"}", "a=1,b=2", true },
    { "{\"a\":\"1\"}", "", false },
    { "{\"a\":\"1\"}", "a=2", false },
    { "{\"a\":\"1\"}", "a=11", false },
    { "{\"a\":\"11\"}", "a=1", false },
    { "{\"a\":\"x\"}", "a=X", false },  /* no case folding */
    { "{\"a\":\"x\"}", "a= x", false }, /* no trimming */
    { "{\"a\":\"*\"}", "a=1", true },
    { "{\"a\":\"*\"}", "b=1", false },
    { "{\"a\":\"gpt-4*\"}", "a=gpt-4", true },
    { "{\"a\":\"gpt-4*\"}", "a=gpt-4o", true },
    { "{\"a\":\"gpt-4*\"}", "a=gpt-", false },
    { "{\"a\":\"a*b\"}", "a=a*b", true }, /* only a trailing star means something */
    { "{\"a\":\"a*b\"}", "a=axb", false },
    { "{\"a\":\"*b\"}", "a=*b", true },
    { "{\"a\":\"*b\"}", "a=ab", false },
    { "{\"a\":\"**\"}", "a=*x", true },
    { "{\"a\":\"**\"}", "a=x", false },
    { "{\"a\":[\"x\",\"y\"]}", "a=y", true },
    { "{\"a\":[\"x\",\"y\"]}", "a=z", false },
    { "{\"a\":[\"x\",\"y*\"]}", "a=yz", true },
    { "{\"a\":[\"x\",\"*\"]}", "a=z", true },
    { "{\"a\":\"1\",\"b\":\"2\"}", "a=1,b=2", true },
    { "{\"a\":\"1\",\"b\":\"2\"}", "a=1", false },
    { "{\"a\":\"1\",\"b\":\"2\"}", "a=1,b=3", false },
    { "{\"not\":{\"a\":\"1\"}}", "", true },
    { "{\"not\":{\"a\":\"1\"}}", "a=2", true },
    { "{\"not\":{\"a\":\"1\"}}", "a=1", false },
    { "{\"not\":{\"a\":\"*\"}}", "", true },
    { "{\"not\":{\"a\":\"*\"}}", "a=1", false },
    { "{\"not\":{\"a\":\"1\",\"b\":\"2\"}}", "a=1", true }, /* the block as a whole is negated */
    { "{\"not\":{\"a\":\"1\",\"b\":\"2\"}}", "a=1,b=2", false },
    { "{\"not\":{\"a\":[\"1\",\"2*\"]}}", "a=22", false },
    { "{\"not\":{}}", "", false },
    { "{\"not\":{}}", "a=1", false },
    { "{\"a\":\"1\",\"not\":{\"b\":\"2\"}}", "a=1,b=2", false },
    { "{\"a\":\"1\",\"not\":{\"b\":\"2\"}}", "a=1,b=3", true },
    { "{\"a\":\"\\u00fc*\"}",
      "a=\xC3\xBC"
      "ber",
      true },
    { "{\"a\":\"\\u00fc*\"}", "a=u\xCC\x88", false }, /* no normalisation */
};

static void parse_request(const struct adm_policy *policy, const char *text, struct request *out)
{
    memset(out, 0, sizeof *out);
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        char key[] = { text[0], '\0' };
        ck_assert_int_eq(text[1], '=');
        give(policy, out, key, (struct adm_bytes){ text + 2, length - 2 });
        text += length + (text[length] == ',');
    }
}

static struct adm_policy *policy_of(const char *const *matches, size_t count)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (size_t i = 0; i < count; i++)
        text_add(&text, "%s{\"id\":\"%zu\",\"type\":\"request_cap\",\"limit\":1,\"match\":%s}",
                 i == 0 ? "" : ",", i, matches[i]);
    text_add(&text, "]}");
    struct adm_policy *policy = must_load(text.bytes);
    free(text.bytes);
    return policy;
}

/* Rubbish, so that a word that is read without having been written shows. */
static struct admi_matched *new_matched(void)
{
    struct admi_matched *matched = malloc(sizeof *matched);
    memset(matched, 0xAA, sizeof *matched);
    return matched;
}

START_TEST(meaning_of_entries)
{
    static struct request request;
    for (size_t i = 0; i < COUNT(meanings); i++) {
        struct adm_policy *policy = policy_of(&meanings[i].match, 1);
        struct admi_matched *matched = new_matched();
        const struct admi_match *match = &policy->rules[0].match;
        parse_request(policy, meanings[i].request, &request);
        ck_assert_msg(admi_match_holds(match, request.values) == meanings[i].holds, "%s of %s",
                      meanings[i].match, meanings[i].request);
        ck_assert_int_eq(admi_match_failure(match, request.values) == NULL, meanings[i].holds);
        admi_policy_match(policy, request.values, matched);
        ck_assert_msg((admi_matched_next(matched, 0) == 0) == meanings[i].holds, "%s of %s",
                      meanings[i].match, meanings[i].request);
        ck_assert_int_eq(admi_matched_has(matched, 0), meanings[i].holds);
        free(matched);
        adm_policy_unref(policy);
    }
}
END_TEST

START_TEST(failure_names_the_entry)
{
    static const char *const matches[] = {
        "{\"a\":\"1\",\"b\":\"2\",\"not\":{\"c\":\"3\",\"d\":\"4\"}}", "{\"not\":{}}"
    };
    static struct request request;
    struct adm_policy *policy = policy_of(matches, 2);
    const struct admi_match *match = &policy->rules[0].match;
    parse_request(policy, "b=2", &request);
    ck_assert_uint_eq(admi_match_failure(match, request.values)->key,
                      admi_policy_key(policy, view("a")));
    parse_request(policy, "a=1,b=3", &request);
    ck_assert_uint_eq(admi_match_failure(match, request.values)->key,
                      admi_policy_key(policy, view("b")));
    parse_request(policy, "a=1,b=2,c=3,d=4", &request);
    ck_assert_uint_eq(admi_match_failure(match, request.values)->key,
                      admi_policy_key(policy, view("c")));
    ck_assert_uint_eq(admi_match_failure(&policy->rules[1].match, request.values)->key,
                      ADMI_NO_KEY);
    adm_policy_unref(policy);
}
END_TEST

/* Many values are looked up by bisection. */
START_TEST(long_arrays)
{
    struct text match = { 0 };
    static struct request request;
    text_add(&match, "{\"a\":[\"p*\"");
    for (uint32_t i = 0; i < 1000; i++)
        text_add(&match, ",\"v%u\"", i * 7 % 1000 * 2);
    text_add(&match, ",\"qq*\"]}");
    const char *matches[] = { match.bytes };
    struct adm_policy *policy = policy_of(matches, 1);
    for (uint32_t i = 0; i < 2001; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%u", i);
        memset(&request, 0, sizeof request);
        give(policy, &request, "a", view(value));
        ck_assert_int_eq(admi_match_holds(&policy->rules[0].match, request.values),
                         i % 2 == 0 && i < 2000);
    }
    give(policy, &request, "a", view("pq"));
    ck_assert(admi_match_holds(&policy->rules[0].match, request.values));
    give(policy, &request, "a", view("qqv"));
    ck_assert(admi_match_holds(&policy->rules[0].match, request.values));
    give(policy, &request, "a", view("q"));
    ck_assert(!admi_match_holds(&policy->rules[0].match, request.values));
    adm_policy_unref(policy);
    free(match.bytes);
}
END_TEST

/* ---- the bitmap ---- */

START_TEST(next_walks_exactly_the_marked_rules)
{
    static const uint32_t sets[][8] = {
        { UINT32_MAX },
        { 0, UINT32_MAX },
        { 63, 64, 4095, 4096, 16383, UINT32_MAX },
        { 16383, UINT32_MAX },
        { 4096, 8192, 12288, UINT32_MAX },
        { 1, 2, 3, 62, 63, 64, 65, UINT32_MAX },
    };
    for (size_t s = 0; s < COUNT(sets); s++) {
        struct admi_matched *matched = new_matched();
        memset(matched->summary, 0, sizeof matched->summary);
        matched->end = 0;
        for (uint32_t i = 0; sets[s][i] != UINT32_MAX; i++) {
            uint32_t rule = sets[s][i], word = rule / 64;
            if ((matched->summary[word / 64] >> word % 64 & 1) == 0)
                matched->words[word] = 0;
            matched->summary[word / 64] |= UINT64_C(1) << word % 64;
            matched->words[word] |= UINT64_C(1) << rule % 64;
            matched->end = word + 1;
        }
        uint32_t next = 0;
        for (uint32_t rule = 0; rule <= ADMI_MAX_RULES; rule++) {
            while (sets[s][next] < rule)
                next++;
            ck_assert_uint_eq(admi_matched_next(matched, rule), sets[s][next]);
            if (rule < ADMI_MAX_RULES)
                ck_assert_int_eq(admi_matched_has(matched, rule), sets[s][next] == rule);
        }
        ck_assert_uint_eq(admi_matched_next(matched, UINT32_MAX), UINT32_MAX);
        free(matched);
    }
}
END_TEST

/* ---- the index against a loop ---- */

/* Few keys and few short values, so that prefixes, equal values and equal blocks are frequent. */
static void random_value(uint64_t *seed, struct text *text, uint32_t letters)
{
    uint32_t length = 1 + below(seed, 3);
    for (uint32_t i = 0; i < length; i++)
        text_add(text, "%c", 'a' + (char)below(seed, letters));
}

static void random_entry(uint64_t *seed, struct text *text, uint32_t letters)
{
    uint32_t values = below(seed, 4) == 0 ? 1 + below(seed, 12) : 1;
    text_add(text, "[");
    for (uint32_t i = 0; i < values; i++) {
        text_add(text, "%s\"", i == 0 ? "" : ",");
        uint32_t kind = below(seed, 10);
        if (kind > 0)
            random_value(seed, text, letters);
        text_add(text, "%s\"", kind < 3 ? "*" : "");
    }
    text_add(text, "]");
}

static void random_block(uint64_t *seed, struct text *text, uint32_t keys, uint32_t letters,
                         bool with_not)
{
    const char *separator = "";
    text_add(text, "{");
    for (uint32_t key = 0; key < keys; key++)
        if (below(seed, keys) < 2) {
            text_add(text, "%s\"k%u\":", separator, key);
            random_entry(seed, text, letters);
            separator = ",";
        }
    if (with_not && below(seed, 3) == 0) {
        text_add(text, "%s\"not\":", separator);
        random_block(seed, text, keys, letters, false);
    }
    text_add(text, "}");
}

static struct adm_policy *random_policy(uint64_t *seed, uint32_t keys, uint32_t letters)
{
    struct text text = { 0 };
    uint32_t rules = 1 + below(seed, 400);
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (uint32_t i = 0; i < rules; i++) {
        text_add(&text, "%s{\"id\":\"%u\",\"type\":\"request_cap\",\"limit\":1,\"match\":",
                 i == 0 ? "" : ",", i);
        random_block(seed, &text, keys, letters, true);
        text_add(&text, "}");
    }
    text_add(&text, "]}");
    struct adm_policy *policy = must_load(text.bytes);
    free(text.bytes);
    return policy;
}

static void random_request(uint64_t *seed, const struct adm_policy *policy, uint32_t keys,
                           uint32_t letters, struct request *request, struct text *storage)
{
    size_t starts[16], lengths[16];
    memset(request, 0, sizeof *request);
    storage->length = 0;
    for (uint32_t key = 0; key < keys; key++) {
        lengths[key] = 0;
        if (below(seed, 4) == 0)
            continue;
        starts[key] = storage->length;
        random_value(seed, storage, letters);
        lengths[key] = storage->length - starts[key];
    }
    for (uint32_t key = 0; key < keys; key++) {
        char name[8];
        snprintf(name, sizeof name, "k%u", key);
        if (lengths[key] > 0)
            give(policy, request, name,
                 (struct adm_bytes){ storage->bytes + starts[key], lengths[key] });
    }
}

START_TEST(index_agrees_with_a_loop_over_all_rules)
{
    static struct request request;
    struct text storage = { 0 };
    struct admi_matched *matched = new_matched();
    uint64_t seed = 20261201, comparisons = 0, holding = 0, paired = 0;
    for (uint32_t round = 0; round < 120; round++) {
        uint32_t keys = 1 + below(&seed, 8), letters = 1 + below(&seed, 6);
        struct adm_policy *policy = random_policy(&seed, keys, letters);
        paired += policy->match_index->pair_count;
        for (uint32_t i = 0; i < 60; i++) {
            random_request(&seed, policy, keys, letters, &request, &storage);
            admi_policy_match(policy, request.values, matched);
            uint32_t next = admi_matched_next(matched, 0);
            for (uint32_t rule = 0; rule < policy->rule_count; rule++) {
                bool holds = admi_match_holds(&policy->rules[rule].match, request.values);
                if (holds != (next == rule))
                    ck_abort_msg("round %u, request %u, rule %u: the loop says %d", round, i, rule,
                                 holds);
                if (holds)
                    next = admi_matched_next(matched, rule + 1);
                comparisons++;
                holding += holds;
            }
            ck_assert_uint_eq(next, UINT32_MAX);
        }
        adm_policy_unref(policy);
    }
    ck_assert_uint_ge(comparisons, 1000000);
    ck_assert_uint_ge(holding, comparisons / 100); /* the generator is worth something */
    ck_assert_uint_ge(comparisons - holding, comparisons / 100);
    ck_assert_uint_gt(paired, 0);
    free(matched);
    free(storage.bytes);
}
END_TEST

/* ---- what does not match costs nothing ---- */

/*
 * Groups whose match would be tested for a request: as admi_policy_match visits them, counted by
 * hand.
 */
static uint64_t candidates(const struct adm_policy *policy, const struct adm_bytes *values)
{
    const struct admi_match_index *index = policy->match_index;
    uint64_t count = index->always.count;
    for (uint32_t k = 0; k < index->key_count; k++) {
        const struct admi_match_key *key = &index->keys[k];
        if (values[key->slot].length > 0)
            count += key->present.count;
    }
    for (uint64_t at = 0; at <= index->slot_mask; at++) {
        const struct admi_match_slot *slot = &index->slots[at];
        for (uint32_t k = 0; slot->list.count > 0 && k < index->key_count; k++) {
            const struct admi_match_key *key = &index->keys[k];
            struct adm_bytes value = values[key->slot];
            if (value.length == 0)
                continue;
            uint64_t hash = admi_match_hash(key->slot, ADMI_VALUE_EXACT, value);
            if (hash == slot->hash)
                count += slot->list.count;
            for (uint32_t o = 0; o < index->key_count; o++)
                if (index->keys[o].slot > key->slot && values[index->keys[o].slot].length > 0 &&
                    admi_match_pair_hash(
                        hash, admi_match_hash(index->keys[o].slot, ADMI_VALUE_EXACT,
                                              values[index->keys[o].slot])) == slot->hash)
                    count += slot->list.count;
            for (uint32_t length = 1; length <= value.length; length++)
                if (admi_match_hash(key->slot, ADMI_VALUE_PREFIX,
                                    (struct adm_bytes){ value.data, length }) == slot->hash)
                    count += slot->list.count;
        }
    }
    return count;
}

/* # stands for the number of the rule, < and > for its hundreds and the rest. */
static const struct {
    const char *match;
    const char *request;
    uint64_t most; /* candidates */
} shapes[] = {
    { "{\"c\":\"v#\"}", "c=v7", 1 },
    { "{\"m\":\"*\",\"c\":\"v#\"}", "c=v7,m=x", 1 },
    { "{\"m\":\"x\",\"c\":[\"v#\",\"w#\"]}", "c=w7,m=x", 1 },
    { "{\"c\":\"v#-*\"}", "c=v7-1", 1 },
    { "{\"m\":\"x\",\"not\":{\"c\":\"z\"},\"n\":\"v#\"}", "m=x,n=v7", 1 },
    /* neither key alone is selective: */
    { "{\"a\":\"x<\",\"b\":\"y>\"}", "a=x5,b=y7", 1 },
    { "{\"m\":\"x\",\"a\":\"x<\",\"b\":\"y>\",\"z\":\"*\"}", "a=x5,b=y7,m=x,z=1", 1 },
    /* one block, however many rules: */
    { "{\"m\":\"*\",\"not\":{\"t\":\"gold\"}}", "m=x,t=gold", 1 },
};

static void add_match(struct text *text, const char *shape, uint32_t number)
{
    for (; *shape != '\0'; shape++) {
        if (*shape == '#')
            text_add(text, "%u", number);
        else if (*shape == '<')
            text_add(text, "%u", number / 100);
        else if (*shape == '>')
            text_add(text, "%u", number % 100);
        else
            text_add(text, "%c", *shape);
    }
}

START_TEST(candidates_do_not_grow_with_rules)
{
    static struct request request;
    for (size_t s = 0; s < COUNT(shapes); s++) {
        struct text text = { 0 };
        text_add(&text, "{\"version\":\"v\",\"rules\":[");
        for (uint32_t i = 0; i < 5000; i++) {
            text_add(&text, "%s{\"id\":\"%u\",\"type\":\"request_cap\",\"limit\":1,\"match\":",
                     i == 0 ? "" : ",", i);
            add_match(&text, shapes[s].match, i);
            text_add(&text, "}");
        }
        text_add(&text, "]}");
        struct adm_policy *policy = must_load(text.bytes);
        parse_request(policy, shapes[s].request, &request);
        uint64_t count = candidates(policy, request.values);
        ck_assert_msg(count <= shapes[s].most, "%s: %d", shapes[s].match, (int)count);
        adm_policy_unref(policy);
        free(text.bytes);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-match");
    TCase *cases = tcase_create("policy-match");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, meaning_of_entries);
    tcase_add_test(cases, failure_names_the_entry);
    tcase_add_test(cases, long_arrays);
    tcase_add_test(cases, next_walks_exactly_the_marked_rules);
    tcase_add_test(cases, index_agrees_with_a_loop_over_all_rules);
    tcase_add_test(cases, candidates_do_not_grow_with_rules);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
