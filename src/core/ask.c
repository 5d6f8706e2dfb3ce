/* SPDX-License-Identifier: MIT
 * Asks the database: connects, checks the tables, and sends what is asked. It sends it again after
 * a lost race or a lost answer (policy.c). The rooms above decide what the answer means. */
#include "core/ask.h"
#include "base/error.h"
#include "core/port.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- one attempt */

static void start_clock(const rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call)
{
    ask->sent_us = rlk_now_us();
    call->deadline_us = rlk_attempt_end(ask, ask->sent_us, db->statement_us);
}

/* The quorum would not see a grant that one of its members gives alone. */
static int check_alone(rowlock_db *db, const struct rlk_ask *ask)
{
    bool grants = rlk_steps[ask->step].is & RLK_GRANTS;
    if (!grants || !db->texts.member || ask->of_quorum)
        return ROWLOCK_OK;
    return rlk_fail(db, ROWLOCK_ESCHEMA,
                    "the database is member %" PRId64
                    " of a quorum and grants no lock alone: give the URLs of all its members. If "
                    "the quorum is given up, DELETE FROM rowlock_members",
                    db->texts.member);
}

void rlk_attempt_note(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call,
                      enum rlk_class class)
{
    ask->inside = call->inside;
    if (call->sent_us > ask->sent_us)
        ask->sent_us = call->sent_us;
    if (class == RLK_UNCERTAIN)
        memcpy(db->lingering, db->session, sizeof db->lingering);
    if (class == RLK_UNCERTAIN || class == RLK_MISFIT)
        ask->was_uncertain = true;
    if (class == RLK_SCHEMA || class == RLK_MISFIT)
        call->trusted = rlk_distrust(db);
}

enum rlk_class rlk_attempt_begin(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call,
                                 int *result)
{
    enum rlk_class class = RLK_DONE;
    *call = (struct rlk_call){.where = ask->where, .worth_until_us = ask->worth_until_us};
    start_clock(db, ask, call);
    if (!rlk_is_ready(db, ask)) {
        class = rlk_make_ready(db, ask, call, result);
        start_clock(db, ask, call);
    }
    if (class == RLK_DONE && *result == ROWLOCK_OK)
        *result = check_alone(db, ask);
    return class;
}

enum rlk_class rlk_attempt(rowlock_db *db, struct rlk_ask *ask, struct rlk_call *call, int *result)
{
    enum rlk_class class = rlk_attempt_begin(db, ask, call, result);
    if (class != RLK_DONE || *result != ROWLOCK_OK)
        return class;
    class = rlk_send(db, call, ask);
    rlk_attempt_note(db, ask, call, class);
    return class;
}

/* ---- a server that is away */

static const char *server_of(const rowlock_db *db)
{
    return db->port && db->port->called ? db->port->called : "the server";
}

/* Logs a warning once for each outage that a waiter waits through. Later failures are DEBUG. */
static void note_away(rowlock_db *db, const struct rlk_ask *ask, const char *text)
{
    bool known = db->away_us != 0;
    if (!known)
        db->away_us = rlk_now_us();
    if (rlk_is_patient(db, ask) && !db->away_logged) {
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

/* To a server that takes no writes we keep an adopted connection, and one whose transaction must be
 * rolled back. If that fails, the transaction may be open still. */
static void note_server(rowlock_db *db, const struct rlk_ask *ask, enum rlk_class class)
{
    bool failed = ask->frame == RLK_ROLLBACK && class != RLK_DONE;
    bool keeps = class == RLK_STANDBY && (db->adopted || db->tx);
    if ((rlk_is_away(class) && !keeps) || (failed && !db->adopted))
        rlk_lose(db);
    else if (!rlk_is_away(class) && db->away_us)
        note_back(db);
}

/* ---- the end */

static void add(rowlock_db *db, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(rowlock_db *db, const char *format, ...)
{
    size_t used = strlen(db->error.text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(db->error.text + used, sizeof db->error.text - used, format, arguments);
    va_end(arguments);
}

static int give_up(rowlock_db *db, struct rlk_ask *ask, enum rlk_class class,
                   const struct rlk_call *call, int garbled)
{
    bool outage = rlk_is_patient(db, ask) && rlk_is_away(class);
    char away[32];
    if (ask->was_uncertain && class != RLK_MISFIT)
        class = RLK_UNCERTAIN;
    ask->contended = class == RLK_CONTENTION;
    int result = rlk_fail_class(db, class, call);
    if (class == RLK_UNCERTAIN && result == ROWLOCK_EUNCERTAIN)
        db->error.retryable = ask->retryable_if_lost;
    seconds_away(db, away);
    if (garbled >= RLK_GARBLED_MOST)
        add(db,
            "; %d answers in a row could not be read: look at the server, and at what stands "
            "before it",
            RLK_GARBLED_MOST);
    else if (outage)
        add(db, "; %s has been away for %s", server_of(db), away);
    return result;
}

/* False: cancelled. */
static bool rest(rowlock_db *db, const struct rlk_ask *ask, int64_t pause_us)
{
    if (ask->patient_until_us)
        return rlk_wait_until(&db->waiting, rlk_now_us() + pause_us);
    rlk_wait_plain(pause_us);
    return true;
}

static void log_failure(rowlock_db *db, const struct rlk_ask *ask, enum rlk_class class,
                        const struct rlk_call *call)
{
    if (rlk_is_away(class))
        note_away(db, ask, call->text);
    else
        rlk_log(ROWLOCK_LOG_INFO, "%s: %s", db->error.action, call->text);
}

enum rlk_next rlk_attempted(rowlock_db *db, struct rlk_ask *ask, struct rlk_again *again,
                            enum rlk_class class, struct rlk_call *call, int *result)
{
    /* The tables are wrong. An earlier attempt may have been carried out all the same. */
    if (*result != ROWLOCK_OK) {
        *result = ask->was_uncertain ? rlk_fail_unknown(db) : *result;
        return RLK_END;
    }
    note_server(db, ask, class);
    enum rlk_next next = rlk_again_next(db, ask, again, class, call, rlk_now_us());
    if (again->passing)
        log_failure(db, ask, class, call);
    if (next == RLK_END && class != RLK_DONE)
        *result = give_up(db, ask, class, call, again->garbled);
    /* The server ends a transaction of ours that the next ask would end much later, if ever. */
    if (next == RLK_END && !rlk_is_up(db) && !db->adopted && !db->port)
        rlk_disconnect(db, false);
    return next;
}

int rlk_cancelled(rowlock_db *db, struct rlk_ask *ask, enum rlk_class class,
                  const struct rlk_call *call)
{
    return ask->was_uncertain ? give_up(db, ask, class, call, 0) : ROWLOCK_CANCELLED;
}

int rlk_ask(rowlock_db *db, struct rlk_ask *ask)
{
    struct rlk_again again = {0};
    /* A callback has forked, and this is the child. The connection is its parent's. */
    if (db->pid != getpid())
        return rlk_fail(db, ROWLOCK_EMISUSE, "a callback has forked; open another handle here");
    for (;; db->stats.resent++) {
        struct rlk_call call;
        int result = ROWLOCK_OK;
        enum rlk_class class = rlk_attempt(db, ask, &call, &result);
        enum rlk_next next = rlk_attempted(db, ask, &again, class, &call, &result);
        if (next == RLK_END)
            return result;
        if (next == RLK_WAIT && !rest(db, ask, again.pause_us))
            return rlk_cancelled(db, ask, class, &call);
    }
}

int rlk_fail_answer(rowlock_db *db, enum rlk_step step)
{
    struct rlk_call call = {0};
    enum rlk_class class = rlk_diag_misfit(&call, step);
    rlk_distrust(db);
    return rlk_fail_class(db, class, &call);
}

int rlk_look_at_tables(rowlock_db *db, enum rlk_where where, int64_t patient_until_us)
{
    struct rlk_ask nothing = {.where = where, .patient_until_us = patient_until_us};
    return db->link >= RLK_TRUSTED ? ROWLOCK_OK : rlk_ask(db, &nothing);
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
