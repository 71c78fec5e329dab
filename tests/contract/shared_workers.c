/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example backend between real processes, some of which are killed. What a worker that dies
 * leaves behind is either whole, or refused from then on: never counted wrong.
 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <admit/ledger.h>

#include "state/contract/world.h"

/* examples/write_a_backend.c */
adm_status mine_open(const struct adm_ledger_options *options, struct adm_backend *out);

enum { LIMIT = 50, WORKERS = 4, TAKES = 400, KILLS = 200 };

static unsigned tests, failures;

static void ok(int passed, const char *what)
{
    printf("%sok %u - %s\n", passed ? "" : "not ", ++tests, what);
    failures += !passed;
}

static adm_status open_world_backend(void *user, const struct adm_contract_sizes *sizes,
                                     struct adm_backend *out)
{
    const struct adm_ledger_options options = { .size = sizeof options,
                                                .partitions_max = sizes->partitions,
                                                .leases_max = sizes->leases,
                                                .attempts_max = sizes->attempts,
                                                .classes_max = sizes->classes };

    (void)user;
    return mine_open(&options, out);
}

static uint32_t begin(struct admi_world *world)
{
    static const struct adm_contract_subject subject = { .size = sizeof subject,
                                                         .name = "mine",
                                                         .open = open_world_backend };
    const struct adm_contract_sizes sizes = { 64, 2048, 16, 16, NULL };
    uint32_t pool;

    if (!admi_world_open(world, &subject, &sizes))
        abort();
    pool = admi_world_counter(world, "pool", ADM_KIND_CONCURRENCY);
    if (admi_world_put(world) != ADM_OK)
        abort();
    return pool;
}

static uint32_t take(struct admi_world *world, uint32_t pool, struct adm_id *lease)
{
    return admi_world_take_one(world, admi_world_term(world, pool, "p", 1, LIMIT), lease);
}

/* Each worker takes as often as it can: together they get the limit, not one more. */
static void workers_count_together(void)
{
    struct admi_world world;
    uint32_t pool = begin(&world);
    unsigned allowed = 0, sound = 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        pid_t worker = fork();

        if (worker == 0) {
            unsigned mine = 0;

            for (unsigned n = 0; n < TAKES; n++)
                mine += take(&world, pool, NULL) == ADM_VERDICT_ALLOW;
            _exit((int)mine);
        }
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        int end = 0;

        sound += wait(&end) > 0 && WIFEXITED(end);
        allowed += WIFEXITED(end) ? (unsigned)WEXITSTATUS(end) : 0;
    }
    ok(sound == WORKERS && allowed == LIMIT,
       "K1 workers of one server are allowed the limit together");
    ok(admi_world_level(&world, pool, "p") == LIMIT, "K1 the parent sees what its workers hold");
    world.now.mono_ns += WORLD_TTL_NS;
    ok(admi_world_level(&world, pool, "p") == 0, "K6 what dead workers held ends with its time");
    admi_world_close(&world);
}

/* Takes and gives until it is killed, wherever it is just then. */
static void work_until_killed(struct admi_world *world, uint32_t pool, _Atomic unsigned *rounds)
{
    for (;;) {
        struct adm_id lease;

        if (take(world, pool, &lease) == ADM_VERDICT_ALLOW)
            (void)admi_world_give(world, lease);
        atomic_fetch_add(rounds, 1);
    }
}

static void killed_workers_leave_nothing_wrong(_Atomic unsigned *rounds)
{
    unsigned whole = 0, refused = 0, wrong = 0;

    for (unsigned kill_at = 0; kill_at < KILLS; kill_at++) {
        struct admi_world world;
        uint32_t pool = begin(&world);
        pid_t worker;
        uint32_t verdict;

        atomic_store(rounds, 0);
        worker = fork();
        if (worker == 0)
            work_until_killed(&world, pool, rounds);
        while (atomic_load(rounds) <= kill_at % 32)
            (void)sched_yield();
        (void)kill(worker, SIGKILL);
        (void)waitpid(worker, NULL, 0);
        world.now.mono_ns += WORLD_TTL_NS;
        verdict = take(&world, pool, NULL);
        if (world.status == ADM_E_BACKEND_UNAVAILABLE)
            refused++;
        else if (world.status == ADM_OK && verdict == ADM_VERDICT_ALLOW &&
                 admi_world_level(&world, pool, "p") == 1)
            whole++;
        else
            wrong++;
        admi_world_close(&world);
    }
    printf("# %d workers killed: %u left the ledger whole, %u in the middle of an operation\n",
           KILLS, whole, refused);
    ok(wrong == 0, "K8 a killed worker leaves the ledger whole, or it refuses");
}

/* Dies for certain inside an operation: its terms cannot be read. */
static void an_interrupted_operation_is_the_last(void)
{
    struct admi_world world;
    uint32_t pool = begin(&world);
    void *unreadable = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t worker = unreadable != MAP_FAILED ? fork() : -1;
    int end = 0;

    if (worker == 0) {
        struct adm_take dying = { .terms = unreadable, .term_count = 1 };

        (void)signal(SIGSEGV, SIG_DFL);
        (void)admi_world_take_as(&world, &dying);
        _exit(0);
    }
    ok(worker > 0 && waitpid(worker, &end, 0) == worker &&
           !(WIFEXITED(end) && WEXITSTATUS(end) == 0),
       "a worker died inside an operation");
    for (unsigned i = 0; i < 3; i++)
        ok(take(&world, pool, NULL) != ADM_VERDICT_ALLOW &&
               world.status == ADM_E_BACKEND_UNAVAILABLE,
           "K8 afterwards nothing is allowed: what is counted is not certain");
    ok(admi_world_put(&world) == ADM_E_BACKEND_UNAVAILABLE, "K8 nor is a policy taken");
    admi_world_close(&world);
    (void)munmap(unreadable, 4096);
}

int main(void)
{
    void *shared =
        mmap(NULL, sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED) {
        printf("1..0 # SKIP no shared memory\n");
        return 0;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    workers_count_together();
    killed_workers_leave_nothing_wrong(shared);
    an_interrupted_operation_is_the_last();
    printf("1..%u\n", tests);
    return failures != 0;
}
