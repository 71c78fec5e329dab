/* SPDX-License-Identifier: Apache-2.0 */
#include "state/meter.h"

uint32_t admi_meter_of(const struct admi_meters *of, uint32_t unit)
{
    uint32_t i = 0;

    while (i < of->count && of->meters[i].unit != unit)
        i++;
    return i < of->count ? i : ADMI_METER_NONE;
}

bool admi_meter_is_final(const struct admi_meters *of, uint32_t meter)
{
    return of->final ||
           (meter != ADMI_METER_NONE && (of->meters[meter].flags & ADMI_METER_FINAL) != 0);
}

uint64_t admi_meter_total(const struct admi_meters *of, uint32_t meter)
{
    return meter != ADMI_METER_NONE ? of->meters[meter].total : 0;
}

/* One reported total. */
static uint32_t report(struct admi_meters *of, const struct adm_amount *total, bool final_all)
{
    uint32_t meter = admi_meter_of(of, total->unit);
    bool final = final_all || (total->flags & ADM_AMOUNT_FINAL) != 0;

    if (meter == ADMI_METER_NONE || admi_meter_is_final(of, meter))
        return 0;
    if (final || total->value >= of->meters[meter].total)
        of->meters[meter].total = total->value < ADM_MAX_AMOUNT ? total->value : ADM_MAX_AMOUNT;
    if (final)
        of->meters[meter].flags |= ADMI_METER_FINAL;
    of->meters[meter].flags &=
        ~ADM_METER_F_DERIVED; /* tokens that a report names are not made of parts any more */
    return 1u << meter;
}

/* tokens = input_tokens + output_tokens, once one of these was reported. */
static uint32_t derive(struct admi_meters *of, uint32_t reported, bool final_all)
{
    uint32_t tokens = admi_meter_of(of, ADM_UNIT_TOKENS);
    uint32_t input = admi_meter_of(of, ADM_UNIT_INPUT_TOKENS);
    uint32_t output = admi_meter_of(of, ADM_UNIT_OUTPUT_TOKENS);

    if (tokens == ADMI_METER_NONE || (of->meters[tokens].flags & ADM_METER_F_DERIVED) == 0 ||
        admi_meter_is_final(of, tokens) || (reported & (1u << input | 1u << output)) == 0)
        return 0;
    of->meters[tokens].total = admi_meter_total(of, input) + admi_meter_total(of, output);
    if (final_all || (admi_meter_is_final(of, input) && admi_meter_is_final(of, output)))
        of->meters[tokens].flags |= ADMI_METER_FINAL;
    return 1u << tokens;
}

uint32_t admi_meter_settle(struct admi_meters *of, const struct adm_settlement *settle)
{
    bool final_all = settle->final_all != 0;
    uint32_t reported = 0;

    for (uint32_t i = 0; i < settle->total_count; i++)
        reported |= report(of, &settle->totals[i], final_all);
    reported |= derive(of, reported, final_all);
    of->final = of->final || final_all;
    return reported;
}
