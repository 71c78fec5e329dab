/* SPDX-License-Identifier: Apache-2.0 */
/* Driving a backend through its table of operations. */
#include "state/contract/world.h"

#include <string.h>

#define DEFAULT_POLLS UINT64_C(100000)
#define START_NS      (UINT64_C(1000) * ADM_SECOND)
#define START_WALL_NS (UINT64_C(1780000000) * ADM_SECOND) /* the end of May 2026 */

static bool import_table(struct admi_world *world, const struct adm_backend *backend)
{
    const struct adm_backend_ops *from = backend->ops;

    if (from == NULL || from->size < offsetof(struct adm_backend_ops, poll) ||
        from->abi != ADM_BACKEND_ABI || from->start == NULL || from->close == NULL)
        return false;
    world->ops =
        (struct adm_backend_ops){ .size = sizeof world->ops, .abi = from->abi, .name = from->name };
    world->ops.start = from->start;
    world->ops.close = from->close;
    if (from->size >= offsetof(struct adm_backend_ops, cancel))
        world->ops.poll = from->poll;
    if (from->size >= offsetof(struct adm_backend_ops, watch))
        world->ops.cancel = from->cancel;
    if (from->size >= offsetof(struct adm_backend_ops, describe))
        world->ops.watch = from->watch;
    if (from->size >= sizeof *from)
        world->ops.describe = from->describe;
    world->self = backend->self;
    return true;
}

bool admi_world_open(struct admi_world *world, const struct adm_contract_subject *subject,
                     const struct adm_contract_sizes *sizes)
{
    const struct adm_contract_sizes small = {
        .partitions = 64, .leases = 64, .attempts = 16, .classes = 16
    };
    struct adm_backend backend = { NULL, NULL };

    *world = (struct admi_world){ .owner = "suite" };
    world->now = (struct adm_time){ START_NS, START_WALL_NS };
    world->polls_max = subject->polls_max != 0 ? subject->polls_max : DEFAULT_POLLS;
    world->random = subject->seed != 0 ? subject->seed : 1;
    world->resends = 8;
    if (subject->open(subject->user, sizes != NULL ? sizes : &small, &backend) != ADM_OK)
        return false;
    if (!import_table(world, &backend))
        return false;
    world->info = admi_world_info(world);
    return true;
}

void admi_world_close(struct admi_world *world)
{
    /* A backend that still has an op of a frame that is gone would complete it: rather leak it. */
    if (world->ops.close != NULL && !world->stuck)
        world->ops.close(world->self);
    world->ops.close = NULL;
}

struct adm_backend_info admi_world_info(struct admi_world *world)
{
    struct adm_backend_info info = { .size = sizeof info };

    if (world->ops.describe == NULL) {
        info.classes_max = info.partitions_max = info.leases_max = info.attempts_max = UINT64_MAX;
    } else if (world->ops.describe(world->self, &info) != ADM_OK) {
        info = (struct adm_backend_info){ .size = sizeof info };
    }
    return info;
}

uint64_t admi_world_random(struct admi_world *world, uint64_t below)
{
    uint64_t x = world->random += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

void admi_world_advance(struct admi_world *world, uint64_t ns)
{
    world->now.mono_ns += ns;
    world->now.wall_ns += ns;
}

/* ---- one op ---- */

/* An op that does not come back must at least be given up, or its memory could never be used
 * again. */
static void give_up(struct admi_world *world, struct adm_op *op)
{
    if (world->ops.cancel != NULL)
        world->ops.cancel(world->self, op);
    world->stuck = true;
}

static adm_status run_once(struct admi_world *world, struct adm_op *op)
{
    admi_op_begin(op, &world->home);
    world->ops.start(world->self, op);
    for (uint64_t polls = 0; !admi_op_is_complete(op); polls++) {
        if (world->ops.poll == NULL || polls == world->polls_max ||
            world->ops.poll(world->self, &op->now) != ADM_OK) {
            give_up(world, op);
            return ADM_E_INTERNAL;
        }
    }
    while (admi_op_drain(&world->home) != op) {
        /* completed by another thread, which is about to send it home */
    }
    return admi_op_status(op);
}

adm_status admi_world_run(struct admi_world *world, struct adm_op *op)
{
    op->size = sizeof *op;
    op->now = world->now;
    op->max_skew_ns = world->max_skew_ns;
    op->deadline_ns = UINT64_MAX;
    world->status = ADM_E_INTERNAL;
    for (uint32_t sent = 0; !world->stuck && sent <= world->resends; sent++) {
        world->status = run_once(world, op);
        if (world->status != ADM_E_BACKEND_UNAVAILABLE)
            break;
    }
    world->judged = op->judged;
    world->units = op->units;
    return world->status;
}

/* ---- classes ---- */

static struct adm_bytes text(const char *string)
{
    return (struct adm_bytes){ string, strlen(string) };
}

uint32_t admi_world_bucket(struct admi_world *world, const char *rule, uint64_t capacity,
                           uint64_t refill, uint64_t per_ns)
{
    uint32_t index = admi_world_counter(world, rule, ADM_KIND_BUCKET);

    world->classes[index].capacity = capacity;
    world->classes[index].refill = refill;
    world->classes[index].per_ns = per_ns;
    return index;
}

uint32_t admi_world_counter(struct admi_world *world, const char *rule, uint32_t kind)
{
    world->classes[world->class_count] =
        (struct adm_class){ .kind = kind, .rule = text(rule), .origin = text("") };
    return (uint32_t)world->class_count++;
}

adm_status admi_world_put(struct admi_world *world)
{
    struct adm_class_set set = { .owner = text(world->owner),
                                 .classes = world->classes,
                                 .class_count = world->class_count,
                                 .scopes = world->scopes,
                                 .scope_count = world->scope_count };
    struct adm_op op = { .kind = ADM_OP_PUT_CLASSES, .args.classes = &set };

    if (admi_world_run(world, &op) == ADM_OK)
        world->sequence = set.sequence;
    return world->status;
}

/* ---- takes ---- */

struct adm_term admi_world_term(const struct admi_world *world, uint32_t class_index,
                                const char *partition, uint64_t amount, uint64_t limit)
{
    const struct adm_class *class_ = &world->classes[class_index];
    struct adm_term term = { .kind = class_->kind,
                             .class_handle = class_->handle,
                             .replicas = 1,
                             .partition = text(partition),
                             .amount = amount,
                             .limit = limit };

    if ((class_->flags & ADM_CLASS_F_SHADOW) != 0)
        term.flags |= ADM_TERM_F_SHADOW;
    if (class_->kind == ADM_KIND_QUOTA)
        term.window = ADM_WINDOW_DAY;
    return term;
}

uint32_t admi_world_take_as(struct admi_world *world, struct adm_take *take)
{
    struct adm_op op = { .kind = ADM_OP_TAKE, .args.take = take };

    if (take->sequence == 0)
        take->sequence = world->sequence;
    if (take->ttl_ns == 0)
        take->ttl_ns = WORLD_TTL_NS;
    if ((take->seed.high | take->seed.low) == 0)
        take->seed = (struct adm_id){ admi_world_random(world, UINT64_MAX),
                                      admi_world_random(world, UINT64_MAX) };
    take->verdict = ADM_VERDICT_DENY;
    take->lease = (struct adm_id){ 0, 0 };
    if (admi_world_run(world, &op) != ADM_OK)
        return ADM_VERDICT_DENY;
    return take->verdict;
}

uint32_t admi_world_take(struct admi_world *world, struct adm_term *terms, uint32_t count,
                         struct adm_id *out_lease)
{
    struct adm_meter meters[2 * ADM_MAX_TERMS];
    struct adm_take take = { .terms = terms, .term_count = count, .meters = meters };
    uint32_t verdict;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 0;

        if ((terms[i].flags & ADM_TERM_F_SHADOW) != 0)
            continue;
        if (terms[i].kind == ADM_KIND_CONCURRENCY ||
            (terms[i].flags & (ADM_TERM_F_COMPLETION | ADM_TERM_F_SETTLE_EXACT)) != 0)
            take.flags = ADM_TAKE_F_LEASE;
        while (at < take.meter_count && meters[at].unit != terms[i].unit)
            at++;
        if (at == take.meter_count)
            meters[take.meter_count++] =
                (struct adm_meter){ .unit = terms[i].unit, .total = terms[i].amount };
    }
    verdict = admi_world_take_as(world, &take);
    if (out_lease != NULL)
        *out_lease = take.lease;
    return verdict;
}

uint32_t admi_world_take_one(struct admi_world *world, struct adm_term term,
                             struct adm_id *out_lease)
{
    return admi_world_take(world, &term, 1, out_lease);
}

int64_t admi_world_level(struct admi_world *world, uint32_t class_index, const char *partition)
{
    struct adm_term term = admi_world_term(world, class_index, partition, 0, 0);
    struct adm_take take = { .mode = ADM_TAKE_JUDGE, .terms = &term, .term_count = 1 };

    (void)admi_world_take_as(world, &take);
    return world->status == ADM_OK ? term.level : INT64_MIN;
}

/* ---- leases ---- */

static uint32_t about_lease(struct admi_world *world, uint32_t kind, struct adm_id lease,
                            const struct adm_settlement *settle)
{
    struct adm_op op = {
        .kind = kind, .lease = lease, .result = ADM_RESULT_OK, .args.settle = settle
    };

    return admi_world_run(world, &op) == ADM_OK ? op.outcome : (uint32_t)ADM_OUTCOME_COUNT;
}

uint32_t admi_world_give(struct admi_world *world, struct adm_id lease)
{
    return about_lease(world, ADM_OP_GIVE, lease, NULL);
}

uint32_t admi_world_renew(struct admi_world *world, struct adm_id lease)
{
    return about_lease(world, ADM_OP_RENEW, lease, NULL);
}

uint32_t admi_world_divert(struct admi_world *world, struct adm_id lease)
{
    return about_lease(world, ADM_OP_DIVERT, lease, NULL);
}

uint32_t admi_world_settle_all(struct admi_world *world, struct adm_id lease,
                               const struct adm_amount *totals, uint32_t count, bool final_all)
{
    struct adm_settlement settle = { totals, count, final_all };

    return about_lease(world, ADM_OP_SETTLE, lease, &settle);
}

uint32_t admi_world_settle(struct admi_world *world, struct adm_id lease, uint32_t unit,
                           uint64_t total, bool final)
{
    struct adm_amount amount = { unit, final ? ADM_AMOUNT_FINAL : 0, total };

    return admi_world_settle_all(world, lease, &amount, 1, false);
}
