/* SPDX-License-Identifier: Apache-2.0 */
/* The memory backend: how it is opened, and leases of several slots. */
#include "state_support.h"

static uint64_t allocated, allowed;

static void *allocate(void *self, uint64_t bytes)
{
    (void)self;
    if (allowed == 0)
        return NULL;
    allowed--;
    allocated++;
    return calloc(1, bytes);
}

static void release(void *self, void *memory, uint64_t bytes)
{
    (void)self;
    (void)bytes;
    allocated--;
    free(memory);
}

START_TEST(options_out_of_range_open_nothing)
{
    struct adm_backend backend = { NULL, NULL };

    ck_assert_int_eq(adm_memory_open(NULL, NULL), ADM_E_INVALID_ARGUMENT);
    for (uint32_t fault = 0; fault < 8; fault++) {
        struct adm_memory_options options = { .size = sizeof options };

        options.flags = fault == 0;
        options.reserved[0] = fault == 1;
        options.reserved[3] = fault == 2;
        options.partitions_max = fault == 3 ? (UINT64_C(1) << 26) + 1 : 8;
        options.leases_max = fault == 4 ? (UINT64_C(1) << 21) + 1 : 8;
        options.attempts_max = fault == 5 ? (UINT64_C(1) << 24) + 1 : 8;
        options.classes_max = fault == 6 ? (UINT64_C(1) << 24) + 1 : 8;
        options.threads_max = fault == 7 ? 1025 : 2;
        ck_assert_int_eq(adm_memory_open(&options, &backend),
                         fault < 3 ? ADM_E_CALLER_NEWER : ADM_E_INVALID_ARGUMENT);
        ck_assert_ptr_null(backend.ops);
    }
}
END_TEST

START_TEST(without_memory_nothing_opens_and_nothing_is_lost)
{
    const struct adm_allocator allocator = { NULL, allocate, release };
    struct adm_memory_options options = { .size = sizeof options };
    struct adm_backend backend = { NULL, NULL };

    options.allocator = &allocator;
    options.partitions_max = options.leases_max = options.attempts_max = options.classes_max = 8;
    for (uint64_t room = 0; room < 2; room++) {
        allowed = room;
        ck_assert_int_eq(adm_memory_open(&options, &backend), ADM_E_NOMEM);
        ck_assert_ptr_null(backend.ops);
        ck_assert_uint_eq(allocated, 0);
    }
    allowed = 2;
    ck_assert_int_eq(adm_memory_open(&options, &backend), ADM_OK);
    backend.ops->close(backend.self);
    ck_assert_uint_eq(allocated, 0);
}
END_TEST

static adm_status open_backend(void *user, const struct adm_contract_sizes *sizes,
                               struct adm_backend *out)
{
    struct adm_memory_options options = { .size = sizeof options };

    (void)user;
    options.partitions_max = sizes->partitions;
    options.leases_max = sizes->leases;
    return adm_memory_open(&options, out);
}

START_TEST(a_lease_of_sixteen_rules_and_all_meters)
{
    const struct adm_contract_subject subject = { .size = sizeof subject, .open = open_backend };
    const struct adm_contract_sizes sizes = { 64, 8, 8, 8, NULL };
    struct admi_world world;
    struct adm_term terms[16];
    struct adm_meter meters[18];
    struct adm_take take = { .terms = terms, .term_count = 16, .meters = meters };
    uint32_t pool;
    char names[16][4];

    ck_assert(admi_world_open(&world, &subject, &sizes));
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 18; i++)
        meters[i] = (struct adm_meter){ .unit = ADM_UNIT_FIRST_DECLARED + i, .total = 1 };
    for (uint32_t i = 0; i < 16; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        terms[i] = admi_world_term(&world, pool, names[i], 1, 20);
        terms[i].unit = ADM_UNIT_FIRST_DECLARED + i;
    }
    take.meter_count = 18;
    take.flags = ADM_TAKE_F_LEASE;
    ck_assert_uint_eq(admi_world_take_as(&world, &take), ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(admi_world_info(&world).leases, 4); /* slots */
    ck_assert_uint_eq(admi_world_settle(&world, take.lease, ADM_UNIT_FIRST_DECLARED + 15, 5, false),
                      ADM_OUTCOME_SETTLED);
    ASSERT_LEVEL(&world, pool, "15", 5);
    ASSERT_LEVEL(&world, pool, "14", 1);
    ck_assert_uint_eq(admi_world_give(&world, take.lease), ADM_OUTCOME_RELEASED);
    ck_assert_uint_eq(world.units, 15 + 5);
    for (uint32_t i = 0; i < 16; i++)
        ASSERT_LEVEL(&world, pool, names[i], 0);
    ck_assert_uint_eq(admi_world_info(&world).leases, 1); /* the answer */
    admi_world_close(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = tcase_create("all");

    tcase_add_test(tests, options_out_of_range_open_nothing);
    tcase_add_test(tests, without_memory_nothing_opens_and_nothing_is_lost);
    tcase_add_test(tests, a_lease_of_sixteen_rules_and_all_meters);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
