/* SPDX-License-Identifier: Apache-2.0 */
#include "state/take.h"

#include "state/meter.h"

bool admi_take_is_legal(const struct adm_take *take)
{
    uint32_t shadow = 0;

    for (uint32_t i = 0; i < take->term_count; i++) {
        const struct adm_term *term = &take->terms[i];

        shadow += (term->flags & ADM_TERM_F_SHADOW) != 0;
        /* Derived tokens are the sum of two amounts. */
        if (term->amount > 2 * ADM_MAX_AMOUNT || term->limit > ADM_MAX_AMOUNT)
            return false;
        if (term->kind == ADM_KIND_CONCURRENCY && (term->flags & ADM_TERM_F_SHADOW) == 0 &&
            term->amount > 0 && (take->flags & ADM_TAKE_F_LEASE) == 0)
            return false; /* it would be held for ever */
    }
    if (shadow > ADM_MAX_TERMS || take->term_count - shadow > ADM_MAX_TERMS ||
        take->meter_count > ADMI_METERS_MAX)
        return false;
    if ((take->flags & ADM_TAKE_F_LEASE) != 0 && take->ttl_ns == 0)
        return false;
    return take->memo.length <= ADM_MEMO_BYTES && take->mode <= ADM_TAKE_JUDGE;
}

void admi_take_clear_results(struct adm_take *take)
{
    take->verdict = ADM_VERDICT_DENY;
    take->repeated = ADM_REPEAT_NONE;
    take->lease = (struct adm_id){ 0, 0 };
    take->memo_out_length = 0;
    for (uint32_t i = 0; i < take->term_count; i++) {
        take->terms[i].verdict = ADM_TERM_PASS;
        take->terms[i].level = 0;
        take->terms[i].passes_at_ns = UINT64_MAX;
    }
}
