/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of a given size and gates on them, for benchmarks and the tests of memory. */
#include "rig.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void text_add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int length;

    for (;;) {
        size_t left = text->room - text->length;

        va_start(arguments, format);
        length = vsnprintf(text->bytes != NULL ? text->bytes + text->length : NULL, left, format,
                           arguments);
        va_end(arguments);
        if (length < 0)
            die("a text cannot be formatted");
        if ((size_t)length < left)
            break;
        text->room = 2 * text->room + (size_t)length + 256;
        text->bytes = realloc(text->bytes, text->room);
        if (text->bytes == NULL)
            die("no memory");
    }
    text->length += (size_t)length;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){ NULL, 0, 0 };
}

/* A policy has at most 65 536 values, so the richer forms are rare among 10 000 rules. */
static void add_other(struct text *text, unsigned i, enum other_rules kind)
{
    unsigned turn = kind == OTHER_MIXED ? i % 16 : 0;

    text_add(text, "{\"id\":\"o%u\",\"type\":\"request_cap\",\"limit\":9,\"match\":", i);
    if (turn < 8)
        text_add(text, "{\"m\":\"v%u\"}},\n", i);
    else if (turn < 14)
        text_add(text, "{\"m\":\"v%u*\"}},\n", i);
    else if (turn < 15)
        text_add(text, "{\"t\":\"acme\",\"m\":\"v%u\"}},\n", i);
    else
        text_add(text, "{\"m\":\"w%u\",\"not\":{\"t\":\"acme\"}}},\n", i);
}

void text_policy(struct text *text, unsigned matching, unsigned others, enum other_rules kind)
{
    text_add(text, "{\"version\":\"bench\",\"rules\":[\n");
    for (unsigned i = 0; i < others; i++)
        add_other(text, i, kind);
    for (unsigned i = 0; i < matching; i++) {
        text_add(text, "{\"id\":\"r%u\",\"match\":{\"m\":\"llm\"},\"partition_by\":[\"%s\"],", i,
                 i % 4 < 2 ? "t" : "p");
        if (i % 2 == 0)
            text_add(text, "\"type\":\"token_bucket\",\"capacity\":1000000000000,"
                           "\"refill\":1000000000,\"per\":\"1s\"}");
        else
            text_add(text, "\"type\":\"concurrency\",\"limit\":1000000,\"lease_ttl\":\"1m\"}");
        text_add(text, i + 1 < matching ? ",\n" : "\n");
    }
    text_add(text, "]}\n");
}

static void add_descriptor(struct rig *rig, unsigned i, const char *key, const char *value)
{
    struct adm_descriptor *descriptor = &rig->descriptors[i];

    descriptor->key = adm_str(key);
    descriptor->value = adm_str(value);
    if (adm_gate_key(rig->gate, descriptor->key, &descriptor->key_id) != ADM_OK)
        die("the key %s cannot be interned", key);
}

static void open_gate(struct rig *rig, const char *policy, size_t length,
                      struct adm_gate_options *options)
{
    adm_status status =
        adm_policy_load((struct adm_bytes){ policy, length }, NULL, &options->policy, NULL);

    if (status == ADM_OK)
        status = adm_gate_new(options, &rig->gate);
    if (status != ADM_OK)
        die("no gate: %s", adm_status_text(status));
    adm_policy_unref(options->policy);
    add_descriptor(rig, 0, "t", "acme");
    add_descriptor(rig, 1, "p", "pool-a");
    add_descriptor(rig, 2, "m", "llm");
    rig->request.size = sizeof rig->request;
    rig->request.descriptors = rig->descriptors;
    rig->request.descriptor_count = 3;
    rig->request.cost = 1;
    rig->decision.size = sizeof rig->decision;
}

void rig_open(struct rig *rig, const char *policy, size_t length, struct adm_clock clock,
              struct adm_allocator allocator)
{
    struct adm_gate_options options = { .size = sizeof options };
    struct adm_plain_options plain = { .size = sizeof plain };

    *rig = (struct rig){ .allocator = allocator };
    options.clock = clock;
    options.allocator = allocator;
    if (allocator.allocate != NULL)
        plain.allocator = &rig->allocator;
    if (adm_plain_open(&plain, &options.backend) != ADM_OK)
        die("no backend");
    open_gate(rig, policy, length, &options);
}

void rig_open_on(struct rig *rig, const char *policy, size_t length, struct adm_backend backend)
{
    struct adm_gate_options options = { .size = sizeof options, .backend = backend };

    *rig = (struct rig){ .gate = NULL };
    open_gate(rig, policy, length, &options);
}

void rig_close(struct rig *rig)
{
    adm_gate_free(rig->gate);
    rig->gate = NULL;
}

void rig_pair(struct rig *rig)
{
    if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
        rig->decision.verdict != ADM_VERDICT_ALLOW)
        die("a request was not allowed: %s", adm_reason_name(rig->decision.reason));
    if (adm_release(rig->gate, rig->decision.lease, ADM_RESULT_OK, NULL) != ADM_OK)
        die("a release failed");
}
