-- Lists our procedures. `objects` finds those with another body, but it cannot find a missing one:
-- a user without the right to call a procedure does not see it.
--
-- columns: name

/* rowlock:routines */
SELECT r.ROUTINE_NAME
  FROM information_schema.ROUTINES r
 WHERE r.ROUTINE_SCHEMA = {schema} AND r.ROUTINE_TYPE = 'PROCEDURE'
   AND LOCATE({prefix}, r.ROUTINE_NAME) = 1
