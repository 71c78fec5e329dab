/* SPDX-License-Identifier: Apache-2.0 */
/* The chained hash table of places, and keys. */
#include "state/table.h"

#include "base/memory.h"

#define EXACT_BYTES 62u
#define HEAD_BYTES  28u
#define DIGESTED    0xffu /* in place of the length */

static uint32_t *heads_of(const struct admi_table *table)
{
    return admi_array(table, table->heads_at);
}

static uint32_t *next_of(const struct admi_table *table)
{
    return admi_array(table, table->next_at);
}

void admi_table_init(struct admi_table *table, uint64_t places, uint64_t *end)
{
    uint64_t heads = 16;

    while (heads < places)
        heads *= 2;
    *table = (struct admi_table){ .mask = heads - 1, .max = (uint32_t)places };
    table->heads_at = admi_array_reserve(end, heads, sizeof(uint32_t));
    table->next_at = admi_array_reserve(end, places + 1, sizeof(uint32_t));
}

uint32_t admi_table_first(const struct admi_table *table, uint64_t hash)
{
    return heads_of(table)[hash & table->mask];
}

uint32_t admi_table_add(struct admi_table *table, uint64_t hash)
{
    uint32_t *head = &heads_of(table)[hash & table->mask];
    uint32_t place = table->free;

    if (place != 0)
        table->free = next_of(table)[place];
    else if (table->high < table->max)
        place = ++table->high;
    else
        return 0;
    next_of(table)[place] = *head;
    *head = place;
    table->used++;
    return place;
}

void admi_table_remove(struct admi_table *table, uint64_t hash, uint32_t place)
{
    uint32_t *link = &heads_of(table)[hash & table->mask];
    uint32_t *next = next_of(table);

    while (*link != place)
        link = &next[*link];
    *link = next[place];
    next[place] = table->free;
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
