/* SPDX-License-Identifier: Apache-2.0 */
/* base/abi: sized structs of older, equal and newer callers. */
#include "base/abi.h"

#include <check.h>
#include <stddef.h>
#include <string.h>

/* What the library knows today; the first release ended with second. */
struct options {
    uint32_t size;
    uint32_t flags;
    uint64_t first;
    uint64_t second;
    uint64_t third;
};

#define FIRST_BYTES ADMI_BYTES_WITH(struct options, second)

/* Memory of a caller: his struct may be shorter or longer than ours, and sits at an odd address. */
struct caller {
    unsigned char odd;
    unsigned char bytes[ADMI_STRUCT_BYTES_MAX + 64];
} __attribute__((packed));

static struct caller caller_of(uint32_t size)
{
    struct caller caller;
    const struct options options = { size, 1, 11, 22, 33 };
    memset(&caller, 0, sizeof caller);
    memcpy(caller.bytes, &options, sizeof options);
    return caller;
}

static const struct options untouched = { 0x55555555, 0x55555555, 0x55, 0x55, 0x55 };

static void assert_untouched(const struct options *options)
{
    ck_assert_int_eq(memcmp(options, &untouched, sizeof untouched), 0);
}

START_TEST(first_bytes_is_the_end_of_a_member)
{
    ck_assert_uint_eq(FIRST_BYTES, 24);
    ck_assert_uint_eq(ADMI_BYTES_WITH(struct options, third), sizeof(struct options));
}
END_TEST

START_TEST(import_sizes)
{
    static const struct {
        uint32_t size;
        adm_status expect;
        uint64_t third; /* when it is ADM_OK */
    } rows[] = {
        { 0, ADM_E_STRUCT_SIZE, 0 },
        { 1, ADM_E_STRUCT_SIZE, 0 },
        { 8, ADM_E_STRUCT_SIZE, 0 },
        { FIRST_BYTES - 1, ADM_E_STRUCT_SIZE, 0 },
        { FIRST_BYTES, ADM_OK, 0 }, /* older: what it lacks is zero, whatever lies behind it */
        { FIRST_BYTES + 7, ADM_OK, 0 },
        { sizeof(struct options), ADM_OK, 33 },
        { sizeof(struct options) + 8, ADM_OK, 33 }, /* newer, and nothing new is used */
        { ADMI_STRUCT_BYTES_MAX, ADM_OK, 33 },
        { ADMI_STRUCT_BYTES_MAX + 1, ADM_E_STRUCT_SIZE, 0 },
        { UINT32_MAX, ADM_E_STRUCT_SIZE, 0 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct caller caller = caller_of(rows[i].size);
        struct options options = untouched;
        adm_status status = admi_import(&options, sizeof options, FIRST_BYTES, caller.bytes);
        ck_assert_msg(status == rows[i].expect, "size %u: %d", rows[i].size, status);
        if (status != ADM_OK) {
            assert_untouched(&options);
            continue;
        }
        ck_assert_uint_eq(options.size, rows[i].size);
        ck_assert_uint_eq(options.flags, 1);
        ck_assert_uint_eq(options.first, 11);
        ck_assert_uint_eq(options.second, 22);
        if (rows[i].size == FIRST_BYTES + 7)
            ck_assert_uint_ne(options.third,
                              0); /* seven of its eight bytes: the caller's own business */
        else
            ck_assert_uint_eq(options.third, rows[i].third);
    }
}
END_TEST

START_TEST(import_refuses_each_unknown_byte)
{
    const uint32_t size = sizeof(struct options) + 40;
    for (uint32_t at = sizeof(struct options); at < size; at++) {
        struct caller caller = caller_of(size);
        struct options options = untouched;
        caller.bytes[at] = 0x80;
        ck_assert_int_eq(admi_import(&options, sizeof options, FIRST_BYTES, caller.bytes),
                         ADM_E_CALLER_NEWER);
        assert_untouched(&options);
    }
    struct caller caller = caller_of(size);
    struct options options;
    caller.bytes[size] = 0x80; /* beyond what the caller calls his */
    ck_assert_int_eq(admi_import(&options, sizeof options, FIRST_BYTES, caller.bytes), ADM_OK);
    caller = caller_of(ADMI_STRUCT_BYTES_MAX);
    caller.bytes[ADMI_STRUCT_BYTES_MAX - 1] = 1;
    ck_assert_int_eq(admi_import(&options, sizeof options, FIRST_BYTES, caller.bytes),
                     ADM_E_CALLER_NEWER);
}
END_TEST

START_TEST(import_of_nothing)
{
    struct options options = untouched;
    ck_assert_int_eq(admi_import(&options, sizeof options, FIRST_BYTES, NULL),
                     ADM_E_INVALID_ARGUMENT);
    assert_untouched(&options);
    ck_assert_int_eq(admi_check_size(NULL, FIRST_BYTES), ADM_E_INVALID_ARGUMENT);
}
END_TEST

START_TEST(check_size_bounds)
{
    static const struct {
        uint32_t size;
        adm_status expect;
    } rows[] = {
        { 0, ADM_E_STRUCT_SIZE },
        { FIRST_BYTES - 1, ADM_E_STRUCT_SIZE },
        { FIRST_BYTES, ADM_OK },
        { ADMI_STRUCT_BYTES_MAX, ADM_OK },
        { ADMI_STRUCT_BYTES_MAX + 1, ADM_E_STRUCT_SIZE },
        { UINT32_MAX, ADM_E_STRUCT_SIZE },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct caller caller = caller_of(rows[i].size);
        caller.bytes[100] = 1; /* an out struct may hold anything */
        ck_assert_int_eq(admi_check_size(caller.bytes, FIRST_BYTES), rows[i].expect);
    }
}
END_TEST

START_TEST(export_stays_inside_the_callers_size)
{
    const struct options result = { sizeof result, 2, 101, 102, 103 };
    for (uint32_t size = 0; size < sizeof result + 24; size++) {
        struct caller caller, expected;
        memset(&caller, 0xEE, sizeof caller);
        memcpy(caller.bytes, &size, sizeof size);
        expected = caller;
        uint32_t common = size < sizeof result ? size : sizeof result;
        if (common > 4)
            memcpy(expected.bytes + 4, (const char *)&result + 4, common - 4);
        admi_export(caller.bytes, &result, sizeof result);
        ck_assert_int_eq(memcmp(&caller, &expected, sizeof caller),
                         0); /* also: the size field is the caller's */
    }
}
END_TEST

START_TEST(all_zero)
{
    unsigned char bytes[40] = { 0 };
    ck_assert_int_eq(admi_all_zero(NULL, 0), 1);
    ck_assert_int_eq(admi_all_zero(bytes, sizeof bytes), 1);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        ck_assert_int_eq(admi_all_zero(bytes, sizeof bytes), 0);
        ck_assert_int_eq(admi_all_zero(bytes, i), 1);
        ck_assert_int_eq(admi_all_zero(bytes + i + 1, sizeof bytes - i - 1), 1);
        bytes[i] = 0;
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("abi");
    TCase *cases = tcase_create("abi");
    tcase_add_test(cases, first_bytes_is_the_end_of_a_member);
    tcase_add_test(cases, import_sizes);
    tcase_add_test(cases, import_refuses_each_unknown_byte);
    tcase_add_test(cases, import_of_nothing);
    tcase_add_test(cases, check_size_bounds);
    tcase_add_test(cases, export_stays_inside_the_callers_size);
    tcase_add_test(cases, all_zero);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
