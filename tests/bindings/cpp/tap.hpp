/* SPDX-License-Identifier: Apache-2.0 */
/* TAP on standard output, and memory that runs out when a test says so. */
#ifndef TESTS_CPP_TAP_HPP
#define TESTS_CPP_TAP_HPP

#include <admit/queue.hpp>

#include <new>

void ok(bool passed, const char *what);
void skip(const char *what, const char *reason);

/* Makes the n-th operator new from now on fail, once; 0: none. */
void fail_allocation(unsigned n);

/* Calls what with the first, second ... allocation failing, until it gets through; how often it
 * failed. Anything but std::bad_alloc is a failure of the test. */
template <class What> unsigned survive(What &&what)
{
    for (unsigned n = 1;; n++) {
        fail_allocation(n);
        try {
            what();
            fail_allocation(0);
            return n - 1;
        } catch (const std::bad_alloc &) {
            continue;
        }
    }
}

/* The status that what throws; ADM_OK: none. */
template <class What> adm_status status_of(What &&what)
{
    try {
        what();
    } catch (const admit::Error &error) {
        return error.status();
    }
    return ADM_OK;
}

extern const char one_at_a_time[]; /* a policy: version 1, rule inflight, limit 1 */

/* What the last events said. */
struct Seen {
    unsigned decisions = 0, releases = 0, usages = 0;
    std::uint32_t result = ADM_RESULT_COUNT, outcome = ADM_OUTCOME_COUNT;
};
admit::GateOptions watched(Seen &seen);

void policy_tests();
void gate_tests();
void lease_tests();
void queue_tests();

#endif
