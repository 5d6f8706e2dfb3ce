-- Gives the installation a new identity. It is for a database that was restored beside the
-- original, and so has the same identity.
--
-- Atomic: one UPDATE by key. If it is sent again after a lost answer, a second new identity
-- replaces the first, which does no harm.

/* rowlock:new_identity */
UPDATE rowlock_meta SET identity = lower(hex(randomblob(16))) WHERE id = 1
