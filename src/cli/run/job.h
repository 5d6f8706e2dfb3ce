/* SPDX-License-Identifier: MIT
 *
 * The command that `run` runs: a process group, which gets the terminal if we had it. supervise.c
 * decides when it has to end.
 */
#ifndef ROWLOCK_CLI_JOB_H
#define ROWLOCK_CLI_JOB_H

#include <stdbool.h>
#include <sys/types.h>

struct job {
    /* Of the command, and of its process group. */
    pid_t pid;
    /* -1: none. */
    int terminal;
    bool has_terminal;
    bool ended;
    bool stopped;
    int stop_signal;
    /* Once it has ended. */
    int wait_status;
};

/* Remembers which files our parent gave us. The job gets no others. */
void job_note_inherited_files(void);

/* Starts the command. Returns 0, or the errno that says why it could not be executed.
 *   - Signals must be kept.
 *   - The command also gets the file descriptor extra, unless that is -1.
 *   - It dies with the calling thread. */
int job_start(struct job *job, char **argv, int extra);

/* Looks whether the command ended or stopped. Collects all other children that have ended. */
void job_look(struct job *job);

/* Sends a signal to the whole group. */
void job_signal(const struct job *job, int signal);

/* Is a process of the group left? Ask soon after the command ended. */
bool job_group_lives(const struct job *job);

/* Was it stopped in the background because it asked for the terminal, and is that ours now? */
bool job_wants_terminal(const struct job *job);

/* Gives the terminal to the job if we are in its foreground. Takes it back if the job is. */
void job_give_terminal(struct job *job);
void job_take_terminal(struct job *job);

/* The status to exit with: the command's own, or 128 plus its signal. */
int job_exit_status(const struct job *job);

#endif
