/* SPDX-License-Identifier: Apache-2.0 */
/* Policies and limit tables as JSON text, the same content in many layouts. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

void text_clear(struct text *text)
{
    text->length = 0;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){ 0 };
}

static void reserve(struct text *text, size_t more)
{
    if (text->length + more < text->room)
        return;
    text->room = (text->length + more) * 2 + 64;
    text->bytes = realloc(text->bytes, text->room);
    if (text->bytes == NULL)
        abort();
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    reserve(text, (size_t)length + 1);
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void text_word(struct text *text, int word)
{
    text_add(text, "\"");
    for (size_t i = 0; i < model_length(word); i++) {
        unsigned char c = (unsigned char)model_text(word)[i];
        if (c < 0x20 || c == 0x7f)
            text_add(text, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            text_add(text, "\\%c", c);
        else
            text_add(text, "%c", c);
    }
    text_add(text, "\"");
}

/* ---- objects whose members come in any order ---- */

#define MEMBERS 24

struct members {
    int count;
    struct text each[MEMBERS];
};

static struct text *member(struct members *members, const char *name)
{
    struct text *text = &members->each[members->count++];
    text_add(text, "\"%s\":", name);
    return text;
}

static void space(struct text *text, struct chance *chance)
{
    static const char *const some[] = { "", "", "", " ", "\n  ", "\t" };
    text_add(text, "%s", CHANCE_PICK(chance, some));
}

/* Writes the members, shuffled, between the brackets, and forgets them. */
static void close_members(struct text *out, struct members *members, struct chance *chance)
{
    text_add(out, "{");
    for (int i = members->count; i > 0; i--) {
        int pick = (int)chance_below(chance, (uint64_t)i);
        space(out, chance);
        text_add(out, "%.*s", (int)members->each[pick].length, members->each[pick].bytes);
        if (i > 1)
            text_add(out, ",");
        text_free(&members->each[pick]);
        members->each[pick] = members->each[i - 1];
        members->each[i - 1] = (struct text){ 0 };
    }
    space(out, chance);
    text_add(out, "}");
    members->count = 0;
}

/* ---- values ---- */

static void add_number(struct members *members, const char *name, uint64_t value)
{
    text_add(member(members, name), "%" PRIu64, value);
}

/* In the largest unit that fits; values are whole milliseconds. */
static void add_duration(struct members *members, const char *name, uint64_t ns)
{
    static const struct {
        uint64_t ms;
        const char *unit;
    } units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "m" }, { 1000, "s" }, { 1, "ms" } };
    uint64_t ms = ns / 1000000;
    size_t i = 0;
    while (ms % units[i].ms != 0)
        i++;
    text_add(member(members, name), "\"%" PRIu64 "%s\"", ms / units[i].ms, units[i].unit);
}

static void add_decimal(struct members *members, const char *name, uint64_t whole, uint64_t e18)
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%018" PRIu64, e18);
    while (length > 0 && digits[length - 1] == '0')
        digits[--length] = '\0';
    text_add(member(members, name), "%" PRIu64 "%s%s", whole, length > 0 ? "." : "", digits);
}

static void add_numbers(struct members *members, const struct model_numbers *n)
{
    static const char *const comparisons[] = { "", "gt", "gte", "lt", "lte" };
    if (n->given & MODEL_GIVEN_CAPACITY)
        add_number(members, "capacity", n->capacity);
    if (n->given & MODEL_GIVEN_REFILL)
        add_number(members, "refill", n->refill);
    if (n->given & MODEL_GIVEN_PER)
        add_duration(members, "per", n->per_ns);
    if (n->given & MODEL_GIVEN_LIMIT)
        add_number(members, "limit", n->limit);
    if (n->given & MODEL_GIVEN_TTL)
        add_duration(members, "lease_ttl", n->ttl_ns);
    if (n->given & MODEL_GIVEN_AGE)
        add_duration(members, "max_age", n->age_ns);
    if (n->given & MODEL_GIVEN_FRACTION)
        add_decimal(members, "fraction", n->fraction_e18 / ADM_MAX_AMOUNT / 1000000,
                    n->fraction_e18 % (ADM_MAX_AMOUNT * 1000000));
    if (n->given & MODEL_GIVEN_THRESHOLD)
        add_decimal(members, comparisons[n->comparison], n->threshold_whole, n->threshold_e18);
}

/* ---- matches ---- */

static void add_entries(struct members *members, const struct model_entry *entries, int count,
                        bool arrays)
{
    for (int i = 0; i < count; i++) {
        struct text *text = &members->each[members->count++];
        bool array = arrays || entries[i].count != 1;
        text_word(text, entries[i].key);
        text_add(text, array ? ": [" : ": ");
        for (int j = 0; j < entries[i].count; j++) {
            text_add(text, j > 0 ? ", " : "");
            text_word(text, entries[i].values[j]);
        }
        text_add(text, array ? "]" : "");
    }
}

static void add_match(struct members *outer, const char *name, const struct model_match *match,
                      struct chance *chance)
{
    struct members members = { 0 };
    struct members negated = { 0 };
    add_entries(&members, match->entries, match->count, false);
    if (match->has_not) {
        add_entries(&negated, match->negated, match->not_count, true);
        close_members(member(&members, "not"), &negated, chance);
    }
    close_members(member(outer, name), &members, chance);
}

/* ---- rules ---- */

static const char *const type_names[] = { "token_bucket", "concurrency", "request_cap", "pressure",
                                          "quota" };
static const char *const unit_names[] = { "cost",   "requests", "input_tokens", "output_tokens",
                                          "tokens", "images",   "gpu_ms",       "watts" };

static void add_overrides(struct members *members, const struct model_rule *rule,
                          struct chance *chance)
{
    struct text *list = member(members, "overrides");
    text_add(list, "[");
    for (int i = 0; i < rule->override_count; i++) {
        struct members each = { 0 };
        add_match(&each, "when", &rule->overrides[i].when, chance);
        if (rule->overrides[i].off)
            text_add(member(&each, "off"), "true");
        else
            add_numbers(&each, &rule->overrides[i].numbers);
        text_add(list, i > 0 ? ", " : "");
        close_members(list, &each, chance);
    }
    text_add(list, "]");
}

static void add_type_fields(struct members *members, const struct model_rule *rule, bool defaults)
{
    bool replicas = rule->type == MODEL_BUCKET || rule->type == MODEL_CONCURRENCY;
    if (rule->type == MODEL_BUCKET && (defaults || rule->completion))
        text_add(member(members, "charge"), rule->completion ? "\"completion\"" : "\"admission\"");
    if ((rule->type == MODEL_BUCKET || rule->type == MODEL_QUOTA) && (defaults || rule->exact))
        text_add(member(members, "settle"), rule->exact ? "\"exact\"" : "\"none\"");
    if (replicas && (defaults || rule->per_replica))
        text_add(member(members, "per_replica"), rule->per_replica ? "true" : "false");
    if (rule->scope != 0 && (defaults || rule->scope != model_word_of("model")))
        text_word(member(members, "scope_by"), rule->scope);
    if (rule->type == MODEL_QUOTA)
        text_add(member(members, "window"),
                 rule->window == ADM_WINDOW_DAY ? "\"day\"" : "\"month\"");
    if (rule->type == MODEL_PRESSURE)
        text_word(member(members, "signal"), rule->signal);
    if (rule->max_partitions != 0)
        add_number(members, "max_partitions", rule->max_partitions);
}

static void render_rule(struct text *out, const struct model_rule *rule, struct chance *chance)
{
    struct members members = { 0 };
    /* whether defaults are spelled out depends on the name alone, so that equal rules have equal
     * texts */
    bool defaults = rule->id % 2 == 0;
    text_word(member(&members, "id"), rule->id);
    text_add(member(&members, "type"), "\"%s\"", type_names[rule->type]);
    if (defaults || rule->unit != MODEL_COST)
        text_add(member(&members, "unit"), "\"%s\"", unit_names[rule->unit]);
    if (defaults || rule->shadow)
        text_add(member(&members, "mode"), rule->shadow ? "\"shadow\"" : "\"enforce\"");
    if (defaults || rule->match.count > 0 || rule->match.has_not)
        add_match(&members, "match", &rule->match, chance);
    if (rule->part_count > 0 || defaults) {
        struct text *list = member(&members, "partition_by");
        text_add(list, "[");
        for (int i = 0; i < rule->part_count; i++) {
            text_add(list, i > 0 ? ", " : "");
            text_word(list, rule->parts[i]);
        }
        text_add(list, "]");
    }
    add_numbers(&members, &rule->numbers);
    add_type_fields(&members, rule, defaults);
    if (rule->override_count > 0)
        add_overrides(&members, rule, chance);
    close_members(out, &members, chance);
}

void render_policy(struct text *text, const struct model_policy *policy, uint64_t layout)
{
    struct chance chance = { layout };
    struct members members = { 0 };
    text_word(member(&members, "version"), policy->version);
    if (policy->unmatched_allow)
        text_add(member(&members, "unmatched"), "\"allow\"");
    if (policy->skew_given)
        add_duration(&members, "max_clock_skew", policy->skew_ns);
    if (policy->shard != 0)
        text_word(member(&members, "shard_by"), policy->shard);
    text_add(member(&members, "units"), "[\"gpu_ms\", \"watts\"]");
    struct text *rules = member(&members, "rules");
    text_add(rules, "[");
    for (int i = 0; i < policy->rule_count; i++) {
        text_add(rules, i > 0 ? ",\n " : "");
        render_rule(rules, &policy->rules[i], &chance);
    }
    text_add(rules, "]");
    close_members(text, &members, &chance);
}

void render_table(struct text *text, const struct model_table *table, bool patch, uint64_t layout)
{
    struct chance chance = { layout };
    struct members members = { 0 };
    struct members entries = { 0 };
    text_word(member(&members, "version"), table->version);
    text_word(member(&members, "rule"), table->rule);
    text_word(member(&members, "by"), table->by);
    for (int i = 0; i < table->count; i++) {
        const struct model_table_entry *e = &table->entries[i];
        struct text *each = &entries.each[entries.count++];
        text_word(each, e->value);
        text_add(each, ": ");
        if (e->removed && patch) {
            text_add(each, "null");
        } else if (e->off) {
            text_add(each, "\"off\"");
        } else {
            struct members numbers = { 0 };
            add_numbers(&numbers, &e->numbers);
            close_members(each, &numbers, &chance);
        }
    }
    close_members(member(&members, "entries"), &entries, &chance);
    close_members(text, &members, &chance);
}
