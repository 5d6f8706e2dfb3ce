/* SPDX-License-Identifier: MIT
 *
 * Our tables: made, and described for rowlock_check(). */
#include "driver.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { SETTING_ROOM = 24 };

/* A connection setting, given or asked for: with BEGIN and its like the only SQL of this driver. */
static enum rlk_class pragma(struct connection *conn, struct rlk_call *call, const char *text,
                             char out[SETTING_ROOM])
{
    sqlite3_stmt *statement = NULL;
    enum rlk_class class = RLK_DONE;
    int code = sqlite3_prepare_v2(conn->db, text, -1, &statement, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        rlk_copy_text(out, SETTING_ROOM, (const char *)sqlite3_column_text(statement, 0),
                      (size_t)sqlite3_column_bytes(statement, 0));
    else if (code != SQLITE_DONE)
        class = lite_failed(conn, call);
    sqlite3_finalize(statement);
    return class;
}

/* An empty file is ours, and gets the journal in which readers and the writer do not wait for each
 * other. Another program's database keeps its own. Where WAL cannot be had, any other will do. */
static enum rlk_class choose_journal(struct connection *conn, struct rlk_call *call)
{
    char pages[SETTING_ROOM] = "", mode[SETTING_ROOM] = "";
    enum rlk_class class = RLK_DONE;
    if (!conn->adopted)
        class = pragma(conn, call, "PRAGMA page_count", pages);
    if (class == RLK_DONE && strcmp(pages, "0") == 0)
        class = pragma(conn, call, "PRAGMA journal_mode = WAL", mode);
    return class;
}

enum rlk_class lite_install(void *state, struct rlk_call *call)
{
    struct connection *conn = state;
    enum rlk_class class = conn->db ? RLK_DONE : lite_open_file(conn, call, true);
    if (class == RLK_DONE)
        class = lite_ready(conn, call, call->where);
    if (class == RLK_DONE)
        class = lite_check_file(conn, call);
    if (class == RLK_DONE)
        class = choose_journal(conn, call);
    if (class != RLK_DONE)
        return class;
    if (sqlite3_exec(conn->db, conn->texts->sql[RLK_STEP_SCHEMA], NULL, NULL, NULL) == SQLITE_OK)
        return RLK_DONE;
    class = lite_failed(conn, call);
    return lite_finish(conn, call, call->native == SQLITE_ERROR ? RLK_SCHEMA : class);
}

/* ---- facts */

/* FULL leaves one gap: a power failure may undo the deletion of a rollback journal, which then takes the
 * last commit back. EXTRA closes it. */
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

/* Users who are not in the file's group and may come through its folder. In a folder with the sticky bit
 * only the owner can replace a file. */
static void describe_access(struct connection *conn, struct rlk_facts *out)
{
    char folder_path[PATH_ROOM];
    struct stat file;
    struct stat folder;
    const char *path = sqlite3_db_filename(conn->db, conn->texts->schema);
    if (!path || !strchr(path, '/'))
        return;
    lite_folder_of(path, folder_path);
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

enum rlk_class lite_facts(void *state, struct rlk_call *call, struct rlk_facts *out)
{
    struct connection *conn = state;
    char journal[SETTING_ROOM] = "", synchronous[SETTING_ROOM] = "", query_only[SETTING_ROOM] = "";
    struct rlk_query query = {.step = RLK_STEP_FACTS, .each = read_facts, .context = out};
    enum rlk_class class = lite_query(conn, call, &query);
    if (class == RLK_DONE)
        class = pragma(conn, call, "PRAGMA main.journal_mode", journal);
    if (class == RLK_DONE)
        class = pragma(conn, call, "PRAGMA main.synchronous", synchronous);
    if (class == RLK_DONE)
        class = pragma(conn, call, "PRAGMA query_only", query_only);
    if (class != RLK_DONE)
        return class;
    describe_durability(journal, synchronous, out);
    describe_names(conn, out);
    describe_access(conn, out);
    out->read_only = sqlite3_db_readonly(conn->db, "main") == 1 || strcmp(query_only, "1") == 0;
    out->may_lock = true; /* for who may write the file */
    snprintf(out->isolation, sizeof out->isolation, "serializable");
    out->any_isolation = true;
    out->replication_known = true;
    snprintf(out->replication, sizeof out->replication, "none");
    return RLK_DONE;
}
