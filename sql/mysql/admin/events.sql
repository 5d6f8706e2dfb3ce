-- Finds the event that calls rowlock_housekeeping, the worst one first.
--
-- columns: the event and its state; what to do, NULL: nothing
--
-- A plain read of the catalogue. A user sees events with the EVENT privilege. A replicated event is
-- disabled on the replica, and stays so when the replica is promoted.

/* rowlock:events */
SELECT CONCAT(e.EVENT_NAME, CASE WHEN e.STATUS <> 'ENABLED' THEN ', disabled on this server'
                                 WHEN e.EVENT_TYPE <> 'RECURRING' THEN ', once'
                                 ELSE CONCAT(', every ', e.INTERVAL_VALUE, ' ',
                                             LOWER(e.INTERVAL_FIELD)) END,
              IF(@@global.event_scheduler = 'ON', '', ', the event scheduler is off')),
       CASE WHEN CAST(@@global.read_only AS CHAR) IN ('1', 'ON') THEN NULL
            WHEN e.STATUS <> 'ENABLED'
            THEN CONCAT('after a failover an event stays disabled: run ALTER DEFINER = ',
                        CONCAT('''', REPLACE(e.DEFINER, '@', '''@'''), ''''), ' EVENT ',
                        e.EVENT_NAME, ' ENABLE')
            WHEN @@global.event_scheduler <> 'ON'
            THEN 'run SET GLOBAL event_scheduler = ON, and set it in the option file too'
       END AS advice
  FROM information_schema.EVENTS e
 WHERE e.EVENT_SCHEMA = {schema}
   AND LOCATE(CONCAT({prefix}, 'housekeeping'), e.EVENT_DEFINITION) > 0
 ORDER BY advice IS NULL, e.STATUS = 'ENABLED', e.EVENT_NAME
 LIMIT 1
