/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's findings as people and machines read them: file:line:col, code, pointer, message,
 * help. */
#include "cli.h"
#include "json.h"

#include <admit/admit.h>

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *severity_word(uint32_t severity)
{
    switch (severity) {
    case ADM_SEVERITY_ERROR:
        return "error";
    case ADM_SEVERITY_WARNING:
        return "warning";
    default:
        return "note";
    }
}

static enum cli_style severity_style(uint32_t severity)
{
    switch (severity) {
    case ADM_SEVERITY_ERROR:
        return STYLE_RED;
    case ADM_SEVERITY_WARNING:
        return STYLE_YELLOW;
    default:
        return STYLE_CYAN;
    }
}

static void print_one(FILE *out, const struct adm_diag *diag, const struct source *source)
{
    bool note = diag->severity == ADM_SEVERITY_NOTE;
    uint32_t line = diag->line, column = diag->column;

    if (source->line > 0 && line > 0) {
        if (line == 1)
            column += source->column - 1;
        line += source->line - 1;
    }
    fputs(style_on(out, STYLE_BOLD), out);
    source_text_print(out, source->name);
    fputc(':', out);
    if (line > 0)
        fprintf(out, "%u:%u:", line, column);
    fprintf(out, "%s %s%s", style_off(out), style_on(out, severity_style(diag->severity)),
            severity_word(diag->severity));
    if (!note)
        fprintf(out, "[%s]", diag->code);
    fprintf(out, "%s: ", style_off(out));
    if (!note && diag->pointer[0] != 0) {
        source_text_print(out, diag->pointer);
        fputs(": ", out);
    }
    source_text_print(out, diag->message);
    fputc('\n', out);
    if (line > 0)
        source_line_print(out, source->text, source->length, line, column, diag->length,
                          severity_style(diag->severity));
    if (diag->nearest != NULL) {
        const char *quote = diag->nearest[0] == '"' ? "" : "\"";

        fprintf(out, "  %shelp:%s did you mean %s", style_on(out, STYLE_CYAN), style_off(out),
                quote);
        source_text_print(out, diag->nearest);
        fprintf(out, "%s?\n", quote);
    }
}

void findings_print(FILE *out, const struct adm_diags *diags, const struct source *source)
{
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = { .size = sizeof diag };

        if (adm_diags_get(diags, i, &diag) == ADM_OK)
            print_one(out, &diag, source);
    }
}

void findings_count(const struct adm_diags *diags, struct tally *inout)
{
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = { .size = sizeof diag };

        if (adm_diags_get(diags, i, &diag) != ADM_OK || diag.severity == ADM_SEVERITY_NOTE)
            continue;
        bool error = diag.severity == ADM_SEVERITY_ERROR;
        if (inout->errors == 0 && (error || inout->warnings == 0))
            snprintf(inout->code, sizeof inout->code, "%s", diag.code);
        if (error)
            inout->errors++;
        else
            inout->warnings++;
    }
}

void findings_summary(FILE *out, const struct tally *tally)
{
    if (tally->errors == 0 && tally->warnings == 0)
        return;
    if (tally->errors > 0)
        fprintf(out, "%" PRIu64 " error%s", tally->errors, tally->errors == 1 ? "" : "s");
    if (tally->warnings > 0)
        fprintf(out, "%s%" PRIu64 " warning%s", tally->errors > 0 ? ", " : "", tally->warnings,
                tally->warnings == 1 ? "" : "s");
    fprintf(out, "; admit explain-code %s says more\n", tally->code);
}

void findings_print_alone(const struct adm_diags *diags, const struct source *source)
{
    struct tally tally = { .errors = 0 };

    findings_print(stderr, diags, source);
    findings_count(diags, &tally);
    findings_summary(stderr, &tally);
}

void findings_print_json(FILE *out, const struct adm_diags *diags)
{
    fputc('[', out);
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = { .size = sizeof diag };

        if (adm_diags_get(diags, i, &diag) != ADM_OK)
            continue;
        fprintf(out, "%s{\"severity\":\"%s\",\"code\":", i > 0 ? "," : "",
                severity_word(diag.severity));
        json_print_text(out, diag.code);
        fputs(",\"name\":", out);
        json_print_text(out, diag.name);
        fprintf(out, ",\"line\":%u,\"column\":%u,\"length\":%u,\"pointer\":", diag.line,
                diag.column, diag.length);
        json_print_text(out, diag.pointer != NULL ? diag.pointer : "");
        fputs(",\"message\":", out);
        json_print_text(out, diag.message);
        fputs(",\"nearest\":", out);
        if (diag.nearest != NULL)
            json_print_text(out, diag.nearest);
        else
            fputs("null", out);
        fputc('}', out);
    }
    fputc(']', out);
}

const char *findings_error_name(const struct adm_diags *diags, char out[72])
{
    for (uint64_t i = 0; i < adm_diags_count(diags); i++) {
        struct adm_diag diag = { .size = sizeof diag };

        if (adm_diags_get(diags, i, &diag) == ADM_OK && diag.severity == ADM_SEVERITY_ERROR) {
            snprintf(out, 72, "%s", diag.name);
            return out;
        }
    }
    return status_word(ADM_E_POLICY_INVALID, out);
}

const char *status_word(adm_status status, char out[72])
{
    static const char prefix[] = "ADM_E_";
    const char *name = adm_status_name(status);

    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    size_t i = 0;
    for (; name[i] != 0 && i < 71; i++)
        out[i] = (char)tolower((unsigned char)name[i]);
    out[i] = 0;
    return out;
}

int status_exit_code(adm_status status)
{
    if (adm_status_class(status) == ADM_STATUS_CLASS_ENVIRONMENT)
        return CLI_ENVIRONMENT;
    return adm_status_class(status) == ADM_STATUS_CLASS_POLICY ? CLI_INVALID : CLI_FAILED;
}

int worse_exit_code(int a, int b)
{
    static const int rising[] = { CLI_OK,      CLI_FAILED, CLI_WARNINGS,
                                  CLI_INVALID, CLI_USAGE,  CLI_ENVIRONMENT };
    size_t i = sizeof rising / sizeof rising[0] - 1;

    while (i > 0 && rising[i] != a && rising[i] != b)
        i--;
    return rising[i];
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), wanted = strlen(suffix);

    return length > wanted && strcmp(name + length - wanted, suffix) == 0;
}

uint32_t policy_flags(const char *name)
{
    return ends_in(name, ".yaml") || ends_in(name, ".yml") ? ADM_POLICY_YAML : 0;
}

uint32_t table_flags(const char *name)
{
    return policy_flags(name) != 0 ? ADM_TABLE_YAML : 0;
}

struct source input_source(const struct input *input)
{
    return (struct source){ .name = input->name, .text = input->text, .length = input->length };
}

/* A valid policy as JSON text: what the command itself reads of policies is written once. */
static bool as_json(struct input *text, const struct adm_policy_options *options)
{
    struct adm_bytes bytes = { text->text, text->length };
    uint64_t length = 0;
    adm_status status = adm_policy_json(bytes, options, NULL, 0, &length, NULL);

    if (status != ADM_E_BUFFER_TOO_SMALL)
        return status == ADM_OK;
    char *json = cli_allocate((size_t)length + 1);
    status = adm_policy_json(bytes, options, json, length, &length, NULL);
    free(text->text);
    text->text = json;
    text->length = (size_t)length;
    return status == ADM_OK;
}

int policy_read(const char *path, bool quiet, struct input *text, struct adm_policy **out)
{
    struct adm_policy_options options = { .size = sizeof options };
    struct adm_diags *diags = NULL;

    if (!input_read(path, INPUT_POLICY_MAX, text))
        return CLI_USAGE;
    options.file = text->name;
    options.flags = policy_flags(text->name);
    adm_status status =
        adm_policy_load((struct adm_bytes){ text->text, text->length }, &options, out, &diags);
    struct source source = input_source(text);
    if (status != ADM_OK || !quiet)
        findings_print_alone(diags, &source);
    adm_diags_free(diags);
    if (status == ADM_OK && options.flags != 0 && !as_json(text, &options)) {
        adm_policy_unref(*out);
        status = ADM_E_NOMEM;
    }
    if (status == ADM_OK)
        return CLI_OK;
    if (status != ADM_E_POLICY_INVALID)
        cli_error("cannot load %s: %s", text->name, adm_status_text(status));
    input_free(text);
    return status_exit_code(status);
}
