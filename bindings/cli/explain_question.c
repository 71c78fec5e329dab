/* SPDX-License-Identifier: Apache-2.0 */
/* The request of a question: from the command line and from a file. What the library would refuse
 * is refused here with the name of the culprit. */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

static const char *const built_in_units[] = { "input_tokens", "output_tokens", "tokens", "images" };

#define BUILT_IN_UNITS (sizeof built_in_units / sizeof built_in_units[0])

static bool add_descriptor(struct question *question, struct adm_bytes key, struct adm_bytes value)
{
    return flag_descriptor(question->command, key, value, question->descriptors,
                           &question->descriptor_count);
}

bool question_descriptor(struct question *question, const char *text)
{
    struct adm_bytes key, value;

    if (split_pair(text, &key, &value))
        return add_descriptor(question, key, value);
    usage_error(question->command, "--descriptor takes KEY=VALUE, not '%s'", text);
    return false;
}

static bool add_amount(struct question *question, struct adm_bytes unit, uint64_t value)
{
    const char *name = unit.data;

    if (value > ADM_MAX_AMOUNT) {
        usage_error(question->command, "amount of '%.*s': at most 10^12, not %llu",
                    (int)unit.length, name, (unsigned long long)value);
        return false;
    }
    for (size_t i = 0; i < question->amount_count; i++)
        if (question->units[i].length == unit.length &&
            memcmp(question->units[i].data, unit.data, (size_t)unit.length) == 0) {
            usage_error(question->command, "amount of '%.*s' is given twice", (int)unit.length,
                        name);
            return false;
        }
    if (question->amount_count == ADM_MAX_AMOUNTS) {
        usage_error(question->command, "amount of '%.*s' is one too many: a request has at most %d",
                    (int)unit.length, name, ADM_MAX_AMOUNTS);
        return false;
    }
    question->units[question->amount_count] = unit;
    question->amounts[question->amount_count++].value = value;
    return true;
}

bool question_amount(struct question *question, const char *text)
{
    struct adm_bytes unit, number;
    uint64_t value;

    if (split_pair(text, &unit, &number) && unit.length <= ADM_MAX_KEY_BYTES &&
        cli_parse_u64(number.data, (size_t)number.length, &value))
        return add_amount(question, unit, value);
    usage_error(question->command, "--amount takes UNIT=NUMBER, not '%s'", text);
    return false;
}

/* ---- units ---------------------------------------------------------------------------------- */

static void consider(const char *name, const char *known, const char **nearest, unsigned *best)
{
    unsigned distance = edit_distance(name, known);

    if (distance < *best) {
        *best = distance;
        *nearest = known;
    }
}

static bool check_unit(const struct question *question, const char *name,
                       const struct json *declared)
{
    const char *nearest = NULL;
    unsigned best = 4;

    if (strcmp(name, "cost") == 0) {
        usage_error(question->command, "the amount of 'cost' is given with --cost");
        return false;
    }
    if (strcmp(name, "requests") == 0) {
        usage_error(question->command, "the amount of 'requests' is always 1 and never given");
        return false;
    }
    for (size_t i = 0; i < BUILT_IN_UNITS; i++)
        consider(name, built_in_units[i], &nearest, &best);
    for (const struct json *unit = declared != NULL ? declared->first : NULL; unit != NULL;
         unit = unit->next)
        if (unit->kind == JSON_STRING)
            consider(name, unit->text, &nearest, &best);
    if (best == 0)
        return true;
    if (nearest != NULL)
        usage_error(question->command, "the policy knows no unit '%s'; did you mean %s?", name,
                    nearest);
    else
        usage_error(question->command, "the policy knows no unit '%s', and declares none like it",
                    name);
    return false;
}

bool question_check_units(const struct question *question, const struct json *policy)
{
    const struct json *declared = json_member(policy, "units");
    bool good = true;

    for (size_t i = 0; policy != NULL && good && i < question->amount_count; i++) {
        char *name = cli_copy(question->units[i].data, (size_t)question->units[i].length);

        good = check_unit(question, name, declared);
        free(name);
    }
    return good;
}

/* ---- a file --------------------------------------------------------------------------------- */

static bool misplaced(const struct question *question, const struct json *at, const char *what)
{
    fprintf(stderr, "%s:%u:%u: error: %s\n", question->request_text.name, at->line, at->column,
            what);
    return false;
}

static bool read_descriptors(struct question *question, const struct json *object)
{
    if (object->kind != JSON_OBJECT)
        return misplaced(question, object, "\"d\" must be an object of strings");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        if (member->kind != JSON_STRING)
            return misplaced(question, member, "a descriptor must be a string");
        if (!add_descriptor(question, (struct adm_bytes){ member->key, member->key_length },
                            (struct adm_bytes){ member->text, member->length }))
            return misplaced(question, member, "this descriptor");
    }
    return true;
}

static bool read_amounts(struct question *question, const struct json *object)
{
    uint64_t value;

    if (object->kind != JSON_OBJECT)
        return misplaced(question, object, "\"amounts\" must be an object of numbers");
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        if (!json_u64(member, &value))
            return misplaced(question, member, "an amount must be a whole number");
        if (member->key_length < 1 || member->key_length > ADM_MAX_KEY_BYTES)
            return misplaced(question, member, "a unit has 1 to 64 bytes");
        if (!add_amount(question, (struct adm_bytes){ member->key, member->key_length }, value))
            return misplaced(question, member, "this amount");
    }
    return true;
}

static bool read_cost(struct question *question, const struct json *value)
{
    if (question->cost_given) /* the command line wins */
        return true;
    if (json_u64(value, &question->cost) && question->cost >= 1 && question->cost <= ADM_MAX_AMOUNT)
        return true;
    return misplaced(question, value, "\"cost\" must be a whole number from 1 to 10^12");
}

/* What else a step of a scenario file has says nothing about the request. */
static bool read_member(struct question *question, const struct json *member)
{
    static const char *const others[] = { "d", "cost", "amounts", "t", "op", "as", "expect", NULL };
    const char *nearest = NULL;
    unsigned best = 3;
    char message[200];

    if (strcmp(member->key, "d") == 0)
        return read_descriptors(question, member);
    if (strcmp(member->key, "cost") == 0)
        return read_cost(question, member);
    if (strcmp(member->key, "amounts") == 0)
        return member->kind == JSON_NULL || read_amounts(question, member);
    if (strcmp(member->key, "op") == 0 && !json_is(member, "admit"))
        return misplaced(question, member, "only an \"op\" of \"admit\" is a request");
    for (size_t i = 0; others[i] != NULL; i++)
        consider(member->key, others[i], &nearest, &best);
    if (best == 0)
        return true;
    snprintf(message, sizeof message, "a request has no member \"%.60s\"%s%s%s", member->key,
             nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
             nearest != NULL ? "\"?" : "");
    return misplaced(question, member, message);
}

bool question_read_file(struct question *question)
{
    struct json_error error;

    if (question->request_path == NULL)
        return true;
    if (!input_read(question->request_path, INPUT_POLICY_MAX, &question->request_text))
        return false;
    struct input *text = &question->request_text;
    if (!json_parse(&question->request_document, text->text, text->length, &error)) {
        fprintf(stderr, "%s:%u:%u: error: %s\n", text->name, error.line, error.column,
                error.message);
        return false;
    }
    const struct json *root = question->request_document.root;
    const struct json *twice = json_repeated(root);
    if (root->kind != JSON_OBJECT)
        return misplaced(question, root, "a request is an object: d, cost, amounts");
    if (twice != NULL)
        return misplaced(question, twice, "this member is there twice");
    for (const struct json *member = root->first; member != NULL; member = member->next)
        if (!read_member(question, member))
            return false;
    return true;
}

void question_free(struct question *question)
{
    json_free(&question->request_document);
    input_free(&question->request_text);
}
