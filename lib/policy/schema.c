/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of every object of a policy document, as tables. */
#include "policy/schema.h"

#define ALL         ADMI_TYPES_ALL
#define NONE        ADMI_TYPES_NONE
#define BUCKET      ADMI_TYPES_BUCKET
#define CONCURRENCY ADMI_TYPES_CONCURRENCY
#define CAP         ADMI_TYPES_CAP
#define PRESSURE    ADMI_TYPES_PRESSURE
#define QUOTA       ADMI_TYPES_QUOTA
#define COUNTED     (BUCKET | CONCURRENCY | QUOTA)

const char *const admi_rule_type_words[] = {
    [ADMI_TOKEN_BUCKET] = "token_bucket",
    [ADMI_CONCURRENCY] = "concurrency",
    [ADMI_REQUEST_CAP] = "request_cap",
    [ADMI_PRESSURE] = "pressure",
    [ADMI_QUOTA] = "quota",
    NULL,
};
const char *const admi_builtin_unit_words[] = {
    [ADM_UNIT_COST] = "cost",
    [ADM_UNIT_REQUESTS] = "requests",
    [ADM_UNIT_INPUT_TOKENS] = "input_tokens",
    [ADM_UNIT_OUTPUT_TOKENS] = "output_tokens",
    [ADM_UNIT_TOKENS] = "tokens",
    [ADM_UNIT_IMAGES] = "images",
    NULL,
};
const char *const admi_window_words[] = { "day", "month", NULL };

static const char *const unmatched_words[] = { "deny", "allow", NULL };
static const char *const mode_words[] = { "enforce", "shadow", NULL };
static const char *const charge_words[] = { "admission", "completion", NULL };
static const char *const settle_words[] = { "none", "exact", NULL };
static const char *const reason_words[] = {
    "allowed",        "emergency_allowed",  "rate_exceeded",  "concurrency_exceeded",
    "pressure",       "quota_exceeded",     "unsatisfiable",  "cost_above_cap",
    "no_policy",      "missing_descriptor", "missing_amount", "policy_too_wide",
    "key_space_full", "state_unavailable",  "limited",        NULL,
};

#define FIELD(name_, kind_, types_, required_, help_)                                              \
    {                                                                                              \
        .name = name_, .kind = kind_, .types = types_, .required = required_, .help = help_        \
    }
#define BOUNDED(name_, kind_, types_, required_, least_, most_, help_)                             \
    {                                                                                              \
        .name = name_, .kind = kind_, .types = types_, .required = required_, .least = least_,     \
        .most = most_, .help = help_                                                               \
    }
/* The same with what its items or members are: a definition of the JSON Schema. */
#define HOLDING(name_, kind_, types_, required_, least_, most_, of_, help_)                        \
    {                                                                                              \
        .name = name_, .kind = kind_, .types = types_, .required = required_, .least = least_,     \
        .most = most_, .of = of_, .help = help_                                                    \
    }
#define CHOICE(name_, types_, required_, words_, help_)                                            \
    {                                                                                              \
        .name = name_, .kind = ADMI_FIELD_WORD, .types = types_, .required = required_,            \
        .words = words_, .help = help_                                                             \
    }

static const struct admi_field top_fields[ADMI_TOP_COUNT] = {
    [ADMI_TOP_VERSION] = BOUNDED("version", ADMI_FIELD_VERSION, ALL, ALL, 0, ADM_MAX_VERSION,
                                 "Names this text of the policy; change it with every change."),
    [ADMI_TOP_DESCRIPTION] = FIELD("description", ADMI_FIELD_TEXT, ALL, NONE,
                                   "For people: what the policy is for and who owns it."),
    [ADMI_TOP_UNMATCHED] =
        CHOICE("unmatched", ALL, NONE, unmatched_words,
               "What happens to a request that no rule matches; deny when omitted."),
    [ADMI_TOP_MAX_CLOCK_SKEW] =
        FIELD("max_clock_skew", ADMI_FIELD_DURATION, ALL, NONE,
              "How far the clocks of processes that share state may differ; 10s when omitted."),
    [ADMI_TOP_SHARD_BY] = FIELD(
        "shard_by", ADMI_FIELD_KEY, ALL, NONE,
        "A descriptor key that becomes part of every state identity, so that state can be spread."),
    [ADMI_TOP_HARD_TIMEOUT] =
        FIELD("hard_timeout", ADMI_FIELD_DURATION, ALL, NONE,
              "The longest that admitted work can run; leases should last longer."),
    [ADMI_TOP_METRIC_LABELS] =
        BOUNDED("metric_labels", ADMI_FIELD_LABELS, ALL, NONE, 0, ADMI_LABELS_MAX,
                "Descriptor keys with few values, which become labels of metrics."),
    [ADMI_TOP_UNITS] = BOUNDED("units", ADMI_FIELD_UNITS, ALL, NONE, 0, ADMI_UNITS_DECLARED_MAX,
                               "Units of your own, beside the built-in ones."),
    [ADMI_TOP_RULES] = HOLDING("rules", ADMI_FIELD_OBJECTS, ALL, ALL, 1, ADMI_MAX_RULES, "rule",
                               "Every rule that matches a request must admit it."),
    [ADMI_TOP_ON_STATE_FAILURE] =
        HOLDING("on_state_failure", ADMI_FIELD_OBJECTS, ALL, NONE, 0, ADMI_MAX_RULES, "allowance",
                "Emergency allowances for the time when state cannot be reached."),
    [ADMI_TOP_EXAMPLES] =
        HOLDING("examples", ADMI_FIELD_OBJECTS, ALL, NONE, 0, ADMI_MAX_RULES, "example",
                "Requests with the decision that is expected of this policy."),
};

static const struct admi_field rule_fields[ADMI_RULE_COUNT] = {
    [ADMI_RULE_ID] = BOUNDED("id", ADMI_FIELD_ID, ALL, ALL, 0, ADM_MAX_RULE_ID,
                             "Unique name of the rule; decisions and metrics carry it."),
    [ADMI_RULE_TYPE] =
        CHOICE("type", ALL, ALL, admi_rule_type_words,
               "What kind of limit this is; it decides which other fields there are."),
    [ADMI_RULE_DESCRIPTION] =
        FIELD("description", ADMI_FIELD_TEXT, ALL, NONE, "For people: why the rule is there."),
    [ADMI_RULE_MATCH] = FIELD("match", ADMI_FIELD_MATCH, ALL, NONE,
                              "Which requests the rule is about; every request when omitted."),
    [ADMI_RULE_PARTITION_BY] =
        BOUNDED("partition_by", ADMI_FIELD_KEYS, ALL, NONE, 0, ADMI_MAX_PARTITION_KEYS,
                "One limit of its own for each combination of these descriptors; one for all when "
                "omitted."),
    [ADMI_RULE_UNIT] =
        FIELD("unit", ADMI_FIELD_UNIT, ALL, NONE, "What is counted; cost when omitted."),
    [ADMI_RULE_MODE] =
        CHOICE("mode", ALL, NONE, mode_words,
               "A shadow rule only reports what it would deny; enforce when omitted."),
    [ADMI_RULE_OVERRIDES] =
        HOLDING("overrides", ADMI_FIELD_OBJECTS, ALL, NONE, 0, UINT32_MAX, "override",
                "Other numbers for some requests; the first whose when holds counts."),
    [ADMI_RULE_CHARGE] =
        CHOICE("charge", BUCKET, NONE, charge_words,
               "When the amount is taken: at admission (default) or at completion."),
    [ADMI_RULE_SETTLE] =
        CHOICE("settle", BUCKET | QUOTA, NONE, settle_words,
               "Whether the amount is corrected to what was really used; none when omitted."),
    [ADMI_RULE_PER_REPLICA] =
        FIELD("per_replica", ADMI_FIELD_BOOLEAN, BUCKET | CONCURRENCY, NONE,
              "Multiply the numbers by the number of live replicas in the scope."),
    [ADMI_RULE_SCOPE_BY] =
        FIELD("scope_by", ADMI_FIELD_KEY, BUCKET | CONCURRENCY | PRESSURE, NONE,
              "The descriptor key whose value names the scope of signals; model when omitted."),
    [ADMI_RULE_MAX_PARTITIONS] =
        BOUNDED("max_partitions", ADMI_FIELD_WHOLE, COUNTED, NONE, 1, ADM_MAX_AMOUNT,
                "The most partitions that are kept at a time; unbounded when omitted."),
    [ADMI_RULE_SIGNAL] = BOUNDED("signal", ADMI_FIELD_VALUE, PRESSURE, PRESSURE, 1,
                                 ADM_MAX_VALUE_BYTES, "The signal that is compared."),
    [ADMI_RULE_WINDOW] = CHOICE("window", QUOTA, QUOTA, admi_window_words,
                                "The calendar period (UTC) after which the quota starts again."),
};

#define NUMBER(text, kind_, types_, required_, most_, given_, member, help_)                       \
    {                                                                                              \
        .name = text, .kind = kind_, .types = types_, .required = required_, .most = most_,        \
        .given = given_, .offset = offsetof(struct admi_numbers, member), .help = help_            \
    }
#define COMPARISON(text, comparison_, help_)                                                       \
    {                                                                                              \
        .name = text, .kind = ADMI_FIELD_DECIMAL, .types = PRESSURE,                               \
        .given = ADMI_GIVEN_THRESHOLD, .comparison = comparison_,                                  \
        .offset = offsetof(struct admi_numbers, threshold), .help = help_                          \
    }

const struct admi_field admi_number_fields[ADMI_NUMBER_COUNT] = {
    [ADMI_NUMBER_CAPACITY] =
        NUMBER("capacity", ADMI_FIELD_WHOLE, BUCKET, BUCKET, ADM_MAX_AMOUNT, ADMI_GIVEN_CAPACITY,
               capacity, "The most that the bucket holds: the largest burst."),
    [ADMI_NUMBER_REFILL] = NUMBER("refill", ADMI_FIELD_WHOLE, BUCKET, BUCKET, ADM_MAX_AMOUNT,
                                  ADMI_GIVEN_REFILL, refill, "How much comes back in each per."),
    [ADMI_NUMBER_PER] = NUMBER("per", ADMI_FIELD_DURATION, BUCKET, BUCKET, 0, ADMI_GIVEN_PER,
                               per_ns, "The time in which refill comes back."),
    [ADMI_NUMBER_LIMIT] =
        NUMBER("limit", ADMI_FIELD_WHOLE, CONCURRENCY | CAP | QUOTA, CONCURRENCY | CAP | QUOTA,
               ADM_MAX_AMOUNT, ADMI_GIVEN_LIMIT, limit,
               "The most that may be held, used in the window, or asked for at once."),
    [ADMI_NUMBER_LEASE_TTL] = NUMBER(
        "lease_ttl", ADMI_FIELD_DURATION, CONCURRENCY, CONCURRENCY, 0, ADMI_GIVEN_LEASE_TTL,
        lease_ttl_ns, "How long a lease lasts that is never given back; above the longest work."),
    [ADMI_NUMBER_PARK] = NUMBER("park", ADMI_FIELD_DURATION, CONCURRENCY, NONE, 0, ADMI_GIVEN_PARK,
                                park_ns, "How long a request may wait for room."),
    [ADMI_NUMBER_FRACTION] =
        NUMBER("fraction", ADMI_FIELD_FRACTION, CONCURRENCY, NONE, 0, ADMI_GIVEN_FRACTION, fraction,
               "The share of the limit that may be used, above 0 and at most 1."),
    [ADMI_NUMBER_GT] = COMPARISON("gt", ADMI_GT, "Deny while the signal is above this."),
    [ADMI_NUMBER_GTE] = COMPARISON("gte", ADMI_GTE, "Deny while the signal is at or above this."),
    [ADMI_NUMBER_LT] = COMPARISON("lt", ADMI_LT, "Deny while the signal is below this."),
    [ADMI_NUMBER_LTE] = COMPARISON("lte", ADMI_LTE, "Deny while the signal is at or below this."),
    [ADMI_NUMBER_MAX_AGE] =
        NUMBER("max_age", ADMI_FIELD_DURATION, PRESSURE, NONE, 0, ADMI_GIVEN_MAX_AGE, max_age_ns,
               "A signal older than this is ignored; 15s when omitted."),
};

static const struct admi_field override_fields[ADMI_OVERRIDE_COUNT] = {
    [ADMI_OVERRIDE_WHEN] =
        FIELD("when", ADMI_FIELD_MATCH, ALL, ALL, "Which requests get these numbers."),
    [ADMI_OVERRIDE_OFF] =
        FIELD("off", ADMI_FIELD_TRUE, ALL, NONE, "Switches the rule off for these requests."),
};
static const struct admi_field allowance_fields[ADMI_ALLOWANCE_COUNT] = {
    [ADMI_ALLOWANCE_ID] =
        BOUNDED("id", ADMI_FIELD_ID, ALL, ALL, 0, ADM_MAX_RULE_ID, "Unique name of the allowance."),
    [ADMI_ALLOWANCE_DESCRIPTION] =
        FIELD("description", ADMI_FIELD_TEXT, ALL, NONE, "For people: why the allowance is there."),
    [ADMI_ALLOWANCE_MATCH] = FIELD("match", ADMI_FIELD_MATCH, ALL, NONE,
                                   "Which requests it is for; every request when omitted."),
};
static const struct admi_field example_fields[ADMI_EXAMPLE_COUNT] = {
    [ADMI_EXAMPLE_DESCRIPTION] =
        FIELD("description", ADMI_FIELD_TEXT, ALL, NONE, "For people: what the example shows."),
    [ADMI_EXAMPLE_D] = HOLDING("d", ADMI_FIELD_OBJECT, ALL, ALL, 0, ADM_MAX_DESCRIPTORS,
                               "descriptors", "The descriptors of the request."),
    [ADMI_EXAMPLE_COST] = BOUNDED("cost", ADMI_FIELD_WHOLE, ALL, NONE, 1, ADM_MAX_AMOUNT,
                                  "The cost of the request; 1 when omitted."),
    [ADMI_EXAMPLE_AMOUNTS] = HOLDING("amounts", ADMI_FIELD_OBJECT, ALL, NONE, 0, ADM_MAX_AMOUNTS,
                                     "amounts", "Amounts in units other than cost and requests."),
    [ADMI_EXAMPLE_EXPECT] = HOLDING("expect", ADMI_FIELD_OBJECT, ALL, ALL, 0, 0, "expectation",
                                    "What must hold of the decision."),
};
static const struct admi_field expect_fields[ADMI_EXPECT_COUNT] = {
    [ADMI_EXPECT_ALLOW] =
        FIELD("allow", ADMI_FIELD_BOOLEAN, ALL, NONE, "Whether the request is admitted."),
    [ADMI_EXPECT_REASON] =
        CHOICE("reason", ALL, NONE, reason_words,
               "The reason of the decision; limited stands for any limit that is used up."),
    [ADMI_EXPECT_RULES] =
        FIELD("rules", ADMI_FIELD_RULE_IDS, ALL, NONE, "All rules that deny, in policy order."),
    [ADMI_EXPECT_SHADOW] = FIELD("shadow", ADMI_FIELD_RULE_IDS, ALL, NONE,
                                 "All shadow rules that would deny, in policy order."),
    [ADMI_EXPECT_RETRY_AFTER_MS] =
        BOUNDED("retry_after_ms", ADMI_FIELD_WHOLE_OR_NULL, ALL, NONE, 0, UINT64_MAX,
                "When to try again, in milliseconds; null for no such time."),
};
static const struct admi_field table_fields[ADMI_TABLE_COUNT] = {
    [ADMI_TABLE_VERSION] = BOUNDED("version", ADMI_FIELD_VERSION, ALL, ALL, 0, ADM_MAX_VERSION,
                                   "Names this text of the table; change it with every change."),
    [ADMI_TABLE_RULE] = BOUNDED("rule", ADMI_FIELD_ID, ALL, ALL, 0, ADM_MAX_RULE_ID,
                                "The id of the rule whose numbers the table replaces."),
    [ADMI_TABLE_BY] = FIELD("by", ADMI_FIELD_KEY, ALL, ALL,
                            "The descriptor key by whose value entries are looked up."),
    [ADMI_TABLE_ENTRIES] =
        HOLDING("entries", ADMI_FIELD_OBJECT, ALL, ALL, 0, 0, "entries",
                "By value of the descriptor: the numbers that replace those of the rule, or off."),
};

const struct admi_object admi_top_object = { "a policy", top_fields, ADMI_TOP_COUNT, false, false };
const struct admi_object admi_rule_object = { "a rule", rule_fields, ADMI_RULE_COUNT, true, true };
const struct admi_object admi_override_object = { "an override", override_fields,
                                                  ADMI_OVERRIDE_COUNT, true, false };
const struct admi_object admi_allowance_object = { "an emergency allowance", allowance_fields,
                                                   ADMI_ALLOWANCE_COUNT, true, true };
const struct admi_object admi_example_object = { "an example", example_fields, ADMI_EXAMPLE_COUNT,
                                                 false, false };
const struct admi_object admi_expect_object = { "an expectation", expect_fields, ADMI_EXPECT_COUNT,
                                                false, false };
const struct admi_object admi_table_object = { "a limit table", table_fields, ADMI_TABLE_COUNT,
                                               false, false };
const struct admi_object admi_entry_object = { "a table entry", NULL, 0, true, false };
