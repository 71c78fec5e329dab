/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What reading a policy of the largest size may cost: at most 16 MiB of memory beyond the text,
 * whatever is in the text, and all of it comes back. Prints TAP.
 */
#include "malloc_count.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>

#define DOCUMENT_BYTES ((size_t)1 << 20)
#define PEAK_MAX       ((int64_t)16 << 20)

static unsigned number, failed;

static void ok(int good, const char *what, const char *detail)
{
    number++;
    failed += good ? 0 : 1;
    printf("%s %u - %s: %s\n", good ? "ok" : "not ok", number, what, detail);
}

/* Load it, look at the peak, give everything back. want: 1 valid, 0 not. */
static void measure(const char *what, const struct text *text, int want)
{
    struct adm_policy *policy = NULL;
    struct adm_diags *findings = NULL;
    char detail[120];
    int64_t before = malloc_count_now().bytes;

    malloc_count_reset_peak();
    adm_status status =
        adm_policy_load((struct adm_bytes){ text->bytes, text->length }, NULL, &policy, &findings);
    int64_t peak = malloc_count_now().peak - before;
    int64_t kept = malloc_count_now().bytes - before;

    adm_policy_unref(policy);
    adm_diags_free(findings);
    int64_t left = malloc_count_now().bytes - before;

    snprintf(detail, sizeof detail, "%zu bytes, peak %.2f MiB, kept %.2f MiB", text->length,
             (double)peak / (1 << 20), (double)kept / (1 << 20));
    ok(status == (want ? ADM_OK : ADM_E_POLICY_INVALID), what, want ? "is accepted" : "is refused");
    ok(peak > 0 && peak <= PEAK_MAX, what, detail);
    snprintf(detail, sizeof detail, "%lld bytes are not given back", (long long)left);
    ok(left == 0, what, detail);
}

static void pad(struct text *text, size_t to)
{
    while (text->length + 2 < to)
        text_add(text, "%*s", (int)(to - text->length > 4096 ? 4096 : to - text->length - 1), "");
}

static void many_rules(void)
{
    struct text text = { NULL, 0, 0 };

    text_policy(&text, 8, 10000, OTHER_MIXED);
    if (text.length > DOCUMENT_BYTES)
        die("the policy is too long: %zu", text.length);
    pad(&text, DOCUMENT_BYTES);
    measure("10 008 rules", &text, 1);
    text_free(&text);
}

static void many_values(void)
{
    struct text text = { NULL, 0, 0 };

    text_add(&text, "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\","
                    "\"limit\":1,\"match\":{\"m\":[\"v0\"");
    for (unsigned i = 1; i < 60000; i++)
        text_add(&text, ",\"value-%u\"", i);
    text_add(&text, "]}}]}");
    pad(&text, DOCUMENT_BYTES);
    measure("60 000 values of one match", &text, 1);
    text_free(&text);
}

static void long_text(void)
{
    struct text text = { NULL, 0, 0 };

    text_add(&text, "{\"version\":\"v\",\"rules\":[{\"id\":\"r\",\"type\":\"request_cap\","
                    "\"limit\":1}],\"description\":\"");
    while (text.length + 64 < DOCUMENT_BYTES)
        text_add(&text, "\\u00e9\\n");
    text_add(&text, "\"}");
    measure("one long text of escapes", &text, 1);
    text_free(&text);
}

static void mostly_wrong(void)
{
    struct text text = { NULL, 0, 0 };

    text_add(&text, "{\"version\":\"v\",\"rules\":[");
    for (unsigned i = 0; i < 16000; i++)
        text_add(&text, "%s{\"id\":\"r%u\",\"tpye\":\"quota\",\"limit\":-1,\"limit\":1e9}",
                 i > 0 ? "," : "", i);
    text_add(&text, "]}");
    measure("16 000 rules, each wrong in four ways", &text, 0);
    text_free(&text);
}

static void broken_at_the_end(void)
{
    struct text text = { NULL, 0, 0 };

    text_policy(&text, 8, 10000, OTHER_EXACT);
    text.bytes[text.length - 3] = ' '; /* the bracket that closes the rules */
    measure("broken syntax in the last line", &text, 0);
    text_free(&text);
}

static void nothing_but_brackets(void)
{
    struct text text = { NULL, 0, 0 };

    text_add(&text, "[");
    while (text.length + 4 < DOCUMENT_BYTES)
        text_add(&text, "[],");
    text_add(&text, "[]]");
    measure("a million brackets", &text, 0);
    text_free(&text);
}

static void too_long(void)
{
    struct text text = { NULL, 0, 0 };

    text_policy(&text, 8, 1000, OTHER_EXACT);
    while (text.length <= DOCUMENT_BYTES)
        text_add(&text, " ");
    measure("one byte more than 1 MiB", &text, 0);
    text_free(&text);
}

int main(void)
{
    many_rules();
    many_values();
    long_text();
    mostly_wrong();
    broken_at_the_end();
    nothing_but_brackets();
    too_long();
    printf("1..%u\n", number);
    return failed != 0;
}
