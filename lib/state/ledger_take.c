/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Take, in a ledger: is the attempt known? is the class set current? has every enforced
 * term room for its state? does every term pass? Only then are they charged, all together. Until
 * then nothing has changed but what time itself changes, and partitions forgotten that were as new.
 */
#include "state/ledger.h"

#include "base/memory.h"
#include "state/take.h"

/* A term, looked up. */
struct judged {
    struct adm_term *term;
    struct ledger_region *region;
    uint32_t class_place; /* 0: a bucket in a replica scope for which there is no room */
    uint32_t family;
    uint32_t partition; /* 0: none, that is, as new; else pinned while the take lasts */
    bool no_room;
    bool item; /* the lease may settle it later */
    struct ledger_quota quota;
    struct admi_key key;
    uint64_t hash;
};

struct question {
    struct adm_take *take;
    struct judged terms[2 * ADM_MAX_TERMS];
    uint32_t held; /* terms whose partition is pinned: the first `held` were looked up */
};

/* ---- attempts ---- */

/* True: the take is answered. */
static bool answer_known_attempt(struct ledger *ledger, struct adm_take *take,
                                 struct admi_key *name, uint64_t *hash)
{
    const struct ledger_attempt *attempt;
    uint32_t place;

    admi_key_make(name, take->attempt, ledger->registry.key_secrets);
    *hash = admi_key_hash(name, 0, ledger->hash_secret);
    place = admi_ledger_attempt_find(ledger, name, *hash);
    if (place == 0)
        return false;
    attempt = attempt_at(ledger, place);
    if (!admi_bytes_equal(
            (struct adm_bytes){ attempt->digest, sizeof attempt->digest },
            (struct adm_bytes){ take->attempt_digest, sizeof take->attempt_digest })) {
        take->repeated = ADM_REPEAT_OTHER;
        return true;
    }
    take->repeated = ADM_REPEAT_SAME;
    take->verdict = ADM_VERDICT_ALLOW;
    take->lease = attempt->lease_id;
    take->memo_out_length = attempt->memo_length;
    if (take->memo_out != NULL)
        admi_copy(take->memo_out, attempt->memo, attempt->memo_length);
    return true;
}

/* ---- look-up ---- */

static bool needs_item(const struct adm_take *take, const struct adm_term *term)
{
    if ((take->flags & ADM_TAKE_F_LEASE) == 0 || (term->flags & ADM_TERM_F_SHADOW) != 0)
        return false;
    return term->kind == ADM_KIND_CONCURRENCY ||
           (term->flags & (ADM_TERM_F_COMPLETION | ADM_TERM_F_SETTLE_EXACT)) != 0;
}

static adm_status look_up(struct ledger *ledger, const struct adm_take *take, struct judged *judged)
{
    struct adm_term *term = judged->term;
    adm_status status = admi_ledger_term_class(ledger, term, take->sequence, &judged->class_place);

    if (status == ADM_E_BACKEND_FULL) {
        judged->no_room = true;
        judged->class_place = 0;
    } else if (status != ADM_OK) {
        return status;
    }
    judged->family = class_at(ledger, term->class_handle)->family;
    judged->region = admi_ledger_region_of(ledger, judged->family);
    judged->item = needs_item(take, term);
    if (term->kind == ADM_KIND_QUOTA)
        family_state_at(ledger, judged->family)->window = term->window;
    if (term->kind != ADM_KIND_BUCKET)
        judged->class_place = 0;
    if (judged->no_room)
        return ADM_OK;
    admi_key_make(&judged->key, term->partition, ledger->registry.key_secrets);
    judged->hash =
        admi_ledger_partition_hash(ledger, &judged->key, judged->family, judged->class_place);
    judged->partition = admi_ledger_partition_find(ledger, &judged->key, judged->hash,
                                                   judged->family, judged->class_place);
    if (judged->partition != 0)
        partition_at(judged->region, judged->partition)->pins++;
    return ADM_OK;
}

static adm_status look_up_all(struct ledger *ledger, struct question *question)
{
    struct adm_take *take = question->take;

    if (take->term_count == 0)
        return admi_registry_sequence_is_current(&ledger->registry, take->sequence)
                   ? ADM_OK
                   : ADM_E_BACKEND_STALE;
    for (uint32_t i = 0; i < take->term_count; i++) {
        struct judged *judged = &question->terms[i];
        adm_status status;

        *judged = (struct judged){ .term = &take->terms[i] };
        status = look_up(ledger, take, judged);
        if (status != ADM_OK)
            return status;
        question->held++;
    }
    return ADM_OK;
}

static void let_go(struct ledger *ledger, struct question *question)
{
    for (uint32_t i = 0; i < question->held; i++) {
        struct judged *judged = &question->terms[i];

        if (judged->partition != 0)
            admi_ledger_partition_unpin(ledger, judged->region, judged->partition);
    }
}

/* ---- room ---- */

/* Whether a term will need a record that is not there yet, and whether it will then differ from new
 * at once. */
static bool needs_record(const struct judged *judged)
{
    return judged->partition == 0 &&
           (judged->item ||
            (judged->term->amount > 0 && (judged->term->flags & ADM_TERM_F_COMPLETION) == 0));
}

static void find_room(struct ledger *ledger, struct judged *judged, uint64_t *needed)
{
    struct adm_term *term = judged->term;
    uint64_t passes_at_ns = UINT64_MAX;

    if (judged->no_room)
        judged->no_room =
            term->amount > 0 || (term->flags & ADM_TERM_F_COMPLETION) != 0 || judged->item;
    else if ((term->amount > 0 || (term->flags & ADM_TERM_F_COMPLETION) != 0) &&
             (judged->partition == 0 ||
              admi_ledger_partition_is_as_new(ledger,
                                              partition_at(judged->region, judged->partition))))
        judged->no_room =
            !admi_ledger_family_has_room(ledger, judged->family, judged->partition, &passes_at_ns);
    if (!judged->no_room && needs_record(judged))
        judged->no_room = !admi_ledger_region_has_room(ledger, judged->region, ++*needed);
    if (judged->no_room)
        term->passes_at_ns = passes_at_ns;
}

/* ---- verdicts ---- */

static void judge_bucket(struct ledger *ledger, struct judged *judged)
{
    struct adm_term *term = judged->term;
    uint64_t amount = (term->flags & ADM_TERM_F_COMPLETION) != 0 ? 1 : term->amount;
    const struct adm_odometer *odometer = &class_at(ledger, judged->class_place)->odometer;
    int64_t empty = judged->partition != 0 ? partition_at(judged->region, judged->partition)->empty
                                           : ADM_BUCKET_FRESH;

    term->level = adm_bucket_level(odometer, ledger->now_ns, empty);
    if (adm_bucket_take(odometer, ledger->now_ns, &empty, amount))
        return;
    term->verdict =
        amount > odometer->capacity || odometer->refill == 0 ? ADM_TERM_NEVER : ADM_TERM_EXCEEDED;
    if (term->verdict == ADM_TERM_EXCEEDED)
        term->passes_at_ns = adm_bucket_passes_at(odometer, ledger->now_ns, empty, amount);
}

static void judge_units(struct judged *judged, uint64_t used, uint64_t passes_at_ns)
{
    struct adm_term *term = judged->term;

    term->level = (int64_t)used;
    if (term->amount == 0 || (term->amount <= term->limit && used <= term->limit - term->amount))
        return;
    term->verdict = term->amount > term->limit ? ADM_TERM_NEVER : ADM_TERM_EXCEEDED;
    if (term->verdict == ADM_TERM_EXCEEDED)
        term->passes_at_ns = passes_at_ns;
}

static void judge_quota(struct ledger *ledger, struct judged *judged)
{
    const struct ledger_partition *partition =
        judged->partition != 0 ? partition_at(judged->region, judged->partition) : NULL;

    judged->quota = admi_ledger_quota(ledger, judged->family, partition);
    judge_units(judged, judged->quota.used, judged->quota.empty_at_ns);
}

static void judge(struct ledger *ledger, struct judged *judged)
{
    struct adm_term *term = judged->term;
    uint64_t room_at_ns = term->passes_at_ns;

    term->passes_at_ns = UINT64_MAX;
    if (term->kind == ADM_KIND_CONCURRENCY)
        judge_units(judged,
                    judged->partition != 0 ? partition_at(judged->region, judged->partition)->units
                                           : 0,
                    UINT64_MAX);
    else if (term->kind == ADM_KIND_QUOTA)
        judge_quota(ledger, judged);
    else if (judged->class_place != 0)
        judge_bucket(ledger, judged);
    if (judged->no_room) {
        bool shadow = (term->flags & ADM_TERM_F_SHADOW) != 0;

        term->verdict = shadow ? ADM_TERM_UNKNOWN : ADM_TERM_NO_ROOM;
        term->passes_at_ns = shadow ? UINT64_MAX : room_at_ns;
    }
}

static bool is_shadow(const struct judged *judged)
{
    return (judged->term->flags & ADM_TERM_F_SHADOW) != 0;
}

static void judge_all(struct ledger *ledger, struct question *question)
{
    struct adm_take *take = question->take;
    uint64_t needed[LEDGER_REGIONS] = { 0, 0 };

    for (uint32_t i = 0; i < take->term_count; i++)
        find_room(ledger, &question->terms[i], &needed[is_shadow(&question->terms[i])]);
    take->verdict = ADM_VERDICT_ALLOW;
    for (uint32_t i = 0; i < take->term_count; i++) {
        judge(ledger, &question->terms[i]);
        if (!is_shadow(&question->terms[i]) && take->terms[i].verdict != ADM_TERM_PASS)
            take->verdict = ADM_VERDICT_DENY;
    }
}

/* ---- charges ---- */

/* Room was found for it. */
static void make_record(struct ledger *ledger, struct judged *judged)
{
    if (!needs_record(judged))
        return;
    judged->partition = admi_ledger_partition_make(ledger, &judged->key, judged->hash,
                                                   judged->family, judged->class_place);
    partition_at(judged->region, judged->partition)->pins++;
}

static void charge(struct ledger *ledger, struct judged *judged)
{
    const struct adm_term *term = judged->term;

    make_record(ledger, judged);
    if (term->amount == 0 || (term->flags & ADM_TERM_F_COMPLETION) != 0)
        return;
    switch (term->kind) {
    case ADM_KIND_CONCURRENCY:
        admi_ledger_hold(judged->region, judged->partition, term->amount);
        break;
    case ADM_KIND_QUOTA:
        admi_ledger_quota_set(ledger, judged->region, judged->partition, &judged->quota,
                              judged->quota.used + term->amount);
        break;
    default:
        admi_ledger_bucket_charge(ledger, judged->region, judged->partition, term->amount);
        break;
    }
}

static void add_item(const struct judged *judged, struct ledger_lease *lease)
{
    const struct adm_term *term = judged->term;
    struct ledger_item item = { .partition = judged->partition,
                                .unit = term->unit,
                                .amount = term->amount,
                                .window = judged->quota.window };

    if ((term->flags & ADM_TERM_F_COMPLETION) != 0)
        item.flags |= LEDGER_ITEM_COMPLETION;
    if ((term->flags & ADM_TERM_F_SETTLE_EXACT) != 0)
        item.flags |= LEDGER_ITEM_EXACT;
    admi_ledger_lease_add(judged->region, lease, &item);
}

static bool is_shadow_hold(const struct judged *judged)
{
    const struct adm_term *term = judged->term;

    return is_shadow(judged) && term->kind == ADM_KIND_CONCURRENCY &&
           term->verdict == ADM_TERM_PASS && term->amount > 0;
}

static struct adm_id new_id(struct ledger *ledger, const struct adm_take *take)
{
    struct {
        struct adm_id seed;
        uint64_t serial;
    } source = { take->seed, 0 };
    struct adm_id id;

    /* The serial makes it new, the gate's bytes and our secret make it a secret. */
    do {
        source.serial = ++ledger->last_serial;
        admi_hash128(&source, sizeof source, ledger->id_secret, (uint8_t *)&id);
    } while ((id.high | id.low) == 0 ||
             admi_ledger_lease_find(&ledger->regions[LEDGER_ENFORCED], id) != 0 ||
             admi_ledger_lease_find(&ledger->regions[LEDGER_SHADOW], id) != 0);
    return id;
}

/* Shadow terms, beside the enforced ones. The hold ends with the request's lease, or by itself when
 * there is none. */
static void charge_shadow(struct ledger *ledger, struct question *question, struct adm_id id)
{
    const struct adm_take *take = question->take;
    struct ledger_region *region = &ledger->regions[LEDGER_SHADOW];
    bool leased = (take->flags & ADM_TAKE_F_LEASE) != 0;
    uint64_t ttl_ns = leased ? take->ttl_ns : take->shadow_ttl_ns;
    bool room = admi_ledger_lease_has_room(region);
    uint32_t place = 0;

    for (uint32_t i = 0; i < take->term_count; i++) {
        struct judged *judged = &question->terms[i];

        if (!is_shadow(judged) || judged->term->verdict != ADM_TERM_PASS)
            continue;
        if (!is_shadow_hold(judged)) {
            if (judged->term->kind != ADM_KIND_CONCURRENCY)
                charge(ledger, judged);
            continue;
        }
        if (ttl_ns == 0)
            continue; /* nobody wants it held */
        if (!room) {
            judged->term->verdict = ADM_TERM_UNKNOWN;
            continue;
        }
        if (place == 0)
            place = admi_ledger_lease_make(ledger, region, id, ttl_ns);
        charge(ledger, judged);
        add_item(judged, lease_at(region, place));
    }
}

static void remember(struct ledger *ledger, const struct adm_take *take,
                     const struct admi_key *name, uint64_t hash, uint32_t lease)
{
    uint32_t place = admi_ledger_attempt_make(ledger, name, hash);
    struct ledger_attempt *attempt = attempt_at(ledger, place);

    admi_copy(attempt->digest, take->attempt_digest, sizeof attempt->digest);
    attempt->until_ns = admi_ledger_later(ledger->now_ns, take->attempt_life_ns);
    attempt->lease_id = take->lease;
    attempt->lease = lease;
    attempt->memo_length = (uint32_t)take->memo.length;
    admi_copy(attempt->memo, take->memo.data, take->memo.length);
    if (lease != 0)
        lease_at(&ledger->regions[LEDGER_ENFORCED], lease)->attempt = place;
    admi_ledger_attempt_due(ledger, place);
}

/* Cannot fail: there is room for everything. */
static void charge_all(struct ledger *ledger, struct question *question,
                       const struct admi_key *name, uint64_t hash)
{
    struct adm_take *take = question->take;
    struct ledger_region *region = &ledger->regions[LEDGER_ENFORCED];
    struct adm_id id = new_id(ledger, take);
    uint32_t place = 0;

    if ((take->flags & ADM_TAKE_F_LEASE) != 0) {
        place = admi_ledger_lease_make(ledger, region, id, take->ttl_ns);
        lease_at(region, place)->meter_count = take->meter_count;
        for (uint32_t i = 0; i < take->meter_count; i++) {
            lease_at(region, place)->meters[i] = take->meters[i];
            lease_at(region, place)->meters[i].flags &= ADM_METER_F_DERIVED;
        }
        take->lease = id;
    }
    for (uint32_t i = 0; i < take->term_count; i++) {
        struct judged *judged = &question->terms[i];

        if (is_shadow(judged))
            continue;
        charge(ledger, judged);
        if (judged->item)
            add_item(judged, lease_at(region, place));
    }
    charge_shadow(ledger, question, id);
    if (take->attempt.length > 0)
        remember(ledger, take, name, hash, place);
}

/* ---- take ---- */

adm_status admi_ledger_take(struct ledger *ledger, struct adm_op *op)
{
    struct adm_take *take = op->args.take;
    struct question question;
    struct admi_key name;
    uint64_t hash = 0;
    adm_status status;

    if (take->term_count > 2 * ADM_MAX_TERMS || !admi_take_is_legal(take))
        return ADM_E_BACKEND_RESULT;
    admi_take_clear_results(take);
    if (take->attempt.length > 0 && answer_known_attempt(ledger, take, &name, &hash))
        return ADM_OK;
    question.take = take;
    question.held = 0;
    status = look_up_all(ledger, &question);
    if (status == ADM_OK) {
        judge_all(ledger, &question);
        if (take->verdict == ADM_VERDICT_ALLOW && take->mode == ADM_TAKE_CHARGE) {
            bool lease_room = (take->flags & ADM_TAKE_F_LEASE) == 0 ||
                              admi_ledger_lease_has_room(&ledger->regions[LEDGER_ENFORCED]);
            bool attempt_room =
                take->attempt.length == 0 || ledger->attempt_table.used < ledger->attempt_table.max;

            if (lease_room && attempt_room)
                charge_all(ledger, &question, &name, hash);
            else
                status = ADM_E_BACKEND_FULL;
        }
    }
    let_go(ledger, &question);
    if (status != ADM_OK)
        admi_take_clear_results(take);
    return status;
}
