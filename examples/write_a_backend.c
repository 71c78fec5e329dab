/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole backend on public headers alone, and its contract runner. Arrays of fixed sizes, linear
 * search, one thread at a time. A take judges and charges on a copy of the state, which is kept
 * only when all terms pass, so that nothing has to be undone. docs/writing-a-backend.md explains.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <admit/testing.h>

enum { CLASSES = 32, PLACES = 256, LEASES = 320, ATTEMPTS = 64, NAME = 600 };
struct name {
    uint32_t length;
    uint8_t bytes[NAME];
};
struct kept_class { /* kind 0: free; sequence 0: in no set, waits until its buckets are full */
    uint64_t sequence, max_partitions, capacity, refill, per_ns, replicas;
    uint32_t kind, flags;
    struct name rule, own; /* owner and rule; origin and replica scope */
    struct adm_odometer odometer;
};
struct place { /* one bucket, count or quota; kind 0: free */
    uint32_t kind, shadow, class_at, window;
    struct name rule, key;
    int64_t empty;
    uint64_t held;
    struct adm_quota quota;
};
struct attempt { /* name.length 0: free */
    struct name name, memo;
    uint8_t digest[16];
    uint64_t until_ns;
    struct adm_id lease;
};
struct state {
    uint64_t now_ns, wall_ns, skew_ns, sequence, expired;
    struct kept_class classes[CLASSES + 1]; /* 0: none */
    struct place places[PLACES];
    struct adm_lease_record leases[LEASES];
    struct attempt attempts[ATTEMPTS];
};
struct mine {
    pid_t process;
    struct state now, next;
};

static int append(struct name *name, struct adm_bytes part) /* prefixed: no two lists are alike */
{
    if (part.length + 2 > NAME - name->length)
        return 0;
    name->bytes[name->length++] = (uint8_t)(part.length >> 8);
    name->bytes[name->length++] = (uint8_t)part.length;
    if (part.length > 0)
        memcpy(name->bytes + name->length, part.data, part.length);
    name->length += (uint32_t)part.length;
    return 1;
}

static int begins(const struct name *name, const struct name *with)
{
    return name->length >= with->length && memcmp(name->bytes, with->bytes, with->length) == 0;
}

static int same(const struct name *a, const struct name *b)
{
    return a->length == b->length && begins(a, b);
}

static int is_new(const struct state *s, const struct place *p)
{
    if (p->kind == ADM_KIND_BUCKET)
        return (int)adm_bucket_is_full(&s->classes[p->class_at].odometer, s->now_ns, p->empty);
    return p->kind == ADM_KIND_QUOTA
               ? adm_quota_at(&p->quota, p->window, s->wall_ns, s->skew_ns).used == 0
               : p->held == 0;
}

static void apply(struct state *s, const struct adm_lease_record *lease, const int64_t *changes)
{
    for (uint32_t i = 0; i < ADM_LEASE_ITEMS; i++) {
        const struct adm_lease_item *item = &lease->items[i];
        struct place *p = &s->places[item->place];
        const struct adm_odometer *odometer = &s->classes[p->class_at].odometer;
        uint64_t up = changes[i] > 0 ? (uint64_t)changes[i] : 0;

        if ((item->flags & ADM_TERM_F_COMPLETION) != 0 && up > odometer->capacity)
            up = odometer->capacity;
        if (changes[i] == 0)
            continue;
        if (p->kind == ADM_KIND_CONCURRENCY)
            p->held += (uint64_t)changes[i];
        else if (p->kind == ADM_KIND_QUOTA)
            adm_quota_change(&p->quota, p->window, s->wall_ns, s->skew_ns, item->window,
                             changes[i]);
        else if (up > 0)
            adm_bucket_charge(odometer, s->now_ns, &p->empty, up);
        else
            adm_bucket_refund(odometer, s->now_ns, &p->empty, (uint64_t)-changes[i]);
    }
}

static struct adm_lease_record *find_lease(struct state *s, struct adm_id id)
{
    for (uint32_t i = 0; i < LEASES; i++)
        if (s->leases[i].state != 0 && s->leases[i].id.high == id.high &&
            s->leases[i].id.low == id.low)
            return &s->leases[i];
    return NULL;
}

/* What time alone does, before anything else: leases end (K6), what is as new is forgotten (K5). */
static void pass_time(struct state *s)
{
    uint32_t pins[PLACES] = { 0 }, used[CLASSES + 1] = { 0 };
    int64_t changes[ADM_LEASE_ITEMS];

    for (struct adm_lease_record *lease = s->leases; lease < s->leases + LEASES; lease++) {
        uint32_t live = lease->state == ADM_LEASE_LIVE, gone;

        if (lease->state == 0)
            continue;
        gone = adm_lease_record_expire(lease, s->now_ns, changes);
        s->expired += live && lease->state != ADM_LEASE_LIVE;
        apply(s, lease, changes);
        if (gone)
            lease->state = lease->item_count = 0;
        for (uint32_t i = 0; i < lease->item_count; i++)
            pins[lease->items[i].place]++;
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        if (pins[i] == 0 && s->places[i].kind != 0 && is_new(s, &s->places[i]))
            s->places[i].kind = 0;
        used[s->places[i].kind != 0 ? s->places[i].class_at : 0]++;
    }
    for (struct kept_class *c = s->classes + 1; c <= s->classes + CLASSES; c++)
        if (c->sequence == 0 && used[c - s->classes] == 0 &&
            (c->kind != ADM_KIND_BUCKET ||
             adm_bucket_is_full(&c->odometer, s->now_ns, ADM_BUCKET_FRESH)))
            c->kind = 0;
    for (struct attempt *a = s->attempts; a < s->attempts + ATTEMPTS; a++) {
        const struct adm_lease_record *lease = find_lease(s, a->lease);

        if (a->until_ns <= s->now_ns && (lease == NULL || lease->state != ADM_LEASE_LIVE))
            a->name.length = 0;
    }
}

/* Numbers of a class from now on; untouched when they are the same, so that nothing is rounded. */
static void set_numbers(struct state *s, struct kept_class *c, uint64_t replicas)
{
    struct adm_odometer before = c->odometer;
    uint64_t grid = (c->flags & ADM_CLASS_F_PER_REPLICA) && replicas < 1024 ? 1024 / replicas : 1;
    uint64_t most = replicas < ADM_MAX_AMOUNT / 1000 ? replicas : ADM_MAX_AMOUNT / 1000;
    uint64_t capacity = c->capacity > ADM_MAX_AMOUNT / most ? ADM_MAX_AMOUNT : c->capacity * most;
    uint64_t refill = c->refill > c->per_ns / most ? c->per_ns : c->refill * most;

    if (before.per_ns == 0)
        adm_odometer_init(&c->odometer, s->now_ns, capacity, refill, c->per_ns, grid);
    else if ((before.capacity != capacity || before.refill != refill ||
              before.per_ns != c->per_ns) &&
             adm_odometer_change(&c->odometer, s->now_ns, capacity, refill, c->per_ns, grid))
        for (struct place *p = s->places; p < s->places + PLACES; p++)
            if (p->kind == ADM_KIND_BUCKET && &s->classes[p->class_at] == c)
                p->empty = adm_bucket_rescale(&before, &c->odometer, s->now_ns, p->empty);
}

static struct kept_class *find_class(struct state *s, uint32_t kind, uint32_t shadow,
                                     const struct name *rule, const struct name *own)
{
    for (struct kept_class *c = s->classes + 1; c <= s->classes + CLASSES; c++)
        if (kind == 0 ? c->kind == 0
                      : c->kind == kind && (c->flags & ADM_CLASS_F_SHADOW) == shadow &&
                            same(&c->rule, rule) && same(&c->own, own))
            return c;
    return NULL;
}

static uint64_t replicas_of(const struct adm_class_set *set, const struct name *base,
                            const struct kept_class *c)
{
    for (uint64_t i = 0; i < set->scope_count; i++) {
        struct name own = *base;

        if (append(&own, set->scopes[i].scope) && same(&own, &c->own))
            return set->scopes[i].replicas > 0 ? set->scopes[i].replicas : 1;
    }
    return 1;
}

/* On a copy of the state: half of a set is never seen. */
static adm_status put_classes(struct state *s, struct adm_class_set *set)
{
    struct name owner = { 0 };

    if (!append(&owner, set->owner))
        return ADM_E_BACKEND_FULL;
    for (struct kept_class *c = s->classes + 1; c <= s->classes + CLASSES; c++)
        c->sequence = begins(&c->rule, &owner) ? 0 : c->sequence;
    set->sequence = ++s->sequence;
    for (uint32_t pass = 0; pass < 2; pass++) { /* first what stays, then into what is free */
        for (uint64_t i = 0; i < set->class_count; i++) {
            struct adm_class *told = &set->classes[i];
            struct name rule = owner, own = { 0 };
            uint32_t shadow = told->flags & ADM_CLASS_F_SHADOW;
            struct kept_class *base;

            if (!append(&rule, told->rule) || !append(&own, told->origin))
                return ADM_E_BACKEND_FULL;
            if (told->kind == ADM_KIND_BUCKET && (told->capacity > ADM_MAX_AMOUNT ||
                                                  told->per_ns == 0 || told->refill > told->per_ns))
                return ADM_E_BACKEND_RESULT;
            base = find_class(s, told->kind, shadow, &rule, &own);
            if (base == NULL && pass == 0)
                continue;
            if (base == NULL && (base = find_class(s, 0, 0, NULL, NULL)) == NULL)
                return ADM_E_BACKEND_FULL;
            if (base->kind == 0)
                *base = (struct kept_class){ .kind = told->kind, .rule = rule, .own = own };
            for (struct kept_class *c = s->classes + 1; c <= s->classes + CLASSES; c++) {
                if (c->kind != told->kind ||
                    (c != base && (c->flags & ADM_CLASS_F_SHADOW) != shadow) ||
                    !same(&c->rule, &rule) || !begins(&c->own, &own))
                    continue; /* neither the class nor one of its replica scopes */
                c->sequence = s->sequence;
                c->flags = told->flags;
                c->max_partitions = told->max_partitions;
                c->capacity = told->capacity;
                c->refill = told->refill;
                c->per_ns = told->per_ns;
                if (c->kind == ADM_KIND_BUCKET)
                    set_numbers(s, c,
                                c == base || !(told->flags & ADM_CLASS_F_PER_REPLICA)
                                    ? 1
                                    : replicas_of(set, &own, c));
            }
            told->handle = (uint64_t)(base - s->classes);
        }
        if (pass == 0)
            pass_time(s);
    }
    return ADM_OK;
}

/* The class of a term: 0, and OK, when there is no room for one more replica scope. */
static adm_status class_of(struct state *s, uint64_t sequence, const struct adm_term *term,
                           uint32_t *out)
{
    const struct kept_class *base =
        &s->classes[term->class_handle <= CLASSES ? term->class_handle : 0];
    struct kept_class *c;
    struct name own = base->own;

    *out = (uint32_t)(base - s->classes);
    if (base->kind != term->kind || base->sequence != sequence || sequence == 0 ||
        (base->flags & ADM_CLASS_F_SHADOW) != (term->flags & ADM_TERM_F_SHADOW))
        return ADM_E_BACKEND_STALE;
    if (term->kind != ADM_KIND_BUCKET || !(base->flags & ADM_CLASS_F_PER_REPLICA) ||
        term->scope.length == 0)
        return ADM_OK;
    *out = 0;
    if (!append(&own, term->scope))
        return ADM_OK;
    c = find_class(s, base->kind, base->flags & ADM_CLASS_F_SHADOW, &base->rule, &own);
    if (c == NULL) {
        if ((c = find_class(s, 0, 0, NULL, NULL)) == NULL)
            return ADM_OK;
        *c = *base;
        c->own = own;
        c->odometer = (struct adm_odometer){ 0 };
    }
    set_numbers(s, c, term->replicas > 0 ? term->replicas : 1);
    *out = (uint32_t)(c - s->classes);
    return ADM_OK;
}

/* Judge a term and, on this copy of the state, charge it. */
static void judge(struct state *s, const struct adm_take *take, struct adm_term *term,
                  uint32_t class_at, struct adm_lease_record *lease)
{
    const struct kept_class *c = &s->classes[class_at];
    uint32_t bucket = term->kind == ADM_KIND_BUCKET, shadow = term->flags & ADM_TERM_F_SHADOW;
    uint32_t later = term->flags & ADM_TERM_F_COMPLETION, leased = take->flags & ADM_TAKE_F_LEASE;
    uint32_t item = leased && (term->kind == ADM_KIND_CONCURRENCY ||
                               (!shadow && (later || (term->flags & ADM_TERM_F_SETTLE_EXACT))));
    uint32_t counts = term->amount > 0 || later, in_region = 0, verdict = ADM_TERM_PASS;
    uint64_t live = 0, room_at = UINT64_MAX, amount = later ? 1 : term->amount, used;
    struct place fresh = { .kind = term->kind, .empty = ADM_BUCKET_FRESH };
    struct place *p = NULL, *hole = NULL;
    int64_t empty;

    fresh.shadow = shadow;
    fresh.class_at = bucket ? class_at : 0;
    fresh.window = term->window;
    fresh.rule = c->rule;
    uint32_t no_room = (class_at == 0 && (counts || item)) || !append(&fresh.key, term->partition);

    for (struct place *at = s->places; at < s->places + PLACES; at++) {
        hole = at->kind == 0 ? at : hole;
        in_region += at->kind != 0 && at->shadow == shadow;
        if (at->kind != term->kind || at->shadow != shadow || !same(&at->rule, &fresh.rule))
            continue;
        if (at->class_at == fresh.class_at && same(&at->key, &fresh.key)) {
            p = at;
        } else if (!is_new(s, at)) {
            const struct adm_odometer *odometer = &s->classes[at->class_at].odometer;
            uint64_t full_at =
                bucket ? adm_bucket_passes_at(odometer, s->now_ns, at->empty, odometer->capacity)
                       : UINT64_MAX;

            live++;
            room_at = full_at < room_at ? full_at : room_at;
        }
    }
    if (c->max_partitions != live)
        room_at = UINT64_MAX; /* not known, or another bound */
    no_room |=
        counts && (p == NULL || is_new(s, p)) && c->max_partitions > 0 && live >= c->max_partitions;
    if (p == NULL && !no_room && (item || (term->amount > 0 && !later))) {
        no_room = in_region >= PLACES / 2;
        if (!no_room)
            *(p = hole) = fresh;
    }
    p = p != NULL ? p : &fresh;
    p->window = term->window;
    struct adm_quota quota = adm_quota_at(&p->quota, p->window, s->wall_ns, s->skew_ns);

    empty = p->empty;
    if (bucket && class_at != 0) {
        term->level = adm_bucket_level(&c->odometer, s->now_ns, empty);
        if (!adm_bucket_take(&c->odometer, s->now_ns, &empty, amount))
            verdict = amount > c->odometer.capacity || c->odometer.refill == 0 ? ADM_TERM_NEVER
                                                                               : ADM_TERM_EXCEEDED;
        if (verdict == ADM_TERM_EXCEEDED)
            term->passes_at_ns = adm_bucket_passes_at(&c->odometer, s->now_ns, empty, amount);
    } else if (!bucket) {
        used = term->kind == ADM_KIND_QUOTA ? quota.used : p->held;
        term->level = (int64_t)used;
        if (amount > 0 && (amount > term->limit || used > term->limit - amount))
            verdict = amount > term->limit ? ADM_TERM_NEVER : ADM_TERM_EXCEEDED;
        if (verdict == ADM_TERM_EXCEEDED && term->kind == ADM_KIND_QUOTA)
            term->passes_at_ns = quota.empty_at_ns;
    }
    if (no_room) {
        verdict = shadow ? ADM_TERM_UNKNOWN : ADM_TERM_NO_ROOM;
        term->passes_at_ns = shadow ? UINT64_MAX : room_at;
    } else if (term->kind == ADM_KIND_CONCURRENCY && !leased && amount > 0) {
        verdict = ADM_TERM_UNKNOWN; /* shadow: nothing would end the hold */
    }
    term->verdict = verdict;
    if (verdict != ADM_TERM_PASS)
        return;
    if (bucket)
        p->empty = later ? p->empty : empty;
    else if (term->kind == ADM_KIND_QUOTA)
        adm_quota_change(&p->quota, p->window, s->wall_ns, s->skew_ns, quota.index,
                         (int64_t)amount);
    else
        p->held += amount;
    if (item)
        adm_lease_record_add(lease, term, (uint64_t)(p - s->places), quota.index);
}

/* A known attempt; else judge all terms on the copy, and keep it if they all pass. */
static adm_status take(struct mine *mine, struct adm_take *take)
{
    struct state *now = &mine->now, *next = &mine->next;
    uint32_t classes[2 * ADM_MAX_TERMS] = { 0 };
    struct adm_lease_record spare, *lease = NULL;
    struct attempt *attempt = NULL;
    struct name name = { 0 };
    struct adm_id id = take->seed;

    take->verdict = ADM_VERDICT_DENY;
    take->repeated = ADM_REPEAT_NONE;
    take->lease = (struct adm_id){ 0, 0 };
    take->memo_out_length = 0;
    if (take->term_count > 2 * ADM_MAX_TERMS || take->memo.length > ADM_MEMO_BYTES)
        return ADM_E_BACKEND_RESULT;
    if (take->attempt.length > 0 && !append(&name, take->attempt))
        return ADM_E_BACKEND_FULL;
    for (struct attempt *a = now->attempts; name.length > 0 && a < now->attempts + ATTEMPTS; a++) {
        attempt = a->name.length == 0 ? &next->attempts[a - now->attempts] : attempt;
        if (!same(&a->name, &name))
            continue;
        take->repeated = ADM_REPEAT_OTHER;
        if (memcmp(a->digest, take->attempt_digest, sizeof a->digest) != 0)
            return ADM_OK;
        take->repeated = ADM_REPEAT_SAME;
        take->verdict = ADM_VERDICT_ALLOW;
        take->lease = a->lease;
        take->memo_out_length = a->memo.length;
        if (take->memo_out != NULL)
            memcpy(take->memo_out, a->memo.bytes, a->memo.length);
        return ADM_OK;
    }
    for (uint32_t i = 0; i < take->term_count; i++) {
        struct adm_term *term = &take->terms[i];
        adm_status status = class_of(now, take->sequence, term, &classes[i]);

        if (status != ADM_OK)
            return status;
        term->level = 0;
        term->passes_at_ns = UINT64_MAX;
        if (term->kind == ADM_KIND_CONCURRENCY && term->amount > 0 &&
            !(term->flags & ADM_TERM_F_SHADOW) && !(take->flags & ADM_TAKE_F_LEASE))
            return ADM_E_BACKEND_RESULT; /* it would be held for ever */
    }
    *next = *now; /* K2: what follows happens to the copy, which is kept only after an allow */
    do {          /* K3: never an id that is or was somebody's */
        id.high ^= ++next->sequence;
    } while ((id.high | id.low) == 0 || find_lease(next, id) != NULL);
    for (struct adm_lease_record *at = next->leases; at < next->leases + LEASES; at++)
        if (at->state == 0 || (at->state == ADM_LEASE_CLOSED && lease == NULL))
            lease = at;
    lease = take->flags & ADM_TAKE_F_LEASE ? lease : &spare;
    struct adm_lease_record *record = lease != NULL ? lease : &spare;

    adm_lease_record_open(record, id, take, next->now_ns);
    take->verdict = ADM_VERDICT_ALLOW;
    for (uint32_t i = 0; i < take->term_count; i++) {
        judge(next, take, &take->terms[i], classes[i], record);
        if (take->terms[i].verdict != ADM_TERM_PASS && !(take->terms[i].flags & ADM_TERM_F_SHADOW))
            take->verdict = ADM_VERDICT_DENY;
    }
    if (take->verdict == ADM_VERDICT_DENY || take->mode == ADM_TAKE_JUDGE)
        return ADM_OK;
    if (lease == NULL || (name.length > 0 && attempt == NULL)) {
        take->verdict = ADM_VERDICT_DENY;
        return ADM_E_BACKEND_FULL;
    }
    if (lease != &spare)
        take->lease = id;
    if (name.length > 0) {
        *attempt = (struct attempt){ .name = name, .lease = take->lease };
        attempt->until_ns = next->now_ns > UINT64_MAX - take->attempt_life_ns
                                ? UINT64_MAX
                                : next->now_ns + take->attempt_life_ns;
        memcpy(attempt->digest, take->attempt_digest, sizeof attempt->digest);
        attempt->memo.length = (uint32_t)take->memo.length;
        if (take->memo.length > 0)
            memcpy(attempt->memo.bytes, take->memo.data, take->memo.length);
    }
    *now = *next;
    return ADM_OK;
}

static adm_status perform(struct mine *mine, struct adm_op *op)
{
    struct state *s = &mine->now;
    int64_t changes[ADM_LEASE_ITEMS];
    struct adm_lease_record *lease;
    adm_status status;

    s->now_ns = op->now.mono_ns > s->now_ns ? op->now.mono_ns : s->now_ns; /* K4 */
    s->wall_ns = op->now.wall_ns;
    s->skew_ns = op->max_skew_ns;
    op->judged = (struct adm_time){ s->now_ns, s->wall_ns };
    pass_time(s);
    switch (op->kind) {
    case ADM_OP_PUT_CLASSES:
        mine->next = *s;
        status = put_classes(&mine->next, op->args.classes);
        if (status == ADM_OK)
            *s = mine->next;
        return status;
    case ADM_OP_TAKE:
        return take(mine, op->args.take);
    case ADM_OP_SWEEP: /* every op has just swept everything */
        op->args.sweep->looked = op->args.sweep->freed = 0;
        op->args.sweep->done = 1;
        return ADM_OK;
    case ADM_OP_GIVE:
    case ADM_OP_RENEW:
    case ADM_OP_SETTLE:
    case ADM_OP_DIVERT:
        lease = find_lease(s, op->lease);
        adm_lease_record_step(lease, op, s->now_ns, changes);
        if (lease != NULL)
            apply(s, lease, changes);
        return ADM_OK;
    default:
        return ADM_E_BACKEND_RESULT;
    }
}

static void start(void *self, struct adm_op *op)
{
    struct mine *mine = self;

    adm_op_complete(op, getpid() == mine->process ? perform(mine, op) : ADM_E_BACKEND_FORKED);
}

static adm_status describe(void *self, struct adm_backend_info *info)
{
    const struct mine *mine = self;

    info->threads = ADM_THREADS_SERIAL; /* one thread at a time: no lock */
    info->classes = info->partitions = info->leases = info->attempts = 0;
    for (uint32_t i = 0; i <= CLASSES; i++)
        info->classes += mine->now.classes[i].kind != 0;
    for (uint32_t i = 0; i < PLACES; i++)
        info->partitions += mine->now.places[i].kind != 0 && !mine->now.places[i].shadow;
    for (uint32_t i = 0; i < LEASES; i++)
        info->leases += mine->now.leases[i].state != 0;
    for (uint32_t i = 0; i < ATTEMPTS; i++)
        info->attempts += mine->now.attempts[i].name.length > 0;
    info->classes_max = CLASSES;
    info->partitions_max = PLACES / 2; /* the other half is for shadow rules */
    info->leases_max = LEASES;
    info->attempts_max = ATTEMPTS;
    info->expired = mine->now.expired;
    return ADM_OK;
}

static adm_status open_mine(void *user, const struct adm_contract_sizes *sizes,
                            struct adm_backend *out)
{
    static const struct adm_backend_ops ops = { .size = sizeof ops,
                                                .abi = ADM_BACKEND_ABI,
                                                .name = "mine",
                                                .start = start,
                                                .close = free,
                                                .describe = describe };
    struct mine *mine = calloc(1, sizeof *mine);

    (void)user, (void)sizes; /* fixed sizes, which describe tells */
    if (mine == NULL)
        return ADM_E_NOMEM;
    mine->process = getpid();
    *out = (struct adm_backend){ &ops, mine };
    return ADM_OK;
}

int main(void)
{
    struct adm_contract_subject subject = { .size = sizeof subject,
                                            .name = "mine",
                                            .open = open_mine };

    return adm_contract_main(&subject);
}
