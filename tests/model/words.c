/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as small numbers, so that the model compares integers. For programs with one thread. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    char *text;
    size_t length;
};

static struct word *words;
static int word_count = 1; /* 0 means absent */
static int word_room;

int model_word(const char *text, size_t length)
{
    for (int i = 1; i < word_count; i++)
        if (words[i].length == length && memcmp(words[i].text, text, length) == 0)
            return i;
    if (word_count >= word_room) {
        word_room = word_room == 0 ? 64 : word_room * 2;
        words = realloc(words, (size_t)word_room * sizeof *words);
        if (words == NULL)
            abort();
    }
    struct word *word = &words[word_count];
    word->text = malloc(length + 1);
    if (word->text == NULL)
        abort();
    if (length > 0)
        memcpy(word->text, text, length);
    word->text[length] = '\0';
    word->length = length;
    return word_count++;
}

int model_word_of(const char *text)
{
    return model_word(text, strlen(text));
}

const char *model_text(int word)
{
    return word == 0 ? "" : words[word].text;
}

size_t model_length(int word)
{
    return word == 0 ? 0 : words[word].length;
}
