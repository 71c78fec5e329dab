/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of a run as lines for people, much like the steps of a scenario file. */
#include <inttypes.h>

#include "run.h"

static const char *const unit_names[] = { "cost",   "requests", "input_tokens", "output_tokens",
                                          "tokens", "images",   "gpu_ms",       "watts" };

static void list_descriptors(struct text *text, const struct model_request *r)
{
    text_add(text, " d={");
    for (int i = 0; i < r->descriptor_count; i++) {
        text_add(text, i > 0 ? ", " : "");
        text_word(text, r->descriptors[i].key);
        text_add(text, ": ");
        text_word(text, r->descriptors[i].value);
    }
    text_add(text, "}");
}

static void list_amounts(struct text *text, const char *name, const struct model_amount *amounts,
                         int count)
{
    text_add(text, " %s={", name);
    for (int i = 0; i < count; i++)
        text_add(text, "%s%s: %" PRIu64 "%s", i > 0 ? ", " : "", unit_names[amounts[i].unit],
                 amounts[i].value, amounts[i].final ? " final" : "");
    text_add(text, "}");
}

static void list_lease(struct text *text, int lease_of)
{
    if (lease_of >= 0)
        text_add(text, " of=%d", lease_of);
    else
        text_add(text, " of=%s",
                 lease_of == LEASE_NONE     ? "none"
                 : lease_of == LEASE_FORGED ? "forged"
                                            : "unknown");
}

void render_operation(struct text *text, const struct run *run, int number)
{
    const struct operation *o = &run->operations[number];
    text_add(text, "%d mono=%" PRIu64 " wall=%" PRIu64 " %s", number, o->now.mono_ns,
             o->now.wall_ns, operation_names[o->kind]);
    switch (o->kind) {
    case OPERATION_ADMIT:
    case OPERATION_EXPLAIN:
        list_descriptors(text, &o->with.request);
        text_add(text, " cost=%" PRIu64, o->with.request.cost);
        list_amounts(text, "amounts", o->with.request.amounts, o->with.request.amount_count);
        if (o->with.request.attempt != 0) {
            text_add(text, " attempt=");
            text_word(text, o->with.request.attempt);
        }
        break;
    case OPERATION_READ:
        text_add(text, " rule=%s", model_text(o->word));
        list_descriptors(text, &o->with.request);
        break;
    case OPERATION_SETTLE:
        list_lease(text, o->lease_of);
        list_amounts(text, "totals", o->with.settle.totals, o->with.settle.count);
        text_add(text, o->with.settle.final_all ? " final" : "");
        break;
    case OPERATION_RELEASE:
    case OPERATION_RENEW:
    case OPERATION_DIVERT:
        list_lease(text, o->lease_of);
        break;
    case OPERATION_SIGNAL:
        text_add(text, " scope=%s replica=%s name=%s value=%.17g", model_text(o->with.signal.scope),
                 model_text(o->with.signal.replica), model_text(o->with.signal.name),
                 o->with.signal.value);
        break;
    case OPERATION_PUBLISH:
        text_add(text, " policy=%d", o->policy);
        break;
    case OPERATION_ROLLBACK:
        text_add(text, " version=%s", model_text(o->word));
        break;
    case OPERATION_TABLE:
        text_add(text, " %s ", o->patch ? "patch" : "replace");
        render_table(text, &run->tables[o->table], o->patch, 0);
        break;
    case OPERATION_SWEEP:
    case OPERATION_KINDS:
        break;
    }
    text_add(text, "\n");
}
