-- Grant several locks, all or none.
--
-- {pack} requests in the order of names: a JSON array of [name, owner, request, ticket], name and
-- owner in hexadecimal
-- {count} how many they are  {permits}  {ttl}  {host}  {pid}  {program}  {note}  {unfair}
-- columns: which of them, counted from 1; its token; now. Or one row without a token: that one is
-- held, others are before us in its line, or another transaction is at it, and nothing was written.
--
-- Atomic: the procedure does it in one transaction.

/* rowlock:acquire_all */
CALL rowlock_grant_all({pack}, {count}, {permits}, {ttl}, {host}, {pid}, {program}, {note},
                       {unfair})
