/* SPDX-License-Identifier: Apache-2.0 */
/* Sweep, in a ledger: a bounded look at what could be forgotten. Partitions first, so that
 * classes and families find theirs gone; scopes are found before their bases only by luck, so a
 * base may need another round. */
#include "state/ledger.h"

/* One record, by its number in the order of a round. */
static bool look_at(struct ledger *ledger, uint64_t number)
{
    for (uint32_t i = 0; i < LEDGER_REGIONS; i++) {
        struct ledger_region *region = &ledger->regions[i];

        if (number < region->partition_table.high) {
            uint32_t place = (uint32_t)number + 1;

            return partition_at(region, place)->family != 0 &&
                   admi_ledger_partition_reclaim(ledger, region, place);
        }
        number -= region->partition_table.high;
    }
    if (number < ledger->registry.class_table.high)
        return admi_ledger_class_reclaim(ledger, (uint32_t)number + 1);
    return admi_ledger_family_reclaim(ledger,
                                      (uint32_t)(number - ledger->registry.class_table.high) + 1);
}

adm_status admi_ledger_sweep(struct ledger *ledger, struct adm_op *op)
{
    struct adm_sweep *sweep = op->args.sweep;
    uint64_t round =
        ledger->registry.class_table.high + (uint64_t)ledger->registry.family_table.high;

    for (uint32_t i = 0; i < LEDGER_REGIONS; i++)
        round += ledger->regions[i].partition_table.high;
    sweep->looked = 0;
    sweep->freed = 0;
    for (; sweep->looked < sweep->budget && ledger->sweep_at < round; sweep->looked++)
        sweep->freed += look_at(ledger, ledger->sweep_at++);
    sweep->done = ledger->sweep_at >= round;
    if (sweep->done)
        ledger->sweep_at = 0;
    return ADM_OK;
}
