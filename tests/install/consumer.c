/* SPDX-License-Identifier: Apache-2.0 */
/* An application outside the tree: it knows only the installed headers and library. C and C++. */
#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>
#include <admit/policy.h>

#include <stdio.h>
#include <string.h>

static int failed;

static void check(int condition, const char *what)
{
    if (!condition) {
        printf("not true: %s\n", what);
        failed = 1;
    }
}

static struct adm_gate *open_gate(void)
{
    static const char text[] =
        "{\"version\": \"installed-1\", \"rules\": [{\"id\": \"one\", \"type\": \"concurrency\","
        " \"partition_by\": [\"tenant\"], \"limit\": 1, \"lease_ttl\": \"1m\"}]}";
    struct adm_gate_options options;
    struct adm_gate *gate = NULL;

    memset(&options, 0, sizeof options);
    options.size = (uint32_t)sizeof options;
    check(adm_policy_load(adm_str(text), NULL, &options.policy, NULL) == ADM_OK,
          "the policy loads");
    check(adm_memory_open(NULL, &options.backend) == ADM_OK, "the backend opens");
    check(adm_gate_new(&options, &gate) == ADM_OK, "the gate opens");
    adm_policy_unref(options.policy);
    return gate;
}

static struct adm_decision ask(struct adm_gate *gate, const char *tenant)
{
    struct adm_descriptor descriptor;
    struct adm_request request;
    struct adm_decision decision;

    memset(&descriptor, 0, sizeof descriptor);
    memset(&request, 0, sizeof request);
    memset(&decision, 0, sizeof decision);
    descriptor.key = adm_str("tenant");
    descriptor.value = adm_str(tenant);
    request.size = (uint32_t)sizeof request;
    request.descriptors = &descriptor;
    request.descriptor_count = 1;
    request.cost = 1;
    decision.size = (uint32_t)sizeof decision;
    check(adm_admit(gate, &request, &decision) == ADM_OK, "there is a decision");
    return decision;
}

int main(void)
{
    struct adm_gate *gate = open_gate();
    struct adm_decision first, second, third;
    struct adm_policy *none = NULL;
    struct adm_diags *findings = NULL;
    uint32_t outcome = ADM_OUTCOME_UNKNOWN;
    uint64_t length = 0;

    if (gate == NULL)
        return 1;
    first = ask(gate, "acme");
    check(first.verdict == ADM_VERDICT_ALLOW, "the first of one is allowed");
    second = ask(gate, "acme");
    check(second.verdict == ADM_VERDICT_DENY, "the second of one is denied");
    check(second.http_status == 429, "the denial is a 429");
    check(strcmp(second.policy_version, "installed-1") == 0, "the denial names the policy version");
    adm_release(gate, first.lease, ADM_RESULT_OK, &outcome);
    check(outcome == ADM_OUTCOME_RELEASED, "the lease is released");
    third = ask(gate, "acme");
    check(third.verdict == ADM_VERDICT_ALLOW, "after the release there is room");
    check(adm_policy_load(adm_str("{"), NULL, &none, &findings) == ADM_E_POLICY_INVALID &&
              none == NULL && adm_diags_count(findings) > 0,
          "a broken policy is refused with a finding");
    adm_diags_free(findings);
    check(adm_gate_metrics(gate, NULL, 0, &length) == ADM_OK && length > 0,
          "there are metrics");
    check(strcmp(adm_status_name(ADM_E_NOMEM), "ADM_E_NOMEM") == 0, "statuses have names");
    adm_gate_free(gate);
    puts(failed ? "consumer: failed" : "consumer: fine");
    return failed;
}
