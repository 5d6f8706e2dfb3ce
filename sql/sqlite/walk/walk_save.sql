-- Saves the checkpoint of a walk.
--
-- {name}  {step}  {position}  {pending}  {rows}  {written}  {left}  {conflicts}  {failed}
-- rows changed: 1 or more
--
-- Atomic: one upsert of one row, in the transaction that writes the walk's rows. The walk's lock
-- keeps other clients out.

/* rowlock:walk_save */
INSERT INTO rowlock_walks (name, step, position, pending, walked, written, untouched, conflicts,
                           failed, changed)
VALUES ({name}, {step}, {position}, {pending}, {rows}, {written}, {left}, {conflicts}, {failed},
        {clock})
ON CONFLICT (name) DO UPDATE SET step = excluded.step, position = excluded.position,
    pending = excluded.pending,
   walked = excluded.walked, written = excluded.written, untouched = excluded.untouched,
   conflicts = excluded.conflicts, failed = excluded.failed, changed = excluded.changed
