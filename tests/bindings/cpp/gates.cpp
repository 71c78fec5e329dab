/* SPDX-License-Identifier: Apache-2.0 */
/* Gates: requests, decisions, looking, policies in force, and what a gate owns. */
#include "tap.hpp"

#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

static_assert(!std::is_copy_constructible_v<admit::Gate> &&
              !std::is_copy_constructible_v<admit::Decision> &&
              std::is_nothrow_move_constructible_v<admit::Gate> &&
              std::is_nothrow_move_assignable_v<admit::Gate> &&
              std::is_nothrow_move_constructible_v<admit::Decision>);

static const char tenants[] =
    "{\"version\": \"2\", \"rules\": [{\"id\": \"burst\", \"type\": \"token_bucket\","
    " \"partition_by\": [\"tenant\"], \"capacity\": 10, \"refill\": 1, \"per\": \"1h\"},"
    " {\"id\": \"big\", \"type\": \"request_cap\", \"match\": {\"model\": \"large\"},"
    " \"limit\": 5, \"unit\": \"output_tokens\", \"mode\": \"shadow\"}]}";

/* No text, whatever the standard thinks of string_view(nullptr). */
static_assert(!std::is_constructible_v<admit::Descriptor, const char *, std::nullptr_t> &&
              !std::is_constructible_v<admit::Descriptor, std::nullptr_t, const char *> &&
              std::is_constructible_v<admit::Descriptor, const char *, std::string> &&
              std::is_constructible_v<admit::Descriptor, std::uint32_t, std::string_view>);
template <class Value, class = void> struct TakesValue : std::false_type {
};
template <class Value>
struct TakesValue<
    Value, std::void_t<decltype(std::declval<admit::Request>().with("k", std::declval<Value>()))>>
    : std::true_type {
};
static_assert(TakesValue<const char *>::value && !TakesValue<std::nullptr_t>::value);

static void braces()
{
    admit::Gate gate(admit::Policy::parse(tenants));
    std::string value = "a";

    /* In C++20 the inner pairs could be one string_view each, of addresses that do not belong
     * together. */
    admit::Request twice{ { { "tenant", "a" }, { "model", "large" } } };
    ok(twice.raw().descriptor_count == 2 && twice.raw().descriptors[0].key.length == 6 &&
           twice.raw().descriptors[1].value.length == 5,
       "one pair of braces too many");
    ok(gate.admit({ { { "tenant", "a" }, { "model", "small" } } }).allowed(), "also in a call");
    ok(gate.admit({ { "tenant", value }, { gate.key("model"), std::string_view(value) } })
           .allowed(),
       "texts of every kind, and keys by id");
    ok(status_of([&] { (void)gate.admit({}); }) == ADM_E_INVALID_DESCRIPTORS ||
           gate.read("burst", { { "tenant", "a" } }) == 8,
       "no descriptors at all");
}

static void deadlines()
{
    ok(admit::Request().raw().deadline_ns == 0 &&
           admit::Request().deadline(std::chrono::milliseconds(5)).raw().deadline_ns == 5000000,
       "a deadline");
    ok(admit::Request().deadline(std::chrono::seconds(0)).raw().deadline_ns == 1 &&
           admit::Request().deadline(std::chrono::seconds(-1)).raw().deadline_ns == 1,
       "no time left is not the time of the gate");
}

static void requests()
{
    admit::Gate gate(admit::Policy::parse(tenants));
    admit::Request request{ { "tenant", "a" }, { "model", "large" } };

    ok(gate.admit({ { "tenant", "a" } }).allowed(), "descriptors in braces");
    request.cost(4).amount(ADM_UNIT_OUTPUT_TOKENS, 6);
    admit::Request copy = request;
    request = admit::Request();
    admit::Decision decision = gate.admit(copy);
    ok(decision.allowed() && decision.shadow_rules() == std::vector<std::string>{ "big" } &&
           decision.rules().empty(),
       "a copy of a request stands alone; shadow rules are named");
    ok(gate.read("burst", { { "tenant", "a" } }) == 5, "read: the level after both");
    ok(gate.read("burst", { { "tenant", "b" } }) == 10, "read: another partition");
    admit::Request by_id;
    by_id.with(gate.key("tenant"), "a").cost(6);
    admit::Decision denied = gate.admit(by_id);
    ok(!denied && denied.reason() == ADM_REASON_RATE_EXCEEDED && denied.http_status() == 429 &&
           denied.reason_name() == "rate_exceeded" &&
           denied.rules() == std::vector<std::string>{ "burst" },
       "a denial is a value, by name; a key by its id");
    ok(denied.retry_after() > std::chrono::minutes(59) &&
           denied.retry_after() <= std::chrono::hours(1) && denied.retry_after_seconds() == 3600,
       "when to come back");
    ok(denied.policy_version() == "2" && denied.table_version().empty() &&
           denied.id().size() == 32 && !denied.repeated(),
       "versions and id");
    admit::Request again{ { "tenant", "c" } };
    again.attempt("job-1").deadline(std::chrono::milliseconds(5));
    ok(!gate.admit(again).repeated() && gate.admit(again).repeated() &&
           gate.read("burst", again) == 9,
       "an attempt is charged once");
    admit::Decision moved = std::move(denied);
    ok(!moved && moved.rules() == std::vector<std::string>{ "burst" }, "a moved decision is whole");
}

static void misuse()
{
    admit::Gate gate(admit::Policy::parse(tenants));
    admit::Request request{ { "tenant", "a" } };

    ok(status_of([&] { (void)gate.admit(request.cost(0)); }) == ADM_E_INVALID_COST, "cost 0");
    ok(status_of([&] { (void)gate.admit(request.cost(ADM_MAX_AMOUNT + 1)); }) == ADM_E_INVALID_COST,
       "cost too large");
    request.cost(1);
    ok(status_of([&] {
           (void)gate.admit({ { "tenant", "a" }, { "tenant", "b" } });
       }) == ADM_E_INVALID_DESCRIPTORS,
       "a key twice");
    ok(status_of([&] {
           (void)gate.admit({ { "tenant", "" } });
       }) == ADM_E_INVALID_DESCRIPTORS,
       "an empty value");
    admit::Request many;
    for (int i = 0; i < ADM_MAX_DESCRIPTORS; i++)
        many.with("k" + std::to_string(i), "v"); /* never asked, so the views may dangle */
    ok(status_of([&] { many.with("one more", "v"); }) == ADM_E_INVALID_DESCRIPTORS,
       "more descriptors than there may be");
    for (int i = 0; i < ADM_MAX_AMOUNTS; i++)
        many.amount(ADM_UNIT_IMAGES, 1);
    ok(status_of([&] { many.amount(ADM_UNIT_IMAGES, 1); }) == ADM_E_INVALID_COST,
       "more amounts than there may be");
    ok(status_of([&] { (void)gate.admit(admit::Request(request).attempt("")); }) ==
           ADM_E_INVALID_ATTEMPT,
       "an attempt id that is empty");
    ok(status_of([&] { (void)gate.read("none"); }) == ADM_E_UNKNOWN_RULE, "read: no such rule");
    ok(status_of([&] { (void)gate.read("burst"); }) == ADM_E_INVALID_DESCRIPTORS,
       "read: no partition");
    ok(status_of([&] { gate.signal("", "r", "n", 1); }) == ADM_E_INVALID_ARGUMENT,
       "a signal without a scope");
    ok(status_of([&] { (void)gate.unit("Bad Unit"); }) == ADM_E_INVALID_ARGUMENT, "no unit name");
    ok(status_of([&] { (void)gate.key(""); }) == ADM_E_INVALID_DESCRIPTORS, "no key");
    ok(gate.read("burst", request) == 10, "misuse took nothing");
}

static void moved_from()
{
    admit::Gate gate(admit::Policy::parse(one_at_a_time));
    admit::Gate other = std::move(gate);
    const adm_status bad = ADM_E_INVALID_ARGUMENT;

    ok(gate.get() == nullptr && other.admit(admit::Request()).allowed(), "a gate moves");
    ok(status_of([&] { (void)gate.admit(admit::Request()); }) == bad &&
           status_of([&] { (void)gate.explain({}); }) == bad &&
           status_of([&] { (void)gate.read("inflight"); }) == bad &&
           status_of([&] { (void)gate.key("k"); }) == bad &&
           status_of([&] { (void)gate.unit("u"); }) == bad &&
           status_of([&] { gate.publish(admit::Policy::parse(one_at_a_time)); }) == bad &&
           status_of([&] { gate.rollback("1"); }) == bad &&
           status_of([&] { (void)gate.put_table("{}"); }) == bad &&
           status_of([&] { (void)gate.version(); }) == bad &&
           status_of([&] { gate.signal("s", "r", "n", 1); }) == bad &&
           status_of([&] { (void)gate.metrics(); }) == bad &&
           status_of([&] { (void)gate.describe(); }) == bad &&
           status_of([&] { (void)gate.sweep(1); }) == bad &&
           status_of([&] { admit::Queue queue(gate); }) == bad,
       "every call on an empty gate throws");
    gate = std::move(other);
    ok(gate.version() == "1", "an empty gate may be assigned to");
    admit::Gate &same = gate;
    gate = std::move(same);
    ok(gate.version() == "1", "moved to itself: as before");
}

static void in_force()
{
    admit::Gate gate(admit::Policy::parse(one_at_a_time));

    gate.publish(admit::Policy::parse(tenants));
    ok(gate.version() == "2", "published");
    std::string changed = tenants;
    changed.replace(changed.find("10"), 2, "11");
    ok(status_of([&] { gate.publish(admit::Policy::parse(changed)); }) == ADM_E_VERSION_CONFLICT,
       "another policy of this version");
    ok(status_of([&] { gate.publish(admit::Policy(nullptr)); }) == ADM_E_INVALID_ARGUMENT,
       "no policy to publish");
    ok(status_of([&] { gate.rollback("0"); }) == ADM_E_UNKNOWN_VERSION && gate.version() == "2",
       "no such version");
    const char table[] = "{\"version\": \"t1\", \"rule\": \"burst\", \"by\": \"tenant\","
                         " \"entries\": {\"a\": {\"capacity\": 20}}}";
    ok(gate.put_table(table).empty() && gate.admit({ { "tenant", "a" } }).table_version() == "t1",
       "a limit table");
    const char more[] = "{\"version\": \"t2\", \"rule\": \"burst\", \"by\": \"tenant\","
                        " \"entries\": {\"b\": {\"capacity\": 30}}}";
    ok(gate.put_table(more, admit::Table::patch).empty() &&
           gate.read("burst", { { "tenant", "a" } }) == 19 &&
           gate.read("burst", { { "tenant", "b" } }) == 30,
       "a patch leaves the others");
    bool found = false;
    try {
        (void)gate.put_table("{\"version\": \"t3\", \"rule\": \"burst\", \"by\": \"tenant\","
                             " \"entries\": {\"a\": {\"capactiy\": 20}}}");
    } catch (const admit::PolicyError &error) {
        found = error.findings().size() == 1 && error.findings()[0].nearest == "capacity";
    }
    ok(found, "a refused table throws what was found");
    ok(status_of([&] {
           (void)gate.put_table("{\"version\": \"t3\", \"rule\": \"none\", \"by\": \"tenant\","
                                " \"entries\": {}}");
       }) == ADM_E_UNKNOWN_RULE,
       "a table for no rule");
    ok(gate.admit({ { "tenant", "a" } }).table_version() == "t2", "the table in force stays");
    gate.rollback("1");
    ok(gate.version() == "1", "rolled back");
}

static void looking()
{
    admit::Gate gate(admit::Policy::parse(tenants));
    admit::Request request{ { "tenant", "a" }, { "model", "small" } };

    admit::Explanation why = gate.explain(request.cost(11));
    ok(!why.decision && why.decision.reason() == ADM_REASON_UNSATISFIABLE &&
           !why.decision.lease() && why.rules.size() == 2,
       "explain answers as admit would");
    ok(why.rules[0].rule == "burst" && why.rules[0].type == "token_bucket" &&
           why.rules[0].matched && why.rules[0].denies && !why.rules[0].shadow &&
           why.rules[0].level == 10 && why.rules[0].limit == 10 && why.rules[0].amount == 11 &&
           why.rules[0].origin == "rule" && why.rules[0].reason == ADM_REASON_UNSATISFIABLE &&
           why.rules[0].replicas == 1,
       "explain: a rule that denies, with its numbers");
    ok(why.rules[1].rule == "big" && !why.rules[1].matched && why.rules[1].shadow &&
           why.rules[1].mismatch == "model" && !why.rules[1].level,
       "explain: a rule that does not match, and why");
    ok(gate.read("burst", request) == 10, "explain takes nothing");
    unsigned failures = survive([&] { (void)gate.explain(request); });
    ok(failures > 0 && gate.admit(request.cost(1)).allowed(), "explain without memory");
    std::string metrics = gate.metrics();
    ok(metrics.size() > 6 && metrics.compare(metrics.size() - 6, 6, "# EOF\n") == 0 &&
           metrics.find("burst") != std::string::npos,
       "metrics are whole");
    ok(gate.describe().partitions == 1 && gate.describe().partitions_max >= 65536, "described");
    bool done = false;
    for (int i = 0; i < 1000 && !done; i++)
        done = gate.sweep(1000);
    ok(done, "a sweep comes to an end");
}

/* ---- what a gate owns ------------------------------------------------------------------------ */

static int closes;
static adm_backend inner;
static void start_inner(void *self, adm_op *op)
{
    inner.ops->start(self, op);
}
static void close_inner(void *self)
{
    closes++;
    inner.ops->close(self);
}

/* The plain backend, which knows how often it was closed. */
static admit::GateOptions counted()
{
    static adm_backend_ops ops;
    admit::GateOptions options;

    admit::check(adm_plain_open(nullptr, &inner));
    ops = *inner.ops;
    ops.start = start_inner;
    ops.close = close_inner;
    options.backend = { &ops, inner.self };
    closes = 0;
    return options;
}

static void ownership()
{
    {
        admit::Gate gate(admit::Policy::parse(one_at_a_time), counted());
        admit::Gate moved = std::move(gate);
        ok(moved.admit(admit::Request()).allowed(), "a backend of one's own");
        ok(closes == 0, "still open");
    }
    ok(closes == 1, "a gate closes its backend once, however it was moved");
    ok(status_of([] { admit::Gate gate(admit::Policy(nullptr), counted()); }) ==
               ADM_E_INVALID_ARGUMENT &&
           closes == 1,
       "and when it cannot be made");
    admit::GateOptions options = counted();
    options.on_event = [](const adm_event &) {};
    fail_allocation(1);
    bool thrown = false;
    try {
        admit::Policy policy = admit::Policy(nullptr);
        admit::Gate gate(policy, std::move(options));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    fail_allocation(0);
    ok(thrown && closes == 1, "and without memory");
    admit::GateOptions small;
    small.partitions_max = small.leases_max = small.attempts_max = 8;
    small.classes_max = 64;
    small.name_space = "tests";
    small.backend_timeout = std::chrono::milliseconds(1);
    small.signals_max = small.pending_max = 4;
    admit::Gate gate(admit::Policy::parse(one_at_a_time), std::move(small));
    ok(gate.describe().leases_max == 8, "sizes");
    admit::GateOptions negative = counted();
    negative.backend_timeout = std::chrono::milliseconds(-1);
    ok(status_of([&] { admit::Gate none(admit::Policy::parse(one_at_a_time), negative); }) ==
               ADM_E_INVALID_ARGUMENT &&
           closes == 1,
       "a timeout that has passed already");
    admit::GateOptions huge;
    huge.partitions_max = UINT64_MAX;
    ok(status_of([&] { admit::Gate none(admit::Policy::parse(one_at_a_time), huge); }) ==
           ADM_E_INVALID_ARGUMENT,
       "a size beyond its bound");
}

static void events()
{
    Seen seen;
    admit::Gate first(admit::Policy::parse(one_at_a_time), watched(seen));
    admit::Gate gate = std::move(first);

    (void)gate.admit(admit::Request());
    ok(seen.decisions == 1 && seen.releases == 1, "events arrive after a move");
    gate = admit::Gate(admit::Policy::parse(one_at_a_time));
    (void)gate.admit(admit::Request());
    ok(seen.decisions == 1, "an assigned gate has its own");
}

/* An exception that would have to pass through C ends the process, at once and by the book. */
static void throwing_callback()
{
    pid_t child = fork();

    if (child == 0) {
        std::set_terminate([] { _exit(42); });
        admit::GateOptions options;
        options.on_event = [](const adm_event &) { throw 1; };
        try {
            admit::Gate gate(admit::Policy::parse(one_at_a_time), std::move(options));
            (void)gate.admit(admit::Request());
        } catch (...) {
            _exit(1);
        }
        _exit(0);
    }
    int status = 0;
    ok(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 42,
       "on_event that throws ends in std::terminate");
}

void gate_tests()
{
    requests();
    braces();
    deadlines();
    misuse();
    moved_from();
    in_force();
    looking();
    ownership();
    events();
    throwing_callback();
}
