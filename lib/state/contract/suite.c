/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the laws' checks, each on a fresh backend, and tells what they found. */
#include "state/contract/suite.h"

#include <stdarg.h>
#include <stdio.h>

void admi_check_fail(struct admi_check *check, const char *format, ...)
{
    va_list args;

    if (check->failed)
        return;
    check->failed = true;
    va_start(args, format);
    (void)vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
}

void admi_check_skip(struct admi_check *check, const char *format, ...)
{
    va_list args;

    if (check->failed || check->skipped)
        return;
    check->skipped = true;
    va_start(args, format);
    (void)vsnprintf(check->detail, sizeof check->detail, format, args);
    va_end(args);
}

static void run_check(const struct admi_contract_check *what, struct admi_check *check)
{
    const struct adm_contract_sizes small = {
        .partitions = 64, .leases = 64, .attempts = 16, .classes = 16
    };

    check->sizes = what->sizes.partitions != 0 ? what->sizes : small;
    if (!admi_world_open(&check->world, check->subject, &check->sizes)) {
        admi_check_fail(check, "open failed, or the table of operations cannot be used");
        admi_world_close(&check->world);
        return;
    }
    what->run(check);
    if (check->world.stuck)
        admi_check_fail(check, "an operation was never completed");
    if (check->world.home.protocol_errors != 0)
        admi_check_fail(check, "an operation was completed twice");
    admi_world_close(&check->world);
}

int adm_contract_run(const struct adm_contract_subject *subject, adm_contract_fn report,
                     void *report_self, struct adm_contract_summary *out)
{
    const struct admi_contract_check *const laws[] = {
        admi_contract_conservation, admi_contract_atomic, admi_contract_time,
        admi_contract_bounds,       admi_contract_terms,  admi_contract_threads,
        admi_contract_process
    };
    struct adm_contract_summary summary = { 0, 0, 0, 0 };

    for (uint32_t i = 0; i < sizeof laws / sizeof laws[0]; i++) {
        for (const struct admi_contract_check *what = laws[i]; what->law != 0; what++) {
            struct admi_check check = { .subject = subject };
            struct adm_contract_finding finding = { .law = what->law, .what = what->what };

            run_check(what, &check);
            finding.passed = !check.failed && !check.skipped;
            finding.skipped = check.skipped && !check.failed;
            finding.detail = check.detail;
            summary.passed += finding.passed;
            summary.skipped += finding.skipped;
            summary.failed += check.failed;
            if (check.failed)
                summary.laws_failed |= 1u << (what->law - 1);
            if (report != NULL)
                report(report_self, &finding);
        }
    }
    if (out != NULL)
        *out = summary;
    return summary.failed != 0;
}

static void print_tap(void *self, const struct adm_contract_finding *finding)
{
    uint32_t *count = self;

    (void)printf("%s %u - K%u %s%s%s\n", finding->passed || finding->skipped ? "ok" : "not ok",
                 ++*count, finding->law, finding->what,
                 finding->skipped  ? " # SKIP "
                 : finding->passed ? ""
                                   : ": ",
                 finding->detail);
    (void)fflush(stdout); /* a later check may fork */
}

int adm_contract_main(const struct adm_contract_subject *subject)
{
    struct adm_contract_summary summary;
    uint32_t count = 0;
    int failed;

    (void)printf("# contract of %s\n", subject->name);
    failed = adm_contract_run(subject, print_tap, &count, &summary);
    (void)printf("1..%u\n# %llu passed, %llu failed, %llu skipped\n", count,
                 (unsigned long long)summary.passed, (unsigned long long)summary.failed,
                 (unsigned long long)summary.skipped);
    return failed;
}
