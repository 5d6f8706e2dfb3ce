-- Writes down a member of the quorum, and its newest mark.
--
-- {member}  {members}: how many there are  {quorum}: its identity  {self}: it is this database
-- {mark}
--
-- Atomic: one statement. A copy of it that comes late does not move the mark back.

/* rowlock:member */
INSERT INTO rowlock_members (member, members, quorum, self, mark, started, moved)
VALUES ({member}, {members}, {quorum}, {self}, {mark},
        UNIX_TIMESTAMP() - (SELECT CAST(VARIABLE_VALUE AS SIGNED)
                        FROM /*!80000 performance_schema.global_status */
                             /*M! information_schema.GLOBAL_STATUS */
                       WHERE VARIABLE_NAME = 'Uptime'), 0)
ON DUPLICATE KEY UPDATE moved = IF(mark = VALUES(mark), moved, 0), members = VALUES(members),
    quorum = VALUES(quorum), self = VALUES(self), mark = VALUES(mark), started = VALUES(started)
