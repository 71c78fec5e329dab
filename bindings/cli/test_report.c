/* SPDX-License-Identifier: Apache-2.0 */
/* Results of scenarios as text, JSON or TAP, printed as they come. */
#include "test_report.h"

#include "cli.h"
#include "json.h"

#include <inttypes.h>
#include <string.h>

const char *const report_format_names[] = { "text", "json", "tap", NULL };

void report_begin(const struct test_report *report)
{
    if (report->format == REPORT_JSON)
        fputs("{\"format\":1,\"results\":[", stdout);
}

/* Each line of a block behind a prefix. */
static void print_lines(const char *prefix, const char *block)
{
    while (*block != 0) {
        size_t length = strcspn(block, "\n");

        printf("%s%.*s\n", prefix, (int)length, block);
        block += length + (block[length] == '\n');
    }
}

static void print_title(const struct result *result)
{
    printf("%s: scenario %" PRIu64, result->file, result->scenario);
    if (result->name != NULL)
        printf(", document \"%s\"", result->name);
}

static void print_text(const struct result *result)
{
    if (result->kind == RESULT_PASSED)
        return;
    if (result->kind == RESULT_SKIPPED) {
        print_title(result);
        printf(": skipped: %s\n", result->why);
        return;
    }
    printf("%sFAIL%s ", style_on(stdout, STYLE_RED), style_off(stdout));
    print_title(result);
    fputc('\n', stdout);
    print_lines("    ", result->why);
}

static void print_tap(const struct test_report *report, const struct result *result)
{
    uint64_t number = report->passed + report->failed + report->skipped;

    printf("%s %" PRIu64 " - ", result->kind == RESULT_FAILED ? "not ok" : "ok", number);
    print_title(result);
    if (result->kind == RESULT_SKIPPED)
        printf(" # SKIP %s", result->why);
    fputc('\n', stdout);
    if (result->kind == RESULT_FAILED)
        print_lines("# ", result->why);
}

static void print_json(const struct test_report *report, const struct result *result)
{
    static const char *const words[] = { "passed", "failed", "skipped" };

    fputs(report->passed + report->failed + report->skipped > 1 ? ",\n " : "\n ", stdout);
    printf("{\"result\":\"%s\",\"file\":", words[result->kind]);
    json_print_text(stdout, result->file);
    printf(",\"scenario\":%" PRIu64, result->scenario);
    if (result->name != NULL) {
        fputs(",\"document\":", stdout);
        json_print_text(stdout, result->name);
    }
    if (result->why != NULL) {
        fputs(",\"why\":", stdout);
        json_print_text(stdout, result->why);
    }
    fputc('}', stdout);
}

void report_result(struct test_report *report, const struct result *result)
{
    switch (result->kind) {
    case RESULT_PASSED:
        report->passed++;
        break;
    case RESULT_FAILED:
        report->failed++;
        break;
    case RESULT_SKIPPED:
        report->skipped++;
        break;
    }
    switch (report->format) {
    case REPORT_TEXT:
        if (!report->quiet || result->kind == RESULT_FAILED)
            print_text(result);
        break;
    case REPORT_JSON:
        print_json(report, result);
        break;
    case REPORT_TAP:
        print_tap(report, result);
        break;
    }
}

void report_end(const struct test_report *report)
{
    const char *comment = report->format == REPORT_TAP ? "# " : "";

    if (report->format == REPORT_JSON) {
        printf("\n],\"passed\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"skipped\":%" PRIu64 "}\n",
               report->passed, report->failed, report->skipped);
        return;
    }
    if (report->format == REPORT_TAP)
        printf("1..%" PRIu64 "\n", report->passed + report->failed + report->skipped);
    if (report->skipped > 0)
        printf("%s%" PRIu64 " skipped\n", comment, report->skipped);
    printf("%s%" PRIu64 " passed, %" PRIu64 " failed\n", comment, report->passed, report->failed);
}
