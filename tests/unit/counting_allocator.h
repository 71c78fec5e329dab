/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator for tests: counts what is out, checks that sizes come back as they were given, and
 * can be told to fail.
 */
#ifndef ADMIT_TESTS_COUNTING_ALLOCATOR_H
#define ADMIT_TESTS_COUNTING_ALLOCATOR_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <admit/admit.h>

struct counting_allocator {
    _Atomic int64_t bytes;       /* out now */
    _Atomic uint64_t calls;      /* of allocate, so far */
    _Atomic uint64_t wrong_size; /* releases with another size than was asked for */
    _Atomic uint64_t
        fail_from; /* the call with this number, from 1, and all later ones fail; 0: none */
};

struct counting_header {
    uint64_t bytes;
    uint64_t unused; /* keeps what follows aligned for any type */
};

static void *counting_allocate(void *self, uint64_t bytes)
{
    struct counting_allocator *counting = self;
    uint64_t call = atomic_fetch_add(&counting->calls, 1) + 1;
    uint64_t fail_from = atomic_load(&counting->fail_from);
    if (fail_from != 0 && call >= fail_from)
        return NULL;
    struct counting_header *header = calloc(1, sizeof *header + (size_t)bytes);
    if (header == NULL)
        return NULL;
    header->bytes = bytes;
    atomic_fetch_add(&counting->bytes, (int64_t)bytes);
    return header + 1;
}

static void counting_release(void *self, void *memory, uint64_t bytes)
{
    struct counting_allocator *counting = self;
    struct counting_header *header = (struct counting_header *)memory - 1;
    if (header->bytes != bytes)
        atomic_fetch_add(&counting->wrong_size, 1);
    atomic_fetch_sub(&counting->bytes, (int64_t)header->bytes);
    memset(header, 0xA5, sizeof *header + (size_t)header->bytes);
    free(header);
}

static inline struct adm_allocator counting_allocator_of(struct counting_allocator *counting)
{
    struct adm_allocator allocator = { counting, counting_allocate, counting_release };
    return allocator;
}

#endif
