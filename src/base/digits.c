/* SPDX-License-Identifier: MIT
 * Numbers as digits. Reals use the C locale, since the program's may write 0,1. */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *rlk_write_int(int64_t number, char out[RLK_INT_TEXT])
{
    char *at = &out[RLK_INT_TEXT - 1];
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    *at = '\0';
    /* With snprintf() this would be a third of the cost of a batch. */
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    return at;
}

void rlk_write_real(double real, char out[RLK_REAL_TEXT])
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t callers = uselocale(plain);
    for (int digits = 15; digits <= 17; digits++) {
        /* NaN is written without a sign. */
        snprintf(out, RLK_REAL_TEXT, "%.*g", digits, isnan(real) ? fabs(real) : real);
        if (strtod(out, NULL) == real)
            break;
    }
    uselocale(callers);
    if (plain)
        freelocale(plain);
}

double rlk_read_real(const char *text)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double real = plain ? strtod_l(text, NULL, plain) : NAN;
    if (plain)
        freelocale(plain);
    return real;
}
