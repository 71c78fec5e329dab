/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: sharing, files, findings, memory that runs out. */
#include "tap.hpp"

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include <unistd.h>

static_assert(std::is_copy_constructible_v<admit::Policy> &&
              std::is_nothrow_move_constructible_v<admit::Policy> &&
              std::is_base_of_v<admit::Error, admit::PolicyError> &&
              std::is_base_of_v<std::runtime_error, admit::Error>);

/* A folder that goes with what is in it. */
class Folder {
public:
    Folder()
    {
        const char *place = std::getenv("TMPDIR");

        path_ = std::string(place != nullptr ? place : "/tmp") + "/admit-cpp-XXXXXX";
        if (mkdtemp(path_.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(), path_);
    }
    Folder(const Folder &) = delete;
    Folder &operator=(const Folder &) = delete;
    ~Folder()
    {
        for (const std::string &file : files_)
            (void)std::remove(file.c_str());
        (void)rmdir(path_.c_str());
    }
    std::string write(const char *name, const std::string &text)
    {
        std::string file = path_ + "/" + name;
        std::FILE *out = std::fopen(file.c_str(), "wb");

        if (out == nullptr || std::fwrite(text.data(), 1, text.size(), out) != text.size() ||
            std::fclose(out) != 0)
            throw std::system_error(errno, std::generic_category(), file);
        files_.push_back(file);
        return file;
    }
    const std::string &path() const { return path_; }

private:
    std::string path_;
    std::vector<std::string> files_;
};

static void sharing()
{
    admit::Policy policy = admit::Policy::parse(one_at_a_time);
    admit::Policy copy = policy, moved = std::move(policy);

    ok(copy.version() == "1" && moved.rule_count() == 1, "a copy and a moved policy are whole");
    ok(policy.get() == nullptr && policy.version().empty() && policy.rule_count() == 0,
       "a policy moved from is empty");
    admit::Policy empty = policy;
    ok(empty.get() == nullptr, "a copy of an empty one is empty");
    policy = copy;
    ok(policy.get() == moved.get(), "assignment shares");
    admit::Policy &same = policy;
    policy = same;
    ok(policy.get() == moved.get(), "assigned to itself: as before");
    ok(status_of([&] { admit::Gate gate(empty); }) == ADM_E_INVALID_ARGUMENT,
       "no gate without a policy");
}

static void warned()
{
    admit::Policy policy = admit::Policy::parse(
        "{\"version\": \"1\", \"hard_timeout\": \"10m\", \"rules\": [{\"id\": \"a\","
        " \"type\": \"concurrency\", \"limit\": 1, \"lease_ttl\": \"30s\"}]}");
    admit::Policy copy = policy;
    std::vector<admit::Finding> found = copy.warnings();

    ok(found.size() == 1 && found[0].name == "short_lease" &&
           found[0].severity == ADM_SEVERITY_WARNING &&
           found[0].text().find(": warning[ADM-D-303]: /rules/0") != std::string::npos,
       "a policy that is fine may have warnings; a copy has them, too");
    ok(admit::Policy::parse(one_at_a_time).warnings().empty(), "or none");
    admit::Policy moved = std::move(policy);
    ok(moved.warnings().size() == 1 && policy.warnings().empty(), "moved with the policy");
}

static const admit::Finding *error_of(const admit::PolicyError &error)
{
    return error.findings().size() == 1 ? error.findings().data() : nullptr;
}

static void refused()
{
    bool found = false;

    try {
        (void)admit::Policy::parse("{\"version\": \"1\",\n \"rules\": [{\"id\": \"a\","
                                   " \"type\": \"request_cap\",\n  \"limti\": 1, \"limit\": 1}]}",
                                   admit::Format::json, "caps.json");
    } catch (const admit::PolicyError &error) {
        const admit::Finding *first = error_of(error);

        found = error.status() == ADM_E_POLICY_INVALID && first != nullptr && first->line == 3 &&
                first->column == 3 && first->name == "unknown_key" && first->nearest == "limit" &&
                first->length == 7 && first->file == "caps.json" &&
                first->severity == ADM_SEVERITY_ERROR && first->text() == error.what() &&
                first->text() == "caps.json:3:3: error[" + first->code + "]: /rules/0/limti: " +
                                     first->message + "; did you mean limit?";
        if (!found)
            std::printf("# %s\n", error.what());
    }
    ok(found, "a refused policy throws what was found, and where");
    admit::Finding nowhere;
    nowhere.code = "C";
    nowhere.message = "m";
    ok(nowhere.text() == "error[C]: m", "a finding without file and line is only that");
    nowhere.file = "p.yaml";
    ok(nowhere.text() == "p.yaml: error[C]: m", "a finding without a line has a blank behind the file");
    nowhere.line = 2;
    nowhere.column = 7;
    nowhere.pointer = "/rules/0";
    nowhere.severity = ADM_SEVERITY_NOTE;
    ok(nowhere.text() == "p.yaml:2:7: note[C]: m", "a note does not repeat the pointer");
    ok(status_of([] { (void)admit::Policy::parse(""); }) == ADM_E_POLICY_INVALID,
       "no text is refused");
    ok(status_of([] { (void)admit::Policy::parse({}); }) == ADM_E_POLICY_INVALID,
       "no view is refused");
    ok(status_of([] {
           (void)admit::Policy::parse("version: \"1\"\nrules: []\n", admit::Format::json);
       }) == ADM_E_POLICY_INVALID,
       "YAML is no JSON");
}

static bool system_error_of(const std::string &path, int number)
{
    try {
        (void)admit::Policy::from_file(path);
    } catch (const std::system_error &error) {
        return error.code() == std::error_code(number, std::generic_category());
    }
    return false;
}

static void files()
{
    const std::string yaml = "version: \"1\"\nrules: [{id: a, type: request_cap, limit: 1}]\n";
    Folder folder;

    ok(admit::Policy::from_file(folder.write("p.json", one_at_a_time)).rule_count() == 1,
       "a JSON file");
    bool with_yaml = true;
    try {
        (void)admit::Policy::parse(yaml, admit::Format::yaml);
    } catch (const admit::Error &) {
        with_yaml = false;
    }
    for (const char *name : { "p.yaml", "p.yml" })
        if (with_yaml)
            ok(admit::Policy::from_file(folder.write(name, yaml)).version() == "1", "a YAML file");
        else
            skip("a YAML file", "the library is built without YAML");
    ok(status_of([&] { (void)admit::Policy::from_file(folder.write("yaml", yaml)); }) ==
           ADM_E_POLICY_INVALID,
       "YAML needs its suffix");
    ok(system_error_of(folder.path() + "/none.json", ENOENT), "no such file");
    ok(system_error_of(folder.path(), EISDIR), "a folder");
    ok(status_of([&] {
           (void)admit::Policy::from_file(
               folder.write("long.json", std::string(1024 * 1024, ' ') + one_at_a_time));
       }) == ADM_E_POLICY_INVALID,
       "a file that is too long is refused, not cut");
    try {
        (void)admit::Policy::from_file(folder.write("bad.json", "{"));
        ok(false, "findings name the file");
    } catch (const admit::PolicyError &error) {
        ok(std::string(error.what()).rfind(folder.path() + "/bad.json:1:", 0) == 0,
           "findings name the file");
    }
}

static void no_memory()
{
    ok(survive([] {
           admit::Policy policy = admit::Policy::parse(one_at_a_time);
           admit::Policy copy = policy;
       }) < 100,
       "parse without memory");
    ok(survive([] {
           try {
               (void)admit::Policy::parse("{\"version\": 1}");
           } catch (const admit::PolicyError &) {
               return;
           }
       }) > 0,
       "findings without memory");
}

std::uint64_t rules_of(std::string_view text); /* other.cpp */

void policy_tests()
{
    ok(rules_of(one_at_a_time) == 1, "two translation units are one program");
    sharing();
    warned();
    refused();
    files();
    no_memory();
}
