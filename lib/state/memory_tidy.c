/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that are not what their tag says: their class (family) is gone, so they are nobody's; or
 * the grid of their class has moved since they were written. And those of a family that are as new,
 * where somebody counts them.
 */
#include "state/memory.h"
#include "state/memory_index.h"

struct tidied {
    struct memory_run *run;
    uint32_t family; /* whose values go when they are as new; 0: nobody's */
    const struct memory_idle *idle;
    bool changed, taken;
    uint64_t tags[2], to[2];
    uint64_t values[MEMORY_LINE_VALUES], to_values[MEMORY_LINE_VALUES];
    _Atomic uint64_t *counters[MEMORY_LINE_VALUES];
};

static void take_value(struct tidied *t, uint32_t v, uint32_t tag)
{
    t->counters[v] = admi_memory_records_of(t->run, tag);
    t->to[v / 2] = admi_memory_with_tag(t->to[v / 2], v, MEMORY_TAG_NONE);
    t->to_values[v] = 0;
    t->changed = t->taken = true;
}

static void move_value(struct tidied *t, uint32_t v, uint32_t tag, uint64_t class_place)
{
    struct memory_numbers numbers;
    struct adm_odometer before;
    uint64_t moved_ns;

    if (!admi_memory_class_read(t->run, class_place, &numbers) ||
        ((tag & MEMORY_TAG_GRID) != 0) == (numbers.grid != 0))
        return;
    if (t->values[v] != 0) {
        moved_ns = admi_memory_class_before(t->run, class_place, &before);
        t->to_values[v] = admi_memory_bucket_value(adm_bucket_rescale(
            &before, &numbers.odometer, moved_ns, admi_memory_bucket(t->values[v])));
    }
    t->to[v / 2] = admi_memory_with_tag(t->to[v / 2], v, tag ^ MEMORY_TAG_GRID);
    t->changed = true;
}

static void tidy_value(struct tidied *t, uint32_t v, uint32_t word)
{
    uint32_t tag = admi_memory_tag(t->tags[v / 2], v);
    uint64_t of = atomic_load_explicit(admi_memory_id_at(t->run->region, MEMORY_TAG_ID(tag)),
                                       memory_order_acquire);

    t->counters[v] = NULL;
    if (tag == MEMORY_TAG_NONE)
        return;
    if (of == 0 || (of & MEMORY_ID_DEAD) != 0)
        take_value(t, v, tag);
    else if (t->family != 0 && MEMORY_ID_FAMILY(of) == t->family &&
             !admi_memory_is_kept(t->idle, word) && admi_memory_is_idle(t->run, tag, t->values[v]))
        take_value(t, v, tag);
    else if (MEMORY_ID_CLASS(of) != 0)
        move_value(t, v, tag, MEMORY_ID_CLASS(of));
}

/* The entry by which the line is found: it has to be there while the line is changed, for a line
 * that is in no index is written without transactions. NULL: it is not. */
static _Atomic uint64_t *entry_of(const struct memory_run *run, const struct memory_lines *lines,
                                  uint64_t line)
{
    struct memory_candidates where;
    struct admi_key key;

    admi_memory_read_key(lines, line, &key);
    where = admi_memory_candidates_of(
        lines, &key,
        atomic_load_explicit(&admi_memory_line(lines, line)->group, memory_order_acquire), 0);
    return admi_memory_entry_of(&run->txn, &where, line);
}

static int commit(const struct tidied *t, struct memory_lines *lines, uint64_t at, uint64_t hold)
{
    struct memory_line *line = admi_memory_line(lines, at);
    _Atomic uint64_t *entry = entry_of(t->run, lines, at);
    struct memory_plan plan;
    uint64_t value;
    int end;

    if (entry == NULL)
        return ADMI_TXN_DONE;
    value = admi_memory_read(&t->run->txn, entry);
    if (MEMORY_ENTRY_LINE(value) != at + 1)
        return ADMI_TXN_DONE;
    admi_memory_plan_begin(&plan, t->run);
    admi_memory_plan_set(&plan, entry, value, value);
    for (uint32_t i = 0; i < 2; i++)
        admi_memory_plan_set(&plan, &line->tags[i], t->tags[i], t->to[i]);
    for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
        admi_memory_plan_set(&plan, &line->values[v], t->values[v], t->to_values[v]);
    if (t->taken)
        admi_memory_plan_set(
            &plan, &line->hold, hold,
            MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold) + 1, MEMORY_HOLD_ORDINAL(hold)) |
                MEMORY_HOLD_PINS(hold));
    end = admi_memory_plan_run(&plan);
    for (uint32_t v = 0; v < MEMORY_LINE_VALUES && end == ADMI_TXN_DONE; v++) {
        if (t->counters[v] != NULL)
            atomic_fetch_sub_explicit(t->counters[v], 1, memory_order_seq_cst);
    }
    return end;
}

int admi_memory_tidy_line(struct memory_run *run, struct memory_lines *lines, uint64_t at,
                          uint32_t family, const struct memory_idle *idle)
{
    struct memory_line *line = admi_memory_line(lines, at);
    int end;

    do {
        uint64_t hold = admi_memory_read(&run->txn, &line->hold);
        struct tidied t = { .run = run, .idle = idle };

        t.family = MEMORY_HOLD_PINS(hold) == 0 ? family : 0;
        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
            t.to_values[v] = t.values[v] = admi_memory_read(&run->txn, &line->values[v]);
        for (uint32_t i = 0; i < 2; i++)
            t.to[i] = t.tags[i] = admi_memory_read(&run->txn, &line->tags[i]);
        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
            tidy_value(&t, v, admi_memory_word(&run->txn, &line->values[v]));
        end = t.changed ? commit(&t, lines, at, hold) : ADMI_TXN_DONE;
    } while (end == ADMI_TXN_REFUSED || end == ADMI_TXN_LOST);
    return end;
}
