/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people in a buffer of fixed size, and the nearest legal word. */
#ifndef ADMI_WORDS_H
#define ADMI_WORDS_H

#include <admit/types.h>

/* Text that is cut off, at the border of a character, when it is full. Always NUL-terminated. */
struct admi_words {
    char *text;
    uint32_t capacity, length;
    uint32_t full;
};

struct admi_words admi_words_start(char *text, uint32_t capacity);
void admi_words_add(struct admi_words *words, const char *text);
void admi_words_add_bytes(struct admi_words *words, struct adm_bytes bytes);
void admi_words_add_number(struct admi_words *words, uint64_t number);
/* At most most bytes of it, then an ellipsis. */
void admi_words_quote(struct admi_words *words, struct adm_bytes bytes, uint32_t most);

struct adm_bytes admi_words_of(const char *text);

/*
 * Typing errors (insert, drop, replace, swap neighbours) between two words, whatever their case; 3
 * stands for more than 2, or more than short words can have and still be alike.
 */
uint32_t admi_words_distance(struct adm_bytes a, struct adm_bytes b);

#endif
