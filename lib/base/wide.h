/* SPDX-License-Identifier: Apache-2.0 */
/* 128-bit integers, where a product of two 64-bit numbers must not overflow. */
#ifndef ADMI_WIDE_H
#define ADMI_WIDE_H

#include <stdint.h>

__extension__ typedef unsigned __int128 admi_u128;
__extension__ typedef __int128 admi_i128;

#endif
