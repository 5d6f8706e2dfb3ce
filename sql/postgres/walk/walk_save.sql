-- Write down how far a walk has come.
--
-- {name} to {failed}: name, step, position, pending, rows walked by, written, left, conflicts,
-- failed rows changed: 1 or more
--
-- One upsert of one row, in the transaction that wrote the rows. The walk's own lock lets nobody
-- else here.

/* rowlock:walk_save */
INSERT INTO rowlock_walks (name, step, position, pending, walked, written, untouched, conflicts,
                           failed, changed)
VALUES ({name}::text, {step}::bigint, {position}::text, {pending}::text, {rows}::bigint,
        {written}::bigint, {left}::bigint, {conflicts}::bigint, {failed}::bigint, {clock})
ON CONFLICT (name) DO UPDATE SET step = excluded.step, position = excluded.position,
    pending = excluded.pending,
   walked = excluded.walked, written = excluded.written, untouched = excluded.untouched,
   conflicts = excluded.conflicts, failed = excluded.failed, changed = excluded.changed
