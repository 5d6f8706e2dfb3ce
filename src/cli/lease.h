/* SPDX-License-Identifier: MIT
 *
 * The leases of the locks that `run` holds, as the library tells of them, and the progress that the
 * job tells. Here this is remembered and said; what follows from it is decided in cmd_run.c.
 */
#ifndef ROWLOCK_CLI_LEASE_H
#define ROWLOCK_CLI_LEASE_H

#include "cli.h"

struct one_lease {
    rowlock_lock *lock;
    int64_t deadline_ms; /* now_ms() when it ends, never too late */
    int64_t expires_us; /* the same by the database's clock */
    bool in_jeopardy;
    bool lost; /* it is gone, or ends within cli->margin_ms: the job must end */
    bool running_out; /* lost, and it is the second of these */
};

struct lease {
    struct cli *cli;
    struct one_lease *each; /* of cli->locks */
    int64_t deadline_ms; /* when the first of them ends */
    bool in_jeopardy; /* any of them */
    bool lost; /* any of them */
    bool running_out; /* what is lost is so because its time runs out */
    const char *gone; /* the name of one that is lost otherwise, or NULL */
    int64_t progress_ms; /* when the job last told progress */
    int progress_fd; /* where it does; -1: nowhere, or no longer */
};

/* Of the locks that were just acquired. progress_fd may be -1. */
void lease_begin(struct lease *lease, struct cli *cli, int progress_fd);
void lease_end(struct lease *lease);

/* Asks the library, and says what has become worse or better. */
void lease_look(struct lease *lease);

/* Passes on what the job has told since; or tells progress instead of it. */
void lease_hear(struct lease *lease);
void lease_progress(struct lease *lease);

/* Has the job told nothing for longer than --stall allows? */
bool lease_stalled(const struct lease *lease);

/* Makes the pipe that the job tells progress by, and ROWLOCK_PROGRESS_FD for it. Both ends are
 * closed on exec. Returns 0, or errno. */
int progress_open(int ends[2]);

#endif
