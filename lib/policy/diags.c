/* SPDX-License-Identifier: Apache-2.0 */
/* Collecting findings while a document is read, and handing them out. */
#include "policy/diags.h"

#include <stddef.h>

#include "base/abi.h"
#include "base/json_lexer.h"
#include "base/memory.h"
#include "policy/words.h"

struct adm_diags *admi_diags_new(const struct adm_allocator *allocator, const char *file)
{
    struct adm_diags *diags = admi_allocate(allocator, 1, sizeof *diags);
    if (diags == NULL)
        return NULL;
    diags->allocator = *allocator;
    struct adm_bytes name = admi_words_of(file == NULL ? "" : file);
    diags->file_bytes = name.length + 1;
    diags->file = admi_allocate(allocator, diags->file_bytes, 1);
    if (diags->file == NULL) {
        adm_diags_free(diags);
        return NULL;
    }
    admi_copy(diags->file, name.data, name.length);
    return diags;
}

void adm_diags_free(struct adm_diags *diags)
{
    if (diags == NULL)
        return;
    struct adm_allocator allocator = diags->allocator;
    admi_release(&allocator, diags->file, diags->file_bytes, 1);
    admi_release(&allocator, diags, 1, sizeof *diags);
}

bool admi_diags_full(const struct adm_diags *diags)
{
    return diags->errors >= ADMI_DIAGS_MAX;
}

/* The last warning makes room for an error. */
static void drop_warning(struct adm_diags *diags)
{
    for (uint32_t i = diags->count; i-- > 0;) {
        if (diags->entries[i].kind->severity == ADM_SEVERITY_ERROR)
            continue;
        for (uint32_t j = i; j + 1 < diags->count; j++)
            diags->entries[j] = diags->entries[j + 1];
        diags->count--;
        return;
    }
}

struct admi_diag_entry *admi_diags_add(struct adm_diags *diags, enum admi_diag kind,
                                       uint32_t offset)
{
    if (admi_diag_kinds[kind].severity == ADM_SEVERITY_ERROR) {
        diags->errors++;
        if (diags->count == ADMI_DIAGS_MAX)
            drop_warning(diags);
    }
    if (diags->count == ADMI_DIAGS_MAX)
        return NULL;
    struct admi_diag_entry *entry = &diags->entries[diags->count++];
    admi_clear(entry, sizeof *entry);
    entry->kind = &admi_diag_kinds[kind];
    entry->offset = offset;
    return entry;
}

void admi_diags_finish(struct adm_diags *diags, struct adm_bytes text)
{
    for (uint32_t i = 1; i < diags->count;
         i++) /* stable: findings of one place stay as they were found */
        for (uint32_t j = i; j > 0 && diags->entries[j - 1].offset > diags->entries[j].offset;
             j--) {
            struct admi_diag_entry held = diags->entries[j];
            diags->entries[j] = diags->entries[j - 1];
            diags->entries[j - 1] = held;
        }
    for (uint32_t i = 0; i < diags->count; i++)
        if (diags->entries[i].offset != ADMI_DIAG_NO_PLACE)
            admi_json_place(text, diags->entries[i].offset, &diags->entries[i].line,
                            &diags->entries[i].column);
}

void admi_diags_hand_out(struct adm_diags *diags, adm_status status, struct adm_bytes text,
                         struct adm_diags **out)
{
    if (out == NULL || (status != ADM_OK && status != ADM_E_POLICY_INVALID)) {
        adm_diags_free(diags);
        return;
    }
    if (diags->count == 0) {
        adm_diags_free(diags);
        *out = NULL;
        return;
    }
    admi_diags_finish(diags, text);
    *out = diags;
}

uint64_t adm_diags_count(const struct adm_diags *diags)
{
    return diags == NULL ? 0 : diags->count;
}

adm_status adm_diags_get(const struct adm_diags *diags, uint64_t i, struct adm_diag *inout)
{
    if (i >= adm_diags_count(diags))
        return ADM_E_INVALID_ARGUMENT;
    adm_status status = admi_check_size(inout, sizeof *inout);
    if (status != ADM_OK)
        return status;
    const struct admi_diag_entry *entry = &diags->entries[i];
    struct adm_diag diag = { .size = sizeof diag,
                             .severity = entry->kind->severity,
                             .line = entry->line,
                             .column = entry->column,
                             .code = entry->kind->code,
                             .name = entry->kind->name,
                             .pointer = entry->pointer,
                             .message = entry->message,
                             .nearest = entry->nearest[0] == '\0' ? NULL : entry->nearest,
                             .file = diags->file };
    admi_export(inout, &diag, sizeof diag);
    return ADM_OK;
}
