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
#include "../../backend.h"

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
    QUERIES_MAX = 32, /* of the caller's own tables, kept prepared */
    PATH_ROOM = 4096,
    PENDING_MAX = 8, /* bells to be rung after a transaction; others wait for the next look */
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
    rowlock_value *cells; /* of one row */
    int room; /* for so many */
    bool framed; /* a transaction of ours is open, after whose end these are to be rung */
    char pending[PENDING_MAX][BELL_ROOM];
    int rings;
};

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

/* A statement of the caller's transaction has failed. Most failures undo the statement alone; some have
 * SQLite roll back all of it; and once others have written after its snapshot, it never can. */
static void look_at_tx(struct connection *conn, struct rlk_call *call)
{
    if (call->inside)
        call->tx_over = call->native == SQLITE_BUSY_SNAPSHOT || sqlite3_get_autocommit(conn->db);
}

/* BEGIN and its like. */
static enum rlk_class run_frame(struct connection *conn, struct rlk_call *call, enum frame frame)
{
    enum rlk_class class = prepare(conn, call, (int)frame);
    if (class != RLK_DONE)
        return class;
    sqlite3_stmt *statement = conn->kept[frame][0];
    conn->ending = true;
    if (sqlite3_step(statement) != SQLITE_DONE)
        class = failed(conn, call);
    conn->ending = false;
    sqlite3_reset(statement);
    if (class != RLK_DONE)
        look_at_tx(conn, call);
    return class;
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
    /* No mutex: a handle belongs to one thread at a time. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
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
    return run_frame(conn, call, call->inside ? FRAME_SAVE : FRAME_BEGIN);
}

/* The call keeps what it says of the failure that this is about. */
static enum rlk_class run_quietly(struct connection *conn, const struct rlk_call *call,
                                  enum frame frame)
{
    struct rlk_call ignored = *call;
    return run_frame(conn, &ignored, frame);
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
        class = run_frame(conn, call, call->inside ? FRAME_KEEP : FRAME_COMMIT);
    if (class != RLK_DONE && !sqlite3_get_autocommit(conn->db))
        undo(conn, call);
    return class;
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
    rlk_free(conn->cells);
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

static int read_facts(void *context, const rowlock_value *cells, size_t count)
{
    struct rlk_facts *facts = context;
    if (!rlk_cells_fit("tm", cells, count))
        return 1;
    snprintf(facts->server, sizeof facts->server, "%s", cells[0].text);
    facts->now_us = cells[1].number;
    return 0;
}

static enum rlk_class sqlite_query(void *state, struct rlk_call *call, struct rlk_query *query);

static enum rlk_class sqlite_facts(void *state, struct rlk_call *call, struct rlk_facts *out)
{
    struct connection *conn = state;
    char journal[24] = "", synchronous[8] = "", query_only[8] = "";
    struct rlk_query query = {.step = RLK_STEP_FACTS, .each = read_facts, .context = out};
    enum rlk_class class = sqlite_query(conn, call, &query);
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

/* ---------------------------------------------------------------- waiting */

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

/* ---------------------------------------------------------------- statements with values */

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

/* The row that a statement has reached. */
static enum rlk_class give_row(struct connection *conn, sqlite3_stmt *statement,
                               const struct rlk_query *query, bool *stopped)
{
    int count = sqlite3_column_count(statement);
    if (count > conn->room) {
        rlk_free(conn->cells);
        conn->cells = rlk_alloc((size_t)count * sizeof *conn->cells);
        conn->room = conn->cells ? count : 0;
    }
    for (int i = 0; i < count; i++)
        if (!conn->cells || !get_cell(statement, i, &conn->cells[i]))
            return RLK_NOMEM;
    *stopped = query->each(query->context, conn->cells, (size_t)count) != 0;
    return RLK_DONE;
}

/* Run a statement to its end, or until no more rows are wanted. But a change is run to its end always. */
static enum rlk_class step_query(struct connection *conn, struct rlk_call *call,
                                 sqlite3_stmt *statement, struct rlk_query *query)
{
    bool stopped = false;
    bool only_reads = sqlite3_stmt_readonly(statement);
    enum rlk_class class = RLK_DONE;
    int before = sqlite3_total_changes(conn->db);
    int code = sqlite3_step(statement);
    for (; code == SQLITE_ROW; code = sqlite3_step(statement)) {
        if (query->each && !stopped)
            class = give_row(conn, statement, query, &stopped);
        if (class != RLK_DONE || (stopped && only_reads))
            break;
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW)
        class = failed(conn, call);
    else if (sqlite3_total_changes(conn->db) != before)
        query->changed = sqlite3_changes(conn->db);
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

/* ---------------------------------------------------------------- steps */

struct told {
    struct rlk_query *query;
    bool answered, misfit;
};

/* A file holds in any column what its last writer has put there. The step is undone, unless it was this one
 * statement and that has written. */
static enum rlk_class misfit(struct rlk_call *call, sqlite3_stmt *statement)
{
    rlk_diag_set(call, 0, NULL,
                 "our tables hold what no rowlock writes there: the file is damaged, or somebody "
                 "else has changed it");
    return sqlite3_stmt_readonly(statement) ? RLK_SCHEMA : RLK_MISFIT;
}

static int note_answer(void *context, const rowlock_value *cells, size_t count)
{
    struct told *told = context;
    told->answered = true;
    int stop = told->query->each ? told->query->each(told->query->context, cells, count) : 0;
    told->misfit = stop < 0;
    return stop;
}

/* The statements of a text share their values. */
static enum rlk_class run_one(struct connection *conn, struct rlk_call *call,
                              sqlite3_stmt *statement, struct rlk_query *query, bool *answered)
{
    struct told told = {.query = query};
    struct rlk_query one = *query;
    one.each = note_answer;
    one.context = &told;
    int count = sqlite3_bind_parameter_count(statement);
    for (int i = 0; i < count && (size_t)i < query->count; i++)
        if (bind_value(statement, i + 1, &query->values[i]) != SQLITE_OK)
            return failed(conn, call);
    enum rlk_class class = step_query(conn, call, statement, &one);
    if (class == RLK_DONE && told.misfit)
        class = misfit(call, statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement); /* what they point to is core's */
    query->changed = one.changed;
    query->counted = sqlite3_column_count(statement) == 0;
    *answered = told.answered;
    return class;
}

static enum rlk_class run_all(struct connection *conn, struct rlk_call *call,
                              struct rlk_query *query)
{
    enum rlk_class class = RLK_DONE;
    bool answered = false;
    for (int i = 0; class == RLK_DONE && !answered && i < STATEMENTS_MAX; i++) {
        sqlite3_stmt *statement = conn->kept[query->step][i];
        if (!statement)
            break;
        query->changed = 0;
        class = run_one(conn, call, statement, query, &answered);
    }
    return class;
}

static int read_bell(void *context, const rowlock_value *cells, size_t count)
{
    if (rlk_cells_fit("t", cells, count))
        rlk_copy_text(context, BELL_ROOM, cells[0].text, cells[0].length);
    return 0;
}

/* Whom to ring for once the transaction of a step that changed this name is committed. Asked inside of
 * it: who takes a ticket later sees the change when he looks. In the caller's transaction nobody is
 * rung for, since only he knows when it is committed; the first in line then finds out by his next look. */
static enum rlk_class find_bell(struct connection *conn, struct rlk_call *call, const char *name,
                                char bell[BELL_ROOM])
{
    const rowlock_value value = rowlock_text(name);
    struct rlk_query query = {
        .step = RLK_STEP_RING, .values = &value, .count = 1, .each = read_bell, .context = bell};
    if (call->inside && !conn->framed)
        return RLK_DONE;
    enum rlk_class class = prepare(conn, call, RLK_STEP_RING);
    return class == RLK_DONE ? run_all(conn, call, &query) : class;
}

static void ring_later(struct connection *conn, const char *bell)
{
    if (bell[0] && conn->rings < PENDING_MAX)
        memcpy(conn->pending[conn->rings++], bell, BELL_ROOM);
}

/* Several statements, and the look for whom to ring, are one transaction. */
static enum rlk_class run_step(struct connection *conn, struct rlk_call *call,
                               struct rlk_query *query)
{
    char bell[BELL_ROOM] = "";
    bool rings = query->rings && !(rlk_steps[query->step].is & RLK_READS);
    enum rlk_class class = prepare(conn, call, (int)query->step);
    if (class != RLK_DONE)
        return class;
    if (query->own) {
        hang_bell(conn);
        *query->own = rowlock_text(conn->bell);
    }
    if (!rings && !conn->kept[query->step][1])
        return run_all(conn, call, query);
    class = begin(conn, call);
    if (class != RLK_DONE)
        return class;
    int before = sqlite3_total_changes(conn->db);
    class = run_all(conn, call, query);
    if (class == RLK_DONE && rings && sqlite3_total_changes(conn->db) != before)
        class = find_bell(conn, call, query->rings, bell);
    class = finish(conn, call, class);
    if (class == RLK_DONE && call->inside)
        ring_later(conn, bell);
    else if (class == RLK_DONE)
        ring(conn, bell);
    return class;
}

static bool sqlite_note(void *state, struct rlk_call *call, enum rlk_news news,
                        const struct rlk_claim *claim, int64_t number)
{
    (void)state;
    (void)call;
    (void)claim;
    return news == RLK_ENQUEUED && number != 0;
}

/* The file is there and the connection where it should be. */
static enum rlk_class ready_for_caller(struct connection *conn, struct rlk_call *call,
                                       enum rlk_where where)
{
    enum rlk_class class = ready_at(conn, call, where);
    return class == RLK_SCHEMA ? RLK_INVALID : class_for_caller(call, class);
}

/* A transaction began in the file that it ends in. */
static enum rlk_class run_theirs(struct connection *conn, struct rlk_call *call,
                                 struct rlk_query *query)
{
    sqlite3_stmt *statement = NULL;
    enum rlk_class class = ready_for_caller(conn, call, call->where);
    if (class == RLK_DONE && !call->inside)
        class = check_file(conn, call);
    if (class != RLK_DONE)
        return class;
    class = prepare_query(conn, call, query, &statement);
    if (class == RLK_DONE)
        class = run_query(conn, call, statement, query);
    if (!query->id)
        sqlite3_finalize(statement);
    return class_for_caller(call, class);
}

static enum rlk_class sqlite_query(void *state, struct rlk_call *call, struct rlk_query *query)
{
    struct connection *conn = state;
    enum rlk_class class = RLK_DONE;
    query->changed = 0;
    if (query->step == RLK_STEP_NONE)
        class = run_theirs(conn, call, query);
    else if ((class = ready(conn, call)) == RLK_DONE)
        class = run_step(conn, call, query);
    if (class != RLK_DONE)
        query->changed = 0;
    return class;
}

static enum rlk_class frame_as_told(struct connection *conn, struct rlk_call *call,
                                    enum rlk_frame what)
{
    static const enum frame frames[] = {
        [RLK_BEGIN] = FRAME_BEGIN, [RLK_COMMIT] = FRAME_COMMIT, [RLK_ROLLBACK] = FRAME_ROLLBACK,
        [RLK_SAVE] = FRAME_SAVE,   [RLK_KEEP] = FRAME_KEEP,     [RLK_UNDO] = FRAME_UNDO,
    };
    enum rlk_class class = run_frame(conn, call, frames[what]);
    if (class == RLK_DONE && what == RLK_UNDO)
        class = run_frame(conn, call, FRAME_KEEP);
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
        class = class_for_caller(call, frame_as_told(conn, call, what));
    if (what == RLK_BEGIN || what == RLK_COMMIT || what == RLK_ROLLBACK) {
        for (int i = 0; i < conn->rings && what == RLK_COMMIT && class == RLK_DONE; i++)
            ring(conn, conn->pending[i]);
        conn->rings = 0;
        conn->framed = what == RLK_BEGIN && class == RLK_DONE;
    }
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
    .numbered = true,
    .local = true,
    .packing = RLK_SINGLY,
    .open = sqlite_open,
    .adopt = sqlite_adopt,
    .close = sqlite_close,
    .install = sqlite_install,
    .facts = sqlite_facts,
    .note = sqlite_note,
    .await = sqlite_await,
    .query = sqlite_query,
    .frame = sqlite_frame,
};
