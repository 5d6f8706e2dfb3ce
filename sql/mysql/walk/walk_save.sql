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
    ON DUPLICATE KEY UPDATE step = VALUES(step), position = VALUES(position), pending =
        VALUES(pending),
       walked = VALUES(walked), written = VALUES(written), untouched = VALUES(untouched),
       conflicts = VALUES(conflicts), failed = VALUES(failed), changed = VALUES(changed)
