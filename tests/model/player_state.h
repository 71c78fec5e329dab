/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the player share. */
#ifndef ADMIT_MODEL_PLAYER_STATE_H
#define ADMIT_MODEL_PLAYER_STATE_H

#include "player.h"

struct player {
    const struct run *run;
    const struct omissions *omissions;
    struct tally *tally;
    struct model *model;
    struct adm_gate *gate;
    struct adm_fake_clock clock;
    struct adm_fake_random random;
    struct adm_policy **loaded; /* by number, when needed */
    struct model_policy *
        *policies; /* by number, after omissions; only where they differ from the run's */
    uint32_t key_ids[GENERATE_KEYS];
    uint32_t units[MODEL_UNITS];
    int *serials;          /* the model's lease of an admit, by number of the operation; 0: none */
    struct adm_id *leases; /* the gate's lease, likewise */
    struct adm_id *by_serial;
    struct text difference, document;
    struct model_answer answer;
    bool answered;
    struct adm_decision decision;
    struct adm_rule_report reports[MODEL_MAX_RULES];
    const struct model_policy *reported; /* policy whose rules the reports are about */
    int report_count;
    bool report_names_wrong;
};

/* ---- policies (player.c) ---- */
bool player_omits(const struct player *player, int rule);
/* The policy as the library reads it; NULL and a difference when it refuses. */
struct adm_policy *player_load(struct player *player, int number);
struct adm_bytes player_bytes(int word);

/* ---- comparing (player.c): true, and a line in the difference, when they are not the same ---- */
bool player_differs(struct player *player, const char *what, int64_t expected, int64_t got);
bool player_texts_differ(struct player *player, const char *what, int expected, const char *got);
bool player_status_differs(struct player *player, adm_status expected, adm_status got);
bool player_outcome_differs(struct player *player, uint32_t expected, uint32_t got);

/* ---- one operation in both worlds (play_requests.c, play_others.c): false when the answers
 * differ ---- */
bool player_play_admit(struct player *player, const struct operation *operation, int number);
bool player_play_explain(struct player *player, const struct operation *operation);
bool player_play_read(struct player *player, const struct operation *operation);
bool player_play_settle(struct player *player, const struct operation *operation);
bool player_play_lease(struct player *player, const struct operation *operation);
bool player_play_signal(struct player *player, const struct operation *operation);
bool player_play_policy(struct player *player, const struct operation *operation);
bool player_play_table(struct player *player, const struct operation *operation);
bool player_play_sweep(struct player *player, const struct operation *operation);

#endif
