/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain backend's records and the functions between its files. Everything here happens under
 * its one mutex, at plain->now_ns, after whatever was due by then has expired.
 *
 *      plain.c            open, close, describe, one op at a time
 *      plain_class.c      owners, families (rules), classes and their replica scopes
 *      plain_partition.c  buckets, counts and quotas: find, make, forget, whether there is room
 *      plain_lease.c      leases and attempts as records: make, expire, end
 *      plain_take.c       take
 *      plain_settle.c     give, renew, settle, divert
 *      plain_sweep.c      sweep
 */
#ifndef ADMI_PLAIN_H
#define ADMI_PLAIN_H

#include <pthread.h>
#include <stdbool.h>

#include <admit/backends.h>

#include "base/fork_guard.h"
#include "state/odometer.h"
#include "state/table.h"

#define PLAIN_OWNERS_MAX 64u
#define PLAIN_METERS_MAX 18u

enum plain_region_name { PLAIN_ENFORCED = 0, PLAIN_SHADOW = 1, PLAIN_REGIONS = 2 };

/* Who puts class sets: the namespace of a gate. Free when it has no records. */
struct plain_owner {
    struct admi_key name;
    uint64_t sequence; /* of its set in force */
    uint64_t records;  /* families and classes, those of former sets included */
};

/* A partition's scan found no room, and nothing that could have made room has happened since: no
 * need to scan again before these times. */
struct plain_no_room {
    bool known;
    bool
        exact; /* family: at until_mono_ns there is room, unless something else is charged before */
    uint64_t until_mono_ns;
    uint64_t until_wall_ns;
};

/* What all classes of one rule share. */
struct plain_family {
    struct admi_key rule;
    uint64_t hash;
    uint32_t owner; /* index */
    uint32_t region;
    uint32_t kind;   /* ADM_KIND_* */
    uint32_t window; /* quota: ADM_WINDOW_* of the last term */
    uint32_t classes;
    uint32_t partitions; /* records: the live ones, and some that nobody has looked at since they
                            became as new */
    uint32_t first_partition; /* list through family_next */
    uint32_t first_room;      /* no_room.known: the bucket that no_room.until_mono_ns is about */
    uint64_t max_partitions;
    struct plain_no_room no_room;
};

/* One rule with one set of numbers; or, with a base, that class in one replica scope. */
struct plain_class {
    struct admi_key name; /* base: its origin; else the scope */
    uint64_t hash;
    uint32_t family;
    uint32_t base;        /* 0: this is the class of the set */
    uint32_t first_scope; /* of a base: list through next_scope */
    uint32_t next_scope;
    uint32_t partitions;
    uint32_t first_partition; /* list through class_next */
    bool in_set;              /* base: in its owner's set now */
    bool per_replica;         /* base */
    bool has_odometer; /* a base that scales with replicas has none until it stops doing so */
    uint64_t mark;     /* base: the last put that named it */
    uint64_t capacity, refill, per_ns; /* base: for one replica */
    uint64_t replicas;                 /* scope */
    struct adm_odometer odometer;
};

/* One bucket, count of held units, or quota. Absent is the same as new. */
struct plain_partition {
    struct admi_key key;
    uint64_t hash;
    uint32_t family;
    uint32_t class_place; /* bucket; else 0 */
    uint32_t family_previous, family_next;
    uint32_t class_previous, class_next;
    uint32_t pins; /* open lease items, and the take that is being judged: never forgotten while
                      there are any */
    uint32_t reserved0;
    int64_t empty;   /* bucket: the word */
    uint64_t units;  /* held, or used in the window */
    uint64_t window; /* quota: index of the window that units belong to, and that window's bounds */
    uint64_t window_begin_ns, window_end_ns;
};

enum {
    PLAIN_ITEM_COMPLETION = 1,
    PLAIN_ITEM_EXACT = 2,
    PLAIN_ITEM_CHARGED = 4 /* completion: done */
};

/* What a lease holds, or may still settle, in one partition (which it pins). */
struct plain_item {
    uint32_t partition;
    uint32_t unit;
    uint32_t flags;
    uint32_t reserved0;
    uint64_t amount; /* charged, held, or to be charged */
    uint64_t window; /* quota: in which it was charged */
};

enum plain_lease_state { PLAIN_LIVE = 1, PLAIN_LATE = 2, PLAIN_CLOSED = 3 };

struct plain_lease {
    struct adm_id id;
    uint64_t expires_ns, ttl_ns;
    uint32_t state;
    bool diverted, final;
    uint32_t attempt;                      /* that remembers it; 0: none */
    uint32_t closed_previous, closed_next; /* of the closed ones, oldest first */
    uint32_t item_count, meter_count;
    struct plain_item items[ADM_MAX_TERMS];
    struct adm_meter meters[PLAIN_METERS_MAX];
};

#define PLAIN_METER_FINAL 2u /* beside ADM_METER_F_DERIVED */

struct plain_attempt {
    struct admi_key name;
    uint64_t hash;
    uint8_t digest[16];
    uint64_t until_ns; /* at least */
    struct adm_id lease_id;
    uint32_t lease; /* its record, while it has one */
    uint32_t memo_length;
    uint8_t memo[ADM_MEMO_BYTES];
};

/* Enforced and shadow state never meet. */
struct plain_region {
    struct admi_table partition_table;
    struct plain_partition *partitions;
    struct admi_table lease_table;
    struct plain_lease *leases;
    struct admi_heap lease_heap; /* live: the end of the lease; after it: the end of the record */
    uint32_t closed_first, closed_last;
    struct plain_no_room no_room;
};

struct plain {
    struct admi_fork_guard fork_guard;
    pthread_mutex_t mutex;
    const struct adm_allocator *allocator;
    struct adm_allocator own_allocator;
    uint64_t now_ns;      /* largest mono time seen */
    uint64_t wall_ns;     /* of the op that is running */
    uint64_t max_skew_ns; /* of that op: how far its wall clock may lag without meaning it */
    uint64_t expired;
    uint64_t last_sequence;
    uint64_t last_serial;  /* of lease ids */
    uint64_t reclaimed_ns; /* when a search for spent classes last found none; UINT64_MAX: search
                              again */
    uint64_t sweep_at;
    struct plain_owner owners[PLAIN_OWNERS_MAX];
    struct admi_table family_table;
    struct plain_family *families;
    struct admi_table class_table;
    struct plain_class *classes;
    struct plain_region regions[PLAIN_REGIONS];
    struct admi_table attempt_table;
    struct plain_attempt *attempts;
    struct admi_heap attempt_heap;
    uint8_t hash_secret[ADMI_SECRET_BYTES];
    uint8_t id_secret[ADMI_SECRET_BYTES];
    uint8_t key_secrets[2 * ADMI_SECRET_BYTES];
};

/* ---- plain_class.c ---- */

/* How many families there can be at most. */
uint64_t admi_plain_families_max(uint64_t classes_max, uint64_t partitions_max);
adm_status admi_plain_put_classes(struct plain *plain, struct adm_class_set *set);
/* The class that a term means, in its replica scope, at the term's replica count; made if it must
 * be. Errors ADM_E_BACKEND_STALE not in the set in force; ADM_E_BACKEND_FULL no room for another
 * scope. */
adm_status admi_plain_term_class(struct plain *plain, const struct adm_term *term,
                                 uint64_t sequence, uint32_t *out_class);
bool admi_plain_sequence_is_current(const struct plain *plain, uint64_t sequence);
/* Forget a class that no set names once it makes no difference. True: forgotten. */
bool admi_plain_class_reclaim(struct plain *plain, uint32_t place);
bool admi_plain_family_reclaim(struct plain *plain, uint32_t place);

/* ---- plain_partition.c ---- */

static inline struct plain_family *admi_plain_family(struct plain *plain, uint32_t place)
{
    return &plain->families[place];
}

static inline struct plain_region *admi_plain_region_of(struct plain *plain,
                                                        const struct plain_family *family)
{
    return &plain->regions[family->region];
}

/* A quota as it stands at a wall time: which window it is judged in, and what is used of it. */
struct plain_quota {
    uint64_t window;
    uint64_t used;
    uint64_t begin_ns, end_ns;
    uint64_t empty_at_ns; /* when what is used now is forgotten, if nothing more is charged */
};

/* partition may be NULL: not there. */
struct plain_quota admi_plain_quota(const struct plain *plain, const struct plain_family *family,
                                    const struct plain_partition *partition);
uint64_t admi_plain_partition_hash(const struct plain *plain, const struct admi_key *key,
                                   uint32_t family, uint32_t class_place);
uint32_t admi_plain_partition_find(struct plain *plain, const struct admi_key *key, uint64_t hash,
                                   uint32_t family, uint32_t class_place);
/* 0: the table is full. */
uint32_t admi_plain_partition_make(struct plain *plain, const struct admi_key *key, uint64_t hash,
                                   uint32_t family, uint32_t class_place);
bool admi_plain_partition_is_as_new(const struct plain *plain,
                                    const struct plain_partition *partition);
/* Forget it if it is as new and nobody needs it. True: forgotten. */
bool admi_plain_partition_reclaim(struct plain *plain, struct plain_region *region, uint32_t place);
void admi_plain_partition_unpin(struct plain *plain, struct plain_region *region, uint32_t place);
/* Is there room for one more live partition of this family, besides `except` (a record that is as
 * new, or 0)? passes_at_ns: when there will be, if that is known. */
bool admi_plain_family_has_room(struct plain *plain, uint32_t family, uint32_t except,
                                uint64_t *passes_at_ns);
/* Is there room for `more` new records in the region? */
bool admi_plain_region_has_room(struct plain *plain, struct plain_region *region, uint64_t more);
/* Numbers of the family changed: what was known about no room is void. */
void admi_plain_family_changed(struct plain *plain, struct plain_family *family);

/* All changes of a bucket, count or quota go through these. */
void admi_plain_bucket_charge(struct plain *plain, struct plain_region *region, uint32_t place,
                              uint64_t amount);
void admi_plain_bucket_refund(struct plain *plain, struct plain_region *region, uint32_t place,
                              uint64_t amount);
void admi_plain_hold(struct plain_region *region, uint32_t place, uint64_t amount);
void admi_plain_unhold(struct plain *plain, struct plain_region *region, uint32_t place,
                       uint64_t amount);
void admi_plain_quota_set(struct plain *plain, struct plain_region *region, uint32_t place,
                          const struct plain_quota *quota, uint64_t used);

/* ---- plain_lease.c ---- */

/* Everything that was due by plain->now_ns. */
void admi_plain_expire(struct plain *plain);
uint32_t admi_plain_lease_find(const struct plain_region *region, struct adm_id id);
/* A record for a lease, the oldest closed one if need be; 0: all are open. */
uint32_t admi_plain_lease_make(struct plain *plain, struct plain_region *region, struct adm_id id,
                               uint64_t ttl_ns);
bool admi_plain_lease_has_room(const struct plain_region *region);
void admi_plain_lease_add(struct plain_region *region, struct plain_lease *lease,
                          const struct plain_item *item);
/* Return what a live lease holds; the units that returned. */
uint64_t admi_plain_lease_stop_holding(struct plain *plain, struct plain_region *region,
                                       struct plain_lease *lease);
void admi_plain_lease_unpin(struct plain *plain, struct plain_region *region,
                            struct plain_lease *lease);
/* Closed: it answers `already` for as long as the record is kept. */
void admi_plain_lease_close(struct plain *plain, struct plain_region *region, uint32_t place);
void admi_plain_lease_free(struct plain *plain, struct plain_region *region, uint32_t place);
void admi_plain_lease_renew(struct plain *plain, struct plain_region *region, uint32_t place);
/* The shadow hold of that id, if there is one, ends. */
void admi_plain_shadow_end(struct plain *plain, struct adm_id id);

uint32_t admi_plain_attempt_find(const struct plain *plain, const struct admi_key *name,
                                 uint64_t hash);
uint32_t admi_plain_attempt_make(struct plain *plain, const struct admi_key *name, uint64_t hash);
void admi_plain_attempt_due(struct plain *plain, uint32_t place);

/* ---- the operations ---- */

adm_status admi_plain_take(struct plain *plain, struct adm_op *op);
adm_status admi_plain_give(struct plain *plain, struct adm_op *op);
adm_status admi_plain_renew(struct plain *plain, struct adm_op *op);
adm_status admi_plain_settle(struct plain *plain, struct adm_op *op);
adm_status admi_plain_divert(struct plain *plain, struct adm_op *op);
adm_status admi_plain_sweep(struct plain *plain, struct adm_op *op);

static inline uint64_t admi_plain_later(uint64_t from_ns, uint64_t by_ns)
{
    return from_ns > UINT64_MAX - by_ns ? UINT64_MAX : from_ns + by_ns;
}

#endif
