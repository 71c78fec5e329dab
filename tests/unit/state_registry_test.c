/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/registry with spare places, and an owner who keeps no buckets but says which classes
 * are as new. What a registry does without spare places, the tests of ledgers show. */
#include "state/registry.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#define CLASSES  4u
#define FAMILIES 64u
#define PLACES   (2 * CLASSES)

struct fixture {
    struct admi_registry *registry;
    struct admi_registry_hooks hooks;
    bool charged[PLACES + 1]; /* by place: not as new */
    struct adm_class classes[CLASSES];
    char names[CLASSES][16];
    struct adm_class_set set;
};

static bool class_is_as_new(void *self, uint32_t place)
{
    const struct fixture *fixture = self;

    ck_assert_uint_ne(place, 0);
    ck_assert_uint_le(place, PLACES);
    return !fixture->charged[place];
}

static void class_forget(void *self, uint32_t place)
{
    ck_assert(class_is_as_new(self, place));
}

static bool family_forget(void *self, uint32_t place)
{
    (void)self;
    ck_assert_uint_ne(place, 0);
    return true;
}

static void class_rescale(void *self, uint32_t place, const struct adm_odometer *before)
{
    (void)self;
    (void)before;
    ck_assert_uint_ne(place, 0);
}

static void family_changed(void *self, uint32_t place)
{
    (void)self;
    ck_assert_uint_ne(place, 0);
}

static void begin(struct fixture *fixture, uint64_t spare)
{
    struct admi_registry measure;
    uint64_t end = sizeof measure;

    *fixture = (struct fixture){ .hooks = { .class_is_as_new = class_is_as_new,
                                            .class_forget = class_forget,
                                            .family_forget = family_forget,
                                            .class_rescale = class_rescale,
                                            .family_changed = family_changed } };
    fixture->hooks.self = fixture;
    admi_registry_init(&measure, CLASSES, spare, FAMILIES, &end);
    fixture->registry = calloc(1, end);
    ck_assert_ptr_nonnull(fixture->registry);
    *fixture->registry = measure;
}

/* So many rules whose names begin with this letter. */
static adm_status put(struct fixture *fixture, char letter, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        snprintf(fixture->names[i], sizeof fixture->names[i], "%c%u", letter, i);
        fixture->classes[i] = (struct adm_class){ .kind = ADM_KIND_BUCKET,
                                                  .rule = adm_str(fixture->names[i]),
                                                  .origin = adm_str("rule"),
                                                  .capacity = 10,
                                                  .refill = 1,
                                                  .per_ns = ADM_SECOND };
    }
    fixture->set = (struct adm_class_set){ .owner = adm_str("owner"),
                                           .classes = fixture->classes,
                                           .class_count = count };
    return admi_registry_put(fixture->registry, &fixture->hooks, &fixture->set, 1);
}

static void reclaim(struct fixture *fixture)
{
    admi_registry_reclaim(fixture->registry, &fixture->hooks, 1);
}

static uint32_t used(const struct fixture *fixture)
{
    return fixture->registry->class_table.used;
}

/* What a put hands out are places of their own, in the set, and never 0. */
static void assert_in_force(const struct fixture *fixture)
{
    bool seen[PLACES + 1] = { true };

    for (uint64_t i = 0; i < fixture->set.class_count; i++) {
        uint64_t handle = fixture->classes[i].handle;

        ck_assert_uint_le(handle, PLACES);
        ck_assert_msg(!seen[handle], "class %u has place %u", (unsigned)i, (unsigned)handle);
        seen[handle] = true;
        ck_assert(admi_registry_class_at(fixture->registry, handle)->in_set);
    }
    ck_assert_uint_eq(admi_registry_class_at(fixture->registry, 0)->family, 0);
    ck_assert(admi_registry_sequence_is_current(fixture->registry, fixture->set.sequence));
}

START_TEST(what_a_put_replaces_stays_until_the_owner_reclaims)
{
    struct fixture fixture;

    begin(&fixture, CLASSES);
    ck_assert_int_eq(put(&fixture, 'a', CLASSES), ADM_OK);
    ck_assert_int_eq(put(&fixture, 'b', CLASSES), ADM_OK);
    assert_in_force(&fixture);
    ck_assert_uint_eq(used(&fixture), 2 * CLASSES);
    reclaim(&fixture);
    ck_assert_uint_eq(used(&fixture), CLASSES);
    assert_in_force(&fixture);
    free(fixture.registry);
}
END_TEST

START_TEST(without_spare_places_it_makes_way_at_once)
{
    struct fixture fixture;

    begin(&fixture, 0);
    ck_assert_int_eq(put(&fixture, 'a', CLASSES), ADM_OK);
    ck_assert_int_eq(put(&fixture, 'b', CLASSES), ADM_OK);
    assert_in_force(&fixture);
    ck_assert_uint_eq(used(&fixture), CLASSES);
    free(fixture.registry);
}
END_TEST

START_TEST(a_refused_put_leaves_the_set_in_force_and_no_families)
{
    struct fixture fixture;
    uint64_t sequence;

    begin(&fixture, CLASSES);
    ck_assert_int_eq(put(&fixture, 'a', CLASSES), ADM_OK);
    sequence = fixture.set.sequence;
    fixture.charged[fixture.classes[0].handle] = true;
    ck_assert_int_eq(put(&fixture, 'b', CLASSES), ADM_E_BACKEND_FULL); /* one cannot go */
    ck_assert_uint_eq(fixture.set.sequence, 0);
    ck_assert_uint_eq(fixture.registry->family_table.used, CLASSES);
    ck_assert_uint_eq(used(&fixture), CLASSES);
    ck_assert(admi_registry_sequence_is_current(fixture.registry, sequence));
    for (uint32_t at = 1; at <= CLASSES; at++)
        ck_assert(admi_registry_class_at(fixture.registry, at)->in_set);
    ck_assert_int_eq(put(&fixture, 'b', CLASSES - 1), ADM_OK);
    assert_in_force(&fixture);
    free(fixture.registry);
}
END_TEST

/* Between a put and the moment its set is known, classes of the old one are charged. */
static void overfill(struct fixture *fixture, uint32_t late)
{
    begin(fixture, CLASSES);
    ck_assert_int_eq(put(fixture, 'a', CLASSES), ADM_OK);
    for (uint32_t i = 0; i < late; i++)
        fixture->charged[fixture->classes[i].handle] = true;
    /* They are charged too late to be seen: as if by another thread. */
    bool charged[PLACES + 1];

    for (uint32_t i = 0; i <= PLACES; i++) {
        charged[i] = fixture->charged[i];
        fixture->charged[i] = false;
    }
    ck_assert_int_eq(put(fixture, 'b', CLASSES), ADM_OK);
    for (uint32_t i = 0; i <= PLACES; i++)
        fixture->charged[i] = charged[i];
    reclaim(fixture);
    ck_assert_uint_eq(used(fixture), CLASSES + late);
}

START_TEST(classes_beyond_the_bound_count_against_the_next_put)
{
    for (uint32_t late = 1; late <= CLASSES; late++) {
        struct fixture fixture;
        uint64_t sequence;

        overfill(&fixture, late);
        sequence = fixture.set.sequence;
        /* What is left of the first set stays: so many fewer of a new one fit. */
        ck_assert_int_eq(put(&fixture, 'c', CLASSES - late + 1), ADM_E_BACKEND_FULL);
        ck_assert(admi_registry_sequence_is_current(fixture.registry, sequence));
        ck_assert_uint_eq(used(&fixture), CLASSES + late);
        ck_assert_int_eq(put(&fixture, 'c', CLASSES - late), ADM_OK);
        assert_in_force(&fixture);
        ck_assert_uint_le(used(&fixture), PLACES);
        reclaim(&fixture);
        ck_assert_uint_eq(used(&fixture), CLASSES);
        free(fixture.registry);
    }
}
END_TEST

START_TEST(classes_beyond_the_bound_make_way_once_they_can)
{
    struct fixture fixture;

    overfill(&fixture, CLASSES);
    ck_assert_uint_eq(used(&fixture), PLACES); /* not one is free */
    for (uint32_t i = 0; i <= PLACES; i++)
        fixture.charged[i] = false;
    ck_assert_int_eq(put(&fixture, 'c', CLASSES), ADM_OK);
    assert_in_force(&fixture);
    ck_assert_uint_eq(used(&fixture), PLACES); /* the set it replaced is still there */
    reclaim(&fixture);
    ck_assert_uint_eq(used(&fixture), CLASSES);
    assert_in_force(&fixture);
    free(fixture.registry);
}
END_TEST

START_TEST(classes_beyond_the_bound_do_not_refuse_what_is_there)
{
    struct fixture fixture;

    overfill(&fixture, 2);
    ck_assert_int_eq(put(&fixture, 'b', CLASSES), ADM_OK); /* nothing is missing */
    assert_in_force(&fixture);
    ck_assert_int_eq(put(&fixture, 'b', 1), ADM_OK);
    reclaim(&fixture);
    ck_assert_uint_eq(used(&fixture), 3);
    free(fixture.registry);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *tests = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_test(tests, what_a_put_replaces_stays_until_the_owner_reclaims);
    tcase_add_test(tests, without_spare_places_it_makes_way_at_once);
    tcase_add_test(tests, a_refused_put_leaves_the_set_in_force_and_no_families);
    tcase_add_test(tests, classes_beyond_the_bound_count_against_the_next_put);
    tcase_add_test(tests, classes_beyond_the_bound_make_way_once_they_can);
    tcase_add_test(tests, classes_beyond_the_bound_do_not_refuse_what_is_there);
    suite_add_tcase(suite, tests);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
