-- Grant the lock, unless another holds it.
--
-- ?1 name  ?2 slot  ?3 owner  ?4 attempt  ?5 ttl  ?6 host  ?7 pid  ?8 program  ?9 note
-- columns of the last statement: granted, then the row
--
-- Atomic: the driver asks probe.sql first, and only if nobody stands in the way runs these three in
-- one IMMEDIATE transaction, of which a database file has one at a time. Each looks for itself whether
-- the lock is held, so that all of them do their work or none does.

/* rowlock:acquire */
INSERT INTO rowlock_tokens AS t (name, token, granted)
SELECT ?1, m.token_floor + 1, CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_meta m
 WHERE m.id = 1 AND NOT EXISTS (
       SELECT 1 FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND (owner <> ?3 OR attempt = ?4)
          AND expires > CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)
ON CONFLICT (name) DO UPDATE SET token = t.token + 1, granted = excluded.granted;

INSERT INTO rowlock_locks AS l (name, slot, owner, token, attempt, acquired, expires, ttl, host, pid,
                                program, note)
SELECT ?1, ?2, ?3, t.token, ?4, t.granted, t.granted + ?5, ?5, ?6, ?7, ?8, ?9
  FROM rowlock_tokens t
 WHERE t.name = ?1 AND NOT EXISTS (
       SELECT 1 FROM rowlock_locks WHERE name = ?1 AND slot = ?2 AND (owner <> ?3 OR attempt = ?4)
          AND expires > t.granted)
ON CONFLICT (name, slot) DO UPDATE
   SET owner = excluded.owner, token = excluded.token, attempt = excluded.attempt,
       acquired = excluded.acquired, expires = excluded.expires, ttl = excluded.ttl, lapsed = 0,
       renewals = 0, host = excluded.host, pid = excluded.pid, program = excluded.program,
       note = excluded.note;

SELECT attempt = ?4 AND owner = ?3, name, slot, owner, token, acquired, expires, ttl, renewals, host, pid, program, note,
       CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000
  FROM rowlock_locks WHERE name = ?1 AND slot = ?2
