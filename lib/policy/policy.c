/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a policy, and its life: immutable, counted references. */
#include <stdatomic.h>
#include <stddef.h>

#include "base/abi.h"
#include "base/memory.h"
#include "policy/lint.h"

static const struct admi_json_limits policy_limits = { 1u << 20, 65536, 32 };

static adm_status import_options(const struct adm_policy_options *options,
                                 struct adm_policy_options *out)
{
    *out = (struct adm_policy_options){ .size = sizeof *out };
    if (options == NULL)
        return ADM_OK;
    adm_status status = admi_import(out, sizeof *out, sizeof *out, options);
    if (status != ADM_OK)
        return status;
    if ((out->flags & ~(ADM_POLICY_YAML | ADM_POLICY_LINT)) != 0 ||
        !admi_all_zero(out->reserved, sizeof out->reserved))
        return ADM_E_CALLER_NEWER;
    return ADM_OK;
}

static enum admi_format format_of(const struct adm_policy_options *options)
{
    return (options->flags & ADM_POLICY_YAML) != 0 ? ADMI_FORMAT_YAML : ADMI_FORMAT_JSON;
}

/* The document, then the policy without its index; then the document is gone. */
static adm_status read_policy(struct admi_loader *loader, struct adm_bytes text,
                              enum admi_format format, struct adm_diags *diags)
{
    adm_status status = admi_document_read(&loader->document, text, format, &policy_limits,
                                           loader->scratch.allocator, diags);
    if (status == ADM_OK) {
        admi_top_read(loader);
        if (diags->errors == 0 && !admi_loader_failed(loader))
            admi_rules_build(loader);
        if (admi_loader_failed(loader))
            status = ADM_E_NOMEM;
        else if (diags->errors > 0)
            status = ADM_E_POLICY_INVALID;
        else
            admi_digest_document(&loader->document, loader->parts->policy.digest);
        if (status == ADM_OK && loader->lint)
            admi_lint(loader);
    }
    admi_document_place_findings(&loader->document);
    admi_document_fini(&loader->document);
    return status;
}

static adm_status compile(struct adm_bytes text, enum admi_format format, bool lint,
                          const struct adm_allocator *allocator, struct adm_diags *diags,
                          struct admi_policy_parts **out)
{
    struct admi_loader loader = { .scratch = { .allocator = allocator }, .lint = lint };
    loader.parts = admi_parts_new(allocator);
    if (loader.parts == NULL)
        return ADM_E_NOMEM;
    adm_status status = read_policy(&loader, text, format, diags);
    if (status == ADM_OK) {
        loader.parts->policy.match_index =
            admi_match_index_build(&loader.parts->policy, &loader.parts->arena, &loader.scratch);
        if (loader.parts->policy.match_index == NULL)
            status = ADM_E_NOMEM;
    }
    admi_arena_fini(&loader.scratch);
    if (status != ADM_OK) {
        admi_parts_free(loader.parts);
        return status;
    }
    *out = loader.parts;
    return ADM_OK;
}

adm_status adm_policy_load(struct adm_bytes text, const struct adm_policy_options *options,
                           struct adm_policy **out, struct adm_diags **out_diags)
{
    struct adm_policy_options given;
    struct admi_policy_parts *parts = NULL;
    adm_status status = import_options(options, &given);
    if (status != ADM_OK)
        return status;
    if (out == NULL || (text.data == NULL && text.length > 0))
        return ADM_E_INVALID_ARGUMENT;
    const struct adm_allocator *allocator = admi_allocator_or_malloc(given.allocator);
    struct adm_diags *diags = admi_diags_new(allocator, given.file);
    if (diags == NULL)
        return ADM_E_NOMEM;
    status = compile(text, format_of(&given), (given.flags & ADM_POLICY_LINT) != 0, allocator,
                     diags, &parts);
    admi_diags_hand_out(diags, status, text, out_diags);
    if (status == ADM_OK)
        *out = &parts->policy;
    return status;
}

/* Copied out while the document is there. */
static adm_status write_out(const struct admi_document *document, char *buffer,
                            uint64_t buffer_bytes, uint64_t *out_length)
{
    struct adm_bytes text = document->json.text;
    *out_length = text.length;
    if (text.length > buffer_bytes)
        return ADM_E_BUFFER_TOO_SMALL;
    admi_copy(buffer, text.data, text.length);
    return ADM_OK;
}

adm_status adm_policy_json(struct adm_bytes text, const struct adm_policy_options *options,
                           char *buffer, uint64_t buffer_bytes, uint64_t *out_length,
                           struct adm_diags **out_diags)
{
    static const struct admi_json_limits limits = { 16u << 20, 1u << 20, 32 };
    struct adm_policy_options given;
    struct admi_document document = { .decoded = NULL };
    adm_status status = import_options(options, &given);
    if (status != ADM_OK)
        return status;
    if (out_length == NULL || (text.data == NULL && text.length > 0) ||
        (buffer == NULL && buffer_bytes > 0))
        return ADM_E_INVALID_ARGUMENT;
    const struct adm_allocator *allocator = admi_allocator_or_malloc(given.allocator);
    struct adm_diags *diags = admi_diags_new(allocator, given.file);
    if (diags == NULL)
        return ADM_E_NOMEM;
    status = admi_document_check(&document, text, format_of(&given), &limits, allocator, diags);
    if (status == ADM_OK && diags->errors > 0)
        status = ADM_E_POLICY_INVALID;
    admi_document_place_findings(&document);
    adm_status written = ADM_OK;
    if (status == ADM_OK)
        written = write_out(&document, buffer, buffer_bytes, out_length);
    admi_document_fini(&document);
    admi_diags_hand_out(diags, status, text, out_diags);
    return status == ADM_OK ? written : status;
}

struct adm_policy *adm_policy_ref(struct adm_policy *policy)
{
    if (policy != NULL)
        atomic_fetch_add_explicit(&policy->references, 1, memory_order_relaxed);
    return policy;
}

void adm_policy_unref(struct adm_policy *policy)
{
    /* Whoever frees it must see all that the others did with it. */
    if (policy != NULL &&
        atomic_fetch_sub_explicit(&policy->references, 1, memory_order_acq_rel) == 1)
        admi_parts_free(policy->arena);
}

const char *adm_policy_version(const struct adm_policy *policy)
{
    return policy == NULL ? "" : policy->version;
}

uint64_t adm_policy_rule_count(const struct adm_policy *policy)
{
    return policy == NULL ? 0 : policy->rule_count;
}
