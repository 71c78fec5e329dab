/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact model of a gate: what each operation must answer, written as plainly as possible with
 * arrays and loops. It shares nothing with the library but the public enumerations, so that two
 * independent writings of the same definition can be compared. Time is in nanoseconds, every number
 * is an integer.
 *
 * Texts (keys, values, rule ids, versions) are words: small numbers from model_word(). Word 0 means
 * absent.
 */
#ifndef ADMIT_MODEL_H
#define ADMIT_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <admit/backend.h>
#include <admit/types.h>

__extension__ typedef __int128 model_wide; /* times and odometer readings: never overflows here */

#define MODEL_MAX_RULES       40
#define MODEL_MAX_OVERRIDES   3
#define MODEL_MAX_PARTS       3
#define MODEL_MAX_ENTRIES     3
#define MODEL_MAX_VALUES      3
#define MODEL_MAX_ENTRY_COUNT 8 /* of a limit table */
#define MODEL_MAX_DESCRIPTORS 18
#define MODEL_MAX_AMOUNTS     18
#define MODEL_HISTORY         8
#define MODEL_UNITS           8

/* ---- words
 * ---------------------------------------------------------------------------------------------- */

int model_word(const char *text, size_t length);
int model_word_of(const char *text); /* of a C string */
const char *model_text(int word);    /* NUL-terminated as well */
size_t model_length(int word);

/* ---- what a policy says
 * --------------------------------------------------------------------------------- */

enum model_type { MODEL_BUCKET, MODEL_CONCURRENCY, MODEL_CAP, MODEL_PRESSURE, MODEL_QUOTA };
/* The first six units are built in, the rest declared by the policy. */
enum model_unit {
    MODEL_COST,
    MODEL_REQUESTS,
    MODEL_INPUT,
    MODEL_OUTPUT,
    MODEL_TOKENS,
    MODEL_IMAGES,
    MODEL_DECLARED
};
enum model_comparison { MODEL_GT = 1, MODEL_GTE, MODEL_LT, MODEL_LTE };

struct model_entry {
    int key;
    int count;
    int values[MODEL_MAX_VALUES]; /* as written in the policy, with their stars */
};

struct model_match {
    int count;
    int not_count;
    bool has_not;
    struct model_entry entries[MODEL_MAX_ENTRIES];
    struct model_entry negated[MODEL_MAX_ENTRIES];
};

enum {
    MODEL_GIVEN_CAPACITY = 1,
    MODEL_GIVEN_REFILL = 2,
    MODEL_GIVEN_PER = 4,
    MODEL_GIVEN_LIMIT = 8,
    MODEL_GIVEN_TTL = 16,
    MODEL_GIVEN_FRACTION = 32,
    MODEL_GIVEN_THRESHOLD = 64,
    MODEL_GIVEN_AGE = 128
};

struct model_numbers {
    unsigned given;
    enum model_comparison comparison;
    uint64_t capacity, refill, per_ns;
    uint64_t limit;
    uint64_t ttl_ns;
    uint64_t age_ns;       /* 0: 15 s */
    uint64_t fraction_e18; /* when given */
    uint64_t threshold_whole;
    uint64_t threshold_e18; /* the part below one */
};

struct model_override {
    struct model_match when;
    bool off;
    struct model_numbers numbers; /* only what the override gives */
};

struct model_rule {
    int id;
    enum model_type type;
    int unit;
    bool shadow, per_replica, completion, exact;
    uint32_t window; /* ADM_WINDOW_* */
    int scope;       /* key */
    int signal;
    uint64_t max_partitions; /* 0: unbounded */
    int part_count;
    int parts[MODEL_MAX_PARTS];
    struct model_match match;
    struct model_numbers numbers;
    int override_count;
    struct model_override overrides[MODEL_MAX_OVERRIDES];
};

struct model_policy {
    int version;
    bool unmatched_allow;
    uint64_t skew_ns;
    bool skew_given;
    int shard; /* key, or 0 */
    int rule_count;
    struct model_rule rules[MODEL_MAX_RULES];
};

struct model_table_entry {
    int value;
    bool off;
    bool removed; /* of a patch only */
    struct model_numbers numbers;
};

struct model_table {
    int version;
    int rule;
    int by;
    int count;
    struct model_table_entry entries[MODEL_MAX_ENTRY_COUNT];
};

/* Same content, whatever the names of the variables that hold it. */
bool model_policy_equal(const struct model_policy *a, const struct model_policy *b);
bool model_match_equal(const struct model_match *a, const struct model_match *b);

/* ---- questions and answers
 * ------------------------------------------------------------------------------ */

struct model_descriptor {
    int key;
    int value;
};

struct model_amount {
    int unit;
    bool final;
    uint64_t value;
};

struct model_request {
    int descriptor_count;
    struct model_descriptor descriptors[MODEL_MAX_DESCRIPTORS];
    int amount_count;
    struct model_amount amounts[MODEL_MAX_AMOUNTS];
    uint64_t cost;
    int attempt; /* word, or 0 */
};

struct model_answer {
    adm_status status; /* when it failed, nothing else counts */
    uint32_t verdict;
    uint32_t reason;
    uint64_t retry_ms;
    int rule_count;
    int shadow_count;
    int unknown_count;
    int rules[MODEL_MAX_RULES];
    int shadow[MODEL_MAX_RULES];
    int version;
    int table_version; /* 0: none */
    int lease;         /* 0: none */
    bool repeated;
};

/* What explain says of one rule. */
struct model_report {
    bool matched, off, denies, stateful, has_amount;
    uint32_t reason;
    int64_t level;
    uint64_t limit, amount, replicas, retry_ms;
};

/* Faults that a test plants to see that they are found. */
enum model_plant {
    PLANT_NONE,
    PLANT_CAPACITY_EXCLUSIVE,
    PLANT_OVERFULL,
    PLANT_EXPIRY_LATE,
    PLANT_WINDOW_OFF,
    PLANT_MONTH_OF_30,
    PLANT_LOST_FRACTION,
    PLANT_SETTLE_TWICE,
    PLANT_SHADOW_TOUCHES,
    PLANT_PRECEDENCE,
    PLANT_RETRY_LATE,
    PLANT_RAISE_ADDS,
    PLANT_COMPLETION_ABOVE_CAPACITY,
    PLANT_DENIED_CHARGES,
    PLANT_ATTEMPT_SHORT,
    PLANT_LATE_SETTLE_LOST,
    PLANT_DIVERT_CHARGES,
    PLANT_RENEW_FROM_END,
    PLANT_PRESSURE_EQUAL,
    PLANT_STALE_REPLICA,
    PLANT_CLOCK_MINTS,
    PLANT_PARTITIONS_PLUS_ONE,
    PLANT_FRACTION_UP,
    PLANT_ROLLBACK_REORDERS,
    PLANT_RELEASE_KEEPS,
    PLANT_TABLE_AFTER_OVERRIDE,
    PLANT_COUNT
};
extern const char *const model_plant_names[PLANT_COUNT];

/* ---- the model
 * ------------------------------------------------------------------------------------------ */

struct model;

struct model *model_new(void);
void model_free(struct model *model);
/* Begin anew, with this policy at this time. Policies stay the caller's and outlive the run. */
void model_start(struct model *model, const struct model_policy *policy, struct adm_time now,
                 enum model_plant plant);

void model_admit(struct model *model, struct adm_time now, const struct model_request *request,
                 struct model_answer *out);
/* reports: room for MODEL_MAX_RULES. */
void model_explain(struct model *model, struct adm_time now, const struct model_request *request,
                   struct model_answer *out, struct model_report *reports);
uint32_t model_release(struct model *model, struct adm_time now, int lease);
uint32_t model_renew(struct model *model, struct adm_time now, int lease);
/* *out_outcome is written when the result is ADM_OK. */
adm_status model_settle(struct model *model, struct adm_time now, int lease,
                        const struct model_amount *totals, int count, bool final_all,
                        uint32_t *out_outcome);
uint32_t model_divert(struct model *model, struct adm_time now, int lease);
void model_signal(struct model *model, struct adm_time now, int scope, int replica, int name,
                  double value);
adm_status model_publish(struct model *model, struct adm_time now,
                         const struct model_policy *policy);
adm_status model_rollback(struct model *model, struct adm_time now, int version);
adm_status model_put_table(struct model *model, struct adm_time now,
                           const struct model_table *table, bool patch);
adm_status model_read(struct model *model, struct adm_time now, int rule,
                      const struct model_descriptor *descriptors, int count, int64_t *out);
/* Whatever a full sweep may forget is forgotten. */
void model_sweep(struct model *model, struct adm_time now);

const struct model_policy *model_policy_in_force(const struct model *model);

#endif
