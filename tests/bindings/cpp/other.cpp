/* SPDX-License-Identifier: Apache-2.0 */
/* The same headers in a second translation unit, with one object of its own. */
#include <admit/queue.hpp>

std::uint64_t rules_of(std::string_view text);
std::uint64_t rules_of(std::string_view text)
{
    admit::Gate gate(admit::Policy::parse(text));
    admit::Queue queue(gate);

    return queue.size() + admit::Policy::parse(text).rule_count();
}
