-- What version our tables have.
-- columns: version, identity, token_floor. No row: an installation was cut short.

/* rowlock:meta */
SELECT version, identity, token_floor FROM rowlock_meta WHERE id = 1
