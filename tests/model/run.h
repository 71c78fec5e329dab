/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator does in one run: random policies and operations, recorded so that they can
 * be done again. */
#ifndef ADMIT_MODEL_RUN_H
#define ADMIT_MODEL_RUN_H

#include <admit/admit.h>

#include "model.h"

/* ---- random numbers, repeatable from a seed ---- */

struct chance {
    uint64_t state;
};

uint64_t chance_bits(struct chance *chance);
uint64_t chance_below(struct chance *chance, uint64_t bound); /* 0 … bound-1; bound 0: any */
uint64_t chance_between(struct chance *chance, uint64_t low, uint64_t high); /* both included */
bool chance_of(struct chance *chance, unsigned permille);
#define CHANCE_PICK(chance, array)                                                                 \
    ((array)[chance_below((chance), sizeof(array) / sizeof *(array))])

/* ---- operations ---- */

enum operation_kind {
    OPERATION_ADMIT,
    OPERATION_EXPLAIN,
    OPERATION_READ,
    OPERATION_RELEASE,
    OPERATION_RENEW,
    OPERATION_SETTLE,
    OPERATION_DIVERT,
    OPERATION_SIGNAL,
    OPERATION_PUBLISH,
    OPERATION_ROLLBACK,
    OPERATION_TABLE,
    OPERATION_SWEEP,
    OPERATION_KINDS
};
extern const char *const operation_names[OPERATION_KINDS];

enum {
    LEASE_UNKNOWN = -1,
    LEASE_NONE = -2,
    LEASE_FORGED = -3
}; /* instead of an operation's number */

struct operation {
    enum operation_kind kind;
    struct adm_time now;
    int lease_of; /* number of the admit that gave the lease, or LEASE_* */
    union {
        struct model_request request; /* admit, explain; read: its descriptors */
        struct {
            int count;
            bool final_all;
            struct model_amount totals[MODEL_MAX_AMOUNTS];
        } settle;
        struct {
            int scope, replica, name;
            double value;
        } signal;
    } with;
    int word;   /* read: rule; rollback: version */
    int policy; /* publish: number in the run */
    int table;  /* table: number in the run */
    bool patch;
    uint64_t any; /* what is left to choose: result class, interned keys or not, budget */
};

enum run_backend { RUN_PLAIN, RUN_DEFERRING, RUN_MEMORY };

struct run {
    uint64_t seed;
    enum run_backend backend;
    bool wall_free; /* the wall clock may go back to windows that have passed */
    struct adm_time start;
    int policy_count, policy_room;
    struct model_policy **policies; /* the first one starts the gate */
    uint64_t *layouts;              /* of their texts */
    int table_count, table_room;
    struct model_table *tables;
    int operation_count, operation_room;
    struct operation *operations;
};

/* ---- random policies (generate_policy.c) ---- */

struct model_policy *generate_policy(struct chance *chance, int version);
/* A copy with something changed. */
struct model_policy *generate_change(struct chance *chance, const struct model_policy *policy,
                                     int version);
void generate_table(struct chance *chance, const struct model_policy *policy, int version,
                    struct model_table *out);
int generate_value(struct chance *chance, int key);

/* The alphabets. */
enum { GENERATE_KEYS = 6 };
int generate_key(int i);

/* ---- random operations (generate_run.c) ---- */

struct generator;

struct generator *generator_new(struct run *run, const struct model *model);
void generator_free(struct generator *generator);
/* The next operation, appended to the run; it may look at the model and at what the last
 * operations answered. */
struct operation *generator_next(struct generator *generator);
/* What an admit answered: leases to use, delays to wait for. */
void generator_saw(struct generator *generator, int number, const struct model_answer *answer);

struct run *run_new(uint64_t seed, enum run_backend backend);
void run_free(struct run *run);
int run_add_policy(struct run *run, struct model_policy *policy, uint64_t layout);

/* ---- texts (render.c) ---- */

struct text {
    char *bytes;
    size_t length, room;
};

void text_clear(struct text *text);
void text_free(struct text *text);
__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);
void text_word(struct text *text, int word); /* as a JSON string */

/* A document of this content; the order of its members and its white space follow layout. */
void render_policy(struct text *text, const struct model_policy *policy, uint64_t layout);
void render_table(struct text *text, const struct model_table *table, bool patch, uint64_t layout);
/* One operation as a line for people. */
void render_operation(struct text *text, const struct run *run, int number);

#endif
