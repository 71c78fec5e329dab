/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole backend on public headers alone: the workers that a server forks count together, in
 * memory that they share. A ledger knows what each operation does; what is left for a backend is a
 * place for it and a lock. docs/writing-a-backend.md explains; main() runs the contract suite on
 * it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <admit/ledger.h>
#include <admit/testing.h>

struct shared { /* by all processes */
    pthread_mutex_t mutex;
    uint64_t ledger[]; /* to the end */
};

struct mine { /* in this process */
    struct shared *shared;
    uint64_t bytes;
};

/* True: the lock is ours. If a process died with it, in the middle of an operation or after one,
 * the ledger knows which, and refuses for good in the first case. */
static int lock(struct shared *shared)
{
    int error = pthread_mutex_lock(&shared->mutex);

    return (error == EOWNERDEAD ? pthread_mutex_consistent(&shared->mutex) : error) == 0;
}

static void start(void *self, struct adm_op *op)
{
    struct mine *mine = self;
    adm_status status = ADM_E_BACKEND_UNAVAILABLE;

    if (lock(mine->shared)) {
        status = adm_ledger_perform(mine->shared->ledger, op);
        (void)pthread_mutex_unlock(&mine->shared->mutex);
    }
    adm_op_complete(op, status); /* inside start: this backend never answers later */
}

static adm_status describe(void *self, struct adm_backend_info *inout)
{
    struct mine *mine = self;

    inout->threads = ADM_THREADS_ANY;
    inout->capabilities = ADM_CAN_FORK; /* a child has the same memory and the same lock */
    if (!lock(mine->shared))
        return ADM_E_BACKEND_UNAVAILABLE;
    adm_ledger_describe(mine->shared->ledger, inout);
    (void)pthread_mutex_unlock(&mine->shared->mutex);
    return ADM_OK;
}

static void close_mine(void *self) /* other processes go on: the memory goes with the last */
{
    struct mine *mine = self;

    (void)munmap(mine->shared, mine->bytes);
    free(mine);
}

static const struct adm_backend_ops mine_ops = { .size = sizeof mine_ops,
                                                 .abi = ADM_BACKEND_ABI,
                                                 .name = "mine",
                                                 .start = start,
                                                 .close = close_mine,
                                                 .describe = describe };

static int init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t shared; /* robust: it survives a process that dies with it */

    return pthread_mutexattr_init(&shared) == 0 &&
           pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0 &&
           pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST) == 0 &&
           pthread_mutex_init(mutex, &shared) == 0 && pthread_mutexattr_destroy(&shared) == 0;
}

adm_status mine_open(const struct adm_ledger_options *options, struct adm_backend *out);
adm_status mine_open(const struct adm_ledger_options *options, struct adm_backend *out)
{
    struct mine *mine;
    uint64_t bytes = 0;
    adm_status status = adm_ledger_bytes(options, &bytes);

    if (status != ADM_OK)
        return status;
    mine = calloc(1, sizeof *mine);
    if (mine == NULL)
        return ADM_E_NOMEM;
    mine->bytes = sizeof(struct shared) + bytes;
    mine->shared =
        mmap(NULL, mine->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mine->shared == MAP_FAILED) {
        free(mine);
        return ADM_E_NOMEM;
    }
    status = init_mutex(&mine->shared->mutex)
                 ? adm_ledger_init(mine->shared->ledger, bytes, options)
                 : ADM_E_OS;
    if (status == ADM_OK)
        *out = (struct adm_backend){ &mine_ops, mine };
    else
        close_mine(mine);
    return status;
}

static adm_status open_new(void *user, const struct adm_contract_sizes *sizes,
                           struct adm_backend *out)
{
    struct adm_ledger_options options = { .size = sizeof options,
                                          .partitions_max = sizes->partitions,
                                          .leases_max = sizes->leases,
                                          .attempts_max = sizes->attempts,
                                          .classes_max = sizes->classes };

    (void)user;
    return mine_open(&options, out);
}

int main(void)
{
    struct adm_contract_subject subject = { .size = sizeof subject,
                                            .name = "mine",
                                            .open = open_new };

    return adm_contract_main(&subject);
}
