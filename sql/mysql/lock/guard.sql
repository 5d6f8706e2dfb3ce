-- Guard the caller's transaction: while it lasts, nobody is granted this lock.
--
-- {name}  {slot}  {owner}  {token}  {changes}: 1 where several nodes take writes
-- columns: the newest token of the name, NULL if it has none; whether the grant stands
--
-- Run inside the caller's transaction. The procedure share-locks the token row. Every grant and
-- every break changes it, so none can commit between this and the caller's commit. Renewals and
-- releases change only the lock row, which is not locked: at SERIALIZABLE, where a plain read
-- would, only that of a shared or counted lock is read. A locking read sees the newest row at any
-- isolation.
--
-- A row lock is local to its node in Galera, and in Group Replication in multi-primary mode. There
-- the procedure changes the token row (guards + 1). Of two transactions that change the same row on
-- two nodes, the cluster refuses the later one: the caller's COMMIT, or the grant. Several guards
-- of one name refuse each other too.
--
-- By hand, for an exclusive grant, whose token must be the newest:
--     SELECT token FROM rowlock_tokens WHERE name = {name} LOCK IN SHARE MODE
-- and where several nodes take writes, one row must be changed:
--     UPDATE rowlock_tokens SET guards = guards + 1 WHERE name = {name} AND token = {token}
-- Other grants of a shared or counted lock bump the token too. For those look then whether the row
-- is there: every grant that would conflict with it has removed it. At READ COMMITTED:
--     SELECT 1 FROM rowlock_locks
--      WHERE name = {name} AND slot = {slot} AND owner = {owner} AND token = {token}

/* rowlock:guard */
CALL rowlock_guard({name}, {slot}, {owner}, {token}, {changes})
