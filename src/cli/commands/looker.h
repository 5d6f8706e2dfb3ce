/* SPDX-License-Identifier: MIT
 *
 * Looks at the tables for `watch`: once, or once in each interval in a thread. With the thread, a
 * screen answers its keys while the database hangs.
 */
#ifndef ROWLOCK_CLI_LOOKER_H
#define ROWLOCK_CLI_LOOKER_H

#include "cli/cli.h"
#include "cli/commands/rate.h"
#include "cli/commands/snapshot.h"

#include <pthread.h>

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
    /* The exit status of the result. */
    int status;
    /* One line, if result is not ROWLOCK_OK. */
    char error[1024];
};

struct looker {
    /* cli->db belongs to the thread while it runs. */
    struct cli *cli;
    /* Of the lock. NULL: all locks. */
    const char *name;
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

void looker_init(struct looker *looker, struct cli *cli);
void looker_free(struct looker *looker);

/* Looks once. Never NULL; free it with view_free(). */
struct view *looker_look(struct looker *looker);
void view_free(struct view *view);

/* Starts the thread, after a first look. It goes on as --interval and --count say. False: it could
 * not be started; a message says why. */
bool looker_start(struct looker *looker);

/* The newest view that was not fetched yet, or NULL. *ended: there will be no others. */
struct view *looker_fetch(struct looker *looker, bool *ended);

/* Ends the thread. Sets cli->abandon if the thread still waits for the database. */
void looker_stop(struct looker *looker);

#endif
