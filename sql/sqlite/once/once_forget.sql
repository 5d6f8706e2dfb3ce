-- Removes a key, completed or not.
--
-- {key}
-- {token} 0: in any state. Else only if it is not completed, and was claimed under a smaller token
-- rows changed: 1, or 0 if there is no such key
--
-- Atomic: one DELETE by key. The claimer of a key in progress finds its claim gone in
-- once_complete.

/* rowlock:once_forget */
DELETE FROM rowlock_once WHERE name = {key}
   AND ({token} = 0 OR (NOT done AND token < {token}))
