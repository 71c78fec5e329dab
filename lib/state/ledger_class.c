/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of a ledger: which are there and with which numbers is the registry's business; here are
 * its questions about their buckets. */
#include "state/ledger.h"

static bool class_is_as_new(void *self, uint32_t place)
{
    struct ledger *ledger = self;
    struct ledger_region *region = admi_ledger_region_of(ledger, class_at(ledger, place)->family);

    for (uint32_t at = class_state_at(ledger, place)->first_partition; at != 0;
         at = partition_at(region, at)->class_next) {
        if (partition_at(region, at)->pins > 0 ||
            !admi_ledger_partition_is_as_new(ledger, partition_at(region, at)))
            return false;
    }
    return true;
}

static void class_forget(void *self, uint32_t place)
{
    struct ledger *ledger = self;
    struct ledger_region *region = admi_ledger_region_of(ledger, class_at(ledger, place)->family);

    for (uint32_t at = class_state_at(ledger, place)->first_partition, next; at != 0; at = next) {
        next = partition_at(region, at)->class_next;
        (void)admi_ledger_partition_reclaim(ledger, region, at);
    }
}

static bool family_forget(void *self, uint32_t place)
{
    struct ledger *ledger = self;
    struct ledger_region *region = admi_ledger_region_of(ledger, place);

    for (uint32_t at = family_state_at(ledger, place)->first_partition, next; at != 0; at = next) {
        next = partition_at(region, at)->family_next;
        if (!admi_ledger_partition_reclaim(ledger, region, at))
            return false;
    }
    return true;
}

/* The words of a class move to its new grid. */
static void class_rescale(void *self, uint32_t place, const struct adm_odometer *before)
{
    struct ledger *ledger = self;
    const struct admi_registry_class *class_ = class_at(ledger, place);
    struct ledger_region *region = admi_ledger_region_of(ledger, class_->family);

    for (uint32_t at = class_state_at(ledger, place)->first_partition; at != 0;
         at = partition_at(region, at)->class_next) {
        struct ledger_partition *partition = partition_at(region, at);

        partition->empty =
            adm_bucket_rescale(before, &class_->odometer, ledger->now_ns, partition->empty);
    }
}

static void family_changed(void *self, uint32_t place)
{
    admi_ledger_family_changed(self, place);
}

static void family_made(void *self, uint32_t place)
{
    *family_state_at(self, place) = (struct ledger_family){ 0 };
}

static void class_made(void *self, uint32_t place)
{
    *class_state_at(self, place) = (struct ledger_class){ 0 };
}

static struct admi_registry_hooks hooks_of(struct ledger *ledger)
{
    return (struct admi_registry_hooks){ .self = ledger,
                                         .class_is_as_new = class_is_as_new,
                                         .class_forget = class_forget,
                                         .family_forget = family_forget,
                                         .class_rescale = class_rescale,
                                         .family_changed = family_changed,
                                         .family_made = family_made,
                                         .class_made = class_made };
}

adm_status admi_ledger_put_classes(struct ledger *ledger, struct adm_class_set *set)
{
    const struct admi_registry_hooks hooks = hooks_of(ledger);

    return admi_registry_put(&ledger->registry, &hooks, set, ledger->now_ns);
}

bool admi_ledger_class_reclaim(struct ledger *ledger, uint32_t place)
{
    const struct admi_registry_hooks hooks = hooks_of(ledger);

    return admi_registry_class_reclaim(&ledger->registry, &hooks, place, ledger->now_ns);
}

bool admi_ledger_family_reclaim(struct ledger *ledger, uint32_t place)
{
    const struct admi_registry_hooks hooks = hooks_of(ledger);

    return admi_registry_family_reclaim(&ledger->registry, &hooks, place);
}

adm_status admi_ledger_term_class(struct ledger *ledger, const struct adm_term *term,
                                  uint64_t sequence, uint32_t *out_class)
{
    const struct admi_registry_hooks hooks = hooks_of(ledger);
    struct admi_registry *registry = &ledger->registry;
    const struct admi_registry_family *family;
    const struct admi_registry_class *class_;
    bool shadow = (term->flags & ADM_TERM_F_SHADOW) != 0;

    if (term->class_handle == 0 || term->class_handle > registry->class_table.high)
        return ADM_E_BACKEND_STALE;
    class_ = class_at(ledger, term->class_handle);
    if (class_->family == 0 || class_->base != 0 || !class_->in_set)
        return ADM_E_BACKEND_STALE;
    family = family_at(ledger, class_->family);
    if (registry->owners[family->owner].sequence != sequence || family->kind != term->kind ||
        (family->region == LEDGER_SHADOW) != shadow)
        return ADM_E_BACKEND_STALE;
    *out_class = (uint32_t)term->class_handle;
    if (family->kind != ADM_KIND_BUCKET)
        return ADM_OK;
    if (class_->per_replica && term->scope.length > 0)
        return admi_registry_scope(registry, &hooks, *out_class, term->scope,
                                   term->replicas > 0 ? term->replicas : 1, ledger->now_ns,
                                   out_class);
    /* Without a scope: the class itself, the same as when it did not scale. */
    admi_registry_unscoped(registry, &hooks, *out_class, ledger->now_ns);
    return ADM_OK;
}
