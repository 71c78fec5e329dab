/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: exact fixed point, who counts, how old, how many. */
#include "gate_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PRESSURE(comparison)                                                                       \
    "[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"load\"," comparison                         \
    ",\"scope_by\":\"m\",\"max_age\":\"5s\"}]"
#define SCALED                                                                                     \
    "[{\"id\":\"c\",\"type\":\"concurrency\",\"limit\":1,\"lease_ttl\":\"60s\","                   \
    "\"per_replica\":true,\"scope_by\":\"m\"}]"

static struct fixture f;

static adm_status put(const char *scope, const char *replica, const char *name, double value)
{
    return adm_gate_signal(f.gate, adm_str(scope), adm_str(replica), adm_str(name), value);
}

static void signal_is(const char *replica, const char *name, double value)
{
    ck_assert_int_eq(put("x", replica, name, value), ADM_OK);
}

static bool breached(void)
{
    struct adm_decision d = decide(&f, "m=x", 1);

    ck_assert(d.reason == ADM_REASON_ALLOWED || d.reason == ADM_REASON_PRESSURE);
    return d.reason == ADM_REASON_PRESSURE;
}

/* Whether one replica with this value breaches. */
static bool breaches(const char *comparison, double value)
{
    char policy[512];
    bool result;

    (void)snprintf(policy, sizeof policy, PRESSURE("%s"), comparison);
    fixture_open(&f, policy);
    signal_is("r", "load", value);
    result = breached();
    fixture_close(&f);
    return result;
}

START_TEST(B031_values_are_taken_to_the_nearest_billionth_ties_away_from_zero)
{
    static const struct {
        const char *comparison;
        double value;
        bool breach;
    } rows[] = {
        { "\"gte\":0.9", 0.9, true },
        { "\"gt\":0.9", 0.9, false },
        { "\"gte\":0.9", 0.8999999994, false },
        { "\"gte\":0.9", 0.8999999996, true }, /* is taken as 0.9 */
        { "\"gt\":0.9", 0.9000000004, false },
        { "\"gt\":0.9", 0.9000000006, true },
        { "\"gte\":0.000000001", 0x1p-31, false }, /* 0.4656… billionths */
        { "\"gte\":0.000000001", 0x1p-30, true },  /* 0.931… */
        { "\"gt\":0", 4.9e-324, false },           /* the smallest number there is */
        { "\"gt\":0", 1e-300, false },
        { "\"lt\":0.000000001", -0.0, true },
        { "\"lt\":0", -0.0, false },
        { "\"lt\":0", -1e-9, true },
        { "\"lt\":0", -4.9e-324, false },
        { "\"lte\":0", -1e12, true },
        { "\"gte\":1000000000000", 1e12, true },
        { "\"gt\":1000000000000", 1e12, false },
        { "\"gte\":1000000000000", 999999999999.9999, false },
        { "\"gte\":4503599627.3125", 4503599627.3125, true },
        { "\"gt\":4503599627.3125", 4503599627.3125, false },
        { "\"gte\":0.001953125", 0x1p-9, true }, /* exact in both */
        { "\"gt\":0.001953124", 0x1p-9, true },
        { "\"gte\":0.000976563", 0x1p-10, true }, /* 976562.5 billionths: the half goes up */
        { "\"gt\":0.000976562", 0x1p-10, true },
        { "\"gt\":0.000976563", 0x1p-10, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(breaches(rows[i].comparison, rows[i].value) == rows[i].breach, "%s, %a",
                      rows[i].comparison, rows[i].value);
}
END_TEST

START_TEST(B031_the_mean_is_exact)
{
    fixture_open(&f, PRESSURE("\"gte\":0.9"));
    signal_is("a", "load", 0.85);
    signal_is("b", "load", 0.95);
    ck_assert(breached()); /* in floating point the mean is less than 0.9 */
    signal_is("b", "load", 0.949999999);
    ck_assert(!breached());
    fixture_close(&f);
    fixture_open(&f, PRESSURE("\"gt\":0.9"));
    signal_is("a", "load", 0.85);
    signal_is("b", "load", 0.95);
    ck_assert(!breached());
    signal_is("a", "load", 0.1);
    signal_is("b", "load", 0.2);
    signal_is("c", "load", 0.3);
    ck_assert(!breached());
    fixture_close(&f);
    fixture_open(&f, PRESSURE("\"gt\":0.2"));
    signal_is("a", "load", 0.1);
    signal_is("b", "load", 0.2);
    signal_is("c", "load", 0.3);
    ck_assert(!breached());
    signal_is("c", "load", 0.300000001); /* a third of a billionth above */
    ck_assert(breached());
    fixture_close(&f);
}
END_TEST

START_TEST(B032_no_number_is_a_missing_value_and_replaces_the_last_one)
{
    static const double none[] = { NAN, INFINITY, -INFINITY };

    fixture_open(&f, PRESSURE("\"gt\":0.5"));
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        signal_is("r", "load", 1);
        ck_assert(breached());
        signal_is("r", "load", none[i]);
        ck_assert(!breached());
    }
    signal_is("r", "load", 1); /* and the next number counts again */
    ck_assert(breached());
    fixture_close(&f);
}
END_TEST

START_TEST(B033_a_finite_value_beyond_all_thresholds_is_not_missing)
{
    ck_assert(breaches("\"gt\":0.5", 1e13));
    ck_assert(breaches("\"gt\":1000000000000", 1e13));
    ck_assert(breaches("\"gt\":1000000000000", 1.7976931348623157e308));
    ck_assert(breaches("\"gt\":1000000000000", 1000000000000.0001));
    ck_assert(breaches("\"lt\":0.5", -1e300));
    ck_assert(!breaches("\"lt\":0.5", 1e300));
}
END_TEST

START_TEST(B069_a_value_counts_until_it_is_max_age_old)
{
    fixture_open(&f, PRESSURE("\"gt\":0.5"));
    ck_assert(!breached()); /* nothing is known */
    signal_is("r", "load", 1);
    advance(&f, 5 * SEC - 1);
    ck_assert(breached());
    advance(&f, 1);
    ck_assert(!breached());
    signal_is("r", "load", 1);
    ck_assert(breached());
    fixture_close(&f);
}
END_TEST

START_TEST(L6_once_health_is_reported_only_healthy_replicas_count)
{
    fixture_open(&f, PRESSURE("\"gt\":0.5"));
    signal_is("a", "load", 1);
    ck_assert(breached()); /* no health reported: all count */
    signal_is("b", "healthy", 1);
    ck_assert(!breached()); /* a reports none, so it does not count; b has no load */
    signal_is("a", "healthy", 1);
    ck_assert(breached());
    signal_is("a", "healthy", 0);
    ck_assert(!breached());
    signal_is("a", "healthy", 0.999999999);
    ck_assert(!breached());
    signal_is("a", "healthy", 1);
    signal_is("b", "load", 0);
    ck_assert(!breached()); /* mean 0.5 */
    signal_is("b", "healthy", NAN);
    ck_assert(breached());
    fixture_close(&f);
}
END_TEST

START_TEST(L6_health_counts_for_fifteen_seconds_and_replicas_scale_limits)
{
    fixture_open(&f, SCALED);
    (void)allow(&f, "m=x", 1);
    deny(&f, "m=x", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    signal_is("a", "healthy", 1);
    deny(&f, "m=x", 1, ADM_REASON_CONCURRENCY_EXCEEDED); /* one is what no report means too */
    signal_is("b", "healthy", 1);
    advance(&f, 15 * SEC - 1);
    (void)allow(&f, "m=x", 1);
    deny(&f, "m=x", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    signal_is("c", "healthy", 1);
    advance(&f, 1); /* a and b are silent now */
    deny(&f, "m=x", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    signal_is("a", "healthy", 1);
    signal_is("b", "healthy", 1);
    (void)allow(&f, "m=x", 1);
    deny(&f, "m=y", 1, ADM_REASON_CONCURRENCY_EXCEEDED); /* another scope, the same partition */
    fixture_close(&f);
}
END_TEST

START_TEST(L5_a_scope_has_1024_replicas_and_then_those_that_are_silent_make_room)
{
    char replica[16];

    fixture_open(&f, SCALED);
    for (uint32_t i = 0; i < 1024; i++) {
        (void)snprintf(replica, sizeof replica, "r%u", i);
        signal_is(replica, "healthy", 1);
    }
    ck_assert_int_eq(put("x", "one more", "healthy", 1), ADM_E_LIMIT);
    ck_assert_int_eq(put("y", "one more", "healthy", 1), ADM_OK);
    ck_assert_int_eq(put("x", "r7", "load", 1), ADM_OK);
    (void)allow(&f, "m=x", 1024);
    deny(&f, "m=x", 1, ADM_REASON_CONCURRENCY_EXCEEDED);
    advance(&f, 15 * SEC - 1);
    ck_assert_int_eq(put("x", "one more", "healthy", 1), ADM_E_LIMIT);
    advance(&f, 1);
    ck_assert_int_eq(put("x", "one more", "healthy", 1), ADM_OK);
    fixture_close(&f);
}
END_TEST

START_TEST(L5_values_are_bounded_and_only_what_nobody_can_ask_for_is_dropped)
{
    fixture_init(&f);
    f.options.signals_max = 3;
    fixture_start(&f, PRESSURE("\"gt\":0.5"));
    ck_assert_int_eq(put("x", "a", "load", 1), ADM_OK);
    ck_assert_int_eq(put("x", "b", "load", 1), ADM_OK);
    ck_assert_int_eq(put("y", "a", "load", 1), ADM_OK);
    ck_assert_int_eq(put("z", "a", "load", 1), ADM_E_LIMIT);
    ck_assert_int_eq(put("x", "c", "load", 1), ADM_E_LIMIT);
    ck_assert_int_eq(put("x", "a", "healthy", 1), ADM_E_LIMIT);
    ck_assert_int_eq(put("x", "a", "load", 1), ADM_OK); /* a known one may change */
    ck_assert(breached());
    advance(&f, 10 * SEC);
    ck_assert_int_eq(put("y", "a", "load", 1), ADM_OK);
    advance(&f, 5 * SEC); /* scope x has been silent for 15 s, longer than anybody looks back */
    ck_assert_int_eq(put("z", "a", "load", 1), ADM_OK);
    ck_assert_uint_eq(metric(&f, "admit_signal_values"), 2);
    ck_assert_int_eq(put("z", "b", "load", 1), ADM_OK);
    ck_assert_int_eq(put("z", "c", "load", 1), ADM_E_LIMIT); /* y is not silent */
    ck_assert_uint_eq(metric(&f, "admit_signal_values"), 3);
    fixture_close(&f);
}
END_TEST

START_TEST(L5_a_rule_that_looks_back_far_keeps_values_as_long)
{
    fixture_init(&f);
    f.options.signals_max = 1;
    fixture_start(&f,
                  "[{\"id\":\"p\",\"type\":\"pressure\",\"signal\":\"load\",\"gt\":0.5,"
                  "\"scope_by\":\"m\",\"max_age\":\"5s\",\"overrides\":[{\"when\":{\"z\":\"*\"},"
                  "\"max_age\":\"60s\"}]}]");
    ck_assert_int_eq(put("x", "a", "load", 1), ADM_OK);
    advance(&f, 59 * SEC);
    ck_assert_int_eq(put("y", "a", "load", 1), ADM_E_LIMIT);
    ck_assert_uint_eq(decide(&f, "m=x z=1", 1).reason, ADM_REASON_PRESSURE);
    advance(&f, SEC);
    ck_assert_int_eq(put("y", "a", "load", 1), ADM_OK);
    fixture_close(&f);
}
END_TEST

START_TEST(B092_names_of_signals_have_1_to_256_bytes)
{
    static const uint64_t lengths[] = { 0, 1, 256, 257 };
    char text[257];

    fixture_open(&f, PRESSURE("\"gt\":0.5"));
    memset(text, 'n', sizeof text);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (uint32_t which = 0; which < 3; which++) {
            struct adm_bytes name[3] = { adm_str("s"), adm_str("r"), adm_str("n") };
            bool legal = lengths[i] >= 1 && lengths[i] <= 256;

            name[which] = bytes_of(text, lengths[i]);
            ck_assert_int_eq(adm_gate_signal(f.gate, name[0], name[1], name[2], 1),
                             legal ? ADM_OK : ADM_E_INVALID_ARGUMENT);
            name[which] = bytes_of(NULL, lengths[i]);
            ck_assert_int_eq(adm_gate_signal(f.gate, name[0], name[1], name[2], 1),
                             ADM_E_INVALID_ARGUMENT);
        }
    ck_assert_int_eq(adm_gate_signal(NULL, adm_str("s"), adm_str("r"), adm_str("n"), 1),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(put("a\0b", "r", "load", 1), ADM_OK);
    fixture_close(&f);
}
END_TEST

START_TEST(L4_signals_live_on_the_gates_time)
{
    fixture_open(&f, PRESSURE("\"gt\":0.5"));
    signal_is("r", "load", 1);
    f.clock.time.mono_ns -= 8 * SEC; /* within the skew: stands still, and the value stays fresh */
    ck_assert(breached());
    f.clock.time.mono_ns -= 500 * SEC; /* a new clock */
    ck_assert(breached());
    advance(&f, 5 * SEC);
    ck_assert(!breached());
    fixture_close(&f);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        B031_values_are_taken_to_the_nearest_billionth_ties_away_from_zero,
        B031_the_mean_is_exact,
        B032_no_number_is_a_missing_value_and_replaces_the_last_one,
        B033_a_finite_value_beyond_all_thresholds_is_not_missing,
        B069_a_value_counts_until_it_is_max_age_old,
        L6_once_health_is_reported_only_healthy_replicas_count,
        L6_health_counts_for_fifteen_seconds_and_replicas_scale_limits,
        L5_a_scope_has_1024_replicas_and_then_those_that_are_silent_make_room,
        L5_values_are_bounded_and_only_what_nobody_can_ask_for_is_dropped,
        L5_a_rule_that_looks_back_far_keeps_values_as_long,
        B092_names_of_signals_have_1_to_256_bytes,
        L4_signals_live_on_the_gates_time,
    };

    return RUN_TESTS("gate signals", tests);
}
