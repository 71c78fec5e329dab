/* SPDX-License-Identifier: Apache-2.0 */
/* A build without YAML refuses it with the finding that says so, and reads JSON as ever. */
#include "policy_support.h"

START_TEST(yaml_is_refused_and_json_is_read)
{
    static const char json[] = "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":"
                               "\"request_cap\",\"limit\":1}]}";
    struct adm_policy_options options = { .size = sizeof options, .flags = ADM_POLICY_YAML };
    struct adm_policy *policy = NULL;
    struct adm_diags *diags = NULL;
    ck_assert_int_eq(adm_policy_load(adm_str(json), &options, &policy, &diags),
                     ADM_E_POLICY_INVALID);
    ck_assert_ptr_null(policy);
    ck_assert_uint_eq(adm_diags_count(diags), 1);
    ck_assert_str_eq(diag_at(diags, 0).name, "yaml_not_built");
    ck_assert_uint_eq(diag_at(diags, 0).line, 0);
    adm_diags_free(diags);
    adm_policy_unref(must_load(json));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("policy-yaml-absent");
    TCase *cases = tcase_create("policy-yaml-absent");
    tcase_add_test(cases, yaml_is_refused_and_json_is_read);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
