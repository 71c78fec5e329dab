/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations of a run, chosen with an eye on the model, so that boundaries are hit and
 * state is met again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"

const char *const operation_names[OPERATION_KINDS] = { "admit",   "explain",  "read",   "release",
                                                       "renew",   "settle",   "divert", "signal",
                                                       "publish", "rollback", "table",  "sweep" };

struct generator *generator_new(struct run *run, const struct model *model)
{
    struct generator *g = calloc(1, sizeof *g);
    if (g == NULL)
        abort();
    g->chance.state = run->seed ^ UINT64_C(0x5851f42d4c957f2d);
    g->run = run;
    g->model = model;
    g->now = run->start;
    g->versions = 1;
    return g;
}

void generator_free(struct generator *g)
{
    free(g);
}

static int version(struct generator *g)
{
    char text[16];
    int n = g->versions++;
    size_t length = 0;
    text[length++] = 'v';
    for (int digit = 1000; digit > 0; digit /= 10)
        text[length++] = (char)('0' + n / digit % 10);
    return model_word(text, length);
}

/* ---- requests ---- */

static uint64_t amount_value(struct generator *g)
{
    struct chance *c = &g->chance;
    static const uint64_t some[] = { 5,
                                     7,
                                     8,
                                     9,
                                     10,
                                     11,
                                     12,
                                     16,
                                     20,
                                     64,
                                     65,
                                     100,
                                     101,
                                     1000,
                                     1000000000,
                                     ADM_MAX_AMOUNT - 1,
                                     ADM_MAX_AMOUNT };
    if (chance_of(c, 780))
        return chance_between(c, 1, 4);
    if (chance_of(c, 100))
        return chance_between(c, 1, ADM_MAX_AMOUNT);
    return CHANCE_PICK(c, some);
}

static void descriptors(struct generator *g, struct model_request *r)
{
    unsigned often = chance_of(&g->chance, 800) ? 985 : 700;
    int first = (int)chance_below(&g->chance, GENERATE_KEYS);
    r->descriptor_count = 0;
    for (int i = 0; i < GENERATE_KEYS; i++) {
        int key = (first + i) % GENERATE_KEYS; /* any order */
        if (!chance_of(&g->chance, often))
            continue;
        r->descriptors[r->descriptor_count].key = generate_key(key);
        r->descriptors[r->descriptor_count++].value = generate_value(&g->chance, key);
    }
    if (chance_of(&g->chance, 50)) { /* bytes and keys that no policy names */
        r->descriptors[r->descriptor_count].key = model_word("raw\0key", 7);
        r->descriptors[r->descriptor_count++].value = model_word("\xff\x00*", 3);
    }
}

static void amounts(struct generator *g, struct model_request *r)
{
    static const unsigned often[] = { 300, 900, 1000, 1000, 1000 };
    unsigned permille = CHANCE_PICK(&g->chance, often);
    r->amount_count = 0;
    for (int unit = MODEL_INPUT; unit < MODEL_UNITS; unit++) {
        if (!chance_of(&g->chance, unit == MODEL_TOKENS ? permille / 2 : permille))
            continue;
        r->amounts[r->amount_count].unit = unit;
        r->amounts[r->amount_count++].value = chance_of(&g->chance, 150) ? 0 : amount_value(g);
    }
}

/* Something that must be refused before any state is touched. */
static void spoil(struct generator *g, struct model_request *r)
{
    struct chance *c = &g->chance;
    static const char many[300] = { 0 };
    int last = r->descriptor_count - 1;
    static const uint64_t costs[] = { 0, ADM_MAX_AMOUNT + 1, UINT64_MAX };
    switch (chance_below(c, 10)) {
    case 0:
        r->cost = CHANCE_PICK(c, costs);
        break;
    case 1:
        r->amounts[r->amount_count++] =
            (struct model_amount){ .unit = MODEL_IMAGES, .value = ADM_MAX_AMOUNT + 1 };
        break;
    case 2:
        r->amounts[0] = r->amounts[1] = (struct model_amount){ .unit = MODEL_INPUT, .value = 1 };
        r->amount_count = 2;
        break;
    case 3:
        r->amounts[r->amount_count++] =
            (struct model_amount){ .unit = (int)chance_below(c, 2), .value = 1 };
        break;
    case 4:
        r->descriptor_count = 17;
        for (int i = 0; i < 17; i++)
            r->descriptors[i] =
                (struct model_descriptor){ model_word(&"abcdefghijklmnopqrstu"[i], 1),
                                           generate_value(c, 0) };
        break;
    case 5:
        r->descriptors[last + 1] =
            (struct model_descriptor){ last >= 0 ? r->descriptors[0].key : model_word("", 0),
                                       generate_value(c, 0) };
        r->descriptor_count++;
        break;
    case 6:
        r->descriptors[last + 1] =
            (struct model_descriptor){ model_word(many, chance_of(c, 500) ? 0 : 65),
                                       generate_value(c, 0) };
        r->descriptor_count++;
        break;
    case 7:
        r->descriptors[last + 1] =
            (struct model_descriptor){ model_word_of("other"),
                                       model_word(many, chance_of(c, 500) ? 0 : 257) };
        r->descriptor_count++;
        break;
    default:
        r->attempt = model_word(many, chance_of(c, 500) ? 0 : 65);
        break;
    }
}

static int attempt_word(int i)
{
    return model_word(&"12345678"[i], 1);
}

static void request(struct generator *g, struct model_request *r, bool explain)
{
    struct chance *c = &g->chance;
    r->cost = amount_value(g);
    descriptors(g, r);
    amounts(g, r);
    if (!explain && chance_of(c, 120)) {
        int i = (int)chance_below(c, 8);
        if (chance_of(c, 850) && g->known[i].cost != 0)
            *r = g->known[i];
        r->attempt = attempt_word(i);
        if (chance_of(c, 30))
            r->cost = r->cost % 5 + 1;
        g->known[i] = *r;
    }
    if (chance_of(c, 15))
        spoil(g, r);
}

/* ---- other operations ---- */

static int some_lease(struct generator *g)
{
    struct chance *c = &g->chance;
    uint64_t kept =
        (uint64_t)(g->recent_count < GENERATOR_RECENT ? g->recent_count : GENERATOR_RECENT);
    if (kept == 0 || chance_of(c, 15))
        return LEASE_UNKNOWN - (int)chance_below(c, 3);
    if (chance_of(c, 600)) /* one of the last four */
        return g
            ->recent[(uint64_t)(g->recent_count - 1 - (int)chance_below(c, kept < 4 ? kept : 4)) %
                     GENERATOR_RECENT];
    return g->recent[chance_below(c, kept)];
}

static void settle(struct generator *g, struct operation *o)
{
    struct chance *c = &g->chance;
    o->with.settle.final_all = chance_of(c, 150);
    for (int unit = 0; unit < MODEL_UNITS; unit++) {
        if (unit == MODEL_REQUESTS || !chance_of(c, 350))
            continue;
        struct model_amount *a = &o->with.settle.totals[o->with.settle.count++];
        a->unit = unit;
        a->value = chance_of(c, 100)   ? 0
                   : chance_of(c, 900) ? chance_between(c, 1, 12)
                                       : amount_value(g);
        a->final = chance_of(c, 250);
    }
    if (chance_of(c, 10)) {
        o->with.settle.totals[0] =
            (struct model_amount){ .unit = MODEL_COST, .value = ADM_MAX_AMOUNT + 1 };
        o->with.settle.count += o->with.settle.count == 0;
    }
}

static void signal_value(struct generator *g, struct operation *o)
{
    struct chance *c = &g->chance;
    static const double healths[] = { 1, 1, 1, 1, 0, 0.5, 1.0000000001, NAN };
    static const double loads[] = { 0,     0.5,  0.9, 1.8, 0.333333333, 0.3333333335,
                                    0.85,  0.95, 3,   -1,  1e-9,        4e-10,
                                    5e-10, 1e12, 1.0, NAN, INFINITY,    0.900000000000000001 };
    static const char *const scopes[] = { "m1", "m2", "m10", "x", "y", "nowhere" };
    static const char *const replicas[] = { "1", "2", "3", "10.0.0.1:8000" };
    static const char *const names[] = { "healthy", "healthy", "load", "load", "kv", "other" };
    const char *name = CHANCE_PICK(c, names);
    o->with.signal.name = model_word_of(name);
    o->with.signal.scope =
        model_word_of(scopes[chance_of(c, 700) ? chance_below(c, 2) : chance_below(c, 6)]);
    o->with.signal.replica = model_word_of(CHANCE_PICK(c, replicas));
    o->with.signal.value = name[0] == 'h' ? CHANCE_PICK(c, healths) : CHANCE_PICK(c, loads);
}

static void publish(struct generator *g, struct operation *o)
{
    struct chance *c = &g->chance;
    struct run *run = g->run;
    int recent = run->policy_count < 4 ? run->policy_count : 4;
    const struct model_policy *base =
        run->policies[run->policy_count - 1 - (int)chance_below(c, (uint64_t)recent)];
    uint64_t x = chance_below(c, 100);
    struct model_policy *policy;
    if (x < 10) { /* the same again, in another layout */
        policy = malloc(sizeof *policy);
        if (policy == NULL)
            abort();
        *policy = *base;
    } else if (x < 18) { /* an old name for something else, perhaps */
        policy = generate_change(
            c, base, run->policies[chance_below(c, (uint64_t)run->policy_count)]->version);
    } else if (x < 24) {
        policy = generate_policy(c, version(g));
    } else if (x < 36) { /* back to the content of an earlier one, under a new name */
        policy = malloc(sizeof *policy);
        if (policy == NULL)
            abort();
        *policy = *run->policies[chance_below(c, (uint64_t)run->policy_count)];
        policy->version = version(g);
    } else {
        policy = generate_change(c, base, version(g));
    }
    o->policy = run_add_policy(run, policy, chance_bits(c));
}

static void table(struct generator *g, struct operation *o)
{
    struct chance *c = &g->chance;
    struct run *run = g->run;
    struct model_table *t = MODEL_APPEND(run->tables, run->table_count, run->table_room);
    generate_table(c, g->model->policy, version(g), t);
    o->table = run->table_count - 1;
    o->patch = chance_of(c, 400);
    for (int i = 0; o->patch && i < t->count; i++)
        if (chance_of(c, 250)) {
            memset(&t->entries[i].numbers, 0, sizeof t->entries[i].numbers);
            t->entries[i].off = false;
            t->entries[i].removed = true;
        }
}

static enum operation_kind some_kind(struct chance *c)
{
    static const unsigned permille[OPERATION_KINDS] = {
        [OPERATION_ADMIT] = 540,  [OPERATION_EXPLAIN] = 20, [OPERATION_READ] = 60,
        [OPERATION_RELEASE] = 90, [OPERATION_RENEW] = 40,   [OPERATION_SETTLE] = 100,
        [OPERATION_DIVERT] = 30,  [OPERATION_SIGNAL] = 80,  [OPERATION_PUBLISH] = 12,
        [OPERATION_ROLLBACK] = 5, [OPERATION_TABLE] = 8,    [OPERATION_SWEEP] = 15
    };
    uint64_t x = chance_below(c, 1000);
    int kind = 0;
    while (x >= permille[kind])
        x -= permille[kind++];
    return (enum operation_kind)kind;
}

/* Where the wall clock goes back to windows that have passed, nothing happens that may forget
 * their words. */
static enum operation_kind some_kind_of(const struct generator *g, struct chance *c)
{
    enum operation_kind kind = some_kind(c);
    bool forgets =
        kind == OPERATION_PUBLISH || kind == OPERATION_ROLLBACK || kind == OPERATION_SWEEP;
    return forgets && g->run->wall_free ? OPERATION_ADMIT : kind;
}

static void fill(struct generator *g, struct operation *o)
{
    struct chance *c = &g->chance;
    const struct model_policy *policy = g->model->policy;
    o->lease_of = LEASE_NONE;
    switch (o->kind) {
    case OPERATION_ADMIT:
    case OPERATION_EXPLAIN:
        request(g, &o->with.request, o->kind == OPERATION_EXPLAIN);
        break;
    case OPERATION_READ:
        descriptors(g, &o->with.request);
        o->word = chance_of(c, 20)
                      ? model_word_of("nobody")
                      : policy->rules[chance_below(c, (uint64_t)policy->rule_count)].id;
        break;
    case OPERATION_SETTLE:
        settle(g, o);
        o->lease_of = some_lease(g);
        break;
    case OPERATION_RELEASE:
    case OPERATION_RENEW:
    case OPERATION_DIVERT:
        o->lease_of = some_lease(g);
        break;
    case OPERATION_SIGNAL:
        signal_value(g, o);
        break;
    case OPERATION_PUBLISH:
        publish(g, o);
        break;
    case OPERATION_ROLLBACK:
        o->word = chance_of(c, 50)
                      ? model_word_of("never")
                      : g->run->policies[chance_below(c, (uint64_t)g->run->policy_count)]->version;
        break;
    case OPERATION_TABLE:
        table(g, o);
        break;
    case OPERATION_SWEEP:
    case OPERATION_KINDS:
        break;
    }
}

struct operation *generator_next(struct generator *g)
{
    struct operation *o =
        MODEL_APPEND(g->run->operations, g->run->operation_count, g->run->operation_room);
    memset(o, 0, sizeof *o);
    generator_step(g);
    o->now = g->now;
    o->kind = some_kind_of(g, &g->chance);
    o->any = chance_bits(&g->chance);
    fill(g, o);
    return o;
}

void generator_saw(struct generator *g, int number, const struct model_answer *answer)
{
    if (answer->retry_ms > 0) {
        g->delay_ms = answer->retry_ms;
        g->asked = g->now;
    }
    if (answer->lease == 0 || answer->repeated)
        return;
    g->recent[g->recent_count % GENERATOR_RECENT] = number;
    g->leases[g->recent_count++ % GENERATOR_RECENT] = answer->lease;
}

/* ---- runs ---- */

int run_add_policy(struct run *run, struct model_policy *policy, uint64_t layout)
{
    int room = run->policy_room;
    run->policies = model_more(run->policies, run->policy_count, &room, sizeof *run->policies);
    run->layouts =
        model_more(run->layouts, run->policy_count, &run->policy_room, sizeof *run->layouts);
    run->policies[run->policy_count] = policy;
    run->layouts[run->policy_count] = layout;
    return run->policy_count++;
}

struct run *run_new(uint64_t seed, enum run_backend backend)
{
    static const uint64_t monos[] = { 0,
                                      1,
                                      MODEL_SECOND,
                                      UINT64_C(9007199254740991),
                                      UINT64_C(9007199254740993),
                                      UINT64_C(1) << 60 };
    static const uint64_t walls[] = {
        0, 951782400, 1709164800, 1772323200, 1767225600, 4107542400
    }; /* ends of February, of years, 2100 */
    struct chance chance = { seed };
    struct run *run = calloc(1, sizeof *run);
    if (run == NULL)
        abort();
    run->seed = seed;
    run->backend = backend;
    run->wall_free = chance_of(&chance, 250);
    run->start.mono_ns = chance_of(&chance, 500) ? CHANCE_PICK(&chance, monos)
                                                 : chance_below(&chance, UINT64_C(1) << 60);
    run->start.wall_ns = chance_of(&chance, 500) ? CHANCE_PICK(&chance, walls)
                                                 : chance_below(&chance, UINT64_C(4200000000));
    run->start.wall_ns *= MODEL_SECOND;
    if (run->start.wall_ns > MODEL_SECOND)
        run->start.wall_ns -= chance_below(&chance, MODEL_SECOND);
    struct model_policy *first = generate_policy(&chance, model_word_of("v0000"));
    for (int i = 0; i < first->rule_count && run->wall_free; i++)
        if (first->rules[i].type == MODEL_QUOTA)
            first->rules[i].max_partitions = 0; /* a search for room forgets words, too */
    run_add_policy(run, first, chance_bits(&chance));
    return run;
}

void run_free(struct run *run)
{
    if (run == NULL)
        return;
    for (int i = 0; i < run->policy_count; i++)
        free(run->policies[i]);
    free(run->policies);
    free(run->layouts);
    free(run->tables);
    free(run->operations);
    free(run);
}
