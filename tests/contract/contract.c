/* SPDX-License-Identifier: MIT
 *
 * Runs the subjects of the contract one after the other. Has words that several of them use. The
 * checks are in the files of the subjects. */
#include "contract.h"
#include "tables.h"

void contract_own(const struct contract *c)
{
    if (c->own)
        c->own(c);
}

/* A pool changes how statements reach a connection: who gets one, when it is made anew, and what is
 * batched. The subjects marked PLAIN prove what is decided before that, or what a keeper, a child
 * or an adopted session does on a connection without a pool. They run with handles of a pool only
 * in the long run, or where they are asked for by name. */
enum pooling { POOLED, PLAIN };

static const struct {
    const char *part, *name;
    void (*run)(const struct contract *c);
    enum pooling pooling;
} subjects[] = {
#define ROW(part, name, pooling) {#part, #name, contract_##name, pooling},
    SUBJECTS(ROW)};

static bool is_among(const char *const *names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

bool env_is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

int rows_of(const struct contract *c, const char *name)
{
    return (int)int_on(c, "SELECT count(*) FROM rowlock_locks WHERE name = '%s'", name);
}

void is_rows(const struct contract *c, const char *name, int wanted, const char *text)
{
    if (getenv("ROWLOCK_TEST_QUORUM")) {
        /* Time: a quorum answers before the last member has. What it does then must not change the
         * rows. Without this wait a fault may be missed, and none is reported. */
        sleep_ms(slow_ms(50));
        (void)EVENTUALLY(rows_of(c, name) == wanted);
    }
    tap_is_int(rows_of(c, name), wanted, "%s", text);
}

void end_lease(const struct contract *c, const rowlock_lock *lock)
{
    exec_on(c, "UPDATE rowlock_locks SET expires = 1 WHERE name = '%s' AND token = %lld",
            rowlock_lock_name(lock), (long long)rowlock_lock_token(lock));
}

/* InnoDB's list is not made anew while a session looks at it ten times a second. */
bool somebody_waits(const struct contract *c)
{
    static const char *const waits[] = {
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
    };
    int64_t until = clock_ms() + slow_ms(60000);
    if (!c->has_server)
        sleep_ms(50);
    while (c->has_server && int_on(c, "%s", waits[is_mysql(c)]) == 0) {
        if (clock_ms() > until)
            return false;
        sleep_ms(is_mysql(c) ? 110 : 5);
    }
    return true;
}

void kill_id(const struct contract *c, long long id)
{
    bool mysql = is_mysql(c);
    exec_on(c, mysql ? "KILL %lld" : "SELECT pg_terminate_backend(%lld)", id);
    (void)EVENTUALLY(
        int_on(c,
               mysql ? "SELECT count(*) FROM information_schema.processlist WHERE id = %lld"
                     : "SELECT count(*) FROM pg_stat_activity WHERE pid = %lld",
               id) == 0);
}

void kill_session(const struct contract *c, void *session)
{
    kill_id(c, raw_int(c->raw, session,
                       is_mysql(c) ? "SELECT CONNECTION_ID()" : "SELECT pg_backend_pid()"));
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
    char ignored[200];
    c->raw->run(session, textf("DROP %s IF EXISTS %s%s", what, prefix, name), ignored,
                sizeof ignored);
}

void drop_tables(const struct contract *c, const char *prefix)
{
    static const char *const tables[] = {"locks", "waiters", "tokens",  "fences",
                                         "once",  "walks",   "members", "meta"};
    /* The routines of both servers. A server may lack some. */
    static const char *const routines[] = {"grant", "grant_all", "enqueue", "leave",     "wake",
                                           "guard", "make_room", "renew",   "renew_all", "fence",
                                           "break", "fold",      "raise",   "look",      "refuse"};
    const char *routine = is_postgres(c) ? "FUNCTION" : "PROCEDURE";
    OWNED(session) void *session = c->raw->open(c->url);
    for (size_t i = 0; i < COUNT(tables); i++)
        drop_if_there(c, session, "TABLE", prefix, tables[i]);
    for (size_t i = 0; c->has_server && i < COUNT(routines); i++)
        drop_if_there(c, session, routine, prefix, routines[i]);
}

/* What the end of the subject drops. */
static char prefixes[20][40];
static int prefix_count;

char *no_tables(const struct contract *c, const char *prefix)
{
    drop_tables(c, prefix);
    if (prefix_count == COUNT(prefixes))
        abort();
    snprintf(prefixes[prefix_count++], sizeof prefixes[0], "%s", prefix);
    return url_with(c->url, textf("rowlock_prefix=%s", prefix));
}

char *fresh_tables(const struct contract *c, const char *prefix)
{
    char *url = no_tables(c, prefix);
    must_install(url);
    return url;
}

static void end_subject(const struct contract *c)
{
    while (prefix_count > 0)
        drop_tables(c, prefixes[--prefix_count]);
    drop_site_tables(c);
}

const char *numbered(const struct contract *c, const char *before)
{
    return textf(is_sqlite(c) ? "'%s' || i" : "CONCAT('%s', i)", before);
}

void refuse_rows(const struct contract *c, const char *prefix, const char *table, const char *does)
{
    const char *body = "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not here'";
    if (is_sqlite(c))
        body = textf("BEGIN SELECT RAISE(%s, 'not here'); END", does);
    if (is_postgres(c)) {
        exec_on(c,
                "CREATE FUNCTION %srefuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'not here'; END $$",
                prefix);
        body = textf("EXECUTE FUNCTION %srefuse()", prefix);
    }
    exec_on(c, "CREATE TRIGGER %srefuses BEFORE INSERT ON %s%s FOR EACH ROW %s", prefix, prefix,
            table, body);
}

/* rowlock_db_error() says what the call returned, and why. After rowlock_acquire_start() it says
 * that the acquire is under way. */
static void check_error(const rowlock_db *db, int got, const char *what)
{
    rowlock_error err = error_of(db);
    bool started = got == ROWLOCK_OK && err.code == ROWLOCK_EMISUSE;
    bool reasoned = got == ROWLOCK_OK || err.text[0];
    if ((err.code != got && !started) || !reasoned)
        (tap_ok)(false, "%s: rowlock_db_error() says %s: '%s'", what, rowlock_result_name(err.code),
                 err.text);
}

bool(is_result)(const rowlock_db *db, int got, int want, const char *text)
{
    bool passed = (tap_is_str)(rowlock_result_name(got), rowlock_result_name(want), "%s", text);
    if (!passed && got != ROWLOCK_OK)
        tap_note("%s", why(db));
    check_error(db, got, text);
    return passed;
}

static int note_item(void *context, const rowlock_finding *finding)
{
    struct found *f = context;
    bool wanted = strcmp(finding->item, f->item) == 0;
    f->further = f->further || !wanted;
    if (!wanted)
        return 0;
    snprintf(f->value, sizeof f->value, "%s", finding->value);
    snprintf(f->advice, sizeof f->advice, "%s", finding->advice);
    f->verdict = finding->verdict;
    return 0;
}

struct found check_item(rowlock_db *db, const char *item)
{
    struct found f = {.item = item, .verdict = ROWLOCK_FINE};
    is_result(db, rowlock_check(db, note_item, &f, &f.worst), ROWLOCK_OK, "check looks");
    return f;
}

int contract_run(const struct contract *contract)
{
    struct contract c = *contract;
    raw_here = c.raw;
    if (c.raw->pooled) {
        OWNED(session) void *session = c.raw->open(c.url);
        c.pooled = c.raw->pooled(session);
    }
    const char *only = getenv("ROWLOCK_TEST_SUBJECT");
    bool all = only || !env_is_set("ROWLOCK_TEST_POOL") || env_is_set("ROWLOCK_TEST_LONG");
    must_install(c.url);
    for (size_t i = 0; i < COUNT(subjects); i++) {
        if (only ? strcmp(only, subjects[i].name) != 0
                 : c.part && strcmp(c.part, subjects[i].part) != 0)
            continue;
        if (only && c.part && strcmp(c.part, subjects[i].part) != 0)
            return tap_skip_all("the subject is in another part");
        if (c.only && !is_among(c.only, subjects[i].name))
            continue;
        if (!all && subjects[i].pooling == PLAIN)
            continue;
        int64_t begin = clock_ms();
        subjects[i].run(&c);
        end_subject(&c);
        tap_note("%s took %lld ms", subjects[i].name, (long long)(clock_ms() - begin));
    }
    return tap_done();
}
