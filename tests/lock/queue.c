/* SPDX-License-Identifier: MIT
 *
 * The queue of the waiters: in which order they are granted the lock, which is passed by, what is left in
 * the table. That the next one is woken, and no wake-up lost, is in wakeup.c, lines of 64 processes in each_line.c.
 */
#include "crowd.h"

#include "faultproxy.h"

enum { GUESTS = 5 };
static const long long HOUR_US = 3600000000;
/* The last in the queue: only waiters behind a dead one, and sweeps, clear it away. */
static const long long LAST_TICKET = 9000000000000000;

static long long in_an_hour(void)
{
    return unix_clock_us() + HOUR_US;
}

/* ---- order */

struct seen {
    int count, stop_after, dead, out_of_order;
    rowlock_waiter waiters[GUESTS + 1]; /* the first of them */
    long long last_ticket;
    char last_name[256];
};

static int see(void *context, const rowlock_waiter *waiter)
{
    struct seen *seen = context;
    int names = strcmp(seen->last_name, waiter->name);
    seen->out_of_order += names > 0 || (names == 0 && seen->last_ticket >= waiter->ticket);
    seen->dead += waiter->position == 0;
    if (seen->count <= GUESTS)
        seen->waiters[seen->count] = *waiter;
    seen->last_ticket = waiter->ticket;
    snprintf(seen->last_name, sizeof seen->last_name, "%s", waiter->name);
    return ++seen->count == seen->stop_after;
}

static int ended(const struct guest *guests)
{
    int count = 0;
    for (int i = 0; i < GUESTS; i++)
        count += guests[i].ended;
    return count;
}

static void line_is_listed(rowlock_db *db, const struct guest *guests)
{
    struct seen seen = {0};
    int right = 0;
    is_result(db, rowlock_list_waiters(db, "line", see, &seen), ROWLOCK_OK, "the line is listed");
    tap_is_int(seen.count, GUESTS, "each client that stands in it");
    for (int i = 0; i < seen.count && i < GUESTS; i++)
        right +=
            seen.waiters[i].position == i + 1 && seen.waiters[i].ticket == ticket_of(&guests[i]);
    tap_is_int(right, GUESTS, "in its place, in the order of tickets");
    tap_is_int(seen.out_of_order, 0, "which is the order of coming");
}

static void in_order(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder;
    struct guest guests[GUESTS];
    int64_t token;
    guest_open(&holder, c, "line", 0);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    token = rowlock_lock_token(holder.lock);
    for (int i = 0; i < GUESTS; i++) {
        guest_open(&guests[i], c, "line", 0);
        guest_queue(&guests[i]);
    }
    line_is_listed(holder.db, guests);
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    for (int i = 0; i < GUESTS; i++) {
        guest_gets(&guests[i], "the next in line gets it");
        tap_is_int(ended(guests), i + 1, "no other client");
        tap_ok(rowlock_lock_token(guests[i].lock) == token + 1, "with the next token");
        token = rowlock_lock_token(guests[i].lock);
        tap_is_int(ticket_of(&guests[i]), 0, "its ticket is gone with the grant");
        guest_tries(&holder, ROWLOCK_BUSY,
                    "the client that has had it must go to the end of the queue");
        guest_releases(&guests[i], ROWLOCK_OK, "and releases it");
    }
    tap_is_int(tickets_of(c, "line"), 0, "no ticket is left");
    guest_tries(&holder, ROWLOCK_OK, "nor an obstacle");
    guests_close_all(guests, GUESTS);
}

static void line_ends(struct guest *holder, struct guest *g, const char *what)
{
    guest_releases(holder, ROWLOCK_OK, "the lock is released");
    guest_gets(g, what);
}

static void waits_in_vain(struct guest *g, int64_t wait_ms, const char *what)
{
    g->how.wait_ms = wait_ms;
    is_result(g->db, rowlock_acquire(g->lock, &g->how), ROWLOCK_TIMEOUT, "%s", what);
}

static void forget_tickets(const struct contract *c, const char *name)
{
    exec_on(c, "DELETE FROM rowlock_waiters WHERE name = '%s'", name);
}

/* ---- newcomers */

/* A name that was never granted, or whose counter a sweep has taken, has a line as any other. */
static void nobody_overtakes(const struct contract *c, const char *name, bool is_known)
{
    CLOSED_BY(guest_close) struct guest g;
    guest_open(&g, c, name, 0);
    if (is_known) {
        guest_tries(&g, ROWLOCK_OK, "a lock is granted");
        guest_releases(&g, ROWLOCK_OK, "and released");
    }
    leave_ticket(c, name, 10, in_an_hour());
    for (int permits = -1; permits < 3; permits++) {
        g.how.permits = permits;
        guest_tries(&g, ROWLOCK_BUSY, "a free lock is not for newcomers while somebody waits");
        tap_is_int(holder_of(g.lock).token, 0, "it has no holder");
    }
    g.how.permits = 0;
    waits_in_vain(&g, 50, "they stand behind the waiter");
    tap_is_int(tickets_of(c, name), 1, "and leave no ticket when they give up");
    for (int permits = -1; permits < 3; permits++) {
        g.how.permits = permits;
        g.how.unfair = 1;
        guest_tries(&g, ROWLOCK_OK, "unless they ask to pass by");
        guest_releases(&g, ROWLOCK_OK, "and release");
    }
    tap_is_int(tickets_of(c, name), 1, "which leaves the waiter's ticket alone");
    g.how.unfair = 0;
    g.how.permits = 0;
    exec_on(c, "UPDATE rowlock_waiters SET expires = 5 WHERE name = '%s'", name);
    guest_tries(&g, ROWLOCK_OK, "a ticket whose lease is over is no obstacle");
    forget_tickets(c, name);
}

static long long expires_of(const struct guest *g)
{
    return db_int(
        g->c->raw, g->c->url,
        "SELECT coalesce(max(expires), 0) FROM rowlock_waiters WHERE name = '%s' AND owner = '%s'",
        rowlock_lock_name(g->lock), rowlock_lock_owner(g->lock));
}

/* A waiter that is before us by its ticket may have come after us: the number counts. The ticket of
 * the dead one ends when the waiter behind it has looked again, which renewed its own ticket. */
static void tickets_decide(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, one;
    int64_t when = 0;
    guests_open(c, "tickets", 0, &holder, &one, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    leave_ticket(c, "tickets", 1, in_an_hour());
    set_polls(OFTEN);
    guest_queue(&one);
    tap_ok(ticket_of(&one) > 1, "a later ticket");
    guest_releases(&holder, ROWLOCK_OK, "it is released");
    long long expires = expires_of(&one);
    tap_ok(EVENTUALLY(one.ended || expires_of(&one) != expires), "it looks");
    long long over = int_on(c, "SELECT %s", c->raw->clock);
    exec_on(c, "UPDATE rowlock_waiters SET expires = %lld WHERE name = 'tickets' AND ticket = 1",
            over);
    guest_gets(&one, "the waiter behind the dead is granted it");
    is_result(one.db, rowlock_last_grant(one.db, "tickets", NULL, &when), ROWLOCK_OK, "that grant");
    tap_ok(when >= over, "came when the dead one's ticket was over, not before");
    set_polls(0);
    forget_tickets(c, "tickets");
}

/* ---- what is left behind */

static void nothing_left(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g, behind;
    guests_open(c, "left", 0, &holder, &g, &behind, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    waits_in_vain(&g, 50, "a wait is over");
    tap_is_int(tickets_of(c, "left"), 0, "no ticket is left behind");
    g.how.wait_ms = ROWLOCK_FOREVER;
    guest_queue(&g);
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "a wait is cancelled");
    tap_is_int(tickets_of(c, "left"), 0, "no ticket is left behind");
    guest_queue(&g);
    guest_queue(&behind);
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "the first in line leaves it");
    guest_releases(&holder, ROWLOCK_OK, "the lock is released");
    guest_gets(&behind, "then it is the next one's");
    tap_is_int(tickets_of(c, "left"), 0, "no ticket is left behind");
}

static void uncontended(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "ticketless_");
    CLOSED_BY(guest_close) struct guest g, other;
    int granted = 0;
    refuse_rows(c, "ticketless_", "waiters", "ABORT"); /* no client can take a ticket */
    guest_open_as(&g, c, url, NULL, "free", 0);
    guest_open_as(&other, c, url, NULL, "free", 0);
    for (int i = 0; i < 9; i++) {
        g.how.permits = i % 3 - 1;
        g.how.unfair = i == 8;
        granted += rowlock_acquire(g.lock, &g.how) == ROWLOCK_OK && guest_leave(&g) == ROWLOCK_OK;
    }
    g.how.permits = other.how.permits = 0;
    tap_is_int(granted, 9,
               "a client that finds a lock free takes no ticket, even if it would wait");
    guest_tries(&g, ROWLOCK_OK, "a lock is held");
    guest_tries(&other, ROWLOCK_BUSY, "nor does a client that only tries");
    other.how.wait_ms = slow_ms(60000);
    is_result(other.db, rowlock_acquire(other.lock, &other.how), ROWLOCK_ESERVER,
              "a client that must wait does");
}

static void keeps_its_place(const struct contract *c, struct faultproxy *proxy, const char *url)
{
    CLOSED_BY(guest_close) struct guest holder, first, second;
    guest_open(&holder, c, "cut off", 0);
    guest_open_as(&first, c, url, NULL, "cut off", 0);
    guest_open(&second, c, "cut off", 0);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&first);
    guest_queue(&second);
    long long ticket = ticket_of(&first);
    faultproxy_cut(proxy);
    /* Time: the waiter is mostly connected again by then. It keeps its ticket either way. */
    sleep_ms(50);
    faultproxy_cut(proxy);
    tap_is_int(ticket_of(&first), ticket, "a waiter whose connection is lost keeps its ticket");
    guest_releases(&holder, ROWLOCK_OK, "the lock is released");
    guest_gets(&first, "and gets its turn");
    guest_waits(&second, "before the next one");
    guest_releases(&first, ROWLOCK_OK, "which");
    guest_gets(&second, "gets it then");
}

/* ---- the table, listed and swept */

static void swept(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    rowlock_sweep_report report = ROWLOCK_SWEEP_REPORT_INIT;
    rowlock_sweep_options dry = *OPTIONS(sweep, .dry_run = 1);
    guests_open(c, "swept line", 0, &holder, &g, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    for (int i = 1; i <= 7; i++)
        leave_ticket(c, "swept line", LAST_TICKET + i, unix_clock_us() - HOUR_US);
    leave_ticket(c, "swept line", LAST_TICKET + 8, in_an_hour());
    is_result(holder.db, rowlock_sweep(holder.db, &dry, &report), ROWLOCK_OK, "sweep dry");
    tap_is_int(tickets_of(c, "swept line"), 9, "removes no ticket");
    is_result(holder.db, rowlock_sweep(holder.db, NULL, &report), ROWLOCK_OK, "sweep");
    tap_is_int(report.waiters, 7, "removes the tickets of dead waiters");
    tap_is_int(tickets_of(c, "swept line"), 2, "and leaves those that live");
    tap_ok(ticket_of(&g) != 0, "that of the waiter among them");
    exec_on(c, "DELETE FROM rowlock_waiters WHERE name = 'swept line' AND ticket = %lld",
            LAST_TICKET + 8);
    line_ends(&holder, &g, "which it gets");
}

/* A sweep takes it away, clock and all: the waiter takes another. */
static void ticket_removed(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    guests_open(c, "robbed", 0, &holder, &g, NULL);
    g.how.ticket_ms = 1000;
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    set_polls(OFTEN);
    guest_queue(&g);
    forget_tickets(c, "robbed");
    tap_ok(EVENTUALLY(ticket_of(&g) != 0), "a waiter whose ticket is gone takes another");
    line_ends(&holder, &g, "which it gets");
    set_polls(0);
}

/* Its request was sent twice: the second attempt did not see the first one in flight. Elsewhere
 * than on PostgreSQL the other ticket stays until its lease is over. */
static void ticket_twice(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g;
    guests_open(c, "twice", 0, &holder, &g, NULL);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    exec_on(c,
            "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, expires, "
            "host, pid, program, note) SELECT name, ticket + 1, request, permits, owner, since, "
            "expires, host, pid, program, note FROM rowlock_waiters WHERE name = 'twice'");
    line_ends(&holder, &g, "to a waiter with two tickets");
    if (is_postgres(c))
        tap_is_int(tickets_of(c, "twice"), 0, "neither of its tickets is left");
    forget_tickets(c, "twice");
}

static void what_is_listed(const struct contract *c)
{
    CLOSED_BY(guest_close) struct guest holder, g = {.c = c};
    struct seen seen = {0};
    rowlock_db_options options = *OPTIONS(db, .owner = "the waiter", .program = "waiting program");
    guest_open(&holder, c, "listed line", 0);
    g.how = holder.how;
    g.db = must_open_with(c->url, &options);
    g.lock = must_lock(g.db, "listed line");
    g.how.note = "why I wait";
    g.how.permits = ROWLOCK_SHARED;
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    leave_ticket(c, "listed line", LAST_TICKET, unix_clock_us() - HOUR_US);
    is_result(holder.db, rowlock_list_waiters(holder.db, "listed line", see, &seen), ROWLOCK_OK,
              "a line is listed");
    tap_is_int(seen.count, 2, "the dead ones too");
    tap_is_int(seen.waiters[1].position, 0, "which have no position");
    tap_ok(seen.waiters[1].remaining_ms < 0, "and no time remaining");
    const rowlock_waiter *w = &seen.waiters[0];
    tap_is_int(w->position, 1, "a valid one has one");
    tap_is_str(w->name, "listed line", "the waiter's lock");
    tap_is_str(w->owner, "the waiter", "its owner");
    tap_is_str(w->program, "waiting program", "its program");
    tap_is_str(w->note, "why I wait", "its note");
    tap_ok(w->host[0] && w->pid > 0, "its host and pid");
    tap_is_int(w->permits, ROWLOCK_SHARED, "what it waits for");
    tap_is_int(w->ticket, ticket_of(&g), "its ticket");
    tap_ok(w->remaining_ms > 0 && w->remaining_ms <= 15000, "how long it lives, 15 s by default");
    tap_ok(w->since_us > 0 && w->waited_ms >= 0, "since when");
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "it leaves");
    forget_tickets(c, "listed line");
}

static void many_are_listed(const struct contract *c)
{
    enum { NAMES = 3, EACH = 401 };
    static const char *const names[NAMES] = {"list z", "list a", "list ä"};
    char *text;
    size_t length;
    FILE *sql = open_memstream(&text, &length);
    struct seen seen = {0};
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "DELETE FROM rowlock_waiters");
    for (int i = 0; i < NAMES * EACH; i++)
        fprintf(sql, "%s ('%s', %d, %d, 0, 'x', 1, %s)",
                i ? ","
                  : "INSERT INTO rowlock_waiters (name, ticket, request, permits, owner, since, "
                    "expires) VALUES",
                names[i % NAMES], i, i, i % 2 ? "1" : "9000000000000000");
    fclose(sql);
    raw_run(c->raw, session, "%s", text);
    free(text);
    is_result(db, rowlock_list_waiters(db, NULL, see, &seen), ROWLOCK_OK, "lines are listed");
    tap_is_int(seen.count, NAMES * EACH, "over several pages, everybody");
    tap_is_int(seen.out_of_order, 0, "in the order of names and tickets");
    tap_is_int(seen.dead, NAMES * EACH / 2, "the dead are told from the living");
    seen = (struct seen){0};
    is_result(db, rowlock_list_waiters(db, "list a", see, &seen), ROWLOCK_OK, "one line is");
    tap_is_int(seen.count, EACH, "and no other");
    tap_ok(seen.waiters[0].position + seen.waiters[1].position == 1, "in which places are counted");
    seen = (struct seen){.stop_after = 2};
    is_result(db, rowlock_list_waiters(db, NULL, see, &seen), ROWLOCK_OK, "a callback may stop it");
    tap_is_int(seen.count, 2, "at once");
    is_result(db, rowlock_list_waiters(db, NULL, NULL, NULL), ROWLOCK_EINVAL, "and is needed");
    is_result(db, rowlock_list_waiters(db, "", see, &seen), ROWLOCK_EINVAL, "no name is ''");
    raw_run(c->raw, session, "DELETE FROM rowlock_waiters");
}

/* ---- adopted connections */

static void adopted(const struct contract *c)
{
    char before[300], after[300] = "";
    struct guest holder, g;
    OWNED(session) void *session = c->raw->open(c->url);
    ask_any(c, session, c->settings, before, sizeof before);
    guest_open(&holder, c, "adopted line", 0);
    guest_adopt(&g, c, session, "adopted line");
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    guest_releases(&holder, ROWLOCK_OK, "and released");
    guest_gets(&g, "a waiter on an adopted connection gets it");
    guest_releases(&g, ROWLOCK_OK, "and releases it");
    guest_tries(&holder, ROWLOCK_OK, "it is held again");
    guest_queue(&g);
    is_result(g.db, guest_cancel(&g), ROWLOCK_CANCELLED, "the next wait is cancelled");
    waits_in_vain(&g, 50, "and one times out");
    guests_close(&g, &holder, NULL);
    /* A server ends the holder's session, and what that has prepared, a moment after it is closed. */
    (void)EVENTUALLY(c->pooled || (ask_any(c, session, c->settings, after, sizeof after),
                                   strcmp(after, before) == 0));
    if (!c->pooled)
        tap_is_str(after, before, "the connection is left as it was");
    tap_is_int(tickets_of(c, "adopted line"), 0, "and no ticket");
}

/* A release that is a part of a transaction lets others in when that commits: wakeup.c. */
static void release_rolled_back(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    CLOSED_BY(guest_close) struct guest holder, g;
    guest_adopt(&holder, c, session, "tx line");
    guest_open(&g, c, "tx line", 0);
    guest_tries(&holder, ROWLOCK_OK, "a lock is held");
    guest_queue(&g);
    raw_run(c->raw, session, "%s", c->begin);
    is_result(holder.db, rowlock_tx_release(holder.lock, holder.db), ROWLOCK_OK,
              "a release in a transaction");
    guest_waits(&g, "lets no client in yet");
    raw_run(c->raw, session, "ROLLBACK");
    guest_waits(&g, "nor when it is rolled back");
    guest_releases(&holder, ROWLOCK_OK, "until it is released for good");
    guest_gets(&g, "then the next in line gets it");
}

/* A statement that takes what is the first one's, in a transaction. */
static void acquired_in_a_transaction(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    CLOSED_BY(guest_close) struct guest g;
    rowlock_acquire_options unfair = *OPTIONS(acquire, .unfair = 1);
    guest_adopt(&g, c, session, "tx newcomer");
    guest_tries(&g, ROWLOCK_OK, "a lock is granted");
    guest_releases(&g, ROWLOCK_OK, "and released");
    leave_ticket(c, "tx newcomer", 1, in_an_hour());
    raw_run(c->raw, session, "%s", c->begin);
    is_result(g.db, rowlock_tx_acquire(g.lock, g.db, NULL), ROWLOCK_BUSY,
              "in a transaction no client overtakes either");
    is_result(g.db, rowlock_tx_acquire(g.lock, g.db, &unfair), ROWLOCK_OK, "unless it asks to");
    raw_run(c->raw, session, "COMMIT");
    guest_releases(&g, ROWLOCK_OK, "release");
    forget_tickets(c, "tx newcomer");
}

void contract_queue(const struct contract *c)
{
    OWNED(text) char *url = NULL;
    in_order(c);
    nobody_overtakes(c, "no overtaking", true);
    nobody_overtakes(c, "first of all", false);
    tickets_decide(c);
    nothing_left(c);
    uncontended(c);
    swept(c);
    ticket_removed(c);
    ticket_twice(c);
    what_is_listed(c);
    many_are_listed(c);
    adopted(c);
    release_rolled_back(c);
    acquired_in_a_transaction(c);
    OWNED(proxy) struct faultproxy *proxy = c->has_server ? faultproxy_start(c->url, &url) : NULL;
    if (proxy)
        keeps_its_place(c, proxy, url);
}
