/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the whole memory backend work on: a backend driven through its table of
 * operations, a bucket without refill, two counts and a quota; and rollback on the plain backend,
 * which the same tests must find out.
 */
#ifndef TESTS_STRESS_MEMORY_SUBJECT_H
#define TESTS_STRESS_MEMORY_SUBJECT_H

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <admit/backends.h>

#define SUBJECT_START_NS (UINT64_C(1000) * ADM_SECOND)
#define SUBJECT_WALL_NS  (UINT64_C(1780000000) * ADM_SECOND) /* the end of May 2026 */

enum { BUCKET, COUNT_A, COUNT_B, QUOTA, OBJECTS };
enum { TERMS_MAX = 3, VARIANTS = 4, ENDLESS = UINT32_MAX };

/* ---- TAP, chance, other threads ---- */

extern uint64_t scale, seed;

void begin(void);
int end(void);
void ok(bool passed, const char *what);
uint64_t next_random(uint64_t *state);
/* Of this thread from now on: one point in so many lets others run; 0: none. */
void yield_at_points(uint32_t one_in, uint64_t random);
/* Of this thread from now on: where its take is half done, it waits until this has grown, but not
 * for ever. NULL: it does not. */
void wait_at_points(const _Atomic uint64_t *work);

/* ---- the backend ---- */

struct way {
    const char *name;
    uint32_t hard_after, back_off;
    bool rollback;
};

extern const struct way ways[];
extern const uint32_t way_count;
extern const struct way usual, hard_at_once, rollback;

struct subject {
    struct adm_backend backend;
    uint64_t handles[OBJECTS];
};

/* Numbers in force for one request, by variant of the policy. BUCKET: its capacity. */
uint64_t limit_of(uint32_t object, uint32_t variant);

/* With nothing put. */
void subject_open(struct subject *subject, const struct way *way, uint64_t partitions);
void subject_close(struct subject *subject);

/* At start + seconds. */
adm_status subject_run(const struct subject *subject, struct adm_op *op, uint64_t seconds);

/* The four classes, the bucket with this capacity; in one group or each alone. */
struct put {
    uint64_t capacity;
    bool grouped;
    uint64_t handles[OBJECTS], sequence; /* out */
    struct adm_time judged;              /* out */
};

adm_status subject_put(const struct subject *subject, struct put *put, uint64_t seconds);
/* The first set, at 0: its sequence. */
uint64_t subject_put_first(struct subject *subject, uint64_t capacity, bool grouped);

struct wish {
    uint32_t object;
    uint64_t amount, limit;
    const char *partition;
};

enum { WISH_LEASE = 1, WISH_JUDGE = 2 };

/* A take and all that it points to. */
struct request {
    struct adm_term terms[TERMS_MAX];
    struct adm_meter meters[TERMS_MAX];
    struct adm_take take;
    struct adm_op op;
};

/* Every term has a unit of its own, ADM_UNIT_FIRST_DECLARED + object, and may be corrected. */
adm_status subject_take(const struct subject *subject, struct request *request,
                        const struct wish *wishes, uint32_t count, uint32_t flags,
                        uint64_t sequence, uint64_t ttl_seconds, uint64_t seconds);

/* Used, held or the level, by judging; aborts if that fails. */
int64_t subject_level(const struct subject *subject, uint32_t object, const char *partition,
                      uint64_t sequence, uint64_t seconds);

/* ADM_OP_GIVE, RENEW: the outcome; aborts if that fails. */
uint32_t subject_about(const struct subject *subject, uint32_t kind, struct adm_id lease,
                       uint64_t seconds, uint64_t *units);
uint32_t subject_settle(const struct subject *subject, struct adm_id lease, uint32_t object,
                        uint64_t total, bool final, uint64_t seconds);
void subject_sweep(const struct subject *subject, uint64_t budget, uint64_t seconds);

/* ---- the parts of the test ---- */

void test_histories(void);
void test_crossings(void);

#endif
