-- What people write by hand on SQLite. See postgres.sql beside this.

-- way pairs | hand-written transaction | begin bump! insert! commit delete! | BEGIN; bump the token row; INSERT the lock row; COMMIT; DELETE
-- way pairs | bare INSERT + DELETE | insert! delete! | no token: not a safe lock, for context only
-- way sweep | bare DELETE in batches | sweep | DELETE … IN (SELECT … LIMIT 500), again and again
-- way sweep | bare DELETE of a range | sweep_range | DELETE up to the 500th expired row, again and again
-- way learn | | learn |
-- way heartbeat | bare UPDATE | begin renew* commit | BEGIN; a prepared UPDATE for each row; COMMIT
-- way hot lock | | begin read! work write! commit | BEGIN IMMEDIATE
-- way fill | | fill |
-- way grow | | grow_locks grow_tokens |
-- way settle | | checkpoint |
-- way log | WAL file | |

-- text clock
CAST(strftime('%s', 'now') AS INTEGER) * 1000000
    + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
-- text row
SELECT {name}, 0, 0, {owner}, {token}, 4711, now, now + {ttl}, {ttl}, {host}, {pid}, 'bench', ''
FROM (SELECT {clock} AS now)
-- step begin
BEGIN IMMEDIATE
-- step commit
COMMIT
-- step bump: token
UPDATE rowlock_tokens SET token = token + 1, granted = {clock} WHERE name = {name} RETURNING token
-- step insert
INSERT INTO rowlock_locks {columns}
{row} RETURNING expires
-- step attempt
INSERT OR IGNORE INTO rowlock_locks {columns}
{row}
-- step renew
UPDATE rowlock_locks
SET expires = {clock} + {ttl}, renewals = renewals + 1
WHERE name = {name} AND slot = 0 AND owner = {owner} AND token = {token} RETURNING expires
-- step sweep
DELETE FROM rowlock_locks WHERE (name, slot) IN (
    SELECT name, slot FROM rowlock_locks WHERE expires <= {now} ORDER BY name, slot LIMIT {batch_size})
-- step sweep_range
DELETE FROM rowlock_locks WHERE expires <= {now} AND (name, slot) <= (SELECT name, slot FROM (
    SELECT name, slot FROM rowlock_locks WHERE expires <= {now} ORDER BY name, slot LIMIT {batch_size})
    ORDER BY name DESC, slot DESC LIMIT 1)
-- step learn, each row: name owner token
SELECT name, owner, token FROM rowlock_locks ORDER BY name, slot
-- step update
UPDATE {table} SET amount = {amount}, note = {note}, version = version + 1
WHERE id = {id} AND version = {version}
-- step write
UPDATE {table} SET amount = {amount} + 1, version = version + 1 WHERE id = 1 AND version = {version}
-- step counter
INSERT INTO rowlock_tokens (name, token, granted) VALUES ({name}, 0, 0) ON CONFLICT DO NOTHING
-- step make_table, as text
CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, amount BIGINT NOT NULL, note TEXT NOT NULL,
    version BIGINT NOT NULL)
-- step fill_table, as text
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO {table} SELECT i, 0, 'as it was', 1 FROM n
-- step fill, as text
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO rowlock_locks {columns}
SELECT 'expired ' || i, 0, 0, printf('%032d', i), i, i, 1, 2, 1, 'host', 1, 'bench', '' FROM n
-- step grow_locks, as text
WITH RECURSIVE n (i) AS (SELECT {standing} + 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO rowlock_locks {columns}
SELECT printf('grown %08d', i), 0, 0, printf('%032d', i), i, i, 1, 9000000000000000, 1, 'host', 1,
    'bench', '' FROM n
-- step grow_tokens, as text
WITH RECURSIVE n (i) AS (SELECT {standing} + 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO rowlock_tokens (name, token, granted) SELECT printf('grown %08d', i), i, 1 FROM n
-- step checkpoint, as text
PRAGMA wal_checkpoint(TRUNCATE)
-- step ping
SELECT version FROM rowlock_meta
-- step sizes, as text: number
SELECT page_count * page_size FROM pragma_page_count, pragma_page_size
-- step describe, as text: text
SELECT 'SQLite ' || sqlite_version() || ', journal_mode wal, synchronous full'
