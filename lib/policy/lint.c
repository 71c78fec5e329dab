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

static uint64_t most_of(const struct admi_rule *rule)
{
    return rule->type == ADMI_TOKEN_BUCKET ? rule->numbers.capacity : rule->numbers.limit;
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

/*
 * What no cap stops and no room can hold. Only where a cap covers the rule, so that each request of
 * the rule meets it; the lowest cap counts.
 */
static void check_caps(struct lint *lint, struct admi_node node, const struct admi_rule *rule)
{
    uint32_t lowest = UINT32_MAX;
    if (!consumes(rule) || rule->shadow || rule->completion || rule->per_replica ||
        rule->override_count > 0 || most_of(rule) == 0)
        return;
    for (uint32_t i = 0; i < lint->cap_count; i++)
        if (lint->caps[i]->unit == rule->unit &&
            admi_match_covers(&lint->caps[i]->match, &rule->match) &&
            (lowest == UINT32_MAX ||
             lint->caps[i]->numbers.limit < lint->caps[lowest]->numbers.limit))
            lowest = i;
    if (lowest == UINT32_MAX || lint->caps[lowest]->numbers.limit <= most_of(rule))
        return;
    struct admi_diag_entry *finding = admi_report_value(
        &lint->loader->document.source, ADMI_DIAG_BELOW_CAP, token_of(lint, node, most_name(rule)));
    if (finding == NULL)
        return;
    struct admi_words words = admi_report_words(finding);
    admi_words_add(&words, "a request of ");
    admi_words_add_number(&words, most_of(rule) + 1);
    admi_words_add(&words, " to ");
    admi_words_add_number(&words, lint->caps[lowest]->numbers.limit);
    admi_words_add(&words, " passes the cap, but never fits a ");
    admi_words_add(&words, most_name(rule));
    admi_words_add(&words, " of ");
    admi_words_add_number(&words, most_of(rule));
    admi_words_add(&words, ": it is always denied unsatisfiable");
    admi_report_note(&lint->loader->document.source, finding, lint->cap_tokens[lowest], false,
                     "the cap is here");
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
    check_caps(lint, node, rule);
}

void admi_lint(struct admi_loader *loader)
{
    struct lint lint = { .loader = loader, .policy = &loader->parts->policy };
    struct admi_node rules, item;
    if (!find(&lint, admi_document_root(&loader->document), "rules", &rules))
        return;
    uint32_t i = 0;
    for (bool more = admi_node_first(rules, &item); more;
         more = admi_node_next(&loader->document, &item))
        collect_cap(&lint, item, &lint.policy->rules[i++]);
    i = 0;
    for (bool more = admi_node_first(rules, &item);
         more && loader->document.source.diags->count < ADMI_DIAGS_MAX;
         more = admi_node_next(&loader->document, &item))
        check_rule(&lint, item, &lint.policy->rules[i++]);
}
