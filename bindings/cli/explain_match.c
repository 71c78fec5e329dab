/* SPDX-License-Identifier: Apache-2.0 */
/* Why a rule is not concerned: both sides of the entry that the library named, from the policy's
 * text and the request. The library decides; here is only looked up what to show. */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

const struct json *explain_rule(const struct json *policy, const char *id)
{
    const struct json *rules = json_member(policy, "rules");

    if (rules == NULL)
        return NULL;
    for (const struct json *rule = rules->first; rule != NULL; rule = rule->next)
        if (json_is(json_member(rule, "id"), id))
            return rule;
    return NULL;
}

const struct json *explain_when(const struct json *rule, const char *origin)
{
    static const char prefix[] = "override ";
    const struct json *overrides = json_member(rule, "overrides");
    uint64_t number;

    if (overrides == NULL || strncmp(origin, prefix, sizeof prefix - 1) != 0 ||
        !cli_parse_u64(origin + sizeof prefix - 1, strlen(origin) - (sizeof prefix - 1), &number))
        return NULL;
    const struct json *override = overrides->first;
    for (uint64_t i = 1; override != NULL && i < number; i++)
        override = override->next;
    return json_member(override, "when");
}

const struct adm_bytes *question_value(const struct question *question, const char *key,
                                       size_t length)
{
    for (size_t i = 0; i < question->descriptor_count; i++) {
        const struct adm_descriptor *d = &question->descriptors[i];

        if (d->key.length == length && memcmp(d->key.data, key, length) == 0)
            return &d->value;
    }
    return NULL;
}

static bool pattern_holds(const struct json *pattern, const struct adm_bytes *value)
{
    if (pattern->kind != JSON_STRING)
        return false;
    bool prefix = pattern->length > 0 && pattern->text[pattern->length - 1] == '*';
    size_t length = prefix ? pattern->length - 1 : pattern->length;
    return (prefix ? value->length >= length : value->length == length) &&
           memcmp(value->data, pattern->text, length) == 0;
}

static bool entry_holds(const struct json *entry, const struct adm_bytes *value)
{
    if (value == NULL)
        return false;
    if (entry->kind != JSON_ARRAY)
        return pattern_holds(entry, value);
    for (const struct json *item = entry->first; item != NULL; item = item->next)
        if (pattern_holds(item, value))
            return true;
    return false;
}

struct mismatch explain_mismatch(const struct question *question, const struct json *rule,
                                 struct adm_bytes key)
{
    struct mismatch result = { .wants = NULL };
    const struct json *match = json_member(rule, "match");

    if (key.length == 0 || match == NULL)
        return result;
    char *name = cli_copy(key.data, (size_t)key.length);
    const struct json *wants = json_member(match, name);
    result.has = question_value(question, name, (size_t)key.length);
    /* The same key may stand in "match", where it holds, and in "not". */
    if (wants != NULL && !entry_holds(wants, result.has)) {
        result.wants = wants;
    } else {
        wants = json_member(json_member(match, "not"), name);
        result.negated = wants != NULL;
        result.wants = wants;
    }
    free(name);
    return result;
}

bool explain_was_checked(const struct adm_rule_report *report)
{
    if (report->denies || strcmp(report->type, "pressure") == 0)
        return true;
    return strcmp(report->type, "request_cap") == 0 ? report->has_amount : report->stateful;
}

bool explain_shows(const struct explain_view *view, const struct adm_rule_report *report)
{
    switch (view->question->only) {
    case ONLY_MATCHED:
        return report->matched;
    case ONLY_DENYING:
        return report->denies;
    case ONLY_ALL:
        break;
    }
    return true;
}
