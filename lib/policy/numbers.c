/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of rules, overrides, table entries and allowances: reading, overlaying, checking. */
#include "policy/numbers.h"

struct admi_numbers admi_numbers_none(void)
{
    struct admi_numbers numbers = { .max_age_ns = ADMI_MAX_AGE_DEFAULT, .fraction = { 1, 0 } };
    return numbers;
}

static bool read_number(const struct admi_document *document, struct admi_node node,
                        const struct admi_field *field, struct admi_numbers *out)
{
    void *member = (char *)out + field->offset;
    switch (field->kind) {
    case ADMI_FIELD_WHOLE:
        return admi_read_whole(document, node, field->least, field->most, member);
    case ADMI_FIELD_DURATION:
        return admi_read_duration(document, node, member);
    case ADMI_FIELD_FRACTION:
        return admi_read_fraction(document, node, member);
    case ADMI_FIELD_DECIMAL:
        return admi_read_decimal(document, node, member);
    case ADMI_FIELD_TEXT:
    case ADMI_FIELD_WORD:
    case ADMI_FIELD_BOOLEAN:
    case ADMI_FIELD_TRUE:
    case ADMI_FIELD_ID:
    case ADMI_FIELD_VERSION:
    case ADMI_FIELD_UNIT:
    case ADMI_FIELD_KEY:
    case ADMI_FIELD_VALUE:
    case ADMI_FIELD_KEYS:
    case ADMI_FIELD_UNITS:
    case ADMI_FIELD_LABELS:
    case ADMI_FIELD_MATCH:
    case ADMI_FIELD_OBJECTS:
    case ADMI_FIELD_OBJECT:
    case ADMI_FIELD_RULE_IDS:
    case ADMI_FIELD_WHOLE_OR_NULL:
        break;
    }
    return false; /* no number has another kind */
}

bool admi_numbers_read(const struct admi_document *document,
                       const struct admi_found numbers[ADMI_NUMBER_COUNT], struct admi_numbers *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < ADMI_NUMBER_COUNT; i++) {
        const struct admi_field *field = &admi_number_fields[i];
        if (!numbers[i].present)
            continue;
        if (field->comparison != 0 && (out->given & ADMI_GIVEN_THRESHOLD) != 0) {
            admi_report_message(&document->source, ADMI_DIAG_OPERATOR, numbers[i].node.token,
                                "expected exactly one of gt, gte, lt and lte");
            ok = false;
            continue;
        }
        if (!read_number(document, numbers[i].node, field, out))
            ok = false;
        out->given |= field->given;
        if (field->comparison != 0)
            out->comparison = field->comparison;
    }
    return ok;
}

struct admi_numbers admi_numbers_overlay(const struct admi_numbers *base,
                                         const struct admi_numbers *given)
{
    struct admi_numbers out = *base;
    uint32_t bits = given->given;
    out.given |= bits;
    if ((bits & ADMI_GIVEN_CAPACITY) != 0)
        out.capacity = given->capacity;
    if ((bits & ADMI_GIVEN_REFILL) != 0)
        out.refill = given->refill;
    if ((bits & ADMI_GIVEN_PER) != 0)
        out.per_ns = given->per_ns;
    if ((bits & ADMI_GIVEN_LIMIT) != 0)
        out.limit = given->limit;
    if ((bits & ADMI_GIVEN_LEASE_TTL) != 0)
        out.lease_ttl_ns = given->lease_ttl_ns;
    if ((bits & ADMI_GIVEN_PARK) != 0)
        out.park_ns = given->park_ns;
    if ((bits & ADMI_GIVEN_FRACTION) != 0)
        out.fraction = given->fraction;
    if ((bits & ADMI_GIVEN_THRESHOLD) != 0) {
        out.threshold = given->threshold;
        out.comparison = given->comparison;
    }
    if ((bits & ADMI_GIVEN_MAX_AGE) != 0)
        out.max_age_ns = given->max_age_ns;
    return out;
}

bool admi_numbers_rate_ok(const struct admi_numbers *numbers)
{
    return numbers->refill <= numbers->per_ns; /* 10^9 per second is one per nanosecond */
}

enum admi_fit admi_numbers_fit(enum admi_rule_type type, const struct admi_numbers *base,
                               const struct admi_numbers *given)
{
    uint32_t legal = 0;
    for (uint32_t i = 0; i < ADMI_NUMBER_COUNT; i++)
        if ((admi_number_fields[i].types & ADMI_TYPE_BIT(type)) != 0)
            legal |= admi_number_fields[i].given;
    if ((given->given & ~legal) != 0)
        return ADMI_FIT_FIELD;
    if ((given->given & ADMI_GIVEN_THRESHOLD) != 0 && given->comparison != base->comparison)
        return ADMI_FIT_OPERATOR;
    struct admi_numbers whole = admi_numbers_overlay(base, given);
    return type != ADMI_TOKEN_BUCKET || admi_numbers_rate_ok(&whole) ? ADMI_FIT_OK : ADMI_FIT_RATE;
}

/* At the refill, or at the per of an override that has no refill; the note is at the other one. */
static void report_rate(const struct admi_document *document, struct admi_node object,
                        const struct admi_found *refill, const struct admi_found *per)
{
    static const char expected[] = "expected refill / per of at most 1000000000 per second";
    const struct admi_source *source = &document->source;
    const struct admi_found *at = refill->present ? refill : per;
    struct admi_diag_entry *entry = admi_report_message(
        source, ADMI_DIAG_RATE, at->present ? at->node.token : object.token, expected);
    if (refill->present && per->present)
        admi_report_note(source, entry, per->node.token, false, "per is given here");
    else if (refill->present)
        admi_report_note_of_rule(source, entry, object.token, "per", "per is given here");
    else
        admi_report_note_of_rule(source, entry, object.token, "refill", "refill is given here");
}

void admi_numbers_report(const struct admi_document *document, struct admi_node object,
                         const struct admi_found numbers[ADMI_NUMBER_COUNT], enum admi_fit fit)
{
    uint32_t at = object.token;
    if (fit == ADMI_FIT_RATE)
        report_rate(document, object, &numbers[ADMI_NUMBER_REFILL], &numbers[ADMI_NUMBER_PER]);
    if (fit == ADMI_FIT_OPERATOR) {
        for (uint32_t i = ADMI_NUMBER_GT; i <= ADMI_NUMBER_LTE; i++)
            if (numbers[i].present)
                at = numbers[i].node.token;
        admi_report_message(&document->source, ADMI_DIAG_OPERATOR, at,
                            "expected the operator that the rule itself uses");
    }
}
