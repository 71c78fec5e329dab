/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libadmit for C++17 and later: the same calls, with objects that clean up. Header-only, over
 * admit.h, which has the reference of every call. <admit/queue.hpp> adds event loops.
 *
 *      Policy   what the rules are; shared, immutable
 *      Gate     decides
 *      Decision the answer: a denial is a value, never an exception
 *      Lease    what an allowed request holds; gives it back when it goes out of scope
 *
 * Caveats
 *  exceptions  Error, PolicyError, std::system_error (a file) and std::bad_alloc: misuse, bad
 *              policies and the environment. After one, nothing has changed, but for what admit.h
 *              says of ADM_E_BACKEND_UNKNOWN.
 *  callbacks   what the library calls (on_event, a clock, an allocator, random bytes, a backend) is
 *              called from C, through which no exception may pass. on_event is called from a
 *              noexcept function: when it throws, the process ends in std::terminate. Write the
 *              others noexcept, so that the same happens.
 *  lifetime    a gate outlives its leases, decisions and queues. A request holds views, which must
 *              be valid when it is asked.
 *  moved from  an object that was moved from may be assigned to and destroyed; an empty lease
 *              answers unknown; calls on an empty gate throw ADM_E_INVALID_ARGUMENT.
 *  threads     a gate may be used by any number of threads, the other objects by one at a time.
 *  fork        as in admit.h: free a gate only in the process that made it.
 */
#ifndef ADMIT_ADMIT_HPP
#define ADMIT_ADMIT_HPP

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <admit/admit.h>
#include <admit/backends.h>
#include <admit/metrics.h>

#include <admit/policy.hpp>

namespace admit {

/* ---- requests -------------------------------------------------------------------------------- */

namespace detail {

template <class Text>
using IfText = std::enable_if_t<std::is_convertible_v<const Text &, std::string_view> &&
                                    !std::is_same_v<Text, std::nullptr_t>,
                                int>;
/* Braces are a Request, never a struct of C. */
template <class Raw> using IfRequest = std::enable_if_t<std::is_same_v<Raw, adm_request>, int>;

} /* namespace detail */

/* What a Request is made of in braces: a key, or its id from Gate::key(), and a value. */
class Descriptor {
public:
    /* Of deduced types, which braces have not: two strings in braces are in C++20 as well one
     * string_view, from the one address to the other. */
    template <class Key, class Value, detail::IfText<Key> = 0, detail::IfText<Value> = 0>
    Descriptor(const Key &key, const Value &value) : raw_{ bytes(key), bytes(value), 0, 0 }
    {
    }
    template <class Value, detail::IfText<Value> = 0>
    Descriptor(std::uint32_t key_id, const Value &value)
        : raw_{ bytes({}), bytes(value), key_id, 0 }
    {
    }
    const adm_descriptor &raw() const noexcept { return raw_; }

private:
    adm_descriptor raw_;
};

/* A question, built without allocation. Holds views: texts must live until it is asked. */
class Request {
public:
    Request() noexcept
    {
        raw_.size = sizeof raw_;
        raw_.cost = 1;
    }
    Request(std::initializer_list<Descriptor> descriptors, std::uint64_t cost = 1) : Request()
    {
        for (const Descriptor &descriptor : descriptors)
            add(descriptor.raw());
        raw_.cost = cost;
    }
    Request &with(std::string_view key, std::string_view value)
    {
        return add({ bytes(key), bytes(value), 0, 0 });
    }
    /* key_id: from Gate::key(), which saves the look-up. */
    Request &with(std::uint32_t key_id, std::string_view value)
    {
        return add({ bytes({}), bytes(value), key_id, 0 });
    }
    template <class Key> Request &with(const Key &, std::nullptr_t) = delete;
    Request &cost(std::uint64_t cost) noexcept
    {
        raw_.cost = cost;
        return *this;
    }
    Request &amount(std::uint32_t unit, std::uint64_t value)
    {
        if (raw_.amount_count == amounts_.size())
            throw Error(ADM_E_INVALID_COST);
        amounts_[raw_.amount_count++] = admit::amount(unit, value);
        return *this;
    }
    /* The same id with the same contents gets the first allow again: the same lease, so release
     * one of them only. */
    Request &attempt(std::string_view id) noexcept
    {
        raw_.attempt = bytes(id);
        return *this;
    }
    /* Longest wait for a backend that defers, if the gate's is not shorter. Nothing left, or less:
     * do not wait; 0 would be the gate's. */
    Request &deadline(std::chrono::nanoseconds wait) noexcept
    {
        raw_.deadline_ns = wait.count() > 0 ? static_cast<std::uint64_t>(wait.count()) : 1;
        return *this;
    }
    /* For calls of the C library; points into this object. */
    adm_request raw() const noexcept
    {
        adm_request request = raw_;

        request.descriptors = descriptors_.data();
        request.amounts = amounts_.data();
        return request;
    }

private:
    Request &add(const adm_descriptor &descriptor)
    {
        if (raw_.descriptor_count == descriptors_.size())
            throw Error(ADM_E_INVALID_DESCRIPTORS);
        descriptors_[raw_.descriptor_count++] = descriptor;
        return *this;
    }
    adm_request raw_{};
    std::array<adm_descriptor, ADM_MAX_DESCRIPTORS> descriptors_{};
    std::array<adm_amount, ADM_MAX_AMOUNTS> amounts_{};
};

/* ---- leases ---------------------------------------------------------------------------------- */

/*
 * What an allowed request holds, to be given back once: by release(), or by the destructor, which
 * says ADM_RESULT_ERROR when it runs because of an exception, else ADM_RESULT_OK. Afterwards the
 * calls still work, and answer as in C (already). Any thread may end it.
 */
class [[nodiscard]] Lease {
public:
    Lease() noexcept = default; /* empty: nothing to give back */
    /* A lease that came by its id, for instance from another part of the program. */
    Lease(adm_gate *gate, adm_id id) noexcept : gate_(gate), id_(id), held_((id.high | id.low) != 0)
    {
    }
    Lease(Lease &&other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), id_(std::exchange(other.id_, adm_id{ 0, 0 })),
          thrown_(other.thrown_), held_(std::exchange(other.held_, false))
    {
    }
    Lease &operator=(Lease &&other) noexcept
    {
        if (this != &other) {
            give_back();
            gate_ = std::exchange(other.gate_, nullptr);
            id_ = std::exchange(other.id_, adm_id{ 0, 0 });
            thrown_ = other.thrown_;
            held_ = std::exchange(other.held_, false);
        }
        return *this;
    }
    ~Lease() { give_back(); }
    /* true: still to be given back. */
    explicit operator bool() const noexcept { return held_; }
    adm_id id() const noexcept { return id_; }
    /* The caller gives it back: by the id. */
    adm_id detach() noexcept
    {
        held_ = false;
        return id_;
    }
    /* Answer ADM_OUTCOME_*; of an empty lease unknown (renew: lost). When they throw, the lease is
     * held as before. */
    std::uint32_t release(std::uint32_t result = ADM_RESULT_OK)
    {
        std::uint32_t outcome = ADM_OUTCOME_UNKNOWN;

        if (gate_ != nullptr)
            check(adm_release(gate_, id_, result, &outcome));
        held_ = false;
        return outcome;
    }
    std::uint32_t divert()
    {
        std::uint32_t outcome = ADM_OUTCOME_UNKNOWN;

        if (gate_ != nullptr)
            check(adm_divert(gate_, id_, &outcome));
        held_ = false;
        return outcome;
    }
    std::uint32_t renew()
    {
        std::uint32_t outcome = ADM_OUTCOME_LOST;

        if (gate_ != nullptr)
            check(adm_renew(gate_, id_, &outcome));
        return outcome;
    }
    /* Totals so far, never deltas. last: no report follows. */
    std::uint32_t settle(const adm_amount *totals, std::size_t count, bool last = false)
    {
        std::uint32_t outcome = ADM_OUTCOME_UNKNOWN;

        if (gate_ != nullptr)
            check(adm_settle(gate_, id_, totals, count, last, &outcome));
        return outcome;
    }
    std::uint32_t settle(std::initializer_list<adm_amount> totals, bool last = false)
    {
        return settle(totals.begin(), totals.size(), last);
    }
    std::uint32_t settle(const std::vector<adm_amount> &totals, bool last = false)
    {
        return settle(totals.data(), totals.size(), last);
    }

private:
    friend class Queue;
    void give_back() noexcept
    {
        if (std::exchange(held_, false))
            (void)adm_release(
                gate_, id_, std::uncaught_exceptions() > thrown_ ? ADM_RESULT_ERROR : ADM_RESULT_OK,
                nullptr);
    }
    adm_gate *gate_ = nullptr;
    adm_id id_{ 0, 0 };
    /* A lease that began during unwinding does not end because of that exception. */
    int thrown_ = std::uncaught_exceptions();
    bool held_ = false;
};

/* ---- decisions ------------------------------------------------------------------------------- */

/* The answer. Holds the lease until it is moved out. One that nothing was decided for is a denial,
 * state_unavailable. Views point into it. */
class [[nodiscard]] Decision {
public:
    bool allowed() const noexcept { return raw_.verdict == ADM_VERDICT_ALLOW; }
    explicit operator bool() const noexcept { return allowed(); }
    std::uint32_t reason() const noexcept { return raw_.reason; } /* ADM_REASON_* */
    std::string_view reason_name() const noexcept { return adm_reason_name(raw_.reason); }
    std::uint32_t http_status() const noexcept { return raw_.http_status; }
    /* 0: repeating the request does not help by itself. */
    std::chrono::milliseconds retry_after() const noexcept
    {
        return detail::milliseconds(raw_.retry_after_ms);
    }
    /* For the HTTP header; 0: send none. */
    std::uint64_t retry_after_seconds() const noexcept { return adm_decision_retry_after_s(&raw_); }
    /* The denying rules, policy order; the shadow rules that would have denied. */
    std::vector<std::string> rules() const { return names(adm_decision_rule); }
    std::vector<std::string> shadow_rules() const { return names(adm_decision_shadow); }
    std::string_view policy_version() const noexcept { return raw_.policy_version; }
    std::string_view table_version() const noexcept { return raw_.table_version; }
    /* The answer to an attempt that was allowed before. */
    bool repeated() const noexcept { return (raw_.flags & ADM_DECISION_REPEATED) != 0; }
    /* For logs and answers: 32 hex digits. */
    std::string id() const
    {
        char text[33];

        adm_id_format(raw_.id, text);
        return text;
    }
    /* Moves it out: a second call gives an empty one, and so does a denial. */
    Lease lease() noexcept { return std::move(lease_); }
    const adm_decision &raw() const noexcept { return raw_; }

private:
    friend class Gate;
    friend class Queue;
    Decision() noexcept
    {
        raw_.size = sizeof raw_;
        raw_.reason = ADM_REASON_STATE_UNAVAILABLE;
        raw_.http_status = 503;
    }
    void attach(adm_gate *gate) noexcept { lease_ = Lease(gate, raw_.lease); }
    std::vector<std::string> names(const char *(*name_of)(const adm_decision *,
                                                          std::uint32_t)) const
    {
        std::vector<std::string> list;

        for (std::uint32_t i = 0; const char *name = name_of(&raw_, i); i++)
            list.emplace_back(name);
        return list;
    }
    adm_decision raw_{};
    Lease lease_;
};

/* What explain says of one rule; struct adm_rule_report has the members' meaning. */
struct RuleReport {
    bool matched, off, shadow, denies;
    std::uint32_t reason;
    std::string rule, type, unit, origin, mismatch, entry;
    std::optional<std::int64_t> level;
    std::uint64_t limit;
    std::optional<std::uint64_t> amount;
    std::uint64_t replicas;
    std::chrono::milliseconds retry_after;
};

struct Explanation {
    Decision decision; /* without a lease: nothing was charged */
    std::vector<RuleReport> rules;
};

/* ---- gates ----------------------------------------------------------------------------------- */

/* On the deciding thread. Must be quick, must not call the gate and must not throw. */
using OnEvent = std::function<void(const adm_event &)>;

/* Everything may stay as it is; 0: the default. */
struct GateOptions {
    std::string_view name_space;
    /* ops nullptr: state in this process, of these sizes. Else the gate's from the call on. */
    adm_backend backend{};
    std::uint64_t partitions_max = 0, leases_max = 0, attempts_max = 0, classes_max = 0;
    std::chrono::nanoseconds backend_timeout{ 0 };
    std::uint64_t signals_max = 0, pending_max = 0;
    adm_clock clock{};
    adm_allocator allocator{};
    adm_random random{};
    OnEvent on_event;
};

enum class Table { replace = ADM_TABLE_REPLACE, patch = ADM_TABLE_PATCH };

class Gate {
public:
    explicit Gate(const Policy &policy, GateOptions options = {})
    {
        Unbound unbound{ options.backend };
        adm_gate_options raw{};

        raw.size = sizeof raw;
        raw.policy = policy.get();
        raw.name_space = bytes(options.name_space);
        raw.clock = options.clock;
        raw.allocator = options.allocator;
        raw.random = options.random;
        raw.signals_max = options.signals_max;
        raw.pending_max = options.pending_max;
        if (options.backend_timeout.count() < 0)
            throw Error(ADM_E_INVALID_ARGUMENT);
        raw.backend_timeout_ns = static_cast<std::uint64_t>(options.backend_timeout.count());
        if (options.on_event) {
            on_event_ = std::make_unique<OnEvent>(std::move(options.on_event));
            raw.on_event = deliver;
            raw.on_event_self = on_event_.get();
        }
        if (unbound.backend.ops == nullptr)
            open_plain(options, unbound.backend);
        raw.backend = std::exchange(unbound.backend, adm_backend{});
        check(adm_gate_new(&raw, &gate_));
    }
    /* Everything as in C; the backend is the gate's in every case. */
    explicit Gate(const adm_gate_options &options) { check(adm_gate_new(&options, &gate_)); }
    Gate(Gate &&other) noexcept
        : on_event_(std::move(other.on_event_)), gate_(std::exchange(other.gate_, nullptr))
    {
    }
    Gate &operator=(Gate &&other) noexcept
    {
        if (this != &other) {
            adm_gate_free(std::exchange(gate_, std::exchange(other.gate_, nullptr)));
            on_event_ = std::move(other.on_event_);
        }
        return *this;
    }
    ~Gate() { adm_gate_free(gate_); }

    /* Allocates nothing, from the second call of a thread on. */
    template <class Raw, detail::IfRequest<Raw> = 0> Decision admit(const Raw &request)
    {
        Decision decision;

        check(adm_admit(gate_, &request, &decision.raw_));
        decision.attach(gate_);
        return decision;
    }
    Decision admit(const Request &request) { return admit(request.raw()); }
    /* What admit would answer, and why. */
    Explanation explain(const Request &request)
    {
        Reports reports;
        Explanation explanation{ Decision(), {} };
        adm_request raw = request.raw();

        adm_status status = adm_explain(gate_, &raw, report, &reports, &explanation.decision.raw_);
        if (reports.failure != nullptr)
            std::rethrow_exception(reports.failure);
        check(status);
        explanation.rules = std::move(reports.list);
        return explanation;
    }
    /* Level of a bucket, or units held or used, for the descriptors of the request. */
    std::int64_t read(std::string_view rule, const Request &request = {})
    {
        adm_request raw = request.raw();
        std::int64_t level = 0;

        check(adm_gate_read(gate_, bytes(rule), raw.descriptors, raw.descriptor_count, &level));
        return level;
    }

    /* Ids that save look-ups; see adm_gate_key() and adm_gate_unit(). */
    std::uint32_t key(std::string_view name)
    {
        std::uint32_t id = 0;

        check(adm_gate_key(gate_, bytes(name), &id));
        return id;
    }
    std::uint32_t unit(std::string_view name)
    {
        std::uint32_t id = 0;

        check(adm_gate_unit(gate_, bytes(name), &id));
        return id;
    }

    void publish(const Policy &policy) { check(adm_gate_publish(gate_, policy.get())); }
    void rollback(std::string_view version) { check(adm_gate_rollback(gate_, bytes(version))); }
    /* Puts a limit table in force; its warnings and notes. */
    std::vector<Finding> put_table(std::string_view text, Table mode = Table::replace,
                                   Format format = Format::json)
    {
        adm_diags *found = nullptr;
        std::uint32_t flags = format == Format::yaml ? ADM_TABLE_YAML : 0;

        adm_status status = adm_gate_put_table(gate_, bytes(text),
                                               static_cast<std::uint32_t>(mode) | flags, &found);
        detail::Diags diags(found);
        detail::check(status, diags);
        return detail::findings(diags.get());
    }
    std::string version()
    {
        char text[ADM_MAX_VERSION + 1];

        check(adm_gate_version(gate_, text, sizeof text));
        return text;
    }

    void signal(std::string_view scope, std::string_view replica, std::string_view name,
                double value)
    {
        check(adm_gate_signal(gate_, bytes(scope), bytes(replica), bytes(name), value));
    }
    /* OpenMetrics text. */
    std::string metrics()
    {
        std::string text;
        std::uint64_t length = 0;
        adm_status status = adm_gate_metrics(gate_, nullptr, 0, &length);

        while (status == ADM_E_BUFFER_TOO_SMALL || (status == ADM_OK && length > text.size())) {
            text.resize(static_cast<std::size_t>(length + 256)); /* it may grow in between */
            status = adm_gate_metrics(gate_, text.data(), text.size(), &length);
        }
        check(status);
        text.resize(static_cast<std::size_t>(length));
        return text;
    }
    adm_backend_info describe()
    {
        adm_backend_info info{};

        info.size = sizeof info;
        check(adm_gate_describe(gate_, &info));
        return info;
    }
    /* true: a whole round is finished. */
    bool sweep(std::uint64_t budget)
    {
        std::uint32_t done = 0;

        check(adm_gate_sweep(gate_, budget, &done));
        return done != 0;
    }
    adm_gate *get() const noexcept { return gate_; }

private:
    /* A backend that no gate has yet. */
    struct Unbound {
        adm_backend backend;
        ~Unbound()
        {
            if (backend.ops != nullptr && backend.ops->close != nullptr)
                backend.ops->close(backend.self);
        }
    };
    struct Reports {
        std::vector<RuleReport> list;
        std::exception_ptr failure;
    };
    static void open_plain(const GateOptions &options, adm_backend &out)
    {
        adm_plain_options plain{};

        plain.size = sizeof plain;
        plain.partitions_max = options.partitions_max;
        plain.leases_max = options.leases_max;
        plain.attempts_max = options.attempts_max;
        plain.classes_max = options.classes_max;
        plain.allocator = options.allocator.allocate != nullptr ? &options.allocator : nullptr;
        plain.random = options.random.fill != nullptr ? &options.random : nullptr;
        check(adm_plain_open(&plain, &out));
    }
    static void deliver(void *self, const adm_event *event) noexcept
    {
        (*static_cast<OnEvent *>(self))(*event);
    }
    /* No exception may pass through the library: the first one waits until the call is over. */
    static void report(void *self, const adm_rule_report *rule) noexcept
    {
        Reports &reports = *static_cast<Reports *>(self);

        try {
            if (reports.failure == nullptr)
                reports.list.push_back(copy(*rule));
        } catch (...) {
            reports.failure = std::current_exception();
        }
    }
    static RuleReport copy(const adm_rule_report &rule)
    {
        RuleReport out{};

        out.matched = rule.matched != 0;
        out.off = rule.off != 0;
        out.shadow = rule.shadow != 0;
        out.denies = rule.denies != 0;
        out.reason = rule.reason;
        out.rule = detail::text(rule.rule);
        out.type = detail::text(rule.type);
        out.unit = detail::text(rule.unit);
        out.origin = detail::text(rule.origin);
        out.mismatch = detail::text(rule.mismatch);
        out.entry = detail::text(rule.entry);
        if (rule.stateful != 0)
            out.level = rule.level;
        out.limit = rule.limit;
        if (rule.has_amount != 0)
            out.amount = rule.amount;
        out.replicas = rule.replicas;
        out.retry_after = detail::milliseconds(rule.retry_after_ms);
        return out;
    }
    std::unique_ptr<OnEvent> on_event_; /* at one address, wherever the gate moves */
    adm_gate *gate_ = nullptr;
};

} /* namespace admit */

#endif
