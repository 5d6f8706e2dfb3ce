/* SPDX-License-Identifier: MIT
 *
 * Every exit status of the command. print/texts.c says which result leads to which.
 */
#ifndef ROWLOCK_CLI_EXIT_H
#define ROWLOCK_CLI_EXIT_H

/* From 64 on they are those of sysexits.h, which other programs know. */
enum exit_status {
    EXIT_FINE = 0,
    /* show, break, once: not found. once last: not done. check: something is bad. */
    EXIT_NOTHING = 1,
    /* The command line, a name or a URL is not acceptable. */
    EXIT_USAGE = 64,
    /* The database cannot be reached, or takes no writes at present, or its answer was lost. */
    EXIT_UNREACHABLE = 69,
    /* Out of memory, or another failure of the database. */
    EXIT_INTERNAL = 70,
    /* Standard output, or a file, cannot be written. */
    EXIT_OUTPUT = 74,
    /* Another client holds the lock, is ahead in the queue, or kept the row busy. */
    EXIT_NOT_ACQUIRED = 75,
    /* The grant is gone, or the job was ended because of its lease. */
    EXIT_LOST = 76,
    /* The database refuses this user. */
    EXIT_DENIED = 77,
    /* No tables, foreign tables, a full disk, a read-only file or user, an unsupported server. */
    EXIT_UNFIT = 78,
    /* run: the command exists but cannot be executed. */
    EXIT_CANNOT_EXECUTE = 126,
    /* run: the command does not exist. */
    EXIT_NOT_FOUND = 127,
    /* Plus its number: what shells show for a process that died of a signal. */
    EXIT_SIGNAL = 128
};

#endif
