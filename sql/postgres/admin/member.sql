-- Writes down a member of the quorum, and its newest mark.
--
-- {member}  {members}: how many there are  {quorum}: its identity  {self}: it is this database
-- {mark}
--
-- Atomic: one statement. A copy of it that comes late does not move the mark back.

/* rowlock:member */
INSERT INTO rowlock_members (member, members, quorum, self, mark, started, moved)
VALUES ({member}::integer, {members}::integer, {quorum}::text, {self}::boolean, {mark}::text,
        (1000::double precision * pg_catalog.date_part('epoch'::text,
                                    pg_catalog.pg_postmaster_start_time()))::bigint, 0)
ON CONFLICT (member) DO UPDATE SET members = excluded.members, quorum = excluded.quorum,
    self = excluded.self, mark = excluded.mark, started = excluded.started,
    moved = CASE WHEN rowlock_members.mark = excluded.mark THEN rowlock_members.moved ELSE 0 END
