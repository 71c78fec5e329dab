/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What policies ask a backend to keep: owners (gates by namespace), families (rules) and classes
 * (a rule with one set of numbers; or one of these in a replica scope). Bookkeeping for one thread
 * at a time, in fixed arrays named by place, without pointers. Of buckets, counts and quotas a
 * registry knows nothing: it asks and tells its owner through hooks.
 *
 * A class that no set names any more keeps its record until it makes no difference: all its
 * buckets are as new, and no raise holds them down.
 */
#ifndef ADMI_REGISTRY_H
#define ADMI_REGISTRY_H

#include <stdbool.h>

#include <admit/backend.h>

#include "state/table.h"

#define ADMI_OWNERS_MAX 64u

/* Who puts class sets: the namespace of a gate. Free when it has no records. */
struct admi_registry_owner {
    struct admi_key name;
    uint64_t sequence; /* of its set in force */
    uint64_t records;  /* families and classes, those of former sets included */
};

/* What all classes of one rule share. */
struct admi_registry_family {
    struct admi_key rule;
    uint64_t hash;
    uint64_t max_partitions;
    uint64_t group;  /* hint of the class that made it */
    uint32_t owner;  /* index */
    uint32_t region; /* 0: enforced; 1: shadow */
    uint32_t kind;   /* ADM_KIND_*; 0: a free place */
    uint32_t classes;
};

/* One rule with one set of numbers; or, with a base, that class in one replica scope. */
struct admi_registry_class {
    struct admi_key name; /* base: its origin; else the scope */
    uint64_t hash;
    uint32_t family;      /* 0: a free place */
    uint32_t base;        /* 0: this is the class of the set */
    uint32_t first_scope; /* of a base: list through next_scope */
    uint32_t next_scope;
    bool in_set;       /* base: in its owner's set now */
    bool per_replica;  /* base */
    bool has_odometer; /* a base that scales with replicas has none until it stops doing so */
    uint64_t mark;     /* base: the last put that named it */
    uint64_t capacity, refill, per_ns; /* base: for one replica */
    uint64_t replicas;                 /* scope */
    struct adm_odometer odometer;
};

struct admi_registry {
    uint64_t classes_max; /* the table may have more places: see admi_registry_init() */
    uint64_t last_sequence;
    uint64_t reclaimed_ns; /* when a search for spent classes last found none; UINT64_MAX: search
                              again */
    struct admi_registry_owner owners[ADMI_OWNERS_MAX];
    struct admi_table family_table;
    uint64_t families_at;
    struct admi_table class_table;
    uint64_t classes_at;
    uint8_t hash_secret[ADMI_SECRET_BYTES];
    uint8_t key_secrets[2 * ADMI_SECRET_BYTES];
};

/* What a registry asks its owner, and tells it. */
struct admi_registry_hooks {
    void *self;
    /* Are all its buckets as new, and free to go? (Whether a raise holds them down, the registry
     * sees.) */
    bool (*class_is_as_new)(void *self, uint32_t class_place);
    /* Forget its buckets, which are as new: the record goes, or begins anew. */
    void (*class_forget)(void *self, uint32_t class_place);
    /* Forget its partitions. false: one is needed; what was forgotten stays so. */
    bool (*family_forget)(void *self, uint32_t family_place);
    /* Its grid has moved; it has the new odometer already. */
    void (*class_rescale)(void *self, uint32_t class_place, const struct adm_odometer *before);
    /* Numbers of a class of it, or max_partitions. */
    void (*family_changed)(void *self, uint32_t family_place);
    /* Optional: a new record. */
    void (*family_made)(void *self, uint32_t family_place);
    void (*class_made)(void *self, uint32_t class_place);
    /* Optional: something of the record is not what it was. */
    void (*class_changed)(void *self, uint32_t class_place);
};

/* How many families there can be at most: each has a class record, or one that is about to be made,
 * or a partition that differs from new. */
uint64_t admi_registry_families_max(uint64_t classes_max, uint64_t partitions_max);

/* An empty registry whose arrays lie at *end and behind (a distance from the struct), in memory
 * that is zero or will be. Touches nothing but the struct. The owner fills in the secrets.
 * spare     places for classes beyond classes_max. With 0, a put that needs the places of the
 *           classes it replaces takes them at once. With classes_max, these keep theirs, for an
 *           owner who has still to make the new set known: afterwards he calls
 *           admi_registry_reclaim(). */
void admi_registry_init(struct admi_registry *registry, uint64_t classes_max, uint64_t spare,
                        uint64_t families_max, uint64_t *end);

adm_status admi_registry_put(struct admi_registry *registry,
                             const struct admi_registry_hooks *hooks, struct adm_class_set *set,
                             uint64_t now_ns);
bool admi_registry_sequence_is_current(const struct admi_registry *registry, uint64_t sequence);

/* The class of a base in a replica scope, made or given these replicas if it must be.
 * Errors ADM_E_BACKEND_FULL. */
adm_status admi_registry_scope(struct admi_registry *registry,
                               const struct admi_registry_hooks *hooks, uint32_t base,
                               struct adm_bytes scope, uint64_t replicas, uint64_t now_ns,
                               uint32_t *out_class);
/* A base that scaled with replicas is used without a scope: it gets numbers, as for one. */
void admi_registry_unscoped(struct admi_registry *registry, const struct admi_registry_hooks *hooks,
                            uint32_t base, uint64_t now_ns);

/* Forget a class that no set names, or a family without classes, once it makes no difference.
 * True: forgotten. */
bool admi_registry_class_reclaim(struct admi_registry *registry,
                                 const struct admi_registry_hooks *hooks, uint32_t place,
                                 uint64_t now_ns);
bool admi_registry_family_reclaim(struct admi_registry *registry,
                                  const struct admi_registry_hooks *hooks, uint32_t place);
/* All of them. */
void admi_registry_reclaim(struct admi_registry *registry, const struct admi_registry_hooks *hooks,
                           uint64_t now_ns);

static inline struct admi_registry_family *
admi_registry_family_at(const struct admi_registry *registry, uint64_t place)
{
    return (struct admi_registry_family *)admi_array(registry, registry->families_at) + place;
}

static inline struct admi_registry_class *
admi_registry_class_at(const struct admi_registry *registry, uint64_t place)
{
    return (struct admi_registry_class *)admi_array(registry, registry->classes_at) + place;
}

#endif
