/* SPDX-License-Identifier: Apache-2.0 */
/* The whole life of one request: load a policy, ask, work, give the lease back. */
#include <admit/admit.h>
#include <admit/backends.h>
#include <stdio.h>

static const char policy[] =
    "{\"version\": \"1\", \"rules\": [{\"id\": \"inflight\", \"type\": \"concurrency\","
    " \"partition_by\": [\"tenant\"], \"limit\": 8, \"lease_ttl\": \"30s\"}]}";

int main(void)
{
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_descriptor who = { .key = adm_str("tenant"), .value = adm_str("acme") };
    struct adm_request request = {
        .size = sizeof request, .descriptors = &who, .descriptor_count = 1, .cost = 1
    };
    struct adm_decision decision = { .size = sizeof decision };
    struct adm_gate *gate;

    if (adm_policy_load(adm_str(policy), NULL, &options.policy, NULL) != ADM_OK ||
        adm_memory_open(NULL, &options.backend) != ADM_OK ||
        adm_gate_new(&options, &gate) != ADM_OK || adm_admit(gate, &request, &decision) != ADM_OK)
        return 1; /* a mistake of ours, or no memory: there is no decision */
    if (decision.verdict == ADM_VERDICT_ALLOW)
        printf("%s: working for acme\n", adm_reason_name(decision.reason));
    else
        printf("%u %s\n", decision.http_status, adm_reason_name(decision.reason));
    adm_release(gate, decision.lease, ADM_RESULT_OK, NULL); /* denied: nothing to do */
    adm_gate_free(gate);
    adm_policy_unref(options.policy);
}
