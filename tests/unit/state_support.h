/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger in a world of its own, for the tests of lib/state. */
#ifndef TESTS_UNIT_STATE_SUPPORT_H
#define TESTS_UNIT_STATE_SUPPORT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <admit/backends.h>
#include <admit/ledger.h>

#include "state/contract/world.h"
#include "state/ledger.h"

#define DAY_NS (UINT64_C(86400) * ADM_SECOND)

static inline void support_start(void *self, struct adm_op *op)
{
    adm_op_complete(op, adm_ledger_perform(self, op));
}

static inline adm_status support_describe(void *self, struct adm_backend_info *inout)
{
    inout->threads = ADM_THREADS_SERIAL;
    adm_ledger_describe(self, inout);
    return ADM_OK;
}

/* self is the ledger. */
static inline adm_status support_open(void *user, const struct adm_contract_sizes *sizes,
                                      struct adm_backend *out)
{
    static const struct adm_backend_ops ops = { .size = sizeof ops,
                                                .abi = ADM_BACKEND_ABI,
                                                .name = "ledger",
                                                .start = support_start,
                                                .close = free,
                                                .describe = support_describe };
    const struct adm_ledger_options options = { .size = sizeof options,
                                                .partitions_max = sizes->partitions,
                                                .leases_max = sizes->leases,
                                                .attempts_max = sizes->attempts,
                                                .classes_max = sizes->classes };
    uint64_t bytes = 0;
    void *ledger;

    (void)user;
    ck_assert_int_eq(adm_ledger_bytes(&options, &bytes), ADM_OK);
    ledger = calloc(1, bytes);
    ck_assert_int_eq(adm_ledger_init(ledger, bytes, &options), ADM_OK);
    *out = (struct adm_backend){ &ops, ledger };
    return ADM_OK;
}

static inline void world_open_sized(struct admi_world *world, uint64_t partitions, uint64_t leases,
                                    uint64_t attempts, uint64_t classes)
{
    const struct adm_contract_subject subject = { .size = sizeof subject, .open = support_open };
    const struct adm_contract_sizes sizes = { partitions, leases, attempts, classes, NULL };

    ck_assert(admi_world_open(world, &subject, &sizes));
}

static inline void world_open(struct admi_world *world)
{
    world_open_sized(world, 64, 64, 16, 32);
}

static inline struct ledger *ledger_of(const struct admi_world *world)
{
    return world->self;
}

#define ASSERT_LEVEL(world, class_index, partition, expected)                                      \
    ck_assert_int_eq(admi_world_level(world, class_index, partition), (int64_t)(expected))
#define ASSERT_PUT(world) ck_assert_int_eq(admi_world_put(world), ADM_OK)

/* One term with flags, its verdict and lease. */
static inline uint32_t take_flagged(struct admi_world *world, uint32_t class_index,
                                    const char *partition, uint64_t amount, uint64_t limit,
                                    uint32_t flags, uint32_t unit, struct adm_id *out_lease)
{
    struct adm_term term = admi_world_term(world, class_index, partition, amount, limit);

    term.flags |= flags;
    term.unit = unit;
    return admi_world_take(world, &term, 1, out_lease);
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
