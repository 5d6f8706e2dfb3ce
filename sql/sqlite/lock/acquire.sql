-- Grant the lock, unless another holds it or others are first.
--
-- {name}  {permits}  {owner}  {request}  {ttl}  {host}  {pid}  {program}  {note}
-- {ticket}, 0: none  {unfair}: 1 to pass by those who wait
-- columns: the answer of a try
--
-- The clock counts whole milliseconds that have passed. A lease runs from the next one on, so that
-- it is never shorter than told: hence + 1000.
--
-- Atomic: these are one IMMEDIATE transaction, of which a database file has one at a time. If
-- look.sql, asked again inside of it, finds something in the way, that is the answer, and the
-- others are not run.

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
