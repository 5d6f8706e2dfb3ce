/* SPDX-License-Identifier: MIT
 *
 * The commands, for the table in main.c, and what several of them use.
 */
#ifndef ROWLOCK_CLI_COMMANDS_H
#define ROWLOCK_CLI_COMMANDS_H

#include "cli/run/run.h"

/* Each is in cmd_*.c or members.c. */
extern const struct command run_command, lead_command, leader_command, acquire_command,
    renew_command, release_command, verify_command, wait_command, list_command, show_command,
    watch_command, metrics_command, sweep_command, once_command, break_command, raise_command,
    install_command, upgrade_command, check_command, join_command;

/* Carries out the command for each of several databases. */
int run_for_members(struct cli *cli);

/* ---------------------------------------------------------------- looks of watch (looker.c) */

/* What one look has found. */
struct view {
    struct snapshot snapshot;
    /* Since the look before, and the time since then. */
    int64_t grants, span_ms;
    /* Grants in 1000 seconds, over some looks. */
    int64_t rate_milli;
    int result;
    /* The error of the library, if result is not ROWLOCK_OK. */
    rowlock_error error;
};

/* Looks once. Never NULL; free it with view_free(). */
struct view *looker_look(struct cli *cli);
void view_free(struct view *view);

/* "1 held, 0 waiting, 0.5 grants/s" after another text. Free it. */
char *view_summary(const char *before, const struct view *view);

/* Starts a thread that looks, after a first look. cli->db belongs to the thread while it runs. With
 * it, a screen answers its keys while the database hangs. Returns a file that is readable when
 * there is a view, or no other will come. -1: it could not be started; a message says why. */
int looker_start(struct cli *cli);

/* looker_fetch() returns the next view, or NULL if there is none yet. *ended: there will be no
 * others. looker_stop() ends the thread. cli->abandon: it still waits for the database. */
struct view *looker_fetch(bool *ended);
void looker_stop(struct cli *cli);

/* Shows on a terminal what the looker finds, until the looker, a key or a signal ends it
 * (print/screen.c). It starts and stops the looker. first is shown at once, and freed. *status gets
 * the exit status. False: there can be no screen here, and nothing was done. */
bool screen_watch(struct cli *cli, struct view *first, int *status);

#endif
