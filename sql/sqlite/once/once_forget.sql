-- Removes a key, completed or not.
--
-- {key}
-- rows changed: 1, or 0 if there is no such key
--
-- Atomic: one DELETE by key. The claimer of a key in progress finds its claim gone in
-- once_complete.

/* rowlock:once_forget */
DELETE FROM rowlock_once WHERE name = {key}
