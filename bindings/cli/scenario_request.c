/* SPDX-License-Identifier: Apache-2.0 */
/* What steps of a scenario say of requests and leases, as the library wants it. */
#include "scenario_request.h"

#include "cli.h"

#include <stdlib.h>
#include <string.h>

void answer_broken(struct answer *answer, const char *what)
{
    snprintf(answer->broken, sizeof answer->broken, "%s", what);
}

void answer_failed(struct answer *answer, adm_status status)
{
    if (status != ADM_OK)
        status_word(status, answer->error);
}

static struct adm_bytes view(const struct json *value)
{
    return (struct adm_bytes){ value->text, value->length };
}

struct adm_bytes string_member(const struct json *step, const char *key, struct answer *answer)
{
    const struct json *value = json_member(step, key);

    if (value != NULL && value->kind == JSON_STRING)
        return view(value);
    snprintf(answer->broken, sizeof answer->broken, "\"%s\" must be a string", key);
    return (struct adm_bytes){ "", 0 };
}

void request_parts_free(struct request_parts *parts)
{
    free(parts->descriptors);
    free(parts->amounts);
}

void read_descriptors(const struct json *step, struct request_parts *parts,
                      struct answer *answer)
{
    const struct json *object = json_member(step, "d");
    size_t n = 0;

    if (object == NULL || object->kind != JSON_OBJECT) {
        answer_broken(answer, "\"d\" must be an object of strings");
        return;
    }
    parts->descriptors = cli_allocate(object->count * sizeof *parts->descriptors);
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        if (member->kind != JSON_STRING) {
            answer_broken(answer, "\"d\" must be an object of strings");
            return;
        }
        parts->descriptors[n++] = (struct adm_descriptor){
            .key = { member->key, member->key_length },
            .value = view(member),
        };
    }
    parts->request.descriptors = parts->descriptors;
    parts->request.descriptor_count = n;
}

size_t read_amounts(struct scenario *scenario, const struct json *object, struct adm_amount **out,
                    struct answer *answer)
{
    size_t n = 0;

    *out = NULL;
    if (object == NULL || object->kind == JSON_NULL)
        return 0;
    if (object->kind != JSON_OBJECT) {
        answer_broken(answer, "amounts and totals must be an object of numbers");
        return 0;
    }
    *out = cli_allocate(object->count * sizeof **out);
    for (const struct json *member = object->first; member != NULL; member = member->next) {
        struct adm_bytes name = { member->key, member->key_length };
        struct adm_amount *amount = &(*out)[n++];
        adm_status status = adm_gate_unit(scenario->lab.gate, name, &amount->unit);

        if (status == ADM_OK && !json_u64(member, &amount->value))
            status = ADM_E_INVALID_COST;
        if (status != ADM_OK) {
            answer_failed(answer, status);
            return 0;
        }
    }
    return n;
}

void read_request(struct scenario *scenario, const struct json *step, struct request_parts *parts,
                  struct answer *answer)
{
    const struct json *cost = json_member(step, "cost"), *attempt = json_member(step, "attempt");

    *parts = (struct request_parts){ .request = { .size = sizeof parts->request } };
    read_descriptors(step, parts, answer);
    if (cost == NULL)
        answer_broken(answer, "an admit needs a \"cost\"");
    if (answer->broken[0] != 0)
        return;
    if (!json_u64(cost, &parts->request.cost))
        answer_failed(answer, ADM_E_INVALID_COST);
    if (answer->error[0] != 0)
        return;
    parts->request.amount_count =
        read_amounts(scenario, json_member(step, "amounts"), &parts->amounts, answer);
    parts->request.amounts = parts->amounts;
    if (attempt != NULL && attempt->kind == JSON_STRING)
        parts->request.attempt = view(attempt);
    else if (attempt != NULL && attempt->kind != JSON_NULL)
        answer_broken(answer, "\"attempt\" must be a string");
}

/* ---- leases by name ------------------------------------------------------------------------- */

static struct lease_name *named(struct scenario *scenario, const struct json *name)
{
    for (size_t i = 0; i < scenario->lease_count; i++) {
        const struct json *known = scenario->leases[i].name;

        if (known->length == name->length && memcmp(known->text, name->text, name->length) == 0)
            return &scenario->leases[i];
    }
    return NULL;
}

void lease_remember(struct scenario *scenario, const struct json *name, struct adm_id lease)
{
    struct lease_name *slot = named(scenario, name);

    if (slot == NULL) {
        scenario->leases = cli_grow(scenario->leases, &scenario->lease_room, scenario->lease_count,
                                    sizeof *scenario->leases);
        slot = &scenario->leases[scenario->lease_count++];
        slot->name = name;
    }
    slot->lease = lease;
}

struct adm_id lease_of(struct scenario *scenario, const struct json *step, struct answer *answer)
{
    const struct json *of = json_member(step, "of");
    struct lease_name *slot;

    if (of == NULL || of->kind != JSON_STRING) {
        answer_broken(answer, "\"of\" must name a lease");
        return (struct adm_id){ 0, 0 };
    }
    slot = named(scenario, of);
    return slot != NULL ? slot->lease : (struct adm_id){ 0, 0 };
}
