-- What people write by hand on PostgreSQL: ways, which are made of steps. tests/bench/hand.c says how to read this.
-- A new competitor is one line here, and the steps that it needs.

-- way pairs | hand-written transaction | begin bump! insert! commit delete! | BEGIN; bump the token row; INSERT the lock row; COMMIT; DELETE
-- way pairs | hand-written one statement | single! delete! | WITH c AS (upsert of the token) INSERT of the lock row; DELETE: 2 round trips
-- way pairs | bare INSERT + DELETE | insert! delete! | no token: not a safe lock, for context only
-- way bare pair | | insert! delete! |
-- way sweep | bare DELETE in batches | sweep | DELETE of 500 rows found by key order, again and again
-- way learn | | learn! |
-- way heartbeat | bare UPDATE | renew_all= | UPDATE … FROM unnest of arrays, which are written once
-- way lock | pg_advisory_lock | lock | no lease, no token, and gone with its connection
-- way unlock | | unlock |
-- way try lock | | try_lock |
-- way own pair | pg_advisory_lock | lock! unlock! | no lease, no token, and gone with its connection
-- way batch | UPDATE … FROM unnest | update_set= |
-- way batch | pipelined row by row | begin update~ commit | in one transaction, a hundred on the way
-- way insert | INSERT … ON CONFLICT | insert_set= |
-- way hot lock | | begin read_locked! work write! commit | SELECT … FOR UPDATE
-- way make places | | drop_places make_ours make_theirs |
-- way drop places | | drop_places |
-- way fill | | fill analyze |
-- way grow | | grow_locks grow_tokens analyze analyze_tokens |
-- way settle | | checkpoint |
-- way tidy | | vacuum |
-- way log | WAL | written! |

-- text clock
(date_part('epoch', clock_timestamp()) * 1000000)::bigint
-- text row
SELECT {name}, 0, 0, {owner}, {token}::bigint, {request}::bigint, now, now + {ttl}::bigint,
    {ttl}::bigint, {host}, {pid}::bigint, {program}, ''
FROM (SELECT {clock} AS now) c
-- step begin
BEGIN
-- step commit
COMMIT
-- step bump: token
UPDATE rowlock_tokens SET token = token + 1, granted = {clock} WHERE name = {name} RETURNING token
-- step insert
INSERT INTO rowlock_locks {columns}
{row} RETURNING expires
-- step attempt
INSERT INTO rowlock_locks {columns}
{row} ON CONFLICT DO NOTHING
-- step single: token
WITH c AS (
    INSERT INTO rowlock_tokens AS t (name, token, granted)
    VALUES ({name}, 1, {clock})
    ON CONFLICT (name) DO UPDATE SET token = t.token + 1, granted = excluded.granted
    RETURNING token, granted)
INSERT INTO rowlock_locks {columns}
SELECT {name}, 0, 0, {owner}, token, {request}::bigint, granted, granted + {ttl}::bigint,
    {ttl}::bigint, {host}, {pid}::bigint, {program}, ''
FROM c RETURNING token, expires
-- step renew
UPDATE rowlock_locks
SET expires = {clock} + {ttl}::bigint,
    renewals = renewals + 1
WHERE name = {name} AND slot = 0 AND owner = {owner} AND token = {token} RETURNING expires
-- step sweep: after
DELETE FROM rowlock_locks WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM rowlock_locks WHERE name > {after} AND expires <= {now}::bigint
    ORDER BY name, slot LIMIT {batch_size})) RETURNING name
-- step learn: names slots owners tokens standing
SELECT array_agg(name), array_agg(slot), array_agg(owner), array_agg(token), count(*)
FROM (SELECT * FROM rowlock_locks ORDER BY name, slot) l
-- step renew_all
UPDATE rowlock_locks l
SET expires = {clock} + {ttl}::bigint,
    renewals = l.renewals + 1
FROM unnest({names}::text[], {slots}::bigint[], {owners}::text[], {tokens}::bigint[])
    AS w (name, slot, owner, token)
WHERE l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
-- step lock
SELECT pg_advisory_lock(hashtextextended({name}, 0))
-- step unlock
SELECT 1 WHERE pg_advisory_unlock(hashtextextended({name}, 0))
-- step try_lock
SELECT 1 WHERE pg_try_advisory_lock(hashtextextended({name}, 0))
-- step update
UPDATE {table} SET amount = {amount}::bigint, note = {note}::text, version = version + 1
WHERE id = {id}::bigint AND version = {version}::bigint
-- step update_set
UPDATE {table} AS t SET amount = v.amount, note = v.note, version = t.version + 1
FROM unnest({ids}::bigint[], {versions}::bigint[], {amounts}::bigint[], {notes}::text[])
    AS v (id, version, amount, note)
WHERE t.id = v.id AND t.version = v.version RETURNING t.id, t.version
-- step insert_set
INSERT INTO {table} (id, amount, note, version)
SELECT v.*, 1 FROM unnest({ids}::bigint[], {amounts}::bigint[], {notes}::text[]) AS v
ON CONFLICT (id) DO NOTHING
-- step read_locked: amount version
SELECT amount, version FROM {table} WHERE id = 1 FOR UPDATE
-- step write
UPDATE {table} SET amount = {amount}::bigint + 1, version = version + 1
WHERE id = 1 AND version = {version}::bigint
-- step drop_places, as text
DROP SCHEMA IF EXISTS rowlock_bench_ours, rowlock_bench_hand CASCADE
-- step make_ours, as text
CREATE SCHEMA rowlock_bench_ours
-- step make_theirs, as text
CREATE SCHEMA rowlock_bench_hand
-- step counter
INSERT INTO rowlock_tokens (name, token, granted) VALUES ({name}, 0, 0) ON CONFLICT (name) DO NOTHING
-- step make_table, as text
CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, amount BIGINT NOT NULL, note text NOT NULL,
    version BIGINT NOT NULL)
-- step fill_table, as text
INSERT INTO {table} SELECT i, 0, 'as it was', 1 FROM generate_series(1, {count}) i
-- step fill, as text
INSERT INTO rowlock_locks {columns}
SELECT 'expired ' || i, 0, 0, md5(i::text), i, i, 1, 2, 1, 'host', 1, 'bench', ''
FROM generate_series(1, {count}) i
-- step grow_locks, as text
INSERT INTO rowlock_locks {columns}
SELECT 'grown ' || lpad(i::text, 8, '0'), 0, 0, md5(i::text), i, i, 1, 9000000000000000, 1, 'host',
    1, 'bench', ''
FROM generate_series({standing} + 1, {count}) i
-- step grow_tokens, as text
INSERT INTO rowlock_tokens (name, token, granted)
SELECT 'grown ' || lpad(i::text, 8, '0'), i, 1 FROM generate_series({standing} + 1, {count}) i
-- step analyze_tokens, as text
ANALYZE rowlock_tokens
-- step analyze, as text
ANALYZE rowlock_locks
-- The first change of a page after a checkpoint logs the page, so it comes before the log is measured.
-- step checkpoint, as text
CHECKPOINT
-- step vacuum, as text
VACUUM rowlock_locks
-- step written, as text: number
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn
-- step ping, as text
SELECT 1
-- Bytes of tables, bytes of indexes, dead rows.
-- step sizes, as text: number standing count
SELECT sum(pg_table_size(relid)), sum(pg_indexes_size(relid)), sum(n_dead_tup)
FROM pg_stat_user_tables WHERE schemaname = current_schema()
-- step plain, as text
ALTER TABLE rowlock_locks RESET (fillfactor, autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay)
-- step describe, as text: text
SELECT format('PostgreSQL %s, synchronous_commit %s, fsync %s', current_setting('server_version'),
    current_setting('synchronous_commit'), current_setting('fsync'))
-- Each is a transaction here. Sessions tell of theirs a second later, and when they are idle ten.
-- step statements, as text: number
SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()
-- step connections, as text: number
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
