/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there room? In a family with max_partitions, and in a space for another line. To know for sure
 * takes a look at all lines; so the answer `no` is kept for as long as it is true.
 */
#include "state/memory.h"

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

/* ---- answers that are kept ---- */

struct no_room {
    uint64_t changes, until_mono_ns, until_wall_ns;
    uint64_t first_word, first_value;
    bool exact;
};

/* Is it (still) sure that there is no room? */
static bool recall(const struct memory_run *run, const struct memory_no_room *kept,
                   uint64_t changes, struct no_room *out)
{
    uint64_t seq = load(&kept->seq);
    bool same = load(&kept->guard) == run->txn.guarded && load(&kept->changes) == changes;

    out->until_mono_ns = load(&kept->until_mono_ns);
    out->until_wall_ns = load(&kept->until_wall_ns);
    out->exact = load(&kept->exact) != 0;
    out->first_word = load(&kept->first_word);
    out->first_value = load(&kept->first_value);
    if ((seq & 1) != 0 || seq == 0 || load(&kept->seq) != seq || !same)
        return false;
    if (out->first_word != 0 &&
        admi_txn_read(&run->txn, (uint32_t)out->first_word) != out->first_value)
        return false; /* it was charged since, and will be full later */
    return run->now_ns < out->until_mono_ns && run->wall_ns < out->until_wall_ns;
}

static void keep(const struct memory_run *run, struct memory_no_room *kept,
                 const struct no_room *answer)
{
    uint64_t seq = load(&kept->seq);

    if ((seq & 1) != 0 ||
        !atomic_compare_exchange_strong_explicit(&kept->seq, &seq, seq + 1, memory_order_acq_rel,
                                                 memory_order_acquire))
        return; /* somebody else keeps his */
    store(&kept->guard, run->txn.guarded);
    store(&kept->changes, answer->changes);
    store(&kept->until_mono_ns, answer->until_mono_ns);
    store(&kept->until_wall_ns, answer->until_wall_ns);
    store(&kept->exact, answer->exact);
    store(&kept->first_word, answer->first_word);
    store(&kept->first_value, answer->first_value);
    store(&kept->seq, seq + 2);
}

/* A value becomes as new by time alone: note when. True: it is now the first bucket to do so. */
static bool note_due(const struct memory_run *run, uint64_t of, uint64_t value,
                     struct no_room *answer)
{
    const struct memory_family *family = admi_memory_family_at(run->region, MEMORY_ID_FAMILY(of));
    struct memory_numbers numbers;
    uint64_t due;

    if (MEMORY_ID_CLASS(of) == 0) {
        due = load(&family->window) == 0
                  ? UINT64_MAX
                  : admi_memory_quota(run, (uint32_t)load(&family->window), value).empty_at_ns;
        if (due < answer->until_wall_ns)
            answer->until_wall_ns = due;
        return false;
    }
    if (!admi_memory_class_read(run, MEMORY_ID_CLASS(of), &numbers))
        return false;
    due = admi_bucket_as_new_at(&numbers.odometer, run->now_ns, admi_memory_bucket(value));
    if (due >= answer->until_mono_ns)
        return false;
    answer->until_mono_ns = due;
    return true;
}

/* ---- a family ---- */

/* Forget what can be forgotten, count what is live, find the first bucket to become as new. */
static uint64_t count_live(struct memory_run *run, struct memory_lines *lines, uint32_t family,
                           const struct memory_idle *idle, struct no_room *answer)
{
    uint64_t high = load(&lines->fresh), live = 0;

    answer->until_mono_ns = answer->until_wall_ns = UINT64_MAX;
    answer->first_word = 0;
    for (uint64_t i = 0; i < high; i++) {
        struct memory_line *line = admi_memory_line(lines, i);

        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++) {
            uint32_t tag = admi_memory_tag(admi_memory_read(&run->txn, &line->tags[v / 2]), v);
            uint64_t of = load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag))), value;

            if (tag == MEMORY_TAG_NONE || MEMORY_ID_FAMILY(of) != family)
                continue;
            (void)admi_memory_tidy_line(run, lines, i, family, idle);
            tag = admi_memory_tag(admi_memory_read(&run->txn, &line->tags[v / 2]), v);
            if (load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag))) != of)
                continue;
            value = admi_memory_read(&run->txn, &line->values[v]);
            if (tag == MEMORY_TAG_NONE || admi_memory_is_idle(run, tag, value))
                continue;
            live++;
            if (note_due(run, of, value, answer)) {
                answer->first_word = admi_memory_word(&run->txn, &line->values[v]);
                answer->first_value = value;
            }
        }
    }
    return live;
}

bool admi_memory_family_has_room(struct memory_run *run, const struct memory_numbers *numbers,
                                 bool exists, const struct memory_idle *idle, uint64_t *changes,
                                 uint64_t *passes_at_ns)
{
    struct memory_family *family = admi_memory_family_at(run->region, numbers->family);
    uint32_t space = (numbers->flags & MEMORY_META_SHADOW) != 0 ? MEMORY_SHADOW : MEMORY_ENFORCED;
    struct no_room answer;
    uint64_t live;

    *passes_at_ns = UINT64_MAX;
    for (;;) {
        *changes = admi_memory_read(&run->txn, &family->changes);
        if (load(&family->records) - exists < numbers->max_partitions)
            return true;
        if (recall(run, &family->no_room, *changes, &answer))
            break;
        if (!admi_memory_claim(run))
            return true; /* nor can it charge anything */
        answer.changes = *changes;
        live = count_live(run, &run->region->spaces[space].lines, numbers->family, idle, &answer);
        if (!admi_memory_is_current(run))
            return true; /* the operation begins again anyway */
        if (admi_memory_read(&run->txn, &family->changes) != *changes)
            continue;
        if (live < numbers->max_partitions)
            return true;
        answer.exact = numbers->kind == ADM_KIND_BUCKET && live == numbers->max_partitions;
        keep(run, &family->no_room, &answer);
        break;
    }
    if (answer.exact)
        *passes_at_ns = answer.until_mono_ns;
    return false;
}

/* ---- a space ---- */

/* When the line may go, if nothing but time changes it. */
static void note_line(const struct memory_run *run, struct memory_line *line,
                      struct no_room *answer)
{
    struct no_room line_due = { .until_mono_ns = UINT64_MAX, .until_wall_ns = UINT64_MAX };

    if (MEMORY_HOLD_PINS(admi_memory_read(&run->txn, &line->hold)) > 0)
        return;
    for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++) {
        uint32_t tag = admi_memory_tag(admi_memory_read(&run->txn, &line->tags[v / 2]), v);
        uint64_t of = load(admi_memory_id_at(run->region, MEMORY_TAG_ID(tag)));
        uint64_t value = admi_memory_read(&run->txn, &line->values[v]);

        /* All of them have to: so any one that is not yet as new is reason enough, the first will
         * do. */
        if (tag == MEMORY_TAG_NONE || of == 0 ||
            admi_memory_is_idle((void *)(uintptr_t)run, tag, value))
            continue;
        (void)note_due(run, of, value, &line_due);
        break;
    }
    if (line_due.until_mono_ns < answer->until_mono_ns)
        answer->until_mono_ns = line_due.until_mono_ns;
    if (line_due.until_wall_ns < answer->until_wall_ns)
        answer->until_wall_ns = line_due.until_wall_ns;
}

/* Evict until there is room. */
static bool make_room(struct memory_run *run, struct memory_lines *lines, uint64_t more,
                      const struct memory_idle *idle)
{
    for (uint64_t i = 0; i < lines->count; i++) {
        uint64_t at;

        if (admi_memory_read(&run->txn, &lines->used) + more <= lines->count)
            return true;
        at = atomic_fetch_add_explicit(&lines->hand, 1, memory_order_relaxed) % lines->count;
        if (admi_memory_line_evict(lines, &run->txn, at, idle) == ADMI_TXN_STALE)
            return true; /* look again under the new guard */
    }
    return admi_memory_read(&run->txn, &lines->used) + more <= lines->count;
}

bool admi_memory_space_has_room(struct memory_run *run, uint32_t space, uint64_t more,
                                const struct memory_idle *idle)
{
    struct memory_space *at = &run->region->spaces[space];
    struct memory_lines *lines = &at->lines;
    struct no_room answer = { .until_mono_ns = UINT64_MAX, .until_wall_ns = UINT64_MAX };
    uint64_t watch = load(&at->watched);

    if (admi_memory_read(&run->txn, &lines->used) + more <= lines->count)
        return true;
    if (watch != 0 && more == 1 && recall(run, &at->no_room, watch, &answer))
        return false;
    if (!admi_memory_claim(run))
        return true; /* nor can it charge anything */
    /* First say that we are looking, then look: whoever makes room meanwhile takes it back. */
    watch = atomic_fetch_add_explicit(&at->watches, 1, memory_order_seq_cst) + 1;
    atomic_store_explicit(&at->watched, watch, memory_order_seq_cst);
    if (make_room(run, lines, more, idle))
        return true;
    answer = (struct no_room){ .changes = watch,
                               .until_mono_ns = UINT64_MAX,
                               .until_wall_ns = UINT64_MAX };
    for (uint64_t i = 0; i < lines->count; i++)
        note_line(run, admi_memory_line(lines, i), &answer);
    if (more == 1 && idle->keep_count == 0)
        keep(run, &at->no_room, &answer);
    return false;
}
