/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/ledger.c: the block itself. What operations do is in the other state tests. */
#include "state_support.h"

/* Two times, then no more. */
static int32_t few_bytes(void *self, void *out, uint64_t bytes)
{
    uint32_t *left = self;

    memset(out, 0x5a, bytes);
    return (*left)-- > 0 ? 0 : -1;
}

START_TEST(options_out_of_range_begin_nothing)
{
    struct adm_ledger_options good = { .size = sizeof good, .partitions_max = 8, .leases_max = 8 };
    struct adm_ledger_options bad[9] = { good, good, good, good, good, good, good, good, good };
    const adm_status expected[9] = { ADM_E_STRUCT_SIZE,      ADM_E_STRUCT_SIZE,
                                     ADM_E_CALLER_NEWER,     ADM_E_CALLER_NEWER,
                                     ADM_E_CALLER_NEWER,     ADM_E_INVALID_ARGUMENT,
                                     ADM_E_INVALID_ARGUMENT, ADM_E_INVALID_ARGUMENT,
                                     ADM_E_INVALID_ARGUMENT };
    uint64_t memory[64] = { 0 };

    bad[0].size = 8;
    bad[1].size = 5000;
    bad[2].flags = 1;
    bad[3].reserved[3] = 1;
    bad[4].reserved_pointer = memory;
    bad[5].partitions_max = (UINT64_C(1) << 27) + 1;
    bad[6].leases_max = (UINT64_C(1) << 23) + 1;
    bad[7].attempts_max = UINT64_MAX;
    bad[8].classes_max = UINT64_MAX;
    for (uint32_t i = 0; i < 9; i++) {
        uint64_t bytes = 77;

        ck_assert_int_eq(adm_ledger_bytes(&bad[i], &bytes), expected[i]);
        ck_assert_uint_eq(bytes, 77);
        ck_assert_int_eq(adm_ledger_init(memory, UINT64_MAX, &bad[i]), expected[i]);
    }
    ck_assert_int_eq(adm_ledger_bytes(&good, NULL), ADM_E_INVALID_ARGUMENT);
    for (uint32_t i = 0; i < 64; i++)
        ck_assert_uint_eq(memory[i], 0);
}
END_TEST

START_TEST(memory_that_will_not_do_is_refused_untouched)
{
    struct adm_ledger_options options = { .size = sizeof options,
                                          .partitions_max = 8,
                                          .leases_max = 8,
                                          .attempts_max = 8,
                                          .classes_max = 8 };
    uint32_t left = 2;
    const struct adm_random few = { &left, few_bytes };
    uint64_t bytes = 0;
    unsigned char *memory;

    ck_assert_int_eq(adm_ledger_bytes(&options, &bytes), ADM_OK);
    memory = calloc(1, bytes + 8);
    ck_assert_int_eq(adm_ledger_init(NULL, bytes, &options), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_ledger_init(memory + 4, bytes, &options), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_ledger_init(memory, bytes - 1, &options), ADM_E_BUFFER_TOO_SMALL);
    ck_assert_int_eq(adm_ledger_init(memory, 0, &options), ADM_E_BUFFER_TOO_SMALL);
    options.random = &few;
    ck_assert_int_eq(adm_ledger_init(memory, bytes, &options), ADM_E_OS);
    for (uint64_t i = 0; i < bytes + 8; i++)
        ck_assert_uint_eq(memory[i], 0);
    options.random = NULL;
    ck_assert_int_eq(adm_ledger_init(memory, bytes, &options), ADM_OK);
    free(memory);
}
END_TEST

/* Every page but those in use may be taken away: that is what "zero" promises for big ledgers. */
START_TEST(an_empty_ledger_touches_its_head_alone)
{
    uint64_t bytes = 0, touched = 0;
    unsigned char *memory;

    ck_assert_int_eq(adm_ledger_bytes(NULL, &bytes), ADM_OK);
    memory = calloc(1, bytes);
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_eq(adm_ledger_init(memory, bytes, NULL), ADM_OK);
    for (uint64_t i = sizeof(struct ledger); i < bytes; i++)
        touched += memory[i] != 0;
    ck_assert_uint_eq(touched, 0);
    free(memory);
}
END_TEST

static void move(struct admi_world *world, uint64_t bytes)
{
    void *elsewhere = malloc(bytes);

    memcpy(elsewhere, world->self, bytes);
    memset(world->self, 0xa5, bytes); /* whatever still pointed here now finds nonsense */
    free(world->self);
    world->self = elsewhere;
}

/* Chains, lists, heaps, rings of closed leases: all of it must be found from the new address. */
START_TEST(K1_a_ledger_may_be_moved_between_any_two_operations)
{
    enum { HELD = 8, PARTITIONS = 5 };
    struct admi_world world;
    struct adm_id leases[HELD] = { { 0, 0 } };
    uint64_t bytes, allowed = 0;
    uint32_t pool, rate, held = 0;

    world_open_sized(&world, 16, HELD, 4, 4);
    bytes = ledger_of(&world)->bytes;
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    rate = admi_world_bucket(&world, "rate", 3, 1, ADM_SECOND);
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 3000; i++) {
        uint32_t slot = (uint32_t)admi_world_random(&world, HELD);
        char name[8];

        snprintf(name, sizeof name, "p%u", (unsigned)admi_world_random(&world, PARTITIONS));
        move(&world, bytes);
        if (i % 97 == 0)
            ASSERT_PUT(&world);
        if (leases[slot].low != 0 || leases[slot].high != 0) {
            ck_assert_uint_eq(admi_world_give(&world, leases[slot]), ADM_OUTCOME_RELEASED);
            leases[slot] = (struct adm_id){ 0, 0 };
            held--;
        } else {
            struct adm_term terms[2] = { admi_world_term(&world, pool, "p", 1, HELD),
                                         admi_world_term(&world, rate, name, 1, 0) };

            if (admi_world_take(&world, terms, 2, &leases[slot]) == ADM_VERDICT_ALLOW) {
                allowed++;
                held++;
            } else {
                ck_assert_int_eq(world.status, ADM_OK);
                leases[slot] = (struct adm_id){ 0, 0 };
            }
        }
        move(&world, bytes);
        ASSERT_LEVEL(&world, pool, "p", held);
        admi_world_advance(&world, ADM_SECOND / 10);
    }
    ck_assert_uint_gt(allowed, 500);
    admi_world_close(&world);
}
END_TEST

START_TEST(K8_an_operation_that_never_ended_is_the_last)
{
    struct admi_world world;
    uint32_t pool;

    world_open(&world);
    pool = admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    ASSERT_PUT(&world);
    ledger_of(&world)->running = 1; /* as a process that was killed inside leaves it */
    ck_assert_uint_eq(admi_world_take_one(&world, admi_world_term(&world, pool, "p", 1, 5), NULL),
                      ADM_VERDICT_DENY);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_int_eq(admi_world_put(&world), ADM_E_BACKEND_UNAVAILABLE);
    ck_assert_uint_eq(admi_world_give(&world, (struct adm_id){ 1, 2 }), ADM_OUTCOME_COUNT);
    ck_assert_int_eq(world.status, ADM_E_BACKEND_UNAVAILABLE);
    admi_world_close(&world);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ledger");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60);
    tcase_add_test(all, options_out_of_range_begin_nothing);
    tcase_add_test(all, memory_that_will_not_do_is_refused_untouched);
    tcase_add_test(all, an_empty_ledger_touches_its_head_alone);
    tcase_add_test(all, K1_a_ledger_may_be_moved_between_any_two_operations);
    tcase_add_test(all, K8_an_operation_that_never_ended_is_the_last);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
