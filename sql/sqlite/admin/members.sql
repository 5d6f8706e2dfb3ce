-- Reads which quorum this database is a member of.
--
-- columns: member; how many members there are; the quorum's identity; whether the row is about this
-- database; the mark; of this database, when the server had been started when it got that mark;
-- when the server was started, in seconds (a file has no server: 0); when the mark last moved on;
-- now. No row: it is a member of no quorum.
--
-- A plain read.

/* rowlock:members */
SELECT member, members, quorum, self, mark, started, 0, moved, {clock}
  FROM rowlock_members ORDER BY member
