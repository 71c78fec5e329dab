/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of admit/types.h: words for numbers, ids as text, the names inside a decision. */
#include <admit/types.h>

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const reasons[] = {
    [ADM_REASON_ALLOWED] = "allowed",
    [ADM_REASON_EMERGENCY_ALLOWED] = "emergency_allowed",
    [ADM_REASON_RATE_EXCEEDED] = "rate_exceeded",
    [ADM_REASON_CONCURRENCY_EXCEEDED] = "concurrency_exceeded",
    [ADM_REASON_PRESSURE] = "pressure",
    [ADM_REASON_QUOTA_EXCEEDED] = "quota_exceeded",
    [ADM_REASON_UNSATISFIABLE] = "unsatisfiable",
    [ADM_REASON_COST_ABOVE_CAP] = "cost_above_cap",
    [ADM_REASON_NO_POLICY] = "no_policy",
    [ADM_REASON_MISSING_DESCRIPTOR] = "missing_descriptor",
    [ADM_REASON_MISSING_AMOUNT] = "missing_amount",
    [ADM_REASON_POLICY_TOO_WIDE] = "policy_too_wide",
    [ADM_REASON_KEY_SPACE_FULL] = "key_space_full",
    [ADM_REASON_STATE_UNAVAILABLE] = "state_unavailable",
};
_Static_assert(COUNT(reasons) == ADM_REASON_COUNT, "every reason has a word");

static const char *const outcomes[] = {
    [ADM_OUTCOME_UNKNOWN] = "unknown",   [ADM_OUTCOME_RELEASED] = "released",
    [ADM_OUTCOME_ALREADY] = "already",   [ADM_OUTCOME_LATE] = "late",
    [ADM_OUTCOME_QUEUED] = "queued",     [ADM_OUTCOME_RENEWED] = "renewed",
    [ADM_OUTCOME_LOST] = "lost",         [ADM_OUTCOME_SETTLED] = "settled",
    [ADM_OUTCOME_DIVERTED] = "diverted",
};
_Static_assert(COUNT(outcomes) == ADM_OUTCOME_COUNT, "every outcome has a word");

static const char *const results[] = {
    [ADM_RESULT_OK] = "ok",
    [ADM_RESULT_ERROR] = "error",
    [ADM_RESULT_TIMEOUT] = "timeout",
    [ADM_RESULT_CANCELLED] = "cancelled",
    [ADM_RESULT_DIVERTED] = "diverted",
};
_Static_assert(COUNT(results) == ADM_RESULT_COUNT, "every result has a word");

struct adm_bytes adm_str(const char *text)
{
    struct adm_bytes bytes = { text, text == NULL ? 0 : strlen(text) };
    return bytes;
}

const char *adm_reason_name(uint32_t reason)
{
    return reason < COUNT(reasons) ? reasons[reason] : "?";
}

const char *adm_outcome_name(uint32_t outcome)
{
    return outcome < COUNT(outcomes) ? outcomes[outcome] : "?";
}

const char *adm_result_name(uint32_t result)
{
    return result < COUNT(results) ? results[result] : "?";
}

/* The n-th string of names. Names are written in order until the first that does not fit, so a
 * missing one is past the end. The caller may have given a struct that ends early, or have
 * overwritten it: never look outside. */
static const char *name_at(const struct adm_decision *decision, uint64_t n)
{
    const uint64_t before = offsetof(struct adm_decision, names);
    if (decision->size <= before)
        return NULL;
    uint64_t bytes = decision->size - before;
    if (bytes > sizeof decision->names)
        bytes = sizeof decision->names;
    if (bytes > decision->names_used)
        bytes = decision->names_used;
    const char *at = decision->names;
    const char *end = at + bytes;
    while (at < end) {
        const char *nul = memchr(at, 0, (size_t)(end - at));
        if (nul == NULL)
            return NULL;
        if (n == 0)
            return at;
        n--;
        at = nul + 1;
    }
    return NULL;
}

const char *adm_decision_rule(const struct adm_decision *decision, uint32_t i)
{
    if (decision == NULL || i >= decision->rule_count)
        return NULL;
    return name_at(decision, i);
}

const char *adm_decision_shadow(const struct adm_decision *decision, uint32_t i)
{
    if (decision == NULL || i >= decision->shadow_count)
        return NULL;
    return name_at(decision, (uint64_t)decision->rule_count + i);
}

uint64_t adm_decision_retry_after_s(const struct adm_decision *decision)
{
    if (decision == NULL)
        return 0;
    return decision->retry_after_ms / 1000 + (decision->retry_after_ms % 1000 != 0);
}

void adm_id_format(struct adm_id id, char out[33])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < 16; i++) {
        out[i] = digits[id.high >> (60 - 4 * i) & 15];
        out[16 + i] = digits[id.low >> (60 - 4 * i) & 15];
    }
    out[32] = 0;
}

/* The value of a hex digit in either case, or 16. By comparison: <ctype.h> asks the locale. */
static uint64_t digit_value(unsigned char digit)
{
    if (digit >= '0' && digit <= '9')
        return (uint64_t)(digit - '0');
    if (digit >= 'a' && digit <= 'f')
        return (uint64_t)(digit - 'a' + 10);
    if (digit >= 'A' && digit <= 'F')
        return (uint64_t)(digit - 'A' + 10);
    return 16;
}

adm_status adm_id_parse(struct adm_bytes text, struct adm_id *out)
{
    if (text.length != 32 || text.data == NULL || out == NULL)
        return ADM_E_INVALID_ARGUMENT;
    const unsigned char *at = text.data;
    uint64_t half[2] = { 0, 0 };
    for (unsigned i = 0; i < 32; i++) {
        uint64_t value = digit_value(at[i]);
        if (value > 15)
            return ADM_E_INVALID_ARGUMENT;
        half[i / 16] = half[i / 16] << 4 | value;
    }
    out->high = half[0];
    out->low = half[1];
    return ADM_OK;
}
