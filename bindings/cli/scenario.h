/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of kind admission: steps on a gate with a fake clock, each with what must hold. */
#ifndef CLI_SCENARIO_H
#define CLI_SCENARIO_H

#include "json.h"
#include "lab.h"

struct lease_name {
    const struct json *name; /* a string */
    struct adm_id lease;
};

struct scenario {
    const char *file;
    const char *text; /* of the whole file: policies are handed on as they stand in it */
    size_t length;
    struct lab lab;
    uint64_t now_ms; /* of the step that runs */
    struct lease_name *leases;
    size_t lease_count, lease_room;
    FILE *report; /* one line per failure */
    unsigned failures;
};

/* What an operation answered. Absent members are null to an expectation. */
struct answer {
    char error[72]; /* "" : none */
    const char *outcome;
    struct adm_decision *decision; /* NULL: none */
    const char *number_name;       /* floor, units or allowed */
    int64_t number;
    char version[72];
    char broken[160]; /* the step itself makes no sense; "" : it does */
};

/* Runs one scenario; the number of failures, each reported in a line of its own. */
unsigned scenario_run(const char *file, struct adm_bytes text, const struct json *scenario,
                      enum lab_backend backend, FILE *report);

/* One step at one time: fills the answer, never prints. */
void scenario_step(struct scenario *scenario, const struct json *step, uint64_t t_ms,
                   struct answer *answer);

/* Compares an answer with the step's expectation; failures go to the report. */
void scenario_judge(struct scenario *scenario, const struct json *expect, const char *where,
                    const struct answer *answer);

__attribute__((format(printf, 3, 4))) void
scenario_fail(struct scenario *scenario, const char *where, const char *format, ...);

/* The fields of an operation, in one string with blanks around each; NULL for an unknown one. */
const char *scenario_fields(const struct json *op);

#endif
