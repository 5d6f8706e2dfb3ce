/* SPDX-License-Identifier: MIT
 *
 * The leases of the locks that `run` holds, and the progress that the job reports. This part
 * remembers them and prints messages. supervise.c decides what follows.
 */
#ifndef ROWLOCK_CLI_LEASE_H
#define ROWLOCK_CLI_LEASE_H

#include "cli/cli.h"

struct one_lease {
    rowlock_lock *lock;
    /* now_ms() when it ends, never too late. */
    int64_t deadline_ms;
    /* The same by the database's clock. */
    int64_t expires_us;
    bool in_jeopardy;
    /* It is gone, or it ends within cli->margin_ms: the job must end. */
    bool lost;
    /* Lost because it ends. */
    bool running_out;
};

struct lease {
    struct cli *cli;
    /* Of cli->locks. */
    struct one_lease *each;
    /* When the first of them ends. */
    int64_t deadline_ms;
    /* At least one of them is. */
    bool in_jeopardy;
    bool lost;
    /* All that are lost are running out. */
    bool running_out;
    /* The name of a lock that is gone, or NULL. */
    const char *gone;
    /* When the job last reported progress. */
    int64_t progress_ms;
    /* -1: the job cannot report progress, or has closed it. */
    int progress_fd;
};

/* Begins to follow the locks that were just acquired. progress_fd may be -1. */
void lease_begin(struct lease *lease, struct cli *cli, int progress_fd);
void lease_end(struct lease *lease);

/* Asks the library, and prints what has become worse or better. */
void lease_look(struct lease *lease);

/* lease_hear() passes on the job's progress. lease_progress() reports progress for it. */
void lease_hear(struct lease *lease);
void lease_progress(struct lease *lease);

/* Has the job reported nothing for longer than --stall allows? */
bool lease_stalled(const struct lease *lease);

/* Makes the pipe for the job's progress, and ROWLOCK_PROGRESS_FD. Both ends are closed on exec.
 * Returns 0, or errno. */
int progress_open(int ends[2]);

#endif
