/* SPDX-License-Identifier: Apache-2.0 */
/* What is legal but suspicious. A finding must be worth an operator's time: when in doubt, none. */
#include "policy/lint.h"

#include "base/memory.h"

/* Pairs are looked at for so many of the first: a policy can have 16384 rules. */
#define PAIRS_MAX 64u

struct lint {
    struct admi_loader *loader;
    const struct adm_policy *policy;
    const struct admi_rule *caps[PAIRS_MAX];
    uint32_t cap_tokens[PAIRS_MAX];
    uint32_t cap_count;
    uint32_t ids[PAIRS_MAX]; /* tokens of the first rules */
};

static bool find(const struct lint *lint, struct admi_node node, const char *name,
                 struct admi_node *out)
{
    const struct admi_document *document = &lint->loader->document;
    for (bool more = admi_node_first(node, out); more; more = admi_node_next(document, out))
        if (admi_bytes_equal(admi_node_name(*out), admi_words_of(name)))
            return true;
    return false;
}

static uint32_t token_of(const struct lint *lint, struct admi_node node, const char *name)
{
    struct admi_node member;
    return find(lint, node, name, &member) ? member.token : node.token;
}

static void report(struct lint *lint, enum admi_diag kind, uint32_t token, const char *message)
{
    admi_report_message(&lint->loader->document.source, kind, token, message);
}

static bool consumes(const struct admi_rule *rule)
{
    return rule->type != ADMI_REQUEST_CAP && rule->type != ADMI_PRESSURE;
}

static uint64_t most_in(const struct admi_rule *rule, const struct admi_numbers *numbers)
{
    return rule->type == ADMI_TOKEN_BUCKET ? numbers->capacity : numbers->limit;
}

static uint64_t most_of(const struct admi_rule *rule)
{
    return most_in(rule, &rule->numbers);
}

static const char *most_name(const struct admi_rule *rule)
{
    return rule->type == ADMI_TOKEN_BUCKET ? "capacity" : "limit";
}

/* ---- one rule ---- */

/* A partition key that may be anything but must be there: who leaves it out is not limited. */
static void check_partition(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    for (uint32_t i = 0; i < rule->match.entry_count; i++) {
        const struct admi_match_entry *entry = &rule->match.entries[i];
        bool any = entry->value_count == 1 && entry->values[0].kind == ADMI_VALUE_PRESENT;
        for (uint32_t j = 0; any && j < rule->partition_count; j++) {
            if (rule->partition_keys[j] != entry->key)
                continue;
            struct admi_diag_entry *finding =
                admi_report_value(&lint->loader->document.source, ADMI_DIAG_OPTIONAL_PARTITION_KEY,
                                  token_of(lint, node, "match"));
            if (finding == NULL)
                return;
            struct admi_words words = admi_report_words(finding);
            admi_words_add(&words, "requests without ");
            admi_words_quote(&words, lint->policy->keys[entry->key], ADM_MAX_KEY_BYTES);
            admi_words_add(&words, " do not match and so are not limited by this rule; "
                                   "without this entry they would be denied missing_descriptor");
            admi_report_note(&lint->loader->document.source, finding,
                             token_of(lint, node, "partition_by"), false,
                             "the key is asked for here");
        }
    }
}

/* Deny by default and allow by override is a plan, so overrides silence it. */
static void check_numbers(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    if (rule->override_count > 0 || rule->type == ADMI_PRESSURE)
        return;
    if (most_of(rule) == 0)
        report(lint, ADMI_DIAG_NOTHING_FITS, token_of(lint, node, most_name(rule)),
               "0 leaves room for nothing: every matching request with an amount is denied");
    else if (rule->type == ADMI_TOKEN_BUCKET && rule->numbers.refill == 0)
        report(lint, ADMI_DIAG_NEVER_REFILLS, token_of(lint, node, "refill"),
               "0 never refills the bucket: once it is empty, every request is denied");
}

static void report_excluded(struct lint *lint, struct admi_node node, uint32_t at)
{
    const struct admi_source *source = &lint->loader->document.source;
    struct admi_diag_entry *finding =
        admi_report_message(source, ADMI_DIAG_CONTRADICTION, at,
                            "no request of the rule can hold for this: the override never applies");
    if (finding != NULL)
        admi_report_note(source, finding, token_of(lint, node, "match"), false,
                         "the rule asks for something else");
}

static void check_overrides(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    const struct admi_document *document = &lint->loader->document;
    struct admi_node list, item;
    if (!find(lint, node, "overrides", &list) || admi_node_count(list) != rule->override_count)
        return; /* some were left out, which was reported */
    uint32_t tokens[PAIRS_MAX], i = 0;
    for (bool more = admi_node_first(list, &item); more;
         more = admi_node_next(document, &item), i++) {
        const struct admi_match *when = &rule->overrides[i].when;
        uint32_t at = token_of(lint, item, "when");
        if (admi_match_contradicts(when)) {
            report(lint, ADMI_DIAG_CONTRADICTION, at,
                   "the \"not\" leaves out all that the rest lets in: this override never applies");
            if (i < PAIRS_MAX)
                tokens[i] = at;
            continue;
        }
        if (admi_match_excludes(&rule->match, when)) {
            report_excluded(lint, node, at);
            if (i < PAIRS_MAX)
                tokens[i] = at;
            continue;
        }
        for (uint32_t j = 0; j < i && j < PAIRS_MAX; j++) {
            if (!admi_match_covers(&rule->overrides[j].when, when))
                continue;
            struct admi_diag_entry *finding =
                admi_report_value(&document->source, ADMI_DIAG_COVERED_OVERRIDE, at);
            if (finding == NULL)
                return;
            struct admi_words words = admi_report_words(finding);
            admi_words_add(&words, "override ");
            admi_words_add_number(&words, j);
            admi_words_add(&words, " holds for all of these requests and comes first, "
                                   "so this one never applies");
            admi_report_note(&document->source, finding, tokens[j], false, "it is decided here");
            break;
        }
        if (i < PAIRS_MAX)
            tokens[i] = at;
    }
    if (rule->override_count > 0 && rule->overrides[0].off &&
        rule->overrides[0].when.entry_count == 0 && !rule->overrides[0].when.has_not)
        report(lint, ADMI_DIAG_ALWAYS_OFF, tokens[0],
               "an empty when holds for every request, so the rule is off for all of them");
}

/* ---- a rule and the caps ---- */

static void collect_cap(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    if (rule->type != ADMI_REQUEST_CAP || rule->shadow || rule->override_count > 0 ||
        lint->cap_count == PAIRS_MAX)
        return;
    lint->cap_tokens[lint->cap_count] = token_of(lint, node, "limit");
    lint->caps[lint->cap_count++] = rule;
}

static bool is_cap_of(const struct admi_rule *cap, const struct admi_rule *rule)
{
    return cap->unit == rule->unit && admi_match_covers(&cap->match, &rule->match);
}

/* The lowest cap that each request of a rule meets, or of its override; UINT32_MAX: none. */
static uint32_t lowest_cap(const struct lint *lint, const struct admi_rule *rule,
                           const struct admi_override *override)
{
    uint32_t lowest = UINT32_MAX;
    for (uint32_t i = 0; i < lint->cap_count; i++) {
        const struct admi_rule *cap = lint->caps[i];
        bool meets = is_cap_of(cap, rule);
        if (override != NULL)
            meets = !meets && cap->unit == rule->unit &&
                    admi_match_covers(&cap->match, &override->when);
        if (meets &&
            (lowest == UINT32_MAX || cap->numbers.limit < lint->caps[lowest]->numbers.limit))
            lowest = i;
    }
    return lowest;
}

static void report_below(struct lint *lint, const struct admi_rule *rule, uint32_t token,
                         uint64_t most, uint32_t cap)
{
    const struct admi_source *source = &lint->loader->document.source;
    struct admi_diag_entry *finding = admi_report_value(source, ADMI_DIAG_BELOW_CAP, token);
    if (finding == NULL)
        return;
    struct admi_words words = admi_report_words(finding);
    admi_words_add(&words, "a request of ");
    admi_words_add_number(&words, most + 1);
    admi_words_add(&words, " to ");
    admi_words_add_number(&words, lint->caps[cap]->numbers.limit);
    admi_words_add(&words, " passes the cap, but never fits a ");
    admi_words_add(&words, most_name(rule));
    admi_words_add(&words, " of ");
    admi_words_add_number(&words, most);
    admi_words_add(&words, ": it is always denied unsatisfiable");
    admi_report_note(source, finding, lint->cap_tokens[cap], false, "the cap is here");
}

/* A cap that no number of the rule reaches. Where one does, the cap may be there for that one. */
static void check_caps(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    uint32_t cap = lowest_cap(lint, rule, NULL);
    uint64_t most = most_of(rule);
    uint32_t token = token_of(lint, node, most_name(rule));
    struct admi_node list, item, number;
    bool off = false;
    if (!find(lint, node, "overrides", &list) || admi_node_count(list) != rule->override_count) {
        if (rule->override_count == 0 && most > 0 && cap != UINT32_MAX &&
            lint->caps[cap]->numbers.limit > most)
            report_below(lint, rule, token, most, cap);
        return;
    }
    uint32_t i = 0;
    for (bool more = admi_node_first(list, &item); more;
         more = admi_node_next(&lint->loader->document, &item), i++) {
        const struct admi_override *override = &rule->overrides[i];
        uint64_t own = most_in(rule, &override->numbers);
        uint32_t own_cap = lowest_cap(lint, rule, override);
        off |= override->off;
        if (override->off || !find(lint, item, most_name(rule), &number) || own == 0)
            continue;
        if (own_cap != UINT32_MAX && lint->caps[own_cap]->numbers.limit > own)
            report_below(lint, rule, number.token, own, own_cap);
        if (own > most) {
            most = own;
            token = number.token;
        }
    }
    if (!off && most > 0 && cap != UINT32_MAX && lint->caps[cap]->numbers.limit > most)
        report_below(lint, rule, token, most, cap);
}

/* ---- a rule and the others ---- */

static bool same_partitions(const struct admi_rule *a, const struct admi_rule *b)
{
    bool same = a->partition_count == b->partition_count && a->max_partitions == b->max_partitions;
    for (uint32_t i = 0; same && i < a->partition_count; i++)
        same = a->partition_keys[i] == b->partition_keys[i];
    return same;
}

static bool is_simple(const struct admi_rule *rule)
{
    const struct admi_numbers *numbers = &rule->numbers;
    return rule->type != ADMI_PRESSURE && !rule->shadow && !rule->completion &&
           !rule->per_replica && rule->override_count == 0 && numbers->park_ns == 0 &&
           (numbers->given & ADMI_GIVEN_FRACTION) == 0 && most_of(rule) > 0;
}

/*
 * Whether the first denies whatever the second denies. Both take the same of each request that both
 * concern, and the first may take more; so it never has more left. With partitions only equal
 * numbers count: a wide limit beside a narrow one may be the ceiling of a limit table.
 */
static bool outranks(const struct admi_rule *strong, const struct admi_rule *weak)
{
    const struct admi_numbers *a = &strong->numbers, *b = &weak->numbers;
    bool equal = most_of(strong) == most_of(weak) && a->refill == b->refill;
    return strong->type == weak->type && strong->unit == weak->unit &&
           strong->window == weak->window && strong->settle_exact == weak->settle_exact &&
           a->lease_ttl_ns == b->lease_ttl_ns && a->per_ns == b->per_ns &&
           same_partitions(strong, weak) && most_of(strong) <= most_of(weak) &&
           a->refill <= b->refill && (strong->partition_count == 0 || equal) &&
           admi_match_covers(&strong->match, &weak->match);
}

static void check_others(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    const struct admi_source *source = &lint->loader->document.source;
    for (uint32_t i = 0; is_simple(rule) && i < lint->policy->rule_count && i < PAIRS_MAX; i++) {
        const struct admi_rule *other = &lint->policy->rules[i];
        if (other == rule || !is_simple(other) || !outranks(other, rule) ||
            (outranks(rule, other) && rule->index < other->index))
            continue;
        struct admi_diag_entry *finding = admi_report_value(source, ADMI_DIAG_NEVER_DENIES,
                                                            token_of(lint, node, most_name(rule)));
        if (finding == NULL)
            return;
        struct admi_words words = admi_report_words(finding);
        admi_words_add(&words, "rule ");
        admi_words_quote(&words, other->id, ADM_MAX_KEY_BYTES);
        admi_words_add(&words, " has all of these requests and a ");
        admi_words_add(&words, most_name(rule));
        admi_words_add(&words, " of ");
        admi_words_add_number(&words, most_of(other));
        admi_words_add(&words, ": this one, of ");
        admi_words_add_number(&words, most_of(rule));
        admi_words_add(&words, ", never denies what that lets pass");
        admi_report_note(source, finding, lint->ids[i], false, "that rule is here");
        return;
    }
}

/* ---- what only looks finished ---- */

/* At admission the output is a guess; a bucket forgets a wrong one, a quota does not. */
static void check_settle(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    if (rule->type != ADMI_QUOTA || rule->settle_exact || rule->completion ||
        (rule->unit != ADM_UNIT_OUTPUT_TOKENS && rule->unit != ADM_UNIT_TOKENS))
        return;
    struct admi_diag_entry *finding = admi_report_value(
        &lint->loader->document.source, ADMI_DIAG_ESTIMATED_QUOTA, token_of(lint, node, "unit"));
    if (finding == NULL)
        return;
    struct admi_words words = admi_report_words(finding);
    admi_words_add(&words, "the quota of ");
    admi_words_add_number(&words, rule->numbers.limit);
    admi_words_add(&words, " is used up by what was announced at admission, not by what came: "
                           "\"settle\": \"exact\" corrects it");
}

static void check_shadow(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    struct admi_node description;
    if (rule->shadow && !find(lint, node, "description", &description))
        report(lint, ADMI_DIAG_UNEXPLAINED_SHADOW, token_of(lint, node, "mode"),
               "a shadow rule denies nothing, and no description says what it is tried for");
}

static void check_rule(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    if (admi_match_contradicts(&rule->match))
        report(lint, ADMI_DIAG_CONTRADICTION, token_of(lint, node, "match"),
               "the \"not\" leaves out all that the rest lets in: this rule never matches");
    if (consumes(rule))
        check_partition(lint, node, rule);
    check_numbers(lint, node, rule);
    check_overrides(lint, node, rule);
    if (consumes(rule) && !rule->shadow && !rule->completion && !rule->per_replica)
        check_caps(lint, node, rule);
    check_others(lint, node, rule);
    check_settle(lint, node, rule);
    check_shadow(lint, node, rule);
}

void admi_lint(struct admi_loader *loader)
{
    struct lint lint = { .loader = loader, .policy = &loader->parts->policy };
    struct admi_node rules, item;
    if (!find(&lint, admi_document_root(&loader->document), "rules", &rules))
        return;
    uint32_t i = 0;
    for (bool more = admi_node_first(rules, &item); more;
         more = admi_node_next(&loader->document, &item), i++) {
        if (i < PAIRS_MAX)
            lint.ids[i] = token_of(&lint, item, "id");
        collect_cap(&lint, item, &lint.policy->rules[i]);
    }
    i = 0;
    for (bool more = admi_node_first(rules, &item);
         more && loader->document.source.diags->count < ADMI_DIAGS_MAX;
         more = admi_node_next(&loader->document, &item))
        check_rule(&lint, item, &lint.policy->rules[i++]);
}
