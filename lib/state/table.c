/* SPDX-License-Identifier: Apache-2.0 */
/* The chained hash table of places, and keys. */
#include "state/table.h"

#include "base/memory.h"

#define EXACT_BYTES 62u
#define HEAD_BYTES  28u
#define DIGESTED    0xffu /* in place of the length */

adm_status admi_table_init(struct admi_table *table, const struct adm_allocator *allocator,
                           uint64_t places)
{
    uint64_t heads = 16;

    *table = (struct admi_table){ 0 };
    if (places > ADMI_PLACES_MAX)
        return ADM_E_NOMEM;
    while (heads < places)
        heads *= 2;
    table->heads = admi_allocate(allocator, heads, sizeof *table->heads);
    if (table->heads == NULL)
        return ADM_E_NOMEM;
    table->next = admi_allocate(allocator, places + 1, sizeof *table->next);
    if (table->next == NULL) {
        admi_release(allocator, table->heads, heads, sizeof *table->heads);
        table->heads = NULL;
        return ADM_E_NOMEM;
    }
    table->mask = heads - 1;
    table->max = (uint32_t)places;
    return ADM_OK;
}

void admi_table_fini(struct admi_table *table, const struct adm_allocator *allocator)
{
    admi_release(allocator, table->next, (uint64_t)table->max + 1, sizeof *table->next);
    admi_release(allocator, table->heads, table->mask + 1, sizeof *table->heads);
    *table = (struct admi_table){ 0 };
}

uint32_t admi_table_first(const struct admi_table *table, uint64_t hash)
{
    return table->heads[hash & table->mask];
}

uint32_t admi_table_add(struct admi_table *table, uint64_t hash)
{
    uint32_t *head = &table->heads[hash & table->mask];
    uint32_t place = table->free;

    if (place != 0)
        table->free = table->next[place];
    else if (table->high < table->max)
        place = ++table->high;
    else
        return 0;
    table->next[place] = *head;
    *head = place;
    table->used++;
    return place;
}

void admi_table_remove(struct admi_table *table, uint64_t hash, uint32_t place)
{
    uint32_t *link = &table->heads[hash & table->mask];

    while (*link != place)
        link = &table->next[*link];
    *link = table->next[place];
    table->next[place] = table->free;
    table->free = place;
    table->used--;
}

void admi_key_make(struct admi_key *key, struct adm_bytes text,
                   const uint8_t secrets[2 * ADMI_SECRET_BYTES])
{
    *key = (struct admi_key){ { 0 } };
    if (text.length <= EXACT_BYTES) {
        key->bytes[0] = (uint8_t)text.length;
        admi_copy(key->bytes + 1, text.data, text.length);
        return;
    }
    key->bytes[0] = DIGESTED;
    admi_hash128(text.data, text.length, secrets, key->bytes + 1);
    admi_hash128(text.data, text.length, secrets + ADMI_SECRET_BYTES, key->bytes + 17);
    admi_copy(key->bytes + 33, text.data, HEAD_BYTES);
}

int admi_key_equal(const struct admi_key *a, const struct admi_key *b)
{
    return admi_bytes_equal((struct adm_bytes){ a->bytes, sizeof a->bytes },
                            (struct adm_bytes){ b->bytes, sizeof b->bytes });
}

uint64_t admi_key_hash(const struct admi_key *key, uint64_t of,
                       const uint8_t secret[ADMI_SECRET_BYTES])
{
    struct {
        struct admi_key key;
        uint64_t of;
    } whole = { *key, of };

    return admi_hash64(&whole, sizeof whole, secret);
}
