/* SPDX-License-Identifier: Apache-2.0 */
/* What a lease counts: running totals of units, and when they are final. */
#ifndef ADMI_METER_H
#define ADMI_METER_H

#include <stdbool.h>

#include <admit/backend.h>

#define ADMI_METERS_MAX  18u
#define ADMI_METER_NONE  ADMI_METERS_MAX
#define ADMI_METER_FINAL 2u /* in flags, beside ADM_METER_F_DERIVED */

struct admi_meters {
    struct adm_meter *meters;
    uint32_t count;
    bool final; /* all of them */
};

/* The index of a unit, or ADMI_METER_NONE. */
uint32_t admi_meter_of(const struct admi_meters *of, uint32_t unit);
bool admi_meter_is_final(const struct admi_meters *of, uint32_t meter);
/* 0 when there is none. */
uint64_t admi_meter_total(const struct admi_meters *of, uint32_t meter);

/* Totals so far are reported: a smaller one that is not final changes nothing, a final unit is not
 * touched again, a unit that is not counted is ignored; tokens follow from their parts until a
 * report names them. The meters as a set that were open to a report, whether or not they moved. */
uint32_t admi_meter_settle(struct admi_meters *of, const struct adm_settlement *settle);

#endif
