/* SPDX-License-Identifier: MIT
 *
 * What only PostgreSQL has to do with a name's first grant: an advisory lock stands in for the token row that
 * is not there yet. No other client can take it, and no other installation meets it. */
#include "scene.h"

/* The keys that a role could guess that may only connect. */
static void guessed_keys(const struct contract *c)
{
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *db = must_open(c->url);
    OWNED(lock) rowlock_lock *lock = must_lock(db, "first guessed");
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name = 'first guessed'");
    raw_run(c->raw, session,
            "SELECT pg_advisory_lock(hashtextextended('rowlock first guessed', 0)), "
            "pg_advisory_lock(hashtext('first guessed')), pg_advisory_lock(7237970109966541166)");
    is_result(db, try_lock(lock, TTL_MS), ROWLOCK_OK, "a first grant beside advisory locks");
    is_result(db, rowlock_install(db), ROWLOCK_OK, "and an installation");
}

/* A first grant in a transaction, and one of the same name in other tables of the same database. */
static void two_installations(const struct contract *c)
{
    OWNED(text) char *url = fresh_tables(c, "first_");
    OWNED(session) void *session = c->raw->open(c->url);
    OWNED(db) rowlock_db *tx = must_adopt(c->raw, session, NULL);
    OWNED(db) rowlock_db *db = must_open(url), *same = must_open(c->url);
    OWNED(lock)
    rowlock_lock *here = must_lock(tx, "first twice"), *there = must_lock(db, "first twice");
    OWNED(lock) rowlock_lock *rival = must_lock(same, "first twice");
    exec_on(c, "DELETE FROM rowlock_tokens WHERE name = 'first twice'");
    raw_run(c->raw, session, "BEGIN");
    is_result(tx, rowlock_tx_acquire(here, tx, NULL), ROWLOCK_OK, "a first grant in a transaction");
    is_result(same, try_lock(rival, TTL_MS), ROWLOCK_BUSY, "keeps out a rival that tries");
    is_result(db, try_lock(there, TTL_MS), ROWLOCK_OK, "but no client in other tables");
    raw_run(c->raw, session, "ROLLBACK");
    is_result(same, try_lock(rival, TTL_MS), ROWLOCK_OK, "rolled back, it is free");
}

void contract_postgres_first(const struct contract *c)
{
    guessed_keys(c);
    two_installations(c);
}
