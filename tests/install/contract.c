/* SPDX-License-Identifier: Apache-2.0 */
/* An author of a backend outside the tree: the installed contract suite, on our own backend. */
#include <admit/backends.h>
#include <admit/testing.h>

static adm_status open_plain(void *user, const struct adm_contract_sizes *sizes,
                             struct adm_backend *out)
{
    struct adm_plain_options options = { .size = sizeof options };

    (void)user;
    options.partitions_max = sizes->partitions;
    options.leases_max = sizes->leases;
    options.attempts_max = sizes->attempts;
    options.classes_max = sizes->classes;
    return adm_plain_open(&options, out);
}

int main(void)
{
    struct adm_contract_subject subject = {
        .size = sizeof subject, .name = "plain, installed", .open = open_plain
    };

    return adm_contract_main(&subject);
}
