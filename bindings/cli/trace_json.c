/* SPDX-License-Identifier: Apache-2.0 */
/* JSON-lines traces: {"t_ms", "d", "cost", "amounts", "hold_ms", "final"} in each line. */
#include "trace.h"

#include "cli.h"
#include "json.h"

#include <string.h>

static bool is_key(const struct json *member, const char *word)
{
    return strlen(word) == member->key_length && memcmp(member->key, word, member->key_length) == 0;
}

static void read_pairs(struct trace *trace, const struct json *object)
{
    if (object->kind != JSON_OBJECT)
        row_wrong(trace, "\"d\" must be an object of strings");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        if (object->kind != JSON_OBJECT || member->kind != JSON_STRING) {
            row_wrong(trace, "\"d\" must be an object of strings");
            return;
        }
        row_pair(trace, member->key, member->key_length, member->text, member->length);
    }
}

static void read_amounts(struct trace *trace, const struct json *object, bool final)
{
    const char *name = final ? "final" : "amounts";

    if (object->kind != JSON_OBJECT) {
        row_wrong(trace, "\"%s\" must be an object of whole numbers", name);
        return;
    }
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        uint64_t value;

        if (!trace_is_unit(trace, member->key, member->key_length))
            row_wrong(trace, "\"%s\": there is no unit \"%.64s\"", name, member->key);
        else if (!json_u64(member, &value))
            row_wrong(trace, "\"%s\": \"%.64s\" must be a whole number", name, member->key);
        else if (final)
            row_final(trace, member->key, member->key_length, value);
        else
            row_amount(trace, member->key, member->key_length, value);
    }
}

static void read_time(struct trace *trace, const struct json *member, uint64_t *out)
{
    bool date = is_key(member, "timestamp");
    bool good = date ? member->kind == JSON_STRING &&
                           cli_parse_timestamp(member->text, member->length, out)
                     : member->kind == JSON_NUMBER &&
                           cli_parse_ms(member->text, member->length, out);

    if (!good || *out > TRACE_TIME_MAX)
        row_wrong(trace, "\"%s\" must be %s", member->key,
                  date ? "YYYY-MM-DD HH:MM:SS.fraction" : "milliseconds");
}

static void read_member(struct trace *trace, const struct json *member)
{
    if (is_key(member, "t_ms") || is_key(member, "timestamp")) {
        if (trace->has_time)
            row_wrong(trace, "the time is given twice");
        trace->has_time = true;
        read_time(trace, member, &trace->row.at_ns);
    } else if (is_key(member, "hold_ms")) {
        read_time(trace, member, &trace->row.hold_ns);
    } else if (is_key(member, "cost")) {
        if (!json_u64(member, &trace->row.cost))
            row_wrong(trace, "\"cost\" must be a whole number");
    } else if (is_key(member, "d")) {
        read_pairs(trace, member);
    } else if (is_key(member, "amounts") || is_key(member, "final")) {
        read_amounts(trace, member, is_key(member, "final"));
    } else {
        row_wrong(trace, "a row has no member \"%.64s\"", member->key);
    }
}

static void read_row(struct trace *trace)
{
    struct json_document document;
    struct json_error error;

    if (!json_parse(&document, trace->buffer, trace->length, &error)) {
        row_wrong(trace, "column %u: %s", error.column, error.message);
        return;
    }
    if (document.root->kind != JSON_OBJECT)
        row_wrong(trace, "a row is an object");
    else if (json_repeated(document.root) != NULL)
        row_wrong(trace, "\"%.64s\" is given twice", json_repeated(document.root)->key);
    else
        for (const struct json *member = document.root->first; member != NULL;
             member = member->next)
            read_member(trace, member);
    json_free(&document);
}

bool trace_read_json(struct trace *trace)
{
    enum line_result line = LINE_READ;
    bool good = trace->options->map_count == 0 ||
                trace_error(trace, "--map names columns, and JSON lines have none");

    while (good && line == LINE_READ) {
        row_begin(trace);
        read_row(trace);
        good = row_end(trace);
        if (good)
            line = trace_line(trace);
    }
    return good && line != LINE_FAILED;
}
