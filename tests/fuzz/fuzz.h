/* SPDX-License-Identifier: MIT
 *
 * What the targets share. Each test_*.c here defines LLVMFuzzerTestOneInput(): `make fuzz` links it with
 * libFuzzer, and `make check` with replay.c, which feeds it the files of its corpus. A target aborts when
 * something does not hold. */
#pragma once

#include "quick.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_must(bool holds)
{
    if (!holds)
        abort();
}

/* A text in memory of just its size, so that a sanitizer sees a read behind it; free() it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_must(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* The next byte of the input; 0 at its end. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};
static inline uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}
