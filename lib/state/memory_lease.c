/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lease slots. A context walks a stretch of them, so that a slot is found without a line that all
 * threads write; stretches are handed out in a ring, so that a slot that only answers is used again
 * as late as possible. Whatever a lease holds changes in one transaction with its state.
 */
#include "state/memory.h"

#define STRETCH 64u

static uint64_t load(const _Atomic uint64_t *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
    atomic_store_explicit(to, value, memory_order_release);
}

/* Deadlines end before never, after 146 years. */
#define END_OF_TIME (MEMORY_DEADLINE_NEVER - 1)

static uint64_t due_by(const struct memory_run *run)
{
    return run->now_ns < END_OF_TIME ? run->now_ns : END_OF_TIME;
}

static uint64_t later(uint64_t from_ns, uint64_t by_ns)
{
    return by_ns > END_OF_TIME || from_ns > END_OF_TIME - by_ns ? END_OF_TIME : from_ns + by_ns;
}

/* ---- slots ---- */

/* Nobody needs it: its lease has ended, and at most an answer is lost. */
static bool is_free(uint64_t state)
{
    switch (MEMORY_STATE_OF(state)) {
    case MEMORY_LEASE_FREE:
    case MEMORY_LEASE_CLOSED:
    case MEMORY_LEASE_CLOSED_LATE:
        return true;
    case MEMORY_LEASE_RESERVED:
    case MEMORY_LEASE_LIVE:
    case MEMORY_LEASE_LATE:
    case MEMORY_LEASE_PART:
        return false;
    }
    return false;
}

/* With the next generation. */
static bool reserve_slot(struct memory_lease *slot)
{
    uint64_t met = load(&slot->state);
    uint64_t state = ADMI_TXN_VALUE_OF(met);
    uint64_t generation = ((state >> 30) + 1) & UINT32_MAX;

    /* A transaction that is under way has to do with this lease: another slot is as good. */
    if (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE || !is_free(state))
        return false;
    return admi_txn_swap(&slot->state, &met,
                         ADMI_TXN_WORD_OF(generation << 30 | MEMORY_LEASE_RESERVED)) != 0;
}

static uint64_t next_slot(struct memory_run *run, struct memory_leases *leases)
{
    struct memory_context_state *own = admi_memory_context_state(run);
    uint64_t slot = load(&own->slot[leases->space]), left = load(&own->slots_left[leases->space]);

    if (left == 0) {
        uint64_t stretches = (leases->count + STRETCH - 1) / STRETCH;

        slot =
            atomic_fetch_add_explicit(&leases->hand, 1, memory_order_relaxed) % stretches * STRETCH;
        left = leases->count - slot < STRETCH ? leases->count - slot : STRETCH;
    }
    store(&own->slot[leases->space], slot + 1);
    store(&own->slots_left[leases->space], left - 1);
    return slot;
}

static uint64_t walk(struct memory_run *run, struct memory_leases *leases)
{
    for (uint64_t looked = 0; looked < leases->count + STRETCH; looked++) {
        uint64_t slot = next_slot(run, leases);

        if (reserve_slot(admi_memory_lease_at(leases, slot)))
            return slot + 1;
    }
    return 0;
}

/* Refusals must be cheap: who has found all slots open says so, and whoever ends a lease takes it
 * back. Each writes his word first and then looks at the other's. */
uint64_t admi_memory_lease_reserve(struct memory_run *run, struct memory_leases *leases)
{
    uint64_t slot;

    if (load(&leases->full) != 0)
        return 0;
    slot = walk(run, leases);
    if (slot == 0) {
        atomic_store_explicit(&leases->full, 1, memory_order_seq_cst);
        slot = walk(run, leases);
        if (slot != 0)
            atomic_store_explicit(&leases->full, 0, memory_order_seq_cst);
    }
    return slot;
}

static void no_longer_full(struct memory_leases *leases)
{
    if (atomic_load_explicit(&leases->full, memory_order_seq_cst) != 0)
        atomic_store_explicit(&leases->full, 0, memory_order_seq_cst);
}

/* A slot that is reserved, or a part, and nobody else's. */
static void free_slot(struct memory_leases *leases, uint64_t slot)
{
    struct memory_lease *at = admi_memory_lease_at(leases, slot - 1);
    uint64_t met = load(&at->state), changed;

    do
        changed = admi_memory_state_next(ADMI_TXN_VALUE_OF(met), MEMORY_LEASE_FREE);
    while (ADMI_TXN_TAG(met) != ADMI_TXN_VALUE ||
           !admi_txn_swap(&at->state, &met, ADMI_TXN_WORD_OF(changed)));
    no_longer_full(leases);
}

/* ---- bodies ---- */

/* The word of a body, which goes on in parts. NULL: there is no such part (any more). */
static _Atomic uint64_t *body_word(const struct memory_leases *leases, uint64_t place, uint32_t i)
{
    struct memory_lease *slot = admi_memory_lease_at(leases, place);
    uint64_t part;

    if (i < MEMORY_LEASE_BODY)
        return &slot->body[i];
    i -= MEMORY_LEASE_BODY;
    part = load(&slot->counts) >> 32;
    while (part != 0 && part <= leases->count) {
        _Atomic uint64_t *words = &admi_memory_lease_at(leases, part - 1)->state;

        if (i < MEMORY_PART_BODY)
            return &words[MEMORY_PART_AT + i];
        i -= MEMORY_PART_BODY;
        part = load(&words[1]);
    }
    return NULL;
}

uint64_t admi_memory_amount_word(const struct memory_item *item)
{
    return item->amount | (uint64_t)(item->window & 0x7fff) << 41 | (uint64_t)item->meter << 56 |
           (uint64_t)item->mark << 61;
}

static void read_item(struct memory_item *item, uint64_t first, uint64_t amount)
{
    item->kind = (enum memory_item_kind)(first >> 61);
    item->id = (uint32_t)(first >> 32) & 0x1fffffffu;
    item->word = (uint32_t)first;
    item->amount = amount & ((UINT64_C(1) << 41) - 1);
    item->window = (uint32_t)(amount >> 41) & 0x7fffu;
    item->meter = (uint32_t)(amount >> 56) & 31u;
    item->mark = (amount >> 61 & 1u) != 0;
}

uint64_t admi_memory_meter_word(const struct adm_meter *meter)
{
    return (meter->total & ((UINT64_C(1) << 44) - 1)) |
           (uint64_t)(meter->flags & (ADM_METER_F_DERIVED | ADMI_METER_FINAL)) << 44 |
           (uint64_t)meter->unit << 46;
}

static void read_meter(struct adm_meter *meter, uint64_t word)
{
    meter->total = word & ((UINT64_C(1) << 44) - 1);
    meter->flags = (uint32_t)(word >> 44) & 3u;
    meter->unit = (uint32_t)(word >> 46);
}

bool admi_memory_lease_read(struct memory_run *run, struct memory_leases *leases, uint64_t place,
                            uint64_t state, struct memory_holding *out)
{
    struct memory_lease *slot = admi_memory_lease_at(leases, place);
    uint64_t counts = load(&slot->counts);

    out->state = state;
    out->place = place;
    out->leases = leases;
    out->ttl_ns = load(&slot->ttl_ns);
    out->shadow.high = load(&slot->shadow);
    out->shadow.low = load(&slot->shadow_secret);
    out->deadline = admi_memory_read(&run->txn, admi_memory_deadline(&leases->deadlines, place));
    out->first_part = counts >> 32;
    out->item_count = counts & 0xff;
    out->meter_count = counts >> 8 & 0xff;
    if ((state & MEMORY_STATE_DIVERTED) != 0)
        out->item_count = 0; /* it has nothing to give back or to charge any more */
    if (out->item_count > ADM_MAX_TERMS || out->meter_count > ADMI_METERS_MAX)
        return false;
    for (uint32_t i = 0; i < out->item_count; i++) {
        const _Atomic uint64_t *first = body_word(leases, place, MEMORY_ITEM_WORDS * i);

        out->amounts[i] = body_word(leases, place, MEMORY_ITEM_WORDS * i + 1);
        if (first == NULL || out->amounts[i] == NULL)
            return false;
        read_item(&out->items[i], load(first), admi_memory_read(&run->txn, out->amounts[i]));
    }
    for (uint32_t i = 0; i < out->meter_count; i++) {
        uint32_t at = MEMORY_ITEM_WORDS * (uint32_t)(counts & 0xff) + i;

        out->totals[i] = body_word(leases, place, at);
        if (out->totals[i] == NULL)
            return false;
        read_meter(&out->meters[i], admi_memory_read(&run->txn, out->totals[i]));
    }
    return admi_memory_read(&run->txn, &slot->state) == state;
}

/* ---- drafts ---- */

static void write_body(const struct memory_leases *leases, uint64_t place,
                       const struct memory_holding *holding)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < holding->item_count; i++) {
        const struct memory_item *item = &holding->items[i];

        store(body_word(leases, place, at++),
              (uint64_t)item->kind << 61 | (uint64_t)item->id << 32 | item->word);
        store(body_word(leases, place, at++), ADMI_TXN_WORD_OF(admi_memory_amount_word(item)));
    }
    for (uint32_t i = 0; i < holding->meter_count; i++)
        store(body_word(leases, place, at++),
              ADMI_TXN_WORD_OF(admi_memory_meter_word(&holding->meters[i])));
}

/* Slots for what does not fit into the first one. */
static bool reserve_parts(struct memory_run *run, struct memory_leases *leases, uint32_t words,
                          struct memory_draft *draft)
{
    uint64_t next = 0;

    for (; words > MEMORY_LEASE_BODY; words -= words - MEMORY_LEASE_BODY < MEMORY_PART_BODY
                                                   ? words - MEMORY_LEASE_BODY
                                                   : MEMORY_PART_BODY) {
        uint64_t slot = admi_memory_lease_reserve(run, leases);
        struct memory_lease *at;

        if (slot == 0)
            return false;
        ADMI_TXN_AT(slot_reserved);
        at = admi_memory_lease_at(leases, slot - 1);
        draft->parts[draft->part_count++] = slot;
        store(&(&at->state)[1], next);
        store(&at->state, ADMI_TXN_WORD_OF(admi_memory_state_next(
                              ADMI_TXN_VALUE_OF(load(&at->state)), MEMORY_LEASE_PART)));
        next = slot;
    }
    store(&admi_memory_lease_at(leases, draft->slot - 1)->counts, next << 32);
    return true;
}

/* Nobody who knows one id can guess another's secret. */
static uint64_t secret_of(const struct memory_region *region, const struct adm_id *seed,
                          uint64_t high)
{
    struct {
        struct adm_id seed;
        uint64_t high;
    } source = { *seed, high };

    return admi_hash64(&source, sizeof source, region->id_secret);
}

bool admi_memory_draft(struct memory_run *run, struct memory_leases *leases,
                       const struct memory_holding *holding, const struct adm_id *seed,
                       struct memory_draft *out)
{
    struct memory_lease *slot;
    uint64_t counts;

    out->leases = leases;
    out->part_count = 0;
    out->slot = admi_memory_lease_reserve(run, leases);
    if (out->slot == 0)
        return false;
    ADMI_TXN_AT(slot_reserved);
    if (!reserve_parts(run, leases, MEMORY_ITEM_WORDS * holding->item_count + holding->meter_count,
                       out)) {
        admi_memory_draft_drop(out);
        return false;
    }
    slot = admi_memory_lease_at(leases, out->slot - 1);
    out->reserved = ADMI_TXN_VALUE_OF(load(&slot->state));
    out->id.high = out->slot << 32 | MEMORY_STATE_GENERATION(out->reserved);
    out->id.low = secret_of(run->region, seed, out->id.high);
    counts = load(&slot->counts) | (uint64_t)holding->meter_count << 8 | holding->item_count;
    store(&slot->secret, out->id.low);
    store(&slot->ttl_ns, holding->ttl_ns);
    store(&slot->counts, counts);
    store(&slot->shadow, 0);
    store(&slot->shadow_secret, 0);
    write_body(leases, out->slot - 1, holding);
    admi_memory_deadline_set(&leases->deadlines, out->slot - 1,
                             later(run->now_ns, holding->ttl_ns));
    return true;
}

void admi_memory_draft_plan(const struct memory_draft *draft, struct memory_plan *plan)
{
    admi_memory_plan_set(plan, &admi_memory_lease_at(draft->leases, draft->slot - 1)->state,
                         draft->reserved,
                         admi_memory_state_next(draft->reserved, MEMORY_LEASE_LIVE));
}

/* Never earlier: that time has not passed, and time does not run back. */
void admi_memory_plan_renew(struct memory_plan *plan, const struct memory_holding *holding)
{
    struct memory_leases *leases = holding->leases;
    uint64_t expires_ns = later(plan->run->now_ns, holding->ttl_ns);

    admi_memory_plan_set(plan, &admi_memory_lease_at(leases, holding->place)->state, holding->state,
                         admi_memory_state_next(holding->state, MEMORY_LEASE_LIVE));
    admi_memory_plan_set(plan, admi_memory_deadline(&leases->deadlines, holding->place),
                         holding->deadline,
                         expires_ns > holding->deadline ? expires_ns : holding->deadline);
}

void admi_memory_draft_drop(struct memory_draft *draft)
{
    for (uint32_t i = 0; i < draft->part_count; i++)
        free_slot(draft->leases, draft->parts[i]);
    if (draft->slot != 0)
        free_slot(draft->leases, draft->slot);
    draft->slot = draft->part_count = 0;
}

void admi_memory_parts_free(struct memory_holding *holding)
{
    uint64_t part = holding->first_part;

    while (part != 0) {
        uint64_t next = load(&(&admi_memory_lease_at(holding->leases, part - 1)->state)[1]);

        free_slot(holding->leases, part);
        part = next;
    }
    no_longer_full(holding->leases);
}

/* ---- find ---- */

struct memory_lease *admi_memory_lease_find(struct memory_run *run, struct memory_leases *leases,
                                            struct adm_id id, uint64_t *state, uint64_t *place)
{
    struct memory_lease *slot;

    *place = (id.high >> 32) - 1;
    if (*place >= leases->count)
        return NULL;
    slot = admi_memory_lease_at(leases, *place);
    *state = admi_memory_read(&run->txn, &slot->state);
    if (MEMORY_STATE_GENERATION(*state) != (uint32_t)id.high || load(&slot->secret) != id.low)
        return NULL;
    switch (MEMORY_STATE_OF(*state)) {
    case MEMORY_LEASE_LIVE:
    case MEMORY_LEASE_LATE:
    case MEMORY_LEASE_CLOSED:
    case MEMORY_LEASE_CLOSED_LATE:
        return slot;
    case MEMORY_LEASE_FREE:
    case MEMORY_LEASE_RESERVED:
    case MEMORY_LEASE_PART:
        return NULL;
    }
    return NULL;
}

/* ---- expiry ---- */

struct expiry {
    struct memory_run *run;
    struct memory_leases *leases;
    bool found; /* something that was due */
};

/* From what was due to what comes next. RESERVED: nothing, it is somebody's. */
static enum memory_lease_state next_state(const struct expiry *expiry,
                                          const struct memory_holding *holding, uint64_t *deadline)
{
    *deadline = MEMORY_DEADLINE_NEVER;
    switch (MEMORY_STATE_OF(holding->state)) {
    case MEMORY_LEASE_LIVE:
    case MEMORY_LEASE_CLOSED:
        if (expiry->leases->space == MEMORY_SHADOW)
            return MEMORY_LEASE_FREE; /* nobody asks about a shadow hold */
        *deadline = later(holding->deadline, holding->ttl_ns);
        return MEMORY_STATE_OF(holding->state) == MEMORY_LEASE_LIVE ? MEMORY_LEASE_LATE
                                                                    : MEMORY_LEASE_CLOSED_LATE;
    case MEMORY_LEASE_PART:
        return MEMORY_LEASE_PART; /* the deadline is of the lease that was here before */
    case MEMORY_LEASE_FREE:
    case MEMORY_LEASE_RESERVED:
    case MEMORY_LEASE_LATE:
    case MEMORY_LEASE_CLOSED_LATE:
        break;
    }
    return MEMORY_LEASE_FREE;
}

static int expire_slot(const struct expiry *expiry, struct memory_holding *holding)
{
    struct memory_lease *slot = admi_memory_lease_at(expiry->leases, holding->place);
    enum memory_lease_state before = MEMORY_STATE_OF(holding->state), after;
    struct memory_plan plan;
    uint64_t deadline;
    int end;

    after = next_state(expiry, holding, &deadline);
    admi_memory_plan_begin(&plan, expiry->run);
    admi_memory_plan_set(&plan, &slot->state, holding->state,
                         admi_memory_state_next(holding->state, after));
    admi_memory_plan_set(&plan, admi_memory_deadline(&expiry->leases->deadlines, holding->place),
                         holding->deadline, deadline);
    if (before == MEMORY_LEASE_LIVE)
        (void)admi_memory_plan_unhold(&plan, holding);
    if (after == MEMORY_LEASE_FREE && (before == MEMORY_LEASE_LIVE || before == MEMORY_LEASE_LATE))
        admi_memory_plan_unpin(&plan, holding);
    ADMI_TXN_AT(expiry_planned);
    end = admi_memory_plan_run(&plan);
    if (end != ADMI_TXN_DONE)
        return end;
    ADMI_TXN_AT(expiry_done);
    if (before == MEMORY_LEASE_LIVE && expiry->leases->space == MEMORY_ENFORCED) {
        struct memory_context_state *own = admi_memory_context_state(expiry->run);

        store(&own->expired, load(&own->expired) + 1);
    }
    if (after == MEMORY_LEASE_FREE && (before == MEMORY_LEASE_LIVE || before == MEMORY_LEASE_LATE))
        admi_memory_parts_free(holding);
    no_longer_full(expiry->leases);
    admi_memory_loosened(expiry->run, expiry->leases->space);
    return ADMI_TXN_DONE;
}

static void visit(void *self, uint64_t place)
{
    struct expiry *expiry = self;
    struct memory_run *run = expiry->run;
    struct memory_lease *slot = admi_memory_lease_at(expiry->leases, place);

    for (;;) {
        struct memory_holding holding;
        int end;

        holding.state = admi_memory_read(&run->txn, &slot->state);
        if (MEMORY_STATE_OF(holding.state) == MEMORY_LEASE_RESERVED)
            return;
        if (MEMORY_STATE_OF(holding.state) == MEMORY_LEASE_LIVE ||
            MEMORY_STATE_OF(holding.state) == MEMORY_LEASE_LATE) {
            if (!admi_memory_lease_read(run, expiry->leases, place, holding.state, &holding))
                continue;
        } else {
            holding.place = place;
            holding.ttl_ns = load(&slot->ttl_ns);
            holding.deadline = admi_memory_read(
                &run->txn, admi_memory_deadline(&expiry->leases->deadlines, place));
        }
        if (holding.deadline > due_by(run))
            return;
        end = expire_slot(expiry, &holding);
        expiry->found = true;
        if (end == ADMI_TXN_STALE)
            admi_memory_begin(run);
    }
}

bool admi_memory_expire(struct memory_run *run)
{
    bool found = false;

    for (uint32_t i = 0; i < MEMORY_SPACES; i++) {
        struct expiry expiry = { run, &run->region->spaces[i].leases, false };

        if (!admi_memory_deadline_is_due(&expiry.leases->deadlines, due_by(run)))
            continue;
        if (!admi_memory_claim(run))
            continue;
        admi_memory_begin(run);
        admi_memory_deadlines_visit(&expiry.leases->deadlines, &run->txn, due_by(run), visit,
                                    &expiry);
        found = found || expiry.found;
    }
    return found;
}

uint64_t admi_memory_leases_used(struct memory_run *run, struct memory_leases *leases)
{
    uint64_t used = 0;

    for (uint64_t i = 0; i < leases->count; i++) {
        uint64_t state = admi_memory_read(&run->txn, &admi_memory_lease_at(leases, i)->state);

        used += MEMORY_STATE_OF(state) != MEMORY_LEASE_FREE;
    }
    return used;
}
