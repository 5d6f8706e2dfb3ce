/* SPDX-License-Identifier: MIT
 * Errors, as a handle keeps them and a caller is told. Each setter returns the code that it has
 * set. */
#ifndef RLK_ERROR_H
#define RLK_ERROR_H

#include <rowlock/rowlock.h>
#include <stdarg.h>

void rlk_error_begin(rowlock_error *error, const char *verb, const char *name); /* of an action */
int rlk_error_set(rowlock_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rlk_error_vset(rowlock_error *error, int code, const char *format, va_list args);
/* As far as the caller's struct, which begins with its size, reaches. */
void rlk_error_copy(rowlock_error *out, const rowlock_error *in);

#endif
