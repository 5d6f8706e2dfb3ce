/* SPDX-License-Identifier: MIT
 *
 * Every exit status of the command, in one place. Which result leads to which is in report.c.
 */
#ifndef ROWLOCK_CLI_EXIT_H
#define ROWLOCK_CLI_EXIT_H

/* From 64 on they are those of sysexits.h, so that other programs know what to make of them. */
enum exit_status {
    EXIT_FINE = 0,
    EXIT_NOTHING = 1, /* show, break: there is no such thing; check: something is bad */
    EXIT_USAGE = 64, /* the command line, a name or a URL is not acceptable */
    EXIT_UNREACHABLE = 69, /* the database cannot be reached, or its answer was lost */
    EXIT_INTERNAL = 70, /* out of memory, or the database failed in a way of its own */
    EXIT_OUTPUT = 74, /* standard output cannot be written */
    EXIT_NOT_ACQUIRED = 75, /* others hold the lock or wait for us, or another transaction won */
    EXIT_LOST = 76, /* the grant is gone, or the job was ended because of its lease */
    EXIT_DENIED = 77, /* the database refuses this user */
    EXIT_UNFIT = 78, /* no tables, foreign tables, a read-only or unsupported server */
    EXIT_CANNOT_EXECUTE = 126, /* run: the command is there but cannot be executed */
    EXIT_NOT_FOUND = 127, /* run: the command is not there */
    EXIT_SIGNAL = 128 /* plus its number: what shells show for one that died of a signal */
};

#endif
