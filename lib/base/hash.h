/* SPDX-License-Identifier: Apache-2.0 */
/* Keyed hashes (XXH3 with a secret): fast, and not to be steered by who does not know the secret.
 */
#ifndef ADMI_HASH_H
#define ADMI_HASH_H

#include <stdint.h>

#include <admit/types.h>

#define ADMI_SECRET_BYTES 192u

/* secret: random bytes, the same for all hashes that are to be compared. data may be NULL when
 * bytes is 0. */
uint64_t admi_hash64(const void *data, uint64_t bytes, const uint8_t secret[ADMI_SECRET_BYTES]);
void admi_hash128(const void *data, uint64_t bytes, const uint8_t secret[ADMI_SECRET_BYTES],
                  uint8_t out[16]);
/* The same of an id, as an id. */
struct adm_id admi_hash_id(struct adm_id id, const uint8_t secret[ADMI_SECRET_BYTES]);

#endif
