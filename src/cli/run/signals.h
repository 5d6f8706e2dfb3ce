/* SPDX-License-Identifier: MIT
 *
 * Signals of `run`, `lead`, `acquire`, `watch` and `sweep --every`. During a wait for a lock a
 * signal ends the wait. Later signals are kept until they are fetched. The callers decide what
 * follows.
 */
#ifndef ROWLOCK_CLI_SIGNALS_H
#define ROWLOCK_CLI_SIGNALS_H

#include <rowlock/rowlock.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Ignores SIGPIPE, as MariaDB's client library would: a lock is released also if nothing reads our
 * output. The job gets SIGPIPE as this process found it. */
void signals_ignore_pipe(void);

/* Nothing reads our output any more. Does such a process die of SIGPIPE here? Then
 * die_of_signal() will. */
bool die_of_pipe_later(void);

/* From now on, signals that would end us end waits on db with ROWLOCK_CANCELLED. Signals that our
 * parent made us ignore (nohup, a background job of a script) stay ignored. */
void signals_cancel(rowlock_db *db);

/* As when this process started. resign: but SIGUSR1 does nothing until signals_keep(), and ends no
 * wait either. */
void signals_start(bool resign);

/* From now on, signals are kept. Returns the one that came since signals_cancel(), or 0. */
int signals_keep(void);

/* The next kept signal, also SIGCHLD. It waits at most wait_ms. 0: none came. */
int signals_next(int64_t wait_ms);

/* Waits until then for a kept signal that is to end us. Returns it, or 0. */
int signals_pause(int64_t until_ms);

/* A new file descriptor. It is readable while signals_next() would find a signal at once. Do not
 * read it. -1: this system has none. */
int signals_fd(void);

/* This process will die of the signal when all is done, so that the calling shell sees what
 * happened. Returns the status that shells show for the signal. */
int die_later(int signal);

/* Dies of that signal, if status is the one that die_later() returned. */
void die_of_signal(int status);

/* In a child: all signals are again as this process found them. */
void signals_restore(void);

/* Is it a signal that asks a process to end? */
bool signal_ends(int signal);

/* Milliseconds on a clock that runs while the machine sleeps, as leases do. */
int64_t now_ms(void);

/* Microseconds since 1970, by this host's clock. */
int64_t wall_clock_us(void);

/* Waits until then. fd: -1, or a file that ends the wait when it is readable; then it returns
 * false. */
bool pause_until(int64_t then_ms, int fd);

#endif
