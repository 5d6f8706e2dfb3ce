/* SPDX-License-Identifier: MIT
 *
 * The scene of tests about the application's own transaction; see scene.h. The promises about such
 * transactions are in tests/lock/. */
#include "scene.h"

void scene_table(const struct contract *c)
{
    exec_on(c, "DROP TABLE IF EXISTS tx_data");
    exec_on(c, "CREATE TABLE tx_data (id INTEGER, v VARCHAR(20), fence BIGINT)%s",
            is_mysql(c) ? " ENGINE = InnoDB" : "");
}

void scene_drop_table(const struct contract *c)
{
    exec_on(c, "DROP TABLE tx_data");
}

/* The thread sanitizer makes everything slower. */
int64_t patience_ms(const struct contract *c)
{
    return slowdown() > 1 ? 2000 : c->has_server ? 500 : 250;
}

rowlock_db *open_impatient(const struct contract *c, const char *url)
{
    return must_open_with(url, OPTIONS(db, .statement_timeout_ms = patience_ms(c)));
}

struct scene scene_open(const struct contract *c, const char *isolation, const char *name,
                        bool shared)
{
    exec_on(c, "DELETE FROM rowlock_locks WHERE name = '%s'", name);
    exec_on(c, "DELETE FROM tx_data");
    struct scene s = {.c = c, .isolation = isolation, .name = name};
    s.session = c->raw->open(c->url);
    s.tx = must_adopt(c->raw, s.session, NULL);
    s.own = shared ? s.tx : must_open(c->url);
    /* A try that waits, though it must not, lasts longer than AT_ONCE_MS on a server. */
    s.rival = c->has_server ? must_open_with(c->url, OPTIONS(db, .statement_timeout_ms = 120000))
                            : open_impatient(c, c->url);
    s.lock = must_lock(s.own, name);
    s.wanted = must_lock(s.rival, name);
    return s;
}

void scene_close(struct scene *s)
{
    close_locks(s->lock, s->wanted);
    rowlock_db_close(s->tx);
    if (s->own != s->tx)
        rowlock_db_close(s->own);
    rowlock_db_close(s->rival);
    s->c->raw->close(s->session);
    exec_on(s->c, "DELETE FROM rowlock_locks WHERE name = '%s'", s->name);
}

/* The isolation levels that this database has. */
const char *const *scene_isolations(const struct contract *c)
{
    static const char *const levels[] = {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE", NULL};
    static const char *const kinds[] = {"DEFERRED", "IMMEDIATE", NULL};
    return c->has_server ? levels : kinds;
}

bool scene_is_immediate(const struct scene *s)
{
    return strcmp(s->isolation, "IMMEDIATE") == 0;
}

void scene_run(const struct scene *s, const char *sql)
{
    raw_run(s->c->raw, s->session, "%s", sql);
}

void begin_at(const struct contract *c, void *session, const char *isolation)
{
    if (is_mysql(c))
        raw_run(c->raw, session, "SET TRANSACTION ISOLATION LEVEL %s", isolation);
    raw_run(c->raw, session, "BEGIN %s%s", is_postgres(c) ? "ISOLATION LEVEL " : "",
            is_mysql(c) ? "" : isolation);
}

void scene_begin(const struct scene *s)
{
    begin_at(s->c, s->session, s->isolation);
}

void scene_work(const struct scene *s)
{
    scene_run(s, "INSERT INTO tx_data VALUES (1, 'work', 0)");
}

void scene_work_stands(const struct scene *s, int rows, const char *what)
{
    tap_is_int(int_on(s->c, "SELECT count(*) FROM tx_data"), rows, "%s", what);
}

/* After a refusal the transaction goes on. */
void scene_goes_on(const struct scene *s, const rowlock_db *tx, const char *what)
{
    tap_is_int(error_of(tx).transaction_over, 0, "%s: the transaction can go on", what);
    scene_work(s);
    scene_run(s, "COMMIT");
    scene_work_stands(s, 1, "and does, and commits");
}

void scene_guard(const struct scene *s, int want, const char *what)
{
    is_result(s->tx, rowlock_guard(s->lock, s->tx), want, "%s: %s", s->isolation, what);
}

/* A try waits for another writer of a SQLite file. Elsewhere a try waits for no other
 * transaction. */
void scene_rival_tries(const struct scene *s, int want, const char *what)
{
    int64_t start = clock_ms();
    int result = try_lock(s->wanted, TTL_MS);
    int64_t took = clock_ms() - start;
    is_result(s->rival, result, want, "%s: %s", s->isolation, what);
    if (s->c->has_server)
        tap_ok(took < slow_ms(AT_ONCE_MS), "at once (%lld ms)", (long long)took);
}

int64_t scene_hold(const struct scene *s)
{
    is_result(s->own, try_lock(s->lock, TTL_MS), ROWLOCK_OK, "%s: a lock is held", s->isolation);
    return rowlock_lock_token(s->lock);
}

int64_t scene_held_too_long(const struct scene *s)
{
    int64_t token = scene_hold(s);
    end_lease(s->c, s->lock);
    return token;
}

void scene_taken_over(const struct scene *s, int64_t token)
{
    scene_rival_tries(s, ROWLOCK_OK, "the rival takes over");
    tap_ok(rowlock_lock_token(s->wanted) > token, "with a higher token");
}
