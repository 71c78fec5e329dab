/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: a clock that stands still, a backend that answers late, and the contract suite that
 * any author of a backend can run. In the static library admit-testing; source-stable within a
 * minor version, no ABI promise.
 */
#ifndef ADMIT_TESTING_H
#define ADMIT_TESTING_H

#include <admit/admit.h>
#include <admit/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fake clock ---- */

/* Moves only when told to; or by tick_ns at each read, so that code which waits for a deadline gets
 * there. */
struct adm_fake_clock {
    struct adm_time time;
    uint64_t tick_ns;
};

struct adm_clock adm_fake_clock_as_clock(struct adm_fake_clock *fake);
/* Both clocks; from one thread at a time. */
void adm_fake_clock_advance(struct adm_fake_clock *fake, uint64_t ns);

/* Repeatable bytes from a seed: for tests only. */
struct adm_fake_random {
    uint64_t state;
};

struct adm_random adm_fake_random_as_random(struct adm_fake_random *fake);

/* ---- deferring backend --------------------------------------------------------------------------
 * Wraps another backend (and closes it): an op is handed to the inner one after some polls, perhaps
 * out of order, perhaps never. SERIAL, CAN_DEFER. */
struct adm_deferring_options {
    uint32_t size;
    uint32_t flags;     /* ADM_DEFER_* */
    uint64_t polls_min; /* an op waits for this many polls … */
    uint64_t polls_max; /* … to this many, drawn from seed */
    uint64_t seed;
    uint64_t never_permille; /* so many of 1000 ops are not completed until cancelled or closed */
    uint64_t reserved[4];
};

#define ADM_DEFER_OUT_OF_ORDER   1u /* a later op may be handed on before an earlier one */
#define ADM_DEFER_KEEP_CANCELLED 2u /* cancel is ignored: the op is carried out all the same */

/* Errors ADM_E_INVALID_ARGUMENT, ADM_E_NOMEM: inner is still the caller's. */
adm_status adm_deferring_open(const struct adm_deferring_options *options, struct adm_backend inner,
                              struct adm_backend *out);

/* ---- the contract suite ---- */

/* What the suite asks an author's factory for. The state must be new and empty at each call. */
struct adm_contract_sizes {
    uint64_t partitions; /* at least this many; K5 fills up to what describe says */
    uint64_t leases;
    uint64_t attempts;
    uint64_t classes;
    struct adm_gate
        *tripwire; /* for a backend that could call a gate: this one must never be (K9) */
};

struct adm_contract_subject {
    uint32_t size;
    uint32_t flags;
    const char *name;
    void *user;
    adm_status (*open)(void *user, const struct adm_contract_sizes *sizes, struct adm_backend *out);
    uint64_t polls_max; /* an op that takes more polls than this has failed; 0: 100000 */
    uint64_t seed;      /* 0: one of the suite's own */
    uint64_t reserved[4];
};

/* One check of one law. law: 1 … 10. what: the name of the check. detail: "" or what was seen. */
struct adm_contract_finding {
    uint32_t law;
    uint32_t passed;  /* 1; 0: failed */
    uint32_t skipped; /* 1: could not run; detail says why */
    const char *what;
    const char *detail;
};

typedef void (*adm_contract_fn)(void *self, const struct adm_contract_finding *finding);

struct adm_contract_summary {
    uint64_t passed, failed, skipped;
    uint32_t laws_failed; /* bit n-1: law Kn */
};

/* Run laws K1 … K10. report may be NULL. Returns 0 when nothing failed, else 1. */
int adm_contract_run(const struct adm_contract_subject *subject, adm_contract_fn report,
                     void *report_self, struct adm_contract_summary *out);

/* The same with a printed TAP report on stdout: a whole runner is main() with this call. Returns an
 * exit status. */
int adm_contract_main(const struct adm_contract_subject *subject);

#ifdef __cplusplus
}
#endif
#endif
