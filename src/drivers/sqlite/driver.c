/* SPDX-License-Identifier: MIT
 *
 * The driver for SQLite, version 3.35 (RETURNING) and later.
 *
 * A file has one writer at a time. A step that writes waits a moment for the file, in SQLite's busy
 * handler. Then the step is RLK_CONTENTION. Core tries again with jitter, so that others get the
 * file in between. In WAL mode a read waits for no writer.
 *
 * Connections and answers cannot be lost, so no step here is RLK_UNCERTAIN.
 *
 * A deadline bounds the wait for the file. On our own connections it also bounds each statement,
 * except COMMIT and ROLLBACK. The application's connection keeps its own busy and progress
 * handlers. */
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- tables */

/* An empty file is ours, and gets the journal mode WAL: readers and the writer do not wait for each
 * other. The database of another program keeps its mode. If WAL is not possible, the default mode
 * stays. */
static enum rlk_class choose_journal(struct conn *conn, struct rlk_call *call)
{
    struct stat file;
    bool empty = !conn->adopted && stat(conn->path, &file) == 0 && file.st_size == 0;
    int code = empty ? sqlite3_exec(conn->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL) : 0;
    return code == SQLITE_OK ? RLK_DONE : lite_failed(conn, call);
}

static enum rlk_class script(void *state, struct rlk_call *call, const char *sql)
{
    struct conn *conn = state;
    enum rlk_class class = conn->db ? RLK_DONE : lite_open_file(conn, call, true);
    if (class == RLK_DONE)
        class = lite_ready(conn, call, true);
    if (class == RLK_DONE)
        class = choose_journal(conn, call);
    if (class != RLK_DONE)
        return class;
    if (sqlite3_exec(conn->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return RLK_DONE;
    class = lite_failed(conn, call);
    return lite_finish(conn, call, call->native == SQLITE_ERROR ? RLK_SCHEMA : class);
}

/* ---- facts */

/* Describes users outside the file's group, if they can enter its folder. In a folder with the
 * sticky bit only the owner can replace a file, but all can make a journal for it. */
static void describe_access(struct conn *conn, struct rlk_facts *out)
{
    char folder_path[PATH_ROOM];
    struct stat file, folder;
    const char *path = sqlite3_db_filename(conn->db, conn->texts->schema);
    if (!path || !strchr(path, '/'))
        return;
    lite_folder_of(path, folder_path);
    if (stat(path, &file) != 0 || stat(folder_path, &folder) != 0)
        return;
    bool may_enter = folder.st_mode & S_IXOTH;
    bool replace = (folder.st_mode & S_IWOTH) && !(folder.st_mode & S_ISVTX);
    out->others_read = may_enter && (file.st_mode & S_IROTH);
    out->others_write = may_enter && ((file.st_mode & S_IWOTH) || replace);
    out->others_beside = may_enter && (folder.st_mode & S_IWOTH);
    snprintf(out->access, sizeof out->access, "file %04o, folder %04o", file.st_mode & 07777,
             folder.st_mode & 07777);
}

/* A change needs some pages of the WAL. The superuser may use what is kept for it. */
static bool is_disk_full(const struct conn *conn)
{
    enum { LEAST_ROOM = 65536 };
    const char *path = sqlite3_db_filename(conn->db, conn->texts->schema);
    struct statvfs disk;
    if (!path || statvfs(path, &disk) != 0)
        return false;
    uint64_t blocks = geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    return disk.f_blocks > 0 && blocks * disk.f_frsize < LEAST_ROOM;
}

static enum rlk_class facts(void *state, struct rlk_call *call, struct rlk_facts *out)
{
    struct conn *conn = state;
    (void)call;
    describe_access(conn, out);
    out->disk_full = is_disk_full(conn);
    out->read_only = out->read_only || sqlite3_db_readonly(conn->db, "main") == 1;
    return RLK_DONE;
}

/* ---- transactions */

/* A COMMIT may fail, for example because of a reader. Then nothing has changed, and the transaction
 * is still open. */
static enum rlk_class frame(void *state, struct rlk_call *call, enum rlk_frame what)
{
    struct conn *conn = state;
    /* These are allowed in a file that was moved. */
    bool gives_up = what == RLK_ROLLBACK || what == RLK_UNDO;
    call->inside = conn->db && !sqlite3_get_autocommit(conn->db);
    if (what == RLK_LOOK)
        return RLK_DONE;
    call->where = what == RLK_BEGIN ? RLK_OUTSIDE : RLK_INSIDE;
    enum rlk_class class = lite_ready(conn, call, !gives_up);
    if (class == RLK_DONE)
        class = lite_send_frame(conn, call, what);
    class = lite_class_for_caller(call, class);
    if (what == RLK_BEGIN || what == RLK_COMMIT || what == RLK_ROLLBACK) {
        for (int i = 0; what == RLK_COMMIT && class == RLK_DONE && i < conn->wakes; i++)
            lite_wake(conn, conn->pending[i]);
        conn->wakes = 0;
        conn->framed = what == RLK_BEGIN && class == RLK_DONE;
    }
    if (class != RLK_DONE && what == RLK_COMMIT && call->inside) {
        struct rlk_call unheard = *call;
        lite_send_frame(conn, &unheard, RLK_ROLLBACK);
        call->tx_over = true;
    }
    return class;
}

/* ---- the driver */

static void client(char *out, size_t cap)
{
    snprintf(out, cap, "SQLite %s", sqlite3_libversion());
}

const struct rlk_driver rlk_driver_sqlite = {
    .name = "sqlite",
    .schemes = (const char *const[]){"sqlite", NULL},
    .conn_size = sizeof(struct conn),
    .quote = '"',
    .marker = '?',
    .numbered = true,
    .local = true,
    .packing = RLK_SINGLY,
    .client = client,
    .open = lite_open,
    .adopt = lite_adopt,
    .close = lite_close,
    .script = script,
    .facts = facts,
    .tell = lite_tell,
    .await = lite_await,
    .query = lite_query,
    .frame = frame,
};
