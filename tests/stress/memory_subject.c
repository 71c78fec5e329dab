/* SPDX-License-Identifier: Apache-2.0 */
/* The subject of memory_subject.h. */
#include "memory_subject.h"

#include <sched.h>

#include "points.h"
#include "state/memory.h"
#include "state/operation.h"

#define LEASES    512u /* none is used again within a history */
#define ROLLBACKS 4096u

uint64_t scale = STRESS_SCALE, seed = 1;
static unsigned tests, failures;

const struct way usual = { "hard after 16 attempts", 16, 256, false };
const struct way hard_at_once = { "hard at once", 0, 256, false };
const struct way rollback = { "rollback", 0, 0, true };
const struct way ways[] = { { "hard at once", 0, 256, false },
                            { "hard at once, no back-off", 0, 0, false },
                            { "hard after 1", 1, 256, false },
                            { "hard after 4", 4, 256, false },
                            { "hard after 4, no back-off", 4, 0, false },
                            { "never hard", ENDLESS, 256, false } };
const uint32_t way_count = sizeof ways / sizeof ways[0];

/* ---- TAP, chance, other threads ---- */

void begin(void)
{
    const char *text = getenv("ADMIT_STRESS_SCALE");

    if (text != NULL)
        scale = strtoull(text, NULL, 10);
    text = getenv("ADMIT_STRESS_SEED");
    if (text != NULL)
        seed = strtoull(text, NULL, 10);
    if (scale == 0)
        scale = 1;
    printf("# scale %" PRIu64 ", seed %" PRIu64 "\n", scale, seed);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

int end(void)
{
    printf("1..%u\n", tests);
    return failures > 0;
}

void ok(bool passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    failures += !passed;
}

uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

void yield_at_points(uint32_t one_in, uint64_t random)
{
    yield_one_in = one_in;
    yield_random = random;
}

void wait_at_points(const _Atomic uint64_t *work)
{
    others_work = work;
}

void stress_at_point(int point)
{
    at_point((enum point)point);
}

/* ---- rollback: one term after another, and back again on a refusal ---- */

struct rolled {
    struct adm_id leases[TERMS_MAX];
    uint32_t count;
};

struct rolling {
    struct adm_backend plain;
    _Atomic uint64_t used;
    struct rolled rolled[ROLLBACKS];
};

static adm_status run_on(const struct adm_backend *backend, struct adm_op *op)
{
    op->size = sizeof *op;
    op->deadline_ns = UINT64_MAX;
    admi_op_begin_direct(op, NULL);
    backend->ops->start(backend->self, op);
    if (!admi_op_is_complete(op))
        abort();
    return admi_op_status(op);
}

static void about_one(const struct rolling *rolling, struct adm_op *op, const struct adm_op *of,
                      struct adm_id lease)
{
    op->now = of->now;
    op->lease = lease;
    if (run_on(&rolling->plain, op) != ADM_OK)
        abort();
}

static void put_back(const struct rolling *rolling, const struct adm_op *of,
                     const struct rolled *rolled)
{
    for (uint32_t i = 0; i < rolled->count; i++) {
        struct adm_amount nothing = { of->args.take->terms[i].unit, ADM_AMOUNT_FINAL, 0 };
        const struct adm_settlement settlement = { &nothing, 1, 1 };
        struct adm_op settle = { .kind = ADM_OP_SETTLE, .args.settle = &settlement };
        struct adm_op give = { .kind = ADM_OP_GIVE };

        about_one(rolling, &settle, of, rolled->leases[i]);
        about_one(rolling, &give, of, rolled->leases[i]);
    }
}

static adm_status take_and_roll_back(struct rolling *rolling, struct adm_op *of)
{
    struct adm_take *take = of->args.take;
    struct rolled rolled = { .count = 0 };
    uint64_t at;

    for (uint32_t i = 0; i < take->term_count; i++) {
        struct adm_take one = *take;
        struct adm_op op = { .kind = ADM_OP_TAKE, .now = of->now, .args.take = &one };
        adm_status status;

        one.terms = &take->terms[i];
        one.term_count = one.meter_count = 1;
        one.meters = &take->meters[i];
        one.flags = ADM_TAKE_F_LEASE;
        one.seed.low += i;
        status = run_on(&rolling->plain, &op);
        if (status != ADM_OK)
            return status;
        if (one.verdict != ADM_VERDICT_ALLOW) {
            put_back(rolling, of, &rolled);
            take->verdict = ADM_VERDICT_DENY;
            return ADM_OK;
        }
        rolled.leases[rolled.count++] = one.lease;
        at_point(before_enter); /* something is reserved: now others look */
    }
    at = atomic_fetch_add(&rolling->used, 1) % ROLLBACKS;
    rolling->rolled[at] = rolled;
    take->verdict = ADM_VERDICT_ALLOW;
    take->lease = (struct adm_id){ at + 1, 1 };
    return ADM_OK;
}

static void rolling_start(void *self, struct adm_op *op)
{
    struct rolling *rolling = self;
    adm_status status = ADM_OK;

    if (op->kind == ADM_OP_TAKE) {
        status = take_and_roll_back(rolling, op);
    } else if (op->kind == ADM_OP_GIVE) {
        const struct rolled *rolled = &rolling->rolled[op->lease.high - 1];

        op->units = 0;
        for (uint32_t i = 0; i < rolled->count; i++) {
            struct adm_op give = { .kind = ADM_OP_GIVE };

            about_one(rolling, &give, op, rolled->leases[i]);
            op->outcome = give.outcome;
            op->units += give.units;
        }
    } else {
        struct adm_op other = { .kind = op->kind, .now = op->now, .args = op->args };

        status = run_on(&rolling->plain, &other);
    }
    op->judged = op->now;
    adm_op_complete(op, status);
}

static void rolling_close(void *self)
{
    struct rolling *rolling = self;

    rolling->plain.ops->close(rolling->plain.self);
    free(rolling);
}

static const struct adm_backend_ops rolling_ops = { .size = sizeof rolling_ops,
                                                    .abi = ADM_BACKEND_ABI,
                                                    .name = "rollback",
                                                    .start = rolling_start,
                                                    .close = rolling_close };

/* ---- the backend ---- */

uint64_t limit_of(uint32_t object, uint32_t variant)
{
    static const uint64_t limits[OBJECTS][VARIANTS] = {
        { 3, 5, 2, 4 }, { 1, 2, 1, 2 }, { 2, 2, 1, 3 }, { 3, 4, 3, 2 }
    };

    return limits[object][variant];
}

static void open_rollback(struct adm_backend *out)
{
    const struct adm_plain_options options = { .size = sizeof options,
                                               .partitions_max = 64,
                                               .leases_max = LEASES,
                                               .attempts_max = 1,
                                               .classes_max = 16 };
    struct rolling *rolling = calloc(1, sizeof *rolling);

    if (rolling == NULL || adm_plain_open(&options, &rolling->plain) != ADM_OK)
        abort();
    *out = (struct adm_backend){ &rolling_ops, rolling };
}

void subject_open(struct subject *subject, const struct way *way, uint64_t partitions)
{
    const struct adm_memory_options options = { .size = sizeof options,
                                                .partitions_max = partitions,
                                                .leases_max = LEASES,
                                                .attempts_max = 1,
                                                .classes_max = 16,
                                                .threads_max = 8 };

    if (way->rollback) {
        open_rollback(&subject->backend);
        return;
    }
    if (adm_memory_open(&options, &subject->backend) != ADM_OK)
        abort();
    admi_memory_tune(subject->backend.self, way->hard_after, way->back_off);
}

void subject_close(struct subject *subject)
{
    subject->backend.ops->close(subject->backend.self);
}

adm_status subject_run(const struct subject *subject, struct adm_op *op, uint64_t seconds)
{
    op->now = (struct adm_time){ SUBJECT_START_NS + seconds * ADM_SECOND, SUBJECT_WALL_NS };
    return run_on(&subject->backend, op);
}

static struct adm_bytes bytes_of(const char *text)
{
    return (struct adm_bytes){ text, strlen(text) };
}

adm_status subject_put(const struct subject *subject, struct put *put, uint64_t seconds)
{
    static const char *const rules[OBJECTS] = { "bucket", "a", "b", "quota" };
    static const uint32_t kinds[OBJECTS] = { ADM_KIND_BUCKET, ADM_KIND_CONCURRENCY,
                                             ADM_KIND_CONCURRENCY, ADM_KIND_QUOTA };
    struct adm_class classes[OBJECTS];
    struct adm_class_set set = { .owner = bytes_of("o"),
                                 .classes = classes,
                                 .class_count = OBJECTS };
    struct adm_op op = { .kind = ADM_OP_PUT_CLASSES, .args.classes = &set };
    adm_status status;

    for (uint32_t i = 0; i < OBJECTS; i++)
        classes[i] = (struct adm_class){ .kind = kinds[i],
                                         .rule = bytes_of(rules[i]),
                                         .origin = bytes_of(""),
                                         .group = put->grouped ? 1 : 0 };
    classes[BUCKET].capacity = put->capacity;
    classes[BUCKET].per_ns = ADM_SECOND;
    status = subject_run(subject, &op, seconds);
    for (uint32_t i = 0; i < OBJECTS && status == ADM_OK; i++)
        put->handles[i] = classes[i].handle;
    put->sequence = set.sequence;
    put->judged = op.judged;
    return status;
}

uint64_t subject_put_first(struct subject *subject, uint64_t capacity, bool grouped)
{
    struct put put = { .capacity = capacity, .grouped = grouped };

    if (subject_put(subject, &put, 0) != ADM_OK)
        abort();
    memcpy(subject->handles, put.handles, sizeof put.handles);
    return put.sequence;
}

adm_status subject_take(const struct subject *subject, struct request *request,
                        const struct wish *wishes, uint32_t count, uint32_t flags,
                        uint64_t sequence, uint64_t ttl_seconds, uint64_t seconds)
{
    static const uint32_t kinds[OBJECTS] = { ADM_KIND_BUCKET, ADM_KIND_CONCURRENCY,
                                             ADM_KIND_CONCURRENCY, ADM_KIND_QUOTA };
    static _Atomic uint64_t seeds;

    for (uint32_t i = 0; i < count; i++) {
        const struct wish *wish = &wishes[i];
        uint32_t unit = ADM_UNIT_FIRST_DECLARED + wish->object;

        request->terms[i] =
            (struct adm_term){ .kind = kinds[wish->object],
                               .flags = wish->object == COUNT_A || wish->object == COUNT_B
                                            ? 0
                                            : ADM_TERM_F_SETTLE_EXACT,
                               .class_handle = subject->handles[wish->object],
                               .replicas = 1,
                               .partition = bytes_of(wish->partition),
                               .amount = wish->amount,
                               .limit = wish->limit,
                               .unit = unit,
                               .window = wish->object == QUOTA ? ADM_WINDOW_DAY : ADM_WINDOW_NONE };
        request->meters[i] = (struct adm_meter){ .unit = unit, .total = wish->amount };
    }
    request->take =
        (struct adm_take){ .mode = (flags & WISH_JUDGE) != 0 ? ADM_TAKE_JUDGE : ADM_TAKE_CHARGE,
                           .flags = (flags & WISH_LEASE) != 0 ? ADM_TAKE_F_LEASE : 0,
                           .sequence = sequence,
                           .terms = request->terms,
                           .term_count = count,
                           .meter_count = (flags & WISH_LEASE) != 0 ? count : 0,
                           .meters = request->meters,
                           .ttl_ns = ttl_seconds * ADM_SECOND,
                           .seed = { seed, atomic_fetch_add(&seeds, 1 + TERMS_MAX) } };
    request->op = (struct adm_op){ .kind = ADM_OP_TAKE, .args.take = &request->take };
    return subject_run(subject, &request->op, seconds);
}

int64_t subject_level(const struct subject *subject, uint32_t object, const char *partition,
                      uint64_t sequence, uint64_t seconds)
{
    const struct wish wish = { object, 0, 0, partition };
    struct request request;

    if (subject_take(subject, &request, &wish, 1, WISH_JUDGE, sequence, 0, seconds) != ADM_OK)
        abort();
    return request.terms[0].level;
}

uint32_t subject_about(const struct subject *subject, uint32_t kind, struct adm_id lease,
                       uint64_t seconds, uint64_t *units)
{
    struct adm_op op = { .kind = kind, .lease = lease };

    if (subject_run(subject, &op, seconds) != ADM_OK)
        abort();
    if (units != NULL)
        *units = op.units;
    return op.outcome;
}

uint32_t subject_settle(const struct subject *subject, struct adm_id lease, uint32_t object,
                        uint64_t total, bool final, uint64_t seconds)
{
    const struct adm_amount amount = { ADM_UNIT_FIRST_DECLARED + object,
                                       final ? ADM_AMOUNT_FINAL : 0, total };
    const struct adm_settlement settlement = { &amount, 1, 0 };
    struct adm_op op = { .kind = ADM_OP_SETTLE, .lease = lease, .args.settle = &settlement };

    if (subject_run(subject, &op, seconds) != ADM_OK)
        abort();
    return op.outcome;
}

void subject_sweep(const struct subject *subject, uint64_t budget, uint64_t seconds)
{
    struct adm_sweep sweep = { .budget = budget };
    struct adm_op op = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };

    if (subject_run(subject, &op, seconds) != ADM_OK)
        abort();
}
