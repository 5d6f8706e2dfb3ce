/* SPDX-License-Identifier: MIT
 *
 * The Test Anything Protocol for tests written in C. Each check prints one line at once.
 *
 * A program makes its checks and ends with `return tap_done();`. Every check returns whether it
 * passed, so that a test can give up early. The text of a check is a sentence about behaviour.
 * Threads may check at the same time. A forked child must not, because its parent counts. */
#pragma once

#include <stdbool.h>

#if defined(__GNUC__)
#define TAP_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TAP_PRINTF(text, first)
#endif

bool tap_ok(bool passed, const char *format, ...) TAP_PRINTF(2, 3);

/* If they differ, prints both. NULL is a string like any other. */
bool tap_is_int(long long got, long long want, const char *format, ...) TAP_PRINTF(3, 4);
bool tap_is_str(const char *got, const char *want, const char *format, ...) TAP_PRINTF(3, 4);

/* A failed check prints the place of its call in the source. A helper that checks for its caller has
 * such a macro too. Its function calls (tap_ok)(…) and keeps the caller's place. */
void tap_here(const char *file, int line);
#define TAP_HERE tap_here(__FILE__, __LINE__)
#define tap_ok(...) (TAP_HERE, tap_ok(__VA_ARGS__))
#define tap_is_int(...) (TAP_HERE, tap_is_int(__VA_ARGS__))
#define tap_is_str(...) (TAP_HERE, tap_is_str(__VA_ARGS__))

/* Keeps this thread's checks back. tap_keep() counts and prints them. tap_drop() does as if they had
 * not been made: it is for a machine that was too slow for what they check. */
void tap_hold(void);
bool tap_held_failed(void);
void tap_keep(void);
void tap_drop(void);

/* Counts checks that cannot be made here as passed, and says why. */
void tap_skip(int count, const char *why);

/* A line for people, shown when a test fails. */
void tap_note(const char *format, ...) TAP_PRINTF(1, 2);

/* Skips the whole program, before any check. Returns the exit status. */
int tap_skip_all(const char *why);

/* Prints the plan. Returns the exit status: 1 if a check failed or none was made. */
int tap_done(void);
