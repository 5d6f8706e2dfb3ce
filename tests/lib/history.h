/* SPDX-License-Identifier: MIT
 *
 * The history of a load: each client writes down what it asks and what it is told, and judge.h
 * tells what that proves. Times are microseconds of CLOCK_MONOTONIC, the same clock for all
 * processes of one machine. Names have no blanks. A line of the file is one of
 *
 *   P ttl_ms                            the lease of locks and jobs
 *   G name token asked answered until   a grant: its lease lasts until then, as its holder knows it
 *   H name token at until               the holder works on, and knows of this end of its lease
 *   E name token at                     the holder has stopped, and lets the lock go
 *   L name token at until               it was told LOST, although its lease ran on
 *   S name token at                     a child of `rowlock run` began
 *   t name token at                     and is alive
 *   C call result took_ms bound_ms      a call of the library
 *   O call result                       an answer that no client should get
 *   T id source target cents token      a transfer begins
 *   Y id, U id, F id                    it is committed; not known; not done
 *   W name token result before at       a write to the fenced register; before: the token there
 *   Q round place waiter                the queue before the lock was free: the waiter's place
 *   w round waiter result token         what became of the wait
 *   M at what                           the fault script did something. No renewal reaches the
 *                                       database, or a majority of a quorum, from `cut` to `back`
 *   X name token                        the clock of a member has jumped, and not all of the others
 *                                       have a row of this grant
 *   b account cents, B account cents    what is in the account at the beginning and at the end
 *   J id source target cents token      a transfer that is in the journal at the end
 *   N name token                        the newest token of the name at the end
 *   R name token                        the token in the register at the end
 *
 * Where clients are stopped and killed at any moment, grants are told by the database's clock. From
 * is the earliest, told the latest moment at which the grant can have been made.
 *
 *   g name token from until told permits
 *                                       a grant, whose lease ends at until
 *   r name token until                  it is renewed
 *   k name token at                     it stood then, whatever its lease
 *   e name token at                     from then on it may be released
 *   l name token                        it was told LOST
 *
 * Lines that begin with # are for people. */
#pragma once

#include "quick.h"

enum { HISTORY_WORD = 40, HISTORY_NUMBERS = 5 };

/* A line: its words, and its numbers in their order. */
struct line {
    char kind;
    char name[HISTORY_WORD], word[HISTORY_WORD];
    long long n[HISTORY_NUMBERS];
};

/* ---- writing */

/* NULL: $TMPDIR. */
void history_open(const char *folder);
/* Begins again, with an empty file. */
void history_clear(void);
/* A file of that folder. The next call by this thread overwrites it. */
const char *history_path(const char *name);
/* Writes one line at once. */
void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes G. */
void tell_grant(const char *name, rowlock_lock *lock, long long asked);
/* Writes H and returns true, or returns false. Then it writes L if the lease should have lasted for
 * longer than the margin. *until is the end of the lease at the last look. */
bool tell_holding(const char *name, rowlock_lock *lock, int margin_ms, long long *until);
/* Writes O if the result is an error that no outage explains. */
void tell_odd(const char *call, int result);

/* ---- reading */

/* Leaves out lines that are not whole: the process that wrote them was killed. */
struct line *history_lines(const char *path, int *count);
/* How many lines are of one of these kinds. */
int history_count(const char *kinds);
