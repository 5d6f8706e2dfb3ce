-- Grant the lock, or say who holds it and write nothing.
--
-- ? name  ? slot  ? owner  ? attempt  ? ttl  ? host  ? pid  ? program  ? note  ? joins: 1 to be a part of
-- the caller's transaction
-- columns: granted, then the row. No row, or one not granted and expired: in flight in another
-- transaction.
--
-- Atomic: the procedure (schema.sql) reads without a transaction whether the lock is held; if not,
-- one transaction takes the name's token row, upserts the lock row if it is absent, expired or our
-- own, and bumps the token. The last SELECT tells what stands then.

/* rowlock:acquire */
CALL rowlock_grant(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
