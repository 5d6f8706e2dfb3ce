-- Grants several locks, all or none.
--
-- {pack} requests in the order of names: a JSON array of [name, owner, request, ticket], name and
-- owner in hexadecimal
-- {count} how many  {permits}  {ttl}  {host}  {pid}  {program}  {note}  {unfair}
-- columns: the number of the lock, from 1; its token; now. Or one row without a token, and nothing
-- was written. That lock is held, or others are before us in its queue, or another transaction has
-- it in progress.
--
-- Atomic: the procedure does it in one transaction.

/* rowlock:acquire_all */
CALL rowlock_grant_all({pack}, {count}, {permits}, {ttl}, {host}, {pid}, {program}, {note},
                       {unfair})
