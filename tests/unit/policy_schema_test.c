/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON Schema and the caller's buffer. What it says is compared in policy_schema_test.py. */
#include "policy/schema.h"
#include "policy_support.h"

static const uint32_t documents[] = { ADM_SCHEMA_POLICY, ADM_SCHEMA_TABLE };

static uint64_t length_of(uint32_t which)
{
    uint64_t length = 0;
    ck_assert_int_eq(adm_policy_schema(which, NULL, 0, &length), ADM_OK);
    return length;
}

START_TEST(nothing_is_written_beyond_the_buffer)
{
    uint32_t which = documents[_i];
    uint64_t length = length_of(which), again = 0;
    char *whole = malloc(length), *part;
    ck_assert_uint_gt(length, 1000);
    ck_assert_int_eq(adm_policy_schema(which, whole, length, &again), ADM_OK);
    ck_assert_uint_eq(again, length);
    ck_assert_int_eq(whole[0], '{');
    ck_assert_int_eq(whole[length - 1], '\n');
    for (uint64_t room = 1; room < length; room += 1 + room / 7) {
        part = malloc(room); /* exact, so that a sanitizer sees a byte too many */
        again = 0;
        ck_assert_int_eq(adm_policy_schema(which, part, room, &again), ADM_E_BUFFER_TOO_SMALL);
        ck_assert_uint_eq(again, length);
        ck_assert_mem_eq(part, whole, room);
        free(part);
    }
    free(whole);
}
END_TEST

START_TEST(wrong_calls_write_nothing)
{
    char buffer[4] = "abc";
    uint64_t length = 7;
    ck_assert_int_eq(adm_policy_schema(2, buffer, sizeof buffer, &length), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_policy_schema(UINT32_MAX, NULL, 0, &length), ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_policy_schema(ADM_SCHEMA_POLICY, NULL, 5, &length),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_policy_schema(ADM_SCHEMA_POLICY, buffer, sizeof buffer, NULL),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_str_eq(buffer, "abc");
    ck_assert_uint_eq(length, 7);
}
END_TEST

static void check_help(const struct admi_field *field)
{
    ck_assert_msg(field->help != NULL, "%s has no help", field->name);
    size_t length = strlen(field->help);
    ck_assert_msg(length > 10 && length < 100 && field->help[length - 1] == '.', "help of %s",
                  field->name);
    ck_assert_msg(strpbrk(field->help, "\"\\\n") == NULL, "%s: help is not escaped", field->name);
    bool holds = field->kind == ADMI_FIELD_OBJECT || field->kind == ADMI_FIELD_OBJECTS;
    ck_assert_msg(holds == (field->of != NULL), "%s: what it holds", field->name);
}

START_TEST(every_field_has_help)
{
    const struct admi_object *const objects[] = {
        &admi_top_object,     &admi_rule_object,   &admi_override_object, &admi_allowance_object,
        &admi_example_object, &admi_expect_object, &admi_table_object,
    };
    for (uint32_t i = 0; i < sizeof objects / sizeof objects[0]; i++)
        for (uint32_t j = 0; j < objects[i]->count; j++)
            check_help(&objects[i]->fields[j]);
    for (uint32_t i = 0; i < ADMI_NUMBER_COUNT; i++)
        check_help(&admi_number_fields[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-schema");
    TCase *cases = tcase_create("policy-schema");
    tcase_add_loop_test(cases, nothing_is_written_beyond_the_buffer, 0, 2);
    tcase_add_test(cases, wrong_calls_write_nothing);
    tcase_add_test(cases, every_field_has_help);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
