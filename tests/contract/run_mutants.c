/* SPDX-License-Identifier: Apache-2.0 */
/* The suite is tested: it fails on every broken backend, and names the law that is broken. */
#include <stdio.h>

#include "contract/mutants/mutants.h"

static adm_status open_mutant(void *user, const struct adm_contract_sizes *sizes,
                              struct adm_backend *out)
{
    const struct mutant *mutant = user;

    /* Only where threads matter: most mutants keep what they need without any care for threads. */
    return wrap_plain(mutant->start, NULL,
                      mutant->law == 7 || mutant->law == 10 ? ADM_THREADS_ANY : ADM_THREADS_SERIAL,
                      sizes, out);
}

struct findings {
    uint32_t law;
    char first[320]; /* what was said of the law */
};

static void note(void *self, const struct adm_contract_finding *finding)
{
    struct findings *findings = self;

    if (!finding->passed && !finding->skipped && finding->law == findings->law &&
        findings->first[0] == '\0')
        (void)snprintf(findings->first, sizeof findings->first, "%s: %s", finding->what,
                       finding->detail);
}

/* True: the suite fails on the mutant, and names its law. A race is caught when it happens: on a
 * busy machine the threads may miss each other, so a mutant of K7 gets more than one chance. */
static int caught(const struct mutant *mutant, struct findings *findings)
{
    uint64_t chances = mutant->law == 7 ? 12 : 1;

    for (uint64_t seed = 1; seed <= chances; seed++) {
        struct mutant copy = *mutant;
        const struct adm_contract_subject subject = { .size = sizeof subject,
                                                      .name = mutant->what,
                                                      .user = &copy,
                                                      .open = open_mutant,
                                                      .seed = seed == 1 ? 0 : seed };
        struct adm_contract_summary summary;

        if (adm_contract_run(&subject, note, findings, &summary) != 0 &&
            (summary.laws_failed & 1u << (mutant->law - 1)) != 0)
            return 1;
    }
    return 0;
}

int main(void)
{
    const struct mutant *const all[] = {
        mutants_k1, mutants_k2, mutants_k3, mutants_k4, mutants_k5,
        mutants_k6, mutants_k7, mutants_k8, mutants_k9, mutants_k10
    };
    uint32_t count = 0, survived = 0;

    for (uint32_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (const struct mutant *mutant = all[i]; mutant->law != 0; mutant++) {
            struct findings findings = { .law = mutant->law };
            int ok = caught(mutant, &findings);

            survived += !ok;
            (void)printf("%s %u - K%u: %s # %s\n", ok ? "ok" : "not ok", ++count, mutant->law,
                         mutant->what, findings.first);
            (void)fflush(stdout);
        }
    }
    (void)printf("1..%u\n", count);
    return survived != 0;
}
