-- Write down how far a walk has come.
--
-- $1 to $9: name, step, position, pending, rows walked by, written, left, conflicts, failed
-- rows changed: 1 or more
--
-- One upsert of one row, in the transaction that wrote the rows. The walk's own lock lets nobody else here.

/* rowlock:walk_save */
INSERT INTO rowlock_walks (name, step, position, pending, walked, written, untouched, conflicts, failed, changed)
VALUES ($1::text, $2::bigint, $3::text, $4::text, $5::bigint, $6::bigint, $7::bigint, $8::bigint, $9::bigint, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) * 1000000::double precision)::bigint)
ON CONFLICT (name) DO UPDATE SET step = excluded.step, position = excluded.position, pending = excluded.pending,
   walked = excluded.walked, written = excluded.written, untouched = excluded.untouched,
   conflicts = excluded.conflicts, failed = excluded.failed, changed = excluded.changed
