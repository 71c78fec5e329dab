/* SPDX-License-Identifier: Apache-2.0 */
/* lib/state/table and heap: places, keys and deadlines; and lib/base's hash, entropy and fork
 * guard under them. */
#include "state/table.h"

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/entropy.h"
#include "base/fork_guard.h"
#include "base/memory.h"

static uint8_t secrets[2 * ADMI_SECRET_BYTES];

static void fill_secrets(void)
{
    ck_assert_int_eq(admi_entropy_fill(NULL, secrets, sizeof secrets), 0);
}

static struct admi_key key_of(const void *data, uint64_t length)
{
    struct admi_key key;

    admi_key_make(&key, (struct adm_bytes){ data, length }, secrets);
    return key;
}

START_TEST(b090_b092_b093_keys_differ_when_their_text_does)
{
    uint8_t text[300], other[300];

    fill_secrets();
    for (uint32_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i % 7);
    for (uint32_t length = 0; length <= sizeof text; length++) {
        struct admi_key key = key_of(text, length), again = key_of(text, length);

        ck_assert_int_eq(admi_key_equal(&key, &again), 1);
        if (length > 0) {
            struct admi_key shorter = key_of(text, length - 1);

            ck_assert_int_eq(admi_key_equal(&key, &shorter), 0);
        }
        for (uint32_t at = 0; at < length;
             at++) { /* any one byte, also beyond the 28 and 62 first ones */
            struct admi_key changed;

            memcpy(other, text, sizeof text);
            other[at] ^= 0x80;
            changed = key_of(other, length);
            ck_assert_int_eq(admi_key_equal(&key, &changed), 0);
        }
    }
}
END_TEST

START_TEST(short_keys_are_kept_as_they_are)
{
    static const uint32_t lengths[] = { 0, 1, 61, 62, 63, 300 };
    uint8_t text[300];

    fill_secrets();
    memset(text, 'x', sizeof text);
    for (uint32_t i = 0; i < 6; i++) {
        struct admi_key key = key_of(text, lengths[i]);
        bool exact = lengths[i] <= 62;

        ck_assert_uint_eq(key.bytes[0], exact ? lengths[i] : 0xff);
        ck_assert_int_eq(memcmp(key.bytes + (exact ? 1 : 33), text, exact ? lengths[i] : 28), 0);
        ck_assert(exact ||
                  memcmp(key.bytes + 1, key.bytes + 17, 16) != 0); /* two digests, not one twice */
    }
    /* No short text looks like a digested one. */
    struct admi_key digested = key_of(text, 300), forged = key_of(digested.bytes, 62);

    ck_assert_int_eq(admi_key_equal(&digested, &forged), 0);
}
END_TEST

START_TEST(hashes_depend_on_key_owner_and_secret)
{
    struct admi_key a, b;
    uint8_t digests[2][16];

    fill_secrets();
    a = key_of("a", 1);
    b = key_of("b", 1);
    ck_assert_uint_eq(admi_key_hash(&a, 1, secrets), admi_key_hash(&a, 1, secrets));
    ck_assert_uint_ne(admi_key_hash(&a, 1, secrets), admi_key_hash(&b, 1, secrets));
    ck_assert_uint_ne(admi_key_hash(&a, 1, secrets), admi_key_hash(&a, 2, secrets));
    ck_assert_uint_ne(admi_key_hash(&a, 1, secrets),
                      admi_key_hash(&a, 1, secrets + ADMI_SECRET_BYTES));
    ck_assert_uint_ne(admi_hash64(NULL, 0, secrets),
                      admi_hash64(NULL, 0, secrets + ADMI_SECRET_BYTES));
    admi_hash128("abc", 3, secrets, digests[0]);
    admi_hash128("abc", 3, secrets + ADMI_SECRET_BYTES, digests[1]);
    ck_assert_int_ne(memcmp(digests[0], digests[1], 16), 0);
}
END_TEST

/* An array is the model. */
START_TEST(places_come_and_go)
{
    enum { PLACES = 50 };
    struct {
        struct admi_table table;
        uint32_t arrays[64 + PLACES + 1 + 2];
    } block = { 0 };
    struct admi_table *table = &block.table;
    uint64_t end = sizeof *table;
    uint64_t hashes[PLACES + 1] = { 0 };
    bool used[PLACES + 1] = { false };
    uint32_t count = 0;
    unsigned seed = 1;

    admi_table_init(table, PLACES, &end);
    ck_assert_uint_le(end, sizeof block);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t place = 1 + (uint32_t)rand_r(&seed) % PLACES;

        if (rand_r(&seed) % 2 == 0) {
            uint64_t hash = (uint64_t)rand_r(&seed) % 8; /* nearly all collide */

            place = admi_table_add(table, hash);
            ck_assert_uint_eq(place == 0, count == PLACES);
            if (place == 0)
                continue;
            ck_assert_uint_le(place, PLACES);
            ck_assert(!used[place]);
            used[place] = true;
            hashes[place] = hash;
            count++;
        } else if (used[place]) {
            admi_table_remove(table, hashes[place], place);
            used[place] = false;
            count--;
        }
        ck_assert_uint_eq(table->used, count);
        for (uint64_t hash = 0; hash < 8; hash++) {
            uint32_t found = 0, expected = 0;

            for (uint32_t at = admi_table_first(table, hash); at != 0;
                 at = admi_table_next(table, at)) {
                ck_assert(used[at]);
                found += hashes[at] == hash;
            }
            for (uint32_t at = 1; at <= PLACES; at++)
                expected += used[at] && hashes[at] == hash;
            ck_assert_uint_eq(found, expected);
        }
    }
}
END_TEST

START_TEST(the_heap_knows_what_is_due_first)
{
    enum { PLACES = 40 };
    struct {
        struct admi_heap heap;
        uint64_t arrays[2 * (PLACES + 2)];
    } block = { 0 };
    struct admi_heap *heap = &block.heap;
    uint64_t end = sizeof *heap;
    uint64_t due[PLACES + 1] = { 0 }; /* 0: absent */
    unsigned seed = 1;

    admi_heap_init(heap, PLACES, &end);
    ck_assert_uint_le(end, sizeof block);
    for (uint32_t i = 0; i < 50000; i++) {
        uint32_t place = 1 + (uint32_t)rand_r(&seed) % PLACES, first;
        uint64_t least = UINT64_MAX, told = 0;

        if (rand_r(&seed) % 3 == 0) {
            admi_heap_remove(heap, place); /* also when it is absent */
            due[place] = 0;
        } else {
            due[place] = 1 + (uint64_t)rand_r(&seed) % 30;
            admi_heap_set(heap, place, due[place]);
        }
        for (uint32_t at = 1; at <= PLACES; at++) {
            if (due[at] != 0 && due[at] < least)
                least = due[at];
        }
        first = admi_heap_first(heap, &told);
        ck_assert_uint_eq(first == 0, least == UINT64_MAX);
        if (first != 0) {
            ck_assert_uint_eq(told, least);
            ck_assert_uint_eq(due[first], least);
        }
    }
}
END_TEST

START_TEST(entropy_fills_all_of_it_and_repeats_nothing)
{
    uint8_t a[1000] = { 0 }, b[1000] = { 0 };
    uint32_t zeros = 0;

    ck_assert_int_eq(admi_entropy_fill(NULL, a, sizeof a), 0);
    ck_assert_int_eq(admi_entropy_fill(NULL, b, sizeof b), 0);
    ck_assert_int_ne(memcmp(a, b, sizeof a), 0);
    for (uint32_t i = 0; i + 16 <= sizeof a; i++) { /* no stretch was left out */
        static const uint8_t none[16];

        zeros += memcmp(a + i, none, 16) == 0;
    }
    ck_assert_uint_eq(zeros, 0);
    ck_assert_int_eq(admi_entropy_fill(NULL, NULL, 0), 0);
}
END_TEST

START_TEST(k10_the_guard_tells_a_child)
{
    struct admi_fork_guard guards[2];

    admi_fork_guard_init(&guards[0]);
    guards[1] = (struct admi_fork_guard){ .process = (int32_t)getpid() }; /* as on an old kernel */
    for (uint32_t i = 0; i < 2; i++) {
        int status = 0;
        pid_t child;

        ck_assert_int_eq(admi_fork_guard_is_child(&guards[i]), 0);
        child = fork();
        if (child == 0)
            _exit(admi_fork_guard_is_child(&guards[i]) ? 17 : 18);
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 17);
        ck_assert_int_eq(admi_fork_guard_is_child(&guards[i]), 0);
        admi_fork_guard_fini(&guards[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, b090_b092_b093_keys_differ_when_their_text_does);
    tcase_add_test(tests, short_keys_are_kept_as_they_are);
    tcase_add_test(tests, hashes_depend_on_key_owner_and_secret);
    tcase_add_test(tests, places_come_and_go);
    tcase_add_test(tests, the_heap_knows_what_is_due_first);
    tcase_add_test(tests, entropy_fills_all_of_it_and_repeats_nothing);
    tcase_add_test(tests, k10_the_guard_tells_a_child);
    suite_add_tcase(suite, tests);

    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_ENV);

    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
