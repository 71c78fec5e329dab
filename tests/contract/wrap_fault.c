/* SPDX-License-Identifier: Apache-2.0 */
/*
 * K8: a wrapper that fails the n-th op before it reaches the backend, and says so. The whole
 * contract holds for it, since the suite sends again what did not happen; and for every n, a failed
 * op left the state as it was.
 */
#include <stdio.h>

#include "contract/wrap.h"
#include "state/contract/world.h"

static void fail_every(struct wrapper *wrapper, struct adm_op *op)
{
    const uint64_t *every = wrapper->user;

    if (__atomic_load_n(&wrapper->count, __ATOMIC_RELAXED) % *every == 0)
        adm_op_complete(op, ADM_E_BACKEND_UNAVAILABLE);
    else
        wrapper->inner.ops->start(wrapper->inner.self, op);
}

static adm_status open_fault(void *user, const struct adm_contract_sizes *sizes,
                             struct adm_backend *out)
{
    return wrap_plain(fail_every, user, ADM_THREADS_ANY, sizes, out);
}

/* The only failure is the n-th op: what the caller sees of it, and what is held afterwards. 0: as
 * it should be. */
static int fail_nth(uint64_t n)
{
    uint64_t every = n;
    const struct adm_contract_subject subject = { .size = sizeof subject,
                                                  .user = &every,
                                                  .open = open_fault };
    struct admi_world world;
    struct adm_id lease = { 0, 0 };
    int64_t held = 0;
    uint32_t failures = 0, pool;

    if (!admi_world_open(&world, &subject, NULL))
        return 1;
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    world.resends = 0;
    while (admi_world_put(&world) != ADM_OK)
        failures++;
    for (uint64_t i = 1; i <= n; i++) { /* take and give in turn, so that each is the n-th once */
        bool give = (lease.high | lease.low) != 0;

        if (give)
            (void)admi_world_give(&world, lease);
        else
            (void)admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 5), &lease);
        if (world.status == ADM_E_BACKEND_UNAVAILABLE) {
            failures++;
            lease = give ? lease : (struct adm_id){ 0, 0 };
        } else if (world.status == ADM_OK) {
            held += give ? -1 : 1;
            lease = give ? (struct adm_id){ 0, 0 } : lease;
        }
    }
    world.resends = 8;
    held -= admi_world_level(&world, pool, "p");
    admi_world_close(&world);
    return held != 0 || failures == 0;
}

int main(void)
{
    uint64_t every = 5;
    const struct adm_contract_subject subject = {
        .size = sizeof subject, .name = "plain with faults", .user = &every, .open = open_fault
    };
    int failed = adm_contract_main(&subject);

    for (uint64_t n = 2; n < 40; n++) {
        if (fail_nth(n) != 0) {
            (void)printf("# K8: the failure of op %llu changed something\n", (unsigned long long)n);
            failed = 1;
        }
    }
    return failed;
}
