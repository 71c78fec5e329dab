/* SPDX-License-Identifier: Apache-2.0 */
/* What steps of a scenario say of requests and leases, as the library wants it. */
#ifndef CLI_SCENARIO_REQUEST_H
#define CLI_SCENARIO_REQUEST_H

#include "scenario.h"

struct request_parts {
    struct adm_request request;
    struct adm_descriptor *descriptors;
    struct adm_amount *amounts;
};

void answer_broken(struct answer *answer, const char *what);
void answer_failed(struct answer *answer, adm_status status); /* ADM_OK changes nothing */

/* A member that must be a string; an empty view and a broken step otherwise. */
struct adm_bytes string_member(const struct json *step, const char *key, struct answer *answer);

/* "d", "cost", "amounts" and "attempt" of a step. To be freed in every case. */
void read_request(struct scenario *scenario, const struct json *step, struct request_parts *parts,
                  struct answer *answer);
void read_descriptors(const struct json *step, struct request_parts *parts, struct answer *answer);
void request_parts_free(struct request_parts *parts);

/* Units and their values. What no caller of the library could pass (a sign, a fraction, true,
 * 2^64) is refused here with the same word that the library has for amounts out of range. *out
 * is the caller's, free(). */
size_t read_amounts(struct scenario *scenario, const struct json *object, struct adm_amount **out,
                    struct answer *answer);

/* A name also stands for "no lease": then every operation on it answers unknown. */
void lease_remember(struct scenario *scenario, const struct json *name, struct adm_id lease);
struct adm_id lease_of(struct scenario *scenario, const struct json *step, struct answer *answer);

#endif
