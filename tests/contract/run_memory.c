/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of the memory backend. */
#include "contract/memory.h"

int main(void)
{
    const struct adm_contract_subject subject = { .size = sizeof subject,
                                                  .name = "memory",
                                                  .open = open_memory };

    return adm_contract_main(&subject);
}
