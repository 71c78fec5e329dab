/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a replay: who they are (from the policy's text), and what the gate counted for
 * each of them. */
#include "replay.h"

#include "cli.h"

#include <admit/metrics.h>

#include <stdlib.h>
#include <string.h>

#define PEAK_RULES_MAX 16u /* each costs a read per admission */

/* "1500ms", "10s", "1m", "2h", "1d"; 0 for anything else, and the loader has refused that. */
static double seconds_of(const struct json *duration)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ms", 0.001 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
    uint64_t number;

    if (duration == NULL || duration->kind != JSON_STRING)
        return 0;
    size_t digits = strspn(duration->text, "0123456789");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(duration->text + digits, units[i].unit) == 0 &&
            cli_parse_u64(duration->text, digits, &number))
            return (double)number * units[i].seconds;
    return 0;
}

/* What a picture shows beside the counts. A bucket for each partition has no line: how many there
 * are at a time is not known. */
static void read_numbers(struct replay_rule *rule, const struct json *member)
{
    const struct json *keys = json_member(member, "partition_by");
    double seconds = seconds_of(json_member(member, "per"));
    uint64_t refill;

    json_u64(json_member(member, "limit"), &rule->limit);
    if ((keys == NULL || keys->count == 0) && seconds > 0 &&
        json_u64(json_member(member, "refill"), &refill))
        rule->refill_per_second = (double)refill / seconds;
}

void replay_read_rules(struct replay *replay, const struct json *policy)
{
    const struct json *rules = json_member(policy, "rules");
    unsigned peaks = 0;

    if (rules == NULL)
        return;
    replay->rules = cli_allocate(rules->count * sizeof *replay->rules);
    for (const struct json *member = rules->first; member != NULL; member = member->next) {
        const struct json *id = json_member(member, "id"), *type = json_member(member, "type");
        const struct json *unit = json_member(member, "unit");
        struct replay_rule *rule = &replay->rules[replay->rule_count++];

        rule->id = cli_copy(id->text, id->length);
        rule->type = type->text;
        rule->unit = unit != NULL ? unit->text : "cost";
        rule->shadow = json_is(json_member(member, "mode"), "shadow");
        rule->has_peak =
            !rule->shadow && json_is(type, "concurrency") && peaks++ < PEAK_RULES_MAX;
        read_numbers(rule, member);
        words_intern(&replay->rule_words, rule->id, id->length);
    }
}

/* ---- the gate's counters -------------------------------------------------------------------- */

static char *metrics_text(struct replay *replay)
{
    uint64_t length = 0, room = 0;
    char *text = NULL;

    for (;;) {
        adm_status status = adm_gate_metrics(replay->lab.gate, text, room, &length);

        if (status == ADM_OK && text != NULL)
            return text;
        free(text);
        text = NULL;
        if (status != ADM_OK && status != ADM_E_BUFFER_TOO_SMALL) {
            cli_error("cannot read the counters: %s", adm_status_text(status));
            return NULL;
        }
        room = length + 4096;
        text = cli_allocate(room);
    }
}

/* The value of a label in a sample; ids and verdicts hold no character that would be escaped. */
static const char *label_of(const char *line, size_t length, const char *name, size_t *out_length)
{
    char pattern[32];
    int size = snprintf(pattern, sizeof pattern, "%s=\"", name);
    const char *from = memmem(line, length, pattern, (size_t)size);

    if (from == NULL)
        return NULL;
    from += size;
    const char *end = memchr(from, '"', (size_t)(line + length - from));
    *out_length = end != NULL ? (size_t)(end - from) : 0;
    return end != NULL ? from : NULL;
}

static bool begins(const char *line, size_t length, const char *word)
{
    return length >= strlen(word) && memcmp(line, word, strlen(word)) == 0;
}

static uint64_t *counter_of(struct replay_rule *rule, const char *line, size_t length,
                            const char *verdict)
{
    const struct {
        const char *family, *verdict;
        uint64_t *counter;
    } table[] = {
        { "admit_rule_requests_total{", "allow\"", &rule->admitted },
        { "admit_rule_requests_total{", "deny\"", &rule->denied },
        { "admit_rule_units_total{", "allow\"", &rule->admitted_units },
        { "admit_rule_units_total{", "deny\"", &rule->denied_units },
        { "admit_rule_shadow_total{", "would_deny\"", &rule->shadow_denied },
        { "admit_rule_shadow_total{", "unknown\"", &rule->shadow_unknown },
    };
    size_t rest = (size_t)(line + length - verdict);

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (begins(line, length, table[i].family) && begins(verdict, rest, table[i].verdict))
            return table[i].counter;
    return NULL;
}

static void read_sample(struct replay *replay, const char *line, size_t length)
{
    size_t rule_length = 0, verdict_length = 0;
    const char *rule = label_of(line, length, "rule", &rule_length);
    const char *verdict = label_of(line, length, "verdict", &verdict_length);
    const char *blank = memrchr(line, ' ', length);

    if (rule == NULL || verdict == NULL || blank == NULL)
        return;
    uint32_t index = words_intern(&replay->rule_words, rule, rule_length);
    if (index >= replay->rule_count)
        return;
    uint64_t *counter = counter_of(&replay->rules[index], line, length, verdict);
    if (counter != NULL)
        cli_parse_u64(blank + 1, (size_t)(line + length - blank - 1), counter);
}

bool replay_count_rules(struct replay *replay)
{
    char *text = metrics_text(replay);

    if (text == NULL)
        return false;
    for (const char *line = text; *line != 0;) {
        size_t length = strcspn(line, "\n");

        read_sample(replay, line, length);
        line += length + (line[length] == '\n');
    }
    free(text);
    return true;
}
