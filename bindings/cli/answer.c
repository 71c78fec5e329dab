/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP answer that belongs to a decision. An allowed request is answered by the service;
 * only the id is ours. */
#include "answer.h"

#include "json.h"

#include <inttypes.h>
#include <stdbool.h>

static const char *message_of(uint32_t reason)
{
    static const char *const messages[ADM_REASON_COUNT] = {
        [ADM_REASON_RATE_EXCEEDED] = "The rate limit is used up for the moment.",
        [ADM_REASON_CONCURRENCY_EXCEEDED] = "Too many requests are being served at the same time.",
        [ADM_REASON_PRESSURE] = "The service is under pressure.",
        [ADM_REASON_QUOTA_EXCEEDED] = "The quota of this period is used up.",
        [ADM_REASON_UNSATISFIABLE] = "The request is larger than its limit can ever allow.",
        [ADM_REASON_COST_ABOVE_CAP] = "The request is larger than what one request may ask for.",
        [ADM_REASON_NO_POLICY] = "No admission rule covers this request.",
        [ADM_REASON_MISSING_DESCRIPTOR] = "A fact that an admission rule needs is missing.",
        [ADM_REASON_MISSING_AMOUNT] = "An amount that an admission rule needs is missing.",
        [ADM_REASON_POLICY_TOO_WIDE] = "Too many admission rules cover this request.",
        [ADM_REASON_KEY_SPACE_FULL] = "There is no room to account for this request.",
        [ADM_REASON_STATE_UNAVAILABLE] = "The admission state cannot be reached.",
    };

    return reason < ADM_REASON_COUNT && messages[reason] != NULL ? messages[reason]
                                                                 : "The request is not admitted.";
}

#define LONGEST_WAIT_MS 120000u /* no client waits longer */

/* Can the same request pass soon, without anybody changing something? */
static bool may_clear_soon(const struct adm_decision *decision)
{
    switch (decision->reason) {
    case ADM_REASON_RATE_EXCEEDED:
    case ADM_REASON_QUOTA_EXCEEDED:
    case ADM_REASON_CONCURRENCY_EXCEEDED:
    case ADM_REASON_PRESSURE:
    case ADM_REASON_KEY_SPACE_FULL:
    case ADM_REASON_STATE_UNAVAILABLE:
        return decision->retry_after_ms <= LONGEST_WAIT_MS;
    default:
        return false;
    }
}

const char *answer_phrase(uint32_t http_status)
{
    switch (http_status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 429:
        return "Too Many Requests";
    default:
        return "Service Unavailable";
    }
}

static void print_body(FILE *out, const struct adm_decision *decision)
{
    fputs("{\"error\":{\"code\":", out);
    json_print_text(out, adm_reason_name(decision->reason));
    fputs(",\"message\":", out);
    json_print_text(out, message_of(decision->reason));
    fputs(",\"source\":\"admission\"}}", out);
}

void answer_print(FILE *out, const struct adm_decision *decision)
{
    uint64_t seconds = adm_decision_retry_after_s(decision);
    char id[33];

    adm_id_format(decision->id, id);
    fprintf(out, "HTTP/1.1 %u %s\n", decision->http_status, answer_phrase(decision->http_status));
    if (seconds > 0)
        fprintf(out, "Retry-After: %" PRIu64 "\nretry-after-ms: %" PRIu64 "\n", seconds,
                decision->retry_after_ms);
    fprintf(out, "X-Admission-Decision-Id: %s\n", id);
    if (decision->verdict == ADM_VERDICT_ALLOW)
        return;
    if (!may_clear_soon(decision))
        fputs("x-should-retry: false\n", out);
    fputs("Content-Type: application/json\n\n", out);
    print_body(out, decision);
    fputc('\n', out);
}

void answer_print_json(FILE *out, const struct adm_decision *decision)
{
    uint64_t seconds = adm_decision_retry_after_s(decision);
    char id[33];

    adm_id_format(decision->id, id);
    fprintf(out, "{\"status\":%u,\"headers\":{", decision->http_status);
    if (seconds > 0)
        fprintf(out, "\"Retry-After\":\"%" PRIu64 "\",\"retry-after-ms\":\"%" PRIu64 "\",", seconds,
                decision->retry_after_ms);
    if (decision->verdict != ADM_VERDICT_ALLOW && !may_clear_soon(decision))
        fputs("\"x-should-retry\":\"false\",", out);
    fprintf(out, "\"X-Admission-Decision-Id\":\"%s\"},\"body\":", id);
    if (decision->verdict == ADM_VERDICT_ALLOW)
        fputs("null", out);
    else
        print_body(out, decision);
    fputc('}', out);
}
