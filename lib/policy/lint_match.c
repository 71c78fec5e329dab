/* SPDX-License-Identifier: Apache-2.0 */
/* Which matches cover which: cautious, so that a finding is never a false alarm. */
#include <string.h>

#include "base/memory.h"
#include "policy/lint.h"

static bool value_covers(const struct admi_match_value *wide, const struct admi_match_value *narrow)
{
    if (wide->kind == ADMI_VALUE_PRESENT)
        return true;
    if (narrow->kind == ADMI_VALUE_PRESENT)
        return false;
    if (wide->kind == ADMI_VALUE_EXACT)
        return narrow->kind == ADMI_VALUE_EXACT && admi_bytes_equal(wide->text, narrow->text);
    return narrow->text.length >= wide->text.length &&
           memcmp(narrow->text.data, wide->text.data, (size_t)wide->text.length) == 0;
}

static bool entry_covers(const struct admi_match_entry *wide, const struct admi_match_entry *narrow)
{
    if (wide->key != narrow->key)
        return false;
    for (uint32_t i = 0; i < narrow->value_count; i++) {
        bool covered = false;
        for (uint32_t j = 0; j < wide->value_count && !covered; j++)
            covered = value_covers(&wide->values[j], &narrow->values[i]);
        if (!covered)
            return false;
    }
    return true;
}

/* Whether all of the wide entries hold wherever the narrow ones do. */
static bool entries_cover(const struct admi_match_entry *wide, uint32_t wide_count,
                          const struct admi_match *narrow)
{
    for (uint32_t i = 0; i < wide_count; i++) {
        bool covered = false;
        for (uint32_t j = 0; j < narrow->entry_count && !covered; j++)
            covered = entry_covers(&wide[i], &narrow->entries[j]);
        if (!covered)
            return false;
    }
    return true;
}

bool admi_match_covers(const struct admi_match *wide, const struct admi_match *narrow)
{
    return !wide->has_not && entries_cover(wide->entries, wide->entry_count, narrow);
}

bool admi_match_contradicts(const struct admi_match *match)
{
    /* An empty "not" is a finding of every load. */
    return match->has_not && match->negated_count > 0 &&
           entries_cover(match->negated, match->negated_count, match);
}
