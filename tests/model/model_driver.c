/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model behind text lines: reads policies and operations on standard input, prints one answer
 * per operation. Words are separated by spaces, "-" stands for nothing, times are in nanoseconds.
 *
 *   policy VERSION ALLOW SKEW SHARD    begins a policy, its rules follow; SKEW 0: not given
 *   rule ID TYPE UNIT SHADOW COMPLETION EXACT PER_REPLICA SCOPE WINDOW SIGNAL MAX COUNT PART...
 *   override ON                        ON 0: off
 *   table VERSION RULE BY              begins a limit table, its entries follow
 *   entry VALUE ON                     ON 0: off, 2: removed by a patch
 *   match KEY VALUE... | not | unless KEY VALUE... | number NAME VALUE...
 *                                      of the rule, override or entry that came last
 *   start | publish | put PATCH | rollback VERSION      and these, each with MONO WALL first:
 *   admit COST ATTEMPT COUNT KEY VALUE... COUNT UNIT VALUE...
 *   release L | renew L | divert L | settle L FINAL COUNT UNIT VALUE FINAL...
 *   signal SCOPE REPLICA NAME VALUE | read RULE COUNT KEY VALUE...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#include "model.h"

/* The model keeps policies by address: they go when a new run has started, or at the end. */
struct known {
    struct known *next;
    struct model_policy policy;
};
static struct known *policies;      /* the youngest first */
static struct model_policy *policy; /* the one being read, or read last */
static struct model_table table;
static struct model_match *match;
static struct model_numbers *numbers;

static char *next(void)
{
    char *word = strtok(NULL, " \n");
    if (word == NULL) {
        fprintf(stderr, "model_driver: a line is too short\n");
        exit(2);
    }
    return word;
}

static uint64_t next_number(void)
{
    return strtoull(next(), NULL, 10);
}

static int next_int(void)
{
    return (int)next_number();
}

static int next_word(void)
{
    const char *word = next();
    return strcmp(word, "-") == 0 ? 0 : model_word_of(word);
}

static void read_policy(void)
{
    struct known *entry = calloc(1, sizeof *entry);
    if (entry == NULL)
        abort();
    entry->next = policies;
    policies = entry;
    policy = &entry->policy;
    policy->version = next_word();
    policy->unmatched_allow = next_int() != 0;
    policy->skew_ns = next_number();
    policy->skew_given = policy->skew_ns != 0;
    if (!policy->skew_given)
        policy->skew_ns = 10000000000; /* the default */
    policy->shard = next_word();
}

static void forget_from(struct known **from)
{
    while (*from != NULL) {
        struct known *gone = *from;
        *from = gone->next;
        free(gone);
    }
}

static void read_rule(void)
{
    struct model_rule *rule = &policy->rules[policy->rule_count++];
    rule->id = next_word();
    rule->type = (enum model_type)next_int();
    rule->unit = next_int();
    rule->shadow = next_int() != 0;
    rule->completion = next_int() != 0;
    rule->exact = next_int() != 0;
    rule->per_replica = next_int() != 0;
    rule->scope = next_word();
    rule->window = (uint32_t)next_number();
    rule->signal = next_word();
    rule->max_partitions = next_number();
    rule->part_count = next_int();
    for (int i = 0; i < rule->part_count; i++)
        rule->parts[i] = next_word();
    match = &rule->match;
    numbers = &rule->numbers;
}

static void read_override(void)
{
    struct model_rule *rule = &policy->rules[policy->rule_count - 1];
    struct model_override *override = &rule->overrides[rule->override_count++];
    override->off = next_int() == 0;
    match = &override->when;
    numbers = &override->numbers;
}

static void read_table(void)
{
    table.count = 0;
    table.version = next_word();
    table.rule = next_word();
    table.by = next_word();
}

static void read_entry(void)
{
    struct model_table_entry *entry = &table.entries[table.count++];
    memset(entry, 0, sizeof *entry);
    entry->value = next_word();
    int on = next_int();
    entry->off = on == 0;
    entry->removed = on == 2;
    numbers = &entry->numbers;
}

static void read_match(struct model_entry *entry)
{
    entry->key = next_word();
    for (char *word = strtok(NULL, " \n"); word != NULL; word = strtok(NULL, " \n"))
        entry->values[entry->count++] = model_word_of(word);
}

static void read_number(void)
{
    const char *name = next();
    uint64_t value = next_number();
    static const struct {
        const char *name;
        unsigned given;
    } known[] = { { "capacity", MODEL_GIVEN_CAPACITY }, { "refill", MODEL_GIVEN_REFILL },
                  { "per", MODEL_GIVEN_PER },           { "limit", MODEL_GIVEN_LIMIT },
                  { "lease_ttl", MODEL_GIVEN_TTL },     { "fraction", MODEL_GIVEN_FRACTION },
                  { "max_age", MODEL_GIVEN_AGE },       { "gt", MODEL_GIVEN_THRESHOLD },
                  { "gte", MODEL_GIVEN_THRESHOLD },     { "lt", MODEL_GIVEN_THRESHOLD },
                  { "lte", MODEL_GIVEN_THRESHOLD } };
    uint64_t *places[] = { &numbers->capacity,        &numbers->refill,
                           &numbers->per_ns,          &numbers->limit,
                           &numbers->ttl_ns,          &numbers->fraction_e18,
                           &numbers->age_ns,          &numbers->threshold_whole,
                           &numbers->threshold_whole, &numbers->threshold_whole,
                           &numbers->threshold_whole };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0)
            continue;
        *places[i] = value;
        numbers->given |= known[i].given;
        if (i >= 7) {
            numbers->comparison = (enum model_comparison)(MODEL_GT + i - 7);
            numbers->threshold_e18 = next_number();
        }
    }
}

static void read_descriptors(struct model_request *request)
{
    request->descriptor_count = next_int();
    for (int i = 0; i < request->descriptor_count; i++) {
        request->descriptors[i].key = next_word();
        request->descriptors[i].value = next_word();
    }
}

static void print_admit(const struct model_answer *a)
{
    if (a->status != ADM_OK) {
        printf("error %d\n", a->status);
        return;
    }
    printf("%s %" PRIu64 " lease %d version %s table %s rules", adm_reason_name(a->reason),
           a->retry_ms, a->lease, model_text(a->version),
           a->table_version != 0 ? model_text(a->table_version) : "-");
    for (int i = 0; i < a->rule_count; i++)
        printf(" %s", model_text(a->rules[i]));
    printf(" shadow");
    for (int i = 0; i < a->shadow_count; i++)
        printf(" %s", model_text(a->shadow[i]));
    printf("\n");
}

static void do_admit(struct model *model, struct adm_time now)
{
    struct model_request request = { 0 };
    struct model_answer answer;
    request.cost = next_number();
    request.attempt = next_word();
    read_descriptors(&request);
    request.amount_count = next_int();
    for (int i = 0; i < request.amount_count; i++) {
        request.amounts[i].unit = next_int();
        request.amounts[i].value = next_number();
    }
    model_admit(model, now, &request, &answer);
    print_admit(&answer);
}

static void do_settle(struct model *model, struct adm_time now)
{
    struct model_amount totals[MODEL_MAX_AMOUNTS] = { { 0 } };
    uint32_t outcome = ADM_OUTCOME_COUNT;
    int lease = next_int();
    bool final_all = next_int() != 0;
    int count = next_int();
    for (int i = 0; i < count; i++) {
        totals[i].unit = next_int();
        totals[i].value = next_number();
        totals[i].final = next_int() != 0;
    }
    if (model_settle(model, now, lease, totals, count, final_all, &outcome) != ADM_OK)
        outcome = ADM_OUTCOME_COUNT;
    printf("%s\n", adm_outcome_name(outcome));
}

static void do_read(struct model *model, struct adm_time now)
{
    struct model_request request = { 0 };
    int64_t level = 0;
    int rule = next_word();
    read_descriptors(&request);
    adm_status status =
        model_read(model, now, rule, request.descriptors, request.descriptor_count, &level);
    if (status == ADM_OK)
        printf("level %" PRId64 "\n", level);
    else
        printf("error %d\n", status);
}

/* A plain decimal, whatever the locale says of its point: exact digits over an exact power of ten
 * are rounded once, as strtod would. */
static double next_decimal(void)
{
    const char *text = next();
    double scale = *text == '-' ? -1 : 1;
    uint64_t digits = 0;
    bool point = false;

    for (text += *text == '-'; *text == '.' || (*text >= '0' && *text <= '9'); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits = digits * 10 + (uint64_t)(*text - '0');
        scale *= point ? 10 : 1;
    }
    return *text == '\0' ? (double)digits / scale : NAN;
}

static void do_signal(struct model *model, struct adm_time now)
{
    int scope = next_word();
    int replica = next_word();
    int name = next_word();
    model_signal(model, now, scope, replica, name, next_decimal());
    printf("done\n");
}

static bool operate(struct model *model, const char *name)
{
    struct adm_time now;
    now.mono_ns = next_number();
    now.wall_ns = next_number();
    if (strcmp(name, "start") == 0) {
        model_start(model, policy, now, PLANT_NONE);
        forget_from(&policies->next);
        printf("done\n");
    } else if (strcmp(name, "publish") == 0) {
        printf("status %d\n", model_publish(model, now, policy));
    } else if (strcmp(name, "put") == 0) {
        printf("status %d\n", model_put_table(model, now, &table, next_int() != 0));
    } else if (strcmp(name, "rollback") == 0) {
        printf("status %d\n", model_rollback(model, now, next_word()));
    } else if (strcmp(name, "admit") == 0) {
        do_admit(model, now);
    } else if (strcmp(name, "release") == 0) {
        printf("%s\n", adm_outcome_name(model_release(model, now, next_int())));
    } else if (strcmp(name, "renew") == 0) {
        printf("%s\n", adm_outcome_name(model_renew(model, now, next_int())));
    } else if (strcmp(name, "divert") == 0) {
        printf("%s\n", adm_outcome_name(model_divert(model, now, next_int())));
    } else if (strcmp(name, "settle") == 0) {
        do_settle(model, now);
    } else if (strcmp(name, "signal") == 0) {
        do_signal(model, now);
    } else if (strcmp(name, "read") == 0) {
        do_read(model, now);
    } else {
        return false;
    }
    return true;
}

static bool describe(const char *name)
{
    if (strcmp(name, "policy") == 0)
        read_policy();
    else if (strcmp(name, "rule") == 0)
        read_rule();
    else if (strcmp(name, "override") == 0)
        read_override();
    else if (strcmp(name, "match") == 0)
        read_match(&match->entries[match->count++]);
    else if (strcmp(name, "not") == 0)
        match->has_not = true;
    else if (strcmp(name, "unless") == 0)
        read_match(&match->negated[match->not_count++]);
    else if (strcmp(name, "number") == 0)
        read_number();
    else if (strcmp(name, "entry") == 0)
        read_entry();
    else if (strcmp(name, "table") == 0)
        read_table();
    else
        return false;
    return true;
}

int main(void)
{
    static char line[65536];
    struct model *model = model_new();
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *name = strtok(line, " \n");
        if (name == NULL) {
            fflush(stdout);
            continue; /* an empty line: the reader waits for what was asked so far */
        }
        if (!describe(name) && !operate(model, name)) {
            fprintf(stderr, "model_driver: unknown line %s\n", name);
            return 2;
        }
    }
    model_free(model);
    forget_from(&policies);
    return 0;
}
