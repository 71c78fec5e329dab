/* SPDX-License-Identifier: Apache-2.0 */
/* A take of the memory backend under way: between memory_take.c and memory_judge.c. */
#ifndef ADMI_MEMORY_TAKE_H
#define ADMI_MEMORY_TAKE_H

#include "state/memory.h"

/* A term, looked up. */
struct memory_judged {
    struct adm_term *term;
    uint32_t space;
    uint32_t partition; /* index of question.keys */
    bool no_class;      /* a bucket in a replica scope for which there is no room */
    bool no_room;
    bool refused;              /* room was thought to be there, and was not: not asked again */
    bool item;                 /* the lease may settle it later */
    bool limited;              /* it becomes live, in a family with max_partitions */
    uint64_t changes;          /* then: what those of the family must be */
    uint64_t value;            /* as read */
    struct memory_place place; /* line 0: there is none, that is, as new */
    struct memory_quota quota;
    struct memory_numbers numbers;
    struct memory_moment moment; /* bucket */
    struct admi_txn_step *step;  /* that charges it; NULL: none */
};

/* Terms of one take mostly have few partitions, and the same bytes for each. */
struct memory_named {
    struct adm_bytes name;
    bool is_known; /* the rest: where the first value was found that was looked for */
    uint32_t space;
    uint64_t group;
    struct memory_place place;         /* line 0: this group has no line in this space */
    struct memory_partition partition; /* its group: that of who asked last */
};

struct memory_question {
    struct memory_run *run;
    struct adm_take *take;
    bool has_shadow;
    uint32_t patience; /* how often it still publishes a count of replicas */
    uint32_t named_count;
    uint32_t keep_count;
    uint32_t keep[2 * ADM_MAX_TERMS]; /* values of this take: not to be evicted by it */
    struct memory_named named[2 * ADM_MAX_TERMS];
    struct memory_judged terms[2 * ADM_MAX_TERMS];
};

enum memory_answer {
    MEMORY_ANSWERED = 0, /* *status says how */
    MEMORY_AGAIN = 1     /* something has changed: from the beginning */
};

/* Look all terms up, judge them, write the verdicts. The guard was read (admi_memory_begin()).
 * Nothing is written but what nobody can see. */
enum memory_answer admi_memory_judge(struct memory_question *question, adm_status *status);
/* Was all that was read so at one moment? */
bool admi_memory_judged_at_once(struct memory_question *question);

static inline bool admi_memory_is_shadow(const struct memory_judged *judged)
{
    return (judged->term->flags & ADM_TERM_F_SHADOW) != 0;
}

/* Whether a term will need a record that is not there yet. */
static inline bool admi_memory_needs_record(const struct memory_judged *judged)
{
    return judged->place.line == 0 &&
           (judged->item ||
            (judged->term->amount > 0 && (judged->term->flags & ADM_TERM_F_COMPLETION) == 0));
}

/* The same key again and again, for another group: not copied. */
static inline const struct memory_partition *
admi_memory_partition_of(struct memory_question *question, const struct memory_judged *judged)
{
    struct memory_partition *partition = &question->named[judged->partition].partition;

    partition->group = judged->numbers.group;
    return partition;
}

static inline uint32_t admi_memory_whole_tag(const struct memory_numbers *numbers)
{
    return numbers->id | (numbers->grid != 0 ? MEMORY_TAG_GRID : 0);
}

/* ---- memory_attempt.c ---- */

/* True: the take is answered by an attempt that is known. */
bool admi_memory_attempt_answer(struct memory_run *run, struct adm_take *take,
                                struct admi_key *name);
/* A line for the attempt of a take, with all that has to be remembered; put into the plan.
 * Returns ADMI_TXN_DONE; ADMI_TXN_REFUSED the table is full; LOST or STALE: begin again. */
int admi_memory_attempt_draft(struct memory_plan *plan, const struct adm_take *take,
                              const struct admi_key *name, struct adm_id lease,
                              struct memory_new_line *out);
void admi_memory_attempt_drop(struct memory_run *run, const struct memory_new_line *drop);

/* ---- memory_shadow.c ---- */

/* Charge the shadow terms of a take that was granted. lease: its slot; NULL: none. */
void admi_memory_charge_shadow(struct memory_question *question, struct memory_lease *lease);
/* The shadow hold of a lease ends (renew: goes on). */
void admi_memory_shadow_end(struct memory_run *run, struct adm_id id);
void admi_memory_shadow_renew(struct memory_run *run, struct adm_id id);

#endif
