-- See rowlock_look. Returns the number of the first of several names, from 1, that cannot be
-- granted: a grant keeps the request out, or others are before it in the queue. NULL: all can be
-- granted.
CREATE OR REPLACE FUNCTION rowlock_look_all(
    p_names text[], p_owners text[], p_numbers bigint[], p_tickets bigint[], p_permits integer,
    p_unfair boolean, p_now bigint)
RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_n bigint;
BEGIN
    SELECT u.n INTO v_n
      FROM unnest(p_names, p_owners, p_numbers, p_tickets) WITH ORDINALITY
           AS u (name, owner, request, ticket, n)
     WHERE EXISTS (SELECT FROM rowlock_locks h
                    WHERE h.name = u.name AND h.expires > p_now AND h.owner <> u.owner
                      AND (p_permits = 0 OR h.slot = 0 OR h.permits <> p_permits
                           OR (p_permits > 0 AND
                               (SELECT pg_catalog.count(*) FROM rowlock_locks o
                                WHERE o.name = u.name
                                   AND o.expires > p_now AND o.owner <> u.owner) >= p_permits)))
        OR (NOT p_unfair AND EXISTS (
                SELECT FROM rowlock_waiters w
                 WHERE w.name = u.name AND w.expires > p_now
                   AND (u.ticket = 0 OR (w.ticket, w.request) < (u.ticket, u.request))
                   AND NOT EXISTS (SELECT FROM rowlock_locks m WHERE m.name = u.name
                                      AND m.owner = u.owner AND m.expires > p_now)))
     ORDER BY u.n LIMIT 1;
    RETURN v_n;
END $$;
