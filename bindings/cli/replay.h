/* SPDX-License-Identifier: Apache-2.0 */
/* A replay: a trace through a policy on a virtual clock, and what came of it. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "heap.h"
#include "json.h"
#include "lab.h"
#include "replay_plot.h"
#include "trace.h"

struct replay_rule {
    char *id;
    const char *type, *unit; /* into the policy's tree */
    bool shadow;
    uint64_t admitted, admitted_units, denied, denied_units; /* as the gate counts them */
    uint64_t shadow_denied, shadow_unknown;
    bool has_peak;
    uint64_t peak; /* concurrency: most units held in one partition after an admission */
    uint64_t bin_peak; /* the same since the last bin of a plot was closed */
    uint64_t limit;    /* the rule's own; 0: none */
    double refill_per_second; /* of a bucket without partitions; else 0 */
};

struct replay_unit {
    const char *name;
    uint64_t admitted, denied;
};

struct replay_kind {
    uint64_t line; /* of the trace; 0: not seen */
    uint64_t at_ns;
    struct adm_decision decision;
};

struct replay_options {
    const char *policy_path, *trace_path;
    const char *plot_path; /* NULL: no picture */
    bool json, quiet, show_kinds, timing;
    enum lab_backend backend;
    uint64_t seed, partitions, leases;
    uint64_t base_ns, per_token_ns; /* the service model of rows without hold_ms */
    struct trace_options trace;
};

struct replay {
    const struct replay_options *options;
    struct input_policy {
        const char *name;
        char version[72];
        uint64_t rules;
    } policy;
    struct trace trace;
    struct lab lab;
    struct heap heap;

    struct replay_rule *rules;
    size_t rule_count;
    struct words rule_words; /* rule ids: the word's index is the rule's */

    struct replay_unit *units; /* by word of the trace: NULL names were never amounts */
    uint32_t *unit_ids;
    uint64_t tokens[2], costs[2]; /* derived tokens and cost: denied, admitted */

    uint64_t reasons[ADM_REASON_COUNT], verdicts[2], repeated;
    uint64_t *delays;
    size_t delay_count, delay_room;
    uint64_t leases, outcomes[ADM_OUTCOME_COUNT], peak_leases;
    struct replay_kind kinds[ADM_REASON_COUNT];
    uint32_t kind_order[ADM_REASON_COUNT], kind_count;
    uint64_t first_ns, last_ns, wall_ns;
    struct replay_plot plot;
};

/* Everything from the first row to the last release. False after an error on stderr. */
bool replay_run(struct replay *replay);

/* Reads the gate's own counters of each rule. */
bool replay_count_rules(struct replay *replay);

void replay_report_text(struct replay *replay);
void replay_report_json(struct replay *replay);

/* Rule ids, types and units from the policy's text; the units that it declares. */
void replay_read_rules(struct replay *replay, const struct json *policy);

#endif
