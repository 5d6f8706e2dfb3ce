-- Forget a key, whatever came of it.
--
-- {key}
-- rows changed: 1, or 0: there is no such key
--
-- One DELETE by key. A claim in progress is gone then, which its once_complete finds.

/* rowlock:once_forget */
DELETE FROM rowlock_once WHERE name = {key}
