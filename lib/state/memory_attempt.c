/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts: lines whose key is the name of the attempt, in an index of their own. What is
 * remembered lies beside the line and is written before anybody can find it. One is forgotten when
 * its time is over and its lease has ended: until somebody needs the room it is just not found any
 * more.
 */
#include "state/memory_take.h"

#include "base/memory.h"

enum { TAG = 1 };

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

static bool is_alive(struct memory_run *run, const struct memory_attempt *attempt)
{
    struct memory_leases *leases = &run->region->spaces[MEMORY_ENFORCED].leases;
    struct adm_id id = { .high = load(&attempt->lease[0]), .low = load(&attempt->lease[1]) };
    uint64_t state, place;

    if (run->now_ns < load(&attempt->until_ns))
        return true;
    return (id.high | id.low) != 0 &&
           admi_memory_lease_find(run, leases, id, &state, &place) != NULL &&
           MEMORY_STATE_OF(state) == MEMORY_LEASE_LIVE;
}

/* The value of an attempt's line is the line's number. */
static bool is_idle(void *self, uint32_t tag, uint64_t value)
{
    struct memory_run *run = self;

    (void)tag;
    return value == 0 || !is_alive(run, admi_memory_attempt_at(run->region, value - 1));
}

static struct memory_idle idle_of(struct memory_run *run)
{
    return (struct memory_idle){ .is_idle = is_idle, .self = run };
}

static bool find(struct memory_run *run, const struct admi_key *name, struct memory_place *place)
{
    const struct memory_partition partition = { .group = 0, .key = *name };

    return admi_memory_value_find(&run->region->attempt_lines, &run->txn, &partition, TAG, place);
}

/* ---- answers ---- */

static void read_memo(const struct memory_attempt *attempt, struct adm_take *take)
{
    uint64_t words[ADM_MEMO_BYTES / 8];

    take->memo_out_length = load(&attempt->memo_length);
    if (take->memo_out_length > ADM_MEMO_BYTES)
        take->memo_out_length = 0;
    for (uint32_t i = 0; i < (take->memo_out_length + 7) / 8; i++)
        words[i] = load(&attempt->memo[i]);
    if (take->memo_out != NULL)
        admi_copy(take->memo_out, words, take->memo_out_length);
}

static void digest_words(const struct adm_take *take, uint64_t out[2])
{
    admi_copy(out, take->attempt_digest, sizeof take->attempt_digest);
}

bool admi_memory_attempt_answer(struct memory_run *run, struct adm_take *take,
                                struct admi_key *name)
{
    const struct memory_attempt *attempt;
    struct memory_place place;
    uint64_t digest[2];
    bool same, alive;

    admi_key_make(name, take->attempt, run->region->key_secrets);
    digest_words(take, digest);
    do {
        if (!find(run, name, &place))
            return false;
        attempt = admi_memory_attempt_at(run->region, place.line - 1);
        alive = is_alive(run, attempt);
        same = load(&attempt->digest[0]) == digest[0] && load(&attempt->digest[1]) == digest[1];
        take->lease =
            (struct adm_id){ .high = load(&attempt->lease[0]), .low = load(&attempt->lease[1]) };
        read_memo(attempt, take);
    } while (MEMORY_HOLD_GENERATION(admi_txn_read(&run->txn, place.hold)) != place.generation);
    if (!alive || !same) {
        take->lease = (struct adm_id){ 0, 0 };
        take->memo_out_length = 0;
    }
    if (!alive)
        return false;
    take->repeated = same ? ADM_REPEAT_SAME : ADM_REPEAT_OTHER;
    if (same)
        take->verdict = ADM_VERDICT_ALLOW;
    return true;
}

/* ---- drafts ---- */

static void write_attempt(const struct memory_run *run, const struct adm_take *take,
                          struct adm_id lease, struct memory_attempt *attempt)
{
    uint64_t words[ADM_MEMO_BYTES / 8] = { 0 }, digest[2];

    digest_words(take, digest);
    store(&attempt->digest[0], digest[0]);
    store(&attempt->digest[1], digest[1]);
    store(&attempt->until_ns, take->attempt_life_ns > UINT64_MAX - run->now_ns
                                  ? UINT64_MAX
                                  : run->now_ns + take->attempt_life_ns);
    store(&attempt->lease[0], lease.high);
    store(&attempt->lease[1], lease.low);
    store(&attempt->memo_length, take->memo.length);
    admi_copy(words, take->memo.data, take->memo.length);
    for (uint32_t i = 0; i < (take->memo.length + 7) / 8; i++)
        store(&attempt->memo[i], words[i]);
}

int admi_memory_attempt_draft(struct memory_plan *plan, const struct adm_take *take,
                              const struct admi_key *name, struct adm_id lease,
                              struct memory_new_line *out)
{
    struct memory_run *run = plan->run;
    struct memory_lines *lines = &run->region->attempt_lines;
    const struct memory_partition partition = { .group = 0, .key = *name };
    const struct memory_idle idle = idle_of(run);
    struct memory_place place;
    struct memory_line *line;
    int end;

    /* One that is over has the name still. */
    if (find(run, name, &place)) {
        end = admi_memory_line_evict(lines, &run->txn, place.line - 1, &idle);
        if (end != ADMI_TXN_DONE)
            return ADMI_TXN_LOST;
    }
    end = admi_memory_new_line(lines, &run->txn, &partition, 0, TAG, &idle, out);
    if (end != ADMI_TXN_DONE)
        return end;
    line = admi_memory_line(lines, out->line - 1);
    store(&line->values[0], ADMI_TXN_WORD_OF(out->line));
    write_attempt(run, take, lease, admi_memory_attempt_at(run->region, out->line - 1));
    for (uint32_t i = 0; i < MEMORY_NEW_LINE_STEPS; i++)
        plan->steps[plan->count++] = out->steps[i];
    return ADMI_TXN_DONE;
}

void admi_memory_attempt_drop(struct memory_run *run, const struct memory_new_line *drop)
{
    struct memory_lines *lines = &run->region->attempt_lines;

    store(&admi_memory_line(lines, drop->line - 1)->values[0], 0);
    admi_memory_new_line_drop(lines, drop);
}

uint64_t admi_memory_attempts_used(struct memory_run *run)
{
    struct memory_lines *lines = &run->region->attempt_lines;
    uint64_t high = load(&lines->fresh), used = 0;

    for (uint64_t i = 0; i < high && i < lines->count; i++)
        used +=
            !is_idle(run, TAG, admi_memory_read(&run->txn, &admi_memory_line(lines, i)->values[0]));
    return used;
}
