/* SPDX-License-Identifier: Apache-2.0 */
/* What the backend keeps with an attempt id. */
#include "gate/memo.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "gate/gate.h"

static uint64_t put_text(const char *text, uint8_t *out)
{
    uint64_t length = strnlen(text, ADM_MAX_VERSION);

    out[0] = (uint8_t)length;
    admi_copy(out + 1, text, length);
    return 1 + length;
}

uint64_t admi_memo_write(const char *policy_version, const char *table_version,
                         struct adm_id decision_id, uint8_t *out)
{
    uint64_t used = put_text(policy_version, out);

    used += put_text(table_version, out + used);
    admi_copy(out + used, &decision_id, sizeof decision_id);
    return used + sizeof decision_id;
}

static bool get_text(const uint8_t *memo, uint64_t length, uint64_t *used, char *out)
{
    if (*used >= length || memo[*used] > ADM_MAX_VERSION || length - *used - 1 < memo[*used])
        return false;
    admi_copy(out, memo + *used + 1, memo[*used]);
    out[memo[*used]] = '\0';
    *used += 1 + (uint64_t)memo[*used];
    return true;
}

bool admi_memo_read(const uint8_t *memo, uint64_t length, struct adm_decision *decision)
{
    uint64_t used = 0;

    if (!get_text(memo, length, &used, decision->policy_version) ||
        !get_text(memo, length, &used, decision->table_version) ||
        length - used != sizeof decision->id)
        return false;
    admi_copy(&decision->id, memo + used, sizeof decision->id);
    return true;
}

/* ---- digest ---- */

#define NAMES_MAX (ADM_MAX_DESCRIPTORS > ADM_MAX_AMOUNTS ? ADM_MAX_DESCRIPTORS : ADM_MAX_AMOUNTS)

struct text {
    uint8_t bytes[ADM_MAX_DESCRIPTORS * (ADM_MAX_KEY_BYTES + ADM_MAX_VALUE_BYTES + 4) +
                  ADM_MAX_AMOUNTS * (64 + 10) + 16];
    uint64_t used;
};

static void put_number(struct text *text, uint64_t value)
{
    for (uint32_t i = 0; i < 8; i++)
        text->bytes[text->used++] = (uint8_t)(value >> (8 * i));
}

static void put_bytes(struct text *text, struct adm_bytes bytes)
{
    text->bytes[text->used++] = (uint8_t)bytes.length;
    text->bytes[text->used++] = (uint8_t)(bytes.length >> 8);
    admi_copy(text->bytes + text->used, bytes.data, bytes.length);
    text->used += bytes.length;
}

static int compare_bytes(struct adm_bytes a, struct adm_bytes b)
{
    uint64_t shorter = a.length < b.length ? a.length : b.length;
    int order = memcmp(a.data, b.data, (size_t)shorter);

    if (order != 0)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

/* Units by name: ids of declared units differ between gates. */
static struct adm_bytes unit_name(const struct adm_gate *gate, uint32_t unit)
{
    static const char *const built_in[] = { "cost",          "requests", "input_tokens",
                                            "output_tokens", "tokens",   "images" };

    return unit <= ADM_UNIT_IMAGES ? adm_str(built_in[unit])
                                   : admi_names_get(&gate->units, unit - ADM_UNIT_FIRST_DECLARED);
}

/* Indexes in the order of their names; at most 16 of them, so insertion will do. */
static void sort_by_name(const struct adm_bytes *names, uint64_t count, uint32_t *order)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && compare_bytes(names[order[at - 1]], names[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void admi_attempt_digest(const struct adm_gate *gate, const struct adm_request *request,
                         uint8_t out[16])
{
    static const uint8_t no_secret[ADMI_SECRET_BYTES] =
        "attempt digests must be the same in every process";
    struct adm_bytes names[NAMES_MAX] = { { NULL, 0 } };
    uint32_t order[NAMES_MAX];
    struct text text;

    text.used = 0;
    put_number(&text, request->cost);
    put_number(&text, request->descriptor_count);
    for (uint64_t i = 0; i < request->descriptor_count; i++)
        names[i] = request->descriptors[i].key_id == 0
                       ? request->descriptors[i].key
                       : admi_names_get(&gate->keys, request->descriptors[i].key_id - 1);
    sort_by_name(names, request->descriptor_count, order);
    for (uint64_t i = 0; i < request->descriptor_count; i++) {
        put_bytes(&text, names[order[i]]);
        put_bytes(&text, request->descriptors[order[i]].value);
    }
    for (uint64_t i = 0; i < request->amount_count; i++)
        names[i] = unit_name(gate, request->amounts[i].unit);
    sort_by_name(names, request->amount_count, order);
    for (uint64_t i = 0; i < request->amount_count; i++) {
        put_bytes(&text, names[order[i]]);
        put_number(&text, request->amounts[order[i]].value);
    }
    admi_hash128(text.bytes, text.used, no_secret, out);
}
