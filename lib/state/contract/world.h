/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One open backend and the time it lives in, for the contract suite and for unit tests: classes,
 * takes and what happens to leases, driven through the table of operations alone. An op that a
 * backend defers is polled for.
 */
#ifndef ADMI_CONTRACT_WORLD_H
#define ADMI_CONTRACT_WORLD_H

#include <stdbool.h>

#include <admit/testing.h>

#include "state/operation.h"

#define WORLD_CLASSES 8u
#define WORLD_TTL_NS  (60u * ADM_SECOND)

struct admi_world {
    struct adm_backend_ops ops;
    void *self;
    struct adm_backend_info info; /* as it was described at open */
    struct admi_op_home home;
    struct adm_time now;
    uint64_t max_skew_ns;
    uint64_t polls_max;
    uint32_t resends; /* of an op that answers ADM_E_BACKEND_UNAVAILABLE; 0: tell it */
    bool stuck;       /* an op never came back: nothing more can be asked */
    uint64_t random;
    adm_status status;      /* of the last op */
    struct adm_time judged; /* of the last op */
    uint64_t units;         /* of the last op */
    struct adm_class classes[WORLD_CLASSES];
    uint64_t class_count;
    const struct adm_replica_scope *scopes;
    uint64_t scope_count;
    uint64_t sequence;
    const char *owner;
};

/* sizes NULL: small ones. False: the factory failed, or its table cannot be used. */
bool admi_world_open(struct admi_world *world, const struct adm_contract_subject *subject,
                     const struct adm_contract_sizes *sizes);
void admi_world_close(struct admi_world *world);

/* Start an op and wait for it; kind and arguments are set. The status, also in world->status. */
adm_status admi_world_run(struct admi_world *world, struct adm_op *op);
void admi_world_advance(struct admi_world *world, uint64_t ns);
uint64_t admi_world_random(struct admi_world *world, uint64_t below);

/* Classes: set world->classes, then put them. Each returns the index of the class. */
uint32_t admi_world_bucket(struct admi_world *world, const char *rule, uint64_t capacity,
                           uint64_t refill, uint64_t per_ns);
uint32_t admi_world_counter(struct admi_world *world, const char *rule, uint32_t kind);
adm_status admi_world_put(struct admi_world *world);

/* limit: concurrency and quota. Quotas are per day. */
struct adm_term admi_world_term(const struct admi_world *world, uint32_t class_index,
                                const char *partition, uint64_t amount, uint64_t limit);

/* A take of these terms, with a lease if one of them needs it: the verdict; DENY as well when the
 * op failed. out_lease may be NULL. */
uint32_t admi_world_take(struct admi_world *world, struct adm_term *terms, uint32_t count,
                         struct adm_id *out_lease);
/* One term, and no more asked. */
uint32_t admi_world_take_one(struct admi_world *world, struct adm_term term,
                             struct adm_id *out_lease);
/* The whole take, filled in by the caller; mode, flags, ttl, sequence and seed are set when they
 * are 0. */
uint32_t admi_world_take_as(struct admi_world *world, struct adm_take *take);

/* Level, held or used; INT64_MIN when the op failed. */
int64_t admi_world_level(struct admi_world *world, uint32_t class_index, const char *partition);

/* ADM_OUTCOME_*; ADM_OUTCOME_COUNT when the op failed. */
uint32_t admi_world_give(struct admi_world *world, struct adm_id lease);
uint32_t admi_world_renew(struct admi_world *world, struct adm_id lease);
uint32_t admi_world_divert(struct admi_world *world, struct adm_id lease);
uint32_t admi_world_settle(struct admi_world *world, struct adm_id lease, uint32_t unit,
                           uint64_t total, bool final);
uint32_t admi_world_settle_all(struct admi_world *world, struct adm_id lease,
                               const struct adm_amount *totals, uint32_t count, bool final_all);

/* What describe says now; all zero when it fails. */
struct adm_backend_info admi_world_info(struct admi_world *world);

#endif
