/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in memory: rows in time order, words stored once. Readers for CSV and JSON lines fill
 * it. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <admit/types.h>

#include <stdbool.h>
#include <stdio.h>

#define TRACE_NO_HOLD UINT64_MAX
/* 146 years on the virtual clock; the sum of two stays in range. */
#define TRACE_TIME_MAX (UINT64_MAX / 4)

/* Byte strings, each stored once and known by its index. */
struct words {
    struct word {
        char *bytes;
        uint32_t length;
        uint32_t hash;
    } *items;
    size_t count, room;
    uint32_t *slots; /* index + 1; 0: free */
    size_t slot_count;
};

uint32_t words_intern(struct words *words, const char *bytes, size_t length);

struct trace_pair {
    uint32_t key, value; /* words */
};

struct trace_amount {
    uint32_t unit; /* word */
    uint64_t value;
};

struct trace_row {
    uint64_t at_ns, hold_ns, cost;
    uint64_t line;
    size_t first_pair, first_amount, first_final;
    uint32_t pair_count, amount_count, final_count;
};

enum trace_input { TRACE_AUTO, TRACE_CSV, TRACE_AZURE, TRACE_JSONL };
extern const char *const trace_input_names[]; /* ends with NULL */

struct trace_map {
    struct adm_bytes column, name;
    bool used;
};

#define TRACE_OPTION_MAX 64 /* maps, declared units: each */

struct trace_options {
    enum trace_input input;
    bool skip_bad;
    struct trace_map maps[TRACE_OPTION_MAX];
    size_t map_count;
    struct adm_descriptor descriptors[ADM_MAX_DESCRIPTORS]; /* --descriptor */
    size_t descriptor_count;
    struct adm_bytes units[TRACE_OPTION_MAX]; /* beside the built-in ones */
    size_t unit_count;
    /* output_tokens are declared as this; what the row says is what really came */
    bool declare_set;
    uint64_t declare;
    uint64_t tenants; /* 0: none */
    uint64_t seed;
};

struct trace {
    const char *name;
    FILE *file;
    struct trace_options *options;
    struct words words;
    struct trace_row *rows;
    size_t row_count, row_room;
    struct trace_pair *pairs;
    size_t pair_count, pair_room;
    struct trace_amount *amounts, *finals;
    size_t amount_count, amount_room, final_count, final_room;
    struct trace_row row; /* being read */
    bool has_time;
    char wrong[200];      /* what is wrong with it; "": nothing */
    uint64_t line;        /* number of the last line read */
    char *buffer;         /* the last line, without its end */
    size_t length;
    uint64_t skipped;
};

/* The whole file ("-": stdin), sorted by time. False after a located error on stderr. */
bool trace_read(struct trace *trace, const char *path, struct trace_options *options);
void trace_free(struct trace *trace);

/* ---- for the readers ------------------------------------------------------------------------ */

enum line_result { LINE_READ, LINE_END, LINE_FAILED };
enum line_result trace_line(struct trace *trace);

void row_begin(struct trace *trace);
void row_pair(struct trace *trace, const char *key, size_t key_length, const char *value,
              size_t value_length);
void row_amount(struct trace *trace, const char *unit, size_t unit_length, uint64_t value);
void row_final(struct trace *trace, const char *unit, size_t unit_length, uint64_t value);
__attribute__((format(printf, 2, 3))) void row_wrong(struct trace *trace, const char *format, ...);

/* False: the row is bad, that was said, and bad rows are not skipped. */
bool row_end(struct trace *trace);

bool trace_is_unit(const struct trace *trace, const char *name, size_t length);

/* An error that skipping cannot mend, at the current line. */
__attribute__((format(printf, 2, 3))) bool trace_error(const struct trace *trace,
                                                       const char *format, ...);

bool trace_read_csv(struct trace *trace, bool azure); /* the header is the current line */
bool trace_read_json(struct trace *trace);            /* the first row is the current line */

#endif
