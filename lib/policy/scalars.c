/* SPDX-License-Identifier: Apache-2.0 */
/* Reading scalars by their kind. */
#include "policy/exact.h"
#include "policy/fields.h"

#include "base/memory.h"

static bool has_kind(const struct admi_document *document, struct admi_node node,
                     enum admi_json_kind kind, const char *expected)
{
    if (admi_node_flawed(document, node))
        return false; /* reported by the lexer */
    if (admi_node_is(document, node, kind))
        return true;
    admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token, expected);
    return false;
}

static enum admi_diag exact_kind(enum admi_exact result)
{
    switch (result) {
    case ADMI_EXACT_EXPONENT:
        return ADMI_DIAG_EXPONENT;
    case ADMI_EXACT_POINT:
        return ADMI_DIAG_WHOLE_NUMBER;
    case ADMI_EXACT_OK:
    case ADMI_EXACT_NEGATIVE:
    case ADMI_EXACT_RANGE:
    case ADMI_EXACT_DIGITS:
    case ADMI_EXACT_MALFORMED:
        break;
    }
    return ADMI_DIAG_RANGE;
}

bool admi_read_whole(const struct admi_document *document, struct admi_node node, uint64_t least,
                     uint64_t most, uint64_t *out)
{
    char expected[96];
    struct admi_words words = admi_words_start(expected, sizeof expected);
    admi_words_add(&words, "a whole number from ");
    admi_words_add_number(&words, least);
    admi_words_add(&words, " to ");
    admi_words_add_number(&words, most);
    if (!has_kind(document, node, ADMI_JSON_NUMBER, expected))
        return false;
    enum admi_exact result = admi_exact_whole(admi_node_text(document, node), least, most, out);
    if (result == ADMI_EXACT_OK)
        return true;
    admi_report_expected(&document->source, exact_kind(result), node.token, expected);
    return false;
}

bool admi_read_decimal(const struct admi_document *document, struct admi_node node,
                       struct admi_decimal *out)
{
    static const char expected[] =
        "a plain decimal from 0 to 1000000000000 with at most 18 digits behind the point";
    if (!has_kind(document, node, ADMI_JSON_NUMBER, expected))
        return false;
    enum admi_exact result = admi_exact_decimal(admi_node_text(document, node), out);
    if (result == ADMI_EXACT_OK)
        return true;
    admi_report_expected(&document->source,
                         result == ADMI_EXACT_EXPONENT ? ADMI_DIAG_EXPONENT : ADMI_DIAG_DECIMAL,
                         node.token, expected);
    return false;
}

bool admi_read_fraction(const struct admi_document *document, struct admi_node node,
                        struct admi_decimal *out)
{
    struct admi_decimal value;
    if (!admi_read_decimal(document, node, &value))
        return false;
    bool zero = value.whole == 0 && value.fraction_e18 == 0;
    if (zero || value.whole > 1 || (value.whole == 1 && value.fraction_e18 > 0)) {
        admi_report_expected(&document->source, ADMI_DIAG_FRACTION, node.token,
                             "a decimal above 0 and at most 1");
        return false;
    }
    *out = value;
    return true;
}

bool admi_read_duration(const struct admi_document *document, struct admi_node node,
                        uint64_t *out_ns)
{
    static const char expected[] =
        "a duration from \"1ms\" to \"366d\": a whole number and ms, s, m, h or d";
    if (!has_kind(document, node, ADMI_JSON_STRING, expected))
        return false;
    if (admi_exact_duration(admi_node_string(node), out_ns) == ADMI_EXACT_OK)
        return true;
    admi_report_expected(&document->source, ADMI_DIAG_DURATION, node.token, expected);
    return false;
}

bool admi_read_boolean(const struct admi_document *document, struct admi_node node, bool *out)
{
    if (admi_node_flawed(document, node))
        return false; /* reported by the lexer */
    if (!admi_node_is(document, node, ADMI_JSON_TRUE) &&
        !admi_node_is(document, node, ADMI_JSON_FALSE)) {
        admi_report_expected(&document->source, ADMI_DIAG_TYPE, node.token, "true or false");
        return false;
    }
    *out = admi_node_is(document, node, ADMI_JSON_TRUE);
    return true;
}

struct adm_bytes admi_nearest_word(const char *const *words, struct adm_bytes written)
{
    struct adm_bytes best = { NULL, 0 };
    uint32_t errors = 3;
    for (uint32_t i = 0; words[i] != NULL; i++) {
        uint32_t distance = admi_words_distance(admi_words_of(words[i]), written);
        if (distance < errors) {
            errors = distance;
            best = admi_words_of(words[i]);
        }
    }
    return best;
}

static void not_a_word(const struct admi_document *document, struct admi_node node,
                       const char *const *words, enum admi_diag kind)
{
    struct admi_diag_entry *entry = admi_report_value(&document->source, kind, node.token);
    if (entry == NULL)
        return;
    struct admi_words message = admi_report_words(entry);
    for (uint32_t i = 0; words[i] != NULL; i++) {
        admi_words_add(&message, i == 0                 ? "expected \""
                                 : words[i + 1] == NULL ? "\" or \""
                                                        : "\", \"");
        admi_words_add(&message, words[i]);
    }
    admi_words_add(&message, "\"");
    admi_report_found(&document->source, &message, node.token);
    struct adm_bytes nearest = admi_nearest_word(words, admi_node_string(node));
    if (nearest.length > 0)
        admi_report_nearest(entry, nearest);
}

bool admi_read_word(const struct admi_document *document, struct admi_node node,
                    const char *const *words, enum admi_diag kind, uint32_t *out)
{
    if (!has_kind(document, node, ADMI_JSON_STRING, "a word in double quotes"))
        return false;
    for (uint32_t i = 0; words[i] != NULL; i++)
        if (admi_bytes_equal(admi_words_of(words[i]), admi_node_string(node))) {
            *out = i;
            return true;
        }
    not_a_word(document, node, words, kind);
    return false;
}

bool admi_read_text(const struct admi_document *document, struct admi_node node,
                    struct adm_bytes *out)
{
    if (!has_kind(document, node, ADMI_JSON_STRING, "a string"))
        return false;
    *out = admi_node_string(node);
    return true;
}

static bool read_bounded(const struct admi_document *document, struct admi_node node, uint64_t most,
                         enum admi_diag kind, const char *expected, struct adm_bytes *out)
{
    if (!has_kind(document, node, ADMI_JSON_STRING, expected))
        return false;
    struct adm_bytes text = admi_node_string(node);
    if (text.length == 0 || text.length > most) {
        admi_report_expected(&document->source, kind, node.token, expected);
        return false;
    }
    *out = text;
    return true;
}

bool admi_read_key(const struct admi_document *document, struct admi_node node,
                   struct adm_bytes *out)
{
    return read_bounded(document, node, ADM_MAX_KEY_BYTES, ADMI_DIAG_KEY,
                        "a descriptor key of 1 to 64 bytes", out);
}

bool admi_read_value(const struct admi_document *document, struct admi_node node,
                     struct adm_bytes *out)
{
    return read_bounded(document, node, ADM_MAX_VALUE_BYTES, ADMI_DIAG_VALUE,
                        "a string of 1 to 256 bytes", out);
}

static bool is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* 1 to 64 of [A-Za-z0-9._-]; plain_first: the first one not of ._- */
static bool is_name(struct adm_bytes text, bool plain_first)
{
    const uint8_t *bytes = text.data;
    if (text.length == 0 || text.length > 64 || (plain_first && !is_alphanumeric(bytes[0])))
        return false;
    for (uint64_t i = 0; i < text.length; i++)
        if (!is_alphanumeric(bytes[i]) && bytes[i] != '.' && bytes[i] != '_' && bytes[i] != '-')
            return false;
    return true;
}

bool admi_read_id(const struct admi_document *document, struct admi_node node,
                  struct adm_bytes *out)
{
    static const char expected[] = "an id: 1 to 64 of A-Z a-z 0-9 . _ -, first a letter or digit";
    if (!has_kind(document, node, ADMI_JSON_STRING, expected))
        return false;
    if (!is_name(admi_node_string(node), true)) {
        admi_report_expected(&document->source, ADMI_DIAG_ID, node.token, expected);
        return false;
    }
    *out = admi_node_string(node);
    return true;
}

bool admi_read_version(const struct admi_document *document, struct admi_node node,
                       struct adm_bytes *out)
{
    static const char expected[] = "a version: 1 to 64 of A-Z a-z 0-9 . _ -";
    if (!has_kind(document, node, ADMI_JSON_STRING, expected))
        return false;
    if (!is_name(admi_node_string(node), false)) {
        admi_report_expected(&document->source, ADMI_DIAG_VERSION, node.token, expected);
        return false;
    }
    *out = admi_node_string(node);
    return true;
}

bool admi_read_array(const struct admi_document *document, struct admi_node node, uint64_t least,
                     uint64_t most)
{
    if (!has_kind(document, node, ADMI_JSON_ARRAY, "an array"))
        return false;
    uint32_t count = admi_node_count(node);
    if (count < least)
        admi_report_message(&document->source, ADMI_DIAG_COUNT, node.token,
                            "expected at least one item");
    else if (count > most)
        admi_report_at_most(&document->source, ADMI_DIAG_COUNT, node.token, most, "items");
    return count >= least && count <= most;
}

bool admi_check_name(const struct admi_document *document, struct admi_node node, uint64_t most,
                     enum admi_diag kind)
{
    if ((admi_node_token(document, node)->flaws & ADMI_JSON_FLAWED_NAME) != 0)
        return false;
    struct adm_bytes name = admi_node_name(node);
    if (name.length > 0 && name.length <= most)
        return true;
    struct admi_diag_entry *entry = admi_report_name(&document->source, kind, node.token);
    if (entry != NULL) {
        struct admi_words words = admi_report_words(entry);
        admi_words_add(&words, "expected a key of 1 to ");
        admi_words_add_number(&words, most);
        admi_words_add(&words, " bytes, found one of ");
        admi_words_add_number(&words, name.length);
    }
    return false;
}
