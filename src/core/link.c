/* SPDX-License-Identifier: MIT
 * The connection of a rowlock_db: making it, the check of our tables on it, and what is given back
 * on a new one. Only this file changes db->link and db->tx. */
#include "core/link.h"
#include "core/policy.h"
#include "core/port.h"
#include "core/statements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum rlk_class rlk_learn_names(rowlock_db *db, struct rlk_call *call, const struct rlk_hello *hello)
{
    if (!db->texts.schema[0])
        rlk_copy_text(db->texts.schema, sizeof db->texts.schema, hello->schema,
                      strlen(hello->schema));
    if (db->port || db->texts.sql[RLK_STEP_META])
        return RLK_DONE;
    /* The server's name goes into statements too. options.c sees only the caller's. */
    if (strchr(db->texts.schema, db->driver->quote))
        return rlk_refuse(call, RLK_INVALID, "the name of the database must contain no quote");
    return rlk_texts_fill(&db->texts, db->driver) == 0 ? RLK_DONE : RLK_NOMEM;
}

void rlk_disconnect(rowlock_db *db, bool in_child)
{
    if (db->link != RLK_NEW && db->port)
        db->port->close(db, in_child);
    else if (db->link != RLK_NEW)
        db->driver->close(db->conn, in_child);
    db->link = RLK_NEW;
    memset(db->conn, 0, db->port ? db->port->state_size : db->driver->conn_size);
}

void rlk_lose(rowlock_db *db)
{
    if (db->link != RLK_NEW)
        db->link = RLK_BROKEN;
}

bool rlk_distrust(rowlock_db *db)
{
    bool trusted = db->link == RLK_TRUSTED;
    if (rlk_is_up(db))
        db->link = RLK_OPEN;
    return trusted;
}

void rlk_set_tx(rowlock_db *db, enum rlk_tx tx)
{
    db->tx = tx;
}

enum rlk_class rlk_adopt(rowlock_db *db, struct rlk_call *call, void *vendor)
{
    struct rlk_hello hello = {0};
    db->adopted = true;
    db->link = RLK_BROKEN;
    enum rlk_class class = db->driver->adopt(db->conn, call, vendor, &db->texts, &hello);
    if (class == RLK_DONE)
        class = rlk_learn_names(db, call, &hello);
    if (class == RLK_DONE)
        db->link = RLK_OPEN;
    return class;
}

enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call)
{
    struct rlk_hello hello = {0};
    rlk_disconnect(db, false);
    db->link = RLK_BROKEN;
    db->connections++;
    db->target.lingering = db->lingering;
    bool again = db->target.known;
    enum rlk_class class = db->port
                               ? db->port->open(db, call, &hello)
                               : db->driver->open(db->conn, call, &db->target, &db->texts, &hello);
    /* Connecting changes nothing, so its end is never uncertain. */
    if (class == RLK_UNCERTAIN)
        class = RLK_UNSENT;
    if (class == RLK_DONE)
        class = rlk_learn_names(db, call, &hello);
    db->several = hello.several;
    if (class == RLK_DONE) {
        db->link = hello.looked ? RLK_TRUSTED : RLK_OPEN;
        db->takes_writes = db->takes_writes || hello.takes_writes;
        db->target.known = true;
        db->stats.reconnects += again;
        memcpy(db->session, hello.session, sizeof db->session);
        db->lingering[0] = '\0';
    }
    return class;
}

/* ---- the tables */

/* The library and the tables may each be too old for the other. */
static int check_version(rowlock_db *db, const struct rlk_meta *meta)
{
    const char *where = db->texts.schema;
    if (!meta->found)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the tables in '%s' are not completely installed; run `rowlock install`",
                        where);
    if (meta->version < 1)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the tables in '%s' say they are of version %" PRId64
                        ", which no rowlock has written; restore rowlock_meta, or drop the tables "
                        "and install again",
                        where, meta->version);
    if (meta->compat > RLK_LEVEL)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the tables in '%s' need a library of level %" PRId64
                        ", but this one has level %d: upgrade rowlock",
                        where, meta->compat, RLK_LEVEL);
    if (meta->version < RLK_LEVEL - 1)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the tables in '%s' are of version %" PRId64
                        ", too old for this library of level %d: run `rowlock upgrade` "
                        "of an earlier release first",
                        where, meta->version, RLK_LEVEL);
    return ROWLOCK_OK;
}

/* Some steps have another text for tables of the version before. Statements that a connection has
 * prepared do not change, so we change the texts on a new connection only. An adopted connection
 * and a pool keep the old texts: they still work after an upgrade. */
static enum rlk_class choose_texts(rowlock_db *db, struct rlk_call *call, bool anew)
{
    bool before = db->meta.version < RLK_LEVEL;
    if (before == db->texts.before || db->texts.shared || (db->texts_chosen && db->adopted))
        return RLK_DONE;
    if (!anew && db->texts_chosen) {
        rlk_diag_set(call, 0, NULL, "the tables have been upgraded");
        return RLK_UNSENT;
    }
    return rlk_texts_choose(&db->texts, db->driver, before) == 0 ? RLK_DONE : RLK_NOMEM;
}

/* anew: the connection is new, and no step was sent on it. */
static int check_tables(rowlock_db *db, struct rlk_call *call, bool anew, enum rlk_class *class)
{
    struct rlk_meta *meta = &db->meta;
    *class = rlk_step_meta(db, call, meta);
    int result = *class == RLK_DONE ? check_version(db, meta) : ROWLOCK_OK;
    if (*class != RLK_DONE || result != ROWLOCK_OK)
        return result;
    if (db->texts.identity[0] && strcmp(db->texts.identity, meta->identity) != 0)
        return rlk_fail(db, ROWLOCK_ESCHEMA,
                        "the tables in '%s' are another installation than before (%s, was %s); "
                        "if this is intended, open a new handle",
                        db->texts.schema, meta->identity, db->texts.identity);
    *class = choose_texts(db, call, anew);
    if (*class != RLK_DONE)
        return ROWLOCK_OK;
    memcpy(db->texts.identity, meta->identity, sizeof db->texts.identity);
    db->texts.member = meta->member;
    db->texts_chosen = true;
    db->link = RLK_CHECKED;
    return ROWLOCK_OK;
}

/* ---- tickets */

void rlk_ticket_keep(rowlock_db *db, struct rlk_ticket *ticket, int64_t request)
{
    if (!ticket->request) {
        ticket->next = db->tickets;
        db->tickets = ticket;
    }
    ticket->request = request;
}

void rlk_ticket_end(rowlock_db *db, struct rlk_ticket *ticket)
{
    struct rlk_ticket **at = &db->tickets;
    if (!ticket->request)
        return;
    while (*at != ticket)
        at = &(*at)->next;
    *at = ticket->next;
    ticket->request = 0;
}

void rlk_ticket_left(rowlock_db *db, struct rlk_ticket *ticket)
{
    const struct rlk_request request = {.name = ticket->name, .number = ticket->request};
    rlk_tell(db, RLK_OUTSIDE, RLK_LEFT, &request, 0);
    rlk_ticket_end(db, ticket);
}

static enum rlk_class give_back(rowlock_db *db, struct rlk_call *call, struct rlk_ticket *ticket)
{
    struct rlk_request request = {
        .name = ticket->name, .owner = ticket->owner, .number = ticket->request};
    struct rlk_ask ask = {.where = call->where};
    rlk_step_leave(&ask, &request);
    enum rlk_class class = rlk_send(db, call, &ask);
    if (class == RLK_DONE)
        rlk_ticket_left(db, ticket);
    return class;
}

/* A wait whose connection was lost at its end left its ticket in the queue, where it delays the
 * others. A new connection gives such tickets back. Only a lost connection matters to the step that
 * has connected: other failures are ignored. */
static enum rlk_class give_tickets_back(rowlock_db *db, const struct rlk_ask *ask,
                                        struct rlk_call *call)
{
    enum rlk_class class = RLK_DONE;
    struct rlk_ticket *next = NULL;
    for (struct rlk_ticket *t = db->tickets; t && !rlk_is_away(class); t = next) {
        next = t->next;
        if (t == db->standing)
            continue;
        call->deadline_us = rlk_attempt_end(ask, rlk_now_us(), db->statement_us);
        class = give_back(db, call, t);
    }
    return rlk_is_gone(class) ? RLK_UNSENT : RLK_DONE;
}

/* ---- ready for an ask */

/* An ask of nothing looks at the tables. */
static bool needs_tables(const struct rlk_ask *ask)
{
    if (ask->step)
        return rlk_needs_tables(ask->step);
    return !ask->query && !ask->script && !ask->facts && !ask->frame;
}

bool rlk_is_ready(const rowlock_db *db, const struct rlk_ask *ask)
{
    return db->link >= RLK_TRUSTED || (rlk_is_up(db) && !needs_tables(ask));
}

static enum rlk_class connect_for(rowlock_db *db, const struct rlk_ask *ask, struct rlk_call *call)
{
    if (db->adopted)
        return rlk_refuse(call, RLK_UNSENT,
                          "the adopted connection was lost; open a new one and adopt that");
    if (db->tx)
        return rlk_refuse(call, RLK_UNSENT, "the connection was lost, and the transaction with it");
    call->deadline_us = rlk_attempt_end(ask, rlk_now_us(), db->target.connect_ms * 1000);
    enum rlk_class class = rlk_connect(db, call);
    call->deadline_us = rlk_attempt_end(ask, rlk_now_us(), db->statement_us);
    return class;
}

enum rlk_class rlk_make_ready(rowlock_db *db, const struct rlk_ask *ask, struct rlk_call *call,
                              int *result)
{
    bool anew = !rlk_is_up(db);
    enum rlk_class class = anew ? connect_for(db, ask, call) : RLK_DONE;
    if (class == RLK_DONE && db->link == RLK_OPEN && needs_tables(ask))
        *result = check_tables(db, call, anew, &class);
    if (anew && class == RLK_DONE && db->link >= RLK_TRUSTED)
        class = give_tickets_back(db, ask, call);
    return class;
}
