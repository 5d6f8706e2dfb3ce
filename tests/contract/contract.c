/* SPDX-License-Identifier: MIT
 *
 * Runs the subjects of the contract one after the other. Has words that several of them use. The
 * checks are in the files of the subjects. */
#include "contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void run_own(const struct contract *c)
{
    if (c->own)
        c->own(c);
}

static const struct {
    const char *part, *name;
    void (*run)(const struct contract *c);
} subjects[] = {
    {"lock", "install", contract_install},
    {"lock", "basics", contract_basics},
    {"lock", "names", contract_names},
    {"lock", "leases", contract_leases},
    {"lock", "owners", contract_owners},
    {"lock", "tokens", contract_tokens},
    {"lock", "sweep", contract_sweep},
    {"lock", "housekeeping", contract_housekeeping},
    {"lock", "list", contract_list},
    {"lock", "measure", contract_measure},
    {"lock", "adopt", contract_adopt},
    {"lock", "keeper", contract_keeper},
    {"lock", "errors", contract_errors},
    {"lock", "options", contract_options},
    {"lock", "fork", contract_fork},
    {"lock", "stalls", contract_stalls},
    {"lock", "costs", contract_costs},
    {"lock", "stats", contract_stats},
    {"lock", "shared", contract_shared},
    {"lock", "counted", contract_counted},
    {"queue", "waiting", contract_waiting},
    {"queue", "queue", contract_queue},
    {"queue", "many", contract_many},
    {"queue", "cycle", contract_cycle},
    {"queue", "start", contract_start},
    {"queue", "wakeup", contract_wakeup},
    {"tx", "transaction", contract_transaction},
    {"tx", "within", contract_within},
    {"rows", "query", contract_query},
    {"rows", "versions", contract_versions},
    {"rows", "read_many", contract_read_many},
    {"rows", "triggers", contract_triggers},
    {"rows", "batches", contract_batches},
    {"rows", "once", contract_once},
    {"rows", "types", contract_types},
    {"rows", "retry", contract_retry},
    {"rows", "walk", contract_walk},
    {"rows", "obstacles", contract_obstacles},
    {"rows", "misfit", contract_misfit},
    {"rows", "interleave", contract_interleave},
    {"rows", "own", run_own},
};

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

int contract_run(const struct contract *contract)
{
    struct contract c = *contract;
    if (c.raw->pooled) {
        void *session = c.raw->open(c.url);
        c.pooled = c.raw->pooled(session);
        c.raw->close(session);
    }
    const char *only = getenv("ROWLOCK_TEST_SUBJECT");
    must_install(c.url);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (only ? strcmp(only, subjects[i].name) != 0
                 : c.part && strcmp(c.part, subjects[i].part) != 0)
            continue;
        if (only && c.part && strcmp(c.part, subjects[i].part) != 0)
            return tap_skip_all("the subject is in another part");
        if (c.only && !is_among(c.only, subjects[i].name))
            continue;
        int64_t begin = clock_ms();
        subjects[i].run(&c);
        tap_note("%s took %lld ms", subjects[i].name, (long long)(clock_ms() - begin));
    }
    return tap_done();
}

int rows_of(const struct contract *c, const char *name)
{
    return (int)db_int(c->raw, c->url, "SELECT count(*) FROM rowlock_locks WHERE name = '%s'",
                       name);
}

void is_rows(const struct contract *c, const char *name, int wanted, const char *text)
{
    /* A quorum answers before the last member has. */
    if (getenv("ROWLOCK_TEST_QUORUM"))
        sleep_ms(slow_ms(50));
    int rows = rows_of(c, name);
    if (getenv("ROWLOCK_TEST_QUORUM"))
        for (int64_t end_ms = clock_ms() + slow_ms(20000); rows != wanted && clock_ms() < end_ms;) {
            sleep_ms(10);
            rows = rows_of(c, name);
        }
    tap_is_int(rows, wanted, "%s", text);
}

bool is_sqlite(const struct contract *c)
{
    return strcmp(c->raw->name, "sqlite") == 0;
}

bool is_postgres(const struct contract *c)
{
    return strcmp(c->raw->name, "postgres") == 0;
}

bool is_mysql(const struct contract *c)
{
    return strcmp(c->raw->name, "mysql") == 0;
}

void ask_any(const struct contract *c, void *session, const char *const *sql, char *out, size_t cap)
{
    for (const char *const *one = sql; *one; one++)
        if (c->raw->ask(session, *one, out, cap))
            return;
    raw_failed("no answer", sql[0]);
}

static void drop_if_there(const struct contract *c, void *session, const char *what,
                          const char *prefix, const char *name)
{
    char sql[200], ignored[200];
    snprintf(sql, sizeof sql, "DROP %s IF EXISTS %s%s", what, prefix, name);
    c->raw->run(session, sql, ignored, sizeof ignored);
}

static void drop_all(const struct contract *c, const char *prefix)
{
    static const char *const tables[] = {"locks", "waiters", "tokens",  "fences",
                                         "once",  "walks",   "members", "meta"};
    /* The routines of both servers. A server may lack some. */
    static const char *const routines[] = {"grant", "grant_all", "enqueue", "leave",     "wake",
                                           "guard", "make_room", "renew",   "renew_all", "fence",
                                           "break", "fold",      "raise",   "look",      "refuse"};
    void *session = c->raw->open(c->url);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        drop_if_there(c, session, "TABLE", prefix, tables[i]);
    for (size_t i = 0; c->has_server && i < sizeof routines / sizeof routines[0]; i++)
        drop_if_there(c, session, is_postgres(c) ? "FUNCTION" : "PROCEDURE", prefix, routines[i]);
    c->raw->close(session);
}

char *fresh_tables(const struct contract *c, const char *prefix)
{
    char parameter[100];
    drop_all(c, prefix);
    snprintf(parameter, sizeof parameter, "rowlock_prefix=%s", prefix);
    char *url = url_with(c->url, parameter);
    must_install(url);
    return url;
}

void drop_tables(const struct contract *c, const char *prefix, char *url)
{
    drop_all(c, prefix);
    free(url);
}

void refuse_rows(const struct contract *c, const char *prefix, const char *table, const char *does)
{
    char body[200];
    if (is_postgres(c)) {
        db_exec(c->raw, c->url,
                "CREATE FUNCTION %srefuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'not here'; END $$",
                prefix);
        snprintf(body, sizeof body, "EXECUTE FUNCTION %srefuse()", prefix);
    } else if (is_mysql(c)) {
        snprintf(body, sizeof body, "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not here'");
    } else {
        snprintf(body, sizeof body, "BEGIN SELECT RAISE(%s, 'not here'); END", does);
    }
    db_exec(c->raw, c->url, "CREATE TRIGGER %srefuses BEFORE INSERT ON %s%s FOR EACH ROW %s",
            prefix, prefix, table, body);
}

/* rowlock_db_error() says what the call returned, and why. After rowlock_acquire_start() it says
 * that the acquire is under way. */
static void check_error(const rowlock_db *db, int got, const char *what)
{
    rowlock_error err = ROWLOCK_ERROR_INIT;
    rowlock_db_error(db, &err);
    bool started = got == ROWLOCK_OK && err.code == ROWLOCK_EMISUSE;
    bool reasoned = got == ROWLOCK_OK || err.text[0];
    if ((err.code != got && !started) || !reasoned)
        (tap_ok)(false, "%s: rowlock_db_error() says %s: '%s'", what, rowlock_result_name(err.code),
               err.text);
}

bool(is_result)(const rowlock_db *db, int got, int want, const char *format, ...)
{
    char text[500];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool passed = (tap_is_str)(rowlock_result_name(got), rowlock_result_name(want), "%s", text);
    if (!passed && got != ROWLOCK_OK)
        tap_note("%s", why(db));
    check_error(db, got, text);
    return passed;
}
