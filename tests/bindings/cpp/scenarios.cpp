/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scenario files of the library through the C++ headers, on each backend.
 *
 *      scenarios FILE...       TAP on standard output
 *
 * Policies and tables reach the library as the JSON library prints them: same members, same order,
 * same numbers. A member that is given twice would be lost on the way, and the scenario would fail.
 */
#include <admit/admit.hpp>
#include <admit/testing.h>

#include <nlohmann/json.hpp>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <locale>
#include <map>
#include <set>
#include <sstream>

using json = nlohmann::ordered_json;

static int count, failed;

/* A step that makes no sense: the file is wrong, not the library. */
class Broken : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

static void result(const std::string &name, const std::vector<std::string> &failures)
{
    failed += !failures.empty();
    std::printf("%s %d - %s\n", failures.empty() ? "ok" : "not ok", ++count, name.c_str());
    for (const std::string &line : failures)
        std::printf("# %s\n", line.c_str());
}

static void skip(const std::string &name, const std::string &reason)
{
    std::printf("ok %d - %s # SKIP %s\n", ++count, name.c_str(), reason.c_str());
}

static const json &member(const json &object, const char *key)
{
    static const json none;
    auto found = object.find(key);

    return found != object.end() ? *found : none;
}

static std::string text(const json &object, const char *key)
{
    const json &value = member(object, key);

    if (!value.is_string())
        throw Broken(std::string("\"") + key + "\" must be a string");
    return value.get<std::string>();
}

static std::uint64_t number(const json &object, const char *key, std::uint64_t otherwise)
{
    const json &value = member(object, key);

    if (value.is_null())
        return otherwise;
    if (!value.is_number_unsigned())
        throw Broken(std::string("\"") + key + "\" must be a whole number");
    return value.get<std::uint64_t>();
}

/* What no caller could pass (a sign, a fraction, a word) is refused with the library's own word. */
static std::uint64_t whole(const json &value)
{
    if (!value.is_number_unsigned())
        throw admit::Error(ADM_E_INVALID_COST);
    return value.get<std::uint64_t>();
}

/* ---- a gate for one scenario ----------------------------------------------------------------- */

enum class Backend { plain, deferring };

class Runner {
public:
    Runner(const json &scenario, Backend backend)
        : gate_(admit::Policy::parse(member(scenario, "policy").dump()),
                options(member(scenario, "backend"), backend))
    {
        for (const json &table : member(scenario, "tables"))
            (void)gate_.put_table(table.dump());
    }
    std::vector<std::string> run(const json &steps);

private:
    admit::GateOptions options(const json &sizes, Backend backend);
    void at(std::uint64_t ms);
    json answer(const std::string &op, const json &step, std::uint64_t now);
    admit::Request request(const json &step);
    std::vector<adm_amount> amounts(const json &object);
    json admit(const json &step);
    json drain(const json &step, std::uint64_t now);
    json on_lease(const std::string &op, const json &step);
    json settle(admit::Lease &lease, const json &step);
    json in_force(const std::string &op, const json &step);

    adm_fake_clock clock_{};
    adm_fake_random random_{ 1 };
    admit::Gate gate_;
    std::map<std::string, admit::Lease> leases_;
    std::vector<admit::Lease> others_; /* without a name: they live on, too */
};

admit::GateOptions Runner::options(const json &sizes, Backend backend)
{
    constexpr std::uint64_t room = 16384; /* hundreds of gates are opened in one run */
    adm_plain_options plain{};
    admit::GateOptions options;
    adm_random random = adm_fake_random_as_random(&random_);
    adm_backend inner{};

    plain.size = sizeof plain;
    plain.partitions_max = number(sizes, "partitions", room);
    plain.leases_max = number(sizes, "leases", room);
    plain.attempts_max = number(sizes, "attempts", room);
    plain.classes_max = number(sizes, "classes", 0);
    plain.random = &random;
    admit::check(adm_plain_open(&plain, &inner));
    options.backend = inner;
    if (backend == Backend::deferring) {
        adm_deferring_options deferring{};

        deferring.size = sizeof deferring;
        deferring.flags = ADM_DEFER_OUT_OF_ORDER;
        deferring.polls_max = 3;
        deferring.seed = 2;
        admit::check(adm_deferring_open(&deferring, inner, &options.backend));
    }
    options.clock = adm_fake_clock_as_clock(&clock_);
    options.random = random;
    return options;
}

void Runner::at(std::uint64_t ms)
{
    clock_.time = { ms * ADM_MILLISECOND, ms * ADM_MILLISECOND };
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Views into the step, which outlives the request. */
static void descriptors(admit::Request &request, const json &step)
{
    const json &d = member(step, "d");

    if (!d.is_object())
        throw Broken("\"d\" must be an object of strings");
    for (auto it = d.begin(); it != d.end(); ++it)
        request.with(it.key(), it.value().get_ref<const std::string &>());
}

std::vector<adm_amount> Runner::amounts(const json &object)
{
    std::vector<adm_amount> list;

    if (!object.is_null() && !object.is_object())
        throw Broken("amounts and totals must be an object of numbers");
    for (auto it = object.begin(); it != object.end(); ++it) {
        std::uint32_t unit = gate_.unit(it.key());

        list.push_back(admit::amount(unit, whole(it.value())));
    }
    return list;
}

admit::Request Runner::request(const json &step)
{
    admit::Request request;
    const json &attempt = member(step, "attempt");

    request.cost(whole(member(step, "cost")));
    descriptors(request, step);
    for (const adm_amount &amount : amounts(member(step, "amounts")))
        request.amount(amount.unit, amount.value);
    if (!attempt.is_null())
        request.attempt(attempt.get_ref<const std::string &>());
    return request;
}

json Runner::admit(const json &step)
{
    auto keep = [&](admit::Lease lease) {
        if (step.contains("as"))
            std::swap(leases_[text(step, "as")], lease);
        others_.push_back(std::move(lease));
    };
    auto names = [](std::vector<std::string> list) { return json(std::move(list)); };

    try {
        admit::Decision decision = gate_.admit(request(step));
        const adm_decision &raw = decision.raw();
        json answer = {
            { "allow", decision.allowed() },         { "reason", decision.reason_name() },
            { "rules", names(decision.rules()) },    { "shadow", names(decision.shadow_rules()) },
            { "unknown", raw.unknown_count },        { "http", decision.http_status() },
            { "version", decision.policy_version() }
        };
        admit::Lease lease = decision.lease();

        answer["lease"] = bool(lease);
        if (decision.retry_after().count() != 0)
            answer["retry_after_ms"] = decision.retry_after().count();
        if (!decision.table_version().empty())
            answer["table_version"] = decision.table_version();
        keep(std::move(lease));
        return answer;
    } catch (const admit::Error &) {
        keep(admit::Lease()); /* the name stands for no lease */
        throw;
    }
}

json Runner::drain(const json &step, std::uint64_t now)
{
    admit::Request asked = request(step);
    std::uint64_t until = number(step, "until", 0), every = number(step, "every_ms", 0);
    std::uint64_t tries = number(step, "tries", 0), allowed = 0;

    if (every == 0 || tries == 0)
        throw Broken("a drain needs \"every_ms\" and \"tries\" above 0");
    for (; now <= until; now += every) {
        at(now);
        for (std::uint64_t i = 0; i < tries; i++) {
            admit::Decision decision = gate_.admit(asked);

            allowed += decision.allowed();
            others_.push_back(decision.lease());
        }
    }
    return { { "allowed", allowed } };
}

json Runner::settle(admit::Lease &lease, const json &step)
{
    const json &totals = member(step, "totals"), &last = member(step, "final");
    std::vector<adm_amount> list = amounts(totals);
    std::size_t i = 0;

    if (last.is_array())
        for (auto it = totals.begin(); it != totals.end(); ++it, i++)
            for (const json &unit : last)
                if (unit == it.key())
                    list[i].flags = ADM_AMOUNT_FINAL;
    return adm_outcome_name(lease.settle(list, last.is_boolean() && last.get<bool>()));
}

json Runner::on_lease(const std::string &op, const json &step)
{
    admit::Lease none(gate_.get(), adm_id{ 0, 0 });
    auto found = leases_.find(text(step, "of"));
    admit::Lease &lease = found != leases_.end() ? found->second : none;

    if (op == "renew")
        return { { "outcome", adm_outcome_name(lease.renew()) } };
    if (op == "divert")
        return { { "outcome", adm_outcome_name(lease.divert()) } };
    if (op == "settle")
        return { { "outcome", settle(lease, step) } };
    std::uint32_t how = ADM_RESULT_OK;
    if (step.contains("result"))
        while (how < ADM_RESULT_COUNT && text(step, "result") != adm_result_name(how))
            how++;
    if (how == ADM_RESULT_COUNT)
        throw Broken("\"result\" is one of ok, error, timeout, cancelled, diverted");
    return { { "outcome", adm_outcome_name(lease.release(how)) } };
}

/* The word of an error, as scenarios have it. */
static std::string word(const admit::Error &error)
{
    if (auto refused = dynamic_cast<const admit::PolicyError *>(&error))
        for (const admit::Finding &finding : refused->findings())
            if (finding.severity == ADM_SEVERITY_ERROR)
                return finding.name;
    std::string name = adm_status_name(error.status());
    name.erase(0, std::string("ADM_E_").size());
    for (char &c : name)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return name;
}

/* A reload that is refused still tells which version is in force. */
json Runner::in_force(const std::string &op, const json &step)
{
    json answer;

    try {
        if (op == "rollback")
            gate_.rollback(text(step, "version"));
        else
            gate_.publish(admit::Policy::parse(member(step, "policy").dump()));
    } catch (const admit::Error &error) {
        answer["error"] = word(error);
    }
    answer["version"] = gate_.version();
    return answer;
}

/* Numbers, also in strings, whatever the locale; everything else is a missing measurement. */
static double measurement(const json &value)
{
    std::istringstream in(value.is_string() ? value.get<std::string>() : value.dump());
    double out;

    in.imbue(std::locale::classic());
    if ((value.is_number() || value.is_string()) && in >> out && in.peek() == EOF)
        return out;
    return std::numeric_limits<double>::quiet_NaN();
}

json Runner::answer(const std::string &op, const json &step, std::uint64_t now)
{
    if (op == "admit")
        return admit(step);
    if (op == "drain")
        return drain(step, now);
    if (op == "release" || op == "renew" || op == "settle" || op == "divert")
        return on_lease(op, step);
    if (op == "reload" || op == "rollback")
        return in_force(op, step);
    if (op == "table") {
        bool patch = step.contains("mode") && text(step, "mode") == "patch";

        (void)gate_.put_table(member(step, "table").dump(),
                              patch ? admit::Table::patch : admit::Table::replace);
        return json::object();
    }
    if (op == "signal") {
        gate_.signal(text(step, "scope"), text(step, "replica"), text(step, "name"),
                     measurement(member(step, "value")));
        return json::object();
    }
    if (op == "level" || op == "used") {
        admit::Request request;

        descriptors(request, step);
        return { { op == "level" ? "floor" : "units", gate_.read(text(step, "rule"), request) } };
    }
    throw Broken("unknown op " + op);
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool agrees(const std::string &key, const json &want, const json &got)
{
    static const std::set<std::string> members = { "allow",   "reason",  "retry_after_ms",
                                                   "rules",   "shadow",  "table_version",
                                                   "unknown", "http",    "lease",
                                                   "error",   "outcome", "version",
                                                   "floor",   "units",   "allowed" };

    if (members.count(key) == 0)
        throw Broken(key + ": no answer has such a member");
    if (key == "outcome" && want.is_array())
        return std::find(want.begin(), want.end(), got) != want.end();
    if (key == "reason" && want == "limited")
        return got == "rate_exceeded" || got == "concurrency_exceeded" || got == "quota_exceeded";
    return want == got;
}

std::vector<std::string> Runner::run(const json &steps)
{
    std::vector<std::string> failures;
    std::size_t index = 0;

    if (!steps.is_array() || steps.empty())
        return { "a scenario needs steps" };
    for (const json &step : steps) {
        std::string op = text(step, "op");
        std::uint64_t start = number(step, "t", 0), repeat = number(step, "repeat", 1);
        const json &expect = member(step, "expect");

        for (std::uint64_t i = 0; i < repeat; i++) {
            std::uint64_t now = start + i * number(step, "every_ms", 0);
            json got;

            at(now);
            try {
                got = answer(op, step, now);
            } catch (const admit::Error &error) {
                got = { { "error", word(error) } };
            }
            for (auto it = expect.begin(); it != expect.end(); ++it)
                if (!agrees(it.key(), it.value(), member(got, it.key().c_str())) &&
                    failures.size() < 12)
                    failures.push_back("step " + std::to_string(index) + " " + op +
                                       " t=" + std::to_string(now) + ": " + it.key() +
                                       ": expected " + it.value().dump() + ", got " + got.dump());
        }
        index++;
    }
    return failures;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void admission(const std::string &name, const json &scenario, Backend backend)
{
    std::string full = name + (backend == Backend::plain ? " plain" : " deferring");

    try {
        Runner runner(scenario, backend);

        result(full, runner.run(member(scenario, "steps")));
    } catch (const std::exception &error) {
        result(full, { error.what() });
    }
}

static std::string unhex(const std::string &hex)
{
    std::string out;

    for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
        out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return out;
}

static void loader(const std::string &name, const json &document)
{
    std::string full = name + " " + text(document, "name"), expect = text(document, "expect");
    bool yaml = text(document, "format") == "yaml", accepted = true;
    std::string content =
        document.contains("hex") ? unhex(text(document, "hex")) : text(document, "text");

    try {
        (void)admit::Policy::parse(content, yaml ? admit::Format::yaml : admit::Format::json);
    } catch (const admit::PolicyError &error) {
        accepted = false;
        for (const admit::Finding &finding : error.findings())
            if (finding.code == "ADM-D-129")
                return skip(full, "this libadmit was built without YAML");
        if (error.findings().empty())
            return result(full, { "rejected without a finding" });
    }
    if (expect != "accept" && expect != "reject")
        result(full, { "cannot expect " + expect });
    else if (accepted != (expect == "accept"))
        result(full, { "expected " + expect });
    else
        result(full, {});
}

static void file(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    json scenarios = json::parse(in).at("scenarios");
    std::string base = path.substr(path.rfind('/') + 1);
    int number = 0;

    for (const json &scenario : scenarios) {
        std::string name = base + "/" + std::to_string(++number), kind = text(scenario, "kind");

        if (kind == "admission") {
            admission(name, scenario, Backend::plain);
            admission(name, scenario, Backend::deferring);
        } else if (kind == "loader") {
            for (const json &document : scenario.at("documents"))
                loader(name, document);
        } else {
            skip(name, "no runner for kind " + kind);
        }
    }
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int before = count;

        try {
            file(argv[i]);
        } catch (const std::exception &error) {
            result(argv[i], { error.what() });
        }
        if (count == before)
            result(argv[i], { "no scenario" });
    }
    std::printf("1..%d\n", count);
    return failed != 0 || count == 0;
}
