/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of findings: stable code, stable word, severity. docs/diagnostics.yaml says the rest; a
 * test compares the two.
 */
#ifndef ADMI_CATALOG_H
#define ADMI_CATALOG_H

#include <stdint.h>

/* X(enumerator, number of the code, word, severity). Numbers and words are never reused. */
#define ADMI_DIAG_KINDS(X)                                                                         \
    /* the text */                                                                                 \
    X(SYNTAX, 101, "syntax", ERROR)                                                                \
    X(EMPTY_DOCUMENT, 102, "empty_document", ERROR)                                                \
    X(TRAILING_TEXT, 103, "trailing_text", ERROR)                                                  \
    X(BOM, 104, "bom", ERROR)                                                                      \
    X(UTF8, 105, "utf8", ERROR)                                                                    \
    X(CONTROL_CHARACTER, 106, "control_character", ERROR)                                          \
    X(ESCAPE, 107, "escape", ERROR)                                                                \
    X(SURROGATE, 108, "surrogate", ERROR)                                                          \
    X(NUL, 109, "nul", ERROR)                                                                      \
    X(DEPTH, 110, "depth", ERROR)                                                                  \
    X(TOO_LARGE, 111, "too_large", ERROR)                                                          \
    X(TOO_MANY_VALUES, 112, "too_many_values", ERROR)                                              \
    X(DUPLICATE_KEY, 113, "duplicate_key", ERROR)                                                  \
    X(LEADING_ZERO, 114, "leading_zero", ERROR)                                                    \
    /* shape */                                                                                    \
    X(TYPE, 201, "type", ERROR)                                                                    \
    X(UNKNOWN_KEY, 202, "unknown_key", ERROR)                                                      \
    X(MISSING_KEY, 203, "missing_key", ERROR)                                                      \
    X(FOREIGN_FIELD, 204, "foreign_field", ERROR)                                                  \
    X(COUNT, 205, "count", ERROR)                                                                  \
    X(DUPLICATE_ITEM, 206, "duplicate_item", ERROR)                                                \
    X(WORD, 207, "word", ERROR)                                                                    \
    X(WINDOW, 208, "window", ERROR)                                                                \
    X(RULE_TYPE, 209, "rule_type", ERROR)                                                          \
    /* numbers */                                                                                  \
    X(RANGE, 210, "range", ERROR)                                                                  \
    X(WHOLE_NUMBER, 211, "whole_number", ERROR)                                                    \
    X(EXPONENT, 214, "exponent", ERROR)                                                            \
    X(DECIMAL, 215, "decimal", ERROR)                                                              \
    X(FRACTION, 216, "fraction", ERROR)                                                            \
    X(DURATION, 217, "duration", ERROR)                                                            \
    X(RATE, 218, "rate", ERROR)                                                                    \
    X(OPERATOR, 219, "operator", ERROR)                                                            \
    /* names */                                                                                    \
    X(ID, 230, "id", ERROR)                                                                        \
    X(VERSION, 231, "version", ERROR)                                                              \
    X(KEY, 232, "key", ERROR)                                                                      \
    X(VALUE, 233, "value", ERROR)                                                                  \
    X(UNIT, 234, "unit", ERROR)                                                                    \
    X(LABEL, 235, "label", ERROR)                                                                  \
    X(DUPLICATE_RULE_ID, 236, "duplicate_rule_id", ERROR)                                          \
    X(UNKNOWN_RULE, 237, "unknown_rule", ERROR)                                                    \
    X(TOO_MANY_KEYS, 238, "too_many_keys", ERROR)                                                  \
    /* rules and tables */                                                                         \
    X(MATCH, 250, "match", ERROR)                                                                  \
    X(OVERRIDE, 251, "override", ERROR)                                                            \
    X(ENTRY, 252, "entry", ERROR)                                                                  \
    X(TABLE_KEY, 253, "table_key", ERROR)                                                          \
    /* legal, but look again */                                                                    \
    X(NOT_IN_FORCE, 301, "not_in_force", WARNING)                                                  \
    X(POLICY_TOO_WIDE, 302, "policy_too_wide", WARNING)                                            \
    X(SHORT_LEASE, 303, "short_lease", WARNING)                                                    \
    X(UNREACHABLE_OVERRIDE, 304, "unreachable_override", WARNING)                                  \
    X(NEVER_MATCHES, 305, "never_matches", WARNING)

#define ADMI_DIAG_ENUMERATOR(name, number, word, severity) ADMI_DIAG_##name,
enum admi_diag { ADMI_DIAG_KINDS(ADMI_DIAG_ENUMERATOR) ADMI_DIAG_KIND_COUNT };
#undef ADMI_DIAG_ENUMERATOR

struct admi_diag_kind {
    const char *code; /* "ADM-D-101" */
    const char *name;
    uint32_t severity; /* ADM_SEVERITY_* */
};

extern const struct admi_diag_kind admi_diag_kinds[ADMI_DIAG_KIND_COUNT];

#endif
