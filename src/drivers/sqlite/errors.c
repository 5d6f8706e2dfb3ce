/* SPDX-License-Identifier: MIT
 *
 * The classes of SQLite's result codes. */
#include "driver.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Extended codes come first, then primary codes. The constraint is for the caller's own tables.
 * Steps of rowlock break no constraint of ours. */
static const struct {
    int code;
    enum rlk_class class;
    enum rowlock_constraint constraint;
} codes[] = {
    {SQLITE_IOERR_NOMEM, RLK_NOMEM, 0}, /* no memory for a read or write */
    {SQLITE_READONLY_DBMOVED, RLK_UNSENT, 0}, /* another process renamed or deleted the file */
    {SQLITE_CONSTRAINT_TRIGGER, RLK_REFUSED, 0}, /* a trigger of another user refused */
    {SQLITE_CONSTRAINT_CHECK, RLK_REFUSED, ROWLOCK_CONSTRAINT_CHECK}, /* ours: no tokens left */
    {SQLITE_CONSTRAINT_UNIQUE, RLK_SCHEMA, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_PRIMARYKEY, RLK_SCHEMA, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_ROWID, RLK_SCHEMA, ROWLOCK_CONSTRAINT_UNIQUE},
    {SQLITE_CONSTRAINT_FOREIGNKEY, RLK_SCHEMA, ROWLOCK_CONSTRAINT_FOREIGN_KEY},
    {SQLITE_CONSTRAINT_NOTNULL, RLK_SCHEMA, ROWLOCK_CONSTRAINT_NOT_NULL},
    {SQLITE_CONSTRAINT_DATATYPE, RLK_SCHEMA, ROWLOCK_CONSTRAINT_VALUE}, /* in a STRICT table */
    {SQLITE_CONSTRAINT, RLK_SCHEMA, 0},
    {SQLITE_MISMATCH, RLK_SCHEMA, ROWLOCK_CONSTRAINT_VALUE}, /* a text for a rowid */
    {SQLITE_BUSY, RLK_CONTENTION, 0}, /* another connection is writing, or recovers the WAL */
    {SQLITE_LOCKED, RLK_CONTENTION, 0}, /* the same, within a shared cache */
    {SQLITE_PROTOCOL, RLK_CONTENTION, 0}, /* too many opened the WAL at the same moment */
    {SQLITE_NOMEM, RLK_NOMEM, 0}, /* out of memory */
    {SQLITE_READONLY, RLK_READONLY, 0}, /* file or file system takes no writes */
    {SQLITE_FULL, RLK_READONLY, 0}, /* disk or quota is full */
    {SQLITE_CANTOPEN, RLK_READONLY, 0}, /* the journal beside the file cannot be made */
    {SQLITE_PERM, RLK_DENIED, 0}, /* the access mode is not allowed */
    {SQLITE_AUTH, RLK_DENIED, 0}, /* the application's authorizer refused */
    {SQLITE_NOTADB, RLK_INVALID, 0}, /* some other kind of file, or an encrypted one */
    {SQLITE_TOOBIG, RLK_INVALID, 0}, /* longer than this build of SQLite allows */
    {SQLITE_SCHEMA, RLK_SCHEMA, 0}, /* the tables keep changing */
    {0, RLK_REFUSED, 0} /* all others */
};

/* SQLite reports missing tables and columns only as SQLITE_ERROR. */
static bool speaks_of_tables(const char *text)
{
    return strncmp(text, "no such ", 8) == 0 || strstr(text, " has no column named ") ||
           strstr(text, "does not match any PRIMARY KEY");
}

static size_t find_code(int code)
{
    size_t i = 0;
    while (codes[i].code && code != codes[i].code && (code & 0xFF) != codes[i].code)
        i++;
    return i;
}

void lite_folder_of(const char *path, char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
}

/* The file may be the database or one beside it. */
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

enum rlk_class lite_failed(struct conn *conn, struct rlk_call *call)
{
    int code = sqlite3_extended_errcode(conn->db);
    int why = (code & 0xFF) == SQLITE_IOERR ? sqlite3_system_errno(conn->db) : 0;
    const char *text = sqlite3_errmsg(conn->db);
    bool full = why == ENOSPC || why == EDQUOT || (code & 0xFF) == SQLITE_FULL;
    bool too_late = code == SQLITE_INTERRUPT && !conn->adopted;
    if (code == SQLITE_READONLY_DIRECTORY && !conn->adopted)
        return lite_cannot_make(conn->path, call, code);
    rlk_diag_set(call, code, NULL,
                 full       ? "the disk is full: make room"
                 : too_late ? "the statement took longer than its deadline, and was ended"
                            : text);
    if (code == SQLITE_ERROR && speaks_of_tables(text))
        return RLK_SCHEMA;
    return full ? RLK_READONLY : codes[find_code(code)].class;
}

/* Some codes mean a missing schema for our tables, and something else for the caller's. */
enum rlk_class lite_class_for_caller(struct rlk_call *call, enum rlk_class class)
{
    int primary = call->native & 0xFF;
    if (class == RLK_DONE)
        return class;
    call->constraint = codes[find_code(call->native)].constraint;
    if (call->constraint)
        return RLK_VIOLATION;
    if (primary == SQLITE_CONSTRAINT)
        return RLK_REFUSED;
    if (primary == SQLITE_SCHEMA)
        return RLK_CONTENTION;
    /* SQLITE_ERROR includes a missing table or column. */
    bool at_fault = primary == SQLITE_ERROR || primary == SQLITE_TOOBIG || primary == SQLITE_RANGE;
    return at_fault || class == RLK_SCHEMA ? RLK_INVALID : class;
}
