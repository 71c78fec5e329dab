/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests of the C++ headers. */
#include "tap.hpp"

#include <cstdio>
#include <cstdlib>

static int count, failed;
static unsigned fail_at;

void ok(bool passed, const char *what)
{
    failed += !passed;
    std::printf("%s %d - %s\n", passed ? "ok" : "not ok", ++count, what);
}

void skip(const char *what, const char *reason)
{
    std::printf("ok %d - %s # SKIP %s\n", ++count, what, reason);
}

void fail_allocation(unsigned n)
{
    fail_at = n;
}

void *operator new(std::size_t bytes)
{
    if (fail_at > 0 && --fail_at == 0)
        throw std::bad_alloc();
    if (void *memory = std::malloc(bytes > 0 ? bytes : 1))
        return memory;
    throw std::bad_alloc();
}
void operator delete(void *memory) noexcept
{
    std::free(memory);
}
void operator delete(void *memory, std::size_t) noexcept
{
    std::free(memory);
}

const char one_at_a_time[] =
    "{\"version\": \"1\", \"rules\": [{\"id\": \"inflight\", \"type\": \"concurrency\","
    " \"limit\": 1, \"lease_ttl\": \"30s\"}]}";

admit::GateOptions watched(Seen &seen)
{
    admit::GateOptions options;

    options.on_event = [&seen](const adm_event &event) {
        seen.decisions += event.kind == ADM_EVENT_DECISION;
        seen.usages += event.kind == ADM_EVENT_USAGE;
        if (event.kind == ADM_EVENT_RELEASE) {
            seen.releases++;
            seen.result = event.result;
            seen.outcome = event.outcome;
        }
    };
    return options;
}

int main()
{
    policy_tests();
    gate_tests();
    lease_tests();
    queue_tests();
    std::printf("1..%d\n", count);
    return failed != 0;
}
