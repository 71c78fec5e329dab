/* SPDX-License-Identifier: Apache-2.0 */
/* A C++ application outside the tree: it knows only the installed headers and library. */
#include <admit/admit.hpp>
#include <admit/queue.hpp>

#include <cstdio>

int main()
{
    admit::Gate gate(admit::Policy::parse(
        "{\"version\": \"installed-1\", \"rules\": [{\"id\": \"one\", \"type\": \"concurrency\","
        " \"partition_by\": [\"tenant\"], \"limit\": 1, \"lease_ttl\": \"1m\"}]}"));
    admit::Lease lease = gate.admit({ { "tenant", "acme" } }).lease();
    admit::Decision second = gate.admit({ { "tenant", "acme" } });
    bool right = lease && !second && second.http_status() == 429 &&
                 second.policy_version() == "installed-1" &&
                 lease.release() == ADM_OUTCOME_RELEASED;

    admit::Queue queue(gate);
    (void)queue.admit({ { "tenant", "acme" } }, [&right](adm_status status, admit::Decision third) {
        right = right && status == ADM_OK && third.allowed();
    });
    try {
        (void)admit::Policy::parse("{");
        right = false;
    } catch (const admit::PolicyError &error) {
        right = right && !error.findings().empty();
    }
    std::puts(right ? "consumer: fine" : "consumer: failed");
    return !right;
}
