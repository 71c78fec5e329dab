/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbered words that only grow: a word keeps its number, its bytes and its place in memory as long
 * as the list lives, so that readers need no lock. Adding is done by one thread at a time, under
 * the owner's lock.
 */
#ifndef ADMI_OBSERVE_INTERN_H
#define ADMI_OBSERVE_INTERN_H

#include <stdatomic.h>

#include <admit/admit.h>

#define ADMI_INTERN_NONE      UINT32_MAX
#define ADMI_INTERN_PER_CHUNK 64u

/* Two parts, for instance a rule's id and its unit. Immutable once it is in a list. */
struct admi_interned {
    uint64_t hash;      /* of the first part only: equal first parts lie in one run of the index */
    uint32_t number;    /* in its list */
    uint32_t first_use; /* number of the first word in the list with this first part */
    uint32_t first_length;
    uint32_t second_length;
    char text[]; /* both parts, one after the other */
};

struct admi_intern {
    const struct adm_allocator *allocator;
    uint32_t max;
    _Atomic uint32_t count;
    _Atomic(struct admi_interned **)
        *chunks;         /* max / ADMI_INTERN_PER_CHUNK, filled from the front */
    uint32_t *index;     /* open addressing; number + 1, 0: empty */
    uint32_t index_size; /* power of two */
};

uint64_t admi_interned_hash(struct adm_bytes bytes);

/* NULL: no memory. admi_interned_free(NULL) is a no-op. */
struct admi_interned *admi_interned_new(const struct adm_allocator *allocator,
                                        struct adm_bytes first, struct adm_bytes second);
void admi_interned_free(const struct adm_allocator *allocator, struct admi_interned *word);
struct adm_bytes admi_interned_first(const struct admi_interned *word);
struct adm_bytes admi_interned_second(const struct admi_interned *word);

adm_status admi_intern_init(struct admi_intern *words, const struct adm_allocator *allocator,
                            uint32_t max);
void admi_intern_fini(
    struct admi_intern *words); /* also of a zeroed list, or one whose init failed */

/* Without a lock: how many there are, and the word of a number below that. */
uint32_t admi_intern_count(const struct admi_intern *words);
const struct admi_interned *admi_intern_at(const struct admi_intern *words, uint32_t number);

/* Under the owner's lock: the number of a word, or ADMI_INTERN_NONE. */
uint32_t admi_intern_find(const struct admi_intern *words, struct adm_bytes first,
                          struct adm_bytes second);
/* Room for more words, so that adding them cannot fail. ADM_E_LIMIT: max would be passed;
 * ADM_E_NOMEM. */
adm_status admi_intern_reserve(struct admi_intern *words, uint32_t more);
/* Takes the word over. It must not be in the list, and there must be room. */
uint32_t admi_intern_add(struct admi_intern *words, struct admi_interned *word);

#endif
