/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of a backend that answers late, in order and out of order. */
#include <admit/backends.h>
#include <admit/testing.h>

#include "contract/plain.h"

static adm_status open_deferring(void *user, const struct adm_contract_sizes *sizes,
                                 struct adm_backend *out)
{
    const struct adm_deferring_options *options = user;
    struct adm_backend inner;
    adm_status status = open_plain(NULL, sizes, &inner);

    if (status != ADM_OK)
        return status;
    status = adm_deferring_open(options, inner, out);
    if (status != ADM_OK)
        inner.ops->close(inner.self);
    return status;
}

int main(int argc, char **argv)
{
    struct adm_deferring_options options = { .size = sizeof options,
                                             .polls_min = 1,
                                             .polls_max = 9 };
    struct adm_contract_subject subject = { .size = sizeof subject, .name = "deferring" };

    (void)argv;
    options.seed = 7;
    options.flags = argc > 1 ? ADM_DEFER_OUT_OF_ORDER : 0;
    subject.user = &options;
    subject.open = open_deferring;
    return adm_contract_main(&subject);
}
