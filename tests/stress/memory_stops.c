/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory backend with threads that are stopped: at every point that an operation passes, alone
 * or when it meets what another stopped thread has left half done. Others work on meanwhile, all of
 * their operations come to an end with answers that are right; then whoever was stopped goes on, and
 * in the end nothing is lost and nothing is left over.
 *
 * ADMIT_STRESS_SCALE: 1000 operations each time, times this; 1 unless given.
 */
#include "points.h"

#include "memory_world.h"

static unsigned tests, failures;
static uint64_t scale = 1;

void stress_at_point(int point)
{
    at_point((enum point)point);
}

static void ok(bool passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    (void)fflush(stdout);
    failures += !passed;
}

/* ---- threads that are stopped ---- */

struct actor {
    struct stop stop;
    struct world *world;
    struct act act;
    uint64_t mono_ns;
    pthread_t thread;
    _Atomic int ended;
};

static void *play(void *self)
{
    struct actor *actor = self;

    stop_here = &actor->stop;
    (void)ask_at(actor->world, &actor->act, actor->mono_ns);
    atomic_store(&actor->ended, 1);
    return NULL;
}

/* True: it is stopped there; false: it has ended. */
static bool start(struct actor *actor, enum point point, uint32_t occurrence)
{
    actor->stop.point = point;
    actor->stop.countdown = occurrence;
    atomic_store(&actor->stop.stopped, 0);
    atomic_store(&actor->stop.go_on, 0);
    atomic_store(&actor->ended, 0);
    if (pthread_create(&actor->thread, NULL, play, actor) != 0)
        abort();
    while (!atomic_load(&actor->stop.stopped) && !atomic_load(&actor->ended))
        (void)sched_yield();
    return atomic_load(&actor->stop.stopped) != 0;
}

static void finish(struct actor *actor)
{
    atomic_store(&actor->stop.go_on, 1);
    (void)pthread_join(actor->thread, NULL);
}

/* ---- what is stopped ---- */

enum operation { TAKE, DENIED, NEW_LINES, GIVE, RENEW, SETTLE, DIVERT, EXPIRE, SWEEP, OPERATIONS };

static const char *const operation_names[OPERATIONS] = {
    "take",   "denied take", "take of new lines", "give", "renew", "settle", "divert",
    "expire", "sweep",
};

/* Whom it meets: nobody; a take in the same partition that is stopped with everything in its hands;
 * and so a settlement of the same lease. A take is sent again while it is stopped. */
enum company { ALONE, BESIDE_TAKE, BESIDE_SETTLE, SENT_AGAIN, COMPANIES };

static const struct mode {
    const char *name;
    uint32_t hard_after;
    enum point everything; /* a transaction has all its words */
} modes[] = { { "hard", 0, before_hard_commit }, { "fast", UINT32_MAX, before_commit } };

enum { MODES = 2, MAYFLIES = 3, SETTLED = 7, SETTLED_BESIDE = 5 };

struct scene {
    struct world world;
    struct worker workers[WORKERS];
    struct actor stopped, beside;
    struct act again;
    struct adm_id kept; /* one unit in the hot pool, always */
    struct adm_id lease;
    struct adm_id mayflies[MAYFLIES];
};

static struct scene *scene;

static struct adm_id taken(struct world *world, struct act *act)
{
    EXPECT(world, ask(world, act) == ADM_OK && act->take.verdict == ADM_VERDICT_ALLOW);
    return act->take.lease;
}

static void give(struct world *world, struct adm_id lease, uint32_t outcome, uint64_t units)
{
    struct act act;

    prepare_lease(&act, ADM_OP_GIVE, lease);
    EXPECT(world, ask(world, &act) == ADM_OK);
    EXPECT(world, act.op.outcome == outcome && act.op.units == units);
}

/* A lease of two slots, with everything that a lease can have. */
static void prepare_whole(struct world *world, struct act *act)
{
    prepare_take(world, act, partition_names[HOT], 2, MANY);
    (void)add_term(world, act, DONE, partition_names[HOT], 2, 0);
    (void)add_term(world, act, OTHER, partition_names[HOT], 1, MANY);
    (void)add_term(world, act, SHADOW, partition_names[HOT], 1, MANY);
}

static void prepare_stopped_take(struct act *act)
{
    prepare_take(&scene->world, act, partition_names[HOT], 2, MANY);
    (void)add_term(&scene->world, act, SHADOW, partition_names[HOT], 1, MANY);
    prepare_attempt(act, "stopped", 3);
}

static void open_scene(enum operation operation, const struct mode *mode)
{
    struct world *world = &scene->world;
    struct act act;

    memset(scene, 0, sizeof *scene);
    world_open(world, mode->hard_after);
    workers_open(scene->workers, world);
    begin_take(world, &act);
    (void)add_term(world, &act, POOL, partition_names[HOT], 1, MANY);
    want_lease(&act, 0);
    scene->kept = taken(world, &act);
    prepare_whole(world, &act);
    scene->lease = taken(world, &act);
    for (uint32_t i = 0; i < MAYFLIES && operation == EXPIRE; i++) {
        prepare_take(world, &act, partition_names[HOT], 1, MANY);
        act.take.ttl_ns = MAYFLY_NS;
        scene->mayflies[i] = taken(world, &act);
        charged(world, HOT, 1);
    }
    for (uint32_t i = 0; i < 8; i++) { /* lines that a sweep finds as new */
        prepare_new_lines(world, &act);
        give(world, taken(world, &act), ADM_OUTCOME_RELEASED, 2);
    }
}

static void prepare(enum operation operation, struct actor *actor)
{
    struct world *world = &scene->world;
    struct act *act = &actor->act;

    actor->world = world;
    actor->mono_ns = atomic_load(&world->mono_ns);
    switch (operation) {
    case TAKE:
        prepare_stopped_take(act);
        break;
    case DENIED:
        prepare_denied(world, act);
        break;
    case NEW_LINES:
        prepare_new_lines(world, act);
        break;
    case GIVE:
        prepare_lease(act, ADM_OP_GIVE, scene->lease);
        break;
    case RENEW:
        prepare_lease(act, ADM_OP_RENEW, scene->lease);
        break;
    case SETTLE:
        prepare_settle(act, scene->lease, SETTLED, ADM_AMOUNT_FINAL);
        break;
    case DIVERT:
        prepare_lease(act, ADM_OP_DIVERT, scene->lease);
        break;
    case EXPIRE:
        prepare_denied(world, act);
        actor->mono_ns += LATE_BY;
        break;
    case SWEEP:
    case OPERATIONS:
    default:
        prepare_sweep(act, UINT32_MAX);
        break;
    }
}

static bool has_lease(enum operation operation)
{
    return operation == GIVE || operation == RENEW || operation == SETTLE || operation == DIVERT;
}

static bool goes_with(enum operation operation, enum company company)
{
    return (company != BESIDE_SETTLE || has_lease(operation)) &&
           (company != SENT_AGAIN || operation == TAKE);
}

/* ---- what must have come of it ---- */

static void check_take(struct world *world, enum company company)
{
    struct act *act = &scene->stopped.act;

    EXPECT(world, act->take.verdict == ADM_VERDICT_ALLOW && act->take.lease.high != 0);
    if (company == SENT_AGAIN) {
        EXPECT(world, act->take.repeated + scene->again.take.repeated == ADM_REPEAT_SAME);
        EXPECT(world, same_id(act->take.lease, scene->again.take.lease));
    } else {
        EXPECT(world, act->take.repeated == ADM_REPEAT_NONE);
    }
    charged(world, HOT, 2);
    give(world, act->take.lease, ADM_OUTCOME_RELEASED, 1);
}

/* What became of the whole lease, by what was answered about it. */
static void check_lease(struct world *world, enum operation operation, enum company company)
{
    const struct adm_op *op = &scene->stopped.act.op, *beside = &scene->beside.act.op;
    bool ended = operation == GIVE || operation == DIVERT, settled_beside = false;
    uint64_t total = operation == SETTLE ? SETTLED : 2;

    if (company == BESIDE_SETTLE) {
        settled_beside = beside->outcome == ADM_OUTCOME_SETTLED;
        /* Whose slot was given back may have been used again since. */
        EXPECT(world, settled_beside || (ended && beside->outcome == ADM_OUTCOME_ALREADY) ||
                          (operation == GIVE && beside->outcome == ADM_OUTCOME_UNKNOWN));
    }
    if (settled_beside && total < SETTLED_BESIDE)
        total = SETTLED_BESIDE;
    EXPECT(world, operation != GIVE || op->outcome == ADM_OUTCOME_RELEASED);
    EXPECT(world, operation != DIVERT || op->outcome == ADM_OUTCOME_DIVERTED);
    EXPECT(world, operation != RENEW || op->outcome == ADM_OUTCOME_RENEWED);
    EXPECT(world, operation != SETTLE || op->outcome == ADM_OUTCOME_SETTLED);
    EXPECT(world, !ended || op->units == 2);
    charged(world, HOT, total);
    if (operation != DIVERT)
        atomic_fetch_add(&world->completed[HOT], (int64_t)total);
    if (operation != GIVE)
        give(world, scene->lease, ADM_OUTCOME_RELEASED, operation == DIVERT ? 0 : 2);
}

static void check(enum operation operation, enum company company)
{
    struct world *world = &scene->world;
    struct act *act = &scene->stopped.act;

    EXPECT(world, act->status == ADM_OK);
    if (operation == TAKE)
        check_take(world, company);
    if (operation == NEW_LINES) {
        EXPECT(world, act->take.verdict == ADM_VERDICT_ALLOW);
        give(world, act->take.lease, ADM_OUTCOME_RELEASED, 2);
    }
    if (operation == DENIED || operation == EXPIRE) {
        EXPECT(world, act->take.verdict == ADM_VERDICT_DENY && act->take.lease.high == 0);
        EXPECT(world, act->terms[1].verdict == ADM_TERM_EXCEEDED);
    }
    if (company == BESIDE_TAKE) {
        EXPECT(world, scene->beside.act.status == ADM_OK);
        charged(world, HOT, 1);
        EXPECT(world, scene->beside.act.take.verdict == ADM_VERDICT_ALLOW);
        give(world, scene->beside.act.take.lease, ADM_OUTCOME_RELEASED, 1);
    }
    check_lease(world, operation, company);
    for (uint32_t i = 0; i < MAYFLIES && operation == EXPIRE; i++)
        give(world, scene->mayflies[i], ADM_OUTCOME_LATE, 0);
    workers_close(scene->workers);
    give(world, scene->kept, ADM_OUTCOME_RELEASED, 1);
    EXPECT(world, describe(world).expired == (operation == EXPIRE ? MAYFLIES : 0));
    check_sum(world);
}

/* ---- one stop ---- */

static bool met[OPERATIONS][POINTS][MODES];

/* True: it was stopped there. */
static bool stop_once(enum operation operation, enum company company, uint32_t mode,
                      enum point point, uint32_t occurrence, uint64_t operations)
{
    struct actor *stopped = &scene->stopped, *beside = &scene->beside;
    bool is_stopped, right;

    open_scene(operation, &modes[mode]);
    prepare(operation, stopped);
    if (company == BESIDE_TAKE || company == BESIDE_SETTLE) {
        beside->world = &scene->world;
        beside->mono_ns = atomic_load(&scene->world.mono_ns);
        if (company == BESIDE_TAKE)
            prepare_take(&scene->world, &beside->act, partition_names[HOT], 1, MANY);
        else
            prepare_settle(&beside->act, scene->lease, SETTLED_BESIDE, 0);
        EXPECT(&scene->world, start(beside, modes[mode].everything, 1));
    }
    is_stopped = start(stopped, point, occurrence);
    if (company == SENT_AGAIN) {
        prepare_stopped_take(&scene->again);
        (void)taken(&scene->world, &scene->again);
    }
    if (is_stopped)
        workers_run(scene->workers, operations, operation == EXPIRE ? stopped->mono_ns : 0);
    if (occurrence % 2 == 1)
        finish(stopped);
    if (company == BESIDE_TAKE || company == BESIDE_SETTLE)
        finish(beside);
    if (occurrence % 2 == 0)
        finish(stopped);
    atomic_store(&scene->world.mono_ns, stopped->mono_ns);
    check(operation, company);
    right = atomic_load(&scene->world.broken) == 0;
    world_close(&scene->world);
    if (!right)
        printf("# with %s stopped at %s, time %u, %s, company %d\n", operation_names[operation],
               point_names[point], occurrence, modes[mode].name, (int)company);
    failures += !right;
    return is_stopped;
}

static uint64_t stop_everywhere(enum operation operation, enum company company, uint32_t mode)
{
    uint64_t stops = 0;

    for (uint32_t p = 0; p < POINTS; p++) {
        uint32_t occurrence = 1;

        while (failures == 0 && occurrence <= 64 &&
               stop_once(operation, company, mode, (enum point)p, occurrence, 1000 * scale)) {
            met[operation][p][mode] = true;
            occurrence++;
            stops++;
        }
    }
    return stops;
}

static void a_stopped_operation_stops_nobody(enum operation operation)
{
    unsigned before = failures;
    uint64_t stops = 0, places = 0;
    char text[128];

    for (uint32_t mode = 0; mode < MODES; mode++) {
        for (uint32_t company = 0; company < COMPANIES; company++) {
            if (goes_with(operation, (enum company)company))
                stops += stop_everywhere(operation, (enum company)company, mode);
        }
    }
    printf("# %s:", operation_names[operation]);
    for (uint32_t p = 0; p < POINTS; p++) {
        places += met[operation][p][0] + met[operation][p][1];
        if (met[operation][p][0] || met[operation][p][1])
            printf(" %s", point_names[p]);
    }
    printf("; %" PRIu64 " of (point, mode), stopped %" PRIu64 " times\n", places, stops);
    (void)snprintf(text, sizeof text, "%s: stopped anywhere, others go on, and it ends right",
                   operation_names[operation]);
    ok(failures == before && places > 0, text);
}

/* ---- who holds the claim of publishing ---- */

static struct adm_term *prepare_scoped(struct world *world, struct act *act, const char *scope,
                                       uint64_t replicas)
{
    struct adm_term *term;

    begin_take(world, act);
    term = add_term(world, act, SCOPED, partition_names[HOT], 1, 0);
    term->scope = adm_str(scope);
    term->replicas = replicas;
    return term;
}

static bool is_taken(struct world *world, const char *scope, uint64_t replicas)
{
    struct act act;

    (void)prepare_scoped(world, &act, scope, replicas);
    return ask(world, &act) == ADM_OK && act.take.verdict == ADM_VERDICT_ALLOW;
}

/* By the owner whose classes are being put. */
static adm_status take_of_front(struct world *world, uint64_t sequence)
{
    struct act act;

    begin_take(world, &act);
    act.take.sequence = sequence;
    act.take.mode = ADM_TAKE_JUDGE;
    act.take.term_count = 1;
    act.terms[0] = (struct adm_term){ .kind = ADM_KIND_CONCURRENCY,
                                      .class_handle = world->front.handle,
                                      .replicas = 1,
                                      .partition = adm_str("p") };
    return ask(world, &act);
}

/* Who else wants to publish is told so; nobody else notices. */
static void others_publish_nothing(struct world *world)
{
    struct act act;

    EXPECT(world,
           put(world, "third", NULL, 0, &(_Atomic uint64_t){ 0 }) == ADM_E_BACKEND_UNAVAILABLE);
    (void)prepare_scoped(world, &act, "not seen", 1);
    EXPECT(world, ask(world, &act) == ADM_E_BACKEND_UNAVAILABLE);
    EXPECT(world, is_taken(world, "seen", 1) && is_taken(world, "seen", 2));
}

static void end_scene(struct world *world)
{
    struct act act;

    EXPECT(world, put(world, "third", NULL, 0, &(_Atomic uint64_t){ 0 }) == ADM_OK);
    EXPECT(world, is_taken(world, "not seen", 1) && is_taken(world, "seen", 1));
    workers_close(scene->workers);
    give(world, scene->lease, ADM_OUTCOME_RELEASED, 2);
    charged(world, HOT, 2);
    atomic_fetch_add(&world->completed[HOT], 2);
    give(world, scene->kept, ADM_OUTCOME_RELEASED, 1);
    for (uint32_t i = 0; i < PARTITIONS; i++)
        EXPECT(world,
               level_of(world, POOL, partition_names[i]) == 0 &&
                   level_of(world, RATE, partition_names[i]) == CAPACITY - world->missing[i]);
    prepare_sweep(&act, UINT32_MAX);
    EXPECT(world, ask(world, &act) == ADM_OK);
}

static bool publish_once(bool scope, uint32_t mode, enum point point, uint32_t occurrence)
{
    struct world *world = &scene->world;
    struct actor *stopped = &scene->stopped;
    struct adm_class_set set = { .owner = adm_str("front"), .class_count = 1 };
    bool is_stopped, right;
    uint64_t before;

    open_scene(SWEEP, &modes[mode]);
    EXPECT(world, is_taken(world, "seen", 1));
    before = world->front_sequence;
    set.classes = &world->front;
    stopped->world = world;
    stopped->mono_ns = atomic_load(&world->mono_ns);
    stopped->act.op = (struct adm_op){ .kind = ADM_OP_PUT_CLASSES, .args.classes = &set };
    if (scope)
        (void)prepare_scoped(world, &stopped->act, "new", 1);
    is_stopped = start(stopped, point, occurrence);
    if (is_stopped) {
        uint64_t now = scope ? before : before + 1;
        adm_status old = take_of_front(world, before), next = take_of_front(world, now);

        /* One of both sets is in force, whole. */
        EXPECT(world, (old == ADM_OK && (scope || next == ADM_E_BACKEND_STALE)) ||
                          (old == ADM_E_BACKEND_STALE && next == ADM_OK));
        others_publish_nothing(world);
        for (uint32_t i = 0; i < WORKERS; i++)
            scene->workers[i].sweeps_not = true;
        workers_run(scene->workers, 1000 * scale, 0);
    }
    finish(stopped);
    EXPECT(world, stopped->act.status == ADM_OK);
    EXPECT(world, scope ? stopped->act.take.verdict == ADM_VERDICT_ALLOW
                        : take_of_front(world, set.sequence) == ADM_OK);
    end_scene(world);
    right = atomic_load(&world->broken) == 0;
    world_close(world);
    if (!right)
        printf("# with a %s stopped at %s, time %u, %s\n", scope ? "new scope" : "put",
               point_names[point], occurrence, modes[mode].name);
    failures += !right;
    return is_stopped;
}

/* All points of a put are behind the claim; of a take in a new scope, those before its charge. */
static void a_stopped_publisher_stops_publishers_only(bool scope)
{
    static const enum point points[] = { publish_claimed, versions_written, before_odd,
                                         abort_all,       before_even,      guard_moved };
    unsigned before = failures;
    uint64_t stops = 0;

    for (uint32_t mode = 0; mode < MODES; mode++) {
        for (uint32_t i = 0; i < sizeof points / sizeof points[0]; i++) {
            if (failures == before)
                stops += publish_once(scope, mode, points[i], 1);
        }
    }
    printf("# a %s: stopped %" PRIu64 " times behind the claim\n", scope ? "new scope" : "put",
           stops);
    ok(failures == before && stops == MODES * sizeof points / sizeof points[0],
       scope ? "a new scope that is stopped stops other new scopes and puts, and nothing else"
             : "a put that is stopped stops other puts and new scopes, and nothing else");
}

/* ---- a take that is sent again ---- */

/* The pool has room for one; the first to arrive has looked for the attempt and not found it when
 * the second one gets there. */
static void a_resend_is_not_denied_by_itself(void)
{
    struct world *world = &scene->world;
    struct actor *first = &scene->stopped;

    open_scene(TAKE, &modes[0]);
    for (uint32_t i = 0; i < 2; i++) {
        struct act *act = i == 0 ? &first->act : &scene->again;

        prepare_take(world, act, "alone", 1, 1);
        prepare_attempt(act, "resent", 3);
    }
    first->world = world;
    first->mono_ns = atomic_load(&world->mono_ns);
    EXPECT(world, start(first, attempt_unknown, 1));
    (void)taken(world, &scene->again);
    finish(first);
    EXPECT(world, first->act.status == ADM_OK && first->act.take.verdict == ADM_VERDICT_ALLOW);
    EXPECT(world, first->act.take.repeated == ADM_REPEAT_SAME);
    EXPECT(world, same_id(first->act.take.lease, scene->again.take.lease));
    ok(atomic_load(&world->broken) == 0, "L10 a take that was sent twice is not denied by itself");
    workers_close(scene->workers);
    world_close(world);
}

int main(void)
{
    const char *given = getenv("ADMIT_STRESS_SCALE");
    uint64_t triples = 0;

    if (given != NULL && strtoull(given, NULL, 10) > 0)
        scale = strtoull(given, NULL, 10);
    scene = malloc(sizeof *scene);
    if (scene == NULL)
        abort();
    for (uint32_t operation = 0; operation < OPERATIONS; operation++)
        a_stopped_operation_stops_nobody((enum operation)operation);
    for (uint32_t i = 0; i < OPERATIONS * POINTS * MODES; i++)
        triples += (&met[0][0][0])[i];
    printf("# %" PRIu64 " of (operation, point, mode)\n", triples);
    ok(triples >= 140, "that was nearly everywhere");
    a_stopped_publisher_stops_publishers_only(false);
    a_stopped_publisher_stops_publishers_only(true);
    a_resend_is_not_denied_by_itself();
    printf("1..%u\n", tests);
    free(scene);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
