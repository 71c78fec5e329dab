/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of lib/policy share: loading texts, looking at findings, a seeded generator. */
#ifndef ADMIT_TESTS_POLICY_SUPPORT_H
#define ADMIT_TESTS_POLICY_SUPPORT_H

#include <check.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <admit/admit.h>

/* A load and all that came of it. */
struct loaded {
    adm_status status;
    struct adm_policy *policy;
    struct adm_diags *diags;
};

/* From an exact copy on the heap, so that a sanitizer sees a byte read too many. */
static inline struct loaded load_bytes(const void *text, size_t length)
{
    struct loaded loaded = { ADM_OK, NULL, NULL };
    void *copy = malloc(length == 0 ? 1 : length);
    struct adm_policy_options options = { .size = sizeof options, .file = "policy.json" };
    ck_assert_ptr_nonnull(copy);
    if (length > 0)
        memcpy(copy, text, length);
    struct adm_bytes bytes = { length == 0 ? NULL : copy, length };
    loaded.status = adm_policy_load(bytes, &options, &loaded.policy, &loaded.diags);
    free(copy);
    return loaded;
}

/* The same of YAML. */
static inline struct loaded load_yaml(const void *text, size_t length)
{
    struct loaded loaded = { ADM_OK, NULL, NULL };
    void *copy = malloc(length == 0 ? 1 : length);
    struct adm_policy_options options = { .size = sizeof options,
                                          .flags = ADM_POLICY_YAML,
                                          .file = "policy.yaml" };
    ck_assert_ptr_nonnull(copy);
    if (length > 0)
        memcpy(copy, text, length);
    struct adm_bytes bytes = { length == 0 ? NULL : copy, length };
    loaded.status = adm_policy_load(bytes, &options, &loaded.policy, &loaded.diags);
    free(copy);
    return loaded;
}

static inline struct loaded load_text(const char *text)
{
    return load_bytes(text, strlen(text));
}

static inline void loaded_free(struct loaded *loaded)
{
    adm_policy_unref(loaded->policy);
    adm_diags_free(loaded->diags);
    *loaded = (struct loaded){ ADM_OK, NULL, NULL };
}

static inline struct adm_diag diag_at(const struct adm_diags *diags, uint64_t i)
{
    struct adm_diag diag = { .size = sizeof diag };
    ck_assert_int_eq(adm_diags_get(diags, i, &diag), ADM_OK);
    return diag;
}

/* Notes belong to the finding before them. */
static inline uint64_t count_findings(const struct adm_diags *diags)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < adm_diags_count(diags); i++)
        count += diag_at(diags, i).severity != ADM_SEVERITY_NOTE;
    return count;
}

static inline uint64_t count_named(const struct adm_diags *diags, const char *name)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < adm_diags_count(diags); i++)
        count += diag_at(diags, i).severity != ADM_SEVERITY_NOTE &&
                 strcmp(diag_at(diags, i).name, name) == 0;
    return count;
}

/* A policy that must be accepted. */
static inline struct adm_policy *must_load(const char *text)
{
    struct loaded loaded = load_text(text);
    if (loaded.status != ADM_OK && adm_diags_count(loaded.diags) > 0)
        ck_abort_msg("%s: %s", diag_at(loaded.diags, 0).pointer, diag_at(loaded.diags, 0).message);
    ck_assert_int_eq(loaded.status, ADM_OK);
    adm_diags_free(loaded.diags);
    return loaded.policy;
}

/* Must be refused with one finding only, of this name. */
static inline void must_refuse(const char *text, const char *name)
{
    struct loaded loaded = load_text(text);
    ck_assert_msg(loaded.status == ADM_E_POLICY_INVALID, "accepted: %s", text);
    ck_assert_ptr_null(loaded.policy);
    ck_assert_msg(count_findings(loaded.diags) == 1, "%s", text);
    ck_assert_str_eq(diag_at(loaded.diags, 0).name, name);
    loaded_free(&loaded);
}

/* The whole of a file, NUL-terminated as well; the caller frees it. */
static inline char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    size_t used = 0, capacity = 0;
    if (file == NULL)
        return NULL;
    for (;;) {
        if (capacity - used < 4096) {
            capacity = capacity * 2 + 8192;
            text = realloc(text, capacity + 1);
            ck_assert_ptr_nonnull(text);
        }
        size_t got = fread(text + used, 1, capacity - used, file);
        used += got;
        if (got == 0)
            break;
    }
    fclose(file);
    text[used] = '\0';
    *length = used;
    return text;
}

/* Text that grows; the caller frees it. */
struct text {
    char *bytes;
    size_t length, capacity;
};

__attribute__((format(printf, 2, 3))) static inline void text_add(struct text *text,
                                                                  const char *format, ...)
{
    va_list arguments;
    for (;;) {
        size_t left = text->capacity - text->length;
        va_start(arguments, format);
        int needed = vsnprintf(text->bytes == NULL ? NULL : text->bytes + text->length, left,
                               format, arguments);
        va_end(arguments);
        ck_assert_int_ge(needed, 0);
        if ((size_t)needed < left) {
            text->length += (size_t)needed;
            return;
        }
        text->capacity = text->capacity * 2 + (size_t)needed + 256;
        text->bytes = realloc(text->bytes, text->capacity);
        ck_assert_ptr_nonnull(text->bytes);
    }
}

/* splitmix64: the same numbers from the same seed everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static inline uint32_t below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)(next_random(state) % bound);
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
