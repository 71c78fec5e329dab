/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An admit and a release that have run before on this thread allocate nothing: neither through the
 * host's allocator nor behind its back with malloc. Prints TAP.
 */
#include "malloc_count.h"
#include "rig.h"

#include "../unit/counting_allocator.h"

#include <admit/testing.h>

#include <stdio.h>
#include <string.h>

#define ROUNDS 2000

static struct counting_allocator counting;
static unsigned number, failed;

/* What was asked for since the last call, both ways. */
static uint64_t asked_since(void)
{
    static uint64_t before;
    uint64_t now = malloc_count_now().calls + atomic_load(&counting.calls);
    uint64_t asked = now - before;

    before = now;
    return asked;
}

static void ok(int good, const char *what, uint64_t seen)
{
    number++;
    failed += good ? 0 : 1;
    printf("%s %u - %s (%llu allocations)\n", good ? "ok" : "not ok", number, what,
           (unsigned long long)seen);
}

static void expect_none(const char *what)
{
    uint64_t seen = asked_since();

    ok(seen == 0, what, seen);
    asked_since(); /* printing may have allocated */
}

static void pairs(struct rig *rig)
{
    for (int i = 0; i < ROUNDS; i++)
        rig_pair(rig);
}

/* Every request from a tenant that was never seen: new partitions each time. */
static void new_partitions(struct rig *rig, unsigned from)
{
    char tenant[32];

    for (unsigned i = 0; i < ROUNDS; i++) {
        int length = snprintf(tenant, sizeof tenant, "tenant-%u", from + i);

        rig->descriptors[0].value = (struct adm_bytes){ tenant, (uint64_t)length };
        rig_pair(rig);
    }
    rig->descriptors[0].value = adm_str("acme");
}

static void denials(struct rig *rig)
{
    for (int i = 0; i < ROUNDS; i++) {
        rig->request.cost = ADM_MAX_AMOUNT; /* more than the concurrency rules can ever hold */
        if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
            rig->decision.verdict != ADM_VERDICT_DENY)
            die("a request was not denied");
    }
    rig->request.cost = 1;
}

static void attempts(struct rig *rig, unsigned from)
{
    char attempt[32];

    for (unsigned i = 0; i < ROUNDS; i++) {
        int length = snprintf(attempt, sizeof attempt, "attempt-%u", from + i);

        rig->request.attempt = (struct adm_bytes){ attempt, (uint64_t)length };
        rig_pair(rig);
    }
    rig->request.attempt = (struct adm_bytes){ NULL, 0 };
}

static void string_keys(struct rig *rig)
{
    uint32_t ids[3];

    for (int i = 0; i < 3; i++) {
        ids[i] = rig->descriptors[i].key_id;
        rig->descriptors[i].key_id = 0;
    }
    pairs(rig);
    for (int i = 0; i < 3; i++)
        rig->descriptors[i].key_id = ids[i];
}

static void settles(struct rig *rig)
{
    struct adm_amount total = { ADM_UNIT_COST, 0, 1 };
    uint32_t outcome;

    for (int i = 0; i < ROUNDS; i++) {
        if (adm_admit(rig->gate, &rig->request, &rig->decision) != ADM_OK ||
            adm_renew(rig->gate, rig->decision.lease, &outcome) != ADM_OK ||
            outcome != ADM_OUTCOME_RENEWED ||
            adm_settle(rig->gate, rig->decision.lease, &total, 1, 1, &outcome) != ADM_OK ||
            outcome != ADM_OUTCOME_SETTLED ||
            adm_release(rig->gate, rig->decision.lease, ADM_RESULT_OK, &outcome) != ADM_OK ||
            outcome != ADM_OUTCOME_RELEASED)
            die("a renew, settle or release did not do its work: %s", adm_outcome_name(outcome));
    }
}

/* Every operation once, so that what a thread's first call may allocate is there. */
static void warm_up(struct rig *rig)
{
    pairs(rig);
    denials(rig);
    settles(rig);
    attempts(rig, 0);
}

int main(void)
{
    struct text policy = { NULL, 0, 0 };
    struct adm_fake_clock fake = { { ADM_SECOND, UINT64_C(1767600000) * ADM_SECOND }, 1000 };
    struct rig rig;

    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    text_policy(&policy, 8, 100, OTHER_MIXED);
    uint64_t before = malloc_count_now().calls;
    struct adm_policy *loaded = NULL;
    if (adm_policy_load((struct adm_bytes){ policy.bytes, policy.length }, NULL, &loaded, NULL) !=
        ADM_OK)
        die("the policy does not load");
    adm_policy_unref(loaded);
    ok(malloc_count_now().calls > before, "the malloc of the shared libraries is counted",
       malloc_count_now().calls - before);
    rig_open(&rig, policy.bytes, policy.length, adm_fake_clock_as_clock(&fake),
             counting_allocator_of(&counting));
    ok(atomic_load(&counting.calls) > 0, "creating a gate asks the host's allocator",
       atomic_load(&counting.calls));
    warm_up(&rig);
    asked_since();

    pairs(&rig);
    expect_none("admit and release under 8 rules");
    new_partitions(&rig, 0);
    expect_none("admit and release of partitions never seen");
    denials(&rig);
    expect_none("denials");
    attempts(&rig, 1000000);
    expect_none("admits with attempt ids");
    string_keys(&rig);
    expect_none("keys given as text");
    settles(&rig);
    expect_none("renew, settle, release");
    fake.time.mono_ns += 3600 * ADM_SECOND;
    fake.time.wall_ns += 3600 * ADM_SECOND;
    new_partitions(&rig, 500000);
    expect_none("an hour later, when old partitions and leases make room");

    rig_close(&rig);
    ok(atomic_load(&counting.bytes) == 0, "everything was given back to the host's allocator",
       (uint64_t)atomic_load(&counting.bytes));
    ok(atomic_load(&counting.wrong_size) == 0, "with the size it was asked for",
       atomic_load(&counting.wrong_size));
    text_free(&policy);
    printf("1..%u\n", number);
    return failed != 0;
}
