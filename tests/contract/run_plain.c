/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the plain backend. */
#include "contract/plain.h"

int main(void)
{
    const struct adm_contract_subject subject = { .size = sizeof subject,
                                                  .name = "plain",
                                                  .open = open_plain };

    return adm_contract_main(&subject);
}
