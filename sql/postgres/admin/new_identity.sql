-- Give the installation a new identity: after a restore beside the original, which has the same.
--
-- Atomic: one UPDATE by key. It locks the row as fold.sql does, so that it waits for first grants
-- in flight: their advisory locks are made of the identity. Repeated after a lost answer it gives
-- yet another one, which is as good.

/* rowlock:new_identity */
UPDATE rowlock_meta SET identity = pg_catalog.md5(pg_catalog.random()::text
                                                  || pg_catalog.clock_timestamp()::text
                                                  || pg_catalog.pg_backend_pid()::text)
 WHERE id = (SELECT id FROM rowlock_meta WHERE id = 1 FOR UPDATE)
