/* SPDX-License-Identifier: MIT
 * Sends one step, with all that core does around it: connect, check the tables, and send the step
 * again after a lost race or a lost answer. The rooms above decide what the answer means. */
#include "core/ask.h"
#include "base/error.h"
#include "core/core.h"
#include "core/statements.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- connection */

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
    return rlk_texts_choose(&db->texts, db->backend, before) == 0 ? RLK_DONE : RLK_NOMEM;
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
    db->texts_chosen = db->schema_ok = true;
    db->driver_looked = false;
    return ROWLOCK_OK;
}

enum rlk_class rlk_learn_names(rowlock_db *db, const struct rlk_hello *hello)
{
    if (!db->texts.schema[0])
        rlk_copy_text(db->texts.schema, sizeof db->texts.schema, hello->schema,
                      strlen(hello->schema));
    if (db->texts.sql[RLK_STEP_META])
        return RLK_DONE;
    return rlk_texts_fill(&db->texts, db->backend) == 0 ? RLK_DONE : RLK_NOMEM;
}

void rlk_disconnect(rowlock_db *db, bool in_child)
{
    if (db->opened)
        db->backend->close(db->conn, in_child);
    db->opened = db->up = db->schema_ok = false;
    memset(db->conn, 0, db->backend->conn_size);
}

enum rlk_class rlk_connect(rowlock_db *db, struct rlk_call *call)
{
    struct rlk_hello hello = {0};
    rlk_disconnect(db, false);
    db->opened = true;
    db->connections++;
    db->target.lingering = db->lingering;
    bool again = db->target.known;
    enum rlk_class class = db->backend->open(db->conn, call, &db->target, &db->texts, &hello);
    /* Connecting changes nothing, so its end is never uncertain. */
    if (class == RLK_UNCERTAIN)
        class = RLK_UNSENT;
    if (class == RLK_DONE)
        class = rlk_learn_names(db, &hello);
    db->up = class == RLK_DONE;
    db->takes_writes = db->takes_writes || (db->up && hello.takes_writes);
    db->several = hello.several;
    db->schema_ok = db->driver_looked = db->up && hello.looked;
    db->target.known = db->target.known || db->up;
    db->stats.reconnects += db->up && again;
    if (db->up) {
        memcpy(db->session, hello.session, sizeof db->session);
        db->lingering[0] = '\0';
    }
    return class;
}

/* ---- one step */

static bool is_connection_gone(enum rlk_class class)
{
    return class == RLK_UNSENT || class == RLK_UNCERTAIN;
}

bool rlk_is_away(enum rlk_class class)
{
    return is_connection_gone(class) || class == RLK_STANDBY;
}

/* Reconnecting ends in time, also if the connect timeout is longer. An attempt that begins at its
 * very end has this long. */
enum { LAST_ATTEMPT_US = 1000000 };

static int64_t end_of(const struct rlk_step_call *step, int64_t from_us, int64_t after_us)
{
    int64_t last_us = from_us + LAST_ATTEMPT_US;
    if (step->away_until_us > last_us)
        last_us = step->away_until_us;
    int64_t end_us = from_us + after_us;
    if (step->away_until_us && last_us < end_us)
        end_us = last_us;
    return step->not_after_us && step->not_after_us < end_us ? step->not_after_us : end_us;
}

static bool is_ready(const rowlock_db *db, const struct rlk_step_call *step)
{
    return db->up && (db->schema_ok || step->without_tables);
}

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

enum rlk_class rlk_give_ticket_back(rowlock_db *db, struct rlk_call *call,
                                    struct rlk_ticket *ticket)
{
    struct rlk_request request = {
        .name = ticket->name, .owner = ticket->owner, .number = ticket->request};
    bool found;
    enum rlk_class class = rlk_step_leave(db, call, &request, &found);
    if (class == RLK_DONE)
        rlk_ticket_end(db, ticket);
    return class;
}

/* A wait whose connection was lost at its end left its ticket in the queue, where it delays the
 * others. A new connection gives such tickets back. Only a lost connection matters to the step that
 * has connected: other failures are ignored. */
static enum rlk_class give_tickets_back(rowlock_db *db, const struct rlk_step_call *step,
                                        struct rlk_call *call)
{
    enum rlk_class class = RLK_DONE;
    struct rlk_ticket *next = NULL;
    for (struct rlk_ticket *t = db->tickets; t && !rlk_is_away(class); t = next) {
        next = t->next;
        if (t == db->standing)
            continue;
        call->deadline_us = end_of(step, rlk_now_us(), db->statement_us);
        class = rlk_give_ticket_back(db, call, t);
    }
    return is_connection_gone(class) ? RLK_UNSENT : RLK_DONE;
}

/* Connects and checks the tables. RLK_DONE with *result not OK: the tables are wrong. */
static enum rlk_class make_ready(rowlock_db *db, const struct rlk_step_call *step,
                                 struct rlk_call *call, int *result)
{
    enum rlk_class class = RLK_DONE;
    bool anew = !db->up;
    if (anew) {
        if (db->adopted)
            return rlk_refuse(call, RLK_UNSENT,
                              "the adopted connection was lost; open a new one and adopt that");
        if (db->in_tx)
            return rlk_refuse(call, RLK_UNSENT,
                              "the connection was lost, and the transaction with it");
        call->deadline_us = end_of(step, rlk_now_us(), db->target.connect_ms * 1000);
        class = rlk_connect(db, call);
        call->deadline_us = end_of(step, rlk_now_us(), db->statement_us);
    }
    if (class == RLK_DONE && !db->schema_ok && !step->without_tables)
        *result = check_tables(db, call, anew, &class);
    if (anew && class == RLK_DONE && db->schema_ok)
        class = give_tickets_back(db, step, call);
    return class;
}

static void start_clock(const rowlock_db *db, struct rlk_step_call *step, struct rlk_call *call)
{
    step->sent_us = rlk_now_us();
    call->deadline_us = end_of(step, step->sent_us, db->statement_us);
}

/* The quorum would not see a grant that one of its members gives alone. */
static int check_alone(rowlock_db *db)
{
    if (!db->texts.member)
        return ROWLOCK_OK;
    return rlk_fail(db, ROWLOCK_ESCHEMA,
                    "the database is member %" PRId64
                    " of a quorum and grants no lock alone: give the URLs of all its members. If "
                    "the quorum is given up, DELETE FROM rowlock_members",
                    db->texts.member);
}

enum rlk_class rlk_send_once(rowlock_db *db, struct rlk_step_call *step, struct rlk_call *call,
                             int *result)
{
    enum rlk_class class = RLK_DONE;
    *call = (struct rlk_call){.where = step->where, .worth_until_us = step->worth_until_us};
    start_clock(db, step, call);
    if (!is_ready(db, step)) {
        class = make_ready(db, step, call, result);
        if (class != RLK_DONE || *result != ROWLOCK_OK)
            return class;
        start_clock(db, step, call);
    }
    if (step->grants && (*result = check_alone(db)) != ROWLOCK_OK)
        return RLK_DONE;
    class = step->run(db, call, step->context);
    if (call->sent_us > step->sent_us)
        step->sent_us = call->sent_us;
    if (class == RLK_UNCERTAIN) {
        step->was_uncertain = true;
        memcpy(db->lingering, db->session, sizeof db->lingering);
    }
    if (class == RLK_MISFIT)
        step->was_uncertain = true;
    if (class == RLK_SCHEMA || class == RLK_MISFIT)
        db->schema_ok = false;
    return class;
}

/* ---- a server that is away */

/* A waiter has no lease that may end, so it may wait through an outage. */
static bool is_patient(const rowlock_db *db, const struct rlk_step_call *step)
{
    return step->patient_until_us && db->reconnect_us > 0 && !db->adopted;
}

static const char *server_of(const rowlock_db *db)
{
    return db->backend->called ? db->backend->called : "the server";
}

/* Logs a warning once for each outage that a waiter waits through. Later failures are DEBUG. */
static void note_away(rowlock_db *db, const struct rlk_step_call *step, const char *text)
{
    bool known = db->away_us != 0;
    if (!known)
        db->away_us = rlk_now_us();
    if (is_patient(db, step) && !db->away_logged) {
        db->away_logged = true;
        rlk_log(ROWLOCK_LOG_WARNING, "%s: %s is away; still waiting: %s", db->error.action,
                server_of(db), text);
    } else {
        rlk_log(known ? ROWLOCK_LOG_DEBUG : ROWLOCK_LOG_INFO, "%s: %s", db->error.action, text);
    }
}

static void seconds_away(const rowlock_db *db, char text[32])
{
    int64_t away_us = rlk_now_us() - db->away_us;
    snprintf(text, 32, "%" PRId64 ".%d s", away_us / 1000000, (int)(away_us % 1000000 / 100000));
}

static void note_back(rowlock_db *db)
{
    char away[32];
    seconds_away(db, away);
    if (db->away_logged)
        rlk_log(ROWLOCK_LOG_WARNING, "%s: %s is back after %s", db->error.action, server_of(db),
                away);
    db->away_us = 0;
    db->away_logged = false;
}

/* The end of reconnecting after the first failure. A server that was never seen to take writes may
 * be the wrong one for good, so only a waiter waits for that. */
static int64_t reconnect_end(const rowlock_db *db, const struct rlk_step_call *step,
                             enum rlk_class class)
{
    int64_t until_us = end_of(step, rlk_now_us(), db->reconnect_us);
    if (db->adopted)
        return 0;
    if (class == RLK_STANDBY && !db->takes_writes)
        until_us = 0;
    return is_patient(db, step) && step->patient_until_us > until_us ? step->patient_until_us
                                                                     : until_us;
}

static void add_outage(rowlock_db *db)
{
    size_t used = strlen(db->error.text);
    char away[32];
    seconds_away(db, away);
    snprintf(db->error.text + used, sizeof db->error.text - used, "; %s has been away for %s",
             server_of(db), away);
}

/* ---- sending again */

/* An upgrade on MySQL drops a routine before it creates it anew. A step whose routine is missing is
 * sent again for so long. */
enum { REMADE_US = 500000 };

/* A server that is away does not answer. One that answers so often, and never what we can read,
 * does not come back. */
enum { GARBLED_MOST = 3 };

static void add_garbled(rowlock_db *db)
{
    size_t used = strlen(db->error.text);
    snprintf(db->error.text + used, sizeof db->error.text - used,
             "; %d answers in a row could not be read: look at the server, and at what stands "
             "before it",
             GARBLED_MOST);
}

static int give_up(rowlock_db *db, struct rlk_step_call *step, enum rlk_class class,
                   const struct rlk_call *call, int garbled)
{
    bool outage = is_patient(db, step) && rlk_is_away(class);
    if (step->was_uncertain && class != RLK_MISFIT)
        class = RLK_UNCERTAIN;
    step->contended = class == RLK_CONTENTION;
    int result = rlk_fail_class(db, class, call);
    if (class == RLK_UNCERTAIN && result == ROWLOCK_EUNCERTAIN)
        db->error.retryable = step->finds_out;
    if (garbled >= GARBLED_MOST)
        add_garbled(db);
    else if (outage)
        add_outage(db);
    return result;
}

/* The pause before the step is sent again. 0: no time is left for that. A waiter sends it once more
 * just before the end of its wait. */
static int64_t pause_to_resend(rowlock_db *db, const struct rlk_step_call *step, int64_t until_us,
                               int *tries)
{
    int64_t now_us = rlk_now_us();
    int64_t left_us = until_us - now_us;
    int64_t pause_us = rlk_pause_retry(&db->waiting, tries);
    bool patient = db->away_us && is_patient(db, step);
    if (patient && now_us - db->away_us > db->reconnect_us)
        pause_us = rlk_pause_away(&db->waiting);
    if (patient && pause_us >= left_us)
        pause_us = left_us - 1;
    return pause_us > 0 && pause_us < left_us ? pause_us : 0;
}

/* What a step remembers while it is sent again and again. */
struct resending {
    /* Set when a race is first lost. */
    int64_t contention_until;
    /* Set when the connection is first lost. */
    int64_t reconnect_until;
    int64_t attempts_until;
    int tries;
    /* So many answers in a row could not be read. */
    int garbled;
};

/* A step inside a transaction is not sent again, since its failure may have ended the transaction.
 * Says so in the call, for the meaning of the failure. */
static bool is_inside(const rowlock_db *db, const struct rlk_step_call *step, enum rlk_class class,
                      struct rlk_call *call)
{
    /* It was inside until the connection was lost. */
    if ((step->where == RLK_INSIDE || db->in_tx) && is_connection_gone(class))
        call->inside = true;
    /* After contention the transaction was rolled back. Otherwise its end is unknown. */
    if (step->ends_transaction)
        call->inside = class == RLK_CONTENTION;
    return call->inside || step->ends_transaction;
}

/* The end of sending again after a lost race. A waiter whose answer was lost waits on: what is in
 * the way may be its first sending, or transactions that wait for a standby. */
static int64_t contention_end(const rowlock_db *db, const struct rlk_step_call *step,
                              const struct rlk_call *call)
{
    bool sooner = step->contention_us && step->contention_us < db->statement_us;
    int64_t after_us = sooner ? step->contention_us : db->statement_us;
    int64_t until_us = end_of(step, step->sent_us, call->no_routine ? REMADE_US : after_us);
    bool waits = step->was_uncertain && is_patient(db, step);
    return waits && step->patient_until_us > until_us ? step->patient_until_us : until_us;
}

/* Until when the step is sent again after this failure. 0: it is not. */
static int64_t resend_end(rowlock_db *db, const struct rlk_step_call *step, enum rlk_class class,
                          const struct rlk_call *call, struct resending *r)
{
    if (rlk_is_away(class)) {
        /* Time spent reconnecting does not count as contention. */
        r->contention_until = 0;
        if (!r->reconnect_until) {
            r->reconnect_until = reconnect_end(db, step, class);
            r->attempts_until = step->sent_us + db->statement_us + db->reconnect_us;
            if (r->attempts_until < r->reconnect_until)
                r->attempts_until = r->reconnect_until;
        }
        r->garbled = call->garbled ? r->garbled + 1 : 0;
        if (r->garbled == GARBLED_MOST)
            return 0;
        note_away(db, step, call->text);
        return r->reconnect_until;
    }
    if (class != RLK_CONTENTION && !call->no_routine)
        return 0;
    if (!r->contention_until)
        r->contention_until = contention_end(db, step, call);
    rlk_log(ROWLOCK_LOG_INFO, "%s: %s", db->error.action, call->text);
    return r->contention_until;
}

/* False: cancelled. */
static bool wait_to_resend(rowlock_db *db, const struct rlk_step_call *step, int64_t pause_us)
{
    if (step->heeds_cancel)
        return rlk_wait_until(&db->waiting, rlk_now_us() + pause_us);
    rlk_wait_plain(pause_us);
    return true;
}

int rlk_do(rowlock_db *db, struct rlk_step_call *step)
{
    struct resending r = {0};
    /* A callback has forked, and this is the child. The connection is its parent's. */
    if (db->pid != getpid())
        return rlk_fail(db, ROWLOCK_EMISUSE, "a callback has forked; open another handle here");
    for (;; db->stats.resent++) {
        struct rlk_call call;
        int result = ROWLOCK_OK;
        enum rlk_class class = rlk_send_once(db, step, &call, &result);
        step->away_until_us = 0;
        /* The tables are wrong. An earlier sending may have been carried out all the same. */
        if (result != ROWLOCK_OK)
            return step->was_uncertain ? rlk_fail_unknown(db) : result;
        /* To a server that takes no writes we keep an adopted connection, and one whose transaction
         * must be rolled back. */
        if (rlk_is_away(class))
            db->up = class == RLK_STANDBY && (db->adopted || db->in_tx);
        else if (db->away_us)
            note_back(db);
        if (class == RLK_DONE)
            return ROWLOCK_OK;
        if (is_inside(db, step, class, &call))
            return give_up(db, step, class, &call, r.garbled);
        /* Only the driver has looked at the tables. If our own look finds nothing wrong, the step
         * is sent again at once. */
        if (class == RLK_SCHEMA && db->driver_looked && !call.no_routine) {
            db->driver_looked = false;
            continue;
        }
        int64_t until_us = resend_end(db, step, class, &call, &r);
        step->away_until_us = rlk_is_away(class) ? r.attempts_until : 0;
        int64_t pause_us = pause_to_resend(db, step, until_us, &r.tries);
        if (!pause_us)
            return give_up(db, step, class, &call, r.garbled);
        if (!wait_to_resend(db, step, pause_us))
            return step->was_uncertain ? give_up(db, step, class, &call, r.garbled)
                                       : ROWLOCK_CANCELLED;
    }
}

static enum rlk_class run_nothing(rowlock_db *db, struct rlk_call *call, void *context)
{
    (void)db;
    (void)call;
    (void)context;
    return RLK_DONE;
}

int rlk_look_at_tables(rowlock_db *db, enum rlk_where where, int64_t patient_until_us)
{
    struct rlk_step_call nothing = {.run = run_nothing,
                                    .where = where,
                                    .patient_until_us = patient_until_us,
                                    .heeds_cancel = patient_until_us != 0};
    return db->up && db->schema_ok ? ROWLOCK_OK : rlk_do(db, &nothing);
}

int rlk_same_tables(rowlock_db *db, enum rlk_where where, rowlock_db *other)
{
    int result = rlk_look_at_tables(db, where, 0);
    if (result != ROWLOCK_OK || db == other)
        return result;
    if (!other->texts.identity[0] && rlk_look_at_tables(other, RLK_OUTSIDE, 0) != ROWLOCK_OK) {
        rlk_error_copy(&db->error, &other->error);
        return db->error.code;
    }
    if (strcmp(db->texts.identity, other->texts.identity) == 0)
        return ROWLOCK_OK;
    return rlk_fail(db, ROWLOCK_ESCHEMA,
                    "the lock or key belongs to another installation (%s) than the tables of this "
                    "connection (%s)",
                    other->texts.identity, db->texts.identity);
}
