/* SPDX-License-Identifier: Apache-2.0 */
/* The stock of random bytes: the published key stream, no id twice, a source that fails. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/entropy.h"
#include "base/random.h"

#define DRAWN 100000u

/* What a source was asked for; it gives its own count, or fails. */
struct source {
    uint32_t calls;
    uint64_t bytes;
    int32_t result;
};

static int32_t give(void *self, void *out, uint64_t bytes)
{
    struct source *source = self;

    source->calls++;
    source->bytes += bytes;
    if (source->result == 0)
        memset(out, (int)source->calls, (size_t)bytes);
    return source->result;
}

static void expect_bytes(const uint32_t *words, const char *hex)
{
    for (uint32_t i = 0; i < 64; i++) {
        const char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

        ck_assert_uint_eq(words[i / 4] >> 8 * (i % 4) & 0xff, strtoul(digits, NULL, 16));
    }
}

/* RFC 8439, appendix A.1, vectors 1 to 3, and the last of the blocks that are made together. */
START_TEST(the_key_stream_is_the_published_one)
{
    uint32_t key[8] = { 0 };
    uint32_t out[ADMI_CHACHA_LANES][16];

    admi_chacha(key, 0, 20, out);
    expect_bytes(out[0], "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
                         "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586");
    expect_bytes(out[1], "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
                         "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    expect_bytes(out[3], "1320a058d7b3566bd520daaa3ed2bf0ac5b8b120fb852773c3639734b45c91a4"
                         "2dd4cb83f8840d2eedb158131062ac3f1f2cf8ff6dcd1856e86a1e6c3167167e");
    admi_chacha(key, 1, 20, out);
    expect_bytes(out[0], "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
                         "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    key[7] = 0x01000000;
    admi_chacha(key, 1, 20, out);
    expect_bytes(out[0], "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
                         "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0");
}
END_TEST

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct adm_id));
}

START_TEST(no_id_is_drawn_twice)
{
    static struct adm_id ids[DRAWN];
    static struct admi_random_stock stock;
    const struct adm_random source = { NULL, admi_entropy_fill };

    for (uint32_t i = 0; i < DRAWN; i++)
        ck_assert_int_eq(admi_random_draw(&stock, &source, i % 1000 == 999, &ids[i]), 0);
    qsort(ids, DRAWN, sizeof ids[0], compare_ids);
    for (uint32_t i = 1; i < DRAWN; i++)
        ck_assert_int_ne(compare_ids(&ids[i - 1], &ids[i]), 0);
}
END_TEST

START_TEST(two_stocks_of_one_source_differ)
{
    struct source own = { 0, 0, 0 };
    const struct adm_random source = { &own, give };
    struct admi_random_stock one = { 0 }, two = { 0 };
    struct adm_id a, b;

    ck_assert_int_eq(admi_random_draw(&one, &source, 0, &a), 0);
    ck_assert_int_eq(admi_random_draw(&two, &source, 0, &b), 0);
    ck_assert_int_ne(compare_ids(&a, &b), 0);
}
END_TEST

START_TEST(what_was_handed_out_and_its_key_are_forgotten)
{
    struct source own = { 0, 0, 0 };
    const struct adm_random source = { &own, give };
    struct admi_random_stock stock = { 0 };
    uint8_t first_key[32];
    struct adm_id id;

    memset(first_key, 1, sizeof first_key);
    for (uint32_t i = 0; i < 10; i++) {
        ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &id), 0);
        for (size_t at = 0; at + sizeof id <= sizeof stock; at++)
            ck_assert_int_ne(memcmp((const char *)&stock + at, &id, sizeof id), 0);
    }
    ck_assert_int_ne(memcmp(stock.key, first_key, sizeof first_key), 0);
}
END_TEST

START_TEST(the_source_gives_keys_and_only_now_and_then)
{
    struct source own = { 0, 0, 0 };
    const struct adm_random source = { &own, give };
    struct admi_random_stock stock = { 0 };
    struct adm_id id;

    for (uint32_t i = 0; i < DRAWN; i++)
        ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &id), 0);
    ck_assert_uint_gt(own.calls, 1);
    ck_assert_uint_lt(own.calls, 10);
    ck_assert_uint_eq(own.bytes, own.calls * sizeof stock.key);
}
END_TEST

START_TEST(a_child_draws_a_key_of_its_own_each_time)
{
    struct source own = { 0, 0, 0 };
    const struct adm_random source = { &own, give };
    struct admi_random_stock stock = { 0 }, copy;
    struct adm_id a, b;

    ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &a), 0);
    copy = stock;
    ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &a), 0);
    ck_assert_int_eq(admi_random_draw(&copy, &source, 1, &b), 0);
    ck_assert_int_ne(compare_ids(&a, &b), 0);
    ck_assert_uint_eq(own.calls, 2);
}
END_TEST

START_TEST(a_source_that_fails_gives_nothing)
{
    struct source own = { 0, 0, -1 };
    const struct adm_random source = { &own, give };
    struct admi_random_stock stock = { 0 };
    struct adm_id id = { 7, 7 };

    ck_assert_int_ne(admi_random_draw(&stock, &source, 0, &id), 0);
    ck_assert_int_ne(admi_random_draw(&stock, &source, 1, &id), 0);
    ck_assert_uint_eq(id.high, 7);
    own.result = 0;
    ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &id), 0);
    own.result = -1;
    ck_assert_int_eq(admi_random_draw(&stock, &source, 0, &id), 0); /* in stock */
    ck_assert_int_ne(admi_random_draw(&stock, &source, 1, &id), 0);
    ck_assert_int_ne(admi_random_draw(&stock, &source, 1, &id), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_key_stream_is_the_published_one,
        no_id_is_drawn_twice,
        two_stocks_of_one_source_differ,
        what_was_handed_out_and_its_key_are_forgotten,
        the_source_gives_keys_and_only_now_and_then,
        a_child_draws_a_key_of_its_own_each_time,
        a_source_that_fails_gives_nothing,
    };
    Suite *suite = suite_create("random");
    TCase *cases = tcase_create("random");
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
