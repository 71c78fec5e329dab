/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a policy, and its life: immutable, counted references. */
#include <stdatomic.h>
#include <stddef.h>

#include "base/abi.h"
#include "base/memory.h"
#include "policy/parts.h"

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
    if (out->flags != 0 || !admi_all_zero(out->reserved, sizeof out->reserved))
        return ADM_E_CALLER_NEWER;
    return ADM_OK;
}

/* The document, then the policy without its index; then the document is gone. */
static adm_status read_policy(struct admi_loader *loader, struct adm_bytes text,
                              struct adm_diags *diags)
{
    adm_status status = admi_document_read(&loader->document, text, &policy_limits,
                                           loader->scratch.allocator, diags);
    if (status == ADM_OK) {
        admi_top_read(loader);
        if (loader->parts->arena.failed || loader->scratch.failed)
            status = ADM_E_NOMEM;
        else if (diags->errors > 0)
            status = ADM_E_POLICY_INVALID;
        else
            admi_digest_document(&loader->document, loader->parts->policy.digest);
    }
    admi_document_fini(&loader->document);
    return status;
}

static adm_status compile(struct adm_bytes text, const struct adm_allocator *allocator,
                          struct adm_diags *diags, struct admi_policy_parts **out)
{
    struct admi_loader loader = { .scratch = { .allocator = allocator } };
    loader.parts = admi_parts_new(allocator);
    if (loader.parts == NULL)
        return ADM_E_NOMEM;
    adm_status status = read_policy(&loader, text, diags);
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
    status = compile(text, allocator, diags, &parts);
    admi_diags_hand_out(diags, status, text, out_diags);
    if (status == ADM_OK)
        *out = &parts->policy;
    return status;
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
