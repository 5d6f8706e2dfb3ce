-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- {name}  {slot}  {owner}  {token}
-- columns: the newest token of the name; whether the grant stands. No row: it is lost.
--
-- Run inside the caller's transaction. Every grant and every break changes the token row, so none
-- can commit between this share lock and the caller's commit. Renewals and releases change only the
-- lock row, and go on. FOR KEY SHARE would not do: a bump does not touch the key. After a wait the
-- row is the newest; above READ COMMITTED PostgreSQL says 40001 if that is not the snapshot's.
--
-- By hand, for an exclusive grant, whose token must be the newest:
--     SELECT token FROM rowlock_tokens WHERE name = {name} FOR SHARE
-- Other grants of a shared or counted lock bump the token too. For those look, in a second
-- statement, whether the row is there: every grant that would conflict with it has removed it.
--     SELECT FROM rowlock_locks
--      WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}

/* rowlock:guard */
SELECT o_token, o_stands FROM rowlock_guard({name}::text, {slot}::bigint, {owner}::text,
                                            {token}::bigint)
