/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain backend under random ops: after each, its books must agree (what leases hold is what
 * partitions count, lists and tables know the same records, pins are open items), memory stays
 * bounded, and no op allocates.
 */
#include "state_support.h"

/* ---- the audit ---- */

static uint32_t position_in(const struct admi_heap *heap, uint32_t place)
{
    return ((const uint32_t *)admi_array(heap, heap->position_at))[place];
}

static uint64_t item_count_of(struct ledger_region *region, uint32_t partition, uint64_t *held)
{
    uint64_t items = 0;

    *held = 0;
    for (uint32_t at = 1; at <= region->lease_table.high; at++) {
        const struct ledger_lease *lease = lease_at(region, at);

        for (uint32_t i = 0; lease->state != 0 && i < lease->item_count; i++) {
            if (lease->items[i].partition != partition)
                continue;
            items++;
            if (lease->state == LEDGER_LIVE)
                *held += lease->items[i].amount;
        }
    }
    return items;
}

static void audit_region(struct ledger *ledger, struct ledger_region *region)
{
    uint32_t used = 0, closed = 0, leases = 0;

    for (uint32_t at = 1; at <= region->partition_table.high; at++) {
        const struct ledger_partition *partition = partition_at(region, at);
        uint64_t held;

        if (partition->family == 0)
            continue;
        used++;
        ck_assert_uint_eq(item_count_of(region, at, &held), partition->pins);
        if (family_at(ledger, partition->family)->kind == ADM_KIND_CONCURRENCY)
            ck_assert_uint_eq(partition->units, held); /* K1 */
        ck_assert_uint_eq(admi_ledger_partition_find(ledger, &partition->key, partition->hash,
                                                     partition->family, partition->class_place),
                          at);
        ck_assert_uint_eq(partition->class_place != 0,
                          family_at(ledger, partition->family)->kind == ADM_KIND_BUCKET);
    }
    ck_assert_uint_eq(used, region->partition_table.used);
    for (uint32_t at = region->closed_first; at != 0; at = lease_at(region, at)->closed_next) {
        ck_assert_uint_eq(lease_at(region, at)->state, LEDGER_CLOSED);
        ck_assert_uint_eq(lease_at(region, at)->item_count, 0);
        closed++;
    }
    for (uint32_t at = 1; at <= region->lease_table.high; at++) {
        const struct ledger_lease *lease = lease_at(region, at);

        if (lease->state == 0)
            continue;
        leases++;
        closed -= lease->state == LEDGER_CLOSED;
        ck_assert_uint_eq(admi_ledger_lease_find(region, lease->id), at);
        ck_assert_uint_ne(position_in(&region->lease_heap, at), 0);
        ck_assert_uint_eq(lease->state == LEDGER_LIVE,
                          ledger->now_ns < lease->expires_ns && lease->state != LEDGER_CLOSED);
        if (lease->attempt != 0)
            ck_assert_uint_eq(attempt_at(ledger, lease->attempt)->lease, at);
    }
    ck_assert_uint_eq(closed, 0);
    ck_assert_uint_eq(leases, region->lease_table.used);
    ck_assert_uint_eq(leases, region->lease_heap.count);
}

static void audit(struct ledger *ledger)
{
    for (uint32_t i = 0; i < LEDGER_REGIONS; i++)
        audit_region(ledger, &ledger->regions[i]);
    for (uint32_t at = 1; at <= ledger->registry.family_table.high; at++) {
        const struct ledger_family *family = family_state_at(ledger, at);
        const struct ledger_region *region = admi_ledger_region_of(ledger, at);
        uint32_t count = 0;

        if (family_at(ledger, at)->kind == 0)
            continue;
        for (uint32_t p = family->first_partition; p != 0;
             p = partition_at(region, p)->family_next, count++)
            ck_assert_uint_eq(partition_at(region, p)->family, at);
        ck_assert_uint_eq(count, family->partitions);
    }
    for (uint32_t at = 1; at <= ledger->registry.class_table.high; at++) {
        const struct admi_registry_class *class_ = class_at(ledger, at);
        uint32_t previous = 0;

        if (class_->family == 0)
            continue;
        const struct ledger_region *region = admi_ledger_region_of(ledger, class_->family);

        for (uint32_t p = class_state_at(ledger, at)->first_partition; p != 0;
             p = partition_at(region, p)->class_next) {
            ck_assert_uint_eq(partition_at(region, p)->class_place, at);
            ck_assert_uint_eq(partition_at(region, p)->class_previous, previous);
            previous = p;
        }
        ck_assert_uint_le(class_->odometer.a, class_->odometer.b);
    }
}

/* ---- random ops ---- */

#define LEASES 40u
#define RULES  6u

static void random_take(struct admi_world *world, struct adm_id *out_lease)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    struct adm_term terms[RULES];
    struct adm_meter meters[3] = { { 0, 0, 0 },
                                   { ADM_UNIT_OUTPUT_TOKENS, 0, 0 },
                                   { ADM_UNIT_TOKENS, ADM_METER_F_DERIVED, 0 } };
    struct adm_take take = {
        .flags = ADM_TAKE_F_LEASE, .terms = terms, .meters = meters, .meter_count = 3
    };
    uint32_t first = (uint32_t)admi_world_random(world, 2);

    for (uint32_t i = first; i < RULES; i += 1 + (uint32_t)admi_world_random(world, 3)) {
        struct adm_term *term = &terms[take.term_count++];

        *term = admi_world_term(world, i, names[admi_world_random(world, 8)],
                                admi_world_random(world, 6), 9);
        term->unit = (uint32_t[]){ ADM_UNIT_COST, ADM_UNIT_OUTPUT_TOKENS,
                                   ADM_UNIT_TOKENS }[admi_world_random(world, 3)];
        term->scope = adm_str(names[admi_world_random(world, 2)]);
        term->replicas = 1 + admi_world_random(world, 3);
        if (term->kind != ADM_KIND_CONCURRENCY && admi_world_random(world, 2) == 0)
            term->flags |= ADM_TERM_F_SETTLE_EXACT;
        if (term->kind == ADM_KIND_BUCKET && admi_world_random(world, 3) == 0)
            term->flags |= ADM_TERM_F_COMPLETION;
    }
    take.mode = admi_world_random(world, 5) == 0 ? ADM_TAKE_JUDGE : ADM_TAKE_CHARGE;
    take.shadow_ttl_ns = WORLD_TTL_NS;
    if (admi_world_random(world, 4) == 0) {
        take.attempt = adm_str(names[admi_world_random(world, 8)]);
        take.attempt_life_ns = admi_world_random(world, WORLD_TTL_NS);
    }
    (void)admi_world_take_as(world, &take);
    ck_assert(world->status == ADM_OK || world->status == ADM_E_BACKEND_FULL);
    if (world->status == ADM_OK && (take.lease.high | take.lease.low) != 0)
        *out_lease = take.lease;
}

static void random_op(struct admi_world *world, struct adm_id leases[LEASES])
{
    struct adm_id *lease = &leases[admi_world_random(world, LEASES)];
    struct adm_sweep sweep = { .budget = 5 };
    struct adm_op sweeping = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };
    const struct adm_amount totals[] = { { ADM_UNIT_COST, 0, admi_world_random(world, 12) },
                                         { ADM_UNIT_OUTPUT_TOKENS, ADM_AMOUNT_FINAL,
                                           admi_world_random(world, 12) } };

    switch (admi_world_random(world, 12)) {
    case 0:
        (void)admi_world_give(world, *lease);
        break;
    case 1:
        (void)admi_world_renew(world, *lease);
        break;
    case 2:
        (void)admi_world_divert(world, *lease);
        break;
    case 3:
        (void)admi_world_settle_all(world, *lease, totals, 1, false);
        break;
    case 4:
        (void)admi_world_settle_all(world, *lease, totals, 2, admi_world_random(world, 4) == 0);
        break;
    case 5:
        (void)admi_world_run(world, &sweeping);
        break;
    case 6: /* other numbers, perhaps another grid; a rule that comes and goes */
        world->classes[0].capacity = admi_world_random(world, 20);
        world->classes[0].per_ns = ADM_MILLISECOND << admi_world_random(world, 40);
        world->classes[0].max_partitions = admi_world_random(world, 5);
        world->class_count = RULES - (admi_world_random(world, 3) == 0);
        ck_assert_int_eq(admi_world_put(world), ADM_OK);
        if (world->class_count < RULES) {
            world->class_count = RULES;
            ck_assert_int_eq(admi_world_put(world), ADM_OK);
        }
        break;
    default:
        random_take(world, lease);
        break;
    }
    if (admi_world_random(world, 4) == 0)
        admi_world_advance(world, admi_world_random(world, WORLD_TTL_NS / 4));
    if (admi_world_random(world, 40) == 0)
        world->now.wall_ns -= admi_world_random(world, 2) * DAY_NS; /* somebody sets the clock */
}

START_TEST(k1_the_books_agree_after_every_op)
{
    struct admi_world world;
    struct adm_id leases[LEASES] = { { 0, 0 } };

    world_open_sized(&world, 12, 20, 6, 16);
    world.random = (uint64_t)_i;
    (void)admi_world_bucket(&world, "rate", 10, 1, ADM_SECOND);
    (void)admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    (void)admi_world_counter(&world, "day", ADM_KIND_QUOTA);
    (void)admi_world_bucket(&world, "scaled", 10, 1, ADM_SECOND);
    (void)admi_world_counter(&world, "pool", ADM_KIND_CONCURRENCY);
    (void)admi_world_bucket(&world, "rate", 5, 1, ADM_SECOND);
    world.classes[3].flags = ADM_CLASS_F_PER_REPLICA;
    world.classes[4].flags = world.classes[5].flags = ADM_CLASS_F_SHADOW;
    ASSERT_PUT(&world);
    for (uint32_t i = 0; i < 4000; i++) {
        random_op(&world, leases);
        audit(ledger_of(&world));
    }
    /* When everything has ended, nothing is left. */
    struct adm_sweep sweep = { .budget = 1000 };
    struct adm_op sweeping = { .kind = ADM_OP_SWEEP, .args.sweep = &sweep };

    world.class_count = 0;
    ASSERT_PUT(&world);
    world.now.mono_ns += UINT64_C(1) << 62;
    world.now.wall_ns += 1000 * DAY_NS;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(admi_world_run(&world, &sweeping), ADM_OK);
    audit(ledger_of(&world));
    ck_assert_uint_eq(admi_world_info(&world).leases, 0);
    ck_assert_uint_eq(admi_world_info(&world).attempts, 0);
    ck_assert_uint_eq(admi_world_info(&world).partitions, 0);
    ck_assert_uint_eq(ledger_of(&world)->regions[LEDGER_SHADOW].partition_table.used, 0);
    admi_world_close(&world);
}
END_TEST

/* ---- memory ---- */

struct counted {
    uint64_t allocations, living, bytes;
    uint64_t fail_at; /* 1: the first; 0: none */
};

static void *counted_allocate(void *self, uint64_t bytes)
{
    struct counted *counted = self;

    if (++counted->allocations == counted->fail_at)
        return NULL;
    counted->living++;
    counted->bytes += bytes;
    return calloc(1, bytes);
}

static void counted_release(void *self, void *memory, uint64_t bytes)
{
    struct counted *counted = self;

    counted->living--;
    counted->bytes -= bytes;
    free(memory);
}

static adm_status open_counted(void *user, const struct adm_contract_sizes *sizes,
                               struct adm_backend *out)
{
    const struct adm_allocator allocator = { user, counted_allocate,
                                             counted_release }; /* need not outlive the call */
    struct adm_plain_options options = { .size = sizeof options,
                                         .partitions_max = sizes->partitions };

    options.leases_max = sizes->leases;
    options.attempts_max = sizes->attempts;
    options.classes_max = sizes->classes;
    options.allocator = &allocator;
    return adm_plain_open(&options, out);
}

START_TEST(every_failing_allocation_is_nomem_and_leaks_nothing)
{
    const struct adm_contract_sizes sizes = { 64, 64, 16, 16, NULL };
    uint64_t n = 1;

    for (;; n++) {
        struct counted counted = { .fail_at = n };
        struct adm_backend backend = { NULL, NULL };
        adm_status status = open_counted(&counted, &sizes, &backend);

        if (status == ADM_OK) {
            ck_assert_uint_lt(counted.allocations, n);
            backend.ops->close(backend.self);
            ck_assert_uint_eq(counted.living, 0);
            ck_assert_uint_eq(counted.bytes, 0);
            break;
        }
        ck_assert_int_eq(status, ADM_E_NOMEM);
        ck_assert_ptr_null(backend.ops);
        ck_assert_uint_eq(counted.living, 0);
        ck_assert_uint_eq(counted.bytes, 0);
    }
    ck_assert_uint_eq(n, 3); /* one for the handle, one for the ledger */
}
END_TEST

START_TEST(b096_b100_a_million_newcomers_need_no_more_memory)
{
    struct counted counted = { 0 };
    const struct adm_contract_subject subject = { .size = sizeof subject,
                                                  .user = &counted,
                                                  .open = open_counted };
    const struct adm_contract_sizes sizes = { 1000, 100, 16, 16, NULL };
    struct admi_world world;
    uint32_t rate, capped;
    uint64_t allocations, bytes, refused = 0;
    char name[24];

    ck_assert(admi_world_open(&world, &subject, &sizes));
    rate = admi_world_bucket(&world, "rate", 10, 1, 10 * ADM_SECOND);
    capped = admi_world_bucket(&world, "capped", 10, 1, 10 * ADM_SECOND);
    world.classes[capped].max_partitions = 100;
    ASSERT_PUT(&world);
    allocations = counted.allocations;
    bytes = counted.bytes;
    for (uint32_t i = 0; i < 50; i++) { /* residents, who must not lose anything */
        snprintf(name, sizeof name, "resident %u", i);
        ck_assert_uint_eq(
            admi_world_take_one(&world, admi_world_term(&world, rate, name, 10, 0), NULL), 1);
    }
    for (uint32_t i = 0; i < 1000000; i++) {
        snprintf(name, sizeof name, "newcomer %u", i);
        refused +=
            1 - admi_world_take_one(
                    &world, admi_world_term(&world, i % 2 == 0 ? rate : capped, name, 1, 0), NULL);
        ck_assert_int_eq(world.status, ADM_OK);
        admi_world_advance(&world, ADM_MILLISECOND /
                                       20); /* 50 s in all: newcomers come and go, residents stay */
    }
    ck_assert_uint_gt(refused, 900000);
    ck_assert_uint_lt(refused, 999000);
    for (uint32_t i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "resident %u", i);
        ASSERT_LEVEL(&world, rate, name, 5);
    }
    ck_assert_uint_le(admi_world_info(&world).partitions, 1000);
    ck_assert_uint_eq(counted.allocations, allocations);
    ck_assert_uint_eq(counted.bytes, bytes);
    admi_world_close(&world);
    ck_assert_uint_eq(counted.living, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("random");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, k1_the_books_agree_after_every_op, 1, 9);
    tcase_add_test(tests, every_failing_allocation_is_nomem_and_leaks_nothing);
    tcase_add_test(tests, b096_b100_a_million_newcomers_need_no_more_memory);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
