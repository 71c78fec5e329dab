/* SPDX-License-Identifier: Apache-2.0 */
/* Interned names of a gate: descriptor keys and declared units. */
#include "gate/names.h"

#include "base/memory.h"

adm_status admi_names_init(struct admi_names *names, const struct adm_allocator *allocator,
                           uint32_t limit)
{
    names->allocator = allocator;
    names->limit = limit;
    atomic_init(&names->count, 0);
    names->names = admi_allocate(allocator, limit, sizeof *names->names);
    if (names->names == NULL)
        return ADM_E_NOMEM;
    if (pthread_mutex_init(&names->grow, NULL) != 0) {
        admi_release(allocator, names->names, limit, sizeof *names->names);
        names->names = NULL;
        return ADM_E_OS;
    }
    return ADM_OK;
}

void admi_names_fini(struct admi_names *names)
{
    if (names->names == NULL)
        return;
    for (uint32_t i = 0; i < admi_names_count(names); i++) {
        void *bytes = (void *)(uintptr_t)names->names[i].data;

        admi_release(names->allocator, bytes, names->names[i].length, 1);
    }
    admi_release(names->allocator, names->names, names->limit, sizeof *names->names);
    names->names = NULL;
    (void)pthread_mutex_destroy(&names->grow);
}

uint32_t admi_names_count(const struct admi_names *names)
{
    return atomic_load_explicit(&names->count, memory_order_acquire);
}

struct adm_bytes admi_names_get(const struct admi_names *names, uint32_t i)
{
    return names->names[i];
}

uint32_t admi_names_find(const struct admi_names *names, struct adm_bytes name)
{
    uint32_t count = admi_names_count(names);

    for (uint32_t i = 0; i < count; i++)
        if (admi_bytes_equal(names->names[i], name))
            return i;
    return UINT32_MAX;
}

adm_status admi_names_intern(struct admi_names *names, struct adm_bytes name, uint32_t *out)
{
    adm_status status = ADM_OK;

    (void)pthread_mutex_lock(&names->grow);
    uint32_t found = admi_names_find(names, name);
    if (found == UINT32_MAX) {
        uint32_t count = admi_names_count(names);
        uint8_t *copy = NULL;

        if (count == names->limit)
            status = ADM_E_LIMIT;
        else if ((copy = admi_allocate(names->allocator, name.length, 1)) == NULL)
            status = ADM_E_NOMEM;
        if (status == ADM_OK) {
            admi_copy(copy, name.data, name.length);
            names->names[count].data = copy;
            names->names[count].length = name.length;
            /* Complete before it can be found without the lock. */
            atomic_store_explicit(&names->count, count + 1, memory_order_release);
            found = count;
        }
    }
    (void)pthread_mutex_unlock(&names->grow);
    if (status == ADM_OK)
        *out = found;
    return status;
}
