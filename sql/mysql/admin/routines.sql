-- Which of our procedures are there. `objects` tells of those with another body, and cannot tell of
-- one that is missing: a user without the right to call a procedure does not see it.
--
-- columns: name

/* rowlock:routines */
SELECT r.ROUTINE_NAME
  FROM information_schema.ROUTINES r
 WHERE r.ROUTINE_SCHEMA = {schema} AND r.ROUTINE_TYPE = 'PROCEDURE'
   AND LOCATE({prefix}, r.ROUTINE_NAME) = 1
