/* SPDX-License-Identifier: MIT
 *
 * Looks at the tables once in an interval for `watch`: in a thread, so that a database that hangs
 * does not keep a screen from answering its keys, or one look at a time.
 */
#ifndef ROWLOCK_CLI_LOOKER_H
#define ROWLOCK_CLI_LOOKER_H

#include "cli.h"
#include "rate.h"
#include "snapshot.h"

#include <pthread.h>

/* What one look has found. */
struct view {
    struct snapshot snapshot;
    int64_t grants; /* since the look before, */
    int64_t span_ms; /* which was so long ago */
    int64_t rate_milli; /* grants in 1000 seconds, over some looks */
    int result;
    char error[1024]; /* if that is not ROWLOCK_OK, one line */
};

struct looker {
    struct cli *cli; /* cli->db is the thread's while it runs */
    const char *name; /* whose locks; NULL: all */
    struct rate rate;

    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    struct view *news; /* not yet fetched */
    bool busy; /* with a look */
    bool stopping;
    bool ended; /* there will be no more news */
    int wake[2]; /* readable when there are news, or it has ended */
    int stop[2]; /* readable when it shall end */
};

void looker_init(struct looker *looker, struct cli *cli);
void looker_free(struct looker *looker);

/* Looks once. Never NULL; free it with view_free(). */
struct view *looker_look(struct looker *looker);
void view_free(struct view *view);

/* Goes on looking as --interval and --count say after a first look. False, after saying why, if
 * that cannot be. */
bool looker_start(struct looker *looker);

/* The newest view that was not fetched yet, or NULL. *ended tells whether there will be others. */
struct view *looker_fetch(struct looker *looker, bool *ended);

/* Ends it. If it does not end soon, cli->abandon is set: its thread still waits for the
 * database. */
void looker_stop(struct looker *looker);

#endif
