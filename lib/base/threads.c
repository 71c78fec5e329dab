/* SPDX-License-Identifier: Apache-2.0 */
/* One block per thread and registry: a thread-local cache in front, the registry's list behind it.
 */
#include "base/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/memory.h"

#define BLOCK_ALIGNMENT 128u /* two lines: some processors fetch lines in pairs */
#define CACHE_ENTRIES   64u  /* live registries that a thread reaches without a lock */

/* In front of each block, on lines of its own. */
struct header {
    struct header *next;      /* of all blocks of the registry */
    struct header *next_free; /* of those whose thread has ended */
    uint64_t owner;           /* serial of the thread, 0: free */
    void *memory;             /* as the allocator gave it */
};

_Static_assert(sizeof(struct header) <= BLOCK_ALIGNMENT, "a header must not reach into its block");

struct admi_threads {
    struct adm_allocator allocator;
    uint64_t serial; /* never reused, so that a new registry at an old address is not taken for the
                        old one */
    uint64_t block_bytes;
    pthread_mutex_t owner_mutex; /* guards nothing in here: admi_threads_lock() */
    pthread_mutex_t mutex;       /* guards all, idle and the owners */
    struct header *all;
    struct header *idle;
    struct admi_threads *next, **link; /* of all live registries */
};

struct cache_entry {
    uint64_t serial; /* of the registry; 0: empty */
    void *block;     /* valid while the registry lives; never looked into here */
};

/* What a thread knows. Only the thread itself ever touches it, so a registry may be freed at any
 * time: its entry stays, matches nothing any more, and makes room when room is needed. */
struct thread {
    struct admi_thread seen; /* first: what others see of it */
    uint32_t used;           /* entries that are not empty, some perhaps of dead registries */
    uint64_t serial;         /* of this thread, never reused; 0: not yet given */
    bool overflowed;         /* it may own blocks that are in no entry */
    struct cache_entry entries[CACHE_ENTRIES];
};

static _Thread_local struct thread this_thread;

/* Lock order: live_mutex, then a registry's owner_mutex, then its mutex. Nothing foreign is called
 * under live_mutex. */
static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct admi_threads *live; /* guarded by live_mutex */

static _Atomic uint64_t last_registry;
static _Atomic uint64_t last_thread;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_valid;

static struct header *header_of(void *block)
{
    return (struct header *)(void *)((char *)block - BLOCK_ALIGNMENT);
}

static void *block_of(struct header *header)
{
    return (char *)header + BLOCK_ALIGNMENT;
}

static uint64_t memory_bytes(uint64_t block_bytes)
{
    return 2 * BLOCK_ALIGNMENT + block_bytes; /* once for the header, once to align it */
}

static struct admi_threads *find_live(uint64_t serial)
{
    struct admi_threads *threads = live;
    while (threads != NULL && threads->serial != serial)
        threads = threads->next;
    return threads;
}

static void make_idle(struct admi_threads *threads, struct header *header)
{
    header->owner = 0;
    header->next_free = threads->idle;
    threads->idle = header;
}

/* An ending thread with more registries than entries: look everywhere. */
static void give_back_everywhere(uint64_t owner)
{
    for (struct admi_threads *threads = live; threads != NULL; threads = threads->next) {
        pthread_mutex_lock(&threads->mutex);
        for (struct header *header = threads->all; header != NULL; header = header->next) {
            if (header->owner == owner)
                make_idle(threads, header);
        }
        pthread_mutex_unlock(&threads->mutex);
    }
}

/* The thread ends. live_mutex keeps each registry that is found from being freed meanwhile.
 * Destructors of other keys may still call in after this one: then the thread takes blocks again
 * and this runs again. */
static void on_thread_exit(void *value)
{
    struct thread *self = value;
    pthread_mutex_lock(&live_mutex);
    for (uint32_t i = 0; i < CACHE_ENTRIES; i++) {
        struct cache_entry *entry = &self->entries[i];
        struct admi_threads *threads = entry->serial == 0 ? NULL : find_live(entry->serial);
        if (threads != NULL) {
            pthread_mutex_lock(&threads->mutex);
            make_idle(threads, header_of(entry->block));
            pthread_mutex_unlock(&threads->mutex);
        }
        entry->serial = 0;
        entry->block = NULL;
    }
    if (self->overflowed)
        give_back_everywhere(self->serial);
    pthread_mutex_unlock(&live_mutex);
    self->used = 0;
    self->overflowed = false;
}

/* A forked child must be able to use and free registries: no lock may be held by a thread that it
 * does not have. */
static void before_fork(void)
{
    pthread_mutex_lock(&live_mutex);
    for (struct admi_threads *threads = live; threads != NULL; threads = threads->next) {
        pthread_mutex_lock(&threads->owner_mutex);
        pthread_mutex_lock(&threads->mutex);
    }
}

static void after_fork(void)
{
    for (struct admi_threads *threads = live; threads != NULL; threads = threads->next) {
        pthread_mutex_unlock(&threads->mutex);
        pthread_mutex_unlock(&threads->owner_mutex);
    }
    pthread_mutex_unlock(&live_mutex);
}

static void set_up(void)
{
    exit_key_valid = pthread_atfork(before_fork, after_fork, after_fork) == 0 &&
                     pthread_key_create(&exit_key, on_thread_exit) == 0;
}

adm_status admi_threads_new(const struct adm_allocator *allocator, uint64_t block_bytes,
                            struct admi_threads **out)
{
    pthread_once(&once, set_up);
    if (!exit_key_valid)
        return ADM_E_OS;
    if (block_bytes > UINT32_MAX)
        return ADM_E_NOMEM;
    allocator = admi_allocator_or_malloc(allocator);
    struct admi_threads *threads = admi_allocate(allocator, 1, sizeof *threads);
    if (threads == NULL)
        return ADM_E_NOMEM;
    threads->allocator = *allocator;
    threads->block_bytes = (block_bytes + BLOCK_ALIGNMENT - 1) / BLOCK_ALIGNMENT * BLOCK_ALIGNMENT;
    threads->serial = atomic_fetch_add_explicit(&last_registry, 1, memory_order_relaxed) + 1;
    if (pthread_mutex_init(&threads->mutex, NULL) != 0)
        goto free_threads;
    if (pthread_mutex_init(&threads->owner_mutex, NULL) != 0)
        goto destroy_mutex;
    pthread_mutex_lock(&live_mutex);
    threads->next = live;
    threads->link = &live;
    if (live != NULL)
        live->link = &threads->next;
    live = threads;
    pthread_mutex_unlock(&live_mutex);
    *out = threads;
    return ADM_OK;
destroy_mutex:
    pthread_mutex_destroy(&threads->mutex);
free_threads:
    admi_release(allocator, threads, 1, sizeof *threads);
    return ADM_E_OS;
}

void admi_threads_free(struct admi_threads *threads, void (*release)(void *self, void *block),
                       void *self)
{
    if (threads == NULL)
        return;
    /* After this no ending thread finds the registry; one that has found it is done when the lock
     * is ours. */
    pthread_mutex_lock(&live_mutex);
    *threads->link = threads->next;
    if (threads->next != NULL)
        threads->next->link = threads->link;
    pthread_mutex_unlock(&live_mutex);

    struct adm_allocator allocator = threads->allocator;
    struct header *next;
    for (struct header *header = threads->all; header != NULL; header = next) {
        next = header->next;
        if (release != NULL)
            release(self, block_of(header));
        admi_release(&allocator, header->memory, 1, memory_bytes(threads->block_bytes));
    }
    pthread_mutex_destroy(&threads->owner_mutex);
    pthread_mutex_destroy(&threads->mutex);
    admi_release(&allocator, threads, 1, sizeof *threads);
}

static void *cached(const struct thread *self, uint64_t serial)
{
    for (uint32_t i = 0; i < CACHE_ENTRIES; i++) {
        const struct cache_entry *entry = &self->entries[(serial + i) % CACHE_ENTRIES];
        if (entry->serial == serial)
            return entry->block;
        if (entry->serial == 0)
            return NULL;
    }
    return NULL;
}

static void insert(struct thread *self, uint64_t serial, void *block)
{
    uint64_t at = serial % CACHE_ENTRIES;
    while (self->entries[at].serial != 0)
        at = (at + 1) % CACHE_ENTRIES;
    self->entries[at].serial = serial;
    self->entries[at].block = block;
    self->used++;
}

/* Drop the entries of dead registries. The others are put in again, or probing would stop at the
 * holes. */
static void forget_dead(struct thread *self)
{
    struct cache_entry old[CACHE_ENTRIES];
    admi_copy(old, self->entries, sizeof old);
    admi_clear(self->entries, sizeof self->entries);
    self->used = 0;
    pthread_mutex_lock(&live_mutex);
    for (uint32_t i = 0; i < CACHE_ENTRIES; i++) {
        if (old[i].serial != 0 && find_live(old[i].serial) != NULL)
            insert(self, old[i].serial, old[i].block);
    }
    pthread_mutex_unlock(&live_mutex);
}

static void remember(struct thread *self, uint64_t serial, void *block)
{
    if (self->used >= CACHE_ENTRIES / 2)
        forget_dead(self);
    if (self->used < CACHE_ENTRIES)
        insert(self, serial, block);
    else
        self->overflowed = true;
}

static struct header *new_block(const struct admi_threads *threads)
{
    char *memory = admi_allocate(&threads->allocator, 1, memory_bytes(threads->block_bytes));
    if (memory == NULL)
        return NULL;
    uintptr_t past = (uintptr_t)memory % BLOCK_ALIGNMENT;
    struct header *header =
        (struct header *)(void *)(memory + (past == 0 ? 0 : BLOCK_ALIGNMENT - past));
    header->memory = memory;
    return header;
}

/* A block that this thread owns although no entry says so, or one that an ended thread left; NULL:
 * neither. */
static struct header *find_block(struct admi_threads *threads, const struct thread *self)
{
    struct header *header = NULL;
    pthread_mutex_lock(&threads->mutex);
    if (self->overflowed) {
        header = threads->all;
        while (header != NULL && header->owner != self->serial)
            header = header->next;
    }
    if (header == NULL && threads->idle != NULL) {
        header = threads->idle;
        threads->idle = header->next_free;
        header->owner = self->serial;
    }
    pthread_mutex_unlock(&threads->mutex);
    return header;
}

ADMI_APART static void *find_or_make(struct admi_threads *threads, struct thread *self)
{
    void *block = cached(self, threads->serial);
    if (block != NULL)
        return block;
    if (self->serial == 0)
        self->serial = atomic_fetch_add_explicit(&last_thread, 1, memory_order_relaxed) + 1;
    struct header *header = find_block(threads, self);
    if (header == NULL) {
        header = new_block(threads); /* without the lock: the allocator is the host's */
        if (header == NULL)
            return NULL;
        header->owner = self->serial;
        pthread_mutex_lock(&threads->mutex);
        header->next = threads->all;
        threads->all = header;
        pthread_mutex_unlock(&threads->mutex);
    }
    /* Should this fail, the block is not handed on when the thread ends; nothing else is lost. */
    (void)pthread_setspecific(exit_key, self);
    remember(self, threads->serial, block_of(header));
    return block_of(header);
}

struct admi_thread *admi_this_thread(void)
{
    return &this_thread.seen;
}

void *admi_threads_local_of(struct admi_threads *threads, struct admi_thread *seen)
{
    struct thread *self = (struct thread *)(void *)seen;
    const struct cache_entry *entry = &self->entries[threads->serial % CACHE_ENTRIES];
    return entry->serial == threads->serial ? entry->block : find_or_make(threads, self);
}

void *admi_threads_local(struct admi_threads *threads)
{
    return admi_threads_local_of(threads, admi_this_thread());
}

void admi_threads_each(struct admi_threads *threads, void (*visit)(void *self, void *block),
                       void *self)
{
    pthread_mutex_lock(&threads->mutex);
    for (struct header *header = threads->all; header != NULL; header = header->next)
        visit(self, block_of(header));
    pthread_mutex_unlock(&threads->mutex);
}

void admi_threads_lock(struct admi_threads *threads)
{
    pthread_mutex_lock(&threads->owner_mutex);
}

void admi_threads_unlock(struct admi_threads *threads)
{
    pthread_mutex_unlock(&threads->owner_mutex);
}

void admi_enter_callback(void)
{
    this_thread.seen.callback_depth++;
}

void admi_leave_callback(void)
{
    this_thread.seen.callback_depth--;
}

int admi_inside_callback(void)
{
    return this_thread.seen.callback_depth > 0;
}
