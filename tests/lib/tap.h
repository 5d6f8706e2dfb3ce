/* SPDX-License-Identifier: MIT
 *
 * The Test Anything Protocol for tests written in C: each check prints one line at once.
 * What is tested, and starting servers and processes, is not here.
 *
 * A program makes its checks and ends with `return tap_done();`. Every check returns whether it
 * passed, so that a test can give up early. A check's text is a sentence about behaviour. Threads may
 * check at the same time; a forked child must not: its parent counts.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

#if defined(__GNUC__)
#define TAP_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TAP_PRINTF(text, first)
#endif

bool tap_ok(bool passed, const char *format, ...) TAP_PRINTF(2, 3);

/* Says what it got and what it wanted when they differ. NULL is a string like any other. */
bool tap_is_int(long long got, long long want, const char *format, ...) TAP_PRINTF(3, 4);
bool tap_is_str(const char *got, const char *want, const char *format, ...) TAP_PRINTF(3, 4);

/* Count checks that cannot be made here as passed, and say why. */
void tap_skip(int count, const char *why);

/* A line for people, shown when something fails. */
void tap_note(const char *format, ...) TAP_PRINTF(1, 2);

/* Skip the whole program, before any check: returns the status to exit with. */
int tap_skip_all(const char *why);

/* Print the plan. Returns the status to exit with: 1 if a check failed or none was made. */
int tap_done(void);

#endif
