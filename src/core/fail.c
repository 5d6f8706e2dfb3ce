/* SPDX-License-Identifier: MIT
 * The error of a rowlock_db, and how it is made from a driver's class. */
#include "base/error.h"
#include "core/port.h"

#include <string.h>

void rlk_action(rowlock_db *db, const char *verb, const char *name)
{
    rlk_error_begin(&db->error, verb, name);
}

int rlk_fail(rowlock_db *db, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    rlk_error_vset(&db->error, code, format, args);
    va_end(args);
    return code;
}

/* The code of each class when core gives up, and the advice that its text ends with. */
struct meaning {
    enum rlk_class class;
    int code;
    bool retryable;
    const char *advice;
};
static const struct meaning meanings[] = {
    {RLK_CONTENTION, ROWLOCK_ESERVER, true, "; other transactions kept it busy: try again"},
    {RLK_UNSENT, ROWLOCK_ECONN, true, ""},
    {RLK_UNCERTAIN, ROWLOCK_EUNCERTAIN, false,
     "; the answer was lost, so it may or may not have been done"},
    {RLK_STANDBY, ROWLOCK_EREADONLY, true, "; use a server that takes writes"},
    {RLK_READONLY, ROWLOCK_EREADONLY, false, ""},
    {RLK_SCHEMA, ROWLOCK_ESCHEMA, false,
     "; run `rowlock install`, or `rowlock upgrade` if the tables are there; or have a DBA run "
     "what `rowlock install --print` prints"},
    {RLK_MISFIT, ROWLOCK_EUNCERTAIN, false, "; what was asked for may or may not have been done"},
    {RLK_DENIED, ROWLOCK_EDENIED, false, ""},
    {RLK_INVALID, ROWLOCK_EINVAL, false, ""},
    {RLK_UNSUPPORTED, ROWLOCK_EUNSUPPORTED, false, ""},
    {RLK_IN_TX, ROWLOCK_EMISUSE, false,
     "the connection is inside a transaction of yours, or has autocommit off; end it first"},
    {RLK_NO_TX, ROWLOCK_EMISUSE, false,
     "this call works only in a transaction of yours; begin one first"},
    {RLK_NOMEM, ROWLOCK_ENOMEM, true, "out of memory"},
    {RLK_VIOLATION, ROWLOCK_VIOLATION, false, ""},
    {RLK_REFUSED, ROWLOCK_ESERVER, false, ""},
};

/* For a step inside the caller's transaction. A lost connection is not uncertain there: the server
 * rolls the uncommitted transaction back. */
static const struct meaning meanings_inside[] = {
    {RLK_CONTENTION, ROWLOCK_CONFLICT, false, "; roll back and run your transaction again"},
    {RLK_MISFIT, ROWLOCK_ESCHEMA, false, "; roll your transaction back"},
    {RLK_UNSENT, ROWLOCK_ECONN, false, "; your transaction is lost: close the connection"},
    {RLK_UNCERTAIN, ROWLOCK_ECONN, false, "; your transaction is lost: close the connection"},
};

/* For a step inside a transaction that core began. The caller need not roll it back. */
static const struct meaning meanings_framed[] = {
    {RLK_CONTENTION, ROWLOCK_CONFLICT, true, "; other transactions kept it busy: try again"},
    {RLK_MISFIT, ROWLOCK_ESCHEMA, false, "; nothing was done"},
    {RLK_UNSENT, ROWLOCK_ECONN, true, "; nothing was done"},
    {RLK_UNCERTAIN, ROWLOCK_ECONN, true, "; nothing was done"},
};

/* A lost race means that others were in the way. A time limit may also mean too much work. */
static const char *advice_of(const rowlock_db *db, const struct meaning *m,
                             const struct rlk_call *call)
{
    bool needless = (m->class == RLK_SCHEMA && db->port && db->port->advises) ||
                    (m->class == RLK_READONLY && db->driver->local);
    if (needless)
        return "";
    if (m->class == RLK_CONTENTION && m->retryable && call->late)
        return "; it took longer than the time limit of a statement: other transactions kept it "
               "busy, or it was too much work for one call";
    return m->advice;
}

static const struct meaning *find_meaning(const struct meaning *table, size_t count,
                                          enum rlk_class class)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].class == class)
            return &table[i];
    return NULL;
}

int rlk_fail_unknown(rowlock_db *db)
{
    db->error.retryable = 0;
    return db->error.code = ROWLOCK_EUNCERTAIN;
}

int rlk_fail_class(rowlock_db *db, enum rlk_class class, const struct rlk_call *call)
{
    const struct meaning *m = NULL;
    if (call->inside && db->tx == RLK_TX_FRAMED)
        m = find_meaning(meanings_framed, sizeof meanings_framed / sizeof *m, class);
    else if (call->inside)
        m = find_meaning(meanings_inside, sizeof meanings_inside / sizeof *m, class);
    if (!m)
        m = find_meaning(meanings, sizeof meanings / sizeof *m, class);
    if (!m)
        return rlk_fail(db, ROWLOCK_ESERVER, "%s", call->text);
    /* The advice for RLK_NOMEM is the whole text. */
    const char *text = class == RLK_NOMEM ? "" : call->text;
    const char *advice = advice_of(db, m, call);
    bool apart = *text && *advice && *advice != ';';
    rlk_fail(db, m->code, "%s%s%s", text, apart ? "; " : "", advice);
    db->error.native = call->native;
    memcpy(db->error.sqlstate, call->sqlstate, sizeof call->sqlstate);
    db->error.constraint = (int)call->constraint;
    db->error.retryable = m->retryable;
    bool must_end = m->code == ROWLOCK_ECONN || class == RLK_MISFIT;
    db->error.transaction_over = call->tx_over || (call->inside && must_end);
    return m->code;
}
