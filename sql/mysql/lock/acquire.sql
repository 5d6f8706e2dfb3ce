-- Grants the lock. Or reports its holder, or that others are first, and writes nothing.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- {ticket}, 0: none  {unfair}: 1 passes the waiters  {joins}: 1 makes the grant part of the
-- caller's transaction
-- columns: the answer of a try (sql/README.md). No row: in flight in another transaction. Only the
-- first five columns come with a new grant, and if only the queue keeps us out. Each further column
-- would cost both sides half a microsecond.
--
-- Atomic: the procedure reads without a transaction whether the lock is held and who is first. Then
-- one transaction locks the name's token row, makes the lock row, and moves the token on. The last
-- SELECT reports the state after that.

/* rowlock:acquire */
CALL rowlock_grant({name}, {permits}, {owner}, {request}, {ttl}, {host}, {pid}, {program}, {note},
                   {ticket}, {unfair}, {joins})
