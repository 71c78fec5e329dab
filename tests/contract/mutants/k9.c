/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that breaks K9, no call back. */
#include "contract/mutants/mutants.h"

/* Asks the gate a harmless question from inside start. */
static void ask_gate(struct wrapper *wrapper, struct adm_op *op)
{
    char version[72];
    adm_status status = ADM_OK;

    if (wrapper->sizes.tripwire != NULL)
        status = adm_gate_version(wrapper->sizes.tripwire, version, sizeof version);
    if (status == ADM_OK || status == ADM_E_REENTRANT)
        pass_on(wrapper, op);
}

/* Only when a lease ends, to let somebody else in. */
static void ask_at_give(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_GIVE)
        ask_gate(wrapper, op);
    else
        pass_on(wrapper, op);
}

const struct mutant mutants_k9[] = {
    { 9, "asks the gate for its version", ask_gate },
    { 9, "calls the gate when a lease is given back", ask_at_give },
    { 0, NULL, NULL },
};
