/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the model share: its state, and the small functions that each part offers
 * the others. */
#ifndef ADMIT_MODEL_STATE_H
#define ADMIT_MODEL_STATE_H

#include "model.h"

#define MODEL_SECOND       INT64_C(1000000000)
#define MODEL_SIGNAL_AGE   (15 * MODEL_SECOND)
#define MODEL_DEFAULT_TTL  (600 * MODEL_SECOND)
#define MODEL_ATTEMPT_LIFE (60 * MODEL_SECOND)
#define MODEL_DEFAULT_SKEW (10 * MODEL_SECOND)
#define MODEL_TOO_WIDE     16
#define MODEL_E18          ((model_wide)1000000000000000000)
#define MODEL_WORD_MAX                                                                             \
    ((((model_wide)1) << 62) - (((model_wide)1) << 59) - 1) /* words and readings saturate here */
#define MODEL_QUOTA_MAX ((UINT64_C(1) << 44) - 1)

enum { MODEL_LIVE, MODEL_DARK }; /* regions: enforced rules, shadow rules */

/* Whose state a rule is, independent of its numbers. */
struct model_identity {
    int region;
    int rule, unit;
    enum model_type type;
    uint32_t window;
    int part_count;
    int parts[MODEL_MAX_PARTS];
};

/* Whose numbers: the rule's (kind 0), an override's (kind 1), a table entry's (kind 2). */
struct model_origin {
    int kind;
    int value;                      /* kind 2 */
    const struct model_match *when; /* kind 1 */
};

struct model_odometer {
    model_wide t0, v0;
    uint64_t capacity, refill, per_ns; /* scaled by the replica count last seen */
    int shift;
    bool has_floor;
    model_wide floor;
};

struct model_class {
    int identity;
    struct model_origin origin;
    int scope;     /* word, or 0 */
    bool in_force; /* false: removed by a publish, kept until all its buckets are full again */
    bool dropped;
    struct model_numbers numbers; /* of one replica */
    struct model_odometer odometer;
};

struct model_bucket {
    int class, partition;
    model_wide empty;
};

struct model_count {
    int identity, partition;
    uint64_t window;
    uint64_t used;
};

struct model_item {
    enum model_type type;
    int unit, identity, partition, class;
    bool completion, exact, done;
    uint32_t window_kind;
    uint64_t window;
    uint64_t now;  /* what is charged, or will be on completion */
    uint64_t held; /* concurrency */
};

struct model_lease {
    bool kept; /* false: only a shadow hold */
    bool closed, diverted, dark_live, derived, final_all;
    model_wide expires, dark_expires;
    int64_t ttl;
    unsigned final; /* bit per unit */
    uint64_t amounts[MODEL_UNITS];
    int item_count, dark_count;
    struct model_item items[MODEL_MAX_RULES];
    struct model_item dark[MODEL_MAX_RULES]; /* concurrency only */
};

struct model_attempt {
    int word;
    model_wide until;
    struct model_request content;
    struct model_answer answer;
};

struct model_signal_value {
    int scope, replica, name;
    bool missing;
    model_wide value_e9;
    model_wide at;
};

struct model {
    enum model_plant plant;
    int healthy; /* the word */
    const struct model_policy *policy;
    int history_count;
    const struct model_policy *history[MODEL_HISTORY + 1];
    int table_count;
    struct model_table tables[MODEL_MAX_RULES];
    int table_version;

    bool started;
    model_wide seen, offset, raw; /* raw: the caller's own time of this operation */
    bool has_wall;
    model_wide wall, raw_wall;

    int identity_count, identity_room;
    struct model_identity *identities;
    int class_count, class_room;
    struct model_class *classes;
    int partition_count, partition_room;
    struct model_partition *partitions;
    int bucket_count, bucket_room;
    struct model_bucket *buckets;
    int count_count, count_room;
    struct model_count *counts;
    int lease_count, lease_room;
    struct model_lease *leases;
    int holding_count, holding_room; /* leases that may hold units, either region */
    int *holding;
    int attempt_count, attempt_room;
    struct model_attempt *attempts;
    int signal_count, signal_room;
    struct model_signal_value *signals;
};

struct model_partition {
    int count;
    int values[MODEL_MAX_PARTS + 1];
};

static inline bool planted(const struct model *model, enum model_plant plant)
{
    return model->plant == plant;
}

/* Room for one more object at the end of an array; stops the program without memory. */
void *model_more(void *array, int count, int *room, size_t bytes);
#define MODEL_APPEND(array, count, room)                                                           \
    ((array) = model_more((array), (count), &(room), sizeof *(array)), &(array)[(count)++])

/* ---- time ---- */
void model_clock(struct model *model, struct adm_time now); /* sets seen, raw, wall, raw_wall */
uint64_t model_window(const struct model *model, uint32_t kind, model_wide wall, model_wide *begin,
                      model_wide *end);
void model_window_of(const struct model *model, uint32_t kind, uint64_t index, model_wide *begin,
                     model_wide *end);

/* ---- buckets ---- */
int model_best_shift(uint64_t capacity, uint64_t refill, uint64_t per_ns, uint64_t scale);
model_wide model_reading(const struct model_odometer *odometer, model_wide now);
void model_odometer_start(struct model_odometer *odometer, model_wide now,
                          const struct model_numbers *numbers, bool per_replica, uint64_t replicas);
void model_class_change(struct model *model, int class, const struct model_numbers *numbers,
                        bool per_replica, uint64_t replicas);
model_wide model_empty_at(const struct model *model, int class, const struct model_bucket *bucket);
struct model_bucket *model_bucket_find(struct model *model, int class, int partition);
bool model_bucket_differs(const struct model *model, const struct model_bucket *bucket);
void model_bucket_charge(struct model *model, int class, int partition, uint64_t tokens);
void model_bucket_refund(struct model *model, int class, int partition, uint64_t tokens);
/* The moment at which the odometer reads this, or -1: never. */
model_wide model_reaches(const struct model_odometer *odometer, model_wide reading);

/* ---- policies ---- */
bool model_holds(const struct model_match *match, const struct model_request *request);
int model_value(const struct model_request *request, int key); /* 0: absent */
int model_identity_of(struct model *model, const struct model_rule *rule);
int model_partition_of(struct model *model, const struct model_rule *rule,
                       const struct model_request *request);
/* Numbers that apply; false: off. */
bool model_pick(const struct model *model, const struct model_rule *rule,
                const struct model_request *request, struct model_numbers *out,
                struct model_origin *out_origin);
const struct model_table *model_table_of(const struct model *model, int rule);
const struct model_table_entry *model_entry_of(const struct model_table *table, int value);
struct model_numbers model_overlay(const struct model_numbers *base,
                                   const struct model_numbers *given);
/* The class for this request, created at first use, with the replica count of now. */
int model_class_of(struct model *model, const struct model_rule *rule,
                   const struct model_numbers *numbers, const struct model_origin *origin,
                   const struct model_request *request);
void model_refresh(struct model *model);

/* ---- signals ---- */
uint64_t model_replicas(const struct model *model, int scope);
bool model_pressed(const struct model *model, const struct model_rule *rule,
                   const struct model_numbers *numbers, int scope);

/* ---- counts ---- */
uint64_t model_held(struct model *model, int region, int identity, int partition);
struct model_usage {
    uint64_t window, used;
    model_wide end;
    bool ahead; /* the word stands in a later window, and the clock was set back from there */
};
struct model_usage model_used(const struct model *model, int identity, int partition,
                              uint32_t kind);
void model_use(struct model *model, int identity, int partition, uint64_t window, uint64_t used);
uint64_t model_limit(const struct model *model, const struct model_rule *rule,
                     const struct model_numbers *numbers, const struct model_request *request);

/* ---- judging ---- */
struct model_verdict {
    uint32_t reason; /* ADM_REASON_ALLOWED: passes or off */
    bool off, no_room;
    bool waits;       /* rate and quota: at is meaningful */
    model_wide at_ms; /* whole milliseconds from the caller's time; -1: never or not known */
};
void model_amounts(const struct model_request *request, uint64_t amounts[MODEL_UNITS],
                   unsigned *given, bool *derived);
bool model_rule_lacks(const struct model *model, const struct model_rule *rule,
                      const struct model_request *request);
bool model_rule_no_amount(const struct model_rule *rule, unsigned given);
void model_judge(struct model *model, const struct model_rule *rule,
                 const struct model_request *request, const uint64_t amounts[MODEL_UNITS],
                 struct model_verdict *out);
/* *terms: how many terms the rules before it make. */
void model_report_rule(struct model *model, const struct model_rule *rule,
                       const struct model_request *request, int *terms, struct model_report *out);
static inline bool model_consumes(const struct model_rule *rule)
{
    return rule->type == MODEL_BUCKET || rule->type == MODEL_CONCURRENCY ||
           rule->type == MODEL_QUOTA;
}

#endif
