/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delta debugging over the recorded operations and the rules: leave something out, play again from
 * the start, keep the omission if the two still differ somewhere.
 */
#include "shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 4096

struct shrinker {
    const struct run *run;
    struct model *model;
    enum model_plant plant;
    int length; /* operations that count; the last one shows the difference */
    int replays_left;
    bool *operations;
    bool *rules;
};

/* Plays what is left; the number of the operation that differs, or -1. The player stays open
 * when asked for. */
static int replay(struct shrinker *s, struct player **out)
{
    struct omissions omissions = { s->operations, s->rules };
    struct tally tally = { 0 };
    struct player *p = player_new(s->run, s->model, s->plant, &omissions, &tally);
    int found = -1;
    s->replays_left--;
    for (int i = 0; p != NULL && i < s->length && found < 0; i++)
        if (!player_play(p, i))
            found = i;
    if (out != NULL)
        *out = p;
    else
        player_free(p);
    return found;
}

/* True when leaving out the range keeps a difference; then everything after it is left out too. */
static bool try_without(struct shrinker *s, int begin, int end)
{
    bool *before = malloc((size_t)s->length);
    if (before == NULL)
        abort();
    memcpy(before, s->operations, (size_t)s->length);
    bool any = false;
    for (int i = begin; i < end; i++) {
        any = any || !s->operations[i];
        s->operations[i] = true;
    }
    int found = any ? replay(s, NULL) : -1;
    if (found >= 0)
        s->length = found + 1;
    else
        memcpy(s->operations, before, (size_t)s->length);
    free(before);
    return found >= 0;
}

static bool shrink_operations(struct shrinker *s)
{
    bool smaller = false;
    for (int size = s->length / 2; size >= 1 && s->replays_left > 0;
         size = size > 1 ? (size + 1) / 2 : 0)
        for (int end = s->length; end > 0 && s->replays_left > 0; end -= size) {
            if (end > s->length)
                end = s->length;
            smaller = try_without(s, end > size ? end - size : 0, end) || smaller;
        }
    return smaller;
}

static bool shrink_rules(struct shrinker *s)
{
    bool smaller = false;
    for (int i = 0; i < s->run->policy_count; i++)
        for (int j = 0; j < s->run->policies[i]->rule_count && s->replays_left > 0; j++) {
            int id = s->run->policies[i]->rules[j].id;
            if (id >= WORDS || s->rules[id])
                continue;
            s->rules[id] = true;
            int found = replay(s, NULL);
            if (found >= 0)
                s->length = found + 1;
            else
                s->rules[id] = false;
            smaller = smaller || found >= 0;
        }
    return smaller;
}

static bool policy_used(const struct shrinker *s, int policy)
{
    if (policy == 0)
        return true;
    for (int i = 0; i < s->length; i++)
        if (!s->operations[i] && s->run->operations[i].kind == OPERATION_PUBLISH &&
            s->run->operations[i].policy == policy)
            return true;
    return false;
}

static void print(struct shrinker *s)
{
    struct text text = { 0 };
    struct player *p;
    replay(s, &p);
    printf("smallest case: start mono=%llu wall=%llu\n", (unsigned long long)s->run->start.mono_ns,
           (unsigned long long)s->run->start.wall_ns);
    for (int i = 0; i < s->run->policy_count && p != NULL; i++) {
        if (!policy_used(s, i))
            continue;
        text_clear(&text);
        render_policy(&text, player_policy(p, i), s->run->layouts[i]);
        printf("policy %d: %.*s\n", i, (int)text.length, text.bytes);
    }
    for (int i = 0; i < s->length; i++) {
        if (s->operations[i])
            continue;
        text_clear(&text);
        render_operation(&text, s->run, i);
        printf("%.*s", (int)text.length, text.bytes);
    }
    if (p != NULL)
        printf("%s", player_difference(p));
    player_free(p);
    text_free(&text);
}

void shrink(const struct run *run, struct model *model, enum model_plant plant, int replays_max)
{
    struct shrinker s = { .run = run,
                          .model = model,
                          .plant = plant,
                          .length = run->operation_count,
                          .replays_left = replays_max };
    s.operations = calloc((size_t)run->operation_count + 1, sizeof *s.operations);
    s.rules = calloc(WORDS, sizeof *s.rules);
    if (s.operations == NULL || s.rules == NULL)
        abort();
    bool smaller = true;
    while (smaller && s.replays_left > 0) {
        smaller = shrink_operations(&s);
        smaller = shrink_rules(&s) || smaller;
    }
    print(&s);
    free(s.operations);
    free(s.rules);
}
