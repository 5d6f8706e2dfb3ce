-- Reads which quorum this database is a member of.
--
-- columns: member; how many members there are; the quorum's identity; whether the row is about this
-- database; the mark; of this database, when the server had been started when it got that mark;
-- when the server was started, in seconds, and a second off at times; when the mark last moved
-- on; now. No row: it is a member of no quorum.
--
-- A plain read.

/* rowlock:members */
SELECT m.member, m.members, m.quorum, m.self, m.mark, m.started,
       UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
                        FROM /*!80000 performance_schema.global_status */
                             /*M! information_schema.GLOBAL_STATUS */
                       WHERE VARIABLE_NAME = 'Uptime'),
       m.moved, {clock}
  FROM rowlock_members m ORDER BY m.member
