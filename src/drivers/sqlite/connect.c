/* SPDX-License-Identifier: MIT
 *
 * Opens, adopts and closes the file, and checks it before each step. */
#include "driver.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OLDEST_VERSION = 3035000,
    /* how many instructions a statement runs between two looks at the clock */
    LOOK_EVERY = 10000,
    /* the longest wait for the file in one step */
    WAIT_MAX_US = 250000
};

/* ---- what is wrong with a path */

static bool has_folder(const char *path)
{
    char folder[PATH_ROOM];
    struct stat unused;
    lite_folder_of(path, folder);
    return stat(folder, &unused) == 0;
}

/* Says why. SQLite says only "unable to open database file". */
static enum rlk_class cannot_open(struct conn *conn, struct rlk_call *call)
{
    int native = sqlite3_extended_errcode(conn->db);
    int why = sqlite3_system_errno(conn->db);
    char text[sizeof call->text];
    /* SQLite tried twice. Its last try was to open for reading. */
    if (why == ENOENT && has_folder(conn->path))
        return lite_cannot_make(conn->path, call, native);
    if (why == ENOENT || why == ENOTDIR)
        snprintf(text, sizeof text, "the folder of %.400s does not exist", conn->path);
    else
        snprintf(text, sizeof text, "cannot open %.400s%s%s", conn->path, why ? ": " : "",
                 why ? strerror(why) : "");
    rlk_diag_set(call, native, NULL, text);
    return why == EACCES || why == EPERM    ? RLK_DENIED
           : why == EMFILE || why == ENFILE ? RLK_UNSENT
           : why == EROFS                   ? RLK_READONLY
                                            : RLK_INVALID;
}

/* SQLite would also open a device or a pipe, and report "disk I/O error" later. Only the owner may
 * read or write a new file, for any umask: a user who can read it can stop all writers with a file
 * lock. SQLite gives the files beside it the same mode. We open no descriptor, because closing one
 * releases the file locks of this process. SQLite reports other faults of the path. */
static enum rlk_class check_path(const char *path, struct rlk_call *call, bool create)
{
    struct stat file;
    bool absent = stat(path, &file) != 0;
    if (strcmp(path, ":memory:") == 0 || (!absent && S_ISREG(file.st_mode) && file.st_nlink < 2))
        return RLK_DONE;
    if (absent && create)
        (void)mknod(path, S_IFREG | S_IRUSR | S_IWUSR, 0);
    else if (absent && errno == ENOENT && has_folder(path))
        return rlk_refuse(call, RLK_SCHEMA, "there is no such file yet");
    if (absent)
        return RLK_DONE;
    return rlk_refuse(call, RLK_INVALID, "%.400s %s", path,
                      S_ISDIR(file.st_mode)    ? "is a folder"
                      : !S_ISREG(file.st_mode) ? "is not a regular file"
                                               : "has another name (a hard link). Remove one name: "
                                                 "each has its own journal, and a lock under one "
                                                 "does not exclude users of the other");
}

/* ---- what others put beside the file */

static bool may_all_write(const char *path)
{
    char folder[PATH_ROOM];
    struct stat there;
    lite_folder_of(path, folder);
    return strchr(path, '/') && stat(folder, &there) == 0 && (there.st_mode & S_IWOTH);
}

/* SQLite gives the files beside a database the same owner. Another user may make some if the
 * database is open to that user. */
static bool is_foreign(const struct stat *file, const struct stat *beside)
{
    bool shared = file->st_mode & (S_IWGRP | S_IWOTH);
    bool known = shared || beside->st_uid == file->st_uid || beside->st_uid == 0 ||
                 beside->st_uid == geteuid();
    return !S_ISREG(beside->st_mode) || beside->st_nlink > 1 || !known;
}

/* SQLite would wait for a pipe in the place of its journal without end, and would write another
 * user's journal into the database. We look before each step, because SQLite does. */
static enum rlk_class check_beside(struct conn *conn, struct rlk_call *call)
{
    static const char *const suffix[] = {"-journal", "-wal", "-shm"};
    char path[PATH_ROOM + 10];
    struct stat file, beside;
    if (!conn->open_folder || stat(conn->path, &file) != 0)
        return RLK_DONE;
    for (size_t i = 0; i < sizeof suffix / sizeof suffix[0]; i++) {
        snprintf(path, sizeof path, "%s%s", conn->path, suffix[i]);
        if (lstat(path, &beside) == 0 && is_foreign(&file, &beside))
            return rlk_refuse(call, RLK_DENIED,
                              "%.400s is not of this database: another user may have made it. "
                              "Remove it, and move the database to a folder that only its users "
                              "may write",
                              path);
    }
    return RLK_DONE;
}

/* ---- opening it */

/* SQLite's busy handler, and the only wait for the file. Returns whether to ask for the file again.
 * SQLite's own handler soon asks only every 50 ms, and misses the moments between two transactions
 * of a busy writer. The intervals are random, because such a writer may have a fixed interval. */
static int wait_for_file(void *context, int asked)
{
    struct conn *conn = context;
    int64_t now_us = rlk_now_us();
    if (asked == 0)
        conn->waits_since_us = now_us;
    if (now_us - conn->waits_since_us >= WAIT_MAX_US || now_us >= conn->deadline_us)
        return 0;
    lite_await_turn(conn, now_us - conn->waits_since_us);
    return 1;
}

/* SQLite's progress handler. A view, a trigger or a generated column in a file of another user may
 * never end. */
static int is_too_late(void *context)
{
    const struct conn *conn = context;
    return !conn->ending && rlk_now_us() >= conn->deadline_us;
}

/* The schema of the file may call only plain functions, and no statement may damage the file.
 * Reading the schema version shows whether the file is a database. With EXTRA, a token that was
 * answered survives a power failure, and a deleted journal does not come back. */
static int set_up(struct conn *conn)
{
    sqlite3_extended_result_codes(conn->db, 1);
    sqlite3_busy_handler(conn->db, wait_for_file, conn);
    sqlite3_progress_handler(conn->db, LOOK_EVERY, is_too_late, conn);
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    return sqlite3_exec(conn->db,
                        "PRAGMA schema_version; PRAGMA synchronous = EXTRA; "
                        "PRAGMA foreign_keys = ON",
                        NULL, NULL, NULL);
}

/* create: make the file if it is missing. Otherwise a missing file is RLK_SCHEMA, so that a
 * mistyped path leaves no empty file behind. The connection needs no mutex, since one thread at a
 * time uses a handle. */
enum rlk_class lite_open_file(struct conn *conn, struct rlk_call *call, bool create)
{
    enum rlk_class class = check_path(conn->path, call, create);
    conn->open_folder = may_all_write(conn->path);
    if (class == RLK_DONE)
        class = check_beside(conn, call);
    if (class != RLK_DONE)
        return class;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(conn->path, &conn->db, flags, NULL);
    if (!conn->db)
        return RLK_NOMEM;
    conn->deadline_us = call->deadline_us;
    if (code == SQLITE_OK)
        code = set_up(conn);
    lite_name_turn(conn);
    if (code == SQLITE_OK)
        return RLK_DONE;
    class = (code & 0xFF) == SQLITE_CANTOPEN ? cannot_open(conn, call) : lite_failed(conn, call);
    sqlite3_close_v2(conn->db);
    conn->db = NULL;
    return class;
}

/* ---- before a step */

/* A read transaction of the caller counts as a transaction: a step inside it would see old data. */
static enum rlk_class check_where(struct conn *conn, struct rlk_call *call)
{
    bool inside = !sqlite3_get_autocommit(conn->db), outside = call->where == RLK_OUTSIDE;
    call->inside = inside && !outside;
    if (call->where == RLK_INSIDE && !inside)
        return RLK_NO_TX;
    if (outside && (inside || sqlite3_txn_state(conn->db, "main") != SQLITE_TXN_NONE))
        return RLK_IN_TX;
    return RLK_DONE;
}

/* If the file was moved, other clients no longer find it, and locks in it exclude none of them. */
enum rlk_class lite_check_file(struct conn *conn, struct rlk_call *call)
{
    int moved = 0;
    sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    conn->checked_us = rlk_now_us();
    return moved ? rlk_refuse(call, RLK_UNSENT, "the database file was moved or deleted")
                 : RLK_DONE;
}

/* Opens the file if it is not open. Checks the transaction and, if checks is set, that the file was
 * not moved. */
enum rlk_class lite_ready(struct conn *conn, struct rlk_call *call, bool checks)
{
    enum rlk_class class = RLK_DONE;
    call->inside = false;
    /* No transaction can be open in a file that is not open. */
    if (!conn->db)
        class = call->where == RLK_INSIDE ? RLK_NO_TX : lite_open_file(conn, call, false);
    if (class == RLK_DONE)
        class = check_where(conn, call);
    if (class == RLK_DONE && !conn->adopted) {
        conn->deadline_us = call->deadline_us;
        class = check_beside(conn, call);
    }
    return class == RLK_DONE && checks ? lite_check_file(conn, call) : class;
}

/* ---- open and close */

/* Reads sqlite:PATH. A path with two slashes is refused, because it could mean two things. */
static enum rlk_class path_of(const char *url, struct rlk_call *call, char out[PATH_ROOM])
{
    const char *path = strchr(url, ':') + 1;
    char whole[PATH_ROOM] = "";
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    if (*path == '\0')
        return rlk_refuse(call, RLK_INVALID, "the URL has no path: write sqlite:/path/to/file");
    if (strncmp(path, "//", 2) == 0)
        return rlk_refuse(call, RLK_INVALID,
                          "a SQLite URL has no host: write sqlite:/path/to/file, with one slash, "
                          "or sqlite:file for one in the current folder");
    if (strchr(path, '?'))
        return rlk_refuse(call, RLK_INVALID, "a SQLite URL takes rowlock_ parameters only");
    /* Some builds of SQLite read "file:…" as a URI. */
    bool plain = *path == '/' || strcmp(path, ":memory:") == 0;
    int length = snprintf(out, PATH_ROOM, "%s%s", plain ? "" : "./", path);
    if (length < 0 || length >= PATH_ROOM)
        return rlk_refuse(call, RLK_INVALID, "the path in the URL is too long");
    /* Resolves symbolic links as SQLite does. The file itself may be missing. If SQLite cannot
     * follow a link, the path stays, and SQLite reports why. */
    if (strcmp(out, ":memory:") != 0 && vfs &&
        (vfs->xFullPathname(vfs, out, sizeof whole, whole) & 0xFF) == SQLITE_OK)
        memcpy(out, whole, sizeof whole);
    return RLK_DONE;
}

static enum rlk_class begin_connection(struct conn *conn, struct rlk_call *call,
                                       const struct rlk_texts *texts, struct rlk_hello *hello)
{
    conn->texts = texts;
    snprintf(hello->schema, sizeof hello->schema, "main");
    if (sqlite3_libversion_number() >= OLDEST_VERSION)
        return RLK_DONE;
    return rlk_refuse(call, RLK_UNSUPPORTED, "SQLite %s is too old: rowlock needs 3.35 or later",
                      sqlite3_libversion());
}

enum rlk_class lite_open(void *state, struct rlk_call *call, const struct rlk_target *target,
                         const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *conn = state;
    enum rlk_class class = begin_connection(conn, call, texts, hello);
    if (class == RLK_DONE)
        class = path_of(target->url, call, conn->path);
    if (class != RLK_DONE)
        return class;
    class = lite_open_file(conn, call, false);
    /* The file may be installed later. */
    return class == RLK_SCHEMA ? RLK_DONE : class;
}

enum rlk_class lite_adopt(void *state, struct rlk_call *call, void *vendor,
                          const struct rlk_texts *texts, struct rlk_hello *hello)
{
    struct conn *conn = state;
    enum rlk_class class = begin_connection(conn, call, texts, hello);
    conn->adopted = true;
    if (class == RLK_DONE)
        conn->db = vendor;
    return class;
}

/* After fork nothing is closed. The child has inherited SQLite's records of file locks, but not the
 * locks ("How To Corrupt An SQLite Database File", section 2.6). The handle's memory leaks. */
void lite_close(void *state, bool in_child)
{
    struct conn *conn = state;
    /* In a child this closes its copy of the socket. */
    lite_close_wakeup(conn);
    lite_end_turn(conn);
    if (!conn->db || in_child)
        return;
    lite_forget_all(conn);
    rlk_room_free(&conn->cells);
    if (!conn->adopted)
        sqlite3_close_v2(conn->db);
    conn->db = NULL;
}
