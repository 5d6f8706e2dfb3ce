/* SPDX-License-Identifier: MIT
 *
 * Signals, as `run`, `acquire` and `sweep --every` take them: while a lock is waited for they end
 * the wait, later they are kept until somebody fetches them. What follows is up to the callers.
 */
#ifndef ROWLOCK_CLI_SIGNALS_H
#define ROWLOCK_CLI_SIGNALS_H

#include <rowlock/rowlock.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Before a database is opened: MariaDB's client library has SIGPIPE ignored. A job must not. */
void signals_note(void);

/* From now on signals that would end us end waits on db with ROWLOCK_CANCELLED. Those that our
 * parent had us ignore (nohup, a background job of a script) stay ignored everywhere. */
void signals_cancel(rowlock_db *db);

/* From now on signals are kept. Returns the one that came since signals_cancel(), or 0. */
int signals_keep(void);

/* The next kept signal, SIGCHLD included, waiting for it so long at most; 0 if none came. */
int signals_next(int64_t wait_ms);

/* A new file descriptor that is readable while signals_next() would find one at once. It need not
 * be read. -1 where there is no such thing. */
int signals_fd(void);

/* This process is to die of the signal when all is done, so that the shell that called it sees what
 * happened. Returns the status that shells show for it. */
int die_later(int signal);

/* Dies of that signal, if status is still the one that die_later() returned. */
void die_of_signal(int status);

/* In a child: everything as this process found it. */
void signals_restore(void);

bool signal_ends(int signal); /* one of those that a process is asked to end with */

/* Milliseconds on a clock that goes on while the machine sleeps, as leases do. */
int64_t now_ms(void);

#endif
