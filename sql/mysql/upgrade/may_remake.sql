-- Fails if this user may not make our procedures again. There is no such procedure, so it changes
-- nothing. A user without that right does not see all procedures, and then `routines` lists too
-- few.

/* rowlock:may_remake */
ALTER PROCEDURE rowlock_absent COMMENT ''
