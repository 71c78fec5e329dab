/* SPDX-License-Identifier: Apache-2.0 */
/* The totals as OpenMetrics 1.0 text. */
#include "observe/internal.h"

#include <assert.h>

#include "base/memory.h"
#include "observe/writer.h"

struct exposition {
    const struct admi_observe *observe;
    const struct admi_totals *totals;
    const struct admi_gauges *gauges;
};

/* ---- the grammar ---- */

static void write_family(struct admi_writer *writer, const char *name, const char *type,
                         const char *unit, const char *help)
{
    const char *const lines[3][2] = { { "TYPE", type }, { "UNIT", unit }, { "HELP", help } };
    for (uint32_t i = 0; i < 3; i++) {
        if (lines[i][1] == NULL)
            continue;
        admi_write_text(writer, "# ");
        admi_write_text(writer, lines[i][0]);
        admi_write_text(writer, " ");
        admi_write_text(writer, name);
        admi_write_text(writer, " ");
        admi_write_text(writer, lines[i][1]);
        admi_write_text(writer, "\n");
    }
}

static void write_label(struct admi_writer *writer, const char *before, const char *name,
                        struct adm_bytes value)
{
    admi_write_text(writer, before);
    admi_write_text(writer, name);
    admi_write_text(writer, "=\"");
    admi_write_label_value(writer, value);
    admi_write_text(writer, "\"");
}

static void write_value(struct admi_writer *writer, uint64_t value)
{
    admi_write_text(writer, " ");
    admi_write_number(writer, value);
    admi_write_text(writer, "\n");
}

/* name{label="word"} value; label NULL: name value */
static void write_sample(struct admi_writer *writer, const char *name, const char *label,
                         const char *word, uint64_t value)
{
    admi_write_text(writer, name);
    if (label != NULL) {
        write_label(writer, "{", label, adm_str(word));
        admi_write_text(writer, "}");
    }
    write_value(writer, value);
}

/* ---- decisions ---- */

static const char *verdict_of(uint32_t reason)
{
    return reason == ADM_REASON_ALLOWED || reason == ADM_REASON_EMERGENCY_ALLOWED ? "allow"
                                                                                  : "deny";
}

static void write_decisions(struct admi_writer *writer, const struct exposition *e,
                            const char *name, uint32_t which)
{
    for (uint32_t s = 0; s < e->totals->series_count; s++) {
        struct adm_bytes labels = admi_interned_first(admi_intern_at(&e->observe->series, s));
        for (uint32_t reason = 0; reason < ADM_REASON_COUNT; reason++) {
            uint64_t value = e->totals->series[s][reason][which];
            /* A counter that is there from the start makes its first increase visible; with labels
             * there would be too many of them. */
            if (e->totals->series[s][reason][ADMI_SERIES_REQUESTS] == 0 &&
                (s != ADMI_NO_SERIES || e->totals->labelled))
                continue;
            admi_write_text(writer, name);
            write_label(writer, "{", "verdict", adm_str(verdict_of(reason)));
            write_label(writer, ",", "reason", adm_str(adm_reason_name(reason)));
            if (labels.length > 0)
                admi_write_text(writer, ",");
            admi_write_bytes(writer, labels.data, labels.length); /* escaped when it was made */
            admi_write_text(writer, "}");
            write_value(writer, value);
        }
    }
}

static void write_decision_families(struct admi_writer *writer, const struct exposition *e)
{
    write_family(writer, "admit_decisions", "counter", NULL, "Decisions, by verdict and reason.");
    write_decisions(writer, e, "admit_decisions_total", ADMI_SERIES_REQUESTS);
    write_family(writer, "admit_decision_cost", "counter", NULL,
                 "Cost of the requests that were decided.");
    write_decisions(writer, e, "admit_decision_cost_total", ADMI_SERIES_COST);
}

/* ---- rules ---- */

struct rule_sample {
    const char *name;
    enum admi_rule_counter counter;
    const char *verdict;
};

static void write_rules(struct admi_writer *writer, const struct exposition *e,
                        const struct rule_sample *samples, uint32_t sample_count,
                        uint32_t with_unit, uint32_t with_zeros)
{
    for (uint32_t slot = 0; slot < e->totals->rule_count; slot++) {
        const struct admi_interned *word = admi_intern_at(&e->observe->rules, slot);
        if (!with_unit && word->first_use != slot)
            continue; /* counted in the first slot of this id */
        for (uint32_t i = 0; i < sample_count; i++) {
            uint64_t value = e->totals->rules[slot][samples[i].counter];
            if (value == 0 && !with_zeros)
                continue;
            admi_write_text(writer, samples[i].name);
            write_label(writer, "{", "rule", admi_interned_first(word));
            if (with_unit)
                write_label(writer, ",", "unit", admi_interned_second(word));
            write_label(writer, ",", "verdict", adm_str(samples[i].verdict));
            admi_write_text(writer, "}");
            write_value(writer, value);
        }
    }
}

static void write_rule_families(struct admi_writer *writer, const struct exposition *e)
{
    static const struct rule_sample requests[] = {
        { "admit_rule_requests_total", ADMI_RULE_ADMITTED, "allow" },
        { "admit_rule_requests_total", ADMI_RULE_DENIED, "deny" },
    };
    static const struct rule_sample units[] = {
        { "admit_rule_units_total", ADMI_RULE_ADMITTED_UNITS, "allow" },
        { "admit_rule_units_total", ADMI_RULE_DENIED_UNITS, "deny" },
    };
    static const struct rule_sample shadow[] = {
        { "admit_rule_shadow_total", ADMI_RULE_SHADOW_DENIED, "would_deny" },
        { "admit_rule_shadow_total", ADMI_RULE_SHADOW_UNKNOWN, "unknown" },
    };
    write_family(writer, "admit_rule_requests", "counter", NULL,
                 "Requests that a rule matched and that were admitted, or that it denied.");
    write_rules(writer, e, requests, 2, 0, 1);
    write_family(writer, "admit_rule_units", "counter", NULL,
                 "Amounts of the rule's unit that those requests asked for.");
    write_rules(writer, e, units, 2, 1, 1);
    write_family(
        writer, "admit_rule_shadow", "counter", NULL,
        "Requests that a shadow rule would have denied, or could not judge for want of room.");
    write_rules(writer, e, shadow, 2, 0, 0);
    write_family(
        writer, "admit_rules_unmetered", "gauge", NULL,
        "Rules in force without counters of their own, because too many rule ids came and went.");
    write_sample(writer, "admit_rules_unmetered", NULL, NULL, e->totals->unmetered);
}

/* ---- leases ---- */

#define OUTCOME(name) (1u << ADM_OUTCOME_##name)

static void write_lease_families(struct admi_writer *writer, const struct exposition *e)
{
    static const struct {
        uint32_t operation;
        const char *name;
        uint32_t expected; /* outcomes that are there from the start; others when they were seen */
    } operations[] = {
        { ADM_OP_GIVE, "release",
          OUTCOME(RELEASED) | OUTCOME(ALREADY) | OUTCOME(LATE) | OUTCOME(UNKNOWN) |
              OUTCOME(QUEUED) },
        { ADM_OP_RENEW, "renew", OUTCOME(RENEWED) | OUTCOME(LOST) },
        { ADM_OP_SETTLE, "settle",
          OUTCOME(SETTLED) | OUTCOME(ALREADY) | OUTCOME(LATE) | OUTCOME(UNKNOWN) |
              OUTCOME(QUEUED) },
        { ADM_OP_DIVERT, "divert",
          OUTCOME(DIVERTED) | OUTCOME(ALREADY) | OUTCOME(LATE) | OUTCOME(UNKNOWN) },
    };
    write_family(writer, "admit_lease_operations", "counter", NULL,
                 "Operations on leases, by what they found.");
    for (uint32_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        for (uint32_t outcome = 0; outcome < ADM_OUTCOME_COUNT; outcome++) {
            uint64_t value = e->totals->outcomes[operations[i].operation][outcome];
            if (value == 0 && (operations[i].expected >> outcome & 1) == 0)
                continue;
            admi_write_text(writer, "admit_lease_operations_total");
            write_label(writer, "{", "operation", adm_str(operations[i].name));
            write_label(writer, ",", "outcome", adm_str(adm_outcome_name(outcome)));
            admi_write_text(writer, "}");
            write_value(writer, value);
        }
    }
    write_family(writer, "admit_results", "counter", NULL, "Releases, by how the work ended.");
    for (uint32_t result = 0; result < ADM_RESULT_COUNT; result++)
        write_sample(writer, "admit_results_total", "result", adm_result_name(result),
                     e->totals->results[result]);
    write_family(writer, "admit_expired_leases", "counter", NULL, "Leases that ended by expiry.");
    write_sample(writer, "admit_expired_leases_total", NULL, NULL, e->gauges->info.expired);
}

/* ---- histograms ---- */

struct histogram_family {
    enum admi_histogram histogram;
    const char *name;
    const char *help;
    uint32_t digits; /* of a second that one step is: 9 for nanoseconds */
    uint64_t first,
        last; /* bounds that are exposed; what is outside is in the first bucket, or in +Inf */
    uint32_t every; /* 1: all four buckets of a power of two; 4: the power alone */
};

/* A delay is a number that a policy made, where a factor of two tells enough; a latency is not. */
static const struct histogram_family histogram_families[] = {
    { ADMI_RETRY_DELAY_MS, "admit_retry_delay_seconds",
      "Retry delays of the denials that carry one.", 3, 1, UINT64_C(1) << 32, 4 },
    { ADMI_ADMIT_NS, "admit_admission_seconds",
      "Time inside the admission call: every call that waited for the backend, and a sample of the "
      "others.",
      9, UINT64_C(1) << 7, UINT64_C(1) << 34, 1 },
    { ADMI_BACKEND_NS, "admit_backend_seconds",
      "Time of the backend operations that were answered later.", 9, UINT64_C(1) << 7,
      UINT64_C(1) << 34, 1 },
};

static void write_histogram(struct admi_writer *writer, const struct exposition *e,
                            const struct histogram_family *family)
{
    const uint64_t *buckets = e->totals->histograms[family->histogram].buckets;
    uint64_t count = 0;
    write_family(writer, family->name, "histogram", "seconds", family->help);
    for (uint32_t b = 0; b < ADMI_HISTOGRAM_BUCKETS; b++) {
        count += buckets[b];
        uint64_t bound = b < ADMI_HISTOGRAM_BUCKETS - 1 ? admi_histogram_bound(b) : UINT64_MAX;
        int exposed = family->every == 1 || (bound & (bound - 1)) == 0;
        if (bound < family->first || bound > family->last || !exposed)
            continue;
        admi_write_text(writer, family->name);
        admi_write_text(writer, "_bucket{le=\"");
        admi_write_decimal(writer, bound, family->digits);
        admi_write_text(writer, "\"}");
        write_value(writer, count);
    }
    admi_write_text(writer, family->name);
    admi_write_text(writer, "_bucket{le=\"+Inf\"}");
    write_value(writer, count);
    admi_write_text(writer, family->name);
    admi_write_text(writer, "_count");
    write_value(writer, count); /* not a counter of its own: it must equal the last bucket */
    admi_write_text(writer, family->name);
    admi_write_text(writer, "_sum ");
    admi_write_decimal(writer, e->totals->histograms[family->histogram].sum, family->digits);
    admi_write_text(writer, "\n");
}

/* ---- the gate and its backend ---- */

static void write_gate_families(struct admi_writer *writer, const struct exposition *e)
{
    static const struct {
        enum admi_counter counter;
        const char *family, *help; /* NULL: another sample of the family before */
        const char *name, *label, *word;
    } samples[] = {
        { ADMI_UNMATCHED, "admit_unmatched", "Requests that no enforced rule matched.",
          "admit_unmatched_total", NULL, NULL },
        { ADMI_REPEATED, "admit_repeated_attempts", "Attempt ids that were answered from memory.",
          "admit_repeated_attempts_total", NULL, NULL },
        { ADMI_INVALID, "admit_invalid_calls", "Calls that were refused as invalid.",
          "admit_invalid_calls_total", NULL, NULL },
        { ADMI_BACKEND_ERRORS, "admit_backend_errors",
          "Backend operations without a usable answer.", "admit_backend_errors_total", "kind",
          "status" },
        { ADMI_BACKEND_RESULTS, NULL, NULL, "admit_backend_errors_total", "kind", "result" },
        { ADMI_BACKEND_TIMEOUTS, NULL, NULL, "admit_backend_errors_total", "kind", "timeout" },
        { ADMI_BACKEND_STALE, "admit_rebuilt_takes",
          "Requests that were judged again under a newer set of classes.",
          "admit_rebuilt_takes_total", NULL, NULL },
        { ADMI_QUEUED, "admit_queued_operations",
          "Releases and settlements that were sent on without waiting.",
          "admit_queued_operations_total", NULL, NULL },
        { ADMI_PUBLISHES, "admit_policy_changes",
          "Changes of the policy or a limit table, put in force or refused.",
          "admit_policy_changes_total", "kind", "publish" },
        { ADMI_ROLLBACKS, NULL, NULL, "admit_policy_changes_total", "kind", "rollback" },
        { ADMI_TABLES, NULL, NULL, "admit_policy_changes_total", "kind", "table" },
        { ADMI_POLICY_REFUSED, NULL, NULL, "admit_policy_changes_total", "kind", "refused" },
        { ADMI_SIGNALS, "admit_signals", "Measurements that were taken in.", "admit_signals_total",
          NULL, NULL },
    };
    _Static_assert(sizeof samples / sizeof samples[0] == ADMI_COUNTER_COUNT,
                   "every counter of the gate is exposed");
    for (uint32_t i = 0; i < ADMI_COUNTER_COUNT; i++) {
        if (samples[i].family != NULL)
            write_family(writer, samples[i].family, "counter", NULL, samples[i].help);
        write_sample(writer, samples[i].name, samples[i].label, samples[i].word,
                     e->totals->gate[samples[i].counter]);
    }
    write_family(writer, "admit_pending_operations", "gauge", NULL,
                 "Operations that wait for the backend now.");
    write_sample(writer, "admit_pending_operations", NULL, NULL, e->gauges->pending);
    write_family(writer, "admit_signal_values", "gauge", NULL, "Signal values kept now.");
    write_sample(writer, "admit_signal_values", NULL, NULL, e->gauges->signals);
}

static void write_backend_families(struct admi_writer *writer, const struct exposition *e)
{
    const struct adm_backend_info *info = &e->gauges->info;
    const struct {
        const char *kind;
        uint64_t now, max;
    } records[] = {
        { "classes", info->classes, info->classes_max },
        { "partitions", info->partitions, info->partitions_max },
        { "leases", info->leases, info->leases_max },
        { "attempts", info->attempts, info->attempts_max },
    };
    write_family(writer, "admit_backend_records", "gauge", NULL,
                 "Records that the backend keeps now.");
    for (uint32_t i = 0; i < 4; i++)
        write_sample(writer, "admit_backend_records", "kind", records[i].kind, records[i].now);
    write_family(writer, "admit_backend_records_max", "gauge", NULL,
                 "Records that the backend has room for.");
    for (uint32_t i = 0; i < 4; i++) {
        if (records[i].max != UINT64_MAX) {
            write_sample(writer, "admit_backend_records_max", "kind", records[i].kind,
                         records[i].max);
            continue;
        }
        admi_write_text(writer, "admit_backend_records_max");
        write_label(writer, "{", "kind", adm_str(records[i].kind));
        admi_write_text(writer, "} +Inf\n");
    }
}

static void write_info(struct admi_writer *writer, const struct exposition *e)
{
    write_family(writer, "admit", "info", NULL, "What is in force.");
    admi_write_text(writer, "admit_info");
    write_label(writer, "{", "policy_version", adm_str(e->gauges->policy_version));
    write_label(writer, ",", "table_version", adm_str(e->gauges->table_version));
    write_label(writer, ",", "backend", adm_str(e->gauges->backend));
    admi_write_text(writer, "} 1\n");
}

static void write_all(struct admi_writer *writer, const struct exposition *e)
{
    write_info(writer, e);
    write_decision_families(writer, e);
    write_rule_families(writer, e);
    write_lease_families(writer, e);
    for (uint32_t i = 0; i < ADMI_HISTOGRAM_COUNT; i++)
        write_histogram(writer, e, &histogram_families[i]);
    write_gate_families(writer, e);
    write_backend_families(writer, e);
    admi_write_text(writer, "# EOF\n");
}

_Static_assert(sizeof histogram_families / sizeof histogram_families[0] == ADMI_HISTOGRAM_COUNT,
               "every histogram is exposed");

adm_status admi_observe_expose(struct admi_observe *observe, const struct admi_gauges *gauges,
                               char *buffer, uint64_t buffer_bytes, uint64_t *out_length)
{
    if (out_length == NULL || (buffer == NULL && buffer_bytes > 0))
        return ADM_E_INVALID_ARGUMENT;
    struct admi_totals totals;
    const struct exposition exposition = { observe, &totals, gauges };
    adm_status status = admi_totals_fold(observe, &totals);
    if (status == ADM_OK) {
        /* Once to measure and once to write, of the same totals: a buffer that is too small stays
         * as it was. */
        struct admi_writer measure = { NULL, 0, 0 };
        write_all(&measure, &exposition);
        *out_length = measure.length;
        if (measure.length <= buffer_bytes) {
            struct admi_writer writer = { buffer, buffer_bytes, 0 };
            write_all(&writer, &exposition);
            assert(writer.length == measure.length);
        } else if (buffer_bytes > 0) {
            status = ADM_E_BUFFER_TOO_SMALL;
        }
    }
    admi_totals_fini(observe, &totals);
    return status;
}
