/* SPDX-License-Identifier: Apache-2.0 */
/* Running a scenario and judging each step: an expectation lists only what must hold, and
 * nothing is ignored. */
#include "scenario.h"

#include "cli.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_MAX 12u /* lines per scenario; the rest is only counted */
#define REPEAT_MAX 1000000u
#define ROOM_MAX   16384u /* of a scenario's backend: hundreds of gates are opened in one run */

void scenario_fail(struct scenario *scenario, const char *where, const char *format, ...)
{
    va_list arguments;

    if (scenario->failures++ >= REPORT_MAX)
        return;
    va_start(arguments, format);
    fprintf(scenario->report, "%s: ", where);
    vfprintf(scenario->report, format, arguments);
    fputc('\n', scenario->report);
    va_end(arguments);
}

/* ---- judging -------------------------------------------------------------------------------- */

static void print_names(FILE *out, const struct adm_decision *decision,
                        const char *(*name_of)(const struct adm_decision *, uint32_t))
{
    const char *name;

    fputc('[', out);
    for (uint32_t i = 0; (name = name_of(decision, i)) != NULL; i++) {
        if (i > 0)
            fputc(',', out);
        json_print_text(out, name);
    }
    fputc(']', out);
}

static void print_optional(FILE *out, const char *text)
{
    if (text != NULL && text[0] != 0)
        json_print_text(out, text);
    else
        fputs("null", out);
}

/* What the answer has under this name, as JSON; false for a name that no answer has. */
static bool print_decision_member(FILE *out, const struct adm_decision *decision, const char *key)
{
    bool none = decision == NULL;

    if (strcmp(key, "allow") == 0) {
        fputs(none ? "null" : decision->verdict == ADM_VERDICT_ALLOW ? "true" : "false", out);
    } else if (strcmp(key, "reason") == 0) {
        print_optional(out, none ? NULL : adm_reason_name(decision->reason));
    } else if (strcmp(key, "retry_after_ms") == 0) {
        if (none || decision->retry_after_ms == 0)
            fputs("null", out);
        else
            fprintf(out, "%" PRIu64, decision->retry_after_ms);
    } else if (strcmp(key, "rules") == 0 || strcmp(key, "shadow") == 0) {
        if (none)
            fputs("null", out);
        else
            print_names(out, decision, key[0] == 'r' ? adm_decision_rule : adm_decision_shadow);
    } else if (strcmp(key, "table_version") == 0) {
        print_optional(out, none ? NULL : decision->table_version);
    } else if (strcmp(key, "unknown") == 0 || strcmp(key, "http") == 0) {
        if (none)
            fputs("null", out);
        else
            fprintf(out, "%u", key[0] == 'u' ? decision->unknown_count : decision->http_status);
    } else if (strcmp(key, "lease") == 0) {
        bool has = !none && (decision->lease.high != 0 || decision->lease.low != 0);

        fputs(none ? "null" : has ? "true" : "false", out);
    } else {
        return false;
    }
    return true;
}

static bool print_member(FILE *out, const struct answer *answer, const char *key)
{
    if (strcmp(key, "error") == 0) {
        print_optional(out, answer->error);
    } else if (strcmp(key, "outcome") == 0) {
        print_optional(out, answer->outcome);
    } else if (strcmp(key, "version") == 0) {
        print_optional(out, answer->decision != NULL ? answer->decision->policy_version
                                                     : answer->version);
    } else if (strcmp(key, "floor") == 0 || strcmp(key, "units") == 0 ||
               strcmp(key, "allowed") == 0) {
        if (answer->number_name != NULL && strcmp(answer->number_name, key) == 0)
            fprintf(out, "%" PRId64, answer->number);
        else
            fputs("null", out);
    } else {
        return print_decision_member(out, answer->decision, key);
    }
    return true;
}

/* Both sides are JSON in the same one-line form, so equal values are equal texts. */
static bool agrees(const struct json *want, const char *key, const char *want_text,
                   const char *got_text)
{
    if (strcmp(key, "outcome") == 0 && want->kind == JSON_ARRAY) {
        for (const struct json *any = want->first; any != NULL; any = any->next)
            if (any->kind == JSON_STRING && strlen(got_text) == any->length + 2 &&
                memcmp(got_text + 1, any->text, any->length) == 0)
                return true;
        return false;
    }
    if (strcmp(key, "reason") == 0 && json_is(want, "limited"))
        return strcmp(got_text, "\"rate_exceeded\"") == 0 ||
               strcmp(got_text, "\"concurrency_exceeded\"") == 0 ||
               strcmp(got_text, "\"quota_exceeded\"") == 0;
    return strcmp(want_text, got_text) == 0;
}

static void judge_member(struct scenario *scenario, const struct json *want, const char *where,
                         const struct answer *answer)
{
    char *texts[2] = { NULL, NULL };
    size_t lengths[2];
    FILE *got = open_memstream(&texts[0], &lengths[0]);
    FILE *wanted = open_memstream(&texts[1], &lengths[1]);

    if (got == NULL || wanted == NULL) {
        cli_error("out of memory");
        exit(CLI_ENVIRONMENT);
    }
    bool known = print_member(got, answer, want->key);
    json_print(wanted, want);
    fclose(got);
    fclose(wanted);
    if (!known)
        scenario_fail(scenario, where, "%s: no answer has such a member", want->key);
    else if (!agrees(want, want->key, texts[1], texts[0]))
        scenario_fail(scenario, where, "%s: expected %s, got %s%s%s%s", want->key, texts[1],
                      texts[0], answer->error[0] != 0 ? " (error " : "", answer->error,
                      answer->error[0] != 0 ? ")" : "");
    free(texts[0]);
    free(texts[1]);
}

void scenario_judge(struct scenario *scenario, const struct json *expect, const char *where,
                    const struct answer *answer)
{
    if (answer->broken[0] != 0) {
        scenario_fail(scenario, where, "%s", answer->broken);
        return;
    }
    if (expect == NULL)
        return;
    for (const struct json *want = expect->first; want != NULL; want = want->next)
        judge_member(scenario, want, where, answer);
}

/* ---- running -------------------------------------------------------------------------------- */

/* A field that no operation reads is a slip of the pen, and would make a test that cannot fail. */
static bool well_formed(struct scenario *scenario, const struct json *step, const char *where)
{
    static const char common[] = " t op repeat every_ms expect note ";
    const char *fields = scenario_fields(json_member(step, "op"));
    const struct json *expect = json_member(step, "expect");
    const struct json *twice = json_repeated(step);
    unsigned before = scenario->failures;

    if (fields == NULL) {
        scenario_fail(scenario, where, "unknown op");
        return false;
    }
    if (twice == NULL)
        twice = json_repeated(expect);
    if (twice != NULL)
        scenario_fail(scenario, where, "\"%s\" is given twice", twice->key);
    if (expect != NULL && expect->kind != JSON_OBJECT)
        scenario_fail(scenario, where, "\"expect\" must be an object");
    for (const struct json *field = step->first; field != NULL; field = field->next) {
        char padded[80];

        snprintf(padded, sizeof padded, " %.70s ", field->key);
        if (strchr(field->key, ' ') != NULL ||
            (strstr(common, padded) == NULL && strstr(fields, padded) == NULL))
            scenario_fail(scenario, where, "this op has no field \"%s\"", field->key);
    }
    return scenario->failures == before;
}

/* An optional whole number of a step. */
static bool number(struct scenario *scenario, const struct json *step, const char *key,
                   const char *where, uint64_t *value)
{
    const struct json *member = json_member(step, key);

    if (member == NULL || json_u64(member, value))
        return true;
    scenario_fail(scenario, where, "\"%s\" must be a whole number", key);
    return false;
}

static void run_step(struct scenario *scenario, const struct json *step, size_t index)
{
    const struct json *op = json_member(step, "op");
    const char *name = op != NULL && op->kind == JSON_STRING ? op->text : "?";
    uint64_t t = 0, repeat = 1, every = 0;
    char where[160];

    snprintf(where, sizeof where, "line %u, step %zu %.30s", step->line, index, name);
    if (!well_formed(scenario, step, where) || !number(scenario, step, "t", where, &t) ||
        !number(scenario, step, "repeat", where, &repeat) ||
        !number(scenario, step, "every_ms", where, &every))
        return;
    if (repeat == 0 || repeat > REPEAT_MAX || every > (UINT64_MAX - t) / repeat) {
        scenario_fail(scenario, where, "\"repeat\" is 0 or too large");
        return;
    }
    for (uint64_t i = 0; i < repeat; i++) {
        struct adm_decision decision = { .size = sizeof decision };
        struct answer answer = { .decision = json_is(op, "admit") || json_is(op, "drain")
                                                 ? &decision
                                                 : NULL };

        snprintf(where, sizeof where, "line %u, step %zu %.30s t=%" PRIu64, step->line, index, name,
                 t + i * every);
        scenario_step(scenario, step, t + i * every, &answer);
        scenario_judge(scenario, json_member(step, "expect"), where, &answer);
    }
}

/* Sizes of the backend, where a scenario needs a small one. */
static void read_sizes(const struct json *scenario, struct lab_options *options)
{
    const struct json *sizes = json_member(scenario, "backend");

    json_u64(json_member(sizes, "partitions"), &options->partitions_max);
    json_u64(json_member(sizes, "leases"), &options->leases_max);
    json_u64(json_member(sizes, "attempts"), &options->attempts_max);
    json_u64(json_member(sizes, "classes"), &options->classes_max);
}

static bool open_gate(struct scenario *scenario, const struct json *document,
                      enum lab_backend backend)
{
    const struct json *policy_text = json_member(document, "policy");
    struct lab_options options = {
        .backend = backend,
        .seed = 1,
        .partitions_max = ROOM_MAX,
        .leases_max = ROOM_MAX,
        .attempts_max = ROOM_MAX,
    };
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;

    if (policy_text == NULL) {
        scenario_fail(scenario, "policy", "the scenario has none");
        return false;
    }
    read_sizes(document, &options);
    struct adm_bytes text = { scenario->text + policy_text->start,
                              policy_text->end - policy_text->start };
    adm_status status = adm_policy_load(text, NULL, &policy, &diags);
    if (status == ADM_OK)
        status = lab_open(&scenario->lab, &options, policy);
    if (status != ADM_OK) {
        scenario_fail(scenario, "policy", "does not load: %s", adm_status_text(status));
        findings_print(scenario->report, diags,
                       &(struct source){ scenario->file, scenario->text, scenario->length,
                                         policy_text->line, policy_text->column });
    }
    adm_diags_free(diags);
    adm_policy_unref(policy);
    return status == ADM_OK;
}

static bool put_tables(struct scenario *scenario, const struct json *tables)
{
    if (tables == NULL)
        return true;
    for (const struct json *table = tables->first; table != NULL; table = table->next) {
        struct adm_bytes text = { scenario->text + table->start, table->end - table->start };
        struct adm_diags *diags = NULL;
        adm_status status = adm_gate_put_table(scenario->lab.gate, text, ADM_TABLE_REPLACE, &diags);

        if (status != ADM_OK) {
            scenario_fail(scenario, "tables", "a limit table is refused: %s",
                          adm_status_text(status));
            findings_print(scenario->report, diags,
                           &(struct source){ scenario->file, scenario->text, scenario->length,
                                             table->line, table->column });
        }
        adm_diags_free(diags);
        if (status != ADM_OK)
            return false;
    }
    return true;
}

unsigned scenario_run(const char *file, struct adm_bytes text, const struct json *document,
                      enum lab_backend backend, FILE *report)
{
    struct scenario scenario = {
        .file = file, .text = text.data, .length = text.length, .report = report
    };
    const struct json *steps = json_member(document, "steps");
    size_t index = 0;

    if (steps == NULL || steps->kind != JSON_ARRAY || steps->count == 0) {
        scenario_fail(&scenario, "steps", "a scenario needs a list of steps");
        return scenario.failures;
    }
    if (open_gate(&scenario, document, backend) &&
        put_tables(&scenario, json_member(document, "tables")))
        for (const struct json *step = steps->first; step != NULL; step = step->next)
            run_step(&scenario, step, index++);
    if (scenario.lab.gate != NULL)
        lab_close(&scenario.lab);
    if (scenario.failures > REPORT_MAX)
        fprintf(report, "and %u more\n", scenario.failures - REPORT_MAX);
    free(scenario.leases);
    return scenario.failures;
}
