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

void admi_hash128(const void *data, uint64_t bytes, const uint8_t secret[ADMI_SECRET_BYTES],
                  uint8_t out[16])
{
    XXH128_hash_t hash =
        XXH3_128bits_withSecret(bytes > 0 ? data : "", (size_t)bytes, secret, ADMI_SECRET_BYTES);
    XXH128_canonical_t canonical; /* the same bytes on every machine */

    XXH128_canonicalFromHash(&canonical, hash);
    admi_copy(out, canonical.digest, sizeof canonical.digest);
}

struct adm_id admi_hash_id(struct adm_id id, const uint8_t secret[ADMI_SECRET_BYTES])
{
    XXH128_hash_t hash = XXH3_128bits_withSecret(&id, sizeof id, secret, ADMI_SECRET_BYTES);
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, hash);
    admi_copy(&id, canonical.digest, sizeof id);
    return id;
}
