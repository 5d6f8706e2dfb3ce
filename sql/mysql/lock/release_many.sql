-- Releases the locks of many handles, each for itself.
--
-- {pack} grants in the order of names: a JSON array of [name, slot, owner, token], name and owner
-- in hexadecimal
-- {count} how many
-- columns: the number of the grant, from 1, and 1: it was released. A negative number: another
-- transaction has the row locked. No row: lost.
--
-- Atomic: the procedure locks the rows that it can have, with SKIP LOCKED, and deletes those in one
-- transaction. It sends no wake-up: handles of a pool keep none (await.sql).

/* rowlock:release_many */
CALL rowlock_release_many({pack}, {count})
