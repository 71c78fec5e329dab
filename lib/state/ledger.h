/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger's records and the functions between its files. Everything lies in one block of memory
 * without pointers: records are named by places, arrays by distances (state/table.h). One op at a
 * time, at ledger->now_ns, after whatever was due by then has expired; the lock is the owner's.
 *
 *      ledger.c            the block: how long, how laid out; perform, describe
 *      ledger_class.c      families (rules), classes and their replica scopes: the registry's hooks
 *      ledger_partition.c  buckets, counts and quotas: find, make, forget, whether there is room
 *      ledger_lease.c      leases and attempts as records: make, expire, end
 *      ledger_take.c       take
 *      ledger_settle.c     give, renew, settle, divert
 *      ledger_sweep.c      sweep
 */
#ifndef ADMI_LEDGER_H
#define ADMI_LEDGER_H

#include <stdbool.h>

#include <admit/backend.h>

#include "state/meter.h"
#include "state/odometer.h"
#include "state/registry.h"
#include "state/table.h"

enum ledger_region_name { LEDGER_ENFORCED = 0, LEDGER_SHADOW = 1, LEDGER_REGIONS = 2 };

/* A partition's scan found no room, and nothing that could have made room has happened since: no
 * need to scan again before these times. */
struct ledger_no_room {
    bool known;
    bool
        exact; /* family: at until_mono_ns there is room, unless something else is charged before */
    uint64_t until_mono_ns;
    uint64_t until_wall_ns;
};

/* What a ledger knows of a family beside its record in the registry, by the same place. */
struct ledger_family {
    uint32_t window;     /* quota: ADM_WINDOW_* of the last term */
    uint32_t partitions; /* records: the live ones, and some that nobody has looked at since they
                            became as new */
    uint32_t first_partition; /* list through family_next */
    uint32_t first_room;      /* no_room.known: the bucket that no_room.until_mono_ns is about */
    struct ledger_no_room no_room;
};

/* The same of a class. */
struct ledger_class {
    uint32_t first_partition; /* list through class_next */
};

/* One bucket, count of held units, or quota. Absent is the same as new. */
struct ledger_partition {
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
    LEDGER_ITEM_COMPLETION = 1,
    LEDGER_ITEM_EXACT = 2,
    LEDGER_ITEM_CHARGED = 4 /* completion: done */
};

/* What a lease holds, or may still settle, in one partition (which it pins). */
struct ledger_item {
    uint32_t partition;
    uint32_t unit;
    uint32_t flags;
    uint32_t reserved0;
    uint64_t amount; /* charged, held, or to be charged */
    uint64_t window; /* quota: in which it was charged */
};

enum ledger_lease_state { LEDGER_LIVE = 1, LEDGER_LATE = 2, LEDGER_CLOSED = 3 };

struct ledger_lease {
    struct adm_id id;
    uint64_t expires_ns, ttl_ns;
    uint32_t state;
    bool diverted, final;
    uint32_t attempt;                      /* that remembers it; 0: none */
    uint32_t closed_previous, closed_next; /* of the closed ones, oldest first */
    uint32_t item_count, meter_count;
    struct ledger_item items[ADM_MAX_TERMS];
    struct adm_meter meters[ADMI_METERS_MAX];
};

struct ledger_attempt {
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
struct ledger_region {
    struct admi_table partition_table;
    uint64_t partitions_at;
    struct admi_table lease_table;
    uint64_t leases_at;
    struct admi_heap lease_heap; /* live: the end of the lease; after it: the end of the record */
    uint32_t closed_first, closed_last;
    struct ledger_no_room no_room;
};

struct ledger {
    uint64_t bytes;   /* of the whole block */
    uint32_t running; /* an op: found set by another op, that one never ended */
    uint32_t reserved0;
    uint64_t now_ns;      /* largest mono time seen */
    uint64_t wall_ns;     /* of the op that is running */
    uint64_t max_skew_ns; /* of that op: how far its wall clock may lag without meaning it */
    uint64_t expired;
    uint64_t last_serial; /* of lease ids */
    uint64_t sweep_at;
    struct admi_registry registry;
    uint64_t families_at, classes_at; /* the ledger's own part of their records */
    struct ledger_region regions[LEDGER_REGIONS];
    struct admi_table attempt_table;
    uint64_t attempts_at;
    struct admi_heap attempt_heap;
    uint8_t hash_secret[ADMI_SECRET_BYTES];
    uint8_t id_secret[ADMI_SECRET_BYTES];
};

/* ---- records by place ---- */

static inline const struct admi_registry_family *family_at(const struct ledger *ledger,
                                                           uint64_t place)
{
    return admi_registry_family_at(&ledger->registry, place);
}

static inline const struct admi_registry_class *class_at(const struct ledger *ledger,
                                                         uint64_t place)
{
    return admi_registry_class_at(&ledger->registry, place);
}

static inline struct ledger_family *family_state_at(const struct ledger *ledger, uint64_t place)
{
    return (struct ledger_family *)admi_array(ledger, ledger->families_at) + place;
}

static inline struct ledger_class *class_state_at(const struct ledger *ledger, uint64_t place)
{
    return (struct ledger_class *)admi_array(ledger, ledger->classes_at) + place;
}

static inline struct ledger_attempt *attempt_at(const struct ledger *ledger, uint64_t place)
{
    return (struct ledger_attempt *)admi_array(ledger, ledger->attempts_at) + place;
}

static inline struct ledger_partition *partition_at(const struct ledger_region *region,
                                                    uint64_t place)
{
    return (struct ledger_partition *)admi_array(region, region->partitions_at) + place;
}

static inline struct ledger_lease *lease_at(const struct ledger_region *region, uint64_t place)
{
    return (struct ledger_lease *)admi_array(region, region->leases_at) + place;
}

/* ---- ledger_class.c ---- */

adm_status admi_ledger_put_classes(struct ledger *ledger, struct adm_class_set *set);
/* The class that a term means, in its replica scope, at the term's replica count; made if it must
 * be. Errors ADM_E_BACKEND_STALE not in the set in force; ADM_E_BACKEND_FULL no room for another
 * scope. */
adm_status admi_ledger_term_class(struct ledger *ledger, const struct adm_term *term,
                                  uint64_t sequence, uint32_t *out_class);
/* Forget a class that no set names (a family without classes) once it makes no difference. True:
 * forgotten. */
bool admi_ledger_class_reclaim(struct ledger *ledger, uint32_t place);
bool admi_ledger_family_reclaim(struct ledger *ledger, uint32_t place);

/* ---- ledger_partition.c ---- */

static inline struct ledger_region *admi_ledger_region_of(struct ledger *ledger, uint32_t family)
{
    return &ledger->regions[family_at(ledger, family)->region];
}

/* A quota as it stands at a wall time: which window it is judged in, and what is used of it. */
struct ledger_quota {
    uint64_t window;
    uint64_t used;
    uint64_t begin_ns, end_ns;
    uint64_t empty_at_ns; /* when what is used now is forgotten, if nothing more is charged */
};

/* partition may be NULL: not there. */
struct ledger_quota admi_ledger_quota(const struct ledger *ledger, uint32_t family,
                                      const struct ledger_partition *partition);
uint64_t admi_ledger_partition_hash(const struct ledger *ledger, const struct admi_key *key,
                                    uint32_t family, uint32_t class_place);
uint32_t admi_ledger_partition_find(struct ledger *ledger, const struct admi_key *key,
                                    uint64_t hash, uint32_t family, uint32_t class_place);
/* 0: the table is full. */
uint32_t admi_ledger_partition_make(struct ledger *ledger, const struct admi_key *key,
                                    uint64_t hash, uint32_t family, uint32_t class_place);
bool admi_ledger_partition_is_as_new(const struct ledger *ledger,
                                     const struct ledger_partition *partition);
/* Forget it if it is as new and nobody needs it. True: forgotten. */
bool admi_ledger_partition_reclaim(struct ledger *ledger, struct ledger_region *region,
                                   uint32_t place);
void admi_ledger_partition_unpin(struct ledger *ledger, struct ledger_region *region,
                                 uint32_t place);
/* Is there room for one more live partition of this family, besides `except` (a record that is as
 * new, or 0)? passes_at_ns: when there will be, if that is known. */
bool admi_ledger_family_has_room(struct ledger *ledger, uint32_t family, uint32_t except,
                                 uint64_t *passes_at_ns);
/* Is there room for `more` new records in the region? */
bool admi_ledger_region_has_room(struct ledger *ledger, struct ledger_region *region,
                                 uint64_t more);
/* Numbers of the family changed: what was known about no room is void. */
void admi_ledger_family_changed(struct ledger *ledger, uint32_t family);

/* All changes of a bucket, count or quota go through these. */
void admi_ledger_bucket_charge(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                               uint64_t amount);
void admi_ledger_bucket_refund(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                               uint64_t amount);
void admi_ledger_hold(struct ledger_region *region, uint32_t place, uint64_t amount);
void admi_ledger_unhold(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                        uint64_t amount);
void admi_ledger_quota_set(struct ledger *ledger, struct ledger_region *region, uint32_t place,
                           const struct ledger_quota *quota, uint64_t used);

/* ---- ledger_lease.c ---- */

/* Everything that was due by ledger->now_ns. */
void admi_ledger_expire(struct ledger *ledger);
uint32_t admi_ledger_lease_find(const struct ledger_region *region, struct adm_id id);
/* A record for a lease, the oldest closed one if need be; 0: all are open. */
uint32_t admi_ledger_lease_make(struct ledger *ledger, struct ledger_region *region,
                                struct adm_id id, uint64_t ttl_ns);
bool admi_ledger_lease_has_room(const struct ledger_region *region);
void admi_ledger_lease_add(struct ledger_region *region, struct ledger_lease *lease,
                           const struct ledger_item *item);
/* Return what a live lease holds; the units that returned. */
uint64_t admi_ledger_lease_stop_holding(struct ledger *ledger, struct ledger_region *region,
                                        struct ledger_lease *lease);
void admi_ledger_lease_unpin(struct ledger *ledger, struct ledger_region *region,
                             struct ledger_lease *lease);
/* Closed: it answers `already` for as long as the record is kept. */
void admi_ledger_lease_close(struct ledger *ledger, struct ledger_region *region, uint32_t place);
void admi_ledger_lease_free(struct ledger *ledger, struct ledger_region *region, uint32_t place);
void admi_ledger_lease_renew(struct ledger *ledger, struct ledger_region *region, uint32_t place);
/* The shadow hold of that id, if there is one, ends. */
void admi_ledger_shadow_end(struct ledger *ledger, struct adm_id id);

uint32_t admi_ledger_attempt_find(const struct ledger *ledger, const struct admi_key *name,
                                  uint64_t hash);
uint32_t admi_ledger_attempt_make(struct ledger *ledger, const struct admi_key *name,
                                  uint64_t hash);
void admi_ledger_attempt_due(struct ledger *ledger, uint32_t place);

/* ---- the operations ---- */

adm_status admi_ledger_take(struct ledger *ledger, struct adm_op *op);
adm_status admi_ledger_give(struct ledger *ledger, struct adm_op *op);
adm_status admi_ledger_renew(struct ledger *ledger, struct adm_op *op);
adm_status admi_ledger_settle(struct ledger *ledger, struct adm_op *op);
adm_status admi_ledger_divert(struct ledger *ledger, struct adm_op *op);
adm_status admi_ledger_sweep(struct ledger *ledger, struct adm_op *op);

static inline uint64_t admi_ledger_later(uint64_t from_ns, uint64_t by_ns)
{
    return from_ns > UINT64_MAX - by_ns ? UINT64_MAX : from_ns + by_ns;
}

#endif
