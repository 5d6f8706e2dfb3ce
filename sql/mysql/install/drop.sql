-- Removes rowlock's tables and procedures. All locks and all token counters are gone.
--
-- For a DBA. The library never runs this. After a new installation tokens start at 1 again, so
-- resources that remember tokens must forget them too.

/* rowlock:drop */
DROP PROCEDURE IF EXISTS rowlock_grant;
DROP PROCEDURE IF EXISTS rowlock_decide;
DROP PROCEDURE IF EXISTS rowlock_look_beside;
DROP PROCEDURE IF EXISTS rowlock_make_grant;
DROP PROCEDURE IF EXISTS rowlock_undo_grant;
DROP PROCEDURE IF EXISTS rowlock_new_counter;
DROP PROCEDURE IF EXISTS rowlock_make_room;
DROP PROCEDURE IF EXISTS rowlock_grant_all;
DROP PROCEDURE IF EXISTS rowlock_grant_at_once;
DROP PROCEDURE IF EXISTS rowlock_grant_many;
DROP PROCEDURE IF EXISTS rowlock_grant_usual_many;
DROP PROCEDURE IF EXISTS rowlock_grant_rest;
DROP PROCEDURE IF EXISTS rowlock_new_counters;
DROP PROCEDURE IF EXISTS rowlock_release_at_once;
DROP PROCEDURE IF EXISTS rowlock_release_many;
DROP PROCEDURE IF EXISTS rowlock_renew_many;
DROP PROCEDURE IF EXISTS rowlock_enqueue_many;
DROP PROCEDURE IF EXISTS rowlock_places;
DROP PROCEDURE IF EXISTS rowlock_clear_queues;
DROP PROCEDURE IF EXISTS rowlock_enqueue;
DROP PROCEDURE IF EXISTS rowlock_wakeup_before;
DROP PROCEDURE IF EXISTS rowlock_wake;
DROP PROCEDURE IF EXISTS rowlock_withdraw;
DROP PROCEDURE IF EXISTS rowlock_guard;
DROP PROCEDURE IF EXISTS rowlock_renew;
DROP PROCEDURE IF EXISTS rowlock_renew_all;
DROP PROCEDURE IF EXISTS rowlock_break;
DROP PROCEDURE IF EXISTS rowlock_fold;
DROP PROCEDURE IF EXISTS rowlock_fold_batch;
DROP PROCEDURE IF EXISTS rowlock_fence;
DROP PROCEDURE IF EXISTS rowlock_raise;
DROP PROCEDURE IF EXISTS rowlock_sweep_batch;
DROP PROCEDURE IF EXISTS rowlock_housekeeping;
DROP TABLE IF EXISTS rowlock_locks, rowlock_waiters, rowlock_tokens, rowlock_fences, rowlock_once,
    rowlock_walks, rowlock_members, rowlock_meta;
