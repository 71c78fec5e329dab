/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled policies: every field arrives, identities and digests tell apart what differs, bounds,
 * the public functions.
 */
#include "base/memory.h"
#include "policy/ruleset.h"
#include "policy/schema.h"
#include "policy_support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define BUCKET       "\"type\":\"token_bucket\",\"capacity\":10,\"refill\":1,\"per\":\"1s\""

static struct adm_bytes view(const char *text)
{
    return (struct adm_bytes){ text, strlen(text) };
}

static void assert_bytes(struct adm_bytes bytes, const char *text)
{
    ck_assert_msg(admi_bytes_equal(bytes, view(text)), "%.*s, not %s", (int)bytes.length,
                  (const char *)bytes.data, text);
}

static const struct admi_rule *rule_of(const struct adm_policy *policy, const char *id)
{
    uint32_t rule = admi_policy_rule(policy, view(id));
    ck_assert_uint_lt(rule, policy->rule_count);
    return &policy->rules[rule];
}

/* ---- every field ---- */

static const char full[] =
    "{\"version\":\"2026-12-01.1\",\"description\":\"d\",\"unmatched\":\"allow\",\"max_clock_"
    "skew\":\"3s\","
    "\"shard_by\":\"pool\",\"hard_timeout\":\"60s\",\"metric_labels\":[\"service\",\"operation\"],"
    "\"units\":[\"gpu_ms\",\"pages\"],\"rules\":["
    "{\"id\":\"b\",\"type\":\"token_bucket\",\"partition_by\":[\"consumer\",\"service\"],\"unit\":"
    "\"pages\","
    "\"capacity\":200,\"refill\":100,\"per\":\"250ms\",\"charge\":\"completion\",\"settle\":"
    "\"exact\","
    "\"per_replica\":true,\"max_partitions\":1000,\"description\":\"x\"},"
    "{\"id\":\"c\",\"type\":\"concurrency\",\"unit\":\"requests\",\"limit\":64,\"lease_ttl\":"
    "\"90s\",\"park\":\"250ms\","
    "\"fraction\":0.75,\"per_replica\":true,\"scope_by\":\"zone\",\"mode\":\"shadow\"},"
    "{\"id\":\"r\",\"type\":\"request_cap\",\"match\":{\"op\":[\"chat\",\"messages\",\"gpt-4*\"],"
    "\"not\":{\"tier\":\"*\"}},"
    "\"unit\":\"input_tokens\",\"limit\":131072},"
    "{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"kv\",\"lte\":0.90,\"max_age\":\"2s\"},"
    "{\"id\":\"q\",\"type\":\"quota\",\"unit\":\"tokens\",\"limit\":50,\"window\":\"month\","
    "\"mode\":\"enforce\"}]}";

static struct adm_policy *load_full(void)
{
    return must_load(full);
}

START_TEST(every_top_field_arrives)
{
    struct adm_policy *policy = load_full();
    ck_assert_str_eq(adm_policy_version(policy), "2026-12-01.1");
    ck_assert_uint_eq(adm_policy_rule_count(policy), 5);
    ck_assert(policy->unmatched_allow);
    ck_assert_uint_eq(policy->max_clock_skew_ns, 3 * ADM_SECOND);
    ck_assert_uint_eq(policy->hard_timeout_ns, 60 * ADM_SECOND);
    assert_bytes(policy->keys[policy->shard_key], "pool");
    ck_assert_uint_eq(policy->label_count, 2);
    assert_bytes(policy->keys[policy->labels[1]], "operation");
    ck_assert_uint_eq(policy->unit_count, 2);
    assert_bytes(admi_policy_unit_name(policy, ADM_UNIT_FIRST_DECLARED), "gpu_ms");
    assert_bytes(admi_policy_unit_name(policy, ADM_UNIT_IMAGES), "images");
    assert_bytes(admi_policy_unit_name(policy, ADM_UNIT_FIRST_DECLARED + 2), "?");
    for (uint32_t i = 0; i < policy->key_count; i++)
        ck_assert_uint_eq(admi_policy_key(policy, policy->keys[i]), i);
    ck_assert_uint_eq(admi_policy_key(policy, view("unheard")), ADMI_NO_KEY);
    ck_assert_uint_eq(admi_policy_rule(policy, view("unheard")), UINT32_MAX);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(every_field_of_counting_rules_arrives)
{
    struct adm_policy *policy = load_full();
    const struct admi_rule *b = rule_of(policy, "b"), *c = rule_of(policy, "c");
    const struct admi_rule *q = rule_of(policy, "q");
    ck_assert_int_eq(b->type, ADMI_TOKEN_BUCKET);
    ck_assert_uint_eq(b->index, 0);
    ck_assert(b->completion && b->settle_exact && b->per_replica && !b->shadow);
    ck_assert_uint_eq(b->unit, ADM_UNIT_FIRST_DECLARED + 1);
    ck_assert_uint_eq(b->partition_count, 2);
    assert_bytes(policy->keys[b->partition_keys[0]], "consumer");
    assert_bytes(policy->keys[b->partition_keys[1]], "service");
    assert_bytes(policy->keys[b->scope_key], "model"); /* the default */
    ck_assert_uint_eq(b->max_partitions, 1000);
    ck_assert_uint_eq(b->numbers.capacity, 200);
    ck_assert_uint_eq(b->numbers.refill, 100);
    ck_assert_uint_eq(b->numbers.per_ns, 250 * ADM_MILLISECOND);
    ck_assert_uint_eq(b->numbers.given, ADMI_GIVEN_CAPACITY | ADMI_GIVEN_REFILL | ADMI_GIVEN_PER);
    ck_assert(c->shadow && c->per_replica && !c->completion);
    ck_assert_uint_eq(c->unit, ADM_UNIT_REQUESTS);
    assert_bytes(policy->keys[c->scope_key], "zone");
    ck_assert_uint_eq(c->numbers.limit, 64);
    ck_assert_uint_eq(c->numbers.lease_ttl_ns, 90 * ADM_SECOND);
    ck_assert_uint_eq(c->numbers.park_ns, 250 * ADM_MILLISECOND);
    ck_assert_uint_eq(c->numbers.fraction.whole, 0);
    ck_assert_uint_eq(c->numbers.fraction.fraction_e18, 3 * ADMI_DECIMAL_ONE / 4);
    ck_assert_uint_eq(q->window, ADM_WINDOW_MONTH);
    ck_assert_uint_eq(q->unit, ADM_UNIT_TOKENS);
    ck_assert_uint_eq(q->scope_key, ADMI_NO_KEY);
    ck_assert_uint_eq(q->numbers.fraction.whole, 1); /* not given: 1 */
    ck_assert_uint_eq(q->max_partitions, 0);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(every_field_of_checking_rules_arrives)
{
    struct adm_policy *policy = load_full();
    const struct admi_rule *r = rule_of(policy, "r"), *p = rule_of(policy, "p");
    ck_assert_uint_eq(r->numbers.limit, 131072);
    ck_assert_uint_eq(r->match.entry_count, 1);
    ck_assert_uint_eq(r->match.entries[0].value_count, 3);
    ck_assert_uint_eq(r->match.has_not, 1);
    ck_assert_uint_eq(r->match.negated[0].values[0].kind, ADMI_VALUE_PRESENT);
    ck_assert_uint_eq(p->numbers.comparison, ADMI_LTE);
    ck_assert_uint_eq(p->numbers.threshold.fraction_e18, 9 * (ADMI_DECIMAL_ONE / 10));
    ck_assert_uint_eq(p->numbers.max_age_ns, 2 * ADM_SECOND);
    assert_bytes(p->signal, "kv");
    assert_bytes(policy->keys[p->scope_key], "model");
    ck_assert_str_eq(admi_rule_type_name(p->type), "pressure");
    adm_policy_unref(policy);
}
END_TEST

START_TEST(defaults)
{
    struct adm_policy *policy = must_load("{\"version\":\"v\",\"rules\":[{\"id\":\"p\",\"type\":"
                                          "\"pressure\",\"signal\":\"s\",\"gt\":1}]}");
    ck_assert(!policy->unmatched_allow);
    ck_assert_uint_eq(policy->max_clock_skew_ns, 10 * ADM_SECOND);
    ck_assert_uint_eq(policy->hard_timeout_ns, 0);
    ck_assert_uint_eq(policy->shard_key, ADMI_NO_KEY);
    ck_assert_uint_eq(policy->rules[0].unit, ADM_UNIT_COST);
    ck_assert_uint_eq(policy->rules[0].numbers.max_age_ns, 15 * ADM_SECOND);
    ck_assert(!policy->rules[0].shadow && !policy->rules[0].completion);
    adm_policy_unref(policy);
}
END_TEST

/* ---- overrides ---- */

#define WITH_OVERRIDES(type, text)                                                                 \
    "{\"version\":\"v\",\"rules\":[{\"id\":\"r\"," type ",\"overrides\":[" text "]}]}"

START_TEST(overrides_are_complete_numbers)
{
    struct adm_policy *policy = must_load(WITH_OVERRIDES(
        BUCKET,
        "{\"when\":{\"t\":\"a\"},\"capacity\":5},{\"when\":{\"t\":\"b\"},\"off\":true},"
        "{\"when\":{\"t\":[\"c\",\"a\"]},\"per\":\"2s\",\"refill\":0},{\"when\":{\"t\":\"d\"}}"));
    const struct admi_override *o = policy->rules[0].overrides;
    ck_assert_uint_eq(policy->rules[0].override_count, 4);
    ck_assert_uint_eq(o[0].numbers.capacity, 5);
    ck_assert_uint_eq(o[0].numbers.refill, 1);
    ck_assert_uint_eq(o[0].numbers.per_ns, ADM_SECOND);
    ck_assert(o[1].off && !o[0].off && !o[2].off && !o[3].off);
    ck_assert_uint_eq(o[2].numbers.capacity, 10);
    ck_assert_uint_eq(o[2].numbers.refill, 0);
    ck_assert_uint_eq(o[2].numbers.per_ns, 2 * ADM_SECOND);
    ck_assert_uint_eq(o[3].numbers.capacity, 10); /* its own class with the same numbers */
    assert_bytes(o[0].origin, "{\"t\":[\"a\"]}");
    assert_bytes(o[2].origin, "{\"t\":[\"a\",\"c\"]}");
    adm_policy_unref(policy);
}
END_TEST

/* Case 27: one comparison of an override replaces threshold and comparison. */
START_TEST(pressure_override_replaces_the_threshold)
{
    struct adm_policy *policy = must_load(
        WITH_OVERRIDES("\"type\":\"pressure\",\"signal\":\"kv\",\"gt\":0.5,\"max_age\":\"1s\"",
                       "{\"when\":{\"t\":\"a\"},\"gt\":0.9}"));
    const struct admi_numbers *numbers = &policy->rules[0].overrides[0].numbers;
    ck_assert_uint_eq(numbers->threshold.fraction_e18, 9 * (ADMI_DECIMAL_ONE / 10));
    ck_assert_uint_eq(numbers->comparison, ADMI_GT);
    ck_assert_uint_eq(numbers->max_age_ns, ADM_SECOND);
    adm_policy_unref(policy);
}
END_TEST

START_TEST(a_second_override_of_the_same_when_is_left_out)
{
    struct loaded loaded =
        load_text(WITH_OVERRIDES(BUCKET, "{\"when\":{\"t\":\"a\",\"u\":[\"x\",\"y\"]},\"capacity\":"
                                         "1},{\"when\":{\"t\":\"b\"},\"capacity\":2},"
                                         "{\"when\":{\"u\":[\"y\",\"x\",\"x\"],\"t\":[\"a\"]},"
                                         "\"capacity\":3},{\"when\":{\"t\":\"b\"},\"off\":true},"
                                         "{\"when\":{\"t\":\"c\"},\"capacity\":4}"));
    ck_assert_int_eq(loaded.status, ADM_OK);
    ck_assert_uint_eq(count_named(loaded.diags, "unreachable_override"), 2);
    const struct admi_rule *rule = &loaded.policy->rules[0];
    ck_assert_uint_eq(rule->override_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        static const uint64_t capacities[] = { 1, 2, 4 };
        ck_assert_uint_eq(rule->overrides[i].numbers.capacity, capacities[i]);
        ck_assert(!rule->overrides[i].off);
    }
    loaded_free(&loaded);
}
END_TEST

/* B-rule 9: what differs in meaning must differ in text, however its bytes are put together. */
START_TEST(origins_tell_blocks_apart)
{
    static const char *const blocks[] = {
        "{}",
        "{\"not\":{}}",
        "{\"a\":\"b\"}",
        "{\"a\":\"b*\"}",
        "{\"a\":\"*\"}",
        "{\"a\":[\"b\",\"c\"]}",
        "{\"a\":[\"b\",\"c*\"]}",
        "{\"a\":\"b\",\"c\":\"d\"}",
        "{\"a\":\"b\",\"not\":{\"c\":\"d\"}}",
        "{\"not\":{\"a\":\"b\",\"c\":\"d\"}}",
        "{\"a\":\"b\\\",\\\"c\"}",
        "{\"a\":[\"b\",\"c\"],\"d\":\"e\"}",
        "{\"a\":\"b\\\\\"}",
        "{\"a\":\"b\\\\\\\\\"}",
        "{\"a\\\":[\\\"b\":\"c\"}",
        "{\"a\":\"\\u0001\"}",
        "{\"a\":\"\\\\u0001\"}",
        "{\"ab\":\"c\"}",
        "{\"a\":\"bc\"}",
    };
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[{\"id\":\"r\"," BUCKET ",\"overrides\":[");
    for (size_t i = 0; i < COUNT(blocks); i++)
        text_add(&text, "%s{\"when\":%s}", i == 0 ? "" : ",", blocks[i]);
    text_add(&text, "]}]}");
    struct adm_policy *policy = must_load(text.bytes);
    const struct admi_rule *rule = &policy->rules[0];
    ck_assert_uint_eq(rule->override_count, COUNT(blocks));
    for (uint32_t i = 0; i < rule->override_count; i++)
        for (uint32_t j = 0; j < i; j++)
            ck_assert_msg(!admi_bytes_equal(rule->overrides[i].origin, rule->overrides[j].origin),
                          "%s and %s", blocks[i], blocks[j]);
    adm_policy_unref(policy);
    free(text.bytes);
}
END_TEST

/* ---- identity ---- */

START_TEST(identities_never_collide)
{
    static const char *const rules[] = {
        "{\"id\":\"r\",\"type\":\"token_bucket\",\"capacity\":1,\"refill\":1,\"per\":\"1s\"}",
        "{\"id\":\"r\",\"type\":\"concurrency\",\"limit\":1,\"lease_ttl\":\"1s\"}",
        "{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\"}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"month\"}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"unit\":\"tokens\"}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"partition_by\":[\"a\"]}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"partition_by\":[\"a\","
        "\"b\"]}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"partition_by\":[\"b\","
        "\"a\"]}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"partition_by\":[\"ab\"]"
        "}",
        "{\"id\":\"r\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\",\"partition_by\":["
        "\"a\\u0001\\u0001\\u0001b\"]}",
        "{\"id\":\"rr\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\"}",
        "{\"id\":\"R\",\"type\":\"quota\",\"limit\":1,\"window\":\"day\"}",
    };
    struct adm_policy *policies[COUNT(rules)];
    for (size_t i = 0; i < COUNT(rules); i++) {
        struct text text = { 0 };
        text_add(&text, "{\"version\":\"v\",\"rules\":[%s]}", rules[i]);
        policies[i] = must_load(text.bytes);
        free(text.bytes);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(
                !admi_bytes_equal(policies[i]->rules[0].identity, policies[j]->rules[0].identity),
                "%s and %s", rules[i], rules[j]);
    }
    for (size_t i = 0; i < COUNT(rules); i++)
        adm_policy_unref(policies[i]);
}
END_TEST

/*
 * L9: numbers, overrides, mode, version and place in the policy are no part of a rule's identity.
 */
START_TEST(identity_survives_a_change_of_numbers_L9)
{
    struct adm_policy *one = must_load("{\"version\":\"v1\",\"rules\":[{\"id\":\"r\"," BUCKET
                                       ",\"partition_by\":[\"c\"]}]}");
    struct adm_policy *two =
        must_load("{\"version\":\"v2\",\"units\":[\"zz\"],\"rules\":[{\"id\":\"first\"," BUCKET
                  ",\"match\":{\"d\":\"x\"}},"
                  "{\"id\":\"r\",\"type\":\"token_bucket\",\"capacity\":9,\"refill\":2,\"per\":"
                  "\"3s\",\"partition_by\":[\"c\"],"
                  "\"match\":{\"c\":\"*\"},\"overrides\":[{\"when\":{\"c\":\"1\"},\"off\":true}],"
                  "\"settle\":\"exact\","
                  "\"max_partitions\":5,\"mode\":\"shadow\",\"description\":\"other\"}]}");
    ck_assert(admi_bytes_equal(rule_of(one, "r")->identity, rule_of(two, "r")->identity));
    adm_policy_unref(one);
    adm_policy_unref(two);
}
END_TEST

/* ---- digest ---- */

#define DIGEST_OF(inside) "{\"version\":\"v\"," inside "}"
static const char digest_base[] =
    DIGEST_OF("\"description\":\"a/"
              "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
              "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_cap\","
              "\"limit\":1}]");

static void digest_of(const char *text, uint8_t out[16])
{
    struct adm_policy *policy = must_load(text);
    memcpy(out, policy->digest, 16);
    adm_policy_unref(policy);
}

START_TEST(digest_ignores_layout)
{
    static const char *const same[] = {
        DIGEST_OF(
            "\"rules\":[{\"gt\":0.9,\"match\":{\"b\":\"1\",\"a\":[\"x\",\"y\"]},\"type\":"
            "\"pressure\","
            "\"signal\":\"s\",\"id\":\"p\"},{\"limit\":1,\"id\":\"q\",\"type\":\"request_cap\"}],"
            "\"description\":\"a\\/b\""),
        "\n{\"version\" : \"\\u0076\" ,\t\"description\":\"a/b\",\r\n\"rules\":[ "
        "{\"id\":\"p\",\"type\":\"pressure\","
        "\"signal\":\"s\",\"gt\":0.900000000000000000,\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}} "
        ","
        "{\"id\":\"q\",\"type\":\"request_cap\",\"limit\":1} ] }\n",
    };
    uint8_t base[16], other[16];
    digest_of(digest_base, base);
    for (size_t i = 0; i < COUNT(same); i++) {
        digest_of(same[i], other);
        ck_assert_msg(memcmp(base, other, 16) == 0, "%s", same[i]);
    }
}
END_TEST

START_TEST(digest_sees_every_change)
{
    static const char *const others[] = {
        digest_base,
        DIGEST_OF("\"description\":\"a/"
                  "c\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.91,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":9,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":90,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF(
            "\"description\":\"a/"
            "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gte\":0.90,"
            "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_cap\","
            "\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
                  "\"match\":{\"a\":[\"y\",\"x\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
                  "\"match\":{\"a\":[\"x\"],\"b\":[\"y\",\"1\"]}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":1}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"q\",\"type\":\"request_cap\",\"limit\":1},"
                  "{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,\"match\":{"
                  "\"a\":[\"x\",\"y\"],\"b\":\"1\"}}]"),
        DIGEST_OF("\"description\":\"a/"
                  "b\",\"rules\":[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"s\",\"gt\":0.90,"
                  "\"match\":{\"a\":[\"x\",\"y\"],\"b\":\"1\"}},{\"id\":\"q\",\"type\":\"request_"
                  "cap\",\"limit\":10}]"),
    };
    uint8_t digests[COUNT(others)][16];
    for (size_t i = 0; i < COUNT(others); i++) {
        digest_of(others[i], digests[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(memcmp(digests[i], digests[j], 16) != 0, "%s and %s", others[i],
                          others[j]);
    }
}
END_TEST

/* ---- bounds ---- */

static struct loaded load_rules(uint32_t count, const char *extra)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (uint32_t i = 0; i < count; i++)
        text_add(&text, "%s{\"id\":\"%u\",\"type\":\"request_cap\",\"limit\":1%s}",
                 i == 0 ? "" : ",", i, i == 0 ? extra : "");
    text_add(&text, "]}");
    struct loaded loaded = load_bytes(text.bytes, text.length);
    free(text.bytes);
    return loaded;
}

/*
 * 65 536 values hold 16 383 of the smallest rules, so the bound of values comes before the bound of
 * rules.
 */
START_TEST(bound_of_values)
{
    struct loaded loaded = load_rules(16383, ""); /* 3 + 16 383 * 4 = 65 535 values */
    ck_assert_int_eq(loaded.status, ADM_OK);
    ck_assert_uint_eq(adm_policy_rule_count(loaded.policy), 16383);
    for (uint32_t i = 0; i < 16383; i += 511) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        ck_assert_uint_eq(admi_policy_rule(loaded.policy, view(id)), i);
    }
    loaded_free(&loaded);
    loaded = load_rules(16383, ",\"mode\":\"enforce\"");
    ck_assert_int_eq(loaded.status, ADM_OK);
    loaded_free(&loaded);
    loaded = load_rules(16383, ",\"mode\":\"enforce\",\"description\":\"x\"");
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 1);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "too_many_values");
    ck_assert_str_eq(diag_at(loaded.diags, 0).pointer, "/rules/16382");
    loaded_free(&loaded);
}
END_TEST

START_TEST(bound_of_bytes)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"rules\":[{\"id\":\"r\"," BUCKET "}]}");
    size_t used = text.length, most = 1u << 20;
    char *document = malloc(most + 1);
    memcpy(document, text.bytes, used);
    memset(document + used, ' ', most + 1 - used);
    struct loaded loaded = load_bytes(document, most);
    ck_assert_int_eq(loaded.status, ADM_OK);
    loaded_free(&loaded);
    loaded = load_bytes(document, most + 1);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "too_large");
    ck_assert_uint_ge(diag_at(loaded.diags, 0).line, 1);
    loaded_free(&loaded);
    free(document);
    free(text.bytes);
}
END_TEST

START_TEST(bound_of_keys)
{
    for (uint32_t keys = 1024; keys <= 1025; keys++) {
        struct text text = { 0 };
        text_add(&text, "{\"version\":\"v\",\"rules\":[");
        for (uint32_t i = 0; i < keys; i++)
            text_add(&text,
                     "%s{\"id\":\"%u\",\"type\":\"request_cap\",\"limit\":1,\"match\":{\"k%u\":"
                     "\"v\",\"k0\":\"w\"}}",
                     i == 0 ? "" : ",", i, i + 1 < keys ? i + 1 : 1);
        text_add(&text, "]}");
        struct loaded loaded = load_bytes(text.bytes, text.length);
        if (keys == 1024) {
            ck_assert_int_eq(loaded.status, ADM_OK);
            ck_assert_uint_eq(loaded.policy->key_count, 1024);
        } else {
            ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
            ck_assert_uint_eq(adm_diags_count(loaded.diags), 1);
            ck_assert_str_eq(diag_at(loaded.diags, 0).name, "too_many_keys");
            ck_assert_str_eq(diag_at(loaded.diags, 0).pointer, "/rules/1023/match/k1024");
        }
        loaded_free(&loaded);
        free(text.bytes);
    }
}
END_TEST

/* ---- findings ---- */

START_TEST(at_most_twenty_findings_in_the_order_of_the_text)
{
    struct text text = { 0 };
    text_add(&text, "{\"version\":\"v\",\"hard_timeout\":\"1h\",\"rules\":[");
    for (uint32_t i = 0; i < 30; i++)
        text_add(&text,
                 "%s\n{\"id\":\"%u\",\"type\":\"concurrency\",\"park\":\"1s\",\"limit\":-1,\"lease_"
                 "ttl\":\"1s\"}",
                 i == 0 ? "" : ",", i);
    text_add(&text, "]}");
    struct loaded loaded = load_text(text.bytes);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 20);
    ck_assert_uint_eq(count_named(loaded.diags, "range"), 20); /* no warning in place of an error */
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_uint_eq(diag_at(loaded.diags, i).line, i + 2);
    loaded_free(&loaded);
    free(text.bytes);
}
END_TEST

START_TEST(names_of_numbers_out_of_range)
{
    must_refuse(
        "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":-1}]}",
        "range");
    must_refuse("{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":"
                "1000000000001}]}",
                "range");
    must_refuse(
        "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1e3}]}",
        "exponent");
    must_refuse("{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1},"
                "{\"id\":\"r\",\"type\":\"request_cap\",\"limit\":1}]}",
                "duplicate_rule_id");
}
END_TEST

START_TEST(a_finding_says_what_was_expected_and_found)
{
    struct loaded loaded = load_text("{\"version\":\"v\",\n\"rules\":[{\"id\":\"r\",\"type\":"
                                     "\"request_cap\",\n \"limit\":1e3}]}");
    struct adm_diag diag = diag_at(loaded.diags, 0);
    ck_assert_str_eq(diag.message, "expected a whole number from 0 to 1000000000000, found 1e3");
    ck_assert_str_eq(diag.pointer, "/rules/0/limit");
    ck_assert_str_eq(diag.code, "ADM-D-214");
    ck_assert_str_eq(diag.file, "policy.json");
    ck_assert_uint_eq(diag.line, 3);
    ck_assert_uint_eq(diag.column, 10);
    ck_assert_uint_eq(diag.severity, ADM_SEVERITY_ERROR);
    ck_assert_ptr_null(diag.nearest);
    loaded_free(&loaded);
}
END_TEST

/* A key of a megabyte neither fills memory with pointers nor runs off a buffer. */
START_TEST(giant_names_and_values_are_cut_in_findings)
{
    struct text text = { 0 };
    char *giant = malloc(300001);
    memset(giant, '/', 300000);
    giant[300000] = '\0';
    text_add(&text,
             "{\"version\":\"%s\",\"%s\":{\"%s\":1},\"rules\":[{\"id\":\"r\",\"type\":\"%s\"}]}",
             giant, giant, giant, giant);
    ck_assert_uint_gt(text.length, 1u << 20);
    struct loaded loaded = load_bytes(text.bytes, text.length);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, "too_large");
    loaded_free(&loaded);
    giant[200000] = '\0';
    text.length = 0;
    text_add(&text,
             "{\"version\":\"%s\",\"%s\":{\"%s\":1},\"rules\":[{\"id\":\"r\",\"type\":\"%s\"}]}",
             giant, giant, giant, giant);
    loaded = load_bytes(text.bytes, text.length);
    ck_assert_int_eq(loaded.status, ADM_E_POLICY_INVALID);
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 3);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_uint_lt(strlen(diag_at(loaded.diags, i).message), 256);
        ck_assert_uint_lt(strlen(diag_at(loaded.diags, i).pointer), 512);
    }
    loaded_free(&loaded);
    free(giant);
    free(text.bytes);
}
END_TEST

/* ---- the public functions ---- */

static max_align_t elsewhere; /* an address that no function may replace unless it succeeds */

START_TEST(outputs_change_on_success_only)
{
    struct adm_policy *policy = (struct adm_policy *)&elsewhere;
    struct adm_diags *diags = (struct adm_diags *)&elsewhere;
    ck_assert_int_eq(adm_policy_load(view("{}"), NULL, &policy, NULL), ADM_E_POLICY_INVALID);
    ck_assert_ptr_eq(policy, &elsewhere);
    ck_assert_int_eq(adm_policy_load(view("{}"), NULL, NULL, &diags), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_policy_load((struct adm_bytes){ NULL, 5 }, NULL, &policy, &diags),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_ptr_eq(diags, &elsewhere);
    struct adm_policy_options options = { .size = sizeof options - 1 };
    ck_assert_int_eq(adm_policy_load(view("{}"), &options, &policy, &diags), ADM_E_STRUCT_SIZE);
    options.size = sizeof options;
    options.flags = 1u << 31;
    ck_assert_int_eq(adm_policy_load(view("{}"), &options, &policy, &diags), ADM_E_CALLER_NEWER);
    options.flags = 0;
    options.reserved[3] = 1;
    ck_assert_int_eq(adm_policy_load(view("{}"), &options, &policy, &diags), ADM_E_CALLER_NEWER);
    ck_assert_ptr_eq(policy, &elsewhere);
    ck_assert_ptr_eq(diags, &elsewhere);
    ck_assert_int_eq(
        adm_policy_load(view("{\"version\":\"v\",\"rules\":[{\"id\":\"r\"," BUCKET "}]}"), NULL,
                        &policy, &diags),
        ADM_OK);
    ck_assert_ptr_null(diags); /* none */
    ck_assert_ptr_eq(adm_policy_ref(policy), policy);
    adm_policy_unref(policy);
    ck_assert_str_eq(adm_policy_version(policy), "v");
    adm_policy_unref(policy);
}
END_TEST

START_TEST(diags_get_stays_inside_the_callers_struct)
{
    struct loaded loaded = load_text("{}");
    struct adm_diag diag = { .size = sizeof diag };
    ck_assert_uint_eq(adm_diags_count(loaded.diags), 2);
    ck_assert_int_eq(adm_diags_get(loaded.diags, 2, &diag), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_diags_get(loaded.diags, UINT64_MAX, &diag), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_diags_get(NULL, 0, &diag), ADM_E_INVALID_ARGUMENT);
    ck_assert_ptr_null(diag.code);
    diag.size = 8;
    ck_assert_int_eq(adm_diags_get(loaded.diags, 0, &diag), ADM_E_STRUCT_SIZE);
    ck_assert_ptr_null(diag.code);
    ck_assert_uint_eq(adm_diags_count(NULL), 0);
    adm_diags_free(NULL);
    adm_policy_unref(NULL);
    ck_assert_ptr_null(adm_policy_ref(NULL));
    loaded_free(&loaded);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-compile");
    TCase *cases = tcase_create("policy-compile");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, every_top_field_arrives);
    tcase_add_test(cases, every_field_of_counting_rules_arrives);
    tcase_add_test(cases, every_field_of_checking_rules_arrives);
    tcase_add_test(cases, defaults);
    tcase_add_test(cases, overrides_are_complete_numbers);
    tcase_add_test(cases, pressure_override_replaces_the_threshold);
    tcase_add_test(cases, a_second_override_of_the_same_when_is_left_out);
    tcase_add_test(cases, origins_tell_blocks_apart);
    tcase_add_test(cases, identities_never_collide);
    tcase_add_test(cases, identity_survives_a_change_of_numbers_L9);
    tcase_add_test(cases, digest_ignores_layout);
    tcase_add_test(cases, digest_sees_every_change);
    tcase_add_test(cases, bound_of_values);
    tcase_add_test(cases, bound_of_bytes);
    tcase_add_test(cases, bound_of_keys);
    tcase_add_test(cases, at_most_twenty_findings_in_the_order_of_the_text);
    tcase_add_test(cases, names_of_numbers_out_of_range);
    tcase_add_test(cases, a_finding_says_what_was_expected_and_found);
    tcase_add_test(cases, giant_names_and_values_are_cut_in_findings);
    tcase_add_test(cases, outputs_change_on_success_only);
    tcase_add_test(cases, diags_get_stays_inside_the_callers_struct);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
