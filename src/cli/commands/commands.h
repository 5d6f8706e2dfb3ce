/* SPDX-License-Identifier: MIT
 *
 * The commands, for the table in main.c, and what several of them use.
 */
#ifndef ROWLOCK_CLI_COMMANDS_H
#define ROWLOCK_CLI_COMMANDS_H

#include "cli/run/run.h"

#include <pthread.h>

/* run/cmd_run.c, run/cmd_lead.c */
extern const struct command run_command, lead_command;
/* cmd_lock.c */
extern const struct command acquire_command, renew_command, release_command, verify_command;
/* cmd_wait.c: they look at one lock again and again. */
extern const struct command wait_command, leader_command;
/* cmd_list.c */
extern const struct command list_command, show_command;
/* cmd_watch.c, cmd_metrics.c, cmd_sweep.c, cmd_once.c */
extern const struct command watch_command, metrics_command, sweep_command, once_command;
/* cmd_admin.c */
extern const struct command install_command, upgrade_command, break_command, raise_command;
/* members.c */
extern const struct command check_command, join_command;

/* Carries out the command for each of several databases. */
int run_for_members(struct cli *cli);

/* ---------------------------------------------------------------- the rate of grants (rate.c) */

/* Each grant of a name has the next token, so tokens that were seen tell the number of grants.
 * Grants between two looks at a name are counted when the name is seen again. */

#define RATE_SAMPLES 10

struct rate {
    /* In the order of strcmp(). */
    struct seen *names;
    size_t count;
    int64_t looks;
    /* The numbers of grants at the latest looks. */
    int64_t grants[RATE_SAMPLES];
    /* The times since the looks before them. */
    int64_t spans_ms[RATE_SAMPLES];
    int64_t last_ms;
};

/* Returns the number of grants since the look before, 0 at the first look. */
int64_t rate_note(struct rate *rate, const struct snapshot *snapshot);

/* The time between the last look and the one before. */
int64_t rate_span_ms(const struct rate *rate);

/* Grants in 1000 seconds, over the latest looks. */
int64_t rate_milli(const struct rate *rate);

/* ---------------------------------------------------------------- looks of watch (looker.c) */

/* What one look has found. */
struct view {
    struct snapshot snapshot;
    /* Since the look before. */
    int64_t grants;
    /* The time since then. */
    int64_t span_ms;
    /* Grants in 1000 seconds, over some looks. */
    int64_t rate_milli;
    int result;
    /* The error of the library, if result is not ROWLOCK_OK. */
    rowlock_error error;
};

struct looker {
    /* cli->db belongs to the thread while it runs. */
    struct cli *cli;
    /* The name of the lock. NULL: all locks. */
    const char *name;
    /* The number of looks. UNSET: without an end. */
    int64_t most;
    struct rate rate;

    pthread_t thread;
    /* Protects the members below. */
    pthread_mutex_t mutex;
    /* Not yet fetched. */
    struct view *news;
    /* Looking now. */
    bool busy;
    bool stopping;
    /* There will be no more news. */
    bool ended;
    /* Readable when there are news, or it has ended. */
    int ready[2];
    /* Readable when it must end. */
    int stop[2];
};

void looker_free(struct looker *looker);

/* Looks once. Never NULL; free it with view_free(). */
struct view *looker_look(struct looker *looker);
void view_free(struct view *view);

/* "1 held, 0 waiting, 0.5 grants/s". Free it. */
char *view_summary(const struct view *view);

/* Starts the thread, after a first look. With the thread, a screen answers its keys while the
 * database hangs. False: it could not be started; a message says why. */
bool looker_start(struct looker *looker);

/* The newest view that was not fetched yet, or NULL. *ended: there will be no others. */
struct view *looker_fetch(struct looker *looker, bool *ended);

/* Ends the thread. Sets cli->abandon if the thread still waits for the database. */
void looker_stop(struct looker *looker);

/* Shows on a terminal what the looker finds, until the looker, a key or a signal ends it
 * (print/screen.c).
 *   - The looker must not run. It is started and stopped here.
 *   - first is shown at once, and freed.
 *   - *status gets the exit status.
 * False: there can be no screen here, and nothing was done. */
bool screen_watch(struct looker *looker, struct view *first, int *status);

#endif
