/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into every test of the run under a comma-decimal locale: a program that never calls
 * setlocale() would run in "C" whatever the environment says, and so prove nothing.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void force(void)
{
    const char *wanted = getenv("ADMIT_TEST_LOCALE");

    if (wanted == NULL)
        return;
    if (setlocale(LC_ALL, wanted) == NULL || strcmp(localeconv()->decimal_point, ",") != 0) {
        fprintf(stderr, "the locale %s with a decimal comma cannot be set\n", wanted);
        _Exit(99);
    }
}
