/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 128 bits of a document's content: order of members, layout, escapes and trailing zeros of a
 * decimal do not count.
 */
#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "policy/hashing.h"
#include "policy/parts.h"

#define MEMBERS_MAX 32u /* no object of a policy that was accepted has more */

/* A chain: what was there, and the digest of one thing more. */
struct digest {
    uint8_t bytes[16];
};

static struct digest of_text(char tag, struct adm_bytes text)
{
    uint8_t tagged[17];
    struct digest digest;
    admi_hash128(text.data, text.length, admi_policy_secret, tagged + 1);
    tagged[0] = (uint8_t)tag; /* a string "1" is not the number 1 */
    admi_hash128(tagged, sizeof tagged, admi_policy_secret, digest.bytes);
    return digest;
}

static void extend(struct digest *chain, const struct digest *next)
{
    uint8_t both[32];
    admi_copy(both, chain->bytes, 16);
    admi_copy(both + 16, next->bytes, 16);
    admi_hash128(both, sizeof both, admi_policy_secret, chain->bytes);
}

static struct digest of_node(const struct admi_document *document, struct admi_node node);

static struct digest of_number(struct adm_bytes text)
{
    const char *bytes = text.data;
    if (memchr(bytes, '.', (size_t)text.length) != NULL) {
        while (bytes[text.length - 1] == '0')
            text.length--;
        if (bytes[text.length - 1] == '.')
            text.length--;
    }
    return of_text('n', text);
}

static int compare(struct adm_bytes a, struct adm_bytes b)
{
    uint64_t shorter = a.length < b.length ? a.length : b.length;
    int order = memcmp(a.data, b.data, (size_t)shorter);
    if (order != 0)
        return order;
    return a.length < b.length ? -1 : a.length > b.length;
}

static struct digest of_object(const struct admi_document *document, struct admi_node node)
{
    struct digest chain = of_text('o', (struct adm_bytes){ NULL, 0 });
    struct admi_node members[MEMBERS_MAX], member;
    uint32_t count = 0;
    for (bool ok = admi_node_first(node, &member); ok; ok = admi_node_next(document, &member)) {
        uint32_t j = count++;
        assert(j < MEMBERS_MAX);
        for (; j > 0 && compare(admi_node_name(members[j - 1]), admi_node_name(member)) > 0; j--)
            members[j] = members[j - 1];
        members[j] = member;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct digest name = of_text('k', admi_node_name(members[i])),
                      value = of_node(document, members[i]);
        extend(&chain, &name);
        extend(&chain, &value);
    }
    return chain;
}

static struct digest of_array(const struct admi_document *document, struct admi_node node)
{
    struct digest chain = of_text('a', (struct adm_bytes){ NULL, 0 });
    struct admi_node item;
    for (bool ok = admi_node_first(node, &item); ok; ok = admi_node_next(document, &item)) {
        struct digest value = of_node(document, item);
        extend(&chain, &value);
    }
    return chain;
}

/* Recursive: no deeper than the document, 32 levels. */
static struct digest of_node(const struct admi_document *document, struct admi_node node)
{
    switch (admi_node_token(document, node)->kind) {
    case ADMI_JSON_OBJECT:
        return of_object(document, node);
    case ADMI_JSON_ARRAY:
        return of_array(document, node);
    case ADMI_JSON_STRING:
        return of_text('s', admi_node_string(node));
    case ADMI_JSON_NUMBER:
        return of_number(admi_node_text(document, node));
    default:
        return of_text('w', admi_node_text(document, node));
    }
}

void admi_digest_document(const struct admi_document *document, uint8_t out[16])
{
    struct digest digest = of_node(document, admi_document_root(document));
    admi_copy(out, digest.bytes, 16);
}
