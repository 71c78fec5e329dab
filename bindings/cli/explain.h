/* SPDX-License-Identifier: Apache-2.0 */
/* A question to a policy, and what is needed to print its answer. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli.h"
#include "json.h"

#include <admit/admit.h>

#define EXPLAIN_LIST_MAX 64

enum explain_only { ONLY_ALL, ONLY_MATCHED, ONLY_DENYING };

struct question {
    const struct command *command;
    bool json, ascii, cost_given;
    enum explain_only only;
    const char *expect;
    struct adm_descriptor descriptors[EXPLAIN_LIST_MAX];
    struct adm_bytes units[EXPLAIN_LIST_MAX];
    struct adm_amount amounts[EXPLAIN_LIST_MAX];
    const char *tables[EXPLAIN_LIST_MAX];
    size_t descriptor_count, amount_count, table_count;
    uint64_t cost;
    const char *request_path; /* NULL: everything is on the command line */
    struct input request_text;
    struct json_document request_document;
};

/* All of these: false after an error on stderr that names the culprit. */
bool question_descriptor(struct question *question, const char *text);
bool question_amount(struct question *question, const char *text);
bool question_read_file(struct question *question);

/* Units that neither the library nor the policy knows are no units. policy: NULL, when its text
 * is none that can be looked into; then only the library decides. */
bool question_check_units(const struct question *question, const struct json *policy);
void question_free(struct question *question);

/* ---- why a rule is not concerned ------------------------------------------------------------ */

struct mismatch {
    const struct json *wants; /* the member of "match", or of its "not"; NULL: not to be found */
    bool negated;             /* wants stands in "not" and does hold */
    const struct adm_bytes *has; /* the request's value, NULL: absent */
};

struct mismatch explain_mismatch(const struct question *question, const struct json *rule,
                                 struct adm_bytes key);
const struct adm_bytes *question_value(const struct question *question, const char *key,
                                       size_t length);

/* The rule of a policy's text by its id. */
const struct json *explain_rule(const struct json *policy, const char *id);

/* "when" of the override that a report names; NULL when the numbers are from elsewhere. */
const struct json *explain_when(const struct json *rule, const char *origin);

/* A rule that matched, but was not come to: the request was denied for bringing too little, or
 * for matching too much. */
bool explain_was_checked(const struct adm_rule_report *report);

/* ---- the answer ----------------------------------------------------------------------------- */

struct explain_view {
    const struct question *question;
    const struct json *policy; /* its text; NULL: cannot be looked into */
    bool lines;                /* box drawing characters may be printed */
    uint64_t rules, shown, printed;
};

bool explain_shows(const struct explain_view *view, const struct adm_rule_report *report);

void explain_tree_head(const struct explain_view *view, const char *version);
void explain_tree_rule(struct explain_view *view, const struct adm_rule_report *report);
void explain_tree_decision(const struct explain_view *view, const struct adm_decision *decision);

void explain_json_head(void);
void explain_json_rule(struct explain_view *view, const struct adm_rule_report *report);
void explain_json_decision(const struct adm_decision *decision);

#endif
