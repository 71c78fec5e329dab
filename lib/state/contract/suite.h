/* SPDX-License-Identifier: Apache-2.0 */
/* The contract suite's parts: a check is a function on a fresh world that says at most once what
 * is wrong. */
#ifndef ADMI_CONTRACT_SUITE_H
#define ADMI_CONTRACT_SUITE_H

#include "state/contract/world.h"

struct admi_check {
    struct admi_world world;
    const struct adm_contract_subject *subject;
    struct adm_contract_sizes sizes; /* that the world was opened with */
    bool failed, skipped;
    char detail[240];
};

/* Say what is wrong; only the first time counts. */
__attribute__((format(printf, 2, 3))) void admi_check_fail(struct admi_check *check,
                                                           const char *format, ...);
__attribute__((format(printf, 2, 3))) void admi_check_skip(struct admi_check *check,
                                                           const char *format, ...);

/* The check ends here if the condition does not hold. */
#define EXPECT(check, condition, ...)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            admi_check_fail(check, __VA_ARGS__);                                                   \
            return;                                                                                \
        }                                                                                          \
    } while (0)

#define EXPECT_LEVEL(check, class_index, partition, expected, because)                             \
    do {                                                                                           \
        int64_t level_ = admi_world_level(&(check)->world, class_index, partition);                \
                                                                                                   \
        EXPECT(check, level_ == (int64_t)(expected), "%s: level %lld, expected %lld", because,     \
               (long long)level_, (long long)(expected));                                          \
    } while (0)

struct admi_contract_check {
    uint32_t law;
    const char *what;
    void (*run)(struct admi_check *check);
    struct adm_contract_sizes sizes; /* all zero: small ones */
};

/* Each file has its laws in a table that ends with law 0. */
extern const struct admi_contract_check admi_contract_conservation[]; /* K1 K3 */
extern const struct admi_contract_check admi_contract_atomic[];       /* K2 K8 */
extern const struct admi_contract_check admi_contract_time[];         /* K4 K6 */
extern const struct admi_contract_check admi_contract_bounds[];       /* K5 */
extern const struct admi_contract_check admi_contract_terms[];        /* K1 K4 K5 K6 K8 */
extern const struct admi_contract_check admi_contract_threads[];      /* K7 */
extern const struct admi_contract_check admi_contract_process[];      /* K9 K10 */

#endif
