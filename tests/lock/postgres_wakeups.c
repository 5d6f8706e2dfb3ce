/* SPDX-License-Identifier: MIT
 *
 * What only PostgreSQL has to do with waiting: channels, listened to by us or by the application.
 */
#include "crowd.h"

#include <libpq-fe.h>

static int channels(const struct contract *c, void *session)
{
    return (int)raw_int(c->raw, session, "SELECT count(*) FROM pg_listening_channels()");
}

/* So many notifications have been sent to the session until now, all of them on this channel or with this
 * text. A notification comes some time after its commit, in the order of commits. So another one is sent after all,
 * and waited for. A pooler lends the session for a transaction, so it hears of nothing. */
static void is_heard(const struct contract *c, PGconn *conn, const char *about, int want,
                     const char *what)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
    int count = 0, about_it = 0;
    if (c->pooled)
        return;
    raw_run(c->raw, conn, "LISTEN \"the end\"");
    exec_on(c, "NOTIFY \"the end\"");
    for (bool end = false; !end;) {
        PGnotify *notify = PQnotifies(conn);
        if (notify) {
            end = strcmp(notify->relname, "the end") == 0;
            count += !end;
            about_it += strcmp(notify->relname, about) == 0 || strcmp(notify->extra, about) == 0;
            PQfreemem(notify);
        } else if (poll(&fd, 1, (int)slow_ms(60000)) <= 0 || !PQconsumeInput(conn)) {
            raw_failed("the last notification did not come", about);
        }
    }
    raw_run(c->raw, conn, "UNLISTEN \"the end\"");
    tap_is_int(about_it, want, "%s", what);
    if (!getenv("ROWLOCK_TEST_POOL")) /* whose waiters have one channel */
        tap_is_int(count, want, "and of nothing else");
}

/* The application listens on the connection that we borrow: it goes on, and hears nothing of ours. */
static void applications_channels(const struct contract *c, bool its_own)
{
    struct guest holder, g;
    OWNED(session) void *session = c->raw->open(c->url);
    if (its_own)
        raw_run(c->raw, session, "LISTEN \"the application\"");
    guest_open(&holder, c, "adopted wakeup", 0);
    guest_adopt(&g, c, session, "adopted wakeup");
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    exec_on(c, "NOTIFY \"the application\", 'news'");
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    guest_gets(&g, "the waiter on an adopted connection gets it");
    tap_is_int(channels(c, session), its_own, "which listens to what the application wants");
    is_heard(c, session, "the application", its_own, "it hears of that, though it came meanwhile");
    guest_releases(&g, ROWLOCK_OK, "it is released");
    guest_tries(&holder, ROWLOCK_OK, "and held again");
    guest_queue(&g);
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "a cancelled wait");
    tap_is_int(channels(c, session), its_own, "leaves no channel behind either");
    guest_close(&g);
    tap_is_int(channels(c, session), its_own, "nor does closing");
    guest_close(&holder);
}

/* The next waiter's channel, and the text of its notifications: the request. */
static void ask_next(const struct contract *c, void *session, const char *column, char out[100])
{
    const char *sql = textf(
        "SELECT %s FROM rowlock_waiters WHERE name = 'own wakeup' ORDER BY ticket DESC LIMIT 1",
        column);
    if (!c->raw->ask(session, sql, out, 100))
        raw_failed("no waiter", column);
}

/* A release notifies the first waiter and no other. The session listens to the channel of the next
 * one too. A pooler lends the session for a transaction, so it hears of nothing. */
static void our_channels(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g, next;
    int wakeups = c->pooled ? 0 : getenv("ROWLOCK_TEST_POOL") ? 1 : 2;
    char channel[100], request[100];
    guests_open(c, "own wakeup", 0, &holder, &g, &next, NULL);
    OWNED(session) void *session = c->raw->open(c->url);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    guest_queue(&next);
    /* A pool needs some time until it can be woken. */
    static const char woken[] = "SELECT count(*) FROM rowlock_waiters "
                                "WHERE name = 'own wakeup' AND wakeup <> ''";
    if (!c->pooled && !EVENTUALLY(int_on(c, woken) == 2))
        tap_ok(false, "both waiters can be woken");
    tap_is_int(
        raw_int(c->raw, session,
                "SELECT count(DISTINCT wakeup) FROM rowlock_waiters WHERE name = 'own wakeup' "
                "AND wakeup <> ''"),
        wakeups, "each waiter has its own wakeup, in a pool one for all, behind a pooler none");
    ask_next(c, session, "wakeup", channel);
    ask_next(c, session, "request", request);
    if (!c->pooled)
        raw_run(c->raw, session, "LISTEN \"%s\"", channel);
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    guest_gets(&g, "the first in line is woken for");
    is_heard(c, session, request, 0, "and not the next one");
    guest_releases(&g, ROWLOCK_OK, "which is");
    is_heard(c, session, request, 1, "when it is its turn");
    guest_gets(&next, "and gets it, woken for or not");
}

void contract_postgres_only(const struct contract *c)
{
    applications_channels(c, false);
    our_channels(c);
    contract_postgres_first(c);
    if (!getenv("ROWLOCK_TEST_POOL")) /* which refuses other tables than before */
        contract_postgres_objects(c);
    /* A pooler that lends a session for a transaction has no listener. */
    if (!c->pooled)
        applications_channels(c, true);
}
