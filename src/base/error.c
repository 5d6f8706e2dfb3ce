/* SPDX-License-Identifier: MIT
 * Names of results, the error that a handle keeps, and how a driver's answer becomes one. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *rowlock_result_name(int result)
{
    switch (result) {
    case ROWLOCK_OK:
        return "ROWLOCK_OK";
    case ROWLOCK_BUSY:
        return "ROWLOCK_BUSY";
    case ROWLOCK_TIMEOUT:
        return "ROWLOCK_TIMEOUT";
    case ROWLOCK_LOST:
        return "ROWLOCK_LOST";
    case ROWLOCK_LAPSED:
        return "ROWLOCK_LAPSED";
    case ROWLOCK_NONE:
        return "ROWLOCK_NONE";
    case ROWLOCK_CANCELLED:
        return "ROWLOCK_CANCELLED";
    case ROWLOCK_STALE:
        return "ROWLOCK_STALE";
    case ROWLOCK_CONFLICT:
        return "ROWLOCK_CONFLICT";
    case ROWLOCK_MISMATCH:
        return "ROWLOCK_MISMATCH";
    case ROWLOCK_DEADLOCK:
        return "ROWLOCK_DEADLOCK";
    case ROWLOCK_PENDING:
        return "ROWLOCK_PENDING";
    case ROWLOCK_GONE:
        return "ROWLOCK_GONE";
    case ROWLOCK_EXISTS:
        return "ROWLOCK_EXISTS";
    case ROWLOCK_UNDONE:
        return "ROWLOCK_UNDONE";
    case ROWLOCK_DONE:
        return "ROWLOCK_DONE";
    case ROWLOCK_VIOLATION:
        return "ROWLOCK_VIOLATION";
    case ROWLOCK_EUNCERTAIN:
        return "ROWLOCK_EUNCERTAIN";
    case ROWLOCK_ECONN:
        return "ROWLOCK_ECONN";
    case ROWLOCK_ESCHEMA:
        return "ROWLOCK_ESCHEMA";
    case ROWLOCK_EINVAL:
        return "ROWLOCK_EINVAL";
    case ROWLOCK_ENOMEM:
        return "ROWLOCK_ENOMEM";
    case ROWLOCK_EREADONLY:
        return "ROWLOCK_EREADONLY";
    case ROWLOCK_EDENIED:
        return "ROWLOCK_EDENIED";
    case ROWLOCK_EMISUSE:
        return "ROWLOCK_EMISUSE";
    case ROWLOCK_EUNSUPPORTED:
        return "ROWLOCK_EUNSUPPORTED";
    case ROWLOCK_ESERVER:
        return "ROWLOCK_ESERVER";
    default:
        return "unknown result";
    }
}

const char *rowlock_version(void)
{
#define TEXT_OF(x) #x
#define DOTTED(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)
    return DOTTED(ROWLOCK_VERSION_MAJOR, ROWLOCK_VERSION_MINOR, ROWLOCK_VERSION_PATCH);
}

void rlk_copy_text(char *out, size_t cap, const char *in, size_t len)
{
    size_t n = len < cap - 1 ? len : cap - 1;
    if (n < len) /* step back to where a character begins */
        while (n > 0 && ((unsigned char)in[n] & 0xC0) == 0x80)
            n--;
    if (n > 0)
        memcpy(out, in, n);
    out[n] = '\0';
}

/* Control characters become blanks, and blanks in a row one. */
static void one_line(char *text)
{
    char *out = text;
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool blank = *c <= ' ' || *c == 0x7F;
        if (!blank)
            *out++ = (char)*c;
        else if (out > text && out[-1] != ' ')
            *out++ = ' ';
    }
    while (out > text && out[-1] == ' ')
        out--;
    *out = '\0';
}

void rlk_diag_set(struct rlk_call *call, int native, const char *sqlstate, const char *text)
{
    call->native = native;
    rlk_copy_text(call->sqlstate, sizeof call->sqlstate, sqlstate ? sqlstate : "",
                  sqlstate ? strlen(sqlstate) : 0);
    rlk_copy_text(call->text, sizeof call->text, text ? text : "", text ? strlen(text) : 0);
    one_line(call->text);
}

void rlk_action(rowlock_db *db, const char *verb, const char *name)
{
    memset(&db->error, 0, sizeof db->error);
    db->error.size = sizeof db->error;
    db->error.row = -1;
    if (name)
        snprintf(db->error.action, sizeof db->error.action, "%s '%s'", verb, name);
    else
        snprintf(db->error.action, sizeof db->error.action, "%s", verb);
}

int rlk_fail(rowlock_db *db, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(db->error.text, sizeof db->error.text, format, args);
    va_end(args);
    db->error.code = code;
    db->error.native = 0;
    db->error.sqlstate[0] = '\0';
    db->error.retryable = code == ROWLOCK_ECONN || code == ROWLOCK_ENOMEM;
    db->error.transaction_over = 0;
    db->error.constraint = ROWLOCK_CONSTRAINT_NONE;
    db->error.row = -1;
    return code;
}

/* What each class means to the caller when nothing more is tried, and what to do about it. */
struct meaning {
    enum rlk_class class;
    int code;
    bool retryable;
    const char *advice;
};
static const struct meaning meanings[] = {
    {RLK_CONTENTION, ROWLOCK_ESERVER, true, "; others kept it busy all the time: try again"},
    {RLK_UNSENT, ROWLOCK_ECONN, true, ""},
    {RLK_UNCERTAIN, ROWLOCK_EUNCERTAIN, true,
     "; the answer was lost, so it may or may not have been done"},
    {RLK_READONLY, ROWLOCK_EREADONLY, true, "; this needs a database that can be written to"},
    {RLK_SCHEMA, ROWLOCK_ESCHEMA, false,
     "; run `rowlock install`, or have a DBA run what `rowlock install --print` prints"},
    {RLK_MISFIT, ROWLOCK_EUNCERTAIN, false, "; what was asked for may or may not have been done"},
    {RLK_DENIED, ROWLOCK_EDENIED, false, ""},
    {RLK_INVALID, ROWLOCK_EINVAL, false, ""},
    {RLK_UNSUPPORTED, ROWLOCK_EUNSUPPORTED, false, ""},
    {RLK_IN_TX, ROWLOCK_EMISUSE, false,
     "the connection is inside a transaction of yours, or has autocommit off; end it first"},
    {RLK_NO_TX, ROWLOCK_EMISUSE, false,
     "this is worth something only as a part of a transaction of yours; begin one first"},
    {RLK_NOMEM, ROWLOCK_ENOMEM, true, "out of memory"},
    {RLK_VIOLATION, ROWLOCK_VIOLATION, false, ""},
    {RLK_REFUSED, ROWLOCK_ESERVER, false, ""},
};

/* Where it was a part of the caller's transaction. What is lost with the connection is not uncertain:
 * nothing of an uncommitted transaction stays. */
static const struct meaning meanings_inside[] = {
    {RLK_CONTENTION, ROWLOCK_CONFLICT, false, "; roll back and run your transaction again"},
    {RLK_MISFIT, ROWLOCK_ESCHEMA, false, "; roll your transaction back"},
    {RLK_UNSENT, ROWLOCK_ECONN, false, "; close the connection: your transaction went with it"},
    {RLK_UNCERTAIN, ROWLOCK_ECONN, false, "; close the connection: your transaction went with it"},
};

/* Where the transaction is ours: the same, but nobody else has to do anything about it. */
static const struct meaning meanings_framed[] = {
    {RLK_CONTENTION, ROWLOCK_CONFLICT, true, "; others kept it busy all the time: try again"},
    {RLK_MISFIT, ROWLOCK_ESCHEMA, false, "; nothing was done"},
    {RLK_UNSENT, ROWLOCK_ECONN, true, "; nothing was done"},
    {RLK_UNCERTAIN, ROWLOCK_ECONN, true, "; nothing was done"},
};

/* A lost race says who was in the way. A time limit does not: perhaps there was only much to do. */
static const char *advice_of(const struct meaning *m, const struct rlk_call *call)
{
    if (m->class == RLK_CONTENTION && m->retryable && call->late)
        return "; it took longer than the time limit of a statement: others kept it busy, or it "
               "was too much at once";
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

int rlk_fail_class(rowlock_db *db, enum rlk_class class, const struct rlk_call *call)
{
    const struct meaning *m = NULL;
    if (call->inside && db->framed)
        m = find_meaning(meanings_framed, sizeof meanings_framed / sizeof *m, class);
    else if (call->inside)
        m = find_meaning(meanings_inside, sizeof meanings_inside / sizeof *m, class);
    if (!m)
        m = find_meaning(meanings, sizeof meanings / sizeof *m, class);
    if (!m)
        return rlk_fail(db, ROWLOCK_ESERVER, "%s", call->text);
    const char *text = class == RLK_NOMEM ? "" : call->text; /* the advice says the same */
    const char *advice = advice_of(m, call);
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

void rlk_error_copy(rowlock_error *out, const rowlock_error *in)
{
    if (!out || out->size < sizeof out->size)
        return;
    size_t size = out->size < sizeof *in ? out->size : sizeof *in;
    size_t theirs = out->size;
    memcpy(out, in, size);
    out->size = theirs;
}
