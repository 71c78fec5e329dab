/* SPDX-License-Identifier: Apache-2.0 */
/* Of the odometer, what is for backends inside the library: the grid as a number of its own. */
#ifndef ADMI_ODOMETER_H
#define ADMI_ODOMETER_H

#include <admit/backend.h>

#define ADMI_REPLICAS_MAX                                                                          \
    1024u /* per-replica classes choose their grid for this many, so that counts rarely move it */
#define ADMI_QUOTA_MAX                                                                             \
    ((UINT64_C(1) << 44) - 1) /* a quota word has 44 bits for what is used, and saturates */

/* The finest grid (shift) on which numbers up to scale times these stay in range. */
uint32_t admi_odometer_shift(uint64_t capacity, uint64_t refill, uint64_t per_ns, uint64_t scale);

/* adm_odometer_init() and adm_odometer_change() with the grid chosen by the caller; finest must not
 * be finer than admi_odometer_shift() of these numbers. */
void admi_odometer_init_on(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                           uint64_t refill, uint64_t per_ns, uint32_t shift);
uint32_t admi_odometer_change_on(struct adm_odometer *odometer, uint64_t now_ns, uint64_t capacity,
                                 uint64_t refill, uint64_t per_ns, uint32_t finest);

/* The reading V(t). */
int64_t admi_odometer_reading(const struct adm_odometer *odometer, uint64_t now_ns);

/* Is the bucket in no way different from one that was never seen? Full, or held down by nothing but
 * the floor, as all. */
int admi_bucket_is_as_new(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty);
/* The moment from which that holds, if nothing is taken meanwhile; UINT64_MAX: never. */
uint64_t admi_bucket_as_new_at(const struct adm_odometer *odometer, uint64_t now_ns, int64_t empty);
/* Does a raised capacity no longer hold anybody down? */
int admi_odometer_floor_is_spent(const struct adm_odometer *odometer, uint64_t now_ns);

#endif
