/* SPDX-License-Identifier: MIT
 *
 * Several clients that want one lock; see crowd.h. The promises to them are in the files of the
 * subjects. */
#include "crowd.h"
#include "lock/queueing.h"

/* ---- guests */

static void invite(struct guest *g, const struct contract *c, rowlock_db *db, const char *name)
{
    *g = (struct guest){.c = c, .db = db, .how = ROWLOCK_ACQUIRE_OPTIONS_INIT};
    g->lock = must_lock(db, name);
    g->how.ttl_ms = HELD_MS;
    g->how.wait_ms = ROWLOCK_FOREVER;
}

void guest_open_as(struct guest *g, const struct contract *c, const char *url, const char *owner,
                   const char *name, int permits)
{
    invite(g, c, must_open_as(url, owner), name);
    g->how.permits = permits;
}

void guest_open(struct guest *g, const struct contract *c, const char *name, int permits)
{
    guest_open_as(g, c, c->url, NULL, name, permits);
}

void guest_adopt(struct guest *g, const struct contract *c, void *session, const char *name)
{
    invite(g, c, must_adopt(c->raw, session, NULL), name);
}

void guest_close(struct guest *g)
{
    rowlock_lock_close(g->lock);
    rowlock_db_close(g->db);
}

void guests_open(const struct contract *c, const char *name, int permits, ...)
{
    va_list guests;
    va_start(guests, permits);
    for (struct guest *g; (g = va_arg(guests, struct guest *));)
        guest_open(g, c, name, permits);
    va_end(guests);
}

void guests_close(struct guest *first, ...)
{
    va_list guests;
    va_start(guests, first);
    for (struct guest *g = first; g; g = va_arg(guests, struct guest *))
        guest_close(g);
    va_end(guests);
}

void guests_open_all(struct guest *guests, int count, const struct contract *c, const char *name,
                     int permits)
{
    for (int i = 0; i < count; i++)
        guest_open(&guests[i], c, name, permits);
}

void guests_close_all(struct guest *guests, int count)
{
    for (int i = 0; i < count; i++)
        guest_close(&guests[i]);
}

int guest_try(struct guest *g)
{
    rowlock_acquire_options once = g->how;
    once.wait_ms = 0;
    return rowlock_acquire(g->lock, &once);
}

static int stand(void *argument)
{
    struct guest *g = argument;
    int result = rowlock_acquire(g->lock, &g->how);
    g->ended = true;
    return result;
}

void guest_start(struct guest *g)
{
    g->ended = false;
    g->thread = helper_start(stand, g);
}

void guest_queue(struct guest *g)
{
    guest_start(g);
    if (!EVENTUALLY(g->ended || ticket_of(g) != 0) || g->ended)
        tap_ok(false, "%s: a waiter is in the queue", rowlock_lock_name(g->lock));
}

int guest_join(struct guest *g)
{
    if (!EVENTUALLY(g->ended))
        rowlock_cancel(g->db);
    return helper_join(g->thread);
}

int guest_cancel(struct guest *g)
{
    rowlock_cancel(g->db);
    return guest_join(g);
}

int guest_leave(struct guest *g)
{
    return rowlock_release(g->lock);
}

void guest_tries(struct guest *g, int want, const char *what)
{
    is_result(g->db, guest_try(g), want, "%s", what);
}

void guest_gets(struct guest *g, const char *what)
{
    is_result(g->db, guest_join(g), ROWLOCK_OK, "%s", what);
}

void guest_waits(const struct guest *g, const char *what)
{
    tap_ok(!g->ended, "%s", what);
}

void guest_releases(struct guest *g, int want, const char *what)
{
    is_result(g->db, guest_leave(g), want, "%s", what);
}

/* ---- the table */

int tickets_of(const struct contract *c, const char *name)
{
    return (int)int_on(c, "SELECT count(*) FROM rowlock_waiters WHERE name = '%s'", name);
}

long long ticket_of(const struct guest *g)
{
    return int_on(g->c,
                  "SELECT coalesce(max(ticket), 0) FROM rowlock_waiters "
                  "WHERE name = '%s' AND owner = '%s'",
                  rowlock_lock_name(g->lock), rowlock_lock_owner(g->lock));
}

void leave_ticket(const struct contract *c, const char *name, long long ticket,
                  long long expires_us)
{
    exec_on(c,
            "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires) "
            "VALUES ('%s', %lld, %lld, 0, 'somebody', 1, %lld)",
            name, ticket, 1000000 + ticket, expires_us);
}

/* ---- wake-ups */

void set_polls(int64_t pause_ms)
{
    rlk_poll_pause_us = pause_ms * 1000;
}

bool can_wake(const struct contract *c)
{
    return !c->pooled && (is_postgres(c) || !getenv("ROWLOCK_TEST_POOL"));
}

void guest_holds(struct guest *g, struct guest *first)
{
    if (!is_mysql(g->c) || !can_wake(g->c)) {
        guest_tries(g, ROWLOCK_OK, "a lock is held");
        return;
    }
    set_polls(OFTEN);
    guest_tries(first, ROWLOCK_OK, "a lock is held");
    guest_queue(g);
    guest_releases(first, ROWLOCK_OK, "released");
    guest_gets(g, "and held by a waiter");
    set_polls(0);
}
