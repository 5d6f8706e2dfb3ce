/* SPDX-License-Identifier: MIT
 *
 * The ways to wait for a lock: rowlock's, and those it is compared with. */
#include "hand.h"

/* ---- trying again and again */

struct poller {
    struct polling polling;
    struct session *session;
};

struct polling polling_of(double pause_s)
{
    return (struct polling){.pause_s = pause_s, .random = (unsigned)rand()};
}

/* The release may come at any time of the first pause: the lock is held for too short a time here to
 * show that. */
bool poll_for(struct polling *polling, bool (*try)(void *session), void *session)
{
    double pause_s = polling->pause_s * rand_r(&polling->random) / RAND_MAX;
    while (!polling->stopped) {
        if (try(session))
            return true;
        sleep_s(pause_s);
        pause_s = polling->pause_s;
    }
    return false;
}

static void *open_poller(const struct place *place, const char *name, double pause_s)
{
    struct poller *p = zeroed(1, sizeof *p);
    p->session = hand_open(place, name);
    p->polling = polling_of(pause_s);
    return p;
}

static void *open_slow(const struct place *place, const char *name)
{
    return open_poller(place, name, 0.1);
}

static void *open_fast(const struct place *place, const char *name)
{
    return open_poller(place, name, 0.02);
}

static void close_poller(void *session)
{
    struct poller *p = session;
    hand_close(p->session);
    free(p);
}

static bool attempt(void *session)
{
    return hand_do(session, "attempt") == 1;
}

static bool poll_for_lock(void *session)
{
    struct poller *p = session;
    return poll_for(&p->polling, attempt, p->session);
}

static void leave(void *session)
{
    hand_do(((struct poller *)session)->session, "leave");
}

void stop_polling(void *session)
{
    ((struct polling *)session)->stopped = true;
}

/* ---- the database's own locks */

static bool lock(void *session)
{
    hand_do(((struct poller *)session)->session, "lock");
    return true;
}

static void unlock(void *session)
{
    hand_do(((struct poller *)session)->session, "unlock");
}

/* ---- what the server tells */

static int64_t statements(void *session)
{
    return hand_number(session, "statements");
}

static int64_t connections(void *session)
{
    return hand_number(session, "connections");
}

struct observer hand_observer(const struct place *place, struct session *session)
{
    const struct hand *hand = place->hand;
    bool counts = hand_way(hand, "statements", 0) != NULL;
    return (struct observer){.session = session,
                             .statements = counts ? statements : NULL,
                             .connections = counts ? connections : NULL,
                             .dir = hand->server_dir_env ? getenv(hand->server_dir_env) : NULL};
}

/* ---- all of them */

static struct waiter rowlock_way(const struct site *site, const char *label, const char *legend)
{
    return (struct waiter){.label = label,
                           .legend = legend,
                           .place = &site->ours,
                           .open = ours_open,
                           .close = ours_close,
                           .acquire = ours_wait,
                           .release = ours_release,
                           .keep = ours_keep,
                           .stop = ours_stop};
}

static struct waiter polling_way(const struct site *site, const char *label,
                                 void *(*open)(const struct place *place, const char *name))
{
    return (struct waiter){.label = label,
                           .place = &site->theirs,
                           .open = open,
                           .close = close_poller,
                           .acquire = poll_for_lock,
                           .release = leave,
                           .stop = stop_polling};
}

int ways_to_wait(const struct site *site, bool unfair_too, struct waiter *out)
{
    const struct way *own = hand_way(site->hand, "lock", 0);
    int count = 0;
    out[count++] = rowlock_way(site, "rowlock", NULL);
    if (unfair_too) {
        out[count] =
            rowlock_way(site, "rowlock, unfair", "the first that finds the lock free takes it");
        out[count++].acquire = ours_wait_unfair;
    }
    out[count] = rowlock_way(site, "rowlock, adopted", "on a connection of the caller's");
    out[count++].open = ours_open_adopted;
    out[count++] = polling_way(site, "polling at 100 ms", open_slow);
    out[count] = polling_way(site, "polling at 20 ms", open_fast);
    out[count++].legend = "INSERT unless it is there; sleep; again. DELETE";
    if (own) {
        out[count] = polling_way(site, own->label, open_fast);
        out[count].legend = own->legend;
        out[count].acquire = lock;
        out[count].release = unlock;
        out[count++].stop = NULL;
    }
    return count;
}
