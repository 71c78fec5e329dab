/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies in C++: values, errors with their findings, documents in JSON and YAML. Included by
 * <admit/admit.hpp>, which has the caveats.
 */
#ifndef ADMIT_POLICY_HPP
#define ADMIT_POLICY_HPP

#if !defined(__cplusplus) || __cplusplus < 201703L || !defined(__cpp_exceptions)
#error "libadmit's C++ headers need C++17 and exceptions"
#endif

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <admit/policy.h>

namespace admit {

/* ---- values ---------------------------------------------------------------------------------- */

inline adm_bytes bytes(std::string_view text) noexcept
{
    return { text.data(), text.size() };
}

inline adm_amount amount(std::uint32_t unit, std::uint64_t value, bool is_final = false) noexcept
{
    return { unit, is_final ? ADM_AMOUNT_FINAL : 0, value };
}

namespace detail {

inline std::string_view text(const char *text_or_null) noexcept
{
    return text_or_null != nullptr ? std::string_view(text_or_null) : std::string_view();
}

inline std::string text(adm_bytes view)
{
    return std::string(static_cast<const char *>(view.data), static_cast<std::size_t>(view.length));
}

/* More than fits means that there is no end to the wait anyway. */
inline std::chrono::milliseconds milliseconds(std::uint64_t ms) noexcept
{
    using rep = std::chrono::milliseconds::rep;
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<rep>::max());

    return std::chrono::milliseconds(static_cast<rep>(ms < most ? ms : most));
}

} /* namespace detail */

/* ---- what went wrong ------------------------------------------------------------------------- */

/* There is no decision, or the call had no effect. Visible, so that it is caught across libraries. */
class ADM_API Error : public std::runtime_error {
public:
    explicit Error(adm_status status)
        : Error(status, std::string(adm_status_name(status)) + ": " + adm_status_text(status))
    {
    }
    adm_status status() const noexcept { return status_; }
    /* ADM_STATUS_CLASS_*, to switch on. */
    std::uint32_t status_class() const noexcept { return adm_status_class(status_); }

protected:
    Error(adm_status status, const std::string &what) : std::runtime_error(what), status_(status) {}

private:
    adm_status status_;
};

inline void check(adm_status status)
{
    if (status != ADM_OK)
        throw Error(status);
}

/* Something that the reader of a document found; struct adm_diag has the members' meaning. */
struct Finding {
    std::uint32_t severity = ADM_SEVERITY_ERROR;
    std::uint32_t line = 0, column = 0, length = 0;
    std::string code, name, pointer, message, nearest, file;

    /* As the command prints it: "policy.json:3:5: error[ADM-D-214]: /rules/0/limit: expected ..." */
    std::string text() const
    {
        std::string out = file.empty() ? "" : file + ":";

        if (line != 0)
            out += std::to_string(line) + ":" + std::to_string(column) + ":";
        if (!out.empty())
            out += " ";
        out += severity == ADM_SEVERITY_ERROR     ? "error["
               : severity == ADM_SEVERITY_WARNING ? "warning["
                                                  : "note[";
        out += code + "]: ";
        if (!pointer.empty() && severity != ADM_SEVERITY_NOTE)
            out += pointer + ": ";
        out += message;
        return nearest.empty() ? out : out + "; did you mean " + nearest + "?";
    }
};

/* A document that was refused, with everything that was found in it. */
class ADM_API PolicyError : public Error {
public:
    PolicyError(adm_status status, std::vector<Finding> findings)
        : Error(status, describe(status, findings)), findings_(std::move(findings))
    {
    }
    const std::vector<Finding> &findings() const noexcept { return findings_; }

private:
    static std::string describe(adm_status status, const std::vector<Finding> &findings)
    {
        for (const Finding &finding : findings)
            if (finding.severity == ADM_SEVERITY_ERROR)
                return finding.text();
        return std::string(adm_status_name(status)) + ": " + adm_status_text(status);
    }
    std::vector<Finding> findings_;
};

namespace detail {

struct FreeDiags {
    void operator()(adm_diags *diags) const noexcept { adm_diags_free(diags); }
};
using Diags = std::unique_ptr<adm_diags, FreeDiags>;

inline std::vector<Finding> findings(const adm_diags *diags)
{
    std::vector<Finding> found;

    for (std::uint64_t i = 0; i < adm_diags_count(diags); i++) {
        adm_diag one{};
        Finding finding;

        one.size = sizeof one;
        check(adm_diags_get(diags, i, &one));
        finding.severity = one.severity;
        finding.line = one.line;
        finding.column = one.column;
        finding.length = one.length;
        finding.code = text(one.code);
        finding.name = text(one.name);
        finding.pointer = text(one.pointer);
        finding.message = text(one.message);
        finding.nearest = text(one.nearest);
        finding.file = text(one.file);
        found.push_back(std::move(finding));
    }
    return found;
}

inline void check(adm_status status, const Diags &diags)
{
    if (status == ADM_E_POLICY_INVALID)
        throw PolicyError(status, findings(diags.get()));
    admit::check(status);
}

struct CloseFile {
    void operator()(std::FILE *file) const noexcept { (void)std::fclose(file); }
};

/* The start of a file that is too long for any policy is enough to refuse it. */
inline std::string read_file(const std::string &path)
{
    constexpr std::size_t most = 1024 * 1024 + 1;
    std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
    std::array<char, 8192> part;
    std::string text;
    std::size_t length = 1;

    if (file == nullptr)
        throw std::system_error(errno, std::generic_category(), path);
    while (length > 0 && text.size() < most) {
        errno = 0;
        length = std::fread(part.data(), 1, part.size(), file.get());
        if (std::ferror(file.get()) != 0)
            throw std::system_error(errno != 0 ? errno : EIO, std::generic_category(), path);
        text.append(part.data(), length);
    }
    return text;
}

} /* namespace detail */

/* ---- policies -------------------------------------------------------------------------------- */

enum class Format { json, yaml };

/* A copy is another reference to the same policy. */
class Policy {
public:
    /* file: its name in findings. */
    static Policy parse(std::string_view text, Format format = Format::json,
                        const std::string &file = {})
    {
        adm_policy_options options{};
        adm_diags *found = nullptr;
        Policy policy(nullptr);

        options.size = sizeof options;
        options.flags = format == Format::yaml ? ADM_POLICY_YAML : 0;
        options.file = file.c_str();
        adm_status status = adm_policy_load(bytes(text), &options, &policy.policy_, &found);
        detail::Diags diags(found);
        detail::check(status, diags);
        policy.found_ = std::move(diags);
        return policy;
    }
    /* YAML when its name ends in .yaml or .yml, else JSON. std::system_error: cannot be read. */
    static Policy from_file(const std::string &path)
    {
        auto ends_in = [&path](std::string_view end) {
            return path.size() >= end.size() &&
                   path.compare(path.size() - end.size(), end.size(), end) == 0;
        };
        Format format = ends_in(".yaml") || ends_in(".yml") ? Format::yaml : Format::json;

        return parse(detail::read_file(path), format, path);
    }
    /* Takes over the caller's reference; nullptr: no policy. */
    explicit Policy(adm_policy *policy) noexcept : policy_(policy) {}
    Policy(const Policy &other) noexcept
        : policy_(other.policy_ != nullptr ? adm_policy_ref(other.policy_) : nullptr),
          found_(other.found_)
    {
    }
    Policy(Policy &&other) noexcept
        : policy_(std::exchange(other.policy_, nullptr)), found_(std::move(other.found_))
    {
    }
    Policy &operator=(Policy other) noexcept
    {
        std::swap(policy_, other.policy_);
        std::swap(found_, other.found_);
        return *this;
    }
    ~Policy() { adm_policy_unref(policy_); }
    std::string_view version() const noexcept { return adm_policy_version(policy_); }
    std::uint64_t rule_count() const noexcept { return adm_policy_rule_count(policy_); }
    /* Warnings and notes of a document that is fine all the same. */
    std::vector<Finding> warnings() const { return detail::findings(found_.get()); }
    adm_policy *get() const noexcept { return policy_; }

private:
    adm_policy *policy_;
    std::shared_ptr<adm_diags> found_;
};

} /* namespace admit */

#endif
