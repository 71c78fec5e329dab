/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that includes xxhash.h. Inlined: a short key costs about as much as the call into
 * the shared library would, and no XXH symbol can clash with the host's own. */
#include "base/hash.h"

#include "base/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t admi_hash64(const void *data, uint64_t bytes, const uint8_t secret[ADMI_SECRET_BYTES])
{
    return XXH3_64bits_withSecret(bytes > 0 ? data : "", (size_t)bytes, secret, ADMI_SECRET_BYTES);
}

/* The most significant byte first, whatever the machine. */
static inline void write_hash(XXH128_hash_t hash, uint8_t out[16])
{
    for (uint32_t i = 0; i < 8; i++) {
        out[i] = (uint8_t)(hash.high64 >> (56 - 8 * i));
        out[8 + i] = (uint8_t)(hash.low64 >> (56 - 8 * i));
    }
}

void admi_hash128(const void *data, uint64_t bytes, const uint8_t secret[ADMI_SECRET_BYTES],
                  uint8_t out[16])
{
    write_hash(
        XXH3_128bits_withSecret(bytes > 0 ? data : "", (size_t)bytes, secret, ADMI_SECRET_BYTES),
        out);
}

struct adm_id admi_hash_id(struct adm_id id, const uint8_t secret[ADMI_SECRET_BYTES])
{
    uint8_t bytes[sizeof id];

    write_hash(XXH3_128bits_withSecret(&id, sizeof id, secret, ADMI_SECRET_BYTES), bytes);
    admi_copy(&id, bytes, sizeof id);
    return id;
}
