/* SPDX-License-Identifier: MIT
 *
 * Raw sessions on SQLite; see raw.h. rowlock is not used here. */
#include "raw.h"

#include <sqlite3.h>

enum { BUSY_MS = 5000 };

static void *open_session(const char *url)
{
    sqlite3 *db = NULL;
    char path[500];
    snprintf(path, sizeof path, "%s", strchr(url, ':') + 1);
    char *parameters = strchr(path, '?');
    if (parameters)
        *parameters = '\0';
    if (sqlite3_open(path, &db) != SQLITE_OK)
        raw_failed("SQLite", sqlite3_errmsg(db));
    sqlite3_busy_timeout(db, BUSY_MS);
    return db;
}

static void close_session(void *session)
{
    sqlite3_close(session);
}

static bool run(void *session, const char *sql, char *why, size_t cap)
{
    if (sqlite3_exec(session, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    snprintf(why, cap, "%s", sqlite3_errmsg(session));
    return false;
}

static bool ask(void *session, const char *sql, char *out, size_t cap)
{
    sqlite3_stmt *statement = NULL;
    bool good = sqlite3_prepare_v2(session, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW &&
                sqlite3_column_type(statement, 0) != SQLITE_NULL;
    if (good)
        snprintf(out, cap, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return good;
}

RAW_ADOPTS(sqlite)

const struct raw raw_sqlite = {
    RAW_FUNCTIONS(sqlite),
    .url_env = "ROWLOCK_TEST_SQLITE_URL",
    .tick_us = 1000,
    .clock = "(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + "
             "CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)",
};
