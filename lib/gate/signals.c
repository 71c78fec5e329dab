/* SPDX-License-Identifier: Apache-2.0 */
/* Measurements of replicas: who is healthy, and the mean of a signal. */
#include "gate/signals.h"

#include <pthread.h>

#include "base/memory.h"

#define CHAINS 1024u /* a power of two */

struct measurement {
    struct adm_bytes name;
    admi_i128 value;
    uint64_t at_ns;
    bool missing;
};

struct replica {
    struct adm_bytes name;
    struct measurement *measured;
    uint32_t count, room;
};

struct scope {
    struct scope *next;
    struct adm_bytes name;
    struct replica *replicas;
    uint32_t count, room;
    bool reports_health; /* once any replica did: from then on only healthy ones count */
};

struct admi_signals {
    const struct adm_allocator *allocator;
    pthread_mutex_t lock;
    uint64_t values, values_max;
    uint64_t health_age_ns;
    struct scope *chains[CHAINS];
};

static const struct adm_bytes health = { "healthy", 7 };

static uint32_t chain_of(struct adm_bytes name)
{
    const uint8_t *bytes = name.data;
    uint32_t hash = 2166136261u; /* FNV-1a: scopes are named by the host, not by its clients */

    for (uint64_t i = 0; i < name.length; i++)
        hash = (hash ^ bytes[i]) * 16777619u;
    return hash & (CHAINS - 1);
}

static struct scope *find_scope(const struct admi_signals *signals, struct adm_bytes name)
{
    struct scope *scope = signals->chains[chain_of(name)];

    while (scope != NULL && !admi_bytes_equal(scope->name, name))
        scope = scope->next;
    return scope;
}

static struct measurement *find_measurement(const struct replica *replica, struct adm_bytes name)
{
    for (uint32_t i = 0; i < replica->count; i++)
        if (admi_bytes_equal(replica->measured[i].name, name))
            return &replica->measured[i];
    return NULL;
}

static bool fresh(const struct measurement *m, uint64_t age_ns, uint64_t now_ns)
{
    return m != NULL && !m->missing && (now_ns <= m->at_ns || now_ns - m->at_ns < age_ns);
}

static bool is_healthy(const struct admi_signals *signals, const struct replica *replica,
                       uint64_t now_ns)
{
    const struct measurement *m = find_measurement(replica, health);

    return fresh(m, signals->health_age_ns, now_ns) && m->value == ADMI_SIGNAL_ONE;
}

adm_status admi_signals_new(const struct adm_allocator *allocator, uint64_t values_max,
                            uint64_t health_age_ns, struct admi_signals **out)
{
    struct admi_signals *signals = admi_allocate(allocator, 1, sizeof *signals);

    if (signals == NULL)
        return ADM_E_NOMEM;
    if (pthread_mutex_init(&signals->lock, NULL) != 0) {
        admi_release(allocator, signals, 1, sizeof *signals);
        return ADM_E_OS;
    }
    signals->allocator = allocator;
    signals->values_max = values_max;
    signals->health_age_ns = health_age_ns;
    *out = signals;
    return ADM_OK;
}

static void release_bytes(const struct adm_allocator *allocator, struct adm_bytes bytes)
{
    admi_release(allocator, (void *)(uintptr_t)bytes.data, bytes.length, 1);
}

static void free_scope(struct admi_signals *signals, struct scope *scope)
{
    const struct adm_allocator *allocator = signals->allocator;

    for (uint32_t r = 0; r < scope->count; r++) {
        struct replica *replica = &scope->replicas[r];

        for (uint32_t i = 0; i < replica->count; i++)
            release_bytes(allocator, replica->measured[i].name);
        signals->values -= replica->count;
        admi_release(allocator, replica->measured, replica->room, sizeof *replica->measured);
        release_bytes(allocator, replica->name);
    }
    admi_release(allocator, scope->replicas, scope->room, sizeof *scope->replicas);
    release_bytes(allocator, scope->name);
    admi_release(allocator, scope, 1, sizeof *scope);
}

void admi_signals_free(struct admi_signals *signals)
{
    if (signals == NULL)
        return;
    for (uint32_t i = 0; i < CHAINS; i++)
        while (signals->chains[i] != NULL) {
            struct scope *scope = signals->chains[i];

            signals->chains[i] = scope->next;
            free_scope(signals, scope);
        }
    (void)pthread_mutex_destroy(&signals->lock);
    admi_release(signals->allocator, signals, 1, sizeof *signals);
}

static bool copy_bytes(const struct adm_allocator *allocator, struct adm_bytes from,
                       struct adm_bytes *out)
{
    uint8_t *copy = admi_allocate(allocator, from.length, 1);

    if (copy == NULL)
        return false;
    admi_copy(copy, from.data, from.length);
    out->data = copy;
    out->length = from.length;
    return true;
}

/* A larger copy of an array with room for one more, or NULL. */
static void *grown(const struct adm_allocator *allocator, void *old, uint32_t count, uint32_t *room,
                   uint64_t bytes)
{
    uint32_t wanted = *room == 0 ? 2 : *room * 2;
    void *fresh_array;

    if (count < *room)
        return old;
    fresh_array = admi_allocate(allocator, wanted, bytes);
    if (fresh_array == NULL)
        return NULL;
    admi_copy(fresh_array, old, count * bytes);
    admi_release(allocator, old, *room, bytes);
    *room = wanted;
    return fresh_array;
}

static uint64_t newest(const struct replica *replica)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < replica->count; i++)
        if (replica->measured[i].at_ns > at)
            at = replica->measured[i].at_ns;
    return at;
}

static bool stale_replica(const struct replica *replica, uint64_t now_ns, uint64_t keep_ns)
{
    uint64_t at = newest(replica);

    return now_ns > at && now_ns - at >= keep_ns;
}

/* Make room for one value: drop scopes of which nothing can be asked for any more. Whole scopes
 * only, so that what a scope says of health never depends on how full the table is. */
static bool make_room(struct admi_signals *signals, const struct scope *except, uint64_t now_ns,
                      uint64_t keep_ns)
{
    if (signals->values < signals->values_max)
        return true;
    for (uint32_t i = 0; i < CHAINS; i++)
        for (struct scope **link = &signals->chains[i]; *link != NULL;) {
            struct scope *scope = *link;
            bool stale = scope != except;

            for (uint32_t r = 0; r < scope->count && stale; r++)
                stale = stale_replica(&scope->replicas[r], now_ns, keep_ns);
            if (stale) {
                *link = scope->next;
                free_scope(signals, scope);
            } else {
                link = &scope->next;
            }
        }
    return signals->values < signals->values_max;
}

static struct scope *add_scope(struct admi_signals *signals, struct adm_bytes name)
{
    struct scope *scope = admi_allocate(signals->allocator, 1, sizeof *scope);
    uint32_t chain = chain_of(name);

    if (scope == NULL)
        return NULL;
    if (!copy_bytes(signals->allocator, name, &scope->name)) {
        admi_release(signals->allocator, scope, 1, sizeof *scope);
        return NULL;
    }
    scope->next = signals->chains[chain];
    signals->chains[chain] = scope;
    return scope;
}

/* The replica's place: known, free, or that of one which has been silent long enough. */
static adm_status find_or_add_replica(struct admi_signals *signals, struct scope *scope,
                                      struct adm_bytes name, uint64_t now_ns, uint64_t keep_ns,
                                      struct replica **out)
{
    struct replica *replica = NULL;
    struct adm_bytes copy;

    for (uint32_t r = 0; r < scope->count; r++)
        if (admi_bytes_equal(scope->replicas[r].name, name)) {
            *out = &scope->replicas[r];
            return ADM_OK;
        }
    for (uint32_t r = 0; scope->count == ADMI_MAX_REPLICAS && r < scope->count && replica == NULL;
         r++)
        if (stale_replica(&scope->replicas[r], now_ns, keep_ns))
            replica = &scope->replicas[r];
    if (replica == NULL && scope->count == ADMI_MAX_REPLICAS)
        return ADM_E_LIMIT;
    if (!copy_bytes(signals->allocator, name, &copy))
        return ADM_E_NOMEM;
    if (replica == NULL) {
        void *array = grown(signals->allocator, scope->replicas, scope->count, &scope->room,
                            sizeof *scope->replicas);

        if (array == NULL) {
            release_bytes(signals->allocator, copy);
            return ADM_E_NOMEM;
        }
        scope->replicas = array;
        replica = &scope->replicas[scope->count++];
    } else {
        for (uint32_t i = 0; i < replica->count; i++)
            release_bytes(signals->allocator, replica->measured[i].name);
        signals->values -= replica->count;
        replica->count = 0;
        release_bytes(signals->allocator, replica->name);
    }
    replica->name = copy;
    *out = replica;
    return ADM_OK;
}

static adm_status add_measurement(struct admi_signals *signals, struct replica *replica,
                                  struct adm_bytes name, struct measurement **out)
{
    void *array = grown(signals->allocator, replica->measured, replica->count, &replica->room,
                        sizeof *replica->measured);
    struct adm_bytes copy;

    if (array == NULL)
        return ADM_E_NOMEM;
    replica->measured = array;
    if (!copy_bytes(signals->allocator, name, &copy))
        return ADM_E_NOMEM;
    *out = &replica->measured[replica->count++];
    (*out)->name = copy;
    signals->values++;
    return ADM_OK;
}

static adm_status put(struct admi_signals *signals, struct adm_bytes scope_name,
                      struct adm_bytes replica_name, struct adm_bytes name, admi_i128 value,
                      bool missing, uint64_t now_ns, uint64_t keep_ns)
{
    struct scope *scope = find_scope(signals, scope_name);
    struct replica *replica = NULL;
    struct measurement *m = NULL;
    adm_status status;

    if (!make_room(signals, scope, now_ns, keep_ns)) {
        /* Full: a value that is known may still change. */
        for (uint32_t r = 0; scope != NULL && r < scope->count && m == NULL; r++)
            if (admi_bytes_equal(scope->replicas[r].name, replica_name))
                m = find_measurement(&scope->replicas[r], name);
        if (m == NULL)
            return ADM_E_LIMIT;
    } else {
        if (scope == NULL && (scope = add_scope(signals, scope_name)) == NULL)
            return ADM_E_NOMEM;
        status = find_or_add_replica(signals, scope, replica_name, now_ns, keep_ns, &replica);
        if (status != ADM_OK)
            return status;
        m = find_measurement(replica, name);
        if (m == NULL && (status = add_measurement(signals, replica, name, &m)) != ADM_OK)
            return status;
    }
    m->value = value;
    m->missing = missing;
    m->at_ns = now_ns;
    if (admi_bytes_equal(name, health))
        scope->reports_health = true;
    return ADM_OK;
}

adm_status admi_signals_put(struct admi_signals *signals, struct adm_bytes scope,
                            struct adm_bytes replica, struct adm_bytes name, admi_i128 value,
                            bool missing, uint64_t now_ns, uint64_t keep_ns)
{
    (void)pthread_mutex_lock(&signals->lock);
    adm_status status = put(signals, scope, replica, name, value, missing, now_ns, keep_ns);
    (void)pthread_mutex_unlock(&signals->lock);
    return status;
}

static uint64_t count_healthy(const struct admi_signals *signals, const struct scope *scope,
                              uint64_t now_ns)
{
    uint64_t healthy = 0;

    for (uint32_t r = 0; r < scope->count; r++)
        healthy += is_healthy(signals, &scope->replicas[r], now_ns);
    return healthy;
}

uint64_t admi_signals_healthy(struct admi_signals *signals, struct adm_bytes scope_name,
                              uint64_t now_ns)
{
    uint64_t healthy = 0;

    (void)pthread_mutex_lock(&signals->lock);
    const struct scope *scope = find_scope(signals, scope_name);
    if (scope != NULL)
        healthy = count_healthy(signals, scope, now_ns);
    (void)pthread_mutex_unlock(&signals->lock);
    return healthy;
}

void admi_signals_sum(struct admi_signals *signals, struct adm_bytes scope_name,
                      struct adm_bytes name, uint64_t max_age_ns, uint64_t now_ns,
                      admi_i128 *out_sum, uint64_t *out_count)
{
    admi_i128 sum = 0;
    uint64_t count = 0;

    (void)pthread_mutex_lock(&signals->lock);
    const struct scope *scope = find_scope(signals, scope_name);
    for (uint32_t r = 0; scope != NULL && r < scope->count; r++) {
        const struct replica *replica = &scope->replicas[r];
        const struct measurement *m = find_measurement(replica, name);

        if (!fresh(m, max_age_ns, now_ns) ||
            (scope->reports_health && !is_healthy(signals, replica, now_ns)))
            continue;
        sum += m->value;
        count++;
    }
    (void)pthread_mutex_unlock(&signals->lock);
    *out_sum = sum;
    *out_count = count;
}

void admi_signals_scopes(struct admi_signals *signals, uint64_t now_ns,
                         void (*visit)(void *self, struct adm_bytes scope, uint64_t healthy),
                         void *self)
{
    (void)pthread_mutex_lock(&signals->lock);
    for (uint32_t i = 0; i < CHAINS; i++)
        for (const struct scope *scope = signals->chains[i]; scope != NULL; scope = scope->next)
            visit(self, scope->name, count_healthy(signals, scope, now_ns));
    (void)pthread_mutex_unlock(&signals->lock);
}

void admi_signals_size(struct admi_signals *signals, uint64_t *out_scopes, uint64_t *out_bytes,
                       uint64_t *out_values)
{
    uint64_t scopes = 0, bytes = 0;

    (void)pthread_mutex_lock(&signals->lock);
    for (uint32_t i = 0; i < CHAINS; i++)
        for (const struct scope *scope = signals->chains[i]; scope != NULL; scope = scope->next) {
            scopes++;
            bytes += scope->name.length;
        }
    *out_values = signals->values;
    (void)pthread_mutex_unlock(&signals->lock);
    *out_scopes = scopes;
    *out_bytes = bytes;
}
