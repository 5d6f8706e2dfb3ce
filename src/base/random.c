/* SPDX-License-Identifier: MIT
 * Random numbers that are hard to guess. Jitter need not be: pause.c. */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

static int random_bytes(void *out, size_t size)
{
    unsigned char *next = out;
    while (size > 0) {
        ssize_t n = getrandom(next, size, 0);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n > 0) {
            next += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

int rlk_random_owner(char out[RLK_TEXT_MAX + 1])
{
    unsigned char bits[16];
    if (random_bytes(bits, sizeof bits) != 0)
        return -1;
    for (size_t i = 0; i < sizeof bits; i++)
        snprintf(out + 2 * i, 3, "%02x", bits[i]);
    return 0;
}

int rlk_random_seed(uint64_t *out)
{
    return random_bytes(out, sizeof *out);
}
