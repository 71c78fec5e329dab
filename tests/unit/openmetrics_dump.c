/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an exposition of everything, for openmetrics_check.py, which knows what must be in it. */
#include <stdio.h>
#include <stdlib.h>

#include "observe/observe.h"

/* What a client may send, in spite of everything. */
static const struct adm_bytes models[] = {
    { "plain", 5 },
    { "quote\"d", 7 },
    { "back\\slash", 10 },
    { "new\nline", 8 },
    { "\\n", 2 },
    { "a,b=\"c\"}", 8 },
    { "caf\xC3\xA9", 5 },
    { "\xF0\x9F\x98\x80", 4 },
    { "bad\xFF\xC3", 5 },
    { "nul\0byte", 8 },
    { "cr\rreturn", 9 },
    { "\xED\xA0\x80", 3 },
    { "# EOF", 5 },
    { "trailing\\", 9 },
    { " ", 1 },
    { "\xE2\x80\xA8", 3 },
};

static void count_all(struct admi_observe *observe, uint32_t slot, uint32_t labels_id)
{
    struct admi_counters *counters = admi_observe_local(observe);
    for (uint32_t i = 0; i < ADM_REASON_COUNT; i++)
        admi_count_decision(counters, ADMI_NO_SERIES, i, UINT64_MAX / 16);
    for (uint32_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const struct adm_bytes values[2] = { adm_str("chat"), models[i] };
        uint32_t series = admi_observe_series(observe, counters, labels_id, values);
        admi_count_decision(counters, series, ADM_REASON_RATE_EXCEEDED, i + 1);
    }
    for (uint32_t i = 0; i < ADMI_COUNTER_COUNT; i++)
        admi_count(counters, (enum admi_counter)i, i + 1);
    for (uint32_t i = 0; i < ADMI_RULE_COUNTER_COUNT; i++)
        admi_count_rule(counters, slot, (enum admi_rule_counter)i, i + 1);
    for (uint32_t operation = ADM_OP_GIVE; operation <= ADM_OP_DIVERT; operation++) {
        for (uint32_t outcome = 0; outcome < ADM_OUTCOME_COUNT; outcome++)
            admi_count_outcome(counters, operation, outcome);
    }
    for (uint32_t i = 0; i < ADMI_HISTOGRAM_COUNT; i++) {
        for (uint64_t value = 1; value < UINT64_MAX / 3; value *= 3)
            admi_count_histogram(counters, (enum admi_histogram)i, value);
    }
}

int main(void)
{
    const struct adm_bytes ids[2] = { adm_str("rule.a-1"), adm_str("rule.b") };
    const struct adm_bytes units[2] = { adm_str("cost"), adm_str("input_tokens") };
    const struct adm_bytes names[2] = { adm_str("service"), adm_str("x-model") };
    const struct admi_gauges gauges = {
        .policy_version = "2026-12-01.1",
        .table_version = "odd \"version\"\\",
        .backend = "plain",
        .info = { .classes = 3, .classes_max = UINT64_MAX, .leases_max = 65536, .expired = 12 },
        .pending = 1,
        .signals = 2
    };
    struct admi_observe *observe = NULL;
    uint32_t slots[2], labels_id = 0;
    uint64_t length = 0;
    if (admi_observe_new(NULL, &observe) != ADM_OK ||
        admi_observe_rules(observe, ids, units, 2, slots) != ADM_OK ||
        admi_observe_labels(observe, names, 2, &labels_id) != ADM_OK)
        return 1;
    count_all(observe, slots[0], labels_id);
    if (admi_observe_expose(observe, &gauges, NULL, 0, &length) != ADM_OK)
        return 1;
    char *text = malloc((size_t)length);
    if (text == NULL || admi_observe_expose(observe, &gauges, text, length, &length) != ADM_OK)
        return 1;
    int written = fwrite(text, 1, (size_t)length, stdout) == length && fflush(stdout) == 0;
    free(text);
    admi_observe_free(observe);
    return written ? 0 : 1;
}
