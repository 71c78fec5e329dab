/* SPDX-License-Identifier: Apache-2.0 */
/* Names, sentences and classes of the status codes. */
#include <admit/status.h>

struct entry {
    adm_status status;
    const char *name;
    const char *text;
};

#define ENTRY(code, text)                                                                          \
    {                                                                                              \
        code, #code, text                                                                          \
    }

static const struct entry entries[] = {
    ENTRY(ADM_OK, "done"),
    ENTRY(ADM_E_INVALID_ARGUMENT, "an argument is null, out of range or not a known value"),
    ENTRY(ADM_E_INVALID_COST, "the cost or an amount is out of range, or a unit is given twice"),
    ENTRY(ADM_E_INVALID_DESCRIPTORS,
          "there are too many descriptors, a key twice, or a length out of range"),
    ENTRY(ADM_E_INVALID_ATTEMPT,
          "the attempt id has an illegal length, or is known with other contents"),
    ENTRY(ADM_E_STRUCT_SIZE, "the size field of a struct is too small or absurdly large"),
    ENTRY(ADM_E_CALLER_NEWER,
          "a field or flag is set that this version of the library does not know"),
    ENTRY(ADM_E_REENTRANT, "the gate was called from inside a backend call or an event callback"),
    ENTRY(ADM_E_UNKNOWN_RULE, "the active policy has no rule of that id"),
    ENTRY(ADM_E_BUFFER_TOO_SMALL, "the buffer is too small; the needed length was written"),
    ENTRY(ADM_E_BUSY, "the object still has work in flight"),
    ENTRY(ADM_E_LIMIT, "a documented bound of this object is reached"),
    ENTRY(ADM_E_NOMEM, "there is not enough memory"),
    ENTRY(ADM_E_OS,
          "the operating system refused a clock, random bytes, a descriptor or a mapping"),
    ENTRY(ADM_E_POLICY_INVALID, "the policy document has errors; the diagnostics name them"),
    ENTRY(ADM_E_VERSION_CONFLICT, "a kept policy has this version and other content"),
    ENTRY(ADM_E_UNKNOWN_VERSION, "no kept policy has this version"),
    ENTRY(ADM_E_POLICY_NO_ROOM, "the backend has no room for the classes of the policy"),
    ENTRY(ADM_E_BACKEND_FULL, "the backend has no room left"),
    ENTRY(ADM_E_BACKEND_UNKNOWN, "the backend's answer was lost; it may or may not have happened"),
    ENTRY(ADM_E_BACKEND_UNAVAILABLE, "the backend is not available; nothing happened"),
    ENTRY(ADM_E_BACKEND_FORKED, "private state was used in a forked child"),
    ENTRY(ADM_E_BACKEND_RESULT, "the backend answered with something that is not an answer"),
    ENTRY(ADM_E_BACKEND_STALE, "the operation was built for another set of classes"),
    ENTRY(ADM_E_BACKEND_CANCELLED, "the operation was cancelled before anything happened"),
    ENTRY(ADM_E_BACKEND_ABI, "the backend's table of operations cannot be used"),
    ENTRY(ADM_E_INTERNAL, "a fault inside the library; please report it"),
};

#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

/* One for each enumerator of status.h, which the unit test reads and compares by name and number.
 */
_Static_assert(ENTRY_COUNT == 27, "every status code has one name and one sentence");

static const struct entry *find(adm_status status)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (entries[i].status == status)
            return &entries[i];
    }
    return NULL;
}

uint32_t adm_status_class(adm_status status)
{
    if (status == ADM_OK)
        return ADM_STATUS_CLASS_OK;
    if (status <= -1 && status >= -99)
        return ADM_STATUS_CLASS_CALLER;
    if (status <= -100 && status >= -199)
        return ADM_STATUS_CLASS_ENVIRONMENT;
    if (status <= -200 && status >= -299)
        return ADM_STATUS_CLASS_POLICY;
    if (status <= -300 && status >= -399)
        return ADM_STATUS_CLASS_BACKEND;
    return ADM_STATUS_CLASS_INTERNAL; /* also the positive ones, which nobody may return */
}

const char *adm_status_name(adm_status status)
{
    const struct entry *entry = find(status);
    return entry != NULL ? entry->name : "ADM_E_?";
}

const char *adm_status_text(adm_status status)
{
    const struct entry *entry = find(status);
    return entry != NULL ? entry->text
                         : "a status code that this version of the library does not know";
}
