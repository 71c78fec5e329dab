/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sized structs at the border: the caller's is copied in once and then forgotten, a result is
 * written inside the size that the caller gave. Every such struct starts with uint32_t size,
 * uint32_t flags.
 */
#ifndef ADMI_ABI_H
#define ADMI_ABI_H

#include <stdint.h>

#include <admit/status.h>

#include "base/memory.h"

#define ADMI_STRUCT_BYTES_MAX                                                                      \
    4096u /* no sized struct may ever be larger: a size beyond it is garbage */

/* The number of bytes of a struct up to and with a member: for first_bytes, the struct's size in
 * its first release. */
#define ADMI_BYTES_WITH(type, member)                                                              \
    ((uint32_t)(offsetof(type, member) + sizeof(((type *)0)->member)))

/**
 * Copy a caller's struct. known_bytes: sizeof of the library's struct. first_bytes: size in the
 * first release that had it. A shorter struct gets zeros for what it lacks, the default of every
 * field; size stays the caller's. Errors ADM_E_STRUCT_SIZE size < first_bytes or > 4096;
 * ADM_E_CALLER_NEWER bytes beyond known_bytes are not all zero; ADM_E_INVALID_ARGUMENT from is
 * NULL. *to is written on success only. Flags and reserved fields are for the caller of this to
 * check, with admi_all_zero().
 */
adm_status admi_import(void *to, uint32_t known_bytes, uint32_t first_bytes, const void *from);

/* The same, quick when the caller's struct is the library's: known_bytes is a constant. */
static inline adm_status admi_import_same(void *to, uint32_t known_bytes, uint32_t first_bytes,
                                          const void *from)
{
    uint32_t size;

    if (from == NULL)
        return ADM_E_INVALID_ARGUMENT;
    admi_copy(&size, from, sizeof size);
    if (size != known_bytes)
        return admi_import(to, known_bytes, first_bytes, from);
    admi_copy(to, from, known_bytes);
    admi_copy(to, &size, sizeof size); /* what was checked */
    return ADM_OK;
}

/* The least that an out or inout struct must offer; reads nothing but size. Errors as
 * admi_import(), but never CALLER_NEWER. */
adm_status admi_check_size(const void *to, uint32_t first_bytes);

/* Write min(caller's size, known_bytes) bytes over the caller's struct, all but its size field. */
void admi_export(void *to, const void *from, uint32_t known_bytes);

/* 1 when every byte is zero, also of none. Without a way out, so that it looks at many at a time.
 */
static inline int admi_all_zero(const void *memory, uint64_t bytes)
{
    const unsigned char *at = memory;
    unsigned char any = 0;

    for (uint64_t i = 0; i < bytes; i++)
        any |= at[i];
    return any == 0;
}

#endif
