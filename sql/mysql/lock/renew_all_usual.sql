-- Renews many leases, if all of them can be renewed at once. Leaves all other cases to renew_all.
--
-- {pack} as in renew_all
-- rows changed: as many as there are leases, or less. LAST_INSERT_ID: now.
--
-- For MariaDB. With a timeout of 0 it waits for no lock: if another transaction has locked one of
-- the rows, it fails and changes nothing. MySQL has no such timeout. The driver sends this step by
-- itself.

/* rowlock:renew_all_usual */
SET STATEMENT innodb_lock_wait_timeout = 0 FOR
UPDATE JSON_TABLE({pack}, '$[*]' COLUMNS (
           slot BIGINT PATH '$[0]', token BIGINT PATH '$[1]', ttl BIGINT PATH '$[2]',
           name VARBINARY(510) PATH '$[3]',
           owner VARBINARY(510) PATH '$[4]')) w
  STRAIGHT_JOIN rowlock_locks l FORCE INDEX (PRIMARY)
     ON l.name = UNHEX(w.name) AND l.slot = w.slot AND l.owner = UNHEX(w.owner)
        AND l.token = w.token
   SET l.lapsed = GREATEST(0, {clock} - l.expires), l.expires = LAST_INSERT_ID({clock}) + w.ttl,
       l.ttl = w.ttl, l.renewals = l.renewals + 1
