-- Write down how far a walk has come.
--
-- nine ?: name, step, position, pending, rows walked by, written, left, conflicts, failed
-- rows changed: 1 or more
--
-- One upsert of one row, in the transaction that wrote the rows. The walk's own lock lets nobody
-- else here.

/* rowlock:walk_save */
INSERT INTO rowlock_walks (name, step, position, pending, walked, written, untouched, conflicts,
                           failed, changed)
VALUES ({name}, {step}, {position}, {pending}, {rows}, {written}, {left}, {conflicts}, {failed},
        {clock})
    ON DUPLICATE KEY UPDATE step = VALUES(step), position = VALUES(position), pending =
        VALUES(pending),
       walked = VALUES(walked), written = VALUES(written), untouched = VALUES(untouched),
       conflicts = VALUES(conflicts), failed = VALUES(failed), changed = VALUES(changed)
