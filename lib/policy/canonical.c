/* SPDX-License-Identifier: Apache-2.0 */
/* One text for all match blocks that say the same: entries by key, values sorted and each once. */
#include <string.h>

#include "base/memory.h"
#include "policy/parts.h"

/* Counts first, writes in a second round. */
struct writer {
    char *out; /* NULL: only count */
    uint64_t length;
};

static void put(struct writer *writer, const char *text, uint64_t length)
{
    if (writer->out != NULL)
        admi_copy(writer->out + writer->length, text, length);
    writer->length += length;
}

/*
 * In quotes; only these two and control characters need an escape, so that different strings stay
 * different.
 */
static void put_string(struct writer *writer, struct adm_bytes bytes, const char *suffix)
{
    static const char hex[] = "0123456789abcdef";
    const char *text = bytes.data;
    put(writer, "\"", 1);
    for (uint64_t i = 0; i < bytes.length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            put(writer, "\\", 1);
            put(writer, &text[i], 1);
        } else if (c < 0x20) {
            char escape[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
            put(writer, escape, sizeof escape);
        } else {
            put(writer, &text[i], 1);
        }
    }
    put(writer, suffix, strlen(suffix));
    put(writer, "\"", 1);
}

static int compare_keys(struct adm_bytes a, struct adm_bytes b)
{
    uint64_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter == 0 ? 0 : memcmp(a.data, b.data, (size_t)shorter);
    if (order != 0)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

static void put_entries(struct writer *writer, const struct adm_bytes *keys,
                        const struct admi_match_entry *entries, uint32_t count)
{
    uint32_t order[ADMI_MATCH_ENTRIES_MAX];
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = i;
        for (; j > 0 && compare_keys(keys[entries[order[j - 1]].key], keys[entries[i].key]) > 0;
             j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct admi_match_entry *entry = &entries[order[i]];
        if (i > 0)
            put(writer, ",", 1);
        put_string(writer, keys[entry->key], "");
        put(writer, ":[", 2);
        for (uint32_t j = 0; j < entry->value_count; j++) {
            if (j > 0)
                put(writer, ",", 1);
            put_string(writer, entry->values[j].text,
                       entry->values[j].kind == ADMI_VALUE_EXACT ? "" : "*");
        }
        put(writer, "]", 1);
    }
}

/* "not" cannot be a key, so it goes last without any mistake. */
static void put_match(struct writer *writer, const struct adm_bytes *keys,
                      const struct admi_match *match)
{
    put(writer, "{", 1);
    put_entries(writer, keys, match->entries, match->entry_count);
    if (match->has_not) {
        static const char not_block[] = "\"not\":{";
        if (match->entry_count > 0)
            put(writer, ",", 1);
        put(writer, not_block, sizeof not_block - 1);
        put_entries(writer, keys, match->negated, match->negated_count);
        put(writer, "}", 1);
    }
    put(writer, "}", 1);
}

struct adm_bytes admi_match_canonical(struct admi_arena *arena, const struct adm_bytes *keys,
                                      const struct admi_match *match)
{
    struct writer writer = { NULL, 0 };
    put_match(&writer, keys, match);
    uint64_t length = writer.length;
    writer = (struct writer){ admi_arena_allocate(arena, length + 1, 1), 0 };
    if (writer.out == NULL)
        return (struct adm_bytes){ NULL, 0 };
    put_match(&writer, keys, match);
    return (struct adm_bytes){ writer.out, length };
}
