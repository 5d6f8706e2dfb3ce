/* SPDX-License-Identifier: MIT
 *
 * The driver for SQLite, version 3.35 (RETURNING) and later: every call of sqlite3_*() stands here.
 * What a step's answer means is not here (core), nor how it is spelled (sql/sqlite/).
 *
 * A file has one writer at a time. A step that writes waits for it inside SQLite's own busy handler,
 * but only for a moment; then the step is RLK_CONTENTION and core tries again with jitter, which lets
 * others in between. Reading waits for nobody where the file is in WAL mode. There is no connection
 * that could be lost and no answer that could get lost, so nothing here is ever RLK_UNCERTAIN. A
 * deadline bounds the waiting, and on our own connections each statement, which is looked at now and
 * then; COMMIT and ROLLBACK take as long as the disk takes. The application's connection keeps its own
 * progress handler, so there a statement takes as long as it takes.
 *
 * All who use a file are on one machine. So a waiter's ticket says where a datagram reaches it, and
 * whoever changes what the first in line waits for sends it one (see "bells").
 */
#include "../backend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <sqlite3.h>

enum {
    OLDEST_VERSION = 3035000,
    LOOK_EVERY = 10000, /* instructions of a statement between two looks at the clock */
    PATIENCE_US = 250000, /* longest wait for the file in one step */
    STATEMENTS_MAX = 6, /* in the text of one step */
    COLUMNS_MAX = 16, /* of a step: acquire */
    QUERIES_MAX = 32, /* of the caller's own tables, kept prepared */
    PATH_ROOM = 4096,
    BELL_ROOM = 64 /* for the address of a bell */
};

/* Kept like the texts of steps, because preparing them costs as much as running them. */
enum frame {
    FRAME_BEGIN = RLK_STEP_COUNT,
    FRAME_COMMIT,
    FRAME_ROLLBACK,
    FRAME_SAVE, /* these three inside a transaction */
    FRAME_KEEP,
    FRAME_UNDO,
    TEXT_COUNT
};

struct connection {
    sqlite3 *db; /* NULL: the file is not there yet */
    const struct rlk_texts *texts;
    bool adopted;
    char path[PATH_ROOM];
    int64_t deadline_us, waits_until_us; /* for the file, in the busy handler */
    bool ending; /* a transaction, which takes as long as it takes */
    bool has_socket;
    int socket; /* rings others, and where it has an address can be rung */
    char bell[BELL_ROOM]; /* that address; "": none yet, or they are not to be had here */
    sqlite3_stmt *kept[TEXT_COUNT][STATEMENTS_MAX]; /* prepared when first needed */
    struct {
        uint64_t id; /* 0: none */
        sqlite3_stmt *statement;
    } queries[QUERIES_MAX];
    size_t oldest; /* of them */
};

/* A value to bind: a text if there is one, else the number; none: NULL. */
struct value {
    const char *text;
    int64_t number;
    bool none;
};

#define TEXT(t) ((struct value){.text = (t)})
#define NUMBER(n) ((struct value){.number = (n)})
#define TEXT_OR_NULL(t) ((struct value){.text = (t), .none = !(t)})

/* ---------------------------------------------------------------- errors */

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
    {SQLITE_MISMATCH, RLK_SCHEMA}, /* nor columns of another type */
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

static void folder_of(const char *path, char out[PATH_ROOM])
{
    snprintf(out, PATH_ROOM, "%.*s", (int)(strrchr(path, '/') - path) + 1, path);
}

/* A file cannot be made there: the database, or one beside it. */
static enum rlk_class cannot_make(const char *path, struct rlk_call *call, int native)
{
    char folder[PATH_ROOM];
    char text[sizeof call->text];
    folder_of(path, folder);
    bool denied = faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) != 0 && errno == EACCES;
    snprintf(text, sizeof text,
             denied ? "this user may not write in the folder %.400s"
                    : "cannot make a file in %.400s: its file system takes no writes",
             folder);
    rlk_diag_set(call, native, NULL, text);
    return denied ? RLK_DENIED : RLK_READONLY;
}

/* To be called in the statement after the failing call: the next one replaces the error. */
static enum rlk_class failed(struct connection *conn, struct rlk_call *call)
{
    int code = sqlite3_extended_errcode(conn->db);
    int why = (code & 0xFF) == SQLITE_IOERR ? sqlite3_system_errno(conn->db) : 0;
    const char *text = sqlite3_errmsg(conn->db);
    bool full = why == ENOSPC || why == EDQUOT; /* SQLite says SQLITE_FULL of its own writes only */
    bool too_late = code == SQLITE_INTERRUPT && !conn->adopted;
    if (code == SQLITE_READONLY_DIRECTORY && !conn->adopted)
        return cannot_make(conn->path, call, code);
    rlk_diag_set(call, code, NULL,
                 full       ? "the disk is full"
                 : too_late ? "it took longer than the statement deadline, and was ended"
                            : text);
    return full ? RLK_READONLY : class_of(code, text);
}

static enum rlk_class refuse(struct rlk_call *call, enum rlk_class class, const char *why)
{
    rlk_diag_set(call, 0, NULL, why);
    return class;
}

/* By extended codes; what fits none is no violation, such as a trigger that says no. */
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

/* What went wrong with our tables in class may have another meaning for the caller's. */
static enum rlk_class class_for_caller(struct rlk_call *call, enum rlk_class class)
{
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
        return class;
    }
}

/* ---------------------------------------------------------------- statements */

static const char *text_of(const struct connection *conn, int which)
{
    switch (which) {
    case FRAME_BEGIN:
        return "BEGIN IMMEDIATE";
    case FRAME_COMMIT:
        return "COMMIT";
    case FRAME_ROLLBACK:
        return "ROLLBACK";
    case FRAME_SAVE:
        return "SAVEPOINT rowlock";
    case FRAME_KEEP:
        return "RELEASE rowlock";
    case FRAME_UNDO:
        return "ROLLBACK TO rowlock";
    default:
        return conn->texts->sql[which];
    }
}

static void forget(struct connection *conn, int which)
{
    for (int i = 0; i < STATEMENTS_MAX; i++) {
        sqlite3_finalize(conn->kept[which][i]);
        conn->kept[which][i] = NULL;
    }
}

/* Make sure that all statements of a text are prepared. */
static enum rlk_class prepare(struct connection *conn, struct rlk_call *call, int which)
{
    if (conn->kept[which][0])
        return RLK_DONE;
    const char *rest = text_of(conn, which);
    for (int i = 0; i < STATEMENTS_MAX && *rest; i++) {
        int code = sqlite3_prepare_v3(conn->db, rest, -1, SQLITE_PREPARE_PERSISTENT,
                                      &conn->kept[which][i], &rest);
        if (code != SQLITE_OK) {
            enum rlk_class class = failed(conn, call);
            forget(conn, which);
            /* The text is known to be right, so it is the tables that do not fit it. */
            return (code & 0xFF) == SQLITE_ERROR ? RLK_SCHEMA : class;
        }
    }
    return RLK_DONE;
}

/* Bind as many of the values as the statement has parameters: those of one text share them. NULL if
 * none has any. */
static enum rlk_class bind_values(struct connection *conn, struct rlk_call *call,
                                  sqlite3_stmt *statement, const struct value *values)
{
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 0; values && i < count; i++) {
        const struct value *value = &values[i];
        int code = value->none ? sqlite3_bind_null(statement, i + 1)
                   : value->text
                       ? sqlite3_bind_text(statement, i + 1, value->text, -1, SQLITE_STATIC)
                       : sqlite3_bind_int64(statement, i + 1, value->number);
        if (code != SQLITE_OK)
            return failed(conn, call);
    }
    return RLK_DONE;
}

/* False: no memory to convert what is in a UTF-16 file. */
static bool get_cell(sqlite3_stmt *statement, int column, rowlock_value *out)
{
    const void *bytes = "";
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
        *out = rowlock_int(sqlite3_column_int64(statement, column));
        return true;
    case SQLITE_FLOAT:
        *out = rowlock_real(sqlite3_column_double(statement, column));
        return true;
    case SQLITE_NULL:
        *out = rowlock_null();
        return true;
    case SQLITE_TEXT:
        bytes = sqlite3_column_text(statement, column);
        *out = rowlock_textn(ROWLOCK_TEXT, bytes, (size_t)sqlite3_column_bytes(statement, column));
        return bytes != NULL;
    default:
        if (sqlite3_column_bytes(statement, column) > 0) /* else SQLite answers a null pointer */
            bytes = sqlite3_column_blob(statement, column);
        *out = rowlock_textn(ROWLOCK_BYTES, bytes, (size_t)sqlite3_column_bytes(statement, column));
        return bytes != NULL;
    }
}

/* The columns of the rows that a step gives, see rlk_cell_fits(). A file holds in any column what its last
 * writer has put there. What is no bell is not rung. */
#define ROW "tintimmmititt" /* and now */
static const char *const shapes[RLK_STEP_COUNT] = {
    [RLK_STEP_META] = "nti",
    [RLK_STEP_FACTS] = "tm",
    [RLK_STEP_ACQUIRE] = "BbTINTIMMMITITTm", /* its last statement: ROW "m" */
    [RLK_STEP_ENQUEUE] = "im",
    [RLK_STEP_RING] = ".",
    [RLK_STEP_CYCLE] = "t",
    [RLK_STEP_WAITERS] = "tiintmmtittm",
    [RLK_STEP_RENEW] = "mmm",
    [RLK_STEP_RENEW_ALL] = "m",
    [RLK_STEP_VERIFY] = "mm",
    [RLK_STEP_LIST] = ROW "m",
    [RLK_STEP_LAST] = "im",
    [RLK_STEP_EXPIRED] = ROW "m",
    [RLK_STEP_FOLD] = "m",
    [RLK_STEP_BREAK] = ROW "m",
    [RLK_STEP_GUARD] = "ib",
    [RLK_STEP_RAISE] = "i",
};

static const char *shape_of(int which, int index)
{
    return which == RLK_STEP_ACQUIRE && index > 0 ? ROW "m" : shapes[which];
}

static bool read_cells(sqlite3_stmt *statement, const char *shape, rowlock_value *cells)
{
    int count = sqlite3_column_count(statement);
    for (int i = 0; i < count; i++)
        if (i >= COLUMNS_MAX || !get_cell(statement, i, &cells[i]))
            return false;
    return rlk_cells_fit(shape, cells, (size_t)count);
}

/* The step is undone, unless it was this one statement and that has written. */
static enum rlk_class misfit(struct rlk_call *call, sqlite3_stmt *statement)
{
    rlk_diag_set(call, 0, NULL,
                 "our tables hold what no rowlock writes there: the file is damaged, or somebody "
                 "else has changed it");
    return sqlite3_stmt_readonly(statement) ? RLK_SCHEMA : RLK_MISFIT;
}

/* Called for each row that a statement gives. */
typedef void read_fn(const rowlock_value *cells, void *out);

/* A statement of the caller's transaction has failed. Most failures undo the statement alone; some have
 * SQLite roll back all of it; and once others have written after its snapshot, it never can. */
static void look_at_tx(struct connection *conn, struct rlk_call *call)
{
    if (call->inside)
        call->tx_over = call->native == SQLITE_BUSY_SNAPSHOT || sqlite3_get_autocommit(conn->db);
}

/* Run one statement to its end: before SQLITE_DONE nothing of an autocommit statement is committed,
 * and after the reset it keeps no read transaction open. */
static enum rlk_class run_one(struct connection *conn, struct rlk_call *call, int which, int index,
                              const struct value *values, read_fn *read, void *out)
{
    enum rlk_class class = prepare(conn, call, which);
    if (class != RLK_DONE)
        return class;
    sqlite3_stmt *statement = conn->kept[which][index];
    class = bind_values(conn, call, statement, values);
    if (class != RLK_DONE)
        return class;
    conn->ending = which >= RLK_STEP_COUNT;
    int code = sqlite3_step(statement);
    rowlock_value cells[COLUMNS_MAX];
    bool fit = true;
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        fit = fit && (!read || read_cells(statement, shape_of(which, index), cells));
        if (read && fit)
            read(cells, out);
    }
    conn->ending = false;
    if (code != SQLITE_DONE)
        class = failed(conn, call);
    else if (!fit)
        class = misfit(call, statement);
    sqlite3_reset(statement);
    if (class != RLK_DONE)
        look_at_tx(conn, call);
    return class;
}

static enum rlk_class run_first(struct connection *conn, struct rlk_call *call, int which,
                                const struct value *values, read_fn *read, void *out)
{
    return run_one(conn, call, which, 0, values, read, out);
}

/* The other statements of a text whose first one was run. */
static enum rlk_class run_rest(struct connection *conn, struct rlk_call *call, int which,
                               const struct value *values, read_fn *read, void *out)
{
    enum rlk_class class = RLK_DONE;
    for (int i = 1; i < STATEMENTS_MAX && conn->kept[which][i] && class == RLK_DONE; i++)
        class = run_one(conn, call, which, i, values, read, out);
    return class;
}

static enum rlk_class run_all(struct connection *conn, struct rlk_call *call, int which,
                              const struct value *values, read_fn *read, void *out)
{
    enum rlk_class class = run_first(conn, call, which, values, read, out);
    return class == RLK_DONE ? run_rest(conn, call, which, values, read, out) : class;
}

/* ---------------------------------------------------------------- the file */

/* A connection setting, given or asked for: with BEGIN and its like the only SQL that stands here. */
static int pragma(sqlite3 *db, const char *text, char *out, size_t cap)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(db, text, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW && out)
        rlk_copy_text(out, cap, (const char *)sqlite3_column_text(statement, 0),
                      (size_t)sqlite3_column_bytes(statement, 0));
    sqlite3_finalize(statement);
    return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Is the file alone missing, and not its folder too? */
static bool is_absent(const char *path)
{
    char folder[PATH_ROOM];
    struct stat unused;
    folder_of(path, folder);
    return stat(path, &unused) != 0 && errno == ENOENT && stat(folder, &unused) == 0;
}

/* SQLite says no more than "unable to open database file". */
static enum rlk_class cannot_open(struct connection *conn, struct rlk_call *call)
{
    const char *path = conn->path;
    int native = sqlite3_extended_errcode(conn->db);
    int why = sqlite3_system_errno(conn->db);
    struct stat unused;
    bool lacks_files = why == ENOENT && stat(path, &unused) == 0; /* those beside it */
    char text[sizeof call->text];
    if (lacks_files || (why == ENOENT && is_absent(path))) /* the last of two tries was to read */
        return cannot_make(path, call, native);
    if (why == ENOENT || why == ENOTDIR)
        snprintf(text, sizeof text, "the folder of %.400s does not exist", path);
    else if (why != 0)
        snprintf(text, sizeof text, "cannot open %.400s: %s", path, strerror(why));
    else
        snprintf(text, sizeof text, "cannot open %.400s", path);
    rlk_diag_set(call, native, NULL, text);
    switch (why) {
    case EACCES:
    case EPERM:
        return RLK_DENIED;
    case EMFILE:
    case ENFILE:
        return RLK_UNSENT;
    case EROFS:
        return RLK_READONLY;
    default:
        return RLK_INVALID;
    }
}

/* SQLite's busy handler, which is the only waiting here: may it ask for the file again? Its own would soon
 * ask only every 50 ms, and never meet the moment between two transactions of somebody who writes all the
 * time. Not at equal intervals, because such a writer may have the same. */
static int wait_for_file(void *context, int asked)
{
    struct connection *conn = context;
    int64_t now_us = rlk_now_us();
    unsigned char chance;
    if (asked == 0)
        conn->waits_until_us = now_us + PATIENCE_US;
    if (now_us >= conn->waits_until_us || now_us >= conn->deadline_us)
        return 0;
    sqlite3_randomness(sizeof chance, &chance);
    sqlite3_sleep(1 + chance % 3);
    return 1;
}

/* SQLite's progress handler. A view, a trigger or a generated column in a file that somebody else has
 * made may never end. */
static int is_too_late(void *context)
{
    const struct connection *conn = context;
    return !conn->ending && rlk_now_us() >= conn->deadline_us;
}

/* What stands in the schema of the file may call plain functions only, and no statement may damage it. */
static void distrust(struct connection *conn)
{
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_progress_handler(conn->db, LOOK_EVERY, is_too_late, conn);
}

/* For its owner alone, whatever the umask: who may read the file can stop all who write by a file lock.
 * SQLite makes the files beside it with the same mode. A file that is there stays as it is. Made without
 * a descriptor, since closing one would let go of the locks of others in this process. */
static void make_private(const char *path)
{
    int ignored =
        mknod(path, S_IFREG | S_IRUSR | S_IWUSR, 0); /* SQLite says what is wrong with it */
    (void)ignored;
}

/* SQLite would open a device or a pipe too, and say "disk I/O error" later. */
static enum rlk_class check_kind(const char *path, struct rlk_call *call)
{
    char text[sizeof call->text];
    struct stat file;
    if (stat(path, &file) != 0 || S_ISREG(file.st_mode))
        return RLK_DONE;
    snprintf(text, sizeof text, "%.400s is %s", path,
             S_ISDIR(file.st_mode) ? "a folder" : "not a regular file");
    return refuse(call, RLK_INVALID, text);
}

/* Without create, a file that is not there is RLK_SCHEMA: whoever only looks, or mistypes a path, must
 * not leave an empty file behind. */
static enum rlk_class open_file(struct connection *conn, struct rlk_call *call, bool create)
{
    bool in_memory = strcmp(conn->path, ":memory:") == 0;
    if (!in_memory && check_kind(conn->path, call) != RLK_DONE)
        return RLK_INVALID;
    if (!create && !in_memory && is_absent(conn->path))
        return refuse(call, RLK_SCHEMA, "there is no such file yet");
    if (create && !in_memory)
        make_private(conn->path);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;
    int code = sqlite3_open_v2(conn->path, &conn->db, flags, NULL);
    if (!conn->db)
        return RLK_NOMEM;
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(conn->db, 1);
        sqlite3_busy_handler(conn->db, wait_for_file, conn);
        conn->deadline_us = call->deadline_us;
        distrust(conn);
        /* Reading the header finds out whether this is a database at all. */
        code = pragma(conn->db, "PRAGMA schema_version", NULL, 0);
    }
    /* A token that was answered must not be forgotten by a power failure, nor a journal come back. */
    if (code == SQLITE_OK)
        code = pragma(conn->db, "PRAGMA synchronous = EXTRA", NULL, 0);
    if (code == SQLITE_OK)
        code = pragma(conn->db, "PRAGMA foreign_keys = ON", NULL, 0);
    if (code == SQLITE_OK)
        return RLK_DONE;
    enum rlk_class class =
        (code & 0xFF) == SQLITE_CANTOPEN ? cannot_open(conn, call) : failed(conn, call);
    sqlite3_close_v2(conn->db);
    conn->db = NULL;
    return class;
}

/* Is the connection where the step belongs? Outside, a read transaction counts as a transaction too:
 * what we would see in it is old. */
static enum rlk_class check_place(struct connection *conn, struct rlk_call *call,
                                  enum rlk_where where)
{
    call->inside = !sqlite3_get_autocommit(conn->db) && where != RLK_OUTSIDE;
    switch (where) {
    case RLK_INSIDE:
        return call->inside ? RLK_DONE : RLK_NO_TX;
    case RLK_EITHER:
        return RLK_DONE;
    default:
        return sqlite3_get_autocommit(conn->db) &&
                       sqlite3_txn_state(conn->db, "main") == SQLITE_TXN_NONE
                   ? RLK_DONE
                   : RLK_IN_TX;
    }
}

/* Locks in a file that others no longer find exclude nobody. */
static enum rlk_class check_file(struct connection *conn, struct rlk_call *call)
{
    int moved = 0;
    sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? refuse(call, RLK_UNSENT, "the database file was moved or deleted") : RLK_DONE;
}

/* Begin a step: may it run, and how long may it wait for the file? The application's connection keeps
 * its own busy handler. */
static enum rlk_class ready_at(struct connection *conn, struct rlk_call *call, enum rlk_where where)
{
    enum rlk_class class = RLK_DONE;
    call->inside = false;
    if (!conn->db) /* so nothing can have begun there */
        class = where == RLK_INSIDE ? RLK_NO_TX : open_file(conn, call, false);
    if (class == RLK_DONE)
        class = check_place(conn, call, where);
    if (class == RLK_DONE && !conn->adopted)
        conn->deadline_us = call->deadline_us;
    return class;
}

static enum rlk_class ready(struct connection *conn, struct rlk_call *call)
{
    enum rlk_class class = ready_at(conn, call, call->where);
    return class == RLK_DONE ? check_file(conn, call) : class;
}

/* A step of several statements is a transaction, or a part of the caller's that can be undone. */
static enum rlk_class begin(struct connection *conn, struct rlk_call *call)
{
    return run_first(conn, call, call->inside ? FRAME_SAVE : FRAME_BEGIN, NULL, NULL, NULL);
}

/* The call keeps what it says of the failure that this is about. */
static enum rlk_class run_quietly(struct connection *conn, const struct rlk_call *call, int frame)
{
    struct rlk_call ignored = *call;
    return run_first(conn, &ignored, frame, NULL, NULL, NULL);
}

/* A savepoint stays after a ROLLBACK TO. What cannot be undone must not be committed either. */
static void undo(struct connection *conn, struct rlk_call *call)
{
    if (!call->inside)
        run_quietly(conn, call, FRAME_ROLLBACK);
    else if (run_quietly(conn, call, FRAME_UNDO) != RLK_DONE ||
             run_quietly(conn, call, FRAME_KEEP) != RLK_DONE)
        call->tx_over = true;
}

/* End the transaction of a step that ended in class. A COMMIT that fails has changed nothing, but may
 * leave the transaction open. */
static enum rlk_class finish(struct connection *conn, struct rlk_call *call, enum rlk_class class)
{
    if (class == RLK_DONE)
        class = run_first(conn, call, call->inside ? FRAME_KEEP : FRAME_COMMIT, NULL, NULL, NULL);
    if (class != RLK_DONE && !sqlite3_get_autocommit(conn->db))
        undo(conn, call);
    return class;
}

/* ---------------------------------------------------------------- columns */

static void get_text(const rowlock_value *cell, char *out, size_t cap)
{
    rlk_copy_text(out, cap, cell->text, cell->text ? cell->length : 0);
}

#define GET_TEXT(cell, array) get_text(&(cell), array, sizeof(array))

/* The row as sql/README.md orders its columns. */
static void get_row(const rowlock_value *cells, struct rlk_row *row)
{
    GET_TEXT(cells[0], row->name);
    row->slot = cells[1].number;
    row->permits = (int)cells[2].number;
    GET_TEXT(cells[3], row->owner);
    row->token = cells[4].number;
    row->acquired_us = cells[5].number;
    row->expires_us = cells[6].number;
    row->ttl_us = cells[7].number;
    row->renewals = cells[8].number;
    GET_TEXT(cells[9], row->host);
    row->pid = cells[10].number;
    GET_TEXT(cells[11], row->program);
    GET_TEXT(cells[12], row->note);
    row->now_us = cells[13].number;
}

static void get_waiter(const rowlock_value *cells, struct rlk_waiter *waiter)
{
    GET_TEXT(cells[0], waiter->name);
    waiter->ticket = cells[1].number;
    waiter->attempt = cells[2].number;
    waiter->permits = (int)cells[3].number;
    GET_TEXT(cells[4], waiter->owner);
    waiter->since_us = cells[5].number;
    waiter->expires_us = cells[6].number;
    GET_TEXT(cells[7], waiter->host);
    waiter->pid = cells[8].number;
    GET_TEXT(cells[9], waiter->program);
    GET_TEXT(cells[10], waiter->note);
    waiter->now_us = cells[11].number;
}

/* A page of rows, or of waiters, read to its end before anybody is given one: a callback that is slow,
 * or writes to a full pipe, must not keep a transaction open. */
struct page {
    union {
        void *any;
        struct rlk_row *rows;
        struct rlk_waiter *waiters;
    } of;
    int count, room;
    bool no_memory;
};

/* Room for one more item, or false. */
static bool grow(struct page *page, size_t size)
{
    if (page->count < page->room || page->no_memory)
        return !page->no_memory;
    int room = page->room ? 2 * page->room : 8;
    void *items = rlk_alloc((size_t)room * size);
    page->no_memory = !items;
    if (!items)
        return false;
    if (page->count > 0)
        memcpy(items, page->of.any, (size_t)page->count * size);
    rlk_free(page->of.any);
    page->of.any = items;
    page->room = room;
    return true;
}

static void add_row(const rowlock_value *cells, void *out)
{
    struct page *page = out;
    if (grow(page, sizeof *page->of.rows))
        get_row(cells, &page->of.rows[page->count++]);
}

static void add_waiter(const rowlock_value *cells, void *out)
{
    struct page *page = out;
    if (grow(page, sizeof *page->of.waiters))
        get_waiter(cells, &page->of.waiters[page->count++]);
}

static enum rlk_class read_page(struct connection *conn, struct rlk_call *call, int which,
                                const struct value *values, read_fn *add, struct page *page)
{
    enum rlk_class class = run_first(conn, call, which, values, add, page);
    return class == RLK_DONE && page->no_memory ? RLK_NOMEM : class;
}

static void give_page(const struct page *page, rlk_row_fn *each, void *context)
{
    for (int i = 0; each && i < page->count; i++)
        if (each(context, &page->of.rows[i]) != 0)
            return;
}

/* ---------------------------------------------------------------- bells */

/* A bell is a datagram socket with an address out of Linux's abstract ones: it leaves no file behind,
 * ends with its process, and costs nothing while nobody rings. The address, 128 random bits, stands in
 * the ticket. A datagram is a hint to look and no more: it is empty, may come from anybody, and gets
 * lost where the sender is in another network namespace (a container that shares only the file), so
 * core looks from time to time all the same. */
static const char BELL_PREFIX[] = "@rowlock-";

/* Also the only addresses that are rung: what stands in a table must not send us just anywhere. */
static bool is_bell(const char *address)
{
    size_t prefix = sizeof BELL_PREFIX - 1;
    return strncmp(address, BELL_PREFIX, prefix) == 0 &&
           strspn(address + prefix, "0123456789abcdef") == 32 && address[prefix + 32] == '\0';
}

/* An abstract address begins with a zero byte, which people write as @. */
static socklen_t socket_address(const char *bell, struct sockaddr_un *out)
{
    size_t length = strlen(bell);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(out->sun_path, bell, length);
    out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

static bool open_socket(struct connection *conn)
{
#ifdef __linux__
    if (!conn->has_socket) {
        conn->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        conn->has_socket = conn->socket >= 0;
    }
#endif
    return conn->has_socket;
}

/* Without one a waiter looks more often, which is core's to do; so failing here is no failure. */
static void hang_bell(struct connection *conn)
{
    unsigned char random[16];
    char bell[BELL_ROOM];
    struct sockaddr_un address;
    if (conn->bell[0] || !open_socket(conn))
        return;
    sqlite3_randomness(sizeof random, random);
    int length = snprintf(bell, sizeof bell, "%s", BELL_PREFIX);
    for (size_t i = 0; i < sizeof random; i++)
        length += snprintf(bell + length, sizeof bell - (size_t)length, "%02x", random[i]);
    socklen_t size = socket_address(bell, &address);
    if (bind(conn->socket, (const struct sockaddr *)&address, size) == 0)
        memcpy(conn->bell, bell, sizeof bell);
}

static void take_bell_down(struct connection *conn)
{
    if (conn->has_socket)
        close(conn->socket);
    conn->has_socket = false;
    conn->bell[0] = '\0';
}

static void read_bell(const rowlock_value *cells, void *out)
{
    get_text(&cells[0], out, BELL_ROOM);
}

/* Whom to ring for once the transaction of a step that changed this name is committed. Asked inside of
 * it: who takes a ticket later sees the change when he looks. In the caller's transaction nobody is
 * rung for, since only he knows when it is committed; the first in line then finds out by his next look. */
static enum rlk_class find_bell(struct connection *conn, struct rlk_call *call, const char *name,
                                char bell[BELL_ROOM])
{
    const struct value values[] = {TEXT(name)};
    return call->inside ? RLK_DONE : run_first(conn, call, RLK_STEP_RING, values, read_bell, bell);
}

/* If the waiter is gone its ticket's lease will end; if its buffer is full it has been rung for. */
static void ring(struct connection *conn, const char *bell)
{
    struct sockaddr_un address;
    if (!is_bell(bell) || !open_socket(conn))
        return;
    socklen_t size = socket_address(bell, &address);
    sendto(conn->socket, "", 0, 0, (const struct sockaddr *)&address, size);
}

/* ---------------------------------------------------------------- open and close */

/* To the path that SQLite opens: the end of symbolic links, whose file need not be there yet. One that it
 * cannot follow stays, and SQLite says what is wrong with it. */
static void follow_links(char *path, size_t cap)
{
    char whole[PATH_ROOM];
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (vfs && (vfs->xFullPathname(vfs, path, sizeof whole, whole) & 0xFF) == SQLITE_OK)
        snprintf(path, cap, "%s", whole);
}

/* sqlite:PATH. Two slashes are refused since people mean two different things by them. */
static enum rlk_class path_of(const char *url, struct rlk_call *call, char *out, size_t cap)
{
    const char *path = strchr(url, ':') + 1;
    if (*path == '\0')
        return refuse(call, RLK_INVALID, "there is no path in it; write sqlite:/path/to/file");
    if (strncmp(path, "//", 2) == 0)
        return refuse(call, RLK_INVALID,
                      "a SQLite URL has no host: write sqlite:/path/to/file, with one slash, or "
                      "sqlite:file for one in the current folder");
    if (strchr(path, '?'))
        return refuse(call, RLK_INVALID, "a SQLite URL takes rowlock_ parameters only");
    /* Some builds of SQLite would take "file:…" for a URI of their own. */
    bool plain = *path == '/' || strcmp(path, ":memory:") == 0;
    int length = snprintf(out, cap, "%s%s", plain ? "" : "./", path);
    if (length < 0 || (size_t)length >= cap)
        return refuse(call, RLK_INVALID, "its path is too long");
    if (strcmp(out, ":memory:") != 0)
        follow_links(out, cap);
    return RLK_DONE;
}

static enum rlk_class check_version(struct rlk_call *call)
{
    if (sqlite3_libversion_number() >= OLDEST_VERSION)
        return RLK_DONE;
    char text[100];
    snprintf(text, sizeof text, "this is SQLite %s; 3.35 is the oldest that will do",
             sqlite3_libversion());
    return refuse(call, RLK_UNSUPPORTED, text);
}

static enum rlk_class sqlite_open(void *state, struct rlk_call *call,
                                  const struct rlk_target *target, const struct rlk_texts *texts,
                                  struct rlk_hello *hello)
{
    struct connection *conn = state;
    enum rlk_class class = check_version(call);
    if (class == RLK_DONE)
        class = path_of(target->url, call, conn->path, sizeof conn->path);
    if (class != RLK_DONE)
        return class;
    conn->texts = texts;
    snprintf(hello->schema, sizeof hello->schema, "main");
    class = open_file(conn, call, false);
    return class == RLK_SCHEMA ? RLK_DONE : class; /* it may be installed yet */
}

static enum rlk_class sqlite_adopt(void *state, struct rlk_call *call, void *vendor,
                                   const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct connection *conn = state;
    enum rlk_class class = check_version(call);
    if (class != RLK_DONE)
        return class;
    conn->db = vendor;
    conn->texts = texts;
    conn->adopted = true;
    snprintf(hello->schema, sizeof hello->schema, "main");
    return RLK_DONE;
}

/* After fork nothing is closed: the child has inherited SQLite's notes on file locks, but not the locks
 * ("How To Corrupt An SQLite Database File", section 2.6). The handle's memory stays. */
static void sqlite_close(void *state, bool in_child)
{
    struct connection *conn = state;
    take_bell_down(conn); /* in a child, its copy */
    if (!conn->db || in_child)
        return;
    for (int which = 0; which < TEXT_COUNT; which++)
        forget(conn, which);
    for (int i = 0; i < QUERIES_MAX; i++)
        sqlite3_finalize(conn->queries[i].statement);
    if (!conn->adopted)
        sqlite3_close_v2(conn->db);
    conn->db = NULL;
}

/* ---------------------------------------------------------------- tables */

/* An empty file is ours, and gets the journal in which readers and the writer do not wait for each
 * other. A database of somebody else's keeps its own. Where WAL cannot be had, any other will do. */
static enum rlk_class choose_journal(struct connection *conn, struct rlk_call *call)
{
    char pages[24] = "", mode[24] = "";
    int code = SQLITE_OK;
    if (!conn->adopted)
        code = pragma(conn->db, "PRAGMA page_count", pages, sizeof pages);
    if (code == SQLITE_OK && strcmp(pages, "0") == 0)
        code = pragma(conn->db, "PRAGMA journal_mode = WAL", mode, sizeof mode);
    return code == SQLITE_OK ? RLK_DONE : failed(conn, call);
}

static enum rlk_class sqlite_install(void *state, struct rlk_call *call)
{
    struct connection *conn = state;
    enum rlk_class class = conn->db ? RLK_DONE : open_file(conn, call, true);
    if (class == RLK_DONE)
        class = ready(conn, call);
    if (class == RLK_DONE)
        class = choose_journal(conn, call);
    if (class != RLK_DONE)
        return class;
    if (sqlite3_exec(conn->db, conn->texts->sql[RLK_STEP_SCHEMA], NULL, NULL, NULL) == SQLITE_OK)
        return RLK_DONE;
    class = failed(conn, call);
    if (call->native == SQLITE_ERROR)
        class = RLK_SCHEMA;
    return finish(conn, call, class);
}

static void read_meta(const rowlock_value *cells, void *out)
{
    struct rlk_meta *meta = out;
    meta->found = true;
    meta->version = (int)cells[0].number;
    GET_TEXT(cells[1], meta->identity);
    meta->token_floor = cells[2].number;
}

static enum rlk_class sqlite_meta(void *state, struct rlk_call *call, struct rlk_meta *out)
{
    enum rlk_class class = ready(state, call);
    if (class != RLK_DONE)
        return class;
    out->found = false;
    return run_first(state, call, RLK_STEP_META, NULL, read_meta, out);
}

static void read_facts(const rowlock_value *cells, void *out)
{
    struct rlk_facts *facts = out;
    GET_TEXT(cells[0], facts->server);
    facts->now_us = cells[1].number;
}

/* FULL leaves one gap: the deletion of a rollback journal may be lost with the power, and the journal
 * then takes the last commit back. EXTRA closes it. */
static void describe_durability(const char *journal, const char *synchronous, struct rlk_facts *out)
{
    static const char *const words[] = {"off", "normal", "full", "extra"};
    int level = synchronous[0] >= '0' && synchronous[0] <= '3' ? synchronous[0] - '0' : 0;
    out->crash_safe = strcmp(journal, "off") != 0 && strcmp(journal, "memory") != 0;
    out->durable = level >= (strcmp(journal, "delete") == 0 ? 3 : 2) && out->crash_safe;
    snprintf(out->engine, sizeof out->engine, "journal_mode %s", journal);
    snprintf(out->durability, sizeof out->durability, "synchronous %s", words[level]);
}

static void describe_names(struct connection *conn, struct rlk_facts *out)
{
    char table[64];
    const char *collation = NULL;
    snprintf(table, sizeof table, "%slocks", conn->texts->prefix);
    sqlite3_table_column_metadata(conn->db, conn->texts->schema, table, "name", NULL, &collation,
                                  NULL, NULL, NULL);
    snprintf(out->collation, sizeof out->collation, "%s", collation ? collation : "unknown");
    out->bytewise = strcasecmp(out->collation, "BINARY") == 0;
}

/* Who is not in the file's group and may come through its folder. In a folder with the sticky bit a file
 * is replaced by its owner alone. */
static void describe_access(struct connection *conn, struct rlk_facts *out)
{
    char folder_path[PATH_ROOM];
    struct stat file;
    struct stat folder;
    const char *path = sqlite3_db_filename(conn->db, conn->texts->schema);
    if (!path || !strchr(path, '/'))
        return;
    folder_of(path, folder_path);
    if (stat(path, &file) != 0 || stat(folder_path, &folder) != 0)
        return;
    bool come_through = folder.st_mode & S_IXOTH;
    bool replace = (folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX);
    out->others_read = come_through && (file.st_mode & S_IROTH);
    out->others_write = come_through && ((file.st_mode & S_IWOTH) || replace);
    snprintf(out->access, sizeof out->access, "file %04o, folder %04o", file.st_mode & 07777,
             folder.st_mode & 07777);
}

static enum rlk_class sqlite_facts(void *state, struct rlk_call *call, struct rlk_facts *out)
{
    struct connection *conn = state;
    char journal[24] = "", synchronous[8] = "", query_only[8] = "";
    enum rlk_class class = ready(conn, call);
    if (class == RLK_DONE)
        class = run_first(conn, call, RLK_STEP_FACTS, NULL, read_facts, out);
    if (class != RLK_DONE)
        return class;
    if (pragma(conn->db, "PRAGMA main.journal_mode", journal, sizeof journal) != SQLITE_OK ||
        pragma(conn->db, "PRAGMA main.synchronous", synchronous, sizeof synchronous) != SQLITE_OK ||
        pragma(conn->db, "PRAGMA query_only", query_only, sizeof query_only) != SQLITE_OK)
        return failed(conn, call);
    describe_durability(journal, synchronous, out);
    describe_names(conn, out);
    describe_access(conn, out);
    out->read_only = sqlite3_db_readonly(conn->db, "main") == 1 || strcmp(query_only, "1") == 0;
    out->may_lock = true; /* whoever may write the file */
    snprintf(out->isolation, sizeof out->isolation, "serializable");
    out->any_isolation = true;
    out->replication_known = true;
    snprintf(out->replication, sizeof out->replication, "none");
    return RLK_DONE;
}

/* ---------------------------------------------------------------- acquire */

/* What core tells us of a claim, in the order of acquire.sql. */
#define CLAIM(claim)                                                                \
    {                                                                               \
        TEXT((claim)->name), NUMBER((claim)->permits), TEXT((claim)->owner),        \
            NUMBER((claim)->attempt), NUMBER((claim)->ttl_us), TEXT((claim)->host), \
            NUMBER((claim)->pid), TEXT((claim)->program), TEXT((claim)->note),      \
            NUMBER((claim)->ticket), NUMBER((claim)->unfair)                        \
    }

static void read_look(const rowlock_value *cells, void *out)
{
    struct rlk_grant *grant = out;
    grant->settling = false;
    grant->behind = cells[1].number != 0;
    if (cells[2].kind == ROWLOCK_NULL) { /* its name */
        grant->outcome = grant->behind ? RLK_BEHIND : RLK_IN_FLIGHT;
        return;
    }
    grant->outcome = cells[0].number ? RLK_GRANTED : RLK_HELD;
    get_row(cells + 2, &grant->row);
}

static void read_grant(const rowlock_value *cells, void *out)
{
    struct rlk_grant *grant = out;
    grant->outcome = RLK_GRANTED;
    get_row(cells, &grant->row);
}

/* Who or what is in our way? IN_FLIGHT, which a file with one writer does not know, stands for nothing. */
static enum rlk_class look(struct connection *conn, struct rlk_call *call,
                           const struct rlk_claim *claim, struct rlk_grant *out)
{
    const struct value values[] = CLAIM(claim);
    return run_first(conn, call, RLK_STEP_ACQUIRE, values, read_look, out);
}

/* In a transaction: look again, since others may have come before it, and be granted the lock if nothing
 * is in the way. An exclusive grant is no news for those in line; of any other the next one may have his
 * share. */
static enum rlk_class grant_one(struct connection *conn, struct rlk_call *call,
                                const struct rlk_claim *claim, struct rlk_grant *out,
                                char bell[BELL_ROOM])
{
    const struct value values[] = CLAIM(claim);
    enum rlk_class class = look(conn, call, claim, out);
    if (class != RLK_DONE || out->outcome != RLK_IN_FLIGHT)
        return class;
    class = run_rest(conn, call, RLK_STEP_ACQUIRE, values, read_grant, out);
    if (class == RLK_DONE && claim->permits != 0)
        class = find_bell(conn, call, claim->name, bell);
    return class;
}

/* The look comes first so that a held lock, the usual case of a busy one, takes no write lock. */
static enum rlk_class sqlite_acquire(void *state, struct rlk_call *call,
                                     const struct rlk_claim *claim, struct rlk_grant *out)
{
    char bell[BELL_ROOM] = "";
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = look(state, call, claim, out);
    if (class != RLK_DONE || out->outcome != RLK_IN_FLIGHT)
        return class;
    class = begin(state, call);
    if (class == RLK_DONE)
        class = finish(state, call, grant_one(state, call, claim, out, bell));
    if (class == RLK_DONE)
        ring(state, bell);
    return class;
}

static bool in_the_way(const struct rlk_grant *grant)
{
    return grant->outcome == RLK_HELD || grant->outcome == RLK_BEHIND;
}

/* *which: the first claim that something is in the way of, or count. *any_free: of those before it some are
 * not granted yet. */
static enum rlk_class look_at_all(struct connection *conn, struct rlk_call *call,
                                  const struct rlk_claim *claims, size_t count,
                                  struct rlk_grant *out, size_t *which, bool *any_free)
{
    enum rlk_class class = RLK_DONE;
    *any_free = false;
    for (*which = 0; *which < count; (*which)++) {
        class = look(conn, call, &claims[*which], &out[*which]);
        if (class != RLK_DONE || in_the_way(&out[*which]))
            return class;
        *any_free = *any_free || out[*which].outcome == RLK_IN_FLIGHT;
    }
    return class;
}

/* In a transaction: as look_at_all(), and what is free is granted. */
static enum rlk_class grant_each(struct connection *conn, struct rlk_call *call,
                                 const struct rlk_claim *claims, size_t count,
                                 struct rlk_grant *out, size_t *which, char (*bells)[BELL_ROOM])
{
    enum rlk_class class = RLK_DONE;
    for (*which = 0; *which < count; (*which)++) {
        class = grant_one(conn, call, &claims[*which], &out[*which], bells[*which]);
        if (class != RLK_DONE || in_the_way(&out[*which]))
            return class;
    }
    return class;
}

static enum rlk_class grant_all(struct connection *conn, struct rlk_call *call,
                                const struct rlk_claim *claims, size_t count, struct rlk_grant *out,
                                size_t *which, char (*bells)[BELL_ROOM])
{
    enum rlk_class class = begin(conn, call);
    if (class != RLK_DONE)
        return class;
    class = grant_each(conn, call, claims, count, out, which, bells);
    if (class == RLK_DONE && *which < count) {
        undo(conn, call);
        return RLK_DONE;
    }
    class = finish(conn, call, class);
    for (size_t i = 0; i < count && class == RLK_DONE; i++)
        ring(conn, bells[i]);
    return class;
}

/* What is in the way of one is told as acquire tells it. */
static enum rlk_class sqlite_acquire_all(void *state, struct rlk_call *call,
                                         const struct rlk_claim *claims, size_t count,
                                         struct rlk_grant *out, size_t *which)
{
    size_t first = 0;
    bool any_free = false;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = look_at_all(state, call, claims, count, out, &first, &any_free);
    if (class == RLK_DONE && first == count && any_free) {
        char(*bells)[BELL_ROOM] = rlk_alloc(count * sizeof *bells);
        class = bells ? grant_all(state, call, claims, count, out, &first, bells) : RLK_NOMEM;
        rlk_free(bells);
    }
    if (class == RLK_DONE && first < count)
        *which = first;
    return class;
}

/* ---------------------------------------------------------------- the line */

static void read_place(const rowlock_value *cells, void *out)
{
    struct rlk_place *place = out;
    place->ticket = cells[0].number;
    place->ahead = cells[1].number;
}

static enum rlk_class sqlite_enqueue(void *state, struct rlk_call *call,
                                     const struct rlk_claim *claim, int64_t lease_us,
                                     struct rlk_place *out)
{
    struct connection *conn = state;
    enum rlk_class class = ready(conn, call);
    if (class != RLK_DONE)
        return class;
    hang_bell(conn);
    const struct value values[] = {
        TEXT(claim->name),    NUMBER(claim->permits), TEXT(claim->owner), NUMBER(claim->attempt),
        NUMBER(lease_us),     TEXT(conn->bell),       TEXT(claim->host),  NUMBER(claim->pid),
        TEXT(claim->program), TEXT(claim->note),
    };
    class = begin(conn, call);
    if (class == RLK_DONE)
        class = finish(conn, call, run_all(conn, call, RLK_STEP_ENQUEUE, values, read_place, out));
    if (class == RLK_DONE)
        out->belled = conn->bell[0] != '\0';
    return class;
}

/* Who is the first now was not before only if we were. */
static enum rlk_class sqlite_leave(void *state, struct rlk_call *call,
                                   const struct rlk_claim *claim, bool *found)
{
    struct connection *conn = state;
    const struct value values[] = {TEXT(claim->name), NUMBER(claim->attempt)};
    char before[BELL_ROOM] = "", after[BELL_ROOM] = "";
    bool left = false;
    enum rlk_class class = ready(conn, call);
    if (class == RLK_DONE)
        class = begin(conn, call);
    if (class != RLK_DONE)
        return class;
    class = find_bell(conn, call, claim->name, before);
    if (class == RLK_DONE)
        class = run_first(conn, call, RLK_STEP_LEAVE, values, NULL, NULL);
    if (class == RLK_DONE) {
        left = sqlite3_changes(conn->db) > 0;
        class = find_bell(conn, call, claim->name, after);
    }
    class = finish(conn, call, class);
    if (class != RLK_DONE)
        return class;
    *found = left;
    if (strcmp(before, after) != 0)
        ring(conn, after);
    return RLK_DONE;
}

/* Take all that has come, so that it does not wake us twice; but not for ever, should somebody flood us. */
static void drain(int socket)
{
    char byte;
    for (int i = 0; i < 64 && recv(socket, &byte, sizeof byte, 0) >= 0; i++)
        ;
}

/* Nothing is asked of the database meanwhile. What rang before we came is still in the buffer. */
static enum rlk_class sqlite_await(void *state, struct rlk_call *call,
                                   const struct rlk_claim *claim, int wake, enum rlk_bell *out)
{
    struct connection *conn = state;
    (void)claim;
    *out = RLK_DEAF;
    if (!conn->bell[0])
        return RLK_DONE;
    struct pollfd fds[] = {{.fd = wake, .events = POLLIN}, {.fd = conn->socket, .events = POLLIN}};
    int64_t left_us;
    int n;
    do {
        left_us = call->deadline_us - rlk_now_us();
        int64_t left_ms = left_us <= 0 ? 0 : left_us / 1000 + 1;
        n = poll(fds, 2, left_ms > INT_MAX ? INT_MAX : (int)left_ms);
    } while (left_us > 0 && (n == 0 || (n < 0 && errno == EINTR)));
    if (n > 0 && !fds[0].revents)
        drain(conn->socket);
    if (n >= 0)
        *out = n == 0 ? RLK_SILENT : fds[0].revents ? RLK_INTERRUPTED : RLK_RUNG;
    return RLK_DONE;
}

struct circle {
    bool found;
    char *words;
    size_t cap;
};

static void read_circle(const rowlock_value *cells, void *out)
{
    struct circle *circle = out;
    circle->found = true;
    get_text(&cells[0], circle->words, circle->cap);
}

static enum rlk_class sqlite_cycle(void *state, struct rlk_call *call,
                                   const struct rlk_claim *claim, bool *found, char *words,
                                   size_t cap)
{
    const struct value values[] = {TEXT(claim->name), TEXT(claim->owner), NUMBER(claim->ticket)};
    struct circle circle = {.words = words, .cap = cap};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = run_first(state, call, RLK_STEP_CYCLE, values, read_circle, &circle);
    if (class == RLK_DONE)
        *found = circle.found;
    return class;
}

static enum rlk_class sqlite_waiters(void *state, struct rlk_call *call, const char *name,
                                     const struct rlk_waiter *after, int limit, rlk_waiter_fn *each,
                                     void *context)
{
    const struct value values[] = {TEXT_OR_NULL(name), TEXT(after->name), NUMBER(after->ticket),
                                   NUMBER(after->attempt), NUMBER(limit)};
    struct page page = {0};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = read_page(state, call, RLK_STEP_WAITERS, values, add_waiter, &page);
    for (int i = 0; class == RLK_DONE && i < page.count; i++)
        if (each(context, &page.of.waiters[i]) != 0)
            break;
    rlk_free(page.of.any);
    return class;
}

/* ---------------------------------------------------------------- what a holder does */

/* The parameters of renew; verify and release take the first four of them. */
#define HELD(held, ttl)                                                                       \
    {                                                                                         \
        TEXT((held)->name), NUMBER((held)->slot), TEXT((held)->owner), NUMBER((held)->token), \
            NUMBER(ttl)                                                                       \
    }

static void read_renewal(const rowlock_value *cells, void *out)
{
    struct rlk_renewal *renewal = out;
    renewal->found = true;
    renewal->expires_us = cells[0].number;
    renewal->lapsed_us = cells[1].number;
    renewal->now_us = cells[2].number;
}

static enum rlk_class sqlite_renew(void *state, struct rlk_call *call, const struct rlk_held *held,
                                   int64_t ttl_us, struct rlk_renewal *out)
{
    const struct value values[] = HELD(held, ttl_us);
    out->found = false;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = run_first(state, call, RLK_STEP_RENEW, values, read_renewal, out);
    return class;
}

/* A change that may let the first in line in. */
static enum rlk_class change(struct connection *conn, struct rlk_call *call, int which,
                             const struct value *values, const char *name, bool *found)
{
    char bell[BELL_ROOM] = "";
    bool changed = false;
    enum rlk_class class = ready(conn, call);
    if (class == RLK_DONE)
        class = begin(conn, call);
    if (class != RLK_DONE)
        return class;
    class = run_all(conn, call, which, values, NULL, NULL);
    if (class == RLK_DONE && sqlite3_changes(conn->db) > 0) {
        changed = true;
        class = find_bell(conn, call, name, bell);
    }
    class = finish(conn, call, class);
    if (class != RLK_DONE)
        return class;
    *found = changed;
    ring(conn, bell);
    return RLK_DONE;
}

static enum rlk_class sqlite_release(void *state, struct rlk_call *call,
                                     const struct rlk_held *held, bool *found)
{
    const struct value values[] = HELD(held, 0);
    return change(state, call, RLK_STEP_RELEASE, values, held->name, found);
}

static enum rlk_class sqlite_withdraw(void *state, struct rlk_call *call,
                                      const struct rlk_claim *claim, bool *found)
{
    const struct value values[] = {TEXT(claim->name), TEXT(claim->owner), NUMBER(claim->attempt)};
    return change(state, call, RLK_STEP_WITHDRAW, values, claim->name, found);
}

static enum rlk_class sqlite_downgrade(void *state, struct rlk_call *call,
                                       const struct rlk_held *held, int permits, bool *found)
{
    const struct value values[] = {TEXT(held->name), TEXT(held->owner), NUMBER(held->token),
                                   NUMBER(permits)};
    return change(state, call, RLK_STEP_DOWNGRADE, values, held->name, found);
}

struct answer {
    bool found;
    int64_t number;
};

static void read_answer(const rowlock_value *cells, void *out)
{
    struct answer *answer = out;
    answer->found = true;
    answer->number = cells[0].number;
}

static enum rlk_class renew_each(struct connection *conn, struct rlk_call *call,
                                 struct rlk_lease *leases, size_t count, int64_t *now_us)
{
    enum rlk_class class = RLK_DONE;
    for (size_t i = 0; i < count && class == RLK_DONE; i++) {
        const struct value values[] = HELD(&leases[i].held, leases[i].ttl_us);
        struct answer answer = {0};
        class = run_first(conn, call, RLK_STEP_RENEW_ALL, values, read_answer, &answer);
        leases[i].renewed = answer.found;
        if (answer.found && *now_us == 0) /* the others' are later, so theirs last longer */
            *now_us = answer.number;
    }
    return class;
}

static enum rlk_class sqlite_renew_all(void *state, struct rlk_call *call, struct rlk_lease *leases,
                                       size_t count, int64_t *now_us)
{
    int64_t now = 0;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = begin(state, call);
    if (class == RLK_DONE)
        class = finish(state, call, renew_each(state, call, leases, count, &now));
    if (class == RLK_DONE)
        *now_us = now;
    for (size_t i = 0; i < count && class != RLK_DONE; i++)
        leases[i].renewed = false;
    return class;
}

static void read_verified(const rowlock_value *cells, void *out)
{
    struct rlk_verified *verified = out;
    verified->found = true;
    verified->expires_us = cells[0].number;
    verified->now_us = cells[1].number;
}

static enum rlk_class sqlite_verify(void *state, struct rlk_call *call, const struct rlk_held *held,
                                    struct rlk_verified *out)
{
    const struct value values[] = HELD(held, 0);
    out->found = false;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = run_first(state, call, RLK_STEP_VERIFY, values, read_verified, out);
    return class;
}

/* ---------------------------------------------------------------- the caller's transaction */

struct guarded {
    bool found, stands;
    int64_t token;
};

static void read_guarded(const rowlock_value *cells, void *out)
{
    struct guarded *guarded = out;
    guarded->found = true;
    guarded->token = cells[0].number;
    guarded->stands = cells[1].number != 0;
}

static enum rlk_class sqlite_guard(void *state, struct rlk_call *call, const struct rlk_held *held,
                                   bool *found, int64_t *token, bool *stands)
{
    const struct value values[] = HELD(held, 0);
    struct guarded guarded = {0};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = run_first(state, call, RLK_STEP_GUARD, values, read_guarded, &guarded);
    if (class != RLK_DONE)
        return class;
    *found = guarded.found;
    *stands = guarded.stands;
    if (guarded.found)
        *token = guarded.token;
    return RLK_DONE;
}

static enum rlk_class sqlite_fence(void *state, struct rlk_call *call, const char *resource,
                                   int64_t token, bool *accepted)
{
    struct connection *conn = state;
    const struct value values[] = {TEXT(resource), NUMBER(token)};
    enum rlk_class class = ready(conn, call);
    if (class == RLK_DONE)
        class = run_first(conn, call, RLK_STEP_FENCE, values, NULL, NULL);
    if (class == RLK_DONE)
        *accepted = sqlite3_changes(conn->db) > 0;
    return class;
}

/* ---------------------------------------------------------------- administration */

static enum rlk_class sqlite_list(void *state, struct rlk_call *call, const char *name,
                                  const char *after_name, int64_t after_slot, int limit,
                                  rlk_row_fn *each, void *context)
{
    const struct value values[] = {TEXT_OR_NULL(name), TEXT(after_name), NUMBER(after_slot),
                                   NUMBER(limit)};
    struct page page = {0};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = read_page(state, call, RLK_STEP_LIST, values, add_row, &page);
    if (class == RLK_DONE)
        give_page(&page, each, context);
    rlk_free(page.of.any);
    return class;
}

struct last_grant {
    bool found;
    int64_t token, granted_us;
};

static void read_last(const rowlock_value *cells, void *out)
{
    struct last_grant *last = out;
    last->found = true;
    last->token = cells[0].number;
    last->granted_us = cells[1].number;
}

static enum rlk_class sqlite_last(void *state, struct rlk_call *call, const char *name, bool *found,
                                  int64_t *token, int64_t *granted_us)
{
    const struct value values[] = {TEXT(name)};
    struct last_grant last = {0};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = run_first(state, call, RLK_STEP_LAST, values, read_last, &last);
    if (class != RLK_DONE)
        return class;
    *found = last.found;
    if (last.found) {
        *token = last.token;
        *granted_us = last.granted_us;
    }
    return RLK_DONE;
}

static enum rlk_class remove_page(struct connection *conn, struct rlk_call *call,
                                  const struct rlk_sweep *sweep, const struct page *page)
{
    enum rlk_class class = RLK_DONE;
    for (int i = 0; i < page->count && class == RLK_DONE; i++) {
        const struct rlk_row *row = &page->of.rows[i];
        const struct value values[] = {TEXT(row->name), NUMBER(row->slot), NUMBER(row->token),
                                       NUMBER(sweep->older_us)};
        class = run_first(conn, call, RLK_STEP_SWEEP, values, NULL, NULL);
    }
    return class;
}

/* What the page shows cannot change before it is removed: the transaction holds the write lock. */
static enum rlk_class sqlite_sweep(void *state, struct rlk_call *call,
                                   const struct rlk_sweep *sweep, int *seen, struct rlk_row *last,
                                   rlk_row_fn *each, void *context)
{
    const struct value values[] = {TEXT(sweep->after_name), NUMBER(sweep->after_slot),
                                   NUMBER(sweep->older_us), NUMBER(sweep->batch)};
    struct page page = {0};
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE && !sweep->dry_run)
        class = begin(state, call);
    if (class != RLK_DONE)
        return class;
    class = read_page(state, call, RLK_STEP_EXPIRED, values, add_row, &page);
    if (!sweep->dry_run) {
        if (class == RLK_DONE)
            class = remove_page(state, call, sweep, &page);
        class = finish(state, call, class);
    }
    if (class == RLK_DONE) {
        *seen = page.count;
        if (page.count > 0)
            *last = page.of.rows[page.count - 1];
        give_page(&page, each, context);
    }
    rlk_free(page.of.any);
    return class;
}

static void read_number(const rowlock_value *cells, void *out)
{
    *(int64_t *)out = cells[0].number;
}

static enum rlk_class sqlite_fold(void *state, struct rlk_call *call, struct rlk_fold *fold)
{
    const struct value values[] = {NUMBER(fold->idle_us), NUMBER(fold->batch),
                                   NUMBER(fold->dry_run)};
    int64_t count = 0;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE && !fold->dry_run)
        class = begin(state, call);
    if (class != RLK_DONE)
        return class;
    class = run_one(state, call, RLK_STEP_FOLD, 0, values, read_number, &count);
    if (!fold->dry_run) {
        if (class == RLK_DONE && count > 0)
            class = run_rest(state, call, RLK_STEP_FOLD, values, NULL, NULL);
        class = finish(state, call, class);
    }
    if (class == RLK_DONE)
        fold->folded = count;
    return class;
}

static enum rlk_class sqlite_sweep_waiters(void *state, struct rlk_call *call, int batch,
                                           int64_t *removed)
{
    struct connection *conn = state;
    const struct value values[] = {NUMBER(batch)};
    enum rlk_class class = ready(conn, call);
    if (class == RLK_DONE)
        class = run_first(conn, call, RLK_STEP_SWEEP_WAITERS, values, NULL, NULL);
    if (class == RLK_DONE)
        *removed = sqlite3_changes(conn->db);
    return class;
}

static enum rlk_class sqlite_break(void *state, struct rlk_call *call, const char *name,
                                   int64_t token, bool *found, struct rlk_row *broken)
{
    const struct value values[] = {TEXT(name), NUMBER(token)};
    struct page page = {0};
    char bell[BELL_ROOM] = "";
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = begin(state, call);
    if (class != RLK_DONE)
        return class;
    class = read_page(state, call, RLK_STEP_BREAK, values, add_row, &page);
    if (class == RLK_DONE && page.count > 0)
        class = run_rest(state, call, RLK_STEP_BREAK, values, NULL, NULL);
    if (class == RLK_DONE && page.count > 0)
        class = find_bell(state, call, name, bell);
    class = finish(state, call, class);
    if (class == RLK_DONE) {
        *found = page.count > 0;
        if (*found)
            *broken = page.of.rows[0];
        ring(state, bell);
    }
    rlk_free(page.of.any);
    return class;
}

static enum rlk_class sqlite_raise(void *state, struct rlk_call *call, int64_t by, int64_t *floor)
{
    const struct value values[] = {NUMBER(by)};
    int64_t raised = 0;
    enum rlk_class class = ready(state, call);
    if (class == RLK_DONE)
        class = begin(state, call);
    if (class != RLK_DONE)
        return class;
    class = finish(state, call, run_all(state, call, RLK_STEP_RAISE, values, read_number, &raised));
    if (class == RLK_DONE)
        *floor = raised;
    return class;
}

/* ---------------------------------------------------------------- the caller's own tables */

static int bind_value(sqlite3_stmt *statement, int number, const rowlock_value *value)
{
    const char *text = value->text ? value->text : ""; /* by a null pointer SQLite means NULL */
    switch (value->kind) {
    case ROWLOCK_INT:
    case ROWLOCK_BOOL:
        return sqlite3_bind_int64(statement, number, value->number);
    case ROWLOCK_REAL:
        return sqlite3_bind_double(statement, number, value->real);
    case ROWLOCK_DECIMAL:
    case ROWLOCK_TEXT:
    case ROWLOCK_TIME:
        return sqlite3_bind_text64(statement, number, text, value->length, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case ROWLOCK_BYTES:
        return sqlite3_bind_blob64(statement, number, text, value->length, SQLITE_STATIC);
    default:
        return sqlite3_bind_null(statement, number);
    }
}

/* Too few or too many values are told by number: the caller's own SQL, which may hold a comment or an
 * apostrophe too many, is a part of the text. */
static enum rlk_class bind_query(struct connection *conn, struct rlk_call *call,
                                 sqlite3_stmt *statement, const struct rlk_query *query)
{
    int count = sqlite3_bind_parameter_count(statement);
    if ((size_t)count != query->count) {
        char text[100];
        snprintf(text, sizeof text, "the statement takes %d values, and was given %zu", count,
                 query->count);
        return refuse(call, RLK_INVALID, text);
    }
    for (int i = 0; i < count; i++)
        if (bind_value(statement, i + 1, &query->values[i]) != SQLITE_OK)
            return failed(conn, call);
    return RLK_DONE;
}

static sqlite3_stmt *kept_query(const struct connection *conn, uint64_t id)
{
    for (int i = 0; id && i < QUERIES_MAX; i++)
        if (conn->queries[i].id == id)
            return conn->queries[i].statement;
    return NULL;
}

static void keep_query(struct connection *conn, uint64_t id, sqlite3_stmt *statement)
{
    sqlite3_finalize(conn->queries[conn->oldest].statement);
    conn->queries[conn->oldest].id = id;
    conn->queries[conn->oldest].statement = statement;
    conn->oldest = (conn->oldest + 1) % QUERIES_MAX;
}

/* SQLite would leave all that follows a semicolon undone, be it a WHERE. */
static enum rlk_class prepare_query(struct connection *conn, struct rlk_call *call,
                                    const struct rlk_query *query, sqlite3_stmt **out)
{
    const char *rest = "";
    *out = kept_query(conn, query->id);
    if (*out)
        return RLK_DONE;
    unsigned int flags = query->id ? SQLITE_PREPARE_PERSISTENT : 0;
    if (sqlite3_prepare_v3(conn->db, query->sql, -1, flags, out, &rest) != SQLITE_OK)
        return failed(conn, call);
    if (!*out || rest[strspn(rest, " \t\r\n")] != '\0') {
        sqlite3_finalize(*out);
        *out = NULL;
        return refuse(call, RLK_INVALID, "this is not one statement");
    }
    if (query->id)
        keep_query(conn, query->id, *out);
    return RLK_DONE;
}

/* The row that a statement of the caller's has reached. */
struct cells {
    rowlock_value *values;
    int room;
};

static enum rlk_class give_row(sqlite3_stmt *statement, struct cells *cells,
                               const struct rlk_query *query, bool *stopped)
{
    int count = sqlite3_column_count(statement);
    if (count > cells->room) {
        rlk_free(cells->values);
        cells->values = rlk_alloc((size_t)count * sizeof *cells->values);
        cells->room = cells->values ? count : 0;
    }
    for (int i = 0; i < count; i++)
        if (!cells->values || !get_cell(statement, i, &cells->values[i]))
            return RLK_NOMEM;
    *stopped = query->each(query->context, cells->values, (size_t)count) != 0;
    return RLK_DONE;
}

/* Run a statement to its end, or until no more rows are wanted. But a change is run to its end always. */
static enum rlk_class step_query(struct connection *conn, struct rlk_call *call,
                                 sqlite3_stmt *statement, struct rlk_query *query)
{
    struct cells cells = {0};
    bool stopped = false;
    bool only_reads = sqlite3_stmt_readonly(statement);
    enum rlk_class class = RLK_DONE;
    int before = sqlite3_total_changes(conn->db);
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        if (query->each && !stopped)
            class = give_row(statement, &cells, query, &stopped);
        if (class != RLK_DONE || (stopped && only_reads))
            break;
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        class = failed(conn, call);
    else if (sqlite3_total_changes(conn->db) != before)
        query->changed = sqlite3_changes(conn->db);
    rlk_free(cells.values);
    if (class != RLK_DONE)
        look_at_tx(conn, call);
    return class;
}

/* A change that is reset before its end, since there is no memory to give its rows, stays. By itself it is
 * a transaction, in which it can be undone. For another's it would take a savepoint, and that costs more
 * than most statements do: there all can only be rolled back. */
static enum rlk_class run_query(struct connection *conn, struct rlk_call *call,
                                sqlite3_stmt *statement, struct rlk_query *query)
{
    bool tells = query->each && !sqlite3_stmt_readonly(statement);
    enum rlk_class class = bind_query(conn, call, statement, query);
    if (class == RLK_DONE && tells && !call->inside)
        class = begin(conn, call);
    if (class == RLK_DONE) {
        class = step_query(conn, call, statement, query);
        sqlite3_reset(statement);
        if (tells && !call->inside)
            class = finish(conn, call, class);
        else if (tells && class == RLK_NOMEM)
            call->tx_over = true;
    }
    sqlite3_clear_bindings(statement); /* what they point to is the caller's */
    return class;
}

/* The file is there and the connection where it should be. */
static enum rlk_class ready_for_caller(struct connection *conn, struct rlk_call *call,
                                       enum rlk_where where)
{
    enum rlk_class class = ready_at(conn, call, where);
    return class == RLK_SCHEMA ? RLK_INVALID : class_for_caller(call, class);
}

static enum rlk_class sqlite_query(void *state, struct rlk_call *call, struct rlk_query *query)
{
    struct connection *conn = state;
    sqlite3_stmt *statement = NULL;
    query->changed = 0;
    enum rlk_class class =
        query->ours ? ready_at(conn, call, call->where) : ready_for_caller(conn, call, call->where);
    if (class == RLK_DONE && !call->inside) /* a transaction began in the file that it ends in */
        class = check_file(conn, call);
    if (class != RLK_DONE)
        return class;
    class = prepare_query(conn, call, query, &statement);
    if (class == RLK_DONE)
        class = run_query(conn, call, statement, query);
    if (!query->id)
        sqlite3_finalize(statement);
    if (class != RLK_DONE)
        query->changed = 0;
    return query->ours ? class : class_for_caller(call, class);
}

static enum rlk_class run_frame(struct connection *conn, struct rlk_call *call, enum rlk_frame what)
{
    static const int frames[] = {
        [RLK_BEGIN] = FRAME_BEGIN, [RLK_COMMIT] = FRAME_COMMIT, [RLK_ROLLBACK] = FRAME_ROLLBACK,
        [RLK_SAVE] = FRAME_SAVE,   [RLK_KEEP] = FRAME_KEEP,     [RLK_UNDO] = FRAME_UNDO,
    };
    enum rlk_class class = run_first(conn, call, frames[what], NULL, NULL, NULL);
    if (class == RLK_DONE && what == RLK_UNDO)
        class = run_first(conn, call, FRAME_KEEP, NULL, NULL, NULL);
    return class;
}

/* A COMMIT that fails, be it for a reader who does not leave, changes nothing but leaves all open. */
static enum rlk_class sqlite_frame(void *state, struct rlk_call *call, enum rlk_frame what)
{
    struct connection *conn = state;
    bool gives_up = what == RLK_ROLLBACK || what == RLK_UNDO; /* also in a file that is lost */
    call->inside = conn->db && !sqlite3_get_autocommit(conn->db);
    if (what == RLK_LOOK)
        return RLK_DONE;
    enum rlk_class class =
        ready_for_caller(conn, call, what == RLK_BEGIN ? RLK_OUTSIDE : RLK_INSIDE);
    if (class == RLK_DONE && !gives_up)
        class = check_file(conn, call);
    if (class == RLK_DONE)
        class = class_for_caller(call, run_frame(conn, call, what));
    if (class != RLK_DONE && what == RLK_COMMIT && call->inside) {
        run_quietly(conn, call, FRAME_ROLLBACK);
        call->tx_over = true;
    }
    return class;
}

static const char *const schemes[] = {"sqlite", NULL};

extern const struct rlk_backend rlk_backend_sqlite;
const struct rlk_backend rlk_backend_sqlite = {
    .name = "sqlite",
    .schemes = schemes,
    .conn_size = sizeof(struct connection),
    .quote = '"',
    .marker = '?',
    .packing = RLK_SINGLY,
    .open = sqlite_open,
    .adopt = sqlite_adopt,
    .close = sqlite_close,
    .install = sqlite_install,
    .meta = sqlite_meta,
    .facts = sqlite_facts,
    .acquire = sqlite_acquire,
    .acquire_all = sqlite_acquire_all,
    .enqueue = sqlite_enqueue,
    .leave = sqlite_leave,
    .await = sqlite_await,
    .cycle = sqlite_cycle,
    .waiters = sqlite_waiters,
    .renew = sqlite_renew,
    .release = sqlite_release,
    .verify = sqlite_verify,
    .renew_all = sqlite_renew_all,
    .withdraw = sqlite_withdraw,
    .downgrade = sqlite_downgrade,
    .guard = sqlite_guard,
    .fence = sqlite_fence,
    .list = sqlite_list,
    .last = sqlite_last,
    .sweep = sqlite_sweep,
    .fold = sqlite_fold,
    .sweep_waiters = sqlite_sweep_waiters,
    .break_grant = sqlite_break,
    .raise_tokens = sqlite_raise,
    .query = sqlite_query,
    .frame = sqlite_frame,
};
