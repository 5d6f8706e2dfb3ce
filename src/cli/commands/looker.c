/* SPDX-License-Identifier: MIT
 *
 * Looks at the tables for `watch`. cmd_watch.c and screen.c show what it finds.
 */
#include "cli/commands/looker.h"

#include "cli/run/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At the end, how long to wait for a look that has begun. */
enum { END_MS = 300 };

void looker_init(struct looker *looker, struct cli *cli)
{
    *looker = (struct looker){.cli = cli, .ready = {-1, -1}, .stop = {-1, -1}};
    looker->name = cli->argument_count > 0 ? cli->arguments[0] : NULL;
    pthread_mutex_init(&looker->mutex, NULL);
}

void looker_free(struct looker *looker)
{
    view_free(looker->news);
    rate_free(&looker->rate);
    pthread_mutex_destroy(&looker->mutex);
    for (int i = 0; i < 2; i++) {
        if (looker->ready[i] >= 0)
            close(looker->ready[i]);
        if (looker->stop[i] >= 0)
            close(looker->stop[i]);
    }
}

void view_free(struct view *view)
{
    if (view)
        snapshot_free(&view->snapshot);
    free(view);
}

struct view *looker_look(struct looker *looker)
{
    struct view *view = must_have(calloc(1, sizeof *view));
    rowlock_error error = ROWLOCK_ERROR_INIT;
    view->result = snapshot_take(&view->snapshot, looker->cli->db, looker->name);
    if (view->result != ROWLOCK_OK) {
        rowlock_db_error(looker->cli->db, &error);
        view->status = status_of_error(view->result, &error);
        snprintf(view->error, sizeof view->error, "%s: %s", error.action, error.text);
        return view;
    }
    view->grants = rate_note(&looker->rate, &view->snapshot);
    view->span_ms = rate_span_ms(&looker->rate);
    view->rate_milli = rate_milli(&looker->rate);
    return view;
}

/* ---------------------------------------------------------------- the thread */

static void signal_pipe(int fd)
{
    while (write(fd, "", 1) < 0 && errno == EINTR)
        ;
}

static bool begin_look(struct looker *looker)
{
    pthread_mutex_lock(&looker->mutex);
    looker->busy = !looker->stopping;
    bool begun = looker->busy;
    pthread_mutex_unlock(&looker->mutex);
    return begun;
}

static void give(struct looker *looker, struct view *view, bool last)
{
    pthread_mutex_lock(&looker->mutex);
    view_free(looker->news);
    looker->news = view;
    looker->busy = false;
    looker->ended = last;
    pthread_mutex_unlock(&looker->mutex);
    signal_pipe(looker->ready[1]);
}

/* False: the looker must end. */
static bool wait_until(const struct looker *looker, int64_t then_ms)
{
    struct pollfd stop = {.fd = looker->stop[0], .events = POLLIN};
    int64_t left_ms;
    while ((left_ms = then_ms - now_ms()) > 0) {
        if (poll(&stop, 1, left_ms < 60000 ? (int)left_ms : 60000) > 0)
            return false;
    }
    return true;
}

static void *look_repeatedly(void *context)
{
    struct looker *looker = context;
    const struct settings *set = &looker->cli->set;
    bool last = set->count == 1;
    if (last)
        give(looker, NULL, true);
    for (int64_t looks = 2; !last; looks++) {
        if (!wait_until(looker, now_ms() + set->interval_ms) || !begin_look(looker))
            break;
        last = looks == set->count;
        give(looker, looker_look(looker), last);
    }
    return NULL;
}

bool looker_start(struct looker *looker)
{
    int failed = pipe2(looker->ready, O_CLOEXEC | O_NONBLOCK) != 0 ||
                         pipe2(looker->stop, O_CLOEXEC | O_NONBLOCK) != 0
                     ? errno
                     : pthread_create(&looker->thread, NULL, look_repeatedly, looker);
    if (failed)
        complain("start a thread: %s", strerror(failed));
    return !failed;
}

struct view *looker_fetch(struct looker *looker, bool *ended)
{
    char bytes[64];
    while (read(looker->ready[0], bytes, sizeof bytes) > 0)
        ;
    pthread_mutex_lock(&looker->mutex);
    struct view *view = looker->news;
    looker->news = NULL;
    *ended = looker->ended;
    pthread_mutex_unlock(&looker->mutex);
    return view;
}

static bool is_busy(struct looker *looker)
{
    pthread_mutex_lock(&looker->mutex);
    looker->stopping = true;
    bool busy = looker->busy;
    pthread_mutex_unlock(&looker->mutex);
    return busy;
}

void looker_stop(struct looker *looker)
{
    struct pollfd news = {.fd = looker->ready[0], .events = POLLIN};
    signal_pipe(looker->stop[1]);
    if (is_busy(looker))
        poll(&news, 1, END_MS);
    if (is_busy(looker))
        looker->cli->abandon = true;
    else
        pthread_join(looker->thread, NULL);
}
