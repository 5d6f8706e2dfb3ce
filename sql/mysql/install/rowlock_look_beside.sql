-- Finds the shared and counted grants of a name, and whether they keep a request out. p_stands and
-- p_own are as in rowlock_decide. p_others counts the other owners. p_slot is of the row to report.
CREATE PROCEDURE IF NOT EXISTS rowlock_look_beside(
    p_name VARBINARY(255), p_permits INT, p_owner VARBINARY(255), p_request BIGINT, p_now BIGINT,
    OUT p_stands INT, OUT p_others INT, OUT p_own INT, OUT p_slot BIGINT)
READS SQL DATA SQL SECURITY INVOKER
BEGIN
    SELECT IFNULL(MAX(IF(expires > p_now AND (owner <> p_owner OR request = p_request)
                         AND (p_permits = 0 OR permits <> p_permits OR request = p_request), 2, 1)),
                  0),
           IFNULL(SUM(expires > p_now AND owner <> p_owner), 0),
           IFNULL(SUM(expires > p_now AND owner = p_owner), 0),
           IFNULL(IFNULL(MAX(IF(expires > p_now AND owner = p_owner AND request = p_request,
                                slot, NULL)),
                         MIN(IF(expires > p_now AND owner <> p_owner, slot, NULL))), 0)
      INTO p_stands, p_others, p_own, p_slot
      FROM rowlock_locks WHERE name = p_name;
END;
