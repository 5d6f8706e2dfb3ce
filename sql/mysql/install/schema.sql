-- The tables and procedures of rowlock, version 1, for MySQL 8.0.29, MariaDB 10.6, and later ones.
--
-- `rowlock install` runs this, and `rowlock install --print` prints it. The words in braces are
-- files of this folder, in this order. It may run again, and in many sessions at once: every
-- statement does nothing if its work is done.

/* rowlock:schema */
{tables}
{rowlock_grant}
{rowlock_decide}
{rowlock_look_beside}
{rowlock_make_grant}
{rowlock_undo_grant}
{rowlock_new_counter}
{rowlock_make_room}
{rowlock_grant_all}
{rowlock_grant_at_once}
{rowlock_grant_many}
{rowlock_grant_usual_many}
{rowlock_grant_rest}
{rowlock_new_counters}
{rowlock_release_at_once}
{rowlock_release_many}
{rowlock_renew_many}
{rowlock_places}
{rowlock_enqueue_many}
{rowlock_clear_queues}
{rowlock_enqueue}
{rowlock_wakeup_before}
{rowlock_withdraw}
{rowlock_wake}
{rowlock_guard}
{rowlock_renew}
{rowlock_renew_all}
{rowlock_fence}
{rowlock_break}
{rowlock_fold_batch}
{rowlock_fold}
{rowlock_raise}
{rowlock_sweep_batch}
{rowlock_housekeeping}
INSERT INTO rowlock_meta (id, version, compat, code, identity, token_floor, swept)
VALUES (1, 1, 1, 1, REPLACE(UUID(), '-', ''),
        (SELECT COALESCE(MAX(t.token), 0) FROM rowlock_tokens t), -{clock})
ON DUPLICATE KEY UPDATE id = rowlock_meta.id;
