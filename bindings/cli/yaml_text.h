/* SPDX-License-Identifier: Apache-2.0 */
/* What `admit fmt` needs of YAML beyond the library: comments in, and text out. */
#ifndef CLI_YAML_TEXT_H
#define CLI_YAML_TEXT_H

#include "json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct yaml_place {
    uint32_t line, column; /* from 1 */
};

/*
 * The first comment of a text that the library has read. Never false for a text that has one: what
 * is not surely something else counts as a comment.
 */
bool yaml_first_comment(const char *text, size_t length, struct yaml_place *out);

/* The value as a YAML document in block style; false: no memory, or out does not take it. */
bool yaml_print(FILE *out, const struct json *value, size_t columns);

/* Is this a build that can do the two? */
bool yaml_is_built(void);

#endif
