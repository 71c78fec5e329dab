/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides of a rule: the first whose block holds replaces numbers, or switches the rule off. */
#include "policy/overrides.h"

#include "base/memory.h"
#include "base/sort.h"
#include "policy/hashing.h"
#include "policy/numbers.h"

void admi_lease_check(struct admi_loader *loader, struct admi_node node, uint64_t lease_ttl_ns)
{
    uint64_t timeout = loader->parts->policy.hard_timeout_ns;
    if (timeout > 0 && lease_ttl_ns > 0 && lease_ttl_ns <= timeout)
        admi_report_message(
            &loader->document.source, ADMI_DIAG_SHORT_LEASE, node.token,
            "a lease_ttl that is not above hard_timeout may end while the work still runs");
}

static bool has_numbers(const struct admi_found numbers[ADMI_NUMBER_COUNT])
{
    for (uint32_t i = 0; i < ADMI_NUMBER_COUNT; i++)
        if (numbers[i].present)
            return true;
    return false;
}

/* true: it is off, and nothing else. */
static bool read_off(struct admi_loader *loader, const struct admi_found *off,
                     const struct admi_found numbers[ADMI_NUMBER_COUNT])
{
    if (!off->present)
        return false;
    if (!admi_node_is(&loader->document, off->node, ADMI_JSON_TRUE))
        admi_report_expected(&loader->document.source, ADMI_DIAG_OVERRIDE, off->node.token,
                             "true, or no off at all");
    else if (has_numbers(numbers))
        admi_report_message(&loader->document.source, ADMI_DIAG_OVERRIDE, off->node.token,
                            "expected either off or numbers, found both");
    return true;
}

static void read_override(struct admi_loader *loader, struct admi_node node,
                          const struct admi_rule *rule, bool complete, struct admi_override *out)
{
    struct admi_found own[ADMI_OVERRIDE_COUNT], numbers[ADMI_NUMBER_COUNT];
    const struct admi_document *document = &loader->document;
    if (!admi_fields_find(document, node, &admi_override_object, ADMI_TYPE_BIT(rule->type), own,
                          numbers))
        return;
    bool ok = own[ADMI_OVERRIDE_WHEN].present &&
              admi_match_read(loader, own[ADMI_OVERRIDE_WHEN].node, &out->when);
    out->off = read_off(loader, &own[ADMI_OVERRIDE_OFF], numbers);
    out->numbers = rule->numbers;
    struct admi_numbers given = admi_numbers_none();
    if (admi_numbers_read(document, numbers, &given) && complete) {
        enum admi_fit fit = admi_numbers_fit(rule->type, &rule->numbers, &given);
        if (fit != ADMI_FIT_OK)
            admi_numbers_report(document, node, numbers, fit);
        out->numbers = admi_numbers_overlay(&rule->numbers, &given);
    }
    if (numbers[ADMI_NUMBER_PARK].present)
        admi_report_message(&document->source, ADMI_DIAG_NOT_IN_FORCE,
                            numbers[ADMI_NUMBER_PARK].node.token,
                            "park is read and checked, but no request is parked yet");
    if (numbers[ADMI_NUMBER_LEASE_TTL].present)
        admi_lease_check(loader, numbers[ADMI_NUMBER_LEASE_TTL].node, given.lease_ttl_ns);
    if (ok && loader->building)
        out->origin =
            admi_match_canonical(&loader->parts->arena, loader->parts->policy.keys, &out->when);
}

/* ---- those that can never apply ---- */

struct origin {
    uint64_t hash;
    uint32_t index, token;
};

static int compare(const void *a, const void *b, const void *context)
{
    const struct origin *one = a, *two = b;
    const struct admi_override *overrides = context;
    if (one->hash != two->hash)
        return one->hash < two->hash ? -1 : 1;
    struct adm_bytes s = overrides[one->index].origin, t = overrides[two->index].origin;
    if (s.length != t.length)
        return s.length < t.length ? -1 : 1;
    return one->index < two->index
               ? -1
               : one->index > two->index; /* equal hash and length: equal, or 2^-64 */
}

/*
 * A second override with the same block would be a second class of the same name: it is left out.
 * Returns how many are kept, in order.
 */
static uint32_t drop_unreachable(struct admi_loader *loader, struct admi_override *overrides,
                                 struct origin *origins, uint32_t count)
{
    admi_sort(origins, count, sizeof *origins, compare, overrides);
    for (uint32_t i = 1, first = 0; i < count; i++) {
        struct adm_bytes one = overrides[origins[first].index].origin,
                         two = overrides[origins[i].index].origin;
        if (!admi_bytes_equal(one, two)) {
            first = i;
            continue;
        }
        admi_report_note(
            &loader->document.source,
            admi_report_message(
                &loader->document.source, ADMI_DIAG_UNREACHABLE_OVERRIDE, origins[i].token,
                "an override before this one has the same when, so this one never applies"),
            origins[first].token, false, "this one applies");
        origins[i].hash = 0;
        origins[i].token = ADMI_JSON_NONE;
    }
    for (uint32_t i = 0; i < count; i++)
        if (origins[i].token == ADMI_JSON_NONE)
            overrides[origins[i].index].origin.data = NULL;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (overrides[i].origin.data != NULL)
            overrides[kept++] = overrides[i];
    return kept;
}

static void check_overrides(struct admi_loader *loader, struct admi_node node,
                            const struct admi_rule *rule, bool complete)
{
    const struct admi_document *document = &loader->document;
    struct admi_node item;
    for (bool more = admi_node_first(node, &item); more && !admi_diags_full(document->source.diags);
         more = admi_node_next(document, &item)) {
        struct admi_override unused = { .off = false };
        read_override(loader, item, rule, complete, &unused);
    }
}

static void build_overrides(struct admi_loader *loader, struct admi_node node,
                            struct admi_rule *rule)
{
    const struct admi_document *document = &loader->document;
    uint32_t count = admi_node_count(node), i = 0;
    struct admi_override *overrides =
        admi_arena_allocate(&loader->parts->arena, count, sizeof *overrides);
    struct origin *origins = admi_allocate(loader->scratch.allocator, count, sizeof *origins);
    if (overrides == NULL || origins == NULL) {
        loader->scratch.failed = true;
        admi_release(loader->scratch.allocator, origins, count, sizeof *origins);
        return;
    }
    struct admi_node item;
    for (bool more = admi_node_first(node, &item); more; more = admi_node_next(document, &item)) {
        read_override(loader, item, rule, true, &overrides[i]);
        origins[i] = (struct origin){ admi_policy_hash(overrides[i].origin), i, item.token };
        i++;
    }
    if (!loader->parts->arena.failed) {
        document->source.diags->quiet = false; /* this is found here only */
        rule->override_count = drop_unreachable(loader, overrides, origins, i);
        document->source.diags->quiet = true;
        rule->overrides = overrides;
    }
    admi_release(loader->scratch.allocator, origins, count, sizeof *origins);
}

void admi_overrides_read(struct admi_loader *loader, struct admi_node node, struct admi_rule *rule,
                         bool complete)
{
    if (!admi_read_array(&loader->document, node, 0, UINT32_MAX))
        return;
    if (loader->building)
        build_overrides(loader, node, rule);
    else
        check_overrides(loader, node, rule, complete);
}
