/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to leases, signals, policies and tables, in both worlds. */
#include "player_state.h"

/* ---- leases ---- */

/* The lease of an operation in both worlds. */
static int lease_of(const struct player *p, const struct operation *o, struct adm_id *out)
{
    *out = (struct adm_id){ 0 };
    if (o->lease_of >= 0 && p->serials[o->lease_of] != 0) {
        *out = p->leases[o->lease_of];
        return p->serials[o->lease_of];
    }
    if (o->lease_of == LEASE_UNKNOWN)
        *out = (struct adm_id){ o->any, o->any * 31 + 7 };
    if (o->lease_of == LEASE_FORGED) { /* a real one with one bit turned */
        struct adm_id real = p->by_serial[1];
        if ((real.high | real.low) != 0)
            *out =
                (struct adm_id){ real.high ^ (o->any & 1),
                                 real.low ^ (o->any & 1 ? 0 : UINT64_C(1) << (o->any >> 1 & 63)) };
    }
    return 0;
}

bool player_play_settle(struct player *p, const struct operation *o)
{
    struct adm_amount totals[MODEL_MAX_AMOUNTS];
    struct adm_id lease;
    uint32_t expected = ADM_OUTCOME_COUNT;
    uint32_t got = ADM_OUTCOME_COUNT;
    int serial = lease_of(p, o, &lease);
    for (int i = 0; i < o->with.settle.count; i++) {
        const struct model_amount *t = &o->with.settle.totals[i];
        totals[i] = (struct adm_amount){ .unit = p->units[t->unit],
                                         .flags = t->final ? ADM_AMOUNT_FINAL : 0,
                                         .value = t->value };
    }
    adm_status wanted = model_settle(p->model, o->now, serial, o->with.settle.totals,
                                     o->with.settle.count, o->with.settle.final_all, &expected);
    adm_status status = adm_settle(p->gate, lease, totals, (uint64_t)o->with.settle.count,
                                   o->with.settle.final_all, &got);
    if (player_status_differs(p, wanted, status))
        return false;
    p->tally->invalid += wanted != ADM_OK;
    return wanted != ADM_OK || !player_outcome_differs(p, expected, got);
}

bool player_play_lease(struct player *p, const struct operation *o)
{
    struct adm_id lease;
    uint32_t got = ADM_OUTCOME_COUNT;
    uint32_t expected;
    adm_status status;
    int serial = lease_of(p, o, &lease);
    if (o->kind == OPERATION_RELEASE) {
        expected = model_release(p->model, o->now, serial);
        status = adm_release(p->gate, lease, (uint32_t)(o->any % ADM_RESULT_COUNT), &got);
    } else if (o->kind == OPERATION_RENEW) {
        expected = model_renew(p->model, o->now, serial);
        status = adm_renew(p->gate, lease, &got);
    } else {
        expected = model_divert(p->model, o->now, serial);
        status = adm_divert(p->gate, lease, &got);
    }
    bool bad = player_status_differs(p, ADM_OK, status);
    return !(bad || player_outcome_differs(p, expected, got));
}

/* ---- signals, policies, tables ---- */

bool player_play_signal(struct player *p, const struct operation *o)
{
    model_signal(p->model, o->now, o->with.signal.scope, o->with.signal.replica,
                 o->with.signal.name, o->with.signal.value);
    return !player_status_differs(p, ADM_OK,
                                  adm_gate_signal(p->gate, player_bytes(o->with.signal.scope),
                                                  player_bytes(o->with.signal.replica),
                                                  player_bytes(o->with.signal.name),
                                                  o->with.signal.value));
}

bool player_play_policy(struct player *p, const struct operation *o)
{
    adm_status wanted;
    adm_status status;
    char version[80];
    if (o->kind == OPERATION_PUBLISH) {
        if (player_policy(p, o->policy)->rule_count == 0)
            return true; /* every rule is left out */
        struct adm_policy *policy = player_load(p, o->policy);
        if (policy == NULL)
            return false;
        wanted = model_publish(p->model, o->now, player_policy(p, o->policy));
        status = adm_gate_publish(p->gate, policy);
    } else {
        wanted = model_rollback(p->model, o->now, o->word);
        status = adm_gate_rollback(p->gate, player_bytes(o->word));
    }
    p->tally->published += wanted == ADM_OK;
    p->tally->refused += wanted != ADM_OK;
    if (player_status_differs(p, wanted, status))
        return false;
    if (adm_gate_version(p->gate, version, sizeof version) != ADM_OK)
        version[0] = '\0';
    return !player_texts_differ(p, "version in force", model_policy_in_force(p->model)->version,
                                version);
}

bool player_play_table(struct player *p, const struct operation *o)
{
    const struct model_table *table = &p->run->tables[o->table];
    struct adm_diags *diags = NULL;
    if (player_omits(p, table->rule))
        return true;
    text_clear(&p->document);
    render_table(&p->document, table, o->patch, o->any);
    adm_status wanted = model_put_table(p->model, o->now, table, o->patch);
    struct adm_bytes text = { p->document.bytes, p->document.length };
    adm_status status =
        adm_gate_put_table(p->gate, text, o->patch ? ADM_TABLE_PATCH : ADM_TABLE_REPLACE, &diags);
    struct adm_diag diag = { .size = sizeof diag };
    bool bad = player_status_differs(p, wanted, status);
    if (bad && adm_diags_get(diags, 0, &diag) == ADM_OK)
        text_add(&p->difference, "  %s %s: %s\n  %s\n", diag.name, diag.pointer, diag.message,
                 p->document.bytes);
    adm_diags_free(diags);
    return !bad;
}

bool player_play_sweep(struct player *p, const struct operation *o)
{
    uint32_t done;
    model_sweep(p->model, o->now);
    return !player_status_differs(p, ADM_OK,
                                  adm_gate_sweep(p->gate, o->any % 3 == 0 ? 10 : 100000, &done));
}
