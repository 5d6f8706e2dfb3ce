/* SPDX-License-Identifier: MIT
 *
 * URLs that are wrong, and databases that cannot be reached, do not let us in, or take no writes.
 * Connections lost on the way are in served_lost.c, SQLite's files in sqlite_files.c. */
#include "contract.h"

#include <sys/stat.h>
#include <unistd.h>

enum { TTL_MS = 30000, CONNECT_MS = 1000 };

/* Open what cannot be opened. The code that came, and its error. */
static int fails(const char *url, rowlock_error *err)
{
    rowlock_db *db = (rowlock_db *)err;
    *err = (rowlock_error)ROWLOCK_ERROR_INIT;
    int result = rowlock_db_open(url, OPTIONS(db, .connect_timeout_ms = CONNECT_MS), &db, err);
    if (result == ROWLOCK_OK)
        rowlock_db_close(db);
    else if (db || err->code != result || !err->text[0])
        tap_ok(false, "a failed open leaves no handle, its code and a reason");
    return result;
}

/* Its text has these words. */
static void is_refused_with(const char *url, int want, const char *words, const char *what)
{
    rowlock_error err;
    int got = fails(url, &err);
    tap_is_result(got, want, "%s", what);
    tap_ok(strstr(err.text, words) != NULL, "%s: %s", what, err.text);
}

static void is_refused(const char *url, int want, const char *what)
{
    is_refused_with(url, want, "", what);
}

static void no_urls(const struct contract *c)
{
    is_refused(NULL, ROWLOCK_EINVAL, "no URL");
    is_refused("", ROWLOCK_EINVAL, "an empty URL");
    is_refused("nonsense", ROWLOCK_EINVAL, "a word");
    is_refused(":", ROWLOCK_EINVAL, "a colon");
    is_refused("://", ROWLOCK_EINVAL, "a URL without a scheme");
    is_refused("http://127.0.0.1/", ROWLOCK_EINVAL, "a URL of something else");
    is_refused("oracle://scott@db/x", ROWLOCK_EINVAL, "an unknown database");
    if (!is_sqlite(c))
        return;
    is_refused("sqlite:", ROWLOCK_EINVAL, "no path");
    is_refused("sqlite://x/y", ROWLOCK_EINVAL, "two slashes");
    is_refused("sqlite:///tmp/x", ROWLOCK_EINVAL, "three slashes");
    is_refused("sqlite:/tmp/x?mode=ro", ROWLOCK_EINVAL, "a parameter that is not ours");
}

/* The URL with another user:password, host:port or database. NULL: the same. */
static char *url_to(const struct contract *c, const char *who, const char *host_port,
                    const char *database)
{
    const char *user = strstr(c->url, "://") + 3, *at = strchr(user, '@');
    const char *host = at ? at + 1 : user, *end = host + strcspn(host, "/");
    return strdup(textf("%.*s%s%s%.*s/%s", (int)((who ? user : host) - c->url), c->url,
                        who ? who : "", who ? "@" : "", host_port ? 100 : (int)(end - host),
                        host_port ? host_port : host, database ? database : end + 1));
}

static void unreachable(const struct contract *c)
{
    OWNED(text) char *url = url_to(c, NULL, "127.0.0.1:1", "x"); /* no server listens there */
    is_refused(url, ROWLOCK_ECONN, "a port without a listener");
    /* The kernel takes the connection, but no server ever answers. */
    int port, listener = listen_locally(&port);
    OWNED(text) char *silent = url_to(c, NULL, textf("127.0.0.1:%d", port), "x");
    int64_t begin = clock_ms();
    is_refused_with(silent, ROWLOCK_ECONN, "127.0.0.1", "a server that never answers is named");
    int64_t took = clock_ms() - begin;
    tap_ok(took >= CONNECT_MS / 2, "is given up when the connect timeout is over (%lld ms of %d)",
           (long long)took, CONNECT_MS);
    close(listener);
}

static void not_let_in(const struct contract *c)
{
    rowlock_error err;
    OWNED(text) char *stranger = url_to(c, "rowlock_stranger:secretpassword", NULL, NULL);
    tap_is_result(fails(stranger, &err), ROWLOCK_EDENIED, "a user that does not exist is denied");
    tap_ok(!strstr(err.text, "secretpassword") && !strstr(err.action, "secretpassword"),
           "and no text has its password");
    const char *kind = is_mysql(c) ? "USER" : "ROLE";
    exec_on(c, "DROP %s IF EXISTS rowlock_nobody", kind);
    if (is_mysql(c)) {
        exec_on(c, "CREATE USER rowlock_nobody IDENTIFIED BY 'right'");
        exec_on(c, "GRANT USAGE ON *.* TO rowlock_nobody");
        OWNED(text) char *url = url_to(c, "rowlock_nobody:wrongpassword", NULL, NULL);
        tap_is_result(fails(url, &err), ROWLOCK_EDENIED, "a wrong password is denied");
        tap_ok(!strstr(err.text, "wrongpassword"), "and is in no text either");
        tap_is_int(err.native, 1045, "the server's number is told");
    } else {
        exec_on(c, "CREATE ROLE rowlock_nobody LOGIN");
        OWNED(text) char *url = url_to(c, "rowlock_nobody", NULL, NULL);
        OWNED(db) rowlock_db *db = must_open(url);
        OWNED(lock) rowlock_lock *lock = must_lock(db, "nobody's");
        is_result(db, try_lock(lock, TTL_MS), ROWLOCK_EDENIED,
                  "a user without rights on the tables is denied");
        tap_is_str(error_of(db).sqlstate, "42501", "the server's state is told");
    }
    exec_on(c, "DROP %s rowlock_nobody", kind);
    OWNED(text) char *missing = url_to(c, NULL, NULL, "rowlock_no_such_database");
    int result = fails(missing, &err);
    tap_ok(result == ROWLOCK_EINVAL || result == ROWLOCK_EDENIED,
           "a database that does not exist is refused (%s: %s)", rowlock_result_name(result),
           err.text);
    tap_is_int(err.retryable, 0, "for good");
}

static void takes_no_writes(const struct contract *c)
{
    /* Users with the right to do so may write to a read-only MySQL. */
    if (is_mysql(c)) {
        tap_skip(2, "root may write to a read-only server");
        return;
    }
    OWNED(session) void *session = c->raw->open(c->url);
    raw_run(c->raw, session, "ALTER ROLE CURRENT_USER SET default_transaction_read_only = on");
    /* A pool of its own has no older connections. */
    OWNED(text) char *url = url_with(c->url, "connect_timeout=20");
    OWNED(db) rowlock_db *db = must_open(url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "read-only");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_EREADONLY,
              "a user whose transactions are read-only is told so");
    is_result(db, wait_lock(lock, TTL_MS, ROWLOCK_FOREVER), ROWLOCK_EREADONLY, "also in a wait");
    rowlock_error err = error_of(db);
    tap_ok(!err.retryable && strstr(err.text, "turn it off"), "with what to do: %s", err.text);
    rowlock_verdict worst = ROWLOCK_FINE;
    is_result(db, rowlock_check(db, NULL, NULL, &worst), ROWLOCK_OK, "check it");
    tap_is_int(worst, ROWLOCK_BAD, "that is bad");
    raw_run(c->raw, session, "SET default_transaction_read_only = off");
    raw_run(c->raw, session, "ALTER ROLE CURRENT_USER RESET default_transaction_read_only");
}

/* A handle that is not open has descriptor 0, if that is not taken care of. Oracle's library says 0
 * of a socket that it does not have. */
static void stdin_stays(const struct contract *c)
{
    int ends[2], kept = dup(STDIN_FILENO);
    struct stat is;
    rowlock_db *db = NULL;
    tap_ok(pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == 0, "stdin is a pipe");
    close(ends[0]);
    close(ends[1]);
    tap_is_int(rowlock_db_open(c->url, OPTIONS(db, .connect_timeout_ms = -5), &db, NULL),
               ROWLOCK_EINVAL, "an option that is wrong");
    unreachable(c);
    tap_ok(fstat(STDIN_FILENO, &is) == 0 && S_ISFIFO(is.st_mode), "stdin is what it was");
    dup2(kept, STDIN_FILENO);
    close(kept);
}

void contract_errors(const struct contract *c)
{
    no_urls(c);
    if (c->has_server) {
        stdin_stays(c);
        if (c->pooled || strstr(c->url, "rowlock_pooler=")) {
            tap_skip(1, "the pooler logs in for us, on connections that it keeps");
            return;
        }
        not_let_in(c);
        takes_no_writes(c);
    }
}

/* Adopted MySQL connections whose character set has characters that end with the byte of a quote. */
static void adopts_no(const struct contract *c, const char *charset)
{
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    raw_run(c->raw, session, "SET NAMES %s", charset);
    tap_is_result(c->raw->adopt(&db, session, NULL, &err), ROWLOCK_EINVAL,
                  "a connection that speaks %s is not adopted", charset);
    rowlock_db_close(db);
    raw_run(c->raw, session, "SET NAMES utf8mb4");
    if (c->raw->adopt(&db, session, NULL, &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "charsets");
    is_result(db, try_lock(lock, 30000), ROWLOCK_OK, "one that speaks UTF-8 is");
    raw_run(c->raw, session, "SET NAMES %s", charset);
    is_result(db, rowlock_verify(lock), ROWLOCK_EINVAL, "until it is told to speak %s", charset);
    raw_run(c->raw, session, "SET NAMES latin1");
    is_result(db, rowlock_release(lock), ROWLOCK_OK, "in latin1 it goes on");
}

void contract_mysql_charsets(const struct contract *c)
{
    static const char *const charsets[] = {"gbk", "big5", "sjis", "cp932"};
    for (size_t i = 0; i < COUNT(charsets); i++)
        adopts_no(c, charsets[i]);
}
