/* SPDX-License-Identifier: Apache-2.0 */
/* CSV traces: the header says what each column is, --map may say otherwise, the Azure form is a
 * set of maps. */
#include "trace.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 256u

enum role {
    ROLE_IGNORE,
    ROLE_T_MS,
    ROLE_TIMESTAMP,
    ROLE_COST,
    ROLE_HOLD,
    ROLE_AMOUNT,
    ROLE_FINAL,
    ROLE_DESCRIPTOR
};

struct column {
    enum role role;
    char *name; /* of the unit or descriptor, or the column for messages */
    size_t length;
};

struct table {
    struct column columns[COLUMNS_MAX];
    size_t count;
};

/* The next field of the line; quotes as in RFC 4180, a field ends in its line. Moves *at behind
 * the comma, or to length + 1 after the last field. NULL: broken quotes. The field's bytes stay
 * in the line's buffer. */
static char *next_field(struct trace *trace, size_t *at, size_t *length)
{
    char *line = trace->buffer;
    size_t from = *at, out = *at;

    if (from >= trace->length || line[from] != '"') {
        while (out < trace->length && line[out] != ',')
            out++;
        *length = out - from;
        *at = out + 1;
        return line + from;
    }
    for (size_t i = from + 1; i < trace->length; i++) {
        if (line[i] != '"') {
            line[out++] = line[i];
        } else if (i + 1 < trace->length && line[i + 1] == '"') {
            line[out++] = line[i++];
        } else {
            if (i + 1 < trace->length && line[i + 1] != ',')
                return NULL;
            *length = out - from;
            *at = i + 2;
            return line + from;
        }
    }
    return NULL;
}

static bool equal(const char *bytes, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(bytes, word, length) == 0;
}

/* What a column called so is. */
static struct column role_of(const struct trace *trace, const char *name, size_t length)
{
    static const char final[] = "final.";
    static const struct {
        const char *word;
        enum role role;
    } words[] = { { "-", ROLE_IGNORE },  { "t_ms", ROLE_T_MS },    { "timestamp", ROLE_TIMESTAMP },
                  { "cost", ROLE_COST }, { "hold_ms", ROLE_HOLD } };
    struct column column = { ROLE_DESCRIPTOR, NULL, 0 };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (equal(name, length, words[i].word))
            column.role = words[i].role;
    if (length > sizeof final - 1 && memcmp(name, final, sizeof final - 1) == 0 &&
        trace_is_unit(trace, name + sizeof final - 1, length - (sizeof final - 1))) {
        column.role = ROLE_FINAL;
        name += sizeof final - 1;
        length -= sizeof final - 1;
    } else if (trace_is_unit(trace, name, length)) {
        column.role = ROLE_AMOUNT;
    }
    column.name = cli_copy(name, length);
    column.length = length;
    return column;
}

static struct column column_of(struct trace *trace, bool azure, const char *name, size_t length)
{
    static const char *const names[][2] = { { "TIMESTAMP", "timestamp" },
                                            { "ContextTokens", "input_tokens" },
                                            { "GeneratedTokens", "output_tokens" } };

    for (size_t i = 0; i < trace->options->map_count; i++) {
        struct trace_map *map = &trace->options->maps[i];

        if (map->column.length == length && memcmp(map->column.data, name, length) == 0) {
            map->used = true;
            return role_of(trace, map->name.data, (size_t)map->name.length);
        }
    }
    for (size_t i = 0; azure && i < sizeof names / sizeof names[0]; i++)
        if (equal(name, length, names[i][0]))
            return role_of(trace, names[i][1], strlen(names[i][1]));
    return role_of(trace, name, length);
}

/* A first line that begins with a digit names no columns: names of descriptors and units that do
 * are possible, but a time or a cost is likelier. */
static bool looks_like_a_row(const struct table *table)
{
    const struct column *first = &table->columns[0];

    return table->count > 0 && first->length > 0 && first->name[0] >= '0' && first->name[0] <= '9';
}

static bool check_header(const struct trace *trace, const struct table *table)
{
    unsigned times = 0;

    for (size_t i = 0; i < table->count; i++) {
        const struct column *a = &table->columns[i];

        times += a->role == ROLE_T_MS || a->role == ROLE_TIMESTAMP;
        if (a->role != ROLE_IGNORE && equal(a->name, a->length, "requests"))
            return trace_error(trace, "every row is one request: a column \"requests\" has no use");
        for (size_t j = 0; j < i; j++) {
            const struct column *b = &table->columns[j];

            if (a->role == b->role && a->role != ROLE_IGNORE && a->length == b->length &&
                memcmp(a->name, b->name, a->length) == 0)
                return trace_error(trace, "column \"%s\" is there twice", a->name);
        }
    }
    for (size_t i = 0; i < trace->options->map_count; i++)
        if (!trace->options->maps[i].used)
            return trace_error(trace, "there is no column \"%.*s\" to map",
                               (int)trace->options->maps[i].column.length,
                               (const char *)trace->options->maps[i].column.data);
    if (times == 0 && looks_like_a_row(table))
        return trace_error(trace,
                           "there is no header: the first line must name the columns, t_ms or "
                           "timestamp among them, but it begins with \"%s\"",
                           table->columns[0].name);
    if (times != 1)
        return trace_error(trace, "the header must name one column t_ms or timestamp, it names %u",
                           times);
    return true;
}

static bool read_header(struct trace *trace, bool azure, struct table *table)
{
    for (size_t at = 0; at <= trace->length;) {
        size_t length;
        char *name = next_field(trace, &at, &length);

        if (name == NULL)
            return trace_error(trace, "broken quotes in the header");
        if (length == 0)
            return trace_error(trace, "column %zu has no name", table->count + 1);
        if (table->count == COLUMNS_MAX)
            return trace_error(trace, "more than %u columns", COLUMNS_MAX);
        table->columns[table->count++] = column_of(trace, azure, name, length);
    }
    return check_header(trace, table);
}

static void read_number(struct trace *trace, const struct column *column, const char *text,
                        size_t length)
{
    uint64_t value;

    if (!cli_parse_u64(text, length, &value)) {
        row_wrong(trace, "column \"%.64s\": expected a whole number, found \"%.*s\"", column->name,
                  (int)(length > 40 ? 40 : length), text);
        return;
    }
    if (column->role == ROLE_COST)
        trace->row.cost = value;
    else if (column->role == ROLE_AMOUNT)
        row_amount(trace, column->name, column->length, value);
    else
        row_final(trace, column->name, column->length, value);
}

static void read_time(struct trace *trace, const struct column *column, const char *text,
                      size_t length)
{
    bool date = column->role == ROLE_TIMESTAMP;
    uint64_t *out = column->role == ROLE_HOLD ? &trace->row.hold_ns : &trace->row.at_ns;
    bool good = date ? cli_parse_timestamp(text, length, out) : cli_parse_ms(text, length, out);

    if (!good)
        row_wrong(trace, "column \"%.64s\": expected %s, found \"%.*s\"", column->name,
                  date ? "YYYY-MM-DD HH:MM:SS.fraction" : "milliseconds",
                  (int)(length > 40 ? 40 : length), text);
    else if (column->role == ROLE_HOLD && *out > TRACE_TIME_MAX)
        row_wrong(trace, "column \"%.64s\" is out of range", column->name);
    else if (column->role != ROLE_HOLD)
        trace->has_time = true;
}

/* An empty field is an absent one. */
static void read_field(struct trace *trace, const struct column *column, const char *text,
                       size_t length)
{
    if (length == 0)
        return;
    switch (column->role) {
    case ROLE_IGNORE:
        break;
    case ROLE_T_MS:
    case ROLE_TIMESTAMP:
    case ROLE_HOLD:
        read_time(trace, column, text, length);
        break;
    case ROLE_COST:
    case ROLE_AMOUNT:
    case ROLE_FINAL:
        read_number(trace, column, text, length);
        break;
    case ROLE_DESCRIPTOR:
        row_pair(trace, column->name, column->length, text, length);
        break;
    }
}

static void read_row(struct trace *trace, const struct table *table)
{
    size_t n = 0;

    for (size_t at = 0; at <= trace->length; n++) {
        size_t length;
        char *text = next_field(trace, &at, &length);

        if (text == NULL) {
            row_wrong(trace, "broken quotes");
            return;
        }
        if (n < table->count)
            read_field(trace, &table->columns[n], text, length);
    }
    if (n != table->count)
        row_wrong(trace, "expected %zu fields, found %zu", table->count, n);
}

bool trace_read_csv(struct trace *trace, bool azure)
{
    struct table *table = cli_allocate(sizeof *table);
    bool good = read_header(trace, azure, table);
    enum line_result line = LINE_END;

    while (good && (line = trace_line(trace)) == LINE_READ) {
        row_begin(trace);
        read_row(trace, table);
        good = row_end(trace);
    }
    for (size_t i = 0; i < table->count; i++)
        free(table->columns[i].name);
    free(table);
    return good && line != LINE_FAILED;
}
