-- Give the installation a new identity: after a restore beside the original, which has the same.
--
-- Atomic: one UPDATE by key. Repeated after a lost answer it gives yet another one, which is as
-- good.

/* rowlock:new_identity */
UPDATE rowlock_meta SET identity = lower(hex(randomblob(16))) WHERE id = 1
