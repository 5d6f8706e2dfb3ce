-- What is the same on all databases, as far as they have the steps. See postgres.sql beside this.

-- way hold | | insert! |
-- way busy | bare SELECT | look! | the same row by its key, prepared; no clock, no verdict
-- way renew | bare UPDATE | renew! | expires and renewals of the same row, by key, owner and token
-- way attempt | | attempt |
-- way leave | | delete! |
-- way batch | row by row | begin update* commit | in one transaction, prepared
-- way hot try | | read! work write |
-- way hot atomic | | add! |
-- way counter | | counter |
-- way clear | | clear_locks clear_tokens |
-- way bare | | insert! delete! |
-- way sizes | | sizes! |
-- way plain | | plain |
-- way rows left | | rows_left! |
-- way make table | | drop_table make_table fill_table |
-- way ping | | ping |
-- way describe | | describe! |
-- way statements | | statements! |
-- way connections | | connections! |

-- text columns
(name, slot, permits, owner, token, request, acquired, expires, ttl, host, pid, program, note)
-- MySQL alone has deadlocks here. The row stays until we delete it, so then we try again.
-- step delete, deadlock again
DELETE FROM rowlock_locks WHERE name = {name} AND slot = 0 AND owner = {owner} AND token = {token}
-- step look
SELECT name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note
FROM rowlock_locks WHERE name = {name} AND slot = 0
-- step read: amount version
SELECT amount, version FROM {table} WHERE id = 1
-- step add
UPDATE {table} SET amount = amount + 1, version = version + 1 WHERE id = 1
-- step clear_locks, as text
DELETE FROM rowlock_locks
-- step clear_tokens, as text
DELETE FROM rowlock_tokens
-- step rows_left, as text: number
SELECT (SELECT count(*) FROM rowlock_locks) + (SELECT count(*) FROM rowlock_waiters)
-- step drop_table, as text
DROP TABLE IF EXISTS {table}
