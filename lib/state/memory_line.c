/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: memory_line.h. */
#include "state/memory_index.h"

static uint64_t round_up(uint64_t value)
{
    return (value + 63) / 64 * 64;
}

void admi_memory_lines_init(struct memory_lines *lines, uint64_t count,
                            const uint8_t secret[ADMI_SECRET_BYTES], uint64_t *end)
{
    uint64_t buckets = 2;

    /* Twice as many entries as lines: two buckets of seven are practically never both full then. */
    while (buckets * MEMORY_BUCKET_ENTRIES < 2 * count)
        buckets *= 2;
    *lines = (struct memory_lines){ .count = count, .bucket_mask = buckets - 1 };
    for (uint32_t i = 0; i < ADMI_SECRET_BYTES; i++)
        lines->secret[i] = secret[i];
    lines->lines_at = round_up(*end);
    lines->keys_at = lines->lines_at + count * sizeof(struct memory_line);
    lines->buckets_at = lines->keys_at + count * sizeof(struct memory_key);
    *end = lines->buckets_at + buckets * sizeof(struct memory_bucket);
}

/* ---- steps ---- */

#define PLAN_STEPS 16u

struct plan {
    struct admi_txn_step steps[PLAN_STEPS];
    uint32_t count;
};

static void plan_set(struct plan *plan, const struct admi_txn *txn, const _Atomic uint64_t *word,
                     uint64_t expected, uint64_t to)
{
    plan->steps[plan->count++] = (struct admi_txn_step){
        .word = admi_memory_word(txn, word), .kind = MEMORY_STEP_SET, .expected = expected, .to = to
    };
}

static void plan_units(struct plan *plan, const struct admi_txn *txn, const _Atomic uint64_t *word,
                       enum memory_step_kind kind, uint64_t generation)
{
    plan->steps[plan->count++] = (struct admi_txn_step){ .word = admi_memory_word(txn, word),
                                                         .kind = (uint32_t)kind,
                                                         .generation = generation,
                                                         .units = 1 };
}

/* Looked up while a value has the tag: afterwards the tag may be another's. */
static _Atomic uint64_t *counter_of(const struct memory_idle *idle, uint32_t tag)
{
    return tag == MEMORY_TAG_NONE || idle->counter_of == NULL ? NULL
                                                              : idle->counter_of(idle->self, tag);
}

static void count_one(_Atomic uint64_t *counter)
{
    if (counter != NULL)
        atomic_fetch_add_explicit(counter, 1, memory_order_seq_cst);
}

static void uncount_one(_Atomic uint64_t *counter)
{
    if (counter != NULL)
        atomic_fetch_sub_explicit(counter, 1, memory_order_seq_cst);
}

/* ---- find ---- */

/* The value of a line that has the tag. */
static bool tag_find(const struct memory_lines *lines, const struct admi_txn *txn, uint32_t tag,
                     struct memory_place *inout)
{
    struct memory_line *line = admi_memory_line(lines, inout->line - 1);
    uint64_t tags[2] = { admi_memory_read(txn, &line->tags[0]),
                         admi_memory_read(txn, &line->tags[1]) };

    for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++) {
        uint32_t met = admi_memory_tag(tags[v / 2], v);

        if (MEMORY_TAG_ID(met) != MEMORY_TAG_ID(tag))
            continue;
        inout->value = v;
        inout->tag = met;
        inout->word = admi_memory_word(txn, &line->values[v]);
        return true;
    }
    return false;
}

static bool is_same(const struct admi_txn *txn, const struct memory_place *place)
{
    return MEMORY_HOLD_GENERATION(admi_txn_read(txn, place->hold)) == place->generation;
}

bool admi_memory_value_in(const struct memory_lines *lines, const struct admi_txn *txn,
                          uint32_t tag, struct memory_place *inout)
{
    return tag_find(lines, txn, tag, inout) && is_same(txn, inout);
}

bool admi_memory_value_find(struct memory_lines *lines, const struct admi_txn *txn,
                            const struct memory_partition *partition, uint32_t tag,
                            struct memory_place *out)
{
    uint32_t ordinal = 0;

    while (ordinal < MEMORY_ORDINALS_MAX) {
        struct memory_candidates where =
            admi_memory_candidates_of(lines, &partition->key, partition->group, ordinal);
        bool found;

        if (!admi_memory_line_find(lines, txn, &where, &partition->key, out))
            break;
        found = tag_find(lines, txn, tag, out);
        if (!is_same(txn, out))
            continue; /* whose tags were that? Once more */
        if (found)
            return true;
        ordinal++;
    }
    out->line = ordinal; /* of which only 0 says something */
    return false;
}

/* ---- lines that nobody has ---- */

/* A list whose head counts its changes: who was asleep while a line left it and came back
 * notices. */
static uint64_t free_pop(struct memory_lines *lines)
{
    uint64_t head = atomic_load_explicit(&lines->free, memory_order_acquire);

    while ((uint32_t)head != 0) {
        struct memory_line *line = admi_memory_line(lines, (uint32_t)head - 1);
        uint64_t next = atomic_load_explicit(&line->group, memory_order_acquire) & UINT32_MAX;

        if (atomic_compare_exchange_weak_explicit(&lines->free, &head,
                                                  ((head >> 32) + 1) << 32 | next,
                                                  memory_order_acq_rel, memory_order_acquire))
            return (uint32_t)head;
    }
    return 0;
}

static void free_push(struct memory_lines *lines, uint64_t line)
{
    uint64_t head = atomic_load_explicit(&lines->free, memory_order_acquire);

    do
        atomic_store_explicit(&admi_memory_line(lines, line - 1)->group, (uint32_t)head,
                              memory_order_release);
    while (!atomic_compare_exchange_weak_explicit(&lines->free, &head,
                                                  ((head >> 32) + 1) << 32 | line,
                                                  memory_order_acq_rel, memory_order_acquire));
}

static uint64_t fresh_line(struct memory_lines *lines)
{
    uint64_t fresh = atomic_load_explicit(&lines->fresh, memory_order_acquire);

    while (fresh < lines->count) {
        if (atomic_compare_exchange_weak_explicit(&lines->fresh, &fresh, fresh + 1,
                                                  memory_order_acq_rel, memory_order_acquire))
            return fresh + 1;
    }
    return 0;
}

/* ---- evict ---- */

/* Does it have a value that is not to go? */
static bool has_kept(const struct memory_idle *idle, uint32_t first)
{
    for (uint32_t i = 0; i < idle->keep_count; i++) {
        if ((idle->keep[i] & ~7u) == first)
            return true;
    }
    return false;
}

/* All its values, if they are idle: they go, and so do their tags. */
static bool plan_values(struct plan *plan, const struct admi_txn *txn, struct memory_line *line,
                        const struct memory_idle *idle)
{
    uint64_t tags[2] = { admi_memory_read(txn, &line->tags[0]),
                         admi_memory_read(txn, &line->tags[1]) };

    plan_set(plan, txn, &line->tags[0], tags[0], 0);
    plan_set(plan, txn, &line->tags[1], tags[1], 0);
    for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++) {
        uint32_t tag = admi_memory_tag(tags[v / 2], v);
        uint64_t value = admi_memory_read(txn, &line->values[v]);

        if (tag != MEMORY_TAG_NONE && !idle->is_idle(idle->self, tag, value))
            return false;
        plan_set(plan, txn, &line->values[v], value, 0);
    }
    return true;
}

/* What a line of a higher ordinal pins: the one before it. */
static bool plan_unpin_before(struct plan *plan, const struct memory_lines *lines,
                              const struct admi_txn *txn, const struct admi_key *key,
                              uint64_t group, uint32_t ordinal)
{
    struct memory_candidates where =
        admi_memory_candidates_of(lines, key, group - ordinal * MEMORY_ORDINAL_STEP, ordinal - 1);
    struct memory_place before;

    if (!admi_memory_line_find(lines, txn, &where, key, &before))
        return false;
    plan_units(plan, txn, &admi_memory_line(lines, before.line - 1)->hold, MEMORY_STEP_UNPIN,
               before.generation);
    return true;
}

int admi_memory_line_evict(struct memory_lines *lines, struct admi_txn *txn, uint64_t line,
                           const struct memory_idle *idle)
{
    struct memory_line *at = admi_memory_line(lines, line);

    for (;;) {
        uint64_t hold = admi_memory_read(txn, &at->hold);
        uint64_t group = atomic_load_explicit(&at->group, memory_order_acquire);
        uint32_t ordinal = MEMORY_HOLD_ORDINAL(hold);
        struct plan plan = { .count = 0 };
        _Atomic uint64_t *counters[MEMORY_LINE_VALUES];
        struct memory_candidates where;
        _Atomic uint64_t *entry;
        struct admi_key key;
        int end;

        if (MEMORY_HOLD_PINS(hold) > 0 || has_kept(idle, admi_memory_word(txn, &at->values[0])) ||
            !plan_values(&plan, txn, at, idle))
            return ADMI_TXN_REFUSED;
        admi_memory_read_key(lines, line, &key);
        where = admi_memory_candidates_of(lines, &key, group, 0);
        entry = admi_memory_entry_of(txn, &where, line);
        if (entry == NULL)
            return ADMI_TXN_REFUSED;
        plan_set(&plan, txn, entry, where.fingerprint | (line + 1), 0);
        plan_set(&plan, txn, &at->hold, hold, MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold) + 1, 0));
        plan_units(&plan, txn, &lines->used, MEMORY_STEP_SUBTRACT, 0);
        if (ordinal > 0 && !plan_unpin_before(&plan, lines, txn, &key, group, ordinal))
            continue; /* it changed while we read it: what was read does not belong together */
        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
            counters[v] = counter_of(idle, admi_memory_tag(plan.steps[v / 2].expected, v));
        end = admi_txn_run(txn, plan.steps, plan.count, 0);
        if (end == ADMI_TXN_DONE) {
            for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
                uncount_one(counters[v]);
            free_push(lines, line + 1);
        }
        if (end != ADMI_TXN_REFUSED)
            return end;
    }
}

/* ---- make ---- */

/* Both buckets are full. Returns DONE: some entry is not in use any more. */
static int make_room(struct memory_lines *lines, struct admi_txn *txn,
                     const struct memory_candidates *where, const struct memory_idle *idle)
{
    for (uint32_t i = 0; i < 2 * MEMORY_BUCKET_ENTRIES; i++) {
        uint64_t value = admi_memory_read(
            txn, &where->buckets[i / MEMORY_BUCKET_ENTRIES]->entries[i % MEMORY_BUCKET_ENTRIES]);
        uint64_t line = MEMORY_ENTRY_LINE(value);
        int end = line == 0 || line > lines->count
                      ? ADMI_TXN_DONE
                      : admi_memory_line_evict(lines, txn, line - 1, idle);

        if (end != ADMI_TXN_REFUSED)
            return end;
    }
    return ADMI_TXN_REFUSED;
}

/* A line for a new key: never used, come back, or evicted now. 0: none; or *end is STALE. */
static uint64_t line_take(struct memory_lines *lines, struct admi_txn *txn,
                          const struct memory_idle *idle, int *end)
{
    *end = ADMI_TXN_REFUSED;
    for (uint64_t looked = 0; looked <= lines->count; looked++) {
        uint64_t line = free_pop(lines);

        if (line == 0)
            line = fresh_line(lines);
        if (line != 0)
            return line;
        line = atomic_fetch_add_explicit(&lines->hand, 1, memory_order_relaxed) % lines->count;
        *end = admi_memory_line_evict(lines, txn, line, idle);
        if (*end == ADMI_TXN_STALE)
            return 0;
    }
    *end = ADMI_TXN_REFUSED;
    return 0;
}

/*
 * Where a partition ends, as it was found. Its lines have ordinals 0, 1, ...; each pins the one
 * before it, so they go from the end. A word is nobody's, or may be taken away, in the last line
 * only: the others were full when the next was made, and are pinned since. So two threads that find
 * different words for one tag meet at the hold of the last line: claim() compares it, and changes
 * the generation if it takes a word away; line_make() pins it.
 */
struct partition_end {
    uint32_t lines;
    struct memory_place last;
    uint64_t tags[2], hold; /* of the last one */
};

/* A word of the last line: one that is nobody's; or else one that is idle. False: there is none. */
static bool find_word(const struct memory_lines *lines, const struct admi_txn *txn,
                      const struct partition_end *at, const struct memory_idle *idle, bool any,
                      uint32_t *out)
{
    const struct memory_line *line = admi_memory_line(lines, at->last.line - UINT64_C(1));

    for (*out = 0; *out < MEMORY_LINE_VALUES; ++*out) {
        if (admi_memory_tag(at->tags[*out / 2], *out) == MEMORY_TAG_NONE)
            return true;
    }
    if (MEMORY_HOLD_PINS(at->hold) > 0)
        return false;
    for (*out = 0; *out < MEMORY_LINE_VALUES; ++*out) {
        uint32_t tag = admi_memory_tag(at->tags[*out / 2], *out);

        if (!admi_memory_is_kept(idle, admi_memory_word(txn, &line->values[*out])) &&
            (any || idle->is_lasting == NULL || !idle->is_lasting(idle->self, tag)) &&
            idle->is_idle(idle->self, tag, admi_memory_read(txn, &line->values[*out])))
            return true;
    }
    return false;
}

/* Give it to the tag. Whoever found the word when it was another's must notice: so taking one away
 * changes the generation of the line. */
static int claim(struct memory_lines *lines, struct admi_txn *txn, const struct partition_end *at,
                 uint32_t tag, const struct memory_idle *idle, bool any, struct memory_place *out)
{
    struct plan plan = { .count = 0 };
    struct memory_line *line;
    _Atomic uint64_t *made, *taken;
    uint64_t tags, value, hold = at->hold;
    uint32_t v, before;
    int end;

    if (at->lines == 0 || !find_word(lines, txn, at, idle, any, &v))
        return ADMI_TXN_REFUSED;
    line = admi_memory_line(lines, at->last.line - UINT64_C(1));
    tags = at->tags[v / 2];
    value = admi_memory_read(txn, &line->values[v]);
    before = admi_memory_tag(tags, v);
    if (before != MEMORY_TAG_NONE) {
        if (!idle->is_idle(idle->self, before, value))
            return ADMI_TXN_LOST;
        hold = MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(hold) + 1, MEMORY_HOLD_ORDINAL(hold));
    }
    plan_set(&plan, txn, &line->tags[v / 2], tags, admi_memory_with_tag(tags, v, tag));
    plan_set(&plan, txn, &line->values[v], value, 0);
    plan_set(&plan, txn, &line->hold, at->hold, hold);
    *out = at->last;
    out->value = v;
    out->word = admi_memory_word(txn, &line->values[v]);
    out->tag = tag;
    out->generation = MEMORY_HOLD_GENERATION(hold);
    made = counter_of(idle, tag);
    taken = counter_of(idle, before);
    ADMI_TXN_AT(planned_claim);
    count_one(made);
    end = admi_txn_run(txn, plan.steps, plan.count, 0);
    uncount_one(end == ADMI_TXN_DONE ? taken : made);
    return end == ADMI_TXN_REFUSED ? ADMI_TXN_LOST : end;
}

int admi_memory_new_line(struct memory_lines *lines, struct admi_txn *txn,
                         const struct memory_partition *partition, uint32_t ordinal, uint32_t tag,
                         const struct memory_idle *idle, struct memory_new_line *out)
{
    struct memory_candidates where =
        admi_memory_candidates_of(lines, &partition->key, partition->group, ordinal);
    uint64_t versions[2] = { admi_memory_read(txn, &where.buckets[0]->version),
                             admi_memory_read(txn, &where.buckets[1]->version) };
    struct plan plan = { .count = 0 };
    struct memory_place there;
    struct memory_line *line;
    _Atomic uint64_t *entry;
    int end;

    /* Under these versions the key is in neither bucket, and the entry is empty. */
    if (admi_memory_line_find(lines, txn, &where, &partition->key, &there))
        return ADMI_TXN_LOST;
    entry = admi_memory_empty_entry(txn, &where);
    if (entry == NULL) {
        end = make_room(lines, txn, &where, idle);
        return end == ADMI_TXN_DONE ? ADMI_TXN_LOST : end;
    }
    out->line = line_take(lines, txn, idle, &end);
    if (out->line == 0)
        return end;
    line = admi_memory_line(lines, out->line - 1);
    /* Another generation than the one with which it was evicted: who read that has a key that is
     * not the line's any more. */
    out->hold =
        MEMORY_HOLD_OF(MEMORY_HOLD_GENERATION(admi_memory_read(txn, &line->hold)) + 1, ordinal);
    admi_memory_write_key(lines, out->line - 1, &partition->key);
    atomic_store_explicit(&line->group, where.group, memory_order_release);
    admi_txn_store(&line->tags[0], ADMI_TXN_WORD_OF(admi_memory_with_tag(0, 0, tag)));
    admi_txn_store(&line->hold, ADMI_TXN_WORD_OF(out->hold));
    for (uint32_t b = 0; b < 2; b++)
        plan_set(&plan, txn, &where.buckets[b]->version, versions[b],
                 (versions[b] + 1) & ADMI_TXN_VALUE_MAX);
    plan_set(&plan, txn, entry, 0, where.fingerprint | out->line);
    plan_units(&plan, txn, &lines->used, MEMORY_STEP_ADD, 0);
    for (uint32_t i = 0; i < MEMORY_NEW_LINE_STEPS; i++)
        out->steps[i] = plan.steps[i];
    return ADMI_TXN_DONE;
}

void admi_memory_new_line_drop(struct memory_lines *lines, const struct memory_new_line *drop)
{
    admi_txn_store(&admi_memory_line(lines, drop->line - 1)->tags[0], 0);
    free_push(lines, drop->line);
}

/* Another line at the end, with a first tag. */
static int line_make(struct memory_lines *lines, struct admi_txn *txn,
                     const struct memory_partition *partition, const struct partition_end *at,
                     uint32_t tag, const struct memory_idle *idle, struct memory_place *out)
{
    struct memory_new_line made;
    struct memory_line *line;
    struct plan plan = { .count = MEMORY_NEW_LINE_STEPS };
    _Atomic uint64_t *counter;
    int end = admi_memory_new_line(lines, txn, partition, at->lines, tag, idle, &made);

    if (end != ADMI_TXN_DONE)
        return end;
    for (uint32_t i = 0; i < MEMORY_NEW_LINE_STEPS; i++)
        plan.steps[i] = made.steps[i];
    if (at->lines > 0)
        plan_units(&plan, txn, &admi_memory_line(lines, at->last.line - UINT64_C(1))->hold,
                   MEMORY_STEP_PIN, at->last.generation);
    ADMI_TXN_AT(planned_line);
    counter = counter_of(idle, tag);
    count_one(counter);
    end = admi_txn_run(txn, plan.steps, plan.count, 0);
    if (end != ADMI_TXN_DONE) {
        uncount_one(counter);
        admi_memory_new_line_drop(lines, &made);
        return end == ADMI_TXN_REFUSED ? ADMI_TXN_LOST : end;
    }
    line = admi_memory_line(lines, made.line - 1);
    *out = (struct memory_place){ .line = (uint32_t)made.line,
                                  .value = 0,
                                  .word = admi_memory_word(txn, &line->values[0]),
                                  .hold = admi_memory_word(txn, &line->hold),
                                  .tag = tag,
                                  .generation = MEMORY_HOLD_GENERATION(made.hold) };
    return ADMI_TXN_DONE;
}

/* To the end of the partition. True: one of its lines has the tag. */
static bool follow(const struct memory_lines *lines, const struct admi_txn *txn,
                   const struct memory_partition *partition, uint32_t tag, struct partition_end *at,
                   struct memory_place *out)
{
    *at = (struct partition_end){ 0 };
    while (at->lines < MEMORY_ORDINALS_MAX) {
        struct memory_candidates where =
            admi_memory_candidates_of(lines, &partition->key, partition->group, at->lines);
        struct memory_line *line;
        bool found;

        if (!admi_memory_line_find(lines, txn, &where, &partition->key, out))
            break;
        line = admi_memory_line(lines, out->line - UINT64_C(1));
        at->last = *out;
        at->tags[0] = admi_memory_read(txn, &line->tags[0]);
        at->tags[1] = admi_memory_read(txn, &line->tags[1]);
        at->hold = admi_memory_read(txn, &line->hold);
        found = tag_find(lines, txn, tag, out);
        if (!is_same(txn, out) || MEMORY_HOLD_GENERATION(at->hold) != at->last.generation)
            continue;
        if (found)
            return true;
        at->lines++;
    }
    return false;
}

int admi_memory_value_make(struct memory_lines *lines, struct admi_txn *txn,
                           const struct memory_partition *partition, uint32_t tag,
                           const struct memory_idle *idle, struct memory_place *out)
{
    struct partition_end at;
    int end;

    do {
        if (follow(lines, txn, partition, tag, &at, out))
            return ADMI_TXN_DONE;
        end = claim(lines, txn, &at, tag, idle, false, out);
        if (end == ADMI_TXN_REFUSED && at.lines < MEMORY_ORDINALS_MAX)
            end = line_make(lines, txn, partition, &at, tag, idle, out);
        if (end == ADMI_TXN_REFUSED)
            end = claim(lines, txn, &at, tag, idle, true, out);
    } while (end == ADMI_TXN_LOST);
    return end;
}
