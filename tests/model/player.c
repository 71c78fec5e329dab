/* SPDX-License-Identifier: Apache-2.0 */
/* A player: a real gate and the model side by side, opened, fed one operation after another,
 * compared. */
#include "player_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <admit/backends.h>

#define LEASES 8192

/* ---- policies ---- */

bool player_omits(const struct player *p, int rule)
{
    return p->omissions != NULL && p->omissions->rules != NULL && p->omissions->rules[rule];
}

const struct model_policy *player_policy(struct player *p, int number)
{
    const struct model_policy *whole = p->run->policies[number];
    bool any = false;
    for (int i = 0; i < whole->rule_count; i++)
        any = any || player_omits(p, whole->rules[i].id);
    if (!any)
        return whole;
    if (p->policies[number] != NULL)
        return p->policies[number];
    struct model_policy *some = malloc(sizeof *some);
    if (some == NULL)
        abort();
    *some = *whole;
    some->rule_count = 0;
    for (int i = 0; i < whole->rule_count; i++)
        if (!player_omits(p, whole->rules[i].id))
            some->rules[some->rule_count++] = whole->rules[i];
    p->policies[number] = some;
    return some;
}

/* The policy as the library reads it; NULL and a difference when it refuses. */
struct adm_policy *player_load(struct player *p, int number)
{
    struct adm_diags *diags = NULL;
    struct adm_policy_options options = { .size = sizeof options };
    const struct model_policy *policy = player_policy(p, number);
    if (p->loaded[number] != NULL)
        return p->loaded[number];
    text_clear(&p->document);
    render_policy(&p->document, policy, p->run->layouts[number]);
    struct adm_bytes text = { p->document.bytes, p->document.length };
    adm_status status = adm_policy_load(text, &options, &p->loaded[number], &diags);
    if (status != ADM_OK) {
        struct adm_diag diag = { .size = sizeof diag };
        text_add(&p->difference, "policy %d is legal and was refused with %s", number,
                 adm_status_name(status));
        if (adm_diags_get(diags, 0, &diag) == ADM_OK)
            text_add(&p->difference, ": %s %s: %s", diag.name, diag.pointer, diag.message);
        text_add(&p->difference, "\n%.*s\n", (int)p->document.length, p->document.bytes);
    }
    adm_diags_free(diags);
    return p->loaded[number];
}

/* ---- begin and end ---- */

static bool open_memory(struct adm_backend *out)
{
    struct adm_memory_options options = { .size = sizeof options };

    options.partitions_max = 4096;
    options.leases_max = LEASES;
    options.attempts_max = 64;
    options.classes_max = 4096;
    options.threads_max = 2;
    return adm_memory_open(&options, out) == ADM_OK;
}

static bool open_backend(struct player *p, struct adm_backend *out)
{
    struct adm_plain_options options = { .size = sizeof options };
    options.partitions_max = 4096;
    options.leases_max = LEASES;
    options.attempts_max = 64;
    options.classes_max = 4096;
    if (p->run->backend == RUN_MEMORY)
        return open_memory(out);
    if (adm_plain_open(&options, out) != ADM_OK)
        return false;
    if (p->run->backend != RUN_DEFERRING)
        return true;
    struct adm_deferring_options late = { .size = sizeof late };
    struct adm_backend inner = *out;
    late.polls_max = 3;
    late.seed = p->run->seed;
    return adm_deferring_open(&late, inner, out) == ADM_OK;
}

static bool open_gate(struct player *p)
{
    struct adm_gate_options options = { .size = sizeof options };
    options.policy = player_load(p, 0);
    if (options.policy == NULL || !open_backend(p, &options.backend))
        return false;
    options.name_space = adm_str("simulator");
    options.clock = adm_fake_clock_as_clock(&p->clock);
    options.random = adm_fake_random_as_random(&p->random);
    p->clock.time = p->run->start;
    p->random.state = p->run->seed;
    if (adm_gate_new(&options, &p->gate) != ADM_OK)
        return false;
    for (int i = 0; i < GENERATE_KEYS; i++) {
        struct adm_bytes key = { model_text(generate_key(i)), model_length(generate_key(i)) };
        if (adm_gate_key(p->gate, key, &p->key_ids[i]) != ADM_OK)
            return false;
    }
    for (int i = 0; i < MODEL_DECLARED; i++)
        p->units[i] = (uint32_t)i;
    return adm_gate_unit(p->gate, adm_str("gpu_ms"), &p->units[MODEL_DECLARED]) == ADM_OK &&
           adm_gate_unit(p->gate, adm_str("watts"), &p->units[MODEL_DECLARED + 1]) == ADM_OK;
}

static void *zeroed(int count, size_t bytes)
{
    void *memory = calloc((size_t)count + 1, bytes);
    if (memory == NULL)
        abort();
    return memory;
}

#define OPERATIONS_MAX 8000

struct player *player_new(const struct run *run, struct model *model, enum model_plant plant,
                          const struct omissions *omissions, struct tally *tally)
{
    struct player *p = zeroed(1, sizeof *p);
    p->run = run;
    p->model = model;
    p->omissions = omissions;
    p->tally = tally;
    p->loaded = zeroed(OPERATIONS_MAX, sizeof *p->loaded);
    p->policies = zeroed(OPERATIONS_MAX, sizeof *p->policies);
    p->serials = zeroed(OPERATIONS_MAX, sizeof *p->serials);
    p->leases = zeroed(OPERATIONS_MAX, sizeof *p->leases);
    p->by_serial = zeroed(OPERATIONS_MAX, sizeof *p->by_serial);
    if (player_policy(p, 0)->rule_count == 0) {
        player_free(p);
        return NULL;
    }
    if (!open_gate(p))
        text_add(&p->difference, "the gate cannot be opened\n");
    else
        model_start(model, player_policy(p, 0), run->start, plant);
    return p;
}

void player_free(struct player *p)
{
    if (p == NULL)
        return;
    adm_gate_free(p->gate);
    for (int i = 0; i < p->run->policy_count; i++) {
        adm_policy_unref(p->loaded[i]);
        free(p->policies[i]);
    }
    free(p->loaded);
    free(p->policies);
    free(p->serials);
    free(p->leases);
    free(p->by_serial);
    text_free(&p->difference);
    text_free(&p->document);
    free(p);
}

const char *player_difference(const struct player *p)
{
    return p->difference.length > 0 ? p->difference.bytes : "";
}

const struct model_answer *player_answer(const struct player *p)
{
    return p->answered ? &p->answer : NULL;
}

struct adm_bytes player_bytes(int word)
{
    return (struct adm_bytes){ model_text(word), model_length(word) };
}

/* ---- comparing ---- */

bool player_differs(struct player *p, const char *what, int64_t expected, int64_t got)
{
    if (expected == got)
        return false;
    text_add(&p->difference, "  %s: the model says %" PRId64 ", the gate %" PRId64 "\n", what,
             expected, got);
    return true;
}

bool player_texts_differ(struct player *p, const char *what, int expected, const char *got)
{
    if (got != NULL && strcmp(model_text(expected), got) == 0)
        return false;
    text_add(&p->difference, "  %s: the model says \"%s\", the gate \"%s\"\n", what,
             model_text(expected), got != NULL ? got : "(none)");
    return true;
}

bool player_status_differs(struct player *p, adm_status expected, adm_status got)
{
    if (expected == got)
        return false;
    text_add(&p->difference, "  status: the model says %s, the gate %s\n",
             adm_status_name(expected), adm_status_name(got));
    return true;
}

bool player_outcome_differs(struct player *p, uint32_t expected, uint32_t got)
{
    if (expected < ADM_OUTCOME_COUNT)
        p->tally->outcomes[expected]++;
    if (expected == got)
        return false;
    text_add(&p->difference, "  outcome: the model says %s, the gate %s\n",
             adm_outcome_name(expected), adm_outcome_name(got));
    return true;
}

/* ---- playing ---- */

bool player_play(struct player *p, int number)
{
    const struct operation *o = &p->run->operations[number];
    p->answered = false;
    if (p->difference.length > 0)
        return false;
    if (p->omissions != NULL && p->omissions->operations != NULL &&
        p->omissions->operations[number])
        return true;
    p->clock.time = o->now;
    p->tally->operations[o->kind]++;
    switch (o->kind) {
    case OPERATION_ADMIT:
        return player_play_admit(p, o, number);
    case OPERATION_EXPLAIN:
        return player_play_explain(p, o);
    case OPERATION_READ:
        return player_play_read(p, o);
    case OPERATION_SETTLE:
        return player_play_settle(p, o);
    case OPERATION_RELEASE:
    case OPERATION_RENEW:
    case OPERATION_DIVERT:
        return player_play_lease(p, o);
    case OPERATION_SIGNAL:
        return player_play_signal(p, o);
    case OPERATION_PUBLISH:
    case OPERATION_ROLLBACK:
        return player_play_policy(p, o);
    case OPERATION_TABLE:
        return player_play_table(p, o);
    case OPERATION_SWEEP:
        return player_play_sweep(p, o);
    case OPERATION_KINDS:
        break;
    }
    return true;
}
