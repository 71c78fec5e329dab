/* SPDX-License-Identifier: Apache-2.0 */
/* Backends that break K4, given time. */
#include <string.h>

#include "contract/mutants/mutants.h"

#include <time.h>

static adm_status at(struct wrapper *wrapper, struct adm_op *op, struct adm_time now)
{
    struct adm_op own = *op;
    adm_status status;

    own.now = now;
    status = wrap_perform(wrapper, &own);
    op->outcome = own.outcome;
    op->units = own.units;
    op->judged = own.judged;
    return status;
}

/* Reads a clock of its own (B034, B036). */
static void own_clock(struct wrapper *wrapper, struct adm_op *op)
{
    struct timespec real;
    struct adm_time now = op->now;

    (void)clock_gettime(CLOCK_MONOTONIC, &real);
    now.mono_ns += (uint64_t)real.tv_nsec;
    adm_op_complete(op, at(wrapper, op, now));
}

/* Counts every difference of two times, forward or back, as time that passed (B003). */
static void both_ways(struct wrapper *wrapper, struct adm_op *op)
{
    static uint64_t last_ns, passed_ns; /* of the one backend that runs at a time */
    struct adm_time now = op->now;

    if (op->kind == ADM_OP_PUT_CLASSES)
        last_ns = passed_ns = now.mono_ns;
    passed_ns += now.mono_ns > last_ns ? now.mono_ns - last_ns : last_ns - now.mono_ns;
    last_ns = now.mono_ns;
    now.mono_ns = passed_ns;
    adm_op_complete(op, at(wrapper, op, now));
}

/* Truncates time to milliseconds, and with it the moment told (B013, B016). */
static void coarse(struct wrapper *wrapper, struct adm_op *op)
{
    adm_status status = wrap_perform(wrapper, op);

    if (op->kind == ADM_OP_TAKE && status == ADM_OK) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            struct adm_term *term = &op->args.take->terms[i];

            if (term->passes_at_ns != UINT64_MAX)
                term->passes_at_ns -= term->passes_at_ns % ADM_MILLISECOND;
        }
    }
    adm_op_complete(op, status);
}

/* Every scope has one replica. */
static void one_replica(struct wrapper *wrapper, struct adm_op *op)
{
    if (op->kind == ADM_OP_TAKE) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++)
            op->args.take->terms[i].replicas = 1;
    }
    pass_on(wrapper, op);
}

/* A scope keeps the largest number of replicas that it ever had. */
static void most_replicas(struct wrapper *wrapper, struct adm_op *op)
{
    static uint64_t most; /* of the one backend that runs at a time */

    if (wrapper->count == 1)
        most = 1;
    if (op->kind == ADM_OP_TAKE) {
        for (uint32_t i = 0; i < op->args.take->term_count; i++) {
            struct adm_term *term = &op->args.take->terms[i];

            if (term->scope.length == 0)
                continue;
            most = term->replicas > most ? term->replicas : most;
            term->replicas = most;
        }
    }
    pass_on(wrapper, op);
}

/* A scope that is not listed any more keeps the replicas it had. */
static void scope_stays(struct wrapper *wrapper, struct adm_op *op)
{
    static char name[16]; /* of the one backend that runs at a time */
    static struct adm_replica_scope last;

    if (wrapper->count == 1)
        last.replicas = 0;
    if (op->kind == ADM_OP_PUT_CLASSES && last.replicas > 0) {
        op->args.classes->scopes = &last;
        op->args.classes->scope_count = 1;
    }
    if (op->kind == ADM_OP_TAKE && op->args.take->term_count > 0) {
        const struct adm_term *term = &op->args.take->terms[0];

        if (term->scope.length > 0 && term->scope.length < sizeof name) {
            memcpy(name, term->scope.data, term->scope.length);
            last = (struct adm_replica_scope){ { name, term->scope.length }, term->replicas };
        }
    }
    pass_on(wrapper, op);
}

const struct mutant mutants_k4[] = {
    { 4, "reads its own clock", own_clock },
    { 4, "takes time running back for time passing", both_ways },
    { 4, "truncates the moment that it tells", coarse },
    { 4, "does not scale with replicas", one_replica },
    { 4, "scales up and never down", most_replicas },
    { 4, "keeps the replicas of a scope that is gone", scope_stays },
    { 0, NULL, NULL },
};
