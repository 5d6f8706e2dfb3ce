-- Gives the installation a new identity. It is for a database that was restored beside the
-- original, and so has the same identity.
--
-- Atomic: one UPDATE by key. It locks the row as fold.sql does, so it waits for first grants in
-- flight. Their advisory locks depend on the identity. If it is sent again after a lost answer, a
-- second new identity replaces the first, which does no harm.

/* rowlock:new_identity */
UPDATE rowlock_meta SET identity = pg_catalog.md5(pg_catalog.random()::text
                                                  || pg_catalog.clock_timestamp()::text
                                                  || pg_catalog.pg_backend_pid()::text)
 WHERE id = (SELECT id FROM rowlock_meta WHERE id = 1 FOR UPDATE)
