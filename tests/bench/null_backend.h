/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that keeps nothing: every take gets the same answer, every give is released. What a
 * gate costs on it is the gate's own. */
#ifndef ADMIT_TESTS_NULL_BACKEND_H
#define ADMIT_TESTS_NULL_BACKEND_H

#include <admit/backend.h>

#include <stdbool.h>

struct adm_backend null_backend(bool deny);

#endif
