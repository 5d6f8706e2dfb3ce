-- Grant the lock, or say who holds it or that others are first, and write nothing.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}  {ticket}, 0: none
-- {unfair}: 1 to pass by those who stand in line  {joins}: 1 to be a part of the caller's
-- transaction
-- columns: the answer of a try (sql/README.md). A new grant, and one who is only kept out by the
-- queue, get the first five columns alone: a grant is what was asked for, and each column costs
-- both sides half a microsecond. No row at all: in flight in another transaction.
--
-- Atomic: the procedure reads without a transaction whether the lock is held and who is first; then
-- one transaction takes the name's token row, makes the lock row, and bumps the token. The last
-- SELECT tells what stands then.

/* rowlock:acquire */
CALL rowlock_grant({name}, {permits}, {owner}, {request}, {ttl}, {host}, {pid}, {program}, {note},
                   {ticket}, {unfair}, {joins})
