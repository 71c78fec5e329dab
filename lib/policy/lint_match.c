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

static bool entry_in(const struct admi_match_entry *wide, const struct admi_match *narrow)
{
    for (uint32_t i = 0; narrow != NULL && i < narrow->entry_count; i++)
        if (entry_covers(wide, &narrow->entries[i]))
            return true;
    return false;
}

/* Whether all of the wide entries hold wherever both of the narrow matches do (also: or NULL). */
static bool entries_cover(const struct admi_match_entry *wide, uint32_t wide_count,
                          const struct admi_match *narrow, const struct admi_match *also)
{
    for (uint32_t i = 0; i < wide_count; i++)
        if (!entry_in(&wide[i], narrow) && !entry_in(&wide[i], also))
            return false;
    return true;
}

bool admi_match_covers(const struct admi_match *wide, const struct admi_match *narrow)
{
    return !wide->has_not && entries_cover(wide->entries, wide->entry_count, narrow, NULL);
}

/* An empty "not" is a finding of every load. */
static bool leaves_nothing(const struct admi_match *match, const struct admi_match *also)
{
    return match->has_not && match->negated_count > 0 &&
           entries_cover(match->negated, match->negated_count, match, also);
}

bool admi_match_contradicts(const struct admi_match *match)
{
    return leaves_nothing(match, NULL);
}

static bool values_meet(const struct admi_match_value *a, const struct admi_match_value *b)
{
    return value_covers(a, b) || value_covers(b, a);
}

/* A request has one value of a key. */
static bool entries_meet(const struct admi_match_entry *a, const struct admi_match_entry *b)
{
    for (uint32_t i = 0; i < a->value_count; i++)
        for (uint32_t j = 0; j < b->value_count; j++)
            if (values_meet(&a->values[i], &b->values[j]))
                return true;
    return false;
}

bool admi_match_excludes(const struct admi_match *match, const struct admi_match *when)
{
    for (uint32_t i = 0; i < match->entry_count; i++)
        for (uint32_t j = 0; j < when->entry_count; j++)
            if (match->entries[i].key == when->entries[j].key &&
                !entries_meet(&match->entries[i], &when->entries[j]))
                return true;
    return leaves_nothing(match, when) || leaves_nothing(when, match);
}
