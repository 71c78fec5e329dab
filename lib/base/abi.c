/* SPDX-License-Identifier: Apache-2.0 */
/* Sized structs at the border: size, unknown tail, defaults. */
#include "base/abi.h"

#include "base/memory.h"

/* Through a copy: the caller's memory may be misaligned for a binding's sake, and is read once. */
static uint32_t size_of(const void *sized)
{
    uint32_t size;
    admi_copy(&size, sized, sizeof size);
    return size;
}

adm_status admi_check_size(const void *to, uint32_t first_bytes)
{
    if (to == NULL)
        return ADM_E_INVALID_ARGUMENT;
    uint32_t size = size_of(to);
    return size < first_bytes || size > ADMI_STRUCT_BYTES_MAX ? ADM_E_STRUCT_SIZE : ADM_OK;
}

adm_status admi_import(void *to, uint32_t known_bytes, uint32_t first_bytes, const void *from)
{
    if (from == NULL)
        return ADM_E_INVALID_ARGUMENT;
    uint32_t size = size_of(from);
    if (size < first_bytes || size > ADMI_STRUCT_BYTES_MAX)
        return ADM_E_STRUCT_SIZE;
    uint32_t common = size < known_bytes ? size : known_bytes;
    if (!admi_all_zero((const char *)from + common, size - common))
        return ADM_E_CALLER_NEWER;
    admi_copy(to, from, common);
    admi_clear((char *)to + common, known_bytes - common);
    admi_copy(to, &size,
              sizeof size); /* what was checked, should another thread have changed it meanwhile */
    return ADM_OK;
}

void admi_export(void *to, const void *from, uint32_t known_bytes)
{
    uint32_t size = size_of(to);
    uint32_t common = size < known_bytes ? size : known_bytes;
    if (common > sizeof size)
        admi_copy((char *)to + sizeof size, (const char *)from + sizeof size, common - sizeof size);
}
