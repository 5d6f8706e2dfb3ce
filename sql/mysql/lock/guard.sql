-- Guards the caller's transaction: this lock is granted to no one else before the transaction ends.
--
-- {name}  {slot}  {owner}  {token}  {changes}: 1 if several nodes take writes
-- columns: the newest token of the name, NULL: none; whether the grant is there
--
-- Runs inside the caller's transaction. The procedure share-locks the token row. Every grant and
-- every break changes that row, so none of them commits before the caller does. Renewals and
-- releases change only the lock row, which is not locked. At SERIALIZABLE a plain read would lock
-- it, so only the row of a shared or counted grant is read there. A locking read sees the newest
-- row at any isolation level.
--
-- A row lock is local to its node in Galera, and in Group Replication in multi-primary mode. There
-- the procedure changes the token row (guards + 1). If two transactions change the same row on two
-- nodes, the cluster refuses the later one: the caller's COMMIT, or the grant. Several guards of
-- one name refuse each other too.
--
-- By hand, for an exclusive grant, whose token must be the newest:
--     SELECT token FROM rowlock_tokens WHERE name = {name} LOCK IN SHARE MODE
-- If several nodes take writes, one row must be changed:
--     UPDATE rowlock_tokens SET guards = guards + 1 WHERE name = {name} AND token = {token}
-- Other grants of a shared or counted lock also move the token on. For those a second statement
-- checks that the row is there. A conflicting grant would have removed it. At READ COMMITTED:
--     SELECT 1 FROM rowlock_locks
--      WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}

/* rowlock:guard */
CALL rowlock_guard({name}, {slot}, {owner}, {token}, {changes})
