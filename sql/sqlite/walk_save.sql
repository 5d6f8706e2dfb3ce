-- Write down how far a walk has come.
--
-- ?1 to ?9: name, step, position, pending, rows walked by, written, left, conflicts, failed
-- rows changed: 1 or more
--
-- One upsert of one row, in the transaction that wrote the rows. The walk's own lock lets nobody else here.

/* rowlock:walk_save */
INSERT INTO rowlock_walks (name, step, position, pending, walked, written, untouched, conflicts, failed, changed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
ON CONFLICT (name) DO UPDATE SET step = excluded.step, position = excluded.position, pending = excluded.pending,
   walked = excluded.walked, written = excluded.written, untouched = excluded.untouched,
   conflicts = excluded.conflicts, failed = excluded.failed, changed = excluded.changed
