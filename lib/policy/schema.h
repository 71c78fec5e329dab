/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of every object of a policy document, as tables: name, kind, bounds, which rule types
 * have it.
 */
#ifndef ADMI_SCHEMA_H
#define ADMI_SCHEMA_H

#include <stddef.h>

#include "policy/catalog.h"
#include "policy/ruleset.h"

/* Sets of rule types. */
#define ADMI_TYPE_BIT(type) (1u << (type))
enum {
    ADMI_TYPES_NONE = 0,
    ADMI_TYPES_BUCKET = 1u << ADMI_TOKEN_BUCKET,
    ADMI_TYPES_CONCURRENCY = 1u << ADMI_CONCURRENCY,
    ADMI_TYPES_CAP = 1u << ADMI_REQUEST_CAP,
    ADMI_TYPES_PRESSURE = 1u << ADMI_PRESSURE,
    ADMI_TYPES_QUOTA = 1u << ADMI_QUOTA,
    ADMI_TYPES_ALL = 31
};

enum admi_field_kind {
    ADMI_FIELD_TEXT = 0, /* any string */
    ADMI_FIELD_WHOLE,    /* least … most */
    ADMI_FIELD_DECIMAL,
    ADMI_FIELD_FRACTION, /* a decimal in (0, 1] */
    ADMI_FIELD_DURATION,
    ADMI_FIELD_WORD, /* one of words */
    ADMI_FIELD_BOOLEAN,
    ADMI_FIELD_TRUE, /* only true */
    ADMI_FIELD_ID,
    ADMI_FIELD_VERSION,
    ADMI_FIELD_UNIT,  /* built in or declared */
    ADMI_FIELD_KEY,   /* a descriptor key */
    ADMI_FIELD_VALUE, /* 1 … 256 bytes */
    ADMI_FIELD_KEYS,  /* distinct descriptor keys, at most most */
    ADMI_FIELD_UNITS,
    ADMI_FIELD_LABELS,
    ADMI_FIELD_MATCH,
    ADMI_FIELD_OBJECTS, /* least … most objects */
    ADMI_FIELD_OBJECT,
    ADMI_FIELD_RULE_IDS,
    ADMI_FIELD_WHOLE_OR_NULL
};

struct admi_field {
    const char *name;
    enum admi_field_kind kind;
    uint32_t types;    /* of rules that have it; ADMI_TYPES_ALL where there is no type */
    uint32_t required; /* of rules that must have it */
    uint64_t least, most;
    const char *const *words; /* ADMI_FIELD_WORD: NULL-terminated */
    const char *of;   /* ADMI_FIELD_OBJECT(S): what they are, a definition of the JSON Schema */
    const char *help; /* one short sentence, which editors show */
    /* Numbers only: */
    uint32_t given;      /* ADMI_GIVEN_* */
    uint32_t comparison; /* enum admi_comparison */
    size_t offset;       /* in struct admi_numbers */
};

/* An object: its own fields and, for rules, overrides, entries and allowances, the numbers. */
struct admi_object {
    const char *name;
    const struct admi_field *fields;
    uint32_t count;
    bool numbers;
    bool numbers_required;
};

#define ADMI_FIELDS_MAX 16u

enum {
    ADMI_TOP_VERSION = 0,
    ADMI_TOP_DESCRIPTION,
    ADMI_TOP_UNMATCHED,
    ADMI_TOP_MAX_CLOCK_SKEW,
    ADMI_TOP_SHARD_BY,
    ADMI_TOP_HARD_TIMEOUT,
    ADMI_TOP_METRIC_LABELS,
    ADMI_TOP_UNITS,
    ADMI_TOP_RULES,
    ADMI_TOP_ON_STATE_FAILURE,
    ADMI_TOP_EXAMPLES,
    ADMI_TOP_COUNT
};

enum {
    ADMI_RULE_ID = 0,
    ADMI_RULE_TYPE,
    ADMI_RULE_DESCRIPTION,
    ADMI_RULE_MATCH,
    ADMI_RULE_PARTITION_BY,
    ADMI_RULE_UNIT,
    ADMI_RULE_MODE,
    ADMI_RULE_OVERRIDES,
    ADMI_RULE_CHARGE,
    ADMI_RULE_SETTLE,
    ADMI_RULE_PER_REPLICA,
    ADMI_RULE_SCOPE_BY,
    ADMI_RULE_MAX_PARTITIONS,
    ADMI_RULE_SIGNAL,
    ADMI_RULE_WINDOW,
    ADMI_RULE_COUNT
};

enum {
    ADMI_NUMBER_CAPACITY = 0,
    ADMI_NUMBER_REFILL,
    ADMI_NUMBER_PER,
    ADMI_NUMBER_LIMIT,
    ADMI_NUMBER_LEASE_TTL,
    ADMI_NUMBER_PARK,
    ADMI_NUMBER_FRACTION,
    ADMI_NUMBER_GT,
    ADMI_NUMBER_GTE,
    ADMI_NUMBER_LT,
    ADMI_NUMBER_LTE,
    ADMI_NUMBER_MAX_AGE,
    ADMI_NUMBER_COUNT
};

enum { ADMI_OVERRIDE_WHEN = 0, ADMI_OVERRIDE_OFF, ADMI_OVERRIDE_COUNT };
enum {
    ADMI_ALLOWANCE_ID = 0,
    ADMI_ALLOWANCE_DESCRIPTION,
    ADMI_ALLOWANCE_MATCH,
    ADMI_ALLOWANCE_COUNT
};
enum {
    ADMI_EXAMPLE_DESCRIPTION = 0,
    ADMI_EXAMPLE_D,
    ADMI_EXAMPLE_COST,
    ADMI_EXAMPLE_AMOUNTS,
    ADMI_EXAMPLE_EXPECT,
    ADMI_EXAMPLE_COUNT
};
enum {
    ADMI_EXPECT_ALLOW = 0,
    ADMI_EXPECT_REASON,
    ADMI_EXPECT_RULES,
    ADMI_EXPECT_SHADOW,
    ADMI_EXPECT_RETRY_AFTER_MS,
    ADMI_EXPECT_COUNT
};
enum {
    ADMI_TABLE_VERSION = 0,
    ADMI_TABLE_RULE,
    ADMI_TABLE_BY,
    ADMI_TABLE_ENTRIES,
    ADMI_TABLE_COUNT
};

extern const struct admi_field admi_number_fields[ADMI_NUMBER_COUNT];
extern const struct admi_object admi_top_object, admi_rule_object, admi_override_object,
    admi_allowance_object, admi_example_object, admi_expect_object, admi_table_object,
    admi_entry_object;

extern const char *const admi_rule_type_words[];    /* by enum admi_rule_type, NULL at the end */
extern const char *const admi_builtin_unit_words[]; /* by ADM_UNIT_*, NULL at the end */
extern const char *const admi_window_words[];       /* by ADM_WINDOW_* - 1, NULL at the end */

#define ADMI_UNITS_DECLARED_MAX 48u
#define ADMI_LABELS_MAX         4u
#define ADMI_MATCH_ENTRIES_MAX  16u
#define ADMI_SKEW_DEFAULT       (10 * ADM_SECOND)
#define ADMI_MAX_AGE_DEFAULT    (15 * ADM_SECOND)

#endif
