/* SPDX-License-Identifier: Apache-2.0 */
/* K9 no call back, K10 fork: both are tried out in a child, which tells by how it ends. */
#include "state/contract/suite.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a child ends. */
enum { GOOD = 0, TRIPPED = 90, NOT_OPENED = 91, FAILED = 92, WORKED = 93, STRANGE = 94 };

#define TRIPWIRE_BYTES 65536u /* no gate is larger */
#define PATIENCE_S     60u    /* then a child hangs */

/* The child's end, or -1: it was killed, or could not be made. */
static int run_child(struct admi_check *check, int (*body)(struct admi_check *check))
{
    pid_t child = fork();
    int status = 0;

    if (child < 0) {
        admi_check_skip(check, "no fork");
        return -1;
    }
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        _exit(body(check));
    }
    while (waitpid(child, &status, 0) < 0)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- K9: the tripwire is a gate whose memory nobody can touch, so that any call with it shows
 * ---- */

static void tripped(int signal_number)
{
    (void)signal_number;
    _exit(TRIPPED);
}

static int every_operation(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    struct adm_sweep sweep = { .budget = 10 };
    struct adm_op sweeping = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
    struct adm_time now;
    struct adm_id lease;
    uint32_t pool;

    (void)signal(SIGSEGV, tripped);
    (void)signal(SIGBUS, tripped);
    if (!admi_world_open(world, check->subject, &check->sizes))
        return NOT_OPENED;
    now = world->now;
    pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    (void)admi_world_put(world);
    (void)admi_world_take_one(world, admi_world_term(world, pool, "p", 1, 5), &lease);
    (void)admi_world_take_one(world, admi_world_term(world, pool, "p", 5, 5), NULL);
    (void)admi_world_renew(world, lease);
    (void)admi_world_settle(world, lease, ADM_UNIT_COST, 2, true);
    (void)admi_world_divert(world, lease);
    (void)admi_world_give(world, lease);
    (void)admi_world_run(world, &sweeping);
    if (world->ops.poll != NULL)
        (void)world->ops.poll(world->self, &now);
    if (world->ops.cancel != NULL && world->ops.poll != NULL) {
        struct adm_take take = { .sequence = world->sequence, .ttl_ns = WORLD_TTL_NS };
        struct adm_op op = {
            .size = sizeof op, .kind = ADM_OP_TAKE, .now = now, .args.take = &take
        };

        admi_op_begin(&op, &world->home);
        world->ops.start(world->self, &op);
        world->ops.cancel(world->self, &op);
        for (uint64_t i = 0; i < world->polls_max && !admi_op_is_complete(&op); i++)
            (void)world->ops.poll(world->self, &now);
    }
    admi_world_close(world);
    return GOOD;
}

static void check_tripwire(struct admi_check *check)
{
    void *memory = mmap(NULL, TRIPWIRE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int end;

    if (memory == MAP_FAILED) {
        admi_check_skip(check, "no memory for a tripwire");
        return;
    }
    check->sizes.tripwire = memory;
    end = run_child(check, every_operation);
    (void)munmap(memory, TRIPWIRE_BYTES);
    EXPECT(check, end != TRIPPED, "an operation called into the gate");
    EXPECT(check, check->skipped || end == GOOD, "the child ended with %d", end);
}

/* ---- K10 ---- */

static int use_in_child(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    bool can = (world->info.capabilities & ADM_CAN_FORK) != 0;
    struct adm_id lease;
    uint32_t verdict;

    world->resends = 0;
    verdict = admi_world_take_one(world, admi_world_term(world, 0, "p", 1, 100), &lease);
    if (world->status == ADM_OK)
        return can && verdict == ADM_VERDICT_ALLOW ? GOOD : WORKED;
    if (can)
        return FAILED;
    if (world->status > -300 || world->status < -399)
        return STRANGE;
    return admi_world_level(world, 0, "p") == INT64_MIN ? GOOD : WORKED;
}

static void check_fork(struct admi_check *check)
{
    struct admi_world *world = &check->world;
    uint32_t pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    bool can = (world->info.capabilities & ADM_CAN_FORK) != 0;
    struct adm_id lease;
    int end;

    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    EXPECT(check,
           admi_world_take_one(world, admi_world_term(world, pool, "p", 1, 10), &lease) ==
               ADM_VERDICT_ALLOW,
           "take");
    end = run_child(check, use_in_child);
    if (check->skipped)
        return;
    EXPECT(check, end != WORKED, "a child's operation succeeded, which describe does not promise");
    EXPECT(check, end != FAILED,
           "a child's operation failed, although describe promises that it works");
    EXPECT(check, end == GOOD, "the child ended with %d", end);
    EXPECT_LEVEL(check, pool, "p", can ? 2 : 1, "the parent's state after the child");
    EXPECT(check, admi_world_give(world, lease) == ADM_OUTCOME_RELEASED,
           "the parent's lease after the child");
    EXPECT_LEVEL(check, pool, "p", can ? 1 : 0, "the parent's state after its give");
}

/* B128: at the fork another thread was inside. The child's call must return all the same. */
struct busy {
    struct admi_world world;
    _Atomic uint32_t stop;
    _Atomic uint32_t rounds;
};

static void *keep_busy(void *self)
{
    struct busy *busy = self;

    while (!atomic_load(&busy->stop)) {
        struct adm_id lease;

        if (admi_world_take_one(&busy->world, admi_world_term(&busy->world, 0, "p", 1, 100),
                                &lease) == ADM_VERDICT_ALLOW)
            (void)admi_world_give(&busy->world, lease);
        atomic_fetch_add(&busy->rounds, 1);
    }
    return NULL;
}

static void check_busy_fork(struct admi_check *check)
{
    static struct busy busy;
    struct admi_world *world = &check->world;
    pthread_t thread;
    int end = GOOD;

    if (world->info.threads != ADM_THREADS_ANY) {
        admi_check_skip(check, "the backend is called by one thread at a time");
        return;
    }
    (void)admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    EXPECT(check, admi_world_put(world) == ADM_OK, "put_classes: status %d", world->status);
    busy.world = *world;
    busy.world.home = (struct admi_op_home){ NULL, 0 };
    atomic_store(&busy.stop, 0);
    atomic_store(&busy.rounds, 0);
    if (pthread_create(&thread, NULL, keep_busy, &busy) != 0) {
        admi_check_skip(check, "no threads");
        return;
    }
    for (uint32_t i = 0; i < 20 && end == GOOD && !check->skipped; i++) {
        uint32_t rounds = atomic_load(&busy.rounds);

        while (atomic_load(&busy.rounds) == rounds)
            (void)sched_yield();
        end = run_child(check, use_in_child);
    }
    atomic_store(&busy.stop, 1);
    (void)pthread_join(thread, NULL);
    EXPECT(check, check->skipped || end == GOOD,
           "a child's call, while another thread was inside: ended with %d", end);
}

const struct admi_contract_check admi_contract_process[] = {
    { 9, "no operation calls into a gate", check_tripwire, { 64, 64, 16, 16, NULL } },
    { 10, "a forked child works or fails, as described", check_fork, { 64, 64, 16, 16, NULL } },
    { 10,
      "a fork while another thread is inside (B128)",
      check_busy_fork,
      { 64, 64, 16, 16, NULL } },
    { 0, NULL, NULL, { 0, 0, 0, 0, NULL } },
};
