-- Does what `rowlock sweep` does, within the database. For pg_cron and for people:
--     CALL public.rowlock_housekeeping(30::integer, 30::integer);
-- Name the schema and the types. Otherwise a procedure of another user may fit better.
-- p_idle_days, p_once_days: as the options --idle and --once-older-than, 1 to 36500. NULL: never.
--
-- A word in braces is the step with this name. Its parameters are the variables here. Each turn of
-- the loop is a batch, and a transaction of its own. So it cannot run inside a transaction.
--
-- One run at a time: a run claims a once key for a minute, and claims it on before each batch. A
-- run that does not have the claim ends. An advisory lock of the session would stay behind if a
-- query is cancelled in a session that goes on, for example behind a pooler. The claim ends by
-- itself.
CREATE OR REPLACE PROCEDURE rowlock_housekeeping(p_idle_days integer, p_once_days integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_key text := 'rowlock.housekeeping';
    v_fingerprint text := '';
    v_claim bigint := (pg_catalog.random() * 9000000000000000000::double precision)::bigint;
    v_ttl bigint := 60000000;
    v_token bigint := 0;
    v_until bigint := {clock} + 3600000000;
    v_limit bigint := 500;
    v_after text := '';
    v_slot bigint := '-9223372036854775808'::bigint;
    v_older bigint := 0;
    v_idle bigint;
    v_dry boolean := false;
    v_turn integer := 1;
    v_gone bigint;
    v_all bigint[] := '{0, 0, 0, 0, 0}'::bigint[];
BEGIN
    IF p_idle_days NOT BETWEEN 1 AND 36500 OR p_once_days NOT BETWEEN 1 AND 36500 THEN
        RAISE EXCEPTION 'both ages must be 1 to 36500 days, or NULL for never'
              USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_idle := p_idle_days * 86400000000;
    COMMIT;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    {once_claim};
    WHILE v_turn <= 5 LOOP
        COMMIT;
        UPDATE rowlock_once o SET expires = {clock} + v_ttl
         WHERE o.name = v_key AND o.claim = v_claim AND {clock} < v_until;
        EXIT WHEN NOT FOUND;
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        CASE v_turn
        WHEN 1 THEN
            {sweep_quiet} INTO v_gone, v_after, v_slot;
        WHEN 2 THEN
            {sweep_waiters};
        WHEN 3 THEN
            v_older := p_once_days * 86400000000;
            {once_sweep};
        WHEN 4 THEN
            {fold} INTO v_gone;
        ELSE
            {swept};
        END CASE;
        IF v_turn IN (2, 3, 5) THEN
            GET DIAGNOSTICS v_gone = ROW_COUNT;
        END IF;
        v_gone := coalesce(v_gone, 0);
        v_all[v_turn] := v_all[v_turn] + v_gone;
        v_turn := v_turn + CASE WHEN v_gone < v_limit THEN 1 ELSE 0 END;
    END LOOP;
    {once_abandon};
    RAISE NOTICE 'removed % locks, % tickets of dead waiters, % once keys, % idle counters%',
        v_all[1], v_all[2], v_all[3], v_all[4],
        CASE WHEN v_turn > 5 THEN '' ELSE '; stopped by another run, or after an hour' END;
END $$;
