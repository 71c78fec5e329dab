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
    if (diags->quiet)
        return NULL;
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
    entry->place.offset = offset;
    entry->place.length = 1;
    return entry;
}

/* Line and column; and no underline goes beyond its line. */
static void find_place(struct admi_diag_place *place, struct adm_bytes text)
{
    const char *bytes = text.data;
    if (place->offset == ADMI_DIAG_NO_PLACE) {
        place->length = 0;
        return;
    }
    admi_json_place(text, place->offset, &place->line, &place->column);
    uint32_t length = 0;
    while (length < place->length && place->offset + (uint64_t)length < text.length &&
           bytes[place->offset + length] != '\n' && bytes[place->offset + length] != '\r')
        length++;
    place->length = length == 0 ? 1 : length;
}

void admi_diags_finish(struct adm_diags *diags, struct adm_bytes text)
{
    for (uint32_t i = 1; i < diags->count;
         i++) /* stable: findings of one place stay as they were found */
        for (uint32_t j = i;
             j > 0 && diags->entries[j - 1].place.offset > diags->entries[j].place.offset; j--) {
            struct admi_diag_entry held = diags->entries[j];
            diags->entries[j] = diags->entries[j - 1];
            diags->entries[j - 1] = held;
        }
    for (uint32_t i = 0; i < diags->count; i++) {
        find_place(&diags->entries[i].place, text);
        if (diags->entries[i].has_note)
            find_place(&diags->entries[i].note_place, text);
    }
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
    uint64_t count = 0;
    for (uint32_t i = 0; diags != NULL && i < diags->count; i++)
        count += diags->entries[i].has_note ? 2 : 1;
    return count;
}

/* The i-th finding is an entry, or the note behind it. */
static const struct admi_diag_entry *find_entry(const struct adm_diags *diags, uint64_t i,
                                                bool *out_note)
{
    const struct admi_diag_entry *entry = diags->entries;
    for (;; entry++) {
        uint64_t here = entry->has_note ? 2 : 1;
        if (i < here)
            break;
        i -= here;
    }
    *out_note = i == 1;
    return entry;
}

adm_status adm_diags_get(const struct adm_diags *diags, uint64_t i, struct adm_diag *inout)
{
    if (i >= adm_diags_count(diags))
        return ADM_E_INVALID_ARGUMENT;
    adm_status status = admi_check_size(inout, sizeof *inout);
    if (status != ADM_OK)
        return status;
    bool note;
    const struct admi_diag_entry *entry = find_entry(diags, i, &note);
    const struct admi_diag_place *place = note ? &entry->note_place : &entry->place;
    struct adm_diag diag = { .size = sizeof diag,
                             .severity = note ? ADM_SEVERITY_NOTE : entry->kind->severity,
                             .line = place->line,
                             .column = place->column,
                             .length = place->length,
                             .code = entry->kind->code,
                             .name = entry->kind->name,
                             .pointer = entry->pointer,
                             .message = note ? entry->note : entry->message,
                             .nearest = note || entry->nearest[0] == '\0' ? NULL : entry->nearest,
                             .file = diags->file };
    admi_export(inout, &diag, sizeof diag);
    return ADM_OK;
}
