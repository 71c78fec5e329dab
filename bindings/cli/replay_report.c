/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a replay, for people and for programs. */
#include "replay.h"

#include "answer.h"
#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* Nearest rank; the list is sorted and not empty. */
static uint64_t percentile(const struct replay *replay, unsigned percent)
{
    size_t rank = (replay->delay_count * percent + 99) / 100;

    return replay->delays[rank > 0 ? rank - 1 : 0];
}

static void sort_delays(struct replay *replay)
{
    if (replay->delay_count > 0)
        qsort(replay->delays, replay->delay_count, sizeof *replay->delays, by_value);
}

static void print_moment(FILE *out, uint64_t ns)
{
    time_t seconds = (time_t)(ns / ADM_SECOND);
    char text[40];
    struct tm moment;

    if (gmtime_r(&seconds, &moment) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &moment) == 0)
        snprintf(text, sizeof text, "%" PRIu64 " s", ns / ADM_SECOND);
    fprintf(out, "%s.%03" PRIu64, text, ns % ADM_SECOND / ADM_MILLISECOND);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void text_rules(const struct replay *replay)
{
    int width = 4;

    for (size_t i = 0; i < replay->rule_count; i++)
        if ((int)strlen(replay->rules[i].id) > width)
            width = (int)strlen(replay->rules[i].id);
    printf("\n%s%-*s  %-12s  %-13s  %10s  %10s  %14s  %14s  %9s%s\n", style_on(stdout, STYLE_BOLD),
           width, "rule", "type", "unit", "admitted", "denied", "units admitted", "units denied",
           "peak held", style_off(stdout));
    for (size_t i = 0; i < replay->rule_count; i++) {
        const struct replay_rule *rule = &replay->rules[i];

        printf("%-*s  %-12s  %-13s  %10" PRIu64 "  %10" PRIu64 "  %14" PRIu64 "  %14" PRIu64,
               width, rule->id, rule->type, rule->unit, rule->admitted, rule->denied,
               rule->admitted_units, rule->denied_units);
        if (rule->has_peak)
            printf("  %9" PRIu64, rule->peak);
        if (rule->shadow)
            printf("  shadow: would have denied %" PRIu64 ", no verdict %" PRIu64,
                   rule->shadow_denied, rule->shadow_unknown);
        fputc('\n', stdout);
    }
}

static void text_reasons(const struct replay *replay)
{
    uint64_t all = replay->verdicts[0] + replay->verdicts[1];

    printf("\n%s%-22s  %10s  %7s%s\n", style_on(stdout, STYLE_BOLD), "reason", "requests", "share",
           style_off(stdout));
    for (uint32_t reason = 0; reason < ADM_REASON_COUNT; reason++)
        if (replay->reasons[reason] > 0)
            printf("%-22s  %10" PRIu64 "  %6.2f%%\n", adm_reason_name(reason),
                   replay->reasons[reason],
                   100.0 * (double)replay->reasons[reason] / (double)all);
}

static void text_unit(const char *name, uint64_t admitted, uint64_t denied)
{
    printf("%-22s  %16" PRIu64 "  %16" PRIu64 "\n", name, admitted, denied);
}

static void text_units(const struct replay *replay)
{
    printf("\n%s%-22s  %16s  %16s%s\n", style_on(stdout, STYLE_BOLD), "unit", "admitted", "denied",
           style_off(stdout));
    text_unit("requests", replay->verdicts[1], replay->verdicts[0]);
    text_unit("cost", replay->costs[1], replay->costs[0]);
    for (size_t i = 0; i < replay->trace.words.count; i++)
        if (replay->units[i].name != NULL)
            text_unit(replay->units[i].name, replay->units[i].admitted, replay->units[i].denied);
    if (replay->tokens[0] + replay->tokens[1] > 0)
        text_unit("tokens (sum of parts)", replay->tokens[1], replay->tokens[0]);
}

static void text_kinds(const struct replay *replay)
{
    for (uint32_t i = 0; i < replay->kind_count; i++) {
        const struct replay_kind *kind = &replay->kinds[replay->kind_order[i]];

        printf("\n%s--- first %s: %s:%" PRIu64 ", ", style_on(stdout, STYLE_BOLD),
               adm_reason_name(kind->decision.reason), replay->trace.name, kind->line);
        print_moment(stdout, kind->at_ns);
        for (uint32_t rule = 0; adm_decision_rule(&kind->decision, rule) != NULL; rule++)
            printf("%s%s", rule == 0 ? ", by " : ", ", adm_decision_rule(&kind->decision, rule));
        printf(" ---%s\n", style_off(stdout));
        answer_print(stdout, &kind->decision);
    }
}

static double rate_of(const struct replay *replay)
{
    double seconds = (double)replay->wall_ns / 1e9;

    return seconds > 0 ? (double)replay->trace.row_count / seconds : 0;
}

void replay_report_text(struct replay *replay)
{
    const struct replay_options *options = replay->options;
    uint64_t all = replay->verdicts[0] + replay->verdicts[1];

    sort_delays(replay);
    printf("%s (version %s, %" PRIu64 " rules) over %s: ", replay->policy.name,
           replay->policy.version, replay->policy.rules, replay->trace.name);
    printf("%" PRIu64 " requests in %.3f s of the trace\n", all,
           (double)(replay->last_ns - replay->first_ns) / 1e9);
    if (replay->trace.skipped > 0)
        printf("%" PRIu64 " bad rows skipped\n", replay->trace.skipped);
    text_reasons(replay);
    text_rules(replay);
    text_units(replay);
    if (replay->delay_count > 0)
        printf("\nretry delay of %zu denials, ms: p50 %" PRIu64 "  p90 %" PRIu64 "  p99 %" PRIu64
               "  max %" PRIu64 "\n",
               replay->delay_count, percentile(replay, 50), percentile(replay, 90),
               percentile(replay, 99), replay->delays[replay->delay_count - 1]);
    if (replay->leases > 0)
        printf("%sleases: %" PRIu64 " granted, at most %" PRIu64 " at a time; %" PRIu64
               " released, %" PRIu64 " after expiry, %" PRIu64 " unknown\n",
               replay->delay_count > 0 ? "" : "\n", replay->leases, replay->peak_leases,
               replay->outcomes[ADM_OUTCOME_RELEASED], replay->outcomes[ADM_OUTCOME_LATE],
               replay->outcomes[ADM_OUTCOME_UNKNOWN]);
    if (options->show_kinds)
        text_kinds(replay);
    /* Everything above is the same on every run; this is not. */
    if (options->timing || !options->quiet)
        fprintf(options->timing ? stdout : stderr, "%zu decisions in %.3f s: %.0f per second\n",
                replay->trace.row_count, (double)replay->wall_ns / 1e9, rate_of(replay));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_rules(const struct replay *replay)
{
    fputs(",\n \"rules\":[", stdout);
    for (size_t i = 0; i < replay->rule_count; i++) {
        const struct replay_rule *rule = &replay->rules[i];

        printf("%s\n  {\"id\":", i > 0 ? "," : "");
        json_print_text(stdout, rule->id);
        printf(",\"type\":\"%s\",\"unit\":\"%s\",\"mode\":\"%s\"", rule->type, rule->unit,
               rule->shadow ? "shadow" : "enforce");
        printf(",\"admitted\":%" PRIu64 ",\"denied\":%" PRIu64 ",\"admitted_units\":%" PRIu64
               ",\"denied_units\":%" PRIu64,
               rule->admitted, rule->denied, rule->admitted_units, rule->denied_units);
        if (rule->shadow)
            printf(",\"shadow_denied\":%" PRIu64 ",\"shadow_unknown\":%" PRIu64,
                   rule->shadow_denied, rule->shadow_unknown);
        if (rule->has_peak)
            printf(",\"peak_held\":%" PRIu64, rule->peak);
        fputc('}', stdout);
    }
    fputs("]", stdout);
}

static void json_unit(const char *name, uint64_t admitted, uint64_t denied, bool first)
{
    fputs(first ? "" : ",", stdout);
    json_print_text(stdout, name);
    printf(":{\"admitted\":%" PRIu64 ",\"denied\":%" PRIu64 "}", admitted, denied);
}

static void json_units(const struct replay *replay)
{
    fputs(",\n \"units\":{", stdout);
    json_unit("requests", replay->verdicts[1], replay->verdicts[0], true);
    json_unit("cost", replay->costs[1], replay->costs[0], false);
    for (size_t i = 0; i < replay->trace.words.count; i++)
        if (replay->units[i].name != NULL)
            json_unit(replay->units[i].name, replay->units[i].admitted, replay->units[i].denied,
                      false);
    fputs("}", stdout);
    printf(",\n \"derived_tokens\":{\"admitted\":%" PRIu64 ",\"denied\":%" PRIu64 "}",
           replay->tokens[1], replay->tokens[0]);
}

static void json_kinds(const struct replay *replay)
{
    fputs(",\n \"kinds\":[", stdout);
    for (uint32_t i = 0; i < replay->kind_count; i++) {
        const struct replay_kind *kind = &replay->kinds[replay->kind_order[i]];

        printf("%s\n  {\"reason\":\"%s\",\"line\":%" PRIu64 ",\"rules\":[", i > 0 ? "," : "",
               adm_reason_name(kind->decision.reason), kind->line);
        for (uint32_t rule = 0; adm_decision_rule(&kind->decision, rule) != NULL; rule++) {
            fputs(rule > 0 ? "," : "", stdout);
            json_print_text(stdout, adm_decision_rule(&kind->decision, rule));
        }
        fputs("],\"http\":", stdout);
        answer_print_json(stdout, &kind->decision);
        fputc('}', stdout);
    }
    fputs("]", stdout);
}

static void json_head(const struct replay *replay)
{
    fputs("{\"format\":1,\n \"policy\":{\"file\":", stdout);
    json_print_text(stdout, replay->policy.name);
    fputs(",\"version\":", stdout);
    json_print_text(stdout, replay->policy.version);
    printf(",\"rules\":%" PRIu64 "},\n \"trace\":{\"file\":", replay->policy.rules);
    json_print_text(stdout, replay->trace.name);
    printf(",\"rows\":%zu,\"skipped\":%" PRIu64 ",\"virtual_ms\":%" PRIu64 "}",
           replay->trace.row_count, replay->trace.skipped,
           (replay->last_ns - replay->first_ns) / ADM_MILLISECOND);
    printf(",\n \"totals\":{\"decisions\":%" PRIu64 ",\"admitted\":%" PRIu64
           ",\"denied\":%" PRIu64 "},\n \"reasons\":{",
           replay->verdicts[0] + replay->verdicts[1], replay->verdicts[1], replay->verdicts[0]);
    for (uint32_t reason = 0, printed = 0; reason < ADM_REASON_COUNT; reason++)
        if (replay->reasons[reason] > 0)
            printf("%s\"%s\":%" PRIu64, printed++ > 0 ? "," : "", adm_reason_name(reason),
                   replay->reasons[reason]);
    fputs("}", stdout);
}

void replay_report_json(struct replay *replay)
{
    sort_delays(replay);
    json_head(replay);
    json_rules(replay);
    json_units(replay);
    printf(",\n \"retry_after_ms\":{\"count\":%zu", replay->delay_count);
    if (replay->delay_count > 0)
        printf(",\"p50\":%" PRIu64 ",\"p90\":%" PRIu64 ",\"p99\":%" PRIu64 ",\"max\":%" PRIu64,
               percentile(replay, 50), percentile(replay, 90), percentile(replay, 99),
               replay->delays[replay->delay_count - 1]);
    printf("},\n \"leases\":{\"granted\":%" PRIu64 ",\"peak\":%" PRIu64, replay->leases,
           replay->peak_leases);
    for (uint32_t outcome = 0; outcome < ADM_OUTCOME_COUNT; outcome++)
        if (replay->outcomes[outcome] > 0)
            printf(",\"%s\":%" PRIu64, adm_outcome_name(outcome), replay->outcomes[outcome]);
    fputs("}", stdout);
    if (replay->options->show_kinds)
        json_kinds(replay);
    if (replay->options->timing)
        printf(",\n \"timing\":{\"wall_us\":%" PRIu64 ",\"decisions_per_s\":%.0f}",
               replay->wall_ns / 1000, rate_of(replay));
    fputs("}\n", stdout);
    if (!replay->options->quiet)
        fprintf(stderr, "%zu decisions in %.3f s: %.0f per second\n", replay->trace.row_count,
                (double)replay->wall_ns / 1e9, rate_of(replay));
}
