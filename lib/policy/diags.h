/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting findings while a document is read; struct adm_diags (admit/policy.h) is the
 * collection.
 */
#ifndef ADMI_DIAGS_H
#define ADMI_DIAGS_H

#include <stdbool.h>

#include <admit/admit.h>

#include "policy/catalog.h"

#define ADMI_DIAGS_MAX     20u
#define ADMI_DIAG_NO_PLACE UINT32_MAX

struct admi_diag_place {
    uint32_t offset; /* in the text, or ADMI_DIAG_NO_PLACE */
    uint32_t length; /* bytes; in the end at most to the end of the line, and at least 1 */
    uint32_t line, column;
};

struct admi_diag_entry {
    const struct admi_diag_kind *kind;
    struct admi_diag_place place;
    bool in_source; /* YAML: the place is one of the YAML text already */
    bool has_note;
    struct admi_diag_place note_place; /* the other end of the story */
    char note[96];
    char pointer[512];
    char message[256];
    char nearest[72];
};

struct adm_diags {
    struct adm_allocator allocator;
    char *file; /* NUL-terminated copy */
    uint64_t file_bytes;
    bool quiet;      /* what comes now has been reported */
    uint32_t errors; /* also those that found no room */
    uint32_t count;  /* entries; a note goes with its entry */
    struct admi_diag_entry entries[ADMI_DIAGS_MAX];
};

/*
 * All memory that the collection will ever need, so that a finding is never lost for want of it.
 * NULL: no memory.
 */
struct adm_diags *admi_diags_new(const struct adm_allocator *allocator, const char *file);

/*
 * An entry for the caller to fill in, or NULL when there is no room: the first 20 are kept, and an
 * error goes before a warning.
 */
struct admi_diag_entry *admi_diags_add(struct adm_diags *diags, enum admi_diag kind,
                                       uint32_t offset);

/* No further error would be kept. */
bool admi_diags_full(const struct adm_diags *diags);

/* Into the order of the text, with lines and columns. */
void admi_diags_finish(struct adm_diags *diags, struct adm_bytes text);

/*
 * At the end of a load: to *out (if not NULL) on ADM_OK and ADM_E_POLICY_INVALID, NULL when there
 * are none; else freed.
 */
void admi_diags_hand_out(struct adm_diags *diags, adm_status status, struct adm_bytes text,
                         struct adm_diags **out);

#endif
