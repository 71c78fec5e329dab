/* SPDX-License-Identifier: Apache-2.0 */
/* Results of scenarios as text, JSON or TAP. */
#ifndef CLI_TEST_REPORT_H
#define CLI_TEST_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum report_format { REPORT_TEXT, REPORT_JSON, REPORT_TAP };
extern const char *const report_format_names[]; /* ends with NULL */

enum result_kind { RESULT_PASSED, RESULT_FAILED, RESULT_SKIPPED };

struct result {
    enum result_kind kind;
    const char *file;
    uint64_t scenario; /* from 1 */
    const char *name;  /* of a document of a loader scenario; NULL: the scenario itself */
    const char *why;   /* failed: lines; skipped: the reason */
};

struct test_report {
    enum report_format format;
    bool quiet; /* text: passed files are not named */
    uint64_t passed, failed, skipped;
};

void report_begin(const struct test_report *report);
void report_result(struct test_report *report, const struct result *result);
void report_end(const struct test_report *report);

#endif
