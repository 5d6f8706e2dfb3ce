-- Guards the caller's transaction: this lock is granted to no one else before the transaction ends.
--
-- {name}  {slot}  {owner}  {token}
-- columns: the newest token of the name; whether the grant is there. No row: lost.
--
-- Runs inside the caller's transaction. It share-locks the token row. Every grant and every break
-- changes that row, so none of them commits before the caller does. Renewals and releases change
-- only the lock row, and go on. FOR KEY SHARE would not be enough, since a new token does not
-- change the key. After a wait the row is the newest. Above READ COMMITTED PostgreSQL fails with
-- 40001 if the snapshot has an older one.
--
-- By hand, for an exclusive grant, whose token must be the newest:
--     SELECT token FROM rowlock_tokens WHERE name = {name} FOR SHARE
-- Other grants of a shared or counted lock also move the token on. For those a second statement
-- checks that the row is there. A conflicting grant would have removed it.
--     SELECT FROM rowlock_locks
--      WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}

/* rowlock:guard */
SELECT o_token, o_stands FROM rowlock_guard({name}::text, {slot}::bigint, {owner}::text,
                                            {token}::bigint)
