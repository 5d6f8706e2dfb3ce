-- Reads which quorum this database is a member of.
--
-- columns: member; how many members there are; the quorum's identity; whether the row is about this
-- database; the mark; of this database, when the server had been started when it got that mark;
-- when the server was started, in milliseconds; when the mark last moved on; now. No row: it is a
-- member of no quorum.
--
-- A plain read.

/* rowlock:members */
SELECT m.member, m.members, m.quorum, m.self, m.mark, m.started,
       (1000::double precision * pg_catalog.date_part('epoch'::text,
                                    pg_catalog.pg_postmaster_start_time()))::bigint,
       m.moved, {clock}
  FROM rowlock_members m ORDER BY m.member
