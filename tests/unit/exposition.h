/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: the exposed text as a string, and the value of one sample of it. */
#ifndef ADMIT_TESTS_EXPOSITION_H
#define ADMIT_TESTS_EXPOSITION_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "observe/observe.h"

static const struct admi_gauges no_gauges = { .policy_version = "",
                                              .table_version = "",
                                              .backend = "plain" };

/* NUL-terminated, to be freed. */
static inline char *expose(struct admi_observe *observe)
{
    uint64_t length = 0, written = 0;
    ck_assert_int_eq(admi_observe_expose(observe, &no_gauges, NULL, 0, &length), ADM_OK);
    char *text = NULL;
    adm_status status = ADM_E_BUFFER_TOO_SMALL;
    while (status == ADM_E_BUFFER_TOO_SMALL) { /* somebody may be counting, and the text grows */
        uint64_t room = length + 4096;
        free(text);
        text = calloc(1, (size_t)room + 1);
        ck_assert_ptr_nonnull(text);
        status = admi_observe_expose(observe, &no_gauges, text, room, &written);
        length = written;
    }
    ck_assert_int_eq(status, ADM_OK);
    ck_assert_uint_eq(strlen(text), written);
    return text;
}

/* The value of the sample with exactly this name and these labels; UINT64_MAX: there is none. */
static inline uint64_t value_in(const char *text, const char *sample)
{
    size_t length = strlen(sample);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, length) == 0 && line[length] == ' ')
            return strtoull(line + length + 1, NULL, 10);
    }
    return UINT64_MAX;
}

static inline uint64_t value_of(struct admi_observe *observe, const char *sample)
{
    char *text = expose(observe);
    uint64_t value = value_in(text, sample);
    free(text);
    return value;
}

#endif
