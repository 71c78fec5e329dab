/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: lines in, checked rows in time order out. */
#include "trace.h"

#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES ((size_t)1 << 20)

const char *const trace_input_names[] = { "auto", "csv", "azure", "jsonl", NULL };

/* ---- words ---------------------------------------------------------------------------------- */

static uint32_t hash_bytes(const char *bytes, size_t length)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}

static void rehash(struct words *words)
{
    size_t count = words->slot_count == 0 ? 256 : words->slot_count * 2;

    free(words->slots);
    words->slots = cli_allocate(count * sizeof *words->slots);
    words->slot_count = count;
    for (size_t i = 0; i < words->count; i++) {
        size_t at = words->items[i].hash & (count - 1);

        while (words->slots[at] != 0)
            at = (at + 1) & (count - 1);
        words->slots[at] = (uint32_t)i + 1;
    }
}

uint32_t words_intern(struct words *words, const char *bytes, size_t length)
{
    uint32_t hash = hash_bytes(bytes, length);

    if (words->count * 2 >= words->slot_count)
        rehash(words);
    size_t at = hash & (words->slot_count - 1);
    for (; words->slots[at] != 0; at = (at + 1) & (words->slot_count - 1)) {
        const struct word *word = &words->items[words->slots[at] - 1];

        if (word->hash == hash && word->length == length && memcmp(word->bytes, bytes, length) == 0)
            return words->slots[at] - 1;
    }
    words->items = cli_grow(words->items, &words->room, words->count, sizeof *words->items);
    words->items[words->count] = (struct word){ cli_copy(bytes, length), (uint32_t)length, hash };
    words->slots[at] = (uint32_t)++words->count;
    return words->slots[at] - 1;
}

/* ---- lines ---------------------------------------------------------------------------------- */

bool trace_error(const struct trace *trace, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "%s:%llu: ", trace->name, (unsigned long long)trace->line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

/* Blank lines are passed over, but counted. */
enum line_result trace_line(struct trace *trace)
{
    int c;

    do {
        trace->length = 0;
        trace->line++;
        while ((c = getc_unlocked(trace->file)) != EOF && c != '\n') {
            if (trace->length == LINE_MAX_BYTES) {
                trace_error(trace, "the line is longer than 1 MiB");
                return LINE_FAILED;
            }
            trace->buffer[trace->length++] = (char)c;
        }
        if (ferror(trace->file)) {
            trace_error(trace, "cannot be read: %s", strerror(errno));
            return LINE_FAILED;
        }
        while (trace->length > 0 && trace->buffer[trace->length - 1] == '\r')
            trace->length--;
    } while (trace->length == 0 && c != EOF);
    return trace->length > 0 ? LINE_READ : LINE_END;
}

/* ---- rows ----------------------------------------------------------------------------------- */

void row_begin(struct trace *trace)
{
    trace->row = (struct trace_row){
        .hold_ns = TRACE_NO_HOLD,
        .cost = 1,
        .line = trace->line,
        .first_pair = trace->pair_count,
        .first_amount = trace->amount_count,
        .first_final = trace->final_count,
    };
    trace->has_time = false;
    trace->wrong[0] = 0;
}

void row_wrong(struct trace *trace, const char *format, ...)
{
    va_list arguments;

    if (trace->wrong[0] != 0)
        return;
    va_start(arguments, format);
    vsnprintf(trace->wrong, sizeof trace->wrong, format, arguments);
    va_end(arguments);
}

void row_pair(struct trace *trace, const char *key, size_t key_length, const char *value,
              size_t value_length)
{
    struct trace_pair pair = { words_intern(&trace->words, key, key_length),
                               words_intern(&trace->words, value, value_length) };

    if (key_length < 1 || key_length > ADM_MAX_KEY_BYTES || value_length < 1 ||
        value_length > ADM_MAX_VALUE_BYTES)
        row_wrong(trace, "descriptor \"%.64s\": keys have 1 to 64 bytes, values 1 to 256", key);
    for (size_t i = trace->row.first_pair; i < trace->pair_count; i++)
        if (trace->pairs[i].key == pair.key)
            row_wrong(trace, "descriptor \"%.64s\" is given twice", key);
    trace->pairs = cli_grow(trace->pairs, &trace->pair_room, trace->pair_count, sizeof pair);
    trace->pairs[trace->pair_count++] = pair;
    trace->row.pair_count++;
}

static void add_amount(struct trace *trace, struct trace_amount **list, size_t *count, size_t *room,
                       size_t first, struct trace_amount amount)
{
    for (size_t i = first; i < *count; i++)
        if ((*list)[i].unit == amount.unit)
            row_wrong(trace, "unit \"%.64s\" is given twice",
                      trace->words.items[amount.unit].bytes);
    if (amount.value > ADM_MAX_AMOUNT)
        row_wrong(trace, "an amount of %.64s is above 10^12",
                  trace->words.items[amount.unit].bytes);
    *list = cli_grow(*list, room, *count, sizeof amount);
    (*list)[(*count)++] = amount;
}

void row_amount(struct trace *trace, const char *unit, size_t unit_length, uint64_t value)
{
    struct trace_amount amount = { words_intern(&trace->words, unit, unit_length), value };

    if (trace->options->declare_set && unit_length == strlen("output_tokens") &&
        memcmp(unit, "output_tokens", unit_length) == 0) {
        row_final(trace, unit, unit_length, value);
        amount.value = trace->options->declare;
    }
    add_amount(trace, &trace->amounts, &trace->amount_count, &trace->amount_room,
               trace->row.first_amount, amount);
    trace->row.amount_count++;
}

void row_final(struct trace *trace, const char *unit, size_t unit_length, uint64_t value)
{
    struct trace_amount amount = { words_intern(&trace->words, unit, unit_length), value };

    add_amount(trace, &trace->finals, &trace->final_count, &trace->final_room,
               trace->row.first_final, amount);
    trace->row.final_count++;
}

static bool row_has(const struct trace *trace, uint32_t key)
{
    for (size_t i = trace->row.first_pair; i < trace->pair_count; i++)
        if (trace->pairs[i].key == key)
            return true;
    return false;
}

/* SplitMix64: repeatable, and equal on every machine. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Tenant of a row: the square of a uniform number, so that tenant-1 has the most traffic, and
 * few have most of it. */
static void add_tenant(struct trace *trace)
{
    uint64_t uniform = mix(trace->options->seed ^ mix(trace->line)) >> 32;
    uint64_t skewed = uniform * uniform >> 32;
    char name[32];

    int length = snprintf(name, sizeof name, "tenant-%llu",
                          (unsigned long long)((skewed * trace->options->tenants >> 32) + 1));
    row_pair(trace, "consumer", strlen("consumer"), name, (size_t)length);
}

/* What the command line adds; the row's own descriptors win. */
static void add_defaults(struct trace *trace)
{
    const struct trace_options *options = trace->options;

    for (size_t i = 0; i < options->descriptor_count; i++) {
        const struct adm_descriptor *d = &options->descriptors[i];
        size_t key_length = (size_t)d->key.length;

        if (!row_has(trace, words_intern(&trace->words, d->key.data, key_length)))
            row_pair(trace, d->key.data, key_length, d->value.data, (size_t)d->value.length);
    }
    if (options->tenants > 0 &&
        !row_has(trace, words_intern(&trace->words, "consumer", strlen("consumer"))))
        add_tenant(trace);
}

bool row_end(struct trace *trace)
{
    struct trace_row *row = &trace->row;

    add_defaults(trace);
    if (!trace->has_time)
        row_wrong(trace, "the row has no time");
    if (row->at_ns > TRACE_TIME_MAX)
        row_wrong(trace, "the time is out of range");
    if (row->cost < 1 || row->cost > ADM_MAX_AMOUNT)
        row_wrong(trace, "cost is a whole number from 1 to 10^12");
    if (row->pair_count > ADM_MAX_DESCRIPTORS)
        row_wrong(trace, "more than %d descriptors", ADM_MAX_DESCRIPTORS);
    if (row->amount_count > ADM_MAX_AMOUNTS || row->final_count > ADM_MAX_AMOUNTS)
        row_wrong(trace, "more than %d amounts", ADM_MAX_AMOUNTS);
    if (trace->wrong[0] == 0) {
        trace->rows = cli_grow(trace->rows, &trace->row_room, trace->row_count, sizeof *row);
        trace->rows[trace->row_count++] = *row;
        return true;
    }
    trace->pair_count = row->first_pair;
    trace->amount_count = row->first_amount;
    trace->final_count = row->first_final;
    trace->skipped++;
    return trace->options->skip_bad || trace_error(trace, "%s", trace->wrong);
}

bool trace_is_unit(const struct trace *trace, const char *name, size_t length)
{
    static const char *const built_in[] = { "input_tokens", "output_tokens", "tokens", "images" };

    for (size_t i = 0; i < sizeof built_in / sizeof built_in[0]; i++)
        if (strlen(built_in[i]) == length && memcmp(built_in[i], name, length) == 0)
            return true;
    for (size_t i = 0; i < trace->options->unit_count; i++)
        if (trace->options->units[i].length == length &&
            memcmp(trace->options->units[i].data, name, length) == 0)
            return true;
    return false;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int by_time(const void *left, const void *right)
{
    const struct trace_row *a = left, *b = right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

static bool read_rows(struct trace *trace)
{
    static const char azure[] = "TIMESTAMP,ContextTokens,GeneratedTokens";
    static const char mark[] = "\xef\xbb\xbf";
    enum trace_input input = trace->options->input;
    enum line_result first = trace_line(trace);

    if (first == LINE_FAILED)
        return false;
    if (first == LINE_END)
        return trace_error(trace, "the trace is empty");
    if (trace->length >= 3 && memcmp(trace->buffer, mark, 3) == 0) {
        trace->length -= 3;
        memmove(trace->buffer, trace->buffer + 3, trace->length);
    }
    if (input == TRACE_AUTO && trace->length > 0 && trace->buffer[0] == '{')
        input = TRACE_JSONL;
    if (input == TRACE_AUTO && trace->length == sizeof azure - 1 &&
        memcmp(trace->buffer, azure, sizeof azure - 1) == 0)
        input = TRACE_AZURE;
    if (input == TRACE_JSONL)
        return trace_read_json(trace);
    return trace_read_csv(trace, input == TRACE_AZURE);
}

bool trace_read(struct trace *trace, const char *path, struct trace_options *options)
{
    bool standard = strcmp(path, "-") == 0;

    *trace = (struct trace){ .name = standard ? "<stdin>" : path, .options = options };
    trace->file = standard ? stdin : fopen(path, "rb");
    if (trace->file == NULL) {
        cli_error("cannot read %s: %s", trace->name, strerror(errno));
        return false;
    }
    trace->buffer = cli_allocate(LINE_MAX_BYTES + 1);
    bool good = read_rows(trace);
    if (!standard)
        fclose(trace->file);
    trace->file = NULL;
    if (good && trace->row_count > 0)
        qsort(trace->rows, trace->row_count, sizeof *trace->rows, by_time);
    if (good && trace->row_count == 0)
        good = trace_error(trace, "the trace has no usable row");
    return good;
}

void trace_free(struct trace *trace)
{
    for (size_t i = 0; i < trace->words.count; i++)
        free(trace->words.items[i].bytes);
    free(trace->words.items);
    free(trace->words.slots);
    free(trace->rows);
    free(trace->pairs);
    free(trace->amounts);
    free(trace->finals);
    free(trace->buffer);
}
