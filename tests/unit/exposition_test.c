/* SPDX-License-Identifier: Apache-2.0 */
/* lib/observe: the text. Its length, its grammar, and every value inside it. */
#include "exposition.h"

#include <locale.h>
#include <ctype.h>
#include <stdio.h>

#include "observe/writer.h"

/* ---- the writer ---- */

static const char *written(struct admi_writer *writer)
{
    writer->buffer[writer->length] = 0;
    return writer->buffer;
}

START_TEST(numbers_and_decimals)
{
    static const struct {
        uint64_t number;
        uint32_t digits; /* 0: as a whole number */
        const char *text;
    } rows[] = {
        { 0, 0, "0" },
        { 9, 0, "9" },
        { 10, 0, "10" },
        { UINT64_MAX, 0, "18446744073709551615" },
        { 0, 9, "0.0" },
        { 1, 9, "0.000000001" },
        { 128, 9, "0.000000128" },
        { 1000000000, 9, "1.0" },
        { 1500000000, 9, "1.5" },
        { 1, 3, "0.001" },
        { 4294967296, 3, "4294967.296" },
        { 100, 3, "0.1" },
        { UINT64_MAX, 9, "18446744073.709551615" },
        { UINT64_MAX, 3, "18446744073709551.615" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[64];
        struct admi_writer writer = { buffer, sizeof buffer - 1, 0 };
        if (rows[i].digits == 0)
            admi_write_number(&writer, rows[i].number);
        else
            admi_write_decimal(&writer, rows[i].number, rows[i].digits);
        ck_assert_str_eq(written(&writer), rows[i].text);
    }
}
END_TEST

#define FFFD "\xEF\xBF\xBD"

START_TEST(label_values_are_escaped_and_well_formed)
{
    static const struct {
        const char *value;
        uint64_t length;
        const char *text;
    } rows[] = {
        { "", 0, "" },
        { "plain", 5, "plain" },
        { "\"", 1, "\\\"" },
        { "\\", 1, "\\\\" },
        { "\n", 1, "\\n" },
        { "\\n", 2, "\\\\n" },
        { "\r\t\x7F", 3, "\r\t\x7F" },
        { "\0", 1, FFFD },
        { "\x80", 1, FFFD },           /* a continuation alone */
        { "\xC3", 1, FFFD },           /* cut off */
        { "\xC3\xA9", 2, "\xC3\xA9" }, /* the least of two bytes, and so on */
        { "\xC0\x80", 2, FFFD FFFD },  /* too long a form */
        { "\xC1\xBF", 2, FFFD FFFD },
        { "\xC2\x80", 2, "\xC2\x80" },
        { "\xE0\x9F\xBF", 3, FFFD FFFD FFFD },
        { "\xE0\xA0\x80", 3, "\xE0\xA0\x80" },
        { "\xED\x9F\xBF", 3, "\xED\x9F\xBF" },
        { "\xED\xA0\x80", 3, FFFD FFFD FFFD }, /* a surrogate */
        { "\xEE\x80\x80", 3, "\xEE\x80\x80" },
        { "\xEF\xBF\xBF", 3, "\xEF\xBF\xBF" },
        { "\xF0\x8F\xBF\xBF", 4, FFFD FFFD FFFD FFFD },
        { "\xF0\x90\x80\x80", 4, "\xF0\x90\x80\x80" },
        { "\xF4\x8F\xBF\xBF", 4, "\xF4\x8F\xBF\xBF" },
        { "\xF4\x90\x80\x80", 4, FFFD FFFD FFFD FFFD }, /* above U+10FFFF */
        { "\xF5\x80\x80\x80", 4, FFFD FFFD FFFD FFFD },
        { "\xF0\x9F\x98", 3, FFFD FFFD FFFD }, /* cut off by the end of the value … */
        { "\xE2\x82\"", 3, FFFD FFFD "\\\"" }, /* … or by another character, which stays */
        { "a\xFFz", 3, "a" FFFD "z" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[64];
        struct admi_writer writer = { buffer, sizeof buffer - 1, 0 };
        /* In memory of exactly its size, so that the sanitizer sees a byte too far. */
        char *value = malloc(rows[i].length + 1);
        ck_assert_ptr_nonnull(value);
        memmove(value + 1, rows[i].value, (size_t)rows[i].length);
        admi_write_label_value(&writer, (struct adm_bytes){ value + 1, rows[i].length });
        ck_assert_str_eq(written(&writer), rows[i].text);
        free(value);
    }
}
END_TEST

START_TEST(writer_never_leaves_its_buffer)
{
    static const char whole[] = "abc0.00712\\nz";
    const uint64_t length = sizeof whole - 1;
    for (uint64_t capacity = 0; capacity <= length + 1; capacity++) {
        char buffer[32];
        memset(buffer, '#', sizeof buffer);
        struct admi_writer writer = { capacity == 0 ? NULL : buffer, capacity, 0 };
        admi_write_text(&writer, "abc");
        admi_write_decimal(&writer, 7, 3);
        admi_write_number(&writer, 12);
        admi_write_label_value(&writer, adm_str("\n"));
        admi_write_bytes(&writer, "z", 1);
        ck_assert_uint_eq(writer.length, length);
        if (capacity >= length)
            ck_assert_int_eq(memcmp(buffer, whole, (size_t)length), 0);
        for (uint64_t i = capacity < length ? capacity : length; i < sizeof buffer; i++)
            ck_assert_int_eq(buffer[i], '#');
        for (uint64_t i = 0; i < capacity && i < length;
             i++) /* what is there is a piece of the text, in its place */
            ck_assert(buffer[i] == '#' || buffer[i] == whole[i]);
    }
}
END_TEST

/* ---- a gate with something of everything ---- */

static struct admi_observe *observe;

static void set_up(void)
{
    const struct adm_bytes ids[3] = { adm_str("a"), adm_str("b.c-d"), adm_str("a") };
    const struct adm_bytes units[3] = { adm_str("cost"), adm_str("requests"), adm_str("gpu_ms") };
    const struct adm_bytes names[2] = { adm_str("model"), adm_str("service") };
    static const char *const models[] = { "plain", "\"",  "\\",      "\n",   "}", "{",
                                          ",",     "=\"", "# EOF\n", "\xFF", "" };
    uint32_t slots[3], labels_id = 0;
    ck_assert_int_eq(admi_observe_new(NULL, &observe), ADM_OK);
    ck_assert_int_eq(admi_observe_rules(observe, ids, units, 3, slots), ADM_OK);
    ck_assert_int_eq(admi_observe_labels(observe, names, 2, &labels_id), ADM_OK);
    struct admi_counters *counters = admi_observe_local(observe);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        const struct adm_bytes values[2] = { adm_str(models[i]), adm_str("chat") };
        for (uint32_t reason = 0; reason < ADM_REASON_COUNT; reason++)
            admi_count_decision(counters, admi_observe_series(observe, counters, labels_id, values),
                                reason, i);
    }
    for (uint64_t value = 0; value < 5000000; value = value * 3 / 2 + 1) {
        for (uint32_t i = 0; i < ADMI_HISTOGRAM_COUNT; i++)
            admi_count_histogram(counters, (enum admi_histogram)i, value << (8 * i));
    }
    admi_count_rule(counters, slots[1], ADMI_RULE_SHADOW_UNKNOWN, 1);
    admi_count_outcome(counters, ADM_OP_RENEW, ADM_OUTCOME_UNKNOWN);
}

static void tear_down(void)
{
    admi_observe_free(observe);
}

/* ---- the length ---- */

START_TEST(length_is_right_and_a_small_buffer_stays_as_it_was)
{
    uint64_t length = 0;
    ck_assert_int_eq(admi_observe_expose(observe, &no_gauges, NULL, 0, &length), ADM_OK);
    ck_assert_uint_gt(length, 1000);
    const uint64_t sizes[] = { 1, 2, 100, length / 2, length - 1, length, length + 1, 2 * length };
    char *buffer = malloc((size_t)(2 * length + 16));
    ck_assert_ptr_nonnull(buffer);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t needed = 0;
        memset(buffer, '#', (size_t)(2 * length + 16));
        adm_status status = admi_observe_expose(observe, &no_gauges, buffer, sizes[i], &needed);
        ck_assert_int_eq(status, sizes[i] < length ? ADM_E_BUFFER_TOO_SMALL : ADM_OK);
        ck_assert_uint_eq(needed, length);
        uint64_t used = status == ADM_OK ? length : 0;
        uint64_t changed = 0;
        for (uint64_t at = used; at < 2 * length + 16; at++)
            changed += buffer[at] != '#';
        ck_assert_uint_eq(changed, 0);
        if (used > 0)
            ck_assert_int_eq(memcmp(buffer + length - 7, "\n# EOF\n", 7), 0);
    }
    free(buffer);
}
END_TEST

START_TEST(bad_arguments)
{
    uint64_t length = 77;
    char buffer[16];
    ck_assert_int_eq(admi_observe_expose(observe, &no_gauges, NULL, 5, &length),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(admi_observe_expose(observe, &no_gauges, buffer, sizeof buffer, NULL),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_uint_eq(length, 77);
}
END_TEST

/* ---- the grammar, line by line ---- */

struct family {
    char name[64];
    char type[16];
    char unit[16];
    int helped;
    uint64_t samples;
};

/* A family's lines come in the order TYPE, UNIT, HELP, samples; it never comes again. */
static void read_comment(const char *line, struct family *families, uint32_t *count)
{
    char word[8], name[64], rest[200];
    ck_assert_msg(sscanf(line, "# %7s %63s %199[^\n]", word, name, rest) == 3, "%s", line);
    if (strcmp(word, "TYPE") == 0) {
        for (uint32_t i = 0; i < *count; i++)
            ck_assert_str_ne(families[i].name, name);
        struct family *family = &families[(*count)++];
        ck_assert_uint_lt(*count, 64);
        snprintf(family->name, sizeof family->name, "%s", name);
        snprintf(family->type, sizeof family->type, "%.15s", rest);
        return;
    }
    ck_assert_uint_gt(*count, 0);
    struct family *family = &families[*count - 1];
    ck_assert_str_eq(family->name, name);
    ck_assert_uint_eq(family->samples, 0);
    ck_assert(!family->helped);
    if (strcmp(word, "UNIT") == 0)
        snprintf(family->unit, sizeof family->unit, "%.15s", rest);
    else
        family->helped = strcmp(word, "HELP") == 0;
}

/* {name="value",…}: returns what follows. */
static const char *skip_labels(const char *at)
{
    ck_assert_int_eq(*at, '{');
    do {
        at++;
        ck_assert(isalpha((unsigned char)*at) || *at == '_');
        while (isalnum((unsigned char)*at) || *at == '_')
            at++;
        ck_assert_int_eq(strncmp(at, "=\"", 2), 0);
        for (at += 2; *at != '"'; at++) {
            if (*at == 0)
                ck_abort_msg("a quote is missing");
            if (*at == '\\') {
                at++;
                ck_assert(*at == '\\' || *at == '"' || *at == 'n');
            }
        }
        at++;
    } while (*at == ',');
    ck_assert_int_eq(*at, '}');
    return at + 1;
}

static const char *const suffixes_of_type[][4] = {
    { "counter", "_total", NULL, NULL },
    { "gauge", "", NULL, NULL },
    { "info", "_info", NULL, NULL },
    { "histogram", "_bucket", "_count", "_sum" },
};

static void read_sample(const char *line, struct family *family)
{
    const char *at = line;
    while (isalnum((unsigned char)*at) || *at == '_')
        at++;
    size_t base = strlen(family->name);
    ck_assert_msg(strncmp(line, family->name, base) == 0, "%s", line);
    int suffix_fits = 0;
    for (size_t t = 0; t < sizeof suffixes_of_type / sizeof suffixes_of_type[0]; t++) {
        for (size_t s = 1; s < 4 && strcmp(suffixes_of_type[t][0], family->type) == 0; s++) {
            const char *suffix = suffixes_of_type[t][s];
            suffix_fits += suffix != NULL && strlen(suffix) == (size_t)(at - line) - base &&
                           strncmp(line + base, suffix, strlen(suffix)) == 0;
        }
    }
    ck_assert_msg(suffix_fits == 1, "%s in a %s", line, family->type);
    ck_assert(family->helped);
    if (*at == '{')
        at = skip_labels(at);
    ck_assert_int_eq(*at, ' ');
    at++;
    if (strcmp(at, "+Inf") != 0) {
        ck_assert(isdigit((unsigned char)*at));
        at += strspn(at, "0123456789");
        at += *at == '.' ? 1 + strspn(at + 1, "0123456789") : 0;
        ck_assert_msg(*at == 0, "%s", line);
    }
    family->samples++;
}

/* Lines of the text, without their newline; the array to be freed after the text. */
static char **split(char *text, uint32_t *out_count)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    char **lines = calloc(count, sizeof *lines);
    ck_assert_ptr_nonnull(lines);
    for (uint32_t i = 0; i < count; i++) {
        lines[i] = text;
        text = strchr(text, '\n');
        *text++ = 0;
    }
    ck_assert_int_eq(*text, 0); /* the last line has its newline as well */
    *out_count = count;
    return lines;
}

START_TEST(every_line_follows_the_grammar)
{
    static struct family families[64];
    uint32_t family_count = 0, line_count;
    memset(families, 0, sizeof families);
    char *text = expose(observe);
    char **lines = split(text, &line_count);
    for (uint32_t i = 0; i < line_count; i++) {
        if (i + 1 == line_count)
            ck_assert_str_eq(lines[i], "# EOF");
        else if (lines[i][0] == '#')
            read_comment(lines[i], families, &family_count);
        else
            read_sample(lines[i], &families[family_count - 1]);
    }
    ck_assert_uint_eq(family_count, 25);
    for (uint32_t i = 0; i < family_count; i++) {
        size_t length = strlen(families[i].name);
        ck_assert_msg(families[i].helped && families[i].samples > 0, "%s", families[i].name);
        ck_assert(length < 6 || strcmp(families[i].name + length - 6, "_total") != 0);
        if (families[i].unit[0] != 0)
            ck_assert_str_eq(families[i].name + length - strlen(families[i].unit),
                             families[i].unit);
    }
    free(lines);
    free(text);
}
END_TEST

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

START_TEST(no_sample_comes_twice)
{
    uint32_t line_count;
    char *text = expose(observe);
    char **lines = split(text, &line_count);
    for (uint32_t i = 0; i < line_count; i++)
        *strrchr(lines[i], ' ') = 0; /* the value, or the end of a comment */
    qsort(lines, line_count, sizeof *lines, by_text);
    for (uint32_t i = 1; i < line_count; i++) {
        if (lines[i][0] != '#')
            ck_assert_str_ne(lines[i], lines[i - 1]);
    }
    free(lines);
    free(text);
}
END_TEST

static void check_histogram(char **lines, uint32_t line_count, const char *name)
{
    char bucket[64], last[96], count[64];
    uint64_t previous = 0, in_all = UINT64_MAX, buckets = 0;
    double bound = -1;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a point in every locale */
    snprintf(bucket, sizeof bucket, "%s_bucket{le=\"", name);
    snprintf(last, sizeof last, "%s+Inf\"} ", bucket);
    snprintf(count, sizeof count, "%s_count ", name);
    for (uint32_t i = 0; i < line_count; i++) {
        if (strncmp(lines[i], count, strlen(count)) == 0)
            in_all = strtoull(lines[i] + strlen(count), NULL, 10);
        if (strncmp(lines[i], bucket, strlen(bucket)) != 0)
            continue;
        uint64_t value = strtoull(strrchr(lines[i], ' '), NULL, 10);
        ck_assert_uint_ge(value, previous);
        previous = value;
        buckets++;
        if (strncmp(lines[i], last, strlen(last)) != 0) {
            double le = strtod_l(lines[i] + strlen(bucket), NULL, c);
            ck_assert_double_gt(le, bound);
            bound = le;
        }
    }
    freelocale(c);
    ck_assert_uint_gt(buckets, 20);
    ck_assert_uint_gt(previous, 0);
    ck_assert_uint_eq(previous, in_all);
}

START_TEST(histograms_are_cumulative)
{
    uint32_t line_count;
    char *text = expose(observe);
    char **lines = split(text, &line_count);
    check_histogram(lines, line_count, "admit_retry_delay_seconds");
    check_histogram(lines, line_count, "admit_admission_seconds");
    check_histogram(lines, line_count, "admit_backend_seconds");
    free(lines);
    free(text);
}
END_TEST

START_TEST(gauges_are_what_the_gate_gave)
{
    struct admi_gauges gauges = { .policy_version = "v\"1\"\n",
                                  .table_version = NULL,
                                  .backend = "late",
                                  .pending = 7,
                                  .signals = 8 };
    gauges.info = (struct adm_backend_info){ .classes = 1,
                                             .classes_max = 2,
                                             .partitions = 3,
                                             .partitions_max = UINT64_MAX,
                                             .leases = 5,
                                             .leases_max = 6,
                                             .attempts = 9,
                                             .attempts_max = 10,
                                             .expired = 11 };
    static const char *const lines[] = {
        "\nadmit_info{policy_version=\"v\\\"1\\\"\\n\",table_version=\"\",backend=\"late\"} 1\n",
        "\nadmit_pending_operations 7\n",
        "\nadmit_signal_values 8\n",
        "\nadmit_backend_records{kind=\"classes\"} 1\n",
        "\nadmit_backend_records{kind=\"partitions\"} 3\n",
        "\nadmit_backend_records{kind=\"leases\"} 5\n",
        "\nadmit_backend_records{kind=\"attempts\"} 9\n",
        "\nadmit_backend_records_max{kind=\"classes\"} 2\n",
        "\nadmit_backend_records_max{kind=\"partitions\"} +Inf\n",
        "\nadmit_backend_records_max{kind=\"leases\"} 6\n",
        "\nadmit_backend_records_max{kind=\"attempts\"} 10\n",
        "\nadmit_expired_leases_total 11\n",
    };
    char text[65536];
    uint64_t length = 0;
    ck_assert_int_eq(admi_observe_expose(observe, &gauges, text, sizeof text - 1, &length), ADM_OK);
    text[length] = 0;
    ck_assert_uint_eq(strlen(text), length);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        ck_assert_msg(strstr(text, lines[i]) != NULL, "%s", lines[i]);
}
END_TEST

START_TEST(zero_is_exposed_where_the_number_of_samples_is_bounded)
{
    struct admi_observe *fresh = NULL;
    const struct adm_bytes id = adm_str("r"), unit = adm_str("cost");
    uint32_t slot;
    ck_assert_int_eq(admi_observe_new(NULL, &fresh), ADM_OK);
    ck_assert_int_eq(admi_observe_rules(fresh, &id, &unit, 1, &slot), ADM_OK);
    char *text = expose(fresh);
    static const char *const zeros[] = {
        "admit_decisions_total{verdict=\"deny\",reason=\"state_unavailable\"}",
        "admit_decision_cost_total{verdict=\"allow\",reason=\"allowed\"}",
        "admit_rule_requests_total{rule=\"r\",verdict=\"deny\"}",
        "admit_rule_units_total{rule=\"r\",unit=\"cost\",verdict=\"allow\"}",
        "admit_lease_operations_total{operation=\"release\",outcome=\"late\"}",
        "admit_results_total{result=\"cancelled\"}",
        "admit_backend_errors_total{kind=\"timeout\"}",
        "admit_retry_delay_seconds_count",
    };
    for (size_t i = 0; i < sizeof zeros / sizeof zeros[0]; i++)
        ck_assert_msg(value_in(text, zeros[i]) == 0, "%s", zeros[i]);
    ck_assert_uint_eq(
        value_in(text, "admit_lease_operations_total{operation=\"renew\",outcome=\"released\"}"),
        UINT64_MAX);
    ck_assert_uint_eq(value_in(text, "admit_rule_shadow_total{rule=\"r\",verdict=\"would_deny\"}"),
                      UINT64_MAX);
    free(text);
    admi_observe_free(fresh);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("exposition");
    TCase *writer = tcase_create("writer");
    tcase_add_test(writer, numbers_and_decimals);
    tcase_add_test(writer, label_values_are_escaped_and_well_formed);
    tcase_add_test(writer, writer_never_leaves_its_buffer);
    suite_add_tcase(suite, writer);
    TCase *cases = tcase_create("exposition");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, length_is_right_and_a_small_buffer_stays_as_it_was);
    tcase_add_test(cases, bad_arguments);
    tcase_add_test(cases, every_line_follows_the_grammar);
    tcase_add_test(cases, no_sample_comes_twice);
    tcase_add_test(cases, histograms_are_cumulative);
    tcase_add_test(cases, gauges_are_what_the_gate_gave);
    tcase_add_test(cases, zero_is_exposed_where_the_number_of_samples_is_bounded);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
