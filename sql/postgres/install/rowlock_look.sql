-- See acquire.sql. Finds what keeps a request out: a lock row, and the first ticket before it in
-- the queue. NULL: there is none. An owner that re-enters its lock does not queue. It is a function
-- because a statement costs what is planned in it, used or not.
--
-- A row whose xmax is set may soon be gone, by a release that did not see our ticket. The same
-- holds for the first ticket. If xmax is not set on the row and the ticket that keep a waiter out,
-- later changes of them will see the waiter's ticket. For counted grants this must hold for as many
-- rows as there are permits.
CREATE OR REPLACE FUNCTION rowlock_look(
    p_name text, p_permits integer, p_owner text, p_request bigint, p_ticket bigint,
        p_unfair boolean,
    p_now bigint)
RETURNS TABLE (
    o_ours boolean, o_changing boolean, o_first_leaves boolean, o_name text, o_slot bigint,
        o_permits integer,
    o_owner text, o_token bigint, o_acquired bigint, o_expires bigint, o_ttl bigint,
        o_renewals bigint,
    o_host text, o_pid bigint, o_program text, o_note text)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN QUERY
        SELECT l.request = p_request AND l.owner = p_owner, l.changing,
               (SELECT w.xmax <> '0'::pg_catalog.xid FROM rowlock_waiters w
                 WHERE NOT p_unfair AND w.name = p_name AND w.expires > p_now
                   AND (p_ticket = 0 OR (w.ticket, w.request) < (p_ticket, p_request))
                   AND NOT EXISTS (SELECT FROM rowlock_locks m
                                    WHERE m.name = p_name AND m.owner = p_owner
                                          AND m.expires > p_now)
                 ORDER BY w.ticket, w.request LIMIT 1),
               l.name, l.slot, l.permits, l.owner, l.token, l.acquired, l.expires, l.ttl,
                   l.renewals, l.host,
               l.pid, l.program, l.note
          FROM (SELECT) c
          LEFT JOIN (
               SELECT h.*, h.xmax <> '0'::pg_catalog.xid
                      OR (p_permits > 0 AND h.permits = p_permits AND
                          (SELECT pg_catalog.count(*) FROM rowlock_locks o WHERE o.name = p_name
                           AND o.xmax = '0'::pg_catalog.xid
                              AND o.expires > p_now AND o.owner <> p_owner) < p_permits) AS changing
                 FROM rowlock_locks h
                WHERE h.name = p_name AND h.expires > p_now
                  AND (h.owner <> p_owner OR h.request = p_request)
                  AND (p_permits = 0 OR h.slot = 0 OR h.permits <> p_permits
                       OR h.request = p_request
                       OR (p_permits > 0 AND
                           (SELECT pg_catalog.count(*) FROM rowlock_locks o WHERE o.name = p_name
                               AND o.expires > p_now AND o.owner <> p_owner) >= p_permits))
                ORDER BY h.request = p_request DESC, h.xmax <> '0'::pg_catalog.xid, h.slot
                  LIMIT 1) l ON true;
END $$;
