/* SPDX-License-Identifier: MIT
 *
 * What the raw sessions of all databases share: formatted statements, and giving up. The calls of
 * the client libraries are in raw_postgres.c, raw_mysql.c and raw_sqlite.c. */
#include "raw.h"

#include <sys/prctl.h>

const struct raw *raw_here;

void owned_session_ends(void **session)
{
    if (*session)
        raw_here->close(*session);
}

void raw_failed(const char *what, const char *why)
{
    printf("Bail out! %s: %s\n", what, why);
    fflush(stdout);
    _Exit(1); /* as in quick.c */
}

enum { WHY = 500 };

/* Runs the statement, or asks it for a number. */
static bool done(const struct raw *raw, void *session, const char *sql, long long *number,
                 char *why)
{
    char text[100] = "", *end = text;
    if (!number)
        return raw->run(session, sql, why, WHY);
    if (raw->ask(session, sql, text, sizeof text))
        *number = strtoll(text, &end, 10);
    if (end == text && raw->run(session, sql, why, WHY)) /* which tells why, if it fails again */
        snprintf(why, WHY, "no number came: %s", text);
    return end > text;
}

static void done_or_die(const struct raw *raw, void *session, const char *sql, long long *number)
{
    char why[WHY];
    if (!done(raw, session, sql, number, why))
        raw_failed(why, sql);
}

/* ---- statements in their own session */

/* Opening a session takes some milliseconds, so one is kept for the next statement. For a SQLite
 * file none is kept, because its locks belong to the process. */
static struct {
    pthread_mutex_t guard;
    pid_t process;
    const struct raw *raw;
    char *url;
    void *session;
} spare = {.guard = PTHREAD_MUTEX_INITIALIZER};

static void give_up_spare(void)
{
    /* otherwise it is the parent's */
    if (spare.session && spare.process == getpid())
        spare.raw->close(spare.session);
    spare.session = NULL;
    free(spare.url);
    spare.url = NULL;
}

/* false: another thread has it, or there is none. */
static bool take_spare(const struct raw *raw, const char *url)
{
    if (strcmp(raw->name, "sqlite") == 0 || pthread_mutex_trylock(&spare.guard) != 0)
        return false;
    if (spare.process != getpid() || !spare.url || strcmp(spare.url, url) != 0) {
        give_up_spare();
        spare.process = getpid();
        spare.raw = raw;
        spare.session = raw->open(url);
        spare.url = strdup(url);
    }
    return true;
}

/* The session may have been killed, or its server restarted. Then a new one shows the error, if any. */
static void do_apart(const struct raw *raw, const char *url, const char *sql, long long *number)
{
    char ignored[WHY];
    if (take_spare(raw, url)) {
        bool good = done(raw, spare.session, sql, number, ignored);
        if (!good)
            give_up_spare();
        pthread_mutex_unlock(&spare.guard);
        if (good)
            return;
    }
    void *session = raw->open(url);
    done_or_die(raw, session, sql, number);
    raw->close(session);
}

/* ---- formatted statements */

#define DO_FORMATTED(function, place, number)     \
    char *sql = NULL;                             \
    va_list arguments;                            \
    va_start(arguments, format);                  \
    if (vasprintf(&sql, format, arguments) < 0)   \
        raw_failed("statement", "out of memory"); \
    va_end(arguments);                            \
    function(raw, place, sql, number);            \
    free(sql)

void raw_run(const struct raw *raw, void *session, const char *format, ...)
{
    DO_FORMATTED(done_or_die, session, NULL);
}

long long raw_int(const struct raw *raw, void *session, const char *format, ...)
{
    long long number = 0;
    DO_FORMATTED(done_or_die, session, &number);
    return number;
}

void db_exec(const struct raw *raw, const char *url, const char *format, ...)
{
    DO_FORMATTED(do_apart, url, NULL);
}

long long db_int(const struct raw *raw, const char *url, const char *format, ...)
{
    long long number = 0;
    DO_FORMATTED(do_apart, url, &number);
    return number;
}

rowlock_db *must_adopt(const struct raw *raw, void *session, const char *prefix)
{
    rowlock_db *db = NULL;
    rowlock_error err = ROWLOCK_ERROR_INIT;
    if (raw->adopt(&db, session, OPTIONS(db, .prefix = prefix), &err) != ROWLOCK_OK)
        raw_failed("adopt", err.text);
    return db;
}

/* ---- the server */

long long raw_sessions(const struct raw *raw, const char *url)
{
    return db_int(raw, url,
                  strcmp(raw->name, "postgres") == 0
                      ? "SELECT count(*) FROM pg_stat_activity WHERE client_port IS NOT NULL"
                      : "SELECT count(*) FROM information_schema.processlist "
                        "WHERE user NOT IN ('system user', 'event_scheduler')");
}

bool raw_is_ours(const struct raw *raw)
{
    return getenv(strcmp(raw->name, "postgres") == 0 ? "ROWLOCK_TEST_POSTGRES_DIR"
                                                     : "ROWLOCK_TEST_MYSQL_DIR") != NULL;
}

/* The script is found where the makefile runs the tests. A server that it has started becomes ours
 * when the script ends, so we must wait for its end: PostgreSQL does not start beside a zombie of
 * its own. It must not keep open what our caller reads to its end. Its account may not write to our
 * private folder. */
void raw_control(const struct raw *raw, const char *what)
{
    char command[200];
    for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    snprintf(command, sizeof command, "env -u TMPDIR tests/lib/server-ctl.sh %s %s </dev/null >&2",
             raw->name, what);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (system(command) != 0)
        raw_failed("the server does not obey", what);
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
}
