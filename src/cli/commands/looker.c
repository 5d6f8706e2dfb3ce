/* SPDX-License-Identifier: MIT
 *
 * Looks at the tables for `watch`: once, or once in each interval in a thread. cmd_watch.c and
 * screen.c show what it finds.
 */
#include "cli/commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At the end, how long to wait for a look that has begun. */
enum { END_MS = 300 };

void looker_free(struct looker *looker)
{
    view_free(looker->news);
    free(looker->rate.names);
    for (int i = 0; i < 2 && looker->stop[1]; i++) {
        close(looker->ready[i]);
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
    view->result = snapshot_take(&view->snapshot, looker->cli->db, looker->name);
    if (view->result != ROWLOCK_OK) {
        view->error = last_error(looker->cli);
        return view;
    }
    view->grants = rate_note(&looker->rate, &view->snapshot);
    view->span_ms = rate_span_ms(&looker->rate);
    view->rate_milli = rate_milli(&looker->rate);
    return view;
}

char *view_summary(const struct view *view)
{
    return new_text("%zu held, %zu waiting, %lld.%lld grants/s", view->snapshot.held,
                    view->snapshot.waiting, (long long)view->rate_milli / 1000,
                    (long long)view->rate_milli % 1000 / 100);
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
    bool begun = looker->busy = !looker->stopping;
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

static void *look_repeatedly(void *context)
{
    struct looker *looker = context;
    bool last = looker->most == 1;
    if (last)
        give(looker, NULL, true);
    for (int64_t looks = 2; !last; looks++) {
        if (!pause_until(now_ms() + general.interval_ms, looker->stop[0]) || !begin_look(looker))
            break;
        last = looks == looker->most;
        give(looker, looker_look(looker), last);
    }
    return NULL;
}

bool looker_start(struct looker *looker)
{
    pthread_mutex_init(&looker->mutex, NULL);
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
