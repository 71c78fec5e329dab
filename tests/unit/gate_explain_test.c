/* SPDX-License-Identifier: Apache-2.0 */
/* Looking without touching: explain says what admit then does; delays are exact. */
#include "gate_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 2000u
#define RULES  10u

/* Rules of every type; some shadow, some with overrides, one per replica, one by completion. */
#define MIXED                                                                                      \
    "[{\"id\":\"bucket\",\"type\":\"token_bucket\",\"partition_by\":[\"c\"],\"capacity\":20,"      \
    "\"refill\":3,\"per\":\"7s\",\"overrides\":[{\"when\":{\"c\":\"c1\"},\"capacity\":5},"         \
    "{\"when\":{\"c\":\"c2\"},\"off\":true}],\"max_partitions\":3},"                               \
    "{\"id\":\"held\",\"type\":\"concurrency\",\"partition_by\":[\"s\"],\"limit\":12,"             \
    "\"lease_ttl\":\"9s\",\"fraction\":0.75},"                                                     \
    "{\"id\":\"tokens\",\"type\":\"token_bucket\",\"match\":{\"s\":\"s1\"},\"unit\":\"tokens\","   \
    "\"capacity\":300,\"refill\":40,\"per\":\"1s\",\"settle\":\"exact\"},"                         \
    "{\"id\":\"done\",\"type\":\"token_bucket\",\"match\":{\"s\":\"s2\"},\"charge\":"              \
    "\"completion\","                                                                              \
    "\"unit\":\"output_tokens\",\"capacity\":50,\"refill\":5,\"per\":\"1s\"},"                     \
    "{\"id\":\"cap\",\"type\":\"request_cap\",\"match\":{\"s\":[\"s0\",\"s1\"]},\"limit\":9},"     \
    "{\"id\":\"push\",\"type\":\"pressure\",\"match\":{\"m\":\"*\"},\"signal\":\"load\","          \
    "\"gt\":0.5,\"scope_by\":\"m\"},"                                                              \
    "{\"id\":\"quota\",\"type\":\"quota\",\"partition_by\":[\"c\"],\"limit\":400,\"window\":"      \
    "\"day\"},"                                                                                    \
    "{\"id\":\"scaled\",\"type\":\"concurrency\",\"match\":{\"m\":\"*\"},\"partition_by\":[\"m\"]" \
    ","                                                                                            \
    "\"limit\":6,\"lease_ttl\":\"5s\",\"per_replica\":true,\"scope_by\":\"m\"},"                   \
    "{\"id\":\"dark\",\"type\":\"token_bucket\",\"mode\":\"shadow\",\"capacity\":30,\"refill\":1," \
    "\"per\":\"1s\"},"                                                                             \
    "{\"id\":\"needs\",\"type\":\"request_cap\",\"match\":{\"s\":\"s3\"},\"partition_by\":[\"z\"]" \
    ","                                                                                            \
    "\"limit\":50}]"

static struct fixture f;
static uint64_t random_state = 7;

static uint64_t draw(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

/* ---- what explain reports ---- */

struct reports {
    struct adm_rule_report rule[RULES];
    char name[RULES][24], origin[RULES][24];
    uint32_t count;
};

static struct reports reports;

static void take_report(void *self, const struct adm_rule_report *report)
{
    struct reports *r = self;

    ck_assert_uint_lt(r->count, RULES);
    r->rule[r->count] = *report;
    (void)snprintf(r->name[r->count], sizeof r->name[0], "%s", report->rule);
    (void)snprintf(r->origin[r->count], sizeof r->origin[0], "%s", report->origin);
    r->count++;
}

static struct adm_decision explain_for(const struct asked *asked)
{
    struct adm_decision d = { .size = sizeof d };

    reports.count = 0;
    ck_assert_int_eq(adm_explain(f.gate, &asked->request, take_report, &reports, &d), ADM_OK);
    return d;
}

/* All that the two decisions say, but for what a look cannot have: the lease, and its own id. */
static void same_decision(const struct adm_decision *explained, const struct adm_decision *admitted)
{
    ck_assert(is_none(explained->lease));
    ck_assert_msg(explained->reason == admitted->reason, "explain %s, admit %s",
                  adm_reason_name(explained->reason), adm_reason_name(admitted->reason));
    ck_assert_uint_eq(explained->verdict, admitted->verdict);
    ck_assert_uint_eq(explained->http_status, admitted->http_status);
    ck_assert_uint_eq(explained->rule_count, admitted->rule_count);
    ck_assert_uint_eq(explained->retry_after_ms, admitted->retry_after_ms);
    ck_assert_str_eq(explained->policy_version, admitted->policy_version);
    ck_assert_str_eq(explained->table_version, admitted->table_version);
    for (uint32_t i = 0; i < explained->rule_count; i++)
        ck_assert_str_eq(adm_decision_rule(explained, i), adm_decision_rule(admitted, i));
    ck_assert_uint_eq(explained->shadow_count, admitted->shadow_count);
    ck_assert_uint_eq(explained->unknown_count, admitted->unknown_count);
}

/* The reports and the list of denying rules say the same. */
static void reports_agree(const struct adm_decision *d)
{
    uint32_t denying = 0;

    ck_assert_uint_eq(reports.count, RULES);
    if (d->reason == ADM_REASON_KEY_SPACE_FULL || d->reason == ADM_REASON_MISSING_DESCRIPTOR ||
        d->reason == ADM_REASON_MISSING_AMOUNT)
        return; /* then only the rules that speak are listed */
    for (uint32_t i = 0; i < RULES; i++) {
        if (!reports.rule[i].denies || reports.rule[i].shadow)
            continue;
        ck_assert_uint_eq(reports.rule[i].matched, 1);
        ck_assert_str_eq(adm_decision_rule(d, denying), reports.name[i]);
        denying++;
    }
    ck_assert_uint_eq(denying, d->rule_count);
}

static void random_request(struct asked *asked)
{
    char text[64];
    uint32_t used = 0;

    text[0] = '\0';
    if (draw(20) != 0)
        used += (uint32_t)sprintf(text + used, "c=c%u ", (uint32_t)draw(5));
    if (draw(20) != 0)
        used += (uint32_t)sprintf(text + used, "s=s%u ", (uint32_t)draw(4));
    if (draw(2) != 0)
        used += (uint32_t)sprintf(text + used, "m=m%u ", (uint32_t)draw(2));
    if (used > 0)
        text[used - 1] = '\0';
    ask_for(asked, text, 1 + draw(draw(4) == 0 ? 30 : 8));
    if (draw(5) != 0)
        ask_amount(asked, ADM_UNIT_INPUT_TOKENS, draw(200));
    if (draw(2) != 0)
        ask_amount(asked, ADM_UNIT_OUTPUT_TOKENS, draw(100));
}

START_TEST(L2_explain_says_what_admit_then_does)
{
    struct adm_id leases[16];
    uint32_t reasons[ADM_REASON_COUNT] = { 0 }, open = 0;
    struct asked asked;

    fixture_open(&f, MIXED);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct adm_decision explained, again, admitted;
        char replica[4] = { 'r', (char)('0' + draw(3)), '\0' };

        random_request(&asked);
        explained = explain_for(&asked);
        reports_agree(&explained);
        again = explain_for(&asked); /* the first look has changed nothing */
        same_decision(&again, &explained);
        admitted = decide_for(&f, &asked);
        same_decision(&explained, &admitted);
        reasons[admitted.reason]++;
        if (!is_none(admitted.lease)) {
            if (open == 16)
                (void)release(&f, leases[--open]);
            leases[open++] = admitted.lease;
        }
        if (draw(8) == 0)
            ck_assert_int_eq(adm_gate_signal(f.gate, adm_str("m0"), adm_str(replica),
                                             adm_str(draw(2) ? "healthy" : "load"),
                                             (double)draw(3) / 2),
                             ADM_OK);
        advance(&f, draw(3) * draw(2000) * MS);
    }
    /* The walk has seen what there is to see. */
    ck_assert_uint_gt(reasons[ADM_REASON_ALLOWED], 100);
    ck_assert_uint_gt(reasons[ADM_REASON_RATE_EXCEEDED], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_CONCURRENCY_EXCEEDED], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_QUOTA_EXCEEDED], 5);
    ck_assert_uint_gt(reasons[ADM_REASON_UNSATISFIABLE], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_COST_ABOVE_CAP], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_PRESSURE], 5);
    ck_assert_uint_gt(reasons[ADM_REASON_MISSING_DESCRIPTOR], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_MISSING_AMOUNT], 20);
    ck_assert_uint_gt(reasons[ADM_REASON_KEY_SPACE_FULL], 5);
    fixture_close(&f);
}
END_TEST

START_TEST(L2_explain_charges_nothing_and_counts_nothing)
{
    struct asked asked;
    char *before, *after;

    fixture_open(&f, MIXED);
    (void)allow(&f, "c=c0 s=s9 m=m0", 3);
    before = metrics_but(&f, "none");
    ask_for(&asked, "c=c0 s=s9 m=m0", 3);
    for (uint32_t i = 0; i < 50; i++)
        (void)explain_for(&asked);
    ck_assert_int_eq(level(&f, "bucket", "c=c0"), 17);
    ck_assert_int_eq(level(&f, "held", "s=s9"), 3);
    after = metrics_but(&f, "none");
    ck_assert(strcmp(before, after) == 0);
    free(before);
    free(after);
    fixture_close(&f);
}
END_TEST

START_TEST(L10_explain_of_a_known_attempt_gives_nobody_its_lease)
{
    struct adm_decision admitted, explained;
    struct asked asked;

    fixture_open(&f, MIXED);
    ask_for(&asked, "c=c0 s=s9", 3);
    ask_attempt(&asked, "a");
    admitted = decide_for(&f, &asked);
    ck_assert(!is_none(admitted.lease));
    explained = explain_for(&asked);
    ck_assert_uint_eq(explained.verdict, ADM_VERDICT_ALLOW);
    ck_assert_uint_eq(explained.flags, ADM_DECISION_REPEATED);
    ck_assert(is_none(explained.lease));
    ck_assert(same_id(explained.id, admitted.id));
    ask_attempt(&asked, "b"); /* a look does not make an attempt known */
    (void)explain_for(&asked);
    ck_assert_uint_eq(decide_for(&f, &asked).flags, 0);
    ck_assert_int_eq(level(&f, "held", "s=s9"), 6);
    ck_assert_uint_eq(metric(&f, "admit_repeated_attempts_total"), 0);
    fixture_close(&f);
}
END_TEST

START_TEST(L2_explain_names_origin_level_limit_and_mismatch)
{
    struct asked asked;

    fixture_open(&f, MIXED);
    ck_assert_int_eq(
        adm_gate_put_table(f.gate,
                           adm_str("{\"version\":\"t\",\"rule\":\"quota\",\"by\":\"c\","
                                   "\"entries\":{\"c1\":{\"limit\":70}}}"),
                           ADM_TABLE_REPLACE, NULL),
        ADM_OK);
    for (uint32_t i = 0; i < 2; i++) {
        char replica[4] = { 'r', (char)('0' + i), '\0' };

        ck_assert_int_eq(
            adm_gate_signal(f.gate, adm_str("m0"), adm_str(replica), adm_str("healthy"), 1),
            ADM_OK);
    }
    (void)allow(&f, "c=c1 s=s9 m=m0", 2);
    ask_for(&asked, "c=c1 s=s9 m=m0", 4);
    (void)explain_for(&asked);
    ck_assert_str_eq(reports.name[0], "bucket");
    ck_assert_str_eq(reports.origin[0], "override 1");
    ck_assert_uint_eq(reports.rule[0].limit, 5);
    ck_assert_int_eq(reports.rule[0].level, 3);
    ck_assert_uint_eq(reports.rule[0].denies, 1);
    ck_assert_uint_eq(reports.rule[0].reason, ADM_REASON_RATE_EXCEEDED);
    ck_assert_uint_eq(reports.rule[0].retry_after_ms, 2334); /* a third of 7 s */
    ck_assert_uint_eq(reports.rule[1].limit, 9);
    ck_assert_int_eq(reports.rule[1].level, 2);
    ck_assert_uint_eq(reports.rule[1].denies, 0);
    ck_assert_uint_eq(reports.rule[2].matched, 0);
    ck_assert_uint_eq(reports.rule[2].mismatch.length, 1);
    ck_assert_str_eq(reports.origin[6], "table entry");
    ck_assert_uint_eq(reports.rule[6].limit, 70);
    ck_assert_uint_eq(reports.rule[7].limit, 12);
    ck_assert_uint_eq(reports.rule[7].replicas, 2);
    ck_assert_uint_eq(reports.rule[8].shadow, 1);
    ask_for(&asked, "c=c2 s=s9", 1);
    (void)explain_for(&asked);
    ck_assert_uint_eq(reports.rule[0].off, 1);
    ck_assert_uint_eq(reports.rule[0].matched, 1);
    ck_assert_uint_eq(reports.rule[0].denies, 0);
    ck_assert_str_eq(reports.origin[0], "override 2");
    fixture_close(&f);
}
END_TEST

static void call_the_gate(void *self, const struct adm_rule_report *report)
{
    uint32_t outcome;

    (void)report;
    ck_assert_int_eq(adm_release(f.gate, NO_LEASE, 0, &outcome), ADM_E_REENTRANT);
    ++*(uint32_t *)self;
}

START_TEST(an_empty_not_never_holds_and_has_no_key_to_name)
{
    struct adm_decision explained;
    struct asked asked;

    fixture_open(&f, "[{\"id\":\"n\",\"type\":\"request_cap\",\"match\":{\"not\":{}},"
                     "\"limit\":1}]");
    ask_for(&asked, "c=c0", 1);
    explained = explain_for(&asked);
    ck_assert_uint_eq(explained.reason, ADM_REASON_NO_POLICY);
    ck_assert_uint_eq(reports.count, 1);
    ck_assert_uint_eq(reports.rule[0].matched, 0);
    ck_assert_uint_eq(reports.rule[0].mismatch.length, 0);
    fixture_close(&f);
}
END_TEST

START_TEST(K9_the_report_cannot_call_the_gate)
{
    struct adm_decision d = { .size = sizeof d };
    struct asked asked;
    uint32_t calls = 0;

    fixture_open(&f, MIXED);
    ask_for(&asked, "c=c0 s=s9", 1);
    ck_assert_int_eq(adm_explain(f.gate, &asked.request, call_the_gate, &calls, &d), ADM_OK);
    ck_assert_uint_eq(calls, RULES);
    ck_assert_uint_eq(release(&f, NO_LEASE), ADM_OUTCOME_UNKNOWN);
    fixture_close(&f);
}
END_TEST

/* ---- read ---- */

START_TEST(L2_read_of_every_kind_of_rule)
{
    int64_t found = 77;
    struct asked asked;

    fixture_open(&f, MIXED);
    ck_assert_int_eq(level(&f, "bucket", "c=c0"), 20);
    ck_assert_int_eq(level(&f, "bucket", "c=c1"), 5);
    ck_assert_int_eq(level(&f, "tokens", ""), 300); /* whether or not its match holds */
    ck_assert_int_eq(level(&f, "quota", "c=c0"), 0);
    ck_assert_int_eq(level(&f, "dark", ""), 30);
    ask_for(&asked, "c=c2", 1);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("bucket"), asked.descriptors, 1, &found),
                     ADM_E_INVALID_ARGUMENT); /* off here */
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("cap"), asked.descriptors, 1, &found),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("push"), asked.descriptors, 1, &found),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("held"), asked.descriptors, 1, &found),
                     ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("Held"), asked.descriptors, 1, &found),
                     ADM_E_UNKNOWN_RULE);
    ck_assert_int_eq(adm_gate_read(f.gate, bytes_of(NULL, 0), asked.descriptors, 1, &found),
                     ADM_E_INVALID_ARGUMENT);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("held"), asked.descriptors, 1, NULL),
                     ADM_E_INVALID_ARGUMENT);
    ask_for(&asked, "c=c0 c=c0", 1);
    ck_assert_int_eq(adm_gate_read(f.gate, adm_str("bucket"), asked.descriptors, 2, &found),
                     ADM_E_INVALID_DESCRIPTORS);
    ck_assert_int_eq(found, 77);
    fixture_close(&f);
}
END_TEST

/* ---- delays ---- */

static void random_rule(char *text, size_t room)
{
    static const char *const pers[] = { "1ms", "7ms", "1s", "3s", "1m", "1h", "1d" };
    uint64_t capacity = 1 + draw(draw(2) ? 10 : 100000);

    if (draw(4) == 0)
        (void)snprintf(text, room,
                       "[{\"id\":\"r\",\"type\":\"quota\",\"limit\":%u,\"window\":\"%s\"}]",
                       (uint32_t)capacity, draw(2) ? "day" : "month");
    else
        (void)snprintf(text, room,
                       "[{\"id\":\"r\",\"type\":\"token_bucket\",\"capacity\":%u,\"refill\":%u,"
                       "\"per\":\"%s\"}]",
                       (uint32_t)capacity, 1 + (uint32_t)draw(1000), pers[draw(7)]);
}

START_TEST(B012_at_the_delay_it_passes_and_a_millisecond_before_it_does_not)
{
    uint32_t waits = 0;

    for (uint32_t i = 0; i < 400; i++) {
        struct adm_decision d, early, late;
        struct asked asked;
        char policy[256];
        int64_t left;

        random_rule(policy, sizeof policy);
        fixture_init(&f);
        f.clock.time.mono_ns += draw(UINT64_C(1) << 40);
        f.clock.time.wall_ns += draw(UINT64_C(1) << 40);
        fixture_start(&f, policy);
        if (strstr(policy, "quota") == NULL) {
            left = level(&f, "r", "");
            (void)allow(&f, "", 1 + draw((uint64_t)left));
            advance(&f, draw(3 * SEC));
        }
        ask_for(&asked, "", 1);
        for (uint32_t k = 0; k < 8; k++) {
            asked.request.cost = 1 + draw(10);
            d = explain_for(&asked);
            if (d.reason == ADM_REASON_ALLOWED) {
                (void)decide_for(&f, &asked);
                continue;
            }
            ck_assert_uint_eq(d.retry_after_ms == 0, d.reason == ADM_REASON_UNSATISFIABLE);
            if (d.retry_after_ms == 0)
                continue;
            advance(&f, d.retry_after_ms * MS - MS);
            early = explain_for(&asked);
            advance(&f, MS);
            late = explain_for(&asked);
            ck_assert_msg(d.retry_after_ms == 1 || early.verdict == ADM_VERDICT_DENY,
                          "%s: passes a millisecond before %llu", policy,
                          (unsigned long long)d.retry_after_ms);
            ck_assert_msg(late.verdict == ADM_VERDICT_ALLOW, "%s: does not pass at %llu", policy,
                          (unsigned long long)d.retry_after_ms);
            waits++;
        }
        fixture_close(&f);
    }
    ck_assert_uint_gt(waits, 200);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        L2_explain_says_what_admit_then_does,
        L2_explain_charges_nothing_and_counts_nothing,
        L10_explain_of_a_known_attempt_gives_nobody_its_lease,
        L2_explain_names_origin_level_limit_and_mismatch,
        an_empty_not_never_holds_and_has_no_key_to_name,
        K9_the_report_cannot_call_the_gate,
        L2_read_of_every_kind_of_rule,
        B012_at_the_delay_it_passes_and_a_millisecond_before_it_does_not,
    };

    return RUN_TESTS("gate explain", tests);
}
