/* SPDX-License-Identifier: Apache-2.0 */
/* What lib/policy keeps with a compiled policy, and the state of a load. */
#ifndef ADMI_PARTS_H
#define ADMI_PARTS_H

#include "policy/arena.h"
#include "policy/fields.h"

#define ADMI_KEY_SLOTS (2 * ADMI_POLICY_KEYS_MAX) /* a power of two */
#define ADMI_NO_RULE   UINT32_MAX

/* policy->arena points to this; it owns the policy. */
struct admi_policy_parts {
    struct adm_policy policy;
    struct admi_arena arena;
    struct adm_bytes *keys;   /* interned; policy.keys */
    uint16_t *key_slots;      /* index + 1 by hash, open addressing; 0: empty */
    uint32_t *rule_slots;     /* the same for rules, by id */
    uint32_t rule_slot_count; /* a power of two */
    struct adm_bytes *ids;    /* of the rules; while they are only checked, in the document */
    struct admi_rule *rules;  /* policy.rules */
};

/* NULL: no memory. */
struct admi_policy_parts *admi_parts_new(const struct adm_allocator *allocator);
void admi_parts_free(struct admi_policy_parts *parts);

/*
 * The slot of a key, now or since before; ADMI_NO_KEY when there are too many, or no memory (then
 * arena.failed).
 */
uint32_t admi_parts_intern(struct admi_policy_parts *parts, struct adm_bytes key);

/* Room for the look-up of count rules. */
void admi_parts_reserve_rules(struct admi_policy_parts *parts, uint32_t count);
/* File ids[index]; false: the id is taken. */
bool admi_parts_add_rule(struct admi_policy_parts *parts, uint32_t index);
struct adm_bytes admi_parts_rule_id(const struct adm_policy *policy, uint32_t rule);

/*
 * One load of a policy document. Rules are read twice: checked, which keeps nothing of them but
 * their ids, so that a text that is refused costs little; and built when there is nothing wrong.
 */
struct admi_loader {
    struct admi_document document;
    struct admi_policy_parts *parts;
    struct admi_node rules;
    bool building;
    struct admi_arena scratch; /* gone when the load is over */
    bool lint;                 /* say as well what is legal but suspicious */
};

/* What stays of a rule: a copy, if it is being built. */
struct adm_bytes admi_loader_copy(struct admi_loader *loader, struct adm_bytes bytes);
/* Memory was missing. */
bool admi_loader_failed(const struct admi_loader *loader);

/* An interned key; reports when there are too many. */
uint32_t admi_loader_key(struct admi_loader *loader, struct admi_node node, bool of_name,
                         struct adm_bytes key);

/* A match block; false: something was reported. While rules are checked, *out has only counts. */
bool admi_match_read(struct admi_loader *loader, struct admi_node node, struct admi_match *out);

/*
 * The canonical text of a compiled match: the same for two that hold for the same requests by the
 * same entries.
 */
struct adm_bytes admi_match_canonical(struct admi_arena *arena, const struct adm_bytes *keys,
                                      const struct admi_match *match);

/* A unit by name, of the policy as far as it is loaded; UINT32_MAX: none. */
uint32_t admi_unit_find(const struct adm_policy *policy, struct adm_bytes name);
bool admi_unit_read(struct admi_loader *loader, struct admi_node node, uint32_t *out);
void admi_unit_unknown(struct admi_loader *loader, struct admi_diag_entry *entry,
                       struct adm_bytes name);

/* Reports an item of an array of strings that the array has had before. */
void admi_item_again(const struct admi_document *document, struct admi_node array,
                     struct admi_node item, const char *expected);

/* Distinct descriptor keys, as slots. */
bool admi_keys_read(struct admi_loader *loader, struct admi_node node, uint32_t most,
                    uint32_t *slots, uint32_t *count);

void admi_rules_check(struct admi_loader *loader, struct admi_node node);
void admi_rules_build(struct admi_loader *loader);
void admi_top_read(struct admi_loader *loader);
/* Examples and emergency allowances: checked in full, though nothing acts on them yet. */
void admi_examples_read(struct admi_loader *loader, struct admi_node node);
void admi_allowances_read(struct admi_loader *loader, struct admi_node node);
/* A rule that a document names: reports an unknown one with the nearest. */
uint32_t admi_rule_named(const struct admi_document *document, const struct adm_policy *policy,
                         struct admi_node node, struct adm_bytes id);

/* 128 bits of the content: order of members and layout do not count. */
void admi_digest_document(const struct admi_document *document, uint8_t out[16]);

/* NULL: no memory (arena.failed). */
const struct admi_match_index *admi_match_index_build(const struct adm_policy *policy,
                                                      struct admi_arena *arena,
                                                      struct admi_arena *scratch);

#endif
