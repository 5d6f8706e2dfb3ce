-- See acquire_all.sql. Grants several locks or none. The names come in order, so two calls never
-- lock them in opposite orders.
CREATE OR REPLACE FUNCTION rowlock_grant_all(
    p_names text[], p_owners text[], p_numbers bigint[], p_tickets bigint[], p_permits integer,
    p_ttl bigint, p_host text, p_pid bigint, p_program text, p_note text, p_unfair boolean)
RETURNS TABLE (o_n bigint, o_token bigint, o_expires bigint, o_now bigint)
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_now bigint := {clock};
    v_tokens bigint[] := '{}';
    v_n bigint;
BEGIN
    RETURN QUERY
        SELECT u.n, l.token, l.expires, v_now
          FROM unnest(p_names, p_owners, p_numbers) WITH ORDINALITY AS u (name, owner, request, n)
          JOIN rowlock_locks l ON l.name = u.name AND l.owner = u.owner AND l.request = u.request
         WHERE l.expires > v_now
           AND NOT EXISTS (
                SELECT FROM unnest(p_names, p_owners, p_numbers) AS o (name, owner, request)
                 WHERE NOT EXISTS (SELECT FROM rowlock_locks m
                                    WHERE m.name = o.name AND m.owner = o.owner
                                          AND m.request = o.request
                                      AND m.expires > v_now))
         ORDER BY u.n;
    IF FOUND THEN
        RETURN;
    END IF;
    v_n := rowlock_look_all(p_names, p_owners, p_numbers, p_tickets, p_permits, p_unfair, v_now);
    IF v_n IS NOT NULL THEN
        RETURN QUERY SELECT v_n, NULL::bigint, NULL::bigint, v_now;
        RETURN;
    END IF;
    BEGIN
        v_n := 0;
        WHILE v_n < pg_catalog.array_length(p_names, 1) LOOP
            v_n := v_n + 1;
            v_tokens[v_n] := rowlock_grant(
                p_names[v_n], p_permits, p_owners[v_n], p_numbers[v_n], p_ttl, p_host, p_pid,
                    p_program,
                p_note, p_tickets[v_n], v_now,
                EXISTS (SELECT FROM rowlock_locks s WHERE s.name = p_names[v_n]));
            IF v_tokens[v_n] IS NULL THEN
                RAISE EXCEPTION USING ERRCODE = 'RL001';
            END IF;
        END LOOP;
    EXCEPTION WHEN SQLSTATE 'RL001' THEN
        RETURN QUERY SELECT v_n, NULL::bigint, NULL::bigint, v_now;
        RETURN;
    END;
    RETURN QUERY SELECT n, token, v_now + p_ttl, v_now FROM pg_catalog.unnest(v_tokens) WITH
        ORDINALITY AS g (token, n);
END $$;
