/* SPDX-License-Identifier: MIT
 *
 * The command that `run` runs: a process group of its own, on the terminal if we were on it. When
 * it has to end is decided in cmd_run.c.
 */
#ifndef ROWLOCK_CLI_JOB_H
#define ROWLOCK_CLI_JOB_H

#include <stdbool.h>
#include <sys/types.h>

struct job {
    pid_t pid; /* of the command, and of its process group */
    int terminal; /* -1: none */
    bool has_terminal;
    bool ended;
    bool stopped;
    int stop_signal;
    int wait_status; /* once it ended */
};

/* Remembers which files our parent gave us. All others are kept from the job. */
void job_note_inherited_files(void);

/* Starts it: 0, or the errno that tells why it could not be executed. Signals must be kept. It gets
 * the file descriptor extra besides its own, unless that is -1. It dies with the calling thread. */
int job_start(struct job *job, char **argv, int extra);

/* Looks whether the command ended or stopped, and collects all other children that have ended. */
void job_look(struct job *job);

/* To the whole group. */
void job_signal(const struct job *job, int signal);

/* Is anybody of the group left? Only to be asked soon after the command ended. */
bool job_group_lives(const struct job *job);

/* Was it stopped in the background because it asked for the terminal, which is ours now? */
bool job_wants_terminal(const struct job *job);

/* Gives the terminal to the job if we are in its foreground; takes it back if the job is. */
void job_give_terminal(struct job *job);
void job_take_terminal(struct job *job);

/* The status to exit with: the command's own, or 128 plus its signal. */
int job_exit_status(const struct job *job);

#endif
