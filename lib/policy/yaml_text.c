/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON text that is written from YAML, and the map of its places. */
#include "policy/yaml_text.h"

#include <stdbool.h>

#include "base/memory.h"

/* The old memory is gone only when the new one is there. */
static bool resize(const struct adm_allocator *allocator, void **memory, uint64_t *capacity,
                   uint64_t count, uint64_t item)
{
    void *fresh = admi_allocate(allocator, count, item);
    if (fresh == NULL)
        return false;
    admi_copy(fresh, *memory, (count < *capacity ? count : *capacity) * item);
    admi_release(allocator, *memory, *capacity, item);
    *memory = fresh;
    *capacity = count;
    return true;
}

/* A quarter more, or what is needed: both are there at once for a moment. */
static bool grow(struct admi_yaml *yaml, void **memory, uint64_t *capacity, uint64_t needed,
                 uint64_t item)
{
    if (needed <= *capacity)
        return true;
    uint64_t more = *capacity < 64 ? 64 : *capacity + *capacity / 4;
    if (!resize(yaml->allocator, memory, capacity, more < needed ? needed : more, item))
        yaml->failed = true;
    return !yaml->failed;
}

static bool reserve(struct admi_yaml *yaml, uint64_t length)
{
    if (yaml->length + length <= yaml->capacity)
        return true;
    void *memory = yaml->json;
    bool ok = grow(yaml, &memory, &yaml->capacity, yaml->length + length, 1);
    yaml->json = memory;
    return ok;
}

void admi_yaml_put(struct admi_yaml *yaml, const void *bytes, uint64_t length)
{
    if (!reserve(yaml, length))
        return;
    admi_copy(yaml->json + yaml->length, bytes, length);
    yaml->length += length;
}

/* The letter behind the backslash; u: four digits follow; 0: no escape is needed. */
static char escape_of(uint8_t c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)c;
    default:
        return c < 0x20 ? 'u' : '\0';
    }
}

/* How many bytes from the first on need no escape. */
static uint64_t plain_bytes(const uint8_t *bytes, uint64_t length)
{
    uint64_t count = 0;
    while (count < length && bytes[count] >= 0x20 && bytes[count] != '"' && bytes[count] != '\\')
        count++;
    return count;
}

/* There is room. */
static void append(struct admi_yaml *yaml, const void *bytes, uint64_t length)
{
    admi_copy(yaml->json + yaml->length, bytes, length);
    yaml->length += length;
}

static void append_escape(struct admi_yaml *yaml, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[] = { '\\', escape_of(c), '0', '0', hex[c >> 4], hex[c & 15] };
    append(yaml, escape, escape[1] == 'u' ? 6 : 2);
}

void admi_yaml_put_string(struct admi_yaml *yaml, const uint8_t *bytes, uint64_t length)
{
    uint64_t first = plain_bytes(bytes, length), written = length + 2;
    for (uint64_t i = first; i < length; i++) {
        char escape = escape_of(bytes[i]);
        written += escape == '\0' ? 0 : escape == 'u' ? 5 : 1;
    }
    if (!reserve(yaml, written)) /* all at once: it may be most of the text */
        return;
    yaml->json[yaml->length++] = '"';
    append(yaml, bytes, first);
    for (uint64_t i = first; i < length;) {
        append_escape(yaml, bytes[i++]);
        uint64_t plain = plain_bytes(bytes + i, length - i);
        append(yaml, bytes + i, plain);
        i += plain;
    }
    yaml->json[yaml->length++] = '"';
}

void admi_yaml_mark(struct admi_yaml *yaml, uint32_t start, uint32_t end)
{
    void *memory = yaml->places;
    if (!grow(yaml, &memory, &yaml->place_capacity, yaml->place_count + 1, sizeof *yaml->places))
        return;
    yaml->places = memory;
    yaml->places[yaml->place_count++] =
        (struct admi_yaml_place){ (uint32_t)yaml->length, start, end };
}

adm_status admi_yaml_fit(struct admi_yaml *yaml)
{
    void *json = yaml->json, *places = yaml->places;
    bool ok = resize(yaml->allocator, &json, &yaml->capacity, yaml->length, 1);
    yaml->json = json;
    ok = ok && resize(yaml->allocator, &places, &yaml->place_capacity, yaml->place_count,
                      sizeof *yaml->places);
    yaml->places = places;
    return ok ? ADM_OK : ADM_E_NOMEM;
}

const struct admi_yaml_place *admi_yaml_find(const struct admi_yaml *yaml, uint32_t json)
{
    uint64_t low = 0, high = yaml->place_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (yaml->places[middle].json <= json)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &yaml->places[low - 1];
}

void admi_yaml_fini(struct admi_yaml *yaml)
{
    admi_release(yaml->allocator, yaml->json, yaml->capacity, 1);
    admi_release(yaml->allocator, yaml->places, yaml->place_capacity, sizeof *yaml->places);
    *yaml = (struct admi_yaml){ .allocator = yaml->allocator };
}
