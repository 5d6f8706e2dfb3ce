-- The tables of rowlock, version 1, for SQLite 3.35 and later.
--
-- `rowlock install` runs this, and `rowlock install --print` prints it. {tables} is a file of this
-- folder. It may run again, and in many sessions at once.

/* rowlock:schema */
BEGIN IMMEDIATE;
{tables}
INSERT INTO rowlock_meta (id, version, compat, code, identity, token_floor, swept)
VALUES (1, 1, 1, 1, lower(hex(randomblob(16))),
        (SELECT coalesce(max(t.token), 0) FROM rowlock_tokens t), -{clock})
ON CONFLICT (id) DO NOTHING;
COMMIT;
