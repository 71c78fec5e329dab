/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of a given size and gates on them, for benchmarks and the tests of memory. */
#ifndef ADMIT_TESTS_RIG_H
#define ADMIT_TESTS_RIG_H

#include <admit/admit.h>
#include <admit/backends.h>

#include <stddef.h>
#include <stdint.h>

/* Text that grows; ends the program when there is no memory. */
struct text {
    char *bytes;
    size_t length, room;
};

__attribute__((format(printf, 2, 3))) void text_add(struct text *text, const char *format, ...);
void text_free(struct text *text);

/* How the rules that do not match fail to. */
enum other_rules {
    OTHER_EXACT, /* another value of the key that decides */
    OTHER_MIXED  /* exact 8, prefix 6, one of two entries holds 1, negated 1, of 16 */
};

/* matching rules that match every request of a rig, token buckets and concurrency in turns, large
 * enough never to deny; after others that do not match. */
void text_policy(struct text *text, unsigned matching, unsigned others, enum other_rules kind);

struct rig {
    struct adm_gate *gate;
    struct adm_allocator allocator; /* must outlive the gate */
    struct adm_descriptor descriptors[3];
    struct adm_request request;
    struct adm_decision decision;
};

/* A gate on plain, and a request with interned keys. Ends the program when something fails. */
void rig_open(struct rig *rig, const char *policy, size_t length, struct adm_clock clock,
              struct adm_allocator allocator);
/* The same on a backend of the caller's, with the system's clock and malloc. */
void rig_open_on(struct rig *rig, const char *policy, size_t length, struct adm_backend backend);
void rig_close(struct rig *rig);

/* One admit and its release; ends the program when it is not allowed. */
void rig_pair(struct rig *rig);

__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

#endif
