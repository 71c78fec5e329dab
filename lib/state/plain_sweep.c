/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep, in the plain backend: a bounded look at what could be forgotten. Partitions first, so that
 * classes and families find theirs gone; scopes are found before their bases only by luck, so a
 * base may need another round. */
#include "state/plain.h"

/* One record, by its number in the order of a round. */
static bool look_at(struct plain *plain, uint64_t number)
{
    for (uint32_t i = 0; i < PLAIN_REGIONS; i++) {
        struct plain_region *region = &plain->regions[i];

        if (number < region->partition_table.high) {
            uint32_t place = (uint32_t)number + 1;

            return region->partitions[place].family != 0 &&
                   admi_plain_partition_reclaim(plain, region, place);
        }
        number -= region->partition_table.high;
    }
    if (number < plain->class_table.high)
        return admi_plain_class_reclaim(plain, (uint32_t)number + 1);
    return admi_plain_family_reclaim(plain, (uint32_t)(number - plain->class_table.high) + 1);
}

adm_status admi_plain_sweep(struct plain *plain, struct adm_op *op)
{
    struct adm_sweep *sweep = op->args.sweep;
    uint64_t round = plain->class_table.high + (uint64_t)plain->family_table.high;

    for (uint32_t i = 0; i < PLAIN_REGIONS; i++)
        round += plain->regions[i].partition_table.high;
    sweep->looked = 0;
    sweep->freed = 0;
    for (; sweep->looked < sweep->budget && plain->sweep_at < round; sweep->looked++)
        sweep->freed += look_at(plain, plain->sweep_at++);
    sweep->done = plain->sweep_at >= round;
    if (sweep->done)
        plain->sweep_at = 0;
    return ADM_OK;
}
