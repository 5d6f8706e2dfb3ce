/* SPDX-License-Identifier: MIT
 *
 * What only SQLite has: files and their journals, and an application's connection that is in the
 * middle of reading. What it has in common with the other databases is in the other files. */
#include "contract.h"
#include "core/db.h"

#include <sys/stat.h>

#include <sqlite3.h>

enum { TTL_MS = 30000 };

static int mode_of(const char *url, const char *beside)
{
    struct stat file;
    return stat(textf("%s%s", path_of(url), beside), &file) == 0 ? (int)(file.st_mode & 07777) : -1;
}

static void access_is(rowlock_db *db, rowlock_verdict want, const char *what)
{
    tap_is_int(check_item(db, "access").verdict, want, "%s", what);
}

static void private_file(void)
{
    mode_t before = umask(0);
    OWNED(text) char *url = file_url("private.db");
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock in a new file");
    tap_is_int(mode_of(url, ""), 0600, "the file is for its owner alone, under each umask");
    tap_is_int(mode_of(url, "-wal"), 0600, "so is its journal");
    tap_is_int(mode_of(url, "-shm"), 0600, "and its index");
    access_is(db, ROWLOCK_FINE, "check finds that right");
    chmod(path_of(url), 0644);
    access_is(db, ROWLOCK_WARNING, "a user who may read the file can block all writers");
    chmod(path_of(url), 0606);
    access_is(db, ROWLOCK_BAD, "a user who may write it can forge a grant");
    chmod(path_of(url), 0600);
    struct stat kept;
    stat(test_folder(), &kept);
    chmod(test_folder(), 0777);
    access_is(db, ROWLOCK_BAD, "a user who may write to its folder can replace it");
    chmod(test_folder(), kept.st_mode & 07777);
    umask(before);
}

static void private_by_link(void)
{
    mode_t before = umask(0);
    OWNED(text) char *link = file_url("link.db"), *url = file_url("behind-link.db");
    if (symlink("behind-link.db", path_of(link)) != 0)
        abort();
    must_install(link);
    tap_is_int(mode_of(url, ""), 0600, "a file made through a symbolic link is as private");
    umask(before);
}

/* What another program has put in the place of our tables is not run. */
static void trap(const char *sql, const char *what)
{
    rowlock_verdict worst = ROWLOCK_FINE;
    OWNED(text) char *url = file_url(textf("trap of %s.db", what));
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check");
    tap_ok(worst != ROWLOCK_BAD, "finds our own tables right");
    db_exec(&raw_sqlite, url, "%s", sql);
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check");
    tap_is_int(worst, ROWLOCK_BAD, "finds %s", what);
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "and install refuses it: %s", why(db));
}

static void traps(void)
{
    trap("CREATE TRIGGER t BEFORE INSERT ON rowlock_locks BEGIN SELECT RAISE(IGNORE); END",
         "a trigger");
    trap("CREATE INDEX i ON rowlock_locks (abs(token))", "an index");
    trap("ALTER TABLE rowlock_tokens ADD COLUMN more INTEGER AS (token + 1)", "a column");
}

static void endless_view(void)
{
    OWNED(text) char *url = file_url("endless.db");
    must_install(url);
    db_exec(&raw_sqlite, url, "DROP TABLE rowlock_locks");
    db_exec(&raw_sqlite, url,
            "CREATE VIEW rowlock_locks AS WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 "
            "FROM c) SELECT 'x' AS name, 0 AS slot, 0 AS permits, 'o' AS owner, 1 AS token, 1 AS "
            "request, 1 AS acquired, 1 AS expires, 1 AS ttl, 0 AS lapsed, 0 AS renewals, '' AS "
            "host, 0 AS pid, '' AS program, '' AS note FROM c WHERE n < 0");
    OWNED(db) rowlock_db *db = must_open_with(url, OPTIONS(db, .statement_timeout_ms = 300));
    tap_ok(rowlock_list(db, NULL, ignore_grant, NULL) < 0, "a view that never ends is ended: %s",
           why(db));
    OWNED(lock) rowlock_lock *lock = must_lock(db, "x");
    tap_ok(try_lock(lock, TTL_MS) < 0, "also for a try: %s", why(db));
    tap_is_int(rowlock_install(db), ROWLOCK_ESCHEMA, "install refuses it: %s", why(db));
}

/* A column takes any value, whatever its type. One that cannot be a time would overflow where the clock is
 * taken from it. */
static void spoiled_grant(rowlock_db *db, const char *url, const char *column, const char *value)
{
    db_exec(&raw_sqlite, url, "DELETE FROM rowlock_locks");
    OWNED(lock) rowlock_lock *holder = must_lock(db, "x"), *other = must_lock(db, "x");
    is_result(db, try_lock(holder, TTL_MS), ROWLOCK_OK, "a lock is held");
    db_exec(&raw_sqlite, url, "UPDATE rowlock_locks SET %s = %s", column, value);
    is_result(db, rowlock_list(db, NULL, ignore_grant, NULL), ROWLOCK_ESCHEMA,
              "%s = %s: no list believes it", column, value);
    if (value[0] != '-')
        is_result(db, try_lock(other, TTL_MS), ROWLOCK_ESCHEMA, "nor does a try");
}

static void spoiled_lease(rowlock_db *db, const char *url)
{
    OWNED(lock) rowlock_lock *lock = must_lock(db, "y");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held");
    db_exec(&raw_sqlite, url, "UPDATE rowlock_locks SET expires = -9223372036854775808");
    is_result(db, rowlock_verify(lock), ROWLOCK_ESCHEMA, "a verification does not believe its end");
    db_exec(&raw_sqlite, url, "UPDATE rowlock_locks SET ttl = 9223372036854775807");
    is_result(db, rowlock_renew(lock, 0), ROWLOCK_EUNCERTAIN, "nor a renewal its length");
}

static void spoiled_rows(void)
{
    static const char *const columns[] = {"slot",    "permits", "token",    "acquired",
                                          "expires", "ttl",     "renewals", "pid"};
    OWNED(text) char *url = file_url("spoiled.db");
    int64_t token, when;
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    for (size_t i = 0; i < COUNT(columns); i++) {
        spoiled_grant(db, url, columns[i], "'many'");
        spoiled_grant(db, url, columns[i], "1e300");
    }
    spoiled_grant(db, url, "acquired", "-9223372036854775808");
    spoiled_grant(db, url, "expires", "-9223372036854775808");
    db_exec(&raw_sqlite, url, "DELETE FROM rowlock_locks");
    spoiled_lease(db, url);
    db_exec(&raw_sqlite, url, "UPDATE rowlock_tokens SET granted = 'never'");
    is_result(db, rowlock_last_grant(db, "x", &token, &when), ROWLOCK_ESCHEMA, "nor the last time");
    db_exec(&raw_sqlite, url, "UPDATE rowlock_meta SET version = 'newest'");
    rowlock_db_close(db);
    db = must_open(url);
    is_result(db, rowlock_last_grant(db, "x", &token, &when), ROWLOCK_ESCHEMA, "nor the version");
}

/* Locks in a file that no other process finds exclude none. */
static void deleted_file(void)
{
    OWNED(text) char *url = file_url("deleted.db");
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "deleted");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is held in a file");
    unlink(path_of(url));
    int result = rowlock_renew(lock, 0);
    tap_ok(result == ROWLOCK_ESCHEMA || result == ROWLOCK_LOST,
           "a file that was deleted is not used any more (%s)", rowlock_result_name(result));
}

/* A database that is not ours keeps its journal mode; a new file gets WAL. */
static void journal_modes(const struct contract *c)
{
    OWNED(text) char *ours = file_url("ours.db"), *theirs = file_url("theirs.db");
    char mode[20] = "";
    must_install(ours);
    OWNED(session) void *session = c->raw->open(ours);
    c->raw->ask(session, "PRAGMA journal_mode", mode, sizeof mode);
    tap_is_str(mode, "wal", "a new file is made with a write-ahead log");
    db_exec(c->raw, theirs, "CREATE TABLE theirs (n)");
    must_install(theirs);
    OWNED(session) void *other = c->raw->open(theirs);
    c->raw->ask(other, "PRAGMA journal_mode", mode, sizeof mode);
    tap_is_str(mode, "delete", "somebody else's database keeps its journal");
    OWNED(db) rowlock_db *db = must_open(theirs);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "theirs");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "and holds locks as well");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and releases them");
}

/* Where readers and the writer exclude each other a commit may fail. Then nothing has happened. */
static void commit_that_fails(const struct contract *c)
{
    OWNED(text) char *url = file_url("readers.db");
    db_exec(c->raw, url, "CREATE TABLE theirs (n)");
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "readers");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is granted");
    int64_t token = rowlock_lock_token(lock);
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "and released");
    OWNED(session) void *session = c->raw->open(url);
    raw_run(c->raw, session, "BEGIN");
    tap_is_int(raw_int(c->raw, session, "SELECT count(*) FROM theirs"), 0, "somebody reads");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_BUSY, "while the reader reads the lock is BUSY");
    tap_is_int(raw_int(c->raw, session, "SELECT count(*) FROM rowlock_locks"), 0, "and not there");
    raw_run(c->raw, session, "COMMIT");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "when the reader has ended it is granted");
    tap_is_int(rowlock_lock_token(lock), token + 1, "with the next token");
}

static int say_no(void *context, int action, const char *a, const char *b, const char *d,
                  const char *e)
{
    return action == SQLITE_INSERT || action == SQLITE_DELETE ? SQLITE_DENY : SQLITE_OK;
}

/* A SELECT that is not read to its end is a transaction too: what we would see in it is old. */
static void application_is_reading(const struct contract *c, sqlite3 *conn)
{
    rowlock_db *db = NULL;
    sqlite3_stmt *statement = NULL;
    if (c->raw->adopt(&db, conn, NULL, NULL) != ROWLOCK_OK ||
        sqlite3_prepare_v2(conn, "SELECT * FROM sqlite_master", -1, &statement, NULL) != SQLITE_OK)
        abort();
    rowlock_lock *lock = must_lock(db, "reading");
    sqlite3_step(statement);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_EMISUSE,
              "in the middle of the application's reading nothing is done");
    tap_ok(sqlite3_step(statement) == SQLITE_ROW, "and the reading goes on");
    sqlite3_reset(statement);
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "after it the lock is granted");
    sqlite3_finalize(statement);
    sqlite3_set_authorizer(conn, say_no, NULL);
    rowlock_lock *other = must_lock(db, "forbidden");
    is_result(db, try_lock(other, TTL_MS), ROWLOCK_EDENIED,
              "what the authorizer forbids is denied");
    sqlite3_set_authorizer(conn, NULL, NULL);
    is_result(db, try_lock(other, TTL_MS), ROWLOCK_OK, "until it allows it");
    tap_ok(sqlite3_get_autocommit(conn), "no transaction stays open");
    close_locks(lock, other);
    rowlock_db_close(db);
    tap_ok(sqlite3_next_stmt(conn, NULL) == NULL, "closing leaves no statement behind");
}

static void full_disk(const struct contract *c, sqlite3 *conn)
{
    enum { MANY = 200 };
    OWNED(db) rowlock_db *db = NULL;
    rowlock_lock *locks[MANY];
    int count = 0, result = ROWLOCK_OK;
    if (c->raw->adopt(&db, conn, NULL, NULL) != ROWLOCK_OK)
        abort();
    raw_run(c->raw, conn, "PRAGMA max_page_count = %lld",
            raw_int(c->raw, conn, "PRAGMA page_count"));
    for (; count < MANY && result == ROWLOCK_OK; count++) {
        locks[count] = must_lock(db, textf("%0250d", count));
        result = try_lock(locks[count], TTL_MS);
    }
    is_result(db, result, ROWLOCK_EREADONLY, "a full disk says EREADONLY");
    tap_ok(sqlite3_get_autocommit(conn), "no transaction stays open");
    is_result(db, rowlock_renew(locks[0], 0), ROWLOCK_OK, "what is held can be renewed");
    is_result(db, rowlock_release(locks[0]), ROWLOCK_OK, "and released");
    while (count-- > 0)
        rowlock_lock_close(locks[count]);
}

/* SQLite makes a plan before it knows the values. */
static void is_by_key(sqlite3 *conn, const rowlock_db *db, enum rlk_step step, const char *what)
{
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", db->texts.sql[step]);
    sqlite3_stmt *plan = NULL;
    const char *detail = "";
    if (sqlite3_prepare_v2(conn, sql, -1, &plan, NULL) == SQLITE_OK &&
        sqlite3_step(plan) == SQLITE_ROW)
        detail = (const char *)sqlite3_column_text(plan, 3);
    tap_ok(strstr(detail, "(name>? AND name<?)"), "%s goes by key: %s", what, detail);
    sqlite3_finalize(plan);
    sqlite3_free(sql);
}

static void lists_by_key(void)
{
    OWNED(text) char *url = file_url("listed.db");
    must_install(url);
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "listed");
    sqlite3 *conn = NULL;
    tap_is_int(try_lock(lock, TTL_MS), ROWLOCK_OK, "a lock is granted");
    sqlite3_open(path_of(url), &conn);
    is_by_key(conn, db, RLK_STEP_LIST, "a list of the grants of a name");
    is_by_key(conn, db, RLK_STEP_WAITERS, "a list of the waiters for a name");
    sqlite3_close(conn);
}

void contract_sqlite_only(const struct contract *c)
{
    contract_sqlite_steps(c);
    contract_sqlite_rows(c);
    private_file();
    private_by_link();
    traps();
    endless_view();
    spoiled_rows();
    lists_by_key();
    deleted_file();
    journal_modes(c);
    commit_that_fails(c);
    OWNED(text) char *url = file_url("adopted.db");
    must_install(url);
    OWNED(session) void *conn = c->raw->open(url);
    application_is_reading(c, conn);
    full_disk(c, conn);
}
