/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and their index: alone, what is found, made, claimed, evicted and refused; and under
 * threads that make, charge and evict the same few keys: never two words for one tag of a partition,
 * nothing charged to a key that a line no longer has, nothing lost.
 *
 * ADMIT_STRESS_SCALE: how many times as long, 10 unless given (2 under the thread sanitizer).
 * ADMIT_STRESS_SEED.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "state/memory_index.c"
#include "state/memory_line.c"

enum { CONTEXTS = 8, TAG_A = 1 };

static unsigned tests, failures;
static uint64_t scale = STRESS_SCALE, seed = 1;

static void ok(int passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    failures += !passed;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

/* ---- a block: a guard, lines ---- */

struct block {
    _Alignas(64) _Atomic uint64_t guard;
    _Alignas(64) struct memory_lines lines;
};

static struct block *block;
static struct admi_txn_context contexts[CONTEXTS];
static uint8_t secret[2 * ADMI_SECRET_BYTES];

static struct memory_lines *begin_with(uint64_t count)
{
    struct memory_lines probe;
    uint64_t end = sizeof probe;

    for (uint32_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)(i * 37 + seed);
    admi_memory_lines_init(&probe, count, secret, &end);
    free(block);
    end = (end + sizeof *block + 63) / 64 * 64;
    block = aligned_alloc(64, end);
    if (block == NULL)
        abort();
    memset(block, 0, end);
    end = sizeof block->lines;
    admi_memory_lines_init(&block->lines, count, secret, &end);
    memset(contexts, 0, sizeof contexts);
    return &block->lines;
}

static struct admi_txn txn_of(uint32_t self, uint32_t hard_after)
{
    return (struct admi_txn){ .words = (_Atomic uint64_t *)(void *)block,
                              .contexts = contexts,
                              .context_count = CONTEXTS,
                              .self = self,
                              .hard_after = hard_after,
                              .guard = 0 };
}

static struct memory_partition partition_of(uint64_t group, const char *text)
{
    struct memory_partition partition = { .group = group };

    admi_key_make(&partition.key, adm_str(text), secret);
    return partition;
}

/* Counts: idle when they hold nothing. */
static bool holds_nothing(void *self, uint32_t tag, uint64_t value)
{
    (void)self;
    (void)tag;
    return value == 0;
}

static const struct memory_idle idle = { .is_idle = holds_nothing };

static int make(struct admi_txn *txn, const struct memory_partition *partition, uint32_t tag,
                struct memory_place *out)
{
    int end;

    if (!admi_txn_claim(txn))
        abort();
    do {
        txn->guarded = admi_txn_read_guard(txn);
        end = admi_memory_value_make(&block->lines, txn, partition, tag, &idle, out);
    } while (end == ADMI_TXN_STALE);
    admi_txn_unclaim(txn);
    return end;
}

static int evict(struct admi_txn *txn, uint64_t line)
{
    int end;

    if (!admi_txn_claim(txn))
        abort();
    txn->guarded = admi_txn_read_guard(txn);
    end = admi_memory_line_evict(&block->lines, txn, line, &idle);
    admi_txn_unclaim(txn);
    return end;
}

/* Units more or fewer in a place, if it still is what it was. blind: nobody looks. */
static int change(struct admi_txn *txn, const struct memory_place *place,
                  enum memory_step_kind kind, uint64_t units, uint64_t limit, int blind)
{
    struct admi_txn_step steps[2] = {
        { .word = place->word,
          .kind = (uint32_t)kind,
          .units = units,
          .limit = limit,
          .hold = blind ? 0 : place->hold,
          .generation = place->generation },
        { .word = place->hold, .kind = MEMORY_STEP_PIN, .generation = place->generation },
    };
    int end;

    if (!admi_txn_claim(txn))
        abort();
    txn->guarded = admi_txn_read_guard(txn);
    end = admi_txn_run(txn, steps, 1, blind ? 0 : 1);
    admi_txn_unclaim(txn);
    return end;
}

static uint64_t used(const struct admi_txn *txn)
{
    return admi_memory_read(txn, &block->lines.used);
}

/* ---- alone ---- */

static void a_value_is_found_where_it_was_made(void)
{
    struct memory_lines *lines = begin_with(8);
    struct admi_txn txn = txn_of(0, 4);
    struct memory_partition a = partition_of(7, "a"), b = partition_of(7, "b"),
                            other = partition_of(8, "a");
    struct memory_place made, found, again;
    int good;

    ok(!admi_memory_value_find(lines, &txn, &a, TAG_A, &found) && found.line == 0 &&
           used(&txn) == 0,
       "what was never made is not found");
    good = make(&txn, &a, TAG_A, &made) == ADMI_TXN_DONE &&
           admi_memory_value_find(lines, &txn, &a, TAG_A, &found) &&
           make(&txn, &a, TAG_A, &again) == ADMI_TXN_DONE;
    ok(good && found.line == made.line && found.word == made.word && found.hold == made.hold &&
           found.generation == made.generation && again.word == made.word && used(&txn) == 1,
       "what was made is found, and made once");
    ok(!admi_memory_value_find(lines, &txn, &a, TAG_A + 1, &found) &&
           !admi_memory_value_find(lines, &txn, &b, TAG_A, &found) &&
           !admi_memory_value_find(lines, &txn, &other, TAG_A, &found),
       "another tag, key or group is another value");
    good = make(&txn, &a, TAG_A + 1, &again) == ADMI_TXN_DONE && again.line == made.line &&
           again.word != made.word && make(&txn, &b, TAG_A, &again) == ADMI_TXN_DONE &&
           again.line != made.line && make(&txn, &other, TAG_A, &again) == ADMI_TXN_DONE &&
           again.line != made.line;
    ok(good && used(&txn) == 3, "a partition of a group has one line for all its values");
}

static void long_keys_are_told_apart(void)
{
    struct admi_txn txn;
    char text[201];
    struct memory_partition one, two, three;
    struct memory_place places[3], found;

    (void)begin_with(8);
    txn = txn_of(0, 4);
    memset(text, 'x', sizeof text);
    text[200] = '\0';
    one = partition_of(0, text);
    text[199] = 'y';
    two = partition_of(0, text);
    text[62] = '\0';
    three = partition_of(0, text);
    ok(make(&txn, &one, 1, &places[0]) == ADMI_TXN_DONE &&
           make(&txn, &two, 1, &places[1]) == ADMI_TXN_DONE &&
           make(&txn, &three, 1, &places[2]) == ADMI_TXN_DONE && places[0].line != places[1].line &&
           places[1].line != places[2].line && places[0].line != places[2].line &&
           admi_memory_value_find(&block->lines, &txn, &two, 1, &found) &&
           found.line == places[1].line,
       "keys that differ in their last byte are two keys");
}

static void more_values_than_a_line_has(void)
{
    enum { VALUES = MEMORY_LINE_VALUES * MEMORY_ORDINALS_MAX, LAST = VALUES - 1 };
    struct memory_lines *lines = begin_with(100);
    struct admi_txn txn = txn_of(0, 4);
    struct memory_partition a = partition_of(7, "a");
    struct memory_place places[VALUES], found;
    int good = 1;

    for (uint32_t i = 0; i < VALUES; i++) {
        good = good && make(&txn, &a, i + 1, &places[i]) == ADMI_TXN_DONE;
        good = good && change(&txn, &places[i], MEMORY_STEP_ADD, i + 1, 0, 0) == ADMI_TXN_DONE;
    }
    for (uint32_t i = 0; i < VALUES; i++)
        good = good && admi_memory_value_find(lines, &txn, &a, i + 1, &found) &&
               found.word == places[i].word && admi_txn_read(&txn, found.word) == i + 1;
    ok(good && used(&txn) == MEMORY_ORDINALS_MAX,
       "what finds no word in a line is in the next one");
    ok(make(&txn, &a, VALUES + 1, &found) == ADMI_TXN_REFUSED && used(&txn) == MEMORY_ORDINALS_MAX,
       "64 lines of one partition are all there are");
    ok(change(&txn, &places[5], MEMORY_STEP_SUBTRACT, 6, 0, 0) == ADMI_TXN_DONE &&
           make(&txn, &a, VALUES + 1, &found) == ADMI_TXN_REFUSED,
       "an idle word of a line that is pinned is not given away");
    /* The last line is pinned by nobody. */
    ok(change(&txn, &places[LAST], MEMORY_STEP_SUBTRACT, VALUES, 0, 0) == ADMI_TXN_DONE &&
           make(&txn, &a, VALUES + 1, &found) == ADMI_TXN_DONE && found.word == places[LAST].word &&
           !admi_memory_value_find(lines, &txn, &a, VALUES, &found),
       "an idle word of another one is");
}

/* Which of its words a lease may still charge, only the lease knows. */
static void a_pinned_line_keeps_its_words(void)
{
    struct memory_lines *lines = begin_with(8);
    struct admi_txn txn = txn_of(0, 4);
    struct memory_partition a = partition_of(7, "a");
    struct memory_place places[5], found;
    struct admi_txn_step pin = { .kind = MEMORY_STEP_PIN, .units = 1 };
    int good = 1;

    for (uint32_t i = 0; i < 4; i++)
        good = good && make(&txn, &a, i + 1, &places[i]) == ADMI_TXN_DONE;
    pin.word = places[0].hold;
    pin.generation = places[0].generation;
    good = good && admi_txn_claim(&txn) && admi_txn_run(&txn, &pin, 1, 0) == ADMI_TXN_DONE;
    admi_txn_unclaim(&txn);
    good = good && make(&txn, &a, 5, &places[4]) == ADMI_TXN_DONE;
    for (uint32_t i = 0; i < 5; i++)
        good = good && admi_memory_value_find(lines, &txn, &a, i + 1, &found) &&
               found.word == places[i].word;
    ok(good && used(&txn) == 2, "K5 no word of a line that is pinned is taken away");
}

static void lines_of_a_partition_go_from_the_end(void)
{
    struct memory_lines *lines = begin_with(8);
    struct admi_txn txn = txn_of(0, 4);
    struct memory_partition a = partition_of(7, "a");
    struct memory_place first, last, found;
    int good = 1;

    for (uint32_t i = 0; i < 5; i++)
        good = good && make(&txn, &a, i + 1, i == 0 ? &first : &last) == ADMI_TXN_DONE &&
               (i == 4 || change(&txn, i == 0 ? &first : &last, MEMORY_STEP_ADD, 1, 0, 0) == 0);
    for (uint32_t i = 0; i < 4; i++)
        good = good && admi_memory_value_find(lines, &txn, &a, i + 1, &found) &&
               change(&txn, &found, MEMORY_STEP_SUBTRACT, 1, 0, 0) == ADMI_TXN_DONE;
    ok(good && first.line != last.line && evict(&txn, first.line - 1) == ADMI_TXN_REFUSED &&
           evict(&txn, last.line - 1) == ADMI_TXN_DONE &&
           evict(&txn, first.line - 1) == ADMI_TXN_DONE && used(&txn) == 0,
       "the first line of a partition stays as long as there is another one");
}

static void what_is_needed_is_not_evicted(void)
{
    struct memory_lines *lines = begin_with(2);
    struct admi_txn txn = txn_of(0, 4);
    struct memory_partition a = partition_of(7, "a"), b = partition_of(7, "b"),
                            c = partition_of(7, "c");
    struct memory_place at, other, found;
    struct admi_txn_step pin = { .kind = MEMORY_STEP_PIN, .units = 1 };
    int good;

    good = make(&txn, &a, 1, &at) == ADMI_TXN_DONE && make(&txn, &b, 1, &other) == ADMI_TXN_DONE &&
           change(&txn, &at, MEMORY_STEP_ADD, 1, 0, 0) == ADMI_TXN_DONE &&
           change(&txn, &other, MEMORY_STEP_ADD, 1, 0, 0) == ADMI_TXN_DONE;
    ok(good && evict(&txn, at.line - 1) == ADMI_TXN_REFUSED &&
           make(&txn, &c, 1, &found) == ADMI_TXN_REFUSED && used(&txn) == 2,
       "K5 a full table refuses, and evicts nothing that is held");
    pin.word = at.hold;
    pin.generation = at.generation;
    good = change(&txn, &at, MEMORY_STEP_SUBTRACT, 1, 0, 0) == ADMI_TXN_DONE;
    good = good && admi_txn_claim(&txn) && admi_txn_run(&txn, &pin, 1, 0) == ADMI_TXN_DONE;
    admi_txn_unclaim(&txn);
    ok(good && evict(&txn, at.line - 1) == ADMI_TXN_REFUSED &&
           make(&txn, &c, 1, &found) == ADMI_TXN_REFUSED,
       "K5 nor what a lease may still charge");
    pin.kind = MEMORY_STEP_UNPIN;
    good = admi_txn_claim(&txn) && admi_txn_run(&txn, &pin, 1, 0) == ADMI_TXN_DONE;
    admi_txn_unclaim(&txn);
    good = good && make(&txn, &c, 1, &found) == ADMI_TXN_DONE && found.line == at.line &&
           found.generation != at.generation;
    ok(good && !admi_memory_value_find(lines, &txn, &a, 1, &other) && used(&txn) == 2,
       "what is idle makes room");
    ok(change(&txn, &at, MEMORY_STEP_ADD, 5, 0, 0) == ADMI_TXN_LOST &&
           admi_txn_read(&txn, found.word) == 0 && evict(&txn, found.line - 1) == ADMI_TXN_DONE &&
           evict(&txn, found.line - 1) == ADMI_TXN_REFUSED && used(&txn) == 1,
       "what was found before is lost, and charges nobody else");
}

/* The load at which a key may be refused although there are lines: none that was seen, up to all of
 * them. */
static void every_line_can_be_used(uint64_t count)
{
    struct memory_place place;
    struct admi_txn txn;
    uint64_t made = 0;
    char text[32], what[96];

    (void)begin_with(count);
    txn = txn_of(0, 4);
    for (uint64_t i = 0; i < count; i++) {
        struct memory_partition partition;

        (void)snprintf(text, sizeof text, "tenant-%" PRIu64, i);
        partition = partition_of(7, text);
        if (make(&txn, &partition, 1, &place) == ADMI_TXN_DONE &&
            change(&txn, &place, MEMORY_STEP_ADD, 1, 0, 0) == ADMI_TXN_DONE)
            made++;
    }
    (void)snprintf(what, sizeof what, "all of %" PRIu64 " lines can be used", count);
    ok(made == count && used(&txn) == count, what);
}

/* ---- schedules ---- */

/* Makes a value, and is stopped before its transaction. */
struct maker {
    struct stop stop;
    uint32_t tag;
    int end;
    struct memory_place place;
    pthread_t thread;
};

static void *make_one(void *self)
{
    struct maker *maker = self;
    struct admi_txn txn = txn_of(1, 4);
    struct memory_partition a = partition_of(7, "a");

    stop_here = &maker->stop;
    maker->end = make(&txn, &a, maker->tag, &maker->place);
    stop_here = NULL;
    return NULL;
}

static void start_making(struct maker *maker, uint32_t tag, enum point point)
{
    *maker = (struct maker){ .tag = tag };
    maker->stop.point = point;
    maker->stop.countdown = 1;
    (void)pthread_create(&maker->thread, NULL, make_one, maker);
    while (!atomic_load(&maker->stop.stopped))
        (void)sched_yield();
}

static void finish_making(struct maker *maker)
{
    atomic_store(&maker->stop.go_on, 1);
    (void)pthread_join(maker->thread, NULL);
}

/* Two threads found the key nowhere and an entry empty, though not the same one. */
static void two_threads_make_one_line(void)
{
    struct admi_txn txn;
    struct memory_partition a = partition_of(7, "a"), b = partition_of(7, "b");
    struct memory_place place, other;
    struct maker maker;
    int good;

    (void)begin_with(4); /* all keys have the same two buckets */
    txn = txn_of(0, 4);
    start_making(&maker, 1, planned_line);
    good = make(&txn, &b, 1, &other) == ADMI_TXN_DONE &&
           make(&txn, &a, 1, &place) == ADMI_TXN_DONE &&
           evict(&txn, other.line - UINT64_C(1)) == ADMI_TXN_DONE;
    finish_making(&maker);
    ok(good && maker.end == ADMI_TXN_DONE && maker.place.word == place.word && used(&txn) == 1,
       "two threads make one line for a key");
}

/* One found an idle word to take away, the other found none, and makes a line. */
static void two_threads_claim_one_word(void)
{
    struct admi_txn txn;
    struct memory_partition a = partition_of(7, "a");
    struct memory_place places[4], place, last;
    struct maker maker;
    int good = 1;

    for (uint32_t round = 0; round < 2; round++) {
        (void)begin_with(8);
        txn = txn_of(0, 4);
        for (uint32_t i = 0; i < 4; i++)
            good = good && make(&txn, &a, i + 1, &places[i]) == ADMI_TXN_DONE &&
                   change(&txn, &places[i], MEMORY_STEP_ADD, 1, 0, 0) == ADMI_TXN_DONE;
        if (round == 0) {
            start_making(&maker, 9, planned_line);
            good = good && change(&txn, &places[2], MEMORY_STEP_SUBTRACT, 1, 0, 0) == 0;
        } else {
            good = good && change(&txn, &places[2], MEMORY_STEP_SUBTRACT, 1, 0, 0) == 0;
            start_making(&maker, 9, planned_claim);
            good = good && change(&txn, &places[2], MEMORY_STEP_ADD, 1, 0, 0) == 0;
        }
        good = good && make(&txn, &a, 9, &place) == ADMI_TXN_DONE;
        if (round == 1) /* so that the word is as it was found */
            good = good && change(&txn, &places[2], MEMORY_STEP_SUBTRACT, 1, 0, 0) == 0;
        finish_making(&maker);
        good = good && maker.end == ADMI_TXN_DONE && maker.place.word == place.word &&
               admi_memory_value_find(&block->lines, &txn, &a, 9, &last) && last.word == place.word;
    }
    ok(good, "two threads claim one word for a tag");
}

/* ---- together ---- */

enum { THREADS = 4, KEYS = 6, TAGS = 6 };

static _Atomic int64_t inside[KEYS][TAGS];
static _Atomic uint64_t too_many, foreign, refused, charged;
static uint64_t rounds, lines_now;
static uint32_t hard_after_now;
static int blind_now;

/* Each value has a limit of 1: two words for one tag would let two in. With fewer lines than keys,
 * lines are evicted and made again all the time. */
static void *live(void *self)
{
    uint32_t me = (uint32_t)(uintptr_t)self;
    struct admi_txn txn = txn_of(me, hard_after_now);
    uint64_t random = seed * 7919 + me + 1;

    yield_one_in = 6;
    yield_random = random;
    for (uint64_t n = 0; n < rounds; n++) {
        uint32_t key = (uint32_t)(next_random(&random) % KEYS);
        uint32_t tag = (uint32_t)(next_random(&random) % TAGS);
        char text[2] = { (char)('a' + key), '\0' };
        struct memory_partition partition = partition_of(7, text);
        struct memory_place place, now;
        int end = make(&txn, &partition, tag + 1, &place);

        if (end == ADMI_TXN_DONE && next_random(&random) % 4 == 0)
            (void)evict(&txn, next_random(&random) % lines_now);
        if (end == ADMI_TXN_DONE)
            end = change(&txn, &place, MEMORY_STEP_HOLD, 1, 1, blind_now);
        if (end != ADMI_TXN_DONE) {
            atomic_fetch_add(&refused, 1);
            continue;
        }
        atomic_fetch_add(&charged, 1);
        if (atomic_fetch_add(&inside[key][tag], 1) > 0)
            atomic_fetch_add(&too_many, 1);
        (void)sched_yield();
        /* Held, so it cannot have moved; its line may have another generation, because an idle word
         * beside it was taken away. */
        if (!admi_memory_value_find(&block->lines, &txn, &partition, tag + 1, &now) ||
            now.word != place.word)
            atomic_fetch_add(&foreign, 1);
        atomic_fetch_sub(&inside[key][tag], 1);
        if (change(&txn, &place, MEMORY_STEP_SUBTRACT, 1, 0, 1) != ADMI_TXN_DONE)
            atomic_fetch_add(&foreign, 1);
    }
    return NULL;
}

/* How often something went wrong. */
static uint64_t live_together(uint64_t lines, uint32_t hard_after, int blind)
{
    pthread_t threads[THREADS];
    struct admi_txn txn;
    uint64_t left = 0, index = 0;

    (void)begin_with(lines);
    lines_now = lines;
    hard_after_now = hard_after;
    blind_now = blind;
    atomic_store(&too_many, 0);
    atomic_store(&foreign, 0);
    atomic_store(&refused, 0);
    atomic_store(&charged, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        (void)pthread_create(&threads[i], NULL, live, (void *)i);
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    txn = txn_of(0, 4);
    for (uint64_t i = 0; i < lines; i++) {
        struct memory_line *line = admi_memory_line(&block->lines, i);

        for (uint32_t v = 0; v < MEMORY_LINE_VALUES; v++)
            left += admi_txn_read(&txn, admi_memory_word(&txn, &line->values[v]));
        left += MEMORY_HOLD_PINS(admi_memory_read(&txn, &line->hold));
    }
    for (uint64_t b = 0; b <= block->lines.bucket_mask; b++) {
        struct memory_bucket *bucket =
            (struct memory_bucket *)admi_array(&block->lines, block->lines.buckets_at) + b;

        for (uint32_t e = 0; e < MEMORY_BUCKET_ENTRIES; e++)
            index += admi_memory_read(&txn, &bucket->entries[e]) != 0;
    }
    printf("# %" PRIu64 " lines, hard after %" PRIu32 "%s: %" PRIu64 " charged, %" PRIu64
           " refused, %" PRIu64 " too many, %" PRIu64 " elsewhere, %" PRIu64 " left\n",
           lines, hard_after, blind ? ", blind" : "", atomic_load(&charged), atomic_load(&refused),
           atomic_load(&too_many), atomic_load(&foreign), left);
    return atomic_load(&too_many) + atomic_load(&foreign) + left + (index != used(&txn)) +
           (atomic_load(&charged) < rounds / 10);
}

static void nothing_goes_astray(void)
{
    static const uint32_t hard_after[] = { 0, 1, 4, 1 << 30 };
    uint64_t wrong = 0, found = 0;

    rounds = 3000 * scale;
    for (uint32_t i = 0; i < 4; i++)
        wrong += live_together(3, hard_after[i], 0) + live_together(16, hard_after[i], 0);
    ok(wrong == 0, "K1 K2 evict and make again against a charge of one word: nothing goes astray");
    for (uint32_t i = 0; i < 8 && found == 0; i++)
        found += live_together(3, 4, 1);
    ok(found > 0, "the harness sees charges that do not look at the generation");
}

/* ---- somebody is stopped ---- */

struct sleeper {
    struct stop stop;
    uint32_t hard_after;
    int end;
};

/* One charge from the beginning to the end, on a table that is full of idle lines of others. */
static void *charge_once(void *self)
{
    struct sleeper *sleeper = self;
    struct admi_txn txn = txn_of(0, sleeper->hard_after);
    struct memory_partition a = partition_of(7, "a");
    struct memory_place place;

    stop_here = &sleeper->stop;
    do {
        sleeper->end = make(&txn, &a, 1, &place);
        if (sleeper->end == ADMI_TXN_DONE)
            sleeper->end = change(&txn, &place, MEMORY_STEP_ADD, 1, 0, 0);
    } while (sleeper->end == ADMI_TXN_LOST);
    stop_here = NULL;
    atomic_store(&sleeper->stop.stopped, 2);
    return NULL;
}

static int others_charge(uint32_t hard_after, uint64_t many)
{
    struct admi_txn txn = txn_of(1, hard_after);
    int good = 1;

    for (uint64_t n = 0; n < many; n++) {
        char text[2] = { (char)('a' + n % 4), '\0' };
        struct memory_partition partition = partition_of(7, text);
        struct memory_place place;

        /* Two of three lines at most are held: by the sleeper, and by whom it was stopped with. */
        good = good && make(&txn, &partition, 1, &place) == ADMI_TXN_DONE &&
               change(&txn, &place, MEMORY_STEP_ADD, 1, 0, 0) == ADMI_TXN_DONE &&
               change(&txn, &place, MEMORY_STEP_SUBTRACT, 1, 0, 1) == ADMI_TXN_DONE;
    }
    return good;
}

static void whoever_is_stopped_stops_nobody(void)
{
    static const uint32_t hard_after[] = { 0, 4 };
    uint64_t many = 500 * scale, met = 0;
    int good = 1;

    for (uint32_t h = 0; h < 2; h++) {
        for (uint32_t p = 0; p < POINTS; p++) {
            for (uint32_t occurrence = 1; occurrence <= 12; occurrence += 2) {
                struct sleeper sleeper = { .hard_after = hard_after[h], .end = -1 };
                struct admi_txn txn = txn_of(2, 4);
                struct memory_partition a = partition_of(7, "a");
                struct memory_place place;
                pthread_t thread;

                (void)begin_with(3);
                (void)others_charge(4, 4);
                sleeper.stop.point = (enum point)p;
                sleeper.stop.countdown = occurrence;
                (void)pthread_create(&thread, NULL, charge_once, &sleeper);
                while (!atomic_load(&sleeper.stop.stopped))
                    (void)sched_yield();
                if (atomic_load(&sleeper.stop.stopped) == 1) {
                    met++;
                    good = good && others_charge(hard_after[h], many);
                }
                atomic_store(&sleeper.stop.go_on, 1);
                (void)pthread_join(thread, NULL);
                good = good && sleeper.end == ADMI_TXN_DONE &&
                       admi_memory_value_find(&block->lines, &txn, &a, 1, &place) &&
                       admi_txn_read(&txn, place.word) == 1;
            }
        }
    }
    printf("# stopped %" PRIu64 " times; each time another thread did %" PRIu64 " charges\n", met,
           many);
    ok(good && met >= 40, "whoever is stopped at any step of making and charging stops nobody");
}

int main(void)
{
    const char *given = getenv("ADMIT_STRESS_SCALE"), *given_seed = getenv("ADMIT_STRESS_SEED");

    if (given != NULL && strtoull(given, NULL, 10) > 0)
        scale = strtoull(given, NULL, 10);
    if (given_seed != NULL && strtoull(given_seed, NULL, 10) > 0)
        seed = strtoull(given_seed, NULL, 10);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# seed %" PRIu64 ", scale %" PRIu64 "\n", seed, scale);
    a_value_is_found_where_it_was_made();
    long_keys_are_told_apart();
    more_values_than_a_line_has();
    a_pinned_line_keeps_its_words();
    lines_of_a_partition_go_from_the_end();
    what_is_needed_is_not_evicted();
    every_line_can_be_used(1000);
    every_line_can_be_used(100000);
    two_threads_make_one_line();
    two_threads_claim_one_word();
    nothing_goes_astray();
    whoever_is_stopped_stops_nobody();
    free(block);
    printf("1..%u\n", tests);
    return failures != 0;
}
