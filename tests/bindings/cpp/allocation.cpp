/* SPDX-License-Identifier: Apache-2.0 */
/* What admit and release ask malloc for, the whole process: nothing. */
#include <admit/admit.hpp>

#include <cstdio>

extern "C" {
#include "malloc_count.h"
}

static int count, failed;

template <class What> static void allocates(bool some, const char *what, What &&run)
{
    run(); /* the first call of a thread may */
    std::uint64_t before = malloc_count_now().calls;
    for (int i = 0; i < 1000; i++)
        run();
    std::uint64_t calls = malloc_count_now().calls - before;
    bool passed = some == (calls > 0);

    failed += !passed;
    std::printf("%s %d - %s: %llu\n", passed ? "ok" : "not ok", ++count, what,
                static_cast<unsigned long long>(calls));
}

int main()
{
    unsigned events = 0;
    admit::GateOptions options;
    options.on_event = [&events](const adm_event &) { events++; };
    admit::Gate gate(
        admit::Policy::parse(
            "{\"version\": \"1\", \"rules\": [{\"id\": \"inflight\", \"type\": \"concurrency\","
            " \"partition_by\": [\"tenant\"], \"limit\": 1, \"lease_ttl\": \"30s\"}]}"),
        std::move(options));
    admit::Request request{ { "tenant", "a name that is too long for a small string" } };
    admit::Lease held;

    allocates(false, "admit, release", [&] {
        admit::Lease lease = gate.admit(request).lease();
        (void)lease.release();
    });
    allocates(false, "admit with a new request, settle, renew, unwound by scope", [&] {
        admit::Decision decision = gate.admit(
            admit::Request{ { "tenant", "b" }, { "model", "m" } }.amount(ADM_UNIT_IMAGES, 1));
        admit::Lease lease = decision.lease();
        (void)lease.renew();
        (void)lease.settle({ admit::amount(ADM_UNIT_IMAGES, 1) });
    });
    held = gate.admit(request).lease();
    allocates(false, "a denial, its reason and when to come back", [&] {
        admit::Decision decision = gate.admit(request);
        failed += decision.allowed() || decision.reason_name().empty() ||
                  decision.retry_after().count() < 0;
    });
    /* So that a malloc that nobody counts is found. */
    allocates(true, "a denial and the names of its rules",
              [&] { failed += gate.admit(request).rules().empty(); });
    failed += events == 0;
    std::printf("1..%d\n", count);
    return failed != 0;
}
