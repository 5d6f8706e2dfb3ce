/* SPDX-License-Identifier: MIT
 * The error that a handle has and a caller reads. Each setter returns the code that it sets. */
#ifndef RLK_ERROR_H
#define RLK_ERROR_H

#include <rowlock/rowlock.h>
#include <stdarg.h>

/* Clears the error, and sets its action to the verb and the name. name may be NULL. */
void rlk_error_begin(rowlock_error *error, const char *verb, const char *name);
int rlk_error_set(rowlock_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int rlk_error_vset(rowlock_error *error, int code, const char *format, va_list args);
/* The call returned this. What another code was about is cleared; the action stays. */
void rlk_error_end(rowlock_error *error, int code);
/* Copies as much as fits into the caller's struct, which begins with its size. */
void rlk_error_copy(rowlock_error *out, const rowlock_error *in);
/* For a call that opens something, and was given no place for it. */
int rlk_error_no_out(rowlock_error *err, const char *verb);

#endif
