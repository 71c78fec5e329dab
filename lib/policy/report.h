/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about places of a document: pointer, expectation, what stands there. */
#ifndef ADMI_REPORT_H
#define ADMI_REPORT_H

#include "base/json_lexer.h"
#include "policy/diags.h"
#include "policy/words.h"

/* A document that is being read. */
struct admi_source {
    const struct admi_json *json;
    struct adm_diags *diags;
};

/*
 * At a value, or at a member's name; the entry has place and pointer, or is NULL when nothing more
 * is kept.
 */
struct admi_diag_entry *admi_report_value(const struct admi_source *source, enum admi_diag kind,
                                          uint32_t token);
struct admi_diag_entry *admi_report_name(const struct admi_source *source, enum admi_diag kind,
                                         uint32_t token);

/* "expected <expected>, found <the value>". */
struct admi_diag_entry *admi_report_expected(const struct admi_source *source, enum admi_diag kind,
                                             uint32_t token, const char *expected);
/* The same with a number between two parts: "expected at most 16 entries, found …". */
void admi_report_at_most(const struct admi_source *source, enum admi_diag kind, uint32_t token,
                         uint64_t most, const char *what);
/* A message of its own at a value. */
struct admi_diag_entry *admi_report_message(const struct admi_source *source, enum admi_diag kind,
                                            uint32_t token, const char *message);

/*
 * Add the other place of the story to an entry (NULL: nothing): a member's name, or a value. token
 * may be ADMI_JSON_NONE: then there is no such place.
 */
void admi_report_note(const struct admi_source *source, struct admi_diag_entry *entry,
                      uint32_t token, bool of_name, const char *message);

/*
 * The same for a member that the rule around a value has: the type that decides about a field, the
 * number that another one goes with. No note outside of rules.
 */
void admi_report_note_of_rule(const struct admi_source *source, struct admi_diag_entry *entry,
                              uint32_t token, const char *name, const char *message);

/* The message of an entry. */
struct admi_words admi_report_words(struct admi_diag_entry *entry);
/* Append "…, found <the value>". */
void admi_report_found(const struct admi_source *source, struct admi_words *words, uint32_t token);
void admi_report_nearest(struct admi_diag_entry *entry, struct adm_bytes nearest);

/* A finding of the lexer. self: struct admi_source *. */
void admi_report_lexer(void *self, const struct admi_json_finding *finding);

#endif
