/* SPDX-License-Identifier: MIT
 *
 * What SQLite's result codes mean. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Extended codes first, then the primary code that they end in. */
static const struct {
    int code;
    enum rlk_class class;
} classes[] = {
    {SQLITE_IOERR_NOMEM, RLK_NOMEM}, /* no memory for a read or write */
    {SQLITE_READONLY_DBMOVED, RLK_UNSENT}, /* the file was renamed or deleted under us */
    {SQLITE_CONSTRAINT_TRIGGER, RLK_REFUSED}, /* somebody's trigger said no */
    {SQLITE_CONSTRAINT_CHECK, RLK_REFUSED}, /* there are no tokens left */
    {SQLITE_BUSY, RLK_CONTENTION}, /* another connection is writing, or recovers the WAL */
    {SQLITE_LOCKED, RLK_CONTENTION}, /* the same, within a shared cache */
    {SQLITE_PROTOCOL, RLK_CONTENTION}, /* too many opened the WAL at the same moment */
    {SQLITE_NOMEM, RLK_NOMEM}, /* out of memory */
    {SQLITE_READONLY, RLK_READONLY}, /* file or file system takes no writes */
    {SQLITE_FULL, RLK_READONLY}, /* disk or quota is full */
    {SQLITE_CANTOPEN, RLK_READONLY}, /* the journal beside the file cannot be made */
    {SQLITE_PERM, RLK_DENIED}, /* access mode cannot be had */
    {SQLITE_AUTH, RLK_DENIED}, /* the application's authorizer said no */
    {SQLITE_NOTADB, RLK_INVALID}, /* some other kind of file, or an encrypted one */
    {SQLITE_TOOBIG, RLK_INVALID}, /* longer than this build of SQLite allows */
    {SQLITE_SCHEMA, RLK_SCHEMA}, /* the tables keep changing */
    {SQLITE_CONSTRAINT, RLK_SCHEMA}, /* our tables have no constraint that we could break */
    {SQLITE_MISMATCH, RLK_SCHEMA}, /* and no columns of another type */
};

/* By extended codes. What fits none is no violation, such as a trigger that says no. */
static const struct {
    int code;
    enum rowlock_constraint constraint;
} violations[] = {
    {SQLITE_CONSTRAINT_UNIQUE, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_PRIMARYKEY, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_ROWID, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_FOREIGNKEY, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {SQLITE_CONSTRAINT_CHECK, ROWLOCK_CONSTRAINT_CHECK},
    {SQLITE_CONSTRAINT_NOTNULL, ROWLOCK_CONSTRAINT_NOT_NULL},
    {SQLITE_CONSTRAINT_DATATYPE, ROWLOCK_CONSTRAINT_VALUE}, /* a STRICT table's column */
    {SQLITE_MISMATCH, ROWLOCK_CONSTRAINT_VALUE}, /* a text for a rowid */
};

/* SQLITE_ERROR is all that SQLite says of tables and columns that are not there. */
static bool speaks_of_tables(const char *text)
{
    return strncmp(text, "no such ", 8) == 0 || strstr(text, " has no column named ") ||
           strstr(text, "does not match any PRIMARY KEY");
}

static enum rlk_class class_of(int code, const char *text)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
        if (code == classes[i].code || (code & 0xFF) == classes[i].code)
            return classes[i].class;
    return code == SQLITE_ERROR && speaks_of_tables(text) ? RLK_SCHEMA : RLK_REFUSED;
}

void lite_folder_of(const char *path, char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
}

enum rlk_class lite_refuse(struct rlk_call *call, enum rlk_class class, const char *why)
{
    rlk_diag_set(call, 0, NULL, why);
    return class;
}

/* The file that cannot be made is the database, or one beside it. */
enum rlk_class lite_cannot_make(const char *path, struct rlk_call *call, int native)
{
    char folder[PATH_ROOM];
    char text[sizeof call->text];
    lite_folder_of(path, folder);
    bool denied = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0 && errno == EACCES;
    snprintf(text, sizeof text,
             denied ? "this user may not write in the folder %.400s"
                    : "cannot make a file in %.400s: its file system takes no writes",
             folder);
    rlk_diag_set(call, native, NULL, text);
    return denied ? RLK_DENIED : RLK_READONLY;
}

enum rlk_class lite_failed(struct connection *conn, struct rlk_call *call)
{
    int code = sqlite3_extended_errcode(conn->db);
    int why = (code & 0xFF) == SQLITE_IOERR ? sqlite3_system_errno(conn->db) : 0;
    const char *text = sqlite3_errmsg(conn->db);
    bool full = why == ENOSPC || why == EDQUOT; /* SQLite says SQLITE_FULL of its own writes only */
    bool too_late = code == SQLITE_INTERRUPT && !conn->adopted;
    if (code == SQLITE_READONLY_DIRECTORY && !conn->adopted)
        return lite_cannot_make(conn->path, call, code);
    rlk_diag_set(call, code, NULL,
                 full       ? "the disk is full"
                 : too_late ? "it took longer than the statement deadline, and was ended"
                            : text);
    return full ? RLK_READONLY : class_of(code, text);
}

/* What is wrong with our tables by its class may mean something else of the caller's. */
enum rlk_class lite_class_for_caller(struct rlk_call *call, enum rlk_class class)
{
    if (class == RLK_DONE)
        return class;
    for (size_t i = 0; i < sizeof violations / sizeof violations[0]; i++)
        if (call->native == violations[i].code) {
            call->constraint = violations[i].constraint;
            return RLK_VIOLATION;
        }
    switch (call->native & 0xFF) {
    case SQLITE_CONSTRAINT:
        return RLK_REFUSED;
    case SQLITE_ERROR: /* also a table or column that is not there */
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
        return RLK_INVALID;
    case SQLITE_SCHEMA:
        return RLK_CONTENTION;
    default:
        return class == RLK_SCHEMA ? RLK_INVALID : class;
    }
}
