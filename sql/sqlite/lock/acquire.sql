-- Grants the lock, unless another owner holds it or others are first.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- {ticket}, 0: none  {unfair}: 1 passes the waiters
-- columns: the answer of a try
--
-- The clock counts whole milliseconds that have passed. A lease begins at the next one, hence +
-- 1000. So it is never shorter than promised.
--
-- Atomic: these are one IMMEDIATE transaction, and a database file has one of these at a time.
-- look.sql runs again inside it. If it finds an obstacle, that is the answer, and the other
-- statements are not run.

/* rowlock:acquire */
{look};

DELETE FROM rowlock_locks
 WHERE name = {name} AND (owner = {owner} OR expires <= {clock});

INSERT INTO rowlock_tokens AS t (name, token, granted, permits)
SELECT {name}, m.token_floor + 1, {clock} + 1000, {permits}
  FROM rowlock_meta m WHERE m.id = 1
ON CONFLICT (name) DO UPDATE SET token = t.token + 1, granted = excluded.granted,
    permits = excluded.permits;

INSERT INTO rowlock_locks (name, slot, permits, owner, token, request, acquired, expires, ttl, host,
                           pid, program, note)
SELECT {name}, CASE WHEN {permits} = 0 THEN 0 ELSE t.token END, {permits}, {owner}, t.token,
       {request}, t.granted, t.granted + {ttl}, {ttl}, {host}, {pid}, {program}, {note}
  FROM rowlock_tokens t WHERE t.name = {name};

DELETE FROM rowlock_waiters
 WHERE name = {name} AND ticket <= {ticket}
   AND (request = {request} OR expires <= {clock});

SELECT token, NULL, NULL, 0, acquired
  FROM rowlock_locks WHERE name = {name} AND request = {request} AND owner = {owner}
