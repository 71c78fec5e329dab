/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies: bytes in, an immutable rule set or located diagnostics out. For applications that load,
 * validate, publish or roll back policies.
 *
 * The reader is strict: unknown or duplicate keys, wrong types, signs, exponents, overflow and bad
 * UTF-8 are refused, each with line, column, JSON pointer, what was expected and the nearest legal
 * word. Only broken syntax ends the reading; everything else is collected, up to 20 at once.
 *
 * Caveats: a policy is immutable and may be shared by gates and threads. Reading never touches a
 * gate.
 */
#ifndef ADMIT_POLICY_H
#define ADMIT_POLICY_H

#include <admit/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct adm_allocator;
struct adm_policy;
struct adm_diags;

enum { ADM_SEVERITY_ERROR = 0, ADM_SEVERITY_WARNING = 1, ADM_SEVERITY_NOTE = 2 };

/* One finding. Strings belong to the diags object. A note says more about the finding before it, at
 * another place: it has that finding's code, name and pointer. */
struct adm_diag {
    uint32_t size;
    uint32_t severity;
    uint32_t line;       /* from 1; 0: no place in the text */
    uint32_t column;     /* in bytes, from 1 */
    const char *code;    /* stable: "ADM-D-214" */
    const char *name;    /* stable word of the kind: "range", "duplicate_key" */
    const char *pointer; /* JSON pointer: "/rules/3/refill" */
    const char *message; /* "expected a whole number from 0 to 1000000000000, found 1e3" */
    const char *nearest; /* nearest legal word, or NULL */
    const char *file;    /* as given in the options, or "" */
    uint32_t length;     /* bytes from column on that it is about, within the line; 0: no place */
    uint32_t reserved0;
    uint64_t reserved[1];
};

struct adm_policy_options {
    uint32_t size;
    uint32_t flags;                        /* ADM_POLICY_* */
    const char *file;                      /* for diagnostics; copied */
    const struct adm_allocator *allocator; /* NULL: malloc; must outlive the policy */
    uint64_t reserved[4];
};

#define ADM_POLICY_YAML 1u /* the text is YAML; without it, JSON */
#define ADM_POLICY_LINT 2u /* report as well what is legal but suspicious: ADM-D-310 to 339 */

/**
 * Read and compile a native policy document: JSON, or YAML of the same shape, which gets the same
 * verdict.
 * text      in, at most 1 MiB; read only during the call; need not end in NUL.
 * options   in, or NULL.
 * out       written on success only; give it back with adm_policy_unref().
 * out_diags NULL, or receives the findings on success (warnings, notes) and on
 *           ADM_E_POLICY_INVALID; NULL when there are none; free with adm_diags_free().
 * Threads   any.
 * Blocking  never.
 * Errors    ADM_E_POLICY_INVALID at least one error among the findings; ADM_E_NOMEM.
 * Since     1.0
 */
ADM_API ADM_MUST_USE adm_status adm_policy_load(struct adm_bytes text,
                                                const struct adm_policy_options *options,
                                                struct adm_policy **out,
                                                struct adm_diags **out_diags);

/**
 * A policy document or limit table as JSON text, members in their order and numbers as they are
 * written; for tools that show or reformat documents. Checks the syntax, not whether it is a
 * policy.
 * text       in, at most 16 MiB; JSON comes out as it is.
 * buffer     NULL with buffer_bytes 0 asks for the length only; no NUL is added.
 * out_length bytes that the text has, written also on ADM_E_BUFFER_TOO_SMALL.
 * out_diags  as adm_policy_load().
 * Threads    any.
 * Blocking   never.
 * Errors     ADM_E_POLICY_INVALID see the findings; ADM_E_BUFFER_TOO_SMALL; ADM_E_NOMEM.
 * Since      1.0
 */
ADM_API ADM_MUST_USE adm_status adm_policy_json(struct adm_bytes text,
                                                const struct adm_policy_options *options,
                                                char *buffer, uint64_t buffer_bytes,
                                                uint64_t *out_length,
                                                struct adm_diags **out_diags);

ADM_API struct adm_policy *adm_policy_ref(struct adm_policy *policy);
ADM_API void adm_policy_unref(struct adm_policy *policy); /* NULL is a no-op */

/**
 * The version, and the number of rules, of a policy; of NULL: "" and 0.
 * Ownership the string lives as long as the policy.
 * Threads   any.
 * Blocking  never.
 * Since     1.0
 */
ADM_API const char *adm_policy_version(const struct adm_policy *policy);
ADM_API uint64_t adm_policy_rule_count(const struct adm_policy *policy);

/**
 * The findings of a load, in the order of the text. adm_diags_count(NULL) is 0.
 * inout     caller's memory, size set; filled within its size.
 * Threads   any, the object is immutable.
 * Blocking  never.
 * Errors    ADM_E_INVALID_ARGUMENT i out of range.
 * Since     1.0
 */
ADM_API uint64_t adm_diags_count(const struct adm_diags *diags);
ADM_API ADM_MUST_USE adm_status adm_diags_get(const struct adm_diags *diags, uint64_t i,
                                              struct adm_diag *inout);
ADM_API void adm_diags_free(struct adm_diags *diags);

enum { ADM_SCHEMA_POLICY = 0, ADM_SCHEMA_TABLE = 1 };

/**
 * The JSON Schema (draft-07) of policy documents or of limit tables, for editors and form builders.
 * It comes from the tables that the reader uses; docs/editors.md lists what only the reader can
 * tell.
 * which      ADM_SCHEMA_*.
 * buffer     NULL with buffer_bytes 0 asks for the length only. No NUL is written.
 * out_length bytes that the text has, written also on ADM_E_BUFFER_TOO_SMALL; always the same in
 *            one release.
 * Threads    any.
 * Blocking   never.
 * Errors     ADM_E_BUFFER_TOO_SMALL the buffer then holds the start of the text;
 *            ADM_E_INVALID_ARGUMENT.
 * Since      1.0
 */
ADM_API ADM_MUST_USE adm_status adm_policy_schema(uint32_t which, char *buffer,
                                                  uint64_t buffer_bytes, uint64_t *out_length);

#ifdef __cplusplus
}
#endif
#endif
