-- What people write by hand on MySQL and MariaDB. See postgres.sql beside this.

-- way pairs | hand-written transaction | begin bump! insert! commit delete! | BEGIN; bump the token row; INSERT the lock row; COMMIT; DELETE
-- way pairs | hand-written procedure | single! delete! | CALL of a procedure with that transaction; DELETE: 2 round trips
-- way pairs | bare INSERT + DELETE | insert! delete! | no token: not a safe lock, for context only
-- way sweep | bare DELETE in batches | sweep | DELETE … LIMIT 500, again and again
-- way sweep | bare DELETE with a cursor | sweep_on | the same behind the last name: MariaDB's RETURNING; waits for locked rows
-- way learn | | widen learn! |
-- way heartbeat | bare UPDATE | renew_all= | UPDATE … JOIN JSON_TABLE of a text that is written once
-- way lock | GET_LOCK | lock! | no lease, no token, and gone with its connection
-- way unlock | | unlock! |
-- way try lock | | try_lock |
-- way own pair | GET_LOCK | lock! unlock! | no lease, no token, and gone with its connection
-- way batch | UPDATE … JOIN JSON_TABLE | update_json= |
-- way batch | UPDATE … JOIN of SELECTs | update_selects= |
-- way insert | INSERT … ON DUPLICATE KEY | insert_tuples= |
-- way hot lock | | begin read_locked! work write! commit | SELECT … FOR UPDATE
-- way make places | | drop_ours drop_theirs make_ours make_theirs make_grant |
-- way drop places | | drop_ours drop_theirs |
-- way fill | | fill analyze |
-- way grow | | grow_locks grow_tokens analyze analyze_tokens |
-- way log | redo | written! |

-- text clock
TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
-- text row
VALUES ({name}, 0, 0, {owner}, {token}, 4711, {clock}, {clock} + {ttl}, {ttl}, {host}, {pid}, 'bench', '')
-- step begin, as text
START TRANSACTION
-- step commit, as text
COMMIT
-- step bump: token
UPDATE rowlock_tokens SET token = LAST_INSERT_ID(token + 1),
    granted = {clock} WHERE name = {name}
-- step insert
INSERT INTO rowlock_locks {columns}
{row}
-- A deadlock is as good as a lock that is held.
-- step attempt, deadlock busy
INSERT IGNORE INTO rowlock_locks {columns}
{row}
-- What one would move into the server to save round trips.
-- step make_grant, as text
CREATE PROCEDURE rowlock_bench_hand.hand_grant(p_name VARBINARY(255), p_owner VARBINARY(255),
    p_ttl BIGINT, p_host VARBINARY(255), p_pid BIGINT) MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
    DECLARE v_now BIGINT DEFAULT {clock};
    START TRANSACTION;
    UPDATE rowlock_tokens SET token = LAST_INSERT_ID(token + 1), granted = v_now
    WHERE name = p_name;
    INSERT INTO rowlock_locks {columns}
    VALUES (p_name, 0, 0, p_owner, LAST_INSERT_ID(), 4711, v_now, v_now + p_ttl, p_ttl, p_host,
        p_pid, 'bench', '');
    COMMIT;
    SELECT LAST_INSERT_ID();
END
-- step single: token
CALL hand_grant({name}, {owner}, {ttl}, {host}, {pid})
-- step renew
UPDATE rowlock_locks
SET expires = {clock} + {ttl},
    renewals = renewals + 1
WHERE name = {name} AND slot = 0 AND owner = {owner} AND token = {token}
-- step sweep
DELETE FROM rowlock_locks WHERE expires <= {now} ORDER BY name, slot LIMIT {batch_size}
-- step sweep_on: after
DELETE FROM rowlock_locks WHERE name > {after} AND expires <= {now} ORDER BY name, slot
LIMIT {batch_size} /*M!100600 RETURNING name */
-- step widen, as text
SET SESSION group_concat_max_len = 100000000
-- step learn, as text: leases standing
SELECT CONCAT('[', GROUP_CONCAT(JSON_ARRAY(CONVERT(name USING utf8mb4), slot,
    CONVERT(owner USING utf8mb4), token) ORDER BY name, slot), ']'), COUNT(*) FROM rowlock_locks
-- step renew_all
UPDATE JSON_TABLE({leases}, '$[*]' COLUMNS (name VARBINARY(255) PATH '$[0]',
    slot BIGINT PATH '$[1]', owner VARBINARY(255) PATH '$[2]', token BIGINT PATH '$[3]')) w
STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
    ON l.name = w.name AND l.slot = w.slot AND l.owner = w.owner AND l.token = w.token
SET l.expires = {clock} + {ttl},
    l.renewals = l.renewals + 1
-- step lock
SELECT 1 FROM (SELECT GET_LOCK({name}, 1000000) AS got) l WHERE got = 1
-- step unlock
SELECT 1 FROM (SELECT RELEASE_LOCK({name}) AS gone) l WHERE gone = 1
-- step try_lock
SELECT 1 FROM (SELECT GET_LOCK({name}, 0) AS got) l WHERE got = 1
-- step update
UPDATE {table} SET amount = {amount}, note = {note}, version = version + 1
WHERE id = {id} AND version = {version}
-- step update_json
UPDATE JSON_TABLE(CONVERT({json} USING utf8mb4), '$[*]' COLUMNS (id BIGINT PATH '$[0]',
    version BIGINT PATH '$[1]', amount BIGINT PATH '$[2]', note VARCHAR(40) PATH '$[3]')) v
JOIN {table} t ON t.id = v.id
SET t.amount = v.amount, t.note = v.note, t.version = t.version + 1 WHERE t.version = v.version
-- step update_selects, as text
UPDATE {table} t JOIN ({selects}) v ON t.id = v.id
SET t.amount = v.amount, t.note = v.note, t.version = t.version + 1 WHERE t.version = v.version
-- step insert_tuples, as text
INSERT INTO {table} (id, amount, note, version) VALUES {tuples}
ON DUPLICATE KEY UPDATE version = {table}.version
-- step read_locked: amount version
SELECT amount, version FROM {table} WHERE id = 1 FOR UPDATE
-- step write
UPDATE {table} SET amount = {amount} + 1, version = version + 1 WHERE id = 1 AND version = {version}
-- step drop_ours, as text
DROP DATABASE IF EXISTS rowlock_bench_ours
-- step drop_theirs, as text
DROP DATABASE IF EXISTS rowlock_bench_hand
-- step make_ours, as text
CREATE DATABASE rowlock_bench_ours
-- step make_theirs, as text
CREATE DATABASE rowlock_bench_hand
-- step counter
INSERT IGNORE INTO rowlock_tokens (name, token, granted) VALUES ({name}, 0, 0)
-- step make_table, as text
CREATE TABLE {table} (id BIGINT NOT NULL PRIMARY KEY, amount BIGINT NOT NULL,
    note VARCHAR(40) NOT NULL, version BIGINT NOT NULL)
-- step fill_table, as text
INSERT INTO {table}
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
SELECT a.i * 1000 + b.i + 1, 0, 'as it was', 1 FROM n a, n b WHERE a.i * 1000 + b.i < {count}
ORDER BY a.i, b.i
-- step fill, as text
INSERT INTO rowlock_locks {columns}
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
SELECT CONCAT('expired ', a.i * 1000 + b.i + 1), 0, 0, MD5(b.i), b.i + 1, b.i + 1, 1, 2, 1, 'host',
    1, 'bench', '' FROM n a, n b WHERE a.i * 1000 + b.i < {count} ORDER BY a.i, b.i
-- step grow_locks, as text
INSERT INTO rowlock_locks {columns}
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
SELECT CONCAT('grown ', LPAD(a.i * 1000 + b.i + 1, 8, '0')), 0, 0, MD5(b.i), b.i + 1, b.i + 1, 1,
    9000000000000000, 1, 'host', 1, 'bench', '' FROM n a, n b
WHERE a.i * 1000 + b.i >= {standing} AND a.i * 1000 + b.i < {count} ORDER BY a.i, b.i
-- step grow_tokens, as text
INSERT INTO rowlock_tokens (name, token, granted)
WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
SELECT CONCAT('grown ', LPAD(a.i * 1000 + b.i + 1, 8, '0')), b.i + 1, 1 FROM n a, n b
WHERE a.i * 1000 + b.i >= {standing} AND a.i * 1000 + b.i < {count} ORDER BY a.i, b.i
-- step analyze_tokens, as text
ANALYZE TABLE rowlock_tokens
-- step analyze, as text
ANALYZE TABLE rowlock_locks
-- MariaDB and MySQL call it by different names.
-- step written, as text: - number
SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_lsn_current', 'Innodb_redo_log_current_lsn')
-- step ping, as text
DO 1
-- Bytes of tables with their indexes, none, rows that purge has not removed yet (of the server).
-- step sizes, as text: number standing count
SELECT SUM(FILE_SIZE), 0,
    (SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len')
FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME LIKE CONCAT(DATABASE(), '/%')
-- step describe, as text: text
SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', '', 'MySQL '), VERSION(),
    ', innodb_flush_log_at_trx_commit ', @@innodb_flush_log_at_trx_commit)
-- Those that clients sent, not those of procedures.
-- step statements, as text: - number
SHOW GLOBAL STATUS LIKE 'Questions'
-- step connections, as text: - number
SHOW GLOBAL STATUS LIKE 'Threads_connected'
